"""Newton steps on the free support vectors.

Pair steps find quickly which samples sit at a bound and slowly, when K is ill-conditioned, the
values of those that do not. For a fixed set F of free samples the dual is a linear system,

    K_FF d + β 1 = g_F,    1ᵀd = 0,       g = linear - Kw - epsilon sign(w),

and one Cholesky factorisation does what can take a million pair steps. A few free samples that
would leave their box are fixed at its border through a bordered system with the same factor.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from tessella.svm._problem import DualProblem

FloatArray = NDArray[np.float64]

MAX_FREE = 8000  # side of the largest system: 0.5 GB, some 10 s
_MAX_ROUNDS = 12
_RIDGES = {4: (1e-7, 1e-5), 8: (1e-13, 1e-10)}  # of the mean diagonal, by storage of K


def newton_step(
    K_free: FloatArray,
    free: NDArray[np.intp],
    dual: DualProblem,
    w: FloatArray,
    gradient: FloatArray,
    storage: np.dtype[Any],
) -> FloatArray | None:
    """A better feasible w on the same free samples, or None when there is none to be found.

    Parameters
    ----------
    K_free : ndarray of shape (f, f)
        Kernel matrix of the free samples.
    free : ndarray of int of shape (f,)
        Which they are.
    dual : DualProblem
        The problem.
    w : ndarray of shape (m,)
        Feasible point.
    gradient : ndarray of shape (m,)
        ``linear - K @ w``.
    storage : dtype
        Precision of the entries of K.

    Returns
    -------
    ndarray of shape (m,) or None
        Feasible, with a dual value above that of w.

    Notes
    -----
    Costs f³/3 flops and f² numbers for f free samples.
    """
    slope = gradient[free] - dual.epsilon[free] * np.sign(w[free])
    start = w[free]
    # A sample may go as far as its bound on one side and the kink at zero on the other.
    low = np.where(start > 0, 0.0, dual.lower[free])
    high = np.where(start > 0, dual.upper[free], 0.0)
    for ridge in _RIDGES[storage.itemsize]:
        direction = _direction(K_free, slope, start, low, high, ridge)
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
) -> FloatArray | None:
    """Maximiser of the quadratic on the free samples, less those pinned to their border."""
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
    for _ in range(_MAX_ROUNDS):
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
        if len(pinned) + len(outside) > size // 3:
            break  # the set is not settled: pair steps are the better tool
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
    """The part of a direction that stays in the box."""
    with np.errstate(divide="ignore", invalid="ignore"):
        room = np.where(direction > 0, (high - start) / direction, (low - start) / direction)
    length = min(1.0, float(np.nanmin(np.where(direction == 0, np.inf, room))))
    return length * direction if length > 0 else None
