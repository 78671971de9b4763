"""A dual vector as the difference of two nonnegative vectors, for interior point methods."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tessella.backend._lazy import cached_property
from tessella.svm._problem import DualProblem

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Halves:
    """The parts of a dual vector, which interior point methods use as variables.

    A dual variable with bounds on both sides of zero is the difference of two nonnegative
    variables, and one with a single sign has one of them. A dual variable without bounds, whose
    loss has a curvature, is its own single part. The dual vector w of f samples is then the sum
    of ``sign * alpha`` over the parts alpha of each sample.

    Attributes
    ----------
    sample : ndarray of int of shape (N,)
        Number of the sample that each part belongs to.
    sign : ndarray of shape (N,)
        Sign of each part in the dual vector, +1 or -1.
    cost : ndarray of shape (N,)
        Coefficient of each part in the dual objective.
    upper : ndarray of shape (N,)
        Upper bound of each part, whose lower bound is zero; infinity for a part without bounds.
    curvature : ndarray of shape (N,)
        Coefficient of half the square of each part, which the dual objective subtracts. Zero for
        a part with bounds.
    size : int
        Number of samples f.
    """

    sample: NDArray[np.intp]
    sign: FloatArray
    cost: FloatArray
    upper: FloatArray
    curvature: FloatArray
    size: int

    @classmethod
    def of(cls, dual: DualProblem) -> Halves:
        """Return the parts of a dual problem, without those that can only be zero.

        The loss of each machine must have finite bounds and no curvature, or curvature and
        neither bounds nor a kink.
        """
        known = dual.is_boxed or dual.is_smooth
        refused = [] if known else [o for o in dual.each if not (o.is_boxed or o.is_smooth)]
        if refused:
            names = ", ".join(sorted({type(own.losses[0]).__name__ for own in refused}))
            raise ValueError(
                f"Halves supports losses with finite bounds and without curvature, or with "
                f"curvature and without bounds; got {names}."
            )
        whole = np.isinf(dual.upper)
        up, down = np.flatnonzero(dual.upper > 0), np.flatnonzero((dual.lower < 0) & ~whole)
        sample = np.concatenate([up, down])
        sign = np.concatenate([np.ones(len(up)), -np.ones(len(down))])
        return cls(
            sample=sample,
            sign=sign,
            cost=sign * dual.linear[sample] - dual.epsilon[sample],
            upper=np.concatenate([dual.upper[up], -dual.lower[down]]),
            curvature=dual.curvature[sample],
            size=dual.size,
        )

    @cached_property
    def bounded(self) -> NDArray[np.bool_]:
        """Whether each part has bounds; an array of shape (N,)."""
        bounded: NDArray[np.bool_] = np.isfinite(self.upper)
        return bounded

    @cached_property
    def n_bounds(self) -> int:
        """Number of bounds of all parts, two for each part that has any."""
        return 2 * int(np.count_nonzero(self.bounded))

    def below(self, alpha: FloatArray) -> FloatArray:
        """Return the distance of each part from its lower bound; one where there is no bound."""
        return np.where(self.bounded, alpha, 1.0)

    def above(self, alpha: FloatArray) -> FloatArray:
        """Return the distance of each part from its upper bound; one where there is no bound."""
        return np.where(self.bounded, self.upper - alpha, 1.0)

    def given(self, w: FloatArray) -> FloatArray:
        """Return the parts of a dual vector; of two parts of a sample, one is zero."""
        signed: FloatArray = self.sign * w[self.sample]
        return np.where(self.bounded, np.maximum(signed, 0.0), signed)

    def total(self, values: FloatArray) -> FloatArray:
        """Return the sum of `values` over the parts of each sample."""
        sums = np.bincount(self.sample, weights=values, minlength=self.size)
        return sums.astype(np.float64, copy=False)

    def join(self, alpha: FloatArray) -> FloatArray:
        """Return the dual vector whose parts are `alpha`."""
        return self.total(self.sign * alpha)

    def settled(self, alpha: FloatArray, zl: FloatArray, zu: FloatArray) -> FloatArray:
        """Return `alpha` with the parts that converge to a bound placed at this bound.

        Of the distance to a bound and its multiplier one converges to zero. It is taken to be
        the smaller one, each relative to its own unit.

        Parameters
        ----------
        alpha : ndarray of shape (N,)
            Values of the parts.
        zl : ndarray of shape (N,)
            Multipliers of the lower bounds.
        zu : ndarray of shape (N,)
            Multipliers of the upper bounds.
        """
        unit = (float(zl.max()) + float(zu.max())) / np.maximum(self.upper, 1e-300)
        at_zero = self.bounded & (alpha * unit < zl)
        at_upper = self.bounded & (self.above(alpha) * unit < zu)
        return np.where(at_zero, 0.0, np.where(at_upper, self.upper, alpha))

    @cached_property
    def pairs(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Positions of the first and of the second part of the samples that have two."""
        order = np.argsort(self.sample, kind="stable")
        same = self.sample[order][1:] == self.sample[order][:-1]
        return order[:-1][same], order[1:][same]

    def split(
        self, dw: FloatArray, score_change: FloatArray, rho: FloatArray, theta: FloatArray
    ) -> FloatArray:
        """Return the changes of the parts that belong to a change of the dual vector.

        They solve ``theta * change = rho - sign * score_change``. Dividing by theta would give
        every one of them, but of the two parts of a sample only the larger theta is a safe
        divisor. The change of the other part follows from `dw`.

        Parameters
        ----------
        dw : ndarray of shape (f,)
            Change of the dual vector.
        score_change : ndarray of shape (f,)
            Change of the scores of the samples.
        rho : ndarray of shape (N,)
            Right-hand side of the equation of each part.
        theta : ndarray of shape (N,)
            Coefficient of the equation of each part; positive.
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
