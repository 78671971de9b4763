"""What the two estimators have in common: from arrays to weights and a certified machine."""

from __future__ import annotations

import warnings
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from tessella.backend import limit_blas
from tessella.estimators._base import all_or_nothing
from tessella.estimators._checks import fit_box, require_count, require_positive, validated
from tessella.estimators._machines import Machines
from tessella.estimators._notebook import NotebookStepMixin
from tessella.estimators._training_set import TrainingSet
from tessella.multiple_kernels._bound import BoundDictionary, require_dictionary_memory
from tessella.multiple_kernels._dictionary import (
    CombinedKernel,
    FittedDictionary,
    KernelDictionary,
)
from tessella.multiple_kernels._fixed import alignment_weights, average_weights, given
from tessella.multiple_kernels._learned import learned
from tessella.multiple_kernels._problem import WeightsProblem
from tessella.multiple_kernels._simple import simple
from tessella.progress import ProgressDisplay
from tessella.solvers import SolverResult, SolverStatus, TablePrinter

FloatArray = NDArray[np.float64]

_OPTIMISED = {"learned": learned, "simple": simple}
_WEIGHTINGS = ("learned", "simple", "average", "alignment", "performance")


@dataclass(frozen=True)
class Task:
    """What a fit has made of its data.

    Attributes
    ----------
    rows : TrainingSet
        Merged and sorted rows.
    machines : Machines
        The SVMs on them.
    target_scale, target_mean : float
        What learning has divided the target by, and subtracted from it.
    """

    rows: TrainingSet
    machines: Machines
    target_scale: float = 1.0
    target_mean: float = 0.0


class BaseMultipleKernel(NotebookStepMixin, BaseEstimator):  # type: ignore[misc]
    """Shared by :class:`MultipleKernelSVC` and :class:`MultipleKernelSVR`; not for direct use."""

    C: float
    kernels: Any
    weighting: str
    tol: float
    max_iter: int
    time_limit: float | None
    verbose: int
    n_jobs: int | None

    # -------------------------------------------------------------------------------- fitting

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Self:
        """Fit, or leave the estimator as it was."""
        self._check_params()
        with all_or_nothing(self):
            result = self._learn(*self._validated(X, y, sample_weight))
        if result.gap > self.tol:
            warnings.warn(_shortfall(result, self.tol), ConvergenceWarning, stacklevel=3)
        return self

    def _check_params(self) -> None:
        require_positive("C", self.C)
        require_positive("tol", self.tol)
        if self.time_limit is not None:
            require_positive("time_limit", self.time_limit)
        require_count("max_iter", self.max_iter)
        if self.weighting not in _WEIGHTINGS:
            raise ValueError(f"weighting={self.weighting!r} is unknown; use one of {_WEIGHTINGS}.")
        self._dictionary()

    def _dictionary(self) -> KernelDictionary:
        kernels = self.kernels
        if isinstance(kernels, KernelDictionary):
            return kernels
        if isinstance(kernels, str) and kernels == "standard":
            return KernelDictionary.standard()
        if isinstance(kernels, list | tuple):
            return KernelDictionary(tuple(kernels))
        raise ValueError(
            f"kernels={kernels!r} is unknown; use 'standard', a list of kernels such as "
            "[Gaussian(1.0), Polynomial(2)], or a KernelDictionary."
        )

    def _validated(self, X: Any, y: Any, sample_weight: Any) -> tuple[FloatArray, Any, FloatArray]:
        """The data, checked before anything is done with it."""
        return validated(self, X, y, sample_weight, **self._y_checks())

    def _y_checks(self) -> dict[str, Any]:
        return {}

    def _learn(self, X: FloatArray, y: Any, weight: FloatArray) -> SolverResult:
        """From validated data to fitted attributes."""
        task = self._task(X, y, weight)
        fit_box(task.rows.X)  # an error when all rows are equal
        sizes = task.machines.sizes
        require_dictionary_memory(len(task.rows.X), sizes, self.weighting)
        with limit_blas(), self._display() as display:
            dictionary = self._dictionary().fit(task.rows.X, task.rows.weight)
            bound = BoundDictionary(dictionary, task.rows.X, task.machines, self.n_jobs)
            solver, fixed = self._solver(bound, task)
            result: SolverResult = solver(
                WeightsProblem(bound, fixed),
                tol=float(self.tol),
                max_iter=int(self.max_iter),
                time_limit=self.time_limit,
                n_jobs=self.n_jobs,
                callback=display,
            )
        self._keep(dictionary, task, result)
        self._n_rows = len(X)
        return result

    def _task(self, X: FloatArray, y: Any, weight: FloatArray) -> Task:
        raise NotImplementedError

    def _solver(self, bound: BoundDictionary, task: Task) -> tuple[Any, FloatArray | None]:
        """The algorithm, and the weights where a rule gives them."""
        if self.weighting in _OPTIMISED:
            return _OPTIMISED[self.weighting], None
        if self.weighting == "average":
            return given, average_weights(bound)
        if self.weighting == "alignment":
            return given, alignment_weights(bound, self._targets(task), task.rows.weight)
        return given, self._performance(bound, task)

    def _targets(self, task: Task) -> FloatArray:
        """Columns whose outer products say which rows belong together."""
        raise NotImplementedError

    def _performance(self, bound: BoundDictionary, task: Task) -> FloatArray:
        """Weights by how well each kernel does alone."""
        raise NotImplementedError

    def _display(self) -> Any:
        """A context manager whose value follows the run."""
        if self.verbose > 1:
            return ProgressDisplay(self.tol)
        return nullcontext(TablePrinter() if self.verbose else None)

    def _keep(self, dictionary: FittedDictionary, task: Task, result: SolverResult) -> None:
        """Fitted attributes from the answer of a solver."""
        rows = task.rows
        coefficients = task.machines.spread(result.w)
        support = np.flatnonzero(coefficients.any(axis=0))
        support = support[np.argsort(rows.index[support])]
        self.dictionary_ = dictionary
        self.weights_ = result.P
        self.kernel_ = CombinedKernel(dictionary, result.P)
        self.support_ = rows.index[support]
        self.support_vectors_ = rows.X[support]
        self.dual_coef_ = task.target_scale * coefficients[:, support]
        self.intercept_ = task.target_scale * result.intercept + task.target_mean
        self.objective_ = result.value
        self.lower_bound_ = result.bound
        self.gap_ = result.gap
        self.n_iter_ = result.n_iter
        self.history_ = result.history
        self.status_ = result.status.value

    # ----------------------------------------------------------------------------- predicting

    def _scores(self, X: Any) -> FloatArray:
        """``f(x)`` of each machine for the rows of X, of shape (n_samples, n_machines)."""
        check_is_fitted(self, "kernel_")
        X = validate_data(self, X, dtype=np.float64, order="C", reset=False)
        with limit_blas():
            scores = self.kernel_.scores(X, self.support_vectors_, self.dual_coef_.T, self.n_jobs)
        return scores + self.intercept_


def _shortfall(result: SolverResult, tol: float) -> str:
    remedy = {
        SolverStatus.MAX_ITER: "Raise max_iter, or accept a larger tol.",
        SolverStatus.TIME_LIMIT: "Raise time_limit, or accept a larger tol.",
        SolverStatus.OUT_OF_MEMORY: "Use fewer rows or a smaller dictionary.",
        SolverStatus.STALLED: "Use a smaller C or a larger tol.",
    }.get(result.status, "Fit again to go further.")
    return (
        f"The {result.solver} solver stopped ({result.status.value}) after {result.n_iter} "
        f"iterations with a certified relative gap of {result.gap:.2e}, above tol={tol:g}. The "
        f"best model found is kept. {remedy}"
    )
