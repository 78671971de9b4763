"""Quadratic forms with the inverses of tridiagonal matrices, against dense inverses."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg.lapack import dpttrf

from tessella import _core


def factors(size, systems, seed=0):
    """Random positive definite tridiagonal matrices with their factors."""
    rng = np.random.default_rng(seed)
    beside = rng.normal(size=(systems, size - 1))
    diagonal = rng.random((systems, size)) + 0.1
    diagonal[:, 1:] += np.abs(beside)
    diagonal[:, :-1] += np.abs(beside)
    ratios, inverses = np.zeros((systems, size)), np.empty((systems, size))
    for s in range(systems):
        pivots, ratios[s, 1:], failed = dpttrf(diagonal[s], beside[s])
        assert not failed
        inverses[s] = 1.0 / pivots
    matrices = [
        np.diag(d) + np.diag(e, 1) + np.diag(e, -1) for d, e in zip(diagonal, beside, strict=True)
    ]
    return ratios, inverses, matrices


@pytest.mark.parametrize("size", [2, 7, 40])
@pytest.mark.parametrize("systems", [1, 2, 5])
@pytest.mark.parametrize("count", [1, 7, 8, 9, 33])
def test_forms_by_their_definition(size, systems, count):
    ratios, inverses, matrices = factors(size, systems)
    columns = np.random.default_rng(1).normal(size=(size, count))
    found = np.empty((systems, count))
    _core.tridiagonal_forms(ratios, inverses, columns, found, 1)
    expected = [np.diag(columns.T @ np.linalg.solve(T, columns)) for T in matrices]
    np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_threads_do_not_change_the_forms():
    ratios, inverses, _ = factors(200, 15)
    columns = np.random.default_rng(1).normal(size=(200, 501))
    found = np.empty((3, 15, 501))
    for threads, own in zip((1, 2, 5), found, strict=True):
        _core.tridiagonal_forms(ratios, inverses, columns, own, threads)
    np.testing.assert_array_equal(found[1], found[0])
    np.testing.assert_array_equal(found[2], found[0])


def test_shapes_have_to_fit():
    ratios, inverses, _ = factors(5, 2)
    for wrong in (np.ones((4, 3)), np.ones((5, 4))):
        with pytest.raises(ValueError, match="shapes"):
            _core.tridiagonal_forms(ratios, inverses, wrong, np.empty((2, 3)), 1)
