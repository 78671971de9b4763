"""Exact leave-one-out of squared-loss machines, against machines fitted without each row."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from tessella.leave_one_out import RidgePath, last_left_out, ridge_leave_one_out
from tessella.leave_one_out._tridiagonal import _largest

RNG = np.random.default_rng(0)
X = RNG.random((30, 3))
Y = np.column_stack([np.sin(5 * X[:, 0]) + X[:, 1], RNG.normal(size=30)])
K = np.exp(-2.0 * cdist(X, X, "sqeuclidean"))
WEIGHT = RNG.integers(1, 4, 30).astype(float)
CS = [1e-5, 0.1, 1.0, 100.0]


def machine(K, Y, C, weight):
    """Coefficients and intercepts from the optimality conditions, as one linear system."""
    m = len(K)
    system = np.ones((m + 1, m + 1))
    system[:m, :m] = K + np.diag(1.0 / (C * weight))
    system[m, m] = 0.0
    solution = np.linalg.solve(system, np.vstack([Y, np.zeros((1, Y.shape[1]))]))
    return solution[:m], solution[m]


def residuals_of(K, Y, C, weight, rows, others):
    """Residuals of some rows in the machine of others."""
    coef, intercept = machine(K[np.ix_(others, others)], Y[others], C, weight[others])
    return Y[rows] - K[np.ix_(rows, others)] @ coef - intercept


def brute_force(K, Y, C, weight):
    """Residual of each row after one copy of it, or the row, has been taken away."""
    found = np.empty_like(Y)
    for i in range(len(K)):
        rest = weight.copy()
        rest[i] = max(0.0, rest[i] - 1.0)
        found[[i]] = residuals_of(K, Y, C, rest, [i], np.flatnonzero(rest))
    return found


@pytest.mark.parametrize("C", [*CS, 1e6])
@pytest.mark.parametrize("count", [1, 12, 30])
@pytest.mark.parametrize("weight", [np.ones(30), WEIGHT * 0.7], ids=["1", "any"])
def test_the_last_rows_are_left_out_alone(C, count, weight):
    left_out = 1.0 / np.maximum(weight, 1.0)
    found = last_left_out(K.copy(), Y, C, weight, left_out, count)
    expected = brute_force(K, Y, C, weight)[-count:]
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-8)


def by_path(K, Y, C, weight=None, **others):
    return RidgePath(K, weight, **others).fit(Y, C)


@pytest.mark.parametrize("solve", [by_path, ridge_leave_one_out])
@pytest.mark.parametrize("C", CS)
@pytest.mark.parametrize("weight", [np.ones(30), WEIGHT, WEIGHT * 0.7], ids=["1", "whole", "any"])
def test_machine_and_residuals_are_those_of_brute_force(solve, C, weight):
    solution = solve(K, Y, C, weight)
    coef, intercept = machine(K, Y, C, weight)
    np.testing.assert_allclose(solution.coef, coef, atol=1e-9 * abs(coef).max())
    np.testing.assert_allclose(solution.intercept, intercept, atol=1e-10)
    np.testing.assert_allclose(
        solution.loo_residuals, brute_force(K, Y, C, weight), rtol=1e-8, atol=1e-10
    )


@pytest.mark.parametrize("solve", [by_path, ridge_leave_one_out])
def test_a_weight_of_k_equals_k_copies(solve):
    copies = np.repeat(np.arange(30), WEIGHT.astype(int))
    merged = solve(K, Y, 10.0, WEIGHT)
    repeated = solve(K[np.ix_(copies, copies)], Y[copies], 10.0)
    np.testing.assert_allclose(merged.loo_residuals[copies], repeated.loo_residuals, atol=1e-9)
    np.testing.assert_allclose(merged.coef[copies] / WEIGHT[copies, None], repeated.coef, atol=1e-9)


@pytest.mark.parametrize("solve", [by_path, ridge_leave_one_out])
def test_left_out_is_the_fraction_of_the_weight_that_goes(solve):
    fraction = np.linspace(0.2, 1.0, 30)
    found = solve(K, Y, 5.0, WEIGHT, left_out=fraction).loo_residuals
    for i in (0, 13, 29):
        rest = WEIGHT.copy()
        rest[i] *= 1.0 - fraction[i]
        expected = residuals_of(K, Y, 5.0, rest, [i], np.flatnonzero(rest))
        np.testing.assert_allclose(found[[i]], expected, atol=1e-10)


@pytest.mark.parametrize("C", CS)
def test_groups_are_left_out_together(C):
    groups = np.array(["a", "b", "c", "d", "e"])[RNG.integers(0, 5, 30)]
    groups[7] = "alone"
    found = RidgePath(K, WEIGHT, groups).fit(Y, C).loo_residuals
    for label in np.unique(groups):
        rows, others = np.flatnonzero(groups == label), np.flatnonzero(groups != label)
        expected = residuals_of(K, Y, C, WEIGHT, rows, others)
        np.testing.assert_allclose(found[rows], expected, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("groups", [None, np.arange(30) // 4])
def test_many_values_of_C_at_once(groups):
    path = RidgePath(K, WEIGHT, groups)
    many = path.loo_residuals(Y, CS)
    each = np.array([path.fit(Y, C).loo_residuals for C in CS])
    np.testing.assert_allclose(many, each, rtol=1e-12, atol=1e-13)
    expected = [np.average(own**2, axis=0, weights=WEIGHT).mean() for own in each]
    np.testing.assert_allclose(path.loo_errors(Y, CS), expected, rtol=1e-12)


def test_eigenvectors_and_a_tridiagonal_matrix_agree():
    """A huge value of C takes eigenvectors, which are then used for all others."""
    path = RidgePath(K, WEIGHT)
    before, fitted = path.loo_residuals(Y, CS), path.fit(Y, 10.0)
    path.loo_residuals(Y, [1e15])
    np.testing.assert_allclose(path.loo_residuals(Y, CS), before, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(path.fit(Y, 10.0).coef, fitted.coef, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("C", [1e3, 1e6, 1e7])
def test_large_values_of_C(C):
    laplace = np.exp(-3.0 * cdist(X, X, "cityblock"))
    found = RidgePath(laplace, WEIGHT).loo_residuals(Y, [C])[0]
    np.testing.assert_allclose(found, brute_force(laplace, Y, C, WEIGHT), rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("C", CS)
def test_a_kernel_matrix_near_the_identity(C):
    """Wide tables have such matrices: almost all of their eigenvalues are equal."""
    wide = np.random.default_rng(1).normal(size=(30, 400))
    near = np.exp(-cdist(wide, wide, "sqeuclidean") / 20.0)
    path = RidgePath(near, WEIGHT)
    found = path.loo_residuals(Y, [C])[0]
    np.testing.assert_allclose(found, brute_force(near, Y, C, WEIGHT), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize(
    ("diagonal", "beside"),
    [
        ([2.0], [0.0]),
        ([1.0, 1.0, 1.0, 0.0], [0.0, 1e-17, 0.0]),
        ([3.0, -1.0, 2.0, 0.5], [1.0, -2.0, 0.3]),
        ([-5.0, -4.0, -6.0], [0.1, 0.2]),
        ([0.0, 0.0, 0.0], [0.0, 0.0]),
    ],
)
def test_largest_eigenvalue_of_a_tridiagonal_matrix(diagonal, beside):
    own = beside[: len(diagonal) - 1]
    T = np.diag(diagonal) + np.diag(own, 1) + np.diag(own, -1)
    found = _largest(np.array(diagonal), np.array(beside))
    assert found == pytest.approx(np.linalg.eigvalsh(T)[-1], rel=1e-14, abs=1e-300)


def test_one_output_may_be_a_vector():
    path = RidgePath(K)
    one, both = path.fit(Y[:, 0], 3.0), path.fit(Y, 3.0)
    assert one.coef.shape == one.loo_residuals.shape == (30, 1)
    np.testing.assert_allclose(one.coef[:, 0], both.coef[:, 0], atol=1e-12)
    np.testing.assert_allclose(one.intercept, both.intercept[:1], atol=1e-12)


def test_best_is_at_least_as_good_as_a_fine_grid():
    path = RidgePath(K, WEIGHT)
    target = Y[:, 0] + 0.5 * Y[:, 1]
    coarse = np.geomspace(1e-3, 1e5, 5)
    best = path.best(target, coarse)
    fine = path.loo_errors(target, np.geomspace(1e-3, 1e5, 400))
    assert path.loo_errors(target, coarse).min() > 1.01 * fine.min()
    assert best.loo_error <= fine.min() * (1 + 1e-3)
    np.testing.assert_allclose(path.loo_errors(target, [best.C]), best.loo_error, rtol=1e-10)


def test_best_of_one_value_is_that_value():
    path = RidgePath(K)
    assert path.best(Y, [2.0, 2.0]) == (2.0, pytest.approx(path.loo_errors(Y, [2.0])[0]))


def test_best_stays_within_the_given_values():
    assert RidgePath(K).best(Y[:, 1] * 0 + np.arange(30), [1e-4, 1e-3]).C <= 1e-3


@pytest.mark.parametrize("solve", [by_path, ridge_leave_one_out])
@pytest.mark.parametrize("C", [1e-30, 1.0, 1e30])
def test_without_a_kernel_the_mean_of_the_others_is_predicted(solve, C):
    found = solve(np.zeros((30, 30)), Y, C)
    np.testing.assert_allclose(found.intercept, Y.mean(axis=0))
    np.testing.assert_allclose(found.loo_residuals, (Y - Y.mean(axis=0)) * 30 / 29, rtol=1e-10)


@pytest.mark.parametrize("solve", [by_path, ridge_leave_one_out])
@pytest.mark.parametrize("C", [1e10, 1e13, 1e40])
def test_a_linear_kernel_and_a_huge_C_give_least_squares(solve, C):
    design = np.column_stack([np.ones(30), X])
    hat = design @ np.linalg.pinv(design)
    expected = (Y - hat @ Y) / (1.0 - np.diag(hat))[:, None]
    np.testing.assert_allclose(solve(X @ X.T, Y, C).loo_residuals, expected, rtol=1e-7)


@pytest.mark.parametrize("solve", [by_path, ridge_leave_one_out])
@pytest.mark.parametrize("C", [1e12, 1e40])
def test_a_huge_C_gives_the_interpolation_of_the_others(solve, C):
    laplace = np.exp(-3.0 * cdist(X, X, "cityblock"))
    expected = brute_force(laplace, Y, np.inf, np.ones(30))
    np.testing.assert_allclose(solve(laplace, Y, C).loo_residuals, expected, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("solve", [by_path, ridge_leave_one_out])
@pytest.mark.parametrize("C", [1.0, 1e6])
def test_a_constant_added_to_the_kernel_changes_nothing(solve, C):
    plain, shifted = solve(K, Y, C, WEIGHT), solve(K + 1e6, Y, C, WEIGHT)
    np.testing.assert_allclose(shifted.loo_residuals, plain.loo_residuals, rtol=1e-3)


def test_equal_rows_predict_each_other():
    twice = np.repeat(np.arange(30), 2)
    found = RidgePath(K[np.ix_(twice, twice)]).fit(Y[twice], 1e20).loo_residuals
    assert abs(found).max() < 1e-8


@pytest.mark.parametrize("solve", [by_path, ridge_leave_one_out])
@pytest.mark.parametrize("order", ["C", "F"])
def test_the_kernel_matrix_is_kept_unless_it_may_be_overwritten(solve, order):
    given = np.array(K, order=order)
    kept = solve(given, Y, 1.0, WEIGHT)
    np.testing.assert_array_equal(given, K)
    overwritten = solve(given, Y, 1.0, WEIGHT, overwrite=True)
    assert (given != K).any()
    np.testing.assert_array_equal(overwritten.loo_residuals, kept.loo_residuals)


def test_part_of_a_larger_matrix():
    larger = np.zeros((31, 31))
    larger[1:, 1:] = K
    found = by_path(larger[1:, 1:], Y, 1.0)
    np.testing.assert_array_equal(larger[1:, 1:], K)
    np.testing.assert_allclose(found.coef, by_path(K, Y, 1.0).coef, atol=1e-12)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"K": K[:5]}, "square"),
        ({"K": K.astype(np.float32)}, "float64"),
        ({"K": K * np.nan}, "NaN"),
        ({"K": np.ones((1, 1)), "Y": [1.0]}, "two rows"),
        ({"K": -K}, "positive semidefinite"),
        ({"Y": Y[:5]}, r"expected \(30,\) or \(30, k\)"),
        ({"Y": Y * np.inf}, "Y contains"),
        ({"C": 0.0}, "positive"),
        ({"C": np.inf}, "positive"),
        ({"sample_weight": np.arange(30.0)}, "leave out the rows of weight 0"),
        ({"sample_weight": np.ones(5)}, "sample_weight has shape"),
        ({"left_out": np.zeros(30)}, "above 0"),
        ({"left_out": np.ones(5)}, "left_out has shape"),
    ],
)
def test_bad_input(change, message):
    given = {"K": K, "Y": Y, "C": 1.0, "sample_weight": None, "left_out": None} | change
    with pytest.raises(ValueError, match=message):
        ridge_leave_one_out(**given)
    Y_, C = given.pop("Y"), given.pop("C")
    with pytest.raises(ValueError, match=message):
        RidgePath(**given).fit(Y_, C)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"groups": np.zeros(30)}, "two groups"),
        ({"groups": np.zeros(5)}, "groups has shape"),
        ({"groups": np.arange(30), "left_out": np.ones(30)}, "left_out must be None"),
    ],
)
def test_bad_groups(given, message):
    with pytest.raises(ValueError, match=message):
        RidgePath(K, **given)


def test_an_empty_grid_is_refused():
    with pytest.raises(ValueError, match="an entry"):
        RidgePath(K).loo_errors(Y, [])


@pytest.mark.parametrize("m", [2, 30, 200])
def test_a_constant_kernel_leaves_the_mean_of_the_other_rows(m):
    """What remains of the matrix without its constant part is rounding, and no reason to refuse."""
    rng = np.random.default_rng(m)
    y = rng.normal(size=(m, 2))
    for weight in (np.ones(m), rng.uniform(0.1, 5.0, m)):
        found = RidgePath(np.ones((m, m)), weight, left_out=np.ones(m)).fit(y, 1e5).loo_residuals
        for i in range(m):
            others = np.delete(np.arange(m), i)
            mean = np.average(y[others], axis=0, weights=weight[others])
            np.testing.assert_allclose(found[i], y[i] - mean, rtol=1e-6, atol=1e-6)
