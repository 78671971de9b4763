"""Scores from leave-one-out predictions, which are there before a scorer asks for them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, is_classifier
from sklearn.utils.multiclass import check_classification_targets


class HeldOut(BaseEstimator):  # type: ignore[misc]
    """Stands in for a fitted estimator whose predictions for some rows are known.

    Parameters
    ----------
    predictions : ndarray of shape (n_samples,)
        What ``predict`` returns.
    decisions : ndarray or None
        What ``decision_function`` returns, if there is one.
    classes : ndarray of shape (n_classes,) or None
        Sorted labels of a classifier.
    """

    def __init__(self, predictions: Any, decisions: Any, classes: Any) -> None:
        self.predictions = predictions
        self.decisions = decisions
        self.classes = classes

    def fit(self, X: Any, y: Any) -> HeldOut:  # noqa: ARG002
        """Do nothing; scorers ask for an estimator with this method."""
        return self

    def predict(self, X: Any) -> NDArray[Any]:  # noqa: ARG002
        """Return the predictions."""
        return self.predictions  # type: ignore[no-any-return]

    def __sklearn_is_fitted__(self) -> bool:
        return True


class HeldOutClassifier(ClassifierMixin, HeldOut):  # type: ignore[misc]
    """Stands in for a classifier."""

    @property
    def classes_(self) -> Any:
        """Sorted labels."""
        return self.classes

    def decision_function(self, X: Any) -> NDArray[Any]:  # noqa: ARG002
        """Return the decisions."""
        if self.decisions is None:
            raise AttributeError("There are no leave-one-out values of decision_function.")
        return self.decisions  # type: ignore[no-any-return]


class HeldOutRegressor(RegressorMixin, HeldOut):  # type: ignore[misc]
    """Stands in for a regressor."""


def held_out(learner: Any) -> HeldOut:
    """A stand-in with the leave-one-out predictions of a fitted estimator."""
    predictions, decisions = learner._leave_one_out()
    if is_classifier(learner):
        return HeldOutClassifier(predictions, decisions, learner.classes_)
    return HeldOutRegressor(predictions, decisions, None)


def check_scorer(scorer: Any, estimator: Any, X: Any, y: Any, params: Any) -> None:
    """Raise ValueError for a scorer that needs more than leave-one-out predictions.

    The scorer is tried with the targets as predictions.
    """
    target = np.asarray(y)
    perfect: HeldOut = HeldOutRegressor(target, None, None)
    if is_classifier(estimator):
        check_classification_targets(target)
        classes, codes = np.unique(target, return_inverse=True)
        decisions = codes.astype(float) if len(classes) == 2 else np.eye(len(classes))[codes]
        perfect = HeldOutClassifier(target, decisions, classes)
    try:
        scorer(perfect, X, y, **params)
    except Exception as error:
        raise ValueError(
            "cv='loo' needs a score that can be computed from predictions or from values of "
            f"decision_function, and scoring has failed: {error} Use another scoring, or folds."
        ) from error


def check_leaves_one_out(learner: Any) -> None:
    """Raise TypeError for an estimator without leave-one-out predictions."""
    if not hasattr(learner, "_leave_one_out"):
        raise TypeError(
            f"cv='loo' needs leave-one-out predictions, which {type(learner).__name__} does not "
            "have. Use folds, such as cv=5."
        )
