"""Estimates of the time of a run: what they are computed from, and who is told."""

from __future__ import annotations

import io
import time

import numpy as np
import pytest
from solvers.conftest import make_problem

from tessella.cones import PSD
from tessella.problems import SaddlePoint
from tessella.solvers import Estimate, Monitor, Monitors, TablePrinter, run_solver, working_set
from tessella.solvers._clock import Forecast, RunClock
from tessella.solvers._estimate import Growth, MachineGrowth, in_words, run_seconds, seconds_to_go


class Listener(Monitor):
    wants_estimate = True

    def __init__(self):
        self.told = []

    def estimate(self, estimate):
        self.told.append(estimate)


# ---- from what is measured


@pytest.mark.parametrize("power", [1.0, 1.7, 3.0])
def test_growth_finds_the_power_of_the_rows(power):
    growth = Growth()
    for rows in (200, 600, 1800):
        growth.add(rows, 0.01 * (rows / 200) ** power)
    assert growth.power == pytest.approx(power)
    assert growth.seconds(20000) == pytest.approx(0.01 * 100.0**power)


def test_growth_is_at_least_linear_and_at_most_cubic():
    constant, steep = Growth(), Growth()
    for rows in (100, 200):
        constant.add(rows, 1.0)
        steep.add(rows, rows**5 * 1e-9)
    assert constant.seconds(400) == pytest.approx(2.0)
    assert steep.seconds(400) == pytest.approx(8.0 * 200**5 * 1e-9)


def test_growth_before_and_after_a_single_measurement():
    growth = Growth()
    assert growth.seconds(1000) == 0.0
    growth.add(100, 2.0)
    assert growth.seconds(100) == 2.0
    assert growth.seconds(400) == pytest.approx(32.0)


def test_certificates_grow_less_than_machines():
    growth = MachineGrowth()
    assert growth.seconds(100) == 0.0
    growth.add(100, 1.0, 3.0)
    assert growth.seconds(100) == pytest.approx(4.0)
    assert growth.certificate_seconds(400) == pytest.approx(3.0 * 4.0**0.3)
    assert growth.seconds(400) == pytest.approx(16.0 + 3.0 * 4.0**0.3)
    several = MachineGrowth(several=True)
    several.add(100, 1.0, 0.0)
    assert several.seconds(400) == pytest.approx(4.0, abs=1e-3)
    growth.add(200, 2.0, 3.0)
    assert growth.seconds(400) == pytest.approx(4.0 + 3.0)


def test_a_run_takes_longer_with_slower_steps():
    assert run_seconds(0.0, 0.0) == 0.0
    assert run_seconds(2.0, 0.0) > 2.0
    assert run_seconds(2.0, 1.0) > run_seconds(2.0, 0.0) + 1.0
    assert run_seconds(1.0, 0.0, smooth=True) > run_seconds(1.0, 0.0)
    assert run_seconds(2.0, 1.0, several=True) > run_seconds(2.0, 1.0)


def test_a_fixed_parameter_takes_the_time_of_its_machines(monkeypatch):
    monkeypatch.setattr(time, "monotonic", lambda: 0.0)
    learned, told = make_problem("classification", m=40), []
    for fixed in (None, learned.cone.centre):
        problem, listener = SaddlePoint(learned.kernels, learned.dual, fixed), Listener()
        clock = RunClock(None, problem.cone)
        Forecast(clock, listener, 1e-3).by_machines(100.0, problem)
        told += [one.seconds for one in listener.told]
    assert told == [pytest.approx(600.0), pytest.approx(100.0)]


def test_seconds_to_go_continues_the_logarithm_of_the_gap():
    times = np.arange(4.0)
    # A factor of ten in each second, and two factors of ten to go.
    assert seconds_to_go(times, 10.0**-times, 1e-5) == pytest.approx(2.0)
    assert seconds_to_go(times, 10.0**-times, 1e-2) == 0.0
    assert seconds_to_go(times, np.full(4, 0.1), 1e-3) == np.inf
    assert seconds_to_go([], [], 1e-3) == np.inf
    assert seconds_to_go([0.0, 1.0], [np.inf, 0.1], 1e-3) == np.inf
    # Only the last records count: the first ones were faster.
    early = [1e3, 1e2, 1.0, 0.9, 0.8, 0.7, 0.6]
    assert seconds_to_go(range(7), early, 0.1) == pytest.approx(
        4.0 * np.log(0.6 / 0.1) / np.log(1.0 / 0.6)
    )


def test_words():
    assert [in_words(s) for s in (0.01, 59.0, 61.0, 3500.0, 7200.0)] == [
        *("1 s", "59 s", "1 min", "58 min", "2 h"),
    ]
    assert str(Estimate(30.0, limit=25.0)) == "about 30 s"
    text = str(Estimate(300.0, limit=25.0))
    assert text.startswith("about 5 min, which the time limit of 25 s cuts short")
    assert Estimate(300.0, limit=25.0).exceeds_limit
    assert not Estimate(300.0).exceeds_limit
    assert Estimate(300.0).is_long
    assert not Estimate(3.0).is_long


# ---- who is told


class SlowClock:
    """A clock that goes on by some seconds whenever it is read."""

    def __init__(self, tick):
        self.now, self.tick = 0.0, tick

    def __call__(self):
        self.now += self.tick
        return self.now


@pytest.mark.parametrize("tick", [10.0, 1e-9])
def test_a_long_run_tells_its_time_before_its_first_record(monkeypatch, tick):
    problem, listener, stream = make_problem("classification", m=900), Listener(), io.StringIO()
    monkeypatch.setattr(time, "monotonic", SlowClock(tick))
    working_set(problem, callback=Monitors([listener, TablePrinter(stream)]))
    lines = stream.getvalue().splitlines()
    if tick < 1.0:
        assert not listener.told
        assert "expected" not in stream.getvalue()
        return
    assert listener.told[0].seconds > 10.0
    assert listener.told[0].limit is None
    assert lines[0] == f"expected time: {listener.told[0]}"
    assert lines[1].split()[0] == "iter"


def test_the_estimate_of_a_run_grows_with_the_time_of_its_machines(monkeypatch):
    told = []
    for tick in (10.0, 40.0):
        listener = Listener()
        monkeypatch.setattr(time, "monotonic", SlowClock(tick))
        working_set(make_problem("classification", m=900), callback=listener)
        told.append(listener.told[0].seconds)
    assert told[1] == pytest.approx(4.0 * told[0])


def test_a_time_limit_that_is_too_short_is_told_early(monkeypatch):
    listener = Listener()
    monkeypatch.setattr(time, "monotonic", SlowClock(1.0))
    working_set(make_problem("classification", m=900), time_limit=30.0, callback=listener)
    assert listener.told[0].exceeds_limit
    assert "cuts short" in str(listener.told[0])


def test_an_estimate_that_was_far_too_short_is_revised(monkeypatch):
    """Machines are fast, and then every record takes a minute, of a method that takes many."""
    problem, clock = make_problem("classification", m=300, n=3), SlowClock(1e-9)
    monkeypatch.setattr(time, "monotonic", clock)

    class Minutes(Listener):
        def record(self, record, answer):
            clock.now += 60.0

    listener = Minutes()
    run_solver("frank-wolfe", problem, tol=1e-3, max_iter=20, callback=listener)
    assert listener.told
    assert listener.told[0].seconds > 60.0


@pytest.mark.parametrize("name", ["auto", "working-set", "joint", "frank-wolfe"])
def test_an_estimate_changes_no_result(name):
    problem, listener = make_problem("classification", m=300, n=3), Listener()
    plain = run_solver(name, problem, tol=1e-3, max_iter=50)
    told = run_solver(name, problem, tol=1e-3, max_iter=50, callback=listener)
    np.testing.assert_array_equal(plain.parameter, told.parameter)
    np.testing.assert_array_equal(plain.w, told.w)
    for one, other in zip(plain.history, told.history, strict=True):
        assert (one.value, one.bound, one.n_svm, one.svm_iter) == (
            *(other.value, other.bound, other.n_svm, other.svm_iter),
        )


def test_monitors_pass_estimates_on():
    quiet, listener = Monitor(), Listener()
    assert not Monitors([quiet]).wants_estimate
    both = Monitors([quiet, None, listener])
    assert both.wants_estimate
    both.estimate(Estimate(12.0))
    assert listener.told == [Estimate(12.0)]


# ---- the clock of a run


def test_a_run_is_late_when_the_next_step_does_not_fit(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    clock = RunClock(10.0, PSD(3))
    assert clock.left == 10.0
    assert not clock.has_long_steps
    clock.begin_phase()
    now[0] = 4.0
    clock.end_newton_step()
    now[0] = 5.9
    assert not clock.is_late(3)
    now[0] = 6.0  # the next Newton step would end at the deadline
    assert clock.is_late(3)
    clock.begin_phase()
    now[0] = 6.5
    clock.end_newton_step()
    assert not clock.is_late(3)
    clock.machine_seconds = 3.6
    assert clock.has_long_steps
    assert clock.is_late(1)
    clock.machine_seconds = 0.0
    clock.begin_newton_steps(100)
    assert not clock.is_late(3)
    now[0] = 7.0
    clock.end_newton_step()
    clock.begin_newton_steps(200)  # half a second for 100 rows, four times as long with twice them
    now[0] = 7.9
    assert not clock.is_late(3)
    now[0] = 8.1
    assert clock.is_late(3)
    assert clock.left_for_machines == pytest.approx(1.9)
    clock.certificate_seconds = 0.4
    assert clock.left_for_machines == pytest.approx(1.5)
    clock.certificate_seconds = 4.0
    assert clock.left_for_machines == pytest.approx(0.7 * 1.9)
    assert RunClock(None, PSD(3)).left_for_machines is None
    now[0] = 11.0
    assert clock.left == clock.left_for_machines == 0.0
    assert RunClock(None, PSD(3)).left is None
    assert not RunClock(None, PSD(3)).is_late(1)


def test_decompositions_are_expected_to_take_longer_for_larger_sides(monkeypatch):
    monkeypatch.setattr(time, "monotonic", SlowClock(1.0))
    sides = [RunClock(None, PSD(side)).decomposition_seconds for side in (399, 400, 800)]
    assert sides[0] == 0.0
    assert 1.0 < sides[1] < sides[2]
    assert sides[2] / sides[1] == pytest.approx(2.0**2.6)
