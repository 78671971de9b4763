from __future__ import annotations

import numpy as np
import pytest

from tessella.kernels import (
    Gaussian,
    IntegralKernels,
    KernelDictionary,
    PolynomialKernels,
    TessellatedKernels,
    UnitBox,
)


def steps(z, X):
    """The tessellated basis of degree 0 in one dimension, written as a user would."""
    above = (z >= X.T).astype(float)
    return np.stack([above, 1.0 - above], axis=-1)


def test_integral_kernels_contain_the_tessellated_ones():
    X = np.array([[0.1], [0.4], [0.8]])
    exact = TessellatedKernels(0, 0.5).bind(X)
    P = np.array([[2.0, 0.3], [0.3, 0.5]])
    numeric = IntegralKernels(steps, [-0.5], [1.5], nodes=2**14).bind(X)
    np.testing.assert_allclose(numeric.gram(P), exact.gram(P), atol=1e-3)


def test_integral_means_over_the_box_whatever_its_size():
    def one(z, X):
        return np.ones((len(z), len(X), 1))

    for rule, nodes in (("gauss", 3), ("sobol", 10)):
        kernels = IntegralKernels(one, [-2.0, 0.0], [5.0, 0.5], nodes=nodes, rule=rule)
        np.testing.assert_allclose(kernels.bind([[0.0], [1.0]]).gram(np.eye(1)), 1.0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"upper": [0.0]}, "lower < upper"),
        ({"upper": [1.0, 1.0]}, "one length"),
        ({"nodes": 0}, "nodes=0 must be at least 1"),
        ({"rule": "simpson"}, "rule='simpson' is unknown"),
        ({"nodes": (np.ones((2, 2)), np.ones(2))}, r"points of shape \(t, 1\)"),
        ({"nodes": (np.ones((2, 1)), np.array([1.0, -1.0]))}, "must be positive"),
        ({"basis": lambda z, X: np.ones((2, 2))}, "basis returned shape"),
        ({"basis": lambda z, X: np.full((len(z), len(X), 1), np.inf)}, "NaN or an infinity"),
    ],
)
def test_integral_bad_input(changes, message):
    params = {"basis": steps, "lower": [0.0], "upper": [1.0], "nodes": 8, **changes}
    with pytest.raises(ValueError, match=message):
        IntegralKernels(**params).bind([[0.1], [0.2]])


@pytest.mark.parametrize("nodes", [1, 2, 3, 4, 5, 8, 9, 17])
def test_sobol_rule_has_the_nodes_that_were_asked_for(nodes):
    points, weights = IntegralKernels(_waves, [-1.0], [3.0], nodes=nodes).quadrature()
    assert points.shape == (nodes, 1)
    assert ((points >= -1.0) & (points <= 3.0)).all()
    np.testing.assert_allclose(weights, np.full(nodes, 1.0 / nodes), rtol=1e-15)


def test_gauss_rule_is_exact_for_polynomials():
    """The means of z⁴ over [-1, 2] and of its products with a second variable over [0, 4]."""

    def powers(z, X):
        both = np.stack([z[:, 0] ** 2, z[:, 0] * z[:, 1]], axis=-1)
        return np.repeat(both[:, None, :], len(X), axis=1)

    kernels = IntegralKernels(powers, [-1.0, 0.0], [2.0, 4.0], nodes=4, rule="gauss")
    bound = kernels.bind([[0.0], [1.0]])
    # Means of z: ½, of z²: 1, of z³: 5/4, of z⁴: 11/5; of the second variable 2 and 16/3.
    for P, mean in ((np.diag([1.0, 0.0]), 11 / 5), (np.diag([0.0, 1.0]), 16 / 3)):
        np.testing.assert_allclose(bound.gram(P), mean, rtol=1e-12)
    np.testing.assert_allclose(bound.gram(np.array([[0.0, 1.0], [1.0, 0.0]])), 5.0, rtol=1e-12)


def _waves(z, X):
    return np.cos(z * X[:, 0])[:, :, None]


def test_polynomial_kernel_is_the_textbook_one():
    """(1 + x·y)² has the matrix P of the squared binomial coefficients."""
    X = np.random.default_rng(0).random((6, 2))
    bound = PolynomialKernels(2).bind(X)
    # 1, x0, x1, x0², x0 x1, x1²
    P = np.diag([1.0, 2.0, 2.0, 1.0, 2.0, 1.0])
    np.testing.assert_allclose(bound.gram(P), (1.0 + X @ X.T) ** 2, rtol=1e-13)


def test_blocks_of_rows_do_not_show():
    """More rows than the 1024 of a block: every entry, and the same to the last bit both ways.

    For 1023 rows, those of the second block, a product with the transpose is not symmetric.
    """
    rng = np.random.default_rng(2)
    X = rng.standard_normal((1024 + 1023, 3))
    bound = PolynomialKernels(2).bind(X)
    root = rng.standard_normal((bound.n_params, bound.n_params))
    K = bound.gram(root @ root.T)
    assert (K == K.T).all()
    exponents = np.array([[0, 0, 0], *np.eye(3), *np.eye(3) * 2, [1, 1, 0], [1, 0, 1], [0, 1, 1]])
    exponents = exponents[np.lexsort((*-exponents.T[::-1], exponents.sum(axis=1)))]
    phi = np.prod(X[:, None, :] ** exponents, axis=2) @ root
    np.testing.assert_allclose(K, phi @ phi.T, rtol=0, atol=1e-12 * K.max())


@pytest.mark.parametrize("m", [101, 999, 1021, 1023])
def test_matrices_of_any_size_are_symmetric_to_the_last_bit(m):
    """BLAS treats the last rows and columns of a product in other ways than those before."""
    rng = np.random.default_rng(4)
    bound = PolynomialKernels(2).bind(rng.standard_normal((m, 3)))
    root = rng.standard_normal((bound.n_params, bound.n_params))
    for centred in (False, True):
        K = bound.gram(root @ root.T, centred=centred)
        assert (K == K.T).all()


def test_tiles_of_scores_do_not_show():
    """Features of 5000 rows on 4000 nodes would take 320 MB; they are made 64 MB at a time."""

    def waves(z, X):
        made.append(len(X))
        return np.stack([np.cos(z * X.T), np.sin(z * X.T)], axis=-1)

    made = []
    kernels = IntegralKernels(waves, [0.0], [3.0], nodes=4000)
    X = np.random.default_rng(3).random((5000, 1))
    Y, w, P = X[:7], np.arange(7.0) - 2.0, np.array([[2.0, 0.3], [0.3, 0.5]])
    scores = kernels.scores(X, Y, P, w)
    assert sum(made) == 5000 + 7
    assert 8 * 2 * 4000 * max(made) <= 64 * 2**20
    assert len(made) < 10  # tiles are not smaller than they have to be
    pick = np.array([0, 1, 1047, 1048, 1049, 2096, 4999])
    np.testing.assert_allclose(scores[pick], kernels.cross(X[pick], Y, P) @ w, rtol=1e-11)


@pytest.mark.parametrize("far", [1e3, 1e8, 1e13])
def test_gaussians_keep_their_digits_far_from_the_origin(far):
    rng = np.random.default_rng(5)
    X = rng.integers(0, 8, (20, 3)) / 8  # sums with `far` are exact
    dictionary = KernelDictionary([Gaussian(0.5)], standardise=False)
    near, moved = (dictionary.bind(rows).gram(np.ones(1)) for rows in (X, X + far))
    np.testing.assert_allclose(moved, near, rtol=1e-11)


def test_unit_box_drops_constant_columns():
    X = np.array([[1.0, 7.0, 0.1 + 0.2], [3.0, 7.0, 0.3], [2.0, 7.0, 0.3]])
    box = UnitBox.fit(X)
    assert box.kept.tolist() == [0]  # the third differs by rounding only
    np.testing.assert_allclose(box.apply(X), [[0.0], [1.0], [0.5]])
    with pytest.raises(ValueError, match="Expected rows with 3 features"):
        box.apply(np.ones((2, 2)))


def test_unit_box_range_overflow():
    with pytest.raises(ValueError, match="range of feature 1 overflows"):
        UnitBox.fit(np.array([[0.0, -1.7e308], [1.0, 1.7e308]]))


def test_constant_columns_do_not_change_the_problem():
    rng = np.random.default_rng(1)
    X = rng.random((10, 2))
    padded = np.column_stack([X, np.full(10, 3.0)])
    plain, wide = UnitBox.fit(X).apply(X), UnitBox.fit(padded).apply(padded)
    assert (plain == wide).all()


@pytest.mark.parametrize("rule", ["gauss", "sobol"])
def test_one_node_is_a_rule(rule):
    """The integral is the value at one point: a kernel of the rank of its basis."""
    kernels = IntegralKernels(steps, [0.0], [1.0], nodes=1, rule=rule)
    K = kernels.bind(np.array([[0.1], [0.4], [0.8]])).gram(np.eye(2))
    assert np.linalg.matrix_rank(K) <= 2
    assert K[0, 0] == pytest.approx(1.0)
