"""Weights of a dictionary by a rule rather than by optimisation: fixed parameters."""

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

_GROUPS = 8  # of strips of the alignment, each with a sum of its own


def average_weights(n_kernels: int) -> FloatArray:
    """The same weight for every kernel (AMKL)."""
    return np.full(n_kernels, 1.0 / n_kernels)


def alignment_weights(
    kernels: BoundDictionary, targets: FloatArray, weight: FloatArray
) -> FloatArray:
    """Weights of the largest centred alignment with the target (CKA).

    Maximises ``<K_c(μ), T> / |K_c(μ)|`` with the centred matrices K_c and ``T = targets @
    targets.T`` (Cortes, Mohri, Rostamizadeh, 2012). The closed form M⁻¹a, with ``M_ij = <K_ci,
    K_cj>`` and ``a_i = <K_ci, T>``, is the answer when no entry of it is negative. Otherwise
    K(μ) need not be a kernel, and the least squares problem behind it is solved with μ ≥ 0, as
    the paper has it.

    Parameters
    ----------
    kernels : BoundDictionary
        The kernels on the training rows.
    targets : ndarray of shape (n_rows, n_columns)
        Labels -1 and 1, indicators of several classes, or a regression target.
    weight : ndarray of shape (n_rows,)
        Sample weights; a weight of k counts like k copies.

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
        return average_weights(len(weights))  # nothing is aligned with the target
    on_simplex: FloatArray = weights / weights.sum()
    return on_simplex


def alignment_system(
    kernels: BoundDictionary, targets: FloatArray, weight: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """M and a of :func:`alignment_weights`: O(n_kernels² m²) flops and little memory."""
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

    # Strips thin enough that all kernels together stay within some tens of megabytes. Sums of a
    # fixed number of groups: an M for each strip would be gigabytes where there are many kernels,
    # and one for each thread would let the last digits depend on their number.
    pieces = kernels.strips(m * max(1, n // 32))
    parts = kernels.in_threads(total, [pieces[k::_GROUPS] for k in range(_GROUPS)])
    return np.sum([M for M, _ in parts], axis=0), np.sum([a for _, a in parts], axis=0)


def closed_form(M: FloatArray, a: FloatArray) -> FloatArray:
    """M⁻¹a, or the shortest solution where kernels are linearly dependent."""
    return np.asarray(np.linalg.lstsq(M, a, rcond=1e-13)[0], dtype=np.float64)


def _nonnegative(M: FloatArray, a: FloatArray) -> FloatArray:
    """Minimiser of ``vᵀMv - 2 vᵀa`` over v ≥ 0."""
    scale = np.sqrt(np.maximum(M.diagonal(), np.finfo(float).tiny))
    values, vectors = np.linalg.eigh(M / np.outer(scale, scale))
    kept = values > 1e-13 * values[-1]
    root = np.sqrt(values[kept])
    basis = vectors[:, kept].T
    solution, _ = nnls(root[:, None] * basis, basis @ (a / scale) / root)
    weights: FloatArray = solution / scale
    return weights


def weights_of_scores(scores: FloatArray, threshold: float = 0.0) -> FloatArray:
    """``(π_i - threshold) / Σ (π_j - threshold)`` for accuracies π (Tanabe et al., 2008)."""
    above = np.maximum(scores - threshold, 0.0)
    if not above.any():
        return np.full(len(scores), 1.0 / len(scores))
    weights: FloatArray = above / above.sum()
    return weights


def weights_of_errors(errors: FloatArray) -> FloatArray:
    """``(Σ M - M_i) / Σ_j (Σ M - M_j)`` for mean squared errors M (Qiu and Lane, 2009)."""
    others = errors.sum() - errors
    if not others.any():
        return np.full(len(errors), 1.0 / len(errors))
    weights: FloatArray = others / others.sum()
    return weights
