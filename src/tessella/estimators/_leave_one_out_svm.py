"""Leave-one-out predictions of support vector machines, as attributes of fitted estimators."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from tessella.backend import limit_blas, require_memory
from tessella.backend._lazy import cached_property
from tessella.estimators._fit_rows import FitRows
from tessella.estimators._layouts import support_to_given
from tessella.kernels import LearnedKernel
from tessella.leave_one_out import svm_leave_one_out
from tessella.svm import DualProblem, solve_dual

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

# For the kernel that a fit has learned, its machine is solved to this relative gap. Leaving out
# rows starts from there, and the tolerance of the fit concerns the kernel.
_GAP = 1e-7

_BYTES_PER_ENTRY = 5 * 8  # matrices of all pairs of rows that are held at once


class SvmLeaveOneOutMixin:
    """Adds the score of each training row in the machines without it to an estimator."""

    kernel_: Any
    support_: IntArray
    dual_coef_: FloatArray
    intercept_: FloatArray
    n_jobs: int | None

    @cached_property
    def _loo_scores(self) -> FloatArray:
        """Scores of each machine for the rows as given, of shape (n_given, n_machines)."""
        rows = self._rows_of_the_fit()
        scores = np.empty((rows.problem.n_given, len(rows.problem.machines)))
        with limit_blas():
            merged = self._merged_loo_scores(rows)
            scores[rows.seen] = merged[rows.problem.rows.of_given[rows.seen]]
        if len(rows.unseen):
            plain = self._machine_scores(rows.unseen, self.n_jobs)  # type: ignore[attr-defined]
            scores[~rows.seen] = plain + self.intercept_
        return scores

    def _rows_of_the_fit(self) -> FitRows:
        check_is_fitted(self, "kernel_")
        rows: FitRows | None = getattr(self, "_fit_rows", None)
        if "leaves_" in vars(self):
            raise AttributeError(
                "Leave-one-out predictions are those of one machine, and this model has leaves. "
                "Hold out rows instead, for example by cross_val_predict."
            )
        if rows is None:
            raise AttributeError(
                f"Leave-one-out needs the training rows, which are neither copied nor stored with "
                f"a {type(self).__name__}. Read loo_predictions_ and loo_score_ of the estimator "
                "that was fitted before it is copied or saved, or fit it again."
            )
        return rows

    def _merged_loo_scores(self, rows: FitRows) -> FloatArray:
        """Scores of each machine for the merged rows."""
        problem = rows.problem
        X, machines = problem.rows.X, problem.machines
        require_memory(
            _BYTES_PER_ENTRY * max(machines.n_rows, *machines.sizes) ** 2,
            f"Leaving out each of {len(X)} rows",
            "Use folds instead, or fewer rows.",
        )
        w = problem.layouts.given_to_stacked(self._standardised_coefficients(rows))
        shared = isinstance(self.kernel_, LearnedKernel)
        K = self.kernel_(X, n_jobs=self.n_jobs) if shared else None
        left_out = 1.0 / np.maximum(rows.copies, 1.0)
        scores = np.empty((len(X), len(machines)))
        for k, (own, part) in enumerate(zip(machines.rows, machines.dual.machines, strict=True)):
            matrix = self.kernel_[k](X, n_jobs=self.n_jobs) if K is None else K
            machine = machines.dual.each[k]
            scores[:, k] = _scores_without(matrix, own, machine, w[part], left_out, self.n_jobs)
        scores *= problem.target_scale
        scores += problem.target_mean
        return scores

    def _standardised_coefficients(self, rows: FitRows) -> FloatArray:
        problem = rows.problem
        standardised = self.dual_coef_ / problem.target_scale
        return support_to_given(self.support_, standardised, problem.n_given)


class ClassifierLeaveOneOutMixin(SvmLeaveOneOutMixin):
    """Adds leave-one-out labels, scores and accuracy to a classifier."""

    @cached_property
    def loo_decision_function_(self) -> FloatArray:
        """Decision function of each training row without it, computed when it is first read."""
        decisions: FloatArray = self._decisions(self._loo_scores)  # type: ignore[attr-defined]
        return decisions

    @cached_property
    def loo_predictions_(self) -> NDArray[Any]:
        """Predicted label of each training row without it, computed when it is first read."""
        labels: NDArray[Any] = self._labels(self._loo_scores)  # type: ignore[attr-defined]
        return labels

    @cached_property
    def loo_score_(self) -> float:
        """Weighted accuracy of `loo_predictions_`, computed when it is first read."""
        from sklearn.metrics import accuracy_score  # not above, because it is slow to import

        rows, predicted = self._rows_of_the_fit(), self.loo_predictions_
        problem, seen = rows.problem, rows.seen
        assert problem.classes is not None
        codes = problem.rows.y[problem.rows.of_given[seen]].astype(np.intp)
        labels, weight = problem.classes[codes], rows.weight[seen]
        return float(accuracy_score(labels, predicted[seen], sample_weight=weight))

    def _leave_one_out(self) -> tuple[NDArray[Any], FloatArray | None]:
        """What ``predict`` and ``decision_function`` would return without each training row."""
        return self.loo_predictions_, self.loo_decision_function_


class RegressorLeaveOneOutMixin(SvmLeaveOneOutMixin):
    """Adds leave-one-out predictions and their R² to a regressor."""

    @cached_property
    def loo_predictions_(self) -> FloatArray:
        """Prediction of each training row without it, computed when it is first read."""
        return self._loo_scores[:, 0]

    @cached_property
    def loo_score_(self) -> float:
        """Weighted R² of `loo_predictions_`, computed when it is first read."""
        from sklearn.metrics import r2_score  # not above, because it is slow to import

        rows, predicted = self._rows_of_the_fit(), self.loo_predictions_
        merged, seen, unit = rows.problem.rows, rows.seen, rows.problem.target_scale
        target, weight = merged.y[merged.of_given[seen]], rows.weight[seen]
        # In units in which squares neither overflow nor vanish.
        return float(r2_score(target / unit, predicted[seen] / unit, sample_weight=weight))

    def _leave_one_out(self) -> tuple[NDArray[Any], FloatArray | None]:
        """What ``predict`` would return without each training row; there are no decisions."""
        return self.loo_predictions_, None


def _scores_without(
    K: FloatArray,
    own: IntArray,
    dual: DualProblem,
    w: FloatArray,
    left_out: FloatArray,
    n_jobs: int | None,
) -> FloatArray:
    """Scores of one machine: without the row for its own rows, as they are for the others.

    Parameters
    ----------
    K : ndarray of shape (m, m)
        Kernel matrix of all rows.
    own : ndarray of int of shape (f,)
        Rows that the machine sees.
    dual : DualProblem
        Its dual problem.
    w : ndarray of shape (f,)
        Dual vector to start from.
    left_out : ndarray of shape (m,)
        Fraction of the weight of each row that is left out with it.
    n_jobs : int or None
        Number of threads.
    """
    matrix = K if len(own) == len(K) else K[np.ix_(own, own)]
    solution = solve_dual(matrix, dual, w0=w, tol=_GAP, n_jobs=n_jobs).unless_interrupted()
    scores: FloatArray = K[:, own] @ solution.w + solution.intercept
    found = svm_leave_one_out(matrix, dual, solution, left_out=left_out[own], n_jobs=n_jobs)
    scores[own] = found.scores
    return scores
