"""Leave-one-out attributes of estimators, against LIBSVM with the same kernel and a row less."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score, r2_score
from sklearn.svm import SVC, SVR

import tessella
from tessella import LearnedKernelSVC, LearnedKernelSVR, MultipleKernelSVC, MultipleKernelSVR
from tessella.kernels import Gaussian

KERNELS = [Gaussian(0.5), Gaussian(2.0)]


@pytest.fixture(scope="module")
def two_classes():
    rng = np.random.default_rng(0)
    X = rng.random((50, 2))
    return X, np.where(X[:, 0] * X[:, 1] + 0.1 * rng.standard_normal(50) > 0.2, "yes", "no")


@pytest.fixture(scope="module")
def numbers():
    rng = np.random.default_rng(1)
    X = rng.random((45, 2))
    return X, 50.0 + 10.0 * np.sin(6 * X[:, 0]) + 3.0 * rng.standard_normal(45)


@pytest.fixture(scope="module")
def three_classes():
    X, y = load_iris(return_X_y=True)
    return X[::4, 2:], y[::4]


def classes_without_each(model, X, y, weight=None):
    """Labels and scores of pairs by SVC with the learned kernel, one copy of a row less."""
    weight = np.ones(len(y)) if weight is None else weight
    K = model.kernel_(X)
    labels, scores = [], []
    for i in range(len(y)):
        rest = weight.copy()
        rest[i] = max(0.0, rest[i] - 1.0)
        own = np.flatnonzero(rest)
        machine = SVC(C=model.C, kernel="precomputed", tol=1e-8, decision_function_shape="ovo")
        machine.fit(K[np.ix_(own, own)], y[own], rest[own])
        labels.append(machine.predict(K[[i]][:, own])[0])
        scores.append(np.ravel(machine.decision_function(K[[i]][:, own])))
    return np.array(labels), np.array(scores)


def values_without_each(model, X, y):
    """Predictions of SVR with the learned kernel, for the target on the scale of all rows."""
    K, mean, scale = model.kernel_(X), y.mean(), y.std()
    found = []
    for i in range(len(y)):
        own = np.flatnonzero(np.arange(len(y)) != i)
        machine = SVR(C=model.C, epsilon=model.epsilon_, kernel="precomputed", tol=1e-9)
        machine.fit(K[np.ix_(own, own)], (y[own] - mean) / scale)
        found.append(scale * machine.predict(K[[i]][:, own])[0] + mean)
    return np.array(found)


@pytest.mark.parametrize(
    "model", [LearnedKernelSVC(C=3.0), MultipleKernelSVC(C=3.0, kernels=KERNELS)]
)
def test_two_classes(two_classes, model):
    X, y = two_classes
    model.fit(X, y)
    labels, scores = classes_without_each(model, X, y)
    np.testing.assert_array_equal(model.loo_predictions_, labels)
    np.testing.assert_allclose(model.loo_decision_function_, scores[:, 0], atol=1e-4)
    assert model.loo_score_ == pytest.approx(accuracy_score(y, labels))


@pytest.mark.parametrize(
    "model", [LearnedKernelSVR(C=3.0), MultipleKernelSVR(C=3.0, kernels=KERNELS)]
)
def test_numbers(numbers, model):
    X, y = numbers
    model.fit(X, y)
    expected = values_without_each(model, X, y)
    np.testing.assert_allclose(model.loo_predictions_, expected, atol=1e-3)
    assert model.loo_score_ == pytest.approx(r2_score(y, expected), abs=1e-5)
    assert not hasattr(model, "loo_decision_function_")


def test_a_row_of_three_classes_is_left_out_of_its_pairs(three_classes):
    X, y = three_classes
    model = LearnedKernelSVC(C=2.0, decision_function_shape="ovo").fit(X, y)
    labels, scores = classes_without_each(model, X, y)
    np.testing.assert_allclose(model.loo_decision_function_, scores, atol=1e-4)
    np.testing.assert_array_equal(model.loo_predictions_, labels)
    model.set_params(decision_function_shape="ovr").fit(X, y)
    assert model.loo_decision_function_.shape == (len(y), 3)


def test_a_kernel_for_each_pair_of_classes(three_classes):
    X, y = three_classes
    model = LearnedKernelSVC(C=2.0, multi_class="separate").fit(X, y)
    model.set_params(decision_function_shape="ovo")
    scores = model.loo_decision_function_
    # Positive scores are for the first class of a pair, and of two classes for the second one.
    K, own = model.kernel_[0](X), np.flatnonzero(y < 2)
    for i in own[::5]:
        rest = own[own != i]
        machine = SVC(C=2.0, kernel="precomputed", tol=1e-8)
        machine.fit(K[np.ix_(rest, rest)], y[rest])
        assert scores[i, 0] == pytest.approx(
            -machine.decision_function(K[[i]][:, rest])[0], abs=1e-4
        )
    np.testing.assert_array_equal(model.loo_predictions_[y < 2], y[y < 2])


def test_weights_count_as_copies(two_classes):
    X, y = two_classes
    weight = np.random.default_rng(2).integers(1, 4, len(y)).astype(float)
    model = LearnedKernelSVC(C=1.0).fit(X, y, weight)
    copies = np.repeat(np.arange(len(y)), weight.astype(int))
    repeated = LearnedKernelSVC(C=1.0).fit(X[copies], y[copies])
    np.testing.assert_allclose(
        model.loo_decision_function_[copies], repeated.loo_decision_function_, atol=1e-9
    )
    assert model.loo_score_ == pytest.approx(repeated.loo_score_)
    _, scores = classes_without_each(model, X, y, weight)
    np.testing.assert_allclose(model.loo_decision_function_, scores[:, 0], atol=1e-4)


def test_class_weights_are_no_copies(two_classes):
    X, y = two_classes
    model = LearnedKernelSVC(C=1.0, class_weight={"yes": 4.0}).fit(X, y)
    K = model.kernel_(X)
    for i in model.support_[np.argsort(model.dual_coef_[0])[-3:]]:
        assert y[i] == "yes"
        own = np.flatnonzero(np.arange(len(y)) != i)
        machine = SVC(C=1.0, kernel="precomputed", class_weight={"yes": 4.0}, tol=1e-8)
        machine.fit(K[np.ix_(own, own)], y[own])
        expected = machine.decision_function(K[[i]][:, own])[0]
        assert model.loo_decision_function_[i] == pytest.approx(expected, abs=1e-4)


def test_rows_of_weight_zero_have_their_predictions(numbers):
    X, y = numbers
    weight = np.ones(len(y))
    weight[[3, 30]] = 0.0
    model = LearnedKernelSVR().fit(X, y, weight)
    plain = LearnedKernelSVR().fit(X[weight > 0], y[weight > 0])
    np.testing.assert_array_equal(model.loo_predictions_[[3, 30]], model.predict(X[[3, 30]]))
    np.testing.assert_allclose(model.loo_predictions_[weight > 0], plain.loo_predictions_)
    assert model.loo_score_ == pytest.approx(plain.loo_score_)


def test_computed_once_and_forgotten_by_the_next_fit(numbers):
    X, y = numbers
    model = LearnedKernelSVR().fit(X, y)
    assert "loo_predictions_" not in dir(model)
    first = model.loo_predictions_
    assert model.loo_predictions_ is first
    assert "loo_predictions_" in dir(model)
    model.set_params(C=0.1).fit(X, y)
    assert model.loo_predictions_ is not first
    assert abs(model.loo_predictions_ - first).max() > 0.1


def test_not_before_a_fit():
    with pytest.raises(NotFittedError):
        _ = LearnedKernelSVC().loo_score_


@pytest.mark.parametrize("how", [copy.copy, copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_copies_have_what_was_computed_but_not_the_rows(numbers, how):
    X, y = numbers
    model = LearnedKernelSVR().fit(X, y)
    with pytest.raises(AttributeError, match="needs the training rows"):
        _ = how(model).loo_predictions_
    first = model.loo_predictions_
    np.testing.assert_array_equal(how(model).loo_predictions_, first)


def test_model_files_do_not_hold_the_rows(numbers, tmp_path):
    X, y = numbers
    LearnedKernelSVR().fit(X, y).save(tmp_path / "model.tsl")
    with pytest.raises(AttributeError, match="fit it again"):
        _ = tessella.load(tmp_path / "model.tsl").loo_predictions_


def test_model_files_hold_what_was_computed(two_classes, tmp_path):
    model = LearnedKernelSVC().fit(*two_classes)
    labels = model.loo_predictions_
    model.save(tmp_path / "model.tsl")
    np.testing.assert_array_equal(tessella.load(tmp_path / "model.tsl").loo_predictions_, labels)
