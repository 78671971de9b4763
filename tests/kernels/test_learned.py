"""The learned kernel as an object that other kernel methods take."""

from __future__ import annotations

import pickle
from copy import deepcopy

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import make_moons
from sklearn.decomposition import KernelPCA
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

from tessella import (
    IntegralKernels,
    KernelDictionary,
    LearnedKernelSVC,
    PolynomialKernels,
    TessellatedKernels,
)
from tessella.cones import Blocks
from tessella.kernels import Gaussian, LearnedKernel, Polynomial, UnitBox


@pytest.fixture(scope="module")
def moons():
    X, y = make_moons(60, noise=0.2, random_state=0)
    return X * [1.0, 500.0] + [3.0, -20.0], y


@pytest.fixture(scope="module")
def kernel(moons):
    return LearnedKernelSVC().fit(*moons).kernel_


def made_by_hand(kernels, X, seed=0):
    box = UnitBox.fit(X)
    side = kernels.count_params(len(box.kept))
    root = np.random.default_rng(seed).standard_normal((side, side))
    return LearnedKernel(kernels, root @ root.T, box)


def test_matrix_is_that_of_the_set_on_scaled_rows(kernel, moons):
    X, _ = moons
    unit = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    expected = kernel.kernels.cross(unit[:7], unit, kernel.P)
    np.testing.assert_allclose(kernel(X[:7], X), expected, rtol=1e-12)
    np.testing.assert_allclose(np.diag(kernel(X)), kernel.diag(X), rtol=1e-12)


def test_symmetric_to_the_last_bit_and_the_same_in_both_ways(kernel, moons):
    X, _ = moons
    K = kernel(X)
    assert (K == K.T).all()
    assert (kernel(X, X) == K).all()
    np.testing.assert_allclose(K, kernel(X, X.copy()), rtol=1e-12)


def test_positive_to_rounding(kernel, moons):
    eigenvalues = np.linalg.eigvalsh(kernel(moons[0]))
    assert eigenvalues[0] > -1e-13 * eigenvalues[-1]


def test_two_single_rows_give_a_number(kernel, moons):
    X, _ = moons
    value = kernel(X[3], X[5])
    assert np.ndim(value) == 0
    assert value == kernel(X[3:4], X[5:6])[0, 0]
    assert kernel(X[3]) == pytest.approx(kernel.diag(X[3:4])[0], rel=1e-12)
    assert kernel(X[3].tolist(), X[5].tolist()) == value


def test_a_row_and_a_matrix_are_refused(kernel, moons):
    X, _ = moons
    with pytest.raises(ValueError, match="two single rows"):
        kernel(X[0], X)
    with pytest.raises(ValueError, match="matrix of rows"):
        kernel(X, X[0])


def test_wrong_number_of_features_is_refused(kernel):
    with pytest.raises(ValueError, match="2 features"):
        kernel(np.zeros((3, 5)))


def test_frames_and_lists(kernel, moons):
    X, _ = moons
    expected = kernel(X, X[:4])
    assert (kernel(pd.DataFrame(X), pd.DataFrame(X[:4])) == expected).all()
    assert (kernel(X.tolist(), X[:4].tolist()) == expected).all()


# ---- equality, copies


def test_equal_by_content_and_usable_as_a_key(kernel):
    for copy in (deepcopy(kernel), pickle.loads(pickle.dumps(kernel)), clone(kernel, safe=False)):
        assert copy == kernel
        assert hash(copy) == hash(kernel)
    other = LearnedKernel(kernel.kernels, 2.0 * kernel.P, kernel.box)
    assert other != kernel
    assert kernel != "rbf"
    assert {kernel: "mine"}[deepcopy(kernel)] == "mine"


def test_every_part_counts_for_equality(moons):
    X, _ = moons
    kernel = made_by_hand(TessellatedKernels(1, 0.5), X)
    assert made_by_hand(TessellatedKernels(1, 0.5), X) == kernel
    assert made_by_hand(TessellatedKernels(1, 0.6), X) != kernel
    assert made_by_hand(TessellatedKernels(1, 0.5), X + 1.0) != kernel
    assert made_by_hand(TessellatedKernels(1, 0.5), X, seed=1) != kernel
    assert made_by_hand(PolynomialKernels(2), X) != kernel


def test_equality_of_sets_that_hold_arrays(moons):
    X, _ = moons
    factors = [made_by_hand(TessellatedKernels(balance=np.full(6, c)), X) for c in (1.0, 1.0, 2.0)]
    assert factors[0] == factors[1] != factors[2]
    assert factors[0] != made_by_hand(TessellatedKernels(balance="unit"), X)
    assert made_by_hand(TessellatedKernels(balance="unit"), X) != factors[0]
    nodes = (np.zeros((1, 1)), np.ones(1))
    integral = [
        made_by_hand(IntegralKernels(_constant, np.zeros(1), np.ones(1), nodes=nodes), X)
        for _ in range(2)
    ]
    assert integral[0] == integral[1]


def test_shares_of_a_sum(moons):
    X, y = moons
    parts = TessellatedKernels(), KernelDictionary([Gaussian(1.0), Polynomial(1)])
    kernels = parts[0] + parts[1].resolve(UnitBox.fit(X).apply(X))
    side = parts[0].count_params(2)
    blocks = Blocks([0.7 * np.eye(side), np.array([0.1, 0.2])])  # of the traces 0.7 and 0.3
    shares = LearnedKernel(kernels, blocks, UnitBox.fit(X)).shares
    np.testing.assert_allclose(shares, [0.7, 0.3], rtol=1e-12)
    assert LearnedKernelSVC().fit(X, y).kernel_.shares.tolist() == [1.0]


def _constant(z, X):
    return np.ones((len(z), len(X), 1))


def test_repr_is_one_short_line(kernel):
    assert repr(kernel) == "LearnedKernel(TessellatedKernels, n_features=2, n_params=6)"


# ---- other kernel methods


def test_svc_takes_it(kernel, moons):
    X, y = moons
    given = SVC(kernel=kernel).fit(X, y)
    precomputed = SVC(kernel="precomputed").fit(kernel(X), y)
    np.testing.assert_allclose(
        given.decision_function(X), precomputed.decision_function(kernel(X)), atol=1e-6
    )
    again = clone(given).fit(X, y)
    np.testing.assert_allclose(again.decision_function(X), given.decision_function(X), rtol=1e-9)
    search = GridSearchCV(SVC(kernel=kernel), {"C": [0.1, 1.0]}, cv=2).fit(X, y)
    assert search.best_score_ > 0.8
    reloaded = pickle.loads(pickle.dumps(given))
    assert (reloaded.predict(X) == given.predict(X)).all()


def test_kernel_ridge_takes_it_pair_by_pair(kernel, moons):
    X, y = moons
    X, y = X[:25], y[:25].astype(float)
    model = KernelRidge(alpha=0.1, kernel=kernel).fit(X, y)
    K = kernel(X)
    expected = K @ np.linalg.solve(K + 0.1 * np.eye(25), y)
    np.testing.assert_allclose(model.predict(X), expected, rtol=1e-8, atol=1e-10)


def test_kernel_pca_takes_it_pair_by_pair(kernel, moons):
    X, _ = moons
    X = X[:25]
    projected = KernelPCA(3, kernel=kernel).fit_transform(X)
    K = kernel(X)
    centred = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
    eigenvalues = np.linalg.eigvalsh(centred)[::-1][:3]
    np.testing.assert_allclose((projected**2).sum(axis=0), eigenvalues, rtol=1e-9)
