from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

from tessella.problems import Spectrahedron


def random_symmetric(side, rng, scale=1.0):
    A = scale * rng.standard_normal((side, side))
    return A + A.T


def random_feasible(side, rng):
    root = rng.standard_normal((side, rng.integers(1, side + 1)))
    P = root @ root.T
    return P * (side / np.trace(P))


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("side", [1, 2, 7])
def test_projection_satisfies_its_variational_inequality(side, scale):
    """<A - P, Q - P> <= 0 for every feasible Q, and for no other feasible P."""
    rng = np.random.default_rng(side)
    domain = Spectrahedron(side)
    for _ in range(10):
        A = random_symmetric(side, rng, scale)
        P = domain.project(A)
        assert domain.contains(P, rtol=1e-12)
        assert (P.T == P).all()
        slack = 1e-12 * (1 + np.abs(A).max()) * side**2
        # The vertex most aligned with A - P is the worst of all feasible Q.
        worst = side * np.linalg.eigvalsh(A - P)[-1] - np.sum((A - P) * P)
        assert worst <= slack
        for _ in range(20):
            assert np.sum((A - P) * (random_feasible(side, rng) - P)) <= slack


def test_feasible_matrices_are_their_own_projections():
    rng = np.random.default_rng(0)
    domain = Spectrahedron(5)
    for _ in range(10):
        P = random_feasible(5, rng)
        np.testing.assert_allclose(domain.project(P), P, atol=1e-13)
        Q = domain.project(random_symmetric(5, rng, 10.0))
        np.testing.assert_allclose(domain.project(Q), Q, atol=1e-13)


def test_projection_agrees_with_a_cone_program():
    A = random_symmetric(4, np.random.default_rng(3), 2.0)
    P = cp.Variable((4, 4), PSD=True)
    program = cp.Problem(cp.Minimize(cp.sum_squares(P - A)), [cp.trace(P) == 4])
    program.solve(solver=cp.CLARABEL, tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12)
    np.testing.assert_allclose(Spectrahedron(4).project(A), P.value, atol=1e-5)


def test_ties_and_multiples_of_the_identity():
    domain = Spectrahedron(4)
    for shift in (-100.0, 0.0, 1.0, 1e6):
        np.testing.assert_allclose(domain.project(shift * np.eye(4)), np.eye(4), rtol=1e-9)
    tied = domain.project(np.diag([9.0, 9.0, 0.0, 0.0]))
    np.testing.assert_allclose(tied, np.diag([2.0, 2.0, 0.0, 0.0]), atol=1e-13)
    # The second value sits exactly on the border between in and out.
    edge = domain.project(np.diag([5.0, 1.0, -3.0, -3.0]))
    np.testing.assert_allclose(edge, np.diag([4.0, 0.0, 0.0, 0.0]), atol=1e-13)


def test_antisymmetric_part_is_ignored_and_shapes_are_checked():
    rng = np.random.default_rng(5)
    A, B = random_symmetric(3, rng), rng.standard_normal((3, 3))
    domain = Spectrahedron(3)
    np.testing.assert_allclose(domain.project(A + B - B.T), domain.project(A), atol=1e-13)
    with pytest.raises(ValueError, match=r"A has shape \(2, 2\), expected \(3, 3\)"):
        domain.project(np.eye(2))
