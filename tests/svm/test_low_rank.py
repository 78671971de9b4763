"""Kernel matrices of low rank: their factors, and machines that are solved with them."""

from __future__ import annotations

import itertools
import time
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from reference.programs import svm_primal_value
from svm.test_interior import WITHOUT, nearly_linear

from tessella.backend import KernelOnDemand
from tessella.kernels import TessellatedKernels
from tessella.svm import (
    DualProblem,
    DualSettings,
    DualStatus,
    LowRankMatrix,
    _low_rank,
    interior_point,
    low_rank,
    solve_dual,
)

AT_ONCE = DualSettings(interior_point_share=0.0)


def wide_kernel(m=200, n=24, seed=0):
    """The matrix of many features, and the same as rows on demand."""
    kernels = TessellatedKernels(1, 0.3).bind(np.random.default_rng(seed).random((m, n)))
    P = kernels.cone.centre
    rows = KernelOnDemand()
    rows.hold(kernels.product_form(kernels.cone.factors(P)))
    return kernels.gram(P), rows


def targets(m, seed=1):
    return np.random.default_rng(seed).standard_normal(m)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_factor_misses_at_most_what_was_asked(dtype):
    K = nearly_linear()[0].astype(dtype)
    factor = low_rank(K, 64, 1e-6)
    product = factor.Z.T @ factor.Z + np.diag(factor.rest)
    assert factor.rank <= 12
    assert factor.rest.sum() <= 1e-6 * np.trace(K)
    assert np.linalg.norm(product - K, "nuc") <= 3e-6 * np.trace(K)
    np.testing.assert_allclose(factor.diagonal(), K.diagonal(), rtol=1e-5)
    v = targets(len(K))
    np.testing.assert_allclose(factor @ v, product @ v, rtol=1e-12, atol=1e-12)


def test_equal_eigenvalues_are_no_slow_decay():
    """The first rows of the factor miss most of it, and the last one misses nothing."""
    basis = np.linalg.qr(np.random.default_rng(0).standard_normal((120, 50)))[0]
    factor = low_rank(basis @ basis.T, 64, 1e-6)
    assert factor.rank == 50


def test_the_search_for_a_factor_ends_at_a_deadline(monkeypatch):
    """The clock goes on by a second with each row of the factor."""
    basis = np.random.default_rng(0).standard_normal((80, 20))
    clock = itertools.count()
    monkeypatch.setattr(time, "monotonic", lambda: float(next(clock)))
    assert low_rank(basis @ basis.T, 64, 1e-6, deadline=19.0) is None
    assert next(clock) == 20
    factor = low_rank(basis @ basis.T, 64, 1e-6, deadline=60.0)
    assert factor is not None
    assert factor.rank == 20


def test_a_long_tail_of_eigenvalues_has_no_factor(monkeypatch):
    kernels = TessellatedKernels(1, 0.3).bind(np.random.default_rng(0).random((600, 3)))
    read, row_of = [], _low_rank._row
    monkeypatch.setattr(_low_rank, "_row", lambda K, k, n: read.append(k) or row_of(K, k, n))
    assert low_rank(kernels.gram(kernels.cone.centre), 300, 1e-6) is None
    assert len(read) <= 64  # which is known early


def test_a_tail_below_what_the_solver_can_use_is_accepted():
    """The whole tolerance would need all rows; what is missing is small enough anyway."""
    K = nearly_linear()[0]
    K = K + 3e-6 * np.trace(K) / len(K) * np.eye(len(K))
    factor = low_rank(K, 64, 1e-6)
    assert factor.rank <= 64
    np.testing.assert_allclose(factor.diagonal(), K.diagonal(), rtol=1e-9)
    assert low_rank(K + 1e-3 * np.trace(K) / len(K) * np.eye(len(K)), 64, 1e-6) is None


@pytest.mark.parametrize("bad", [0.0, np.inf, np.nan])
def test_a_matrix_without_a_finite_trace_has_no_factor(bad):
    assert low_rank(np.full((4, 4), bad), 4, 1e-6) is None


def test_rows_on_demand_have_the_same_factor():
    K, rows = wide_kernel()
    np.testing.assert_allclose(rows.diagonal(), K.diagonal(), rtol=1e-12)
    np.testing.assert_allclose(rows.row(7), K[7], rtol=1e-12)
    ours, expected = low_rank(rows, 100, 1e-6), low_rank(K, 100, 1e-6)
    assert 24 <= ours.rank == expected.rank < 60
    np.testing.assert_allclose(np.abs(ours.Z), np.abs(expected.Z), atol=1e-6 * np.abs(K).max())


@pytest.mark.parametrize("C", [0.1, 10.0, 1e3])
def test_interior_point_steps_are_those_of_the_whole_matrix(C):
    rng = np.random.default_rng(0)
    Z, rest = rng.standard_normal((5, 80)), 0.01 * rng.random(80)
    factor = LowRankMatrix(Z, rest)
    dual = DualProblem.regression(targets(80), C, 0.1)
    ours, n_ours = interior_point(factor, dual, np.zeros(80), 1e-8)
    whole, n_whole = interior_point(Z.T @ Z + np.diag(rest), dual, np.zeros(80), 1e-8)
    assert n_ours == n_whole
    np.testing.assert_allclose(ours, whole, atol=1e-5 * C)


@pytest.mark.parametrize("demand", [False, True])
@pytest.mark.parametrize("C", [1.0, 1e4])
def test_a_wide_kernel_is_solved_in_few_steps(C, demand):
    K, rows = wide_kernel()
    dual = DualProblem.classification(np.sign(targets(len(K))), C)
    ours = solve_dual(rows if demand else K, dual, tol=1e-5, settings=AT_ONCE)
    assert ours.status is DualStatus.OPTIMAL
    assert ours.objective == pytest.approx(svm_primal_value(K, dual), rel=2e-5)
    assert ours.n_iter < solve_dual(K, dual, tol=1e-5, settings=WITHOUT).n_iter


def test_a_worse_point_of_the_factor_is_not_taken(monkeypatch):
    K, _ = wide_kernel()
    dual = DualProblem.regression(targets(len(K)), 10.0, 0.1)
    monkeypatch.setattr("tessella.svm._dual.interior_point", lambda *_: (np.zeros(dual.size), 1))
    once = DualSettings(interior_point_share=0.0, max_interior_point_runs=0)
    usual, ours = solve_dual(K, dual, settings=WITHOUT), solve_dual(K, dual, settings=once)
    assert ours.status is DualStatus.OPTIMAL
    assert ours.objective == pytest.approx(usual.objective, rel=1e-6)
    assert ours.n_iter < 1.5 * usual.n_iter  # not all over again


def test_factors_cannot_be_changed():
    factor = LowRankMatrix(np.ones((1, 2)), np.zeros(2))
    with pytest.raises(FrozenInstanceError):
        factor.rest = np.ones(2)
