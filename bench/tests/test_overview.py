"""The picture of the README: what it compares, and that it knows the data it was drawn from."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tessella_bench._overview import (
    MARK,
    draw_overview,
    fingerprint,
    in_seconds,
    overview,
)


def done(mean, seconds):
    return {
        "state": "done",
        "mean": mean,
        "tune_seconds": 0.75 * seconds,
        "fit_seconds": seconds / 4,
    }


NOT_AVAILABLE = {"state": "n/a", "why": "more than 60 s"}
EMPTY = {"state": "not measured"}


@pytest.fixture
def report():
    """Three methods on three sets, one of them N/A once, and a fourth that is not complete."""
    rows = {
        "classification": [
            {"tkl": done(90, 1), "rf": done(80, 4), "nn": done(85, 2), "xgboost": done(99, 1)},
            {"tkl": done(70, 4), "rf": done(80, 4), "nn": done(75, 2), "xgboost": EMPTY},
        ],
        "regression": [
            {"tkl": done(1, 100), "rf": done(2, 4), "nn": NOT_AVAILABLE, "xgboost": EMPTY},
            {"tkl": EMPTY, "rf": done(2, 4), "nn": done(1, 1), "xgboost": EMPTY},
        ],
    }
    tables = {
        task: {"rows": [{"name": f"{task}-{i}", "cells": cells} for i, cells in enumerate(found)]}
        for task, found in rows.items()
    }
    titles = {"tkl": "TKL", "rf": "RF", "nn": "NNet", "xgboost": "XGBoost", "cka": "CKA"}
    methods = {name: {"title": title} for name, title in titles.items()}
    return {"splits": 5, "methods": methods, "tables": tables}


def test_what_is_compared(report):
    data = overview(report)
    assert data["sets"] == ["classification-0", "classification-1", "regression-0"]
    assert data["methods"] == ["tkl", "rf", "nn"]
    assert data["titles"][0] == "TKL (ours)"
    # Accuracies fall, errors rise, N/A is last.
    assert data["ranks"] == {"tkl": [1, 3, 1], "rf": [3, 1, 2], "nn": [2, 2, 3]}
    np.testing.assert_allclose(data["mean_rank"], [5 / 3, 2, 7 / 3], rtol=1e-5)
    assert data["timed_sets"] == ["classification-0", "classification-1"]
    np.testing.assert_allclose(data["mean_seconds"], [2, 4, 2])


def test_nothing_to_compare(report):
    for table in report["tables"].values():
        for row in table["rows"]:
            row["cells"]["tkl"] = EMPTY
    assert overview(report) is None
    report["tables"]["classification"]["rows"][0]["cells"]["tkl"] = done(90, 1)
    assert overview(report) is None  # one set
    assert overview({"splits": 5, "methods": {}, "tables": {}}) is None


def test_picture_carries_the_fingerprint_of_its_data(report, tmp_path):
    data = overview(report)
    draw_overview(data, tmp_path / "overview.png")
    with Image.open(tmp_path / "overview.png") as picture:
        assert picture.text[MARK] == fingerprint(data)
        assert picture.width >= 1200
    other = copy.deepcopy(report)
    other["tables"]["classification"]["rows"][0]["cells"]["tkl"]["fit_seconds"] *= 1.01
    assert fingerprint(overview(other)) != fingerprint(data)
    other = copy.deepcopy(report) | {"date": "another day"}
    assert fingerprint(overview(other)) == fingerprint(data)


def test_the_picture_of_the_readme_is_that_of_the_report():
    reports = Path(__file__).parents[2] / "benchmarks" / "reports"
    data = overview(json.loads((reports / "report.json").read_text()))
    with Image.open(reports / "overview.png") as picture:
        assert picture.text[MARK] == fingerprint(data), "tessella benchmark all --report-only"


def test_a_picture_without_common_times(report, tmp_path):
    for table in report["tables"].values():
        for row in table["rows"]:
            row["cells"]["nn"] = NOT_AVAILABLE
    data = overview(report)
    assert (data["timed_sets"], data["mean_seconds"]) == ([], [None, None, None])
    draw_overview(data, tmp_path / "overview.png")


@pytest.mark.parametrize(("value", "text"), [(0.0123, "0.012"), (1.26, "1.3"), (123.4, "123")])
def test_seconds(value, text):
    assert in_seconds(value) == text
