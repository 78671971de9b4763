"""The commands with an automatic model, which takes a table as it comes."""

import json
import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tessella
from tessella.automatic import TessellaClassifier, TessellaRegressor
from tessella.persistence import read_info

FIT = "fit train.csv --effort low -o model.tsl"
FEATURES = ["area", "town", "sold", "code", "garden"]


@pytest.fixture(scope="session")
def houses():
    """Numbers, text, dates, codes and booleans, with gaps, and two targets."""
    rng = np.random.default_rng(5)
    n = 60
    table = pd.DataFrame(
        {
            "area": rng.uniform(20, 200, n).round(1),
            "town": rng.choice(["Ulm", "Bern", "Wien"], n),
            "sold": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 999, n), "D"),
            "code": rng.integers(1, 5, n),
            "garden": rng.random(n) < 0.5,
        }
    )
    days = (table["sold"] - pd.Timestamp("2020-01-01")).dt.days
    price = 3 * table["area"] + 90 * (table["town"] == "Ulm") + days / 5 + 40 * (table["code"] == 2)
    table["price"] = price.round(1)
    table["group"] = np.where(price > price.median(), "dear", "cheap")
    table["town"] = table["town"].mask(rng.random(n) < 0.1)
    table["area"] = table["area"].mask(rng.random(n) < 0.1)
    table["sold"] = table["sold"].mask(rng.random(n) < 0.1)
    return table


@pytest.fixture
def table(houses, tmp_path):
    houses.to_csv(tmp_path / "train.csv", index=False)
    return houses


@pytest.fixture
def model(run, table, tmp_path):
    """A regressor that was fitted by the command."""
    assert run(f"{FIT} --target price --drop group --categorical code").exit_code == 0
    return tmp_path / "model.tsl"


def as_given(table):
    """The table as the command reads it: codes as text."""
    return table[FEATURES].assign(code=table["code"].astype(str))


def test_regression_is_that_of_python(run, table, tmp_path):
    result = run(f"{FIT} --target price --drop group --categorical code --jobs 1")
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    assert "regression (the target has" in result.stdout
    assert "5 (2 numbers, 1 date, 2 categories)" in result.stdout
    assert "leave-one-out R²" in result.stdout
    expected = TessellaRegressor(effort="low", n_jobs=1).fit(as_given(table), table["price"])
    assert f"{expected.loo_score_:.4f}" in result.stdout
    result = run("predict model.tsl train.csv --interval 0.8 -o out.csv")
    assert "columns that the model does not use: 'price', 'group'" in result.stderr
    out = pd.read_csv(tmp_path / "out.csv")
    assert out.columns.tolist() == ["prediction", "lower", "upper"]
    np.testing.assert_allclose(out["prediction"], expected.predict(as_given(table)), rtol=1e-12)
    ends = expected.predict_interval(as_given(table), coverage=0.8)
    np.testing.assert_allclose(out[["lower", "upper"]], ends, rtol=1e-12)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_classification_is_that_of_python(suffix, run, houses, tmp_path):
    if suffix == "csv":
        houses.to_csv(tmp_path / "train.csv", index=False)
    else:
        houses.to_parquet(tmp_path / "train.parquet")
    result = run(FIT.replace("csv", suffix), "--target group --drop price")
    assert result.exit_code == 0, result.output
    assert "classification (the target is text)" in result.stdout
    assert "leave-one-out accuracy" in result.stdout
    labels = houses["group"].to_numpy(dtype=str)
    expected = TessellaClassifier(effort="low").fit(houses[FEATURES], labels)
    assert run(f"predict model.tsl train.{suffix} --proba -o out.csv").exit_code == 0
    out = pd.read_csv(tmp_path / "out.csv")
    assert out.columns.tolist() == ["prediction", "probability cheap", "probability dear"]
    assert out["prediction"].tolist() == expected.predict(houses[FEATURES]).tolist()
    values = out.drop(columns="prediction").to_numpy()
    np.testing.assert_allclose(values, expected.predict_proba(houses[FEATURES]), rtol=1e-9)
    plain = run(f"predict model.tsl train.{suffix}").stdout
    assert plain.splitlines()[0] == "prediction"


def test_two_numbers_are_classes_and_few_whole_numbers_may_be(run, table, tmp_path):
    table.assign(y=table["group"].eq("dear").astype(int)).to_csv("train.csv", index=False)
    assert "classification (the target has two values)" in run(f"{FIT} --target y").stdout
    result = run(f"{FIT} --target code --force")
    assert "regression (the target has 4 distinct numbers; if" in result.stdout
    assert "--task" in result.stdout
    result = run(f"{FIT} --target code --task classification --force")
    assert "classification (as given by --task)" in result.stdout
    assert result.stderr == ""


def test_a_model_of_the_command_in_python(model, houses):
    estimator = tessella.load(model)
    assert estimator.score(as_given(houses), houses["price"]) > 0.8
    assert read_info(model)["feature_names"] == FEATURES
    metadata = {"features": FEATURES, "target": "price", "task": "regression"}
    assert read_info(model)["metadata"] == metadata


def test_new_tables(run, fails, model, houses, tmp_path):
    """Other orders, other columns, only gaps, categories that look like numbers, new categories."""
    expected = tessella.load(model).predict(as_given(houses))
    names = ["code", "note", "sold", "garden", "town", "area"]
    houses.assign(note="x")[names].to_csv("new.csv", index=False)
    result = run("predict model.tsl new.csv")
    assert result.exit_code == 0, result.output
    assert "does not use: 'note'" in result.stderr
    np.testing.assert_allclose(np.array(result.stdout.split()[1:], dtype=float), expected)
    empty = pd.DataFrame({name: [None, None] for name in FEATURES})
    empty.to_csv("new.csv", index=False)
    values = np.array(run("predict model.tsl new.csv").stdout.split()[1:], dtype=float)
    assert np.isfinite(values).all()
    assert values[0] == values[1]
    houses[FEATURES].assign(town="7").to_csv("new.csv", index=False)
    values = run("predict model.tsl new.csv").stdout.split()[1:]
    others = as_given(houses).assign(town="Nowhere")
    np.testing.assert_allclose(
        np.array(values, dtype=float), tessella.load(model).predict(others), rtol=1e-12
    )
    houses[FEATURES].drop(columns=["area", "sold"]).to_csv("new.csv", index=False)
    fails("predict model.tsl new.csv", "the columns 'area', 'sold' are missing")
    houses[FEATURES].rename(columns={"town": "towns"}).to_csv("new.csv", index=False)
    fails("predict model.tsl new.csv", "there is no column 'town'; did you mean 'towns'?")


@pytest.mark.parametrize(
    ("column", "value", "text"),
    [
        ("area", "?", "column 'area', line 2: '?' is not a number"),
        ("area", "inf", "column 'area', line 2: infinite value"),
        ("sold", "soon", "column 'sold', line 2: 'soon' is not a date"),
        ("sold", "3", "column 'sold', line 2: '3.0' is not a date"),
        ("garden", "perhaps", "column 'garden', line 2: 'perhaps' is not a number"),
        ("area", "2020-01-01", "is not a number"),
    ],
)
def test_values_of_another_kind(column, value, text, fails, model, houses):
    houses[FEATURES][:2].assign(**{column: value}).to_csv("new.csv", index=False)
    fails("predict model.tsl new.csv", text)


def test_dates_that_are_not_recognised_at_once(run, model, houses, tmp_path):
    """Several ISO formats in one column, and booleans as text."""
    new = as_given(houses)[:3].assign(garden=["true", "false", "True"])
    new["sold"] = ["2020-05-01", "2020-05-02T10:30", "2020-05-03"]
    table = pa.table({name: new[name].tolist() for name in FEATURES})
    pq.write_table(table, tmp_path / "new.parquet")
    values = np.array(run("predict model.tsl new.parquet").stdout.split()[1:], dtype=float)
    new["sold"] = np.array(["2020-05-01", "2020-05-02T10:30", "2020-05-03"], "M8[ns]")
    new["garden"] = [True, False, True]
    np.testing.assert_allclose(values, tessella.load(model).predict(new), rtol=1e-12)


def test_times_of_day(run, tmp_path):
    rows = "".join(f"{k % 24:02d}:{7 * k % 60:02d}:00,{(k % 24) ** 2 + k % 3}\n" for k in range(60))
    (tmp_path / "train.csv").write_text("at,y\n" + rows)
    result = run(f"{FIT} --target y")
    assert result.exit_code == 0, result.output
    assert "1 (1 date)" in result.stdout
    assert tessella.load(tmp_path / "model.tsl").loo_score_ > 0.9


def test_model_without_column_names(run, fails, houses, tmp_path):
    X, y = houses[["area"]].to_numpy(), houses["price"]
    estimator = TessellaRegressor(effort="low").fit(X, y)
    estimator.save(tmp_path / "model.tsl")
    houses[["area"]].to_csv("new.csv", index=False)
    values = np.array(run("predict model.tsl new.csv").stdout.split()[1:], dtype=float)
    np.testing.assert_allclose(values, estimator.predict(X))
    houses[FEATURES].to_csv("new.csv", index=False)
    fails("predict model.tsl new.csv", "needs 1 columns in the order of the training data")


# ------------------------------------------------------------------------------------ options


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ("--C 3", "--C is an option of --model learned-kernel, but this is --model automatic"),
        ("--tol 1e-2 --degree 2", "--degree, --tol are options of --model learned-kernel"),
        (
            "--model learned-kernel",
            "--effort is an option of --model automatic, but this is --model learned-kernel",
        ),
        ("--effort huge", "effort='huge' is unknown; use one of ('low', 'medium', 'high')"),
        ("--time-limit 0", "time_limit=0.0 must be a positive"),
        ("--jobs 0", "n_jobs=0"),
        ("--categorical towm", "there is no column 'towm'; did you mean 'town'?"),
        ("--categorical price", "--categorical price: this column is not a feature"),
        ("--drop town --categorical town", "--categorical town: this column is not a feature"),
    ],
)
def test_options_that_are_refused(options, text, fails, table, tmp_path):
    fails(f"{FIT} --target price {options}", text)
    assert not (tmp_path / "model.tsl").exists()


def test_options_of_predictions_that_a_model_does_not_have(run, fails, model, houses):
    houses.to_csv("new.csv", index=False)
    fails("predict model.tsl new.csv --proba", "TessellaRegressor has no probabilities")
    for value in ("0", "1", "1.5", "nan"):
        fails(f"predict model.tsl new.csv --interval {value}", "must be between 0 and 1")
    houses[["garden", "code", "group"]].to_csv("train.csv", index=False)
    command = "fit train.csv --model learned-kernel --target group -o svm.tsl"
    assert run(command).exit_code == 0
    fails("predict svm.tsl new.csv --proba", "LearnedKernelSVC has no probabilities")
    fails("predict svm.tsl new.csv --interval 0.9", "LearnedKernelSVC has no intervals")


def test_columns_that_no_model_takes(fails, tmp_path):
    table = pa.table({"a": [[1], [2], [3]], "y": [1.0, 2.0, 4.0]})
    pq.write_table(table, tmp_path / "train.parquet")
    command = FIT.replace("csv", "parquet")
    fails(f"{command} --target y", "column 'a', row 1: is of type list", "--drop")
    table = pa.table({"a": [b"\xff", b"\xfe", b"\xfd"], "y": [1.0, 2.0, 4.0]})
    pq.write_table(table, tmp_path / "train.parquet")
    fails(f"{command} --target y", "contains bytes that are not UTF-8 text")
    (tmp_path / "train.csv").write_text("a,y\n1,2\n1e999,3\n2,7\n")
    fails(f"{FIT} --target y", "column 'a', line 3: infinite value")


def test_numbers_written_as_text_name_the_option(fails, run, tmp_path):
    table = pa.table({"a": [str(k) for k in range(30)], "y": [float(k * k) for k in range(30)]})
    pq.write_table(table, tmp_path / "train.parquet")
    command = FIT.replace("csv", "parquet") + " --target y"
    fails(command, "Column 'a' holds numbers written as text", "--categorical")
    assert run(f"{command} --categorical a").exit_code == 0


def test_missing_targets_are_refused(fails, tmp_path):
    (tmp_path / "train.csv").write_text("a,y\n1,2\n2,\n3,4\n")
    fails(f"{FIT} --target y", "column 'y', line 3: missing value")


def test_a_search_that_ends_early_says_so(run, table, tmp_path):
    result = run(f"{FIT} --target price --time-limit 1e-9")
    assert result.exit_code == 0, result.output
    assert "warning: the search ended before everything was tried" in result.stderr
    assert not tessella.load(tmp_path / "model.tsl").search_complete_
    assert "ended before everything was tried" in run("info model.tsl").stdout


def test_progress_goes_to_a_terminal_only(run, table, monkeypatch):
    assert run(f"{FIT} --target price").stderr == ""
    for name, value in {"FORCE_COLOR": "1", "TERM": "xterm-256color", "COLUMNS": "200"}.items():
        monkeypatch.setenv(name, value)
    result = run(f"{FIT} --target price --force")
    written = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", result.stderr)
    assert "machines fitted on" in written
    assert "machines fitted on" not in result.stdout


# --------------------------------------------------------------------------------------- info


def test_info_as_json(run, model):
    description = json.loads(run("info model.tsl --json").stdout)
    estimator = tessella.load(model)
    assert description["estimator"] == "TessellaRegressor"
    assert description["task"] == "regression"
    assert description["loo_score"] == estimator.loo_score_
    assert description["gap"] == estimator.gap_
    assert [own["name"] for own in description["columns"]] == FEATURES
    assert [own["kind"] for own in description["columns"]] == [
        "number",
        "category",
        "date",
        "category",
        "number",
    ]
    rows = estimator.members_[0].machine.space.coordinates
    assert description["distinct_rows"] == len(rows)
    assert {(own["leaves"], own["trees"]) for own in description["members"]} == {(1, 1)}
    relevance = [own["relevance"] for own in description["columns"]]
    np.testing.assert_allclose(relevance, estimator.feature_relevance_)
    assert [own["weight"] for own in description["members"]] == [
        member.share for member in estimator.members_
    ]
    assert [own["error"] for own in description["leaderboard"]] == [
        own["error"] for own in estimator.leaderboard_
    ]


def test_info(run, model):
    result = run("info model.tsl")
    assert result.exit_code == 0, result.output
    for text in ("TessellaRegressor", "leave-one-out R2", "members of the average", "area"):
        assert text in result.stdout
    for text in ("most relevant columns", "leaderboard of the search", "certified gap", "price"):
        assert text in result.stdout


def test_info_of_classes(run, table):
    assert run(f"{FIT} --target group --drop price").exit_code == 0
    result = run("info model.tsl")
    assert "cheap, dear" in result.stdout
    assert "leave-one-out accuracy" in result.stdout
    assert json.loads(run("info model.tsl --json").stdout)["classes"] == ["cheap", "dear"]
