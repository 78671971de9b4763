"""Models of tables: they learn from categories and gaps, and live in scikit-learn's world."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import skops.io
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.inspection import permutation_importance
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score

from tessella import LearnedKernelSVC, LearnedKernelSVR, make_tabular_pipeline
from tessella.persistence import SKOPS_TRUSTED

FRAMES = {"pandas": lambda table: table, "polars": pl.from_pandas}


def make_table(n_samples=200):
    """The slope in x depends on the group; gaps tell something too."""
    rng = np.random.default_rng(0)
    x, noise = rng.random((2, n_samples))
    group = rng.choice(["up", "down", "flat"], n_samples)
    gap = rng.random(n_samples) < 0.15
    y = np.select([group == "up", group == "down"], [x, -x], 0.0) + 2.0 * gap
    days = pd.to_timedelta(rng.integers(0, 99, n_samples), "D")
    table = pd.DataFrame(
        {
            "x": x,
            "gappy": np.where(gap, np.nan, noise),
            "group": pd.Series(group, dtype=object).where(rng.random(n_samples) > 0.05, None),
            "flag": rng.random(n_samples) < 0.5,
            "constant": 3.0,
            "when": pd.Timestamp("2024-01-01") + days,
        }
    )
    return table, y


@pytest.fixture(params=FRAMES)
def data(request):
    table, y = make_table()
    return FRAMES[request.param](table), y


def test_learns_from_categories_and_gaps(data):
    table, y = data
    assert cross_val_score(make_tabular_pipeline("regressor"), table, y, cv=3).mean() > 0.85


def test_same_model_from_either_frame():
    table, y = make_table()
    predictions = [
        make_tabular_pipeline("regressor").fit(make(table), y).predict(make(table))
        for make in FRAMES.values()
    ]
    np.testing.assert_array_equal(*predictions)


def test_model_by_name_or_given():
    assert type(make_tabular_pipeline("classifier")["model"]) is LearnedKernelSVC
    assert type(make_tabular_pipeline("regressor")["model"]) is LearnedKernelSVR
    given = LearnedKernelSVR(C=3.0)
    assert make_tabular_pipeline(given)["model"] is given
    table, y = make_table()
    assert make_tabular_pipeline(Ridge()).fit(table, y).score(table, y) > 0.5


@pytest.mark.parametrize("wrong", ["svm", LearnedKernelSVC, 3, None], ids=repr)
def test_other_models_are_refused(wrong):
    with pytest.raises((ValueError, TypeError), match="'classifier', 'regressor' or an"):
        make_tabular_pipeline(wrong)


def test_search_reaches_model_and_encoder(data):
    table, y = data
    grid = {"model__C": [0.1, 10.0], "encoder__min_frequency": [1, 5]}
    search = GridSearchCV(make_tabular_pipeline(LearnedKernelSVR(tol=1e-2)), grid, cv=2)
    assert search.fit(table, y).best_params_["model__C"] == 10.0


def test_unseen_categories_and_gaps_at_prediction(data):
    table, y = data
    model = make_tabular_pipeline("regressor").fit(table, y)
    new = make_table()[0].head(4).astype({"flag": object})
    new.loc[0, "group"] = "sideways"
    new.loc[1, "x"] = np.nan
    new.loc[2, "flag"] = None
    new.loc[3, "when"] = pd.NaT
    new = new if isinstance(table, pd.DataFrame) else pl.from_pandas(new)
    assert np.isfinite(model.predict(new)).all()


@pytest.mark.parametrize("change", ["renamed", "reordered", "missing"])
def test_names_are_checked(data, change):
    table, y = data
    model = make_tabular_pipeline("regressor").fit(table, y)
    names = list(table.columns)
    if change == "renamed":
        other = make_table()[0].rename(columns={"x": "z"})
        other = other if isinstance(table, pd.DataFrame) else pl.from_pandas(other)
    else:
        other = table[names[::-1] if change == "reordered" else names[1:]]
    with pytest.raises(ValueError, match=r"feature names should match|feature names must be"):
        model.predict(other)


def test_names_are_checked_without_the_encoder(data):
    table, y = data
    numeric = table[["x", "constant"]]
    model = LearnedKernelSVR().fit(numeric, y)
    assert model.feature_names_in_.tolist() == ["x", "constant"]
    with pytest.raises(ValueError, match="Feature names must be in the same order"):
        model.predict(table[["constant", "x"]])
    with pytest.raises(ValueError, match=r"unseen at fit time:\n- gappy"):
        model.predict(table[["x", "gappy"]])


def test_names_reach_the_model():
    table, y = make_table()
    model = clone(make_tabular_pipeline("regressor")).set_output(transform="pandas").fit(table, y)
    names = model[:-1].get_feature_names_out().tolist()
    assert names[:5] == ["x", "gappy", "flag", "constant", "when"]
    assert model["model"].feature_names_in_.tolist() == names
    relevance = dict(zip(names, model["model"].feature_relevance_, strict=True))
    assert relevance["gappy_missing"] > 0.3
    assert relevance["flag"] < 0.05
    assert relevance["constant"] == 0.0


def test_importance_of_the_columns_of_the_table():
    table, y = make_table()  # scikit-learn makes an array of a polars frame here
    model = make_tabular_pipeline("regressor").fit(table, y)
    result = permutation_importance(model, table, y, n_repeats=3, random_state=0)
    importance = dict(zip(table.columns, result.importances_mean, strict=True))
    assert max(importance, key=importance.get) == "gappy"
    assert importance["constant"] == 0.0
    assert importance["group"] > 10 * abs(importance["flag"])


def test_calibrated_probabilities_agree_with_predict(data):
    table, y = data
    labels = np.where(y > np.median(y), "high", "low")
    model = CalibratedClassifierCV(make_tabular_pipeline("classifier"), cv=3, ensemble=False)
    model.fit(table, labels)
    probabilities = model.predict_proba(table)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    assert (model.classes_[probabilities.argmax(axis=1)] == model.predict(table)).all()
    plain = model.calibrated_classifiers_[0].estimator
    # Probability is a rising function of the score, so it orders the rows in the same way.
    order = np.argsort(plain.decision_function(table))
    assert (np.diff(probabilities[order, 1]) >= 0).all()
    assert (plain.predict(table) == model.predict(table)).mean() > 0.9


def test_pipelines_are_kept(data):
    table, y = data
    model = make_tabular_pipeline("regressor").fit(table, y)
    expected = model.predict(table)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(table), expected)
    stored = skops.io.dumps(model)
    assert set(skops.io.get_untrusted_types(data=stored)) <= set(SKOPS_TRUSTED)
    again = skops.io.loads(stored, trusted=SKOPS_TRUSTED)
    np.testing.assert_array_equal(again.predict(table), expected)
