"""The share of a kernel that linear functions explain, against regressions on its features."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_circles
from sklearn.linear_model import LinearRegression

from tessella import LearnedKernelSVC, LearnedKernelSVR, MultipleKernelSVC, load
from tessella.inspection import linear_share
from tessella.kernels import Gaussian, Polynomial


@pytest.fixture(scope="module")
def circles():
    return make_circles(120, noise=0.05, factor=0.5, random_state=0)


def test_share_is_that_of_regressions_on_all_eigenfunctions(circles):
    """The centred kernel matrix as many targets, each explained by ordinary least squares."""
    X, y = circles
    model = LearnedKernelSVC().fit(X, y)
    K = model.kernel_(X, X)
    values, vectors = np.linalg.eigh(K)
    functions = vectors * np.sqrt(np.maximum(values, 0.0))
    functions -= functions.mean(axis=0)
    explained = LinearRegression().fit(X, functions).predict(X)
    expected = (explained**2).sum() / (functions**2).sum()
    assert linear_share(model, X) == pytest.approx(expected, rel=1e-8)
    assert 0.05 < expected < 0.95  # neither end, where a wrong formula could agree


def test_circles_need_a_curved_kernel_and_a_line_does_not(circles):
    X, y = circles
    curved = LearnedKernelSVC(C=10.0).fit(X, y)
    assert not curved.kernel_is_linear_
    straight = LearnedKernelSVR(kernels="polynomial", degree=1).fit(X, X @ [1.0, 2.0])
    assert straight.linear_share_ == pytest.approx(1.0, abs=1e-9)
    assert straight.kernel_is_linear_


def test_a_matrix_that_has_become_linear(circles):
    """A parameter of the tessellated family whose kernel is that of the linear monomials."""
    X, _ = circles
    model = LearnedKernelSVR(kernels="polynomial", degree=2).fit(X, X[:, 0])
    P = np.zeros_like(model.P_)
    P[1, 1] = P[2, 2] = 1.0  # monomials 1, x, y, then those of degree 2
    model.kernel_ = replace(model.kernel_, parameter=P)
    assert linear_share(model) == pytest.approx(1.0, abs=1e-9)
    P[3, 3] = 1.0
    model.kernel_ = replace(model.kernel_, parameter=P)
    assert linear_share(model) < 1.0 - 1e-4


def test_wide_gaussians_become_linear(circles):
    X, y = circles
    shares = [
        MultipleKernelSVC(kernels=[Gaussian(width)]).fit(X, y).linear_share_
        for width in (0.3, 3.0, 100.0)
    ]
    assert shares == sorted(shares)
    assert shares[0] < 0.5
    assert shares[-1] > 0.999
    model = MultipleKernelSVC(kernels=[Polynomial(1)]).fit(X, y)
    assert model.kernel_is_linear_


def test_a_kernel_for_each_pair_of_classes_counts_the_least_linear():
    X, y = load_iris(return_X_y=True)
    model = LearnedKernelSVC(multi_class="separate").fit(X, y)

    @dataclass
    class One:
        kernel_: object
        _sample_rows: np.ndarray

    each = [linear_share(One(kernel, model._sample_rows)) for kernel in model.kernel_]
    assert model.linear_share_ == min(each)


def test_as_many_features_as_rows_cannot_tell():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(12, 15)), np.arange(12) % 2
    model = LearnedKernelSVC().fit(X, y)
    assert np.isnan(model.linear_share_)
    assert not model.kernel_is_linear_


def test_share_is_computed_when_it_is_read_and_replaced_by_the_next_fit(circles, tmp_path):
    X, y = circles
    model = LearnedKernelSVC(kernels="polynomial", degree=1).fit(X, y)
    assert "linear_share_" not in dir(model)
    assert "kernel_is_linear_" not in dir(model)
    assert model.kernel_is_linear_
    assert "kernel_is_linear_" in dir(model)
    model.save(tmp_path / "model.tsl")
    assert load(tmp_path / "model.tsl").linear_share_ == model.linear_share_
    assert not model.set_params(kernels="tessellated").fit(X, y).kernel_is_linear_
