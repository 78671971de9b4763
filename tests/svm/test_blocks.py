"""Pair steps in blocks: the optimum of all samples, whatever the blocks have left out."""

from __future__ import annotations

import signal
import threading
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.programs import svm_primal_value
from reference.svm import assert_feasible, dual_value, kkt_violation, primal_value
from reference.threads import needs_task_list, threads_used
from svm.work import (
    make_problem,
    make_problem_by_rows,
    on_demand,
    only_blocks,
    separable_problem,
    solve_by_rows,
)

from tessella.backend import KernelOnDemand, ProductForm
from tessella.svm import (
    DualProblem,
    DualSettings,
    DualStatus,
    best_intercept,
    relative_gap,
    solve_dual,
)

TASKS = ["classification", "regression"]
SIZES = [2, 3, 8, 32, 80]


def check_answer(K, dual, answer, tol):
    """Everything a converged answer promises for all samples, from the whole matrix K."""
    assert answer.status is DualStatus.OPTIMAL
    assert_feasible(dual, answer.w)
    scale = max(1.0, np.abs(K @ answer.w).max())
    np.testing.assert_allclose(answer.gradient, dual.linear - K @ answer.w, atol=1e-9 * scale)
    lower, upper = dual_value(K, dual, answer.w), primal_value(K, dual, answer.w, answer.intercept)
    assert answer.objective == pytest.approx(lower, rel=1e-9)
    assert answer.primal == pytest.approx(upper, rel=1e-7)
    assert relative_gap(upper, lower) <= 1.001 * tol


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("C", [0.1, 10.0])
@pytest.mark.parametrize("task", TASKS)
def test_blocks_of_any_size_find_the_optimum(task, C, size):
    rows, K, dual = make_problem_by_rows(task, C=C)
    answer = solve_dual(rows, dual, tol=1e-9, settings=only_blocks(size))
    check_answer(K, dual, answer, 1e-9)
    assert answer.objective == pytest.approx(svm_primal_value(K, dual), rel=1e-6)
    assert kkt_violation(K, dual, answer.w, answer.intercept) < 1e-4
    assert answer.n_newton == 0
    # The last word has a gradient without the rounding of the steps.
    assert (answer.gradient == dual.linear - rows.product(answer.w)).all()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_nearly_separable_samples(dtype):
    """A matrix in memory: steps are taken in blocks once these hold all support vectors."""
    K, dual = separable_problem()
    K = K.astype(dtype)
    answer = solve_dual(K, dual, tol=1e-8, settings=only_blocks(128))
    check_answer(K.astype(np.float64), dual, answer, 1e-8)
    assert 2 < np.count_nonzero(answer.w) <= 128
    whole = solve_dual(K, dual, tol=1e-8, settings=replace(only_blocks(128), max_block=0))
    assert answer.n_iter != whole.n_iter
    assert answer.objective == pytest.approx(whole.objective, rel=2e-8)
    assert kkt_violation(K.astype(np.float64), dual, answer.w, answer.intercept) < 1e-3


@pytest.mark.parametrize("size", [4, 16])
@pytest.mark.parametrize("task", TASKS)
def test_samples_that_a_warm_start_has_left_out_come_back(task, size):
    """Starts with the optimum of one half of the samples, and with a vector of other signs."""
    rows, K, dual = make_problem_by_rows(task, m=90, C=3.0)
    expected = solve_dual(K, dual, tol=1e-10).objective
    half = np.arange(90) < 45
    few = DualProblem.classification if task == "classification" else DualProblem.regression
    rest = () if task == "classification" else (0.05,)
    part = solve_dual(np.ascontiguousarray(K[:45, :45]), few(dual.linear[:45], 3.0, *rest))
    left_out = np.where(half, np.append(part.w, np.zeros(45)), 0.0)
    assert not left_out[45:].any()
    for w0 in (left_out, -5.0 * np.sign(dual.linear), np.roll(left_out, 45)):
        answer = solve_dual(rows, dual, w0=w0, tol=1e-9, settings=only_blocks(size))
        check_answer(K, dual, answer, 1e-9)
        assert answer.objective == pytest.approx(expected, rel=2e-9)


def test_a_warm_start_at_the_optimum_takes_no_step():
    rows, _, dual = make_problem_by_rows("regression")
    cold = solve_dual(rows, dual, tol=1e-7, settings=only_blocks(16))
    assert solve_dual(rows, dual, w0=cold.w, tol=1e-7, settings=only_blocks(16)).n_iter == 0


@settings(max_examples=60, deadline=None)
@given(
    m=st.integers(2, 40),
    size=st.integers(2, 12),
    log_c=st.floats(-3, 3),
    eps=st.sampled_from([0.0, 0.01, 0.5, 10.0]),
    classify=st.booleans(),
    seed=st.integers(0, 10_000),
)
def test_random_problems(m, size, log_c, eps, classify, seed):
    """Bounds of each sample, some of them zero, and rows that are equal."""
    rng = np.random.default_rng(seed)
    X = np.vstack([rng.random((m - m // 3, 2)), np.full((m // 3, 2), 0.5)])
    rows, K = on_demand(np.vstack([X, [[0.0, 0.0], [1.0, 1.0]]]))
    C = 10.0**log_c * rng.integers(0, 3, m + 2)
    if classify:
        dual = DualProblem.classification(rng.choice([-1.0, 1.0], m + 2), C)
    else:
        dual = DualProblem.regression(rng.standard_normal(m + 2), C, eps)
    answer = solve_dual(rows, dual, tol=1e-6, max_iter=2_000_000, settings=only_blocks(size))
    assert_feasible(dual, answer.w)
    assert answer.status in (DualStatus.OPTIMAL, DualStatus.PRECISION)
    assert not answer.w[C == 0.0].any()
    lower, upper = dual_value(K, dual, answer.w), primal_value(K, dual, answer.w, answer.intercept)
    assert upper - lower <= 2e-6 * abs(upper) + 1e-9


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("size", [0, 16])
@pytest.mark.parametrize("steps", [0, 1, 7, 40, 90])
def test_the_intercept_is_the_best_one_on_the_way(task, size, steps):
    """Far from the optimum, where the primal has many breaks between its two ends."""
    rows, K, dual = make_problem_by_rows(task)
    answer = solve_dual(rows, dual, tol=1e-12, max_iter=steps, settings=only_blocks(size))
    assert answer.n_iter == steps
    scores = K @ answer.w
    _, loss = best_intercept(dual, scores)
    assert answer.primal == pytest.approx(0.5 * answer.w @ scores + loss, rel=1e-9)
    np.testing.assert_allclose(answer.gradient, dual.linear - scores, atol=1e-9)
    assert_feasible(dual, answer.w)


def hard_problem_by_rows():
    """A problem that pair steps need minutes for: a matrix of rank 30 and huge bounds."""
    rng = np.random.default_rng(0)
    Z, none = rng.standard_normal((1500, 30)) * 0.7 ** np.arange(30), np.empty((1500, 0))
    rows = KernelOnDemand()
    rows.hold(ProductForm(none, none, 0.5 * Z, Z))
    return rows, DualProblem.regression(rng.standard_normal(1500), 1e6, 0.0)


def test_limits_of_time():
    rows, dual = hard_problem_by_rows()
    for seconds in (0.0, 0.3):
        answer = solve_dual(rows, dual, tol=1e-12, time_limit=seconds, settings=only_blocks(256))
        assert answer.status is DualStatus.TIME_LIMIT
        assert_feasible(dual, answer.w)
    assert answer.objective > 0


def test_ctrl_c_returns_a_feasible_point():
    rows, dual = hard_problem_by_rows()
    timer = threading.Timer(0.3, signal.raise_signal, [signal.SIGINT])
    timer.start()
    answer = solve_dual(rows, dual, tol=1e-12, time_limit=60.0, settings=only_blocks(256))
    timer.join()
    assert answer.status is DualStatus.INTERRUPTED
    assert_feasible(dual, answer.w)


@pytest.mark.parametrize("task", TASKS)
def test_impossible_tolerance_ends_at_the_rounding_floor(task):
    rows, _, dual = make_problem_by_rows(task, m=60)
    answer = solve_dual(rows, dual, tol=0.0, settings=only_blocks(8))
    assert answer.status in (DualStatus.PRECISION, DualStatus.OPTIMAL)
    assert answer.gap < 1e-9


LARGE = 6000


@needs_task_list
def test_threads_start_where_they_are_worth_it():
    """Guards the test below, which would compare one thread with one thread."""
    assert threads_used("svm.work", LARGE, "solve_by_rows") == [2]


def test_threads_do_not_change_the_answer():
    one, three = (solve_by_rows(LARGE, n_jobs) for n_jobs in (1, 3))
    assert np.count_nonzero(one.w) > 100
    assert (one.w == three.w).all()
    assert (one.gradient == three.gradient).all()
    assert (one.n_iter, one.objective) == (three.n_iter, three.objective)


def test_sizes_of_blocks():
    chosen = DualSettings(least_blocks=1000, block_share=16, min_block=256, max_block=512)
    sizes = {999: 0, 1000: 256, 6400: 400, 50_000: 512}
    assert {size: chosen.block(size) for size in sizes} == sizes
    assert DualSettings(max_block=0).block(10**6) == 0
    assert DualSettings(least_blocks=2, min_block=64, max_block=64).block(10) == 10
    K, dual = make_problem("classification", m=10)
    with pytest.raises(ValueError, match="a block has 2 samples at least"):
        solve_dual(K, dual, settings=only_blocks(1))
