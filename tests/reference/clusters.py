"""Data for fits on clusters, and what two fits have in common."""

from __future__ import annotations

import dask.array as da
import numpy as np
import pytest

SETTINGS = {"max_leaf_rows": 400, "tol": 3e-4, "n_jobs": 1}


def regression_rows(count=2000, n=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((count, n))
    y = np.sin(6 * X[:, 0]) * X[:, 1] + 0.1 * rng.standard_normal(count)
    return X, y


def class_rows(count=2000, classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((count, 3))
    score = np.sin(5 * X[:, 0]) + X[:, 1] + 0.3 * rng.standard_normal(count)
    edges = np.quantile(score, np.arange(1, classes) / classes)
    return X, np.array(["low", "mid", "high"])[np.searchsorted(edges, score)]


def in_chunks(*arrays, rows=700, columns=-1):
    """Arrays of Dask with some rows in each chunk."""
    return [da.from_array(a, chunks=(rows, columns) if a.ndim == 2 else (rows,)) for a in arrays]


def assert_same_model(found, expected, X):
    """Assert that two fits have learned the same, up to rounding."""
    assert found.status_ == expected.status_
    assert found.objective_ == pytest.approx(expected.objective_, rel=1e-9)
    assert found.lower_bound_ == pytest.approx(expected.lower_bound_, rel=1e-9)
    assert found.n_iter_ == expected.n_iter_
    np.testing.assert_array_equal(found.leaves_.ends, expected.leaves_.ends)
    np.testing.assert_array_equal(found.support_, expected.support_)
    np.testing.assert_allclose(found._scores(X), expected._scores(X), rtol=1e-7, atol=1e-9)
