"""Batches of arrays: values, order, checks and memory; and the choice of a source."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy.sparse import csr_array

from tessella.rows import ArraySource, LeavesOnDisk, ParquetSource, is_stored, source_of


def table(rows=150_000, columns=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(rows, columns)), rng.normal(size=rows), rng.random(rows)


def joined(source):
    batches = list(source.batches())
    parts = ((batch.X, batch.y, batch.weight) for batch in batches)
    return [np.concatenate(values) for values in zip(*parts, strict=True)]


def test_batches_hold_all_rows_in_order():
    X, y, weight = table()
    source = ArraySource(X, y, weight)
    batches = list(source.batches())
    assert [len(batch.y) for batch in batches] == [65_536, 65_536, 150_000 - 2 * 65_536]
    assert [batch.first for batch in batches] == [0, 65_536, 131_072]
    for _ in range(2):  # sources can be read again
        for given, read in zip((X, y, weight), joined(source), strict=True):
            np.testing.assert_array_equal(given, read)
    assert (source.n_rows, source.n_features, source.feature_names) == (150_000, 3, None)
    assert source.nbytes == 8 * 150_000 * 4


def test_wide_rows_come_in_smaller_batches():
    X = np.broadcast_to(np.float32(1.0), (900, 10_000))
    batches = list(ArraySource(X, np.zeros(900)).batches())
    assert [len(batch.y) for batch in batches] == [419, 419, 62]
    assert max(batch.X.nbytes for batch in batches) <= 32 << 20


def test_a_row_that_is_larger_than_a_batch_is_a_batch():
    X = np.broadcast_to(np.int8(1), (2, 5_000_000))
    assert [len(batch.y) for batch in ArraySource(X, [0, 1]).batches()] == [1, 1]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, ">f8", np.int8, np.uint64, bool])
@pytest.mark.parametrize("order", ["C", "F"])
def test_numbers_of_any_type_become_float64(dtype, order):
    X = np.array([[0, 1], [1, 0], [1, 1]], dtype=dtype, order=order)
    (batch,) = ArraySource(X, np.array(["a", "b", "a"], dtype=object)).batches()
    assert batch.X.dtype == np.float64
    assert batch.X.dtype.isnative
    assert batch.X.flags.c_contiguous
    np.testing.assert_array_equal(batch.X, X.astype(np.float64))
    assert batch.y.tolist() == ["a", "b", "a"]
    assert batch.weight.tolist() == [1.0, 1.0, 1.0]


def test_batches_belong_to_the_caller():
    X, y, weight = table(10)
    before = X.copy(), y.copy(), weight.copy()
    (batch,) = ArraySource(X, y, weight).batches()
    batch.X[:], batch.y[:], batch.weight[:] = 0.0, 0.0, 0.0
    for given, now in zip(before, (X, y, weight), strict=True):
        np.testing.assert_array_equal(given, now)


@pytest.mark.parametrize("dtype", [int, bool, float, "U3", object])
def test_targets_keep_their_type(dtype):
    y = np.array([0, 1, 1], dtype=dtype)
    (batch,) = ArraySource(np.eye(3), y).batches()
    assert batch.y.dtype == y.dtype
    np.testing.assert_array_equal(batch.y, y)


@pytest.mark.parametrize(
    ("X", "y", "options", "error", "words"),
    [
        (np.zeros(3), np.zeros(3), {}, ValueError, r"two dimensions.*\(3,\)"),
        (np.zeros((0, 2)), [], {}, ValueError, "at least one row"),
        (np.zeros((3, 0)), np.zeros(3), {}, ValueError, "one feature"),
        (np.zeros((3, 2)), np.zeros(2), {}, ValueError, r"y must have.*\(3,\).*\(2,\)"),
        (np.zeros((3, 2)), np.zeros((3, 1)), {}, ValueError, r"y must have.*\(3, 1\)"),
        (np.zeros((3, 2)), np.zeros(3), {"weight": [1, 2]}, ValueError, "weight must have one"),
        (np.zeros((3, 2)), np.zeros(3), {"weight": ["a"] * 3}, TypeError, "weight must contain"),
        (np.zeros((3, 2)), np.zeros(3), {"feature_names": ["a"]}, ValueError, "each of the 2"),
        (np.full((3, 2), "a"), np.zeros(3), {}, TypeError, "X must contain real numbers.*Encode"),
        (np.zeros((3, 2), complex), np.zeros(3), {}, TypeError, "complex128"),
        (csr_array(np.eye(3)), np.zeros(3), {}, TypeError, "toarray"),
        (np.ma.masked_equal(np.eye(3), 1), np.zeros(3), {}, ValueError, "X has masked"),
    ],
)
def test_wrong_arrays_are_refused_at_once(X, y, options, error, words):
    with pytest.raises(error, match=words):
        ArraySource(X, y, **options)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (np.nan, "Column number 1 of X has a missing value in row 70000 .*Fill"),
        (-np.inf, "Column number 1 of X has an infinite value in row 70000 "),
    ],
)
def test_gaps_of_features_name_their_place(value, words):
    X, y, _ = table(80_000)
    X[70_000, 1] = value
    with pytest.raises(ValueError, match=words):
        list(ArraySource(X, y).batches())
    with pytest.raises(ValueError, match="Column 'height' of X"):
        list(ArraySource(X, y, None, ["age", "height", "size"]).batches())


@pytest.mark.filterwarnings("error")
def test_a_number_too_large_for_float64_is_an_error():
    X = np.array([[np.longdouble("1e400")]])
    if np.isinf(X).any():
        pytest.skip("long double is float64 here")
    with pytest.raises(ValueError, match="infinite"):
        list(ArraySource(X, [1.0]).batches())


@pytest.mark.parametrize(
    ("gap", "dtype", "words"),
    [
        (np.nan, float, "The target has a missing value in row 70000"),
        (np.inf, np.float32, "The target has an infinite value in row 70000"),
        (None, object, "The target has a missing value in row 70000"),
        (np.nan, object, "The target has a missing value in row 70000"),
        (pd.NA, object, "The target has a missing value in row 70000"),
    ],
)
def test_gaps_of_targets_name_their_place(gap, dtype, words):
    y = np.ones(80_000, dtype=dtype)
    y[70_000] = gap
    with pytest.raises(ValueError, match=words):
        list(ArraySource(np.zeros((80_000, 1)), y).batches())


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (np.nan, "The weight has a missing value in row 70000"),
        (np.inf, "The weight has an infinite value in row 70000"),
        (-0.5, r"weight of row 70000 is negative \(-0.5\)"),
    ],
)
def test_wrong_weights_name_their_place(value, words):
    weight = np.ones(80_000)
    weight[3] = 0.0  # which is a weight
    weight[70_000] = value
    with pytest.raises(ValueError, match=words):
        list(ArraySource(np.zeros((80_000, 1)), np.ones(80_000), weight).batches())


def test_a_mapped_file_is_never_converted_as_a_whole(tmp_path):
    rows, columns = 600_000, 8
    X = np.memmap(tmp_path / "X", dtype=np.float32, mode="w+", shape=(rows, columns))
    X[:] = np.arange(rows, dtype=np.float32)[:, None]
    source = ArraySource(X, np.zeros(rows, dtype=np.int8))
    sums = np.zeros(20)
    tracemalloc.start()
    with LeavesOnDisk(20, columns, folder=tmp_path, buffer_bytes=1 << 20) as leaves:
        for batch in source.batches():
            leaves.append(np.arange(batch.first, batch.first + len(batch.y)) % 20, batch.X)
        leaves.finish()
        for k in range(20):
            sums[k] = leaves.rows(k)[:, -1].sum()
        peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    expected = np.arange(rows, dtype=np.float64).reshape(-1, 20).sum(axis=0)
    np.testing.assert_array_equal(sums, expected)
    assert peak < source.nbytes / 3


# ------------------------------------------------------------------------ choice of a source


def test_arrays_and_frames_are_read_as_arrays():
    X, y, weight = table(20)
    source = source_of(X, y, weight)
    assert isinstance(source, ArraySource)
    assert source.feature_names is None
    np.testing.assert_array_equal(joined(source)[2], weight)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    named = source_of(frame, pd.Series(y))
    assert named.feature_names.tolist() == ["a", "b", "c"]
    np.testing.assert_array_equal(joined(named)[0], X)
    assert source_of(pd.DataFrame(X), y).feature_names is None


def test_tables_of_arrow_are_read_by_the_names_of_their_columns():
    data = pa.table({"a": [1.0, 2.0], "label": ["x", "y"], "w": [0.5, 2.0]})
    source = source_of(data, "label", "w")
    assert isinstance(source, ParquetSource)
    X, y, weight = joined(source)
    assert X.tolist() == [[1.0], [2.0]]
    assert y.tolist() == ["x", "y"]
    assert weight.tolist() == [0.5, 2.0]


@pytest.mark.parametrize(
    ("y", "weight", "words"),
    [
        ([1, 2], None, "y must be the name of the column of the target.*list"),
        (None, None, "NoneType"),
        ("a", np.ones(2), "sample_weight must be the name of a column.*ndarray"),
    ],
)
def test_columns_of_paths_and_tables_are_named(y, weight, words):
    with pytest.raises(TypeError, match=words):
        source_of(pa.table({"a": [1, 2], "b": [1, 2]}), y, weight)
    with pytest.raises(TypeError, match=words):
        source_of("rows.parquet", y, weight)


def test_what_is_stored(tmp_path):
    mapped = np.memmap(tmp_path / "X", dtype=float, mode="w+", shape=(2, 2))
    stored = ["rows", Path("rows"), pa.table({"a": [1]}), mapped]
    assert [is_stored(X) for X in stored] == [True] * 4
    others = [np.eye(2), [[1.0]], pd.DataFrame({"a": [1]}), None]
    assert [is_stored(X) for X in others] == [False] * 4
