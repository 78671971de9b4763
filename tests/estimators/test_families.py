"""Gaussian and Laplace kernels in the estimators, where nothing is learned but the machine."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.datasets import load_iris
from sklearn.svm import SVC, SVR

from tessella import LearnedKernelSVC, LearnedKernelSVR
from tessella.kernels import LaplaceKernels, TessellatedKernels


def gram(family, X, Y, width):
    n = X.shape[1]
    if family == "matern":
        r = np.sqrt(36.0 * cdist(X, Y, "sqeuclidean") / (n * width**2))
        return (1 + r) * np.exp(-r)
    if family == "gaussian":
        return np.exp(-12.0 * cdist(X, Y, "sqeuclidean") / (2 * n * width**2))
    return np.exp(-np.sqrt(12.0) * cdist(X, Y, "cityblock") / (n * width))


def unit(X):
    return (X - X.min(axis=0)) / np.ptp(X, axis=0)


@pytest.mark.parametrize("family", ["gaussian", "matern", "laplace"])
def test_one_machine_is_solved_and_it_is_that_of_libsvm(family, circles, waves):
    X, y = circles
    model = LearnedKernelSVC(2.0, kernels=family, width=0.7, tol=1e-8).fit(X, y)
    assert (model.solver_, model.n_iter_, model.status_) == ("fixed", 1, "optimal")
    assert model.parameter_.tolist() == [1.0]
    K = gram(family, unit(X), unit(X), 0.7)
    other = SVC(C=2.0, kernel="precomputed", tol=1e-9).fit(K, y)
    np.testing.assert_allclose(model.decision_function(X), other.decision_function(K), atol=1e-4)
    X, y = waves
    model = LearnedKernelSVR(2.0, epsilon=0.1, kernels=family, width=0.7, tol=1e-8).fit(X, y)
    assert (model.solver_, model.n_iter_) == ("fixed", 1)
    K = gram(family, unit(X), unit(X), 0.7)
    scaled = (y - y.mean()) / y.std()
    other = SVR(C=2.0, kernel="precomputed", epsilon=0.1, tol=1e-9).fit(K, scaled)
    np.testing.assert_allclose((model.predict(X) - y.mean()) / y.std(), other.predict(K), atol=1e-4)


@pytest.mark.parametrize("solver", ["working-set", "joint", "frank-wolfe", "apd", "hybrid"])
def test_every_solver_finds_the_same_machine(solver, circles):
    X, y = circles
    auto = LearnedKernelSVC(kernels="laplace", tol=1e-5).fit(X, y)
    model = LearnedKernelSVC(kernels="laplace", tol=1e-5, solver=solver).fit(X, y)
    assert model.solver_ == solver
    assert model.gap_ <= 1e-5
    assert model.objective_ == pytest.approx(auto.objective_, rel=3e-5)


@pytest.mark.parametrize("multi_class", ["shared", "separate"])
def test_several_classes(multi_class):
    X, y = load_iris(return_X_y=True)
    model = LearnedKernelSVC(kernels="gaussian", multi_class=multi_class).fit(X, y)
    assert model.score(X, y) > 0.95
    assert model.solver_ == "fixed"


def test_rows_on_demand_are_those_of_the_matrix():
    """Beyond 2,000 rows the machine asks for single rows of a Laplace kernel."""
    X = np.random.default_rng(0).random((2100, 3))
    y = np.sign(np.sin(9.0 * X[:, 0]) + X[:, 1] - X[:, 2])
    model = LearnedKernelSVC(kernels="laplace", tol=1e-4).fit(X, y)
    assert model.gap_ <= 1e-4
    K = gram("laplace", unit(X), unit(X), 0.5)
    other = SVC(C=10.0, kernel="precomputed", tol=1e-5).fit(K, y)
    np.testing.assert_allclose(model.decision_function(X), other.decision_function(K), atol=2e-2)


def test_shares_of_a_sum_are_learned(circles):
    X, y = circles
    both = LearnedKernelSVC(kernels=TessellatedKernels() + LaplaceKernels(0.3)).fit(X, y)
    assert both.gap_ <= both.tol
    assert both.kernel_.shares.sum() == pytest.approx(1.0)


def test_width_in_a_search(waves):
    X, y = waves
    few, many = (
        LearnedKernelSVR(kernels="gaussian", width=width).fit(X, y) for width in (3.0, 0.2)
    )
    assert many.score(X, y) > few.score(X, y)
