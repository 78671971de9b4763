from __future__ import annotations

import importlib
import signal
import subprocess
import sys

import numpy as np
import pytest
from reference.programs import kernel_learning
from solvers.conftest import make_problem
from solvers.test_frank_wolfe import assert_certified

from tessella.kernels import TessellatedKernels
from tessella.problems import SaddlePoint
from tessella.solvers import SolverStatus, joint, sdp
from tessella.solvers.sdp import memory_estimate
from tessella.svm import DualProblem


@pytest.mark.parametrize("degree", [0, 1])
def test_agrees_with_the_slow_formulation(task, degree):
    problem = make_problem(task, m=25, degree=degree)
    value, P = kernel_learning(problem.kernels, problem.dual)
    result = sdp(problem, tol=1e-6)
    assert result.status is SolverStatus.OPTIMAL
    assert result.solver == "sdp"
    assert len(result.history) == 2
    assert result.n_iter == 1
    assert_certified(problem, result)
    assert result.value == pytest.approx(value, rel=1e-5)
    assert result.bound == pytest.approx(value, rel=1e-5)
    H = np.eye(25) - 1.0 / 25
    K, expected = problem.kernels.gram(result.parameter), problem.kernels.gram(P)
    difference = np.linalg.norm(H @ (K - expected) @ H)
    assert difference <= 1e-3 * np.linalg.norm(H @ expected @ H)


def test_bound_from_the_multipliers_at_an_optimum_of_rank_two():
    """The SVM's own w proves less there: D has a double top eigenvalue."""
    problem = make_problem("regression", m=30, n=6, C=10.0, seed=1)
    result = sdp(problem, tol=1e-6)
    assert result.status is SolverStatus.OPTIMAL
    assert_certified(problem, result)
    best = joint(problem, tol=1e-8)
    assert result.value == pytest.approx(best.value, rel=1e-6)
    assert result.bound <= best.value * (1 + 1e-9)
    assert problem.certificate(result.parameter, result.w).gap > 1e-6


def test_per_sample_weights(task):
    problem = make_problem(task, m=20)
    dual = problem.dual
    factor = np.random.default_rng(0).integers(0, 4, 20)
    weighted = dual.restrict(np.arange(dual.size), factor)
    result = sdp(SaddlePoint(problem.kernels, weighted), tol=1e-5)
    assert result.status is SolverStatus.OPTIMAL
    assert result.value == pytest.approx(kernel_learning(problem.kernels, weighted)[0], rel=1e-5)


def test_too_large_samples_are_refused():
    def problem_of(m):
        X = np.random.default_rng(0).random((m, 2))
        y = np.where(X[:, 0] > 0.5, 1.0, -1.0)
        return SaddlePoint(TessellatedKernels().bind(X), DualProblem.classification(y, 1.0))

    with pytest.raises(ValueError, match=r"1001 rows, more than max_rows=1000.* GiB.*'joint'|TiB"):
        sdp(problem_of(1001))
    with pytest.raises(ValueError, match=r"400 rows and 21 parameters would take about .* GiB"):
        sdp(problem_of(400))
    with pytest.raises(ValueError, match="20 rows, more than max_rows=10"):
        sdp(problem_of(20), max_rows=10)
    assert memory_estimate(100, 21) < 8 * 2**30 < memory_estimate(200, 21)


def test_missing_clarabel_names_the_extra(monkeypatch):
    def refuse(name):
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(importlib, "import_module", refuse)
    with pytest.raises(ImportError, match=r"python -m pip install 'tessella\[sdp\]'"):
        sdp(make_problem("classification", m=10))


def test_clarabel_is_imported_only_when_used():
    code = "import sys, tessella.solvers.sdp; sys.exit('clarabel' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_starting_pair_and_limits(task):
    problem = make_problem(task, m=15)
    none = sdp(problem, tol=1e-9, max_iter=0)
    assert none.status is SolverStatus.MAX_ITER
    assert len(none.history) == 1
    few = sdp(problem, tol=1e-9, max_iter=3)
    assert few.status is SolverStatus.MAX_ITER
    assert_certified(problem, few)
    late = sdp(problem, tol=1e-9, time_limit=0.0)
    assert late.status is SolverStatus.TIME_LIMIT
    assert_certified(problem, late)
    whole = sdp(problem, tol=1e-6)
    again = sdp(problem, tol=1e-5, parameter0=whole.parameter, w0=whole.w)
    assert again.status is SolverStatus.OPTIMAL
    assert again.n_iter == 0
    assert (again.parameter == whole.parameter).all()


def test_unreachable_tolerance_is_not_called_optimal():
    problem = make_problem("regression", m=15)
    result = sdp(problem, tol=1e-15)
    assert result.status is SolverStatus.STALLED
    assert result.gap > 1e-15
    assert_certified(problem, result)


def test_ctrl_c_keeps_the_best_pair():
    problem = make_problem("regression", m=15)

    def interrupt(record):
        signal.raise_signal(signal.SIGINT)

    result = sdp(problem, tol=1e-9, callback=interrupt)
    assert result.status is SolverStatus.INTERRUPTED
    assert_certified(problem, result)


def test_wide_tube_keeps_the_identity():
    problem = SaddlePoint(
        TessellatedKernels().bind(np.random.default_rng(0).random((12, 2))),
        DualProblem.regression(np.linspace(-0.5, 0.5, 12), 1.0, 1.0),
    )
    result = sdp(problem)
    assert result.status is SolverStatus.OPTIMAL
    assert result.gap == 0.0
    assert (np.eye(6) == result.parameter).all()
