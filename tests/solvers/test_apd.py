"""The accelerated primal-dual method, and the hybrid of Frank-Wolfe and it."""

from __future__ import annotations

import itertools
import signal
from functools import partial

import numpy as np
import pytest
from reference.programs import kernel_learning
from solvers.conftest import make_problem
from solvers.test_frank_wolfe import assert_certified

from tessella.kernels import PolynomialKernels, TessellatedKernels
from tessella.problems import SaddlePoint
from tessella.solvers import SolverStatus, frank_wolfe, joint
from tessella.solvers.apd import AcceleratedStage, ProximalRun, apd
from tessella.solvers.hybrid import hybrid
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
    K, expected = problem.kernels.gram(result.P), problem.kernels.gram(P)
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
    """Where Frank-Wolfe crawls: the top eigenvalue of D is double at the optimum."""
    problem = make_problem("regression", m=120, n=6, C=10.0)
    result = solver(problem, tol=1e-7)
    assert result.status is SolverStatus.OPTIMAL
    assert result.n_iter <= 300
    eigenvalues = np.linalg.eigvalsh(result.P)
    assert (eigenvalues > 1e-3 * eigenvalues[-1]).sum() == 2
    slow = frank_wolfe(problem, tol=1e-7, max_iter=300)
    assert slow.gap > 1e-4


def test_safe_steps_are_valid_and_useless(task):
    problem = make_problem(task)
    safe = apd(problem, tol=1e-3, max_iter=100, safe_steps=True)
    assert safe.status is SolverStatus.MAX_ITER
    assert_certified(problem, safe)
    steps = {record.step for record in safe.history if record.step > 0}
    assert len(steps) == 1
    norm = np.linalg.norm(problem.kernels.gram(np.eye(problem.parameters.side), centred=True), 2)
    box = np.linalg.norm(np.maximum(problem.dual.upper, -problem.dual.lower))
    assert steps.pop() == pytest.approx(1 / (np.sqrt(6) * box * norm), rel=1e-9)
    assert safe.gap > 10 * apd(problem, tol=1e-3, max_iter=100).gap


def stage_at(problem, **options):
    run = ProximalRun(
        "apd", problem, tol=0.0, max_iter=10**6, time_limit=None, n_jobs=None, callback=None
    )
    P = problem.parameters.centre
    w = solve_dual(problem.kernels.gram(P, centred=True), problem.dual, tol=1e-10).w
    run.record(P, w, 0.0)
    return AcceleratedStage(run, P, w, **options)


@pytest.mark.parametrize("safe_steps", [False, True])
def test_proximal_step_solves_its_problem(task, safe_steps):
    """The optimality conditions of κ(v) - ½vᵀKv - ‖v - w‖²_M / 2τ, against feasible points."""
    problem = make_problem(task)
    stage = stage_at(problem, safe_steps=safe_steps)
    m, rng = problem.dual.size, np.random.default_rng(0)
    side = problem.parameters.side
    M = np.eye(m) if safe_steps else problem.kernels.gram(np.eye(side), centred=True)
    here, step = stage._here, stage._step
    stage._svm_tol = lambda: 1e-12
    there = stage._trial(step, step * stage._balance)
    sigma, tau = step * stage._balance, step / stage._balance
    # The first step of an epoch has no previous gradient to extrapolate from.
    D = problem.kernels.gradient(here.w)
    expected = problem.parameters.project(here.P + 0.5 * sigma * D)
    np.testing.assert_allclose(there.P, expected, atol=1e-12)
    K = problem.kernels.gram(there.P, centred=True)

    def objective(v):
        away = v - here.w
        return problem.dual.kappa(v) - 0.5 * v @ K @ v - 0.5 * away @ M @ away / tau

    best = objective(there.w)
    for scale in (1e-3, 1e-1, 1.0):
        for _ in range(50):
            v = problem.dual.feasible(there.w + scale * rng.standard_normal(m))
            assert objective(v) <= best + 1e-8 * abs(best)


def test_gradient_is_lipschitz_in_the_metric_of_k_of_i():
    problem = make_problem("regression")
    K = problem.kernels.gram(np.eye(problem.parameters.side), centred=True)
    rng = np.random.default_rng(1)
    for _ in range(20):
        v, w = (problem.dual.feasible(rng.standard_normal(30)) for _ in range(2))
        change = np.linalg.norm(problem.kernels.gradient(v) - problem.kernels.gradient(w))
        bound = np.sqrt((v - w) @ K @ (v - w)) * np.sqrt((v + w) @ K @ (v + w))
        assert change <= bound * (1 + 1e-9)


def test_accepted_steps_meet_the_condition_of_the_proof(task):
    problem = make_problem(task, m=60)
    stage = stage_at(problem)
    K = problem.kernels.gram(np.eye(problem.parameters.side), centred=True)
    for _ in range(15):
        before = stage._here
        assert stage._advance()
        change = stage._here.w - before.w
        turned = np.linalg.norm(stage._here.half_gradient - before.half_gradient)
        assert stage._step * turned <= np.sqrt(change @ K @ change)


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
    exact = solve_dual(problem.kernels.gram(result.P, centred=True), problem.dual, tol=1e-11)
    assert result.value == pytest.approx(exact.objective, rel=1e-6)


@both
def test_starts_from_a_given_point(task, solver):
    problem = make_problem(task, m=80)
    whole = joint(problem, tol=1e-8)
    again = solver(problem, tol=1e-6, P0=whole.P, w0=whole.w)
    assert again.status is SolverStatus.OPTIMAL
    assert again.n_iter == 0
    assert (again.P == whole.P).all()
    with pytest.raises(ValueError, match="P0 must be positive semidefinite"):
        solver(problem, P0=2 * np.eye(problem.parameters.side))


@both
def test_wide_tube_keeps_the_identity(solver):
    problem = SaddlePoint(
        TessellatedKernels().bind(np.random.default_rng(0).random((12, 2))),
        DualProblem.regression(np.linspace(-0.5, 0.5, 12), 1.0, 1.0),
    )
    result = solver(problem)
    assert result.status is SolverStatus.OPTIMAL
    assert result.gap == 0.0
    assert (np.eye(6) == result.P).all()
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
    bound32 = TessellatedKernels(1, 0.3).bind(problem.kernels._X, dtype=np.float32)
    result = solver(SaddlePoint(bound32, problem.dual), tol=1e-3)
    assert result.status is SolverStatus.OPTIMAL
    assert_certified(problem, result)


@both
def test_another_kernel_set(task, solver):
    problem = make_problem(task, m=60)
    poly = SaddlePoint(PolynomialKernels(2).bind(problem.kernels._X), problem.dual)
    result = solver(poly, tol=1e-5)
    assert result.status is SolverStatus.OPTIMAL
    assert_certified(poly, result)
    assert result.value == pytest.approx(joint(poly, tol=1e-8).value, rel=2e-5)
