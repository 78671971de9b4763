"""Prepared predictions against kernel matrices, and monomials against loops."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tessella.kernels import (
    IntegralKernels,
    KernelSet,
    LearnedKernel,
    PolynomialKernels,
    Predictor,
    TessellatedKernels,
    UnitBox,
)


def cosines(z, X):
    phase = z @ X.T
    return np.stack([np.cos(phase), np.sin(phase)], axis=-1)


@dataclass
class Scaled(KernelSet):
    """A set that has nothing but a kernel matrix: P of side one times the linear kernel."""

    factor: float = 2.0

    def count_params(self, n_features):
        return 1

    def bind(self, X, *, dtype=np.float64, n_jobs=None):
        raise NotImplementedError

    def memory_estimate(self, n_samples, n_features, itemsize):
        return 0

    def cross(self, X, Y, P, *, n_jobs=None):
        return self.factor * P[0, 0] * (np.asarray(X) @ np.asarray(Y).T)

    def diag(self, X, P):
        return self.factor * P[0, 0] * (np.asarray(X) ** 2).sum(axis=1)


SETS = [
    TessellatedKernels(1, 0.5),
    TessellatedKernels(2, 0.1),
    TessellatedKernels(0, 0.5),
    TessellatedKernels(1, 0.5, monomials="xz"),
    TessellatedKernels(1, 0.5, balance="pointwise"),
    TessellatedKernels(1, 0.5, out_of_box="clip"),
    PolynomialKernels(2),
    IntegralKernels(cosines, lower=[-5.0, -5.0], upper=[5.0, 5.0], nodes=32),
    Scaled(),
]


@pytest.fixture(
    params=SETS, ids=[f"{type(kernels).__name__}{place}" for place, kernels in enumerate(SETS)]
)
def prepared(request):
    kernels, rng = request.param, np.random.default_rng(0)
    Y, X = rng.random((40, 2)), rng.uniform(-1.0, 2.0, (60, 2))
    U = rng.standard_normal((kernels.count_params(2), 2))
    return kernels, U @ U.T, X, Y


@pytest.mark.parametrize("columns", [1, 3])
def test_scores_are_the_kernel_matrix_times_coefficients(prepared, columns):
    kernels, P, X, Y = prepared
    coefficients = np.random.default_rng(1).standard_normal((len(Y), columns))
    coefficients[::3] = 0.0
    expected = kernels.cross(X, Y, P) @ coefficients
    predictor = kernels.predictor(P, Y, coefficients)
    assert isinstance(predictor, Predictor)
    scale = np.abs(expected).max()
    for rows in (X, X[:1], X[:0], X):  # the last time to see that nothing is used up
        found = predictor.scores(rows)
        assert found.shape == (len(rows), columns)
        np.testing.assert_allclose(found, expected[: len(rows)], rtol=1e-10, atol=1e-12 * scale)
    one = kernels.scores(X, Y, P, coefficients[:, 0])
    np.testing.assert_allclose(one, expected[:, 0], rtol=1e-10, atol=1e-12 * scale)


def test_a_learned_kernel_scales_its_rows(prepared):
    kernels, P, X, Y = prepared
    kernel = LearnedKernel(kernels, P, UnitBox.fit(10.0 * Y))
    w = np.random.default_rng(1).standard_normal((len(Y), 2))
    expected = kernel(10.0 * X, 10.0 * Y) @ w
    scale = np.abs(expected).max()
    found = kernel.predictor(10.0 * Y, w).scores(10.0 * X)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12 * scale)
    np.testing.assert_array_equal(kernel.scores(10.0 * X, 10.0 * Y, w), found)
    vector = kernel.scores(10.0 * X, 10.0 * Y, w[:, 0])
    np.testing.assert_allclose(vector, expected[:, 0], rtol=1e-10, atol=1e-12 * scale)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 4), st.integers(0, 3), st.integers(0, 5))
def test_monomials_are_products_of_powers(n_variables, degree, n_rows):
    X = np.random.default_rng(0).uniform(-2.0, 2.0, (n_rows, n_variables))
    powers = [p for p in product(range(degree + 1), repeat=n_variables) if sum(p) <= degree]
    values = PolynomialKernels(degree).features(X)
    assert values.shape == (n_rows, 1, len(powers))
    # Every monomial is there once, those of lower degree first.
    point = np.random.default_rng(1).uniform(1.5, 2.0, (1, n_variables))
    there = PolynomialKernels(degree).features(point)[0, 0]
    here = [np.prod([x**e for x, e in zip(point[0], power, strict=True)]) for power in powers]
    order = [int(np.abs(there[column] - here).argmin()) for column in range(len(powers))]
    assert sorted(order) == list(range(len(powers)))
    totals = [sum(powers[place]) for place in order]
    assert totals == sorted(totals)
    for row in range(n_rows):
        for column, place in enumerate(order):
            by_hand = np.prod([x**e for x, e in zip(X[row], powers[place], strict=True)])
            assert values[row, 0, column] == pytest.approx(by_hand, rel=1e-14)


@pytest.mark.parametrize("n_columns", [1, 2])
def test_wide_rows_are_predicted_a_few_at_a_time(n_columns, monkeypatch):
    rng = np.random.default_rng(0)
    X, Y = rng.random((7, 3)), rng.random((5, 3))
    coefficients = rng.standard_normal((5, n_columns))
    predictor = TessellatedKernels().predictor(np.eye(8), Y, coefficients)
    whole = predictor.scores(X)
    monkeypatch.setattr("tessella.kernels._predictor._TILE_BYTES", 2 * 8 * 4 * 4)
    np.testing.assert_allclose(predictor.scores(X), whole, rtol=1e-13)
    assert predictor.scores(X[:0]).shape == (0, n_columns)
