"""Batches of Parquet files: values, types, order, errors and memory."""

from __future__ import annotations

import datetime
import decimal
import sys

import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
import pytest

from tessella.rows import ArraySource, ParquetSource

# Threads of pyarrow may return memory to it after the last batch, so it must outlive the test.
COUNTED = pa.proxy_memory_pool(pa.default_memory_pool())


def joined(source):
    parts = ((batch.X, batch.y, batch.weight) for batch in source.batches())
    return [np.concatenate(values) for values in zip(*parts, strict=True)]


def write(path, **columns):
    pa.parquet.write_table(pa.table(columns), path)
    return path


def numbers(rows, seed=0):
    rng = np.random.default_rng(seed)
    return {"a": rng.normal(size=rows), "b": rng.normal(size=rows), "y": rng.normal(size=rows)}


def test_batches_are_those_of_arrays(tmp_path):
    columns = numbers(150_000)
    path = tmp_path / "rows.parquet"
    pa.parquet.write_table(pa.table(columns), path, row_group_size=7_001)
    source = ParquetSource(path, "y", weight=None)
    arrays = ArraySource(np.column_stack([columns["a"], columns["b"]]), columns["y"])
    for _ in range(2):
        for ours, theirs in zip(source.batches(), arrays.batches(), strict=True):
            assert ours.first == theirs.first
            np.testing.assert_array_equal(ours.X, theirs.X)
            np.testing.assert_array_equal(ours.y, theirs.y)
            np.testing.assert_array_equal(ours.weight, theirs.weight)
            assert ours.X.flags.c_contiguous
    assert source.feature_names.tolist() == ["a", "b"]
    assert (source.n_rows, source.n_features, source.nbytes) == (150_000, 2, 8 * 150_000 * 3)


def test_names_choose_features_and_weights_in_their_order(tmp_path):
    path = write(tmp_path / "rows.parquet", a=[1, 2], b=[3, 4], t=["x", "y"], w=[0, 2], z=[7, 8])
    source = ParquetSource(str(path), "z", features=["b", "a"], weight="w")
    X, y, weight = joined(source)
    assert X.tolist() == [[3.0, 1.0], [4.0, 2.0]]
    assert y.tolist() == [7, 8]
    assert weight.tolist() == [0.0, 2.0]
    assert weight.dtype == np.float64
    assert source.feature_names.tolist() == ["b", "a"]


def test_all_types_of_numbers_are_features():
    kinds = [
        pa.int8(),
        pa.uint16(),
        pa.int32(),
        pa.uint64(),
        pa.float32(),
        pa.float64(),
        pa.bool_(),
    ]
    columns = {str(kind): pa.array([1, 0, 1]).cast(kind) for kind in kinds}
    columns["float16"] = pa.array(np.array([1, 0, 1], dtype=np.float16))
    columns["decimal"] = pa.array([decimal.Decimal(f"{v}.0") for v in (1, 0, 1)])
    columns["codes"] = pa.array([1, 0, 1]).dictionary_encode()
    X, y, _ = joined(ParquetSource(pa.table({**columns, "y": [1, 2, 3]}), "y"))
    assert X.shape == (3, 10)
    assert X.dtype == np.float64
    np.testing.assert_array_equal(X, np.tile([[1.0], [0.0], [1.0]], 10))
    assert y.dtype.kind == "i"


@pytest.mark.parametrize(
    ("values", "dtype", "expected"),
    [
        (pa.array([1, 2], pa.int16()), np.int16, [1, 2]),
        (pa.array([1.5, 2.0], pa.float32()), np.float32, [1.5, 2.0]),
        (pa.array([True, False]), np.bool_, [True, False]),
        (pa.array(["a", "bc"]), np.object_, ["a", "bc"]),
        (pa.array(["a", "bc"], pa.large_string()), np.object_, ["a", "bc"]),
        (pa.array(["a", "bc"]).dictionary_encode(), np.object_, ["a", "bc"]),
        (pa.array([decimal.Decimal("1.25"), decimal.Decimal("2.50")]), np.float64, [1.25, 2.5]),
    ],
)
def test_targets_have_the_type_of_their_column(values, dtype, expected):
    _, y, _ = joined(ParquetSource(pa.table({"a": [1, 2], "y": values}), "y"))
    assert y.dtype == dtype
    assert y.tolist() == expected


def test_folders_are_read_in_the_order_of_their_paths(tmp_path):
    for year in (2024, 2023):
        for part in (1, 0):
            folder = tmp_path / "data" / f"year={year}" / "deeper"
            folder.mkdir(parents=True, exist_ok=True)
            start = 100 * (year - 2023) + 50 * part
            write(folder / f"part-{part}.parquet", a=np.arange(start, start + 50), y=np.ones(50))
    (tmp_path / "data" / "_SUCCESS").touch()  # as other programs leave
    source = ParquetSource(tmp_path / "data", "y")
    X, _, _ = joined(source)
    assert source.feature_names.tolist() == ["a", "year"]
    np.testing.assert_array_equal(X[:, 0], np.arange(200))
    np.testing.assert_array_equal(X[:, 1], np.repeat([2023, 2024], 100))


def test_datasets_with_a_filter_and_tables_are_read(tmp_path):
    path = write(tmp_path / "rows.parquet", a=np.arange(10), y=np.arange(10))
    dataset = pa.dataset.dataset(path).filter(pa.dataset.field("a") > 6)
    source = ParquetSource(dataset, "y")
    assert source.n_rows == 3
    assert joined(source)[1].tolist() == [7, 8, 9]
    assert joined(ParquetSource(pa.parquet.read_table(path), "y"))[1].tolist() == list(range(10))


@pytest.mark.parametrize("column", ["a", "y", "w"])
@pytest.mark.parametrize("gap", [None, np.nan])
def test_gaps_name_their_place(column, gap):
    columns = {name: np.ones(90_000) for name in "ayw"}
    values = columns.pop(column).tolist()
    values[70_000] = gap
    data = pa.table({**columns, column: pa.array(values, pa.float64())})
    words = {"a": "'a'", "y": "'y'|target", "w": "'w'|weight"}[column]
    with pytest.raises(ValueError, match=rf"({words}).* in row 70000 .*Fill"):
        list(ParquetSource(data, "y", weight="w").batches())


def test_gaps_of_text_name_their_place():
    data = pa.table({"a": [1, 2, 3], "y": ["x", None, "z"]})
    with pytest.raises(ValueError, match="'y' has no value in row 1 "):
        list(ParquetSource(data, "y").batches())


def test_negative_weights_name_their_place():
    data = pa.table({"a": [1, 2], "y": [1, 2], "w": [1, -2]})
    with pytest.raises(ValueError, match="row 1 is negative"):
        list(ParquetSource(data, "y", weight="w").batches())


DAY = datetime.date(2024, 1, 1)
TABLE = pa.table(
    {"age": [1], "size": [2.0], "name": ["x"], "day": [DAY], "list": [[1]], "target": [1]}
)


@pytest.mark.parametrize(
    ("target", "options", "error", "words"),
    [
        ("target", {}, ValueError, "'name' has the type string.*Encode.*features"),
        ("target", {"features": ["day"]}, ValueError, "'day' has the type date32"),
        ("target", {"features": ["age", "list"]}, ValueError, "'list' has the type list"),
        ("targte", {}, ValueError, "no column 'targte'. Did you mean 'target'?"),
        ("q", {}, ValueError, "no column 'q'. There are 'age', .* and 1 more"),
        ("target", {"features": ["agee"]}, ValueError, "Did you mean 'age'?"),
        ("target", {"weight": "sizes"}, ValueError, "Did you mean 'size'?"),
        ("target", {"features": ["age", "age"]}, ValueError, "'age' is named twice"),
        ("target", {"features": ["age", "target"]}, ValueError, "cannot be a feature"),
        ("target", {"features": ["age"], "weight": "age"}, ValueError, "cannot be a feature"),
        ("target", {"features": []}, ValueError, "no column for a feature"),
        ("target", {"features": "age"}, TypeError, r"\['age'\]"),
        ("target", {"features": [0]}, TypeError, "0 is not text"),
        (0, {}, TypeError, "0 is not text"),
        ("target", {"features": ["age"], "weight": "target"}, ValueError, "both the target"),
        ("target", {"features": ["age"], "weight": "name"}, ValueError, "weight 'name' must be"),
        ("day", {"features": ["age"]}, ValueError, "target 'day' must be numbers.*date32"),
    ],
)
def test_wrong_columns_are_refused_at_once(target, options, error, words):
    with pytest.raises(error, match=words):
        ParquetSource(TABLE, target, **options)


def test_columns_of_the_same_name_are_refused():
    data = pa.table([[1], [2], [3]], names=["a", "a", "y"])
    with pytest.raises(ValueError, match="2 columns 'a'; rename"):
        ParquetSource(data, "y")


def test_wrong_places_are_refused_at_once(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no file or folder.*missing"):
        ParquetSource(tmp_path / "missing", "y")
    with pytest.raises(FileNotFoundError, match="no Parquet file in the folder"):
        ParquetSource(tmp_path, "y")
    (tmp_path / "rows.csv").write_text("a,y\n1,2\n")
    for path in (tmp_path, tmp_path / "rows.csv"):
        with pytest.raises(ValueError, match="cannot be read as Parquet"):
            ParquetSource(path, "y")
    with pytest.raises(TypeError, match="its type is ndarray"):
        ParquetSource(np.eye(2), "y")
    with pytest.raises(ValueError, match="no rows"):
        ParquetSource(TABLE.slice(0, 0), "target", features=["age"])


def test_files_that_change_are_noticed(tmp_path):
    path = write(tmp_path / "rows.parquet", a=[1, 2, 3], y=[1, 2, 3])
    source = ParquetSource(path, "y")
    write(path, a=[1, 2], y=[1, 2])
    with pytest.raises((ValueError, OSError)):
        list(source.batches())


def test_datasets_that_lose_rows_are_noticed(tmp_path):
    write(tmp_path / "a.parquet", a=[1, 2], y=[1, 2])
    source = ParquetSource(pa.dataset.dataset(tmp_path), "y")
    write(tmp_path / "a.parquet", a=[1], y=[1])
    with pytest.raises((ValueError, OSError)):
        list(source.batches())


def test_pyarrow_is_named_when_it_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"pip install 'tessella\[cli\]'"):
        ParquetSource("rows.parquet", "y")


def test_memory_does_not_hold_all_row_groups(tmp_path):
    rng = np.random.default_rng(0)
    names = [*(f"x{j}" for j in range(9)), "y"]
    with pa.parquet.ParquetWriter(
        tmp_path / "rows.parquet", pa.schema([(name, pa.float64()) for name in names])
    ) as writer:
        for _ in range(6):
            writer.write_table(pa.table({name: rng.random(100_000) for name in names}))
    usual = pa.default_memory_pool()
    pa.set_memory_pool(COUNTED)
    try:
        source = ParquetSource(tmp_path / "rows.parquet", "y")
        assert sum(len(batch.y) for batch in source.batches()) == 600_000
    finally:
        pa.set_memory_pool(usual)
    assert 0 < COUNTED.max_memory() < 0.6 * source.nbytes  # a row group has a sixth
