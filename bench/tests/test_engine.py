"""Plans, cells that are kept, and processes that are killed."""

import io
import json
import os
import signal
import threading
from dataclasses import asdict, replace

import numpy as np
import pytest

from tessella.datasets import DataError, describe, load
from tessella_bench import (
    Cell,
    CellStore,
    Settings,
    _engine,
    _methods,
    _worker,
    fill,
    make_plan,
    stored_plan,
)
from tessella_bench._cells import PROTOCOL

AVERAGE, NEIGHBOUR = "fake_methods:average", "fake_methods:neighbour"


@pytest.fixture
def store(tmp_path):
    return CellStore(tmp_path / "cells")


def plan_of(*methods, datasets=("tiny",), splits=2, task="all"):
    return make_plan(task, datasets, methods, splits)


class Runner:
    """Instead of processes: remembers what it was asked for, answers as told."""

    def __init__(self, **answers):
        self.asked = []
        self.answers = answers

    def __call__(self, cell, settings, stop):
        self.asked.append(cell)
        answer = self.answers.get(cell.dataset, {"status": "ok", "score": 1.0})
        if isinstance(answer, BaseException):
            raise answer
        return answer


def run(plan, store, runner, cap=10.0, jobs=1):
    seen = []

    def watch(cell, record, how):
        seen.append((cell.dataset, cell.method, cell.split, how))

    fill(plan, store, Settings(cap, jobs), watch, runner)
    return seen


# ----------------------------------------------------------------------------------------- plans


def test_cells_in_order_small_sets_and_first_divisions_first(home):
    plan = plan_of(AVERAGE, NEIGHBOUR, datasets=["tiny", "slope"])
    assert [data.name for data in plan.sets] == ["tiny", "slope"]
    cells = plan.cells()
    assert len(cells) == 8
    assert [(c.method, c.split) for c in cells[:3]] == [(AVERAGE, 0), (NEIGHBOUR, 0), (AVERAGE, 1)]
    assert plan.weight(cells[0]) == 40**1.5


def test_plans_that_cannot_be_are_refused_before_any_work(home):
    with pytest.raises(DataError, match="Did you mean 'tiny'"):
        plan_of(AVERAGE, datasets=["tinny"])
    with pytest.raises(ValueError, match="'tiny' is a classification, and regression was asked"):
        plan_of(AVERAGE, task="regression")
    with pytest.raises(ValueError, match=r"no method 'xgbost'; known are tkl, .*xgboost"):
        plan_of("xgbost")
    with pytest.raises(ValueError, match="cannot be loaded"):
        plan_of("fake_methods:nonesuch")
    with pytest.raises(ValueError, match="splits=0"):
        plan_of(AVERAGE, splits=0)


def test_what_is_missing_is_told_or_refused(home, monkeypatch):
    method = replace(_methods.METHODS["xgboost"], needs="no_such_module")
    monkeypatch.setattr(_methods, "METHODS", {"xgboost": method})
    monkeypatch.setattr(_methods, "_ALL", (method,))
    with pytest.raises(ValueError, match="XGBoost needs the module 'no_such_module'"):
        plan_of("xgboost")
    plan = make_plan("classification", ["tiny"])
    assert plan.methods == ()
    assert any("xgboost is left out" in sentence for sentence in plan.left_out)
    with pytest.raises(DataError, match=r"nothing to measure.* fourclass is left out"):
        make_plan("classification", None, [AVERAGE])  # none of the paper's sets is here


@pytest.mark.parametrize("wrong", [{"time_cap": 0}, {"time_cap": float("nan")}, {"jobs": 0}])
def test_settings(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Settings(**wrong)


# ----------------------------------------------------------------------------------------- cells


def test_finished_cells_are_reused(home, store):
    plan, runner = plan_of(AVERAGE, NEIGHBOUR), Runner()
    assert {how for *_, how in run(plan, store, runner)} == {"measured"}
    assert sorted(path.name for path in store.folder.glob("tiny/*")) == [
        *("fake_methods_average-0.json", "fake_methods_average-1.json"),
        *("fake_methods_neighbour-0.json", "fake_methods_neighbour-1.json"),
    ]
    again = Runner()
    assert {how for *_, how in run(plan, store, again)} == {"reused"}
    assert again.asked == []


def test_records_say_how_they_came_about(home, store):
    run(plan_of(AVERAGE, splits=1), store, Runner(), cap=7.0)
    record = store.read(Cell("tiny", AVERAGE, 0))
    assert (record["dataset"], record["method"], record["split"]) == ("tiny", AVERAGE, 0)
    assert record["time_cap"] == 7.0
    assert record["versions"]["numpy"] == np.__version__
    assert record["machine"]["processor"]


def test_failures_are_tried_again(home, store):
    plan = plan_of(AVERAGE, splits=1)
    run(plan, store, Runner(tiny={"status": "failed", "error": "?"}))
    runner = Runner()
    run(plan, store, runner)
    assert len(runner.asked) == 1
    assert store.read(Cell("tiny", AVERAGE, 0))["status"] == "ok"


@pytest.mark.parametrize("jobs", [1, 3])
def test_method_capped_on_the_first_division_is_not_tried_on_the_others(home, store, jobs):
    plan, runner = plan_of(AVERAGE, splits=4), Runner(tiny={"status": "time-cap"})
    seen = run(plan, store, runner, cap=5.0, jobs=jobs)
    assert len(runner.asked) == 1
    assert sorted(how for *_, how in seen) == ["measured", "skipped", "skipped", "skipped"]
    run(plan, store, runner, cap=5.0)
    assert len(runner.asked) == 1
    patient = Runner()  # with more time it is worth another try
    run(plan, store, patient, cap=6.0)
    assert len(patient.asked) == 4


def test_cells_of_another_protocol_are_measured_again(home, store):
    cell = Cell("tiny", AVERAGE, 0)
    store.write(cell, {"status": "ok", "protocol": PROTOCOL - 1})
    assert store.read(cell) is None
    assert store.records() == []
    store.write(cell, {"status": "ok", "protocol": PROTOCOL})
    assert store.usable(cell, 1.0) is not None
    store.path(cell).write_text("{")
    with pytest.raises(ValueError, match="not JSON"):
        store.read(cell)


def test_an_error_or_interrupt_keeps_what_is_finished(home, store):
    plan = plan_of(AVERAGE, datasets=["tiny", "slope"], splits=1)
    with pytest.raises(KeyboardInterrupt):
        run(plan, store, Runner(slope=KeyboardInterrupt()))
    assert [record["dataset"] for record in store.records()] == ["tiny"]
    runner = Runner()
    run(plan, store, runner)
    assert [cell.dataset for cell in runner.asked] == ["slope"]


def test_plan_of_the_cells_that_are_there_needs_no_data(home, store, monkeypatch):
    shape = {"status": "ok", "score": 1.0, "task": "regression", "train_rows": 3, "test_rows": 1}
    plan = plan_of(AVERAGE, datasets=["tiny", "slope"], splits=1)
    run(plan, store, Runner(slope=shape | {"features": 2}))
    monkeypatch.delenv("TESSELLA_DATA")
    found = stored_plan(store, tasks=["regression"])
    assert [(data.name, data.rows) for data in found.sets][:2] == [("slope", 4), ("boston", 506)]
    assert [method.title for method in found.methods] == ["average"]
    few = stored_plan(store, datasets=["slope"], method_names=["rf"])
    assert (few.sets, few.methods) == ((), ())


# ------------------------------------------------------------------------------------- processes


def measure(method, dataset="tiny", split=0):
    answer = io.StringIO()
    request = {"cell": asdict(Cell(dataset, method, split)), "data_home": None}
    record = _worker.measure(request, answer)
    return record, [json.loads(line)["event"] for line in answer.getvalue().splitlines()]


def test_worker_measures_a_classification(home):
    record, events = measure(NEIGHBOUR, split=1)
    data = load("tiny")
    train, test = data.split(1)
    distance = ((data.X[test][:, None] - data.X[train]) ** 2).sum(-1)
    expected = np.mean(data.y[train][distance.argmin(1)] == data.y[test])
    assert events == ["ready", "fitted"]
    assert record["status"] == "ok"
    assert record["score"] == pytest.approx(100 * expected)
    assert (record["train_rows"], record["test_rows"], record["features"]) == (32, 8, 2)
    assert (record["params"], record["gap"]) == ({"k": 1}, 1e-4)


def test_worker_measures_a_regression(home):
    record, _ = measure(AVERAGE, dataset="slope")
    data = load("slope")
    train, test = data.split(0)
    expected = np.mean((data.y[test] - data.y[train].mean()) ** 2)
    assert record["score"] == pytest.approx(expected)
    assert (record["metric"], record["tune_seconds"], record["fit_seconds"]) == ("mse", 1.5, 0.5)


def test_errors_are_in_the_papers_unit(home, monkeypatch):
    info = replace(describe("boston"), name="slope", paper_unit=4.0)
    plain, _ = measure(AVERAGE, dataset="slope")
    monkeypatch.setattr(_worker, "names", lambda: ("slope",))
    monkeypatch.setattr(_worker, "describe", {"slope": info}.get)
    scaled, _ = measure(AVERAGE, dataset="slope")
    assert scaled["score"] == pytest.approx(plain["score"] / 16)


@pytest.mark.parametrize(
    ("method", "status", "error"),
    [
        ("broken", "failed", "RuntimeError: broken on purpose"),
        ("picky", "not-applicable", "too many rows"),
        ("greedy", "not-applicable", "not enough memory"),
        ("senseless", "failed", "ValueError: predictions that are not finite"),
    ],
)
def test_methods_that_fail(home, method, status, error):
    record, _ = measure(f"fake_methods:{method}")
    assert record == {"status": status, "error": error}


def process(method, cap):
    return _engine.run_in_process(Cell("tiny", method, 0), Settings(cap), _engine.Stop())


def test_process_is_killed_at_the_cap(home):
    assert process("fake_methods:endless", cap=0.05) == {"status": "time-cap"}


def test_process_that_dies(home):
    record = process("fake_methods:dying", cap=60.0)
    assert record["status"] == "failed"
    assert record["error"] == "the process ended with code 3: last words"


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs process groups")
def test_stopping_ends_running_processes(home):
    stop = _engine.Stop()
    cell, outcome = Cell("tiny", "fake_methods:endless", 0), []

    def measure():
        try:
            _engine.run_in_process(cell, Settings(60.0), stop)
        except _engine.Stopped:
            outcome.append("stopped")

    thread = threading.Thread(target=measure)
    thread.start()
    while not stop.processes:
        thread.join(0.01)
    (running,) = stop.processes
    stop.now()
    thread.join()
    assert outcome == ["stopped"]
    assert running.returncode == -signal.SIGKILL


def test_worker_ends_when_the_engine_is_gone(home):
    with open(os.devnull, "wb") as nowhere:
        worker = _engine._start(Cell("tiny", "fake_methods:endless", 0), Settings(), nowhere)
    assert json.loads(worker.stdout.readline()) == {"event": "ready"}
    worker.stdin.close()
    assert worker.wait() == 1
    worker.stdout.close()
