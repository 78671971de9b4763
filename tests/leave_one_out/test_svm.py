"""Leave-one-out of support vector machines, against machines fitted without each row."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from tessella.leave_one_out import svm_leave_one_out
from tessella.svm import DualProblem, solve_dual

RNG = np.random.default_rng(0)
X = RNG.random((60, 3))
TARGET = np.sin(6 * X[:, 0]) + X[:, 1] + 0.3 * RNG.normal(size=60)
LABELS = np.where(np.median(TARGET) < TARGET, 1.0, -1.0)
WEIGHT = RNG.integers(1, 4, 60).astype(float)
KERNELS = {
    "gauss": np.exp(-2.0 * cdist(X, X, "sqeuclidean")),
    "laplace": np.exp(-cdist(X, X, "cityblock")),
    "linear": X @ X.T,
}


def hinge(C):
    return DualProblem.classification(LABELS, C)


def tube(C, epsilon=0.1):
    return DualProblem.regression(TARGET, C, epsilon)


def no_tube(C):
    return tube(C, 0.0)


def score_without(K, dual, row, factor):
    """Score of a row in the machine of all rows, whose losses are multiplied by a factor."""
    rest = np.flatnonzero(factor)
    solution = solve_dual(K[np.ix_(rest, rest)], dual.restrict(rest, factor[rest]), tol=1e-11)
    return K[row, rest] @ solution.w + solution.intercept


def brute_force(K, dual, left_out):
    scores = np.empty(dual.size)
    for i in range(dual.size):
        factor = np.ones(dual.size)
        factor[i] -= left_out[i]
        scores[i] = score_without(K, dual, i, factor)
    return scores


@pytest.mark.parametrize("make", [hinge, tube, no_tube])
@pytest.mark.parametrize("kernel", ["gauss", "laplace"])
@pytest.mark.parametrize("C", [0.1, 3.0, 300.0])
def test_scores_are_those_of_brute_force(make, kernel, C):
    K, dual = KERNELS[kernel], make(C)
    found = svm_leave_one_out(K, dual, solve_dual(K, dual))
    expected = brute_force(K, dual, np.ones(60))
    np.testing.assert_allclose(found.scores, expected, atol=2e-5)
    assert found.changed[found.resolved].all()
    if C > 1:  # otherwise most rows are at a bound, and without one of them all may be
        assert found.n_resolved <= 3


@pytest.mark.parametrize("make", [hinge, tube])
@pytest.mark.parametrize("C", [0.3, 30.0])
def test_a_kernel_of_low_rank(make, C):
    K, dual = KERNELS["linear"], make(C)
    found = svm_leave_one_out(K, dual, solve_dual(K, dual))
    np.testing.assert_allclose(found.scores, brute_force(K, dual, np.ones(60)), atol=1e-4)
    assert found.resolved.any()


@pytest.mark.parametrize("kernel", ["gauss", "linear"])
@pytest.mark.parametrize("C", [3.0, 1e-9])  # with the last one no sample is free
def test_only_some_rows_are_left_out(kernel, C):
    K, dual = KERNELS[kernel], hinge(C)
    solution, rows = solve_dual(K, dual), np.array([3, 11, 40])
    whole = svm_leave_one_out(K, dual, solution)
    some = svm_leave_one_out(K, dual, solution, rows=rows)
    others = np.delete(np.arange(60), rows)
    np.testing.assert_allclose(some.scores[rows], whole.scores[rows], atol=1e-8)
    own = K @ solution.w + solution.intercept
    np.testing.assert_allclose(some.scores[others], own[others], atol=1e-5)
    assert not some.changed[others].any()
    assert not some.resolved[others].any()


@pytest.mark.parametrize("make", [hinge, tube])
def test_sample_weights_as_copies(make):
    K, dual = KERNELS["gauss"], make(2.0 * WEIGHT)
    found = svm_leave_one_out(K, dual, solve_dual(K, dual), left_out=1.0 / WEIGHT)
    np.testing.assert_allclose(found.scores, brute_force(K, dual, 1.0 / WEIGHT), atol=2e-5)
    copies = np.repeat(np.arange(60), WEIGHT.astype(int))
    single = make(2.0)
    repeated = single.restrict(copies)
    many = K[np.ix_(copies, copies)]
    for i in (0, 17, 41):
        place = int(np.flatnonzero(copies == i)[0])
        factor = np.ones(len(copies))
        factor[place] = 0.0
        expected = score_without(many, repeated, place, factor)
        np.testing.assert_allclose(found.scores[i], expected, atol=2e-5)


@pytest.mark.parametrize("make", [hinge, tube])
def test_whole_rows_with_weights(make):
    K, dual = KERNELS["laplace"], make(0.5 * WEIGHT)
    found = svm_leave_one_out(K, dual, solve_dual(K, dual))
    np.testing.assert_allclose(found.scores, brute_force(K, dual, np.ones(60)), atol=2e-5)


@pytest.mark.parametrize("make", [hinge, tube])
def test_the_formula_holds_where_no_other_sample_changes_sides(make):
    K, dual = KERNELS["laplace"], make(3.0)
    solution = solve_dual(K, dual, tol=1e-12)
    found = svm_leave_one_out(K, dual, solution)
    w, f = solution.w, dual.linear - solution.gradient + solution.intercept
    free = np.flatnonzero(dual.free(w))
    system = np.ones((len(free) + 1, len(free) + 1))
    system[:-1, :-1] = K[np.ix_(free, free)]
    system[-1, -1] = 0.0
    inverse = np.linalg.inv(system)
    response = np.zeros(60)
    for i in np.flatnonzero(w):
        extended = np.append(K[free, i], 1.0)
        response[i] = K[i, i] - extended @ inverse @ extended
    response[free] = 1.0 / np.diag(inverse)[:-1]
    same = ~found.changed
    assert (w[same] != 0).sum() > 5
    np.testing.assert_allclose(found.scores[same], (f - w * response)[same], atol=1e-6)
    assert abs(found.scores - (f - w * response))[~same].max() > 1e-3


def test_a_loose_solution_is_made_accurate_first():
    K, dual = KERNELS["gauss"], hinge(10.0)
    loose = svm_leave_one_out(K, dual, solve_dual(K, dual, tol=1e-4))
    exact = svm_leave_one_out(K, dual, solve_dual(K, dual, tol=1e-12))
    np.testing.assert_allclose(loose.scores, exact.scores, atol=1e-8)


def test_equal_rows_are_no_special_case():
    twice = np.repeat(np.arange(30), 2)
    K = KERNELS["gauss"][np.ix_(twice, twice)]
    dual = DualProblem.regression(TARGET[twice], 5.0, 0.05)
    found = svm_leave_one_out(K, dual, solve_dual(K, dual))
    np.testing.assert_allclose(found.scores, brute_force(K, dual, np.ones(60)), atol=1e-4)


def test_without_free_samples_every_row_at_a_bound_is_solved_again():
    K, dual = KERNELS["gauss"], hinge(1e-3)
    solution = solve_dual(K, dual)
    assert not dual.free(solution.w).any()
    found = svm_leave_one_out(K, dual, solution)
    assert found.resolved.all()
    np.testing.assert_allclose(found.scores, brute_force(K, dual, np.ones(60)), atol=1e-5)


def test_the_only_row_of_a_class():
    labels = np.where(np.arange(60) == 7, 1.0, -1.0)
    K, dual = KERNELS["gauss"], DualProblem.classification(labels, 1.0)
    found = svm_leave_one_out(K, dual, solve_dual(K, dual))
    assert found.scores[7] == pytest.approx(-1.0)


def test_single_precision_matrices_are_accepted():
    K, dual = KERNELS["laplace"], hinge(1.0)
    solution = solve_dual(K, dual)
    found = svm_leave_one_out(K.astype(np.float32), dual, solution)
    np.testing.assert_allclose(found.scores, svm_leave_one_out(K, dual, solution).scores, atol=1e-4)


class Squared:
    """The squared loss, as far as a dual problem needs it here."""

    target, epsilon, curvature = np.arange(3.0), np.zeros(3), np.ones(3)
    lower, upper = np.full(3, -np.inf), np.full(3, np.inf)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"K": np.eye(4)}, "K has shape"),
        ({"dual": DualProblem.stacked([hinge(1.0), hinge(1.0)])}, "2 machines"),
        ({"left_out": 0.0}, "above 0"),
        ({"left_out": 1.5}, "above 0"),
        ({"dual": DualProblem(Squared())}, "RidgePath"),  # type: ignore[arg-type]
    ],
)
def test_bad_input(change, message):
    dual: DualProblem = hinge(1.0)
    given = {"K": KERNELS["gauss"], "dual": dual, "left_out": 1.0} | change
    solution = solve_dual(KERNELS["gauss"], dual)
    with pytest.raises(ValueError, match=message):
        svm_leave_one_out(given["K"], given["dual"], solution, left_out=given["left_out"])
