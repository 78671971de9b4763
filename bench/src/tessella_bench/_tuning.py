"""Tuning by two folds inside the training part, the same for all methods."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold

from tessella_bench._methods import CLASSIFICATION, Fitted

FOLDS = 2
_WEAKEST, _STRONGEST = 1e-4, 1e8  # values of C that are ever tried
SCORING = {CLASSIFICATION: "accuracy", "regression": "neg_mean_squared_error"}


def folds(task: str, seed: int) -> Any:
    """The two folds: shuffled, stratified by class."""
    kind = StratifiedKFold if task == CLASSIFICATION else KFold
    return kind(FOLDS, shuffle=True, random_state=seed)


def tube(y: Any) -> float:
    """Half-width of the tube in deviations: 0.1 in the target's unit, a tenth at most.

    The paper scales the features alone, so its 0.1 is 0.006 to 0.015 deviations on Boston, Airfoil,
    CCPP and Gas Turbine, which Airfoil needs; half a deviation, as on CA and Space, helps nobody.
    """
    return min(0.1, 0.1 / float(np.std(y)))


class Stopwatch:
    """Seconds of a block of code."""

    seconds = 0.0

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """Measure a block."""
        begin = time.perf_counter()
        try:
            yield
        finally:
            self.seconds += time.perf_counter() - begin


def grid_search(
    task: str, model: Any, grid: dict[str, Sequence[Any]], X: Any, y: Any, seed: int
) -> Fitted:
    """Choose from a grid by two folds, and fit on all rows.

    Parameters
    ----------
    task : str
        Which score decides: accuracy, or the squared error.
    model : estimator
        What to tune.
    grid : dict
        Values of each parameter; those of C go on where their end is best.
    X, y : array-like
        Training part.
    seed : int
        Of the folds.

    Returns
    -------
    Fitted
        The best model and what it cost.
    """

    def search(points: dict[str, Any]) -> Any:
        return GridSearchCV(
            model,
            points,
            cv=folds(task, seed),
            scoring=SCORING[task],
            refit=False,
            error_score="raise",
        ).fit(X, y)

    tuning, fitting = Stopwatch(), Stopwatch()
    with tuning():
        best = best_parameters(search, grid)
    with fitting():
        model.set_params(**best).fit(X, y)
    return Fitted(model, best, tuning.seconds, fitting.seconds)


def best_parameters(
    search: Callable[[dict[str, Any]], Any], grid: dict[str, Sequence[Any]]
) -> dict[str, Any]:
    """The best point of a grid; where that has an end of the values of C, they go on.

    Two decades at a time, since accuracy has plateaus: on Hill Valley every machine wants a C
    that is thousands of times larger than what is best elsewhere.

    Parameters
    ----------
    search : callable
        Searches the grid it is given; what it gives has `best_params_` and `best_score_`.
    grid : dict
        Values of each parameter; those of C, of whichever step, in increasing order.

    Returns
    -------
    dict
    """
    (name,) = (key for key in grid if key.split("__")[-1] == "C")
    best = search(grid)
    for end, way in ((grid[name][-1], 1), (grid[name][0], -1)):
        while best.best_params_[name] == end:
            decades = [end * 10.0 ** (way * k) for k in (1, 2)]
            further = sorted(value for value in decades if _WEAKEST <= value <= _STRONGEST)
            more = search(grid | {name: further}) if further else best
            if more.best_score_ <= best.best_score_:
                break
            best, end = more, decades[-1]
    found: dict[str, Any] = best.best_params_
    return found
