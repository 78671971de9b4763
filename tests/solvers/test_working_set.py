from __future__ import annotations

import signal
from dataclasses import replace

import numpy as np
import pytest
from reference.programs import kernel_learning
from solvers.conftest import dual_of, make_problem, rows_of
from solvers.test_frank_wolfe import assert_certified

from tessella.kernels import PolynomialKernels, TessellatedKernels
from tessella.problems import SaddlePoint
from tessella.solvers import (
    Monitor,
    Run,
    SolverStatus,
    StopRun,
    WorkingSetSettings,
    choose_solver,
    frank_wolfe,
    joint,
    working_set,
)
from tessella.solvers._compiled_steps import CompiledInteriorPoint
from tessella.solvers.central_path import RestrictedProblem, WholeProblem
from tessella.svm import DualProblem, InteriorPoint, solve_dual

# Working sets of a few rows, so that small problems exercise every branch.
# Rounds from a subsample, without the machines that might find the optimum before them.
ROUNDS = WorkingSetSettings(few_params=0, many_params=10**9)
TINY = replace(ROUNDS, first_rows=12, rows_per_param=1)


@pytest.mark.parametrize("degree", [0, 1])
def test_agrees_with_the_semidefinite_program(task, degree):
    problem = make_problem(task, degree=degree)
    value, P = kernel_learning(problem.kernels, problem.dual)
    result = working_set(problem, tol=1e-7, settings=TINY)
    assert result.status is SolverStatus.OPTIMAL
    assert_certified(problem, result)
    assert result.value == pytest.approx(value, rel=1e-5)
    K, expected = problem.kernels.gram(result.parameter), problem.kernels.gram(P)
    H = np.eye(len(K)) - 1.0 / len(K)
    difference = np.linalg.norm(H @ (K - expected) @ H)
    assert difference <= 1e-3 * np.linalg.norm(H @ expected @ H)


@pytest.mark.parametrize("C", [0.1, 10.0, 1e3])
@pytest.mark.parametrize("n", [2, 8])
def test_agrees_with_the_joint_method_in_few_svm_solves(task, n, C):
    problem = make_problem(task, m=450, n=n, C=C, seed=n)
    result = working_set(problem, tol=1e-6, settings=ROUNDS)
    assert result.status is SolverStatus.OPTIMAL
    assert result.n_svm <= 12
    assert_certified(problem, result)
    whole = joint(problem, tol=1e-6)
    assert result.value == pytest.approx(whole.value, rel=3e-6)


@pytest.mark.parametrize("monomials", ["x", "xz"])
@pytest.mark.parametrize("balance", ["none", "unit", "pointwise"])
def test_every_family(task, balance, monomials):
    problem = make_problem(task, m=100, n=2)
    kernels = TessellatedKernels(1, 0.3, monomials, balance=balance)
    other = SaddlePoint(kernels.bind(rows_of(m=100)), problem.dual)
    result = working_set(other, tol=1e-5, settings=TINY)
    assert result.status is SolverStatus.OPTIMAL
    assert_certified(other, result)


def test_polynomial_kernels(task):
    problem = make_problem(task, m=100)
    poly = SaddlePoint(PolynomialKernels(2).bind(rows_of(m=100)), problem.dual)
    result = working_set(poly, tol=1e-6, settings=TINY)
    assert result.status is SolverStatus.OPTIMAL
    assert_certified(poly, result)


def test_a_working_set_that_is_too_small_grows(task):
    """Twelve rows cannot decide a matrix of side 22: the set must grow, and does."""
    problem = make_problem(task, m=200, n=10, C=1.0)
    result = working_set(problem, tol=1e-6, settings=TINY)
    assert result.status is SolverStatus.OPTIMAL
    assert_certified(problem, result)


def test_float32_storage_is_certified_in_float64(task):
    problem = make_problem(task, m=350)
    stored = TessellatedKernels(1, 0.3).bind(rows_of(m=350), dtype=np.float32)
    result = working_set(SaddlePoint(stored, problem.dual), tol=1e-4)
    assert result.status is SolverStatus.OPTIMAL
    assert_certified(problem, result)


def test_restriction_to_everything_is_the_whole_problem(task):
    problem = make_problem(task, m=30)
    rng = np.random.default_rng(0)
    w = problem.dual.feasible(rng.standard_normal(30))
    M = np.eye(problem.cone.side)
    whole = WholeProblem(problem).linearise(w, M, M)
    rows = np.arange(30)
    part = RestrictedProblem(problem, rows, w).linearise(w, M, M)
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
    here = part.linearise(w[rows], M, root)
    moments = problem.kernels.moments(w)
    np.testing.assert_allclose(here.scores, moments.scores(M)[rows], rtol=1e-10)
    np.testing.assert_allclose(here.half_gradient, 0.5 * moments.gradient, atol=1e-10)
    N = rng.standard_normal((6, 6))
    N = N + N.T
    expected = moments.sensitivities(None, rows)
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
    M, whole_root = root @ root.T, V @ root
    here = RestrictedProblem(problem, rows, w, V).linearise(w[rows], M, root)
    there = RestrictedProblem(problem, rows, w).linearise(
        w[rows], whole_root @ whole_root.T, whole_root
    )
    np.testing.assert_allclose(here.K, there.K, atol=1e-11)
    np.testing.assert_allclose(here.scores, there.scores, atol=1e-10)
    np.testing.assert_allclose(here.half_gradient, V.T @ there.half_gradient @ V, atol=1e-10)
    N = rng.standard_normal((3, 3))
    N = N + N.T
    np.testing.assert_allclose(
        here.sensitivities.apply(N), there.sensitivities.apply(V @ N @ V.T), atol=1e-10
    )


def test_many_parameters_move_in_a_span(task):
    """With a span smaller than n_P the answer is the same certified optimum."""
    problem = make_problem(task, m=100, n=32, C=1.0)
    assert not problem.cone.moves_whole
    narrow = working_set(problem, tol=1e-6, settings=replace(TINY, directions=4))
    assert narrow.status is SolverStatus.OPTIMAL
    assert_certified(problem, narrow)
    assert narrow.value == pytest.approx(joint(problem, tol=1e-7).value, rel=3e-6)


@pytest.mark.parametrize("n", [2, 32])
def test_newton_steps_of_the_subsample_are_counted(task, n):
    """Also where the parameter is so large that the subsample has rounds of its own."""
    problem = make_problem(task, m=200, n=n)
    first = working_set(problem, tol=1e-6, settings=TINY).history[0]
    assert first.n_svm == 1
    assert first.n_newton > 0


def test_wide_tube_keeps_the_identity():
    problem = SaddlePoint(
        TessellatedKernels().bind(np.random.default_rng(0).random((12, 2))),
        DualProblem.regression(np.linspace(-0.5, 0.5, 12), 1.0, 1.0),
    )
    result = working_set(problem)
    assert result.status is SolverStatus.OPTIMAL
    assert (np.eye(6) == result.parameter).all()
    assert not result.w.any()


def test_starts_from_a_given_point(task):
    problem = make_problem(task, m=400)
    whole = working_set(problem, tol=1e-5)
    again = working_set(problem, tol=1e-5, parameter0=whole.parameter, w0=whole.w)
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


def test_unreachable_tolerance_is_reported(task):
    result = working_set(make_problem(task, m=60), tol=1e-300, settings=TINY)
    assert result.status in (SolverStatus.STALLED, SolverStatus.MAX_ITER)
    assert result.gap < 1e-7


def test_the_answer_is_as_sparse_as_an_svm(task):
    problem = make_problem(task, m=400)
    result = working_set(problem, tol=1e-4)
    K = problem.kernels.gram(result.parameter, centred=True)
    exact = solve_dual(K, problem.dual, tol=1e-10)
    assert np.count_nonzero(result.w) <= np.count_nonzero(exact.w) + 4


def test_history_counts(task):
    result = working_set(make_problem(task, m=400), tol=1e-6, settings=ROUNDS)
    last = result.history[-1]
    # One more SVM may follow the last record, for a dual vector with exact zeros.
    assert result.n_svm - last.n_svm in (0, 1)
    assert last.n_newton > 0
    values = [record.value for record in result.history]
    assert values == sorted(values, reverse=True)


def test_auto_chooses_by_size():
    small = make_problem("classification")
    assert choose_solver("auto", small) is joint
    stored = SaddlePoint(TessellatedKernels().bind(rows_of(), dtype=np.float32), small.dual)
    assert choose_solver("auto", stored) is working_set
    assert choose_solver("auto", make_problem("classification", m=600)) is working_set
    wide = make_problem("classification", m=20, n=15, degree=2)
    assert choose_solver("auto", wide) is working_set
    assert choose_solver("frank-wolfe", small) is frank_wolfe


@pytest.mark.parametrize("n", [2, 32])
def test_ctrl_c_during_the_subsample_is_not_lost(monkeypatch, n):
    """There is no answer for the whole yet, so the interrupt is passed on."""

    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    for method in (InteriorPoint, CompiledInteriorPoint):
        monkeypatch.setattr(method, "advance", interrupted)
    with pytest.raises(KeyboardInterrupt):
        working_set(make_problem("classification", m=500, n=n), settings=TINY)


def test_the_subsample_ends_with_the_time():
    # Would go on until rounding stops it.
    endless = replace(ROUNDS, max_newton=10**9, first_tol=0.0)
    problem = make_problem("classification", m=500)
    result = working_set(problem, time_limit=1e-9, settings=endless)
    assert result.status is SolverStatus.TIME_LIMIT
    assert sum(record.n_newton for record in result.history) <= 1


def test_rows_on_demand_give_the_answer_of_the_whole_matrix():
    """Beyond 2,000 rows a tessellated set gives single rows; no others need to be computed."""
    X = rows_of(2100)
    dual = dual_of("classification", X)
    by_rows = SaddlePoint(TessellatedKernels(1, 0.3).bind(X), dual)
    whole = SaddlePoint(WithoutProductForm(TessellatedKernels(1, 0.3).bind(X)), dual)
    found, expected = working_set(by_rows, tol=1e-5), working_set(whole, tol=1e-5)
    assert found.status is SolverStatus.OPTIMAL
    assert_certified(by_rows, found)
    assert found.value == pytest.approx(expected.value, rel=2e-5)


class WithoutProductForm:
    """A bound set that has nothing but whole kernel matrices to offer."""

    def __init__(self, bound):
        self._bound = bound
        self.machines = (self,)

    def __getattr__(self, name):
        return getattr(self._bound, name)

    def svm_kernel(self, factors, workspace):
        U, _ = factors
        return self._bound.gram_factor(U, centred=True, out=workspace.matrix(self._bound.n_samples))


def test_time_that_ends_before_the_zeros_leaves_the_pair_optimal(monkeypatch):
    """The exact SVM at the end is cut short: the certified pair was optimal without it."""
    problem = make_problem("classification", m=200)
    solve, optimal = Run.svm_at, []

    def svm_at(self, *arguments):
        if self.gap <= self.tol:
            optimal.append(self.gap)
            raise StopRun(SolverStatus.TIME_LIMIT)
        return solve(self, *arguments)

    monkeypatch.setattr(Run, "svm_at", svm_at)
    monkeypatch.setattr(Run, "replace", lambda self, P, w: False)
    result = working_set(problem, tol=1e-3, settings=ROUNDS)
    assert optimal
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
        trimmed = problem.cone.trimmed(P, D, cost)
        assert problem.cone.contains(trimmed)
        assert abs(w @ problem.kernels.gram(trimmed) @ w - before) <= 4 * cost + 1e-9 * before
    assert np.linalg.matrix_rank(problem.cone.trimmed(P, D, before)) == 1


class RowsOfRounds(Monitor):
    """The number of rows of each joint step."""

    def __init__(self):
        self.sizes = []

    def phase(self, text):
        if text.startswith("joint step on "):
            self.sizes.append(int(text.split()[3]))


def test_sparse_rounds_move_all_support_vectors():
    """Nearly separable data: without those of earlier rounds each would undo the one before."""
    X = rows_of(1500)
    noise = 0.05 * np.random.default_rng(1).standard_normal(1500)
    y = np.where(X.sum(axis=1) + noise > 1.0, 1.0, -1.0)
    problem = SaddlePoint(TessellatedKernels(1, 0.3).bind(X), DualProblem.classification(y, 1.0))
    few = replace(TINY, usual_rows=400)
    sizes = {}
    for sparse in (0.25, 0.0):  # with 0 any number of support vectors is too many
        watched = RowsOfRounds()
        result = working_set(
            problem, tol=1e-6, settings=replace(few, sparse=sparse), callback=watched
        )
        assert result.status is SolverStatus.OPTIMAL
        sizes[sparse] = watched.sizes
    support = np.count_nonzero(result.w)
    assert problem.dual.free(result.w).sum() < 0.2 * support
    assert min(sizes[0.25]) >= support
    assert max(sizes[0.0]) < 0.3 * support


def test_who_moved_although_held_is_not_held_again():
    """Samples that an SVM moves by a tenth of their box join the set, beyond its usual size."""
    problem = make_problem("classification", m=600, n=4, C=50.0)
    D = problem.kernels.gradient(problem.dual.feasible(problem.dual.linear))
    worst = problem.cone.compose(np.eye(10)[0], problem.cone.spectrum(D).frame)
    svms, sizes = {}, {}
    for moved in (0.1, np.inf):  # with inf nobody ever counts as moved
        watched = RowsOfRounds()
        small = replace(TINY, usual_rows=24, sparse=0.0, moved=moved)
        result = working_set(problem, tol=1e-6, settings=small, callback=watched, parameter0=worst)
        assert_certified(problem, result)
        svms[moved], sizes[moved] = result.n_svm, watched.sizes
    assert sizes[0.1][0] == sizes[np.inf][0] == 12
    assert max(sizes[np.inf]) <= 24
    assert min(sizes[0.1][1:]) > 100
    assert svms[0.1] < svms[np.inf]
