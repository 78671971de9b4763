"""Boosted trees and forests of the suite, with one thread each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

from tessella_bench._methods import CLASSIFICATION, Fitted
from tessella_bench._tuning import Stopwatch
from tessella_bench.suite._data import text_columns
from tessella_bench.suite._divisions import hold_out
from tessella_bench.suite._frames import Prepare, Prepared, as_categories, as_numbers, as_text
from tessella_bench.suite._search import (
    Draw,
    Setting,
    best_of,
    folds,
    logarithmic,
    settings,
    uniform,
    whole_logarithmic,
)

_SETTINGS = 20
_CATBOOST_SETTINGS, _HELD_OUT = 8, 0.2
_FOREST = 500

# Ranges as in published comparisons of boosted trees. The number of trees is drawn, not found by
# early stopping: with few rows, rows to stop by are missed elsewhere.
_COMMON: dict[str, Draw] = {
    "n_estimators": whole_logarithmic(100, 1000),
    "learning_rate": logarithmic(0.01, 0.3),
    "subsample": uniform(0.5, 1.0),
    "colsample_bytree": uniform(0.4, 1.0),
    "reg_lambda": logarithmic(1e-3, 10.0),
}
LIGHTGBM_SPACE: dict[str, Draw] = {
    **_COMMON,
    "num_leaves": whole_logarithmic(4, 128),
    "min_child_samples": whole_logarithmic(2, 64),
}
XGBOOST_SPACE: dict[str, Draw] = {
    **_COMMON,
    "max_depth": whole_logarithmic(2, 10),
    "min_child_weight": logarithmic(0.1, 32.0),
    "gamma": logarithmic(1e-4, 1.0),
}
CATBOOST_SPACE: dict[str, Draw] = {
    "learning_rate": logarithmic(0.01, 0.3),
    "depth": whole_logarithmic(3, 9),
    "l2_leaf_reg": logarithmic(0.5, 30.0),
    "random_strength": logarithmic(0.1, 10.0),
    "bagging_temperature": uniform(0.0, 1.0),
}


def catboost(task: str, X: Any, y: Any, seed: int) -> Fitted:
    """CatBoost as it comes; text columns are its categorical features."""
    return _fitted(task, as_text, _catboost(task, X, seed), {}, X, y, tuning=None)


def catboost_tuned(task: str, X: Any, y: Any, seed: int) -> Fitted:
    """CatBoost: the defaults and seven random settings, judged on 20 % held out."""
    tried = settings(CATBOOST_SPACE, _CATBOOST_SETTINGS, seed)

    def search(table: Any, labels: Any, make: Callable[[Setting], Any]) -> Setting:
        part = hold_out(task, labels, _HELD_OUT, seed)
        return best_of(task, tried, make, table, labels, [part])

    return _fitted(task, as_text, _catboost(task, X, seed), {}, X, y, tuning=search)


def lightgbm(task: str, X: Any, y: Any, seed: int) -> Fitted:
    """LightGBM as it comes; text columns have pandas' type of categories."""
    return _fitted(task, as_categories(X), _lightgbm(task, seed), {}, X, y, tuning=None)


def lightgbm_tuned(task: str, X: Any, y: Any, seed: int) -> Fitted:
    """LightGBM: the defaults and 19 random settings, judged by five folds."""
    search = _by_folds(task, LIGHTGBM_SPACE, seed)
    always = {"subsample_freq": 1}  # without it, subsample does nothing
    return _fitted(task, as_categories(X), _lightgbm(task, seed), always, X, y, tuning=search)


def xgboost_tuned(task: str, X: Any, y: Any, seed: int) -> Fitted:
    """XGBoost: the defaults and 19 random settings, judged by five folds."""
    search = _by_folds(task, XGBOOST_SPACE, seed)
    return _fitted(task, as_categories(X), _xgboost(task, seed), {}, X, y, tuning=search)


def random_forest(task: str, X: Any, y: Any, seed: int) -> Fitted:
    """A forest of 500 trees, otherwise as it comes."""
    kind = RandomForestClassifier if task == CLASSIFICATION else RandomForestRegressor

    def make(setting: Setting) -> Any:
        return kind(n_estimators=_FOREST, n_jobs=1, random_state=seed, **setting)

    return _fitted(task, as_numbers(X, scaled=False), make, {}, X, y, tuning=None)


# ------------------------------------------------------------------------------------- models


def _catboost(task: str, X: Any, seed: int) -> Callable[[Setting], Any]:
    from catboost import CatBoostClassifier, CatBoostRegressor

    kind = CatBoostClassifier if task == CLASSIFICATION else CatBoostRegressor
    fixed = {"thread_count": 1, "verbose": 0, "allow_writing_files": False, "random_seed": seed}
    return lambda setting: kind(cat_features=text_columns(X), **fixed, **setting)


def _lightgbm(task: str, seed: int) -> Callable[[Setting], Any]:
    from lightgbm import LGBMClassifier, LGBMRegressor

    kind = LGBMClassifier if task == CLASSIFICATION else LGBMRegressor
    return lambda setting: kind(n_jobs=1, verbose=-1, random_state=seed, **setting)


def _xgboost(task: str, seed: int) -> Callable[[Setting], Any]:
    from xgboost import XGBClassifier, XGBRegressor

    fixed = {"enable_categorical": True, "tree_method": "hist", "n_jobs": 1, "random_state": seed}
    if task != CLASSIFICATION:
        return lambda setting: XGBRegressor(**fixed, **setting)
    return lambda setting: _Renumbered(XGBClassifier(**fixed, **setting))


class _Renumbered:
    """A classifier that wants the classes 0, 1, ... without a hole, which a fold may have."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def fit(self, X: Any, y: Any) -> _Renumbered:
        self.classes_, numbers = np.unique(y, return_inverse=True)
        self.model.fit(X, numbers)
        return self

    def predict(self, X: Any) -> Any:
        return self.classes_[np.asarray(self.model.predict(X)).astype(int)]

    def predict_proba(self, X: Any) -> Any:
        return self.model.predict_proba(X)


# -------------------------------------------------------------------------------------- fitting

# Chooses a setting from a prepared table, a target and a maker of models.
Search = Callable[[Any, Any, Callable[[Setting], Any]], Setting]


def _by_folds(task: str, space: dict[str, Draw], seed: int) -> Search:
    tried = settings(space, _SETTINGS, seed)

    def search(table: Any, labels: Any, make: Callable[[Setting], Any]) -> Setting:
        return best_of(task, tried, make, table, labels, folds(task, table, labels, seed))

    return search


def _fitted(
    task: str,
    prepare: Prepare,
    make: Callable[[Setting], Any],
    always: Setting,
    X: Any,
    y: Any,
    *,
    tuning: Search | None,
) -> Fitted:
    """Choose a setting if there is a search, and fit on all rows."""
    labels, target = coded(task, y)
    table = prepare(X)
    searching, fitting = Stopwatch(), Stopwatch()

    def made(setting: Setting) -> Any:
        return make(always | setting if setting else {})

    with searching():
        best = {} if tuning is None else tuning(table, target, made)
    with fitting():
        model = made(best).fit(table, target)
    return Fitted(Prepared(prepare, model, labels), best, searching.seconds, fitting.seconds)


def coded(task: str, y: Any) -> tuple[Any, Any]:
    """The classes and their positions; None and the target in a regression."""
    return np.unique(y, return_inverse=True) if task == CLASSIFICATION else (None, y)
