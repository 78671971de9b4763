"""Coefficients of all machines on the rows as they were given, against loops over both."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tessella import LearnedKernelSVC

C = 2.0


def some_data(seed, n_classes):
    """Rows of which many are equal or have no weight, in no order."""
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, 30)])
    X = rng.integers(0, 3, (len(y), 2)).astype(float)
    X[:2] = [[0.0, 0.0], [2.0, 2.0]]  # the same box whatever the weights
    weight = np.concatenate([np.ones(n_classes), rng.integers(0, 3, 30)])
    order = rng.permutation(len(y))
    return X[order], y[order], weight[order]


def weight_of_equal_rows(X, y, weight, row):
    """The weight of a row and of those equal to it, and whether it is the first of them."""
    equal = [k for k in range(len(X)) if (X[k] == X[row]).all() and y[k] == y[row]]
    present = [k for k in equal if weight[k] > 0]
    return sum(weight[k] for k in equal), bool(present) and present[0] == row


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 4))
def test_coefficients_are_those_of_the_rows_as_given(seed, n_classes):
    X, y, weight = some_data(seed, n_classes)
    model = LearnedKernelSVC(C, tol=1e-4, decision_function_shape="ovo")
    model.fit(X, y, sample_weight=weight)
    pairs = [(1, 0)] if n_classes == 2 else list(combinations(range(n_classes), 2))
    assert (np.diff(model.support_) > 0).all()
    assert model.dual_coef_.shape == (len(pairs), len(model.support_))
    assert model.dual_coef_.any(axis=0).all()
    np.testing.assert_array_equal(model.support_vectors_, X[model.support_])
    for place, row in enumerate(model.support_):
        total, first = weight_of_equal_rows(X, y, weight, row)
        assert first
        for k, pair in enumerate(pairs):
            signed = model.dual_coef_[k, place] * (1.0 if y[row] == pair[0] else -1.0)
            assert 0.0 <= signed <= C * total * (1 + 1e-12)
            assert y[row] in pair or signed == 0.0
    np.testing.assert_allclose(model.dual_coef_.sum(axis=1), 0.0, atol=1e-9)
    # The coefficients in any other order would have another value.
    scores = model.kernel_(X, model.support_vectors_) @ model.dual_coef_.T + model.intercept_
    found = model.decision_function(X).reshape(len(X), -1)
    np.testing.assert_allclose(found, scores, rtol=1e-9, atol=1e-9)
    value = 0.0
    for k, pair in enumerate(pairs):
        w = model.dual_coef_[k]
        value += 0.5 * w @ model.kernel_(model.support_vectors_) @ w
        for row in range(len(X)):
            if y[row] in pair:
                sign = 1.0 if y[row] == pair[0] else -1.0
                value += C * weight[row] * max(0.0, 1.0 - sign * scores[row, k])
    assert value == pytest.approx(model.objective_, rel=1e-9)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_coefficients_come_back_from_the_rows_as_given(n_classes):
    X, y, weight = some_data(0, n_classes)
    model = LearnedKernelSVC(C, tol=1e-4, warm_start=True).fit(X, y, sample_weight=weight)
    support, coefficients, objective = model.support_, model.dual_coef_, model.objective_
    model.set_params(max_iter=0).fit(X, y, sample_weight=weight)
    np.testing.assert_array_equal(model.support_, support)
    np.testing.assert_allclose(model.dual_coef_, coefficients, rtol=1e-12)
    assert model.objective_ == pytest.approx(objective, rel=1e-12)
