"""What classification and regression have in common: from arrays to a certified model."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from copy import copy, deepcopy
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from tessella.backend import limit_blas, require_memory
from tessella.estimators._callbacks import CallbackSupport, run_with_callbacks
from tessella.estimators._checkpoint import Checkpoint, StartingPoint, check_path, fingerprint
from tessella.estimators._checks import (
    fit_box,
    require_count,
    require_positive,
    shortfall,
    validated,
)
from tessella.estimators._early_stopping import HeldOut, ScoreMonitor, hold_out
from tessella.estimators._fitting import Given, Outcome, Watchers
from tessella.estimators._machines import Machines
from tessella.estimators._notebook import NotebookStepMixin
from tessella.estimators._outside import OutsideCount, count_outside, warn_outside
from tessella.estimators._relevance import RelevanceMixin
from tessella.estimators._training_set import TrainingSet
from tessella.inspection._names import feature_names
from tessella.kernels import (
    KernelSet,
    LearnedKernel,
    PolynomialKernels,
    TessellatedKernels,
    UnitBox,
)
from tessella.problems import SaddlePoint
from tessella.progress import ProgressDisplay
from tessella.solvers import (
    Monitors,
    SolverResult,
    SolverStatus,
    TablePrinter,
    check_solver,
    choose_solver,
    working_memory,
)
from tessella.solvers._run import Callback
from tessella.svm import DualProblem

FloatArray = NDArray[np.float64]

_PRECISIONS = ("float64", "float32")


class BaseLearnedKernel(
    NotebookStepMixin,
    RelevanceMixin,
    CallbackSupport,
    BaseEstimator,  # type: ignore[misc]
):
    """Shared by :class:`LearnedKernelSVC` and :class:`LearnedKernelSVR`; not for direct use."""

    kernels: Any
    C: float
    degree: int
    delta: float
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
    warn_outside: bool
    verbose: int
    random_state: Any
    n_jobs: int | None
    kernel_: Any  # a LearnedKernel, or a list of them

    # -------------------------------------------------------------------------------- fitting

    def _fit(
        self, X: Any, y: Any, sample_weight: Any = None, callback: Callback | None = None
    ) -> Self:
        """Fit, or leave the estimator as it was."""
        self._check_params()
        with all_or_nothing(self):
            outcome = run_with_callbacks(
                self,
                X,
                y,
                sample_weight,
                lambda hooks: self._learn(X, y, sample_weight, Watchers(callback, hooks)),
            )
        if outcome.gap > self.tol:
            text = shortfall(outcome, self.tol, self.checkpoint)
            warnings.warn(text, ConvergenceWarning, stacklevel=3)
        return self

    def _learn(self, X: Any, y: Any, sample_weight: Any, watchers: Watchers) -> Outcome:
        """From the data as given to fitted attributes."""
        raise NotImplementedError

    def _validated(self, X: Any, y: Any, sample_weight: Any) -> tuple[FloatArray, Any, FloatArray]:
        """The data, checked before anything is done with it."""
        return validated(self, X, y, sample_weight, **self._y_checks())

    def _y_checks(self) -> dict[str, Any]:
        return {}

    def _check_params(self) -> None:
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
        check_solver(self.solver)
        self._kernel_set()

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
        self, X: FloatArray, y: NDArray[Any], weight: FloatArray, *, stratify: bool = False
    ) -> tuple[FloatArray, HeldOut | None]:
        """The weights of the rows to learn from, and the rows held out for early stopping."""
        if not self.early_stopping:
            return weight, None
        return hold_out(
            X,
            y,
            weight,
            fraction=float(self.validation_fraction),
            random_state=self.random_state,
            stratify=stratify,
        )

    def _kernel_set(self) -> KernelSet:
        if isinstance(self.kernels, KernelSet):
            return self.kernels
        if self.kernels == "tessellated":
            return TessellatedKernels(degree=self.degree, delta=self.delta)
        if self.kernels == "polynomial":
            return PolynomialKernels(degree=self.degree)
        raise ValueError(
            f"kernels={self.kernels!r} is unknown; use 'tessellated', 'polynomial' or a KernelSet "
            "such as TessellatedKernels(degree=2)."
        )

    def _solve(
        self,
        rows: TrainingSet,
        machines: Machines,
        given: Given,
        watchers: Watchers,
        box: UnitBox | None = None,
    ) -> SolverResult:
        """Learn a kernel for some machines on the rows of a training set, and keep it all."""
        box = fit_box(rows.X) if box is None else box
        kernels = self._kernel_set()
        dtype = np.dtype(self.precision)
        self._require_memory(kernels, machines.sizes, len(box.kept), dtype.itemsize)
        checkpoint = self._open_checkpoint(rows, machines.dual, kernels)
        start = (checkpoint and checkpoint.start) or self._start(rows, machines, given.n_rows)
        scores = [] if checkpoint is None else checkpoint.scores
        with limit_blas(), self._display() as display, _flushed(checkpoint):
            bound = machines.bind(kernels, box.apply(rows.X), dtype, self.n_jobs)
            if start is not None and np.shape(start.P) != np.shape(bound.cone.identity):
                start = None  # another kernel set than last time: its P means nothing here
            problem = SaddlePoint(bound, machines.dual)

            def model_of(result: SolverResult) -> BaseLearnedKernel:
                model = copy(self)
                kernel = LearnedKernel(deepcopy(bound.kernels), result.parameter, box)
                model._keep(rows, machines, result, kernel, given, scores)
                return model

            if watchers.hooks is not None:
                watchers.hooks.model_of = model_of
            scorer = None
            if given.held_out is not None:
                patience = int(self.n_iter_no_change)
                scorer = ScoreMonitor(given.held_out, model_of, patience, scores)
            result = choose_solver(self.solver, problem)(
                problem,
                tol=self.tol,
                max_iter=int(self.max_iter),
                time_limit=self.time_limit,
                parameter0=None if start is None else start.P,
                w0=None if start is None else start.w,
                n_jobs=self.n_jobs,
                callback=Monitors(
                    [start, display, scorer, checkpoint, watchers.hooks, watchers.callback]
                ),
            )
        if checkpoint is not None:
            result = checkpoint.finish(result)
        self._become(model_of(result))
        if watchers.hooks is not None:
            watchers.hooks.finish(result)
        return result

    def _become(self, model: BaseLearnedKernel) -> None:
        """Take over all attributes of a copy."""
        attributes = dict(vars(model))
        self.__dict__.clear()
        self.__dict__.update(attributes)

    def _open_checkpoint(
        self, rows: TrainingSet, dual: DualProblem, kernels: KernelSet
    ) -> Checkpoint | None:
        if self.checkpoint is None:
            return None
        return Checkpoint(self.checkpoint, fingerprint(type(self).__name__, rows, dual, kernels))

    def _display(self) -> Any:
        """A context manager whose value follows the run."""
        if self.verbose > 1:
            return ProgressDisplay(self.tol)
        return nullcontext(TablePrinter() if self.verbose else None)

    def _require_memory(
        self, kernels: KernelSet, sizes: list[int], n_features: int, itemsize: int
    ) -> None:
        n_samples = sum(sizes)
        needed = kernels.memory_estimate(n_samples, n_features, itemsize)
        needed += working_memory(self.solver, sizes, itemsize, by_rows=kernels.by_rows)
        remedies = [] if itemsize == 4 else ["precision='float32'"]
        if self.solver not in ("auto", "working-set"):
            remedies.append("solver='working-set'")
        several = f" in {len(sizes)} machines" if len(sizes) > 1 else ""
        require_memory(
            needed,
            f"Learning a kernel on {n_samples} rows{several}",
            f"Use {' or '.join([*remedies, 'fewer rows'])}.",
        )

    def _start(self, rows: TrainingSet, machines: Machines, n_given: int) -> StartingPoint | None:
        """Where a warm start begins: the last P, and the last w if the data has as many rows."""
        if not (self.warm_start and isinstance(getattr(self, "kernel_", None), LearnedKernel)):
            return None
        if self._n_rows != n_given or len(self.dual_coef_) != len(machines):
            return StartingPoint(self.kernel_.P, None, None)
        spread = np.zeros((len(machines), n_given))
        spread[:, self.support_] = self.dual_coef_ / self._target_scale
        w = machines.collect(rows.gather(spread))
        w_bound = None
        if self._w_bound is not None:
            w_bound = machines.collect(rows.gather(self._w_bound))
        return StartingPoint(self.kernel_.P, w, w_bound)

    def _begin_at(self, kernel: Any) -> None:
        """Let the next fit, with `warm_start`, start from a kernel learned on other rows."""
        self.kernel_ = kernel
        self._n_rows = -1  # no dual vector: it belongs to its rows

    def _keep(
        self,
        rows: TrainingSet,
        machines: Machines,
        result: SolverResult,
        kernel: LearnedKernel,
        given: Given,
        scores: list[float],
    ) -> None:
        """Fitted attributes from the answer of a solver."""
        coefficients = machines.spread(result.w)
        support = np.flatnonzero(coefficients.any(axis=0))
        support = support[np.argsort(rows.index[support])]
        self.kernel_ = kernel
        self.P_ = kernel.P
        self.support_ = rows.index[support]
        self.support_vectors_ = rows.X[support]
        self.dual_coef_ = given.target_scale * coefficients[:, support]
        self.intercept_ = given.target_scale * result.intercept + given.target_mean
        self.n_iter_ = result.n_iter
        self.objective_ = result.value
        self.lower_bound_ = result.bound
        self.gap_ = result.gap
        self.history_ = result.history
        self.status_ = result.status.value
        self.solver_ = result.solver
        self.validation_scores_ = None if given.held_out is None else np.array(scores)
        self._n_rows = given.n_rows
        self._target_scale = given.target_scale
        # Only for whoever goes on from here: a finished fit has no use for it.
        unfinished = result.status is not SolverStatus.OPTIMAL
        proof = machines.spread(result.w_bound)
        self._w_bound = rows.scatter(proof, given.n_rows) if unfinished else None
        self._keep_sample(rows)

    # ----------------------------------------------------------------------------- predicting

    def _scores(self, X: Any) -> FloatArray:
        """``f(x)`` of each machine for the rows of X, of shape (n_samples, n_machines)."""
        check_is_fitted(self, "kernel_")
        X = validate_data(self, X, dtype=np.float64, order="C", reset=False)
        if self.warn_outside:
            warn_outside(self._count_outside(X), stacklevel=3)  # of predict's caller
        with limit_blas():
            return self._machine_scores(X) + self.intercept_

    def _machine_scores(self, X: FloatArray) -> FloatArray:
        scores: FloatArray = self.kernel_.scores(
            X, self.support_vectors_, self.dual_coef_.T, n_jobs=self.n_jobs
        )
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
            Numbers of rows, in all and by feature, and the rule that the kernel follows there;
            as text, a sentence that says all of it.
        """
        check_is_fitted(self, "kernel_")
        return self._count_outside(validate_data(self, X, dtype=np.float64, reset=False))

    def _count_outside(self, X: FloatArray) -> OutsideCount:
        kernel = self.kernel_[0] if isinstance(self.kernel_, list) else self.kernel_
        return count_outside(kernel, X, feature_names(self, X.shape[1]))

    # -------------------------------------------------------------------------------- keeping

    def save(self, path: str | os.PathLike[str], *, metadata: dict[str, Any] | None = None) -> None:
        """Write the fitted model to one file of arrays and JSON.

        Parameters
        ----------
        path : path-like
            File to write, by convention with the suffix ``.tsl``; :func:`tessella.load` reads it.
        metadata : dict, optional
            Anything that JSON can hold, to be stored beside the model.

        See Also
        --------
        tessella.save : The same as a function, with what it raises.
        """
        from tessella.persistence import save  # not above: that module imports the estimators

        save(self, path, metadata=metadata)


@contextmanager
def all_or_nothing(estimator: Any) -> Iterator[None]:
    """Give an estimator back the attributes it had, if its fit fails or is interrupted."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


@contextmanager
def _flushed(checkpoint: Checkpoint | None) -> Iterator[None]:
    """Leave nothing unwritten when a run fails."""
    try:
        yield
    except BaseException:
        if checkpoint is not None:
            checkpoint.flush()
        raise
