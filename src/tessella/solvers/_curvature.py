"""The Hessian of the optimal value of machines, as a function of the parameter.

While no sample changes sides, the optimal dual vector is the solution of a linear system, and the
value has the Hessian ``Jᵀ H J``: J has the derivatives of the scores of the free samples with
respect to the parameter, and H maps changes of these scores to changes of the dual variables.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tessella.backend import BlockDiagonal
from tessella.cones import Face, Point
from tessella.problems import DualPoint, SaddlePoint
from tessella.solvers.central_path import solve_smooth
from tessella.svm import RidgeInverse, SmoothDual

FloatArray = NDArray[np.float64]

# Number that is added to the diagonal of kernel matrices of free samples, relative to its mean.
_RIDGE = 1e-9


def curvature(
    problem: SaddlePoint, point: DualPoint, P: Point, face: Face, most: int
) -> FloatArray:
    """Return the Hessian of the value at a parameter, in coordinates of a face.

    Parameters
    ----------
    problem : SaddlePoint
        The machines.
    point : DualPoint
        Their dual vector, optimal for the parameter.
    P : Point
        The parameter.
    face : Face
        Face in which the parameter moves; None is the whole cone.
    most : int
        Largest number of free samples of a machine that are looked at, for a loss with kinks. With
        fewer of them the Hessian is too small, which a line search has to make up for.

    Returns
    -------
    ndarray of shape (dimension, dimension)
        Hessian in the coordinates of ``Cone.vector``.
    """
    if problem.dual.is_smooth:
        return smooth_curvature(solve_smooth(problem.kernels, problem.dual, P), point, face)
    rows = _some_free(point, most)
    side = problem.cone.face(face).dimension
    total = np.zeros((side, side))
    if not len(rows):
        return total
    columns = point.sensitivities(face, rows).matrix()
    blocks = problem.kernels.restrict(rows).factor_blocks(problem.cone.positive_factors(P), False)
    matrices = blocks.blocks if isinstance(blocks, BlockDiagonal) else [blocks]
    start = 0
    for K in matrices:
        own = slice(start, start + len(K))
        diagonal = problem.dual.curvature[rows[own]] + _RIDGE * float(np.trace(K)) / len(K)
        inverse = RidgeInverse(np.asarray(K, dtype=np.float64), diagonal)
        # H maps constants to zero, and without them there is less rounding.
        total += inverse.form(columns[own] - columns[own].mean(axis=0))
        start = own.stop
    return total


def smooth_curvature(duals: Sequence[SmoothDual], point: DualPoint, face: Face) -> FloatArray:
    """Return the Hessian of machines with a smooth loss, from the solutions of their systems."""
    problem = point.problem
    side = problem.cone.face(face).dimension
    total = np.zeros((side, side))
    inverses = (own.inverse(k) for own in duals for k in range(len(own.intercepts)))
    for inverse, rows in zip(inverses, problem.dual.machines, strict=True):
        columns = point.sensitivities(face, np.arange(rows.start, rows.stop)).matrix()
        # H maps constants to zero, and without them there is less rounding.
        total += inverse.form(columns - columns.mean(axis=0))
    return total


def _some_free(point: DualPoint, most: int) -> NDArray[np.intp]:
    """Return free samples of the machines that have at least two, ascending."""
    dual = point.problem.dual
    free = dual.free(point.w)
    chosen = []
    for rows in dual.machines:
        own = rows.start + np.flatnonzero(free[rows])
        if len(own) > most:
            own = own[np.linspace(0, len(own) - 1, most).astype(np.intp)]
        if len(own) > 1:
            chosen.append(own)
    return np.concatenate(chosen) if chosen else np.empty(0, dtype=np.intp)
