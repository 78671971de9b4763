"""The automatic classifier."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from tessella.automatic._base import BaseAutomatic, require_length, require_target
from tessella.automatic._calibration import fit_calibration, probabilities
from tessella.estimators._one_vs_one import require_labels

FloatArray = NDArray[np.float64]


class TessellaClassifier(ClassifierMixin, BaseAutomatic):  # type: ignore[misc]
    """Classification of the rows of tables, with nothing to choose.

    The model takes a table as it comes, with numbers, text, dates and missing values. It compares
    scalings, families of kernels, widths and C by exact leave-one-out errors, refines the scale of
    every column by descent of the leave-one-out error, and averages the best machines. All classes
    share one kernel and one linear system, so many classes cost little more than two.

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
        and "target" replaces a category by the frequencies of the classes among its rows, shrunk
        towards those of all rows.
    losses : sequence of str, default=("squared", "svm")
        Losses to choose from. "svm" is the hinge loss, which is tried with ``effort="high"`` for
        up to ten classes. "squared" cannot be left out.
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
    classes_ : ndarray of shape (n_classes,)
        Labels of the classes, in sorted order.
    leaderboard_ : list of dict
        All machines that were compared on the search rows, the best first: squared held-out error
        of the indicators of the classes, weight in the average, family, scaling, encoding, loss
        and C.
    members_ : list of FittedMachine
        Machines of the average, fitted on all rows.
    gap_ : float
        Largest certified relative gap of the members. It proves that each machine is the optimum
        of its training problem.
    loo_score_ : float
        Accuracy of the held-out predictions of the average.
    feature_relevance_ : ndarray of shape (n_features_in_,)
        Share of the variance of the scores that involves each column, computed when it is read.
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
    TessellaRegressor : The same for regression.
    LearnedKernelRidgeClassifier : One machine with a kernel that is learned with a certificate.

    Notes
    -----
    With more than some thousand rows, the search uses a sample of them. The scales of its best
    machines are then refined on a larger sample, a part of which is held out, and the members are
    fitted on all rows. With more rows than an exact machine can have, a member is a base
    machine of a sample of the rows, and exact machines of the leaves of one or two trees, which
    learn what the base machine leaves.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tessella import TessellaClassifier
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = TessellaClassifier(effort="low").fit(X, y)
    >>> model.loo_score_ > 0.93
    True
    >>> model.predict_proba(X[:2]).round(1).tolist()
    [[1.0, 0.0, 0.0], [1.0, 0.0, 0.0]]
    """

    _softness = 0.5

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the classes of the rows of a table.

        Parameters
        ----------
        X : frame or array-like of shape (n_samples, n_features)
            Table with the same columns as the training data.

        Returns
        -------
        ndarray of shape (n_samples,)
            The class with the largest probability of :meth:`predict_proba`.
        """
        best = np.argmax(self.predict_proba(X), axis=1)
        return np.asarray(self.classes_[best])

    def predict_proba(self, X: Any) -> FloatArray:
        """Predict the probabilities of the classes.

        Parameters
        ----------
        X : frame or array-like of shape (n_samples, n_features)
            Table with the same columns as the training data.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities, calibrated with the held-out scores of the training rows.
        """
        scores = self._average_outputs(X)
        return probabilities(scores, self._calibration)

    def _read_target(self, y: Any, n_rows: int) -> FloatArray:
        require_target(self, y)
        y = column_or_1d(y, warn=True)
        require_length(y, n_rows)
        require_labels(y)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        return codes.astype(np.float64)

    @property
    def _n_outputs(self) -> int:
        return len(self.classes_)

    def _is_consistent(self) -> bool:
        shape = (2 + self._n_outputs,)
        return super()._is_consistent() and self._calibration.shape == shape

    def _outputs(self, y: FloatArray, weight: FloatArray) -> FloatArray:
        del weight
        codes = y.astype(np.intp)
        if len(np.unique(codes)) < 2:
            raise ValueError("y has a single class; classification needs at least two classes.")
        return np.eye(len(self.classes_))[codes]

    def _search_order(self, y: FloatArray) -> NDArray[np.intp]:
        """Take the classes in proportion to their frequencies, so that any first rows do."""
        order = super()._search_order(y)
        codes = y[order].astype(np.intp)
        rank = np.empty(len(codes))
        for k in range(len(self.classes_)):
            own = np.flatnonzero(codes == k)
            rank[own] = (np.arange(len(own)) + 0.5) / max(len(own), 1)
        return order[np.argsort(rank, kind="stable")]

    def _calibrate(self, held_out: FloatArray, y: FloatArray, weight: FloatArray) -> None:
        codes = y.astype(np.intp)
        self._calibration = fit_calibration(held_out, codes, weight)
        predicted = np.argmax(probabilities(held_out, self._calibration), axis=1)
        self.loo_score_ = float(weight @ (predicted == codes) / weight.sum())
