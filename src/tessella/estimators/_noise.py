"""An estimate of the noise in a target before the fit, for the width of the tube."""

from __future__ import annotations

from collections import OrderedDict
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from tessella.backend import limit_blas
from tessella.kernels import LaplaceKernels, UnitBox
from tessella.partitions import CutRule, cut_tree

FloatArray = NDArray[np.float64]

_MOST_ROWS = 1000  # the eigenvalues of so many rows take some tenths of a second
_CELLS = 7  # of neighbouring rows, with an estimate in each
_WIDTH = 1.0  # of the Laplace kernel, in standard deviations of a feature
_RIDGES = np.geomspace(1e-8, 1e2, 31)

# A search fits the same few sets of rows with many parameters, on which the noise does not depend.
_MOST_REMEMBERED = 64
_remembered: OrderedDict[bytes, float] = OrderedDict()

#: Half-width of the tube with the least variance for Gaussian noise, in units of its deviation.
TUBE_PER_NOISE = 0.612


def noise_level(X: FloatArray, y: FloatArray, weight: FloatArray, n_jobs: int | None) -> float:
    """Estimate the standard deviation of the noise in y, by kernel ridge regression.

    A Laplace kernel K on the quantiles of the features serves, which follows smooth and rough
    functions alike. Of the ridges λ, the one with the smallest leave-one-out error is taken. With
    S the matrix that maps y to the fitted values, the estimate of the variance is the sum of the
    squared residuals divided by the trace of I - S. If the target has no noise, the best λ is the
    smallest one and the residuals vanish with it, although the leave-one-out error does not.
    The last estimates are remembered, because a search asks again and again for the same rows.

    Parameters
    ----------
    X : ndarray of shape (m, n)
        Distinct rows. If there are more than 1,000, rows are chosen that are evenly spaced by
        weight in the order of y.
    y : ndarray of shape (m,)
        Target.
    weight : ndarray of shape (m,)
        Weight of each row; a weight of k is equivalent to k copies.
    n_jobs : int or None
        Number of threads.

    Returns
    -------
    float
        Estimate of the standard deviation, in units of y.
    """
    key = _digest(X, y, weight)
    found = _remembered.get(key)
    if found is None:
        # One thread of BLAS: otherwise the last digits of the tube, by which a checkpoint knows its
        # problem, would depend on the number of threads.
        with limit_blas():
            found = _remembered[key] = _estimate(X, y, weight, n_jobs)
        while len(_remembered) > _MOST_REMEMBERED:
            _remembered.popitem(last=False)
    return found


def local_noise_level(
    X: FloatArray, y: FloatArray, weight: FloatArray, n_jobs: int | None
) -> float:
    """Estimate the noise in y as the median of estimates in cells of neighbouring rows.

    Within a cell, a rough function is smoother than among as many rows of the whole data, so that
    noise and function can be told apart where :func:`noise_level` sees none.

    Parameters
    ----------
    X : ndarray of shape (m, n)
        Rows.
    y : ndarray of shape (m,)
        Target.
    weight : ndarray of shape (m,)
        Weight of each row.
    n_jobs : int or None
        Number of threads.
    """
    if len(X) < 2 * _MOST_ROWS:
        return noise_level(X, y, weight, n_jobs)
    A = UnitBox.fit(X).apply(X)
    tree = cut_tree(A, CutRule(_MOST_ROWS))
    leaf, chosen = tree.leaf_of(A), np.linspace(0, tree.n_leaves - 1, min(tree.n_leaves, _CELLS))
    estimates = []
    for k in chosen.astype(np.intp):
        own = leaf == k
        estimates.append(noise_level(X[own], y[own], weight[own], n_jobs))
    return float(np.median(estimates))


def _digest(*arrays: FloatArray) -> bytes:
    """Return a mark that differs for arrays with other values or shapes."""
    mark = blake2b(str([array.shape for array in arrays]).encode(), digest_size=16)
    for array in arrays:
        mark.update(array.tobytes())
    return mark.digest()


def _estimate(X: FloatArray, y: FloatArray, weight: FloatArray, n_jobs: int | None) -> float:
    box = UnitBox.fit(X, weight, scaling="quantile")
    if not len(box.kept):
        return 0.0  # an error follows, because no kernel can tell the rows apart
    rows, weight = _chosen_rows(X, y, weight)
    K = LaplaceKernels(_WIDTH).bind(box.apply(X[rows]), n_jobs=n_jobs).gram(np.ones(1))
    return float(np.sqrt(_ridge_variance(K, y[rows], weight)))


def _chosen_rows(
    X: FloatArray, y: FloatArray, weight: FloatArray
) -> tuple[NDArray[np.intp], FloatArray]:
    """Return at most 1,000 rows and how often each one counts, with a mean of one."""
    if len(y) <= _MOST_ROWS:
        return np.arange(len(y)), weight / weight.mean()
    order = np.lexsort((*X.T, y))
    total = np.cumsum(weight[order])
    places = (np.arange(_MOST_ROWS) + 0.5) * (total[-1] / _MOST_ROWS)
    found, count = np.unique(np.searchsorted(total, places), return_counts=True)
    return order[found], count / count.mean()


def _ridge_variance(K: FloatArray, y: FloatArray, weight: FloatArray) -> float:
    """Return the variance of the noise by the ridge with the least leave-one-out error.

    With Λ = λ diag(1/weight), G = (K + Λ)⁻¹ and H = G - G11ᵀG/(1ᵀG1), the coefficients are a = Hy,
    the residuals are Λa, the residual of a row in the fit without it is a_i / H_ii, and I - S is
    ΛH. One eigendecomposition of the weighted kernel matrix serves all ridges.
    """
    root = np.sqrt(weight)
    values, U = np.linalg.eigh(root[:, None] * K * root)
    values = np.maximum(values, 0.0)
    target, one = U.T @ (root * y), U.T @ root
    g = 1.0 / (values + _RIDGES[:, None])  # the columns of all other matrices belong to the ridges
    total = g @ one**2
    ones = U @ (g * one).T
    # Both in the coordinates root * (.), in which a is root * (U g Uᵀ root (y - b)).
    a = U @ (g * target).T - ones * ((g * one) @ target / total)
    H = U**2 @ g.T - ones**2 / total
    errors = np.mean((a / H) ** 2, axis=0)
    best = int(np.argmin(np.where(np.isnan(errors), np.inf, errors)))
    return float(_RIDGES[best] * (a[:, best] @ a[:, best]) / H[:, best].sum())
