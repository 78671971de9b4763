from __future__ import annotations

import tracemalloc
from math import comb

import numpy as np
import pytest
from kernels import work
from reference.basis import powers_of
from reference.quadrature import all_exponents, kernel_block_matrix
from reference.threads import needs_task_list, threads_used

from tessella.kernels import TessellatedKernels

CASES = [(m, n, d) for m in ("x", "xz") for n in (1, 2, 3) for d in (0, 1, 2)]


@pytest.mark.parametrize(("monomials", "n", "degree"), CASES)
def test_basis_holds_every_monomial_once(monomials, n, degree):
    x_powers, z_powers = powers_of(TessellatedKernels(degree, 0.3, monomials), n)
    both = np.hstack([x_powers, z_powers]) if monomials == "xz" else x_powers
    assert {tuple(e) for e in both} == {tuple(e) for e in all_exponents(both.shape[1], degree)}
    assert len(both) == comb(both.shape[1] + degree, degree)
    assert monomials == "xz" or not z_powers.any()


@pytest.mark.parametrize(("monomials", "n", "degree"), CASES)
def test_every_entry_equals_the_integral(monomials, n, degree):
    """All four blocks, one entry of P at a time, at points in and outside the box."""
    kernels = TessellatedKernels(degree, 0.3, monomials)
    powers = powers_of(kernels, n)
    rng = np.random.default_rng(n + 10 * degree)
    points = np.vstack([rng.random((2, n)), 3.0 * rng.random((2, n)) - 1.0])
    blocks = np.array([[kernel_block_matrix(x, y, 0.3, *powers) for y in points] for x in points])
    side = kernels.count_params(n)
    pairs = [(i, j) for i in range(side) for j in range(i, side)]
    if len(pairs) > 150:
        pairs = [pairs[k] for k in rng.choice(len(pairs), 150, replace=False)]
    for i, j in pairs:
        unit = np.zeros((side, side))
        unit[i, j] += 0.5
        unit[j, i] += 0.5
        expected = 0.5 * (blocks[:, :, i, j] + blocks[:, :, j, i])
        got = kernels.cross(points, points, unit)
        np.testing.assert_allclose(got, expected, rtol=0, atol=2e-13 * np.abs(blocks).max())


@pytest.mark.parametrize("monomials", ["x", "xz"])
def test_margin_of_each_feature(monomials):
    delta = np.array([0.2, 1.5])
    kernels = TessellatedKernels(1, delta, monomials)
    powers, side = powers_of(kernels, 2), kernels.count_params(2)
    points = np.array([[0.3, 0.9], [0.8, 0.1], [1.7, -2.0], [-1.0, 2.2]])
    blocks = np.array([[kernel_block_matrix(x, y, delta, *powers) for y in points] for x in points])
    root = np.random.default_rng(3).standard_normal((side, side))
    P = root @ root.T
    expected = np.einsum("klij,ij->kl", blocks, P)
    np.testing.assert_allclose(kernels.cross(points, points, P), expected, rtol=1e-12)
    np.testing.assert_allclose(kernels.diag(points, P), np.diag(expected), rtol=1e-12)
    assert kernels.margin == 0.2


@pytest.mark.parametrize("balance", ["none", "pointwise"])
def test_pull_to_the_centre_is_a_larger_margin(balance):
    """At degree 0, ½ + s (x - ½) with margin δ is x with margin (δ + ½(1 - s)) / s."""
    X, scale, delta = np.random.default_rng(4).random((9, 3)), np.array([1.0, 0.4, 0.01]), 0.3
    P = np.array([[2.0, -0.5], [-0.5, 1.0]])
    margins = (delta + 0.5 * (1.0 - scale)) / scale
    pulled = TessellatedKernels(0, delta, balance=balance).bind(0.5 + scale * (X - 0.5)).gram(P)
    wider = TessellatedKernels(0, margins, balance=balance).bind(X).gram(P)
    np.testing.assert_allclose(pulled, wider, rtol=1e-11)


def test_bad_margins():
    with pytest.raises(ValueError, match=r"delta has shape \(2,\), but the kernel sees 3 features"):
        TessellatedKernels(delta=(0.1, 0.2)).bind(np.eye(3))
    with pytest.raises(ValueError, match="must be a positive number, or one for each feature"):
        TessellatedKernels(delta=(0.1, -0.2, 1.0)).bind(np.eye(3))
    with pytest.raises(ValueError, match="3 rows lie outside the integration box in scaled units"):
        TessellatedKernels(delta=(0.1, 0.2), out_of_box="error").bind(np.full((3, 2), 9.0))


@pytest.mark.parametrize("monomials", ["x", "xz"])
@pytest.mark.parametrize("n", [1, 2])
def test_pointwise_balance_divides_each_half_by_its_norm(monomials, n):
    kernels = TessellatedKernels(1, 0.3, monomials, balance="pointwise")
    powers = powers_of(kernels, n)
    side = kernels.count_params(n)
    points = np.random.default_rng(n).random((4, n))

    def halves(x):
        """Norms of the indicator of {z ≥ x} and of its complement, from the definition."""
        zero = np.zeros((1, n), dtype=int)
        return 1.0 / np.sqrt(np.diag(kernel_block_matrix(x, x, 0.3, zero, zero)))

    root = np.random.default_rng(5).standard_normal((side, side))
    P = root @ root.T
    expected = np.empty((4, 4))
    for i, x in enumerate(points):
        for j, y in enumerate(points):
            left = np.repeat(halves(x), side // 2)
            right = np.repeat(halves(y), side // 2)
            block = kernel_block_matrix(x, y, 0.3, *powers)
            expected[i, j] = np.sum(P * (left[:, None] * block * right))
    np.testing.assert_allclose(kernels.cross(points, points, P), expected, rtol=1e-11)


@pytest.mark.parametrize("n", [2, 30, 400])
def test_pointwise_max_product_part_is_bounded_and_exact(n):
    """P on the first half alone, degree 0: k = prod sqrt((b - max) / (b - min)), any n."""
    X = np.random.default_rng(n).random((6, n))
    delta = 0.1 * n
    kernels = TessellatedKernels(0, delta, balance="pointwise")
    K = kernels.bind(X).gram(np.diag([1.0, 0.0]))
    room = 1.0 + delta - X
    ratio = np.minimum(room[:, None], room[None]) / np.maximum(room[:, None], room[None])
    np.testing.assert_allclose(K, np.sqrt(ratio.prod(axis=2)), rtol=1e-9)
    np.testing.assert_allclose(np.diag(K), 1.0, rtol=1e-12)


def test_pointwise_outside_the_box_stays_finite():
    X = np.random.default_rng(0).random((5, 3))
    kernels = TessellatedKernels(1, 0.2, balance="pointwise")
    K = kernels.cross([[9.0, 9.0, 9.0], [-9.0, -9.0, -9.0], [0.5, 0.5, 9.0]], X, np.eye(8))
    assert np.isfinite(K).all()


def test_unit_balance_gives_every_function_the_same_weight():
    X = np.random.default_rng(1).random((30, 3))
    bound = TessellatedKernels(1, 0.2, balance="unit").bind(X)
    for k in range(bound.n_params):
        unit = np.zeros((bound.n_params, bound.n_params))
        unit[k, k] = 1.0
        assert bound.diag(unit).mean() == pytest.approx(1.0, rel=1e-12)
    # What is learned is used on other rows with the factors of the training rows.
    other = np.random.default_rng(2).random((4, 3))
    K = bound.kernels.cross(other, X, np.eye(bound.n_params))
    assert (bound.cross(other, np.eye(bound.n_params)) == K).all()


def test_unit_balance_needs_rows():
    with pytest.raises(ValueError, match="bind or resolve first"):
        TessellatedKernels(balance="unit").cross([[0.5]], [[0.5]], np.eye(4))


def test_volume_normalisation_is_a_change_of_units():
    """Values at two margins differ by more than the volume; the mean over the box does not."""
    X = np.zeros((1, 40))
    kernels = TessellatedKernels(degree=0, delta=0.5)
    # P = all ones makes N(z, x) constant one: k = 1 for any number of features.
    assert kernels.bind(X).gram(np.ones((2, 2)))[0, 0] == pytest.approx(1.0, rel=1e-14)


@pytest.mark.parametrize("n", [30, 100])
def test_many_features_neither_overflow_nor_vanish(n):
    X = np.random.default_rng(0).random((20, n))
    for dtype in (np.float32, np.float64):
        bound = TessellatedKernels(delta=0.1).bind(X, dtype=dtype)
        K = bound.gram(np.eye(bound.n_params))
        assert np.isfinite(K).all()
        assert np.linalg.eigvalsh(K.astype(float))[0] > -1e-4
    w = np.random.default_rng(1).standard_normal(20)
    assert np.isfinite(bound.gradient(w)).all()


def test_points_far_outside_extrapolate_linearly():
    kernels = TessellatedKernels(degree=1, delta=0.2)
    X = np.random.default_rng(2).random((4, 3))
    root = np.random.default_rng(3).standard_normal((8, 8))
    far = np.array([[5.0, 5.0, 5.0], [10.0, 10.0, 10.0], [15.0, 15.0, 15.0]])
    K = kernels.cross(far, X, root @ root.T)
    np.testing.assert_allclose(K[2] - K[1], K[1] - K[0], rtol=1e-10)


def test_clip_keeps_the_kernel_constant_outside():
    kernels = TessellatedKernels(degree=1, delta=0.2, out_of_box="clip")
    X = np.random.default_rng(2).random((4, 3))
    P = np.eye(8)
    K = kernels.cross([[1.2, 1.2, 1.2], [9.0, 9.0, 9.0]], X, P)
    assert (K[0] == K[1]).all()
    inside = TessellatedKernels(degree=1, delta=0.2).cross(X, X, P)
    assert (kernels.cross(X, X, P) == inside).all()


def test_error_names_the_rows_outside():
    kernels = TessellatedKernels(out_of_box="error")
    with pytest.raises(ValueError, match=r"2 of 4 rows lie outside .* first at row 1"):
        kernels.cross([[0.5], [2.0], [0.1], [-3.0]], [[0.5]], np.eye(4))


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"delta": 0.0}, "delta=0.0 must be a positive"),
        ({"delta": np.nan}, "delta=nan must be a positive"),
        ({"degree": -1}, "degree=-1 must be a whole"),
        ({"degree": 1.5}, "degree=1.5 must be a whole"),
        ({"monomials": "z"}, "monomials='z' is unknown"),
        ({"balance": "fair"}, "balance='fair' is unknown"),
        ({"balance": [1.0, 2.0]}, "balance must hold 6 positive"),
        ({"balance": [[1.0], [1.0, 2.0]]}, "balance must hold 6 positive"),
        ({"balance": [1.0, 2.0, 3.0, 4.0, 5.0, 0.0]}, "balance must hold 6 positive"),
        ({"out_of_box": "ignore"}, "out_of_box='ignore' is unknown"),
        ({"floor": 1.01}, r"floor=1\.01 must be a number between 0 and 1"),
        ({"floor": -0.01}, r"floor=-0\.01 must be a number between 0 and 1"),
    ],
)
def test_bad_parameters(params, message):
    with pytest.raises(ValueError, match=message):
        TessellatedKernels(**params).bind([[0.1, 0.2], [0.3, 0.4]])


def test_rows_of_another_width_are_named():
    with pytest.raises(ValueError, match="X has 2 features and Y has 3"):
        TessellatedKernels(0).cross(np.ones((1, 2)), np.ones((1, 3)), np.eye(2))


@pytest.mark.parametrize(
    ("kernels", "shape", "most"),
    [
        (TessellatedKernels(0), (300, 401), 1.2),  # the copies of the rows
        (TessellatedKernels(1, monomials="xz"), (2, 37), 3.0),  # exponents and their sums
    ],
    ids=["rows", "exponents"],
)
def test_memory_estimate_is_near_what_is_held(kernels, shape, most):
    """What is held, with Python objects; no other test has prepared so many features."""
    tracemalloc.start()
    try:
        bound = kernels.bind(np.random.default_rng(0).random(shape))
        bound.gradient(np.resize([1.0, -1.0], shape[0]))
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    estimate = kernels.memory_estimate(*shape, 8)
    assert held / 1.05 <= estimate <= most * held


@pytest.mark.parametrize("monomials", ["x", "xz"])
def test_tiles_do_not_show(monomials):
    """More rows than a tile of 1024 holds, with powers of z: the same as pair by pair."""
    rng = np.random.default_rng(4)
    X = rng.random((1100, 2))
    kernels = TessellatedKernels(1, 0.4, monomials)
    bound = kernels.bind(X)
    side = bound.n_params
    P = (lambda root: root @ root.T)(rng.standard_normal((side, side)))
    K = bound.gram(P)
    assert (K == K.T).all()
    pick = np.concatenate([rng.choice(1100, 40, replace=False), [1022, 1023, 1024, 1099]])
    small = kernels.bind(X[pick]).gram(P)
    np.testing.assert_allclose(K[np.ix_(pick, pick)], small, atol=1e-13 * np.abs(K).max())
    np.testing.assert_allclose(kernels.cross(X[:5], X, P), K[:5], atol=1e-12 * np.abs(K).max())
    w = rng.standard_normal(1100)
    assert np.sum(bound.gradient(w) * P) == pytest.approx(w @ K @ w, rel=1e-11)
    expected = K @ w
    close = {"rtol": 0, "atol": 1e-12 * np.abs(expected).max()}
    np.testing.assert_allclose(kernels.scores(X, X, P, w), expected, **close)
    np.testing.assert_allclose(bound.moments(w).scores(P), expected, **close)


@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 17, 2), (65, 33, 5), (4, 100, 9)])
@pytest.mark.parametrize("monomials", ["x", "xz"])
def test_max_products_of_any_shape(shape, monomials):
    """The first basis function alone gives k(x, y) = prod (b - max) / (b - a), whatever is padded.

    Powers of x go through the compiled kernel matrix, powers of x and z through tiles.
    """
    rows, cols, n = shape
    rng = np.random.default_rng(rows)
    X, Y = rng.random((rows, n)), rng.random((cols, n))
    kernels = TessellatedKernels(1, 0.5, monomials)
    P = np.zeros((kernels.count_params(n),) * 2)
    P[0, 0] = 1.0
    expected = ((1.5 - np.maximum(X[:, None], Y)) / 2.0).prod(axis=2)
    for n_jobs in (1, 2, 3):
        got = kernels.cross(X, Y, P, n_jobs=n_jobs)
        np.testing.assert_allclose(got, expected, rtol=1e-13)


# ---- threads: they start from about a millisecond of work

FEW, MANY = 250, 1500


@needs_task_list
def test_threads_start_where_they_are_worth_it():
    """Guards the test below: with few rows it would compare one thread with one thread."""
    assert threads_used("kernels.work", MANY, *work.WORKS) == [2, 3, 4, 5, 6]
    assert threads_used("kernels.work", FEW, *work.WORKS) == [1, 1, 1, 1, 1]


@pytest.mark.parametrize("name", work.WORKS)
def test_results_do_not_depend_on_threads(name):
    compute = getattr(work, name)
    one = compute(MANY, 1)
    close = {"rtol": 0, "atol": 1e-13 * np.abs(one).max()}
    for n_jobs in (2, 3, 8):
        np.testing.assert_allclose(compute(MANY, n_jobs), one, **close)


def test_work_of_several_threads_is_right():
    """Rows on three threads against the same rows by themselves, which take one."""
    X, w = work.rows(MANY)
    K, D = work.gram(MANY, 3), work.gradient(MANY, 3)
    for pick in (slice(0, 40), slice(733, 780), slice(MANY - 30, MANY)):
        expected = work.KERNELS.cross(X[pick], X, work.P, n_jobs=1)
        np.testing.assert_allclose(K[pick], expected, atol=1e-13 * np.abs(K).max())
    assert np.sum(D * work.P) == pytest.approx(w @ K @ w, rel=1e-11)
    close = {"rtol": 0, "atol": 1e-11 * np.abs(K @ w).max()}
    np.testing.assert_allclose(work.scores(MANY, 3)[::-1], K @ w, **close)
    np.testing.assert_allclose(work.product(MANY, 3), K @ w, **close)


# ---- claims of the paper, spot checks


@pytest.mark.parametrize("degree", [0, 1])
def test_universality_positive_definite_for_positive_p(degree):
    """For P ≻ 0 and distinct points the Gram matrix is positive definite."""
    X = np.random.default_rng(6).random((40, 2))
    bound = TessellatedKernels(degree, 0.5).bind(X)
    eigenvalues = np.linalg.eigvalsh(bound.gram(np.eye(bound.n_params)))
    assert eigenvalues[0] > 1e-6


def test_universality_needs_positive_p():
    """The kernel of a singular P can be constant (degree 0, P = ones)."""
    bound = TessellatedKernels(0, 0.5).bind(np.random.default_rng(7).random((10, 2)))
    K = bound.gram(np.ones((2, 2)))
    np.testing.assert_allclose(K, K[0, 0], rtol=1e-13)


def test_density_any_psd_matrix_is_reproduced():
    """A random kernel matrix on a few points is in the set once the degree is high enough."""
    import cvxpy as cp

    rng = np.random.default_rng(8)
    X = np.array([[0.1], [0.35], [0.6], [0.9]])
    target = (lambda root: root @ root.T)(rng.standard_normal((4, 4)))
    distances = []
    for degree in (0, 1, 3):
        bound = TessellatedKernels(degree, 0.2).bind(X)
        n = bound.n_params
        maps = np.array([bound.gram(_unit(n, i, j)).ravel() for i in range(n) for j in range(n)])
        P = cp.Variable((n, n), PSD=True)
        K = maps.T @ cp.reshape(P, (n * n,), order="C")
        problem = cp.Problem(cp.Minimize(cp.norm(K - target.ravel())))
        problem.solve(solver=cp.CLARABEL)
        distances.append(problem.value / np.linalg.norm(target))
    assert distances[0] > 0.1
    assert distances[2] < 1e-4


def _unit(n, i, j):
    unit = np.zeros((n, n))
    unit[i, j] += 0.5
    unit[j, i] += 0.5
    return unit


@pytest.mark.parametrize(("m", "own"), [(50, 50), (300, 128)])
def test_the_form_for_a_machine_is_centred_by_the_means_of_some_rows(m, own):
    """HKHᵀ with H = 1 - 1aᵀ: the same machine for any weights a that add up to one."""
    rng = np.random.default_rng(8)
    bound = TessellatedKernels(1, 0.3).bind(rng.random((m, 3)))
    U = rng.standard_normal((bound.n_params, 2))
    a = np.zeros(m)
    a[np.arange(own) * m // own] = 1.0 / own
    H = np.eye(m) - a
    K, centred = bound.gram(U @ U.T), np.empty((m, m))
    bound.product_form((U, U), centred=True).matrix(centred, 1)
    np.testing.assert_allclose(centred, H @ K @ H.T, atol=1e-11 * np.abs(K).max())


def test_rows_without_weight_are_passed_over():
    """All rows of the first tile have weight zero, and later tiles count."""
    X = np.random.default_rng(0).random((1100, 2))
    kernels = TessellatedKernels(1, 0.3, "xz").bind(X)
    w = np.where(np.arange(1100) >= 1060, np.sin(np.arange(1100.0)), 0.0)
    kept = np.flatnonzero(w)
    expected = kernels.subset(kept).gradient(w[kept])
    np.testing.assert_allclose(kernels.gradient(w), expected, rtol=1e-9, atol=1e-12)
