"""Rules that give the weights of a dictionary instead of learning them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from tessella.kernels import BoundDictionary

__all__ = [
    "alignment_system",
    "alignment_weights",
    "average_weights",
    "closed_form",
    "weights_of_errors",
    "weights_of_scores",
]

FloatArray = NDArray[np.float64]

_GROUPS = 8  # groups of strips in the alignment, each with a sum of its own


def average_weights(n_kernels: int) -> FloatArray:
    """Return equal weights that sum to one (AMKL).

    Parameters
    ----------
    n_kernels : int
        Number of kernels.

    Returns
    -------
    ndarray of shape (n_kernels,)
        Equal weights.
    """
    return np.full(n_kernels, 1.0 / n_kernels)


def alignment_weights(
    kernels: BoundDictionary, targets: FloatArray, weight: FloatArray
) -> FloatArray:
    """Return the weights with the largest centred alignment with the target (CKA).

    The weights maximise ``<K_c(μ), T> / |K_c(μ)|`` with the centred matrices K_c and
    ``T = targets @ targets.T`` (Cortes, Mohri, Rostamizadeh, 2012). The closed form M⁻¹a, with
    ``M_ij = <K_ci, K_cj>`` and ``a_i = <K_ci, T>``, is used if it has no negative entry.
    Otherwise K(μ) need not be a kernel, and the corresponding least squares problem is solved with
    μ ≥ 0, as in the paper.

    Parameters
    ----------
    kernels : BoundDictionary
        The kernels on the training rows.
    targets : ndarray of shape (n_rows, n_columns)
        Labels -1 and 1, indicators of several classes, or a regression target.
    weight : ndarray of shape (n_rows,)
        Sample weights. A weight of k is equivalent to k copies of the row.

    Returns
    -------
    ndarray of shape (n_kernels,)
        Weights that sum to one.
    """
    M, a = alignment_system(kernels, targets, weight)
    weights = closed_form(M, a)
    if weights.min() < 0:
        weights = _nonnegative(M, a)
    if not weights.sum() > 0:
        return average_weights(len(weights))  # no kernel is aligned with the target
    on_simplex: FloatArray = weights / weights.sum()
    return on_simplex


def alignment_system(
    kernels: BoundDictionary, targets: FloatArray, weight: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return M and a of :func:`alignment_weights`, in O(n_kernels² m²) flops and little memory.

    Parameters
    ----------
    kernels : BoundDictionary
        The kernels on the training rows.
    targets : ndarray of shape (n_rows, n_columns)
        Labels -1 and 1, indicators of several classes, or a regression target.
    weight : ndarray of shape (n_rows,)
        Sample weights. A weight of k is equivalent to k copies of the row.

    Returns
    -------
    M : ndarray of shape (n_kernels, n_kernels)
        Inner products of the centred kernel matrices.
    a : ndarray of shape (n_kernels,)
        Inner products of the centred kernel matrices with ``targets @ targets.T``.
    """
    n, m = kernels.cone.degree, kernels.n_samples
    share = weight / weight.sum()
    root = np.sqrt(weight)
    means = kernels.products(share, np.arange(m)).T  # weighted mean of each row
    grand = means @ share
    Y = targets * root[:, None]

    def strip(own: slice) -> tuple[FloatArray, FloatArray]:
        height = own.stop - own.start
        flat = np.empty((n, height * m))
        for number, tile in kernels.tiles(own):
            mean = means[number]
            centred = tile - mean[own][:, None] - (mean - grand[number])
            flat[number] = (centred * root[own][:, None] * root).ravel()
        return flat @ flat.T, flat @ (Y[own] @ Y.T).ravel()

    def total(own: list[slice]) -> tuple[FloatArray, FloatArray]:
        M, a = np.zeros((n, n)), np.zeros(n)
        for piece in own:
            part_of_M, part_of_a = strip(piece)
            M += part_of_M
            a += part_of_a
        return M, a

    # The strips are so thin that all kernels together need some tens of megabytes. The number of
    # groups is fixed: an M for each strip would need gigabytes if there are many kernels, and with
    # an M for each thread the last digits would depend on the number of threads.
    pieces = kernels.strips(m * max(1, n // 32))
    parts = kernels.in_threads(total, [pieces[k::_GROUPS] for k in range(_GROUPS)])
    return np.sum([M for M, _ in parts], axis=0), np.sum([a for _, a in parts], axis=0)


def closed_form(M: FloatArray, a: FloatArray) -> FloatArray:
    """Return M⁻¹a, or the solution of least norm if the kernels are linearly dependent."""
    return np.asarray(np.linalg.lstsq(M, a, rcond=1e-13)[0], dtype=np.float64)


def _nonnegative(M: FloatArray, a: FloatArray) -> FloatArray:
    """Return the minimiser of ``vᵀMv - 2 vᵀa`` over v ≥ 0."""
    scale = np.sqrt(np.maximum(M.diagonal(), np.finfo(float).tiny))
    values, vectors = np.linalg.eigh(M / np.outer(scale, scale))
    kept = values > 1e-13 * values[-1]
    root = np.sqrt(values[kept])
    basis = vectors[:, kept].T
    solution, _ = nnls(root[:, None] * basis, basis @ (a / scale) / root)
    weights: FloatArray = solution / scale
    return weights


def weights_of_scores(scores: FloatArray, threshold: float = 0.0) -> FloatArray:
    """Return ``(π_i - threshold) / Σ (π_j - threshold)`` for accuracies π (Tanabe et al., 2008)."""
    above = np.maximum(scores - threshold, 0.0)
    if not above.any():
        return np.full(len(scores), 1.0 / len(scores))
    weights: FloatArray = above / above.sum()
    return weights


def weights_of_errors(errors: FloatArray) -> FloatArray:
    """Return ``(Σ M - M_i) / Σ_j (Σ M - M_j)`` for squared errors M (Qiu and Lane, 2009)."""
    others = errors.sum() - errors
    if not others.any():
        return np.full(len(errors), 1.0 / len(errors))
    weights: FloatArray = others / others.sum()
    return weights
