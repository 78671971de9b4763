from __future__ import annotations

import numpy as np
import pytest
from reference.programs import multiple_kernel_value
from reference.svm import assert_feasible, primal_value
from reference.weights import TASKS, block_matrices, machines_of, problem_of, rows_of

from tessella.multiple_kernels import KernelDictionary, _learned
from tessella.multiple_kernels._bound import BoundDictionary
from tessella.multiple_kernels._fixed import given
from tessella.multiple_kernels._learned import learned
from tessella.multiple_kernels._line import KernelLine
from tessella.multiple_kernels._problem import WeightsProblem
from tessella.multiple_kernels._simple import simple
from tessella.solvers import SolverStatus

# ---- what a problem says


def test_matrix_scores_and_forms_by_their_definitions(task):
    problem, X = problem_of(task, 45)
    rng = np.random.default_rng(1)
    weights = rng.dirichlet(np.ones(len(problem.kernels)))
    w = problem.dual.feasible(rng.standard_normal(problem.dual.size))
    blocks = block_matrices(problem, X)
    K = np.tensordot(weights, blocks, 1)
    np.testing.assert_allclose(problem.kernels.scores(weights, w), K @ w, rtol=1e-10, atol=1e-12)
    forms = np.einsum("i,kij,j->k", w, blocks, w)
    np.testing.assert_allclose(problem.kernels.forms(w), forms, rtol=1e-10, atol=1e-12)
    whole = problem.kernels.matrix(weights)
    np.testing.assert_array_equal(whole, whole.T)
    products = problem.kernels.sample_products([0, 3], w)
    np.testing.assert_allclose(products, blocks[[0, 3]] @ w, rtol=1e-10, atol=1e-12)


def test_tiles_and_threads_change_nothing(monkeypatch):
    from tessella.multiple_kernels import _dictionary

    problem, _ = problem_of("classification", 60)
    threaded, _ = problem_of("classification", 60, n_jobs=3)
    w = problem.dual.feasible(np.random.default_rng(0).standard_normal(60))
    weights = np.full(len(problem.kernels), 1.0 / len(problem.kernels))
    forms, K = problem.kernels.forms(w), problem.kernels.matrix(weights)
    monkeypatch.setattr(_dictionary, "_TILE_ENTRIES", 200)
    np.testing.assert_allclose(threaded.kernels.forms(w), forms, rtol=1e-12)
    np.testing.assert_allclose(threaded.kernels.matrix(weights), K, rtol=1e-12)
    one, _ = problem_of("classification", 60)
    np.testing.assert_array_equal(one.kernels.forms(w), threaded.kernels.forms(w))


def test_certificate_by_its_definition(task):
    problem, X = problem_of(task, 45)
    rng = np.random.default_rng(2)
    weights = rng.dirichlet(np.ones(len(problem.kernels)))
    w = problem.dual.feasible(rng.standard_normal(problem.dual.size))
    certificate = problem.certificate(weights, w)
    blocks = block_matrices(problem, X)
    forms = np.einsum("i,kij,j->k", w, blocks, w)
    assert certificate.lower == pytest.approx(problem.dual.kappa(w) - 0.5 * forms.max(), rel=1e-10)
    b = certificate.intercept[problem.dual.machine_of]
    upper = primal_value(np.tensordot(weights, blocks, 1), problem.dual, w, b)
    assert certificate.upper == pytest.approx(upper, rel=1e-10)
    fixed = WeightsProblem(problem.kernels, weights).certificate(weights, w)
    assert fixed.lower == pytest.approx(problem.dual.kappa(w) - 0.5 * weights @ forms, rel=1e-10)


# ---- optima


@pytest.mark.parametrize(("solver", "tol"), [(learned, 1e-7), (simple, 1e-4)])
def test_value_is_that_of_the_convex_program(task, solver, tol):
    problem, X = problem_of(task, 40)
    result = solver(problem, tol=tol)
    optimum = multiple_kernel_value(block_matrices(problem, X), problem.dual)
    assert result.status is SolverStatus.OPTIMAL
    assert result.gap <= tol
    slack = 1e-7 * optimum  # of the reference
    assert result.bound - slack <= optimum <= result.value + slack
    assert result.value == pytest.approx(optimum, rel=2 * tol + 1e-7)
    assert result.P.min() >= 0
    assert result.P.sum() == pytest.approx(1.0, rel=1e-12)
    for machine, own in zip(problem.dual.each, problem.dual.machines, strict=True):
        assert_feasible(machine, result.w[own])


def test_simple_and_learned_agree(task):
    problem, _ = problem_of(task, 150)
    fast, slow = learned(problem, tol=1e-6), simple(problem, tol=1e-3)
    assert slow.gap <= 1e-3
    assert fast.bound <= slow.value
    assert slow.value == pytest.approx(fast.value, rel=1e-3)
    assert fast.n_svm < 0.3 * slow.n_svm


def test_a_line_of_weights_has_the_matrices_and_slopes_of_its_kernels(task):
    problem, _ = problem_of(task, 60)
    kernels, n = problem.kernels, len(problem.kernels)
    rng = np.random.default_rng(3)
    direction = rng.normal(size=n)
    direction -= direction.mean()
    line = KernelLine(kernels, np.full(n, 1.0 / n), direction)
    w = problem.dual.feasible(rng.normal(size=problem.dual.size))
    for dropped in (0, 5):
        falling = np.flatnonzero(line.direction < 0)
        ends = -line.weights[falling] / line.direction[falling]
        weights = line.weights_at(float(ends.min()))
        assert weights[falling[np.argmin(ends)]] == 0.0
        kept = kernels.matrix(weights).copy()
        line.stand_at(weights)
        direction = line.direction.copy()
        direction[[falling[np.argmin(ends)], dropped]] = 0.0
        line.turn(direction)
        assert line.slope(w) == pytest.approx(-0.5 * problem.at(w).forms @ direction, rel=1e-10)
        kernels.forget()
        np.testing.assert_allclose(kept, kernels.matrix(weights), rtol=1e-12)


def test_simplemkl_does_not_jam_at_weights_of_rounding():
    """Columns that repeat each other: their kernels reach zero together, but for rounding."""
    X, signal = rows_of(120)
    X = np.column_stack([X, 3.0 * X[:, 0], X[:, 1] + 1e-9 * X[:, 2]])
    fitted = KernelDictionary.standard().fit(X)
    machines = machines_of("classification", signal, 10.0)
    problem = WeightsProblem(BoundDictionary(fitted, X, machines, 1))
    result = simple(problem, tol=1e-2)
    assert result.status is SolverStatus.OPTIMAL
    assert result.value == pytest.approx(learned(problem, tol=1e-5).value, rel=1e-2)


@pytest.mark.parametrize("C", [0.1, 100.0])
def test_samples_that_are_held_do_not_spoil_the_optimum(task, C, monkeypatch):
    """With so few allowed to move, all of the way from a subsample to everything is taken."""
    monkeypatch.setattr(_learned, "_ALL_SAMPLES", 30)
    monkeypatch.setattr(_learned, "_SUBSAMPLE", 40)
    monkeypatch.setattr(_learned, "_FIRST_KERNELS", 3)
    problem, X = problem_of(task, 300, C=C)
    result = learned(problem, tol=1e-6)
    assert result.status is SolverStatus.OPTIMAL
    blocks = block_matrices(problem, X)
    K = np.tensordot(result.P, blocks, 1)
    b = result.intercept[problem.dual.machine_of]
    assert result.value == pytest.approx(primal_value(K, problem.dual, result.w, b), rel=1e-9)
    forms = np.einsum("i,kij,j->k", result.w_bound, blocks, result.w_bound)
    lower = problem.dual.kappa(result.w_bound) - 0.5 * forms.max()
    assert result.bound == pytest.approx(lower, rel=1e-9)


def test_blocks_that_are_not_kept_give_the_same_weights(monkeypatch):
    problem, _ = problem_of("classification", 100)
    kept = learned(problem, tol=1e-6)
    monkeypatch.setattr("tessella.multiple_kernels._joint._MOST_BLOCKS", 0)
    computed = learned(problem, tol=1e-6)
    np.testing.assert_allclose(computed.P, kept.P, atol=1e-5)


def test_given_weights_have_the_gap_of_their_svm():
    problem, _ = problem_of("regression", 80)
    even = np.full(len(problem.kernels), 1.0 / len(problem.kernels))
    result = given(WeightsProblem(problem.kernels, even), tol=1e-8)
    assert result.gap <= 1e-8
    np.testing.assert_array_equal(result.P, even)
    assert learned(problem, tol=1e-6).value < result.value


# ---- limits


@pytest.mark.parametrize("solver", [learned, simple])
def test_limits_keep_the_best_pair(solver):
    problem, _ = problem_of("classification", 150)
    for limit in ({"max_iter": 0}, {"time_limit": 1e-6}):
        result = solver(problem, tol=1e-9, **limit)
        assert result.status in (SolverStatus.MAX_ITER, SolverStatus.TIME_LIMIT)
        assert result.gap == problem_gap(problem, result)


def problem_gap(problem, result):
    upper = problem.certificate(result.P, result.w).upper
    lower = problem.at(result.w_bound).lower
    assert result.value == pytest.approx(upper, rel=1e-12)
    assert result.bound == pytest.approx(lower, rel=1e-12)
    return result.gap


@pytest.mark.parametrize("solver", [learned, simple])
def test_an_interrupt_keeps_the_best_pair(solver):
    problem, _ = problem_of("classification", 100)

    def interrupt(record):
        if record.iteration == 1:
            raise KeyboardInterrupt

    result = solver(problem, tol=1e-12, callback=interrupt)
    assert result.status is SolverStatus.INTERRUPTED
    assert np.isfinite(result.gap)


def test_an_unfinished_iteration_of_simplemkl_is_not_lost(monkeypatch):
    problem, _ = problem_of("classification", 100)
    first = simple(problem, tol=1e-9, max_iter=0)
    calls = []
    matrices = problem.kernels.machine_matrices

    def counted(weights):
        calls.append(weights)
        if len(calls) == 6:
            raise KeyboardInterrupt
        return matrices(weights)

    monkeypatch.setattr(problem.kernels, "machine_matrices", counted)
    result = simple(problem, tol=1e-9)
    assert result.status is SolverStatus.INTERRUPTED
    assert result.n_iter == 0
    assert result.value < first.value


def test_a_target_without_structure_is_solved_at_once():
    problem, _ = problem_of(TASKS[1], 30)
    flat = problem.dual.__class__.regression(np.zeros(30), 1.0, 0.1)
    object.__setattr__(problem.kernels.machines, "dual", flat)
    result = learned(WeightsProblem(problem.kernels))
    assert result.gap == 0.0
    assert not result.w.any()
