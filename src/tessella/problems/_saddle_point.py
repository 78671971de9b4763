"""The saddle-point problem, and the only definition of its value and its gap.

    OPT = min over feasible P  of  max over feasible w of   κ(w) - ½ wᵀ K(P) w

where P is a point of a product of cones with trace one (:mod:`tessella.cones`) and κ(w) is minus
the conjugate of the loss. For every feasible P and every feasible w, however inexact,

    lower(w) = κ(w) - ½ support(D(w))  ≤  OPT  ≤  upper(P, w) = min_b primal value of (K(P)w, b)

because the left side minimises over P for a fixed w and the right side is a primal value of the
machine with kernel K(P). The support function is n_P λ_max(D(w)) for one positive matrix of side
n_P, the largest wᵀK_i w for the weights of a dictionary, and the largest over the parts for a sum
of kernel sets. Both bounds are computed here, in float64, from P and w alone, and both allow for
the rounding of their sums: terms that cancel prove nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tessella.backend._lazy import cached_property
from tessella.cones import PSD, Face, Point, Sensitivities, Spectrum, inner
from tessella.kernels import BoundKernelSet
from tessella.svm import DualProblem, best_intercepts, relative_gap

FloatArray = NDArray[np.float64]

# Negative value of a quadratic form, relative to the sizes of its terms, that rounding explains.
_ROUNDING = 1e-8
# Rounding errors of one term on its way into a sum, such as those of a kernel value.
_OPERATIONS = 2.0
# Partial sums of a sum of many terms, and deviations of a sum of random errors that are allowed.
_LANES, _DEVIATIONS = 16, 3.0
_UNIT = float(np.finfo(np.float64).eps)
# By how much a trace may differ from one; a value changes by as much.
_FEASIBLE = 1e-10
# Multiples of a dual vector that are tried for a lower bound.
_SHARES = np.geomspace(1e-6, 1.0, 41)
# Part of a bound that an allowance for rounding may take before it is worth computing closely.
_NEGLIGIBLE = 1e-10


@dataclass(frozen=True)
class Certificate:
    """Bounds of the optimum that hold for any P and w, however they were computed.

    Attributes
    ----------
    upper : float
        Upper bound of the optimum, the primal value of P and w.
    lower : float
        Lower bound of the optimum, which w proves.
    intercept : ndarray of shape (n_machines,)
        Offset b of each machine with which P and w attain `upper`.
    """

    upper: float
    lower: float
    intercept: FloatArray

    @property
    def gap(self) -> float:
        """Relative gap ``(upper - lower) / |upper|`` of the two bounds."""
        return relative_gap(self.upper, self.lower)


class SaddlePoint:
    """Kernel learning on a bound kernel set with the machines of a :class:`DualProblem`.

    Parameters
    ----------
    kernels : BoundKernelSet
        The kernel set on the training rows.
    dual : DualProblem
        The labels or targets and the loss, for the rows of `kernels`. With several machines,
        `kernels` and `dual` are stacks of them, the value is the sum of their values, and one
        certificate holds for all machines.
    fixed : Point, optional
        A feasible parameter that is used instead of learning one. The problem is then to solve
        the machines with this parameter, and the lower bound is their dual value.

    Attributes
    ----------
    cone : Cone
        Cone that contains the parameter.
    """

    def __init__(
        self, kernels: BoundKernelSet, dual: DualProblem, fixed: Point | None = None
    ) -> None:
        if kernels.n_samples != dual.size:
            raise ValueError(
                f"The kernel set has {kernels.n_samples} rows and the SVM has {dual.size}."
            )
        if kernels.n_machines != len(dual.starts):
            raise ValueError(
                f"The kernel set is for {kernels.n_machines} machines and the SVM has "
                f"{len(dual.starts)}."
            )
        self.kernels = kernels
        self.dual = dual
        self.cone = kernels.cone
        self.fixed = None if fixed is None else self.cone.checked(fixed)

    def has_unit_trace(self, P: Point) -> bool:
        """Return whether the trace of a parameter is one, up to rounding."""
        return self.cone.degree == 0 or abs(self.cone.trace(P) - 1.0) <= _FEASIBLE

    def feature_norms(self, P: Point) -> FloatArray:
        """Return ``sqrt(K_ii(P))`` of all rows, the norms of the rows in the space of features."""
        return _roots(self.kernels.diag(P))

    @cached_property
    def largest_feature_norms(self) -> FloatArray:
        """Upper bounds of the feature norms of all feasible parameters, or those of the fixed one.

        A feasible point is at most `degree` times the centre, in the order of the cone.
        """
        if self.fixed is not None:
            return self.feature_norms(self.fixed)
        largest: FloatArray = max(1, self.cone.degree) ** 0.5 * self.centre_norms
        return largest

    @cached_property
    def centre_norms(self) -> FloatArray:
        """Feature norms at the centre, which measure the terms that a kernel value is the sum of.

        With a parameter that makes these terms cancel, a kernel value is smaller than their
        rounding errors may be.
        """
        return _roots(self.kernels.centre_diag)

    def at(self, w: ArrayLike) -> DualPoint:
        """Return a dual vector, made feasible, with its gradient, bound and best response."""
        return DualPoint(self, self.dual.feasible(w))

    def certificate(self, P: Point, w: ArrayLike) -> Certificate:
        """Return the bounds that P and w prove, at the cost of the moments of one dual vector."""
        return self.at(w).certificate(P)


class DualPoint:
    """A feasible dual vector with its gradient, lower bound and best response.

    Attributes
    ----------
    problem : SaddlePoint
        The problem.
    w : ndarray of shape (m,)
        Feasible dual vector.
    """

    def __init__(self, problem: SaddlePoint, w: FloatArray) -> None:
        self.problem = problem
        self.w = w
        self._moments = problem.kernels.moments(w)

    @property
    def gradient(self) -> Point:
        """The point D(w); the gradient of the value with respect to P is ``-D(w) / 2``."""
        return self._moments.gradient

    @cached_property
    def spectrum(self) -> Spectrum:
        """Spectrum of D(w): its inner products with vertices of the feasible set."""
        return self.problem.cone.spectrum(self.gradient)

    @cached_property
    def support(self) -> float:
        """Largest ``wᵀK(P)w`` over all feasible P, or its value at the fixed parameter."""
        if self.problem.fixed is None:
            return self.problem.cone.support(self.spectrum)
        return self._form(self.problem.fixed, self._fixed_scores)

    @cached_property
    def _fixed_scores(self) -> FloatArray:
        """Scores of the fixed parameter, which both of its bounds need."""
        return self._moments.scores(self.problem.fixed)

    def _scores(self, P: Point) -> FloatArray:
        return self._fixed_scores if P is self.problem.fixed else self._moments.scores(P)

    def _form(self, P: Point, scores: FloatArray) -> float:
        """Return ``wᵀK(P)w`` for the scores K(P)w, without the rounding that makes it negative.

        A NaN stays what it is, so that it cannot become part of a bound.
        """
        value = float(self.w @ scores)
        if not value < 0.0:
            return value
        # If K(P) is positive semidefinite, no sum of this product is larger than this.
        reach = float(np.abs(self.w) @ self.problem.feature_norms(P)) ** 2
        if value < -_ROUNDING * reach:
            raise ValueError(
                "The kernel matrix is not positive semidefinite on the training rows: it has a "
                f"quadratic form of {value:.3g}. Bounds of the optimum need a positive "
                "semidefinite kernel; leave out the kernels that are not."
            )
        return 0.0

    def sensitivities(self, face: Face, rows: NDArray[np.intp]) -> Sensitivities:
        """Return the derivatives of the scores of `rows` with respect to a parameter of a face."""
        return self._moments.sensitivities(face, rows)

    @cached_property
    def lower(self) -> float:
        """Lower bound of the optimum, ``κ(w) - ½ support(D(w))`` less its rounding."""
        value = self.problem.dual.kappa(self.w) - 0.5 * self.support
        return value - self._allowance(self._rounding_of_lower, value, lambda: self.best_response)

    def rough_lower(self) -> tuple[float, FloatArray]:
        """Return a lower bound that needs no spectrum of D(w), and the dual vector that proves it.

        ``wᵀK(P)w`` is at most the sum of the sizes of its terms. If P is one matrix, it is also at
        most that of a gradient with one direction and the same norm. With a fixed parameter it is
        known. The dual vector is the best multiple of w, which is feasible too.
        """
        problem = self.problem
        most = float(np.square(self._reach(problem.largest_feature_norms)).sum())
        if problem.fixed is not None:
            most = self.support
        elif isinstance(problem.cone, PSD):  # the gradient of a dictionary is a pass over all of it
            most = min(most, problem.cone.support_bound(self.gradient))
        best, proof = problem.dual.kappa(np.zeros_like(self.w)), np.zeros_like(self.w)
        unit = self._unit * float(np.abs(self.w) @ np.abs(problem.dual.linear))
        rounding = unit + 0.5 * self._rounding_of_form(problem.largest_feature_norms)
        for share in _SHARES:
            bound = problem.dual.kappa(share * self.w) - 0.5 * share**2 * most - share * rounding
            if bound > best:
                best, proof = bound, share * self.w
        return best, proof

    @property
    def rounding_of_lower(self) -> float:
        """Allowance for the rounding of the lower bound that holds for every feasible parameter."""
        return self._rounding_of_lower(self.problem.largest_feature_norms)

    def _allowance(
        self, rounding: Callable[[FloatArray], float], value: float, parameter: Callable[[], Point]
    ) -> float:
        """Return the rounding of a bound, closely where an overestimate of it would matter.

        Parameters
        ----------
        rounding : callable
            Rounding of the bound by the feature norms of the rows.
        value : float
            The bound.
        parameter : callable
            Returns the parameter whose kernel is part of the bound.
        """
        allowance = rounding(self.problem.largest_feature_norms)
        if allowance <= _NEGLIGIBLE * abs(value) or self.problem.fixed is not None:
            return allowance
        return rounding(self.problem.feature_norms(parameter()))

    def _rounding_of_lower(self, norms: FloatArray) -> float:
        """Return an estimate of the rounding errors of the two terms of the lower bound.

        Both are sums. An error is some units of the last place of the sum of the sizes of all
        terms, and in a sum of many terms the errors add like random numbers.
        """
        linear = float(np.abs(self.w) @ np.abs(self.problem.dual.linear))
        return self._unit * linear + 0.5 * self._rounding_of_form(norms)

    def _rounding_of_upper(
        self, norms: FloatArray, scores: FloatArray, intercept: FloatArray
    ) -> float:
        """Return an estimate of the rounding errors of a primal value.

        The error of a score is some units of the last place of ``sqrt(K_ii) Σ |w_j| sqrt(K_jj)``,
        and that of the kernel values in it. It changes the loss of the row, which is convex, by no
        more than at one of its ends, and the changes of many rows add like random numbers.
        """
        dual, centre = self.problem.dual, self.problem.centre_norms
        residuals = dual.residuals(scores, intercept)
        reach, at_centre = (self._reach(own)[dual.machine_of] for own in (norms, centre))
        errors = self._unit * (np.abs(dual.linear) + norms * reach)
        errors += _OPERATIONS * _UNIT * (centre * reach + norms * at_centre)
        ends = (dual.sample_losses(residuals + side) for side in (errors, -errors))
        changes = np.maximum(*ends) - dual.sample_losses(residuals)
        random = _DEVIATIONS * float(np.linalg.norm(changes))
        return min(random, float(changes.sum())) + 0.5 * self._rounding_of_form(norms)

    def _rounding_of_form(self, norms: FloatArray) -> float:
        """Return an estimate of the rounding errors of ``wᵀK(P)w``.

        The quadratic form of a positive semidefinite matrix has no larger sum of sizes than the
        squares of ``Σ |w_i| sqrt(K_ii)`` of its machines. Kernel values have errors of their own.
        """
        reach, at_centre = self._reach(norms), self._reach(self.problem.centre_norms)
        return float(reach @ (self._unit * reach + 2.0 * _OPERATIONS * _UNIT * at_centre))

    def _reach(self, norms: FloatArray) -> FloatArray:
        """Return ``Σ |w_i| sqrt(K_ii)`` of each machine."""
        reach: FloatArray = np.add.reduceat(np.abs(self.w) * norms, self.problem.dual.starts)
        return reach

    @property
    def _unit(self) -> float:
        """Rounding error of a sum over the rows, relative to the sum of the sizes of its terms."""
        return float(_UNIT * (_OPERATIONS + (len(self.w) / _LANES) ** 0.5))

    def dual_value(self, P: Point) -> float:
        """Return ``κ(w) - ½ wᵀK(P)w``, the dual value of the machines with kernel K(P)."""
        return self.problem.dual.kappa(self.w) - 0.5 * inner(self.gradient, P)

    @property
    def best_response(self) -> Point:
        """Return a vertex of the feasible set that minimises the objective for this w.

        If several vertices are equally good, one of them is returned. Their sum would not have
        trace one.
        """
        return self.problem.cone.vertex(self.spectrum)

    def upper(self, P: Point) -> tuple[float, FloatArray]:
        """Return the primal value of a feasible P with this w, and the offsets that attain it.

        The value includes an allowance for its rounding. It is infinite if the trace of P is not
        one, because only feasible parameters prove bounds.
        """
        scores = self._scores(P)
        intercept, loss = best_intercepts(self.problem.dual, scores)
        if not self.problem.has_unit_trace(P):
            return np.inf, intercept
        value = 0.5 * self._form(P, scores) + loss

        def rounding(norms: FloatArray) -> float:
            return self._rounding_of_upper(norms, scores, intercept)

        return value + self._allowance(rounding, value, lambda: P), intercept

    def residuals(self, P: Point) -> FloatArray:
        """Return the targets minus the scores of the machines with kernel K(P)."""
        scores = self._scores(P)
        intercept, _ = best_intercepts(self.problem.dual, scores)
        return self.problem.dual.residuals(scores, intercept)

    def certificate(self, P: Point) -> Certificate:
        """Return the bounds that this w and a feasible P prove."""
        upper, intercept = self.upper(P)
        return Certificate(upper=upper, lower=self.lower, intercept=intercept)


def _roots(squares: FloatArray) -> FloatArray:
    """Return the roots of squares, of which rounding may have made some negative."""
    roots: FloatArray = np.sqrt(np.maximum(squares, 0.0))
    return roots
