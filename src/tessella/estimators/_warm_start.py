"""Where a fit starts: from nothing, from the previous fit of the estimator, or from a kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tessella.estimators._checkpoint import StartingPoint
from tessella.estimators._layouts import support_to_given
from tessella.estimators._problem import TrainingProblem
from tessella.kernels import LearnedKernel

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class PreviousFit:
    """What a warm start takes over from the previous fit.

    Attributes
    ----------
    kernel : LearnedKernel or list of LearnedKernel
        The kernel, or one for each machine.
    coefficients : ndarray of shape (n_machines, n_given) or None
        Dual coefficients for the standardised target, on the rows as given. None where only a
        kernel is known, because dual coefficients belong to their rows.
    w_bound : ndarray of shape (n_machines, n_given) or None
        Dual coefficients that prove the lower bound.
    """

    kernel: LearnedKernel | list[LearnedKernel]
    coefficients: FloatArray | None = None
    w_bound: FloatArray | None = None

    @classmethod
    def of(cls, estimator: Any) -> PreviousFit | None:
        """The previous fit of an estimator; None if there is none or `warm_start` is off."""
        if not estimator.warm_start:
            return None
        if hasattr(estimator, "_start_kernel"):
            return cls(estimator._start_kernel)
        if not hasattr(estimator, "kernel_"):
            return None
        if hasattr(estimator, "leaves_"):  # whose coefficients are those of other machines
            return cls(estimator.kernel_)
        standardised = estimator.dual_coef_ / estimator._target_scale
        given = support_to_given(estimator.support_, standardised, estimator._n_rows)
        return cls(estimator.kernel_, given, estimator._w_bound)

    def of_machine(self, k: int, n_machines: int) -> PreviousFit | None:
        """The part of machine k, if each machine had a kernel of its own."""
        if not isinstance(self.kernel, list) or len(self.kernel) != n_machines:
            return None
        parts = (self.coefficients, self.w_bound)
        rows = (None if part is None else part[k : k + 1] for part in parts)
        return PreviousFit(self.kernel[k], *rows)

    def starting_point(self, problem: TrainingProblem) -> StartingPoint | None:
        """Start from the kernel, and from the coefficients if the data has as many rows."""
        if isinstance(self.kernel, list):
            return None
        w = w_bound = None
        same_shape = (len(problem.machines), problem.n_given)
        if self.coefficients is not None and self.coefficients.shape == same_shape:
            w = problem.layouts.given_to_stacked(self.coefficients)
            if self.w_bound is not None:
                w_bound = problem.layouts.given_to_stacked(self.w_bound)
        return StartingPoint(self.kernel.parameter, w, w_bound)
