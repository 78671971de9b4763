"""Searches that end early: a time limit, Ctrl-C, and fits that fail."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from tessella import TessellaClassifier, TessellaRegressor
from tessella.automatic import FAMILIES
from tessella.automatic._base import Average
from tessella.automatic._clock import Clock
from tessella.automatic._entries import Entry
from tessella.automatic._search import Search
from tessella.automatic._settings import EFFORTS
from tessella.persistence import ModelFileError

RNG = np.random.default_rng(0)
X = RNG.random((60, 3))
Y = np.sin(5.0 * X[:, 0]) + 0.1 * RNG.normal(size=60)
ONE_THREAD = {"effort": "low", "n_jobs": 1}


class FakeClock:
    """A clock that goes on by one tick whenever it is read."""

    def __init__(self, tick):
        self.now, self.tick = 0.0, tick

    def __call__(self):
        self.now += self.tick
        return self.now


@pytest.fixture
def clock(monkeypatch):
    fake = FakeClock(1.0)
    monkeypatch.setattr(time, "monotonic", fake)
    return fake


# ---- the time limit


def test_a_search_that_ends_at_its_limit_leaves_a_model(clock):
    whole = TessellaRegressor(**ONE_THREAD).fit(X, Y)
    assert whole.search_complete_
    sizes = []
    for limit in (0.5, 5.0, 20.0, 40.0, 1e9):
        model = TessellaRegressor(time_limit=limit, **ONE_THREAD).fit(X, Y)
        assert len(model.members_) >= 1
        assert np.isfinite(model.predict(X)).all()
        assert np.isfinite(model.predict_interval(X, 0.5)).all()
        assert np.isfinite(model.loo_score_)
        assert sum(member.share for member in model.members_) == pytest.approx(1.0)
        sizes.append(len(model.leaderboard_))
        if limit == 0.5:
            assert not model.search_complete_
            assert sizes == [1]
    assert min(sizes) == 1 < max(sizes)
    assert model.search_complete_
    assert model.leaderboard_ == whole.leaderboard_
    np.testing.assert_array_equal(model.predict(X), whole.predict(X))


def test_time_is_over_soon_after_the_limit(clock):
    """After the limit, only what was begun is finished, and the first machine is fitted."""
    unlimited = TessellaRegressor(**ONE_THREAD).fit(X, Y)
    limit = 0.4 * unlimited.fit_time_
    model = TessellaRegressor(time_limit=limit, **ONE_THREAD).fit(X, Y)
    assert not model.search_complete_
    assert model.fit_time_ < unlimited.fit_time_
    assert model.fit_time_ < limit + 12.0  # readings of the clock between two checks


def test_the_machines_with_the_largest_weights_are_fitted_first():
    whole = TessellaRegressor(**ONE_THREAD).fit(X, Y)
    assert len(whole.members_) > 1
    wanted = sorted((member.share for member in whole.members_), reverse=True)
    assert [member.share for member in whole.members_] == pytest.approx(wanted)


def test_a_limit_in_a_classifier(clock):
    model = TessellaClassifier(time_limit=0.5, **ONE_THREAD).fit(X, Y > 0.0)
    assert not model.search_complete_
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)


# ---- Ctrl-C


class Interrupted:
    """A family whose kernel matrix is interrupted once, after some calls."""

    def __init__(self, monkeypatch, after, error=KeyboardInterrupt):
        self.calls, self.after, self.error = 0, after, error
        self.original = FAMILIES["laplace"].gram
        monkeypatch.setattr(FAMILIES["laplace"], "gram", self)

    def __call__(self, *args, **kwargs):
        self.calls += 1
        if self.calls == self.after:
            raise self.error
        return self.original(*args, **kwargs)


def fit(model, y=Y):
    return model.set_params(families=["laplace"]).fit(X, y)


def test_ctrl_c_in_the_search_leaves_a_model(monkeypatch):
    counter = Interrupted(monkeypatch, after=-1)
    whole = fit(TessellaRegressor(**ONE_THREAD))
    n_calls, n_fits = counter.calls, len(whole.members_)
    outcomes = []
    for after in range(1, n_calls - n_fits + 1, 5):
        Interrupted(monkeypatch, after)
        model = TessellaRegressor(**ONE_THREAD)
        try:
            fit(model)
        except KeyboardInterrupt:
            outcomes.append("nothing")
            with pytest.raises(NotFittedError):
                model.predict(X)
        else:
            outcomes.append("model")
            assert not model.search_complete_
            assert np.isfinite(model.predict(X)).all()
            assert len(model.leaderboard_) <= len(whole.leaderboard_)
    # Nothing as long as no machine was compared on all search rows, then always a model.
    assert outcomes == sorted(outcomes, reverse=True)
    assert {"nothing", "model"} == set(outcomes)


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_an_earlier_fit_is_kept(monkeypatch, error):
    model = fit(TessellaRegressor(**ONE_THREAD))
    before, score = model.predict(X), model.loo_score_
    Interrupted(monkeypatch, 1, error)
    with pytest.raises(error):
        fit(model, -3.0 * Y)
    np.testing.assert_array_equal(model.predict(X), before)
    assert model.loo_score_ == score
    with pytest.raises(ValueError, match="NaN"):
        fit(model, np.full(60, np.nan))
    np.testing.assert_array_equal(model.predict(X), before)


def test_ctrl_c_in_the_final_fits_keeps_the_earlier_fit(monkeypatch):
    counter = Interrupted(monkeypatch, after=-1)
    model = fit(TessellaRegressor(**ONE_THREAD))
    n_calls, before = counter.calls, model.predict(X)
    Interrupted(monkeypatch, n_calls)
    with pytest.raises(KeyboardInterrupt):
        fit(model)
    monkeypatch.undo()
    np.testing.assert_array_equal(model.predict(X), before)


# ---- what is told


def test_lines_of_progress(capsys):
    TessellaRegressor(verbose=1, **ONE_THREAD).fit(X, Y)
    lines = capsys.readouterr().out.splitlines()
    shares = [float(line[1 : line.index("%")]) for line in lines]
    assert len(lines) >= 3
    assert shares == sorted(shares)
    assert shares[-1] == 100.0
    TessellaRegressor(**ONE_THREAD).fit(X, Y)
    assert capsys.readouterr().out == ""


def test_methods_need_a_fit(tmp_path):
    model = TessellaRegressor()
    for method in (model.predict, model.predict_interval, TessellaClassifier().predict_proba):
        with pytest.raises(NotFittedError):
            method(X)
    with pytest.raises((NotFittedError, ModelFileError)):
        model.save(tmp_path / "model.tsl")
    assert not hasattr(model, "feature_relevance_")


def test_a_short_limit_takes_the_spaces_and_the_widths_that_there_is_time_for(clock):
    settings = {"families": ["laplace"], **ONE_THREAD}
    whole = TessellaRegressor(**settings).fit(X, Y)
    scalings = {line["scaling"] for line in whole.leaderboard_}
    short = TessellaRegressor(time_limit=8.0, **settings).fit(X, Y)
    assert not short.search_complete_
    assert {member.machine.space.scaling for member in short.members_} == {"quantile"}
    assert scalings == {"quantile", "range"}
    assert len(short.leaderboard_) == 1
    (kernel,) = {member.machine.kernel for member in short.members_}
    # The width in the middle is tried first.
    family, space = FAMILIES["laplace"], short.members_[0].machine.space
    np.testing.assert_array_equal(kernel.scales, space.starting_scales(family, family.widths[2]))


def test_a_search_without_time_for_all_rows_compares_fewer():
    rng = np.random.default_rng(1)
    rows = rng.random((900, 2))
    search = Search(
        spaces=[],
        families=(),
        rows=np.arange(900),
        Y=rows[:, :1],
        targets=(),
        weight=np.ones(900),
        left_out=np.ones(900),
        settings=EFFORTS["low"],
        clock=Clock(100.0),
        tell=lambda *_: None,
    )
    search.seconds, search.gram_seconds = 0.5, 0.1
    search._shorten(300)
    # Twenty-seven times 0.4 s and nine times 0.1 s for an evaluation, less for a fit.
    assert len(search.rows) == 900
    search.clock = Clock(10.0)
    search._shorten(300)
    assert len(search.rows) == 300
    assert search.seconds_with(900) == pytest.approx(9 * 0.1 + 27 * 0.4)
    assert search.fit_seconds(900) < search.seconds_with(900)
    # A leaf is a fit of 450 rows: 2.25 times 0.1 s and 3.375 times a fifth of 0.4 s. The base
    # machine is another one, and has kernel values with all rows.
    leaf, between = 2.25 * 0.1 + 3.375 * 0.2 * 0.4, 4.5 * 0.1
    assert search.fit_seconds(450) == pytest.approx(between + 3 * leaf)
    assert search.fit_seconds(450, 2) == pytest.approx(between + 5 * leaf)


def test_a_descent_is_not_begun_without_the_time_of_an_evaluation():
    machine = TessellaRegressor(families=["laplace"], **ONE_THREAD).fit(X, Y).members_[0].machine
    rows = np.arange(40)

    def steps(seconds):
        search = Search(
            spaces=[],
            families=(),
            rows=rows,
            Y=Y[:, None],
            targets=(),
            weight=np.ones(60),
            left_out=np.ones(60),
            settings=EFFORTS["low"],
            clock=Clock(1e6),
            tell=lambda *_: None,
        )
        search.seconds, search.gram_seconds = seconds, 0.0
        return search._objective(machine, rows, np.arange(40, 60)).descend(3)

    assert steps(0.0)
    assert not steps(1e9)


def test_leaves_are_smaller_where_the_time_is_short():
    machines = TessellaRegressor(**ONE_THREAD).fit(X, Y).members_[:1]
    rng = np.random.default_rng(2)
    A, target = rng.random((4100, 3)), rng.standard_normal((4100, 1))
    space = replace(machines[0].machine.space, coordinates=A)
    machine = replace(machines[0].machine, space=space)
    found = []
    for seconds in (0.0, 1.4e-3, 1e9):  # for each row of the largest leaf and each tree
        average = Average(
            entries=[Entry((machine,), target, 1.0, "grid", 1)],
            shares=np.ones(1),
            rows=np.arange(1),
            complete=True,
            fit_seconds=lambda largest, trees, seconds=seconds: seconds * largest * trees,
        )
        model = TessellaRegressor(effort="low", n_jobs=1)
        clock = Clock(1.5 * 1.4e-3 * 2000)  # enough for one tree of the largest leaves, not for two
        (member,) = model._members(average, target, np.ones(4100), clock, lambda *_: None)
        found.append((member.partition.trees[0].n_leaves, member.partition.n_trees))
    assert found == [(3, 2), (3, 1), (5, 1)]


def test_a_long_search_tells_its_time(capsys, monkeypatch):
    monkeypatch.setattr(time, "monotonic", FakeClock(1.0))
    TessellaRegressor(verbose=1, **ONE_THREAD).fit(X, Y)
    (line,) = (one for one in capsys.readouterr().out.splitlines() if "expected time" in one)
    assert "about" in line
    TessellaRegressor(verbose=1, time_limit=100.0, **ONE_THREAD).fit(X, Y)
    monkeypatch.setattr(time, "monotonic", FakeClock(1e-9))
    TessellaRegressor(verbose=1, **ONE_THREAD).fit(X, Y)
    assert "expected time" not in capsys.readouterr().out.split("100%")[-2]
