"""Every way in which a table can be wrong has its own line."""

import gzip
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tessella.persistence import read_info

FIT = "fit train.csv --model learned-kernel --target y -o model.tsl"

BROKEN = {
    "empty": ("", "train.csv: the file is empty"),
    "blank lines": ("\n\n\n", "the file is empty"),
    "header only": ("a,b,y\n", "there is a header but no rows"),
    "header without newline": ("a,b,y", "there is a header but no rows"),
    "target near": ("a,b,yy\n1,2,3\n4,5,6\n", "no column 'y'; did you mean 'yy'?"),
    "target far": ("a,b,c\n1,2,3\n4,5,6\n", "no column 'y'; the columns are 'a', 'b', 'c'"),
    "separator": ("a|b|why\n1|2|3\n", "no column 'y'", "is the separator ','?"),
    "semicolons": ("a;b;why\n1;2;3\n", "no column 'y'; did you mean 'why'?"),
    "text": ("a,b,y\n1,2,3\n4,abc,6\n", "column 'b', line 3: 'abc' is not a number"),
    "date": ("a,b,y\n1,2020-01-01,3\n4,2020-02-01,6\n", "'b', line 2: '2020-01-01' is not a"),
    "time": ("a,b,y\n1,12:30,3\n4,13:30,6\n", "'b', line 2: '12:30' is not a number"),
    "text after blank lines": ("a,b,y\n\n1,2,3\n\n\n4,x,6\n", "column 'b', line 6: 'x' is not"),
    "text after a long cell": (
        'a,b,y\n1,2,3\n"\n4",x,6\n',
        "column 'b', line 3: 'x' is not",
    ),
    "empty cell": ("a,b,y\n1,2,3\n,5,6\n", "column 'a', line 3: missing value"),
    "NaN": ("a,b,y\n1,2,3\n4,nan,6\n", "column 'b', line 3: missing value"),
    "NA": ("a,b,y\n1,2,3\n4,NA,6\n7,8,9\n", "column 'b', line 3: missing value"),
    "empty column": ("a,b,y\n1,,3\n4,,6\n", "column 'b', line 2: missing value"),
    "missing target": ("a,b,y\n1,2,\n4,5,6\n", "column 'y', line 2: missing value"),
    "missing label": ("a,b,y\n1,2,yes\n4,5,\n7,8,no\n", "column 'y', line 3: missing value"),
    "blank label": ("a,b,y\n1,2,yes\n4,5, \n7,8,no\n", "column 'y', line 3: missing value"),
    "infinite": ("a,b,y\n1,2,3\n4,-inf,6\n", "column 'b', line 3: infinite value"),
    "overflow": ("a,b,y\n1,2,3\n4,1e999,6\n", "column 'b', line 3: infinite value"),
    "short row": ("a,b,y\n1,2,3\n4,5\n", "line 3 has 2 fields, but the header has 3"),
    "long row": ("a,b,y\n1,2,3,4\n", "line 2 has 4 fields, but the header has 3"),
    "open quote": ('a,b,y\n"1,2,3\n4,5,6\n', "line 2 has 1 fields, but the header has 3"),
    "duplicates": ("a,a,y\n1,2,3\n", "more than one column is called 'a'"),
    "nameless": (",a,y\n0,1,2\n", "column 1 has no name"),
    "no features": ("y\n1\n2\n", "there is no column except the target 'y'"),
    "constant": ("a,y\n1,3\n2,3\n", "the target 'y' is constant: every value is 3"),
    "one class": ("a,y\n1,no\n2,no\n", "the target 'y' has a single class, 'no'"),
    "as many classes as rows": (
        "a,y\n1,u\n2,v\n3,w\n",
        "has 3 classes in 3 rows ('u', 'v', 'w'); to predict a number use --task regression",
    ),
    "constant features": ("a,y\n1,3\n1,4\n1,5\n", "All 1 features are constant"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_csv(name, fails, tmp_path):
    content, *texts = BROKEN[name]
    (tmp_path / "train.csv").write_text(content)
    fails(FIT, *texts)
    assert not (tmp_path / "model.tsl").exists()


def test_features_that_are_no_numbers_have_a_way_out(fails, run, tmp_path):
    rows = "".join(f"A{k},{k},{k % 3},{k * k}\n" for k in range(12))
    (tmp_path / "train.csv").write_text("id,a,b,y\n" + rows)
    fails(FIT, "column 'id', line 2: 'A0' is not a number", "--drop", "--model automatic")
    fails(f"{FIT} --drop ident", "there is no column 'ident'; did you mean 'id'?")
    assert run(f"{FIT} --drop id --drop b").exit_code == 0
    assert read_info(tmp_path / "model.tsl")["feature_names"] == ["a"]


def test_semicolons_and_decimal_commas(run, tmp_path):
    numbers = [(k / 4, k % 3, k * k / 8) for k in range(12)]
    lines = [f"{a},{b},{y}" for a, b, y in numbers]
    (tmp_path / "train.csv").write_text("a,b,y\n" + "\n".join(lines))
    for name, point in (("comma", ","), ("point", ".")):
        text = "\n".join(line.replace(",", ";").replace(".", point) for line in lines)
        (tmp_path / f"{name}.csv").write_text("a;b;y\n" + text)
        assert run(FIT.replace("train", name).replace("model.", f"{name}.")).exit_code == 0
    assert run(FIT).exit_code == 0
    predicted = [run(f"predict {name}.tsl {name}.csv").stdout for name in ("comma", "point")]
    assert predicted == [run("predict model.tsl train.csv").stdout] * 2


def test_bytes_that_are_not_text(fails, tmp_path):
    (tmp_path / "train.csv").write_bytes("a,y\n1,é\n2,b\n".encode("latin-1"))
    fails(FIT, "column 'y', line 2: contains bytes that are not UTF-8 text")
    (tmp_path / "train.csv").write_bytes("é,y\n1,a\n2,b\n".encode("latin-1"))
    fails(FIT, "the column names are not UTF-8 text")
    (tmp_path / "train.csv").write_text("a,y\n1,2\n", encoding="utf-16")
    fails(FIT, "train.csv: ")


def test_files_that_are_not_there(fails, tmp_path):
    fails(FIT, "train.csv: the file does not exist")
    (tmp_path / "train.csv").mkdir()
    fails(FIT, "train.csv: this is a folder; Parquet files of a folder")
    fails(FIT.replace(".csv", ".xlsx"), "train.xlsx: unknown type of file; use one of .csv, ")


def test_broken_gzip(fails, tmp_path):
    (tmp_path / "train.csv.gz").write_bytes(b"a,y\n1,2\n")
    fails(FIT.replace(".csv", ".csv.gz"), "train.csv.gz: the file cannot be read")
    (tmp_path / "train.csv.gz").write_bytes(gzip.compress(b"a,y\n1,2\n3,x\n2,3"))
    fails(
        FIT.replace(".csv", ".csv.gz") + " --task regression",
        "column 'y', line 3: 'x' is not a number",
    )


FIT_PARQUET = FIT.replace(".csv", ".parquet")


def test_broken_parquet(fails, tmp_path):
    (tmp_path / "train.parquet").write_text("a,y\n1,2\n")
    fails(FIT_PARQUET, "train.parquet: the file is not a Parquet file, or it is damaged")
    pq.write_table(pa.table({"a": [1.0, 2.0], "y": [1, 2]}), tmp_path / "train.parquet")
    whole = (tmp_path / "train.parquet").read_bytes()
    (tmp_path / "train.parquet").write_bytes(whole[: len(whole) // 2])
    fails(FIT_PARQUET, "not a Parquet file, or it is damaged")


@pytest.mark.parametrize(
    ("column", "text"),
    [
        ([1.0, None, 2.0], "column 'a', row 2: missing value"),
        ([1.0, 2.0, float("nan")], "column 'a', row 3: missing value"),
        ([float("inf"), 2.0, 1.0], "column 'a', row 1: infinite value"),
        (["1", "2", "x"], "column 'a', row 3: 'x' is not a number"),
        ([[1], [2], [3]], "column 'a', row 1: [1] is not a number but has type list"),
        (np.array([1, 2, 3], "M8[s]"), "row 1: datetime.datetime(1970, 1, 1, 0, 0, 1) is not a"),
    ],
    ids=str,
)
def test_wrong_parquet_columns(column, text, fails, tmp_path):
    pq.write_table(pa.table({"a": column, "y": [1, 2, 3]}), tmp_path / "train.parquet")
    fails(FIT_PARQUET, text)


def test_parquet_duplicates_and_no_rows(fails, tmp_path):
    columns = [pa.array([1.0, 2.0])] * 2
    pq.write_table(pa.Table.from_arrays(columns, ["y", "y"]), tmp_path / "train.parquet")
    fails(FIT_PARQUET, "more than one column is called 'y'")
    pq.write_table(pa.table({"a": [1.0], "y": [1.0]})[:0], tmp_path / "train.parquet")
    fails(FIT_PARQUET, "there is a header but no rows")


def test_columns_of_many_types(run, tmp_path):
    frame = pd.DataFrame(
        {
            "flag": [True, False] * 10,
            "count": np.arange(20, dtype=np.uint8),
            "single": np.linspace(0, 1, 20, dtype=np.float32),
            "y": pd.Categorical(["u", "v"] * 10),
        },
        index=pd.Index(np.arange(20) * 7, name="row id"),
    )
    frame.to_parquet(tmp_path / "train.parquet")
    result = run(FIT_PARQUET)
    assert result.exit_code == 0, result.output
    assert "note: train.parquet: index columns are left out: 'row id'" in result.stderr
    assert "classification" in result.stdout


@pytest.mark.parametrize(
    ("values", "task"),
    [
        (["a", "b"], "classification"),
        (["true", "false"], "classification"),
        (["1", "2"], "classification"),
        (["0.5", "1.5"], "classification"),
        (["-1.0", "1.0"], "classification"),
        (["2020-01-01", "2020-01-02"], "classification"),
        (["1", "2", "3"], "regression"),
        (["0.5", "+2", "1e3"], "regression"),
    ],
    ids=str,
)
def test_guessed_task(values, task, run, tmp_path):
    rows = "".join(f"{k},{(7 * k) % 5},{values[k % len(values)]}\n" for k in range(15))
    (tmp_path / "train.csv").write_text("a,b,y\n" + rows)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = run(FIT)
    assert result.exit_code == 0, result.output
    assert task in result.stdout
    assert run("predict model.tsl train.csv -o out.csv").exit_code == 0
    predictions = pd.read_csv(tmp_path / "out.csv", dtype=str)["prediction"]
    if task == "classification":
        assert {value.lower() for value in predictions} <= set(values)
