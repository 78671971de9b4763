"""The common part of classification and regression with weighted sums of kernels."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from tessella.backend import require_memory
from tessella.estimators._problem import TrainingProblem
from tessella.kernels import BoundDictionary, BoundKernelSet, FittedDictionary, KernelDictionary
from tessella.multiple_kernels.rules import alignment_weights, average_weights

FloatArray = NDArray[np.float64]

# The weightings that learn the weights, and the solver of each.
_SOLVERS = {"learned": "auto", "simple": "simple-mkl"}
_WEIGHTINGS = (*_SOLVERS, "average", "alignment", "performance")


class KernelWeightsMixin:
    """Mixin that turns an estimator with a learned kernel into one with weights of kernels."""

    kernels: Any
    weighting: str
    n_jobs: int | None
    kernel_: Any

    def _solver_name(self) -> str:
        """Name of the solver that the weighting asks for."""
        return _SOLVERS.get(self.weighting, "auto")

    def _rule(self) -> str | None:
        """Name of the rule that gives the weights, if they are not learned."""
        return None if self.weighting in _SOLVERS else self.weighting

    def _frugal_solver(self) -> list[str]:
        """The parameter that chooses the solver with the least memory, if another one is chosen."""
        return ["weighting='learned'"] if self.weighting == "simple" else []

    @property
    def weights_(self) -> Any:
        """Weights of the kernels, or a list of them with separate weights for pairs of classes."""
        kernel = self.kernel_
        if isinstance(kernel, list):
            return [own.parameter for own in kernel]
        return kernel.parameter

    @property
    def dictionary_(self) -> Any:
        """Kernels on the scale of the training rows, or a list of them for pairs of classes."""
        kernel = self.kernel_
        return [own.kernels for own in kernel] if isinstance(kernel, list) else kernel.kernels

    def _check_params(self) -> None:
        if self.weighting not in _WEIGHTINGS:
            raise ValueError(f"weighting={self.weighting!r} is unknown; use one of {_WEIGHTINGS}.")
        super()._check_params()  # type: ignore[misc]

    def _kernel_set(self) -> KernelDictionary:
        kernels = self.kernels
        if isinstance(kernels, KernelDictionary):
            return kernels
        if isinstance(kernels, str) and kernels == "standard":
            return KernelDictionary.standard()
        if isinstance(kernels, list | tuple):
            return KernelDictionary(tuple(kernels))
        raise ValueError(
            f"kernels={kernels!r} is unknown; use 'standard', a list of kernels such as "
            "[Gaussian(1.0), Polynomial(2)], or a KernelDictionary. Other kernel sets, and sums of "
            "kernel sets, are for LearnedKernelSVC and LearnedKernelSVR."
        )

    def _fixed_parameter(
        self, problem: TrainingProblem, bound: BoundKernelSet
    ) -> FloatArray | None:
        """Return the weights that a rule gives, or None if they are to be learned."""
        if self.weighting in _SOLVERS:
            return None
        if self.weighting == "average":
            return average_weights(bound.cone.degree)
        rows = problem.box.apply(problem.rows.X)
        dictionary = cast(FittedDictionary, bound.kernels)
        kernels = dictionary.bind(rows, n_jobs=self.n_jobs)
        if self.weighting == "alignment":
            return alignment_weights(kernels, self._targets(problem), problem.rows.weight)
        require_memory(
            16 * len(rows) ** 2,
            f"The performance of single kernels on {len(rows)} rows",
            "Use fewer rows, or another weighting.",
        )
        return self._performance_weights(problem, kernels)

    def _targets(self, problem: TrainingProblem) -> FloatArray:
        """Return the columns T of the targets, whose product T Tᵀ is the target of alignment."""
        raise NotImplementedError

    def _performance_weights(
        self, problem: TrainingProblem, kernels: BoundDictionary
    ) -> FloatArray:
        """Return weights by the cross-validated score of each kernel alone."""
        raise NotImplementedError
