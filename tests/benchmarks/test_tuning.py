from __future__ import annotations

import numpy as np
import pytest
import tuning
from _common import REGRESSION, Dataset

from tessella import KernelPathCV, LearnedKernelSVR

POINTS = [{"C": 1.0}, {"C": 10.0}, {"C": 100.0}]
REFERENCE = {
    "jobs": 1,
    "seconds": 60.0,
    "processor_seconds": 60.0,
    "choice": POINTS[1],
    "score": 0.9,
    "points": POINTS,
    "scores": [0.5, 0.9, 0.8995],
}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, "ok"),
        ({"seconds": 13.0}, "missed: below 5 times"),
        # A busy machine slowed the other search down: the processor knows better.
        ({"processor_seconds": 30.0}, "missed: below 5 times"),
        ({"jobs": 2, "processor_seconds": 30.0}, "ok"),
        ({"choice": POINTS[2]}, "missed: another choice, as good"),
        ({"choice": POINTS[0], "seconds": 13.0}, "missed: another choice, below 5 times"),
    ],
)
def test_verdict(change, said):
    ours = REFERENCE | {"seconds": 10.0, "processor_seconds": 10.0} | change
    assert tuning.verdict(ours, REFERENCE) == said


def test_measure_counts_the_fits_that_were_made():
    X = np.random.default_rng(0).random((40, 2))
    data = Dataset("waves", REGRESSION, X, np.sin(6 * X[:, 0]))
    grid = {"C": [0.001, 0.1, 10.0, 100.0]}
    every = tuning.measure(KernelPathCV(LearnedKernelSVR(), grid, cv=3), data)
    fewer = tuning.measure(KernelPathCV(LearnedKernelSVR(), grid, cv=3, eliminate=True), data)
    assert every["fits"] == 12
    assert fewer["fits"] <= 8
    assert every["worst_gap"] <= 1e-3


def test_losses_are_those_of_the_best_point_of_each_grid():
    points = [
        {"C": C, "delta": delta, "score": 1.0 if (C, delta) == (10.0, 8.0) else -abs(C - 10.0)}
        for C in tuning.FINE_C
        for delta in tuning.FINE_DELTA
    ]
    losses = tuning._losses(points)["losses"]
    assert set(losses.values()) == {1.0}  # every grid has C = 10, none has delta = 8
