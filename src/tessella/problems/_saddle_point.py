"""The convex-concave problem, and the only place where its value and its gap are defined.

    OPT = min over feasible P  of  max over feasible w of   κ(w) - ½ wᵀ K(P) w

where P is a point of a product of cones with trace one (:mod:`tessella.cones`) and κ(w) is minus
the conjugate of the loss. For every feasible P and every feasible w, however inexact,

    lower(w) = κ(w) - ½ support(D(w))  ≤  OPT  ≤  upper(P, w) = min_b primal value of (K(P)w, b)

because the left side minimises over P for a fixed w and the right side is a primal value of the
machine with kernel K(P). The support function is n_P λ_max(D(w)) for one positive matrix of side
n_P, the largest wᵀK_i w for the weights of a dictionary, and the largest over the parts for a sum
of kernel sets. Both bounds are computed here, in float64, from P and w alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tessella.cones import Point, Spectrum, inner
from tessella.kernels import BoundKernelSet
from tessella.svm import DualProblem, best_intercepts, relative_gap

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Certificate:
    """Bounds of the optimum that hold whatever computed P and w.

    Attributes
    ----------
    upper : float
        The optimum is at most this, and P and w attain it.
    lower : float
        The optimum is at least this.
    intercept : ndarray of shape (n_machines,)
        Offsets b of the machines with which P and w attain `upper`.
    """

    upper: float
    lower: float
    intercept: FloatArray

    @property
    def gap(self) -> float:
        """Relative gap ``(upper - lower) / |upper|``."""
        return relative_gap(self.upper, self.lower)


class SaddlePoint:
    """Kernel learning on a bound kernel set with the machines of a :class:`DualProblem`.

    Parameters
    ----------
    kernels : BoundKernelSet
        The kernel set on the training rows.
    dual : DualProblem
        Labels or targets and loss, for the same rows. With several machines both are stacks of
        them, the value is the sum of theirs, and one certificate holds for all.
    fixed : Point, optional
        A feasible parameter that is not to be learned. The problem is then that of its machines
        alone, and its lower bound is their dual value.

    Attributes
    ----------
    cone : Cone
        Where the parameter lives.
    """

    def __init__(
        self, kernels: BoundKernelSet, dual: DualProblem, fixed: Point | None = None
    ) -> None:
        if kernels.n_samples != dual.size:
            raise ValueError(
                f"The kernel set has {kernels.n_samples} rows and the SVM has {dual.size}."
            )
        if len(kernels.machines) != len(dual.starts):
            raise ValueError(
                f"The kernel set is for {len(kernels.machines)} machines and the SVM has "
                f"{len(dual.starts)}."
            )
        self.kernels = kernels
        self.dual = dual
        self.cone = kernels.cone
        self.fixed = None if fixed is None else self.cone.checked(fixed)

    def at(self, w: ArrayLike) -> DualPoint:
        """Everything the problem has to say about a dual vector; made feasible first."""
        return DualPoint(self, self.dual.feasible(w))

    def certificate(self, P: Point, w: ArrayLike) -> Certificate:
        """The bounds that P and w prove; costs the moments of one dual vector."""
        return self.at(w).certificate(P)


class DualPoint:
    """A feasible dual vector with its gradient, lower bound and best response.

    Attributes
    ----------
    w : ndarray of shape (m,)
        The dual vector.
    """

    def __init__(self, problem: SaddlePoint, w: FloatArray) -> None:
        self._problem = problem
        self.w = w
        self._moments = problem.kernels.moments(w)

    @property
    def gradient(self) -> Point:
        """D(w); the gradient of the value in P is ``-D(w) / 2``."""
        return self._moments.gradient

    @cached_property
    def spectrum(self) -> Spectrum:
        """The spectrum of D(w): its inner products with vertices of the feasible set."""
        return self._problem.cone.spectrum(self.gradient)

    @cached_property
    def support(self) -> float:
        """The largest ``wᵀK(P)w`` over feasible P; over the fixed one where there is one."""
        if self._problem.fixed is None:
            return self._problem.cone.support(self.spectrum)
        return max(0.0, float(self.w @ self._moments.scores(self._problem.fixed)))

    @property
    def lower(self) -> float:
        """``κ(w) - ½ support(D(w))``, a lower bound of the optimum."""
        return self._problem.dual.kappa(self.w) - 0.5 * self.support

    def dual_value(self, P: Point) -> float:
        """``κ(w) - ½ wᵀK(P)w``, the dual value of the machines with kernel K(P)."""
        return self._problem.dual.kappa(self.w) - 0.5 * inner(self.gradient, P)

    @property
    def best_response(self) -> Point:
        """A feasible P that minimises the objective for this w: a vertex of the feasible set.

        One vertex of several that tie is as good as another; all of them together would break
        the trace.
        """
        return self._problem.cone.vertex(self.spectrum)

    def upper(self, P: Point) -> tuple[float, FloatArray]:
        """The primal value of a feasible P with this w, and the offsets that attain it."""
        dual = self._problem.dual
        scores = self._moments.scores(P)
        intercept, loss = best_intercepts(dual, scores)
        # A quadratic form of a positive semidefinite matrix: below zero it is rounding.
        return 0.5 * max(0.0, float(self.w @ scores)) + loss, intercept

    def certificate(self, P: Point) -> Certificate:
        """Bounds proved by this w and a feasible P."""
        upper, intercept = self.upper(P)
        return Certificate(upper=upper, lower=self.lower, intercept=intercept)
