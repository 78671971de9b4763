"""Tables as they come: the kinds of columns, the libraries they come from, and what is refused."""

from __future__ import annotations

from datetime import date

import numpy as np
import pandas as pd
import polars as pl
import pytest
from automatic.conftest import mixed_table

from tessella import TessellaClassifier, TessellaRegressor

RNG = np.random.default_rng(0)
X = RNG.random((80, 3))
Y = np.sin(4.0 * X[:, 0]) + X[:, 1]


def regressor(**params):
    return TessellaRegressor(effort="low", refine=False, **params)


def objects(table):
    """A frame as an array of objects, with dates as Python's."""
    columns = [
        [value.to_pydatetime() for value in table[name]] if name == "day" else list(table[name])
        for name in table
    ]
    return np.array([list(row) for row in zip(*columns, strict=True)], dtype=object)


# ---- the same content gives the same model


def test_arrays_frames_and_lists_of_numbers():
    frame = pd.DataFrame(X, columns=list("abc"))
    expected = regressor().fit(X, Y).predict(X)
    np.testing.assert_array_equal(regressor().fit(frame, Y).predict(frame), expected)
    np.testing.assert_array_equal(regressor().fit(X.tolist(), Y.tolist()).predict(X), expected)
    polars = pl.DataFrame(X, schema=list("abc"))
    np.testing.assert_array_equal(regressor().fit(polars, Y).predict(polars), expected)
    fortran = np.asfortranarray(X)
    np.testing.assert_array_equal(regressor().fit(fortran, Y).predict(fortran), expected)


def test_frames_of_pandas_and_polars_and_arrays_of_objects():
    table, y = mixed_table()
    expected = regressor().fit(table, y).predict(table)
    polars = pl.DataFrame(
        {
            "size": pl.Series(table["size"].to_numpy(), nan_to_null=True),
            "town": [None if pd.isna(v) else str(v) for v in table["town"]],
            "day": [v.to_pydatetime() for v in table["day"]],
        }
    )
    np.testing.assert_array_equal(regressor().fit(polars, y).predict(polars), expected)
    array = objects(table)
    np.testing.assert_array_equal(regressor().fit(array, y).predict(array), expected)
    categorical = table.astype({"town": "category"})
    np.testing.assert_array_equal(regressor().fit(categorical, y).predict(categorical), expected)
    np.testing.assert_array_equal(regressor().fit(table, y).predict(categorical), expected)


def test_the_order_of_rows_does_not_matter():
    table, y = mixed_table()
    order = np.random.default_rng(3).permutation(len(y))
    expected = regressor(encodings=["one-hot", "target"]).fit(table, y)
    shuffled = regressor(encodings=["one-hot", "target"]).fit(table.iloc[order], y[order])
    np.testing.assert_array_equal(shuffled.predict(table), expected.predict(table))
    assert shuffled.leaderboard_ == expected.leaderboard_


def test_the_bits_of_missing_values_do_not_matter():
    """Copies of a row are copies, whatever made their gaps."""
    values = np.tile(X[:40], (2, 1))
    values[::7, 0] = values[40::7, 0] = np.nan
    values[40:] = values[:40]
    other = values.copy()
    other[40:, 0] = np.where(np.isnan(other[40:, 0]), -np.nan, other[40:, 0])
    assert other.tobytes() != values.tobytes()
    y = np.tile(Y[:40], 2)
    expected = regressor().fit(values, y)
    found = regressor().fit(other, y)
    assert found.members_[0].coef.shape[1] == 40
    np.testing.assert_array_equal(found.predict(other), expected.predict(values))


def test_weights_are_copies():
    table, y = mixed_table(50)
    weight = np.random.default_rng(4).integers(0, 4, 50)
    copies = np.repeat(np.arange(50), weight)
    for encodings in (["one-hot"], ["target"]):
        merged = regressor(encodings=encodings).fit(table, y, sample_weight=weight)
        repeated = regressor(encodings=encodings).fit(table.iloc[copies], y[copies])
        np.testing.assert_array_equal(merged.predict(table), repeated.predict(table))
        assert merged.loo_score_ == repeated.loo_score_
        np.testing.assert_array_equal(
            merged.predict_interval(table), repeated.predict_interval(table)
        )


# ---- columns that say something, or nothing


def test_text_alone():
    town = RNG.choice(["Ulm", "Bern", "Wien", "Prag"], 120)
    height = dict(zip(["Ulm", "Bern", "Wien", "Prag"], [478.0, 540.0, 171.0, 244.0], strict=True))
    y = np.array([height[name] for name in town])
    model = regressor().fit(pd.DataFrame({"town": town}), y)
    assert model.loo_score_ > 0.999
    found = model.predict(pd.DataFrame({"town": ["Bern", "Wien"]}))
    np.testing.assert_allclose(found, [540.0, 171.0], rtol=0.01)
    unknown = model.predict(pd.DataFrame({"town": ["Rom", None]}))
    assert ((unknown > 171.0) & (unknown < 540.0)).all()
    assert unknown[0] == unknown[1]  # neither was in the training table


def test_missing_categories_can_mean_something():
    town = RNG.choice(["Ulm", "Bern"], 100).astype(object)
    town[::3] = None
    y = np.array([5.0 if name is None else 1.0 for name in town])
    model = regressor().fit(pd.DataFrame({"town": town}), y)
    assert model.predict(pd.DataFrame({"town": [None, "Ulm"]})) == pytest.approx(
        [5.0, 1.0], abs=0.1
    )


def test_gaps_can_mean_something():
    values = X.copy()
    values[::4, 2] = np.nan
    y = np.where(np.isnan(values[:, 2]), 3.0, 0.0) + X[:, 0]
    model = regressor().fit(values, y)
    assert model.loo_score_ > 0.98


def test_declared_categories():
    code = RNG.permutation(np.repeat(np.arange(12), 10))
    y = RNG.normal(size=12)[code]
    frame = pd.DataFrame({"code": code, "other": RNG.random(120)})
    model = regressor(categorical_features=["code"]).fit(frame, y)
    assert model.loo_score_ > 0.99
    same = regressor(categorical_features=[0]).fit(frame.to_numpy(), y)
    np.testing.assert_array_equal(same.predict(frame.to_numpy()), model.predict(frame))
    np.testing.assert_array_equal(
        model.predict(frame.astype({"code": float})), model.predict(frame)
    )


def test_dates():
    days = RNG.integers(0, 1000, 100)
    frame = pd.DataFrame({"day": pd.Timestamp("2021-03-01") + pd.to_timedelta(days, unit="D")})
    model = regressor().fit(frame, np.sin(days / 150.0))
    assert model.loo_score_ > 0.99
    objects = pd.DataFrame({"day": [v.date() for v in frame["day"]]}, dtype=object)
    assert isinstance(objects["day"].iloc[0], date)
    np.testing.assert_allclose(model.predict(objects), model.predict(frame), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("nothing", [1.0, np.nan, "same", None], ids=str)
def test_columns_that_say_nothing_change_nothing(nothing):
    frame = pd.DataFrame(X, columns=list("abc"))
    more = frame.assign(d=pd.Series([nothing] * len(frame), dtype=None))
    expected = regressor().fit(frame, Y)
    model = regressor().fit(more, Y)
    np.testing.assert_allclose(model.predict(more), expected.predict(frame), atol=1e-5)
    assert model.feature_relevance_[3] < 1e-20


@pytest.mark.parametrize(
    "empty",
    [
        np.ones((30, 2)),
        np.full((30, 2), np.nan),
        pd.DataFrame({"id": [f"row {k}" for k in range(30)]}),
    ],
    ids=["constant", "missing", "names"],
)
def test_tables_that_say_nothing_predict_the_mean(empty):
    y = RNG.normal(size=30)
    model = regressor().fit(empty, y)
    np.testing.assert_allclose(model.predict(empty), y.mean(), rtol=1e-6)
    # The error without a row is that of the mean of the others.
    assert model.loo_score_ == pytest.approx(1.0 - (30 / 29) ** 2, rel=1e-6)
    assert (model.feature_relevance_ == 0.0).all()
    classes = np.arange(30) % 3 == 0
    assert not TessellaClassifier(effort="low").fit(empty, classes).predict(empty).any()


def test_more_effort_on_tables_that_say_little():
    """Stages that "low" does not have: learned kernels and other losses."""
    y = RNG.normal(size=40)
    for table, labels in ((np.ones((40, 1)), np.arange(40) % 3), (X[:40, :1], np.arange(40) == 7)):
        model = TessellaRegressor().fit(table, y)
        assert np.isfinite(model.predict(table)).all()
        classes = TessellaClassifier().fit(table, labels)
        assert np.isfinite(classes.predict_proba(table)).all()
    for n_rows in (2, 5):
        assert np.isfinite(TessellaRegressor().fit(X[:n_rows], Y[:n_rows]).predict(X)).all()
        TessellaClassifier().fit(X[:n_rows], np.arange(n_rows) % 2).predict(X)


@pytest.mark.parametrize("value", [0.0, 0.1, -1e9])
def test_a_constant_target_is_predicted_exactly(value):
    model = TessellaRegressor(effort="low").fit(X, np.full(len(X), value))
    assert (model.predict(X) == value).all()
    assert model.gap_ == 0.0
    assert model.loo_score_ == 1.0
    assert (model.predict_interval(X) == value).all()


def test_one_column_and_few_rows():
    assert regressor().fit(X[:, :1], X[:, 0] ** 2).loo_score_ > 0.99
    for n_rows in (2, 3, 5):
        model = TessellaRegressor(effort="low").fit(X[:n_rows], Y[:n_rows])
        assert np.isfinite(model.predict(X)).all()
        labels = np.arange(n_rows) % 2
        classes = TessellaClassifier(effort="low").fit(X[:n_rows], labels)
        assert np.isfinite(classes.predict_proba(X)).all()


# ---- refused


def test_columns_in_another_order_are_refused():
    frame = pd.DataFrame(X, columns=list("abc"))
    model = regressor().fit(frame, Y)
    with pytest.raises(ValueError, match="same order"):
        model.predict(frame[["b", "a", "c"]])
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame.rename(columns={"a": "z"}))
    with pytest.raises(ValueError, match="3 features"):
        regressor().fit(X, Y).predict(X[:, :2])


def test_numbers_as_text_are_refused():
    frame = pd.DataFrame({"price": [str(v) for v in X[:, 0].round(3)], "other": X[:, 1]})
    with pytest.raises(ValueError, match="'price' holds numbers written as text"):
        regressor().fit(frame, Y)
    few = pd.DataFrame({"code": [str(k % 5) for k in range(80)]})
    regressor().fit(few, Y)  # a few numerals may be codes
    codes = pd.DataFrame({"code": [str(k % 40) for k in range(80)]})
    regressor(categorical_features=["code"]).fit(codes, Y)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (pd.DataFrame({"a": [1, "x", 2.0]}), "mixes values"),
        (pd.DataFrame({"a": [1.0, np.inf, 2.0]}), "infinity"),
        (pd.DataFrame({"a": [1.0, 2.0, 3.0]}).iloc[:, :0], "0 columns"),
        (pd.DataFrame([[1.0, 2.0]] * 3, columns=["a", "a"]), "must differ"),
    ],
    ids=["mixed", "infinite", "empty", "names"],
)
def test_tables_that_are_refused(table, message):
    with pytest.raises(ValueError, match=message):
        regressor().fit(table, [1.0, 2.0, 3.0])


def test_text_where_there_were_numbers():
    frame = pd.DataFrame({"a": X[:, 0]})
    model = regressor().fit(frame, Y)
    with pytest.raises(ValueError, match="'a' held numbers"):
        model.predict(pd.DataFrame({"a": ["x", "y"]}))


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"effort": "huge"}, "effort='huge' is unknown"),
        ({"time_limit": 0.0}, "time_limit"),
        ({"time_limit": -1.0}, "time_limit"),
        ({"families": ["cubic"]}, "families"),
        ({"families": []}, "families"),
        ({"families": "laplace"}, "families"),
        ({"scalings": ["log"]}, "scalings"),
        ({"encodings": ["hash"]}, "encodings"),
        ({"losses": ["huber"]}, "losses"),
        ({"losses": ["svm"]}, "must contain 'squared'"),
        ({"categorical_features": ["z"]}, "categorical_features"),
        ({"categorical_features": "a"}, "must be a sequence"),
        ({"n_jobs": 0}, "n_jobs=0"),
    ],
    ids=str,
)
def test_parameters_that_are_refused(params, message):
    frame = pd.DataFrame(X, columns=list("abc"))
    for estimator in (TessellaRegressor(**params), TessellaClassifier(**params)):
        with pytest.raises(ValueError, match=message):
            estimator.fit(frame, Y > 1.0)
        assert not hasattr(estimator, "members_")


def test_rows_without_weight_and_single_classes_are_refused():
    with pytest.raises(ValueError, match="single distinct row"):
        regressor().fit(X, Y, sample_weight=np.eye(len(Y))[0])
    with pytest.raises(ValueError, match="single class"):
        TessellaClassifier(effort="low").fit(X, np.ones(len(X)))
    weight = (Y > 1.0).astype(float)
    with pytest.raises(ValueError, match="single class"):
        TessellaClassifier(effort="low").fit(X, Y > 1.0, sample_weight=weight)


def test_a_notebook_shows_the_held_out_score_and_the_average():
    rng = np.random.default_rng(0)
    X = rng.random((60, 2))
    model = TessellaRegressor(effort="low")
    assert "tessella-summary" not in model._repr_html_()
    html = model.fit(X, X[:, 0] ** 2)._repr_html_()
    assert "tessella-summary" in html
    assert f"{model.loo_score_:.4f}" in html
    for line in model.leaderboard_:
        if line["weight"] > 0:
            assert f"{line['family']}, {line['scaling']}, squared loss" in html


def test_text_as_the_target_of_a_regression_is_refused():
    with pytest.raises(ValueError, match=r"contains text.*TessellaClassifier"):
        TessellaRegressor().fit([[0.0], [1.0], [2.0]], ["a", "b", "c"])
