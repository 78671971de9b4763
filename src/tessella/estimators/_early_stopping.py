"""Early stopping: rows held out of the training problem, and a run that ends when they say so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tessella.solvers import IterationRecord, Monitor, SolverResult, SolverStatus

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class HeldOut:
    """Rows that are scored and never learned from.

    Attributes
    ----------
    X, y, weight : ndarray
        Features, targets or labels as given, and weights.
    """

    X: FloatArray
    y: NDArray[Any]
    weight: FloatArray

    def score(self, model: Any) -> float:
        """The model's own score on them."""
        vars(model).pop("feature_names_in_", None)  # these rows have no names any more
        return float(model.score(self.X, self.y, sample_weight=self.weight))


def hold_out(
    X: FloatArray,
    y: NDArray[Any],
    weight: FloatArray,
    *,
    fraction: float,
    random_state: Any,
    stratify: bool,
) -> tuple[FloatArray, HeldOut]:
    """Draw the rows to hold out.

    Parameters
    ----------
    X, y, weight : ndarray
        The data; rows of weight zero are absent.
    fraction : float
        Part of the rows to hold out.
    random_state : int, RandomState or None
        Of the draw.
    stratify : bool
        Whether every class is to be held out in the same part.

    Returns
    -------
    weight : ndarray
        The weights for the training problem: zero for the rows held out.
    HeldOut
    """
    # Here, because scikit-learn's model selection imports rich where it is installed.
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
        enough, reason = False, str(error)
    if not enough:
        raise ValueError(
            f"early_stopping=True cannot hold out validation_fraction={fraction:g} of "
            f"{len(present)} rows: {reason} Use more rows, another validation_fraction or "
            "early_stopping=False."
        )
    test = np.sort(test)
    learned = weight.copy()
    learned[test] = 0.0
    return learned, HeldOut(X[test], y[test], weight[test])


class ScoreMonitor(Monitor):
    """Scores the best certified model at every record and stops when that leads nowhere.

    Parameters
    ----------
    held_out : HeldOut
        Rows to score on.
    model_of : callable
        A fitted estimator from a SolverResult.
    patience : int
        Records without a better score after which to stop.
    scores : list of float
        Where scores go; what is in it already are those of an earlier run.
    """

    def __init__(
        self,
        held_out: HeldOut,
        model_of: Callable[[SolverResult], Any],
        patience: int,
        scores: list[float],
    ) -> None:
        self._held_out = held_out
        self._model_of = model_of
        self._patience = patience
        self._scores = scores
        self._scored_value = np.nan

    def record(
        self, record: IterationRecord, answer: Callable[[], SolverResult]
    ) -> SolverStatus | None:
        """Score, unless the best model is still the one scored last."""
        if record.value != self._scored_value:
            self._scores.append(self._held_out.score(self._model_of(answer())))
            self._scored_value = record.value
        else:
            self._scores.append(self._scores[-1])
        waited = len(self._scores) - 1 - int(np.argmax(self._scores))
        return SolverStatus.VALIDATION if waited >= self._patience else None
