"""The parameters `scaling` and `feature_scale` of the estimators."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from tessella import (
    KernelDictionary,
    KernelFeatures,
    LearnedKernelSVC,
    LearnedKernelSVR,
    TessellatedKernels,
)
from tessella.kernels import SCALINGS, Gaussian, UnitBox


@parametrize_with_checks(
    [
        LearnedKernelSVC(scaling="quantile"),
        LearnedKernelSVR(scaling="quantile", kernels="gaussian", epsilon="auto"),
        LearnedKernelSVC(scaling="robust", kernels="laplace"),
        LearnedKernelSVR(scaling="robust"),
    ]
)
def test_scikit_learn_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        check(estimator)


@pytest.fixture(scope="module")
def skewed():
    """A smooth function of features with heavy tails, ties and outliers."""
    Z = np.random.default_rng(0).standard_normal((200, 3))
    X = np.column_stack([np.exp(3.0 * Z[:, 0]), Z[:, 1] ** 5, np.maximum(Z[:, 2], 0.0)])
    X[7, 1] = 1e7
    return X, np.sin(2.0 * Z[:, 0]) + np.tanh(Z[:, 1]) * X[:, 2]


@pytest.mark.parametrize("scaling", SCALINGS)
@pytest.mark.parametrize("kernels", ["tessellated", "laplace", "gaussian"])
def test_weights_are_copies(skewed, scaling, kernels):
    X, y = skewed
    rng = np.random.default_rng(1)
    count = rng.integers(0, 4, len(X))
    model = LearnedKernelSVR(1.0, kernels=kernels, scaling=scaling, epsilon="auto")
    weighted = model.fit(X, y, sample_weight=count)
    order = rng.permutation(count.sum())
    copied = clone(model).fit(np.repeat(X, count, axis=0)[order], np.repeat(y, count)[order])
    assert weighted.kernel_ == copied.kernel_
    assert weighted.epsilon_ == copied.epsilon_
    # Support vectors are added up in the order of the data, so the last digits may differ.
    np.testing.assert_allclose(weighted.predict(X), copied.predict(X), atol=1e-11)
    assert weighted.objective_ == copied.objective_


def test_kernel_is_that_of_the_scaled_rows(skewed):
    X, y = skewed
    for scaling in SCALINGS:
        scale = np.array([0.2, 1.0, 0.7])
        model = LearnedKernelSVR(scaling=scaling, feature_scale=scale).fit(X, y)
        unit = 0.5 + scale * (UnitBox.fit(X, scaling=scaling).apply(X) - 0.5)
        expected = TessellatedKernels().cross(unit, unit[:5], model.P_)
        np.testing.assert_allclose(model.kernel_(X, X[:5]), expected, rtol=1e-10)


def test_quantiles_do_not_depend_on_monotone_maps(skewed):
    X, y = skewed
    other = np.column_stack([np.log(X[:, 0]), np.cbrt(X[:, 1]), np.expm1(X[:, 2])])
    models = [LearnedKernelSVR(scaling="quantile").fit(rows, y) for rows in (X, other)]
    np.testing.assert_allclose(models[0].predict(X), models[1].predict(other), atol=1e-8)


@pytest.mark.parametrize("scaling", ["quantile", "robust"])
def test_skewed_features_are_learned(skewed, scaling):
    X, y = skewed
    model = LearnedKernelSVR(C=100.0, scaling=scaling, kernels="laplace").fit(X[:150], y[:150])
    assert model.score(X[150:], y[150:]) > 0.7


@pytest.mark.parametrize("scaling", ["quantile", "robust"])
def test_predictions_far_outside_are_those_of_the_edge(skewed, scaling):
    X, y = skewed
    model = LearnedKernelSVR(scaling=scaling).fit(X, y)
    far = np.vstack([X.max(axis=0) + 1e9, X.min(axis=0) - 1e9, [1e300, -1e300, 0.0]])
    edge = np.clip(far, X.min(axis=0), X.max(axis=0))
    np.testing.assert_allclose(model.predict(far), model.predict(edge), rtol=1e-12)
    counted = model.count_outside(far)
    assert (counted.n_outside, counted.n_beyond) == (3, 0)
    assert counted.furthest[0] == pytest.approx((1e300 - X[:, 0].max()) / np.ptp(X[:, 0]))
    assert "moves values to the edge of the range" in str(counted)


def test_margins_of_pulled_features():
    X = np.column_stack([np.linspace(0, 1, 40), np.linspace(0, 10, 40)[::-1] ** 2])
    model = LearnedKernelSVR(delta=0.5, feature_scale=[1.0, 0.5]).fit(X, X[:, 0])
    # The second feature has the margin (0.5 + 0.25) / 0.5 = 1.5 of its range.
    rows = np.array([[0.5, 240.0], [0.5, 260.0], [1.4, 50.0], [1.6, 50.0]])
    counted = model.count_outside(rows)
    assert (counted.n_outside, counted.n_beyond) == (4, 2)
    assert "beyond 0.5 to 1.5 times that range" in str(counted)


def test_pull_to_the_centre_is_a_larger_margin(waves):
    X, y = waves
    scale, delta = np.array([1.0, 0.3]), 0.4
    pulled = LearnedKernelSVR(degree=0, delta=delta, feature_scale=scale, tol=1e-6).fit(X, y)
    margins = (delta + 0.5 * (1.0 - scale)) / scale
    wider = LearnedKernelSVR(degree=0, delta=margins, tol=1e-6).fit(X, y)
    assert pulled.objective_ == pytest.approx(wider.objective_, rel=1e-6)
    new = X + np.array([0.1, 1e-4])
    np.testing.assert_allclose(pulled.predict(new), wider.predict(new), rtol=1e-4)


def test_scale_of_one_changes_nothing(case):
    model, X, y = case
    plain, scaled = clone(model), clone(model).set_params(feature_scale=np.ones(X.shape[1]))
    assert plain.fit(X, y).kernel_ == scaled.fit(X, y).kernel_


def test_constant_features_are_dropped_by_every_scaling(waves):
    X, y = waves
    wide = np.column_stack([X[:, 0], np.full(len(X), 3.0), X[:, 1]])
    for scaling in SCALINGS:
        model = LearnedKernelSVR(scaling=scaling, feature_scale=[0.5, 1.0]).fit(X, y)
        other = LearnedKernelSVR(scaling=scaling, feature_scale=[0.5, 0.7, 1.0]).fit(wide, y)
        np.testing.assert_array_equal(model.predict(X), other.predict(wide))


def test_kernel_sets_on_features_keep_the_numbers_of_columns(waves):
    X, y = waves
    kernels = TessellatedKernels(delta=0.3).on_features([2]) + TessellatedKernels().on_features([1])
    wide = np.column_stack([np.full(len(X), 3.0), X])
    model = LearnedKernelSVR(kernels=kernels, scaling="quantile").fit(wide, y)
    assert model.score(wide, y) > 0.9


def test_dictionaries_see_the_quantiles_too(skewed):
    X, y = skewed
    few = KernelDictionary([Gaussian(0.5), Gaussian(2.0)])
    raw = LearnedKernelSVR(kernels=few).fit(X, y)
    np.testing.assert_array_equal(raw.kernel_.box.apply(X), X)
    quantiles = LearnedKernelSVR(kernels=few, scaling="quantile").fit(X, y)
    assert np.ptp(quantiles.kernel_.box.apply(X), axis=0).tolist() == [1.0, 1.0, 1.0]
    with pytest.raises(ValueError, match="feature_scale has no effect with KernelDictionary"):
        LearnedKernelSVR(kernels=few, feature_scale=[1.0, 0.5, 0.5]).fit(X, y)


def test_landmarks_of_curved_scalings_lie_among_the_rows(skewed):
    X, y = skewed
    learner = LearnedKernelSVR(scaling="quantile")
    features = KernelFeatures(learner, n_components=9, landmarks="k-means", random_state=0)
    landmarks = features.fit(X, y).components_
    assert (landmarks >= X.min(axis=0)).all()
    assert (landmarks <= X.max(axis=0)).all()
    # The quantiles of the landmarks are spread, although nearly all values are tiny.
    spread = UnitBox.fit(X, scaling="quantile").apply(landmarks)
    assert (spread.std(axis=0) > 0.1).all()


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"scaling": "minmax"}, "scaling='minmax' is unknown; use one of"),
        ({"scaling": None}, "scaling=None is unknown"),
        ({"feature_scale": [1.0]}, "feature_scale has 1 entries for 2 features"),
        ({"feature_scale": [1.0, 0.0]}, "one number in "),
        ({"feature_scale": [1.0, 1.5]}, "one number in "),
        ({"feature_scale": [1.0, np.nan]}, "one number in "),
        ({"feature_scale": 0.5}, "one number in "),
        ({"width": 0.0, "kernels": "gaussian"}, "width=0.0 must be"),
        ({"kernels": "cauchy"}, "'matern', 'laplace' or a KernelSet"),
    ],
)
def test_refusals(case, params, message):
    model, X, y = case
    with pytest.raises(ValueError, match=message):
        model.set_params(**params).fit(X, y)


def test_checkpoint_of_another_scaling_is_refused(waves, tmp_path):
    X, y = waves
    model = LearnedKernelSVR(checkpoint=tmp_path / "fit.ckpt", max_iter=1, tol=1e-9)
    with pytest.warns(ConvergenceWarning):
        model.set_params(solver="frank-wolfe").fit(X, y)
    with pytest.raises(ValueError, match="scaling"):
        model.set_params(scaling="quantile").fit(X, y)
