"""The table of claims: verdicts follow the numbers, whatever cells there are."""

import copy
import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs" / "_ext"))

import claims  # noqa: E402


@pytest.fixture(scope="module")
def report():
    return json.loads((ROOT / "benchmarks/reports/report.json").read_text())


def small_report(**cells):
    """One classification set of the paper, and TKL with other methods on it."""
    rows = [{"name": "one", "title": "One", "rows": 6000, "cells": cells}]
    methods = {name: {"title": name.upper(), "paper": name.upper()} for name in cells}
    return {"tables": {"classification": {"rows": rows}}, "methods": methods}


def done(mean, seconds, **more):
    return {"state": "done", "mean": mean, "fit_seconds": seconds} | more


PAPER = {"paper": {"score": [90.0, 1.0]}}


def test_every_claim_has_a_verdict():
    lines = claims.claims(ROOT / "benchmarks").splitlines()
    assert len(lines) > 15
    assert all(line.count(" | ") == 3 for line in lines)
    assert not any("nan" in line.lower() for line in lines)


@pytest.mark.parametrize(("mean", "verdict"), [(95.0, claims.HOLDS), (80.0, claims.PARTLY)])
def test_better_than_average(mean, verdict):
    report = small_report(
        tkl=done(mean, 1.0, **PAPER),
        rf=done(90.0, 1.0, **PAPER),
        amkl=done(0.0, 1.0),  # which the paper has not measured on this task
    )
    assert claims._above_average(report, "classification")[-1] == verdict


def test_seconds_beside_tkl():
    def verdict(other):
        report = small_report(tkl=done(90.0, 2.0, **PAPER), smkl=other)
        row = claims._times_as_long(report, "smkl", "claim", lambda r: r >= 20, least_rows=5000)
        return row[2:]

    assert verdict(done(90.0, 50.0)) == (
        "a fit of SMKL takes 25 times the seconds of TKL's",
        claims.HOLDS,
    )
    assert verdict(done(90.0, 10.0))[1] == claims.FAILS
    assert verdict({"state": "n/a"}) == ("SMKL did not end within the cap on One", claims.HOLDS)
    assert verdict({"state": "not measured"}) == ("–", claims.OPEN)


def test_rank_verdict_follows_the_order(report):
    assert claims._first_in_rank(report)[-1] in (claims.HOLDS, claims.FAILS)
    turned = copy.deepcopy(report)
    both = {"sets": ["one"], "methods": ["rf", "tkl"], "mean": [1.0, 2.0]}
    turned["among_the_papers"] = {"classification": None, "both": both}
    row = claims._first_in_rank(turned)
    assert row[-1] == claims.FAILS
    assert row[2] == "mean ranks: both (1 sets) RF 1.00, TKL 2.00"
