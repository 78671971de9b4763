"""An interior point method for the dual on a given kernel matrix: slow, and never stuck.

Where C is large and K has fewer large eigenvalues than there are support vectors, the dual is
nearly a linear program: pair steps creep, and Newton steps on the free samples run into a bound at
once. Some twenty Cholesky factorisations solve it whatever the data. It is the iteration that
learns kernels, with a parameter that has no entries.
"""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from tessella.cones import Blocks, NoSensitivities, Point, ProductCone
from tessella.svm._halves import Halves
from tessella.svm._interior_point import (
    CentralPathProblem,
    CentralPathState,
    InteriorPoint,
    Linearisation,
)
from tessella.svm._problem import DualProblem

FloatArray = NDArray[np.float64]

STEPS = 20  # Cholesky factorisations of a typical run, to know its price
_MAX_STEPS = 80
_TO_BOUNDARY = 0.99  # of the way: without a parameter there is no other cone to run into
_DIVERGED = 1e3  # growth of the merit over its best that tells rounding has taken over


def interior_point(
    K: FloatArray,
    dual: DualProblem,
    w: FloatArray,
    tol: float,
    deadline: float | None = None,
) -> tuple[FloatArray | None, int]:
    """A dual vector whose complementarity is about `tol` of the value, or None if rounding forbids.

    Parameters
    ----------
    K : ndarray of shape (m, m)
        Kernel matrix.
    dual : DualProblem
        The dual problem of one machine.
    w : ndarray of shape (m,)
        Dual vector to start from; its size tells the scale of the solution.
    tol : float
        Complementarity at which to stop, relative to the value.
    deadline : float, optional
        Time at which to stop, by ``time.monotonic``.

    Returns
    -------
    w : ndarray of shape (m,) or None
        Dual vector; halves that tend to a bound are put there. Its sum is not balanced yet.
    n_steps : int
        Newton steps taken, each with a Cholesky factorisation.

    Notes
    -----
    Costs some twenty times m³/3 flops, and holds one more matrix of the size of K.
    """
    problem = _GivenKernel(K, dual)
    method = InteriorPoint(problem, *_start(problem, w), to_boundary=_TO_BOUNDARY)
    best, answer, n_steps = np.inf, None, 0
    while n_steps < _MAX_STEPS and method.advance() > 0.0:
        n_steps += 1
        if method.merit < best:
            state = method.state
            best = method.merit
            answer = problem.halves.join(problem.halves.settled(state.alpha, state.zl, state.zu))
        late = deadline is not None and time.monotonic() >= deadline
        if best <= tol or method.merit > _DIVERGED * best or late:
            break
    return answer, n_steps


class _GivenKernel(CentralPathProblem):
    """One machine with a kernel matrix that nothing changes."""

    def __init__(self, K: FloatArray, dual: DualProblem) -> None:
        self.K = K
        self.dual = dual
        self.halves = Halves.of(dual)
        self.sum_w = np.zeros(1)
        self.cone = ProductCone(())

    def linearise(self, w: FloatArray, M: Point, L: Point) -> Linearisation:
        """See :meth:`CentralPathProblem.linearise`."""
        del M, L
        return Linearisation(self.K, NoSensitivities(len(w)), self.K @ w, Blocks(()))


def _start(problem: _GivenKernel, w: FloatArray) -> tuple[CentralPathState, float]:
    """An iterate near w, and the scale of the scores."""
    halves = problem.halves
    given = np.maximum(halves.sign * w[halves.sample], 0.0)
    # Well inside, measured by what w has come to: products of variables and multipliers that
    # start too small for the residuals cannot grow any more.
    size = float(np.abs(w).max()) or float(halves.upper.max())
    inside = np.minimum(0.2 * size, 0.3 * halves.upper)
    alpha = np.clip(given, inside, halves.upper - inside)
    scores = problem.K @ halves.join(alpha)
    nu = -float(np.median(scores))
    scale = max(float(np.abs(scores + nu).max()), float(np.abs(halves.cost).max()))
    state = CentralPathState(
        alpha=alpha,
        M=Blocks(()),
        zl=np.full(len(given), scale),
        zu=scale * float(alpha.max()) / (halves.upper - alpha),
        S=Blocks(()),
        nu=np.array([nu]),
        xi=0.0,
    )
    return state, scale
