"""Searches of the other methods: settings drawn at random, judged on folds or on held-out rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import KFold, StratifiedKFold

from tessella_bench._methods import CLASSIFICATION
from tessella_bench.suite._scores import log_loss

FOLDS = 5

# Draws the value of a parameter.
Draw = Callable[[np.random.Generator], Any]
Setting = dict[str, Any]


def logarithmic(low: float, high: float) -> Draw:
    """A number whose logarithm is uniform."""
    return lambda rng: float(np.exp(rng.uniform(np.log(low), np.log(high))))


def whole_logarithmic(low: int, high: int) -> Draw:
    """A whole number whose logarithm is about uniform; both ends are possible."""
    return lambda rng: round(float(np.exp(rng.uniform(np.log(low), np.log(high)))))


def uniform(low: float, high: float) -> Draw:
    """A number between two."""
    return lambda rng: float(rng.uniform(low, high))


def one_of(values: Sequence[Any], chances: Sequence[float] | None = None) -> Draw:
    """One of some values."""
    return lambda rng: values[int(rng.choice(len(values), p=chances))]


def settings(space: Mapping[str, Draw], count: int, seed: int) -> list[Setting]:
    """Settings to try.

    Parameters
    ----------
    space : mapping
        Draws by the name of the parameter.
    count : int
        How many.
    seed : int
        Of the draws.

    Returns
    -------
    list of dict
        The first is empty: the defaults.
    """
    rng = np.random.default_rng(seed)
    drawn = [{name: draw(rng) for name, draw in space.items()} for _ in range(count - 1)]
    return [{}, *drawn]


def folds(task: str, X: Any, y: Any, seed: int) -> list[tuple[Any, Any]]:
    """Five folds, shuffled, with the shares of the classes."""
    kind = StratifiedKFold if task == CLASSIFICATION else KFold
    return list(kind(FOLDS, shuffle=True, random_state=seed).split(X, y))


def best_of(
    task: str,
    tried: Iterable[Setting],
    make: Callable[[Setting], Any],
    X: Any,
    y: NDArray[Any],
    parts: Sequence[tuple[Any, Any]],
) -> Setting:
    """The setting with the lowest mean loss.

    Parameters
    ----------
    task : {"classification", "regression"}
        Which loss: the share of wrong classes and, among equals, the log-loss; or the squared
        error.
    tried : iterable of dict
        Settings.
    make : callable
        A new model with a setting.
    X : DataFrame or ndarray
        Training part.
    y : ndarray
        Its target.
    parts : sequence of tuple
        Rows to learn from and rows to judge on.

    Returns
    -------
    dict
        The first of the best.
    """

    def loss(setting: Setting) -> tuple[float, ...]:
        found = [
            _loss(task, make(setting).fit(_rows(X, learn), y[learn]), _rows(X, judge), y[judge])
            for learn, judge in parts
        ]
        return tuple(np.mean(found, axis=0))

    return min(tried, key=loss)


def _rows(X: Any, rows: Any) -> Any:
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


def _loss(task: str, model: Any, X: Any, y: NDArray[Any]) -> tuple[float, ...]:
    predicted = np.asarray(model.predict(X)).ravel()
    if task != CLASSIFICATION:
        return (float(np.mean((predicted - y) ** 2)),)
    chances = log_loss(y, model.predict_proba(X), model.classes_)
    return float(np.mean(predicted.astype(int) != y)), chances
