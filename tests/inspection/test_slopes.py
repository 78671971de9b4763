"""Feature scales from the slopes of the learned function, against differences of predictions."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tessella import KernelDictionary, LearnedKernelSVC, LearnedKernelSVR
from tessella.inspection import relevance_scale
from tessella.kernels import Gaussian, UnitBox

RNG = np.random.default_rng(0)


def function_of(model):
    """Scores of all machines; a classifier of pairs shows them in the shape "ovo"."""
    if not hasattr(model, "classes_"):
        return lambda X: model.predict(X)[:, None]
    model.set_params(decision_function_shape="ovo")
    return lambda X: np.asarray(model.decision_function(X)).reshape(len(X), -1)


def by_differences(model, X, scaling, power, step=3e-6):
    """From predictions for rows that are moved in the unit cube, mapped back to their units."""
    box, function = UnitBox.fit(X, scaling=scaling), function_of(model)
    unit, slopes = box.apply(X), np.zeros(X.shape[1])
    for j in range(X.shape[1]):
        shift = step * np.eye(X.shape[1])[j]
        change = function(box.invert(unit + shift)) - function(box.invert(unit - shift))
        slopes[j] = np.sqrt(np.mean(np.sum((change / (2 * step)) ** 2, axis=1)))
    return np.maximum((slopes / slopes.max()) ** power, 1e-3)


@pytest.mark.parametrize("kernels", ["tessellated", "gaussian", "polynomial"])
@pytest.mark.parametrize("power", [1.0, 0.5])
@pytest.mark.parametrize("feature_scale", [None, [0.4, 1.0, 0.05]])
def test_regression(kernels, power, feature_scale):
    X = RNG.random((150, 3)) * [1.0, 50.0, 1e-3] + [0.0, 1e3, 5.0]
    y = np.sin(5.0 * X[:, 0]) + 0.02 * X[:, 1]
    model = LearnedKernelSVR(kernels=kernels, feature_scale=feature_scale).fit(X, y)
    found = relevance_scale(model, power)
    np.testing.assert_allclose(found, by_differences(model, X, "range", power), rtol=2e-3)
    np.testing.assert_allclose(relevance_scale(model, power, X=X), found, rtol=1e-8)
    assert found.max() == 1.0


@pytest.mark.parametrize("multi_class", ["shared", "separate"])
def test_classes_and_curved_scalings(multi_class):
    X, y = load_iris(return_X_y=True)
    X = np.exp(X + 1e-3 * RNG.standard_normal(X.shape))
    model = LearnedKernelSVC(
        kernels="gaussian", width=1.0, multi_class=multi_class, scaling="robust"
    ).fit(X, y)
    low, high = X.min(axis=0), X.max(axis=0)
    inner = X[((low < X) & (high > X)).all(axis=1)]
    box = UnitBox.fit(X, scaling="robust")
    function = function_of(model)
    unit, slopes, step = box.apply(inner), np.zeros(4), 1e-7
    for j in range(4):
        shift = step * np.eye(4)[j]
        change = function(box.invert(unit + shift)) - function(box.invert(unit - shift))
        slopes[j] = np.sqrt(np.mean(np.sum((change / (2 * step)) ** 2, axis=1)))
    np.testing.assert_allclose(relevance_scale(model, X=inner), slopes / slopes.max(), rtol=1e-4)


def test_another_round_with_idle_features():
    X = RNG.random((400, 12))
    y = np.sin(6.0 * X[:, 0]) + 2.0 * X[:, 1] ** 2
    plain = LearnedKernelSVR(100.0, kernels="laplace", epsilon=0.01).fit(X[:200], y[:200])
    scale = relevance_scale(plain)
    assert scale[0] == 1.0
    assert (scale[2:] < 0.35).all()
    again = LearnedKernelSVR(100.0, kernels="laplace", epsilon=0.01, feature_scale=scale)
    again.fit(X[:200], y[:200])
    assert (relevance_scale(again)[2:] < scale[2:].max()).all()
    assert 1.0 - again.score(X[200:], y[200:]) < 0.5 * (1.0 - plain.score(X[200:], y[200:]))


def test_constant_features_and_constant_functions():
    X = np.column_stack([RNG.random(50), np.full(50, 2.0)])
    assert relevance_scale(LearnedKernelSVR().fit(X, X[:, 0])).tolist() == [1.0, 1e-3]
    assert relevance_scale(LearnedKernelSVR(epsilon=9.0).fit(X, X[:, 0])).tolist() == [1.0, 1.0]


def test_last_step_of_a_pipeline():
    X, y = load_iris(return_X_y=True)
    pipe = make_pipeline(StandardScaler(), LearnedKernelSVC()).fit(X, y)
    np.testing.assert_array_equal(relevance_scale(pipe), relevance_scale(pipe[-1]))
    np.testing.assert_allclose(relevance_scale(pipe, X=X), relevance_scale(pipe), rtol=0.05)


def test_refusals():
    X = RNG.random((40, 2))
    with pytest.raises(NotFittedError):
        relevance_scale(LearnedKernelSVR())
    model = LearnedKernelSVR().fit(X, X[:, 0])
    with pytest.raises(ValueError, match=r"power=0 must be a positive finite number"):
        relevance_scale(model, 0)
    dictionary = LearnedKernelSVR(kernels=KernelDictionary([Gaussian(1.0)])).fit(X, X[:, 0])
    with pytest.raises(ValueError, match="takes no feature_scale"):
        relevance_scale(dictionary)
