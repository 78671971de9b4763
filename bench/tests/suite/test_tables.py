"""Tables of the suite and their divisions."""

import json

import numpy as np
import pandas as pd
import pytest

from tessella.datasets import DataError
from tessella_bench.suite import divide, load_table, suite_names, training_rows
from tessella_bench.suite._data import PAPER_SETS
from tessella_bench.suite._divisions import checksum, draw, hold_out, sizes_of


def test_tables_are_given_as_they_are(suite_home):
    table = load_table("paints")
    assert table.task == "classification"
    assert list(table.X.columns) == ["size", "count", "colour"]
    assert table.text_columns == ["colour"]
    assert table.X["count"].isna().sum() == 9
    assert table.X["colour"].isna().sum() == 6
    assert set(table.y) == {"red", "green", "blue", "none", "small"}
    assert table.classes == 5
    prices = load_table("prices", suite_home)
    assert (prices.task, prices.y.dtype, prices.classes) == ("regression", np.float64, None)


def test_sets_of_the_other_folder_are_frames_of_numbers(suite_home):
    table = load_table("tiny")
    assert list(table.X.columns) == ["a", "b"]
    assert isinstance(table.X, pd.DataFrame)
    assert table.text_columns == []
    assert set(table.y) == {0, 1}


def test_names(suite_home):
    assert suite_names() == ("paints", "prices", *PAPER_SETS)
    assert len(PAPER_SETS) == 17


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"paints": {"task": "multiclass", "sha256": "0"}}, "SHA-256 differs"),
        ({"paints": {"task": "multiclass", "target": "x"}}, "no column 'x'"),
        ({"paints": {"task": "multiclass", "file": "x.csv"}}, "is not there"),
        ({"paints": {"rows": 3}}, "is not a manifest"),
        ([], "is not a manifest"),
    ],
)
def test_tables_that_are_not_as_they_should_be(suite_home, change, message):
    (suite_home / "suite" / "MANIFEST.json").write_text(json.dumps(change))
    with pytest.raises(DataError, match=message):
        load_table("paints")


def test_sizes():
    assert training_rows(1250, 1000) == 1000
    assert training_rows(1249, 1000) == 999
    assert training_rows(270, 1000) == 216
    assert sizes_of(270) == (1000,)
    assert sizes_of(4999) == (1000,)
    assert sizes_of(5000) == (1000, 4000)


def test_division_is_disjoint_complete_and_fixed():
    y = np.arange(50.0)
    train, test = divide("regression", y, 1000, 1)
    assert (len(train), len(test)) == (40, 10)
    assert sorted([*train, *test]) == list(range(50))
    again, _ = divide("regression", y, 1000, 1)
    other, _ = divide("regression", y, 1000, 2)
    np.testing.assert_array_equal(train, again)
    assert not np.array_equal(train, other)
    # RandomState's stream is fixed for ever, and so are the divisions.
    np.testing.assert_array_equal(train, np.sort(np.random.RandomState(1).permutation(50)[:40]))


def test_test_part_has_ten_thousand_rows_at_most():
    train, test = divide("regression", np.zeros(20_000), 4000, 0)
    assert (len(train), len(test)) == (4000, 10_000)
    assert not set(train) & set(test)


def test_classes_keep_their_shares():
    y = np.repeat(["a", "b", "c"], [1600, 300, 100]).astype(object)
    train, test = divide("classification", y, 1000, 0)
    assert np.unique(y[train], return_counts=True)[1].tolist() == [800, 150, 50]
    assert np.unique(y[test], return_counts=True)[1].tolist() == [800, 150, 50]
    assert not set(train) & set(test)


def test_rare_classes_can_be_divided():
    y = np.array([0] * 7 + [1] * 2 + [2])
    train, test = draw("classification", y, 8, 2, 3)
    assert (len(train), len(test)) == (8, 2)
    assert sorted([*train, *test]) == list(range(10))
    with pytest.raises(ValueError, match="10 rows cannot be divided into 8 and 3"):
        draw("classification", y, 8, 3, 3)


def test_held_out_rows():
    learn, judge = hold_out("regression", np.zeros(10), 0.2, 0)
    assert (len(learn), len(judge)) == (8, 2)


def test_mark_of_a_division_tells_its_parts_apart():
    marks = {checksum(np.array(a), np.array(b)) for a, b in [([1, 2], [3]), ([1], [2, 3])]}
    assert len(marks) == 2
