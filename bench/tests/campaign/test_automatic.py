"""Claims of automatic models, computed again: honest ones are confirmed, and false ones found."""

from copy import copy
from dataclasses import replace

import numpy as np
import pytest

from tessella import TessellaClassifier, TessellaRegressor
from tessella_bench.campaign._automatic import automatic_faults

_RNG = np.random.default_rng(0)
X = _RNG.random((40, 2))
SKEWED = np.exp(3 * X[:, 0] + 0.1 * _RNG.standard_normal(40))
THREE = np.digitize(X[:, 0], [0.3, 0.7])
WEIGHT = _RNG.integers(0, 4, 40).astype(float)
CASES = [
    (TessellaRegressor(effort="low"), np.sin(5 * X[:, 0]) + X[:, 1]),
    (TessellaRegressor(effort="medium"), SKEWED),
    (TessellaRegressor(effort="high"), SKEWED + 1e9),
    (TessellaClassifier(effort="high"), THREE),
    (TessellaClassifier(effort="medium"), np.array(["no", "yes"])[(X[:, 1] > 0.4).astype(int)]),
]


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["plain", "weighted"])
@pytest.mark.parametrize("number", range(len(CASES)))
def test_claims_of_the_library_are_confirmed(number, weight):
    model, y = CASES[number]
    assert automatic_faults(model.fit(X, y, weight), X, y, weight) == []


def test_all_kinds_of_members_are_confirmed():
    model = TessellaRegressor(effort="high").fit(X, SKEWED)
    entries = {(line["loss"], line["target"]) for line in model.leaderboard_}
    assert entries >= {("squared", "plain"), ("squared", "logarithm")}
    assert any(line["learned"] for line in model.leaderboard_)


def _with_member(model, **changes):
    model.members_ = [replace(model.members_[0], **changes), *model.members_[1:]]


FORGERIES = {
    "coefficients": lambda own: _with_member(own, coef=1.01 * own.members_[0].coef),
    "intercept": lambda own: _with_member(own, intercept=own.members_[0].intercept + 1e-3),
    "weights": lambda own: _with_member(own, share=2 * own.members_[0].share),
    "gap of the model": lambda own: setattr(own, "gap_", own.gap_ / 2 + 1e-9),
    "gap of a member": lambda own: _with_member(own, gap=float("nan")),
    "score": lambda own: setattr(own, "loo_score_", -0.5),
    "leaderboard": lambda own: setattr(own, "leaderboard_", [{"error": 3.0}]),
    "mean": lambda own: setattr(own, "_mean", own._mean + 1e-3),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_forged_claims_are_found(name):
    model, y = CASES[0]
    forged = copy(model.fit(X, y))
    FORGERIES[name](forged)
    assert automatic_faults(forged, X, y) != []


def test_a_class_that_is_not_the_likeliest_is_found():
    model, y = CASES[3]
    forged = copy(model.fit(X, y))
    forged.predict = lambda rows: np.full(len(rows), 2)
    assert automatic_faults(forged, X, y) == ["predict and predict_proba disagree."]
