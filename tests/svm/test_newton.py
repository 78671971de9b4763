"""Newton steps of the dual solver: one array for matrix and factor, gradients that are updated."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from svm.work import make_problem, make_problem_by_rows

from tessella.svm import CostModel, DualSettings, DualStatus, solve_dual

# Newton steps are taken as soon as they can, and nothing but pair steps beside them.
EARLY_NEWTON = DualSettings(
    costs=CostModel(newton_fixed=0.0),
    min_pair_steps=1,
    warm_pair_share=10**6,
    warm_newton_ratio=1e9,
    max_interior_point_runs=0,
    low_rank_entries=0,
)


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_a_second_ridge_finds_the_matrix_as_it_was(task):
    """A ridge that makes the matrix indefinite fails, after the factor has overwritten a part."""
    K, dual = make_problem(task, m=200, C=50.0)
    usual = solve_dual(K, dual, tol=1e-10, settings=replace(EARLY_NEWTON, ridges_float64=(1e-12,)))
    ridges = (-0.5, 1e-12)
    again = solve_dual(K, dual, tol=1e-10, settings=replace(EARLY_NEWTON, ridges_float64=ridges))
    assert usual.n_newton > 0
    assert (again.n_iter, again.n_newton) == (usual.n_iter, usual.n_newton)
    np.testing.assert_array_equal(again.w, usual.w)


@pytest.mark.parametrize("by_rows", [False, True])
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_one_newton_step_is_enough_from_the_right_free_samples(task, by_rows):
    """The values of the free samples are those of a linear system, which one step solves.

    Afterwards the gradient is updated by these samples alone, and the gap that it shows is the
    true one: no pair step follows the first one.
    """
    rows, K, dual = make_problem_by_rows(task, m=150, C=3.0)
    exact = solve_dual(K, dual, tol=1e-13)
    free = dual.free(exact.w)
    middle = np.where(exact.w > 0, 0.5 * dual.upper, 0.5 * dual.lower)
    start = np.where(free, 0.999 * exact.w + 0.001 * middle, exact.w)
    matrix = rows if by_rows else K
    answer = solve_dual(matrix, dual, w0=start, tol=1e-9, settings=EARLY_NEWTON)
    assert answer.status is DualStatus.OPTIMAL
    assert answer.n_newton == 1
    assert answer.n_iter == 1
    np.testing.assert_allclose(answer.w, exact.w, atol=1e-6 * np.abs(exact.w).max())
