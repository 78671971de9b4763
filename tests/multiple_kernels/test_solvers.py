"""Weights of a dictionary by every solver, against convex programs and definitions."""

from __future__ import annotations

import inspect
from dataclasses import replace

import numpy as np
import pytest
from reference.programs import multiple_kernel_value
from reference.svm import assert_feasible, primal_value
from reference.weights import (
    FEW,
    block_matrices,
    bound_problem,
    machines_of,
    problem_of,
    rows_of,
)

import tessella.kernels
import tessella.solvers
from tessella.cones import Sensitivities
from tessella.kernels import Gaussian, KernelDictionary, Polynomial, TessellatedKernels
from tessella.problems import SaddlePoint
from tessella.solvers import (
    SolverStatus,
    WorkingSetSettings,
    choose_solver,
    fixed,
    frank_wolfe,
    joint,
    simple_mkl,
    working_set,
)
from tessella.svm import DualProblem, solve_dual

TINY = WorkingSetSettings(first_rows=12, rows_per_param=1)


def assert_certified(problem, result):
    """The result proves what it says, recomputed from the weights and dual vectors alone."""
    assert problem.cone.contains(result.parameter)
    upper = problem.certificate(result.parameter, result.w).upper
    assert result.value == pytest.approx(upper, rel=1e-12)
    assert result.bound == pytest.approx(problem.at(result.w_bound).lower, rel=1e-12)
    for machine, own in zip(problem.dual.each, problem.dual.machines, strict=True):
        assert_feasible(machine, result.w[own])


# ---- what a problem says


def test_matrix_scores_and_forms_by_their_definitions(task):
    problem, X = problem_of(task, 45)
    rng = np.random.default_rng(1)
    weights = rng.dirichlet(np.ones(problem.cone.degree))
    w = problem.dual.feasible(rng.standard_normal(problem.dual.size))
    blocks = block_matrices(problem, X, task)
    K = np.tensordot(weights, blocks, 1)
    close = {"rtol": 1e-10, "atol": 1e-12}
    np.testing.assert_allclose(problem.kernels.gram(weights), K, **close)
    moments = problem.kernels.moments(w)
    np.testing.assert_allclose(moments.scores(weights), K @ w, **close)
    forms = np.einsum("i,kij,j->k", w, blocks, w)
    np.testing.assert_allclose(moments.gradient, forms, **close)
    rows = np.arange(3, problem.dual.size, 4)
    face = np.array([0, 3])
    # Kept by a restriction, and computed where they are needed.
    everything = np.arange(problem.dual.size)
    for kernels in (problem.kernels, problem.kernels.restrict(everything)):
        moments = kernels.moments(w)
        np.testing.assert_allclose(moments.gradient, forms, **close)
        np.testing.assert_allclose(moments.face_gradient(face), forms[face], **close)
        found = moments.sensitivities(face, rows).apply(np.array([2.0, -1.0]))
        expected = (2.0 * blocks[0] - blocks[3]) @ w
        np.testing.assert_allclose(found, expected[rows], **close)


def test_tiles_and_threads_change_nothing():
    """On more rows than fit in one tile of two hundred and fifty."""
    X, signal = rows_of(600)
    machines = machines_of("classification", signal)
    one, three = (bound_problem(FEW, X, machines, n_jobs=n) for n in (1, 3))
    rng = np.random.default_rng(0)
    w = one.dual.feasible(rng.standard_normal(600))
    weights = rng.dirichlet(np.ones(one.cone.degree))
    for of in (
        lambda kernels: kernels.gram(weights),
        lambda kernels: kernels.gram(weights, centred=True),
        lambda kernels: kernels.gradient(w),
        lambda kernels: kernels.moments(w).scores(weights),
        lambda kernels: kernels.cross(X, weights),
    ):
        np.testing.assert_array_equal(of(one.kernels), of(three.kernels))
    matrices = [one.kernels.kernels.matrix(k, X) for k in range(one.cone.degree)]
    K = np.tensordot(weights, matrices, 1)
    np.testing.assert_allclose(one.kernels.gram(weights), K, rtol=1e-12, atol=1e-14)
    forms = [w @ own @ w for own in matrices]
    np.testing.assert_allclose(one.kernels.gradient(w), forms, rtol=1e-10)


def test_certificate_by_its_definition(task):
    problem, X = problem_of(task, 45)
    rng = np.random.default_rng(2)
    weights = rng.dirichlet(np.ones(problem.cone.degree))
    w = problem.dual.feasible(rng.standard_normal(problem.dual.size))
    certificate = problem.certificate(weights, w)
    blocks = block_matrices(problem, X, task)
    forms = np.einsum("i,kij,j->k", w, blocks, w)
    assert certificate.lower == pytest.approx(problem.dual.kappa(w) - 0.5 * forms.max(), rel=1e-10)
    b = certificate.intercept[problem.dual.machine_of]
    upper = primal_value(np.tensordot(weights, blocks, 1), problem.dual, w, b)
    assert certificate.upper == pytest.approx(upper, rel=1e-10)
    given = SaddlePoint(problem.kernels, problem.dual, fixed=weights).certificate(weights, w)
    assert given.upper == pytest.approx(upper, rel=1e-10)
    assert given.lower == pytest.approx(problem.dual.kappa(w) - 0.5 * weights @ forms, rel=1e-10)


# ---- optima


@pytest.mark.parametrize(
    ("solver", "tol"),
    [(joint, 1e-7), (working_set, 1e-7), (simple_mkl, 1e-4), (frank_wolfe, 1e-3)],
)
def test_value_is_that_of_the_convex_program(task, solver, tol):
    problem, X = problem_of(task, 40)
    options = {"settings": TINY} if solver is working_set else {}
    if solver is frank_wolfe:
        options = {"step": "pairwise", "max_iter": 4000}
    result = solver(problem, tol=tol, **options)
    optimum = multiple_kernel_value(block_matrices(problem, X, task), problem.dual)
    assert result.status is SolverStatus.OPTIMAL
    assert result.gap <= tol
    slack = 1e-7 * optimum  # of the reference
    assert result.bound - slack <= optimum <= result.value + slack
    assert result.value == pytest.approx(optimum, rel=2 * tol + 1e-7)
    assert_certified(problem, result)


def test_simple_mkl_and_the_working_set_agree(task):
    problem, _ = problem_of(task, 150)
    fast, slow = working_set(problem, tol=1e-6), simple_mkl(problem, tol=1e-3)
    assert slow.gap <= 1e-3
    assert fast.bound <= slow.value
    assert slow.value == pytest.approx(fast.value, rel=1e-3)
    assert fast.n_svm < 0.3 * slow.n_svm


def test_simple_mkl_follows_the_reduced_gradient(task):
    """Every record lies lower than the one before, and the first step leaves the even weights."""
    problem, _ = problem_of(task, 60)
    result = simple_mkl(problem, tol=1e-4)
    values = [record.value for record in result.history]
    assert values == sorted(values, reverse=True)
    assert values[-1] < 0.98 * values[0]
    assert result.history[0].step == 0.0
    assert all(record.step > 0 for record in result.history[1:])
    assert np.count_nonzero(result.parameter) < problem.cone.degree  # kernels were dropped


def test_kernels_that_stay_out_cost_simple_mkl_no_svm(task):
    """From one kernel alone: those whose weight is zero and would fall are left where they are."""
    problem, _ = problem_of(task, 60)
    alone = np.eye(problem.cone.degree)[0]
    result = simple_mkl(problem, tol=1e-9, max_iter=1, parameter0=alone)
    assert result.n_svm < np.count_nonzero(result.parameter == 0.0)


def test_simple_mkl_does_not_jam_at_weights_of_rounding():
    """Columns that repeat each other: their kernels reach zero together, but for rounding."""
    X, signal = rows_of(120)
    X = np.column_stack([X, 3.0 * X[:, 0], X[:, 1] + 1e-9 * X[:, 2]])
    problem = bound_problem(
        KernelDictionary.standard(), X, machines_of("classification", signal, 10.0)
    )
    result = simple_mkl(problem, tol=1e-2)
    assert result.status is SolverStatus.OPTIMAL
    assert result.value == pytest.approx(working_set(problem, tol=1e-5).value, rel=1e-2)


def test_simple_mkl_is_for_weights_alone():
    X, signal = rows_of(20)
    unit = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    problem = bound_problem(TessellatedKernels(), unit, machines_of("regression", signal))
    with pytest.raises(ValueError, match="learns the weights of a KernelDictionary"):
        simple_mkl(problem)


@pytest.mark.parametrize("C", [0.1, 100.0])
def test_samples_that_are_held_do_not_spoil_the_optimum(task, C):
    """With so few allowed to move, all of the way from a subsample to everything is taken."""
    problem, X = problem_of(task, 300, C=C)
    few = replace(TINY, usual_rows=30, directions=3)
    result = working_set(problem, tol=1e-6, settings=few)
    assert result.status is SolverStatus.OPTIMAL
    blocks = block_matrices(problem, X, task)
    K = np.tensordot(result.parameter, blocks, 1)
    b = result.intercept[problem.dual.machine_of]
    assert result.value == pytest.approx(primal_value(K, problem.dual, result.w, b), rel=1e-9)
    forms = np.einsum("i,kij,j->k", result.w_bound, blocks, result.w_bound)
    lower = problem.dual.kappa(result.w_bound) - 0.5 * forms.max()
    assert result.bound == pytest.approx(lower, rel=1e-9)


def test_many_kernels_move_a_few_at_a_time(task):
    problem, _ = problem_of(task, 100, kernels=KernelDictionary.standard())
    assert not problem.cone.moves_whole
    few = replace(TINY, directions=4)
    result = working_set(problem, tol=1e-5, settings=few)
    assert result.status is SolverStatus.OPTIMAL
    assert_certified(problem, result)
    assert result.value == pytest.approx(joint(problem, tol=1e-7).value, rel=2e-5)


def test_kernels_that_are_only_good_together():
    """The best kernel alone is worse than even weights: the others have to come back."""
    rng = np.random.default_rng(0)
    angle = rng.uniform(0, 2 * np.pi, 150)
    radius = np.where(np.arange(150) % 2, 1.0, 0.4) + 0.1 * rng.standard_normal(150)
    X = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
    dual = DualProblem.classification(np.where(np.arange(150) % 2, 1.0, -1.0), 1.0)
    kernels = KernelDictionary([Gaussian(0.5, features=0), Gaussian(0.5, features=1)])
    problem = SaddlePoint(kernels.bind(X), dual)
    alone = [solve_dual(problem.kernels.gram(one), dual).objective for one in np.eye(2)]
    result = working_set(problem, tol=1e-6, settings=replace(TINY, directions=1))
    simple = simple_mkl(problem, tol=1e-4)
    assert result.gap <= 1e-6
    assert result.value < 0.95 * min(alone)
    np.testing.assert_allclose(result.parameter, simple.parameter, atol=0.02)


# ---- given weights


def test_given_weights_have_the_gap_of_their_svm(task):
    problem, X = problem_of(task, 60)
    weights = np.random.default_rng(5).dirichlet(np.ones(problem.cone.degree))
    given = SaddlePoint(problem.kernels, problem.dual, fixed=weights)
    assert choose_solver("auto", given) is fixed
    result = fixed(given, tol=1e-8)
    assert result.status is SolverStatus.OPTIMAL
    np.testing.assert_array_equal(result.parameter, weights)
    K = np.tensordot(weights, block_matrices(problem, X, task), 1)
    exact = 0.0
    for machine, own in zip(problem.dual.each, problem.dual.machines, strict=True):
        exact += solve_dual(K[own, own], machine, tol=1e-10).objective
    assert result.value == pytest.approx(exact, rel=1e-7)
    assert joint(problem, tol=1e-6).value < result.value
    with pytest.raises(ValueError, match="needs a problem with a fixed parameter"):
        fixed(problem)
    with pytest.raises(ValueError, match="must be an array of"):
        SaddlePoint(problem.kernels, problem.dual, fixed=2.0 * weights)


# ---- several machines


class NoColumns(Sensitivities):
    """Sensitivities that keep to themselves that they are a few columns."""

    def __init__(self, whole):
        self._whole = whole

    def apply(self, M):
        return self._whole.apply(M)

    def adjoint(self, v):
        return self._whole.adjoint(v)

    def gram(self):
        return self._whole.gram()

    def transformed(self, F):
        return NoColumns(self._whole.transformed(F))

    def plus(self, other):
        return NoColumns(self._whole.plus(other._whole))

    def matrix(self):
        return self._whole.matrix()


class WithoutColumns:
    """A bound set whose Newton equations are factorised as a whole."""

    def __init__(self, bound):
        self._bound = bound

    def __getattr__(self, name):
        return getattr(self._bound, name)

    def restrict(self, rows, face=None):
        return WithoutColumns(self._bound.restrict(rows, face))

    def moments(self, w):
        return MomentsWithoutColumns(self._bound.moments(w))


class MomentsWithoutColumns:
    def __init__(self, moments):
        self._moments = moments

    def __getattr__(self, name):
        return getattr(self._moments, name)

    def sensitivities(self, face, rows):
        return NoColumns(self._moments.sensitivities(face, rows))


@pytest.mark.parametrize("solver", [joint, working_set])
def test_machine_by_machine_is_the_whole_factorisation(solver):
    problem, _ = problem_of("three classes", 90)
    assert problem.cone.degree < problem.dual.size // 2  # so that machines are taken one by one
    whole = SaddlePoint(WithoutColumns(problem.kernels), problem.dual)
    options = {"settings": TINY} if solver is working_set else {}
    found, expected = (solver(p, tol=1e-7, **options) for p in (problem, whole))
    assert found.status is expected.status is SolverStatus.OPTIMAL
    assert found.n_iter == expected.n_iter
    assert found.value == pytest.approx(expected.value, rel=1e-9)
    np.testing.assert_allclose(found.parameter, expected.parameter, atol=1e-5)
    steps = [[record.step for record in result.history] for result in (found, expected)]
    np.testing.assert_allclose(steps[0], steps[1], rtol=1e-4)


# ---- limits


@pytest.mark.parametrize("solver", [joint, working_set, simple_mkl, frank_wolfe])
def test_limits_keep_the_best_pair(solver):
    problem, _ = problem_of("classification", 150)
    for limit in ({"max_iter": 0}, {"time_limit": 1e-6}):
        result = solver(problem, tol=1e-9, **limit)
        assert result.status in (SolverStatus.MAX_ITER, SolverStatus.TIME_LIMIT)
        assert_certified(problem, result)


@pytest.mark.parametrize("solver", [joint, working_set, simple_mkl, frank_wolfe])
def test_an_interrupt_keeps_the_best_pair(solver):
    problem, _ = problem_of("classification", 100)

    def interrupt(record):
        if record.iteration == 1:
            raise KeyboardInterrupt

    result = solver(problem, tol=1e-12, callback=interrupt)
    assert result.status is SolverStatus.INTERRUPTED
    assert_certified(problem, result)


def test_an_unfinished_iteration_of_simple_mkl_is_not_lost(monkeypatch):
    problem, _ = problem_of("classification", 100)
    first = simple_mkl(problem, tol=1e-9, max_iter=0)
    calls = []
    at = problem.at

    def counted(w):
        calls.append(w)
        if len(calls) == 6:
            raise KeyboardInterrupt
        return at(w)

    monkeypatch.setattr(problem, "at", counted)
    result = simple_mkl(problem, tol=1e-9)
    assert result.status is SolverStatus.INTERRUPTED
    assert result.n_iter == 0
    assert result.value < first.value


@pytest.mark.parametrize("solver", [joint, working_set, simple_mkl, frank_wolfe])
def test_a_target_without_structure_is_solved_at_once(solver):
    problem, _ = problem_of("regression", 30)
    flat = SaddlePoint(problem.kernels, DualProblem.regression(np.zeros(30), 1.0, 0.1))
    result = solver(flat)
    assert result.status is SolverStatus.OPTIMAL
    assert result.gap == 0.0
    assert not result.w.any()


@pytest.mark.parametrize("solver", [joint, working_set, simple_mkl])
def test_a_start_that_is_optimal_is_kept(solver):
    problem, _ = problem_of("classification", 80)
    whole = working_set(problem, tol=1e-7)
    again = solver(problem, tol=1e-4, parameter0=whole.parameter, w0=whole.w)
    assert again.status is SolverStatus.OPTIMAL
    assert again.n_iter <= 1
    assert again.value == pytest.approx(whole.value, rel=1e-4)
    with pytest.raises(ValueError, match="parameter must be an array of"):
        solver(problem, parameter0=2.0 * whole.parameter)


def test_results_do_not_depend_on_free_memory(monkeypatch):
    """Nor does the code of kernels and solvers ask for it."""
    problem, _ = problem_of("classification", 120)
    plenty = working_set(problem, tol=1e-6, settings=TINY)
    monkeypatch.setattr("tessella.backend._memory.available_memory", lambda: 1)
    monkeypatch.setattr("tessella.backend._product_form.available_memory", lambda: 1)
    scarce = working_set(problem_of("classification", 120)[0], tol=1e-6, settings=TINY)
    np.testing.assert_array_equal(plenty.parameter, scarce.parameter)
    np.testing.assert_array_equal(plenty.w, scarce.w)
    for package in (tessella.kernels, tessella.solvers):
        modules = {inspect.getmodule(getattr(package, name)) for name in package.__all__}
        for module in modules - {None}:
            assert not hasattr(module, "available_memory")


def test_single_precision_is_certified_in_double(task):
    exact, _ = problem_of(task, 80)
    stored, _ = problem_of(task, 80, dtype=np.float32)
    result = working_set(stored, tol=1e-4)
    assert result.status is SolverStatus.OPTIMAL
    assert_certified(exact, result)


def test_one_kernel_has_nothing_to_learn():
    problem, _ = problem_of("regression", 60, kernels=KernelDictionary([Polynomial(2)]))
    exact = solve_dual(problem.kernels.gram(np.ones(1)), problem.dual, tol=1e-9)
    for solver in (joint, working_set, simple_mkl, frank_wolfe):
        result = solver(problem, tol=1e-6)
        assert result.status is SolverStatus.OPTIMAL
        np.testing.assert_array_equal(result.parameter, [1.0])
        assert result.value == pytest.approx(exact.objective, rel=1e-5)
