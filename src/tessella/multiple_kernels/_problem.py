"""Multiple kernel learning as a convex problem, and its certificate.

    OPT = min over μ ≥ 0, Σμ = 1  of  max over feasible w of   κ(w) - ½ Σ_i μ_i wᵀK_i w

with κ(w) = linear·w - epsilon·|w| of the SVM dual. For every feasible μ and every feasible w,
however inexact,

    lower(w) = κ(w) - ½ max_i wᵀK_i w  ≤  OPT  ≤  upper(μ, w) = min_b SVM primal of (K(μ) w, b)

because the left side minimises over μ for a fixed w, at a corner of the simplex, and the right
side is a primal value of the SVM with kernel K(μ). Both are computed here, in float64, from μ and
w alone.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tessella.multiple_kernels._bound import BoundDictionary
from tessella.problems import Certificate
from tessella.svm import DualProblem, best_intercepts

FloatArray = NDArray[np.float64]


class WeightsProblem:
    """The weights of a dictionary's kernels, together with the SVM of a :class:`DualProblem`.

    Parameters
    ----------
    kernels : BoundDictionary
        The kernels on the training rows, with the machines that use them.
    fixed : ndarray of shape (n_kernels,), optional
        Weights that are not to be learned: the problem is then their SVM alone, and its lower
        bound is the dual value of that.
    """

    def __init__(self, kernels: BoundDictionary, fixed: FloatArray | None = None) -> None:
        self.kernels = kernels
        self.dual: DualProblem = kernels.machines.dual
        self.fixed = fixed

    def at(self, w: ArrayLike) -> WeightsPoint:
        """Everything the problem has to say about a dual vector; made feasible first."""
        return WeightsPoint(self, self.dual.feasible(w))

    def certificate(self, weights: FloatArray, w: ArrayLike) -> Certificate:
        """The bounds that weights and w prove."""
        return self.at(w).certificate(weights)


class WeightsPoint:
    """A feasible dual vector with its quadratic forms and its lower bound.

    Attributes
    ----------
    w : ndarray of shape (m,)
        The vector.
    """

    def __init__(self, problem: WeightsProblem, w: FloatArray) -> None:
        self._problem = problem
        self.w = w

    @cached_property
    def forms(self) -> FloatArray:
        """``wᵀK_i w`` of every kernel; the gradient of the value in μ is ``-forms / 2``."""
        return self._problem.kernels.forms(self.w)

    @cached_property
    def lower(self) -> float:
        """``κ(w) - ½ max_i wᵀK_i w``, a lower bound of the optimum; see `fixed` for without."""
        fixed = self._problem.fixed
        if fixed is None:
            form = float(self.forms.max())
        else:
            form = max(0.0, float(self.w @ self._problem.kernels.scores(fixed, self.w)))
        return self._problem.dual.kappa(self.w) - 0.5 * form

    def certificate(self, weights: FloatArray) -> Certificate:
        """Bounds proved by this w and feasible weights."""
        scores = self._problem.kernels.scores(weights, self.w)
        intercept, loss = best_intercepts(self._problem.dual, scores)
        upper = 0.5 * max(0.0, float(self.w @ scores)) + loss
        return Certificate(upper=upper, lower=self.lower, intercept=intercept)
