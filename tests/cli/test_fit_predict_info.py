"""From a table to a model file to predictions, and what is in between."""

import json
import os

import numpy as np
import pandas as pd
import pytest

import tessella
from tessella.kernels import Gaussian, Polynomial
from tessella.persistence import read_info
from tessella.progress import ProgressDisplay

FEATURES = ["age", "height", "weight"]
SVM = "--model learned-kernel"
FIT = f"fit train.csv {SVM}"


@pytest.fixture(params=["csv", "csv.gz", "tsv", "parquet"])
def suffix(request):
    return request.param


def write(frame, path):
    if path.suffix == ".parquet":
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False, sep="\t" if path.suffix == ".tsv" else ",")


@pytest.fixture
def model(run, people, tmp_path):
    """A classifier that was fitted by the command."""
    people.drop(columns="income").to_csv(tmp_path / "train.csv", index=False)
    people[FEATURES].to_csv(tmp_path / "new.csv", index=False)
    assert run(f"{FIT} --target group -o model.tsl").exit_code == 0
    return tmp_path / "model.tsl"


def test_classification_round_trip(run, people, tmp_path, suffix):
    write(people.drop(columns="income"), tmp_path / f"train.{suffix}")
    result = run(f"fit train.{suffix} {SVM} --target group -o model.tsl --C 3 --tol 1e-2")
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    for text in ("classification", "40", "support vectors", "training accuracy", "model.tsl"):
        assert text in result.stdout
    result = run(f"predict model.tsl train.{suffix}")
    assert "columns that the model does not use: 'group'" in result.stderr
    (tmp_path / "out.csv").write_text(result.stdout)
    out = pd.read_csv(tmp_path / "out.csv", dtype=str)
    expected = tessella.LearnedKernelSVC(C=3.0, tol=1e-2).fit(
        people[FEATURES].to_numpy(), people["group"].to_numpy(dtype=str)
    )
    X = people[FEATURES].to_numpy()
    assert out.columns.tolist() == ["prediction", "score"]
    assert out["prediction"].tolist() == expected.predict(X).tolist()
    # Text formats are read back to the same bits, so the model is the same one.
    assert out["score"].map(float).tolist() == expected.decision_function(X).tolist()


def test_several_classes_round_trip(run, people, tmp_path):
    thirds = np.digitize(people["income"], [-40.0, 40.0])
    table = people[FEATURES].assign(level=np.array(["low", "mid", "high"])[thirds])
    table.to_csv(tmp_path / "train.csv", index=False)
    result = run(f"{FIT} --target level -o model.tsl")
    assert result.exit_code == 0, result.output
    assert run("predict model.tsl train.csv -o out.csv").exit_code == 0
    out = pd.read_csv(tmp_path / "out.csv", float_precision="round_trip")
    assert out.columns.tolist() == ["prediction", "score high", "score low", "score mid"]
    scores = out.drop(columns="prediction").to_numpy()
    model = tessella.load(tmp_path / "model.tsl")
    np.testing.assert_array_equal(scores, model.decision_function(table[FEATURES]))
    assert out["prediction"].tolist() == model.predict(table[FEATURES]).tolist()
    described = json.loads(run("info model.tsl --json").stdout)
    assert described["classes"] == ["high", "low", "mid"]


def test_regression_round_trip(run, people, tmp_path, suffix):
    table = people[[*FEATURES, "income"]]
    write(table, tmp_path / f"train.{suffix}")
    options = "--epsilon 0.2 --degree 0 --delta 0.3 --max-iter 500 --time-limit 60 --jobs 1"
    result = run(f"fit train.{suffix} {SVM} --target income -o model.tsl {options}")
    assert result.exit_code == 0, result.output
    assert "training R²" in result.stdout
    shuffled = table[["weight", "income", "age", "height"]]
    write(shuffled, tmp_path / f"new.{suffix}")
    assert run(f"predict model.tsl new.{suffix} -o out.csv").exit_code == 0
    out = pd.read_csv(tmp_path / "out.csv", dtype=str)
    expected = tessella.LearnedKernelSVR(
        epsilon=0.2, degree=0, delta=0.3, max_iter=500, time_limit=60.0, n_jobs=1
    ).fit(table[FEATURES].to_numpy(), table["income"].to_numpy())
    assert out.columns.tolist() == ["prediction"]
    assert (
        out["prediction"].map(float).tolist()
        == expected.predict(table[FEATURES].to_numpy()).tolist()
    )


def test_model_of_the_command_in_python(model, people):
    estimator = tessella.load(model)
    assert estimator.score(people[FEATURES], people["group"]) > 0.9
    with pytest.raises(ValueError, match="feature names"):
        estimator.predict(people[FEATURES[::-1]])
    metadata = {"features": FEATURES, "target": "group", "task": "classification"}
    assert read_info(model)["metadata"] == metadata


def test_forced_task(run, fails, people, tmp_path):
    people.assign(group=people["group"].eq("left").astype(int)).to_csv("train.csv", index=False)
    assert "R²" in run(f"{FIT} --target group --task regression -o model.tsl").stdout
    people.to_csv("train.csv", index=False)
    fails(
        f"{FIT} --target group --task regression -o m.tsl",
        "is not a number",
    )
    fails(
        f"{FIT} --target age --task classification -o m.tsl",
        "has 40 classes in 40 rows",
    )
    result = run(f"{FIT} --target group --task guess -o m.tsl")
    assert result.exit_code == 2


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ("--C -1", "C=-1.0 must be a positive finite number."),
        ("--C nan", "C=nan must be a positive finite number."),
        ("--tol 0", "tol=0.0 must be a positive"),
        ("--max-iter -3", "max_iter=-3"),
        ("--time-limit 0", "time_limit=0.0"),
        ("--precision half", "precision='half' is unknown"),
        ("--degree -1", "degree"),
        ("--delta -0.5", "delta"),
        ("--jobs 0", "n_jobs=0"),
        ("--epsilon 0.1", "--epsilon is an option of regression"),
        ("--solver newton", "newton"),
    ],
)
def test_options_out_of_range(options, text, fails, people, tmp_path):
    people.drop(columns="income").to_csv(tmp_path / "train.csv", index=False)
    fails(f"{FIT} --target group -o model.tsl {options}", text)
    assert not (tmp_path / "model.tsl").exists()


def test_output_is_checked_before_anything_is_read(fails, run, tmp_path, monkeypatch):
    # There is no train.csv: who reads first complains of that.
    fit = f"{FIT} --target y -o"
    (tmp_path / "old.tsl").write_text("precious")
    fails(f"{fit} old.tsl", "old.tsl: the file exists already; use --force to replace it")
    fails(f"{fit} missing/model.tsl", "the directory missing does not exist")
    fails(f"{fit} {tmp_path}", "exists and is not a regular file")
    monkeypatch.setattr(os, "access", lambda *args: False)
    fails(f"{fit} model.tsl", "is not writable")
    assert (tmp_path / "old.tsl").read_text() == "precious"


def test_force(run, fails, model, tmp_path):
    (tmp_path / "old.tsl").write_text("old")
    assert run(f"{FIT} --target group -o old.tsl --force").exit_code == 0
    tessella.load(tmp_path / "old.tsl")
    fails(
        f"{FIT} --target group -o train.csv --force",
        "is an input of the command",
    )
    (tmp_path / "out.csv").write_text("old")
    fails("predict model.tsl new.csv -o out.csv", "use --force")
    assert run("predict model.tsl new.csv -o out.csv --force").exit_code == 0
    assert (tmp_path / "out.csv").read_text().startswith("prediction,score\n")
    fails("predict model.tsl new.csv -o new.csv --force", "is an input of the command")
    fails("predict model.tsl new.csv -o out.parquet", "predictions are written as CSV")


def test_no_convergence_is_a_warning(run, model, tmp_path):
    result = run(f"{FIT} --target group -o m.tsl --max-iter 1 --tol 1e-9")
    assert result.exit_code == 0
    assert result.stderr.startswith(
        "tessella: warning: do not use this model: not converged (iteration limit): "
    )
    assert result.stderr.endswith("raise --max-iter or accept a larger --tol\n")
    assert result.stderr.count("\n") == 1
    assert tessella.load(tmp_path / "m.tsl").n_iter_ == 1
    shown = run("info m.tsl")
    assert "✗ Do not use this model: stopped (iteration limit)" in shown.stdout
    assert json.loads(run("info m.tsl --json").stdout)["usable"] is False


def test_info_tells_a_linear_kernel(run, people, tmp_path):
    X, y = people[FEATURES], people["group"]
    tessella.LearnedKernelSVC(kernels="polynomial", degree=1).fit(X, y).save("line.tsl")
    assert "The kernel is linear" in run("info line.tsl").stdout
    described = json.loads(run("info line.tsl --json").stdout)
    assert described["linear_share"] == pytest.approx(1.0)
    assert described["usable"] is True
    tessella.LearnedKernelSVC().fit(X, y).save("curve.tsl")
    assert "The kernel is linear" not in run("info curve.tsl").stdout


def test_interrupt_keeps_the_best_model(run, model, tmp_path, monkeypatch):
    def interrupt(self, record, answer):
        if record.iteration == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(ProgressDisplay, "record", interrupt)
    result = run(f"{FIT} --target group -o m.tsl --tol 1e-9")
    assert result.exit_code == 0
    assert "not converged (interrupted)" in result.stderr
    assert "the best model found so far is kept" in result.stderr
    assert tessella.load(tmp_path / "m.tsl").status_ == "interrupted"


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (KeyboardInterrupt(), 130, "interrupted; nothing was written"),
        (MemoryError("Learning needs 9 GiB"), 2, "Learning needs 9 GiB"),
        (MemoryError(), 2, "not enough memory"),
        (OSError(28, "No space left on device", "m.tsl"), 2, "m.tsl: No space left on device"),
        (ValueError("two\nlines"), 2, "two lines"),
    ],
    ids=lambda value: str(value),
)
def test_errors_of_the_fit(error, code, text, fails, model, tmp_path, monkeypatch):
    def fail(*args):
        raise error

    monkeypatch.setattr(tessella.LearnedKernelSVC, "_fit", fail)
    fails(f"{FIT} --target group -o m.tsl", text, code=code)
    assert not (tmp_path / "m.tsl").exists()


# ------------------------------------------------------------------------------------ predict


def test_columns_of_new_data(fails, run, model, people, tmp_path):
    new = people[FEATURES].assign(name="text", note=None)
    new[["note", "weight", "name", "height", "age"]].to_csv(tmp_path / "odd.csv", index=False)
    result = run("predict model.tsl odd.csv")
    assert result.exit_code == 0
    assert result.stderr.count("\n") == 1
    assert "note: odd.csv: columns that the model does not use: 'note', 'name'" in result.stderr
    assert result.stdout == run("predict model.tsl new.csv").stdout
    new.drop(columns=["age", "weight"]).to_csv(tmp_path / "odd.csv", index=False)
    fails("predict model.tsl odd.csv", "the columns 'age', 'weight' are missing")
    new.rename(columns={"height": "hight"}).to_csv(tmp_path / "odd.csv", index=False)
    fails("predict model.tsl odd.csv", "no column 'height'", "did you mean 'hight'")
    new[FEATURES].assign(age="?").to_csv(tmp_path / "odd.csv", index=False)
    fails("predict model.tsl odd.csv", "column 'age', line 2: '?' is not a number")


def test_model_without_column_names(fails, run, people, tmp_path):
    X, y = people[FEATURES].to_numpy(), people["income"].to_numpy()
    estimator = tessella.LearnedKernelSVR().fit(X, y)
    tessella.save(estimator, tmp_path / "model.tsl")
    people[FEATURES].to_csv("new.csv", index=False)
    lines = run("predict model.tsl new.csv").stdout.splitlines()
    assert [float(line) for line in lines[1:]] == estimator.predict(X).tolist()
    people.to_csv("new.csv", index=False)
    fails(
        "predict model.tsl new.csv",
        "needs 3 columns in the order of the training data, but there are 5",
    )


def test_model_with_names_from_pandas(run, people, tmp_path):
    estimator = tessella.LearnedKernelSVR().fit(people[FEATURES], people["income"])
    tessella.save(estimator, tmp_path / "model.tsl")
    people[FEATURES[::-1]].to_csv("new.csv", index=False)
    result = run("predict model.tsl new.csv")
    assert result.stderr == ""
    values = np.array(result.stdout.split()[1:], dtype=float)
    assert values.tolist() == estimator.predict(people[FEATURES]).tolist()


@pytest.mark.parametrize("command", ["predict model.tsl new.csv", "info model.tsl"])
def test_bad_model_files(command, fails, model, tmp_path):
    whole = model.read_bytes()
    model.write_bytes(whole[: len(whole) // 2])
    fails(command, "model.tsl: truncated file.")
    model.write_bytes(b"a,b\n1,2\n")
    fails(command, "model.tsl: not a Tessella model file.")
    model.write_bytes(whole.replace(b'"C": 10.0', b'"C": 10.5'))
    fails(command, "model.tsl: ")
    model.unlink()
    fails(command, "model.tsl: No such file or directory")


# --------------------------------------------------------------------------------------- info


def test_info(run, model):
    result = run("info model.tsl")
    assert result.exit_code == 0
    for text in ("LearnedKernelSVC", "classification", "left, right", "tessellated", "rank of P"):
        assert text in result.stdout
    for text in ("age, height, weight", "optimal", "degree=1", tessella.__version__):
        assert text in result.stdout


def test_info_as_json(run, model):
    description = json.loads(run("info model.tsl --json").stdout)
    estimator = tessella.load(model)
    assert description["rows"] == 40
    assert description["features"] == 3
    assert description["feature_names"] == FEATURES
    assert description["target"] == "group"
    assert description["side_of_P"] == len(estimator.P_)
    assert 1 <= description["rank_of_P"] <= len(estimator.P_)
    assert description["gap"] == estimator.gap_
    assert description["svm_solves"] == estimator.history_[-1].n_svm
    assert description["newton_steps"] == estimator.history_[-1].n_newton
    assert description["seconds"] == estimator.history_[-1].time
    assert description["support_vectors"] == len(estimator.support_)
    assert description["parameters"]["C"] == estimator.C


def test_info_of_a_model_from_python(run, people, tmp_path):
    kernels = tessella.PolynomialKernels(degree=2)
    estimator = tessella.LearnedKernelSVC(
        kernels=kernels, class_weight={0: 2.0}, max_iter=1, tol=10.0
    )
    estimator.fit(people[FEATURES].to_numpy(), (people["group"] == "left").astype(int))
    estimator.lower_bound_, estimator.gap_ = -np.inf, np.inf
    tessella.save(estimator, tmp_path / "model.tsl")
    description = json.loads(run("info model.tsl --json").stdout)
    assert description["parameters"]["kernels"] == {"family": "polynomial", "degree": 2}
    assert description["parameters"]["class_weight"] == {"0": 2.0}
    assert description["gap"] is None
    assert run("info model.tsl").exit_code == 0


def test_info_of_weights_and_sums(run, people, tmp_path):
    X, y = people[FEATURES], people["group"]
    few = [Gaussian(1.0), Polynomial(2, features=(0, 1))]
    model = tessella.MultipleKernelSVC(kernels=few).fit(X, y)
    model.save(tmp_path / "weights.tsl")
    description = json.loads(run("info weights.tsl --json").stdout)
    assert description["kernel_family"] == "dictionary"
    assert description["kernel_parameters"] == {"n_kernels": 2}
    assert description["side_of_P"] is None
    assert description["shares_of_parts"] is None
    weights = dict(description["kernel_weights"])
    assert weights["Gaussian(bandwidth=1.0)"] == model.weights_[0]
    assert sum(weights.values()) == pytest.approx(1.0)
    text = run("info weights.tsl").stdout
    assert "kernel weights" in text
    assert "side of P" not in text
    kernels = tessella.TessellatedKernels() + tessella.KernelDictionary(few)
    kernels += tessella.PolynomialKernels(1).on_features([2])
    model = tessella.LearnedKernelSVC(kernels=kernels).fit(X, y)
    model.save(tmp_path / "sum.tsl")
    description = json.loads(run("info sum.tsl --json").stdout)
    parts = description["parameters"]["kernels"]["parts"]
    assert [part["family"] for part in parts] == ["tessellated", "dictionary", "on features"]
    assert parts[1]["kernels"][1] == {
        "kernel": "Polynomial",
        "degree": 2,
        "offset": 1.0,
        "features": [0, 1],
    }
    assert description["side_of_P"] == [8, 2]
    assert len(description["rank_of_P"]) == 2
    shares = dict(description["shares_of_parts"])
    assert shares["KernelDictionary of 2 kernels"] == pytest.approx(model.parameter_[1].sum())
    assert "PolynomialKernels(degree=1) of weight" in shares
    text = run("info sum.tsl").stdout
    for word in ("shares of parts", "kernel weights", "8, 2"):
        assert word in text


def test_prediction_with_a_weighted_sum(run, people, tmp_path):
    model = tessella.MultipleKernelSVC(kernels=[Gaussian(1.0), Polynomial(2)])
    model.fit(people[FEATURES], people["group"]).save(
        tmp_path / "model.tsl", metadata={"target": "group"}
    )
    people[FEATURES].to_csv(tmp_path / "new.csv", index=False)
    assert run("predict model.tsl new.csv -o out.csv").exit_code == 0
    predicted = pd.read_csv(tmp_path / "out.csv")
    assert (predicted.iloc[:, 0] == model.predict(people[FEATURES])).all()


def test_names_in_brackets_are_not_colours(run, people, tmp_path):
    people[FEATURES].rename(columns={"age": "[red]age"}).assign(y=people["income"]).to_csv(
        tmp_path / "train.csv", index=False
    )
    assert run(f"{FIT} --target y -o model.tsl").exit_code == 0
    assert "[red]age" in run("info model.tsl").stdout
