"""What every cone must satisfy, against slow references."""

from __future__ import annotations

import cvxpy
import numpy as np
import pytest
from scipy.optimize import minimize

from tessella.cones import PSD, Blocks, Nonnegative, ProductCone, inner, symmetric_factors

CONES = {
    "matrices": PSD(4),
    "weights": Nonnegative(5),
    "a face of matrices": PSD(3, 7.0),
    "product": ProductCone([PSD(3), Nonnegative(4), PSD(2)]),
    "product of weights": ProductCone([Nonnegative(2), Nonnegative(3)]),
}


@pytest.fixture(params=CONES, ids=str)
def cone(request):
    return CONES[request.param]


def random_point(cone, rng):
    """A point of the space of the cone, in it or not."""
    return cone.point(rng.standard_normal(cone.dimension))


def random_interior(cone, rng):
    """A point well inside the cone, of any trace."""
    if isinstance(cone, ProductCone):
        return Blocks(random_interior(part, rng) for part in cone.cones)
    if isinstance(cone, PSD):
        root = rng.standard_normal((cone.side, cone.side))
        return root @ root.T + 0.1 * np.eye(cone.side)
    return rng.random(cone.count) + 0.1


def lowest(cone, point):
    """Smallest eigenvalue or entry over all blocks."""
    if isinstance(cone, ProductCone):
        return min(lowest(part, own) for part, own in zip(cone.cones, point, strict=True))
    return np.linalg.eigvalsh(point)[0] if isinstance(cone, PSD) else point.min()


def cvxpy_blocks(cone):
    """Variables of the cone and its trace, written out for cvxpy."""
    parts = cone.cones if isinstance(cone, ProductCone) else (cone,)
    variables, constraints, traces = [], [], []
    for part in parts:
        if isinstance(part, PSD):
            X = cvxpy.Variable((part.side, part.side), symmetric=True)
            constraints.append(X >> 0)
            traces.append(cvxpy.trace(X) / part.total)
        else:
            X = cvxpy.Variable(part.count)
            constraints.append(X >= 0)
            traces.append(cvxpy.sum(X))
        variables.append(X)
    return variables, [*constraints, sum(traces) == 1]


def blocks_of(cone, point):
    return list(point) if isinstance(cone, ProductCone) else [point]


def test_vectors_keep_inner_products(cone):
    rng = np.random.default_rng(0)
    a, b = random_point(cone, rng), random_point(cone, rng)
    assert cone.vector(a) @ cone.vector(b) == pytest.approx(inner(a, b), rel=1e-12)
    np.testing.assert_allclose(cone.vector(cone.point(cone.vector(a))), cone.vector(a))
    assert len(cone.vector(a)) == cone.dimension


def test_centre_is_feasible_and_maximises_the_barrier(cone):
    centre = cone.centre
    assert cone.contains(centre)

    def logs(point):
        blocks = zip(cone.cones, point, strict=True) if isinstance(cone, ProductCone) else None
        if blocks is None:
            blocks = [(cone, point)]
        return sum(
            np.linalg.slogdet(own)[1] if isinstance(part, PSD) else np.log(own).sum()
            for part, own in blocks
        )

    rng = np.random.default_rng(1)
    for _ in range(10):
        other = cone.normalised(random_interior(cone, rng))
        assert logs(0.99 * centre + 0.01 * other) <= logs(centre) + 1e-12


def test_support_is_the_largest_inner_product(cone):
    rng = np.random.default_rng(2)
    D = random_interior(cone, rng)
    spectrum = cone.spectrum(D)
    support, vertex = cone.support(spectrum), cone.vertex(spectrum)
    assert cone.contains(vertex)
    assert inner(D, vertex) == pytest.approx(support, rel=1e-12)
    variables, constraints = cvxpy_blocks(cone)
    pairs = zip(variables, blocks_of(cone, D), strict=True)
    value = cvxpy.Problem(
        cvxpy.Maximize(sum(cvxpy.sum(cvxpy.multiply(own, X)) for X, own in pairs)), constraints
    ).solve()
    assert support == pytest.approx(value, rel=1e-5)


def test_projection_is_the_nearest_feasible_point(cone):
    A = random_point(cone, np.random.default_rng(3))
    P = cone.project(A)
    assert cone.contains(P)
    variables, constraints = cvxpy_blocks(cone)
    pairs = zip(variables, blocks_of(cone, A), strict=True)
    distance = sum(cvxpy.sum_squares(X - own) for X, own in pairs)
    value = cvxpy.Problem(cvxpy.Minimize(distance), constraints).solve()
    assert inner(P - A, P - A) == pytest.approx(value, rel=1e-5)
    # Obtuse angles with every feasible direction: exact, where the program is not.
    rng = np.random.default_rng(4)
    for _ in range(20):
        other = cone.normalised(random_interior(cone, rng))
        assert inner(A - P, other - P) <= 1e-9 * np.sqrt(inner(A, A))


def test_scaling_makes_both_points_the_same(cone):
    rng = np.random.default_rng(5)
    M, S = random_interior(cone, rng), random_interior(cone, rng)
    scaling = cone.scaling(cone.factor(M), S)
    middle = scaling.to_scaled(S)
    close = 1e-10 * (1.0 + np.abs(cone.vector(M)).max())
    np.testing.assert_allclose(cone.vector(scaling.from_scaled(middle)), cone.vector(M), atol=close)
    # <M, S> is kept: the two maps are adjoint to each other's inverse.
    dM, dS = random_point(cone, rng), random_point(cone, rng)
    assert inner(scaling.from_scaled(dM), dS) == pytest.approx(
        inner(dM, scaling.to_scaled(dS)), rel=1e-10
    )
    zero = 0.0 * dM
    assert scaling.complementarity(zero, zero, 1.0) == pytest.approx(inner(M, S), rel=1e-10)


def test_room_is_where_the_boundary_is(cone):
    rng = np.random.default_rng(6)
    M, S = random_interior(cone, rng), random_interior(cone, rng)
    scaling = cone.scaling(cone.factor(M), S)
    for _ in range(5):
        change = random_point(cone, rng)
        room = scaling.room(change)
        step = scaling.from_scaled(change)
        if not np.isfinite(room):
            assert lowest(cone, step) >= -1e-9
            continue
        assert lowest(cone, M + (0.999 * room) * step) > 0
        assert lowest(cone, M + (1.001 * room) * step) < 0


def test_towards_solves_the_linearised_complementarity(cone):
    """Of dX + dZ = towards(μ), the products of M + dM and S + dS are μ up to second order."""
    rng = np.random.default_rng(7)
    M, S = random_interior(cone, rng), random_interior(cone, rng)
    scaling = cone.scaling(cone.factor(M), S)
    target = scaling.towards(0.3)
    # <Λ, towards(μ)> = μ degree - <Λ, Λ>, whatever the split between dX and dZ.
    assert inner(scaling.to_scaled(S), target) == pytest.approx(
        0.3 * cone.degree - inner(M, S), rel=1e-9
    )
    dX = random_point(cone, rng)
    dZ = scaling.towards(0.0) - dX
    corrected = scaling.towards(0.3, dX, dZ)
    # The correction takes the second-order error of the predictor away: <Λ, error> = <dX, dZ>.
    assert inner(scaling.to_scaled(S), target - corrected) == pytest.approx(
        inner(dX, dZ), rel=1e-8, abs=1e-10
    )


def test_trimmed_is_feasible_and_costs_what_it_may(cone):
    rng = np.random.default_rng(8)
    P, D = cone.normalised(random_interior(cone, rng)), random_interior(cone, rng)
    np.testing.assert_allclose(cone.vector(cone.trimmed(P, D, 0.0)), cone.vector(P), atol=1e-12)
    for cost in (1e-3, 0.1, 10.0):
        reduced = cone.trimmed(P, D, cost)
        assert cone.contains(reduced)
        assert abs(inner(D, reduced) - inner(D, P)) <= 4 * cost + 1e-12
    shares = cone.shares(cone.trimmed(P, D, 1e9)).values
    assert np.count_nonzero(shares > 1e-12) == 1


def test_worst_vertex_is_a_part_of_the_point(cone):
    rng = np.random.default_rng(9)
    P, D = cone.normalised(random_interior(cone, rng)), random_interior(cone, rng)
    share, vertex = cone.worst_vertex(P, D, cone.support(cone.spectrum(D)))
    assert 0 < share <= 1
    assert cone.contains(vertex)
    assert lowest(cone, P - share * vertex) >= -1e-10


def test_faces_expand_and_compress_as_adjoints(cone):
    rng = np.random.default_rng(10)
    face = random_face(cone, rng)
    small = cone.face(face)
    M, D = random_interior(small, rng), random_point(cone, rng)
    P = cone.expand(face, M)
    assert inner(D, P) == pytest.approx(inner(cone.compress(face, D), M), rel=1e-10)
    assert cone.trace(P) == pytest.approx(small.trace(M), rel=1e-12)
    np.testing.assert_allclose(small.vector(cone.restrict(face, P)), small.vector(M), atol=1e-12)
    assert cone.contains(cone.expand(face, small.centre))


def random_face(cone, rng):
    if isinstance(cone, ProductCone):
        return tuple(random_face(part, rng) for part in cone.cones)
    if isinstance(cone, PSD):
        return np.linalg.qr(rng.standard_normal((cone.side, cone.side - 1)))[0]
    return np.sort(rng.permutation(cone.count)[: cone.count - 1])


def test_leading_faces_hold_the_point_and_what_is_promising():
    rng = np.random.default_rng(11)
    matrices = PSD(200)
    U = rng.standard_normal((200, 2))
    P = matrices.normalised(U @ U.T)
    D = random_interior(matrices, rng)
    spectrum, memory = matrices.spectrum(D), []
    found = matrices.leading_face(P, D, spectrum, 32, memory)
    V = found.face
    assert not found.complete
    np.testing.assert_allclose(V.T @ V, np.eye(V.shape[1]), atol=1e-12)
    np.testing.assert_allclose(V @ (V.T @ P @ V) @ V.T, P, atol=1e-9)
    top = spectrum.frame[:, -1]
    assert np.linalg.norm(V.T @ top) == pytest.approx(1.0, rel=1e-12)
    other = random_interior(matrices, rng)
    again = matrices.leading_face(P, other, matrices.spectrum(other), 32, memory).face
    assert np.linalg.norm(again.T @ top) == pytest.approx(1.0, rel=1e-12)  # it is remembered

    weights = Nonnegative(100)
    mu = np.zeros(100)
    mu[[3, 7]] = 0.5
    D = np.linspace(0.0, 1.0, 100)
    found = weights.leading_face(mu, D, weights.spectrum(D), 10, [])
    assert {3, 7, *range(93, 100)} == set(found.face.tolist())
    assert not found.complete
    assert weights.leading_face(mu, D, weights.spectrum(D), 200, []).complete


def test_narrow_faces_hold_what_matters_in_the_point_or_the_gradient():
    rng = np.random.default_rng(12)
    cone = PSD(40)
    Q = np.linalg.qr(rng.standard_normal((40, 40)))[0]
    shares, values = np.zeros(40), np.zeros(40)
    shares[:4], values[3:9], values[9:] = [8.0, 4.0, 2.0, 0.1], 5.0, 0.01
    P = cone.normalised((Q * shares) @ Q.T)
    D = (Q * values) @ Q.T
    spectrum, memory = cone.spectrum(D), []
    found = cone.narrow_face(P, D, spectrum, 0.05, 1, memory)
    assert found.face.shape == (40, 9)
    assert not found.complete
    np.testing.assert_allclose(found.face.T @ found.face, np.eye(9), atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(found.face.T @ Q[:, :9], axis=0), 1.0, rtol=1e-9)
    assert cone.narrow_face(P, D, spectrum, 0.05, 20, []).face.shape == (40, 20)
    assert cone.narrow_face(P, D, spectrum, 0.001, 1, []).complete
    other = (Q * values[::-1]) @ Q.T  # its own leading directions, and those of the first call
    again = cone.narrow_face(P, other, cone.spectrum(other), 0.05, 1, memory).face
    first = spectrum.frame[:, -2:]
    np.testing.assert_allclose(np.linalg.norm(again.T @ first, axis=0), 1.0, rtol=1e-4)


def test_balanced_responses_minimise_the_norms_of_the_functions(cone):
    """With functions G = D in the coordinates of the basis, the sum of squares is <P⁻¹, G>."""
    rng = np.random.default_rng(13)
    spectrum = cone.spectrum(random_interior(cone, rng))
    P = cone.balanced_response(spectrum)
    assert cone.contains(P)
    best = cone.forms(P, spectrum.frame) / cone.sizes
    value = float((spectrum.values / best).sum())
    for _ in range(20):
        shares = rng.dirichlet(np.ones(len(best)))
        assert float((spectrum.values / shares).sum()) >= value * (1 - 1e-12)
    assert value == pytest.approx(float(np.sqrt(spectrum.values).sum()) ** 2, rel=1e-10)


def test_directions_that_are_rounding_have_no_part_in_a_balanced_response():
    cone = PSD(3)
    P = cone.balanced_response(cone.spectrum(np.diag([4.0, 1.0, 1e-15])))
    np.testing.assert_allclose(P, np.diag([2.0, 1.0, 0.0]), atol=1e-14)
    P = cone.balanced_response(cone.spectrum(np.diag([4.0, 1.0, 9.0])), 2)
    np.testing.assert_allclose(P, np.diag([1.2, 0.0, 1.8]), atol=1e-14)


@pytest.mark.parametrize("rest", [0.0, 0.3, 1.0])
def test_a_graded_response_is_the_best_response_and_a_part_of_all_directions(cone, rest):
    spectrum = cone.spectrum(random_interior(cone, np.random.default_rng(14)))
    P = cone.graded_response(spectrum, rest)
    assert cone.contains(P)
    share = spectrum.values / spectrum.values.sum()
    share = rest * share + (1.0 - rest) * (share == share.max())
    np.testing.assert_allclose(cone.forms(P, spectrum.frame) / cone.sizes, share, atol=1e-10)


def test_directions_that_are_small_together_have_no_part_in_a_graded_response():
    cone = PSD(4)
    P = cone.graded_response(cone.spectrum(np.diag([1.0, 4e-5, 3e-5, 1.0 / 3.0])), 0.4)
    np.testing.assert_allclose(P, 4.0 * np.diag([0.9, 0.0, 0.0, 0.1]), atol=1e-12)


def test_small_cones_move_as_a_whole():
    for cone in (PSD(64), Nonnegative(32), ProductCone([PSD(3), Nonnegative(4)])):
        assert cone.moves_whole
        D = cone.identity
        assert cone.leading_face(cone.centre, D, cone.spectrum(D), 32, []).face is None
    assert not ProductCone([PSD(3), Nonnegative(40)]).moves_whole


def test_what_is_not_feasible_is_refused(cone):
    bad = 2.0 * cone.centre
    assert not cone.contains(bad)
    with pytest.raises(ValueError, match="must be"):
        cone.checked(bad)
    with pytest.raises(ValueError, match=r"shape|blocks"):
        cone.checked(np.ones((2, 9)))
    nan = cone.point(np.full(cone.dimension, np.nan))
    assert not cone.contains(nan)
    np.testing.assert_array_equal(cone.vector(cone.checked(None)), cone.vector(cone.centre))


def test_a_factor_stands_for_its_matrix():
    U = np.array([[1.0], [1.0], [2.0]]) / np.sqrt(2.0)
    np.testing.assert_allclose(PSD(3).checked(U), U @ U.T)


def test_projection_onto_a_weighted_simplex_against_a_solver():
    """Blocks with vertices of different size share one trace."""
    cone = ProductCone([PSD(2), Nonnegative(3)])
    A = Blocks([np.diag([2.0, -1.0]), np.array([0.9, 0.1, -0.3])])
    P = cone.project(A)

    def distance(x):
        return (x[0] - 2.0) ** 2 + (x[1] + 1.0) ** 2 + np.sum((x[2:] - A[1]) ** 2)

    trace = {"type": "eq", "fun": lambda x: (x[0] + x[1]) / 2.0 + x[2:].sum() - 1.0}
    best = minimize(distance, np.full(5, 0.2), bounds=[(0, None)] * 5, constraints=trace, tol=1e-14)
    np.testing.assert_allclose(np.diag(P[0]), best.x[:2], atol=1e-6)
    np.testing.assert_allclose(P[1], best.x[2:], atol=1e-6)


def test_the_product_of_no_cones_has_one_point():
    nothing = ProductCone(())
    point = Blocks(())
    assert nothing.degree == nothing.dimension == 0
    assert inner(point, point) == 0.0
    scaling = nothing.scaling(nothing.factor(point), point)
    assert scaling.room(point) == np.inf
    assert nothing.magnitude(point) == 0.0


def test_projection_of_values_beyond_the_digits_of_one():
    """The sum of one is less than the last digit of such values."""
    cone = Nonnegative(3)
    np.testing.assert_array_equal(cone.project(np.array([3e17, 1.0, -5e17])), [1.0, 0.0, 0.0])
    np.testing.assert_allclose(cone.project(np.array([4e17, 4e17, 0.0])), [0.5, 0.5, 0.0])
    np.testing.assert_allclose(PSD(2).project(np.diag([3e17, 1.0])), np.diag([2.0, 0.0]))
    for bad in (np.nan, np.inf):
        with pytest.raises(np.linalg.LinAlgError, match="not finite"):
            cone.project(np.array([bad, 1.0, 2.0]))


@pytest.mark.parametrize("size", [1e15, 1e20, 1e40, 1e150])
@pytest.mark.parametrize("cone", [PSD(3), ProductCone([PSD(3), Nonnegative(2)])], ids=repr)
def test_projections_of_huge_values_are_feasible(cone, size):
    rng = np.random.default_rng(11)
    for _ in range(50):
        assert cone.contains(cone.project(size * random_point(cone, rng)), rtol=1e-12)


@pytest.mark.parametrize("rank", [0, 1, 2, 3, 4, 5, 40])
@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e100])
def test_factors_of_large_matrices(rank, scale):
    """Those of a few columns come from pivots, all others from a decomposition."""
    rng = np.random.default_rng(rank)
    root = np.sqrt(scale) * rng.standard_normal((90, rank)) * 10.0 ** -np.arange(rank).clip(max=3)
    P = root @ root.T
    left, right = symmetric_factors(P)
    assert left.shape == right.shape == (90, rank)
    np.testing.assert_array_equal(left, right)
    np.testing.assert_allclose(left @ right.T, P, atol=1e-12 * np.abs(P).max(initial=0.0))


def test_factors_of_matrices_that_are_not_positive():
    rng = np.random.default_rng(0)
    root = rng.standard_normal((90, 2))
    P = np.outer(root[:, 0], root[:, 0]) - np.outer(root[:, 1], root[:, 1])
    left, right = symmetric_factors(P)
    assert left.shape == (90, 2)
    np.testing.assert_allclose(left @ right.T, P, atol=1e-12 * np.abs(P).max())
    off = np.zeros((90, 90))
    off[3, 5] = off[5, 3] = 1.0  # whose diagonal is zero
    left, right = symmetric_factors(off)
    np.testing.assert_allclose(left @ right.T, off, atol=1e-14)


def test_the_largest_side_is_that_of_a_matrix():
    both = ProductCone([PSD(7), Nonnegative(900), ProductCone([PSD(12), PSD(3)])])
    assert [cone.largest_side for cone in (PSD(7), Nonnegative(900), both)] == [7, 0, 12]
    assert ProductCone([]).largest_side == 0


def test_shares_of_a_product_are_those_of_its_blocks():
    cone = ProductCone([PSD(6), Nonnegative(2)])
    U = np.zeros((6, 2))
    U[0, 0] = np.sqrt(6.0 * 0.25)
    assert cone.contains(Blocks([U, np.array([0.5, 0.25])]))
    assert cone.contains(Blocks([U @ U.T, np.array([0.5, 0.25])]))
    assert not cone.contains(Blocks([U, np.array([0.8, -0.05])]))
    assert not cone.contains(Blocks([U, np.array([0.5, 0.5])]))
    assert not cone.contains(Blocks([-U @ U.T, np.array([0.75, 0.5])]))
    assert not cone.contains(Blocks([U]))
    assert cone.trace(Blocks([U, np.array([0.5, 0.25])])) == pytest.approx(1.0)
