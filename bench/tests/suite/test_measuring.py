"""Cells of the suite: plans, processes, caps, and what is measured again."""

import io
import json
import sys
from dataclasses import asdict

import numpy as np
import pytest

from tessella.datasets import DataError
from tessella_bench import Cell, CellStore, Settings, _engine, _worker, fill
from tessella_bench._cells import Recipe
from tessella_bench._engine import PROCESSOR
from tessella_bench.suite import divide, load_table, make_suite_plan

USUAL, FIRST = "fake_suite_methods:usual", "fake_suite_methods:first"


def plan_of(*methods, datasets=("paints", "prices"), **more):
    return make_suite_plan(datasets, methods, **more)


def test_important_methods_have_all_sets_before_the_next_begins(suite_home):
    plan = plan_of(USUAL, FIRST, datasets=["prices", "tiny"], splits=2)
    first, second = plan.groups()  # no set is large enough for 4,000 rows
    names = [(cell.method, cell.dataset, cell.split, cell.rows) for cell in first]
    assert names == [
        *[(USUAL, "tiny", 0, 1000), (USUAL, "prices", 0, 1000)],
        *[(FIRST, "tiny", 0, 1000), (FIRST, "prices", 0, 1000)],
    ]
    assert {cell.split for cell in second} == {1}
    assert plan.cells() == [*first, *second]
    assert plan.weight(first[0]) == 32**1.5


def test_large_sets_have_one_division_at_the_larger_size(suite_home):
    rng = np.random.default_rng(0)
    table = rng.random((5000, 2))
    np.savetxt(suite_home / "wide.csv", table, "%.6g", ",", header="a,target", comments="")
    manifest = json.loads((suite_home / "MANIFEST.json").read_text())
    manifest["sets"].append({"name": "wide", "file": "wide.csv", "task": "regression"})
    (suite_home / "MANIFEST.json").write_text(json.dumps(manifest))
    cells = plan_of(USUAL, datasets=["wide", "prices"]).cells()
    assert sorted((c.dataset, c.rows, c.split) for c in cells) == [
        *[("prices", 1000, 0), ("prices", 1000, 1), ("prices", 1000, 2)],
        *[("wide", 1000, 0), ("wide", 1000, 1), ("wide", 1000, 2)],
        ("wide", 4000, 0),
    ]


def test_plans_that_cannot_be_are_refused_before_any_work(suite_home):
    with pytest.raises(DataError, match="paint"):
        plan_of(USUAL, datasets=["paint"])
    with pytest.raises(ValueError, match="splits=0"):
        plan_of(USUAL, splits=0)
    with pytest.raises(ValueError, match="cannot be used: /no/such/python cannot be run"):
        plan_of("forest", pythons={"forest": "/no/such/python"})
    with pytest.raises(ValueError, match="clock='sun' must be"):
        Settings(clock="sun")


def test_sets_and_methods_that_are_missing_are_told(suite_home):
    plan = make_suite_plan(None, None, pythons={"": "/no/such/python"})
    assert [data.name for data in plan.sets] == ["paints", "prices"]
    assert plan.methods == ()
    assert sum("is left out" in sentence for sentence in plan.left_out) == 17 + 12


def test_interpreters_of_methods_and_variants(suite_home):
    other = {"": sys.executable}
    plan = plan_of("forest", pythons=other, variants={"forest/few": Recipe(1, {"a": 1})})
    assert {name: r.python for name, r in plan.recipes.items()} == {
        "forest": sys.executable,
        "forest/few": sys.executable,
    }
    assert plan.recipes["forest/few"].options == {"a": 1}


# --------------------------------------------------------------------------------------- worker


def measure(method, dataset, split=0, options=None):
    answer = io.StringIO()
    cell = Cell(dataset, method, split, 1000)
    request = {"cell": asdict(cell), "data_home": None, "options": options}
    record = _worker.measure(request, answer)
    return record, [json.loads(line)["event"] for line in answer.getvalue().splitlines()]


def test_worker_measures_a_regression(suite_home):
    record, events = measure(USUAL, "prices", 1)
    table = load_table("prices")
    train, test = divide("regression", table.y, 1000, 1)
    error = np.mean((table.y[test] - table.y[train].mean()) ** 2) / np.var(table.y[test])
    assert events == ["ready", "fitted"]
    assert record["status"] == "ok"
    assert record["error"] == pytest.approx(error)
    assert record["r2"] == pytest.approx(1 - error)
    shape = ("table_rows", "train_rows", "test_rows", "features", "text_features", "classes")
    assert [record[key] for key in shape] == [60, 48, 12, 3, 1, None]
    assert "log_loss" not in record
    assert record["params"]["columns"] == ["size", "count", "colour"]
    assert record["params"]["members"][0]["family"] == "gauss"
    assert record["processor_seconds"] >= 0
    json.dumps(record)


def test_worker_measures_a_classification(suite_home):
    record, _ = measure(USUAL, "paints")
    table = load_table("paints")
    train, test = divide("classification", table.y, 1000, 0)
    classes, counts = np.unique(table.y[train], return_counts=True)
    right = np.mean(table.y[test] == classes[counts.argmax()])
    assert record["accuracy"] == pytest.approx(right)
    assert record["log_loss"] == pytest.approx(-(1 - right) * np.log(1e-6), rel=1e-3)
    assert record["classes"] == 5
    plain, _ = measure(FIRST, "paints")
    assert "log_loss" not in plain
    assert plain["division"] == record["division"]


def test_options_reach_the_method(suite_home):
    record, _ = measure(USUAL, "prices", options={"shift": 100.0})
    assert record["params"]["shift"] == 100.0
    assert record["error"] > 100
    wrong, _ = measure(USUAL, "prices", options={"no_such": 1})
    assert wrong["status"] == "failed"
    assert "no_such" in wrong["error"]


# --------------------------------------------------------------------------------------- engine


def test_process_is_ended_after_its_processor_seconds(suite_home):
    pytest.importorskip("resource")
    settings = Settings(1.0, clock=PROCESSOR)
    cell = Cell("prices", "fake_suite_methods:endless", 0, 1000)
    assert _engine.run_in_process(cell, settings, _engine.Stop()) == {"status": "time-cap"}


def test_process_of_another_interpreter_and_with_options(suite_home):
    recipe = Recipe(options={"shift": 2.0}, python=sys.executable)
    settings = Settings(60.0, recipes={USUAL: recipe}, clock=PROCESSOR)
    record = _engine.run_in_process(Cell("prices", USUAL, 0, 1000), settings, _engine.Stop())
    assert record["status"] == "ok"
    assert record["params"]["shift"] == 2.0
    assert record["versions"]["numpy"] == np.__version__


def test_cells_with_another_recipe_are_measured_again(suite_home, tmp_path):
    store, plan, asked = CellStore(tmp_path / "cells"), plan_of(USUAL, datasets=["prices"]), []

    def runner(cell, settings, stop):
        asked.append(cell)
        return {"status": "ok"}

    def run(**recipes):
        asked.clear()
        settings = Settings(recipes={USUAL: Recipe(**recipes)})
        fill(plan, store, settings, lambda *_: None, runner)
        return len(asked)

    assert run() == 3
    assert run() == 0
    assert run(python="/another/python") == 0
    assert run(edition=2) == 3
    assert run(edition=2, options={"a": 1}) == 3
    assert run(edition=2, options={"a": 1}) == 0
    files = sorted(path.name for path in (tmp_path / "cells/prices").iterdir())
    assert files == [f"fake_suite_methods_usual-1000-{split}.json" for split in range(3)]
    store.forget(asked[0] if asked else Cell("prices", USUAL, 1, 1000))
    assert run(edition=2, options={"a": 1}) == 1
