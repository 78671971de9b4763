"""The made-up rows, the verdicts of large fits, and processes with limits."""

from __future__ import annotations

import sys

import large
import numpy as np
import out_of_core
import pytest
from _large_data import (
    BLOCK_ROWS,
    CORRELATION,
    DEVIATION,
    MEAN,
    MEDIAN,
    NOISE,
    errors,
    function,
    make_rows,
)
from _out_of_core_process import write
from _watched import DATA, data_limit_holds, run_watched

KINDS = ("regression", "classification")


@pytest.mark.parametrize("kind", KINDS)
def test_rows_do_not_depend_on_how_many_are_asked_for(kind):
    whole = make_rows(2 * BLOCK_ROWS + 500, kind, 3)
    for first, count in ((0, 10), (BLOCK_ROWS - 7, 20), (5000, BLOCK_ROWS + 5001)):
        part = make_rows(count, kind, 3, first)
        for some, every in zip(part, whole, strict=True):
            np.testing.assert_array_equal(some, every[first : first + count])
    assert not np.array_equal(make_rows(10, kind, 4).X, whole.X[:10])
    assert not np.array_equal(whole.X[:10], whole.X[BLOCK_ROWS : BLOCK_ROWS + 10])


def test_distribution_is_as_described():
    rows = make_rows(200_000, "regression", 0)
    raw = function(rows.X)
    assert raw.mean() == pytest.approx(MEAN, abs=4 * DEVIATION / 200_000**0.5 + 0.005)
    assert raw.std() == pytest.approx(DEVIATION, rel=0.01)
    assert np.median(raw) == pytest.approx(MEDIAN, abs=0.08)
    assert (rows.y - rows.clean).std() == pytest.approx(NOISE, rel=0.01)
    assert rows.X.min() >= 0
    assert rows.X.max() <= 1
    assert rows.X.mean(axis=0) == pytest.approx(0.5, abs=0.005)
    correlations = np.corrcoef(rows.X.T)[~np.eye(10, dtype=bool)]
    # Of uniform columns made from normal ones with that correlation.
    assert correlations == pytest.approx(6 / np.pi * np.arcsin(CORRELATION / 2), abs=0.01)


def test_classes_follow_their_probabilities():
    rows = make_rows(200_000, "classification", 0)
    for low in np.arange(0, 1, 0.1):
        near = (rows.clean >= low) & (rows.clean < low + 0.1)
        shares = np.mean(rows.y[near] == 1), rows.clean[near].mean()
        assert shares[0] == pytest.approx(shares[1], abs=0.02)
    assert errors("classification", rows.y, rows)["least"] == pytest.approx(0.098, abs=0.003)


@pytest.mark.parametrize("kind", KINDS)
def test_errors_of_the_best_and_of_other_predictions(kind):
    rows = make_rows(50_000, kind, 1)
    best = rows.clean if kind == "regression" else np.where(rows.clean > 0.5, 1, -1)
    found = errors(kind, best, rows)
    assert found["excess"] == 0
    assert found["test_error"] == found["least"]
    other = errors(kind, -best, rows)
    assert other["test_error"] - other["least"] == pytest.approx(other["excess"], rel=0.05)


# -------------------------------------------------------------------------------------- verdicts


GOOD = {"gap": 0.009, "seconds": 500.0, "peak_bytes": 3e9, "test_error": 0.05, "rows": 30_000}


@pytest.mark.parametrize(
    ("change", "missed"),
    [
        ({}, None),
        ({"gap": 0.011}, "gap 1.1e-02"),
        ({"seconds": 700.0}, "700 s"),
        ({"peak_bytes": 4.5e9}, "4.50 GB"),
        ({"test_error": 0.07}, "error"),
    ],
)
def test_verdict_of_a_large_fit(change, missed):
    told = large.size_verdict(GOOD | change, 0.06, 1e-2)
    assert told == (f"missed: {missed}" if missed else "ok")
    assert large.size_verdict({"error": "ended"}, 0.06, 1e-2) == "failed: ended"


@pytest.mark.parametrize(
    ("change", "missed"),
    [
        ({"seconds": 100.0}, None),
        ({"seconds": 200.0}, "seconds 0.40 times"),
        ({"seconds": 200.0, "rows": 20_000}, None),
        ({"seconds": 100.0, "test_error": 0.052}, "error 1.040 times"),
        ({"seconds": 100.0, "gap": 0.02}, "gap 2.0e-02"),
    ],
)
def test_verdict_of_held_out_rows(change, missed):
    told = large.compared([GOOD | change], [GOOD], 1e-2)["verdict"]
    assert told == (f"missed: {missed}" if missed else "ok")


def test_exponent_of_a_power_law():
    rows = [100, 300, 1000]
    assert large.exponent(rows, [2 * n**1.05 for n in rows]) == pytest.approx(1.05)
    assert large.exponent([100], [1.0]) is None


# ------------------------------------------------------------------------------------- processes


def test_folder_holds_the_rows(tmp_path):
    pytest.importorskip("pyarrow")
    from pyarrow import parquet

    request = {"columns": 12, "file_rows": 2000, "kind": "regression", "seed": 5}
    told = write(folder=str(tmp_path), rows=5000, **request)
    assert told["files"] == 3
    assert told["bytes"] == sum(path.stat().st_size for path in tmp_path.iterdir())
    table = parquet.read_table(tmp_path)
    rows = make_rows(5000, "regression", 5)
    np.testing.assert_array_equal(table["target"].to_numpy(), rows.y)
    np.testing.assert_array_equal(table["x3"].to_numpy(), rows.X[:, 3])
    assert len(table.column_names) == 13


def test_size_of_the_folder():
    assert out_of_core.rows_of(5.0, 10) * 88 == pytest.approx(5e9, rel=0.01)
    assert out_of_core.rows_of(5.0, 99) * 800 == pytest.approx(5e9, rel=0.01)


@pytest.fixture
def program(tmp_path):
    def make(text):
        path = tmp_path / "program.py"
        path.write_text(f"import json, sys\nrequest = json.loads(sys.argv[1])\n{text}\n")
        return str(path)

    return make


def test_answer_of_a_process(program):
    ending = run_watched(program("print('noise'); print(json.dumps(request))"), {"a": 1})
    assert ending.answer == {"a": 1}
    assert ending.peak_bytes > 0
    assert ending.why == ""


def test_failure_of_a_process_is_told(program):
    ending = run_watched(program("raise ValueError('no rows')"), {})
    assert ending.answer is None
    assert ending.why == "ValueError: no rows"


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_process_with_too_much_memory_is_ended(program):
    text = "import time; rows = b'1' * 200_000_000; time.sleep(60)"
    ending = run_watched(program(text), {}, most_bytes=100_000_000)
    assert ending.answer is None
    assert "of memory" in ending.why
    assert ending.seconds < 30


def test_process_that_takes_too_long_is_ended(program):
    ending = run_watched(program("import time; time.sleep(60)"), {}, time_limit=0.5)
    assert ending.why == "ended after 0.5 s"


@pytest.mark.skipif(not data_limit_holds(), reason="the system does not keep RLIMIT_DATA")
def test_system_refuses_memory(program):
    text = "rows = bytearray(400_000_000); print('{}')"
    ending = run_watched(program(text), {}, most_bytes=200_000_000, limit_by=DATA)
    assert ending.why == "MemoryError"
