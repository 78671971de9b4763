from __future__ import annotations

import signal
import sys

import numpy as np
import pytest
from reference.programs import kernel_learning
from solvers.conftest import make_problem
from solvers.test_frank_wolfe import assert_certified

from tessella.kernels import PolynomialKernels, TessellatedKernels
from tessella.problems import SaddlePoint
from tessella.solvers import SolverStatus, choose_solver, frank_wolfe, joint, working_set
from tessella.solvers._joint_problems import RestrictedProblem, WholeProblem
from tessella.svm import DualProblem, solve_dual

# The function of the same name hides the module from an import.
module = sys.modules["tessella.solvers.working_set"]


@pytest.fixture
def tiny_sets(monkeypatch):
    """Working sets of a few rows, so that small problems exercise every branch."""
    monkeypatch.setattr(module, "_FIRST_ROWS", 12)
    monkeypatch.setattr(module, "_ROWS_PER_PARAM", 1)


@pytest.mark.parametrize("degree", [0, 1])
def test_agrees_with_the_semidefinite_program(task, degree, tiny_sets):
    problem = make_problem(task, degree=degree)
    value, P = kernel_learning(problem.kernels, problem.dual)
    result = working_set(problem, tol=1e-7)
    assert result.status is SolverStatus.OPTIMAL
    assert_certified(problem, result)
    assert result.value == pytest.approx(value, rel=1e-5)
    K, expected = problem.kernels.gram(result.P), problem.kernels.gram(P)
    H = np.eye(len(K)) - 1.0 / len(K)
    difference = np.linalg.norm(H @ (K - expected) @ H)
    assert difference <= 1e-3 * np.linalg.norm(H @ expected @ H)


@pytest.mark.parametrize("C", [0.1, 10.0, 1e3])
@pytest.mark.parametrize("n", [2, 8])
def test_agrees_with_the_joint_method_in_few_svm_solves(task, n, C):
    problem = make_problem(task, m=450, n=n, C=C, seed=n)
    result = working_set(problem, tol=1e-6)
    assert result.status is SolverStatus.OPTIMAL
    assert result.n_svm <= 12
    assert_certified(problem, result)
    whole = joint(problem, tol=1e-6)
    assert result.value == pytest.approx(whole.value, rel=3e-6)


@pytest.mark.parametrize("monomials", ["x", "xz"])
@pytest.mark.parametrize("balance", ["none", "unit", "pointwise"])
def test_every_family(task, balance, monomials, tiny_sets):
    problem = make_problem(task, m=100, n=2)
    kernels = TessellatedKernels(1, 0.3, monomials, balance=balance)
    other = SaddlePoint(kernels.bind(problem.kernels._X), problem.dual)
    result = working_set(other, tol=1e-5)
    assert result.status is SolverStatus.OPTIMAL
    assert_certified(other, result)


def test_polynomial_kernels(task, tiny_sets):
    problem = make_problem(task, m=100)
    poly = SaddlePoint(PolynomialKernels(2).bind(problem.kernels._X), problem.dual)
    result = working_set(poly, tol=1e-6)
    assert result.status is SolverStatus.OPTIMAL
    assert_certified(poly, result)


def test_a_working_set_that_is_too_small_grows(task, tiny_sets):
    """Twelve rows cannot decide a matrix of side 22: the set must grow, and does."""
    problem = make_problem(task, m=200, n=10, C=1.0)
    result = working_set(problem, tol=1e-6)
    assert result.status is SolverStatus.OPTIMAL
    assert_certified(problem, result)


def test_float32_storage_is_certified_in_float64(task):
    problem = make_problem(task, m=350)
    stored = TessellatedKernels(1, 0.3).bind(problem.kernels._X, dtype=np.float32)
    result = working_set(SaddlePoint(stored, problem.dual), tol=1e-4)
    assert result.status is SolverStatus.OPTIMAL
    assert_certified(problem, result)


def test_restriction_to_everything_is_the_whole_problem(task):
    problem = make_problem(task, m=30)
    rng = np.random.default_rng(0)
    w = problem.dual.feasible(rng.standard_normal(30))
    M = np.eye(problem.parameters.side)
    whole = WholeProblem(problem).linearise(w, M)
    rows = np.arange(30)
    part = RestrictedProblem(problem, rows, w).linearise(w, M)
    np.testing.assert_allclose(part.half_gradient, whole.half_gradient, atol=1e-12)
    centred = part.scores - part.scores.mean()
    np.testing.assert_allclose(centred, whole.scores, atol=1e-10)


def test_restriction_sees_the_held_samples(task):
    """Scores, gradient and sensitivities of some rows equal those of the whole at the same w."""
    problem = make_problem(task, m=40)
    rng = np.random.default_rng(1)
    w = problem.dual.feasible(rng.standard_normal(40))
    root = rng.standard_normal((6, 6))
    M = root @ root.T
    rows = np.array([1, 5, 8, 20, 33])
    part = RestrictedProblem(problem, rows, w)
    here = part.linearise(w[rows], root)
    moments = problem.kernels.moments(w)
    np.testing.assert_allclose(here.scores, moments.scores(M)[rows], rtol=1e-10)
    np.testing.assert_allclose(here.half_gradient, 0.5 * moments.gradient, atol=1e-10)
    N = rng.standard_normal((6, 6))
    N = N + N.T
    expected = moments.sensitivities(np.eye(6), rows)
    np.testing.assert_allclose(here.sensitivities.apply(N), expected.apply(N), rtol=1e-9, atol=1e-9)
    assert part.sum_w == pytest.approx(w[rows].sum(), abs=1e-10)


def test_restriction_to_a_span_moves_within_it(task):
    """Everything the interior point method sees of M is what it would see of P = V M Vᵀ."""
    problem = make_problem(task, m=40)
    rng = np.random.default_rng(1)
    w = problem.dual.feasible(rng.standard_normal(40))
    V = np.linalg.qr(rng.standard_normal((6, 3)))[0]
    root = rng.standard_normal((3, 3))
    rows = np.array([1, 5, 8, 20, 33])
    here = RestrictedProblem(problem, rows, w, V).linearise(w[rows], root)
    there = RestrictedProblem(problem, rows, w).linearise(w[rows], V @ root)
    np.testing.assert_allclose(here.K, there.K, atol=1e-11)
    np.testing.assert_allclose(here.scores, there.scores, atol=1e-10)
    np.testing.assert_allclose(here.half_gradient, V.T @ there.half_gradient @ V, atol=1e-10)
    N = rng.standard_normal((3, 3))
    N = N + N.T
    np.testing.assert_allclose(
        here.sensitivities.apply(N), there.sensitivities.apply(V @ N @ V.T), atol=1e-10
    )


def test_many_parameters_move_in_a_span(task, tiny_sets, monkeypatch):
    """With a span smaller than n_P the answer is the same certified optimum."""
    problem = make_problem(task, m=150, n=10, C=1.0)
    whole = working_set(problem, tol=1e-6)
    monkeypatch.setattr(module, "_WHOLE_SPAN", 4)
    monkeypatch.setattr(module, "_SPAN", 4)
    narrow = working_set(problem, tol=1e-6)
    assert narrow.status is SolverStatus.OPTIMAL
    assert_certified(problem, narrow)
    assert narrow.value == pytest.approx(whole.value, rel=3e-6)


def test_newton_steps_of_the_subsample_are_counted(task, tiny_sets):
    first = working_set(make_problem(task, m=100), tol=1e-6).history[0]
    assert first.n_svm == 1
    assert first.n_newton > 0


def test_wide_tube_keeps_the_identity():
    problem = SaddlePoint(
        TessellatedKernels().bind(np.random.default_rng(0).random((12, 2))),
        DualProblem.regression(np.linspace(-0.5, 0.5, 12), 1.0, 1.0),
    )
    result = working_set(problem)
    assert result.status is SolverStatus.OPTIMAL
    assert (np.eye(6) == result.P).all()
    assert not result.w.any()


def test_starts_from_a_given_point(task):
    problem = make_problem(task, m=400)
    whole = working_set(problem, tol=1e-5)
    again = working_set(problem, tol=1e-5, P0=whole.P, w0=whole.w)
    assert again.n_svm == 1
    assert again.value == pytest.approx(whole.value, rel=2e-5)


def test_limits_keep_the_best_pair(task):
    problem = make_problem(task, m=400)
    short = working_set(problem, tol=1e-9, max_iter=1)
    assert short.status is SolverStatus.MAX_ITER
    assert_certified(problem, short)
    late = working_set(problem, tol=1e-12, time_limit=1e-9)
    assert late.status is SolverStatus.TIME_LIMIT
    assert_certified(problem, late)


def test_ctrl_c_keeps_the_best_pair():
    problem = make_problem("regression", m=400)

    def interrupt(record):
        if record.iteration == 1:
            signal.raise_signal(signal.SIGINT)

    result = working_set(problem, tol=1e-12, callback=interrupt)
    assert result.status is SolverStatus.INTERRUPTED
    assert_certified(problem, result)


def test_unreachable_tolerance_is_reported(task, tiny_sets):
    result = working_set(make_problem(task, m=60), tol=1e-300)
    assert result.status in (SolverStatus.STALLED, SolverStatus.MAX_ITER)
    assert result.gap < 1e-7


def test_the_answer_is_as_sparse_as_an_svm(task):
    problem = make_problem(task, m=400)
    result = working_set(problem, tol=1e-4)
    K = problem.kernels.gram(result.P, centred=True)
    exact = solve_dual(K, problem.dual, tol=1e-10)
    assert np.count_nonzero(result.w) <= np.count_nonzero(exact.w) + 4


def test_history_counts(task):
    result = working_set(make_problem(task, m=400), tol=1e-6)
    last = result.history[-1]
    # One more SVM may follow the last record, for a dual vector with exact zeros.
    assert result.n_svm - last.n_svm in (0, 1)
    assert last.n_newton > 0
    values = [record.value for record in result.history]
    assert values == sorted(values, reverse=True)


def test_auto_chooses_by_size():
    small = make_problem("classification")
    assert choose_solver("auto", small) is joint
    stored = SaddlePoint(TessellatedKernels().bind(small.kernels._X, dtype=np.float32), small.dual)
    assert choose_solver("auto", stored) is working_set
    assert choose_solver("auto", make_problem("classification", m=600)) is working_set
    wide = make_problem("classification", m=20, n=15, degree=2)
    assert choose_solver("auto", wide) is working_set
    assert choose_solver("frank-wolfe", small) is frank_wolfe


@pytest.mark.parametrize("kernels", [TessellatedKernels(1, 0.3), PolynomialKernels(2)])
def test_rows_on_demand_give_the_answer_of_the_whole_matrix(task, kernels, monkeypatch):
    problem = make_problem(task, m=300)
    problem = SaddlePoint(kernels.bind(problem.kernels._X), problem.dual)
    whole = working_set(problem, tol=1e-6)
    monkeypatch.setattr(module, "_DENSE_ROWS", 10)
    by_rows = working_set(problem, tol=1e-6)
    assert by_rows.status is SolverStatus.OPTIMAL
    assert_certified(problem, by_rows)
    assert by_rows.value == pytest.approx(whole.value, rel=2e-6)


@pytest.mark.parametrize("whole_span", [64, 4])
def test_ctrl_c_during_the_subsample_is_not_lost(monkeypatch, whole_span):
    """There is no answer for the whole yet, so the interrupt is passed on."""

    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "_WHOLE_SPAN", whole_span)
    monkeypatch.setattr(module.InteriorPoint, "advance", interrupted)
    with pytest.raises(KeyboardInterrupt):
        working_set(make_problem("classification", m=500))


def test_the_subsample_ends_with_the_time(monkeypatch):
    monkeypatch.setattr(module, "_MAX_NEWTON", 10**9)
    monkeypatch.setattr(module, "_FIRST_TOL", 0.0)  # would go on until rounding stops it
    result = working_set(make_problem("classification", m=500), time_limit=1e-9)
    assert result.status is SolverStatus.TIME_LIMIT
    assert sum(record.n_newton for record in result.history) <= 1


def test_an_optimal_pair_stays_optimal_when_time_ends_before_its_zeros(monkeypatch):
    def out_of_time(self):
        raise module.StopRun(SolverStatus.TIME_LIMIT)

    monkeypatch.setattr(module._WorkingSet, "_sparsify", out_of_time)
    problem = make_problem("classification", m=300)
    result = working_set(problem, tol=1e-4)
    assert result.status is SolverStatus.OPTIMAL
    assert_certified(problem, result)


def test_trimming_keeps_the_value(task):
    problem = make_problem(task, m=60)
    rng = np.random.default_rng(3)
    w = problem.dual.feasible(rng.standard_normal(60))
    D = problem.kernels.gradient(w)
    P = np.diag([3.0, 2.9, 0.1 - 1.1e-6, 1e-6, 1e-7, 0.0])
    before = w @ problem.kernels.gram(P) @ w
    for cost in (0.0, 1e-3 * before, before):
        trimmed = module.trimmed(P, D, cost)
        assert problem.parameters.contains(trimmed)
        assert abs(w @ problem.kernels.gram(trimmed) @ w - before) <= 4 * cost + 1e-9 * before
    assert np.linalg.matrix_rank(module.trimmed(P, D, before)) == 1


def test_sparse_rounds_keep_the_support_vectors_of_earlier_ones():
    """Nearly separable data: without them each round would undo the one before."""
    problem = make_problem("classification", m=2000)
    run = module.Run(
        "test", problem, tol=1e-3, max_iter=9, time_limit=None, n_jobs=1, callback=None
    )
    state = module._WorkingSet(run, problem.parameters.centre, None, None)
    dual, rng = problem.dual, np.random.default_rng(0)

    def answer(support):
        w = np.zeros(dual.size)
        w[support] = np.where(dual.linear[support] > 0, dual.upper[support], dual.lower[support])
        return module.SvmAnswer(w, 9.0 + rng.random(dual.size), 0.0)

    first, second = np.arange(0, 300), np.arange(200, 450)
    assert set(first) <= set(state._choose_rows(answer(first)))
    rows = set(state._choose_rows(answer(second)))
    assert set(first) | set(second) <= rows
    many = np.arange(0, 1200)  # not sparse any more: the margin decides
    assert len(state._choose_rows(answer(many))) == state._least_rows


def test_who_moved_although_held_is_not_held_again():
    problem = make_problem("classification", m=2000)
    run = module.Run(
        "test", problem, tol=1e-12, max_iter=99, time_limit=None, n_jobs=1, callback=None
    )
    state = module._WorkingSet(run, problem.parameters.centre, None, None)
    svm = state._solve_svm(1.0)
    state._joint_step(svm)
    outlier = int(np.flatnonzero(state._is_held & (svm.w == 0.0))[0])
    state._held[outlier] = problem.dual.upper[outlier] + problem.dual.lower[outlier]  # as if
    again = state._solve_svm(1.0)
    far = module.SvmAnswer(again.w, np.where(np.arange(2000) == outlier, 1e9, again.residual), 0.0)
    assert outlier in state._choose_rows(far)
