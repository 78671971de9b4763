"""Relevance as fitted attributes: right on known data, lazy, kept and forgotten in time."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.inspection import permutation_importance

from tessella import LearnedKernelSVC, LearnedKernelSVR
from tessella.inspection import feature_relevance, interaction_relevance

EFFECTS = (64 / 144, 64 / 144, 2.25 / 12, 0.0, 0.0)  # of the features below, by their variance


def known(n_samples=500):
    """A product of the first two features and a multiple of the third; the others do nothing."""
    rng = np.random.default_rng(0)
    X = rng.random((n_samples, 5))
    y = 8 * (X[:, 0] - 0.5) * (X[:, 1] - 0.5) + 1.5 * X[:, 2]
    return X, y + 0.05 * rng.standard_normal(n_samples)


@pytest.fixture(scope="module")
def regression():
    X, y = known()
    return LearnedKernelSVR().fit(X, y), X, y


@pytest.fixture(scope="module")
def classification():
    X, y = known()
    labels = y > np.median(y)
    # The relevance of a function that is only nearly optimal depends on where its fit has ended.
    return LearnedKernelSVC(tol=1e-6).fit(X, labels), X, labels


@pytest.fixture(params=["regression", "classification"])
def learned(request):
    return request.getfixturevalue(request.param)


# ---- what they say


def test_true_shares_are_found(regression):
    model, _, _ = regression
    truth = np.array(EFFECTS) / (EFFECTS[0] + EFFECTS[2])
    np.testing.assert_allclose(model.feature_relevance_, truth, atol=0.1)
    assert model.feature_relevance_[3:].max() < 0.02


def test_pair_that_acts_together_is_found(learned):
    pairs = learned[0].interaction_relevance_
    np.testing.assert_array_equal(pairs, pairs.T)
    others = np.sort(pairs[np.triu_indices(5, 1)])[:-1]
    assert pairs[0, 1] > 10 * others.max()


def test_permutation_importance_gives_the_same_ranking(learned):
    model, X, y = learned
    importance = permutation_importance(model, X, y, n_repeats=5, random_state=0).importances_mean
    relevance = model.feature_relevance_
    assert importance[3:].max() < 0.1 * importance[:3].min()
    assert relevance[3:].max() < 0.1 * relevance[:3].min()
    if y.dtype == float:  # a decision function need not weigh features as y does
        assert importance[2] < importance[:2].min()
        assert relevance[2] < relevance[:2].min()


def test_they_are_the_functions_on_the_rows_kept(learned):
    model, X, _ = learned
    rows = model._sample_rows
    assert rows.shape == (256, 5)
    assert {row.tobytes() for row in rows} <= {row.tobytes() for row in X}
    np.testing.assert_array_equal(model.feature_relevance_, feature_relevance(model, rows))
    np.testing.assert_array_equal(model.interaction_relevance_, interaction_relevance(model, rows))
    # A sample stands for all rows.
    np.testing.assert_allclose(model.feature_relevance_, feature_relevance(model, X), atol=0.04)


def test_rows_kept_are_spaced_in_an_order_that_all_features_decide():
    """Rows with the same class and the same sum of features are told apart by their features."""
    rng = np.random.default_rng(2)
    X = np.unique(rng.integers(0, 7, (900, 3)), axis=0).astype(float)
    X = X[rng.permutation(len(X))][:300]
    y = X[:, 0] * X[:, 1] > 9
    kept = LearnedKernelSVC().fit(X, y)._sample_rows
    ordered = X[np.lexsort((*X.T, (X / 6.0).sum(axis=1), y))]
    expected = ordered[np.floor((np.arange(256) + 0.5) * (300 / 256)).astype(int)]
    np.testing.assert_array_equal(kept, expected)


# ---- when they are computed


def test_nothing_is_computed_before_it_is_read(every_case, monkeypatch):
    def forbidden(model):
        raise AssertionError("too early")

    monkeypatch.setattr("tessella.estimators._relevance.feature_relevance", forbidden)
    monkeypatch.setattr("tessella.estimators._relevance.interaction_relevance", forbidden)
    model, X, y = every_case
    model = clone(model).fit(X, y)
    model.predict(X)
    pickle.loads(pickle.dumps(model))
    assert "feature_relevance_" not in dir(model)  # whose attributes a notebook reads
    with pytest.raises(AssertionError, match="too early"):
        _ = model.feature_relevance_


def test_computed_once_and_again_after_another_fit(every_case):
    model, X, y = every_case
    model = clone(model).fit(X, y)
    first = model.feature_relevance_, model.interaction_relevance_
    assert model.feature_relevance_ is first[0]
    assert "interaction_relevance_" in dir(model)
    model.fit(X[:, ::-1], y)
    np.testing.assert_allclose(model.feature_relevance_, first[0][::-1], atol=0.05)
    assert model.feature_relevance_ is not first[0]


def test_not_fitted(every_case):
    model = clone(every_case[0])
    assert not hasattr(model, "feature_relevance_")
    for name in ("feature_relevance_", "interaction_relevance_"):
        with pytest.raises(NotFittedError):
            getattr(model, name)


# ---- the rows kept


def fitted(X, y, weight=None):
    """A model that is solved to the end, so that rounding decides nothing."""
    return LearnedKernelSVR(tol=1e-7).fit(X, y, sample_weight=weight)


def test_few_rows_are_all_kept():
    X, y = known(40)
    model = fitted(X, y)
    expected = feature_relevance(model, X)
    np.testing.assert_allclose(model.feature_relevance_, expected, rtol=1e-9)
    assert np.abs(expected - feature_relevance(model, X[1:])).max() > 1e-4


def test_weights_are_copies_and_order_does_not_matter():
    X, y = known(300)
    rng = np.random.default_rng(1)
    weight = rng.integers(0, 4, 300)
    weighted = fitted(X, y, weight)
    many = np.repeat(np.arange(300), weight)
    assert len(many) > 256  # so that a choice is made
    rng.shuffle(many)
    copied = fitted(X[many], y[many])
    for name in ("feature_relevance_", "interaction_relevance_"):
        one, other = getattr(weighted, name), getattr(copied, name)
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


def test_weights_decide_how_often_a_row_comes():
    X, y = known(4)
    model = fitted(X, y, [1, 2, 4, 1])
    expected = feature_relevance(model, np.repeat(X, [32, 64, 128, 32], axis=0))
    np.testing.assert_allclose(model.feature_relevance_, expected, rtol=1e-9)
    assert np.abs(expected - feature_relevance(model, X)).max() > 1e-3


def test_units_do_not_matter_to_which_rows_are_kept():
    X, y = known(500)
    scale, offset = np.array([1.0, 1e3, 1e-3, 7.0, 2.0]), np.array([0.0, 5.0, -1.0, 0.0, 3.0])
    plain, moved = fitted(X, y), fitted(X * scale + offset, 3 * y - 8)
    np.testing.assert_allclose(moved.feature_relevance_, plain.feature_relevance_, atol=1e-6)
    # A row in the place of another one would change more than that.
    other = feature_relevance(plain, np.roll(X, 1, axis=0)[:256])
    assert np.abs(other - plain.feature_relevance_).max() > 1e-3
