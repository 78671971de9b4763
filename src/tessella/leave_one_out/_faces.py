"""Optima of a machine with a piecewise linear loss, followed from face to face.

At an optimum each sample is *held* (its coefficient is zero or at a bound) or *free* (its residual
is at an edge of the tube, and its coefficient follows from the others). For given free samples V,
coefficients w, residuals r and intercept solve a linear system with the matrix

    M = [K_VV 1; 1ᵀ 0].

The *exchange matrix* is the solution of that system for all changes at once: it maps changes of
what is prescribed (coefficients of held samples, residuals of free ones) to changes of what
follows (residuals of held samples, coefficients of free ones). If a few samples change sides, the
new solution costs a system with as many unknowns as there are changes.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tessella.svm import DualProblem

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.intp]

# Added to the diagonal of K_VV, relative to its mean: equal rows may both be free.
_RIDGE = 1e-13

# A coefficient so close to zero or to a bound, relative to its bounds, is rounding.
_AT_A_BOUND = 1e-9

# An excess beyond a bound of so little, relative to the bounds or to the targets, is rounding.
_ROUNDING = 1e-9

# Coefficients that are larger than their bounds by this factor come from a system that is singular:
# there are more free samples than the rank of the kernel matrix allows.
_EXPLOSION = 1e4

# Changes of side by all samples at once settle after a few steps, or run in circles with more and
# more changes. In the latter case one sample at a time changes sides.
_JOINT_STEPS = 12
_SINGLE_STEPS = 100
_MOST_EXCHANGED = 150


@dataclass(frozen=True)
class Sides:
    """Which samples are held and which are free, and the number that is prescribed for each.

    Attributes
    ----------
    held : ndarray of bool of shape (m,)
        Whether the coefficient of a sample is prescribed, and not its residual.
    value : ndarray of shape (m,)
        Prescribed coefficient of a held sample, prescribed residual of a free one.
    """

    held: BoolArray
    value: FloatArray

    @classmethod
    def of(cls, dual: DualProblem, w: FloatArray) -> Sides:
        """The sides of the samples at a point near an optimum."""
        margin = _AT_A_BOUND * (dual.upper - dual.lower)
        bounds = np.array([dual.lower, np.zeros(len(w)), dual.upper])
        nearest = np.take_along_axis(bounds, np.abs(bounds - w).argmin(axis=0)[None], axis=0)[0]
        held = np.abs(w - nearest) <= margin
        return cls(held, np.where(held, nearest, dual.epsilon * np.sign(w)))

    def with_held(self, sample: int, coefficient: float) -> Sides:
        """The same sides, but one sample is held at a coefficient."""
        held, value = self.held.copy(), self.value.copy()
        held[sample], value[sample] = True, coefficient
        return Sides(held, value)


@dataclass(frozen=True)
class FacePoint:
    """Coefficients and residuals that solve the system of some sides.

    Attributes
    ----------
    sides : Sides
        Prescribed numbers.
    w : ndarray of shape (m,)
        Coefficients.
    residual : ndarray of shape (m,)
        Target minus score of each sample, intercept included.
    """

    sides: Sides
    w: FloatArray
    residual: FloatArray


class Faces:
    """The exchange matrix at one point, and optima of similar problems that it leads to.

    Parameters
    ----------
    K : ndarray of shape (m, m)
        Kernel matrix in float64.
    dual : DualProblem
        A single machine with a piecewise linear loss.
    point : FacePoint
        Point to start from, with at least one free sample.

    Raises
    ------
    numpy.linalg.LinAlgError
        If the free samples do not determine coefficients and intercept.
    """

    def __init__(self, K: FloatArray, dual: DualProblem, point: FacePoint) -> None:
        self.point = point
        self._dual = dual
        self._columns = _exchange_columns(K, point.sides.held)
        self._largest = _EXPLOSION * float(np.max(dual.upper - dual.lower))

    def at(self, point: FacePoint) -> Faces:
        """The same exchange matrix with a more accurate point of the same sides."""
        moved = copy(self)
        moved.point = point
        return moved

    def settle(self, sides: Sides, fixed: int | None = None) -> FacePoint | None:
        """Change sides until every sample is on the right one.

        Parameters
        ----------
        sides : Sides
            Sides to start from.
        fixed : int, optional
            A sample that is held and stays so.

        Returns
        -------
        FacePoint or None
            The optimum with these bounds, apart from rounding, or None if it was not found.
        """
        together = self._change_sides(sides, fixed, _JOINT_STEPS, len(sides.held))
        return together or self._change_sides(sides, fixed, _SINGLE_STEPS, 1)

    def _change_sides(
        self, sides: Sides, fixed: int | None, steps: int, most: int
    ) -> FacePoint | None:
        """Change the sides of at most `most` samples in each step, those that are furthest off."""
        for _ in range(steps):
            point = self._solved(sides)
            if point is None:
                return None
            excess = _excess(self._dual, point)
            if fixed is not None:
                excess[fixed] = 0.0
            wrong = np.flatnonzero(excess)
            if not len(wrong):
                return point
            if len(wrong) > most:
                wrong = wrong[np.argsort(-np.abs(excess[wrong]))[:most]]
            sides = _changed(self._dual, sides, wrong, excess[wrong])
        return None

    def _solved(self, sides: Sides) -> FacePoint | None:
        """The point with the prescribed sides, by a system of the samples that have changed.

        None if there is none, or if so many samples have changed that solving again is faster.
        """
        base = self.point
        exchanged = np.flatnonzero(sides.held != base.sides.held)
        if len(exchanged) > _MOST_EXCHANGED or sides.held.all():
            return None
        moved = np.flatnonzero((sides.held == base.sides.held) & (sides.value != _now(base)))
        change = sides.value[moved] - _now(base)[moved]
        effect = change @ self._columns[moved]
        held = sides.held[exchanged]
        goal = sides.value[exchanged] - np.where(held, base.w[exchanged], base.residual[exchanged])
        block = self._columns[exchanged]
        try:
            unknown = np.linalg.solve(block[:, exchanged].T, goal - effect[exchanged])
        except np.linalg.LinAlgError:
            return None
        effect += unknown @ block
        w = np.where(base.sides.held, base.w, base.w + effect)
        residual = np.where(base.sides.held, base.residual + effect, base.residual)
        w[exchanged[~held]] = base.w[exchanged[~held]] + unknown[~held]
        residual[exchanged[held]] = base.residual[exchanged[held]] + unknown[held]
        w[sides.held] = sides.value[sides.held]
        residual[~sides.held] = sides.value[~sides.held]
        if not np.abs(w).max() <= self._largest:
            return None
        return FacePoint(sides, w, residual)


def _now(point: FacePoint) -> FloatArray:
    """The number of each sample that its side prescribes, as it is at a point."""
    return np.where(point.sides.held, point.w, point.residual)


def _exchange_columns(K: FloatArray, held: BoolArray) -> FloatArray:
    """The columns of the exchange matrix, as the rows of an array."""
    m, free, rest = len(K), np.flatnonzero(~held), np.flatnonzero(held)
    count = len(free)
    system = np.ones((count + 1, count + 1))
    system[:count, :count] = K[np.ix_(free, free)]
    system[count, count] = 0.0
    system.flat[: -(count + 2) : count + 2] += _RIDGE * float(np.mean(np.diag(K)))
    inverse = np.linalg.inv(system)
    border = np.ones((len(rest), count + 1))
    border[:, :count] = K[np.ix_(rest, free)]
    transfer = border @ inverse
    columns = np.empty((m, m))
    columns[np.ix_(free, free)] = -inverse[:count, :count]
    columns[np.ix_(rest, free)] = -transfer[:, :count]
    columns[np.ix_(free, rest)] = transfer[:, :count].T
    columns[np.ix_(rest, rest)] = transfer @ border.T - K[np.ix_(rest, rest)]
    return columns


def _excess(dual: DualProblem, point: FacePoint) -> FloatArray:
    """How far each sample is beyond the end of its side, in units of rounding; else zero.

    A positive number asks for a larger coefficient of a held sample, and says that the coefficient
    of a free sample is too large.
    """
    sides, w, residual = point.sides, point.w, point.residual
    # The edge of the tube that counts is the lower one for a negative coefficient, the upper one
    # for a positive coefficient, and for zero the one in the direction of the change.
    grow = residual - np.where(w < 0.0, -dual.epsilon, dual.epsilon)
    shrink = residual - np.where(w > 0.0, dual.epsilon, -dual.epsilon)
    held = np.where(w < dual.upper, np.maximum(grow, 0.0), 0.0)
    held += np.where(w > dual.lower, np.minimum(shrink, 0.0), 0.0)
    low, high = _range_of_free(dual, sides)
    size = _ROUNDING * np.where(sides.held, scale_of(dual), dual.upper - dual.lower)
    excess = np.where(sides.held, held, w - np.clip(w, low, high))
    relative: FloatArray = np.divide(excess, size, out=np.zeros(len(w)), where=size > 0.0)
    relative[np.abs(relative) <= 1.0] = 0.0
    return relative


def scale_of(dual: DualProblem) -> float:
    """Typical size of a residual: the largest distance between two targets."""
    return float(np.ptp(dual.linear)) or 1.0


def _range_of_free(dual: DualProblem, sides: Sides) -> tuple[FloatArray, FloatArray]:
    """Least and largest coefficient of a free sample at its edge of the tube."""
    # Without a tube both edges are one, and a coefficient may pass through zero.
    low = np.where(sides.value > 0.0, 0.0, dual.lower)
    high = np.where(sides.value < 0.0, 0.0, dual.upper)
    return low, high


def _changed(dual: DualProblem, sides: Sides, wrong: IntArray, excess: FloatArray) -> Sides:
    """The sides after some samples have changed theirs."""
    held, value = sides.held.copy(), sides.value.copy()
    was_held = held[wrong]
    low, high = _range_of_free(dual, sides)
    ends = np.where(excess > 0.0, high[wrong], low[wrong])
    # A coefficient below zero stays at the lower edge of the tube, one above at the upper edge.
    sign = np.sign(value[wrong])
    edges = np.where(sign == 0.0, np.sign(excess), sign) * dual.epsilon[wrong]
    value[wrong] = np.where(was_held, edges, ends)
    held[wrong] = ~was_held
    return Sides(held, value)


def violations(dual: DualProblem, w: FloatArray, residual: FloatArray) -> FloatArray:
    """Violation of the optimality conditions by each sample, at each of several points.

    Parameters
    ----------
    dual : DualProblem
        A single machine with a piecewise linear loss.
    w : ndarray of shape (n, m)
        Coefficients of each point, within their bounds.
    residual : ndarray of shape (n, m)
        Target minus score of each sample at each point.

    Returns
    -------
    ndarray of shape (n, m)
        Violations in units of the scores; zero at an optimum.
    """
    grow = residual - np.where(w < 0.0, -dual.epsilon, dual.epsilon)
    shrink = np.where(w > 0.0, dual.epsilon, -dual.epsilon) - residual
    grow[w >= dual.upper] = 0.0
    shrink[w <= dual.lower] = 0.0
    worst: FloatArray = np.maximum(np.maximum(grow, shrink), 0.0)
    return worst
