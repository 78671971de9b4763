from __future__ import annotations

import sys
from argparse import Namespace

import before_after
import numpy as np
from _common import Dataset

FITS = {
    "LearnedKernelSVC": {"C": 10.0, "delta": 0.5, "tol": 1e-6},
    "MultipleKernelSVC": {"C": 10.0, "tol": 1e-2},
}


def test_an_installation_against_itself(monkeypatch):
    monkeypatch.setattr(before_after, "SLOWER", np.inf)  # nothing is said about so short a fit
    rng = np.random.default_rng(0)
    X = rng.random((50, 2))
    data = Dataset("made up", "classification", X, np.where(X[:, 0] > X[:, 1] ** 2, 1.0, -1.0))
    with (
        before_after.Process(sys.executable) as before,
        before_after.Process(sys.executable) as after,
    ):
        for estimator, params in FITS.items():
            record = before_after._compare("x", data, estimator, params, (before, after), 1)
            assert record["verdict"] == "ok"
            assert record["before"]["objective"] == record["after"]["objective"]
            assert record["before_seconds"] > 0.0


def test_the_sets_asked_for():
    arguments = Namespace(datasets=["boston", "pima"])
    assert before_after._asked(("pima", "abalone", "boston"), arguments) == ["pima", "boston"]
