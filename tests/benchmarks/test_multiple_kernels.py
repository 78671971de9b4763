from __future__ import annotations

import importlib.util
from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest
from _common import Dataset

# By its path: tests/multiple_kernels has the same name.
_PATH = Path(__file__).parents[2] / "benchmarks" / "multiple_kernels.py"
_SPEC = importlib.util.spec_from_file_location("multiple_kernels_benchmark", _PATH)
benchmark = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(benchmark)

GOOD = {
    "learned_gap": 0.005,
    "learned_n_svm": 2,
    "learned_as_low": 0.2,
    "simple_gap": 0.009,
    "simple_n_svm": 90,
    "speed_up": 20.0,
    "easy_seconds": 0.3,
    "easy_matrices": 0.1,
    "alignment_unlike": 1e-9,
}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, "ok"),
        ({"learned_gap": 0.02}, "missed: gap not reached"),
        ({"simple_gap": 0.7}, "missed: SimpleMKL did not reach the gap"),
        ({"speed_up": 4.0}, "missed: below 5 times SimpleMKL"),
        ({"learned_n_svm": 90}, "missed: no fewer SVMs"),
        ({"learned_as_low": 0.5}, "missed: EasyMKL has its value sooner"),
        ({"learned_as_low": None}, "missed: EasyMKL has its value sooner"),
        ({"alignment_unlike": 1e-3}, "missed: alignment differs"),
    ],
)
def test_verdicts(change, said):
    assert benchmark.verdict(GOOD | change, 0.01) == said


def in_place_of_mklpy(data, dictionary, algorithms, python):
    del data, python
    even = np.full(len(dictionary), 1.0 / len(dictionary))
    return {name: {"weights": even.tolist(), "seconds": 1.0} for name in algorithms}


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_a_set_is_measured(monkeypatch, task):
    monkeypatch.setattr(benchmark, "_mklpy", in_place_of_mklpy)
    rng = np.random.default_rng(0)
    X = rng.random((60, 2))
    y = np.sin(6.0 * X[:, 0]) + X[:, 1] + 0.2 * rng.standard_normal(60)
    y = np.where(y > np.median(y), 1.0, -1.0) if task == "classification" else y
    arguments = Namespace(tol=1e-2, limit=20.0)
    record = benchmark.compare(Dataset("made up", task, X, y), "python", arguments)
    assert record["kernels"] == 39
    # Both solve the same problem to the same gap, and each bound holds for the other.
    for solver, other in (("learned", "simple"), ("simple", "learned")):
        assert record[f"{solver}_gap"] <= 1e-2
        assert record[f"{solver}_bound"] <= record[f"{other}_value"]
    if task == "classification":
        assert record["easy_value"] >= record["learned_bound"]
        assert record["average_unlike"] == 0.0
        assert record["closed_unlike"] > 0.0
    else:
        assert "easy_value" not in record
