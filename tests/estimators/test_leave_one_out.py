"""Leave-one-out predictions, each against a fit that really leaves the row out."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score, r2_score

from tessella import KernelPathCV, LearnedKernelRidge, LearnedKernelRidgeClassifier


def ridge(K, Y, loss_weight):
    """Coefficients and intercepts of kernel ridge regression, by one plain linear system."""
    m = len(K)
    system = np.ones((m + 1, m + 1))
    system[:m, :m] = K + np.diag(1.0 / loss_weight)
    system[m, m] = 0.0
    solution = np.linalg.solve(system, np.vstack([Y, np.zeros(Y.shape[1])]))
    return solution[:m], solution[m]


def without_each(K, Y, weight, copies):
    """Prediction for each row by a fit in which one copy of it is missing."""
    predictions = np.empty_like(Y)
    for i in range(len(K)):
        left = np.maximum(copies[i] - 1.0, 0.0) / copies[i]
        changed = weight.copy()
        changed[i] *= left
        kept = np.flatnonzero(changed > 0)
        coefficients, intercept = ridge(K[np.ix_(kept, kept)], Y[kept], changed[kept])
        predictions[i] = K[i, kept] @ coefficients + intercept
    return predictions


@pytest.fixture(scope="module")
def weighted():
    rng = np.random.default_rng(3)
    X = rng.random((40, 2))
    y = np.sin(5 * X[:, 0]) + X[:, 1] + 0.2 * rng.standard_normal(40)
    weight = rng.choice([0.0, 0.4, 1.0, 1.5, 2.0, 3.0], 40)
    return X, y, weight


def test_regression_agrees_with_refits_at_the_learned_kernel(weighted):
    X, y, weight = weighted
    model = LearnedKernelRidge(C=20.0).fit(X, y, sample_weight=weight)
    used = weight > 0
    K = model.kernel_(X[used], X[used])
    expected = without_each(K, y[used][:, None], 20.0 * weight[used], weight[used])[:, 0]
    np.testing.assert_allclose(model.loo_predictions_[used], expected, rtol=1e-8)
    np.testing.assert_allclose(model.loo_predictions_[~used], model.predict(X[~used]))
    score = r2_score(y[used], expected, sample_weight=weight[used])
    assert model.loo_score_ == pytest.approx(score, rel=1e-8)
    # The prediction without a row is really another one.
    assert np.abs(model.predict(X[used]) - expected).max() > 0.05


def test_copies_are_left_out_one_at_a_time(weighted):
    X, y, _ = weighted
    count = np.arange(40) % 3 + 1
    copied = LearnedKernelRidge().fit(np.repeat(X, count, axis=0), np.repeat(y, count))
    weighted_model = LearnedKernelRidge().fit(X, y, sample_weight=count)
    # The copies are rows of their own here, each of weight one.
    K = copied.kernel_(np.repeat(X, count, axis=0), np.repeat(X, count, axis=0))
    Y, ones = np.repeat(y, count)[:, None], np.ones(count.sum())
    expected = without_each(K, Y, 10.0 * ones, ones)[:, 0]
    np.testing.assert_allclose(copied.loo_predictions_, expected, rtol=1e-7)
    np.testing.assert_allclose(
        np.repeat(weighted_model.loo_predictions_, count), copied.loo_predictions_, rtol=1e-12
    )
    assert weighted_model.loo_score_ == pytest.approx(copied.loo_score_, rel=1e-12)


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("class_weight", [None, "balanced", {"c0": 5.0}])
def test_classification_agrees_with_refits_at_the_learned_kernel(n_classes, class_weight):
    rng = np.random.default_rng(4)
    X = rng.random((45, 2))
    codes = (n_classes * X[:, 0] * 0.999).astype(int)
    y = np.array([f"c{k}" for k in range(n_classes)])[codes]
    weight = rng.integers(1, 4, 45).astype(float)
    model = LearnedKernelRidgeClassifier(C=3.0, class_weight=class_weight)
    model.fit(X, y, sample_weight=weight)
    totals = np.bincount(codes, weights=weight)
    factors = {
        None: np.ones(n_classes),
        "balanced": weight.sum() / (n_classes * totals),
    }.get(class_weight if not isinstance(class_weight, dict) else "dict")
    if factors is None:
        factors = np.where(np.arange(n_classes) == 0, 5.0, 1.0)
    Y = 2.0 * (codes[:, None] == np.arange(n_classes)) - 1.0
    Y = Y[:, 1:] if n_classes == 2 else Y
    K = model.kernel_(X, X)
    expected = without_each(K, Y, 3.0 * factors[codes] * weight, weight)
    shape = (45,) if n_classes == 2 else (45, n_classes)
    assert model.loo_decision_function_.shape == shape
    np.testing.assert_allclose(
        model.loo_decision_function_, expected.reshape(shape), rtol=1e-7, atol=1e-8
    )
    decided = (expected[:, 0] > 0).astype(int) if n_classes == 2 else expected.argmax(axis=1)
    assert (model.loo_predictions_ == model.classes_[decided]).all()
    score = accuracy_score(codes, decided, sample_weight=weight)
    assert model.loo_score_ == pytest.approx(score, rel=1e-12)


def test_a_fit_that_stopped_early_is_solved_for_its_kernel(weighted):
    X, y, weight = weighted
    used = weight > 0
    model = LearnedKernelRidge(solver="apd", max_iter=3, tol=1e-12)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y, sample_weight=weight)
    K = model.kernel_(X[used], X[used])
    expected = without_each(K, y[used][:, None], 10.0 * weight[used], weight[used])[:, 0]
    np.testing.assert_allclose(model.loo_predictions_[used], expected, rtol=1e-8)


def test_rows_held_out_by_early_stopping_have_their_predictions(weighted):
    X, y, _ = weighted
    model = LearnedKernelRidge(early_stopping=True, random_state=0, validation_fraction=0.2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    rest = np.setdiff1d(np.arange(40), model.support_)
    assert len(rest) == 8
    np.testing.assert_allclose(model.loo_predictions_[rest], model.predict(X[rest]))


def test_a_search_scores_with_them(weighted):
    X, y, _ = weighted
    grid = {"C": [0.1, 1.0, 10.0]}
    search = KernelPathCV(LearnedKernelRidge(), grid, cv="loo").fit(X, y)
    expected = [LearnedKernelRidge(C=C).fit(X, y).loo_score_ for C in grid["C"]]
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], expected, atol=1e-3)


def test_it_is_computed_when_it_is_read_and_forgotten_by_the_next_fit(weighted):
    X, y, _ = weighted
    model = LearnedKernelRidge()
    assert not hasattr(model, "loo_score_")
    with pytest.raises(NotFittedError):
        _ = model.loo_predictions_
    model.fit(X, y)
    assert "loo_predictions_" not in vars(model)
    assert "loo_predictions_" not in dir(model)
    first = model.loo_score_
    assert "loo_score_" in dir(model)
    model.fit(X, y[::-1])
    assert model.loo_score_ != first
    assert model.loo_score_ == clone(model).fit(X, y[::-1]).loo_score_


def test_constant_target_is_predicted_without_any_row():
    X = np.random.default_rng(0).random((20, 2))
    model = LearnedKernelRidge().fit(X, np.full(20, 7.0))
    np.testing.assert_allclose(model.predict(X + 10.0), 7.0)
    np.testing.assert_allclose(model.loo_predictions_, 7.0)
    assert model.gap_ == 0.0
