"""Weights by a rule: against MKLpy's, and against computations that are slow and obvious."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from reference.weights import rows_of
from scipy.optimize import minimize
from sklearn.svm import SVC, SVR

from tessella import MultipleKernelSVC, MultipleKernelSVR
from tessella.kernels import Gaussian, KernelDictionary, Polynomial

# The rules have no public name of their own: an estimator gives their weights, and not the matrix,
# the vector and the scores that are compared here.
from tessella.multiple_kernels import performance
from tessella.multiple_kernels.performance import N_FOLDS, accuracies, folds, squared_errors
from tessella.multiple_kernels.rules import (
    alignment_system,
    alignment_weights,
    average_weights,
    closed_form,
    weights_of_errors,
    weights_of_scores,
)
from tessella.svm import DualProblem

MKLPY = json.loads((Path(__file__).parent / "mklpy_weights.json").read_text())
DICTIONARIES = {
    "unlike": KernelDictionary([Gaussian(0.5), Polynomial(1)], normalisation=None),
    "alike": KernelDictionary.standard((0.5, 2.0), (2,), normalisation=None),
}
KERNELS = KernelDictionary([Gaussian(0.5), Gaussian(3.0), Polynomial(1), Polynomial(2)])


def bound_of(label):
    X, y = np.array(MKLPY["X"]), np.array(MKLPY["y"], dtype=float)
    return DICTIONARIES[label].bind(X, n_jobs=1), X, y


@pytest.mark.parametrize("label", ["unlike", "alike"])
def test_average_and_closed_form_are_those_of_mklpy(label):
    bound, _, y = bound_of(label)
    np.testing.assert_allclose(
        average_weights(bound.cone.degree), MKLPY[label]["average"], rtol=1e-6
    )
    v = closed_form(*alignment_system(bound, y[:, None], np.ones(len(y))))
    np.testing.assert_allclose(v / np.linalg.norm(v), MKLPY[label]["alignment"], rtol=1e-6)


def test_alignment_weights_are_those_of_mklpy_where_those_are_a_kernel():
    bound, X, y = bound_of("unlike")
    theirs = np.array(MKLPY["unlike"]["alignment"])
    found = alignment_weights(bound, y[:, None], np.ones(len(y)))
    np.testing.assert_allclose(found, theirs / theirs.sum(), rtol=1e-6)
    model = MultipleKernelSVC(kernels=DICTIONARIES["unlike"], weighting="alignment").fit(X, y)
    np.testing.assert_allclose(model.weights_, found, rtol=1e-9)


def test_alignment_without_negative_weights_is_the_largest_there_is():
    bound, X, y = bound_of("alike")
    weight = np.ones(len(y))
    found = alignment_weights(bound, y[:, None], weight)
    assert min(MKLPY["alike"]["alignment"]) < 0 <= found.min()
    centre = np.eye(len(y)) - 1.0 / len(y)
    fitted = bound.kernels
    centred = np.array([centre @ fitted.matrix(k, X) @ centre for k in range(len(fitted))])
    target = centre @ np.outer(y, y) @ centre

    def alignment(mu):
        K = np.tensordot(mu, centred, 1)
        return np.vdot(K, target) / (np.linalg.norm(K) * np.linalg.norm(target))

    start = np.full(len(fitted), 1.0 / len(fitted))
    best = minimize(lambda mu: -alignment(mu), start, bounds=[(0, 1)] * len(fitted), tol=1e-14)
    assert alignment(found) == pytest.approx(-best.fun, abs=1e-7)


@pytest.mark.parametrize("n_jobs", [2, 5])
def test_alignment_does_not_depend_on_threads(n_jobs):
    """To the last bit: groups of strips are summed, and not what each thread happened to do."""
    X, signal = rows_of(700)
    fitted, ones = KERNELS.resolve(X), np.ones(700)
    targets = np.sign(signal)[:, None]
    one = alignment_system(fitted.bind(X, n_jobs=1), targets, ones)
    several = alignment_system(fitted.bind(X, n_jobs=n_jobs), targets, ones)
    np.testing.assert_array_equal(one[0], several[0])
    np.testing.assert_array_equal(one[1], several[1])


def test_alignment_with_nothing_is_even():
    bound, _, y = bound_of("alike")
    found = alignment_weights(bound, np.zeros((len(y), 1)), np.ones(len(y)))
    np.testing.assert_array_equal(found, average_weights(bound.cone.degree))


def test_alignment_counts_weights_as_copies():
    bound, X, y = bound_of("alike")
    weight = np.ones(len(y))
    weight[:7] = 3.0
    M, a = alignment_system(bound, y[:, None], weight)
    copies = np.repeat(np.arange(len(y)), weight.astype(int))
    # The same scale of features for both: only the alignment is compared.
    longer = bound.kernels.bind(X[copies], n_jobs=1)
    M_copies, a_copies = alignment_system(longer, y[copies, None], np.ones(len(copies)))
    np.testing.assert_allclose(M, M_copies, rtol=1e-9)
    np.testing.assert_allclose(a, a_copies, rtol=1e-9)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_accuracies_by_scikit_learn_on_the_same_folds(n_classes):
    X, signal = rows_of(60)
    codes = np.digitize(signal, [0.0] if n_classes == 2 else [-0.6, 0.6]) + 0.0
    order = np.argsort(codes, kind="stable")
    X, codes = X[order], codes[order]
    fitted, ones = KERNELS.resolve(X), np.ones(60)
    fold, expected = folds(codes.astype(int)), np.zeros(len(fitted))
    for k in range(len(fitted)):
        K, hits = fitted.matrix(k, X), 0
        for f in range(N_FOLDS):
            train, test = np.flatnonzero(fold != f), np.flatnonzero(fold == f)
            machine = SVC(C=2.0, kernel="precomputed", tol=1e-8).fit(
                K[np.ix_(train, train)], codes[train]
            )
            hits += (machine.predict(K[np.ix_(test, train)]) == codes[test]).sum()
        expected[k] = hits / 60
    found = accuracies(fitted.bind(X), codes, 2.0 * ones, ones)
    np.testing.assert_allclose(found, expected, atol=1.01 / 60)  # one row on the border
    assert expected.max() > expected.min()


def test_squared_errors_by_scikit_learn_on_the_same_folds():
    X, y = rows_of(60)
    order = np.argsort(y)
    X, y = X[order], (y[order] - y.mean()) / y.std()
    fitted = KERNELS.resolve(X)
    fold, expected = folds(np.zeros(60, dtype=int)), np.zeros(len(fitted))
    for k in range(len(fitted)):
        K = fitted.matrix(k, X)
        for f in range(N_FOLDS):
            train, test = np.flatnonzero(fold != f), np.flatnonzero(fold == f)
            machine = SVR(C=2.0, epsilon=0.1, kernel="precomputed", tol=1e-8).fit(
                K[np.ix_(train, train)], y[train]
            )
            missed = machine.predict(K[np.ix_(test, train)]) - y[test]
            expected[k] += missed @ missed / 60
    dual = DualProblem.regression(y, 2.0, 0.1)
    found = squared_errors(fitted.bind(X), dual, np.ones(60))
    np.testing.assert_allclose(found, expected, rtol=0.02)


@pytest.mark.parametrize("most", [0, 400])
def test_parts_of_a_matrix(most, monkeypatch):
    monkeypatch.setattr(performance, "_MOST_BLOCKS", most)
    K = np.arange(99.0).reshape(9, 11)
    for rows, columns in (([0, 1, 2, 5, 6, 8], [3, 4, 9, 10]), ([4], [0, 2, 1]), ([], [1])):
        own = np.array(rows, dtype=np.intp), np.array(columns, dtype=np.intp)
        np.testing.assert_array_equal(performance.part(K, *own), K[np.ix_(*own)])
        w = np.arange(len(columns)) - 1.5
        np.testing.assert_allclose(performance.product(K, *own, w), K[np.ix_(*own)] @ w)


def test_weights_of_scores_and_errors_by_their_formulas():
    np.testing.assert_allclose(weights_of_scores(np.array([0.9, 0.6])), [0.6, 0.4])
    np.testing.assert_allclose(weights_of_scores(np.array([0.9, 0.6]), 0.5), [0.8, 0.2])
    np.testing.assert_allclose(weights_of_scores(np.zeros(2)), [0.5, 0.5])
    np.testing.assert_allclose(
        weights_of_errors(np.array([1.0, 2.0, 3.0])), [5 / 12, 4 / 12, 3 / 12]
    )
    np.testing.assert_allclose(weights_of_errors(np.zeros(2)), [0.5, 0.5])


def test_estimators_use_the_rules():
    X, y = rows_of(60)
    model = MultipleKernelSVR(C=2.0, kernels=KERNELS, weighting="performance").fit(X, y)
    assert model.weights_.sum() == pytest.approx(1.0)
    assert model.weights_.max() > model.weights_.min() > 0
    even = MultipleKernelSVC(kernels=KERNELS, weighting="average").fit(X, y > 0)
    np.testing.assert_array_equal(even.weights_, 0.25)
