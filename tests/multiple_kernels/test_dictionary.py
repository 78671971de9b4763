from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from reference.weights import rows_of
from sklearn.gaussian_process.kernels import RBF
from sklearn.metrics.pairwise import laplacian_kernel, polynomial_kernel, rbf_kernel

from tessella.kernels import FunctionKernel, Gaussian, KernelDictionary, Polynomial

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
    for kernel in (Gaussian(2.0), Polynomial(2), FunctionKernel(rbf_kernel, (0, 2))):
        np.testing.assert_allclose(kernel.diag(X), kernel(X).diagonal(), rtol=1e-12)


def test_the_standard_dictionary_is_that_of_the_paper():
    found = KernelDictionary.standard().resolve(X)
    assert len(found) == 13 * (3 + 1)
    gaussians = [k for k in found.kernels if isinstance(k, Gaussian) and k.features is None]
    assert [k.bandwidth for k in gaussians][:: len(gaussians) - 1] == [0.5, 10.0]
    alone = {k.features for k in found.kernels if k.features is not None}
    assert alone == {(0,), (1,), (2,)}


def test_constant_features_have_no_kernels_of_their_own():
    wide = np.column_stack([X, np.full(len(X), 7.0)])
    assert len(KernelDictionary.standard().resolve(wide)) == 52
    assert len(KernelDictionary.standard().resolve(wide[:, 2:])) == 13


@pytest.mark.parametrize("normalisation", ["trace", "cosine", None])
def test_normalisation_holds_for_new_rows(normalisation):
    kernels = [Gaussian(1.0), Polynomial(2), Polynomial(1, features=(2,)), Polynomial(3, 0.1)]
    found = KernelDictionary(kernels, normalisation=normalisation).resolve(X)
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
    found = KernelDictionary([Gaussian(1.0)]).resolve(X * 100 - 5).matrix(0, X * 100 - 5)
    np.testing.assert_allclose(found, KernelDictionary([Gaussian(1.0)]).resolve(X).matrix(0, X))
    raw = KernelDictionary([Gaussian(1.0)], standardise=False).resolve(X)
    np.testing.assert_allclose(raw.matrix(0, X), rbf_kernel(X, X, 0.5), rtol=1e-12)


@pytest.mark.parametrize("unit", [1e-200, 1.0, 1e200])
def test_a_row_of_huge_weight_leaves_the_range_as_the_scale(unit):
    rows, weight = unit * np.array([[1.0, 3.0], [2.0, 3.0], [4.0, 3.0]]), np.array([1.0, 1e30, 2.0])
    fitted = KernelDictionary([Gaussian(1.0)]).resolve(rows, weight)
    np.testing.assert_allclose(fitted.scale, [3.0 * unit, 1.0], rtol=1e-12)
    np.testing.assert_allclose(fitted.mean, [2.0 * unit, 3.0 * unit], rtol=1e-12)


def test_weights_of_rows_are_copies():
    twice = np.concatenate([X, X[:5]])
    weight = np.ones(len(X))
    weight[:5] = 2.0
    left = KernelDictionary.standard().resolve(twice)
    right = KernelDictionary.standard().resolve(X, weight)
    np.testing.assert_allclose(left.factors, right.factors, rtol=1e-12)
    np.testing.assert_allclose(left.scale, right.scale, rtol=1e-12)


# ---- quadratic forms


def forms_by_matrices(fitted, rows, w):
    """``wᵀ K_i w`` of every kernel by its matrix."""
    return np.array([w @ fitted.matrix(k, rows) @ w for k in range(len(fitted.kernels))])


@pytest.mark.parametrize("normalisation", ["trace", "cosine", None])
@pytest.mark.parametrize("n_jobs", [1, 3])
def test_quadratic_forms_are_those_of_the_matrices(normalisation, n_jobs):
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((300, 3))
    rows[0, 1] = 200.0  # far from all others, so that narrow kernels need long series
    kernels = [
        *(Gaussian(b, f) for b in (0.05, 0.3, 1.0, 7.0) for f in ((0,), (1,), (2, 0), None)),
        *(Polynomial(d, c, f) for d in (1, 2, 5) for c in (0.0, 0.7) for f in ((2,), (1,), None)),
        FunctionKernel(laplacian_kernel, (1,)),
    ]
    fitted = KernelDictionary(kernels, normalisation=normalisation).resolve(rows)
    bound = fitted.bind(rows, n_jobs=n_jobs)
    for support in (300, 40, 1, 0):
        w = np.zeros(300)
        w[rng.permutation(300)[:support]] = rng.standard_normal(support)
        expected = forms_by_matrices(fitted, rows, w)
        diagonal = np.array([fitted.matrix(k, rows).diagonal().max() for k in range(len(fitted))])
        error = np.abs(bound.moments(w).gradient - expected)
        assert (error <= 1e-14 * diagonal * np.abs(w).sum() ** 2).all()
        face = rng.permutation(len(fitted))[:9]
        np.testing.assert_array_equal(
            bound.moments(w).face_gradient(face), bound.moments(w).gradient[face]
        )


@settings(max_examples=60, deadline=None)
@example(2.1, 0, 0.0)  # the sum of a matrix misses more digits than allowed
@given(st.floats(0.05, 30.0), st.integers(0, 1000), st.floats(-1e3, 1e3))
def test_series_of_gaussians_leave_nothing_out(bandwidth, seed, offset):
    """With all of w at both ends of the range, where the series converge most slowly."""
    rng = np.random.default_rng(seed)
    x = np.concatenate([rng.random(400), np.zeros(200), np.ones(200)])
    w = np.concatenate([np.zeros(400), -np.ones(200), np.ones(200)])
    rows = (10.0 * x + offset)[:, None]
    fitted = KernelDictionary([Gaussian(bandwidth, 0)], standardise=False).resolve(rows)
    expected = 2.0 * 200.0**2 * -np.expm1(-50.0 / bandwidth**2)
    assert fitted.bind(rows).moments(w).gradient[0] == pytest.approx(expected, abs=1e-14 * 400**2)


def test_functions_are_not_asked_about_no_rows():
    """A machine without support vectors has none, and scikit-learn's functions refuse that."""
    rows = np.random.default_rng(0).random((3, 2))
    kernel = FunctionKernel(laplacian_kernel)
    for left, right in ((rows, rows[:0]), (rows[:0], rows), (rows[:0], rows[:0])):
        assert kernel(left, right).shape == (len(left), len(right))


def test_callables_and_gaussian_process_kernels_take_part():
    kept = np.eye(len(X))
    found = KernelDictionary(
        [RBF(2.0), lambda A, B: kept[: len(A), : len(B)]], standardise=False
    ).resolve(X)
    weights = np.array([0.25, 0.75])
    expected = 0.25 * rbf_kernel(X, X, 1 / 8) + 0.75 * np.eye(len(X))
    np.testing.assert_allclose(found.cross(X, X, weights), expected, rtol=1e-12)
    np.testing.assert_allclose(found.bind(X).gram(weights), expected, rtol=1e-12)
    np.testing.assert_array_equal(kept, np.eye(len(X)))  # the caller's array is not ours
    np.testing.assert_allclose(found.diag(X, weights), np.diag(expected), rtol=1e-12)


def test_weighted_sums_of_many_rows():
    """In several pieces, each of so many rows that its tile stays in the cache."""
    found = KernelDictionary.standard(normalisation="cosine").resolve(X)
    weights = np.random.default_rng(0).dirichlet(np.ones(len(found)))
    new, support = rows_of(300, seed=2)[0], rows_of(500, seed=3)[0]
    whole = sum(m * found.matrix(k, new, support) for k, m in enumerate(weights))
    coefficients = np.random.default_rng(1).standard_normal((500, 2))
    predictor = found.predictor(weights, support, coefficients)
    for n_jobs in (1, 3):
        K = found.cross(new, support, weights, n_jobs=n_jobs)
        np.testing.assert_allclose(K, whole, rtol=1e-12)
        scores = predictor.scores(new, n_jobs=n_jobs)
        np.testing.assert_allclose(scores, whole @ coefficients, rtol=1e-10, atol=1e-12)


def test_the_error_of_an_indefinite_function_has_its_eigenvalues():
    """The matrix has the rows (1, 2, 3), (2, 1, 2) and (3, 2, 1)."""

    def farther_is_more(left, right):
        return 1.0 + np.abs(left - right.T)

    dictionary = KernelDictionary([farther_is_more], standardise=False)
    with pytest.raises(ValueError, match=r"on 3 training rows .* eigenvalue -2 next to 5\.7\."):
        dictionary.resolve([[0.0], [1.0], [2.0]])


def test_what_has_no_scale_yet_says_so():
    for ask in (
        lambda kernels: kernels.cross(X, X, np.ones(1)),
        lambda kernels: kernels.diag(X, np.ones(1)),
        lambda kernels: kernels.predictor(np.ones(1), X, np.ones((30, 1))),
    ):
        with pytest.raises(ValueError, match=r"call resolve\(X\) first"):
            ask(KernelDictionary([Gaussian(1.0)]))


@pytest.mark.parametrize(
    ("make", "error", "said"),
    [
        (lambda: Gaussian(0.0), ValueError, "bandwidth=0.0 must be a positive"),
        (lambda: Gaussian(1e-101), ValueError, "a positive finite number from 1e-100 to"),
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
            lambda: KernelDictionary([Gaussian(1.0, features=(5,))]).resolve(X),
            ValueError,
            "looks at feature 5 and the data has 3",
        ),
        (
            lambda: KernelDictionary([lambda A, B: np.zeros((len(A), len(B)))]).resolve(X),
            ValueError,
            "diagonal with mean 0.0",
        ),
        (
            lambda: KernelDictionary([lambda A, B: np.zeros(len(A))]).resolve(X),
            ValueError,
            "gave an array of shape",
        ),
    ],
)
def test_mistakes_are_named(make, error, said):
    with pytest.raises(error, match=said):
        make()
