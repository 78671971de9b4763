"""Tables to numbers: every container, every kind of column, every complaint by name."""

from __future__ import annotations

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

from tessella.tabular import TabularEncoder

FRAMES = {"pandas": pd.DataFrame, "polars": pl.DataFrame}


@pytest.fixture(params=FRAMES)
def frame(request):
    return FRAMES[request.param]


@parametrize_with_checks([TabularEncoder()])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def encoded(table, new=None, **params):
    """Columns of the result by name."""
    encoder = TabularEncoder(**{"min_frequency": 1, **params}).fit(table)
    result = encoder.transform(table if new is None else new)
    assert result.dtype == np.float64
    assert np.isfinite(result).all()
    names = encoder.get_feature_names_out()
    assert len(names) == result.shape[1]
    return dict(zip(names.tolist(), result.T.tolist(), strict=True))


# ---- kinds of columns


def test_numbers_are_imputed_and_marked(frame):
    table = frame({"a": [1.0, None, 3.0, 8.0], "b": [5, 6, 7, 8]})
    assert encoded(table) == {
        "a": [1.0, 3.0, 3.0, 8.0],
        "b": [5.0, 6.0, 7.0, 8.0],
        "a_missing": [0.0, 1.0, 0.0, 0.0],
    }


def test_truth_values(frame):
    assert encoded(frame({"a": [True, False]})) == {"a": [1.0, 0.0]}
    with_gap = encoded(frame({"a": [True, None, True, False]}))
    assert with_gap["a"] == [1.0, 1.0, 1.0, 0.0]


def test_text_and_its_missing_values(frame):
    table = frame({"t": ["x", None, "y", "x"]})
    assert encoded(table) == {
        "t_x": [1.0, 0.0, 0.0, 1.0],
        "t_y": [0.0, 0.0, 1.0, 0.0],
        "t_nan": [0.0, 1.0, 0.0, 0.0],
    }


def test_dates_and_durations_in_days(frame):
    day = datetime.datetime(1970, 1, 11)
    half = datetime.timedelta(hours=12)
    assert encoded(frame({"a": [day, day + half, None], "b": [half, 2 * half, 3 * half]})) == {
        "a": [10.0, 10.5, 10.25],
        "b": [0.5, 1.0, 1.5],
        "a_missing": [0.0, 0.0, 1.0],
    }


def test_dates_without_a_time_and_with_a_zone():
    date = datetime.date(1970, 1, 3)
    assert encoded(pl.DataFrame({"a": [date]}))["a"] == [2.0]
    assert encoded(pd.DataFrame({"a": [date]}))["a"] == [2.0]
    zoned = pd.DataFrame({"a": pd.to_datetime(["1970-01-02 01:00"]).tz_localize("Europe/Berlin")})
    assert encoded(zoned)["a"] == [1.0]
    assert encoded(pl.from_pandas(zoned))["a"] == [1.0]
    mixed = np.array([[datetime.timedelta(days=2)], [np.timedelta64(36, "h")]], dtype=object)
    assert encoded(mixed) == {"x0": [2.0, 1.5]}


def test_categories_of_pandas_and_polars():
    expected = {"c_2": [0.0, 1.0, 0.0], "c_1": [1.0, 0.0, 0.0], "c_nan": [0.0, 0.0, 1.0]}
    assert encoded(pd.DataFrame({"c": pd.Categorical([1, 2, None])})) == expected
    assert encoded(pd.DataFrame({"c": pd.Categorical(["1", "2", None])})) == expected
    for dtype in (pl.Categorical, pl.Enum(["1", "2"])):
        series = pl.Series("c", ["1", "2", None], dtype=dtype)
        assert encoded(pl.DataFrame([series])) == expected


def test_declared_categories(frame):
    table = frame({"code": [10, 20, 10], "x": [1, 2, 3]})
    assert encoded(table, categorical_features=["code"]) == {
        "x": [1.0, 2.0, 3.0],
        "code_10": [1.0, 0.0, 1.0],
        "code_20": [0.0, 1.0, 0.0],
    }
    # The gap makes floats of the codes; they are the same categories.
    with_gap = frame({"code": [20, None, 10], "x": [1, 2, 3]})
    new = encoded(table, with_gap, categorical_features=["code"])
    assert new["code_10"] == [0.0, 0.0, 1.0]
    assert new["code_20"] == [1.0, 0.0, 0.0]
    assert encoded(np.array([[1.0], [2.5]]), categorical_features=[0]) == {
        "x0_1": [1.0, 0.0],
        "x0_2.5": [0.0, 1.0],
    }


def test_nullable_columns_of_pandas():
    table = pd.DataFrame(
        {
            "i": pd.array([1, None, 3], dtype="Int64"),
            "b": pd.array([True, None, False], dtype="boolean"),
            "s": pd.array(["x", None, "x"], dtype="string"),
        }
    )
    result = encoded(table)
    assert result["i"] == [1.0, 2.0, 3.0]
    assert result["b"] == [1.0, 0.5, 0.0]
    assert result["s_nan"] == [0.0, 1.0, 0.0]


def test_arrays_and_lists_of_objects():
    rows = [["x", 1, None], ["y", 2.5, True], [None, Decimal("0.5"), np.bool_(False)]]
    expected = encoded(np.array(rows, dtype=object))
    assert expected["x1"] == [1.0, 2.5, 0.5]
    assert expected["x2"] == [0.5, 1.0, 0.0]
    assert expected["x0_x"] == [1.0, 0.0, 0.0]
    assert encoded(rows) == expected


def test_arrays_of_text():
    assert set(encoded(np.array([["a", "u"], ["b", "u"]]))) == {"x0_a", "x0_b", "x1_u"}


def test_all_containers_agree():
    columns = {"a": [1.0, None, 3.0], "t": ["x", "y", None], "b": [True, False, True]}
    results = [encoded(make(columns)) for make in FRAMES.values()]
    objects = np.array(list(zip(*columns.values(), strict=True)), dtype=object)
    unnamed = encoded(objects)
    assert results[0] == results[1]
    assert list(results[0].values()) == list(unnamed.values())


# ---- rare, new and empty


def test_rare_categories_share_a_column(frame):
    table = frame({"t": ["a"] * 6 + ["b"] * 5 + ["c", "d"]})
    result = encoded(table, min_frequency=5)
    assert list(result) == ["t_a", "t_b", "t_infrequent_sklearn"]
    assert result["t_infrequent_sklearn"] == [0.0] * 11 + [1.0, 1.0]
    # and a category that was not there in training goes to the rare ones
    new = encoded(table, frame({"t": ["z", "a"]}), min_frequency=5)
    assert new["t_infrequent_sklearn"] == [1.0, 0.0]


def test_names_and_identifiers_do_not_become_thousands_of_features(frame):
    table = frame({"name": [f"n{k}" for k in range(1000)]})
    assert len(encoded(table, max_categories=7)) == 7


def test_new_category_without_rare_ones_is_none_of_them(frame):
    table, new = frame({"t": ["a", "b"]}), frame({"t": ["z", None]})
    assert encoded(table, new) == {"t_a": [0.0, 0.0], "t_b": [0.0, 0.0]}


def test_missing_for_the_first_time(frame):
    new = encoded(frame({"a": [1.0, 3.0]}), frame({"a": [None, 5.0]}))
    assert new == {"a": [2.0, 5.0]}


def test_columns_without_any_value(frame):
    table = frame({"a": [1.0, 2.0], "empty": [None, None]})
    later = frame({"a": [1.0, 2.0], "empty": ["x", "y"]})
    for new in (table, later):
        result = encoded(table.astype({"empty": object}) if frame is pd.DataFrame else table, new)
        assert result["a"] == [1.0, 2.0]
    floats = pd.DataFrame({"a": [1.0, 2.0], "empty": [np.nan, np.nan]})
    assert encoded(floats)["empty"] == [0.0, 0.0]


def test_only_numbers_and_only_categories(frame):
    assert TabularEncoder().fit(frame({"a": [1.0, 2.0]})).one_hot_ is None
    assert TabularEncoder().fit(frame({"t": ["a", "b"]})).medians_.shape == (0,)


# ---- scikit-learn's world


def test_clone_and_set_output(frame):
    table = frame({"a": [1.0, None], "t": ["x", "y"]})
    for kind, cls in FRAMES.items():
        encoder = clone(TabularEncoder(min_frequency=1)).set_output(transform=kind)
        result = encoder.fit_transform(table)
        assert isinstance(result, cls)
        assert list(result.columns) == ["a", "a_missing", "t_x", "t_y"]


def test_global_output_setting_reaches_the_result_only():
    import sklearn

    table = pd.DataFrame({"a": [1.0, None], "t": ["x", "y"]}, index=[7, 3])
    with sklearn.config_context(transform_output="pandas"):
        result = TabularEncoder(min_frequency=1).fit_transform(table)
    assert result.index.tolist() == [7, 3]
    assert result["t_y"].tolist() == [0.0, 1.0]


@pytest.mark.parametrize("other", ["renamed", "reordered", "fewer"])
def test_names_are_checked(frame, other):
    encoder = TabularEncoder().fit(frame({"a": [1.0, 2.0], "b": [1.0, 2.0]}))
    assert encoder.feature_names_in_.tolist() == ["a", "b"]
    new = {
        "renamed": {"a": [1.0], "c": [1.0]},
        "reordered": {"b": [1.0], "a": [1.0]},
        "fewer": {"a": [1.0]},
    }[other]
    with pytest.raises(ValueError, match=r"feature names should match|feature names must be"):
        encoder.transform(frame(new))


def test_array_after_a_frame():
    table = pd.DataFrame({"code": [1, 2, 1], "x": [1.0, 2.0, 3.0]})
    encoder = TabularEncoder(categorical_features=["code"], min_frequency=1).fit(table)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        result = encoder.transform(table.to_numpy())
    np.testing.assert_array_equal(result, encoder.transform(table))


def test_number_of_columns_is_checked():
    encoder = TabularEncoder().fit(np.ones((3, 2)))
    with pytest.raises(ValueError, match="X has 3 features, but TabularEncoder is expecting 2"):
        encoder.transform(np.ones((3, 3)))


def test_not_fitted(frame):
    with pytest.raises(NotFittedError):
        TabularEncoder().transform(frame({"a": [1.0]}))


# ---- complaints


@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        ([[1], [2]], TypeError, "'bad' holds .*(list|ndarray)"),
        ([datetime.time(1), datetime.time(2)], TypeError, "'bad' holds objects of type time"),
        ([1.0, float("inf")], ValueError, "'bad' contains infinity, first in row 1"),
        ([str(k / 7) for k in range(20)], ValueError, "'bad' holds numbers written as text"),
    ],
    ids=["nested", "time", "infinity", "numerals"],
)
def test_complaints_name_the_column(frame, values, error, message):
    table = frame({"good": list(range(len(values))), "bad": values})
    with pytest.raises(error, match=message):
        TabularEncoder().fit(table)


def test_complaints_about_objects():
    with pytest.raises(ValueError, match=r"'bad' mixes .*, for instance .*'x'.*categorical_feat"):
        TabularEncoder().fit(pd.DataFrame({"bad": [1, "x", None]}, dtype=object))
    with pytest.raises(TypeError, match="Column 1 holds objects of type complex"):
        TabularEncoder().fit(np.array([["a", 1j]], dtype=object))
    with pytest.raises(TypeError, match="'bad' holds values of dtype complex128"):
        TabularEncoder().fit(pd.DataFrame({"bad": [1j]}))
    with pytest.raises(TypeError, match=r"'bad' holds (values|objects)"):
        TabularEncoder().fit(pl.DataFrame({"bad": [{"a": 1}]}))
    mixed = pd.DataFrame({"code": [1, "x", None]}, dtype=object)
    assert set(encoded(mixed, categorical_features=["code"])) == {"code_1", "code_x", "code_nan"}


def test_numerals_that_may_be_codes():
    codes = pd.DataFrame({"zip": [f"{k:05d}" for k in range(40)]})
    few = pd.DataFrame({"zip": ["01234", "99999"] * 10})
    assert len(encoded(codes, categorical_features=["zip"])) == 12
    assert set(encoded(few)) == {"zip_01234", "zip_99999"}


@pytest.mark.parametrize(
    ("first", "then", "message"),
    [
        ([1.0, 2.0], ["x", "y"], "'a' held numbers .* but now holds 'x'"),
        ([1.0, 2.0], [datetime.date(2020, 1, 1)], "'a' held numbers .* but now holds"),
        ([datetime.datetime(2020, 1, 1)], [1.0], "'a' held dates .* but now holds .*1.0"),
    ],
    ids=["text", "date", "number"],
)
def test_column_that_changed_its_kind(frame, first, then, message):
    encoder = TabularEncoder().fit(frame({"a": first}))
    with pytest.raises(ValueError, match=message):
        encoder.transform(frame({"a": then}))


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"max_categories": 1}, "max_categories=1 must be an integer >= 2"),
        ({"min_frequency": 0.5}, "min_frequency=0.5 must be an integer >= 1"),
        ({"categorical_features": "a"}, r"use \['a'\]"),
        ({"categorical_features": ["q"]}, r"names \['q'\], which are not among .*'a'"),
    ],
)
def test_bad_parameters(frame, params, message):
    with pytest.raises(ValueError, match=message):
        TabularEncoder(**params).fit(frame({"a": [1.0, 2.0]}))


def test_tables_that_are_none():
    with pytest.raises(ValueError, match="0 rows"):
        TabularEncoder().fit(pd.DataFrame({"a": []}))
    with pytest.raises(ValueError, match=r"more than one column is called \['a'\]"):
        TabularEncoder().fit(pd.DataFrame([[1, 2]], columns=["a", "a"]))
    with pytest.raises(ValueError, match="0 columns"):
        TabularEncoder().fit(pd.DataFrame(index=[0, 1]))
    with pytest.raises((TypeError, ValueError)):
        TabularEncoder().fit(pl.LazyFrame({"a": [1]}))
