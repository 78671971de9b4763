"""Kernels of a diagonal parameter, such as the centre, which need no products of matrices."""

from __future__ import annotations

import numpy as np
import pytest

from tessella.cones._psd import diagonal_square
from tessella.kernels import TessellatedKernels

RNG = np.random.default_rng(0)


def bound_sets():
    X = RNG.random((25, 3))
    wide = RNG.random((20, 150))
    for balance in ("pointwise", "none", "unit"):
        for rows, degree in ((X, 2), (wide, 1)):
            kernels = TessellatedKernels(degree, 0.3, balance=balance).resolve(rows)
            bound = kernels.bind_resolved(rows)
            yield bound
            span = kernels.row_span(rows)
            if span is not None:
                yield bound.in_span(span)


def nearly(diagonal):
    """The same parameter for all digits, but not diagonal."""
    P = np.diag(diagonal)
    P[0, 1] = P[1, 0] = 1e-14 * diagonal[0]
    return P


@pytest.mark.parametrize("number", range(9))
def test_values_are_those_of_any_parameter(number):
    bound = list(bound_sets())[number]
    diagonal = RNG.random(bound.cone.side) + 0.1
    P, other = np.diag(diagonal), nearly(diagonal)
    K = bound.gram(other)
    size = float(np.abs(K).max())
    np.testing.assert_allclose(bound.gram(P), K, atol=1e-11 * size)
    np.testing.assert_allclose(bound.diag(P), np.diagonal(K), atol=1e-11 * size)
    w = RNG.standard_normal(bound.n_samples)
    moments = bound.moments(w)
    np.testing.assert_allclose(moments.scores(P), K @ w, atol=1e-10 * size)
    factors = bound.cone.positive_factors(P)
    centred = bound.factor_gram(factors, True, None)
    H = np.eye(len(K)) - 1.0 / len(K)
    np.testing.assert_allclose(centred, H @ K @ H, atol=1e-10 * size)


@pytest.mark.parametrize("balance", ["pointwise", "none"])
def test_scores_of_several_machines(balance):
    X = RNG.random((30, 3))
    rows = [np.arange(20), np.arange(5, 30)]
    bound = TessellatedKernels(1, 0.3, balance=balance).bind_machines(X, rows)
    diagonal = RNG.random(bound.cone.side) + 0.1
    moments = bound.moments(RNG.standard_normal(45))
    expected = moments.scores(nearly(diagonal))
    np.testing.assert_allclose(moments.scores(np.diag(diagonal)), expected, rtol=1e-9, atol=1e-10)


def test_floor_and_face_keep_their_diagonals():
    X = RNG.random((12, 2))
    bound = TessellatedKernels(1, 0.3, floor=0.2).bind(X)
    centre = bound.cone.centre
    np.testing.assert_allclose(bound.centre_diag, np.diagonal(bound.gram(centre)), rtol=1e-12)
    face = np.linalg.qr(RNG.standard_normal((6, 2)))[0]
    inner = TessellatedKernels(1, 0.3).bind(X).restrict(np.arange(12), face)
    M = np.diag([0.7, 0.1])
    np.testing.assert_allclose(inner.diag(M), np.diagonal(inner.gram(M)), rtol=1e-12)


def test_which_factors_are_those_of_a_diagonal():
    U = np.zeros((6, 8))
    U[[0, 1, 2, 3, 4, 5, 0], [7, 6, 5, 4, 3, 2, 1]] = RNG.standard_normal(7)
    np.testing.assert_allclose(diagonal_square(U), np.diagonal(U @ U.T))
    assert np.count_nonzero(U @ U.T - np.diag(np.diagonal(U @ U.T))) == 0
    U[5, 7] = 1.0  # a column with two entries, and another one without any
    assert diagonal_square(U) is None
    assert diagonal_square(RNG.standard_normal((5, 5))) is None
