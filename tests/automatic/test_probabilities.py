"""Probabilities of classes and intervals of targets: what they promise holds on new rows."""

from __future__ import annotations

import numpy as np
import pytest

from tessella import TessellaClassifier, TessellaRegressor


def two_classes(n_rows, seed):
    rng = np.random.default_rng(seed)
    X = rng.random((n_rows, 3))
    chance = 1.0 / (1.0 + np.exp(-4.0 * np.sin(5.0 * X[:, 0]) - 2.0 * (X[:, 1] - 0.5)))
    return X, rng.random(n_rows) < chance, chance


def three_classes(n_rows, seed):
    rng = np.random.default_rng(seed)
    X = rng.random((n_rows, 2))
    logits = np.column_stack([4.0 * X[:, 0], 4.0 * X[:, 1], np.full(n_rows, 2.0)])
    chance = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    y = (rng.random(n_rows)[:, None] > np.cumsum(chance, axis=1)).sum(axis=1)
    return X, y, chance


def reliability(probability, happened, bins=6):
    """Largest difference of predicted and observed frequencies among bins with many rows."""
    place = np.minimum((probability * bins).astype(int), bins - 1)
    gaps = [
        abs(probability[place == k].mean() - happened[place == k].mean())
        for k in range(bins)
        if np.count_nonzero(place == k) > 150
    ]
    assert len(gaps) >= 3
    return max(gaps)


@pytest.fixture(scope="module")
def binary():
    X, y, _ = two_classes(500, 0)
    return TessellaClassifier(effort="low").fit(X, np.where(y, "yes", "no"))


def test_probabilities_of_two_classes_are_calibrated(binary):
    X, y, chance = two_classes(4000, 1)
    probability = binary.predict_proba(X)
    np.testing.assert_allclose(probability.sum(axis=1), 1.0, rtol=1e-12)
    assert (probability >= 0).all()
    assert reliability(probability[:, 1], y) < 0.08
    assert np.mean(np.abs(probability[:, 1] - chance)) < 0.08
    predicted = binary.predict(X)
    assert (predicted == binary.classes_[probability.argmax(axis=1)]).all()
    assert np.mean(predicted == np.where(y, "yes", "no")) > np.mean((chance > 0.5) == y) - 0.03


def test_probabilities_of_three_classes_are_calibrated():
    X, y, _ = three_classes(500, 0)
    model = TessellaClassifier(effort="low").fit(X, y)
    new, labels, chance = three_classes(4000, 1)
    probability = model.predict_proba(new)
    np.testing.assert_allclose(probability.sum(axis=1), 1.0, rtol=1e-12)
    for k in range(3):
        assert reliability(probability[:, k], labels == k) < 0.09
    assert np.mean(np.abs(probability - chance)) < 0.08
    assert (model.predict(new) == probability.argmax(axis=1)).all()


def test_probabilities_follow_the_weights():
    """Rows of one class that count three times shift the probabilities to this class."""
    rng = np.random.default_rng(2)
    X, y = rng.random((200, 1)), rng.random(200) < 0.5
    even = TessellaClassifier(effort="low").fit(X, y).predict_proba(X)[:, 1].mean()
    weight = np.where(y, 3.0, 1.0)
    heavy = TessellaClassifier(effort="low").fit(X, y, sample_weight=weight)
    assert even == pytest.approx(0.5, abs=0.08)
    assert heavy.predict_proba(X)[:, 1].mean() == pytest.approx(0.75, abs=0.08)
    assert heavy.loo_score_ == pytest.approx(0.75, abs=0.08)


def test_separated_classes_have_high_but_finite_odds():
    X = np.concatenate([np.linspace(0.0, 0.4, 40), np.linspace(0.6, 1.0, 40)])[:, None]
    y = X[:, 0] > 0.5
    model = TessellaClassifier(effort="low").fit(X, y)
    probability = model.predict_proba(X)[:, 1]
    assert model.loo_score_ > 0.97
    assert probability[0] < 0.05
    assert probability[-1] > 0.95
    assert ((probability > 0) & (probability < 1)).all()


def test_scores_that_are_worse_than_none_are_not_turned_around():
    """The score of a class is smallest for its own only row, which is left out."""
    X = np.random.default_rng(3).random((12, 2))
    model = TessellaClassifier(effort="low").fit(X, np.arange(12))
    assert model.loo_score_ <= 0.1
    assert model.predict_proba(X).min() > 0.01


# ---- intervals


def waves(n_rows, seed):
    rng = np.random.default_rng(seed)
    X = rng.random((n_rows, 2))
    return X, 100.0 + 10.0 * (np.sin(5.0 * X[:, 0]) + X[:, 1]) + 2.0 * rng.normal(size=n_rows)


@pytest.fixture(scope="module")
def model():
    return TessellaRegressor(effort="low").fit(*waves(250, 0))


@pytest.mark.parametrize("coverage", [0.5, 0.8, 0.95])
def test_intervals_cover_new_rows(model, coverage):
    X, y = waves(3000, 1)
    lower, upper = model.predict_interval(X, coverage).T
    assert np.mean((lower <= y) & (y <= upper)) == pytest.approx(coverage, abs=0.05)
    np.testing.assert_allclose(0.5 * (lower + upper), model.predict(X), rtol=1e-12)
    # Not wider than the noise requires.
    normal = {0.5: 0.674, 0.8: 1.282, 0.95: 1.960}[coverage]
    assert np.mean(upper - lower) < 2.0 * normal * 2.0 * 1.25


def test_more_coverage_is_a_wider_interval(model):
    X, _ = waves(10, 2)
    widths = [np.ptp(model.predict_interval(X, c), axis=1)[0] for c in (0.1, 0.5, 0.9, 0.99)]
    assert (np.diff(widths) > 0).all()
    np.testing.assert_array_equal(model.predict_interval(X), model.predict_interval(X, 0.9))


def test_too_few_rows_for_a_coverage():
    """With m rows, coverages above m / (m + 1) need a residual larger than all."""
    X, y = waves(9, 3)
    model = TessellaRegressor(effort="low").fit(X, y)
    assert np.isfinite(model.predict_interval(X, 0.89)).all()
    lower, upper = model.predict_interval(X, 0.91).T
    assert (lower == -np.inf).all()
    assert (upper == np.inf).all()


def test_the_half_width_is_a_residual_of_its_rank(model):
    """Between the k - 1 and k smallest of m residuals for a coverage of k / (m + 1)."""
    X, _ = waves(1, 4)

    def half_width(coverage):
        return np.ptp(model.predict_interval(X, coverage)) / 2.0

    steps = [half_width((k - 0.5) / 251.0) for k in range(1, 251)]
    assert (np.diff(steps) >= 0).all()
    assert len(np.unique(np.round(steps, 9))) > 245  # another residual at every rank
    for k in (1, 100, 250):
        assert half_width((k - 0.01) / 251.0) == half_width((k - 0.99) / 251.0)
    assert half_width(250.5 / 251.0) == np.inf


@pytest.mark.parametrize("coverage", [0.0, 1.0, -0.5, 2.0, float("nan")])
def test_coverages_that_are_refused(model, coverage):
    with pytest.raises(ValueError, match="must be between 0 and 1"):
        model.predict_interval(waves(3, 5)[0], coverage)
