"""The convex-concave problem, and the only place where its value and its gap are defined.

    OPT = min over P ⪰ 0, trace P = n_P  of  max over feasible w of   κ(w) - ½ wᵀ K(P) w

with κ(w) = linear·w - epsilon·|w| of the SVM dual. For every feasible P and every feasible w,
however inexact,

    lower(w) = κ(w) - (n_P / 2) λ_max(D(w))  ≤  OPT  ≤  upper(P, w) = min_b SVM primal of (Kw, b)

because the left side minimises over P for a fixed w and the right side is a primal value of the
SVM with kernel K(P). Both are computed here, in float64, from P and w alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tessella.kernels import BoundKernelSet
from tessella.problems._spectrahedron import Spectrahedron
from tessella.svm import DualProblem, best_intercepts, relative_gap

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Certificate:
    """Bounds of the optimum that hold whatever computed P and w.

    Attributes
    ----------
    upper, lower : float
        The optimum lies between them.
    intercept : ndarray of shape (n_machines,)
        Offsets b with which P and w attain `upper`.
    """

    upper: float
    lower: float
    intercept: FloatArray

    @property
    def gap(self) -> float:
        """``(upper - lower) / |upper|``."""
        return relative_gap(self.upper, self.lower)


class SaddlePoint:
    """Kernel learning on a bound kernel set with the SVM of a :class:`DualProblem`.

    Parameters
    ----------
    kernels : BoundKernelSet
        The family on the training rows.
    dual : DualProblem
        Labels or targets, box and tube, for the same rows. With several machines both are
        stacks of them, the value is the sum of theirs, and one certificate holds for all.
    """

    def __init__(self, kernels: BoundKernelSet, dual: DualProblem) -> None:
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
        self.parameters = Spectrahedron(kernels.n_params)

    def at(self, w: ArrayLike) -> DualPoint:
        """Everything the problem has to say about a dual vector; made feasible first."""
        return DualPoint(self, self.dual.feasible(w))

    def certificate(self, P: FloatArray, w: ArrayLike) -> Certificate:
        """The bounds that P and w prove. Costs one gradient, O(m · support · n_params)."""
        return self.at(w).certificate(P)


class DualPoint:
    """A feasible dual vector with its gradient, lower bound and best response.

    Attributes
    ----------
    w : ndarray of shape (m,)
        The vector.
    """

    def __init__(self, problem: SaddlePoint, w: FloatArray) -> None:
        self._problem = problem
        self.w = w
        self._moments = problem.kernels.moments(w)

    @property
    def gradient(self) -> FloatArray:
        """D(w); the gradient of the value in P is ``-D(w) / 2``."""
        return self._moments.gradient

    @cached_property
    def spectrum(self) -> tuple[FloatArray, FloatArray]:
        """Eigenvalues of D(w), ascending, and eigenvectors."""
        values, vectors = np.linalg.eigh(self.gradient)
        return values, vectors

    @property
    def lower(self) -> float:
        """``κ(w) - (n_P / 2) λ_max(D(w))``, a lower bound of the optimum."""
        top = max(0.0, float(self.spectrum[0][-1]))
        return self._problem.dual.kappa(self.w) - 0.5 * self._problem.parameters.side * top

    def dual_value(self, P: FloatArray) -> float:
        """``κ(w) - ½ wᵀK(P)w``, the dual value of the SVM with kernel K(P)."""
        return self._problem.dual.kappa(self.w) - 0.5 * float(np.sum(self.gradient * P))

    @property
    def best_response(self) -> FloatArray:
        """Factor of the feasible P that minimises the objective for this w: a top eigenvector.

        One vector of a tied set is as good as another; all of them together would break the
        trace.
        """
        return self._problem.parameters.vertex(self.spectrum[1][:, -1])

    def certificate(self, P: FloatArray) -> Certificate:
        """Bounds proved by this w and a feasible P."""
        dual = self._problem.dual
        scores = self._moments.scores(P)
        intercept, loss = best_intercepts(dual, scores)
        # A quadratic form of a positive semidefinite matrix: below zero it is rounding.
        upper = 0.5 * max(0.0, float(self.w @ scores)) + loss
        return Certificate(upper=upper, lower=self.lower, intercept=intercept)
