"""Predictions for training rows by the fit without them, exact for the squared loss.

With G = (K + Λ)⁻¹ and H = G - G11ᵀG / (1ᵀG1), the dual coefficients of a fit are a = Hy. Leaving
out a row changes one entry of Λ, so the residual of the row in the fit without it follows from a
and the diagonal of H, without another fit.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from tessella.backend import limit_blas
from tessella.svm import RidgeInverse

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class RowsOfFit:
    """What leave-one-out needs to know of the rows of a fit, in the order of ``support_``.

    Attributes
    ----------
    target : ndarray of shape (n_support,)
        Target of each row, or the position of its class in ``classes_``.
    loss_weight : ndarray of shape (n_support,)
        Weight of the loss of each row, which is C times its weight.
    copies : ndarray of shape (n_support,)
        Sum of the sample weights of the rows that were merged into each row.
    of_given : ndarray of int of shape (n_given,)
        Position of each row of the data as given, or -1 for a row that the model did not learn
        from.
    """

    target: FloatArray
    loss_weight: FloatArray
    copies: FloatArray
    of_given: NDArray[np.intp]


def residuals_without(
    coefficients: FloatArray, diagonal: FloatArray, loss_weight: FloatArray, copies: FloatArray
) -> FloatArray:
    """Return the residual of each row in the fit without one copy of it.

    A row of weight s keeps the share (s - 1) / s of its loss weight c, and nothing for s ≤ 1. The
    entry of Λ that belongs to it changes from 1/c to 1/(c share), which changes H by a matrix of
    rank one. The residual is the new entry of Λ times the new coefficient; both are written here
    without a division by the share.

    Parameters
    ----------
    coefficients : ndarray of shape (m, n_outputs)
        Dual coefficients a = Hy of the fit.
    diagonal : ndarray of shape (m,)
        Diagonal of H.
    loss_weight : ndarray of shape (m,)
        Weight of the loss of each row.
    copies : ndarray of shape (m,)
        Number of copies s that each row stands for.
    """
    share = np.maximum(copies - 1.0, 0.0) / copies
    residuals: FloatArray = coefficients / (share * loss_weight + (1.0 - share) * diagonal)[:, None]
    return residuals


class LeaveOneOutMixin:
    """Adds ``loo_predictions_`` and ``loo_score_`` to an estimator with the squared loss."""

    kernel_: Any
    support_: NDArray[np.intp]
    support_vectors_: FloatArray
    _rows_of_fit: RowsOfFit

    @cached_property
    def loo_predictions_(self) -> FloatArray:
        """Prediction for each training row by the fit without it, for the learned kernel.

        It is computed when it is first read, at the cost of the inverse of a matrix of the side of
        the number of training rows.
        """
        check_is_fitted(self, "_rows_of_fit")
        merged, given = self._predictions_without(), self._rows_of_fit.of_given
        predictions: FloatArray = np.where((given >= 0)[:, None], merged[given], np.nan)
        return predictions[:, 0] if predictions.shape[1] == 1 else predictions

    @cached_property
    def loo_score_(self) -> float:
        """Weighted score of the leave-one-out predictions: R² or accuracy."""
        check_is_fitted(self, "_rows_of_fit")
        rows = self._rows_of_fit
        return self._loo_score(rows.target, self.loo_predictions_[self.support_], rows.copies)

    def _predictions_without(self) -> FloatArray:
        """Predictions without one copy of each merged row, of shape (n_support, n_outputs)."""
        rows = self._rows_of_fit
        targets = self._loo_targets(rows.target)
        with limit_blas():
            K = self.kernel_(self.support_vectors_, self.support_vectors_)
            # Centring changes only the intercept, and removes a common part that costs digits.
            means = K.mean(axis=0)
            centred = K - means - (means - means.mean())[:, None]
            inverse = RidgeInverse(centred, 1.0 / rows.loss_weight)
            coefficients, _ = inverse.solve(targets)
            diagonal = inverse.diagonal()
        return targets - residuals_without(coefficients, diagonal, rows.loss_weight, rows.copies)

    def _loo_targets(self, target: FloatArray) -> FloatArray:
        """Targets of the outputs, of shape (n_support, n_outputs)."""
        raise NotImplementedError

    def _loo_score(self, target: FloatArray, predictions: FloatArray, weight: FloatArray) -> float:
        """Score of leave-one-out predictions."""
        raise NotImplementedError
