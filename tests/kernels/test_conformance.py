"""What every kernel set must satisfy, whoever wrote it."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from tessella.kernels import (
    IntegralKernels,
    LearnedKernel,
    PolynomialKernels,
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


SETS = {
    **{
        f"tessellated-{monomials}-{degree}": TessellatedKernels(degree, 0.3, monomials)
        for monomials in ("x", "xz")
        for degree in (0, 1, 2)
    },
    "tessellated-unit": TessellatedKernels(1, 0.3, balance="unit"),
    "tessellated-pointwise": TessellatedKernels(1, 0.3, balance="pointwise"),
    "tessellated-pointwise-xz": TessellatedKernels(1, 0.3, "xz", balance="pointwise"),
    "tessellated-scales": TessellatedKernels(0, 0.3, balance=np.array([3.0, 0.5])),
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


def random_positive(n, rng, rank=None):
    root = rng.standard_normal((n, rank or n))
    return root @ root.T


def random_symmetric(n, rng):
    root = rng.standard_normal((n, n))
    return root + root.T


def test_count_params_is_the_side_of_p(kernels, X):
    assert kernels.bind(X).n_params == kernels.count_params(N_FEATURES)


def test_gram_is_symmetric_and_positive(kernels, X):
    rng = np.random.default_rng(1)
    bound = kernels.bind(X)
    for rank in (1, 2, None):
        K = bound.gram(random_positive(bound.n_params, rng, rank))
        assert (K == K.T).all()
        eigenvalues = np.linalg.eigvalsh(K)
        assert eigenvalues[0] >= -1e-12 * eigenvalues[-1]


def test_gradient_is_the_adjoint_of_gram(kernels, X):
    rng = np.random.default_rng(2)
    bound = kernels.bind(X)
    for _ in range(5):
        w = rng.standard_normal(len(X))
        P = random_positive(bound.n_params, rng)
        quadratic = w @ bound.gram(P) @ w
        assert np.sum(bound.gradient(w) * P) == pytest.approx(quadratic, rel=1e-12)


def test_gradient_is_positive_semidefinite(kernels, X):
    D = kernels.bind(X).gradient(np.random.default_rng(3).standard_normal(len(X)))
    np.testing.assert_allclose(D, D.T, rtol=0, atol=1e-13 * np.abs(D).max())
    eigenvalues = np.linalg.eigvalsh(D)
    assert eigenvalues[0] >= -1e-12 * eigenvalues[-1]


def test_scores_are_gram_times_w(kernels, X):
    rng = np.random.default_rng(4)
    bound = kernels.bind(X)
    w = rng.standard_normal(len(X))
    P = random_positive(bound.n_params, rng)
    expected = bound.gram(P) @ w
    size = np.abs(expected).max()
    np.testing.assert_allclose(bound.moments(w).scores(P), expected, rtol=0, atol=1e-12 * size)
    np.testing.assert_allclose(kernels.scores(X, X, P, w), expected, rtol=0, atol=1e-12 * size)


def test_sensitivities_are_scores_entry_by_entry(kernels, X):
    rng = np.random.default_rng(20)
    bound = kernels.bind(X)
    moments = bound.moments(rng.standard_normal(len(X)))
    V = rng.standard_normal((bound.n_params, 3))
    rows = np.array([2, 5, 11])
    check_sensitivities(moments, V, rows)


def test_sensitivities_of_many_rows(kernels):
    """More than fit in one block of rows of their products."""
    rng = np.random.default_rng(21)
    bound = kernels.bind(scaled(150))
    V = rng.standard_normal((bound.n_params, 2))
    check_sensitivities(bound.moments(rng.standard_normal(150)), V, np.arange(3, 147))


def test_sensitivities_of_a_stack(kernels, X):
    """Of three machines, the second without a row of its own among those asked for."""
    rng = np.random.default_rng(23)
    stack = StackedKernels([kernels.bind(rows) for rows in (X[:9], X[9:12], X[5:])])
    V = rng.standard_normal((stack.n_params, 3))
    rows = np.array([0, 2, 7, 12, 13, 20, 28])
    check_sensitivities(stack.moments(rng.standard_normal(stack.n_samples)), V, rows)


def check_sensitivities(moments, V, rows):
    """Against the matrices Γ_k themselves, entry by entry from the scores."""
    rng = np.random.default_rng(30)
    side = V.shape[1]
    sensitivities = moments.sensitivities(V, rows)
    gamma = np.zeros((len(rows), side, side))
    for i in range(side):
        for j in range(side):
            unit = np.zeros((side, side))
            unit[i, j] += 0.5
            unit[j, i] += 0.5
            gamma[:, i, j] = moments.scores(V @ unit @ V.T)[rows]
    close = {"rtol": 0, "atol": 1e-11 * np.abs(gamma).max()}
    M, v = random_symmetric(side, rng), rng.standard_normal(len(rows))
    np.testing.assert_allclose(sensitivities.apply(M), np.einsum("kij,ij->k", gamma, M), **close)
    np.testing.assert_allclose(
        sensitivities.adjoint(v) / len(rows), np.einsum("k,kij->ij", v, gamma) / len(rows), **close
    )
    F = rng.standard_normal((side, side))
    turned = F.T @ gamma @ F
    transformed = sensitivities.transformed(F)
    np.testing.assert_allclose(
        transformed.apply(M), np.einsum("kij,ij->k", turned, M), atol=1e-11 * np.abs(turned).max()
    )
    products = np.einsum("kij,lij->kl", turned, turned)
    np.testing.assert_allclose(
        transformed.gram(), products, rtol=0, atol=1e-11 * np.abs(products).max()
    )


def test_sensitivities_add_up_as_dual_vectors_do(kernels, X):
    rng = np.random.default_rng(24)
    bound = kernels.bind(X)
    V, M = rng.standard_normal((bound.n_params, 3)), random_symmetric(3, rng)
    rows, v = np.array([2, 5, 11]), rng.standard_normal(len(X))
    w = rng.standard_normal(len(X))
    total = bound.moments(v).sensitivities(V, rows).plus(bound.moments(w).sensitivities(V, rows))
    expected = bound.moments(v + w).scores(V @ M @ V.T)
    close = {"rtol": 0, "atol": 1e-11 * np.abs(expected).max()}
    np.testing.assert_allclose(total.apply(M), expected[rows], **close)


def test_restriction_to_rows_and_a_span(kernels, X):
    """A restriction is the same set: P = V M Vᵀ on some rows, linear in M."""
    rng = np.random.default_rng(22)
    bound = kernels.bind(X)
    rows = np.array([1, 4, 5, 11, 20])
    V = rng.standard_normal((bound.n_params, 2))
    part = bound.restrict(rows, V)
    assert (part.n_samples, part.n_params) == (5, 2)
    M = random_symmetric(2, rng)
    P = V @ M @ V.T
    K = bound.gram(P)[np.ix_(rows, rows)]
    close = {"rtol": 0, "atol": 1e-12 * np.abs(bound.gram(V @ V.T)).max()}
    np.testing.assert_allclose(part.gram(M), K, **close)
    np.testing.assert_allclose(part.diag(M), np.diag(K), **close)
    np.testing.assert_allclose(part.cross(X[:3], M), bound.cross(X[:3], P)[:, rows], **close)
    w = rng.standard_normal(5)
    np.testing.assert_allclose(part.moments(w).scores(M), K @ w, **close)
    D = bound.restrict(rows).gradient(w)
    np.testing.assert_allclose(
        part.gradient(w), V.T @ D @ V, atol=1e-11 * max(1.0, np.abs(V.T @ D @ V).max())
    )
    # A span within a span.
    inner = rng.standard_normal((2, 1))
    twice = part.restrict(np.array([0, 2]), inner).gram(np.eye(1))
    once = part.gram(inner @ inner.T)[np.ix_([0, 2], [0, 2])]
    np.testing.assert_allclose(twice, once, **close)


def test_no_rows_are_no_error(kernels, X):
    bound = kernels.bind(X)
    P = random_positive(bound.n_params, np.random.default_rng(5))
    assert bound.cross(X[:0], P).shape == (0, len(X))
    assert bound.kernels.cross(X, X[:0], P).shape == (len(X), 0)
    assert bound.kernels.scores(X[:0], X, P, np.ones(len(X))).shape == (0,)
    assert not bound.kernels.scores(X, X[:0], P, np.ones(0)).any()


def test_cross_equals_gram(kernels, X):
    bound = kernels.bind(X)
    P = random_positive(bound.n_params, np.random.default_rng(5))
    K = bound.gram(P)
    np.testing.assert_allclose(bound.cross(X, P), K, rtol=0, atol=1e-13 * np.abs(K).max())
    np.testing.assert_allclose(bound.cross(X[:4], P), K[:4], rtol=0, atol=1e-13 * np.abs(K).max())


def test_cross_transposes_with_its_arguments(kernels, X):
    P = random_positive(kernels.count_params(N_FEATURES), np.random.default_rng(6))
    Y = np.random.default_rng(7).random((5, N_FEATURES)) * 2 - 0.5
    K = kernels.cross(X, Y, P)
    np.testing.assert_allclose(kernels.cross(Y, X, P).T, K, atol=1e-12 * np.abs(K).max())


def test_diag_is_the_diagonal(kernels, X):
    bound = kernels.bind(X)
    P = random_positive(bound.n_params, np.random.default_rng(8))
    K = bound.gram(P)
    np.testing.assert_allclose(bound.diag(P), np.diag(K), atol=1e-12 * np.abs(K).max())
    np.testing.assert_allclose(kernels.diag(X, P), np.diag(K), atol=1e-12 * np.abs(K).max())


def test_gram_is_linear_in_p(kernels, X):
    rng = np.random.default_rng(9)
    bound = kernels.bind(X)
    P, Q = random_symmetric(bound.n_params, rng), random_symmetric(bound.n_params, rng)
    expected = 2.0 * bound.gram(P) - 3.0 * bound.gram(Q)
    np.testing.assert_allclose(
        bound.gram(2.0 * P - 3.0 * Q), expected, atol=1e-12 * np.abs(expected).max()
    )


def test_factor_gives_the_same_matrix(kernels, X):
    bound = kernels.bind(X)
    U = np.random.default_rng(10).standard_normal((bound.n_params, 2))
    K = bound.gram(U @ U.T)
    np.testing.assert_allclose(bound.gram_factor(U), K, atol=1e-12 * np.abs(K).max())
    column = U[:, :1]
    K1 = bound.gram(column @ column.T)
    np.testing.assert_allclose(bound.gram_factor(column), K1, atol=1e-12 * np.abs(K1).max())


def test_centred_gram(kernels, X):
    bound = kernels.bind(X)
    P = random_positive(bound.n_params, np.random.default_rng(11))
    K = bound.gram(P)
    H = np.eye(len(X)) - 1.0 / len(X)
    centred = bound.gram(P, centred=True)
    assert (centred == centred.T).all()
    np.testing.assert_allclose(centred, H @ K @ H, atol=1e-12 * np.abs(K).max())


def test_out_is_used(kernels, X):
    bound = kernels.bind(X)
    P = np.eye(bound.n_params)
    buffer = np.full((len(X), len(X)), np.nan)
    assert bound.gram(P, out=buffer) is buffer
    assert (buffer == bound.gram(P)).all()


def test_float32_storage(kernels, X):
    P = random_positive(kernels.count_params(N_FEATURES), np.random.default_rng(12))
    exact, stored = kernels.bind(X), kernels.bind(X, dtype=np.float32)
    K32 = stored.gram(P)
    assert K32.dtype == np.float32
    K = exact.gram(P)
    # Two roundings: of the stored factor and of the entry.
    np.testing.assert_allclose(K32, K, rtol=0, atol=3e-7 * np.abs(K).max())
    w = np.random.default_rng(13).standard_normal(len(X))
    # Gradient and scores feed the certificate: storage must not touch them.
    assert (stored.gradient(w) == exact.gradient(w)).all()
    assert (stored.moments(w).scores(P) == exact.moments(w).scores(P)).all()


def test_inputs_of_any_layout(kernels, X):
    P = random_positive(kernels.count_params(N_FEATURES), np.random.default_rng(14))
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
    bound = kernels.bind(np.full((1, N_FEATURES), 0.25))
    assert bound.gram(np.eye(bound.n_params)).shape == (1, 1)


def test_bad_arguments(kernels, X):
    bound = kernels.bind(X)
    n = bound.n_params
    with pytest.raises(ValueError, match=r"P has shape \(1, 2\)"):
        bound.gram(np.ones((1, 2)))
    if n > 1:
        lopsided = np.eye(n)
        lopsided[0, 1] = 1.0
        with pytest.raises(ValueError, match="symmetric"):
            bound.gram(lopsided)
    with pytest.raises(ValueError, match="U has shape"):
        bound.gram_factor(np.ones((n + 1, 1)))
    with pytest.raises(ValueError, match="w has shape"):
        bound.gradient(np.ones(3))
    with pytest.raises(ValueError, match="matrix of rows"):
        kernels.bind(np.ones(3))


def test_params_round_trip(kernels):
    params = kernels.get_params()
    again = type(kernels)(**params).get_params()
    assert all(again[name] is params[name] for name in params)
    with pytest.raises(ValueError, match="no parameter 'nonsense'"):
        kernels.set_params(nonsense=1)


def test_memory_estimate_covers_what_is_held(kernels):
    X = np.random.default_rng(15).random((200, N_FEATURES))
    bound = kernels.bind(X)
    held = sum(a.nbytes for a in _arrays(bound))
    estimate = kernels.memory_estimate(200, N_FEATURES, 8)
    assert held <= 1.05 * estimate + 50_000


def _arrays(obj, seen=None):
    """Every array reachable from an object's attributes, once."""
    seen = set() if seen is None else seen
    if id(obj) in seen:
        return []
    seen.add(id(obj))
    if isinstance(obj, np.ndarray):
        return [obj] if obj.base is None else []
    if hasattr(obj, "__dict__"):
        return [a for value in vars(obj).values() for a in _arrays(value, seen)]
    return []


def test_learned_kernel_is_picklable_and_scales(kernels, X):
    raw = X * np.array([10.0, 1e-3, 5.0]) - 4.0
    box = UnitBox.fit(raw)
    P = random_positive(kernels.count_params(N_FEATURES), np.random.default_rng(16))
    kernel = LearnedKernel(kernels, P, box)
    K = kernel(raw)
    unit = (X - X.min(0)) / np.ptp(X, axis=0)
    np.testing.assert_allclose(K, kernels.cross(unit, unit, P), atol=1e-10 * np.abs(K).max())
    np.testing.assert_allclose(kernel.diag(raw), np.diag(K), atol=1e-12 * np.abs(K).max())
    w = np.ones(4)
    np.testing.assert_allclose(
        kernel.scores(raw, raw[:4], w), kernel(raw, raw[:4]) @ w, atol=1e-12 * np.abs(K).max()
    )
    again = pickle.loads(pickle.dumps(kernel))
    assert (again(raw) == K).all()
