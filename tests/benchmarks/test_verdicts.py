from __future__ import annotations

import balance
import convergence
import many_classes
import pytest
import sdp
import time_limits
import wide

GOOD = {"gap": 1e-7, "counts_svm": True, "n_svm": 12, "n_newton": 500}


@pytest.mark.parametrize(
    ("change", "ratio", "said"),
    [
        ({}, 1.0, "ok"),
        ({"counts_svm": False, "n_newton": 40, "n_svm": 1}, 0.1, "ok"),
        ({"gap": 2e-6}, 0.5, "missed: gap 2e-06"),
        ({"n_svm": 13}, 0.5, "missed: 13 SVM solves"),
        ({"counts_svm": False, "n_newton": 41}, 0.5, "missed: 41 Newton steps"),
        ({"n_svm": 13}, 1.1, "missed: 13 SVM solves, slower"),
        ({}, None, "missed: no ratio"),
        ({"error": "x"}, 0.5, "failed"),
    ],
)
def test_convergence(change, ratio, said):
    assert convergence.verdict(GOOD | change, ratio, 1e-6) == said


def record(rows, **more):
    return {"rows": rows, "whole": False, "auto": {}, "frank-wolfe": {}, **more}


def test_sdp():
    assert sdp.verdict(record(150), 1e6, "") == "–"
    assert sdp.verdict(record(200), 1000.0, ">") == "ok"
    assert sdp.verdict(record(200), 900.0, "") == "missed: 900 < 1000"
    assert sdp.verdict(record(345), 5000.0, "~") == "ok (extrapolated)"
    assert sdp.verdict(record(200, sdp={"error": "x"}), None, "") == "SDP failed"
    assert sdp.verdict(record(200) | {"auto": {"error": "x"}}, None, "") == "failed: auto"


def test_sdp_extrapolation_follows_the_power_law():
    assert sdp.extrapolated({10: 99.0, 50: 3.0, 100: 3.0 * 2**5}, 200) == pytest.approx(3 * 4**5)


def test_balance_names_the_winner():
    records = [
        {"balance": "none", "accuracy": 0.80, "gap": 1e-4},
        {"balance": "unit", "accuracy": 0.85, "gap": 2e-3},
        {"balance": "pointwise", "error": "x"},
    ]
    balance.judge(records, 1e-3)
    assert records[0]["verdict"] == "missed: loses 0.05 to unit"
    assert records[1]["verdict"] == "missed: gap 2e-03"
    assert records[2]["verdict"] == "missed: failed"


def test_pointwise_tries_longer_deltas():
    assert balance.deltas("none", 24) == (0.1, 0.5, 2.0)
    assert balance.deltas("pointwise", 24) == (0.1, 0.5, 2.0, 6.0, 24.0)
    assert balance.deltas("pointwise", 2) == (0.1, 0.5, 2.0)  # n/4 and n are there already


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, "ok"),
        ({"seconds": 0.51}, "missed: 5.1 times"),
        ({"gap": 2e-3}, "missed: gap 2e-03"),
        ({"gap": float("nan")}, "missed: gap nan"),
        ({"rows": 300, "seconds": 0.3}, "missed: 0.3 s"),
        ({"columns": 500, "seconds": 9.0}, "ok"),
        ({"columns": 500, "seconds": 11.0}, "missed: 11 s"),
    ],
)
def test_wide(change, said):
    good = {"rows": 1000, "columns": 50, "seconds": 0.4, "peer_seconds": 0.1, "gap": 1e-4}
    assert wide.verdict(good | change) == said


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, "ok"),
        ({"seconds": 0.6}, "missed: 6.0 times"),
        ({"gap": float("inf")}, "missed: gap inf"),
        ({"rows": 20_000, "seconds": 299.0}, "ok"),
        ({"rows": 20_000, "seconds": 301.0}, "missed: 301 s"),
    ],
)
def test_many_classes(change, said):
    good = {"rows": 4000, "seconds": 0.4, "peer_seconds": 0.1, "gap": 1e-4}
    assert many_classes.verdict(good | change) == said


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, "ok"),
        ({"seconds": 2.49}, "ok"),
        ({"seconds": 2.6}, "missed: 0.6 s late"),
        ({"limit": 10.0, "seconds": 10.9}, "ok"),
        ({"limit": 10.0, "seconds": 11.1}, "missed: 1.1 s late"),
        ({"score": 0.48}, "missed: worse than a constant"),
        ({"score": float("nan")}, "missed: worse than a constant"),
        ({"share": None}, "ok"),
        ({"share": 1.005}, "ok"),
        ({"share": 1.5}, "missed: 1.50 times the objective of a fixed kernel"),
        ({"error": "TimeoutError: not ended"}, "failed: TimeoutError: not ended"),
    ],
)
def test_time_limits(change, said):
    good = {"limit": 2.0, "seconds": 1.0, "gap": 0.5, "score": 0.7, "constant": 0.5, "share": 0.9}
    assert time_limits.verdict(good | change) == said


@pytest.mark.parametrize("shape", time_limits.SHAPES, ids=str)
def test_tables_of_time_limits(shape):
    rows = min(shape.rows, 200)
    X, y = time_limits.table_of(time_limits.Shape(rows, 5, shape.classes), 0)
    assert X.shape == (rows, 5)
    assert len(set(y)) == (shape.classes or rows)
