"""The automatic classifier."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from tessella.automatic._base import BaseAutomatic
from tessella.automatic._calibration import fit_calibration, probabilities
from tessella.automatic._regressor import _require_length

FloatArray = NDArray[np.float64]


class TessellaClassifier(ClassifierMixin, BaseAutomatic):  # type: ignore[misc]
    """Classification on tables without any choices."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> TessellaClassifier:
        """Fit the model to a table."""
        return self._fit(X, y, sample_weight)

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the class of the rows of a table."""
        best = np.argmax(self.predict_proba(X), axis=1)
        return self.classes_[best]

    def predict_proba(self, X: Any) -> FloatArray:
        """Predict the probabilities of the classes."""
        scores = self._scores(X)
        return probabilities(scores, self._calibration)

    def _read_target(self, y: Any, n_rows: int) -> FloatArray:
        if y is None:
            raise ValueError(
                f"This {type(self).__name__} estimator requires y to be passed, but the target y "
                "is None."
            )
        check_classification_targets(y)
        y = column_or_1d(y, warn=True)
        _require_length(y, n_rows)
        self.classes_, codes = np.unique(y, return_inverse=True)
        return codes.astype(np.float64)

    def _outputs(self, y: FloatArray, weight: FloatArray) -> FloatArray:
        del weight
        codes = y.astype(np.intp)
        if len(np.unique(codes)) < 2:
            raise ValueError("y has a single class; classification needs at least two classes.")
        return np.eye(len(self.classes_))[codes]

    def _search_order(self, y: FloatArray) -> NDArray[np.intp]:
        """Take the classes in turn by their frequency, so that any first rows contain them all."""
        order = super()._search_order(y)
        codes = y[order].astype(np.intp)
        rank = np.empty(len(codes))
        for k in range(len(self.classes_)):
            own = np.flatnonzero(codes == k)
            rank[own] = (np.arange(len(own)) + 0.5) / max(len(own), 1)
        return order[np.argsort(rank, kind="stable")]

    def _finish(
        self, held_out: FloatArray, Y: FloatArray, y: FloatArray, weight: FloatArray
    ) -> None:
        del Y
        codes = y.astype(np.intp)
        self._calibration = fit_calibration(held_out, codes, weight)
        predicted = np.argmax(probabilities(held_out, self._calibration), axis=1)
        self.loo_score_ = float(weight @ (predicted == codes) / weight.sum())
