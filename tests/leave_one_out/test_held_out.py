"""The error of held-out rows and its gradient, against linear systems and finite differences."""

from __future__ import annotations

import numpy as np
import pytest

from tessella.automatic import FAMILIES
from tessella.leave_one_out import (
    NotPositiveDefiniteError,
    held_out_gradient,
    held_out_predictions,
)

RNG = np.random.default_rng(3)
M, FITTED = 26, 17
A = RNG.random((M, 3))
Y = np.column_stack([np.sin(5 * A[:, 0]), A[:, 1] * A[:, 2], RNG.normal(size=M)])
WEIGHT = RNG.uniform(0.3, 3.0, M)
SCALES = np.array([0.7, -0.4, 1.3])
CASES = pytest.mark.parametrize(
    ("outputs", "weight"), [(1, np.ones(M)), (3, WEIGHT)], ids=["plain", "weights"]
)


def predicted(K, Y, regularisation, weight):
    """Predictions of the last rows, by one linear system with the intercepts."""
    system = np.ones((FITTED + 1, FITTED + 1))
    system[:-1, :-1] = K[:FITTED, :FITTED] + np.diag(regularisation / weight[:FITTED])
    system[-1, -1] = 0.0
    solution = np.linalg.solve(system, np.vstack([Y[:FITTED], np.zeros((1, Y.shape[1]))]))
    return K[FITTED:, :FITTED] @ solution[:-1] + solution[-1]


@CASES
@pytest.mark.parametrize("regularisation", [1e-4, 0.1, 10.0])
def test_predictions_are_those_of_the_linear_system(outputs, weight, regularisation):
    K = FAMILIES["gaussian"].gram(A, SCALES)
    found = held_out_gradient(K, Y[:, :outputs], regularisation, weight, FITTED)
    expected = predicted(K, Y[:, :outputs], regularisation, weight)
    np.testing.assert_allclose(found.predictions, expected, rtol=1e-7, atol=1e-10)
    alone = held_out_predictions(
        K[:, :FITTED], Y[:FITTED, :outputs], regularisation, weight[:FITTED]
    )
    np.testing.assert_allclose(alone, expected, rtol=1e-7, atol=1e-10)
    squares = ((expected - Y[FITTED:, :outputs]) ** 2).sum(axis=1)
    assert found.error == pytest.approx(np.average(squares, weights=weight[FITTED:]), rel=1e-8)


@CASES
def test_gradient_by_entries_of_the_kernel_matrix(outputs, weight):
    K = FAMILIES["laplace"].gram(A, SCALES)

    def error(K):
        return held_out_gradient(K, Y[:, :outputs], 0.3, weight, FITTED).error

    gradient = held_out_gradient(K, Y[:, :outputs], 0.3, weight, FITTED).kernel_gradient
    np.testing.assert_array_equal(gradient, gradient.T)
    for i, j in [(0, 0), (5, 5), (3, 4), (7, 20), (0, 25), (9, 17), (18, 22), (20, 20)]:
        change = np.zeros_like(K)
        change[i, j] += 0.5e-5
        change[j, i] += 0.5e-5
        difference = (error(K + change) - error(K - change)) / 2.0
        assert np.vdot(gradient, change) == pytest.approx(difference, rel=1e-5, abs=1e-13)


@CASES
def test_gradient_by_the_logarithm_of_the_regularisation(outputs, weight):
    K = FAMILIES["matern"].gram(A, SCALES)

    def error(logarithm):
        return held_out_gradient(K, Y[:, :outputs], np.exp(logarithm), weight, FITTED)

    difference = (error(-1.0 + 1e-5).error - error(-1.0 - 1e-5).error) / 2e-5
    assert error(-1.0).diagonal_gradient == pytest.approx(difference, rel=1e-6)


def test_matrix_that_is_not_positive_definite():
    with pytest.raises(NotPositiveDefiniteError):
        held_out_gradient(-np.eye(M), Y, 1e-3, np.ones(M), FITTED)
