"""The accelerated primal-dual method, and the hybrid of Frank-Wolfe and it."""

from __future__ import annotations

import itertools
import signal
from functools import partial

import numpy as np
import pytest
from reference.programs import kernel_learning
from scipy.optimize import brentq
from solvers.conftest import make_problem, rows_of
from solvers.test_frank_wolfe import assert_certified

from tessella.kernels import PolynomialKernels, TessellatedKernels
from tessella.problems import SaddlePoint
from tessella.solvers import SolverStatus, apd, frank_wolfe, hybrid, joint
from tessella.svm import DualProblem, solve_dual

both = pytest.mark.parametrize("solver", [apd, hybrid])


@both
@pytest.mark.parametrize("degree", [0, 1])
def test_agrees_with_the_semidefinite_program(task, degree, solver):
    problem = make_problem(task, degree=degree)
    value, P = kernel_learning(problem.kernels, problem.dual)
    result = solver(problem, tol=1e-7)
    assert result.status is SolverStatus.OPTIMAL
    assert result.solver == solver.__name__
    assert result.n_iter <= 300
    assert_certified(problem, result)
    assert result.value == pytest.approx(value, rel=1e-5)
    H = np.eye(problem.dual.size) - 1.0 / problem.dual.size
    K, expected = problem.kernels.gram(result.parameter), problem.kernels.gram(P)
    difference = np.linalg.norm(H @ (K - expected) @ H)
    assert difference <= 1e-3 * np.linalg.norm(H @ expected @ H)


@both
@pytest.mark.parametrize("C", [1e-2, 100.0])
@pytest.mark.parametrize("n", [2, 10])
def test_reaches_the_optimum_whatever_c_and_n(task, C, n, solver):
    problem = make_problem(task, m=120, n=n, C=C, delta=0.1, seed=n)
    result = solver(problem, tol=1e-5)
    assert result.status is SolverStatus.OPTIMAL
    assert_certified(problem, result)
    best = joint(problem, tol=1e-8)
    assert result.value == pytest.approx(best.value, rel=2e-5)
    assert result.value >= best.bound * (1 - 1e-9)


@both
def test_rank_two_optimum(solver):
    """The optimality conditions where the top eigenvalue of D is double, which is hard."""
    problem = make_problem("regression", m=120, n=6, C=10.0)
    result = solver(problem, tol=1e-7)
    assert result.status is SolverStatus.OPTIMAL
    assert result.n_iter <= 300
    assert_certified(problem, result)
    eigenvalues = np.linalg.eigvalsh(result.parameter)
    assert (eigenvalues > 1e-3 * eigenvalues[-1]).sum() == 2
    D = problem.kernels.gradient(result.w)
    top = np.linalg.eigvalsh(D)[::-1]
    # P lives where D is largest: <D, P> = n_P λ_max, and the value is the dual value of P.
    assert top[1] == pytest.approx(top[0], rel=1e-4)
    assert top[2] < 0.5 * top[0]
    assert np.sum(D * result.parameter) == pytest.approx(len(D) * top[0], rel=1e-4)
    assert problem.at(result.w).dual_value(result.parameter) == pytest.approx(
        result.value, rel=1e-6
    )


class Watched(SaddlePoint):
    """A problem that keeps every pair that a solver has certified."""

    def __init__(self, kernels, dual):
        super().__init__(kernels, dual)
        self.pairs = []

    def at(self, w):
        return WatchedPoint(super().at(w), self.pairs)


class WatchedPoint:
    def __init__(self, point, pairs):
        self._point, self._pairs = point, pairs

    def __getattr__(self, name):
        return getattr(self._point, name)

    def certificate(self, P):
        self._pairs.append((P.copy(), self._point.w.copy()))
        return self._point.certificate(P)


class Pair:
    """A pair that a run has tried, its step √(στ), D(w) and Mw."""

    def __init__(self, problem, M, P, w, step):
        self.P, self.w, self.step = P, w, step
        self.D, self.Mw = problem.kernels.gradient(w), M @ w


def tried_by_apd(task, safe_steps, max_iter):
    """The problem, the metric and the pairs of a run, the exact SVM of the start first."""
    plain = make_problem(task, m=40, n=5, C=0.1)
    problem = Watched(plain.kernels, plain.dual)
    result = apd(problem, tol=1e-12, max_iter=max_iter, safe_steps=safe_steps)
    side, m = problem.cone.side, problem.dual.size
    M = np.eye(m) if safe_steps else plain.kernels.gram(np.eye(side), centred=True)
    records = zip(problem.pairs, result.history, strict=True)
    return plain, M, [Pair(plain, M, *pair, record.step) for pair, record in records]


def ratio_of_steps(problem, start, first):
    """ω = √(σ/τ): σ is the length at which the projected gradient step meets the first P."""
    reached = np.sum(first.P * start.D)

    def excess(sigma):
        P = problem.cone.project(start.P + 0.5 * sigma * start.D)
        return np.sum(P * start.D) - reached

    sigma = brentq(excess, 0.0, 1e3 * first.step, xtol=1e-300, rtol=1e-14)
    return sigma / first.step


def gradient_step(problem, omega, here, before, last_step, step):
    """P⁺ of the docstring of `apd`, with σ = ωs, so that θ is the ratio of the steps."""
    S = 0.5 * here.D + 0.5 * (last_step / step) * (here.D - before.D)
    return problem.cone.project(here.P + omega * step * S)


@pytest.mark.parametrize("safe_steps", [False, True])
def test_steps_are_those_of_the_method(task, safe_steps):
    """Each P from the last pair that was accepted, and accepted only if the proof allows it."""
    problem, _, tried = tried_by_apd(task, safe_steps, max_iter=18)
    here = before = tried[0]
    omega, last_step = ratio_of_steps(problem, *tried[:2]), tried[1].step
    rejected = 0
    close = {"rtol": 0, "atol": 1e-9}
    expected = gradient_step(problem, omega, here, before, last_step, tried[1].step)
    np.testing.assert_allclose(tried[1].P, expected, **close)
    for trial, following in itertools.pairwise(tried[1:]):
        accepted = gradient_step(problem, omega, trial, here, trial.step, following.step)
        if np.allclose(following.P, accepted, **close):
            change = trial.w - here.w
            turned = 0.5 * np.linalg.norm(trial.D - here.D)
            assert trial.step * turned <= np.sqrt(change @ (trial.Mw - here.Mw)) * (1 + 1e-9)
            before, here, last_step = here, trial, trial.step
        else:
            again = gradient_step(problem, omega, here, before, last_step, following.step)
            np.testing.assert_allclose(following.P, again, **close)
            assert following.step < trial.step
            rejected += 1
    assert (rejected > 0) != safe_steps  # the problem was chosen so that some are


@pytest.mark.parametrize("safe_steps", [False, True])
def test_proximal_step_solves_its_problem(task, safe_steps):
    """w⁺ maximises κ(v) - ½vᵀK(P⁺)v - ‖v - w‖²_M / 2τ, up to the accuracy asked of an SVM."""
    problem, M, (start, first) = tried_by_apd(task, safe_steps, max_iter=1)
    tau = first.step / ratio_of_steps(problem, start, first)
    linear = problem.dual.linear + start.Mw / tau
    dual = problem.dual.with_linear(linear)
    K = problem.kernels.gram(first.P, centred=True) + M / tau
    best = solve_dual(K, dual, tol=1e-12)
    reached = dual.kappa(first.w) - 0.5 * first.w @ K @ first.w
    assert reached <= best.objective * (1 + 1e-9)
    whole = problem.dual.kappa(start.w) - 0.5 * np.sum(start.D * start.P)
    assert reached >= best.objective - 1e-3 * whole
    # What is close to it is not simply everything: no step at all, and one without Mw / τ.
    still = dual.kappa(start.w) - 0.5 * start.w @ K @ start.w
    assert safe_steps or still < best.objective - 3e-3 * whole
    unshifted = solve_dual(K, problem.dual, tol=1e-12).w
    assert dual.kappa(unshifted) - 0.5 * unshifted @ K @ unshifted < best.objective - 3e-3 * whole


def test_safe_steps_are_those_of_the_theorem(task):
    problem = make_problem(task)
    safe = apd(problem, tol=1e-12, max_iter=40, safe_steps=True)
    assert safe.status is SolverStatus.MAX_ITER
    assert_certified(problem, safe)
    assert safe.gap < safe.history[0].gap
    steps = {record.step for record in safe.history if record.step > 0}
    assert len(steps) == 1
    norm = np.linalg.norm(problem.kernels.gram(np.eye(problem.cone.side), centred=True), 2)
    box = np.linalg.norm(np.maximum(problem.dual.upper, -problem.dual.lower))
    assert steps.pop() == pytest.approx(1 / (np.sqrt(6) * box * norm), rel=1e-9)


def test_gradient_is_lipschitz_in_the_metric_of_k_of_i():
    problem = make_problem("regression")
    K = problem.kernels.gram(np.eye(problem.cone.side), centred=True)
    rng = np.random.default_rng(1)
    for _ in range(20):
        v, w = (problem.dual.feasible(rng.standard_normal(30)) for _ in range(2))
        change = np.linalg.norm(problem.kernels.gradient(v) - problem.kernels.gradient(w))
        bound = np.sqrt((v - w) @ K @ (v - w)) * np.sqrt((v + w) @ K @ (v + w))
        assert change <= bound * (1 + 1e-9)


@both
def test_history_runs_through(task, solver):
    problem = make_problem(task, m=60, n=4)
    seen = []
    result = solver(problem, tol=1e-6, callback=seen.append)
    assert tuple(seen) == result.history
    assert [r.iteration for r in seen] == list(range(len(seen)))
    for earlier, later in itertools.pairwise(seen):
        assert later.value <= earlier.value
        assert later.bound >= earlier.bound
        assert later.n_svm > earlier.n_svm
        assert later.time >= earlier.time
    assert result.n_svm >= result.history[-1].n_svm


def test_hybrid_switches_at_its_tolerance():
    problem = make_problem("regression", m=120, n=6, C=10.0)
    result = hybrid(problem, tol=1e-5, switch_tol=1e-2)
    assert result.status is SolverStatus.OPTIMAL
    switch = next(r.iteration for r in result.history if r.gap <= 1e-2)
    plain = frank_wolfe(problem, tol=1e-5, max_iter=switch + 1)
    steps = [r.step for r in result.history]
    assert steps[: switch + 1] == [r.step for r in plain.history[:-1]]
    assert steps[switch + 1] != plain.history[-1].step
    with pytest.raises(ValueError, match=r"switch_tol=0.0 must be positive"):
        hybrid(problem, switch_tol=0.0)


def test_hybrid_w_solves_the_svm_of_its_p(task):
    problem = make_problem(task, m=80, n=4)
    result = hybrid(problem, tol=1e-6)
    exact = solve_dual(
        problem.kernels.gram(result.parameter, centred=True), problem.dual, tol=1e-11
    )
    assert result.value == pytest.approx(exact.objective, rel=1e-6)


@both
def test_starts_from_a_given_point(task, solver):
    problem = make_problem(task, m=80)
    whole = joint(problem, tol=1e-8)
    again = solver(problem, tol=1e-6, parameter0=whole.parameter, w0=whole.w)
    assert again.status is SolverStatus.OPTIMAL
    assert again.n_iter == 0
    assert (again.parameter == whole.parameter).all()
    with pytest.raises(ValueError, match="parameter must be positive semidefinite"):
        solver(problem, parameter0=2 * np.eye(problem.cone.side))


@both
def test_wide_tube_keeps_the_identity(solver):
    problem = SaddlePoint(
        TessellatedKernels().bind(np.random.default_rng(0).random((12, 2))),
        DualProblem.regression(np.linspace(-0.5, 0.5, 12), 1.0, 1.0),
    )
    result = solver(problem)
    assert result.status is SolverStatus.OPTIMAL
    assert result.gap == 0.0
    assert (np.eye(6) == result.parameter).all()
    assert not result.w.any()


@both
def test_limits_keep_the_best_pair(task, solver):
    problem = make_problem(task, m=100, n=4)
    short = solver(problem, tol=1e-9, max_iter=7)
    assert short.status is SolverStatus.MAX_ITER
    assert short.n_iter == 7
    assert_certified(problem, short)
    late = solver(problem, tol=1e-12, time_limit=0.0)
    assert late.status is SolverStatus.TIME_LIMIT
    assert_certified(problem, late)


@pytest.mark.parametrize("solver", [apd, hybrid, partial(apd, safe_steps=True)])
def test_ctrl_c_keeps_the_best_pair(solver):
    problem = make_problem("regression", m=100, n=4)

    def interrupt(record):
        if record.iteration == 9:
            signal.raise_signal(signal.SIGINT)

    result = solver(problem, tol=1e-9, callback=interrupt)
    assert result.status is SolverStatus.INTERRUPTED
    assert len(result.history) == 10
    assert_certified(problem, result)


@both
def test_rounding_floor_is_reported(solver):
    result = solver(make_problem("regression", m=60), tol=1e-300)
    assert result.status in (SolverStatus.STALLED, SolverStatus.OPTIMAL)
    assert result.gap < 1e-8


@both
def test_float32_storage_is_certified_in_float64(task, solver):
    problem = make_problem(task, m=60)
    bound32 = TessellatedKernels(1, 0.3).bind(rows_of(m=60), dtype=np.float32)
    result = solver(SaddlePoint(bound32, problem.dual), tol=1e-3)
    assert result.status is SolverStatus.OPTIMAL
    assert_certified(problem, result)


@both
def test_another_kernel_set(task, solver):
    problem = make_problem(task, m=60)
    poly = SaddlePoint(PolynomialKernels(2).bind(rows_of(m=60)), problem.dual)
    result = solver(poly, tol=1e-5)
    assert result.status is SolverStatus.OPTIMAL
    assert_certified(poly, result)
    assert result.value == pytest.approx(joint(poly, tol=1e-8).value, rel=2e-5)
