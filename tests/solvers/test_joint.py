from __future__ import annotations

import signal

import numpy as np
import pytest
from reference.programs import kernel_learning
from solvers.conftest import make_problem
from solvers.test_frank_wolfe import assert_certified

from tessella.kernels import PolynomialKernels, TessellatedKernels
from tessella.problems import SaddlePoint
from tessella.solvers import SolverStatus, frank_wolfe, joint
from tessella.solvers._interior_point import InteriorPoint, _NewtonSystem
from tessella.solvers._joint_problems import WholeProblem
from tessella.solvers.joint import _start
from tessella.svm import DualProblem, Halves


@pytest.mark.parametrize("monomials", ["x", "xz"])
@pytest.mark.parametrize("degree", [0, 1, 2])
def test_agrees_with_the_semidefinite_program(task, degree, monomials):
    problem = make_problem(task, m=25, n=2 if degree < 2 else 1, degree=degree, monomials=monomials)
    value, P = kernel_learning(problem.kernels, problem.dual)
    result = joint(problem, tol=1e-8)
    assert result.status is SolverStatus.OPTIMAL
    assert result.n_iter <= 40
    assert_certified(problem, result)
    assert result.value == pytest.approx(value, rel=1e-5)
    K, expected = problem.kernels.gram(result.P), problem.kernels.gram(P)
    H = np.eye(len(K)) - 1.0 / len(K)
    difference = np.linalg.norm(H @ (K - expected) @ H)
    assert difference <= 1e-3 * np.linalg.norm(H @ expected @ H)


@pytest.mark.parametrize("C", [1e-2, 1.0, 100.0, 1e4])
@pytest.mark.parametrize("n", [2, 10, 30])
def test_any_c_and_any_number_of_features(task, C, n):
    problem = make_problem(task, m=120, n=n, C=C, delta=0.1, seed=n)
    result = joint(problem, tol=1e-6)
    assert result.status is SolverStatus.OPTIMAL
    assert result.n_iter <= 60
    assert_certified(problem, result)


def test_agrees_with_frank_wolfe(task):
    problem = make_problem(task, m=150, n=3)
    slow = frank_wolfe(problem, tol=1e-4, max_iter=2000)
    fast = joint(problem, tol=1e-8)
    assert fast.value <= slow.value * (1 + 1e-9)
    assert fast.value >= slow.bound * (1 - 1e-9)


def test_p_lies_in_the_face_of_the_top_eigenspace(task):
    """Optimality of P: its range lies where D(w) attains its largest eigenvalue."""
    problem = make_problem(task, m=80, n=4)
    result = joint(problem, tol=1e-9)
    values, vectors = problem.at(result.w).spectrum
    weight = np.einsum("ij,jk,ki->i", vectors.T, result.P, vectors)
    assert weight[values < 0.99 * values[-1]].sum() <= 1e-4 * problem.parameters.side


def test_rank_two_optimum_with_a_double_eigenvalue():
    """Two irrelevant copies of one signal force a tie of the top eigenvalue at the optimum."""
    ranks = []
    for seed in range(6):
        problem = make_problem("regression", m=120, n=6, C=10.0, seed=seed)
        result = joint(problem, tol=1e-8)
        eigenvalues = np.linalg.eigvalsh(result.P)
        ranks.append(int((eigenvalues > 1e-3 * eigenvalues[-1]).sum()))
        if ranks[-1] == 2:
            values = problem.at(result.w).spectrum[0]
            assert values[-2] == pytest.approx(values[-1], rel=1e-4)
    assert 2 in ranks


def test_answer_is_sparse():
    result = joint(make_problem("classification", m=200, C=10.0), tol=1e-5)
    assert (result.w == 0).sum() > 20


def test_per_sample_weights(task):
    problem = make_problem(task, m=60)
    dual = problem.dual
    factor = np.random.default_rng(0).integers(0, 4, 60)
    weighted = dual.restrict(np.arange(dual.size), factor)
    result = joint(SaddlePoint(problem.kernels, weighted), tol=1e-7)
    assert result.status is SolverStatus.OPTIMAL
    assert not result.w[factor == 0].any()
    kept = factor > 0
    part = SaddlePoint(
        TessellatedKernels(1, 0.3).bind(problem.kernels._X[kept]),
        weighted.restrict(np.flatnonzero(kept)),
    )
    assert result.value == pytest.approx(joint(part, tol=1e-7).value, rel=1e-6)


def test_another_kernel_set(task):
    problem = make_problem(task, m=60)
    poly = SaddlePoint(PolynomialKernels(2).bind(problem.kernels._X), problem.dual)
    result = joint(poly, tol=1e-7)
    assert result.status is SolverStatus.OPTIMAL
    assert_certified(poly, result)


def test_wide_tube_keeps_the_identity():
    problem = SaddlePoint(
        TessellatedKernels().bind(np.random.default_rng(0).random((12, 2))),
        DualProblem.regression(np.linspace(-0.5, 0.5, 12), 1.0, 1.0),
    )
    result = joint(problem)
    assert result.status is SolverStatus.OPTIMAL
    assert result.gap == 0.0
    assert (np.eye(6) == result.P).all()
    assert not result.w.any()


def test_duplicate_rows(task):
    problem = make_problem(task, m=30)
    X = np.repeat(problem.kernels._X, 3, axis=0)
    dual = problem.dual.restrict(np.repeat(np.arange(30), 3))
    result = joint(SaddlePoint(TessellatedKernels(1, 0.3).bind(X), dual), tol=1e-6)
    assert result.status is SolverStatus.OPTIMAL


def test_starts_from_a_given_point(task):
    problem = make_problem(task, m=80)
    whole = joint(problem, tol=1e-7)
    again = joint(problem, tol=1e-7, P0=whole.P, w0=whole.w)
    assert again.status is SolverStatus.OPTIMAL
    assert again.value == pytest.approx(whole.value, rel=1e-6)
    assert again.history[0].value < joint(problem, tol=1e-7).history[0].value


def test_limits_keep_the_best_pair(task):
    problem = make_problem(task, m=100)
    short = joint(problem, tol=1e-9, max_iter=4)
    assert short.status is SolverStatus.MAX_ITER
    assert short.n_iter == 4
    assert_certified(problem, short)
    late = joint(problem, tol=1e-12, time_limit=1e-9)
    assert late.status is SolverStatus.TIME_LIMIT
    assert_certified(problem, late)


def test_ctrl_c_keeps_the_best_pair():
    problem = make_problem("regression", m=100)

    def interrupt(record):
        if record.iteration == 3:
            signal.raise_signal(signal.SIGINT)

    result = joint(problem, tol=1e-9, callback=interrupt)
    assert result.status is SolverStatus.INTERRUPTED
    assert_certified(problem, result)


def test_rounding_floor_is_reported():
    result = joint(make_problem("regression", m=60), tol=1e-300, max_iter=200)
    assert result.status in (SolverStatus.STALLED, SolverStatus.OPTIMAL)
    assert result.gap < 1e-8


def test_newton_step_by_finite_differences(task):
    """Along a Newton step every residual falls at the rate of its own size."""
    problem = make_problem(task, m=25)
    whole = WholeProblem(problem)
    method = InteriorPoint(whole, *_start(problem, whole, problem.parameters.centre, None))
    for _ in range(3):
        method.advance()
    state = method.state
    t = 1e-6
    system = _NewtonSystem(method)
    moved = method._after(system, system.predictor(), t)
    after = InteriorPoint(whole, moved, method._scale)
    for name in ("_ra", "_rM", "_rsum", "_rtrace"):
        before = np.asarray(getattr(method, name))
        rate = (np.asarray(getattr(after, name)) - before) / t
        size = max(np.abs(before).max(), np.abs(rate).max(), 1.0)
        np.testing.assert_allclose(rate, -before, atol=1e-4 * size)
    # Complementarity heads for zero: alpha * zl falls at the rate of its own size, M S likewise.
    rate = (moved.alpha * moved.zl - state.alpha * state.zl) / t
    np.testing.assert_allclose(rate, -state.alpha * state.zl, rtol=1e-3, atol=1e-6)
    trace = (np.sum(moved.M * moved.S) - np.sum(state.M * state.S)) / t
    assert trace == pytest.approx(-np.sum(state.M * state.S), rel=1e-3)


def test_halves_recombine():
    dual = DualProblem.regression([1.0, -2.0, 0.5], [1.0, 2.0, 0.0], 0.1)
    halves = Halves.of(dual)
    assert halves.sample.tolist() == [0, 1, 0, 1]
    np.testing.assert_allclose(halves.join(np.array([1.0, 0.0, 0.25, 2.0])), [0.75, -2.0, 0.0])
