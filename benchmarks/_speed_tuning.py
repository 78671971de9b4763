"""Hyperparameters for the speed table, by two-fold cross-validation on some of the rows.

What is kept in the cache is a choice of settings, for both sides; no time of ours is.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from _common import CLASSIFICATION, EPSILON, Dataset, cross_validate, say
from _report import text
from _speed import Session, standardised
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

from tessella.kernels import TessellatedKernels

GRID_C, GRID_DELTA = (0.1, 1.0, 10.0, 100.0), (0.1, 0.5, 2.0)
RBF_GRID_C, RBF_GRID_GAMMA = (0.1, 1.0, 10.0, 100.0, 1000.0), (0.1, 0.3, 1.0, 3.0, 10.0)
OUR_ROWS, RBF_ROWS = 600, 2000
QUICK_ROWS = 150


def choose_ours(data: Dataset, session: Session) -> dict[str, float]:
    """C and delta of the best cross-validation score."""

    def compute() -> dict[str, Any]:
        few = data.take(QUICK_ROWS if session.quick else OUR_ROWS, session.seed)
        best, choice = -np.inf, {"C": 10.0, "delta": 0.5}
        for C, delta in itertools.product(GRID_C, GRID_DELTA):
            score = cross_validate(few, TessellatedKernels(delta=delta), C)["score"]
            if score > best:
                best, choice = score, {"C": C, "delta": delta}
        say(f"  {data.name}: C={choice['C']:g}, delta={choice['delta']:g} by cross-validation")
        return choice

    return _chosen(session.cache.cell(f"{data.name}: C and delta", compute), ("C", "delta"))


def choose_rbf(data: Dataset, session: Session) -> dict[str, float]:
    """C and gamma of the best cross-validation score; gamma in units of 1 / features."""

    def compute() -> dict[str, Any]:
        few = data.take(QUICK_ROWS if session.quick else RBF_ROWS, session.seed)
        classify = data.task == CLASSIFICATION
        folds = (StratifiedKFold if classify else KFold)(2, shuffle=True, random_state=session.seed)
        metric = "accuracy" if classify else "neg_mean_squared_error"
        best, choice = -np.inf, {}
        for C, factor in itertools.product(RBF_GRID_C, RBF_GRID_GAMMA):
            setting = {"C": C, "gamma": factor / data.X.shape[1]}
            model = rbf_model(data.task, setting)
            score = cross_val_score(
                model, few.X, standardised(few), cv=folds, scoring=metric
            ).mean()
            if score > best:
                best, choice = score, setting
        say(f"  {data.name}: RBF C={choice['C']:g}, gamma={text(choice['gamma'])}")
        return choice

    return _chosen(session.cache.cell(f"{data.name}: C and gamma", compute), ("C", "gamma"))


def rbf_model(task: str, setting: dict[str, float]) -> Any:
    """scikit-learn's RBF machine on standardised features, its cache large enough to hold K."""
    settings = {"C": setting["C"], "gamma": setting["gamma"], "cache_size": 2000.0}
    machine = SVC(**settings) if task == CLASSIFICATION else SVR(epsilon=EPSILON, **settings)
    return make_pipeline(StandardScaler(), machine)


def _chosen(cell: dict[str, Any], names: tuple[str, ...]) -> dict[str, float]:
    if "error" in cell:
        raise RuntimeError(cell["error"])
    return {name: float(cell[name]) for name in names}
