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
from scipy.linalg import cho_solve
from scipy.linalg.blas import dsymv
from scipy.linalg.lapack import dpotrf

from tessella.svm._problem import DualProblem
from tessella.svm._settings import DualSettings

FloatArray = NDArray[np.float64]


class FreeKernel:
    """Kernel matrix of the free samples and its Cholesky factor, in the memory of the matrix.

    The factor is in one triangle and the matrix in the other, because finding new memory for a
    large matrix takes time that no thread can share.

    Parameters
    ----------
    matrix : ndarray of shape (f, f), float64
        Symmetric matrix in rows, which is overwritten.
    """

    def __init__(self, matrix: FloatArray) -> None:
        self._both = matrix.T  # in columns, as LAPACK wants it
        self._diagonal = matrix.diagonal().copy()
        self._factorised = False

    def factorise(self, ridge: float) -> bool:
        """Factorise the matrix with `ridge` times the mean of its diagonal added to the diagonal.

        Returns False if that is not positive definite.
        """
        both = self._both
        if self._factorised:
            for k in range(1, len(both)):
                both[k, :k] = both[:k, k]
        both.flat[:: len(both) + 1] = self._diagonal + ridge * float(np.mean(self._diagonal))
        self._factorised = True
        self._both, failure = dpotrf(both, lower=1, clean=0, overwrite_a=1)
        return bool(failure == 0)

    def solve(self, right: FloatArray) -> FloatArray:
        """Return the solution of the system that was factorised last."""
        solution: FloatArray = cho_solve((self._both, True), right, check_finite=False)
        return solution

    def times(self, vector: FloatArray) -> FloatArray:
        """Return the product of the matrix, without a ridge, with a vector."""
        both = self._both
        product: FloatArray = dsymv(1.0, both, vector, lower=0)
        return product + (self._diagonal - both.diagonal()) * vector


def newton_step(
    kernel: FreeKernel,
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
    kernel : FreeKernel
        Kernel matrix of the f free samples.
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
    Takes f³/3 operations for f free samples and no memory beyond that of the matrix.
    """
    slope = gradient[free] - dual.epsilon[free] * np.sign(w[free])
    start = w[free]
    # A sample moves to its bound at most in one direction and to the kink at zero in the other.
    low = np.where(start > 0, 0.0, dual.lower[free])
    high = np.where(start > 0, dual.upper[free], 0.0)
    ridges = settings.ridges_float32 if storage.itemsize == 4 else settings.ridges_float64
    for ridge in ridges:
        if not kernel.factorise(ridge):
            continue
        direction = _direction(kernel, slope, start, low, high, settings)
        if direction is None:
            continue
        rise = float(slope @ direction)
        bend = float(direction @ kernel.times(direction))
        if rise > 0.0:
            length = 1.0 if bend <= rise else rise / bend
            moved = w.copy()
            moved[free] = np.clip(start + length * direction, low, high)
            return moved
    return None


def _direction(
    kernel: FreeKernel,
    slope: FloatArray,
    start: FloatArray,
    low: FloatArray,
    high: FloatArray,
    settings: DualSettings,
) -> FloatArray | None:
    """Return the step to the maximum of the quadratic, with some samples fixed at a bound."""
    size = len(slope)
    solved_slope = kernel.solve(slope)
    pinned: list[int] = []
    prescribed: list[float] = []
    constraints = np.ones((size, 1))
    solved = kernel.solve(constraints)
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
        solved = np.hstack([solved, kernel.solve(columns)])
    return _shortened(direction, start, low, high)


def _shortened(
    direction: FloatArray, start: FloatArray, low: FloatArray, high: FloatArray
) -> FloatArray | None:
    """Return the part of a direction that stays within the bounds, or None if there is none."""
    with np.errstate(divide="ignore", invalid="ignore"):
        room = np.where(direction > 0, (high - start) / direction, (low - start) / direction)
    length = min(1.0, float(np.nanmin(np.where(direction == 0, np.inf, room))))
    return length * direction if length > 0 else None
