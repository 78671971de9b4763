"""Units do not matter: targets, features and weights from 1e-300 to 1e300."""

from __future__ import annotations

import numpy as np
import pytest

from tessella import (
    KernelDictionary,
    LearnedKernelRidge,
    LearnedKernelRidgeClassifier,
    LearnedKernelSVC,
    LearnedKernelSVR,
    MultipleKernelSVC,
    MultipleKernelSVR,
    TessellaClassifier,
    TessellaRegressor,
)
from tessella.kernels import Gaussian, Polynomial

RNG = np.random.default_rng(5)
X = RNG.random((30, 2))
Y = np.sin(5 * X[:, 0]) + X[:, 1] + 0.1 * RNG.standard_normal(30)
LABELS = (np.median(Y) < Y).astype(int)
REGRESSORS = (LearnedKernelSVR, LearnedKernelRidge, MultipleKernelSVR)
CLASSIFIERS = (LearnedKernelSVC, LearnedKernelRidgeClassifier, MultipleKernelSVC)
# Powers of two change no digit, so that everything is equal to the last bit but rounding in sums.
TARGET_SCALES = (2.0**-990, 2.0**-541, 2.0**-330, 2.0**330, 2.0**515, 2.0**990)
SCALES = (1e-300, 1e-160, 1e-20, 1e20, 1e160, 1e300)


@pytest.fixture(scope="module", params=REGRESSORS, ids=lambda one: one.__name__)
def regressor(request):
    return request.param, request.param(tol=1e-6).fit(X, Y)


@pytest.mark.parametrize("scale", TARGET_SCALES)
def test_the_unit_of_the_target_does_not_matter(regressor, scale):
    estimator, plain = regressor
    model = estimator(tol=1e-6).fit(X, scale * Y)
    assert model.status_ == plain.status_ == "optimal"
    assert model.objective_ == pytest.approx(plain.objective_, rel=1e-6)
    assert model.lower_bound_ == pytest.approx(plain.lower_bound_, rel=1e-6)
    np.testing.assert_allclose(model.predict(X) / scale, plain.predict(X), rtol=1e-4, atol=1e-4)
    assert model.loo_score_ == pytest.approx(plain.loo_score_, abs=1e-3)


@pytest.mark.parametrize("scale", [1e155, 1e-163, -1e300, 3e-305])
def test_other_scales_of_the_target_attain_their_value(regressor, scale):
    estimator, plain = regressor
    model = estimator(tol=1e-6).fit(X, scale * Y)
    target, predicted = Y, model.predict(X) / scale
    residual = (target - predicted) / Y.std()
    w = model.dual_coef_[0] / abs(scale) / Y.std()
    energy = 0.5 * w @ model.kernel_(model.support_vectors_) @ w
    if estimator is LearnedKernelRidge:
        loss = 0.5 * model.C * (residual**2).sum()
    else:
        loss = model.C * np.maximum(np.abs(residual) - model.epsilon_, 0).sum()
    assert energy + loss == pytest.approx(model.objective_, rel=1e-6)
    assert model.objective_ == pytest.approx(plain.objective_, rel=1e-5)


@pytest.mark.parametrize("estimator", REGRESSORS, ids=lambda one: one.__name__)
@pytest.mark.parametrize(
    "target", [1e-315 * Y, np.where(LABELS, 1.7e308, -1.7e308)], ids=["tiny", "huge"]
)
def test_targets_beyond_double_precision_are_an_error(estimator, target):
    with pytest.raises(ValueError, match="target y"):
        estimator().fit(X, target)


@pytest.mark.parametrize("estimator", REGRESSORS, ids=lambda one: one.__name__)
def test_coefficients_that_would_overflow_are_an_error(estimator):
    with pytest.raises(ValueError, match="coefficients of a model could overflow"):
        estimator(C=1e20).fit(X, 1e300 * Y)


@pytest.mark.parametrize("value", [0.1, 1e12, -1e300, 0.0])
@pytest.mark.parametrize("estimator", REGRESSORS, ids=lambda one: one.__name__)
def test_a_constant_target_is_predicted_exactly(estimator, value):
    model = estimator().fit(X, np.full(len(X), value))
    assert (model.predict(X) == value).all()
    assert model.objective_ == model.gap_ == 0.0
    assert model.status_ == "optimal"


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("estimator", [*REGRESSORS, *CLASSIFIERS], ids=lambda one: one.__name__)
def test_the_unit_of_the_features_does_not_matter(estimator, scale):
    target = Y if estimator in REGRESSORS else LABELS
    plain = estimator(tol=1e-5).fit(X, target)
    model = estimator(tol=1e-5).fit(scale * X, target)
    assert model.gap_ <= model.tol
    assert model.objective_ == pytest.approx(plain.objective_, rel=2e-5)
    np.testing.assert_allclose(model.predict(scale * X), plain.predict(X), atol=1e-2)


@pytest.mark.parametrize("scale", [1e-60, 1e-9, 1e9, 1e60])
@pytest.mark.parametrize("estimator", [*REGRESSORS, *CLASSIFIERS], ids=lambda one: one.__name__)
def test_weights_and_c_are_one_number(estimator, scale):
    target = Y if estimator in REGRESSORS else LABELS
    plain = estimator(C=5.0, tol=1e-5).fit(X, target)
    model = estimator(C=5.0 / scale, tol=1e-5).fit(X, target, np.full(len(X), scale))
    assert model.objective_ == pytest.approx(plain.objective_, rel=2e-5)
    np.testing.assert_allclose(model.predict(X), plain.predict(X), atol=1e-2)


@pytest.mark.parametrize("C", [1e-90, 1e-6, 1e9])
@pytest.mark.parametrize("estimator", [*REGRESSORS, *CLASSIFIERS], ids=lambda one: one.__name__)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_extreme_weights_of_the_loss_have_finite_bounds(estimator, C):
    model = estimator(C=C).fit(X, Y if estimator in REGRESSORS else LABELS)
    assert np.isfinite([model.objective_, model.lower_bound_, model.gap_]).all()
    assert (model.status_ == "optimal") == (model.gap_ <= model.tol)
    assert np.isfinite(np.asarray(model.predict(X), dtype=float)).all()


@pytest.fixture(scope="module")
def automatic():
    return fit_automatic(Y)


def fit_automatic(y):
    options = {"families": ("laplace",), "scalings": ("range",), "refine": False, "learn": False}
    return TessellaRegressor(effort="low", losses=("squared",), **options).fit(X, y)


@pytest.mark.parametrize("scale", [2.0**-990, 2.0**515, 2.0**990])
def test_the_unit_of_the_target_of_an_automatic_model(automatic, scale):
    model = fit_automatic(scale * Y)
    assert model.gap_ == pytest.approx(automatic.gap_, abs=1e-9)
    assert model.loo_score_ == pytest.approx(automatic.loo_score_, rel=1e-6)
    np.testing.assert_allclose(model.predict(X) / scale, automatic.predict(X), rtol=1e-6)
    interval = model.predict_interval(X) / scale
    np.testing.assert_allclose(interval, automatic.predict_interval(X), rtol=1e-6)


def test_the_offset_of_the_target_of_an_automatic_model(automatic):
    model = fit_automatic(Y + 1e9)
    np.testing.assert_allclose(model.predict(X) - 1e9, automatic.predict(X), atol=1e-5)


@pytest.mark.parametrize("target", ["noise", "labels"])
def test_an_automatic_model_of_noise_is_no_worse_than_a_constant(target):
    """The mean of the other rows is one of the machines that a search compares."""
    for seed in range(8):
        rng = np.random.default_rng(seed)
        A, y = rng.standard_normal((12, 2)), rng.standard_normal(12)
        if target == "noise":
            Z, estimator = ((y - y.mean()) / y.std())[:, None], TessellaRegressor
        else:
            y = np.arange(12) % 3
            Z, estimator = np.eye(3)[y], TessellaClassifier
        model = estimator(effort="low").fit(A, y)
        others = (Z.sum(axis=0) - Z) / 11
        constant = ((Z - others) ** 2).sum(axis=1).mean()
        assert model.leaderboard_[0]["error"] <= constant * (1 + 1e-6)
        if target == "noise":
            assert 1 - model.loo_score_ <= constant * (1 + 1e-6)


def test_the_logarithm_of_a_target_far_from_zero_keeps_its_digits():
    rng = np.random.default_rng(0)
    y = rng.lognormal(sigma=2.0, size=40)
    A = np.log(y)[:, None] + 0.01 * rng.standard_normal((40, 1))
    near, far = (TessellaRegressor(effort="low").fit(A, y + offset) for offset in (-10.0, 1e10))
    assert {line["target"] for line in far.leaderboard_} >= {"logarithm"}
    np.testing.assert_allclose(far.predict(A) - 1e10, near.predict(A) + 10.0, atol=1e-3)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("solver", ["auto", "apd", "hybrid"])
def test_a_dual_vector_whose_norm_is_a_rounding_error(solver):
    """Rows that nearly agree, in single precision: the first step was not a number."""
    kernels = KernelDictionary(
        [Polynomial(3, features=(1,)), Gaussian(3.0, features=(1,)), Gaussian(0.14)]
    )
    for seed in (0, 2, 5):
        rng = np.random.default_rng(seed)
        A = rng.integers(0, 2, (25, 1)) + 1e-9 * rng.standard_normal((25, 2))
        y, weight = rng.integers(0, 2, 25), 10.0 ** rng.uniform(-6, 6, 25)
        options = {"solver": solver, "kernels": kernels, "precision": "float32", "max_iter": 60}
        model = LearnedKernelRidgeClassifier(C=4e7, tol=2e-7, **options).fit(A, y, weight)
        assert 0.0 <= model.gap_ < 1.0


@pytest.mark.parametrize("unit", [1.0, 2.0**850])
def test_a_feature_whose_weighted_deviation_is_a_rounding_error(unit):
    """One row has nearly all of the weight; the range scales the feature, whatever its unit."""
    A = 1.0 + 1e-12 * np.round(X, 1)
    weight = np.where(np.arange(30) == 0, 1e9, 1e-3)
    kernels = KernelDictionary([Gaussian(0.4), Gaussian(0.2, features=(0,))])
    model = MultipleKernelSVC(C=1e-3, kernels=kernels).fit(unit * A, LABELS, weight)
    plain = MultipleKernelSVC(C=1e-3, kernels=kernels).fit(A, LABELS, weight)
    assert np.isfinite(model.objective_)
    assert model.objective_ == plain.objective_
