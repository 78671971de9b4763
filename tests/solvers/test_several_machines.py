"""Machines that share P: their sum is one problem with one certificate."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from reference.programs import kernel_learning

from tessella.kernels import PolynomialKernels, StackedKernels, TessellatedKernels
from tessella.problems import SaddlePoint
from tessella.solvers import SOLVERS, SolverStatus, working_set
from tessella.solvers.central_path import RestrictedProblem, inwards, state_at, state_near
from tessella.svm import (
    DualProblem,
    InteriorPoint,
    _interior_point,
    _newton_factors,
    best_intercept,
    solve_dual,
)

LARGE = 240


def three_classes(m, *, kernels=None, C=4.0, seed=0, n=2, shared=False):
    """One machine per pair of classes, as in one-versus-one classification."""
    rng = np.random.default_rng(seed)
    X = rng.random((m, n))
    y = np.digitize(np.sin(4 * X[:, 0]) + X[:, 1] + 0.2 * rng.standard_normal(m), [0.8, 1.4])
    kernels = kernels or TessellatedKernels(1, 0.3)
    rows, duals = [], []
    for a, b in combinations(range(3), 2):
        rows.append(np.flatnonzero((y == a) | (y == b)))
        duals.append(DualProblem.classification(np.where(y[rows[-1]] == a, 1.0, -1.0), C))
    if shared:
        return SaddlePoint(kernels.bind_machines(X, rows), DualProblem.stacked(duals))
    stack = StackedKernels([kernels.bind(X[own]) for own in rows])
    return SaddlePoint(stack, DualProblem.stacked(duals))


@pytest.fixture(scope="module")
def small():
    return three_classes(16)


@pytest.fixture(scope="module")
def small_optimum(small):
    return kernel_learning(small.kernels, small.dual)[0]


@pytest.mark.parametrize("name", sorted(set(SOLVERS) - {"newton", "simple-mkl"}))
def test_every_solver_finds_the_optimum_of_the_generic_program(name, small, small_optimum):
    answer = SOLVERS[name](small, tol=1e-5, max_iter=4000)
    assert answer.gap <= 1e-5 or name == "frank-wolfe"  # sublinear: it may run out of iterations
    assert answer.bound <= small_optimum * (1 + 1e-6)
    assert small_optimum * (1 - 1e-6) <= answer.value <= small_optimum * (1 + 1e-3)
    assert answer.intercept.shape == (3,)


@pytest.mark.parametrize("kernels", [TessellatedKernels(1, 0.3), PolynomialKernels(2)])
def test_value_and_bound_are_those_of_the_machines(kernels):
    problem = three_classes(40, kernels=kernels)
    rng = np.random.default_rng(1)
    w = problem.dual.feasible(rng.standard_normal(problem.dual.size))
    root = rng.standard_normal((problem.cone.side, 2))
    P = problem.cone.project(root @ root.T)
    got = problem.certificate(P, w)
    upper, D = 0.0, 0.0
    for k, rows in enumerate(problem.dual.machines):
        own, machine = problem.kernels.machines[k], problem.dual.each[k]
        assert abs(w[rows].sum()) < 1e-12
        scores = own.gram(P) @ w[rows]
        intercept, loss = best_intercept(machine, scores)
        assert got.intercept[k] == pytest.approx(intercept, rel=1e-9, abs=1e-9)
        upper += 0.5 * w[rows] @ scores + loss
        D = D + own.gradient(w[rows])
    assert got.upper == pytest.approx(upper, rel=1e-10)
    lower = problem.dual.kappa(w) - 0.5 * len(P) * np.linalg.eigvalsh(D)[-1]
    assert got.lower == pytest.approx(lower, rel=1e-10)


def test_the_kernel_matrix_is_block_diagonal():
    kernels = three_classes(20).kernels
    P = kernels.cone.identity
    K = kernels.gram(P, out=np.full((kernels.n_samples,) * 2, np.nan))
    start = 0
    for part in kernels.machines:
        rows = slice(start, start + part.n_samples)
        np.testing.assert_array_equal(K[rows, rows], part.gram(P))
        assert not K[rows, rows.stop :].any()
        start = rows.stop


@pytest.mark.parametrize("kernels", [TessellatedKernels(1, 0.3), PolynomialKernels(2)])
@pytest.mark.parametrize("r", [None, 3])
def test_sensitivities_of_a_stack_by_finite_differences(kernels, r):
    """Scores of the moving samples and their inner products, machine by machine."""
    problem = three_classes(30, kernels=kernels)
    rng = np.random.default_rng(2)
    side = problem.cone.side
    V = None if r is None else np.linalg.qr(rng.standard_normal((side, r)))[0]
    rows = np.sort(rng.permutation(problem.dual.size)[:25])
    w = problem.dual.feasible(rng.standard_normal(problem.dual.size))
    restricted = RestrictedProblem(problem, rows, w, V)
    span = np.eye(side) if V is None else V
    L = np.linalg.cholesky(np.eye(span.shape[1]) * side / span.shape[1])
    here = restricted.linearise(w[rows], L @ L.T, L)
    whole = problem.kernels.moments(w)
    P = span @ L @ L.T @ span.T
    np.testing.assert_allclose(here.scores, whole.scores(P)[rows], rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(
        here.half_gradient, 0.5 * span.T @ whole.gradient @ span, rtol=1e-9, atol=1e-11
    )
    gammas = []
    for i in range(span.shape[1]):
        for j in range(span.shape[1]):
            unit = np.zeros((span.shape[1],) * 2)
            unit[i, j] += 0.5
            unit[j, i] += 0.5
            gammas.append(whole.scores(span @ unit @ span.T)[rows])
    gamma = np.array(gammas)
    np.testing.assert_allclose(here.sensitivities.gram(), gamma.T @ gamma, rtol=1e-9, atol=1e-11)
    M = rng.standard_normal((span.shape[1],) * 2)
    M = M + M.T
    np.testing.assert_allclose(
        here.sensitivities.apply(M), gamma.T @ M.ravel(), rtol=1e-9, atol=1e-11
    )


@pytest.mark.parametrize("shared", [False, True])
def test_larger_stacks_reach_small_gaps(shared):
    problem = three_classes(LARGE, shared=shared)
    answer = working_set(problem, tol=1e-6)
    assert answer.status is SolverStatus.OPTIMAL
    assert problem.certificate(answer.parameter, answer.w).gap <= 1e-6
    assert answer.n_svm <= 16  # most of them passes of the descent
    assert answer.history[-1].n_newton <= 20


@pytest.mark.parametrize("n", [2, 40])
def test_machines_that_share_rows_are_those_of_the_stack(n):
    """With few features all directions of P move together, with many features some of them."""
    stacked, shared = (three_classes(150, n=n, shared=own) for own in (False, True))
    answers = [working_set(problem, tol=1e-5) for problem in (stacked, shared)]
    assert answers[1].status is SolverStatus.OPTIMAL
    assert answers[0].value == pytest.approx(answers[1].value, rel=2e-5)
    found = answers[1].parameter, answers[1].w
    got, expected = shared.certificate(*found), stacked.certificate(*found)
    assert got.upper == pytest.approx(expected.upper, rel=1e-10)
    assert got.lower == pytest.approx(expected.lower, rel=1e-10)
    np.testing.assert_allclose(got.intercept, expected.intercept, rtol=1e-8, atol=1e-9)


def test_steps_satisfy_the_equations_of_all_machines():
    """A step of length t leaves 1 - t of the residuals of the linear equations."""
    problem = three_classes(LARGE, shared=True)
    rng = np.random.default_rng(3)
    rows = np.sort(rng.permutation(problem.dual.size)[:120])
    w = problem.dual.feasible(rng.standard_normal(problem.dual.size))
    restricted = RestrictedProblem(problem, rows, w)
    cone = restricted.cone
    start = state_near(restricted, cone.interior(cone.centre), inwards(restricted.halves, w[rows]))
    method = InteriorPoint(restricted, *start)
    for _ in range(4):
        sums, trace = method.sum_residual, method.trace_residual
        length = method.advance()
        assert length > 0.1
        scale = np.abs(method.w).sum()
        np.testing.assert_allclose(method.sum_residual, (1 - length) * sums, atol=1e-10 * scale)
        assert method.trace_residual == pytest.approx((1 - length) * trace, abs=1e-10)


def test_short_steps_reduce_all_residuals_in_proportion():
    """Also those of the scores, in which the multipliers of the machines appear."""
    problem = three_classes(60, shared=True)
    w = problem.dual.feasible(np.random.default_rng(3).standard_normal(problem.dual.size))
    restricted = RestrictedProblem(problem, np.arange(problem.dual.size), w)
    cone = restricted.cone
    start = state_near(restricted, cone.interior(cone.centre), inwards(restricted.halves, w))
    method = InteriorPoint(restricted, *start, to_boundary=1e-5)
    alpha, point = method.alpha_residual, method.cone_residual
    length = method.advance()
    for before, after in ((alpha, method.alpha_residual), (point, method.cone_residual)):
        scale = max(np.abs(before).max(), 1.0)
        np.testing.assert_allclose((after - before) / length, -before, atol=1e-3 * scale)


@pytest.mark.parametrize("products", [60, 2])
def test_steps_by_conjugate_gradients_are_those_of_the_factorisation(products, monkeypatch):
    """Also if these converge too slowly, and the matrix is factorised after all."""
    problem = three_classes(90, n=40, shared=True)
    monkeypatch.setattr(_newton_factors, "_ACCURACY", 1e-12)
    monkeypatch.setattr(_newton_factors, "_MOST_PRODUCTS", products)
    rows = np.arange(0, problem.dual.size, 2)
    w = problem.dual.feasible(np.random.default_rng(3).standard_normal(problem.dual.size))
    restricted = RestrictedProblem(problem, rows, w)
    cone = restricted.cone
    M = cone.interior(cone.centre)
    start = state_near(restricted, M, inwards(restricted.halves, w[rows]))
    states = []
    for size in (1, len(rows) + 1):
        monkeypatch.setattr(_interior_point, "_MANY_SAMPLES", size)
        method = InteriorPoint(restricted, *start)
        assert method.advance() > 0.1
        states.append(method.state)
    np.testing.assert_allclose(states[0].alpha, states[1].alpha, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(states[0].M, states[1].M, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(states[0].nu, states[1].nu, rtol=1e-5)
    assert states[0].xi == pytest.approx(states[1].xi, rel=1e-6)


def test_a_fit_by_conjugate_gradients_reaches_a_small_gap(monkeypatch):
    problem = three_classes(150, n=40, shared=True)
    optimum = working_set(problem, tol=1e-7)
    monkeypatch.setattr(_interior_point, "_MANY_SAMPLES", 1)
    answer = working_set(problem, tol=1e-6)
    assert answer.status is SolverStatus.OPTIMAL
    assert answer.value == pytest.approx(optimum.value, rel=1.1e-6)


def test_a_joint_step_starts_at_the_answer_of_the_machines():
    """At the optimum, residuals and the complementarity are as small as the gap says."""
    problem = three_classes(LARGE, shared=True)
    P = working_set(problem, tol=1e-7).parameter
    K = problem.kernels.gram(P)
    parts = zip(problem.dual.machines, problem.dual.each, strict=True)
    answers = [solve_dual(K[own, own], machine, tol=1e-10) for own, machine in parts]
    w = np.concatenate([answer.w for answer in answers])
    residual = np.concatenate([answer.gradient - answer.intercept for answer in answers])
    value = sum(answer.objective for answer in answers)
    restricted = RestrictedProblem(problem, np.arange(problem.dual.size), w)
    for gap in (1e-2, 1e-4):
        M = restricted.cone.interior(P, 0.03 * gap)
        state, scale = state_at(restricted, M, w, residual, gap)
        method = InteriorPoint(restricted, state, scale)
        assert min(state.zl.min(), state.zu.min()) > 0.0
        assert np.linalg.eigvalsh(state.S)[0] > 0.0
        np.testing.assert_allclose(method.w, w, atol=10 * gap * np.abs(w).max())
        assert np.abs(method.cone_residual).max() < 0.1 * gap * state.xi
        assert 0.1 * gap < method.gap / value < 3.0 * gap
        # A multiplier is never below a tenth of the scale, which is the error near a margin.
        assert np.abs(method.alpha_residual).max() < 0.11 * scale


def test_the_first_parameter_has_the_directions_of_all_machines():
    """The first bound is better than that of the largest kernel, and all machines shape P."""
    problem = three_classes(150, n=40, shared=True)
    first = working_set(problem, tol=1e-12, max_iter=0).history[0]
    cone = problem.cone
    w = []
    K = problem.kernels.gram(cone.degree * cone.centre)
    for rows, machine in zip(problem.dual.machines, problem.dual.each, strict=True):
        w.append(solve_dual(K[rows, rows], machine, tol=1e-9).w)
    point = problem.at(np.concatenate(w))
    optimum = working_set(problem, tol=1e-6).value
    assert 1.02 * point.lower < first.bound <= optimum * (1 + 1e-6)
    assert first.value < 1.1 * optimum < 0.3 * solve_all(problem, point.best_response)


def solve_all(problem, P):
    """The sum of the values of the machines with the kernel of P."""
    K = problem.kernels.gram(P)
    parts = zip(problem.dual.machines, problem.dual.each, strict=True)
    return sum(solve_dual(K[rows, rows], own, tol=1e-6).objective for rows, own in parts)


def test_a_machine_that_cannot_move_is_left_out_of_a_round():
    dual = DualProblem.stacked(
        [DualProblem.classification([1, 1, -1, -1], 1.0), DualProblem.classification([1, -1], 1.0)]
    )
    w = np.array([1.0, 0.0, -1.0, 0.0, 0.0, 0.0])
    # The first machine offers a taker only (w = 0 may rise), the second both.
    assert dual.movable(np.array([1, 4, 5]), w).tolist() == [4, 5]
    assert dual.movable(np.array([0, 1, 4, 5]), w).tolist() == [0, 1, 4, 5]
    # A giver only is no better: the third is at its lower bound, and the second stays out.
    at_top = np.array([1.0, 1.0, -1.0, -1.0, 1.0, -1.0])
    assert dual.movable(np.array([0, 1, 4, 5]), at_top).tolist() == [4, 5]


def test_samples_of_every_class_of_every_machine():
    from tessella.solvers.working_set import sample_strata

    y = np.where(np.arange(5000) < 3, 1.0, -1.0)  # a rare class
    dual = DualProblem.stacked(
        [DualProblem.classification(y, 1.0), DualProblem.regression(np.arange(300.0), 1.0, 0.1)]
    )
    rows, stands_for = sample_strata(dual, 200, np.random.default_rng(0))
    assert (np.diff(rows) > 0).all()
    assert np.count_nonzero(rows < 3) == 2
    assert stands_for.sum() == pytest.approx(dual.size)
    assert len(rows) == pytest.approx(200, abs=4)


def test_mismatched_stacks_are_refused():
    problem = three_classes(20)
    flat = DualProblem.classification(np.where(problem.dual.linear > 0, 1.0, -1.0), 1.0)
    with pytest.raises(ValueError, match="3 machines and the SVM has 1"):
        SaddlePoint(problem.kernels, flat)


def test_parameter_of_other_data_is_tried_and_replaced():
    """The kernel of other rows costs one pass, the optimal one is where the rounds begin."""
    other, problem = (three_classes(240, seed=seed, n=6, shared=True) for seed in (1, 0))
    given = working_set(other, tol=1e-3).parameter
    cold = working_set(problem, tol=1e-3)
    warm = working_set(problem, tol=1e-3, parameter0=given)
    assert warm.gap <= 1e-3
    assert warm.value == pytest.approx(cold.value, rel=2e-3)
    assert warm.history[-1].n_svm == cold.history[-1].n_svm + 1
    best = working_set(problem, tol=1e-6).parameter
    again = working_set(problem, tol=1e-4, parameter0=best)
    assert again.gap <= 1e-4
    assert again.history[-1].n_svm < 5 < cold.history[-1].n_svm
