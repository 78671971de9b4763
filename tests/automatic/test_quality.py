"""Made-up data of which the answer is known: the search finds it, and does not find what is not."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from tessella import TessellaClassifier, TessellaRegressor
from tessella.automatic import FAMILIES


def regressor(**params):
    return TessellaRegressor(effort="low", **params)


def classifier(**params):
    return TessellaClassifier(effort="low", **params)


def r2(model, X, y):
    return 1.0 - np.mean((model.predict(X) - y) ** 2) / np.var(y)


# ---- what the search should find


def test_idle_columns_get_small_scales():
    rng = np.random.default_rng(0)
    X, new = rng.random((150, 8)), rng.random((300, 8))

    def truth(rows):
        return np.sin(6.0 * rows[:, 2]) + 2.0 * rows[:, 5] ** 2

    model = regressor().fit(X, truth(X) + 0.05 * rng.normal(size=150))
    assert model.leaderboard_[0]["stage"] == "descent"
    kernels = [member.machine.kernel for member in model.members_]
    steepness = np.array([FAMILIES[k.family].steepness(k.scales) for k in kernels])
    shares = (steepness / steepness.sum(axis=1, keepdims=True)).mean(axis=0)
    assert np.delete(shares, [2, 5]).max() < 0.6 * shares[[2, 5]].min()
    assert model.feature_relevance_[[2, 5]].min() > 0.2
    assert np.delete(model.feature_relevance_, [2, 5]).max() < 0.02
    plain = regressor(refine=False).fit(X, truth(X) + 0.05 * rng.normal(size=150))
    errors = [1.0 - r2(m, new, truth(new)) for m in (model, plain)]
    assert errors[0] < 0.01
    assert errors[0] < 0.3 * errors[1]


def test_descent_improves_the_error_it_descends():
    rng = np.random.default_rng(1)
    X = rng.random((120, 5))
    model = regressor(families=["gaussian"], scalings=["range"]).fit(X, np.sin(5.0 * X[:, 0]))
    by_stage = {line["stage"]: line["error"] for line in model.leaderboard_[::-1]}
    assert by_stage["descent"] < 0.5 * by_stage["grid"]


def path(x, rng):
    """A random walk along x, which has a kink at every step."""
    steps = rng.normal(size=400) / 20.0
    return np.cumsum(steps)[(x * 400).astype(int)]


@pytest.mark.parametrize("family", ["gaussian", "laplace"])
def test_the_family_of_the_function_is_found(family):
    rng = np.random.default_rng(2)
    X = rng.random((150, 2))
    if family == "gaussian":
        y = np.sin(7.0 * X[:, 0]) + np.sin(7.0 * X[:, 1])
    else:
        y = path(X[:, 0], rng) + path(X[:, 1], rng)
    model = regressor(families=["laplace", "gaussian"], refine=False).fit(X, y)
    assert model.leaderboard_[0]["family"] == family


def test_linear_functions():
    rng = np.random.default_rng(3)
    X, new = rng.normal(size=(120, 4)), rng.normal(size=(200, 4))
    slopes = np.array([3.0, -1.0, 0.5, 0.0])
    model = regressor().fit(X, X @ slopes)
    inside = np.all((new > X.min(axis=0)) & (new < X.max(axis=0)), axis=1)
    assert r2(model, new[inside], new[inside] @ slopes) > 0.99
    assert model.loo_score_ > 0.99


def test_skewed_targets_choose_the_logarithm():
    rng = np.random.default_rng(4)
    X, new = rng.random((200, 3)), rng.random((300, 3))

    def price(rows):
        return 1000.0 * np.exp(3.0 * rows[:, 0] + np.sin(5.0 * rows[:, 1]))

    y = price(X) * np.exp(0.2 * rng.normal(size=200))
    model = regressor().fit(X, y)
    assert model.leaderboard_[0]["target"] == "logarithm"
    assert r2(model, new, price(new)) > 0.9
    assert (model.predict(new) > 0).all()
    # The mirrored target has its tail on the other side.
    mirrored = regressor().fit(X, 5e4 - y)
    assert mirrored.leaderboard_[0]["target"] == "logarithm"
    assert r2(mirrored, new, 5e4 - price(new)) > 0.9
    # A target that is not skewed is left as it is.
    even = regressor().fit(X, X[:, 0] + 0.1 * rng.normal(size=200))
    assert {line["target"] for line in even.leaderboard_} == {"plain"}


def test_scales_and_units_do_not_matter():
    rng = np.random.default_rng(5)
    X = rng.random((80, 3))
    y = np.sin(4.0 * X[:, 0]) + X[:, 1]
    expected = regressor(refine=False).fit(X, y).predict(X)
    scaled = regressor(refine=False).fit(X * [1e-6, 1e5, 3.0] + [0.0, 1e6, 7.0], 1e8 * y + 1e9)
    found = scaled.predict(X * [1e-6, 1e5, 3.0] + [0.0, 1e6, 7.0])
    np.testing.assert_allclose((found - 1e9) / 1e8, expected, atol=1e-4)


def test_outliers_of_a_feature_do_not_spoil_the_others():
    rng = np.random.default_rng(6)
    X = rng.random((150, 2))
    y = np.sin(6.0 * X[:, 0]) + X[:, 1]
    X[:3, 0] = 1e6
    model = regressor().fit(X, y)
    assert r2(model, X[3:], y[3:]) > 0.95
    assert model.leaderboard_[0]["scaling"] == "quantile"


def test_many_classes():
    rng = np.random.default_rng(7)
    centres = rng.random((20, 4))
    code = np.repeat(np.arange(20), 12)
    names = np.array([f"class {k:02d}" for k in range(20)])
    X = centres[code] + 0.04 * rng.normal(size=(240, 4))
    model = classifier().fit(X, names[code])
    assert model.classes_.tolist() == names.tolist()
    new = centres[code] + 0.04 * rng.normal(size=(240, 4))
    assert model.score(new, names[code]) > 0.97
    assert model.predict_proba(new).shape == (240, 20)


def test_two_rows_of_each_class():
    rng = np.random.default_rng(8)
    centres = 10.0 * np.arange(8)[:, None] + np.zeros(2)
    code = np.repeat(np.arange(8), 2)
    X = centres[code] + rng.random((16, 2))
    model = classifier().fit(X, code)
    assert model.score(X, code) == 1.0
    assert model.score(centres + 0.5, np.arange(8)) == 1.0


def test_rare_classes_are_in_the_search():
    rng = np.random.default_rng(9)
    X = rng.random((300, 2))
    y = np.where(X[:, 0] > 0.97, "rare", np.where(X[:, 1] > 0.5, "high", "low"))
    model = classifier().fit(X, y)
    assert model.score(X, y) > 0.97
    assert "rare" in model.predict(X)


@pytest.mark.parametrize(
    "words", [np.array(["no", "yes"]), np.array([0, 1])], ids=["text", "numbers"]
)
def test_tables_of_few_categories(words):
    """Rows are equal by chance, and new rows will be equal to them: copies are information."""

    def table(n_rows, seed):
        rng = np.random.default_rng(seed)
        codes = rng.integers(0, 2, (n_rows, 3))
        chance = 0.2 + 0.6 * codes[:, 0] * codes[:, 1] - 0.1 * codes[:, 2]
        frame = pd.DataFrame(words[codes], columns=["a", "b", "c"])
        return frame, rng.random(n_rows) < chance, chance

    X, y, _ = table(500, 0)
    new, labels, chance = table(2000, 1)
    model = classifier().fit(X, y)
    best = np.mean((chance > 0.5) == labels)
    assert model.score(new, labels) > best - 0.02
    assert model.loo_score_ == pytest.approx(best, abs=0.05)
    assert np.abs(model.predict_proba(new)[:, 1] - chance).max() < 0.12
    numbers = regressor().fit(X, y.astype(float))
    assert np.abs(numbers.predict(new) - chance).max() < 0.12


# ---- what the search should not find


@pytest.mark.parametrize("copies", [1, 3])
def test_noise_is_not_predicted(copies):
    rng = np.random.default_rng(10)
    X, y = rng.random((150, 5)), rng.normal(size=150)
    new, truth = rng.random((400, 5)), rng.normal(size=400)
    model = regressor().fit(np.tile(X, (copies, 1)), np.tile(y, copies))
    assert -0.1 < model.loo_score_ < 0.1
    assert r2(model, new, truth) > -0.1
    assert model.predict(new).std() < 0.35
    labels = y > 0
    classes = classifier().fit(np.tile(X, (copies, 1)), np.tile(labels, copies))
    assert classes.loo_score_ < 0.65
    assert np.abs(classes.predict_proba(new)[:, 1] - 0.5).max() < 0.3


def test_copies_and_weights_of_one_column_are_no_information():
    rng = np.random.default_rng(16)
    x, y = rng.random((120, 1)), rng.random(120) < 0.5
    once = classifier().fit(x, y)
    for copies in (2, 5):
        several = classifier().fit(np.tile(x, (copies, 1)), np.tile(y, copies))
        assert several.loo_score_ == once.loo_score_
        weighted = classifier().fit(x, y, sample_weight=np.full(120, copies))
        np.testing.assert_array_equal(several.predict_proba(x), weighted.predict_proba(x))


def test_the_score_is_that_of_new_rows():
    rng = np.random.default_rng(11)
    X, new = rng.random((200, 6)), rng.random((2000, 6))

    def noisy(rows):
        return np.sin(5.0 * rows[:, 0]) + rows[:, 1] + 0.5 * rng.normal(size=len(rows))

    model = regressor().fit(X, noisy(X))
    assert model.loo_score_ == pytest.approx(r2(model, new, noisy(new)), abs=0.12)


def test_few_rows_and_many_columns():
    rng = np.random.default_rng(12)
    X, new = rng.normal(size=(60, 80)), rng.normal(size=(300, 80))
    y, truth = X[:, 0] + X[:, 1], new[:, 0] + new[:, 1]
    model = regressor().fit(X, y)
    assert r2(model, new, truth) > 0.3


# ---- what does not matter


@pytest.mark.parametrize("estimator", [TessellaRegressor, TessellaClassifier])
def test_the_number_of_threads_and_repetitions_do_not_matter(estimator):
    rng = np.random.default_rng(13)
    X = rng.random((90, 4))
    y = X[:, 0] + X[:, 1] > 1.0
    models = [estimator(effort="low", n_jobs=n_jobs).fit(X, y) for n_jobs in (1, 1, 3)]
    for model in models[1:]:
        assert model.leaderboard_ == models[0].leaderboard_
        np.testing.assert_array_equal(model.predict(X), models[0].predict(X))
        np.testing.assert_array_equal(model.feature_relevance_, models[0].feature_relevance_)


def test_only_some_families_scalings_and_encodings():
    rng = np.random.default_rng(14)
    frame = pd.DataFrame({"x": rng.random(80), "town": rng.choice(["Ulm", "Bern"], 80)})
    y = frame["x"] + (frame["town"] == "Ulm")
    model = regressor(
        families=["tessellated"], scalings=["robust"], encodings=["target"], average=False
    ).fit(frame, y)
    assert {line["family"] for line in model.leaderboard_} == {"tessellated"}
    assert {line["scaling"] for line in model.leaderboard_} == {"robust"}
    assert {line["encoding"] for line in model.leaderboard_} == {"target"}
    assert [line["weight"] for line in model.leaderboard_] == sorted(
        (line["weight"] for line in model.leaderboard_), reverse=True
    )
    assert model.leaderboard_[0]["weight"] == 1.0
    assert model.loo_score_ > 0.95


def test_the_leaderboard_describes_the_average():
    rng = np.random.default_rng(15)
    X = rng.random((100, 3))
    model = regressor().fit(X, np.abs(X[:, 0] - 0.5) + 0.1 * rng.normal(size=100))
    errors = [line["error"] for line in model.leaderboard_]
    assert errors == sorted(errors)
    assert sum(line["weight"] for line in model.leaderboard_) == pytest.approx(1.0)
    assert sum(member.share for member in model.members_) == pytest.approx(1.0)
    assert model.gap_ < 1e-8
    assert model.search_complete_
    assert model.fit_time_ > 0.0
    # The prediction is the average of those of the members.
    spaces = [member.machine.space.apply(X) for member in model.members_]
    outputs = [m.outputs(rows)[:, 0] for m, rows in zip(model.members_, spaces, strict=True)]
    mean = np.average(outputs, axis=0, weights=[member.share for member in model.members_])
    slope, offset = np.polyfit(mean, model.predict(X), 1)  # the unit of the target
    np.testing.assert_allclose(model.predict(X), slope * mean + offset, rtol=1e-9)
