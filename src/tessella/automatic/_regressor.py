"""The automatic regressor."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils.validation import _check_y, column_or_1d

from tessella.automatic._base import BaseAutomatic, require_length, require_target
from tessella.automatic._calibration import interval_radius
from tessella.automatic._targets import LogTarget, PlainTarget, Target
from tessella.estimators._standardised import StandardisedTarget

FloatArray = NDArray[np.float64]


class TessellaRegressor(RegressorMixin, BaseAutomatic):  # type: ignore[misc]
    """Regression on tables, with nothing to choose.

    The model takes a table as it comes, with numbers, text, dates and missing values. It compares
    scalings, families of kernels, widths and C by exact leave-one-out errors, refines the scale of
    every column by descent of the leave-one-out error, and averages the best machines.

    Parameters
    ----------
    effort : {"low", "medium", "high"}, default="medium"
        How much is tried. "low" takes a fifth or less of the time of "medium", and "high"
        about four times as long.
    time_limit : float, default=None
        Seconds after which the search ends and the best machines so far are fitted. With little
        time, the search tries fewer kinds of kernels on fewer rows, and exact machines see fewer
        rows each. The first machine is always fitted. None sets no limit.
    categorical_features : sequence of str or int, default=None
        Names of columns (numbers of columns, for arrays) to treat as categories, such as numeric
        codes. Text columns and categorical columns of pandas and polars are always treated as
        categories.
    families : sequence of str, default=("laplace", "matern", "gaussian", "tessellated")
        Families of kernels to choose from.
    scalings : sequence of str, default=("quantile", "range")
        Scalings of the features to choose from: "range", "quantile" and "robust".
    encodings : sequence of str, default=("one-hot", "target")
        Encodings of categories to choose from: "one-hot" gives each frequent category a column,
        and "target" replaces a category by the mean of the target over its rows, shrunk towards
        the mean of all rows.
    losses : sequence of str, default=("squared", "svm")
        Losses to choose from. "svm" is the ε-insensitive loss, which is tried where the held-out
        residuals have long tails. "squared" cannot be left out.
    refine : bool, default=True
        Whether to refine the scales of the columns by descent of the leave-one-out error.
    learn : bool, default=True
        Whether machines whose kernel is learned with a certificate are candidates too. Not with
        ``effort="low"``, and only for tables with few columns.
    average : bool, default=True
        Whether to average several machines. Otherwise the best one is used.
    n_jobs : int, default=None
        Number of threads. None uses all cores that the process may use. The result does not
        depend on it.
    verbose : int, default=0
        1 prints a line for each step of the search, and 2 shows a progress bar. Both tell the
        expected time of a long search after its first evaluation.

    Attributes
    ----------
    leaderboard_ : list of dict
        All machines that were compared on the search rows, the best first: held-out error relative
        to the variance of the target, weight in the average, family, scaling, encoding, loss and
        C.
    members_ : list of FittedMachine
        Machines of the average, fitted on all rows.
    gap_ : float
        Largest certified relative gap of the members. It proves that each machine is the optimum
        of its training problem.
    loo_score_ : float
        Coefficient of determination of the held-out predictions of the average.
    feature_relevance_ : ndarray of shape (n_features_in_,)
        Share of the variance of the predictions that involves each column, computed when it is
        read.
    search_complete_ : bool
        Whether the search was finished before the time limit.
    fit_time_ : float
        Seconds of the fit.
    n_features_in_ : int
        Number of columns of the training data.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns of the training data. Defined only if the columns have names.

    See Also
    --------
    TessellaClassifier : The same for classification.
    LearnedKernelRidge : One machine with a kernel that is learned with a certificate.

    Notes
    -----
    With more than some thousand rows, the search uses a sample of them. The scales of its best
    machines are then refined on a larger sample, a part of which is held out, and the members are
    fitted on all rows. With more rows than an exact machine can have, a member is a base
    machine of a sample of the rows, and exact machines of the leaves of one or two trees, which
    learn what the base machine leaves.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from tessella import TessellaRegressor
    >>> rng = np.random.default_rng(0)
    >>> table = pd.DataFrame({"x": rng.random(150), "town": rng.choice(["Ulm", "Bern"], 150)})
    >>> y = np.sin(5 * table["x"]) + (table["town"] == "Ulm")
    >>> table.loc[:4, "town"] = None
    >>> model = TessellaRegressor(effort="low").fit(table, y)
    >>> model.loo_score_ > 0.95
    True
    >>> lower, upper = model.predict_interval(table, coverage=0.9).T
    >>> bool(np.mean((lower <= y) & (y <= upper)) > 0.85)
    True
    """

    _softness = 0.2

    def predict(self, X: Any) -> FloatArray:
        """Predict the target of the rows of a table.

        Parameters
        ----------
        X : frame or array-like of shape (n_samples, n_features)
            Table with the same columns as the training data.

        Returns
        -------
        ndarray of shape (n_samples,)
            Predictions in the unit of the target.
        """
        scores = self._average_outputs(X)[:, 0]
        return np.asarray(self._mean + self._deviation * scores)

    def predict_interval(self, X: Any, coverage: float = 0.9) -> FloatArray:
        """Predict intervals that contain the target with a given probability.

        Parameters
        ----------
        X : frame or array-like of shape (n_samples, n_features)
            Table with the same columns as the training data.
        coverage : float, default=0.9
            Probability with which the interval of a new row contains its target, averaged over
            rows.

        Returns
        -------
        ndarray of shape (n_samples, 2)
            Lower and upper ends. They are infinite if there are too few training rows for the
            coverage.

        Notes
        -----
        The half-width is a quantile of the absolute leave-one-out residuals (the jackknife), the
        same for all rows.
        """
        if not 0.0 < coverage < 1.0:
            raise ValueError(f"coverage={coverage!r} must be between 0 and 1.")
        centre = self.predict(X)
        radius = interval_radius(self._residuals, self._residual_weight, coverage)
        return np.column_stack([centre - radius, centre + radius])

    def _read_target(self, y: Any, n_rows: int) -> FloatArray:
        require_target(self, y)
        y = column_or_1d(y, warn=True)
        if y.dtype.kind in "OUST" and any(isinstance(value, str) for value in y):
            raise ValueError(
                "The target contains text. Convert it to numbers, or use TessellaClassifier to "
                "predict classes."
            )
        y = _check_y(y, y_numeric=True, estimator=self)
        require_length(y, n_rows)
        return np.asarray(y, dtype=np.float64)

    @property
    def _n_outputs(self) -> int:
        return 1

    def _outputs(self, y: FloatArray, weight: FloatArray) -> FloatArray:
        target = StandardisedTarget.of(y, weight)
        self._mean, self._deviation = target.mean, target.scale
        return target.values[:, None]

    def _targets(self, Y: FloatArray, weight: FloatArray) -> tuple[Target, ...]:
        logarithm = LogTarget.fit(Y[:, 0], weight, -self._mean / self._deviation)
        return (PlainTarget(),) if logarithm is None else (PlainTarget(), logarithm)

    def _calibrate(self, held_out: FloatArray, y: FloatArray, weight: FloatArray) -> None:
        self._residuals = y - self._mean - self._deviation * held_out[:, 0]
        self._residual_weight = weight
        # In units of the deviation, in which squares neither overflow nor vanish.
        spread = weight @ ((y - self._mean) / self._deviation) ** 2
        error = weight @ (self._residuals / self._deviation) ** 2
        self.loo_score_ = 1.0 - float(error / spread) if spread > 0 else float(error == 0)
