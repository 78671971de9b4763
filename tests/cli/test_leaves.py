"""Models of many rows: ``--max-leaf-rows``, folders of Parquet files, and what is shown of them."""

import json
import re

import numpy as np
import pandas as pd
import pytest

import tessella
from tessella.cli import _tables
from tessella.rows import ParquetSource

FIT = "--model learned-kernel --max-leaf-rows 100 --tol 0.05"


@pytest.fixture
def trips(tmp_path):
    """A folder with two Parquet files, whose rows are returned as one frame."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.random((360, 3)), columns=["a", "b", "c"])
    frame["kind"] = np.where(frame["a"] + 0.1 * rng.normal(size=360) > 0.5, "long", "short")
    frame["seconds"] = np.sin(5 * frame["a"]) + frame["b"] ** 2
    (tmp_path / "trips").mkdir()
    for number, part in enumerate((frame[:200], frame[200:])):
        part.to_parquet(tmp_path / f"trips/{number}.parquet", row_group_size=90)
    return frame


def expected_model(folder, target, features, kind=tessella.LearnedKernelSVR, **params):
    source = ParquetSource(folder, target, features=features)
    return kind(max_leaf_rows=100, tol=0.05, **params).fit(source, None)


def predicted(text):
    """The numbers that a command has written."""
    return [float(line) for line in text.splitlines()[1:]]


def test_a_folder_is_fitted_and_predicted(run, trips, tmp_path):
    result = run(f"fit trips --target seconds --drop kind {FIT} -o m.tsl")
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    model = expected_model(tmp_path / "trips", "seconds", ["a", "b", "c"])
    assert model.leaves_.partition.n_trees == 2
    for text in ("regression (the target has more than 10 distinct numbers)", "360"):
        assert text in result.stdout
    assert re.search(rf"leaves +│ {model.leaves_.n_leaves} in 2 trees ", result.stdout)
    assert "certified gap" in result.stdout
    again = run("predict m.tsl trips")
    assert again.stderr.count("columns that the model does not use") == 1
    # Rows are predicted in parts, whose sums are rounded in other ways.
    expected = model.predict(trips[["a", "b", "c"]])
    np.testing.assert_allclose(predicted(again.stdout), expected, rtol=1e-9)


def test_memory_is_told_where_it_is_known(run, trips):
    pytest.importorskip("resource")
    result = run(f"fit trips --target seconds --drop kind {FIT} -o m.tsl")
    (mebibytes,) = re.findall(r"memory +│ ([\d,]+) MiB at most", result.stdout)
    assert 10 < int(mebibytes.replace(",", "")) < 100_000


def test_classes_of_a_file(run, trips, tmp_path):
    trips.drop(columns="seconds").to_parquet(tmp_path / "train.parquet")
    result = run(f"fit train.parquet --target kind {FIT} -o m.tsl")
    assert result.exit_code == 0, result.output
    assert "classification (the target is text)" in result.stdout
    model = tessella.load(tmp_path / "m.tsl")
    assert model.classes_.tolist() == ["long", "short"]
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    out = run("predict m.tsl train.parquet").stdout.splitlines()
    assert out[0] == "prediction,score"
    assert np.mean([line.split(",")[0] for line in out[1:]] == trips["kind"]) > 0.85


def test_text_tables_are_fitted_in_leaves_too(run, trips, tmp_path):
    trips.drop(columns="kind").to_csv(tmp_path / "train.csv", index=False)
    result = run(f"fit train.csv --target seconds {FIT} -o m.tsl")
    assert result.exit_code == 0, result.output
    assert "leaves" in result.stdout
    assert "training R²" in result.stdout
    assert tessella.load(tmp_path / "m.tsl").leaves_.n_leaves > 3


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([0.0, 1.0], "classification (the target has two values)"),
        ([1.0, 2.0, 3.0], "if they are classes, use --task classification"),
    ],
)
def test_the_task_of_few_values(run, trips, tmp_path, values, words):
    trips["grade"] = np.resize(values, len(trips))
    trips.drop(columns=["kind", "seconds"]).to_parquet(tmp_path / "train.parquet")
    result = run(f"fit train.parquet --target grade {FIT} -o m.tsl")
    assert words in " ".join(result.stdout.replace("│", " ").split())


def test_index_columns_are_left_out(run, trips, tmp_path):
    trips.index = pd.Index(range(10, 370), name="id")
    trips.drop(columns="kind").reset_index().set_index("id").to_parquet(tmp_path / "t.parquet")
    names = ParquetSource(tmp_path / "t.parquet", "seconds").feature_names.tolist()
    result = run(f"fit t.parquet --target seconds {FIT} -o m.tsl")
    if "id" in names:
        assert "index columns are left out: 'id'" in result.stderr
    assert tessella.load(tmp_path / "m.tsl").feature_names_in_.tolist() == ["a", "b", "c"]


def test_errors_name_the_column_and_the_remedy(fails, trips, tmp_path):
    fit = f"fit trips {FIT} -o m.tsl"
    fails(f"{fit} --target seconds", "'kind' has the type", "--drop", "--model automatic")
    fails(f"{fit} --target second", "no column 'second'", "'seconds'")
    fails(f"{fit} --target seconds --drop kinds", "no column 'kinds'")
    fails(f"{fit} --target kind --task regression --drop seconds", "'kind' is text")
    fails(f"{fit} --target a --drop b --drop c --drop kind --drop seconds", "no column except")
    fails("fit trips --target seconds -o m.tsl", "this is a folder", "--max-leaf-rows 5000")
    fails("fit trips --target seconds --max-leaf-rows 100 -o m.tsl", "an option of --model learned")
    fails(f"fit no.parquet --target a {FIT} -o m.tsl", "no.parquet: the file does not exist")
    (tmp_path / "none").mkdir()
    fails(f"fit none --target a {FIT} -o m.tsl", "none")
    (tmp_path / "bad.parquet").write_bytes(b"nothing")
    fails(f"fit bad.parquet --target a {FIT} -o m.tsl", "bad.parquet", "damaged")
    trips["one"] = 1.0
    trips.drop(columns="kind").to_parquet(tmp_path / "one.parquet")
    fails(f"fit one.parquet --target one {FIT} -o m.tsl", "every value of the target 'one'")
    trips.loc[250, "b"] = np.nan
    trips.drop(columns="kind").to_parquet(tmp_path / "gap.parquet")
    fails(f"fit gap.parquet --target seconds {FIT} -o m.tsl", "'b'", "row 250")


def test_parts_count_the_rows_of_the_file(run, fails, trips, tmp_path, monkeypatch):
    run(f"fit trips --target seconds --drop kind {FIT} -o m.tsl")
    whole = predicted(run("predict m.tsl trips").stdout)
    monkeypatch.setattr(_tables, "_PART_ROWS", 50)
    np.testing.assert_allclose(predicted(run("predict m.tsl trips").stdout), whole, rtol=1e-9)
    trips.loc[250, "b"] = np.nan
    trips[["a", "b", "c"]].to_parquet(tmp_path / "gap.parquet")
    fails("predict m.tsl gap.parquet", "column 'b', row 251: missing value")
    trips.loc[:-1, ["a", "b", "c"]].to_parquet(tmp_path / "empty.parquet")
    fails("predict m.tsl empty.parquet", "no rows")


def test_info_shows_leaves_and_trees(run, trips):
    run(f"fit trips --target seconds --drop kind {FIT} -o m.tsl")
    told = json.loads(run("info m.tsl --json").stdout)
    partition = tessella.load("m.tsl").leaves_.partition
    assert (told["leaves"], told["trees"]) == (partition.n_leaves, partition.n_trees)
    assert re.search(r"trees +│ 2 ", run("info m.tsl").stdout)


def test_progress_tells_phases_and_leaves(run, trips, monkeypatch):
    for name, value in {"FORCE_COLOR": "1", "TERM": "xterm-256color", "COLUMNS": "200"}.items():
        monkeypatch.setenv(name, value)
    result = run(f"fit trips --target seconds --drop kind {FIT} -o m.tsl")
    assert "preparing" in result.stderr
    monitor = _Phases()
    source = ParquetSource("trips", "seconds", features=["a", "b", "c"])
    tessella.LearnedKernelSVR(max_leaf_rows=100, tol=0.05)._fit(source, None, None, monitor)
    assert "leaves of at most 100 rows" in monitor.texts
    assert any("GiB" in text for text in monitor.texts)


class _Phases(tessella.solvers.Monitor):
    def __init__(self):
        self.texts = []

    def phase(self, text):
        self.texts.append(text)

    note = phase
