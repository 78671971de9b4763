"""Machines on parts of the same rows, solved in one compiled loop."""

from __future__ import annotations

import numpy as np
import pytest

from tessella.backend import MachineForms, ProductForm
from tessella.svm import (
    DualProblem,
    DualStatus,
    HingeLoss,
    SquaredLoss,
    TubeLoss,
    _machines,
    best_intercept,
    best_intercepts,
    solve_dual,
    solve_machines,
)

SIZES = (40, 7, 25, 2)


def machines(seed: int = 0, m: int = 60) -> tuple[MachineForms, DualProblem]:
    rng = np.random.default_rng(seed)
    x = rng.random((m, 3))
    high, thin = rng.standard_normal((m, 2)), rng.standard_normal((m, 2))
    form = ProductForm(1.0 - 0.5 * x, high, 0.5 * thin, thin)
    rows = np.concatenate([rng.permutation(m)[:size] for size in SIZES]).astype(np.int64)
    losses = []
    for size in SIZES[:2]:
        labels = np.where(np.arange(size) % 3 == 0, 1.0, -1.0)
        losses.append(HingeLoss(labels, rng.random(size) + 0.5))
    losses += [TubeLoss(rng.standard_normal(size), 2.0, 0.1) for size in SIZES[2:]]
    starts = np.concatenate([[0], np.cumsum(SIZES)])
    return MachineForms(form, rows, starts), DualProblem(*losses)


def matrix_of(forms: MachineForms, k: int) -> np.ndarray:
    form = forms.machine(k)
    K = np.empty((len(form), len(form)))
    form.matrix(K, 1)
    return K


def solve(forms, dual, **changes):
    options = {"tol": 1e-9, "time_limit": None, "n_jobs": 1, "w0": np.zeros(dual.size)} | changes
    w0 = options.pop("w0")
    return solve_machines(forms, dual, lambda k: matrix_of(forms, k), w0, **options)


def check(solution, forms, dual):
    objective = 0.0
    for k, (rows, own) in enumerate(zip(dual.machines, dual.each, strict=True)):
        K, w = matrix_of(forms, k), solution.w[rows]
        best = solve_dual(K, own, tol=1e-11)
        assert own.kappa(w) - 0.5 * w @ K @ w == pytest.approx(best.objective, rel=1e-8)
        objective += best.objective
        intercept, _ = best_intercept(own, K @ w)
        residual = own.linear - K @ w - intercept
        np.testing.assert_allclose(solution.residual[rows], residual, atol=1e-6)
    assert solution.objective == pytest.approx(objective, rel=1e-8)


def test_they_are_those_of_the_solver_for_one_machine():
    forms, dual = machines()
    solution = solve(forms, dual)
    assert solution.status is DualStatus.OPTIMAL
    check(solution, forms, dual)
    again = solve(forms, dual, w0=solution.w)
    assert again.n_iter <= 0.1 * solution.n_iter
    check(again, forms, dual)


@pytest.mark.parametrize(
    ("name", "value"), [("LARGEST", 20), ("LARGEST", 1), ("_STEPS_PER_SAMPLE", 1)]
)
def test_the_solver_for_one_machine_goes_on_with_large_and_slow_ones(name, value, monkeypatch):
    forms, dual = machines()
    monkeypatch.setattr(_machines, name, value)
    check(solve(forms, dual), forms, dual)


def test_results_do_not_depend_on_the_number_of_threads():
    forms, dual = machines(m=60)
    # Large enough for several threads to pay.
    rng = np.random.default_rng(1)
    x = rng.random((300, 40))
    none = np.empty((300, 0))
    forms = MachineForms(
        ProductForm(1.0 - 0.2 * x, np.ones((300, 1)), none, none),
        np.concatenate([rng.permutation(300)[:250] for _ in range(9)]).astype(np.int64),
        250 * np.arange(10),
    )
    labels = np.where(x[:, 0] > 0.5, 1.0, -1.0)
    dual = DualProblem(
        *(HingeLoss(labels[forms.rows[250 * k : 250 * (k + 1)]], 3.0) for k in range(9))
    )
    one, two = (solve(forms, dual, n_jobs=threads) for threads in (1, 2))
    np.testing.assert_array_equal(one.w, two.w)
    np.testing.assert_array_equal(one.residual, two.residual)
    for threads in (1, 2):
        blocks = forms.blocks(threads).blocks
        for k, block in enumerate(blocks):
            np.testing.assert_array_equal(block, matrix_of(forms, k))


def test_machines_are_not_begun_after_the_time_is_over():
    forms, dual = machines()
    solution = solve(forms, dual, time_limit=0.0)
    assert solution.status is DualStatus.TIME_LIMIT
    np.testing.assert_allclose(dual.sums(solution.w), 0.0, atol=1e-12)


def test_some_machines():
    forms, _ = machines()
    part = forms.some(np.array([False, True, False, True]))
    np.testing.assert_array_equal(part.sizes, [7, 2])
    for k, of in ((0, 1), (1, 3)):
        np.testing.assert_array_equal(matrix_of(part, k), matrix_of(forms, of))


def test_intercepts_of_many_machines_are_those_of_each():
    rng = np.random.default_rng(3)
    losses = []
    for size in (1, 2, 30, 31):
        labels = np.sign(rng.standard_normal(size))
        weights = np.where(rng.random(size) < 0.2, 0.0, np.round(rng.random(size), 1))
        losses += [HingeLoss(labels, weights), TubeLoss(np.round(labels, 1), weights, 0.25)]
    losses.append(HingeLoss(np.ones(4), np.zeros(4)))  # nothing has a weight
    dual = DualProblem(*losses)
    scores = np.round(rng.standard_normal(dual.size), 1)  # with ties
    intercepts, loss = best_intercepts(dual, scores)
    expected = [
        best_intercept(own, scores[rows])
        for own, rows in zip(dual.each, dual.machines, strict=True)
    ]
    np.testing.assert_array_equal(intercepts, [own for own, _ in expected])
    assert loss == pytest.approx(sum(own for _, own in expected), rel=1e-12)
    w = dual.feasible(rng.standard_normal(dual.size))
    parts = [own.kappa(w[rows]) for own, rows in zip(dual.each, dual.machines, strict=True)]
    assert dual.kappa(w) == pytest.approx(sum(parts), rel=1e-12)


def test_machines_of_several_kinds_are_asked_one_by_one():
    dual = DualProblem(HingeLoss([1.0, -1.0], 1.0), SquaredLoss([0.0, 2.0], 1.0))
    intercepts, _ = best_intercepts(dual, np.array([0.5, 0.5, 0.0, 1.0]))
    assert intercepts[1] == pytest.approx(0.5)


@pytest.mark.parametrize("excess", [0.3, -0.2])
def test_feasible_points_of_several_machines(excess):
    _, dual = machines()
    w = dual.feasible(np.full(dual.size, excess))
    np.testing.assert_allclose(dual.sums(w), 0.0, atol=1e-13)
    for own, rows in zip(dual.each, dual.machines, strict=True):
        np.testing.assert_array_equal(w[rows], own.feasible(np.full(len(own.linear), excess)))
