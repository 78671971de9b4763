"""How predictions of the suite are judged."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tessella_bench._cells import Record
from tessella_bench._methods import CLASSIFICATION

SMALLEST_CHANCE = 1e-6  # a class that was ruled out costs 13.8, not infinity


def scores(task: str, y: NDArray[Any], predicted: NDArray[Any]) -> Record:
    """Error and score of predictions.

    Parameters
    ----------
    task : {"classification", "regression"}
        What is predicted.
    y, predicted : ndarray
        Truth and predictions.

    Returns
    -------
    dict
        "error" is the share of wrong classes, or the mean squared error over the variance of the
        truth; "accuracy" or "r2" is one less that.
    """
    if task == CLASSIFICATION:
        error = float(np.mean(predicted != y))
        return {"error": error, "accuracy": 1.0 - error}
    if not np.isfinite(predicted).all():
        raise ValueError("predictions that are not finite")
    error = float(np.mean((predicted - y) ** 2) / np.var(y))
    return {"error": error, "r2": 1.0 - error}


def log_loss(y: NDArray[Any], chances: Any, classes: Any) -> float:
    """Mean negative logarithm of the probability of the true class.

    Parameters
    ----------
    y : ndarray
        Classes.
    chances : array of shape (n_rows, n_classes)
        Probabilities; rows are scaled to sum to one, after those below 1e-6 are raised to that.
    classes : sequence
        Class of each column. A class that has no column, since no training row had it, has the
        probability 1e-6.

    Returns
    -------
    float
        The loss.

    Examples
    --------
    >>> import numpy as np
    >>> from tessella_bench.suite import log_loss
    >>> round(log_loss(np.array(["a", "b"]), [[0.5, 0.5], [0.75, 0.25]], ["a", "b"]), 3)
    1.04
    """
    given = np.asarray(chances, dtype=np.float64)
    if not np.isfinite(given).all():
        raise ValueError("probabilities that are not finite")
    given = np.maximum(given, SMALLEST_CHANCE)
    given /= given.sum(axis=1, keepdims=True)
    place = {label: j for j, label in enumerate(classes)}
    columns = np.array([place.get(label, -1) for label in y])
    own = np.where(columns >= 0, given[np.arange(len(y)), columns], SMALLEST_CHANCE)
    return float(-np.mean(np.log(own)))
