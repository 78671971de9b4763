"""Forests and boosted trees: 50 to 650 trees in steps of 50, chosen by two folds.

A forest of 650 trees holds one of 600, and so on, and the same is true of boosting. So every fold
is fitted once, and scored after every 50 trees: the choice is that of a grid search, for a
seventh of its time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)

from tessella_bench._methods import CLASSIFICATION, Fitted
from tessella_bench._tuning import Stopwatch, folds

SIZES = tuple(range(50, 651, 50))

# Predictions on the rows to validate on, for each of the sizes in turn.
Stages = Callable[[Any, Any, Any, Any], Iterator[Any]]


def random_forest(task: str, X: Any, y: Any, seed: int) -> Fitted:
    """scikit-learn's random forest."""
    kind = RandomForestClassifier if task == CLASSIFICATION else RandomForestRegressor
    return _tuned(kind(random_state=seed, n_jobs=1), "n_estimators", _grown, task, X, y, seed)


def hist_boosting(task: str, X: Any, y: Any, seed: int) -> Fitted:
    """scikit-learn's histogram gradient boosting."""
    classify = task == CLASSIFICATION
    kind = HistGradientBoostingClassifier if classify else HistGradientBoostingRegressor
    model = kind(early_stopping=False, random_state=seed)
    return _tuned(model, "max_iter", _staged, task, X, y, seed)


def xgboost(task: str, X: Any, y: Any, seed: int) -> Fitted:
    """XGBoost as it comes."""
    from xgboost import XGBClassifier, XGBRegressor

    kind = XGBClassifier if task == CLASSIFICATION else XGBRegressor
    model = kind(random_state=seed, n_jobs=1)
    return _tuned(model, "n_estimators", _by_range, task, X, y, seed)


def lightgbm(task: str, X: Any, y: Any, seed: int) -> Fitted:
    """LightGBM as it comes."""
    from lightgbm import LGBMClassifier, LGBMRegressor

    kind = LGBMClassifier if task == CLASSIFICATION else LGBMRegressor
    model = kind(random_state=seed, n_jobs=1, verbose=-1)
    return _tuned(model, "n_estimators", _by_iteration, task, X, y, seed)


def catboost(task: str, X: Any, y: Any, seed: int) -> Fitted:
    """CatBoost as it comes, with the learning rate it chooses for 650 trees."""
    from catboost import CatBoostClassifier, CatBoostRegressor

    kind = CatBoostClassifier if task == CLASSIFICATION else CatBoostRegressor
    model = kind(random_seed=seed, thread_count=1, verbose=False, allow_writing_files=False)
    return _tuned(model, "iterations", _by_end, task, X, y, seed)


def _tuned(
    model: Any, parameter: str, stages: Stages, task: str, X: Any, y: Any, seed: int
) -> Fitted:
    tuning, fitting = Stopwatch(), Stopwatch()
    losses = np.zeros(len(SIZES))
    with tuning():
        for train, rest in folds(task, seed).split(X, y):
            largest = clone(model).set_params(**{parameter: SIZES[-1]})
            predicted = stages(largest, X[train], y[train], X[rest])
            losses += [_loss(task, y[rest], values) for values in predicted]
    best = {parameter: SIZES[int(np.argmin(losses))]}  # the fewest trees of those that are best
    with fitting():
        model.set_params(**best).fit(X, y)
    return Fitted(model, best, tuning.seconds, fitting.seconds)


def _loss(task: str, y: Any, predicted: Any) -> float:
    predicted = np.asarray(predicted).ravel()
    wrong = predicted != y if task == CLASSIFICATION else (predicted - y) ** 2
    return float(np.mean(wrong))


def _grown(model: Any, X: Any, y: Any, new: Any) -> Iterator[Any]:
    model.set_params(warm_start=True)
    for size in SIZES:
        yield model.set_params(n_estimators=size).fit(X, y).predict(new)


def _staged(model: Any, X: Any, y: Any, new: Any) -> Iterator[Any]:
    for count, predicted in enumerate(model.fit(X, y).staged_predict(new), start=1):
        if count in SIZES:
            yield predicted


def _by_range(model: Any, X: Any, y: Any, new: Any) -> Iterator[Any]:
    model.fit(X, y)
    for size in SIZES:
        yield model.predict(new, iteration_range=(0, size))


def _by_iteration(model: Any, X: Any, y: Any, new: Any) -> Iterator[Any]:
    model.fit(X, y)
    for size in SIZES:
        yield model.predict(new, num_iteration=size)


def _by_end(model: Any, X: Any, y: Any, new: Any) -> Iterator[Any]:
    model.fit(X, y)
    for size in SIZES:
        yield model.predict(new, ntree_end=size)
