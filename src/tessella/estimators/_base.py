"""What classification and regression have in common: validate, prepare, solve, assign."""

from __future__ import annotations

import os
import time
import warnings
from copy import copy
from dataclasses import replace
from functools import partial
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning

from tessella.estimators._callbacks import CallbackMonitor, CallbackSupport, run_with_callbacks
from tessella.estimators._checkpoint import check_path
from tessella.estimators._checks import (
    checked_feature_scale,
    require_count,
    require_flags,
    require_positive,
    require_seed,
    require_threads,
    require_verbosity,
    validated,
)
from tessella.estimators._convergence import convergence_message
from tessella.estimators._early_stopping import ValidationSet, hold_out
from tessella.estimators._fit_rows import FitRows
from tessella.estimators._leaf_fit import (
    LEAST_LEAF_ROWS,
    LeafRequest,
    LeafTask,
    as_arrays,
    learn_in_leaves,
)
from tessella.estimators._leaf_rows import LocalRows
from tessella.estimators._leaf_scan import Scan
from tessella.estimators._notebook import NotebookStepMixin
from tessella.estimators._outside import OutsideCount, count_outside, warn_outside
from tessella.estimators._prediction import PredictionMixin
from tessella.estimators._problem import TrainingProblem, ValidatedData
from tessella.estimators._relevance import RelevanceMixin
from tessella.estimators._separate import solve_separately
from tessella.estimators._solving import FitCallbacks, require_width_memory, solve_problem
from tessella.estimators._state import FittedState
from tessella.estimators._warm_start import PreviousFit
from tessella.inspection._names import feature_names
from tessella.kernels import (
    BoundKernelSet,
    GaussianKernels,
    KernelSet,
    LaplaceKernels,
    LearnedKernel,
    MaternKernels,
    PolynomialKernels,
    SingleKernelSet,
    TessellatedKernels,
    check_scaling,
)
from tessella.rows import ArraySource, RowSource, is_stored, source_of
from tessella.solvers import Callback, check_solver

FloatArray = NDArray[np.float64]

_PRECISIONS = ("float64", "float32")
_SINGLE_KERNELS: dict[str, type[SingleKernelSet]] = {
    "gaussian": GaussianKernels,
    "matern": MaternKernels,
    "laplace": LaplaceKernels,
}


class BaseLearnedKernel(
    NotebookStepMixin,
    RelevanceMixin,
    CallbackSupport,
    PredictionMixin,
    BaseEstimator,  # type: ignore[misc]
):
    """Base class of :class:`LearnedKernelSVC` and :class:`LearnedKernelSVR`."""

    kernels: Any
    C: float
    degree: int
    delta: float
    # Estimators without these three parameters have their defaults.
    width: float = 0.5
    scaling: str = "range"
    feature_scale: Any = None
    solver: str
    tol: float
    max_iter: int
    time_limit: float | None
    precision: str
    early_stopping: bool
    validation_fraction: float
    n_iter_no_change: int
    checkpoint: Any
    warm_start: bool
    max_leaf_rows: int | None
    partition: Any
    n_partitions: int
    warn_outside: bool
    verbose: int
    random_state: Any
    n_jobs: int | None

    # -------------------------------------------------------------------------------- fitting

    def _fit(
        self, X: Any, y: Any, sample_weight: Any = None, callback: Callback | None = None
    ) -> Self:
        """Fit the estimator; nothing of it changes before the one assignment at the end."""
        self._check_params()
        learn = partial(self._learn, X, y, sample_weight, callback)
        if hasattr(self, "_skl_callbacks"):
            state, rows = run_with_callbacks(self, X, y, sample_weight, learn)
        else:
            state, rows = learn(None)
        state.assign_to(self)
        if rows is not None:
            self._fit_rows = rows
        # Only now, so that a warning that is turned into an error does not cost the model.
        if state.gap_ > self.tol:
            text = convergence_message(state, self)
            warnings.warn(text, ConvergenceWarning, stacklevel=3)
        return self

    def _learn(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        callback: Callback | None,
        monitor: CallbackMonitor | None,
    ) -> tuple[FittedState, FitRows | None]:
        """Validate, prepare and solve; `monitor` reports to the callbacks of scikit-learn."""
        begun, source = time.monotonic(), None
        if is_stored(X):
            source = self._stored_source(X, y, sample_weight)
            if source is not None and source.n_rows > int(self.max_leaf_rows or 0):
                rows = LocalRows(source, self.n_jobs, on_disk=True)
                request = LeafRequest(rows, source.feature_names, begun)
                return self._learn_in_leaves(request, callback, monitor), None
            if source is not None:
                X, y, sample_weight = as_arrays(source)
        data = self._validated(X, y, sample_weight)
        if source is not None and source.feature_names is not None:
            data = replace(data, feature_names=source.feature_names)
        if self.max_leaf_rows is not None and len(data.X) > self.max_leaf_rows:
            given = ArraySource(data.X, data.y, data.weight)
            rows = LocalRows(given, self.n_jobs, on_disk=False)
            request = LeafRequest(rows, data.feature_names, begun)
            return self._learn_in_leaves(request, callback, monitor), None
        require_width_memory(self, data.X, data.weight)
        problem = self._prepare(data)
        solve = solve_separately if self._learns_separately(problem) else solve_problem
        state = solve(self, problem, FitCallbacks(callback, monitor), PreviousFit.of(self))
        if monitor is not None:
            monitor.finish(state)
        return state, FitRows.of(data, problem)

    def _stored_source(self, X: Any, y: Any, sample_weight: Any) -> RowSource | None:
        """The source of rows that are not in memory; None for an array that maps a file.

        An array that maps a file can be fitted as a whole, too.
        """
        if self.max_leaf_rows is not None:
            return source_of(X, y, sample_weight)
        if isinstance(X, np.memmap):
            return None
        raise ValueError(
            "Rows of files are fitted in leaves: give max_leaf_rows, for example 5000, or read the "
            "rows into an array."
        )

    def _learn_in_leaves(
        self, request: LeafRequest, callback: Callback | None, monitor: CallbackMonitor | None
    ) -> FittedState:
        """Fit the rows in leaves."""
        previous = PreviousFit.of(self)
        if previous is not None and isinstance(previous.kernel, LearnedKernel):
            request = replace(request, parameter0=previous.kernel.parameter)
        state = learn_in_leaves(self, request, FitCallbacks(callback, monitor))
        if monitor is not None:
            monitor.finish(state)
        return state

    #: Whether the target is one of classes, and whether the loss is smooth.
    _is_classifier = False
    _is_smooth = False

    def _leaf_task(self, seen: Scan, base: Any) -> LeafTask:
        """The problem of the leaves, given what is known of the rows and a fitted base function."""
        raise NotImplementedError

    def _base_rows(self, seen: Scan, model: Any) -> tuple[FloatArray, NDArray[Any], FloatArray]:  # noqa: ARG002
        """Rows, targets and weights from which the base function `model` is learned."""
        return seen.X, seen.y, seen.weight

    def _validated(self, X: Any, y: Any, sample_weight: Any) -> ValidatedData:
        """Check the data with scikit-learn, without a trace in the estimator."""
        begun = time.monotonic()
        # scikit-learn sets n_features_in_ and feature_names_in_ while it validates: of a copy.
        scratch = copy(self)
        X, y, weight = validated(scratch, X, y, sample_weight, **self._y_checks())
        return ValidatedData(X, y, weight, getattr(scratch, "feature_names_in_", None), begun)

    def _y_checks(self) -> dict[str, Any]:
        """Options of scikit-learn's ``validate_data`` for the target."""
        return {}

    def _prepare(self, data: ValidatedData) -> TrainingProblem:
        """Turn validated data into the problem that a solver gets."""
        raise NotImplementedError

    def _learns_separately(self, problem: TrainingProblem) -> bool:  # noqa: ARG002
        """Whether each machine of the problem gets a kernel of its own."""
        return False

    def _solver_name(self) -> str:
        """Name of the solver to use, or "auto"."""
        return self.solver

    def _rule(self) -> str | None:
        """Name of the rule that gives the parameter, if it is not learned."""
        return None

    def _memory_remedy(self) -> str:
        """What to change in a fit that needs too much memory, as an imperative sentence."""
        remedies = [] if self.precision == "float32" else ["precision='float32'"]
        frugal = self._frugal_solver()
        return f"Use {' or '.join([*remedies, *frugal, 'fewer rows'])}."

    def _frugal_solver(self) -> list[str]:
        """The parameter that chooses the solver with the least memory, if another one is chosen."""
        return [] if self.solver in ("auto", "working-set") else ["solver='working-set'"]

    def _fixed_parameter(
        self,
        problem: TrainingProblem,  # noqa: ARG002
        bound: BoundKernelSet,
    ) -> Any:
        """A parameter that a rule gives, so that it is not learned; None to learn it."""
        # A set of a single kernel leaves nothing to learn, so one SVM is the answer.
        single = bound.cone.dimension == 1 and self._solver_name() == "auto"
        return bound.cone.centre if single else None

    def _start_from(self, kernel: Any) -> None:
        """Let the next fit, with `warm_start`, start from a kernel learned on other rows."""
        self._start_kernel = kernel

    def _check_params(self) -> None:
        """Raise ValueError for a parameter with an invalid value."""
        require_positive("C", self.C)
        require_positive("tol", self.tol)
        if self.time_limit is not None:
            require_positive("time_limit", self.time_limit)
        require_count("max_iter", self.max_iter)
        self._check_early_stopping()
        if self.checkpoint is not None:
            check_path(self.checkpoint)
        if self.precision not in _PRECISIONS:
            raise ValueError(f"precision={self.precision!r} is unknown; use one of {_PRECISIONS}.")
        require_threads(self.n_jobs)
        require_verbosity(self.verbose)
        require_seed(self.random_state)
        require_flags(
            early_stopping=self.early_stopping,
            warm_start=self.warm_start,
            warn_outside=self.warn_outside,
        )
        self._check_leaves()
        check_solver(self._solver_name())
        check_scaling(self.scaling)
        checked_feature_scale(self.feature_scale)
        self._kernel_set()

    def _check_leaves(self) -> None:
        """Raise ValueError for parameters of a fit in leaves that it cannot have."""
        require_count("n_partitions", self.n_partitions, least=1)
        named = isinstance(self.partition, str)
        whole = isinstance(self.partition, Integral) and not isinstance(self.partition, bool)
        if not (named or whole):
            raise ValueError(
                f"partition={self.partition!r} must be 'gradient', 'median' or the name or the "
                "number of a column of groups."
            )
        if self.max_leaf_rows is None:
            return
        require_count("max_leaf_rows", self.max_leaf_rows, least=LEAST_LEAF_ROWS)
        if self.early_stopping:
            raise ValueError(
                "early_stopping=True has no meaning with max_leaf_rows: the solver of leaves "
                "takes few passes. Use a larger tol, or max_iter."
            )
        if getattr(self, "multi_class", "shared") == "separate":
            raise ValueError(
                "multi_class='separate' cannot be used with max_leaf_rows, which learns one "
                "kernel for all machines of all leaves."
            )

    def _scaling_params(self) -> dict[str, Any]:
        """The parameters that define the scaling of the features, for the training problem."""
        return {"scaling": self.scaling, "feature_scale": self.feature_scale}

    def _check_early_stopping(self) -> None:
        fraction = self.validation_fraction
        require_positive("validation_fraction", fraction)
        if fraction >= 1:
            raise ValueError(f"validation_fraction={fraction!r} must be below 1.")
        require_count("n_iter_no_change", self.n_iter_no_change, least=1)
        repeatable = isinstance(self.random_state, Integral)
        if self.early_stopping and self.checkpoint is not None and not repeatable:
            raise ValueError(
                f"early_stopping=True with a checkpoint needs an integer random_state, not "
                f"{self.random_state!r}: a resumed fit has to hold out the same rows again."
            )

    def _hold_out(
        self, data: ValidatedData, *, stratify: bool = False
    ) -> tuple[FloatArray, ValidationSet | None]:
        """Weights of the rows to learn from, and the rows that early stopping holds out."""
        if not self.early_stopping:
            return data.weight, None
        return hold_out(
            data.X,
            data.y,
            data.weight,
            fraction=float(self.validation_fraction),
            random_state=self.random_state,
            stratify=stratify,
        )

    def _kernel_set(self) -> KernelSet:
        """The kernel set that the parameter `kernels` describes."""
        if isinstance(self.kernels, KernelSet):
            return self.kernels
        if self.kernels == "tessellated":
            return TessellatedKernels(degree=self.degree, delta=self.delta)
        if self.kernels == "polynomial":
            return PolynomialKernels(degree=self.degree)
        if isinstance(self.kernels, str) and self.kernels in _SINGLE_KERNELS:
            return _SINGLE_KERNELS[self.kernels](width=self.width)
        raise ValueError(
            f"kernels={self.kernels!r} is unknown; use 'tessellated', 'polynomial', 'gaussian', "
            "'matern', 'laplace' or a KernelSet such as TessellatedKernels(degree=2)."
        )

    @property
    def P_(self) -> Any:  # noqa: N802 - the name of the mathematics
        """Positive semidefinite matrix of the learned kernel, or a list of them."""
        kernel = self.kernel_
        return [own.P for own in kernel] if isinstance(kernel, list) else kernel.P

    # ----------------------------------------------------------------------------- predicting

    def _scores(self, X: Any) -> FloatArray:
        """Scores of each machine for the rows of X, of shape (n_samples, n_machines)."""
        X = self._rows_to_predict(X)
        if self.warn_outside:
            warn_outside(self._count_outside(X), stacklevel=3)  # the caller of predict
        scores: FloatArray = self._machine_scores(X, self.n_jobs) + self._constants
        return scores

    def count_outside(self, X: Any) -> OutsideCount:
        """Count the rows outside the range of the training data, where predictions extrapolate.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows in the units of the training data.

        Returns
        -------
        OutsideCount
            The number of rows outside, in total and by feature, and what the kernel does with
            them. ``str`` of it is a sentence that says all of this.
        """
        return self._count_outside(self._rows_to_predict(X))

    def _count_outside(self, X: FloatArray) -> OutsideCount:
        kernel = self.kernel_[0] if isinstance(self.kernel_, list) else self.kernel_
        names = feature_names(self, X.shape[1])
        return count_outside(kernel, self._training_range, X, names)

    # --------------------------------------------------------------------------------- saving

    def save(self, path: str | os.PathLike[str], *, metadata: dict[str, Any] | None = None) -> None:
        """Write the fitted model to one file of arrays and JSON.

        Parameters
        ----------
        path : path-like
            File to write, by convention with the suffix ``.tsl``. :func:`tessella.load` reads it.
        metadata : dict, optional
            Data to store with the model; anything that JSON can represent.

        See Also
        --------
        tessella.save : The same as a function, with the exceptions that it raises.
        """
        from tessella.persistence import save  # not above, because it imports the estimators

        save(self, path, metadata=metadata)
