"""Losses of the machines of an automatic model, each with its exact leave-one-out predictions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tessella.leave_one_out import svm_leave_one_out
from tessella.svm import (
    DualProblem,
    DualSolution,
    SmoothDual,
    best_intercepts,
    relative_gap,
    solve_dual,
)

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

_SVM_TOL = 1e-6


@dataclass(frozen=True, eq=False)
class Solution:
    """A machine on given rows.

    Attributes
    ----------
    coef : ndarray of shape (m, k)
        Dual coefficients, one column for each output.
    intercept : ndarray of shape (k,)
        Intercept of each output.
    gap : float
        Certified relative gap of the primal and the dual value. The squared loss has one
        certificate for all outputs; otherwise it is that of the worst output.
    """

    coef: FloatArray
    intercept: FloatArray
    gap: float


class MachineLoss(Protocol):
    """A loss, with the machine that minimises it for a given kernel matrix."""

    name: str

    def solve(
        self,
        K: FloatArray,
        Y: FloatArray,
        C: float,
        weight: FloatArray,
        base: FloatArray | None = None,
    ) -> Solution:
        """Return the machine with a kernel matrix.

        Parameters
        ----------
        K : ndarray of shape (m, m)
            Kernel matrix of some rows.
        Y : ndarray of shape (m, k)
            What the machine is fitted to.
        C : float
            Weight of the loss.
        weight : ndarray of shape (m,)
            Weights of the rows.
        base : ndarray of shape (m, k), optional
            Scores of another function. The loss is that of the sum of both functions.
        """
        ...


@dataclass(frozen=True)
class SquaredError:
    """The squared loss, whose machines are one linear system for all outputs."""

    name = "squared"

    def solve(
        self,
        K: FloatArray,
        Y: FloatArray,
        C: float,
        weight: FloatArray,
        base: FloatArray | None = None,
    ) -> Solution:
        """See :meth:`MachineLoss.solve`."""
        dual = DualProblem.ridge(Y if base is None else Y - base, C * weight)
        answer = SmoothDual(K, dual)
        w = dual.feasible(answer.w)
        scores = answer.scores(w)
        intercepts, loss = best_intercepts(dual, scores)
        energy = 0.5 * float(np.maximum(w @ scores, 0.0))  # which keeps a NaN
        gap = relative_gap(energy + loss, dual.kappa(w) - energy)
        return Solution(np.ascontiguousarray(w.reshape(Y.shape[1], -1).T), intercepts, gap)


class _SupportVectors:
    """What the hinge loss and the tube loss have in common: a machine for each output."""

    def dual(self, y: FloatArray, C: float, weight: FloatArray) -> DualProblem:
        """Return the dual problem of one output."""
        raise NotImplementedError

    def solve(
        self,
        K: FloatArray,
        Y: FloatArray,
        C: float,
        weight: FloatArray,
        base: FloatArray | None = None,
    ) -> Solution:
        """See :meth:`MachineLoss.solve`."""
        others = np.zeros_like(Y) if base is None else base
        found = [
            self._machine(K, y, self.dual(y, C, weight), other)
            for y, other in zip(Y.T, others.T, strict=True)
        ]
        coef = np.column_stack([own.coef for own in found])
        intercept = np.concatenate([own.intercept for own in found])
        return Solution(coef, intercept, max(own.gap for own in found))

    def _machine(
        self, K: FloatArray, y: FloatArray, dual: DualProblem, base: FloatArray
    ) -> Solution:
        """Return the machine of one output, which is added to the scores `base`."""
        del y
        # The dual of both losses is linear in the targets, from which the scores are subtracted.
        found = _solved(K, dual.with_linear(dual.linear - base))
        return Solution(found.w[:, None], np.array([found.intercept]), found.gap)

    def held_out_scores(
        self,
        K: FloatArray,
        Y: FloatArray,
        C: float,
        weight: FloatArray,
        left_out: FloatArray,
        rows: IntArray,
    ) -> FloatArray:
        """Return the scores of some rows in the machines without a fraction of their weight."""
        columns = []
        for y in Y.T:
            dual = self.dual(y, C, weight)
            columns.append(_scores_without(K, dual, _solved(K, dual), left_out, rows))
        return np.column_stack(columns)


def _solved(K: FloatArray, dual: DualProblem) -> DualSolution:
    return solve_dual(K, dual, tol=_SVM_TOL, n_jobs=1).unless_interrupted()


def _scores_without(
    K: FloatArray, dual: DualProblem, solution: DualSolution, left_out: FloatArray, rows: IntArray
) -> FloatArray:
    found = svm_leave_one_out(K, dual, solution, left_out=left_out, rows=rows, n_jobs=1)
    return found.scores[rows]


@dataclass(frozen=True)
class Hinge(_SupportVectors):
    """The hinge loss, for outputs that are -1 or +1."""

    name = "hinge"

    def dual(self, y: FloatArray, C: float, weight: FloatArray) -> DualProblem:
        """See :meth:`_SupportVectors.dual`."""
        return DualProblem.classification(y, C * weight)

    def _machine(
        self, K: FloatArray, y: FloatArray, dual: DualProblem, base: FloatArray
    ) -> Solution:
        """See :meth:`_SupportVectors._machine`.

        With rows of one class only, every large intercept is an optimum; the smallest one is taken.
        """
        if (y != y[0]).any():
            return super()._machine(K, y, dual, base)
        shortfall = max(0.0, float((1.0 - y * base).max()))
        return Solution(np.zeros((len(y), 1)), y[:1] * shortfall, 0.0)


@dataclass(frozen=True)
class Tube(_SupportVectors):
    """The ε-insensitive loss, which outliers of the target hardly move.

    Attributes
    ----------
    epsilon : float
        Half-width of the tube, in deviations of the target.
    """

    epsilon: float
    name = "tube"

    def dual(self, y: FloatArray, C: float, weight: FloatArray) -> DualProblem:
        """See :meth:`_SupportVectors.dual`."""
        return DualProblem.regression(y, C * weight, self.epsilon)
