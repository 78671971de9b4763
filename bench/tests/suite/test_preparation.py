"""Tables as the other methods want them, and their searches."""

import numpy as np
import pandas as pd
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

from tessella_bench.suite._frames import (
    Prepared,
    as_categories,
    as_numbers,
    as_text,
    with_filled_numbers,
)
from tessella_bench.suite._machines import RIDGES, held_out_losses
from tessella_bench.suite._search import best_of, folds, logarithmic, settings, whole_logarithmic


def test_text_without_gaps(frame):
    text = as_text(frame)
    assert text["colour"][0] == "missing"
    assert set(text["colour"]) == {"red", "green", "blue", "missing"}
    assert text["count"].isna().sum() == frame["count"].isna().sum()
    assert frame["colour"].isna().any()  # the given table stays as it is


def test_categories_are_those_of_the_training_part(frame):
    prepare = as_categories(frame)
    new = frame.head(3).assign(colour=["red", "violet", None])
    found = prepare(new)
    assert list(found.columns) == ["f0", "f1", "f2"]
    assert list(found["f2"].cat.categories) == ["blue", "green", "red"]
    assert found["f2"].isna().tolist() == [False, True, True]
    np.testing.assert_array_equal(found["f0"], new["size"])


@pytest.mark.parametrize("scaled", [False, True])
def test_numbers(frame, scaled):
    prepare = as_numbers(frame, scaled=scaled)
    found = prepare(frame)
    assert found.shape == (60, 2 + 1 + 4)  # numbers, the mark of gaps, the colours and missing
    assert np.isfinite(found).all()
    filled = frame["count"].fillna(frame["count"].median()).to_numpy()
    if scaled:
        filled = (filled - filled.mean()) / filled.std()
    np.testing.assert_allclose(found[:, 1], filled)
    np.testing.assert_array_equal(found[:, 3:].sum(axis=1), 1.0)
    unseen = prepare(frame.head(1).assign(colour="violet"))
    np.testing.assert_array_equal(unseen[:, 3:], 0.0)


def test_rare_categories_share_a_column():
    table = pd.DataFrame({"kind": ["a"] * 20 + ["b"] * 10 + ["c", "d"]})
    found = as_numbers(table, scaled=True)(table)
    assert found.shape == (32, 3)
    np.testing.assert_array_equal(found[-2:], [[0, 0, 1], [0, 0, 1]])


def test_filled_numbers_beside_categories(frame):
    found = with_filled_numbers(frame)(frame)
    assert list(found.columns) == ["size", "count", "colour", "count missing"]
    assert not found.isna().any().any()
    np.testing.assert_array_equal(found["count missing"] == 1.0, frame["count"].isna())


def test_prepared_model_gives_labels_and_probabilities(frame):
    labels = np.array(["no", "yes"])
    y = np.arange(60) % 3 == 0
    prepare = as_numbers(frame, scaled=True)
    model = Prepared(prepare, DummyClassifier().fit(prepare(frame), y.astype(int)), labels)
    assert set(model.predict(frame)) == {"no"}
    np.testing.assert_allclose(model.predict_proba(frame)[0], [2 / 3, 1 / 3])
    assert list(model.classes_) == ["no", "yes"]
    plain = Prepared(prepare, KNeighborsRegressor().fit(prepare(frame), y))
    assert not hasattr(plain, "predict_proba")


def test_settings_are_reproducible_and_begin_with_the_defaults():
    space = {"a": logarithmic(0.1, 10.0), "n": whole_logarithmic(2, 9)}
    drawn = settings(space, 50, seed=1)
    assert drawn == settings(space, 50, seed=1)
    assert drawn[0] == {}
    assert len(drawn) == 50
    assert all(0.1 <= setting["a"] <= 10.0 for setting in drawn[1:])
    assert {setting["n"] for setting in drawn[1:]} == set(range(2, 10))


def test_search_finds_the_best_setting():
    rng = np.random.default_rng(0)
    X = rng.random((80, 1))
    y = (np.floor(8 * X[:, 0]) % 2).astype(int)
    tried = [{"n_neighbors": k} for k in (40, 1, 20)]
    parts = folds("classification", X, y, 0)
    best = best_of("classification", tried, lambda s: KNeighborsClassifier(**s), X, y, parts)
    assert best == {"n_neighbors": 1}
    smooth = X[:, 0] + 0.5 * rng.standard_normal(80)
    found = best_of("regression", tried, lambda s: KNeighborsRegressor(**s), X, smooth, parts)
    scoring = "neg_mean_squared_error"
    means = [
        cross_val_score(KNeighborsRegressor(**s), X, smooth, cv=parts, scoring=scoring).mean()
        for s in tried
    ]
    assert found == tried[int(np.argmax(means))] != tried[1]


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_losses_of_all_ridges_are_those_of_separate_fits(task):
    rng = np.random.default_rng(0)
    X = rng.random((30, 2))
    Y = X[:, :1] if task == "regression" else np.eye(3)[rng.integers(0, 3, 30)]
    learn, judge = np.arange(20), np.arange(20, 30)
    mean = Y[learn].mean(axis=0)
    K = np.exp(-((X[:, None] - X) ** 2).sum(-1))
    for ridge, loss in zip(RIDGES, held_out_losses(task, K, Y, learn, judge), strict=True):
        model = KernelRidge(kernel="precomputed", alpha=ridge)
        model.fit(K[np.ix_(learn, learn)], Y[learn] - mean)
        F = model.predict(K[np.ix_(judge, learn)]) + mean
        wrong = (
            F.argmax(1) != Y[judge].argmax(1) if task == "classification" else (F - Y[judge]) ** 2
        )
        assert loss == pytest.approx(np.mean(wrong), rel=1e-4)
