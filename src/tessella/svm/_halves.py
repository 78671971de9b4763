"""A dual vector as the difference of nonnegative parts, as interior point methods want it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tessella.svm._problem import DualProblem

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Halves:
    """The nonnegative halves α of a dual vector of f samples: w = Σ sign·α.

    Attributes
    ----------
    sample : ndarray of int of shape (N,)
        Sample that each half belongs to.
    sign : ndarray of shape (N,)
        +1 or -1: its part in w.
    cost : ndarray of shape (N,)
        Its coefficient in the dual objective.
    upper : ndarray of shape (N,)
        Its upper bound; the lower one is zero.
    size : int
        Number of samples f.
    """

    sample: NDArray[np.intp]
    sign: FloatArray
    cost: FloatArray
    upper: FloatArray
    size: int

    @classmethod
    def of(cls, dual: DualProblem) -> Halves:
        """Those of a dual problem whose bound is not zero."""
        up, down = np.flatnonzero(dual.upper > 0), np.flatnonzero(dual.lower < 0)
        sample = np.concatenate([up, down])
        sign = np.concatenate([np.ones(len(up)), -np.ones(len(down))])
        return cls(
            sample=sample,
            sign=sign,
            cost=sign * dual.linear[sample] - dual.epsilon[sample],
            upper=np.concatenate([dual.upper[up], -dual.lower[down]]),
            size=dual.size,
        )

    def total(self, values: FloatArray) -> FloatArray:
        """Sum of the values of each sample's halves."""
        sums = np.bincount(self.sample, weights=values, minlength=self.size)
        return sums.astype(np.float64, copy=False)

    def join(self, alpha: FloatArray) -> FloatArray:
        """The dual vector w."""
        return self.total(self.sign * alpha)

    def settled(self, alpha: FloatArray, zl: FloatArray, zu: FloatArray) -> FloatArray:
        """α with the halves that are on their way to a border put there.

        Of a half and the multiplier of its border one tends to zero: the smaller one does, each
        measured in its own unit.
        """
        unit = (float(zl.max()) + float(zu.max())) / np.maximum(self.upper, 1e-300)
        at_zero, at_upper = alpha * unit < zl, (self.upper - alpha) * unit < zu
        return np.where(at_zero, 0.0, np.where(at_upper, self.upper, alpha))

    @cached_property
    def pairs(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Positions of the two halves of the samples that have two."""
        order = np.argsort(self.sample, kind="stable")
        same = self.sample[order][1:] == self.sample[order][:-1]
        return order[:-1][same], order[1:][same]

    def split(
        self, dw: FloatArray, score_change: FloatArray, rho: FloatArray, theta: FloatArray
    ) -> FloatArray:
        """Changes of the halves from those of w, where θ dα = ρ - sign · (change of the scores).

        Each half could be had by dividing by its θ; only the larger θ of a pair is a safe
        divisor, the other half follows from dw.
        """
        result: FloatArray = self.sign * dw[self.sample]
        first, second = self.pairs
        if not len(first):
            return result
        keep_first = theta[first] >= theta[second]
        safe = np.where(keep_first, first, second)
        other = np.where(keep_first, second, first)
        sample = self.sample[safe]
        result[safe] = (rho[safe] - self.sign[safe] * score_change[sample]) / theta[safe]
        result[other] = self.sign[other] * (dw[sample] - self.sign[safe] * result[safe])
        return result
