"""The interior point method that takes over where pair steps creep."""

from __future__ import annotations

import time

import numpy as np
import pytest
from reference.programs import svm_primal_value

from tessella.svm import DualProblem, DualStatus, _dual, relative_gap, solve_dual
from tessella.svm._interior import interior_point


def nearly_linear(m=300, rank=12, seed=0):
    """A kernel of low rank that cannot separate its classes: hard for large C."""
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((m, rank)) * np.logspace(0, -3, rank)
    labels = np.where(features @ rng.standard_normal(rank) + rng.standard_normal(m) > 0, 1.0, -1.0)
    return features @ features.T, labels


@pytest.fixture(params=["classification", "regression"])
def make_dual(request):
    _, labels = nearly_linear()
    if request.param == "classification":
        return lambda C: DualProblem.classification(labels, C)
    targets = labels + np.random.default_rng(1).standard_normal(len(labels))
    return lambda C: DualProblem.regression(targets, C, 0.1)


@pytest.mark.parametrize("C", [0.1, 10.0, 1e3, 1e5])
@pytest.mark.parametrize("warm", [False, True])
def test_value_for_any_size_of_the_box(make_dual, C, warm):
    K, dual = nearly_linear()[0], make_dual(C)
    start = solve_dual(K, dual, max_iter=500).w if warm else np.zeros(dual.size)
    found, n_steps = interior_point(K, dual, start, 1e-8)
    assert 0 < n_steps <= 40
    w = dual.feasible(found)
    attained = dual.kappa(w) - 0.5 * w @ K @ w
    assert attained == pytest.approx(svm_primal_value(K, dual), rel=2e-5)


def test_creeping_solves_are_rescued(make_dual, monkeypatch):
    K, dual = nearly_linear()[0], make_dual(1e5)
    rescued = solve_dual(K, dual, tol=1e-5)
    assert rescued.status is DualStatus.OPTIMAL
    monkeypatch.setattr(_dual, "_MAX_RESCUES", 0)
    left_alone = solve_dual(K, dual, tol=1e-5, max_iter=rescued.n_iter)
    assert rescued.gap <= 1e-5 < left_alone.gap
    assert rescued.objective > left_alone.objective


def test_easy_solves_are_left_alone(make_dual, monkeypatch):
    def never(*args):
        raise AssertionError("called")

    monkeypatch.setattr(_dual, "interior_point", never)
    K = nearly_linear()[0] + np.eye(300)
    assert solve_dual(K, make_dual(1.0), tol=1e-6).gap <= 1e-6


def test_single_precision_and_rows_on_demand(make_dual):
    K, dual = nearly_linear()[0], make_dual(1e4)
    single = solve_dual(K.astype(np.float32), dual, tol=1e-3)
    double = solve_dual(K, dual, tol=1e-3)
    assert relative_gap(double.primal, single.objective) < 5e-3


def test_deadline_in_the_past_takes_one_step_at_most(make_dual):
    K, dual = nearly_linear()[0], make_dual(1e4)
    start, past = np.zeros(dual.size), time.monotonic() - 1.0
    early, n_steps = interior_point(K, dual, start, 1e-12, deadline=past)
    late, _ = interior_point(K, dual, start, 1e-12)
    assert n_steps == 1
    values = [dual.kappa(v) - 0.5 * v @ K @ v for v in map(dual.feasible, (early, late))]
    assert values[0] < values[1]
