"""Classification from the scores of pairs of classes, shared by all classifiers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets

from tessella.estimators._checks import require_positive
from tessella.estimators._machines import class_pairs, one_vs_rest_scores, winners

FloatArray = NDArray[np.float64]

_FEW_CLASSES = 50  # so few distinct values are taken for labels whatever the number of rows


class OneVsOneMixin:
    """Adds ``decision_function`` and ``predict`` to a classifier with a machine for each pair."""

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
        """Not available; the error message says how to get calibrated probabilities."""
        raise AttributeError(
            f"{type(self).__name__} has no predict_proba. For calibrated probabilities use "
            "sklearn.calibration.CalibratedClassifierCV(model, ensemble=False)."
        )

    def decision_function(self, X: Any) -> FloatArray:
        """Compute the scores of each row, in the shapes of :class:`sklearn.svm.SVC`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows in the units of the training data.

        Returns
        -------
        ndarray of shape (n_samples,), (n_samples, n_classes) or (n_samples, n_pairs)
            With two classes, one score for each row, which is positive for ``classes_[1]``. With
            more classes and ``decision_function_shape="ovr"``, a score for each class: the number
            of pairs that the class wins, plus a term below one third that depends on its scores
            and breaks ties. With ``decision_function_shape="ovo"``, the score of each pair of
            classes i < j, which is positive for class i.
        """
        return self._decisions(self._scores(X))

    def _decisions(self, scores: FloatArray) -> FloatArray:
        """The decision function of rows with the given scores of pairs."""
        n_classes = len(self.classes_)
        if n_classes == 2:
            return scores[:, 0]
        if self.decision_function_shape == "ovo":
            return scores
        return one_vs_rest_scores(scores, class_pairs(n_classes), n_classes)

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the label of each row.

        It is the class that wins most of its pairs. If several classes win as many, it is the
        first of them or, with ``break_ties=True``, the one with the largest
        ``decision_function``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows in the units of the training data.

        Returns
        -------
        ndarray of shape (n_samples,)
            Predicted labels.
        """
        return self._labels(self._scores(X))

    def _labels(self, scores: FloatArray) -> NDArray[Any]:
        """The predicted labels of rows with the given scores of pairs."""
        n_classes = len(self.classes_)
        pairs = class_pairs(n_classes)
        if self.break_ties and n_classes > 2:
            self._check_ties()
            winner = one_vs_rest_scores(scores, pairs, n_classes).argmax(axis=1)
        else:
            winner = winners(scores, pairs, n_classes)
        labels: NDArray[Any] = self.classes_[winner]
        return labels


def encode_labels(y: NDArray[Any], weight: FloatArray) -> tuple[NDArray[Any], FloatArray]:
    """Return the sorted classes, and for each sample the position of its class among them."""
    require_labels(y)
    if not _are_whole(y):  # which always are labels
        check_classification_targets(y)
    # Rows of weight zero count as absent, and so does a class that only they have.
    present = weight > 0
    classes, numbers = np.unique(y[present], return_inverse=True)
    require_classes(classes, len(y))
    codes = np.zeros(len(y))
    codes[present] = numbers
    return classes, codes


def require_classes(classes: NDArray[Any], n_rows: int) -> None:
    """Raise ValueError for a target with one class, or with too many to be one of classes."""
    if len(classes) < 2:
        raise ValueError(
            f"Classification needs two classes and the training data has one class only: "
            f"{classes.tolist()[0]!r}."
        )
    if len(classes) > max(_FEW_CLASSES, n_rows // 2):
        raise ValueError(
            f"The target has {len(classes)} different values in {n_rows} rows, and classification "
            "learns a machine for each pair of them. For a number to predict use a regressor, "
            "such as LearnedKernelSVR."
        )


def _are_whole(y: NDArray[Any]) -> bool:
    """Return whether labels are whole numbers, which takes microseconds to see."""
    if y.dtype.kind == "f":
        return bool((y == np.rint(y)).all() and np.isfinite(y).all())
    return y.dtype.kind in "biu"


def require_labels(y: NDArray[Any]) -> None:
    """Raise ValueError for missing labels, which would fail later with a less clear message."""
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
    """Return the factor by which `class_weight` multiplies the weight of each sample."""
    if class_weight is None:
        return np.ones_like(weight)
    if isinstance(class_weight, str) and class_weight == "balanced":
        # Total weights and not counts, because a weight of k has to act like k copies.
        totals = [float(weight[codes == k].sum()) for k in range(len(classes))]
        factors = [sum(totals) / (len(totals) * total) for total in totals]
    elif isinstance(class_weight, dict):
        unknown = set(class_weight) - set(classes.tolist())
        if unknown:
            raise ValueError(
                f"class_weight names {sorted(map(str, unknown))}, which are not among the classes "
                f"{classes.tolist()}."
            )
        factors = [class_weight.get(label, 1.0) for label in classes.tolist()]
        for label, factor in zip(classes.tolist(), factors, strict=True):
            require_positive(f"class_weight[{label!r}]", factor)
    else:
        raise ValueError(f"class_weight={class_weight!r} must be None, 'balanced' or a dict.")
    multipliers: FloatArray = np.array(factors)[codes.astype(np.intp)]
    return multipliers
