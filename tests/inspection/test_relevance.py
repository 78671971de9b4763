"""Relevance of features and pairs, against definitions and known functions."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.inspection import permutation_importance
from sklearn.svm import SVC

from tessella import LearnedKernelSVR
from tessella.inspection import feature_relevance, interaction_relevance


class Known(RegressorMixin, BaseEstimator):
    """An estimator that has learned a given function."""

    def __init__(self, function):
        self.function = function

    def fit(self, X, y=None):
        self.n_features_in_ = X.shape[1]
        return self

    def predict(self, X):
        return self.function(X)


def factorial(*levels):
    """All combinations: features that are independent to the last digit."""
    return np.array(list(product(*levels)), dtype=float)


# ---- known functions


def test_sobol_indices_of_a_known_function():
    grid = np.linspace(-1.0, 1.0, 6)
    X = factorial(grid, grid, grid)
    model = Known(lambda X: 3.0 * X[:, 0] * X[:, 1] + 2.0 * X[:, 2] + 5.0).fit(X)
    unit = grid.var()  # of one coordinate; odd moments vanish
    pair, add = 9.0 * unit**2, 4.0 * unit
    whole = pair + add
    options = {"max_rows": 216, "max_levels": 216}
    total = feature_relevance(model, X, **options)
    np.testing.assert_allclose(total, [pair / whole, pair / whole, add / whole], rtol=1e-12)
    main = feature_relevance(model, X, kind="main", **options)
    np.testing.assert_allclose(main, [0.0, 0.0, add / whole], rtol=1e-12, atol=1e-14)
    pairs = interaction_relevance(model, X, max_rows=216, max_levels=36)
    expected = np.zeros((3, 3))
    expected[0, 1] = expected[1, 0] = pair / whole
    np.testing.assert_allclose(pairs, expected, rtol=1e-12, atol=1e-14)


def test_interaction_of_three_counts_for_each_pair():
    grid = np.linspace(-1.0, 1.0, 4)
    X = factorial(grid, grid, grid)
    model = Known(lambda X: X[:, 0] * X[:, 1] * X[:, 2]).fit(X)
    pairs = interaction_relevance(model, X, max_rows=64, max_levels=64)
    np.testing.assert_allclose(pairs, 1.0 - np.eye(3), atol=1e-12)


def test_additive_function_has_no_interactions(regression):
    _, X, _ = regression
    model = Known(lambda X: np.exp(X[:, 0]) + X[:, 2] ** 2).fit(X)
    assert interaction_relevance(model, X).max() < 1e-25
    np.testing.assert_allclose(
        feature_relevance(model, X), feature_relevance(model, X, kind="main"), rtol=1e-9, atol=1e-15
    )


def test_constant_function_has_no_relevance():
    X = np.random.default_rng(0).random((20, 3))
    model = Known(lambda X: np.full(len(X), 4.0)).fit(X)
    assert (feature_relevance(model, X) == 0).all()
    assert (interaction_relevance(model, X) == 0).all()


# ---- the definition, in slow motion


def test_definition_on_a_small_sample(case):
    model, X, _ = case
    f = getattr(model, "decision_function", model.predict)
    X = X[:9]
    total, main = np.zeros(8), np.zeros(8)
    for j in range(8):
        table = np.empty((9, 9))
        for i, t in product(range(9), range(9)):
            x = X[i].copy()
            x[j] = X[t, j]
            table[i, t] = f(x[None])[0]
        total[j] = table.var(axis=1).mean() / table.var()
        main[j] = table.mean(axis=0).var() / table.var()
    np.testing.assert_allclose(feature_relevance(model, X), total, rtol=1e-8)
    np.testing.assert_allclose(feature_relevance(model, X, kind="main"), main, rtol=1e-8)


def test_definition_of_pairs_on_a_small_sample(case):
    model, X, _ = case
    f = getattr(model, "decision_function", model.predict)
    X = X[:5]
    pairs = interaction_relevance(model, X, features=[0, 1, 4])
    for j, k in combinations([0, 1, 4], 2):
        table = np.empty((5, 5, 5))
        for i, s, t in product(range(5), repeat=3):
            x = X[i].copy()
            x[j], x[k] = X[s, j], X[t, k]
            table[i, s, t] = f(x[None])[0]
        rest = 0.0
        for i in range(5):
            means = table[i].mean(axis=0)[None, :] + table[i].mean(axis=1)[:, None]
            rest += ((table[i] - means + table[i].mean()) ** 2).mean() / 5
        assert pairs[j, k] == pairs[k, j] == pytest.approx(rest / table.var(), rel=1e-8)


# ---- learned from data with known relevance


def test_finds_what_matters(case):
    model, X, _ = case
    total = feature_relevance(model, X)
    assert total[:3].min() > 0.25
    assert total[3:].max() < 0.05
    main = feature_relevance(model, X, kind="main")
    assert main[2] > 0.85 * total[2]  # adds on its own
    assert main[:2].max() < 0.1 * total[:2].min()  # only acts in the pair
    pairs = interaction_relevance(model, X)
    assert pairs[0, 1] > 0.25
    others = pairs.copy()
    others[0, 1] = others[1, 0] = 0.0
    assert others.max() < 0.1 * pairs[0, 1]


def test_two_additive_features_and_a_pair():
    rng = np.random.default_rng(1)
    X = rng.random((600, 8))
    y = 8.0 * (X[:, 5] - 0.5) * (X[:, 6] - 0.5) + X[:, 0] + 1.5 * X[:, 3]
    model = LearnedKernelSVR(C=100.0, epsilon=0.02).fit(X, y)
    total, pairs = feature_relevance(model, X), interaction_relevance(model, X)
    assert set(np.argsort(-total)[:4]) == {0, 3, 5, 6}
    assert np.delete(total, [0, 3, 5, 6]).max() < 0.02
    assert np.unravel_index(pairs.argmax(), pairs.shape) == (5, 6)
    # The shares of the function that made the data: 64/144, 1/12 and 2.25/12 of the variance.
    whole = 64 / 144 + 3.25 / 12
    expected = np.array([1 / 12, 2.25 / 12, 64 / 144, 64 / 144]) / whole
    np.testing.assert_allclose(total[[0, 3, 5, 6]], expected, atol=0.08)


def test_permutation_importance_agrees(case):
    model, X, y = case
    importance = permutation_importance(model, X, y, n_repeats=3, random_state=0).importances_mean
    assert importance[:3].min() > 5 * importance[3:].max()
    assert set(np.argsort(-importance)[:3]) == set(np.argsort(-feature_relevance(model, X))[:3])


# ---- what must not matter


def test_order_of_rows_does_not_matter(case):
    model, X, _ = case
    order = np.random.default_rng(0).permutation(len(X))
    for function in (feature_relevance, interaction_relevance):
        np.testing.assert_allclose(function(model, X[order]), function(model, X), rtol=1e-8)


def test_units_do_not_matter(regression):
    _, X, y = regression
    X, y = X[:150], y[:150]
    model = LearnedKernelSVR().fit(X, y)
    # Powers of two change no digit, so the same function is learned.
    moved = LearnedKernelSVR().fit(X * 2.0 ** np.arange(8), 4.0 * y)
    for function in (feature_relevance, interaction_relevance):
        expected = function(model, X)
        np.testing.assert_array_equal(function(moved, X * 2.0 ** np.arange(8)), expected)


def test_order_of_features_does_not_matter(regression):
    _, X, _ = regression
    model = Known(lambda X: X[:, 0] * X[:, 1] + X[:, 2]).fit(X)
    turned = Known(lambda X: X[:, 7] * X[:, 6] + X[:, 5]).fit(X)
    np.testing.assert_allclose(
        feature_relevance(turned, X[:, ::-1])[::-1], feature_relevance(model, X), rtol=1e-10
    )


def relevance_of_three_pairs(model, X, **sizes):
    return interaction_relevance(model, X, features=[0, 1, 2], **sizes)[:3, :3]


@pytest.mark.parametrize(
    ("function", "count"), [(feature_relevance, 256), (relevance_of_three_pairs, 128)]
)
def test_thinned_rows_are_as_good_as_random_ones(case, function, count):
    """Nearly half of the rows of a classifier lie on its margin.

    The last digits of the machine decide their order, so that the rows that are chosen are a sample
    like any other: its error is that of random samples of the same size, and not a fixed number.
    """
    model, X, _ = case
    whole = function(model, X, max_rows=len(X))
    rng = np.random.default_rng(0)
    samples = [function(model, X[rng.permutation(len(X))[:count]]) for _ in range(20)]
    error = np.std(samples, axis=0)
    assert 0.01 < error.max() < 0.04
    assert (np.abs(function(model, X) - whole) <= 4.0 * error).all()


def test_fewer_levels_change_little(case):
    model, X, _ = case
    for function, levels in ((feature_relevance, 64), (relevance_of_three_pairs, 12)):
        fine = function(model, X, max_rows=len(X), max_levels=levels)
        np.testing.assert_allclose(function(model, X, max_rows=len(X)), fine, atol=0.01)


def test_shares_are_shares(case):
    model, X, _ = case
    total, main = feature_relevance(model, X), feature_relevance(model, X, kind="main")
    assert ((main >= 0) & (main <= total) & (total <= 1)).all()
    pairs = interaction_relevance(model, X)
    assert ((pairs >= 0) & (pairs <= 1)).all()
    assert (pairs == pairs.T).all()
    assert (np.diag(pairs) == 0).all()


# ---- what it takes


def test_own_rows_by_default(regression):
    """Up to 256 training rows are all kept; of more, some that stand for them."""
    model, X, y = regression
    small = LearnedKernelSVR(epsilon=0.1).fit(X[:100], y[:100])
    for function in (feature_relevance, interaction_relevance):
        np.testing.assert_allclose(function(small), function(small, X[:100]), atol=1e-9)
        assert np.abs(function(small) - function(small, small.support_vectors_)).max() > 1e-6
        np.testing.assert_allclose(function(model), function(model, X), atol=0.06)


def test_support_vectors_when_nothing_else_was_kept(regression):
    _, X, y = regression
    model = SVC().fit(X[:60], y[:60] > np.sort(y)[300])
    for function in (feature_relevance, interaction_relevance):
        np.testing.assert_array_equal(function(model), function(model, model.support_vectors_))


def test_no_support_vectors(regression):
    _, X, _ = regression
    model = LearnedKernelSVR().fit(X[:30], np.full(30, 2.0))
    assert len(model.support_) == 0
    assert (feature_relevance(model) == 0).all()
    assert (interaction_relevance(model) == 0).all()


def test_constant_features_have_no_relevance(regression):
    _, X, y = regression
    X = X[:100].copy()
    X[:, 4] = 7.0
    model = LearnedKernelSVR().fit(X, y[:100])
    assert feature_relevance(model, X)[4] == 0
    # Not even when they vary later: the kernel does not see them.
    X[:, 4] = np.arange(100)
    assert feature_relevance(model, X)[4] == 0


def test_several_outputs_are_summed():
    X, y = load_iris(return_X_y=True)
    model = SVC().fit(X, y)
    relevance = feature_relevance(model, X)
    assert relevance.shape == (4,)
    levels = np.sort(X[:, 2])[((np.arange(16) + 0.5) * (150 / 16)).astype(int)]
    table = np.empty((150, 16, 3))
    for t, level in enumerate(levels):
        moved = X.copy()
        moved[:, 2] = level
        table[:, t] = model.decision_function(moved)
    expected = table.var(axis=1).mean(axis=0).sum() / table.var(axis=(0, 1)).sum()
    assert relevance[2] == pytest.approx(expected, rel=1e-10)


def test_pairs_of_the_most_relevant_among_many():
    X = np.random.default_rng(0).random((80, 20))
    model = Known(lambda X: X[:, 3] * X[:, 19] + X[:, :11].sum(axis=1)).fit(X)
    pairs = interaction_relevance(model, X)
    computed = np.flatnonzero(np.isfinite(pairs).sum(axis=0) > 1)
    assert len(computed) == 12
    assert set(computed) == {*range(11), 19}
    assert np.nanargmax(pairs) == 3 * 20 + 19
    assert np.isnan(pairs[12, 13])
    chosen = interaction_relevance(model, X, features=[3, 19])
    assert chosen[3, 19] == pairs[3, 19]
    assert np.isnan(chosen[0, 1])


def test_frames_are_checked_by_name(regression, recwarn):
    _, X, y = regression
    frame = pd.DataFrame(X[:80], columns=list("abcdefgh"))
    model = LearnedKernelSVR().fit(frame, y[:80])
    relevance = feature_relevance(model, frame)
    np.testing.assert_array_equal(
        feature_relevance(model), feature_relevance(clone(model).fit(X[:80], y[:80]))
    )
    assert relevance.shape == (8,)
    assert not [w for w in recwarn if "feature names" in str(w.message)]
    with pytest.raises(ValueError, match="feature names"):
        feature_relevance(model, frame[list("hgfedcba")])


def test_bad_arguments(regression):
    model, X, _ = regression
    with pytest.raises(ValueError, match="kind='first'"):
        feature_relevance(model, X, kind="first")
    with pytest.raises(ValueError, match="max_rows=1"):
        feature_relevance(model, X, max_rows=1)
    with pytest.raises(ValueError, match="max_levels=0"):
        interaction_relevance(model, X, max_levels=0)
    with pytest.raises(ValueError, match="features"):
        feature_relevance(model, X[:, :3])
    with pytest.raises(NotFittedError):
        feature_relevance(LearnedKernelSVR(), X)
