"""A learned kernel as a kernel of scikit-learn's Gaussian processes."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_moons
from sklearn.decomposition import KernelPCA
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.kernel_ridge import KernelRidge

from tessella import (
    KernelDictionary,
    LearnedKernelSVC,
    LearnedKernelSVR,
    MultipleKernelSVR,
    TessellatedKernels,
)
from tessella.gaussian_process import LearnedGPKernel
from tessella.kernels import Gaussian, Polynomial


def truth(X):
    return np.sin(6.0 * X[:, 0]) * X[:, 1]


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.random((150, 2))
    return X, truth(X) + 0.1 * rng.standard_normal(150)


@pytest.fixture(scope="module", params=["matrix", "weights", "sum"])
def learned(request, data):
    few = [Gaussian(0.5), Gaussian(2.0), Polynomial(2)]
    model = {
        "matrix": LearnedKernelSVR(),
        "weights": MultipleKernelSVR(10.0, few),
        "sum": LearnedKernelSVR(kernels=TessellatedKernels() + KernelDictionary(few)),
    }[request.param]
    return model.fit(*data).kernel_


@pytest.fixture
def kernel(learned):
    return LearnedGPKernel(learned, scale=0.7)


def test_is_a_multiple_of_the_learned_kernel(kernel, learned, data):
    X, _ = data
    np.testing.assert_allclose(kernel(X), 0.7 * learned(X), rtol=1e-14)
    np.testing.assert_allclose(kernel(X, X[:9]), 0.7 * learned(X, X[:9]), rtol=1e-14)
    np.testing.assert_allclose(kernel.diag(X), np.diag(kernel(X)), rtol=1e-12)
    assert not kernel.is_stationary()
    assert repr(kernel) == "LearnedGPKernel(scale=0.7)"


def test_an_estimator_is_not_a_kernel(data):
    with pytest.raises(TypeError, match="must be a LearnedKernel"):
        LearnedGPKernel(LearnedKernelSVR())(data[0])


def test_positive_to_rounding(kernel, data):
    eigenvalues = np.linalg.eigvalsh(kernel(data[0]))
    assert eigenvalues[0] > -1e-13 * eigenvalues[-1]


@pytest.mark.parametrize("build", ["alone", "sum", "product"])
def test_gradient_by_finite_differences(kernel, data, build):
    X = data[0][:20]
    kernel = {
        "alone": kernel,
        "sum": kernel + WhiteKernel(0.3),
        "product": ConstantKernel(2.0) * kernel * RBF(0.5),
    }[build]
    K, gradient = kernel(X, eval_gradient=True)
    np.testing.assert_allclose(K, kernel(X), rtol=1e-14)
    assert gradient.shape == (20, 20, kernel.n_dims)
    step = 1e-5
    for k in range(kernel.n_dims):
        shift = step * np.eye(kernel.n_dims)[k]
        above = kernel.clone_with_theta(kernel.theta + shift)(X)
        below = kernel.clone_with_theta(kernel.theta - shift)(X)
        np.testing.assert_allclose(
            gradient[:, :, k], (above - below) / (2 * step), rtol=1e-8, atol=1e-9
        )


def test_gradient_only_without_second_argument(kernel, data):
    X, _ = data
    with pytest.raises(ValueError, match="Y=None"):
        kernel(X, X, eval_gradient=True)


def test_theta_is_the_logarithm_of_the_scale(kernel):
    np.testing.assert_allclose(kernel.theta, [np.log(0.7)])
    np.testing.assert_allclose(kernel.bounds, np.log([[1e-5, 1e5]]))
    assert kernel.clone_with_theta([np.log(3.0)]).scale == pytest.approx(3.0)
    assert kernel.scale == 0.7


def test_fixed_scale_is_not_tuned(learned, data):
    kernel = LearnedGPKernel(learned, 0.5, "fixed")
    assert kernel.n_dims == 0
    assert kernel(data[0], eval_gradient=True)[1].shape == (150, 150, 0)
    process = GaussianProcessRegressor(kernel + WhiteKernel(0.1), normalize_y=True).fit(*data)
    assert process.kernel_.k1.scale == 0.5
    assert process.kernel_.k2.noise_level != 0.1


def test_equality_copies_and_pickles(kernel, learned):
    assert clone(kernel) == kernel == pickle.loads(pickle.dumps(kernel))
    assert kernel != LearnedGPKernel(learned, 0.8)
    assert kernel + WhiteKernel(1.0) == clone(kernel) + WhiteKernel(1.0)


def test_regression_equals_the_formula(kernel, data):
    X, y = data
    new = np.random.default_rng(1).random((40, 2))
    process = GaussianProcessRegressor(kernel, alpha=0.05, optimizer=None).fit(X, y)
    mean, deviation = process.predict(new, return_std=True)
    inverse = np.linalg.inv(kernel(X) + 0.05 * np.eye(150))
    cross = kernel(new, X)
    np.testing.assert_allclose(mean, cross @ inverse @ y, rtol=1e-6, atol=1e-8)
    variance = kernel.diag(new) - np.einsum("ij,jk,ik->i", cross, inverse, cross)
    np.testing.assert_allclose(deviation**2, variance, rtol=1e-5)


def test_regression_tunes_the_scale_and_tells_its_uncertainty(learned, data):
    start = LearnedGPKernel(learned, scale=20.0) + WhiteKernel(0.5)
    process = GaussianProcessRegressor(start, normalize_y=True).fit(*data)
    begin = process.log_marginal_likelihood(start.theta)
    assert process.log_marginal_likelihood_value_ > begin + 5.0
    # The gradient in the logarithms of scale and noise vanishes where tuning ends.
    _, gradient = process.log_marginal_likelihood(process.kernel_.theta, eval_gradient=True)
    assert np.abs(gradient).max() < 0.05
    rng = np.random.default_rng(2)
    new = rng.random((500, 2))
    mean, deviation = process.predict(new, return_std=True)
    target = truth(new) + 0.1 * rng.standard_normal(500)
    assert 0.9 < np.mean(np.abs(target - mean) < 1.96 * deviation) < 0.99
    assert np.corrcoef(mean, truth(new))[0, 1] > 0.98


def test_classification():
    X, y = make_moons(100, noise=0.2, random_state=0)
    kernel = LearnedGPKernel(LearnedKernelSVC().fit(X, y).kernel_)
    process = GaussianProcessClassifier(kernel).fit(X, y)
    assert process.score(X, y) > 0.9
    assert process.kernel_.scale != kernel.scale
    three = y + (X[:, 0] > 1.2)
    several = GaussianProcessClassifier(kernel).fit(X, three)
    np.testing.assert_allclose(several.predict_proba(X).sum(axis=1), 1.0)
    assert several.score(X, three) > 0.85


def test_whole_matrices_for_kernel_ridge_and_kernel_pca(learned, data, monkeypatch):
    X, y = data
    kernel = LearnedGPKernel(learned)
    calls = []
    original = LearnedGPKernel.__call__

    def counted(self, *args, **kwargs):
        calls.append(1)
        return original(self, *args, **kwargs)

    monkeypatch.setattr(LearnedGPKernel, "__call__", counted)
    ridge = KernelRidge(alpha=0.1, kernel=kernel).fit(X, y)
    K = learned(X)
    expected = K @ np.linalg.solve(K + 0.1 * np.eye(len(X)), y)
    np.testing.assert_allclose(ridge.predict(X), expected, rtol=1e-7, atol=1e-9)
    pca = KernelPCA(4, kernel=kernel).fit(X)
    centred = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
    np.testing.assert_allclose(pca.eigenvalues_, np.linalg.eigvalsh(centred)[::-1][:4], rtol=1e-9)
    assert len(calls) == 3
