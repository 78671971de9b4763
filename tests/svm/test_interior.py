"""The interior point method that takes over where other steps make slow progress."""

from __future__ import annotations

import time

import numpy as np
import pytest
from reference.programs import svm_primal_value

from tessella.backend import KernelOnDemand
from tessella.kernels import TessellatedKernels
from tessella.svm import (
    DualProblem,
    DualSettings,
    DualStatus,
    interior_point,
    relative_gap,
    solve_dual,
)


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


WHOLE = DualSettings(low_rank_entries=0)  # no factor of low rank
WITHOUT = DualSettings(low_rank_entries=0, max_interior_point_runs=0)


@pytest.mark.parametrize("settings", [WHOLE, DualSettings()], ids=["whole", "low rank"])
def test_interior_point_method_takes_over_a_slow_solve(make_dual, settings):
    K, dual = nearly_linear()[0], make_dual(1e5)
    helped = solve_dual(K, dual, tol=1e-5, settings=settings)
    assert helped.status is DualStatus.OPTIMAL
    alone = solve_dual(K, dual, tol=1e-5, max_iter=helped.n_iter, settings=WITHOUT)
    assert helped.gap <= 1e-5 < alone.gap
    assert helped.objective > alone.objective


def test_interior_point_method_leaves_an_easy_solve_alone(make_dual):
    K, dual = nearly_linear()[0] + np.eye(300), make_dual(1.0)
    usual, alone = solve_dual(K, dual), solve_dual(K, dual, settings=WITHOUT)
    assert usual.gap <= 1e-6
    assert (usual.n_iter, usual.n_newton) == (alone.n_iter, alone.n_newton)
    assert (usual.w == alone.w).all()


def test_single_precision(make_dual):
    K, dual = nearly_linear()[0], make_dual(1e4)
    single = solve_dual(K.astype(np.float32), dual, tol=1e-3)
    double = solve_dual(K, dual, tol=1e-3)
    assert relative_gap(double.primal, single.objective) < 5e-3


def test_rows_on_demand(make_dual):
    """The method runs at once, on a matrix that it has to ask for."""
    at_once = DualSettings(interior_point_share=0.0, low_rank_entries=0)
    kernels = TessellatedKernels().bind(np.random.default_rng(2).random((300, 2)))
    P, K, dual = np.eye(kernels.n_params), KernelOnDemand(), make_dual(100.0)
    K.hold(kernels.product_form(kernels.cone.factors(P)))
    by_rows = solve_dual(K, dual, settings=at_once)
    whole = solve_dual(kernels.gram(P), dual, settings=WITHOUT)
    assert by_rows.status is DualStatus.OPTIMAL
    assert by_rows.objective == pytest.approx(whole.objective, rel=1e-5)
    assert by_rows.n_newton > 0
    assert by_rows.n_iter < whole.n_iter


def test_deadline_in_the_past_takes_one_step_at_most(make_dual):
    K, dual = nearly_linear()[0], make_dual(1e4)
    start, past = np.zeros(dual.size), time.monotonic() - 1.0
    early, n_steps = interior_point(K, dual, start, 1e-12, deadline=past)
    late, _ = interior_point(K, dual, start, 1e-12)
    assert n_steps == 1
    values = [dual.kappa(v) - 0.5 * v @ K @ v for v in map(dual.feasible, (early, late))]
    assert values[0] < values[1]
