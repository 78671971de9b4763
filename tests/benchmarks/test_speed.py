from __future__ import annotations

import _fit_probes
import _speed
import numpy as np
import pytest
import regressions
from _roofs import Roofs
from _timers import Timers

from tessella import LearnedKernelSVR


def test_verdict_words():
    cells = [{"ratio": 0.1}, {"ratio": 0.5}, {"ratio": None}]
    assert _speed.at_most(cells[:2], "ratio", 0.5) == ""
    assert _speed.at_most(cells, "ratio", 0.4) == "2 of 3 above 0.4"  # what is missing has missed
    assert _speed.spread(cells, "ratio") == "0.1 to 0.5"
    assert _speed.spread([{}], "ratio") == "–"
    assert _speed.Outcome("1", "", {}, []).verdict == "ok"
    assert _speed.Outcome("1", "late", {}, []).verdict == "missed: late"


def test_the_fastest_repetition_counts():
    clocks = _speed.alternate(lambda: 1, lambda: 2)
    assert [clock.result for clock in clocks] == [1, 2]
    assert all(clock.best == min(clock.seconds) for clock in clocks)
    assert len(clocks[0].seconds) == len(clocks[1].seconds) == 5


def test_the_binding_roof():
    roofs = Roofs(gemm64=100.0, gemm32=200.0, copy=10.0, fill=10.0, threads=2, blas_threads=2)
    assert roofs.bound(1e9, 1e6) == (pytest.approx(0.01), "flops")
    assert roofs.bound(1e6, 1e9) == (pytest.approx(0.1), "bytes")


def test_every_hot_function_runs(monkeypatch):
    small = {"rows": 60, "newton_rows": 40, "features": 3, "gemm_side": 10}
    monkeypatch.setattr(regressions, "SIZES", small)
    answers = {name: prepare()() for name, prepare in regressions.hot_functions().items()}
    assert answers["Newton step of the joint method"] > 0.0  # length of a step
    assert answers["solve_dual, warm"].gap <= 1e-4


def test_regressions_are_told():
    stored = {"gram": {"multiple": 1.0}, "moments": {"multiple": 1.0}}
    found = {"gram": {"multiple": 1.4}, "moments": {"multiple": 1.6}, "new": {"multiple": 9.0}}
    assert regressions._slow(found, stored) == ["moments"]


@pytest.mark.parametrize("rows", [400, 2100])
def test_every_probe_of_the_profile_finds_its_function(rows):
    """A renamed function would silently become part of the rest."""
    rng = np.random.default_rng(0)
    X = rng.random((rows, 2))
    timers = Timers()
    with timers.installed(_fit_probes.probes(rows)), timers.row(_fit_probes.REST):
        LearnedKernelSVR(tol=1e-2).fit(X, np.sin(5 * X[:, 0]) + X[:, 1])
    assert timers.missing == []
    assert set(timers.rows) <= set(_fit_probes.ORDER)
    gradient = timers.rows[_fit_probes.GRADIENT]
    assert gradient.calls > 0
    assert gradient.flops > 0
    by_rows = rows > 2000
    assert (_fit_probes.FORM in timers.rows) == by_rows
    assert (_fit_probes.GRAM in timers.rows) != by_rows


@pytest.mark.parametrize(
    ("running", "row"),
    [
        ([_fit_probes.REST], _fit_probes.SET_REST),
        ([_fit_probes.REST, "SVM cold: rest"], "SVM cold: Newton steps"),
        ([_fit_probes.REST, _fit_probes.FIRST_P], None),
    ],
)
def test_interior_point_steps_belong_to_whoever_takes_them(running, row):
    assert _fit_probes._interior_row(Timers(running=running), (), {}) == row
