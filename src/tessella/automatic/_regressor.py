"""The automatic regressor."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils.validation import _check_y, column_or_1d

from tessella.automatic._base import BaseAutomatic
from tessella.automatic._calibration import interval_radius
from tessella.automatic._targets import LogTarget, PlainTarget, Target

FloatArray = NDArray[np.float64]


class TessellaRegressor(RegressorMixin, BaseAutomatic):  # type: ignore[misc]
    """Regression on tables without any choices."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> TessellaRegressor:
        """Fit the model to a table.

        Parameters
        ----------
        X : frame or array-like of shape (n_samples, n_features)
            Table with numbers, text, dates and missing values.
        y : array-like of shape (n_samples,)
            Target.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows.

        Returns
        -------
        TessellaRegressor
            The fitted model.
        """
        return self._fit(X, y, sample_weight)

    def predict(self, X: Any) -> FloatArray:
        """Predict the target of the rows of a table."""
        scores = self._scores(X)
        return self._mean + self._deviation * scores[:, 0]

    def predict_interval(self, X: Any, coverage: float = 0.9) -> FloatArray:
        """Predict intervals that contain the target with a given probability."""
        centre = self.predict(X)
        radius = interval_radius(self._residuals, self._residual_weight, coverage)
        return np.column_stack([centre - radius, centre + radius])

    def _read_target(self, y: Any, n_rows: int) -> FloatArray:
        if y is None:
            raise ValueError(
                f"This {type(self).__name__} estimator requires y to be passed, but the target y "
                "is None."
            )
        y = _check_y(column_or_1d(y, warn=True), y_numeric=True, estimator=self)
        _require_length(y, n_rows)
        return y.astype(np.float64)

    def _outputs(self, y: FloatArray, weight: FloatArray) -> FloatArray:
        self._mean = float(weight @ y / weight.sum())
        deviation = float(np.sqrt(weight @ (y - self._mean) ** 2 / weight.sum()))
        self._deviation = deviation or 1.0
        return ((y - self._mean) / self._deviation)[:, None]

    def _targets(self, Y: FloatArray, weight: FloatArray) -> tuple[Target, ...]:
        logarithm = LogTarget.fit(Y[:, 0], weight, -self._mean / self._deviation)
        return (PlainTarget(),) if logarithm is None else (PlainTarget(), logarithm)

    def _finish(
        self, held_out: FloatArray, Y: FloatArray, y: FloatArray, weight: FloatArray
    ) -> None:
        del y
        self._residuals = self._deviation * (Y - held_out)[:, 0]
        self._residual_weight = weight
        error = weight @ (Y - held_out)[:, 0] ** 2 / weight.sum()
        self.loo_score_ = 1.0 - float(error)


def _require_length(y: NDArray[Any], n_rows: int) -> None:
    if len(y) != n_rows:
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: {[n_rows, len(y)]}"
        )
