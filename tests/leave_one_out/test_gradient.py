"""The leave-one-out error and its gradient, against refits and finite differences."""

from __future__ import annotations

import numpy as np
import pytest

from tessella.automatic import FAMILIES
from tessella.leave_one_out import NotPositiveDefiniteError, leave_one_out_gradient

RNG = np.random.default_rng(0)
M = 24
A = RNG.random((M, 3))
Y = np.column_stack([np.sin(5 * A[:, 0]), A[:, 1] * A[:, 2], RNG.normal(size=M)])
WEIGHT = RNG.uniform(0.3, 3.0, M)
COUNTED = np.where(np.arange(M) % 3 == 0, 0.0, WEIGHT * RNG.uniform(0.5, 2.0, M))
SCALES = np.array([0.7, -0.4, 1.3])
LEFT_OUT = RNG.uniform(0.1, 1.0, M)
CASES = pytest.mark.parametrize(
    ("outputs", "weight", "counted", "left_out"),
    [
        (1, np.ones(M), np.ones(M), None),
        (3, WEIGHT, WEIGHT, None),
        (2, WEIGHT, COUNTED, None),
        (2, WEIGHT, COUNTED, LEFT_OUT),
    ],
    ids=["plain", "weights", "counted rows", "fractions"],
)


def refitted(K, Y, regularisation, weight, left_out):
    """Residual of each row without (a fraction of) it, by one linear system for each."""
    found = np.empty_like(Y)
    for i in range(len(K)):
        less = weight.copy()
        less[i] *= 0.0 if left_out is None else 1.0 - left_out[i]
        rest = np.flatnonzero(less)
        system = np.ones((len(rest) + 1, len(rest) + 1))
        system[:-1, :-1] = K[np.ix_(rest, rest)] + np.diag(regularisation / less[rest])
        system[-1, -1] = 0.0
        solution = np.linalg.solve(system, np.vstack([Y[rest], np.zeros((1, Y.shape[1]))]))
        found[i] = Y[i] - K[i, rest] @ solution[:-1] - solution[-1]
    return found


@CASES
@pytest.mark.parametrize("regularisation", [1e-4, 0.1, 10.0])
def test_residuals_are_those_of_refits(outputs, weight, counted, left_out, regularisation):
    K = FAMILIES["gaussian"].gram(A, SCALES)
    found = leave_one_out_gradient(K, Y[:, :outputs], regularisation, weight, counted, left_out)
    expected = refitted(K, Y[:, :outputs], regularisation, weight, left_out)
    np.testing.assert_allclose(found.residuals, expected, rtol=1e-7, atol=1e-10)
    error = np.average((expected**2).sum(axis=1), weights=counted)
    assert found.error == pytest.approx(error, rel=1e-8)


@CASES
def test_fit_to_all_rows_solves_its_linear_system(outputs, weight, counted, left_out):
    K = FAMILIES["gaussian"].gram(A, SCALES)
    found = leave_one_out_gradient(K, Y[:, :outputs], 0.3, weight, counted, left_out)
    residuals = Y[:, :outputs] - K @ found.coef - found.intercept
    np.testing.assert_allclose(residuals, 0.3 / weight[:, None] * found.coef, atol=1e-12)
    np.testing.assert_allclose(found.coef.sum(axis=0), 0.0, atol=1e-11)


@CASES
def test_gradient_by_every_entry_of_the_kernel_matrix(outputs, weight, counted, left_out):
    K = FAMILIES["laplace"].gram(A, SCALES)

    def error(K):
        return leave_one_out_gradient(K, Y[:, :outputs], 0.3, weight, counted, left_out).error

    gradient = leave_one_out_gradient(
        K, Y[:, :outputs], 0.3, weight, counted, left_out
    ).kernel_gradient
    np.testing.assert_array_equal(gradient, gradient.T)
    for i, j in [(0, 0), (5, 5), (3, 4), (7, 20), (0, 23), (9, 3)]:
        change = np.zeros_like(K)
        change[i, j] += 0.5e-5
        change[j, i] += 0.5e-5
        slope = (error(K + change) - error(K - change)) / 2e-5
        assert gradient[i, j] == pytest.approx(slope, rel=1e-5, abs=1e-9)


@CASES
def test_gradient_by_the_regularisation(outputs, weight, counted, left_out):
    K = FAMILIES["laplace"].gram(A, SCALES)

    def error(logarithm):
        at = leave_one_out_gradient(K, Y[:, :outputs], np.exp(logarithm), weight, counted, left_out)
        return at.error, at.diagonal_gradient

    slope = (error(-1.0 + 1e-5)[0] - error(-1.0 - 1e-5)[0]) / 2e-5
    assert error(-1.0)[1] == pytest.approx(slope, rel=1e-6)


@CASES
@pytest.mark.parametrize("name", FAMILIES)
def test_gradient_by_the_scales_of_each_family(name, outputs, weight, counted, left_out):
    family = FAMILIES[name]

    def at(scales):
        K = family.gram(A, scales)
        return leave_one_out_gradient(K, Y[:, :outputs], 0.05, weight, counted, left_out), K

    found, K = at(SCALES)
    gradient = family.gradient(found.kernel_gradient * K, A, SCALES)
    for j in range(len(SCALES)):
        step = 1e-5 * np.eye(len(SCALES))[j]
        slope = (at(SCALES + step)[0].error - at(SCALES - step)[0].error) / 2e-5
        assert gradient[j] == pytest.approx(slope, rel=2e-5, abs=1e-9), j


def test_rows_that_are_not_counted_do_not_enter_the_error():
    K = FAMILIES["gaussian"].gram(A, SCALES)
    changed = np.where(COUNTED[:, None] > 0, Y, 0.0)
    both = [leave_one_out_gradient(K, own, 0.1, WEIGHT, COUNTED) for own in (Y, changed)]
    # Other targets change the fits of the counted rows, but their own residuals do not count.
    for found in both:
        error = np.average((found.residuals**2).sum(axis=1), weights=COUNTED)
        assert found.error == pytest.approx(error, rel=1e-12)
    assert both[0].error != both[1].error


def test_an_indefinite_matrix_is_refused():
    K = np.eye(M)
    K[0, 1] = K[1, 0] = 3.0
    with pytest.raises(NotPositiveDefiniteError):
        leave_one_out_gradient(K, Y, 1e-3, np.ones(M), np.ones(M))


def test_more_rows_than_a_tile_has():
    """Triangles are copied in tiles, and this kernel matrix has three and a part."""
    rng = np.random.default_rng(5)
    X, y = rng.random((400, 3)), rng.normal(size=(400, 2))
    K, weight = FAMILIES["gaussian"].gram(X, SCALES), rng.uniform(0.5, 2.0, 400)
    found = leave_one_out_gradient(K, y, 0.1, weight, weight, np.full(400, 0.8))
    G = np.linalg.inv(K + np.diag(0.1 / weight))
    H = G - np.outer(G.sum(axis=0), G.sum(axis=0)) / G.sum()
    a, divisor = H @ y, 0.2 * weight / 0.1 + 0.8 * np.diag(H)
    residuals, share = a / divisor[:, None], weight / weight.sum()
    np.testing.assert_allclose(found.residuals, residuals, rtol=1e-8)
    u = 2.0 * share[:, None] * residuals / divisor[:, None]
    expected = H @ np.diag(0.8 * (u * residuals).sum(axis=1)) @ H
    expected -= 0.5 * (H @ u @ a.T + a @ (H @ u).T)
    size = np.abs(expected).max()
    np.testing.assert_allclose(found.kernel_gradient, expected, atol=1e-9 * size)
    np.testing.assert_array_equal(found.kernel_gradient, found.kernel_gradient.T)
