"""Newton steps on the free support vectors.

Pair steps quickly find which samples are at a bound, but when K is ill-conditioned they find the
values of the other samples slowly. For a fixed set F of free samples the dual problem is a linear
system,

    K_FF d + β 1 = g_F,    1ᵀd = 0,       g = linear - Kw - epsilon sign(w),

and one Cholesky factorisation can replace a million pair steps. A few free samples that would
leave their bounds are fixed there through a bordered system with the same factor.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from tessella.svm._problem import DualProblem
from tessella.svm._settings import DualSettings

FloatArray = NDArray[np.float64]


def newton_step(
    K_free: FloatArray,
    free: NDArray[np.intp],
    dual: DualProblem,
    w: FloatArray,
    gradient: FloatArray,
    storage: np.dtype[Any],
    settings: DualSettings,
) -> FloatArray | None:
    """Return a better feasible point on the same free samples, or None when there is none.

    Parameters
    ----------
    K_free : ndarray of shape (f, f)
        Kernel matrix of the free samples.
    free : ndarray of int of shape (f,)
        Positions of the free samples.
    dual : DualProblem
        The dual problem of a single machine.
    w : ndarray of shape (m,)
        Feasible point to start from.
    gradient : ndarray of shape (m,)
        The vector ``linear - K @ w``.
    storage : dtype
        Type in which the entries of the kernel matrix are stored, which limits their precision.
    settings : DualSettings
        Tuned constants of the solver.

    Returns
    -------
    ndarray of shape (m,) or None
        A feasible point with a larger dual value than `w`.

    Notes
    -----
    Takes f³/3 operations and holds f² numbers for f free samples.
    """
    slope = gradient[free] - dual.epsilon[free] * np.sign(w[free])
    start = w[free]
    # A sample moves to its bound at most in one direction and to the kink at zero in the other.
    low = np.where(start > 0, 0.0, dual.lower[free])
    high = np.where(start > 0, dual.upper[free], 0.0)
    ridges = settings.ridges_float32 if storage.itemsize == 4 else settings.ridges_float64
    for ridge in ridges:
        direction = _direction(K_free, slope, start, low, high, ridge, settings)
        if direction is None:
            continue
        rise = float(slope @ direction)
        bend = float(direction @ (K_free @ direction))
        if rise > 0.0:
            length = 1.0 if bend <= rise else rise / bend
            moved = w.copy()
            moved[free] = np.clip(start + length * direction, low, high)
            return moved
    return None


def _direction(
    K_free: FloatArray,
    slope: FloatArray,
    start: FloatArray,
    low: FloatArray,
    high: FloatArray,
    ridge: float,
    settings: DualSettings,
) -> FloatArray | None:
    """Return the step to the maximum of the quadratic, with some samples fixed at a bound."""
    shifted = K_free.copy()
    shifted.flat[:: len(shifted) + 1] += ridge * float(np.mean(np.diag(K_free)))
    try:
        factor = cho_factor(shifted, lower=True, overwrite_a=True, check_finite=False)
    except np.linalg.LinAlgError:
        return None
    size = len(slope)
    solved_slope = cho_solve(factor, slope, check_finite=False)
    pinned: list[int] = []
    prescribed: list[float] = []
    constraints = np.ones((size, 1))
    solved = cho_solve(factor, constraints, check_finite=False)
    for _ in range(settings.max_pinning_rounds):
        target = np.concatenate([[0.0], prescribed])
        schur = constraints.T @ solved
        try:
            multipliers = np.linalg.solve(schur, constraints.T @ solved_slope - target)
        except np.linalg.LinAlgError:
            return None
        direction: FloatArray = solved_slope - solved @ multipliers
        if not np.isfinite(direction).all():
            return None
        direction[pinned] = prescribed
        end = start + direction
        outside = np.flatnonzero((end < low) | (end > high))
        outside = outside[~np.isin(outside, pinned)]
        if not len(outside):
            return direction
        if len(pinned) + len(outside) > size // settings.max_pinned_share:
            break  # the free samples are not known well enough: pair steps are faster
        border = np.where(end[outside] < low[outside], low[outside], high[outside])
        pinned += outside.tolist()
        prescribed += (border - start[outside]).tolist()
        columns = np.zeros((size, len(outside)))
        columns[outside, np.arange(len(outside))] = 1.0
        constraints = np.hstack([constraints, columns])
        solved = np.hstack([solved, cho_solve(factor, columns, check_finite=False)])
    return _shortened(direction, start, low, high)


def _shortened(
    direction: FloatArray, start: FloatArray, low: FloatArray, high: FloatArray
) -> FloatArray | None:
    """Return the part of a direction that stays within the bounds, or None if there is none."""
    with np.errstate(divide="ignore", invalid="ignore"):
        room = np.where(direction > 0, (high - start) / direction, (low - start) / direction)
    length = min(1.0, float(np.nanmin(np.where(direction == 0, np.inf, room))))
    return length * direction if length > 0 else None
