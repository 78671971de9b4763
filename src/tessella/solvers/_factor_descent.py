"""Descent on a factor U of P = U Uᵀ, with one pass over the machines for each step.

The value of several machines is a smooth function of P near the optimum, where P has about as many
directions as the machines need and not one or two. With a scaled factor, P stays feasible:

    P = (1 - floor) · U Uᵀ / trace(U Uᵀ) + floor · centre,

and the gradient by U is that of the value by P, -½ D(w), times U. Quasi-Newton steps (L-BFGS) turn
the span of U within a few passes, each of which costs the machines at one kernel, solved from the
dual vectors of the pass before. After the first pass the machines see only their support vectors
and the samples that are nearest to their margin; the others are zero in the dual vectors, which
stay feasible for the whole problem. A pass over all samples has to follow.

The dual vector of a single P near the optimum proves a poor bound: D(w) has large eigenvalues where
P has nearly nothing, in directions that differ from pass to pass. Their average is feasible, D of
it is at most the average of the gradients, and it proves a bound that is many times closer.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tessella.cones import PSD
from tessella.problems import DualPoint
from tessella.solvers._run import Run, StopRun, SvmAnswer
from tessella.svm import DualProblem

FloatArray = NDArray[np.float64]
Rows = NDArray[np.intp]

FLOOR = 3e-3  # part of the centre in P, without which lost directions would cost nothing
_LEAST_SHARE = 1e-4  # of a column of the first U, relative to the largest
_MEMORY = 10  # pairs of steps and changes of the gradient
_AVERAGED = 8  # dual vectors of the last passes in the average
_LEAST_GOAL = 1e-3  # relative gap below which rounds of a solver are faster than passes
_SVM_TOL = 0.5  # gap of the machines, as a part of the goal
_DECREASE = 1e-4  # part of the predicted decrease that a step has to attain
_SHORTEST = 1e-3  # a shorter step says that the value is as flat as its errors
_FIRST_STEP = 0.1  # length of the first step relative to U
_IDLE_PASSES = 3  # steps that have to gain the part below of the goal together
_WORTH = 0.1
_OTHERS = 2.0  # samples near the margin for each support vector
_WORTH_LEAVING = 0.6  # part of the samples up to which the others are left out


@dataclass(frozen=True)
class Descent:
    """What the passes have found.

    Attributes
    ----------
    P : ndarray of shape (n, n)
        The parameter of the smallest value, without the floor.
    w : ndarray of shape (m,)
        Dual vector of the machines with a kernel near that of the parameter.
    average : DualPoint
        The average of the last dual vectors, whose bound the run has.
    support : ndarray of bool of shape (m,)
        Samples that were support vectors in any of the passes.
    """

    P: FloatArray
    w: FloatArray
    average: DualPoint
    support: NDArray[np.bool_]


def descend(run: Run, P: FloatArray, w: FloatArray, directions: int, passes: int) -> Descent:
    """Descend from a feasible P and the dual vector of a kernel near it.

    Parameters
    ----------
    run : Run
        The run, whose lower bound is raised by the average. Its parameter is one matrix.
    P : ndarray of shape (n, n)
        Feasible parameter.
    w : ndarray of shape (m,)
        Dual vector to start from.
    directions : int
        Largest number of columns of U.
    passes : int
        Largest number of passes over the machines.

    Raises
    ------
    StopRun
        If the time of the run is over or the run is interrupted. The run then has the pair of the
        best pass.
    """
    own = _Passes(run, w, passes)
    try:
        return own.descend(leading_factor(P, directions))
    except StopRun:
        if own.best is not None:
            run.keep_roughly(own.best[1], own.best[2])
        raise


def leading_factor(P: FloatArray, directions: int) -> FloatArray:
    """Return a factor with the leading directions of P, all of them with some weight."""
    values, vectors = np.linalg.eigh(P)
    kept = max(1, min(directions, len(P)))
    shares = np.maximum(values[-kept:], _LEAST_SHARE * values[-1])
    factor: FloatArray = vectors[:, -kept:] * np.sqrt(shares)
    return factor / np.linalg.norm(factor)


class _Passes:
    """The passes over the machines, from the second one on over those samples that matter."""

    def __init__(self, run: Run, w: FloatArray, most: int) -> None:
        self._run, self._w, self._left = run, w, most
        self._part, self._rows = run, np.arange(len(w))  # what the next pass sees
        cone = run.problem.cone
        assert isinstance(cone, PSD)
        self._cone = cone
        self._goal = max(_LEAST_GOAL, run.tol)
        self._tol = _SVM_TOL * self._goal
        self.best: tuple[float, FloatArray, FloatArray] | None = None  # value, parameter and dual
        self._duals: deque[FloatArray] = deque(maxlen=_AVERAGED)
        self._support = np.zeros(len(w), dtype=np.bool_)

    def descend(self, U: FloatArray) -> Descent:
        """Take steps until these gain little or the passes are used up."""
        value, slope, best_w = self._first_at(U)
        pairs: deque[tuple[FloatArray, FloatArray]] = deque(maxlen=_MEMORY)
        values = [value]
        while self._left:
            step = quasi_newton_direction(slope, pairs)
            if not pairs:
                length = max(float(np.linalg.norm(step)), 1e-300)
                step *= _FIRST_STEP * float(np.linalg.norm(U)) / length
            found = self._search(U, value, slope, step)
            if found is None:
                break
            new, new_value, new_slope, best_w = found
            change, bend = new - U, new_slope - slope
            if float(np.sum(change * bend)) > 1e-10 * float(np.sum(bend * bend)):
                pairs.append((change, bend))
            U, value, slope = new, new_value, new_slope
            values.append(value)
            if len(values) > _IDLE_PASSES:
                gain = values[-1 - _IDLE_PASSES] - value
                if gain < _WORTH * self._goal * abs(value):
                    break
        return self._result(U, best_w)

    def _first_at(self, U: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """Return what :meth:`_at` returns, and leave out the samples that are far from a margin."""
        answer = self._solve(self._parameter(U))
        rows = _near_rows(self._run.problem.dual, answer)
        if len(rows) <= _WORTH_LEAVING * len(answer.w):
            self._rows, self._part = rows, self._run.part_on(rows)
        return self._with_slope(U, answer)

    def _solve(self, P: FloatArray) -> SvmAnswer:
        """Solve the machines on the samples of the next pass, and keep the best pair."""
        self._left -= 1
        answer = self._part.svm_at(P, self._w[self._rows], self._tol)
        if self._part is not self._run:
            self._run.take_counts(self._part)
        self._w = np.zeros_like(self._w)
        self._w[self._rows] = answer.w
        self._duals.append(self._w)
        self._support |= self._w != 0.0
        if self.best is None or answer.objective < self.best[0]:
            self.best = answer.objective, P, self._w
        return answer

    def _parameter(self, U: FloatArray) -> FloatArray:
        square = U @ U.T
        P: FloatArray = (1.0 - FLOOR) * self._cone.normalised(square)
        return P + FLOOR * self._cone.centre

    def _at(self, U: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """Return the value at U, its gradient, and the dual vector."""
        return self._with_slope(U, self._solve(self._parameter(U)))

    def _with_slope(self, U: FloatArray, answer: SvmAnswer) -> tuple[float, FloatArray, FloatArray]:
        D = self._part.problem.at(self._w[self._rows]).gradient
        return answer.objective, factor_slope(self._cone, U, D), self._w

    def _search(
        self, U: FloatArray, value: float, slope: FloatArray, step: FloatArray
    ) -> tuple[FloatArray, float, FloatArray, FloatArray] | None:
        """Return the first point along a step whose value is small enough."""
        falls = float(np.sum(slope * step))
        length = 1.0
        slack = self._tol * abs(value)  # the errors of the values
        while self._left and length > _SHORTEST:
            new = U + length * step
            found = self._at(new)
            if found[0] <= value + _DECREASE * length * falls + 0.1 * slack:
                return new, *found
            length = next_length(length, found[0] - value, falls)
        return None

    def _result(self, U: FloatArray, w: FloatArray) -> Descent:
        duals = np.array(self._duals)
        average = self._run.problem.at(duals[-(len(duals) // 2 + 1) :].mean(axis=0))
        self._run.raise_bound(average)
        P = self._cone.normalised(U @ U.T)  # the floor served the bounds, and costs value
        return Descent(P, w, average, self._support)


def factor_slope(cone: PSD, U: FloatArray, D: FloatArray) -> FloatArray:
    """Return the gradient of the value by a factor U, for the point D(w) at its parameter."""
    size = cone.trace(U @ U.T)
    pull = -0.5 * (1.0 - FLOOR) * D
    # Along U the scaled parameter does not change.
    along = float(np.sum(U * (pull @ U))) / float(np.sum(U * U))
    slope: FloatArray = (2.0 / size) * (pull @ U - along * U)
    return slope


def next_length(length: float, change: float, falls: float) -> float:
    """Return a shorter step: the minimum of the parabola through the change of the value."""
    rise = change - length * falls
    best = -0.5 * falls * length**2 / rise if rise > 0.0 else 0.5 * length
    return min(0.5 * length, max(0.1 * length, best))


def _near_rows(dual: DualProblem, answer: SvmAnswer) -> Rows:
    """Return the support vectors of an answer and the samples that are nearest to a margin."""
    support = answer.w != 0.0
    distance = np.where(support, -1.0, dual.distance_to_kink(answer.residual))
    count = int((1.0 + _OTHERS) * np.count_nonzero(support))
    rows: Rows = np.sort(np.argsort(distance, kind="stable")[:count])
    return rows


def quasi_newton_direction(
    slope: FloatArray, pairs: deque[tuple[FloatArray, FloatArray]]
) -> FloatArray:
    """Return the quasi-Newton direction, by the two loops over the pairs."""
    step = -slope
    weights = []
    for change, bend in reversed(pairs):
        weight = float(np.sum(change * step)) / float(np.sum(change * bend))
        weights.append(weight)
        step = step - weight * bend
    if pairs:
        change, bend = pairs[-1]
        step *= float(np.sum(change * bend)) / float(np.sum(bend * bend))
    for (change, bend), weight in zip(pairs, reversed(weights), strict=True):
        back = float(np.sum(bend * step)) / float(np.sum(change * bend))
        step = step + (weight - back) * change
    return step
