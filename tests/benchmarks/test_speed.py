from __future__ import annotations

import _fit_cases
import _fit_probes
import _speed
import numpy as np
import pytest
import regressions
from _roofs import Roofs
from _timers import Timers

from tessella import LearnedKernelSVC, LearnedKernelSVR


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
    around = {_fit_probes.PREPARE, _fit_probes.FORM, _fit_probes.FITTED, _fit_probes.REST}
    assert around <= set(timers.rows)
    # Beyond 2,000 rows, the matrix is that of the subsample only, whose time is one row.
    whole = timers.rows[_fit_probes.GRAM].bytes >= 8.0 * rows**2
    assert whole == (rows <= 2000)


@pytest.mark.parametrize(
    ("running", "row"),
    [
        ([_fit_probes.REST, "SVM cold: rest"], "SVM cold: interior point steps"),
        ([_fit_probes.REST, "SVM warm: rest"], "SVM warm: interior point steps"),
        ([_fit_probes.REST, _fit_probes.FIRST_P], None),
    ],
)
def test_steps_of_an_svm_belong_to_its_row(running, row):
    namer = _fit_probes._part_of_svm(_fit_probes.INTERIOR)
    assert namer(Timers(running=running), (), {}) == row


@pytest.mark.parametrize("name", ["normal 200 x 5", "digits 3 and 8", "digits"])
def test_cases_of_the_profile_are_tables_of_their_size(name):
    case = _fit_cases.CASES[name]
    X, y = case.table()
    assert X.shape[0] == len(y) > 100
    assert X.dtype == np.float64
    assert set(case.settings) <= set(LearnedKernelSVC().get_params())
    first, second = case.table(), case.table()
    assert (first[0] == second[0]).all()
