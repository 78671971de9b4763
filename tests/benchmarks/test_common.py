from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import _common
import numpy as np
import pytest
from sklearn.metrics import accuracy_score, mean_squared_error, r2_score
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_predict

from tessella import LearnedKernelSVC, LearnedKernelSVR, TessellatedKernels
from tessella.estimators import paper_settings


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Data sets with the names that need special care, and one that does not."""
    rng = np.random.default_rng(0)
    entries = []
    for name, task, columns in [
        ("plain", "classification", "a,b,target"),
        ("abalone", "classification (or regression)", "a,b,target"),
        ("gas_turbine", "regression", "a,b,CO,NOX"),
    ]:
        table = rng.integers(1, 20, (40, columns.count(",") + 1)).astype(float)
        if name == "plain":
            table[:, -1] = np.where(table[:, -1] > 10, 1, -1)
        np.savetxt(tmp_path / f"{name}.csv.gz", table, "%g", ",", header=columns, comments="")
        entries.append({"name": name, "file": f"{name}.csv.gz", "task": task})
    (tmp_path / "MANIFEST.json").write_text(json.dumps({"sets": entries}))
    monkeypatch.setenv("TESSELLA_DATA", str(tmp_path))
    return tmp_path


def make_data(task, m=60, seed=0):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.random((m, 2)), np.full(m, 3.0)])  # a constant column
    y = 7.0 + 4.0 * (np.sin(5 * X[:, 0]) + X[:, 1] + 0.2 * rng.standard_normal(m))
    data = _common.Dataset("synthetic", "regression", X, y)
    data = data if task == "regression" else data.split_at_median()
    return _common.Dataset(  # rows 0 to 4 twice
        "synthetic", task, np.vstack([data.X, data.X[:5]]), np.append(data.y, data.y[:5])
    )


@pytest.mark.parametrize("value", [None, "/no/such/folder"])
def test_without_data_says_what_to_do_and_exits_with_2(value, monkeypatch, capsys):
    monkeypatch.delenv("TESSELLA_DATA", raising=False)
    if value:
        monkeypatch.setenv("TESSELLA_DATA", value)
    with pytest.raises(SystemExit) as stop:
        _common.load("boston")
    assert stop.value.code == 2
    assert "export TESSELLA_DATA=" in capsys.readouterr().err


def test_unknown_set_exits_with_2(folder):
    with pytest.raises(SystemExit) as stop:
        _common.load("nonesuch")
    assert stop.value.code == 2


def test_targets(folder):
    read = {name: np.loadtxt(folder / f"{name}.csv.gz", delimiter=",", skiprows=1)
            for name in ("plain", "abalone", "gas_turbine")}  # fmt: skip
    plain, abalone, turbine = (_common.load(name) for name in read)
    assert (plain.task, abalone.task, turbine.task) == (*2 * ["classification"], "regression")
    np.testing.assert_array_equal(plain.X, read["plain"][:, :2])
    np.testing.assert_array_equal(plain.y, read["plain"][:, 2])
    np.testing.assert_array_equal(abalone.y > 0, read["abalone"][:, 2] >= 9)
    assert set(abalone.y) == {-1.0, 1.0}
    np.testing.assert_array_equal(turbine.X, read["gas_turbine"][:, :2])  # without CO
    np.testing.assert_array_equal(turbine.y, read["gas_turbine"][:, 3])  # NOX


def test_row_cap_is_reproducible_and_depends_on_the_seed(folder):
    few = _common.load("plain", rows=15, seed=3)
    again = _common.load("plain", rows=15, seed=3)
    other = _common.load("plain", rows=15, seed=4)
    assert len(few.y) == len(few.X) == 15
    np.testing.assert_array_equal(few.X, again.X)
    assert not np.array_equal(few.X, other.X)
    assert len(_common.load("plain", rows=1000).y) == 40


@pytest.mark.parametrize(
    ("task", "estimator"),
    [("classification", LearnedKernelSVC), ("regression", LearnedKernelSVR)],
)
def test_saddle_point_is_that_of_the_estimator(task, estimator):
    data = make_data(task)
    kernels = TessellatedKernels(delta=0.3)
    model = estimator(**{**paper_settings(task), "C": 5.0, "kernels": kernels, "tol": 1e-7})
    model.fit(data.X, data.y)
    problem = _common.saddle_point(data, kernels, 5.0)
    result, seconds = _common.solve("auto", problem, tol=1e-7, time_limit=None)
    assert problem.dual.size == len(data.y) - 5
    # The objective of a model is what its predictions attain, which rounds.
    assert result.value == pytest.approx(model.objective_, rel=1e-9)
    assert result.bound == pytest.approx(model.lower_bound_, rel=1e-12)
    assert seconds > 0


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_cross_validation_scores(task):
    data, kernels = make_data(task), TessellatedKernels()
    found = _common.cross_validate(data, kernels, 2.0, seed=1)
    if task == "classification":
        model, folds = LearnedKernelSVC(C=2.0), StratifiedKFold(2, shuffle=True, random_state=1)
    else:
        model = LearnedKernelSVR(C=2.0, epsilon=0.1)
        folds = KFold(2, shuffle=True, random_state=1)
    predicted = cross_val_predict(model, data.X, data.y, cv=folds)
    if task == "classification":
        assert found["score"] == found["accuracy"] == accuracy_score(data.y, predicted)
    else:
        assert found["mse"] == pytest.approx(mean_squared_error(data.y, predicted))
        assert found["r2"] == pytest.approx(r2_score(data.y, predicted))
        assert found["score"] == -found["mse"]
    assert 0 <= found["gap"] <= 1e-3
    assert found["steps"] > 0
    assert found["fit_seconds"] > 0


def test_numerical_rank():
    assert _common.numerical_rank(np.diag([1.0, 2e-4, 5e-5, 0.0])) == 2


def test_every_script_finds_what_it_imports():
    """Most of them run too long for a test; a renamed module of the library shows here."""
    scripts = Path(_common.__file__).parent
    names = sorted(path.stem for path in scripts.glob("*.py"))
    command = f"import importlib\nfor name in {names}: importlib.import_module(name)"
    done = subprocess.run(
        [sys.executable, "-c", command], cwd=scripts, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
