"""What classification and regression have in common: from arrays to a certified model."""

from __future__ import annotations

import os
import warnings
from copy import deepcopy
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from tessella.backend import limit_blas, require_memory
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
from tessella.solvers import (
    IterationRecord,
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


class BaseLearnedKernel(RelevanceMixin, BaseEstimator):  # type: ignore[misc]
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
    warm_start: bool
    warn_outside: bool
    verbose: int
    n_jobs: int | None

    # -------------------------------------------------------------------------------- fitting

    def _validated(self, X: Any, y: Any, sample_weight: Any) -> tuple[FloatArray, Any, FloatArray]:
        """Hyperparameters, then data, checked before anything else happens."""
        self._check_params()
        try:
            X, y = validate_data(
                self, X, y, dtype=np.float64, order="C", ensure_min_samples=2, **self._y_checks()
            )
        except ValueError as error:
            raise _with_remedy(error) from error
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        return X, y, weight

    def _y_checks(self) -> dict[str, Any]:
        return {}

    def _check_params(self) -> None:
        require_positive("C", self.C)
        require_positive("tol", self.tol)
        if self.time_limit is not None:
            require_positive("time_limit", self.time_limit)
        _require_count("max_iter", self.max_iter)
        if self.precision not in _PRECISIONS:
            raise ValueError(f"precision={self.precision!r} is unknown; use one of {_PRECISIONS}.")
        check_solver(self.solver)
        self._kernel_set()

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
        self, rows: TrainingSet, dual: DualProblem, n_given: int, callback: Callback | None
    ) -> tuple[SolverResult, LearnedKernel]:
        """Learn the kernel on the rows of a training set."""
        box = UnitBox.fit(rows.X)
        if not len(box.kept):
            raise ValueError(
                f"All {rows.X.shape[1]} features are constant, so no kernel can tell the rows "
                "apart. Check that the right columns were selected."
            )
        kernels = self._kernel_set()
        dtype = np.dtype(self.precision)
        self._require_memory(kernels, len(rows.X), len(box.kept), dtype.itemsize)
        P0, w0 = self._start(rows, n_given)
        with limit_blas():
            bound = kernels.bind(box.apply(rows.X), dtype=dtype, n_jobs=self.n_jobs)
            if P0 is not None and P0.shape != (bound.n_params, bound.n_params):
                P0 = None  # another kernel set than last time: its P means nothing here
            problem = SaddlePoint(bound, dual)
            result = choose_solver(self.solver, problem)(
                problem,
                tol=self.tol,
                max_iter=int(self.max_iter),
                time_limit=self.time_limit,
                P0=P0,
                w0=w0,
                n_jobs=self.n_jobs,
                callback=self._with_verbose(callback),
            )
        return result, LearnedKernel(deepcopy(bound.kernels), result.P, box)

    def _require_memory(
        self, kernels: KernelSet, n_samples: int, n_features: int, itemsize: int
    ) -> None:
        needed = kernels.memory_estimate(n_samples, n_features, itemsize)
        needed += working_memory(self.solver, n_samples, itemsize, by_rows=kernels.by_rows)
        remedies = [] if itemsize == 4 else ["precision='float32'"]
        if self.solver not in ("auto", "working-set"):
            remedies.append("solver='working-set'")
        require_memory(
            needed,
            f"Learning a kernel on {n_samples} rows",
            f"Use {' or '.join([*remedies, 'fewer rows'])}.",
        )

    def _start(
        self, rows: TrainingSet, n_given: int
    ) -> tuple[FloatArray | None, FloatArray | None]:
        """Where a warm start begins: the last P, and the last w if the data has as many rows."""
        if not (self.warm_start and hasattr(self, "kernel_")):
            return None, None
        w0 = None
        if self._n_rows == n_given:
            given = np.zeros(n_given)
            given[self.support_] = self.dual_coef_[0] / self._target_scale
            w0 = rows.gather(given)
        return self.kernel_.P, w0

    def _with_verbose(self, callback: Callback | None) -> Callback | None:
        if not self.verbose:
            return callback
        table = TablePrinter()

        def both(record: IterationRecord) -> None:
            table(record)
            if callback is not None:
                callback(record)

        return both

    def _keep(
        self,
        rows: TrainingSet,
        result: SolverResult,
        kernel: LearnedKernel,
        *,
        n_given: int,
        target_scale: float = 1.0,
        target_mean: float = 0.0,
    ) -> None:
        """Fitted attributes, and a warning when the certificate is short of `tol`."""
        support = np.flatnonzero(result.w)
        support = support[np.argsort(rows.index[support])]
        self.kernel_ = kernel
        self.P_ = kernel.P
        self.support_ = rows.index[support]
        self.support_vectors_ = rows.X[support]
        self.dual_coef_ = target_scale * result.w[support][None, :]
        self.intercept_ = target_scale * result.intercept + target_mean
        self.n_iter_ = result.n_iter
        self.objective_ = result.value
        self.lower_bound_ = result.bound
        self.gap_ = result.gap
        self.history_ = result.history
        self.status_ = result.status.value
        self.solver_ = result.solver
        self._n_rows = n_given
        self._target_scale = target_scale
        self._keep_sample(rows)
        if result.status is not SolverStatus.OPTIMAL:
            warnings.warn(_shortfall(result, self.tol), ConvergenceWarning, stacklevel=4)

    # ----------------------------------------------------------------------------- predicting

    def _scores(self, X: Any) -> FloatArray:
        """``f(x)`` for the rows of X."""
        check_is_fitted(self, "kernel_")
        X = validate_data(self, X, dtype=np.float64, order="C", reset=False)
        if self.warn_outside:
            warn_outside(self._count_outside(X), stacklevel=3)  # of predict's caller
        with limit_blas():
            scores = self.kernel_.scores(
                X, self.support_vectors_, self.dual_coef_[0], n_jobs=self.n_jobs
            )
        result: FloatArray = scores + self.intercept_[0]
        return result

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
        return count_outside(self.kernel_, X, feature_names(self, X.shape[1]))

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


def require_positive(name: str, value: Any, *, or_zero: bool = False) -> None:
    number = isinstance(value, Real) and not isinstance(value, bool)
    if not number or not 0 <= float(value) < np.inf or (value == 0 and not or_zero):
        kind = "a finite number >= 0" if or_zero else "a positive finite number"
        raise ValueError(f"{name}={value!r} must be {kind}.")


def _require_count(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < 0:
        raise ValueError(f"{name}={value!r} must be a whole number >= 0.")


def _with_remedy(error: ValueError) -> ValueError:
    """scikit-learn's complaint about the data, with what to do about it."""
    text = str(error)
    if "could not convert string" in text:
        return ValueError(
            f"{text}. All features must be numbers: encode text columns first, for instance with "
            "sklearn.preprocessing.OneHotEncoder in a ColumnTransformer."
        )
    return error


def _shortfall(result: SolverResult, tol: float) -> str:
    remedy = {
        SolverStatus.MAX_ITER: "Raise max_iter, or accept a larger tol.",
        SolverStatus.TIME_LIMIT: "Raise time_limit, or accept a larger tol.",
        SolverStatus.INTERRUPTED: "Fit again with warm_start=True to go on from here.",
        SolverStatus.STALLED: "Use precision='float64', a smaller C or a larger tol.",
    }[result.status]
    return (
        f"The {result.solver} solver stopped ({result.status.value}) after {result.n_iter} "
        f"iterations with a certified relative gap of {result.gap:.2e}, above tol={tol:g}. The "
        f"best model found is kept. {remedy}"
    )
