from __future__ import annotations

import pickle

import numpy as np
import pytest
from reference.weights import rows_of
from sklearn.gaussian_process.kernels import RBF
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel

from tessella import KernelDictionary
from tessella.multiple_kernels import CombinedKernel, Gaussian, OnFeatures, Polynomial

X, _ = rows_of(30)
NEW, _ = rows_of(7, seed=1)


def standardised(rows):
    return (rows - X.mean(axis=0)) / X.std(axis=0)


def test_kernels_by_their_formulas():
    np.testing.assert_allclose(Gaussian(3.0)(X, NEW), rbf_kernel(X, NEW, 1 / 18), rtol=1e-12)
    expected = polynomial_kernel(X, NEW, 3, gamma=1.0, coef0=0.5)
    np.testing.assert_allclose(Polynomial(3, 0.5)(X, NEW), expected, rtol=1e-12)
    one = Gaussian(0.5, features=(1,))(X, NEW)
    np.testing.assert_allclose(one, rbf_kernel(X[:, [1]], NEW[:, [1]], 2.0), rtol=1e-12)
    for kernel in (Gaussian(2.0), Polynomial(2), OnFeatures(rbf_kernel, (0, 2))):
        np.testing.assert_allclose(kernel.diag(X), kernel(X).diagonal(), rtol=1e-12)


def test_the_standard_dictionary_is_that_of_the_paper():
    found = KernelDictionary.standard().fit(X)
    assert len(found) == 13 * (3 + 1)
    gaussians = [k for k in found.kernels if isinstance(k, Gaussian) and k.features is None]
    assert [k.bandwidth for k in gaussians][:: len(gaussians) - 1] == [0.5, 10.0]
    alone = {k.features for k in found.kernels if k.features is not None}
    assert alone == {(0,), (1,), (2,)}


def test_constant_features_have_no_kernels_of_their_own():
    wide = np.column_stack([X, np.full(len(X), 7.0)])
    assert len(KernelDictionary.standard().fit(wide)) == 52
    assert len(KernelDictionary.standard().fit(wide[:, 2:])) == 13


@pytest.mark.parametrize("normalisation", ["trace", "cosine", None])
def test_normalisation_holds_for_new_rows(normalisation):
    kernels = [Gaussian(1.0), Polynomial(2), Polynomial(1, features=(2,))]
    found = KernelDictionary(kernels, normalisation=normalisation).fit(X)
    for number, kernel in enumerate(kernels):
        plain = kernel(standardised(X), standardised(NEW))
        if normalisation == "trace":
            plain = plain / kernel.diag(standardised(X)).mean()
            assert np.trace(found.matrix(number, X)) == pytest.approx(len(X))
        elif normalisation == "cosine":
            left, right = (kernel.diag(standardised(rows)) for rows in (X, NEW))
            plain = plain / np.sqrt(np.outer(left, right))
        np.testing.assert_allclose(found.matrix(number, X, NEW), plain, rtol=1e-11)


def test_units_of_features_do_not_matter():
    found = KernelDictionary([Gaussian(1.0)]).fit(X * 100 - 5).matrix(0, X * 100 - 5)
    np.testing.assert_allclose(found, KernelDictionary([Gaussian(1.0)]).fit(X).matrix(0, X))
    raw = KernelDictionary([Gaussian(1.0)], standardise=False).fit(X)
    np.testing.assert_allclose(raw.matrix(0, X), rbf_kernel(X, X, 0.5), rtol=1e-12)


def test_weights_of_rows_are_copies():
    twice = np.concatenate([X, X[:5]])
    weight = np.ones(len(X))
    weight[:5] = 2.0
    left = KernelDictionary.standard().fit(twice)
    right = KernelDictionary.standard().fit(X, weight)
    np.testing.assert_allclose(left.factors, right.factors, rtol=1e-12)
    np.testing.assert_allclose(left.scale, right.scale, rtol=1e-12)


def test_callables_and_gaussian_process_kernels_take_part():
    kept = np.eye(len(X))
    found = KernelDictionary(
        [RBF(2.0), lambda A, B: kept[: len(A), : len(B)]], standardise=False
    ).fit(X)
    weights = np.array([0.25, 0.75])
    combined = CombinedKernel(found, weights)
    np.testing.assert_allclose(
        combined(X), 0.25 * rbf_kernel(X, X, 1 / 8) + 0.75 * np.eye(len(X)), rtol=1e-12
    )
    np.testing.assert_array_equal(kept, np.eye(len(X)))  # the caller's array is not ours
    np.testing.assert_allclose(combined.diag(X), combined(X).diagonal(), rtol=1e-12)


def test_combined_kernel_in_pieces(monkeypatch):
    found = KernelDictionary.standard(normalisation="cosine").fit(X)
    weights = np.random.default_rng(0).dirichlet(np.ones(len(found)))
    combined = pickle.loads(pickle.dumps(CombinedKernel(found, weights)))
    whole = sum(m * found.matrix(k, NEW, X) for k, m in enumerate(weights))
    monkeypatch.setattr("tessella.multiple_kernels._dictionary._TILE_ENTRIES", 40)
    np.testing.assert_allclose(combined(NEW, X), whole, rtol=1e-12)
    coefficients = np.random.default_rng(1).standard_normal((len(X), 2))
    for n_jobs in (1, 3):
        scores = combined.scores(NEW, X, coefficients, n_jobs)
        np.testing.assert_allclose(scores, whole @ coefficients, rtol=1e-10)
    np.testing.assert_allclose(combined.diag(NEW), combined(NEW).diagonal(), rtol=1e-12)
    assert "of 52 kernels" in repr(combined)


@pytest.mark.parametrize(
    ("make", "error", "said"),
    [
        (lambda: Gaussian(0.0), ValueError, "bandwidth=0.0 must be a positive"),
        (lambda: Polynomial(0), ValueError, "degree=0 must be a whole number"),
        (lambda: Polynomial(2, offset=-1.0), ValueError, "offset=-1.0 must be"),
        (lambda: Gaussian(1.0, features=()), ValueError, "at least one"),
        (lambda: KernelDictionary("rbf"), TypeError, "must be a list of kernels"),
        (lambda: KernelDictionary([]), ValueError, "at least one kernel"),
        (lambda: KernelDictionary([3.0]), TypeError, "holds 3.0, which is not a kernel"),
        (
            lambda: KernelDictionary([Gaussian(1.0)], normalisation="max"),
            ValueError,
            "normalisation='max' is unknown",
        ),
        (
            lambda: KernelDictionary([Gaussian(1.0, features=(5,))]).fit(X),
            ValueError,
            "looks at feature 5 and the data has 3",
        ),
        (
            lambda: KernelDictionary([lambda A, B: np.zeros((len(A), len(B)))]).fit(X),
            ValueError,
            "diagonal with mean 0.0",
        ),
        (
            lambda: KernelDictionary([lambda A, B: np.zeros(len(A))]).fit(X),
            ValueError,
            "gave an array of shape",
        ),
    ],
)
def test_mistakes_are_named(make, error, said):
    with pytest.raises(error, match=said):
        make()
