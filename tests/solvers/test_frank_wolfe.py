from __future__ import annotations

import io
import itertools
import signal

import numpy as np
import pytest
from reference.programs import kernel_learning
from solvers.conftest import make_problem, rows_of

from tessella.kernels import TessellatedKernels
from tessella.problems import SaddlePoint
from tessella.solvers import SolverStatus, TablePrinter, check_solver, frank_wolfe, joint
from tessella.solvers.frank_wolfe import add_scaled, search_root
from tessella.svm import DualProblem, relative_gap, solve_dual


def assert_certified(problem, result):
    """The result proves what it says, recomputed from P and w alone."""
    assert problem.cone.contains(result.parameter)
    certificate = problem.certificate(result.parameter, result.w)
    assert certificate.upper == pytest.approx(result.value, rel=1e-10)
    assert certificate.intercept == pytest.approx(result.intercept, abs=1e-9)
    assert result.bound >= certificate.lower - 1e-10 * abs(result.value)
    # Where the two meet they may differ by the rounding of either.
    assert result.bound <= result.value + 4 * np.spacing(result.value)
    assert result.gap == relative_gap(result.value, result.bound)


@pytest.mark.parametrize("degree", [0, 1])
def test_agrees_with_the_semidefinite_program(task, degree):
    problem = make_problem(task, degree=degree)
    value, P = kernel_learning(problem.kernels, problem.dual)
    result = frank_wolfe(problem, tol=2e-6, max_iter=3000)
    assert result.status is SolverStatus.OPTIMAL
    assert_certified(problem, result)
    assert result.value == pytest.approx(value, rel=1e-5)
    assert result.bound == pytest.approx(value, rel=1e-5)
    K, expected = problem.kernels.gram(result.parameter), problem.kernels.gram(P)
    # Only the centred matrix is determined: a constant part is the intercept's.
    H = np.eye(len(K)) - 1.0 / len(K)
    difference = np.linalg.norm(H @ (K - expected) @ H)
    assert difference <= 1e-3 * np.linalg.norm(H @ expected @ H)


def test_the_full_family_agrees_too(task):
    problem = make_problem(task, m=20, n=1, monomials="xz")
    value, _ = kernel_learning(problem.kernels, problem.dual)
    result = frank_wolfe(problem, tol=1e-5, max_iter=3000)
    assert_certified(problem, result)
    assert result.value == pytest.approx(value, rel=2e-5)


def test_without_iterations_the_start_is_the_answer(task):
    """The SVM of P = I; and a guard of the tests above, which P = I would fail by far."""
    problem = make_problem(task)
    start = frank_wolfe(problem, tol=1e-6, max_iter=0)
    assert start.status is SolverStatus.MAX_ITER
    assert start.n_iter == 0
    assert_certified(problem, start)
    side = problem.cone.side
    assert (np.eye(side) == start.parameter).all()
    exact = solve_dual(problem.kernels.gram(np.eye(side), centred=True), problem.dual, tol=1e-11)
    assert start.value == pytest.approx(exact.objective, rel=1e-3)
    best = frank_wolfe(problem, tol=1e-4)
    assert best.value < 0.95 * exact.objective


def test_values_fall_and_bounds_rise(task):
    history = frank_wolfe(make_problem(task, m=60), tol=1e-5, max_iter=60).history
    assert [r.iteration for r in history] == list(range(len(history)))
    for earlier, later in itertools.pairwise(history):
        assert later.value <= earlier.value
        assert later.bound >= earlier.bound
        assert later.n_svm > earlier.n_svm
        assert later.time >= earlier.time
        assert 0 < later.step <= 1
    assert all(r.gap == relative_gap(r.value, r.bound) for r in history)


def test_open_loop_steps_converge_too(task):
    problem = make_problem(task)
    exact = frank_wolfe(problem, tol=1e-4)
    fixed = frank_wolfe(problem, tol=1e-3, step="open-loop")
    assert fixed.status is SolverStatus.OPTIMAL
    assert fixed.history[1].step == pytest.approx(2 / 3)
    assert fixed.value == pytest.approx(exact.value, rel=2e-3)


def test_pairwise_steps_agree_with_the_semidefinite_program(task):
    problem = make_problem(task)
    value, _ = kernel_learning(problem.kernels, problem.dual)
    result = frank_wolfe(problem, tol=2e-6, max_iter=3000, step="pairwise")
    assert result.status is SolverStatus.OPTIMAL
    assert_certified(problem, result)
    assert result.value == pytest.approx(value, rel=1e-5)


def test_pairwise_steps_at_an_optimum_of_rank_two():
    """The optimality conditions where the top eigenvalue of D is double."""
    problem = make_problem("regression", m=120, n=6, C=10.0)
    result = frank_wolfe(problem, tol=2e-4, max_iter=600, step="pairwise")
    assert result.status is SolverStatus.OPTIMAL
    assert_certified(problem, result)
    assert np.trace(result.parameter) == pytest.approx(14.0, rel=1e-12)
    weights = np.linalg.eigvalsh(result.parameter)[::-1] / 14.0
    assert weights[-1] >= -1e-13
    assert weights[:2].sum() > 0.99
    best = joint(problem, tol=1e-8)
    assert result.value == pytest.approx(best.value, rel=2e-4)
    assert result.bound <= best.value * (1 + 1e-9)
    D = problem.kernels.gradient(result.w)
    top = np.linalg.eigvalsh(D)[::-1]
    assert top[1] == pytest.approx(top[0], rel=0.02)
    assert np.sum(D * result.parameter) == pytest.approx(14.0 * top[0], rel=0.01)


def test_pairwise_steps_move_weight_from_an_atom_of_p():
    """From a P of low rank the first steps are plain; then the longest step is an atom's weight."""
    problem = make_problem("regression", m=60, n=4, C=10.0, seed=2)
    result = frank_wolfe(problem, tol=1e-12, max_iter=80, step="pairwise")
    values = [record.value for record in result.history]
    assert (np.diff(values) <= 0).all()
    assert problem.cone.contains(result.parameter, rtol=1e-12)
    assert result.gap < 1e-2


def test_resumed_run_reaches_the_same_optimum(task):
    problem = make_problem(task)
    whole = frank_wolfe(problem, tol=1e-5, max_iter=3000)
    part = frank_wolfe(problem, tol=1e-5, max_iter=3)
    resumed = frank_wolfe(problem, tol=1e-5, max_iter=3000, parameter0=part.parameter, w0=part.w)
    assert resumed.history[0].gap <= 1.5 * part.gap + 1e-4
    assert resumed.value == pytest.approx(whole.value, rel=2e-5)


def test_wide_tube_keeps_the_identity():
    problem = SaddlePoint(
        TessellatedKernels().bind(np.random.default_rng(0).random((12, 2))),
        DualProblem.regression(np.linspace(-0.5, 0.5, 12), 1.0, 1.0),
    )
    result = frank_wolfe(problem)
    assert result.status is SolverStatus.OPTIMAL
    assert result.gap == 0.0
    assert (np.eye(6) == result.parameter).all()
    assert not result.w.any()


def test_tied_top_eigenvalue_keeps_the_trace():
    """Two features that play the same role: D has a double top eigenvalue by symmetry."""
    rng = np.random.default_rng(1)
    half = rng.random((10, 2))
    X = np.vstack([half, half[:, ::-1]])
    y = np.tile(np.sin(4 * half.sum(axis=1)), 2)
    problem = SaddlePoint(TessellatedKernels().bind(X), DualProblem.regression(y, 5.0, 0.05))
    result = frank_wolfe(problem, tol=1e-4)
    assert np.trace(result.parameter) == pytest.approx(6.0, rel=1e-10)
    assert_certified(problem, result)


def test_alpha_is_optimal_for_p(task):
    problem = make_problem(task)
    result = frank_wolfe(problem, tol=1e-5, max_iter=3000)
    K = problem.kernels.gram(result.parameter, centred=True)
    exact = solve_dual(K, problem.dual, tol=1e-11)
    assert result.value == pytest.approx(exact.objective, rel=1e-5)


def test_time_limit_keeps_the_best_pair():
    problem = make_problem("regression", m=400, n=4, C=100.0)
    result = frank_wolfe(problem, tol=1e-12, time_limit=0.3)
    assert result.status is SolverStatus.TIME_LIMIT
    assert_certified(problem, result)


def test_no_time_at_all_still_certifies():
    problem = make_problem("classification", m=50)
    result = frank_wolfe(problem, tol=1e-12, time_limit=0.0)
    assert result.status is SolverStatus.TIME_LIMIT
    assert_certified(problem, result)


def test_ctrl_c_keeps_the_best_pair():
    problem = make_problem("regression", m=100)

    def interrupt(record):
        if record.iteration == 3:
            signal.raise_signal(signal.SIGINT)

    result = frank_wolfe(problem, tol=1e-14, callback=interrupt)
    assert result.status is SolverStatus.INTERRUPTED
    assert len(result.history) == 4
    assert_certified(problem, result)


def test_a_factor_of_p_is_a_start_too():
    problem = make_problem("classification")
    P = frank_wolfe(problem, tol=1e-3).parameter
    values, vectors = np.linalg.eigh(P)
    U = vectors[:, -2:] * np.sqrt(values[-2:] * problem.cone.side / values[-2:].sum())
    by_factor = frank_wolfe(problem, tol=1e-4, parameter0=U)
    by_matrix = frank_wolfe(problem, tol=1e-4, parameter0=U @ U.T)
    np.testing.assert_array_equal(by_factor.parameter, by_matrix.parameter)
    with pytest.raises(ValueError, match="or a factor U"):
        frank_wolfe(problem, parameter0=2 * U)


def test_bad_start_and_step():
    problem = make_problem("classification")
    with pytest.raises(ValueError, match="parameter must be positive semidefinite"):
        frank_wolfe(problem, parameter0=2 * np.eye(problem.cone.side))
    with pytest.raises(ValueError, match="step='wild' is unknown"):
        frank_wolfe(problem, step="wild")
    with pytest.raises(ValueError, match="solver='magic' is unknown"):
        check_solver("magic")


def test_float32_storage_is_certified_in_float64(task):
    problem = make_problem(task, m=60)
    bound32 = TessellatedKernels(1, 0.3).bind(rows_of(m=60), dtype=np.float32)
    result = frank_wolfe(SaddlePoint(bound32, problem.dual), tol=1e-3)
    assert result.status is SolverStatus.OPTIMAL
    assert_certified(problem, result)  # by the float64 problem


def test_table():
    stream = io.StringIO()
    result = frank_wolfe(make_problem("classification"), tol=1e-3, callback=TablePrinter(stream))
    lines = stream.getvalue().splitlines()
    assert lines[0].split() == ["iter", "value", "bound", "gap", "step", "svm", "pairs", "time"]
    assert len(lines) == len(result.history) + 1
    assert f"{result.gap:.2e}" in lines[-1]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_add_scaled_by_blocks_of_rows(dtype):
    """More rows than a block of two million entries holds."""
    rng = np.random.default_rng(0)
    K, change = (rng.random((1500, 1500)).astype(dtype) for _ in range(2))
    expected = K + dtype(0.3) * change
    add_scaled(K, change, 0.3)
    assert K.dtype == dtype
    np.testing.assert_array_equal(K, expected)


@pytest.mark.parametrize("root", [1e-4, 0.03, 0.5, 0.99, 1.5])
@pytest.mark.parametrize("first", [1e-3, 0.2, 1.0])
def test_search_root(root, first):
    calls = []

    def slope(t):
        calls.append(t)
        return np.expm1(3 * (t - root))

    here = search_root(slope, slope(0.0), first)
    assert here == calls[-1]
    assert abs(slope(here)) <= 0.1 * abs(slope(0.0)) or (root > 1 and here == 1.0)
    assert len(calls) < 20
