"""What machines with the squared loss have in common: checks, and the divisor of residuals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class RidgeSolution:
    """A kernel machine with the squared loss, for one value of C and any number of outputs.

    Attributes
    ----------
    coef : ndarray of shape (m, k)
        Coefficients of the rows for each output. The scores of the rows are
        ``K @ coef + intercept``.
    intercept : ndarray of shape (k,)
        Constant of each output.
    loo_residuals : ndarray of shape (m, k)
        Target of each row minus its score in the machine that has not seen this row (or its
        group). The targets minus these residuals are the leave-one-out predictions.
    """

    coef: FloatArray
    intercept: FloatArray
    loo_residuals: FloatArray


def spread_without(weight: FloatArray, left_out: FloatArray, spread: FloatArray) -> FloatArray:
    """Divisor of ``errors``, which are a / C: weight that stays, plus H / C of what is left out.

    If a row of weight s keeps s - r of it, its residual is ``a / (C (s - r) + H r / s)``. The rows
    are the last axis of `spread`, which is the diagonal of H / C divided by the weights.
    """
    removed = weight * left_out
    divisor: FloatArray = weight - removed + removed * spread
    return divisor


def checked_kernel(K: NDArray[np.float64]) -> FloatArray:
    if not isinstance(K, np.ndarray) or K.dtype != np.float64:
        raise ValueError("K must be a numpy array of type float64.")
    if K.ndim != 2 or K.shape[0] != K.shape[1]:
        raise ValueError(f"K has shape {K.shape}, expected a square matrix.")
    if len(K) < 2:
        raise ValueError("Leaving out a row needs at least two rows.")
    if not np.isfinite(K).all():
        raise ValueError("K contains a NaN or an infinity.")
    return K


def checked_weight(sample_weight: ArrayLike | None, size: int) -> FloatArray:
    if sample_weight is None:
        return np.ones(size)
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.shape != (size,):
        raise ValueError(f"sample_weight has shape {weight.shape}, expected ({size},).")
    if not (np.isfinite(weight).all() and (weight > 0).all()):
        raise ValueError(
            "sample_weight must be finite and positive; leave out the rows of weight 0."
        )
    return weight


def checked_fraction(left_out: ArrayLike | None, weight: FloatArray) -> FloatArray:
    if left_out is None:
        return 1.0 / np.maximum(weight, 1.0)
    fraction = np.asarray(left_out, dtype=np.float64)
    if fraction.shape != weight.shape:
        raise ValueError(f"left_out has shape {fraction.shape}, expected {weight.shape}.")
    if not ((fraction > 0) & (fraction <= 1)).all():
        raise ValueError("left_out must be above 0 and at most 1.")
    return fraction


def checked_targets(Y: ArrayLike, size: int) -> FloatArray:
    targets = np.asarray(Y, dtype=np.float64)
    if targets.ndim == 1:
        targets = targets[:, None]
    if targets.ndim != 2 or len(targets) != size or not targets.shape[1]:
        raise ValueError(f"Y has shape {np.shape(Y)}, expected ({size},) or ({size}, k).")
    if not np.isfinite(targets).all():
        raise ValueError("Y contains a NaN or an infinity.")
    return targets


def checked_grid(Cs: ArrayLike) -> FloatArray:
    grid = np.asarray(Cs, dtype=np.float64)
    if grid.ndim != 1 or not len(grid):
        raise ValueError(f"Cs has shape {grid.shape}, expected one dimension and an entry.")
    if not (np.isfinite(grid).all() and (grid > 0).all()):
        raise ValueError("C must be finite and positive.")
    return grid
