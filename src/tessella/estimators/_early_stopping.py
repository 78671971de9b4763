"""Early stopping: validation rows, and a monitor that ends the run by the score on them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tessella.solvers import IterationRecord, Monitor, SolverResult, SolverStatus

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class ValidationSet:
    """Rows that are scored during a fit and not used for learning.

    Attributes
    ----------
    X : ndarray of shape (n, n_features)
        Features.
    y : ndarray of shape (n,)
        Targets or labels as given.
    weight : ndarray of shape (n,)
        Sample weights.
    """

    X: FloatArray
    y: NDArray[Any]
    weight: FloatArray

    def score(self, model: Any) -> float:
        """The score of a model on these rows, by its own ``score`` method."""
        # The rows are an array without names; with names in the model, each score would warn.
        vars(model).pop("feature_names_in_", None)
        return float(model.score(self.X, self.y, sample_weight=self.weight))

    def of_labels(self, labels: NDArray[Any]) -> ValidationSet:
        """The rows with one of some labels."""
        own = np.isin(self.y, labels)
        return ValidationSet(self.X[own], self.y[own], self.weight[own])


def hold_out(
    X: FloatArray,
    y: NDArray[Any],
    weight: FloatArray,
    *,
    fraction: float,
    random_state: Any,
    stratify: bool,
) -> tuple[FloatArray, ValidationSet]:
    """Draw the validation rows at random.

    Parameters
    ----------
    X, y, weight : ndarray
        The data. Rows of weight zero count as absent.
    fraction : float
        Fraction of the rows to draw.
    random_state : int, RandomState or None
        Source of the random draw.
    stratify : bool
        Whether to draw the same fraction of every class.

    Returns
    -------
    weight : ndarray
        Weights for the training problem, with zero for the validation rows.
    validation_set : ValidationSet
        The validation rows.
    """
    # Imported here because sklearn.model_selection is slow to import (it imports rich).
    from sklearn.model_selection import train_test_split

    present = np.flatnonzero(weight > 0)
    try:
        train, test = train_test_split(
            present,
            test_size=fraction,
            random_state=random_state,
            stratify=y[present] if stratify else None,
        )
        enough = len(test) >= 2 and (
            not stratify or len(np.unique(y[train])) == len(np.unique(y[present]))
        )
        reason = "too few rows would be left on one side"
    except ValueError as error:
        enough, reason = False, str(error).rstrip(".")
    if not enough:
        raise ValueError(
            f"early_stopping=True cannot hold out validation_fraction={fraction:g} of "
            f"{len(present)} rows: {reason}. Use more rows, another validation_fraction or "
            "early_stopping=False."
        )
    test = np.sort(test)
    learned = weight.copy()
    learned[test] = 0.0
    return learned, ValidationSet(X[test], y[test], weight[test])


class ScoreMonitor(Monitor):
    """Scores the best certified model at every record, and stops when the score does not improve.

    Parameters
    ----------
    validation_set : ValidationSet
        Rows to score on.
    model_of : callable
        Function that makes a fitted estimator from a SolverResult.
    patience : int
        Number of records without a better score after which to stop.
    scores : list of float
        List to which scores are appended. It may hold the scores of an earlier run already.
    """

    def __init__(
        self,
        validation_set: ValidationSet,
        model_of: Callable[[SolverResult], Any],
        patience: int,
        scores: list[float],
    ) -> None:
        self._validation_set = validation_set
        self._model_of = model_of
        self._patience = patience
        self._scores = scores
        self._scored_value = np.nan

    def record(
        self, record: IterationRecord, answer: Callable[[], SolverResult]
    ) -> SolverStatus | None:
        """Score the best model, unless it is still the one that was scored last."""
        if record.value != self._scored_value:
            self._scores.append(self._validation_set.score(self._model_of(answer())))
            self._scored_value = record.value
        else:
            self._scores.append(self._scores[-1])
        waited = len(self._scores) - 1 - int(np.argmax(self._scores))
        return SolverStatus.VALIDATION if waited >= self._patience else None
