from __future__ import annotations

import signal

import numpy as np
import pytest
from reference.programs import kernel_learning
from solvers.conftest import make_problem, rows_of
from solvers.test_frank_wolfe import assert_certified

from tessella.cones import inner
from tessella.kernels import PolynomialKernels, TessellatedKernels
from tessella.problems import SaddlePoint
from tessella.solvers import SolverStatus, frank_wolfe, joint
from tessella.solvers.central_path import (
    RestrictedProblem,
    WholeProblem,
    neutral_alpha,
    state_near,
)
from tessella.svm import CentralPathState, DualProblem, Halves, InteriorPoint


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
    K, expected = problem.kernels.gram(result.parameter), problem.kernels.gram(P)
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


def test_samples_of_weight_zero_change_nothing():
    X = rows_of(30)
    kernels, labels = TessellatedKernels(0).bind(X), np.where(X.sum(axis=1) > 1.0, 1.0, -1.0)
    labels[::7] *= -1.0
    kept = np.arange(30) % 5 > 0
    whole = SaddlePoint(kernels, DualProblem.classification(labels, np.where(kept, 3.0, 0.0)))
    few = SaddlePoint(
        kernels.subset(np.flatnonzero(kept)), DualProblem.classification(labels[kept], 3.0)
    )
    found, expected = joint(whole, tol=1e-8), joint(few, tol=1e-8)
    assert found.status is SolverStatus.OPTIMAL
    assert (found.w[~kept] == 0.0).all()
    assert found.value == pytest.approx(expected.value, rel=1e-7)


def test_corrections_save_newton_steps(task):
    """Eight problems take some 14 steps on average; without one of the corrections about 19."""
    steps = [
        joint(make_problem(task, m=40, n=n, C=C, seed=seed), tol=1e-9).n_iter
        for n in (2, 10)
        for C in (1.0, 100.0)
        for seed in (0, 1)
    ]
    assert max(steps) <= 20
    assert np.mean(steps) <= 16


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
    spectrum = problem.at(result.w).spectrum
    values, vectors = spectrum.values, spectrum.frame
    weight = np.einsum("ij,jk,ki->i", vectors.T, result.parameter, vectors)
    assert weight[values < 0.99 * values[-1]].sum() <= 1e-4 * problem.cone.side


def test_rank_two_optimum_with_a_double_eigenvalue():
    """Two irrelevant copies of one signal force a tie of the top eigenvalue at the optimum."""
    ranks = []
    for seed in range(6):
        problem = make_problem("regression", m=120, n=6, C=10.0, seed=seed)
        result = joint(problem, tol=1e-8)
        eigenvalues = np.linalg.eigvalsh(result.parameter)
        ranks.append(int((eigenvalues > 1e-3 * eigenvalues[-1]).sum()))
        if ranks[-1] == 2:
            values = problem.at(result.w).spectrum.values
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
        TessellatedKernels(1, 0.3).bind(rows_of(m=60)[kept]),
        weighted.restrict(np.flatnonzero(kept)),
    )
    assert result.value == pytest.approx(joint(part, tol=1e-7).value, rel=1e-6)


def test_another_kernel_set(task):
    problem = make_problem(task, m=60)
    poly = SaddlePoint(PolynomialKernels(2).bind(rows_of(m=60)), problem.dual)
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
    assert (np.eye(6) == result.parameter).all()
    assert not result.w.any()


def test_duplicate_rows(task):
    problem = make_problem(task, m=30)
    X = np.repeat(rows_of(m=30), 3, axis=0)
    dual = problem.dual.restrict(np.repeat(np.arange(30), 3))
    result = joint(SaddlePoint(TessellatedKernels(1, 0.3).bind(X), dual), tol=1e-6)
    assert result.status is SolverStatus.OPTIMAL


def test_starts_from_a_given_point(task):
    problem = make_problem(task, m=80)
    whole = joint(problem, tol=1e-7)
    again = joint(problem, tol=1e-7, parameter0=whole.parameter, w0=whole.w)
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


@pytest.mark.parametrize("held", [False, True])
def test_newton_step_by_finite_differences(task, held):
    """Along a Newton step every residual falls at the rate of its own size.

    `advance` takes a part of the step, along which the residuals are those of its beginning times
    (1 - t) plus a term in t². With some samples held all four equations are broken at first;
    with none the dual vector is balanced, as the centred kernel matrix asks for.
    """
    problem = make_problem(task, m=25)
    rng, centre = np.random.default_rng(0), problem.cone.centre
    rows = np.arange(18 if held else 25)
    whole = WholeProblem(problem)
    alpha = neutral_alpha(whole, centre)
    if held:
        w = problem.dual.feasible(rng.standard_normal(25))
        whole = RestrictedProblem(problem, rows, w)
        alpha = whole.halves.upper * rng.uniform(0.2, 0.8, len(whole.halves.upper))
    start, scale = state_near(whole, 1.1 * centre, alpha)
    method = InteriorPoint(whole, start, scale)
    method.advance()
    before, residuals = method.state, residuals_of(method)
    broken = set(residuals) - (set() if held else {"sum_residual"})
    assert all(np.abs(residuals[name]).max() > 1e-6 for name in broken)
    length = method.advance()
    assert 0.0 < length <= 1.0
    t = 1e-6
    part = {
        name: getattr(before, name)
        + (t / length) * (getattr(method.state, name) - getattr(before, name))
        for name in ("alpha", "M", "zl", "zu", "S", "nu", "xi")
    }
    after = residuals_of(InteriorPoint(whole, CentralPathState(**part), scale))
    for name, size in residuals.items():
        rate = (after[name] - size) / t
        largest = max(np.abs(size).max(), np.abs(rate).max())
        np.testing.assert_allclose(rate, -size, atol=1e-4 * largest + 1e-8, err_msg=name)


def residuals_of(method):
    names = ("alpha_residual", "cone_residual", "sum_residual", "trace_residual")
    return {name: np.asarray(getattr(method, name)) for name in names}


def test_complementarity_heads_for_a_small_part_of_itself(task):
    """The products α zl, (u - α) zu and <M, S> after an almost full step."""
    problem = make_problem(task, m=25)
    whole = WholeProblem(problem)
    centre = problem.cone.centre
    method = InteriorPoint(whole, *state_near(whole, centre, neutral_alpha(whole, centre)))
    for _ in range(4):
        method.advance()
    before = method.state
    length = method.advance()
    after, upper = method.state, whole.halves.upper
    kept = 1.0 - length + 0.3 * length  # centring and the second-order error, which is corrected
    assert after.alpha @ after.zl <= kept * (before.alpha @ before.zl)
    assert (upper - after.alpha) @ after.zu <= kept * ((upper - before.alpha) @ before.zu)
    assert inner(after.M, after.S) <= kept * inner(before.M, before.S)


def test_halves_recombine():
    dual = DualProblem.regression([1.0, -2.0, 0.5], [1.0, 2.0, 0.0], 0.1)
    halves = Halves.of(dual)
    assert halves.sample.tolist() == [0, 1, 0, 1]
    np.testing.assert_allclose(halves.join(np.array([1.0, 0.0, 0.25, 2.0])), [0.75, -2.0, 0.0])
