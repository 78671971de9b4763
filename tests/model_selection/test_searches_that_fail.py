"""Searches that cannot be done, and fits of a search that fail or cannot finish."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, FitFailedWarning, NotFittedError
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tessella import (
    KernelPathCV,
    LearnedKernelSVC,
    LearnedKernelSVR,
)

FEW = {"C": [0.3, 3.0]}
GRID = {"C": [10.0, 0.1, 1.0], "delta": [0.1, 1.0]}


# ---- fits that fail, or cannot finish


def test_missed_tolerances_are_told_once(waves):
    with pytest.warns(ConvergenceWarning) as caught:
        search = KernelPathCV(LearnedKernelSVR(tol=1e-12, max_iter=1), GRID, cv=2, refit=False).fit(
            *waves
        )
    (warning,) = caught
    assert str(warning.message).startswith("12 of 12 fits stopped above the tol")
    assert f"{search.cv_results_['worst_gap'].max():.2e}" in str(warning.message)
    assert (search.cv_results_["n_uncertified"] == 2).all()


def failing(model, X, y):
    if model.C == 1.0:
        raise RuntimeError("no score today")
    return model.C


def test_failed_points_get_the_error_score(circles):
    X, y = circles
    search = KernelPathCV(LearnedKernelSVC(), GRID, cv=2, scoring=failing)
    with pytest.warns(FitFailedWarning, match=r"4 of 12 fits failed(.|\n)*no score today"):
        search.fit(X, y)
    failed = search.cv_results_["param_C"] == 1.0
    assert (np.isnan(search.cv_results_["mean_test_score"]) == failed).all()
    assert search.best_params_["C"] == 10.0
    with pytest.raises(RuntimeError, match="no score today"):
        clone(search).set_params(error_score="raise").fit(X, y)
    with pytest.raises(ValueError, match=r"All the 2 fits failed(.|\n)*no score today"):
        clone(search).set_params(param_grid={"C": [1.0]}).fit(X, y)


class Interrupting:
    """A scorer during whose n-th call the user presses Ctrl-C."""

    def __init__(self, at):
        self.left = at

    def __call__(self, model, X, y):
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt
        return model.score(X, y)


def test_interrupt_keeps_the_points_that_are_complete(waves):
    X, y = waves
    # Two paths of three points and two folds: six fits on the first fold, then three to
    # complete the first path; the interrupt comes with the eighth.
    search = KernelPathCV(LearnedKernelSVR(), GRID, cv=2, scoring=Interrupting(8))
    with pytest.warns(UserWarning, match="best of the 1 completed candidates, of 6"):
        search.fit(X, y)
    complete = search.cv_results_["n_folds"] == 2
    assert complete.sum() == 1
    assert complete[search.best_index_]
    assert np.isfinite(search.predict(X)).all()


@pytest.mark.parametrize("at", [1, 4, 7])
def test_interrupt_before_any_point_is_complete_is_passed_on(waves, at):
    search = KernelPathCV(LearnedKernelSVR(), GRID, cv=2, scoring=Interrupting(at))
    with pytest.raises(KeyboardInterrupt):
        search.fit(*waves)
    with pytest.raises(NotFittedError):
        search.predict(waves[0])


def test_interrupted_fit_ends_the_search(waves, monkeypatch):
    original = LearnedKernelSVR.fit

    def interrupted(self, X, y, sample_weight=None):
        original(self, X, y, sample_weight)
        self.status_ = "interrupted"  # what the estimator makes of Ctrl-C
        return self

    monkeypatch.setattr(LearnedKernelSVR, "fit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        KernelPathCV(LearnedKernelSVR(), FEW, cv=2).fit(*waves)


# ---- bad input, before any work


@pytest.mark.parametrize(
    ("settings", "error", "match"),
    [
        ({"estimator": Ridge()}, TypeError, "LearnedKernelSVC.*GridSearchCV"),
        ({"estimator": make_pipeline(StandardScaler(), Ridge())}, TypeError, "ends in one"),
        (
            {"param_grid": {"c": [1]}},
            ValueError,
            "'c', which is not a parameter of LearnedKernelSVC",
        ),
        (
            {
                "estimator": make_pipeline(StandardScaler(), LearnedKernelSVC()),
                "param_grid": {"C": [1]},
            },
            ValueError,
            "not a parameter of Pipeline. Did you mean 'learnedkernelsvc__C'?",
        ),
        ({"param_grid": {"C": [1.0, -1.0]}}, ValueError, "C=-1.0 must be a positive"),
        ({"param_grid": {"C": []}}, ValueError, "C"),
        ({"error_score": "ignore"}, ValueError, "error_score='ignore' must be 'raise' or a number"),
        ({"eliminate": "yes"}, ValueError, "eliminate='yes' must be True or False"),
        ({"eliminate": True, "refit": len}, ValueError, "one score to compare"),
        ({"refit": "roc_auc"}, ValueError, "there is only one"),
        ({"scoring": ["accuracy", "roc_auc"]}, ValueError, "does not name the one that decides"),
        ({"scoring": "mistakes"}, ValueError, "mistakes"),
    ],
)
def test_bad_settings(circles, monkeypatch, settings, error, match):
    monkeypatch.setattr(LearnedKernelSVC, "fit", lambda *_: pytest.fail("work was done"))
    with pytest.raises(error, match=match):
        KernelPathCV(**settings).fit(*circles)


def test_bad_data(circles, monkeypatch):
    X, y = circles
    monkeypatch.setattr(LearnedKernelSVC, "fit", lambda *_: pytest.fail("work was done"))
    search = KernelPathCV(LearnedKernelSVC(), FEW)
    with pytest.raises(ValueError, match="NaN"):
        search.fit(np.full_like(X, np.nan), y)
    with pytest.raises(ValueError, match="inconsistent"):
        search.fit(X, y[:-1])
    with pytest.raises(ValueError, match="Negative"):
        search.fit(X, y, sample_weight=-np.ones(len(y)))
    with pytest.raises(ValueError, match="requires y"):
        search.fit(X)
    with pytest.raises(ValueError, match="OneHotEncoder"):
        search.fit(X.astype(str).astype(object) + "m", y)
    with pytest.raises(ValueError, match="one column"):
        KernelPathCV().fit(X, np.column_stack([y, 1 - y]))
