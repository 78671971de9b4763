"""The interior point method on some samples of one machine, with compiled steps.

A step with few samples consists of many operations on small arrays, most of whose time is that of
the interpreter. The compiled steps are those of :class:`tessella.svm.InteriorPoint`, which serves
all other cones and numbers of machines, up to rounding.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cython_blas, cython_lapack

from tessella import _core
from tessella.solvers.central_path import RestrictedProblem
from tessella.svm import CentralPathState, InteriorPoint

FloatArray = NDArray[np.float64]

MOST_SAMPLES = 1500  # several matrices of this side are kept, and beyond it BLAS takes all the time
_TO_BOUNDARY = 0.98  # as in InteriorPoint


class CompiledInteriorPoint:
    """The interior point iteration; call :meth:`advance` until :attr:`merit` is small enough.

    Parameters
    ----------
    problem : RestrictedProblem
        Problem with a thin form.
    state : CentralPathState
        First iterate, strictly inside all bounds and cones.
    scale : float
        Size of the scores, which is the unit of the residuals.
    """

    def __init__(self, problem: RestrictedProblem, state: CentralPathState, scale: float) -> None:
        thin, halves = problem.thin, problem.halves
        assert thin is not None
        self._shapes = state.alpha.shape, state.M.shape
        self._steps = _core.JointSteps(
            products=thin.products,
            a=thin.a,
            low=thin.low,
            ratio=thin.ratio,
            box=thin.box,
            held_g=thin.held_g,
            held_h=thin.held_h,
            held_half_gradient=thin.held_half_gradient,
            sample=halves.sample.astype(np.int64, copy=False),
            sign=halves.sign,
            cost=halves.cost,
            upper=halves.upper,
            curvature=halves.curvature,
            sum_w=float(problem.sum_w[0]),
            total=thin.total,
            alpha=state.alpha,
            zl=state.zl,
            zu=state.zu,
            P=state.M,
            S=state.S,
            nu=float(state.nu[0]),
            xi=state.xi,
            scale=scale,
            to_boundary=_TO_BOUNDARY,
            blas=cython_blas.__pyx_capi__,
            lapack=cython_lapack.__pyx_capi__,
        )

    @property
    def merit(self) -> float:
        """Largest of the complementarity and the residuals, each relative to its scale."""
        return self._steps.merit

    @property
    def state(self) -> CentralPathState:
        """A copy of the current iterate."""
        parts, matrix = self._shapes
        alpha, zl, zu = (np.empty(parts) for _ in range(3))
        M, S = np.empty(matrix), np.empty(matrix)
        nu, xi = self._steps.read(alpha, zl, zu, M, S)
        return CentralPathState(alpha=alpha, M=M, zl=zl, zu=zu, S=S, nu=np.array([nu]), xi=xi)

    def advance(self) -> float:
        """Take a predictor-corrector step; return its length, 0 if rounding prevents a step."""
        return self._steps.advance()


def interior_point(
    problem: RestrictedProblem, state: CentralPathState, scale: float
) -> InteriorPoint | CompiledInteriorPoint:
    """Return the interior point iteration from a state, compiled if the problem allows it."""
    if problem.dual.size <= MOST_SAMPLES and problem.thin is not None:
        return CompiledInteriorPoint(problem, state, scale)
    return InteriorPoint(problem, state, scale)
