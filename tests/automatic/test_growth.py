"""Tables with more rows than a search takes: the scales are refined on more of them."""

from __future__ import annotations

import numpy as np
import pytest

from tessella import TessellaClassifier, TessellaRegressor

SEARCH_ROWS = 700  # of effort="low"
PARAMS = {"effort": "low", "families": ["laplace"], "scalings": ["range"]}


def rough_data(n_rows, seed=0):
    """A wave that few rows cannot resolve, with idle columns."""
    rng = np.random.default_rng(seed)
    X = rng.random((n_rows, 4))
    return X, np.sin(60.0 * X[:, 0]) + X[:, 1] + 0.2 * rng.normal(size=n_rows)


def stages(model):
    return [line["stage"] for line in model.leaderboard_]


@pytest.fixture(scope="module")
def grown():
    X, y = rough_data(1200)
    return TessellaRegressor(**PARAMS).fit(X, y)


def test_growth_begins_with_more_rows_than_the_search_has():
    X, y = rough_data(900)
    assert "grown" not in stages(TessellaRegressor(**PARAMS).fit(X, y))


def test_average_is_of_grown_machines(grown):
    line = grown.leaderboard_[0]
    assert (line["stage"], line["rows"]) == ("grown", 900)
    assert line["weight"] == pytest.approx(1.0)
    others = [own for own in grown.leaderboard_ if own["stage"] != "grown"]
    assert others
    assert all(own["rows"] == SEARCH_ROWS and own["weight"] == 0.0 for own in others)


def test_grown_kernels_are_better_on_new_rows(grown):
    # Both have the same rows; without a refinement the scales of all columns are equal.
    X, y = rough_data(1200)
    new, _ = rough_data(2000, seed=1)
    truth = np.sin(60.0 * new[:, 0]) + new[:, 1]
    plain = TessellaRegressor(**PARAMS, refine=False).fit(X, y)
    errors = [np.mean((m.predict(new) - truth) ** 2) for m in (grown, plain)]
    assert errors[0] < 0.3 * errors[1]
    searched = min(own["error"] for own in grown.leaderboard_ if own["stage"] != "grown")
    assert grown.leaderboard_[0]["error"] < 0.9 * searched


def test_held_out_error_tells_the_error_of_new_rows(grown):
    X, y = rough_data(4000, seed=2)
    actual = np.mean((grown.predict(X) - y) ** 2) / np.var(y)
    assert grown.leaderboard_[0]["error"] == pytest.approx(actual, rel=0.25)
    assert grown.loo_score_ == pytest.approx(1.0 - actual, abs=0.06)


def test_noise_does_not_grow():
    rng = np.random.default_rng(4)
    X, y = rng.random((1000, 3)), rng.normal(size=1000)
    model = TessellaRegressor(**PARAMS).fit(X, y)
    new = rng.random((500, 3))
    assert np.var(model.predict(new)) < 0.05


@pytest.mark.parametrize(
    ("X", "y", "expected"),
    [
        (np.ones((1000, 2)), np.arange(1000.0), 499.5),
        (rough_data(1000)[0], np.full(1000, 3.0), 3.0),
    ],
    ids=["no column varies", "constant target"],
)
@pytest.mark.filterwarnings("error")
def test_nothing_to_refine(X, y, expected):
    model = TessellaRegressor(**PARAMS).fit(X, y)
    np.testing.assert_allclose(model.predict(X), expected, rtol=1e-9)


def test_classes_grow_too():
    X, _ = rough_data(1200, seed=5)
    labels = np.where(np.sin(60.0 * X[:, 0]) > 0, "up", "down")
    model = TessellaClassifier(**PARAMS).fit(X, labels)
    assert stages(model)[0] == "grown"
    new, _ = rough_data(1000, seed=6)
    truth = np.where(np.sin(60.0 * new[:, 0]) > 0, "up", "down")
    assert model.score(new, truth) > 0.9
    probability = model.predict_proba(new)
    np.testing.assert_array_equal(model.classes_[probability.argmax(axis=1)], model.predict(new))


def test_weights_count_as_copies():
    X, y = rough_data(1000, seed=7)
    weight = np.random.default_rng(8).integers(1, 3, 1000)
    copies = np.repeat(np.arange(1000), weight)
    one = TessellaRegressor(**PARAMS).fit(X, y, sample_weight=weight)
    other = TessellaRegressor(**PARAMS).fit(X[copies], y[copies])
    np.testing.assert_allclose(one.predict(X), other.predict(X), rtol=1e-7, atol=1e-7)


def test_result_does_not_depend_on_the_threads():
    X, y = rough_data(1000, seed=9)
    params = {**PARAMS, "families": ["laplace", "gaussian"]}
    one, two = (TessellaRegressor(**params, n_jobs=n).fit(X, y) for n in (1, 2))
    np.testing.assert_array_equal(one.predict(X), two.predict(X))


def test_time_limit_ends_the_growth():
    X, y = rough_data(1000, seed=10)
    model = TessellaRegressor(**PARAMS, time_limit=1e-3).fit(X, y)
    assert not model.search_complete_
    assert "grown" not in stages(model)
    assert np.isfinite(model.predict(X)).all()


def test_interrupt_in_the_growth_keeps_the_machines_of_the_search(monkeypatch, capsys):
    X, y = rough_data(1000, seed=11)
    calls = []

    def interrupted(*args, **kwargs):
        calls.append(1)
        raise KeyboardInterrupt

    monkeypatch.setattr("tessella.automatic._descent.held_out_gradient", interrupted)
    model = TessellaRegressor(**PARAMS, verbose=1).fit(X, y)
    assert calls
    assert "interrupted" in capsys.readouterr().out
    assert not model.search_complete_
    assert "grown" not in stages(model)
    assert np.isfinite(model.predict(X)).all()
