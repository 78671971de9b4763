"""What every kernel set must satisfy, whoever wrote it."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from tessella.backend import BlockDiagonal
from tessella.cones import PSD, Blocks, LinearSensitivities, ProductCone, inner
from tessella.kernels import (
    FunctionKernel,
    Gaussian,
    GaussianKernels,
    IntegralKernels,
    KernelDictionary,
    KernelsOnFeatures,
    KernelSum,
    KernelWorkspace,
    LaplaceKernels,
    LearnedKernel,
    MaternKernels,
    Polynomial,
    PolynomialKernels,
    Predictor,
    StackedKernels,
    TessellatedKernels,
    UnitBox,
)

N_FEATURES = 3


def bumps(z, X):
    """A bounded basis of two functions: a Gaussian bump at z and its product with x₀."""
    distance = ((z[:, None, :] - X[None, :, : z.shape[1]]) ** 2).sum(axis=2)
    bump = np.exp(-3.0 * distance)
    return np.stack([bump, bump * X[None, :, 0], np.cos(z[:, :1] + X[None, :, 1])], axis=-1)


def laplace(X, Y):
    """A kernel that is nothing but a function of two arrays of rows."""
    return np.exp(-np.abs(X[:, None, :] - Y[None, :, :]).sum(axis=2))


SINGLE = (
    Gaussian(0.7),
    Polynomial(2),
    laplace,
    Gaussian(1.5, features=(0, 2)),
    Polynomial(3, 0.5, features=(1,)),
    FunctionKernel(laplace, (2, 0)),
)
FEW = KernelDictionary([Gaussian(0.5), Gaussian(2.0), Polynomial(1)])

SETS = {
    **{
        f"dictionary-{normalisation}": KernelDictionary(SINGLE, normalisation=normalisation)
        for normalisation in ("trace", "cosine", None)
    },
    "dictionary-each-feature": KernelDictionary(
        [Gaussian(1.0), laplace], each_feature=True, standardise=False
    ),
    "dictionary-of-one": KernelDictionary([Gaussian(1.0)]),
    "on-features": TessellatedKernels(1, 0.3).on_features([2, 0]),
    "dictionary-on-features": KernelDictionary(SINGLE[:2]).on_features([1]),
    "sum-on-features": (FEW + TessellatedKernels(0, 0.5)).on_features([0, 1]),
    "sum-within-a-sum": (FEW + TessellatedKernels(0, 0.5)).on_features([0, 1])
    + PolynomialKernels(1),
    "sum": TessellatedKernels(1, 0.3) + KernelDictionary(SINGLE, normalisation="cosine"),
    "sum-of-margins": TessellatedKernels(1, 0.1) + TessellatedKernels(1, 1.0, "xz"),
    "sum-of-groups": TessellatedKernels(1, 0.3, balance="unit").on_features([0, 1])
    + PolynomialKernels(2).on_features([2])
    + FEW.on_features([1, 2]),
    **{
        f"tessellated-{monomials}-{degree}": TessellatedKernels(degree, 0.3, monomials)
        for monomials in ("x", "xz")
        for degree in (0, 1, 2)
    },
    "tessellated-unit": TessellatedKernels(1, 0.3, balance="unit"),
    "tessellated-pointwise": TessellatedKernels(1, 0.3, balance="pointwise"),
    "tessellated-pointwise-xz": TessellatedKernels(1, 0.3, "xz", balance="pointwise"),
    "tessellated-scales": TessellatedKernels(0, 0.3, balance=np.array([3.0, 0.5])),
    "floor": TessellatedKernels(1, 0.3, floor=0.3),
    "floor-xz": TessellatedKernels(0, 0.3, "xz", floor=0.9),
    "floor-of-a-dictionary": KernelDictionary(SINGLE).with_floor(0.25),
    "floor-of-a-sum": (TessellatedKernels(1, 0.3) + FEW).with_floor(0.5),
    "sum-of-floors": TessellatedKernels(1, 0.3, floor=0.2) + FEW.with_floor(0.6),
    "tessellated-margins": TessellatedKernels(2, (0.1, 0.5, 2.0)),
    "tessellated-margins-xz": TessellatedKernels(1, np.array([0.1, 0.5, 2.0]), "xz"),
    "gaussian": GaussianKernels(0.4),
    "laplace": LaplaceKernels(0.7),
    "matern": MaternKernels(0.6),
    "matern-smooth": MaternKernels(0.6, 2.5),
    "laplace-narrow": LaplaceKernels(0.005),  # beyond what the compiled product can represent
    "sum-of-single-kernels": GaussianKernels(1.0) + LaplaceKernels(0.3).on_features([0, 2]),
    "sum-with-laplace": TessellatedKernels(1, 0.3) + LaplaceKernels(1.0),
    "polynomial-0": PolynomialKernels(0),
    "polynomial-2": PolynomialKernels(2),
    "integral-sobol": IntegralKernels(bumps, [0.0, 0.0], [1.0, 1.0], nodes=50),
    "integral-gauss": IntegralKernels(bumps, [-1.0], [2.0], nodes=7, rule="gauss"),
    "integral-nodes": IntegralKernels(
        bumps, [0.0], [1.0], nodes=(np.linspace(0, 1, 5)[:, None], np.full(5, 0.3))
    ),
}


@pytest.fixture(params=SETS, ids=str)
def kernels(request, X):
    return SETS[request.param].resolve(X)


@pytest.fixture
def X():
    return scaled(23)


def scaled(m):
    """Rows as an estimator scales them: some on every face of the cube, where monomials vanish."""
    X = np.random.default_rng(0).random((m, N_FEATURES))
    return (X - X.min(axis=0)) / np.ptp(X, axis=0)


def blocks_of(cone, point):
    """Cones that are no products, each with its part of a point."""
    if not isinstance(cone, ProductCone):
        return [(cone, point)]
    parts = zip(cone.cones, point, strict=True)
    return [pair for part, own in parts for pair in blocks_of(part, own)]


def random_positive(cone, rng, rank=None):
    """A point of the cone of any trace; of a given rank, or with so many weights."""
    if isinstance(cone, ProductCone):
        return Blocks(random_positive(part, rng, rank) for part in cone.cones)
    if isinstance(cone, PSD):
        root = rng.standard_normal((cone.side, rank or cone.side))
        return root @ root.T
    weights = rng.random(cone.count)
    weights[rng.permutation(cone.count)[rank or cone.count :]] = 0.0
    return weights


def random_symmetric(cone, rng):
    """A point of the space of the cone, which need not lie in it."""
    return cone.point(rng.standard_normal(cone.dimension))


def random_face(cone, rng, size=3):
    """A face that is not everything, if the cone has one."""
    if isinstance(cone, ProductCone):
        return tuple(random_face(part, rng, size) for part in cone.cones)
    if isinstance(cone, PSD):
        return np.linalg.qr(rng.standard_normal((cone.side, min(size, cone.side))))[0]
    return np.sort(rng.permutation(cone.count)[: min(size, max(1, cone.count - 1))])


def largest(cone, point):
    return np.abs(cone.vector(point)).max()


def assert_near(cone, found, expected, rel):
    np.testing.assert_allclose(
        cone.vector(found), cone.vector(expected), rtol=0, atol=rel * largest(cone, expected)
    )


def test_the_cone_is_known_without_rows(kernels, X):
    bound, cone = kernels.bind(X), kernels.cone(N_FEATURES)
    assert repr(bound.cone) == repr(cone)
    assert (bound.cone.degree, bound.cone.dimension) == (cone.degree, cone.dimension)
    if isinstance(cone, PSD):
        assert bound.cone.side == kernels.count_params(N_FEATURES)


def test_gram_is_symmetric_and_positive(kernels, X):
    rng = np.random.default_rng(1)
    bound = kernels.bind(X)
    for rank in (1, 2, None):
        K = bound.gram(random_positive(bound.cone, rng, rank))
        assert (K == K.T).all()
        eigenvalues = np.linalg.eigvalsh(K)
        assert eigenvalues[0] >= -1e-12 * eigenvalues[-1]


def test_gradient_is_the_adjoint_of_gram(kernels, X):
    rng = np.random.default_rng(2)
    bound = kernels.bind(X)
    for _ in range(5):
        w = rng.standard_normal(len(X))
        P = random_positive(bound.cone, rng)
        quadratic = w @ bound.gram(P) @ w
        assert inner(bound.gradient(w), P) == pytest.approx(quadratic, rel=1e-12)


def test_gradient_lies_in_the_cone(kernels, X):
    bound = kernels.bind(X)
    D = bound.gradient(np.random.default_rng(3).standard_normal(len(X)))
    for cone, own in blocks_of(bound.cone, D):
        if isinstance(cone, PSD):
            np.testing.assert_allclose(own, own.T, rtol=0, atol=1e-13 * np.abs(own).max())
            eigenvalues = np.linalg.eigvalsh(own)
            assert eigenvalues[0] >= -1e-12 * eigenvalues[-1]
        else:
            assert own.min() >= 0.0


def test_scores_are_gram_times_w(kernels, X):
    rng = np.random.default_rng(4)
    bound = kernels.bind(X)
    w = rng.standard_normal(len(X))
    w[::3] = 0.0  # of support vectors alone
    P = random_positive(bound.cone, rng)
    expected = bound.gram(P) @ w
    close = {"rtol": 0, "atol": 1e-12 * np.abs(expected).max()}
    moments = bound.moments(w)
    np.testing.assert_allclose(moments.scores(P), expected, **close)
    for factors in (bound.cone.factors(P), bound.cone.positive_factors(P)):
        np.testing.assert_allclose(moments.factor_scores(factors), expected, **close)
    np.testing.assert_allclose(kernels.scores(X, X, P, w), expected, **close)


def test_face_gradient_is_the_gradient_seen_by_the_face(kernels, X):
    rng = np.random.default_rng(19)
    bound = kernels.bind(X)
    moments = bound.moments(rng.standard_normal(len(X)))
    face = random_face(bound.cone, rng)
    small = bound.cone.face(face)
    expected = bound.cone.compress(face, moments.gradient)
    assert_near(small, moments.face_gradient(face), expected, 1e-12)
    assert_near(bound.cone, moments.face_gradient(None), moments.gradient, 1e-13)


def test_sensitivities_are_scores_entry_by_entry(kernels, X):
    rng = np.random.default_rng(20)
    bound = kernels.bind(X)
    moments = bound.moments(rng.standard_normal(len(X)))
    rows = np.array([2, 5, 11])
    check_sensitivities(moments, bound.cone, random_face(bound.cone, rng), rows)
    check_sensitivities(moments, bound.cone, None, rows)


def test_sensitivities_of_many_rows(kernels):
    """More than fit in one block of rows of their products."""
    rng = np.random.default_rng(21)
    bound = kernels.bind(scaled(150))
    face = random_face(bound.cone, rng, 2)
    moments = bound.moments(rng.standard_normal(150))
    check_sensitivities(moments, bound.cone, face, np.arange(3, 147))


def test_sensitivities_of_a_stack(kernels, X):
    """Of three machines, the second without a row of its own among those asked for."""
    rng = np.random.default_rng(23)
    stack = StackedKernels([kernels.bind_resolved(rows) for rows in (X[:9], X[9:12], X[5:])])
    rows = np.array([0, 2, 7, 12, 13, 20, 28])
    moments = stack.moments(rng.standard_normal(stack.n_samples))
    check_sensitivities(moments, stack.cone, random_face(stack.cone, rng), rows)


def test_machines_on_some_rows_are_the_stack_of_them(kernels, X):
    """Also with dual vectors that are zero on a machine, and machines without a chosen row."""
    rng = np.random.default_rng(25)
    parts = (np.arange(9), np.array([9, 4, 11]), np.arange(5, len(X)))
    machines = kernels.bind_machines(X, parts)
    stack = StackedKernels([kernels.bind_resolved(X[own]) for own in parts])
    assert (machines.n_samples, machines.n_machines) == (stack.n_samples, 3)
    P = random_positive(stack.cone, rng)
    factors = stack.cone.positive_factors(P)
    for centred in (False, True):
        expected = stack.factor_gram(factors, centred, None)
        scale = np.abs(expected).max()
        for found in (
            machines.factor_gram(factors, centred, None),
            whole(machines.factor_blocks(factors, centred)),
        ):
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-11 * scale)
    memory, other = KernelWorkspace(np.float64), KernelWorkspace(np.float64)
    given = zip(machines.svm_kernels(factors, memory), stack.machines, strict=True)
    for found, part in given:
        expected = part.svm_kernel(factors, other)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-11 * scale)
    np.testing.assert_allclose(machines.diag(P), stack.diag(P), rtol=1e-11, atol=1e-13 * scale)
    new = scaled(4)
    np.testing.assert_allclose(machines.cross(new, P), stack.cross(new, P), atol=1e-11 * scale)
    w = rng.standard_normal(stack.n_samples)
    w[9:12] = 0.0
    w[[0, 15]] = 0.0
    check_moments(machines, stack, w, P)
    w[10] = 1.0
    check_moments(machines, stack, w, P)
    rows = np.array([0, 2, 7, 12, 13, 20, 28])
    face = random_face(stack.cone, rng)
    pair = [own.moments(w).sensitivities(face, rows) for own in (machines, stack)]
    M = random_symmetric(stack.cone.face(face), rng)
    np.testing.assert_allclose(pair[0].apply(M), pair[1].apply(M), atol=1e-10 * scale)
    smaller = [own.restrict(rows, face) for own in (machines, stack)]
    assert smaller[0].n_machines == 2
    M = random_positive(stack.cone.face(face), rng)
    check_moments(*smaller, w[rows], M)
    check_moments(machines.subset(rows), stack.subset(rows), w[rows], P)


def whole(K):
    return K.whole() if isinstance(K, BlockDiagonal) else K


def check_moments(machines, stack, w, P):
    cone, found, expected = stack.cone, machines.moments(w), stack.moments(w)
    assert_near(cone, found.gradient, expected.gradient, 1e-11)
    scores = expected.scores(P)
    close = {"rtol": 0, "atol": 1e-10 * np.abs(scores).max()}
    np.testing.assert_allclose(found.scores(P), scores, **close)
    np.testing.assert_allclose(found.factor_scores(cone.positive_factors(P)), scores, **close)


def check_sensitivities(moments, cone, face, rows):
    """Against the points Γ_k themselves, entry by entry from the scores."""
    rng = np.random.default_rng(30)
    small = cone.face(face)
    sensitivities = moments.sensitivities(face, rows)
    units = [small.point(unit) for unit in np.eye(small.dimension)]
    # One row for each Γ_k, as a vector: inner products are those of points.
    gamma = np.array([moments.scores(cone.expand(face, unit))[rows] for unit in units]).T
    close = {"rtol": 0, "atol": 1e-11 * np.abs(gamma).max()}
    M, v = random_symmetric(small, rng), rng.standard_normal(len(rows))
    np.testing.assert_allclose(sensitivities.apply(M), gamma @ small.vector(M), **close)
    found = small.vector(sensitivities.adjoint(v))
    np.testing.assert_allclose(found / len(rows), v @ gamma / len(rows), **close)
    np.testing.assert_allclose(sensitivities.matrix(), gamma, **close)
    # In the variables X of a scaling, M = F·X.
    S = random_positive(small, rng) + 0.1 * small.identity
    L = small.factor(random_positive(small, rng) + 0.1 * small.identity)
    scaling = small.scaling(L, S)
    transformed = sensitivities.transformed(scaling.factor)
    turned = np.array([gamma @ small.vector(scaling.from_scaled(unit)) for unit in units]).T
    np.testing.assert_allclose(
        transformed.apply(M), turned @ small.vector(M), atol=1e-11 * np.abs(turned).max()
    )
    products = turned @ turned.T
    close = {"rtol": 0, "atol": 1e-11 * np.abs(products).max()}
    np.testing.assert_allclose(transformed.gram(), products, **close)
    given = LinearSensitivities(gamma, small)
    np.testing.assert_allclose(given.transformed(scaling.factor).gram(), products, **close)
    doubled = given.plus(given)
    np.testing.assert_allclose(doubled.apply(M), 2.0 * gamma @ small.vector(M), rtol=1e-12)
    np.testing.assert_allclose(small.vector(given.adjoint(v)), v @ gamma, rtol=1e-9, atol=1e-12)
    columns = transformed.columns()
    if columns is not None:
        np.testing.assert_allclose(columns @ columns.T, products, **close)


def test_sensitivities_add_up_as_dual_vectors_do(kernels, X):
    rng = np.random.default_rng(24)
    bound = kernels.bind(X)
    face = random_face(bound.cone, rng)
    M = random_symmetric(bound.cone.face(face), rng)
    rows, v = np.array([2, 5, 11]), rng.standard_normal(len(X))
    w = rng.standard_normal(len(X))
    parts = [bound.moments(dual).sensitivities(face, rows) for dual in (v, w)]
    expected = bound.moments(v + w).scores(bound.cone.expand(face, M))
    close = {"rtol": 0, "atol": 1e-11 * np.abs(expected).max()}
    np.testing.assert_allclose(parts[0].plus(parts[1]).apply(M), expected[rows], **close)


def test_restriction_to_rows_and_a_face(kernels, X):
    """A restriction is the same set: a point of a face on some rows, linear in it."""
    rng = np.random.default_rng(22)
    bound = kernels.bind(X)
    rows = np.array([1, 4, 5, 11, 20])
    face = random_face(bound.cone, rng, 2)
    part, small = bound.restrict(rows, face), bound.cone.face(face)
    assert part.n_samples == 5
    assert part.cone.dimension == small.dimension
    M = random_symmetric(small, rng)
    P = bound.cone.expand(face, M)
    K = bound.gram(P)[np.ix_(rows, rows)]
    positive = bound.cone.expand(face, small.identity)
    close = {"rtol": 0, "atol": 1e-12 * np.abs(bound.gram(positive)).max()}
    found = part.gram(M)
    assert (found == found.T).all()
    np.testing.assert_allclose(found, K, **close)
    np.testing.assert_allclose(part.diag(M), np.diag(K), **close)
    np.testing.assert_allclose(part.cross(X[:3], M), bound.cross(X[:3], P)[:, rows], **close)
    w = rng.standard_normal(5)
    np.testing.assert_allclose(part.moments(w).scores(M), K @ w, **close)
    D = bound.cone.compress(face, bound.restrict(rows).gradient(w))
    atol = 1e-11 * max(1.0, largest(small, D))
    np.testing.assert_allclose(small.vector(part.gradient(w)), small.vector(D), atol=atol)
    # A face within a face.
    inside = random_face(small, rng, 1)
    N = small.face(inside).identity
    twice = part.restrict(np.array([0, 2]), inside).gram(N)
    once = part.gram(small.expand(inside, N))[np.ix_([0, 2], [0, 2])]
    np.testing.assert_allclose(twice, once, **close)
    # Fewer rows within a face.
    fewer = part.subset(np.array([0, 2]))
    np.testing.assert_allclose(fewer.gram(M), K[np.ix_([0, 2], [0, 2])], **close)


def test_restrictions_of_many_rows_are_symmetric_to_the_last_bit(kernels):
    rng = np.random.default_rng(25)
    part = kernels.bind(scaled(150)).restrict(np.arange(1, 150))
    for rank in (2, None):
        for centred in (False, True):
            K = part.gram(random_positive(part.cone, rng, rank), centred=centred)
            assert (K == K.T).all()


def test_no_rows_are_no_error(kernels, X):
    bound = kernels.bind(X)
    P = random_positive(bound.cone, np.random.default_rng(5))
    none = bound.moments(np.ones(len(X))).sensitivities(None, np.arange(0))
    assert none.apply(P).shape == (0,)
    assert bound.cross(X[:0], P).shape == (0, len(X))
    assert bound.kernels.diag(X[:0], P).shape == (0,)
    assert bound.kernels.cross(X, X[:0], P).shape == (len(X), 0)
    assert bound.kernels.scores(X[:0], X, P, np.ones(len(X))).shape == (0,)
    assert not bound.kernels.scores(X, X[:0], P, np.ones(0)).any()


def test_cross_equals_gram(kernels, X):
    bound = kernels.bind(X)
    P = random_positive(bound.cone, np.random.default_rng(5))
    K = bound.gram(P)
    np.testing.assert_allclose(bound.cross(X, P), K, rtol=0, atol=1e-13 * np.abs(K).max())
    np.testing.assert_allclose(bound.cross(X[:4], P), K[:4], rtol=0, atol=1e-13 * np.abs(K).max())


def test_cross_transposes_with_its_arguments(kernels, X):
    P = random_positive(kernels.cone(N_FEATURES), np.random.default_rng(6))
    Y = np.random.default_rng(7).random((5, N_FEATURES)) * 2 - 0.5
    K = kernels.cross(X, Y, P)
    np.testing.assert_allclose(kernels.cross(Y, X, P).T, K, atol=1e-12 * np.abs(K).max())


def test_diag_is_the_diagonal(kernels, X):
    bound = kernels.bind(X)
    P = random_positive(bound.cone, np.random.default_rng(8))
    K = bound.gram(P)
    np.testing.assert_allclose(bound.diag(P), np.diag(K), atol=1e-12 * np.abs(K).max())
    np.testing.assert_allclose(kernels.diag(X, P), np.diag(K), atol=1e-12 * np.abs(K).max())


def test_the_diagonal_is_at_most_that_of_the_centre_times_the_degree(kernels, X):
    bound, rng = kernels.bind(X), np.random.default_rng(18)
    largest = max(1, bound.cone.degree) * bound.diag(bound.cone.centre)
    for rank in (1, None):
        P = bound.cone.normalised(random_positive(bound.cone, rng, rank))
        assert (bound.diag(P) <= largest * (1 + 1e-12)).all()


def test_gram_is_linear_in_p(kernels, X):
    rng = np.random.default_rng(9)
    bound = kernels.bind(X)
    P, Q = random_symmetric(bound.cone, rng), random_symmetric(bound.cone, rng)
    expected = 2.0 * bound.gram(P) - 3.0 * bound.gram(Q)
    np.testing.assert_allclose(
        bound.gram(2.0 * P - 3.0 * Q), expected, atol=1e-12 * np.abs(expected).max()
    )


def test_factor_gives_the_same_matrix(kernels, X):
    rng, bound = np.random.default_rng(10), kernels.bind(X)
    P = random_positive(bound.cone, rng) + 0.1 * bound.cone.identity
    K = bound.gram(P)
    root = bound.cone.factor(P)
    np.testing.assert_allclose(bound.gram_factor(root), K, atol=1e-12 * np.abs(K).max())
    if isinstance(bound.cone, PSD):
        for rank in (1, 2):
            U = rng.standard_normal((bound.cone.side, rank))
            K = bound.gram(U @ U.T)
            np.testing.assert_allclose(bound.gram_factor(U), K, atol=1e-12 * np.abs(K).max())


def test_centred_gram(kernels, X):
    bound = kernels.bind(X)
    P = random_positive(bound.cone, np.random.default_rng(11))
    K = bound.gram(P)
    H = np.eye(len(X)) - 1.0 / len(X)
    centred = bound.gram(P, centred=True)
    assert (centred == centred.T).all()
    np.testing.assert_allclose(centred, H @ K @ H, atol=1e-12 * np.abs(K).max())


def test_out_is_used(kernels, X):
    bound = kernels.bind(X)
    P = bound.cone.identity
    buffer = np.full((len(X), len(X)), np.nan)
    assert bound.gram(P, out=buffer) is buffer
    assert (buffer == bound.gram(P)).all()
    centred = np.full((len(X), len(X)), np.nan)
    assert bound.gram(P, centred=True, out=centred) is centred
    assert (centred == bound.gram(P, centred=True)).all()


def test_float32_storage(kernels, X):
    P = random_positive(kernels.cone(N_FEATURES), np.random.default_rng(12))
    exact, stored = kernels.bind(X), kernels.bind(X, dtype=np.float32)
    K32 = stored.gram(P)
    assert K32.dtype == np.float32
    K = exact.gram(P)
    # Two roundings: of the stored factor and of the entry.
    np.testing.assert_allclose(K32, K, rtol=0, atol=3e-7 * np.abs(K).max())
    w = np.random.default_rng(13).standard_normal(len(X))
    # Gradient and scores feed the certificate: storage must not touch them.
    gradients = [bound.cone.vector(bound.gradient(w)) for bound in (stored, exact)]
    assert (gradients[0] == gradients[1]).all()
    assert (stored.moments(w).scores(P) == exact.moments(w).scores(P)).all()


def test_inputs_of_any_layout(kernels, X):
    P = random_positive(kernels.cone(N_FEATURES), np.random.default_rng(14))
    K = kernels.bind(X).gram(P)
    wide = np.zeros((len(X), 2 * N_FEATURES))
    wide[:, ::2] = X
    frozen = X.copy()
    frozen.flags.writeable = False
    for variant in (np.asfortranarray(X), wide[:, ::2], frozen, X.tolist()):
        assert (kernels.bind(variant).gram(P) == K).all()
        assert kernels.cross(variant, variant, P).shape == K.shape
    assert kernels.bind(X.astype(np.float32)).gram(P).dtype == np.float64


def test_one_row(kernels):
    bound = kernels.bind_resolved(np.full((1, N_FEATURES), 0.25))
    assert bound.gram(bound.cone.identity).shape == (1, 1)


def test_bad_arguments(kernels, X):
    bound = kernels.bind(X)
    message = {"PSD": r"P has shape \(1, 2\)", "Nonnegative": "weights have shape"}
    with pytest.raises(ValueError, match=message.get(type(bound.cone).__name__, "blocks")):
        bound.gram(np.ones((1, 2)))
    if isinstance(bound.cone, PSD) and bound.cone.side > 1:
        lopsided = np.eye(bound.cone.side)
        lopsided[0, 1] = 1.0
        with pytest.raises(ValueError, match="symmetric"):
            bound.gram(lopsided)
    with pytest.raises(ValueError, match="w has shape"):
        bound.gradient(np.ones(3))
    with pytest.raises(ValueError, match="matrix of rows"):
        kernels.bind(np.ones(3))


def test_params_round_trip(kernels):
    params = kernels.get_params(deep=False)
    again = type(kernels)(**params).get_params(deep=False)
    assert all(again[name] is params[name] for name in params)
    with pytest.raises(ValueError, match="no parameter 'nonsense'"):
        kernels.set_params(nonsense=1)


def test_memory_estimate_covers_what_is_held(kernels):
    X = np.random.default_rng(15).random((200, N_FEATURES))
    bound = kernels.bind(X)
    held = sum(a.nbytes for a in _arrays(bound))
    estimate = kernels.memory_estimate(200, N_FEATURES, 8)
    assert held <= 1.05 * estimate + 50_000


@pytest.mark.parametrize(
    "kernels",
    [KernelDictionary([Gaussian(1.0)]), FEW, LaplaceKernels(), TessellatedKernels(0)],
    ids=["dictionary", "dictionary-of-few", "laplace", "tessellated"],
)
def test_memory_estimate_covers_wide_rows(kernels):
    n_samples, n_features = 300, 400
    X = np.random.default_rng(16).random((n_samples, n_features))
    held = sum(a.nbytes for a in _arrays(kernels.bind(X)))
    assert held >= 8 * n_samples * n_features
    assert held <= 1.05 * kernels.memory_estimate(n_samples, n_features, 8) + 50_000


@pytest.mark.parametrize("kernels", [TessellatedKernels(floor=0.3), FEW.with_floor(0.3)], ids=str)
def test_memory_estimate_covers_the_matrix_of_a_floor(kernels):
    bound = kernels.bind(np.random.default_rng(15).random((200, N_FEATURES)))
    bound.gram(bound.cone.centre)
    held = sum(a.nbytes for a in _arrays(bound))
    assert held >= 8 * 200**2
    assert held <= 1.05 * kernels.memory_estimate(200, N_FEATURES, 8) + 50_000


def test_memory_of_a_sum_is_that_of_its_parts_and_a_second_matrix():
    parts = TessellatedKernels(1), FEW, LaplaceKernels()
    expected = sum(part.memory_estimate(100, N_FEATURES, 4) for part in parts) + 4 * 100**2
    assert KernelSum(parts).memory_estimate(100, N_FEATURES, 4) == expected


def _arrays(obj, seen=None):
    """Every array reachable from an object's attributes, once."""
    seen = set() if seen is None else seen
    if id(obj) in seen:
        return []
    seen.add(id(obj))
    if isinstance(obj, np.ndarray):
        return [obj] if obj.base is None else []
    if isinstance(obj, dict):
        return [a for value in obj.values() for a in _arrays(value, seen)]
    if hasattr(obj, "__dict__"):
        return [a for value in vars(obj).values() for a in _arrays(value, seen)]
    return []


def test_learned_kernel_is_picklable_and_scales(kernels, X):
    raw = X * np.array([10.0, 1e-3, 5.0]) - 4.0
    box = UnitBox.fit(raw)
    P = random_positive(kernels.cone(N_FEATURES), np.random.default_rng(16))
    kernel = LearnedKernel(kernels, P, box)
    K = kernel(raw)
    unit = (X - X.min(0)) / np.ptp(X, axis=0)
    np.testing.assert_allclose(K, kernels.cross(unit, unit, P), atol=1e-10 * np.abs(K).max())
    np.testing.assert_allclose(kernel.diag(raw), np.diag(K), atol=1e-12 * np.abs(K).max())
    w = np.ones(4)
    np.testing.assert_allclose(
        kernel.scores(raw, raw[:4], w), kernel(raw, raw[:4]) @ w, atol=1e-12 * np.abs(K).max()
    )
    assert (kernel(raw) == kernel(raw).T).all()
    again = pickle.loads(pickle.dumps(kernel))
    assert (again(raw) == K).all()
    assert again == kernel
    assert hash(again) == hash(kernel)
    assert LearnedKernel(kernels, 2.0 * P, box) != kernel


def test_predictor_is_cross_times_coefficients(kernels, X):
    rng = np.random.default_rng(17)
    P = random_positive(kernels.cone(N_FEATURES), rng)
    new, coefficients = rng.uniform(-0.5, 1.5, (11, N_FEATURES)), rng.standard_normal((23, 3))
    expected = kernels.cross(new, X, P) @ coefficients
    predictor = kernels.predictor(P, X, coefficients)
    assert isinstance(predictor, Predictor)
    assert predictor.products_per_row >= 0
    for prepared in (predictor, pickle.loads(pickle.dumps(predictor))):
        for rows in (new, new[:1], new[:0]):
            found = prepared.scores(rows)
            assert found.shape == (len(rows), 3)
            close = {"rtol": 0, "atol": 1e-11 * np.abs(expected).max()}
            np.testing.assert_allclose(found, expected[: len(rows)], **close)


# ---- what is particular to sums and to sets on some features


def test_a_sum_is_the_sum_of_its_parts(X):
    dictionary = KernelDictionary(SINGLE)
    both = TessellatedKernels(1, 0.3) + dictionary
    rng = np.random.default_rng(18)
    bound = both.bind(X)
    P = random_positive(bound.cone, rng)
    parts = [TessellatedKernels(1, 0.3).bind(X), dictionary.bind(X)]
    expected = parts[0].gram(P[0]) + parts[1].gram(P[1])
    close = {"rtol": 0, "atol": 1e-13 * np.abs(expected).max()}
    np.testing.assert_allclose(bound.gram(P), expected, **close)
    nothing = Blocks([0.0 * P[0], P[1]])
    np.testing.assert_allclose(bound.gram(nothing), parts[1].gram(P[1]), **close)


def test_sums_of_sums_have_all_parts():
    one, two, three = TessellatedKernels(0), FEW, PolynomialKernels(2)
    assert ((one + two) + three).parts == (one + (two + three)).parts == (one, two, three)
    with pytest.raises(TypeError):
        one + 3.0
    with pytest.raises(TypeError, match="at least two kernel sets"):
        KernelSum((one,))
    with pytest.raises(TypeError, match="at least two kernel sets"):
        KernelSum((one, "rbf"))


def test_parameters_of_the_parts_by_name():
    both = TessellatedKernels(1, 0.3) + PolynomialKernels(2)
    both.set_params(**{"0__delta": 0.7, "1__degree": 3})
    assert (both.parts[0].delta, both.parts[1].degree) == (0.7, 3)
    assert both.get_params()["0__delta"] == 0.7
    assert both.get_params(deep=False).keys() == {"parts"}
    with pytest.raises(ValueError, match="no parameter '2__delta'"):
        both.set_params(**{"2__delta": 1.0})


def test_a_set_on_features_is_the_set_of_those_columns(X):
    inner_set = TessellatedKernels(1, 0.3)
    some, alone = inner_set.on_features([2, 0]).bind(X), inner_set.bind(X[:, [2, 0]])
    P = random_positive(alone.cone, np.random.default_rng(0))
    assert (some.gram(P) == alone.gram(P)).all()
    np.testing.assert_array_equal(some.cross(X[:4], P), alone.cross(X[:4][:, [2, 0]], P))


@pytest.mark.parametrize("features", [[], [-1], [0.5]])
def test_bad_features_are_refused(features):
    with pytest.raises(ValueError, match="column numbers >= 0"):
        TessellatedKernels().on_features(features)


def test_what_is_not_there_is_refused(X):
    with pytest.raises(TypeError, match="must be a kernel set"):
        KernelsOnFeatures("rbf", (0,))
    with pytest.raises(ValueError, match="looks at feature 3 and the data has 3"):
        TessellatedKernels().on_features([0, 3]).bind(X)
    bound = TessellatedKernels().on_features([0, 2]).bind(X)
    with pytest.raises(ValueError, match="looks at feature 2 and the data has 2"):
        bound.cross(X[:, :2], bound.cone.identity)
    with pytest.raises(ValueError, match="are constant"):
        TessellatedKernels().on_features([0]).bind(np.column_stack([np.ones(23), X]))


def test_constant_columns_do_not_change_a_sum(X):
    """A part that names no features sees those that vary; others keep what they named."""
    wide = np.column_stack([X[:, :1], np.full(len(X), 0.5), X[:, 1:]])
    both = TessellatedKernels(1, 0.3) + KernelDictionary(SINGLE[:3])
    plain, resolved = both.bind(X), both.resolve(wide)
    padded = resolved.bind_resolved(wide)
    assert resolved.parts[0].features == (0, 2, 3)
    P = random_positive(plain.cone, np.random.default_rng(0))
    K = plain.gram(P)
    np.testing.assert_allclose(padded.gram(P), K, rtol=0, atol=1e-12 * np.abs(K).max())
    w = np.random.default_rng(1).standard_normal(len(X))
    D = plain.gradient(w)
    assert_near(plain.cone, padded.gradient(w), D, 1e-11)
    # Bound once, the set is the same for any rows, also where another column is constant.
    again = padded.kernels.bind_resolved(wide[:1])
    np.testing.assert_allclose(again.gram(P), K[:1, :1], rtol=1e-12)
    named = TessellatedKernels(1, 0.3).on_features([1, 2]) + FEW
    assert named.resolve(wide).parts[0].features == (2,)
