"""Classes from the scores of pairs of classes, for every classifier alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets

from tessella.estimators._machines import class_pairs, one_vs_rest_scores, winners

FloatArray = NDArray[np.float64]

_FEW_CLASSES = 50  # which nobody mistakes for numbers to predict


class OneVsOneMixin:
    """Adds ``decision_function`` and ``predict`` to an estimator that knows the scores of pairs."""

    decision_function_shape: str
    break_ties: bool
    classes_: NDArray[Any]
    _scores: Callable[[Any], FloatArray]  # of each machine, of shape (n_samples, n_machines)

    def _check_votes(self) -> None:
        shape = self.decision_function_shape
        if shape not in ("ovr", "ovo"):
            raise ValueError(f"decision_function_shape={shape!r} is unknown; use 'ovr' or 'ovo'.")
        self._check_ties()

    def _check_ties(self) -> None:
        if self.break_ties and self.decision_function_shape == "ovo":
            raise ValueError("break_ties=True needs decision_function_shape='ovr'.")

    @property
    def predict_proba(self) -> Any:
        """Not there; the error tells how to get probabilities."""
        raise AttributeError(
            f"{type(self).__name__} has no predict_proba. Probabilities are calibrated on top: "
            "sklearn.calibration.CalibratedClassifierCV(model, ensemble=False)."
        )

    def decision_function(self, X: Any) -> FloatArray:
        """Scores of each row, in the shapes of :class:`sklearn.svm.SVC`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows in the units of the training data.

        Returns
        -------
        ndarray of shape (n_samples,), (n_samples, n_classes) or (n_samples, n_pairs)
            With two classes, positive for ``classes_[1]``. With more and
            ``decision_function_shape="ovr"``, a score for each class: the number of pairs it
            wins, and less than a third of a vote for the sum of its scores. With "ovo", the score
            of each pair of classes i < j, positive for i.
        """
        scores = self._scores(X)
        n_classes = len(self.classes_)
        if n_classes == 2:
            return scores[:, 0]
        if self.decision_function_shape == "ovo":
            return scores
        return one_vs_rest_scores(scores, class_pairs(n_classes), n_classes)

    def predict(self, X: Any) -> NDArray[Any]:
        """Label of each row: the class that wins most pairs, of several the first.

        With ``break_ties=True``, the class with the largest ``decision_function``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows in the units of the training data.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        scores, n_classes = self._scores(X), len(self.classes_)
        pairs = class_pairs(n_classes)
        if self.break_ties and n_classes > 2:
            self._check_ties()
            winner = one_vs_rest_scores(scores, pairs, n_classes).argmax(axis=1)
        else:
            winner = winners(scores, pairs, n_classes)
        labels: NDArray[Any] = self.classes_[winner]
        return labels


def encode_labels(y: NDArray[Any], weight: FloatArray) -> tuple[NDArray[Any], FloatArray]:
    """The classes, and the number of its class for each sample."""
    _require_labels(y)
    check_classification_targets(y)
    # Rows of weight zero are absent: a class that only they have does not exist.
    present = weight > 0
    classes, numbers = np.unique(y[present], return_inverse=True)
    if len(classes) < 2:
        raise ValueError(
            f"Classification needs two classes and the training data has one class only: "
            f"{classes.tolist()[0]!r}."
        )
    if len(classes) > max(_FEW_CLASSES, len(y) // 2):
        raise ValueError(
            f"The target has {len(classes)} different values in {len(y)} rows, and classification "
            "learns a machine for each pair of them. For a number to predict use a regressor, "
            "such as LearnedKernelSVR."
        )
    codes = np.zeros(len(y))
    codes[present] = numbers
    return classes, codes


def _require_labels(y: NDArray[Any]) -> None:
    """Refuse a target with gaps, which would only fail when labels are sorted."""
    if y.dtype.kind != "O":
        return
    missing = np.array([value is None or value != value for value in y], dtype=bool)
    if missing.any():
        raise ValueError(
            f"Input y contains NaN or None, the first in row {int(missing.argmax())}: leave out "
            "the rows that have no target."
        )


def class_multipliers(
    class_weight: Any, classes: NDArray[Any], codes: FloatArray, weight: FloatArray
) -> FloatArray:
    """Factor of each sample's weight from `class_weight`."""
    if class_weight is None:
        return np.ones_like(weight)
    if isinstance(class_weight, str) and class_weight == "balanced":
        # By total weight, not by count: a weight of k has to act like k copies.
        totals = [float(weight[codes == k].sum()) for k in range(len(classes))]
        factors = [sum(totals) / (len(totals) * total) for total in totals]
    elif isinstance(class_weight, dict):
        unknown = set(class_weight) - set(classes.tolist())
        if unknown:
            raise ValueError(
                f"class_weight names {sorted(map(str, unknown))}, which are not among the classes "
                f"{classes.tolist()}."
            )
        factors = [float(class_weight.get(label, 1.0)) for label in classes.tolist()]
        if min(factors) <= 0:
            raise ValueError(f"class_weight={class_weight!r} must hold positive numbers.")
    else:
        raise ValueError(f"class_weight={class_weight!r} must be None, 'balanced' or a dict.")
    multipliers: FloatArray = np.array(factors)[codes.astype(np.intp)]
    return multipliers
