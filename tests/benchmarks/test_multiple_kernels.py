from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

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
