"""Gaussian and Laplace kernels, against their definitions."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from tessella.cones import Nonnegative
from tessella.kernels import (
    GaussianKernels,
    LaplaceKernels,
    MaternKernels,
    TessellatedKernels,
    basis_names,
    laplace_gram,
)

ONE = np.ones(1)


def smoother(width):
    return MaternKernels(width, 2.5)


MAKES = [GaussianKernels, LaplaceKernels, MaternKernels, smoother]


def by_definition(kernels, X, Y):
    n = X.shape[1]
    if isinstance(kernels, GaussianKernels):
        return np.exp(-12.0 * cdist(X, Y, "sqeuclidean") / (2 * n * kernels.width**2))
    if isinstance(kernels, MaternKernels):
        r = np.sqrt(2 * kernels.nu * 12.0 * cdist(X, Y, "sqeuclidean") / (n * kernels.width**2))
        return (1 + r + (r**2 / 3 if kernels.nu == 2.5 else 0.0)) * np.exp(-r)
    return np.exp(-np.sqrt(12.0) * cdist(X, Y, "cityblock") / (n * kernels.width))


@pytest.mark.parametrize("make", MAKES)
@pytest.mark.parametrize("width", [0.002, 0.05, 0.5, 20.0])
@pytest.mark.parametrize("n", [1, 4, 60])
def test_values_are_those_of_the_formula(make, width, n):
    rng = np.random.default_rng(n)
    X, new, kernels = rng.random((70, n)), 6.0 * rng.random((40, n)) - 2.0, make(width)
    bound = kernels.bind(X)
    close = {"rtol": 1e-9, "atol": 1e-11}
    np.testing.assert_allclose(bound.gram(ONE), by_definition(kernels, X, X), **close)
    np.testing.assert_allclose(kernels.cross(new, X, ONE), by_definition(kernels, new, X), **close)
    w = rng.standard_normal((70, 3))
    expected = by_definition(kernels, new, X) @ w
    found = kernels.predictor(ONE, X, w).scores(new)
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("make", MAKES)
@pytest.mark.parametrize("used", [0, 1, 7, 70])
def test_scores_of_a_sparse_dual_vector(make, used):
    """Only the kernel values of its support vectors are computed."""
    rng = np.random.default_rng(used)
    X, w = rng.random((70, 3)), np.zeros(70)
    w[rng.permutation(70)[:used]] = rng.standard_normal(used)
    for kernels in (make(0.5), make(0.002)):
        found = kernels.bind(X).moments(w).scores(ONE)
        np.testing.assert_allclose(found, by_definition(kernels, X, X) @ w, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("make", MAKES)
def test_a_kernel_matrix_is_mirrored_in_squares(make, monkeypatch):
    monkeypatch.setattr("tessella.kernels._dictionary._MIRRORED", 8)
    K = make(0.5).bind(np.random.default_rng(0).random((30, 2))).gram(ONE)
    np.testing.assert_array_equal(K, K.T)


@pytest.mark.parametrize("make", [GaussianKernels, MaternKernels, smoother])
def test_narrow_kernels_in_the_middle_of_the_box_keep_their_digits(make):
    """Squared distances are differences of squares, which are smallest around the centre."""
    rng, width = np.random.default_rng(7), 1.0 / 256
    X = 0.5 + width * rng.integers(-8, 9, (30, 2)) / 8  # of which differences are exact
    found = make(width).bind(X).gram(ONE)
    np.testing.assert_allclose(found, by_definition(make(width), X, X), rtol=0, atol=2e-14)


@pytest.mark.parametrize("make", MAKES)
def test_rows_far_away_have_kernel_zero_and_no_warning(make):
    X = np.random.default_rng(0).random((20, 3))
    far = np.array([[1e308, 0.5, -1e308], [1e9, 0.0, 0.0], [1e5, 1e5, 1e5]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert (make(0.5).cross(far, X, ONE) == 0.0).all()
    close_by = far[2:] + np.array([[0.0, 0.0, 0.1], [0.5, 0.0, 0.0]])
    found = make(0.5).cross(close_by, far[2:], ONE)
    np.testing.assert_allclose(found, by_definition(make(0.5), close_by, far[2:]), rtol=1e-8)


@pytest.mark.parametrize("make", MAKES)
@pytest.mark.parametrize("size", [1e-300, 1e-268, 1e268, 1e295])
def test_predictions_keep_their_digits_whatever_the_unit(make, size):
    # The factors of a narrow Laplace kernel are nearly as large as double precision allows.
    rng = np.random.default_rng(4)
    kernels, X = make(0.012), rng.random((30, 1))
    coefficients = rng.standard_normal((30, 2)) * [1.0, 1e-3]
    plain, scaled = (
        kernels.predictor(ONE, X, unit * coefficients).scores(X) for unit in (1.0, size)
    )
    np.testing.assert_allclose(scaled / size, plain, rtol=1e-10)


def test_product_form_is_the_matrix():
    """Solvers ask for single rows of a Laplace kernel of many rows."""
    kernels = LaplaceKernels(0.3)
    X = np.random.default_rng(1).random((60, 4))
    bound, K = kernels.bind(X), np.empty((60, 60))
    assert kernels.by_rows
    for centred in (False, True):
        bound.product_form(2.5 * ONE, centred=centred).matrix(K, 1)
        expected = bound.gram(2.5 * ONE, centred=centred)
        np.testing.assert_allclose(K, expected, rtol=0, atol=1e-13)
    assert LaplaceKernels(0.001).bind(X).product_form(ONE) is None
    assert GaussianKernels(0.3).bind(X).product_form(ONE) is None
    assert not GaussianKernels(0.3).by_rows


@pytest.mark.parametrize("n", [1, 3, 40])
def test_laplace_gram(n):
    rng = np.random.default_rng(n)
    for size in (1.0, 30.0, 1e4):
        A, B = size * rng.standard_normal((33, n)), size * rng.standard_normal((21, n))
        close = {"rtol": 1e-9, "atol": 1e-250}
        np.testing.assert_allclose(laplace_gram(A, B), np.exp(-cdist(A, B, "cityblock")), **close)
        K = laplace_gram(A)
        np.testing.assert_allclose(K, np.exp(-cdist(A, A, "cityblock")), **close)
        assert (K == K.T).all()
        assert (np.diag(K) == 1.0).all()
    assert laplace_gram(A[:0], B).shape == (0, 21)
    assert laplace_gram(A, B[:0]).shape == (33, 0)
    assert laplace_gram(A[:0]).shape == (0, 0)
    with pytest.raises(ValueError, match=f"A has {n} columns and B has {n + 1}"):
        laplace_gram(A, np.ones((2, n + 1)))


@pytest.mark.parametrize("n", [2, 30])
def test_tessellated_kernel_is_a_laplace_kernel_of_logarithms(n):
    X, delta = np.random.default_rng(n).random((25, n)), 0.2 * n
    kernels = TessellatedKernels(0, delta, balance="pointwise")
    expected = kernels.bind(X).gram(np.diag([1.0, 0.0]))
    np.testing.assert_allclose(laplace_gram(0.5 * np.log(1.0 + delta - X)), expected, rtol=1e-11)


def test_threads_change_nothing():
    X = np.random.default_rng(6).random((900, 5))
    for make in (GaussianKernels, LaplaceKernels):
        one, two = (make(0.4).bind(X, n_jobs=jobs).gram(ONE) for jobs in (1, 2))
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("make", [GaussianKernels, LaplaceKernels])
def test_the_set_has_one_weight(make):
    kernels = make(0.25)
    assert repr(kernels.cone(4)) == repr(Nonnegative(1))
    assert basis_names(kernels, ["a", "b"]) == [f"{make.__name__}(width=0.25)"]
    assert pickle.loads(pickle.dumps(kernels)) == kernels
    with pytest.raises(ValueError, match="X has 2 features and Y has 3"):
        kernels.cross(np.ones((1, 2)), np.ones((1, 3)), ONE)


@pytest.mark.parametrize("width", [0, -1.0, np.inf, np.nan, "wide", True])
def test_bad_widths(width):
    with pytest.raises(ValueError, match=r"width=.* must be a positive finite number"):
        LaplaceKernels(width)
    with pytest.raises(ValueError, match=r"nu=3 must be 1\.5 or 2\.5"):
        MaternKernels(nu=3)
    kernels = GaussianKernels()
    kernels.set_params(width=width)
    with pytest.raises(ValueError, match=r"width=.* must be a positive finite number"):
        kernels.bind([[0.0], [1.0]])


@pytest.mark.parametrize("kernel", [GaussianKernels(), LaplaceKernels(), MaternKernels()])
def test_memory_is_that_of_the_rows_and_their_copies(kernel):
    """Coordinates of both sides and their products with weights, in float64."""
    assert kernel.memory_estimate(100, 6, 8) == 100 * (3 * 6 + 3) * 8
    assert kernel.memory_estimate(100, 6, 4) == kernel.memory_estimate(100, 6, 8)
