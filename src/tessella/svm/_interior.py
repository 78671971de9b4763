"""An interior point method for the dual with a given kernel matrix, slow but robust.

If C is large and K has fewer large eigenvalues than there are support vectors, the dual is nearly
a linear program: pair steps make little progress, and Newton steps on the free samples reach a
bound at once. The interior point method needs about twenty Cholesky factorisations, whatever the
data, and these are small for a matrix of low rank. Its steps are compiled, because those of few
samples or of a low rank are short.
"""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cython_blas, cython_lapack

from tessella import _core
from tessella.svm._halves import Halves
from tessella.svm._low_rank import LowRankMatrix
from tessella.svm._problem import DualProblem

FloatArray = NDArray[np.float64]

_MAX_STEPS = 80
_TO_BOUNDARY = 0.99  # fraction of the way to the boundary; there is no cone of a parameter
_DIVERGED = 1e3  # growth of the merit over its best value that indicates rounding


def interior_point(
    K: FloatArray | LowRankMatrix,
    dual: DualProblem,
    w: FloatArray,
    tol: float,
    deadline: float | None = None,
) -> tuple[FloatArray | None, int]:
    """Return a nearly optimal dual vector, or None if rounding prevents it.

    Parameters
    ----------
    K : ndarray of shape (m, m) or LowRankMatrix
        Kernel matrix.
    dual : DualProblem
        The dual problem of one machine.
    w : ndarray of shape (m,)
        Dual vector to start from. Its size determines the scale of the first iterate.
    tol : float
        Complementarity at which to stop, relative to the value.
    deadline : float, optional
        Time at which to stop, on the clock of ``time.monotonic``.

    Returns
    -------
    w : ndarray of shape (m,) or None
        Dual vector in which the halves that tend to a bound are set to that bound. Its sum is not
        exactly zero. None if rounding prevents the accuracy.
    n_steps : int
        Number of Newton steps, each with a Cholesky factorisation.

    Notes
    -----
    The method costs about twenty times m³/3 flops and holds one more matrix of the size of K. With
    a LowRankMatrix of rank r, it costs about twenty times m r² flops.
    """
    halves = Halves.of(dual)
    steps = _first_steps(K, halves, w)
    alpha, zl, zu = (np.empty(len(halves.sample)) for _ in range(3))
    best, n_steps = np.inf, 0
    while n_steps < _MAX_STEPS and steps.advance() > 0.0:
        n_steps += 1
        if steps.merit < best:
            best = steps.merit
            steps.read(alpha, zl, zu)
        late = deadline is not None and time.monotonic() >= deadline
        if best <= tol or steps.merit > _DIVERGED * best or late:
            break
    found = best < np.inf
    return halves.join(halves.settled(alpha, zl, zu)) if found else None, n_steps


def _first_steps(K: FloatArray | LowRankMatrix, halves: Halves, w: FloatArray) -> _core.DualSteps:
    """Return the iteration from a point near w."""
    given = np.maximum(halves.sign * w[halves.sample], 0.0)
    # The start is well inside the bounds, relative to the size of w. Products of variables and
    # multipliers that are too small for the residuals at the start could not grow later.
    size = float(np.abs(w).max()) or float(halves.upper.max())
    inside = np.minimum(0.2 * size, 0.3 * halves.upper)
    alpha = np.clip(given, inside, halves.upper - inside)
    scores = K @ halves.join(alpha)
    nu = -float(np.median(scores))
    scale = max(float(np.abs(scores + nu).max()), float(np.abs(halves.cost).max()))
    matrix, rest = (K.Z, K.rest) if isinstance(K, LowRankMatrix) else (K, np.empty(0))
    return _core.DualSteps(
        matrix=np.ascontiguousarray(matrix),
        rest=rest,
        sample=halves.sample.astype(np.int64, copy=False),
        sign=halves.sign,
        cost=halves.cost,
        upper=halves.upper,
        alpha=alpha,
        zl=np.full(len(given), scale),
        zu=scale * float(alpha.max()) / (halves.upper - alpha),
        nu=nu,
        scale=scale,
        to_boundary=_TO_BOUNDARY,
        blas=cython_blas.__pyx_capi__,
        lapack=cython_lapack.__pyx_capi__,
    )
