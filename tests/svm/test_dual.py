from __future__ import annotations

import signal
import sys
import threading
import time
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.programs import svm_primal_value
from reference.svm import assert_feasible, dual_value, kkt_violation, primal_value
from reference.threads import needs_task_list, threads_used
from sklearn.svm import SVC, SVR
from svm.work import make_problem, rbf, solve

from tessella.svm import (
    CostModel,
    DualProblem,
    DualSettings,
    DualStatus,
    relative_gap,
    solve_dual,
)


def check_answer(K, dual, answer, tol):
    """Everything a converged answer promises, recomputed from K and w."""
    assert answer.status is DualStatus.OPTIMAL
    assert_feasible(dual, answer.w)
    K = K.astype(np.float64)
    scale = max(1.0, np.abs(K @ answer.w).max())
    np.testing.assert_allclose(answer.gradient, dual.linear - K @ answer.w, atol=1e-9 * scale)
    lower, upper = dual_value(K, dual, answer.w), primal_value(K, dual, answer.w, answer.intercept)
    size = max(abs(upper), abs(lower))
    assert answer.objective == pytest.approx(lower, rel=1e-9, abs=1e-9 * size)
    assert answer.primal == pytest.approx(upper, rel=1e-7, abs=1e-12)
    assert relative_gap(upper, lower) <= 1.001 * tol + 1e-13


TASKS = ["classification", "regression"]


@pytest.mark.parametrize("C", [1e-4, 0.1, 10.0, 1e4])
@pytest.mark.parametrize("task", TASKS)
def test_matches_generic_program(task, C):
    K, dual = make_problem(task, C=C)
    answer = solve_dual(K, dual, tol=1e-9)
    check_answer(K, dual, answer, 1e-9)
    assert answer.objective == pytest.approx(svm_primal_value(K, dual), rel=1e-6)
    assert kkt_violation(K, dual, answer.w, answer.intercept) < 1e-4


@pytest.mark.parametrize("task", TASKS)
def test_full_kkt_at_tight_tolerance(task):
    K, dual = make_problem(task, m=150, C=20.0, seed=3)
    answer = solve_dual(K, dual, tol=1e-12)
    check_answer(K, dual, answer, 1e-12)
    assert kkt_violation(K, dual, answer.w, answer.intercept) < 1e-8
    assert answer.violation < 1e-8


@pytest.mark.parametrize("C", [0.5, 50.0])
@pytest.mark.parametrize("task", TASKS)
def test_matches_libsvm(task, C):
    K, dual = make_problem(task, m=200, C=C, seed=1)
    answer = solve_dual(K, dual, tol=1e-8)
    if task == "classification":
        peer = SVC(kernel="precomputed", C=C, tol=1e-9).fit(K, dual.linear)
    else:
        peer = SVR(kernel="precomputed", C=C, epsilon=0.05, tol=1e-9).fit(K, dual.linear)
    w = np.zeros(len(K))
    w[peer.support_] = peer.dual_coef_[0]
    assert answer.objective == pytest.approx(dual_value(K, dual, w), rel=1e-6)
    # Never worse than libsvm, which stores its kernel in single precision.
    assert answer.objective >= dual_value(K, dual, w) - 1e-9 * abs(answer.objective)
    np.testing.assert_allclose(
        K @ answer.w + answer.intercept, K @ w + peer.intercept_[0], atol=2e-3
    )


def test_per_sample_weights_equal_copies():
    K, _ = make_problem("classification", m=30)
    y = np.where(np.arange(30) % 3 == 0, 1.0, -1.0)
    counts = np.random.default_rng(0).integers(1, 4, 30)
    repeated = np.repeat(np.arange(30), counts)
    once = solve_dual(K, DualProblem.classification(y, 2.0 * counts), tol=1e-10)
    many = solve_dual(
        np.ascontiguousarray(K[np.ix_(repeated, repeated)]),
        DualProblem.classification(y[repeated], 2.0),
        tol=1e-10,
    )
    assert once.objective == pytest.approx(many.objective, rel=1e-9)
    merged = np.bincount(repeated, weights=many.w)
    np.testing.assert_allclose(K @ once.w, K @ merged, atol=1e-4)


@pytest.mark.parametrize("task", TASKS)
def test_float32_kernel(task):
    K, dual = make_problem(task)
    K32 = K.astype(np.float32)
    answer = solve_dual(K32, dual, tol=1e-8)
    check_answer(K32, dual, answer, 1e-8)
    assert answer.objective == pytest.approx(solve_dual(K, dual, tol=1e-8).objective, rel=1e-4)


# ---- warm starts


@pytest.mark.parametrize("task", TASKS)
def test_warm_start_at_the_answer_takes_no_step(task):
    K, dual = make_problem(task)
    cold = solve_dual(K, dual, tol=1e-7)
    warm = solve_dual(K, dual, w0=cold.w, tol=1e-7)
    assert warm.n_iter == 0
    np.testing.assert_allclose(warm.w, cold.w, rtol=0, atol=1e-12)


@pytest.mark.parametrize("task", TASKS)
def test_warm_start_from_anywhere_finds_the_same_optimum(task):
    K, dual = make_problem(task, C=3.0)
    expected = solve_dual(K, dual, tol=1e-9).objective
    rng = np.random.default_rng(5)
    for scale in (0.1, 1.0, 100.0):
        w0 = scale * rng.standard_normal(len(K))
        answer = solve_dual(K, dual, w0=w0, tol=1e-9)
        check_answer(K, dual, answer, 1e-9)
        assert answer.objective == pytest.approx(expected, rel=1e-8)


def test_warm_start_saves_work_after_a_small_change_of_kernel():
    K, dual = make_problem("regression", m=600, C=50.0)
    other = 0.999 * K + 0.001 * np.eye(len(K))
    cold = solve_dual(other, dual, tol=1e-4)
    warm = solve_dual(other, dual, w0=solve_dual(K, dual, tol=1e-4).w, tol=1e-4)
    assert warm.n_iter < 0.7 * cold.n_iter
    assert warm.n_newton <= cold.n_newton


def test_warm_start_is_not_modified():
    K, dual = make_problem("regression")
    w0 = np.full(len(K), 0.3)
    solve_dual(K, dual, w0=w0)
    assert (w0 == 0.3).all()


# ---- degenerate problems


def test_constant_kernel():
    dual = DualProblem.classification([1, 1, 1, -1], 2.0)
    answer = solve_dual(np.ones((4, 4)), dual, tol=1e-10)
    check_answer(np.ones((4, 4)), dual, answer, 1e-10)
    # Only the intercept can act, and it serves the majority: one sample pays 2C.
    assert answer.objective == pytest.approx(4.0)
    assert answer.intercept == pytest.approx(1.0)


def test_zero_kernel_regression():
    dual = DualProblem.regression([0.0, 1.0, 5.0], 3.0, 0.1)
    answer = solve_dual(np.zeros((3, 3)), dual, tol=1e-10)
    check_answer(np.zeros((3, 3)), dual, answer, 1e-10)
    assert answer.intercept == pytest.approx(1.0, abs=0.11)


def test_duplicate_rows_with_opposite_labels():
    rng = np.random.default_rng(0)
    X = np.repeat(rng.random((20, 2)), 3, axis=0)
    y = np.where(rng.random(60) < 0.5, 1.0, -1.0)
    K = rbf(X)
    dual = DualProblem.classification(y, 100.0)
    answer = solve_dual(K, dual, tol=1e-8)
    check_answer(K, dual, answer, 1e-8)
    assert answer.objective == pytest.approx(svm_primal_value(K, dual), rel=1e-6)


def test_singular_kernel():
    X = np.random.default_rng(1).random((60, 2))
    K = X @ X.T
    y = np.where(X[:, 0] + 0.3 * np.random.default_rng(2).standard_normal(60) > 0.5, 1.0, -1.0)
    dual = DualProblem.classification(y, 1e3)
    answer = solve_dual(K, dual, tol=1e-7)
    check_answer(K, dual, answer, 1e-7)
    assert answer.objective == pytest.approx(svm_primal_value(K, dual), rel=1e-6)


def test_all_at_bound_for_tiny_c():
    K, _ = make_problem("classification", m=40)
    y = np.where(np.arange(40) % 2 == 0, 1.0, -1.0)
    answer = solve_dual(K, DualProblem.classification(y, 1e-8), tol=1e-9)
    assert (np.abs(answer.w) == 1e-8).all()
    assert answer.status is DualStatus.OPTIMAL


def test_tube_wider_than_the_data():
    K, _ = make_problem("regression", m=40)
    y = np.random.default_rng(0).random(40)
    answer = solve_dual(K, DualProblem.regression(y, 10.0, 2.0), tol=1e-12)
    assert not answer.w.any()
    assert answer.objective == answer.primal == 0.0
    assert answer.gap == 0.0
    # Every offset within the tube is optimal; the middle of the data is the fair one.
    assert answer.intercept == pytest.approx(0.5 * (y.min() + y.max()))


def test_one_class_stays_at_zero():
    answer = solve_dual(np.eye(3), DualProblem.classification([1, 1, 1], 1.0))
    assert not answer.w.any()
    assert answer.intercept == pytest.approx(1.0)


def test_zero_weight_never_moves():
    K, dual = make_problem("classification", m=30)
    C = np.where(np.arange(30) < 10, 0.0, 5.0)
    answer = solve_dual(K, DualProblem.classification(dual.linear, C), tol=1e-8)
    assert not answer.w[:10].any()
    part = solve_dual(
        np.ascontiguousarray(K[10:, 10:]),
        DualProblem.classification(dual.linear[10:], 5.0),
        tol=1e-8,
    )
    assert answer.objective == pytest.approx(part.objective, rel=1e-7)


def test_one_sample():
    answer = solve_dual(np.ones((1, 1)), DualProblem.regression([3.0], 1.0, 0.1))
    assert answer.intercept == pytest.approx(3.0)
    assert answer.status is DualStatus.OPTIMAL


@settings(max_examples=60, deadline=None)
@given(
    m=st.integers(2, 25),
    rank=st.integers(0, 6),
    log_c=st.floats(-4, 4),
    eps=st.sampled_from([0.0, 0.01, 0.5, 10.0]),
    classify=st.booleans(),
    seed=st.integers(0, 10_000),
)
def test_random_problems(m, rank, log_c, eps, classify, seed):
    rng = np.random.default_rng(seed)
    root = rng.standard_normal((m, rank))
    K = root @ root.T
    C = 10.0**log_c * rng.integers(0, 3, m)
    if classify:
        dual = DualProblem.classification(rng.choice([-1.0, 1.0], m), C)
    else:
        dual = DualProblem.regression(rng.standard_normal(m), C, eps)
    answer = solve_dual(K, dual, tol=1e-6, max_iter=2_000_000)
    assert_feasible(dual, answer.w)
    assert answer.status in (DualStatus.OPTIMAL, DualStatus.PRECISION)
    lower, upper = dual_value(K, dual, answer.w), primal_value(K, dual, answer.w, answer.intercept)
    assert upper - lower <= 2e-6 * abs(upper) + 1e-9


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_one_step_passes_the_kink_and_stops_at_the_maximum(sign):
    """For w = (s, -s) the objective is 2 s - 1.8 |s| - s², with its maximum at s = 0.1."""
    dual = DualProblem.regression([sign, -sign], 1.0, 0.9)
    start = sign * np.array([-0.5, 0.5])
    answer = solve_dual(np.eye(2), dual, w0=start, tol=1e-12, max_iter=1)
    assert answer.n_iter == 1
    np.testing.assert_allclose(answer.w, sign * np.array([0.1, -0.1]), rtol=1e-14)


# ---- limits


def hard_problem():
    """A problem that pair steps need minutes for."""
    rng = np.random.default_rng(0)
    X = rng.random((1500, 6))
    K = np.exp(-0.01 * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    return K, DualProblem.regression(rng.standard_normal(1500), 1e6, 0.0)


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("C", [1.0, 1e4])
def test_impossible_tolerance_ends_at_the_rounding_floor(task, C):
    K, dual = make_problem(task, m=60, C=C)
    answer = solve_dual(K, dual, tol=0.0)
    assert answer.status in (DualStatus.PRECISION, DualStatus.OPTIMAL)
    assert answer.gap < 1e-9


def test_iteration_limit_returns_a_feasible_point():
    K, dual = make_problem("regression", C=100.0)
    answer = solve_dual(K, dual, tol=1e-12, max_iter=50)
    assert answer.status is DualStatus.MAX_ITER
    assert answer.n_iter == 50
    assert_feasible(dual, answer.w)
    np.testing.assert_allclose(answer.gradient, dual.linear - K @ answer.w, atol=1e-10)
    assert solve_dual(K, dual, max_iter=0).n_iter == 0
    assert solve_dual(K, dual, max_iter=1).n_iter == 1


@pytest.mark.parametrize(
    "without",
    [{"max_free": 1}, {"max_idle_rounds": 0}],
    ids=["no Newton step is small enough", "Newton steps are given up"],
)
def test_pair_steps_alone_find_the_optimum(without):
    K, dual = make_problem("regression", C=1000.0)
    usual = solve_dual(K, dual)
    settings = DualSettings(low_rank_entries=0, max_interior_point_runs=0, **without)
    alone = solve_dual(K, dual, settings=settings, time_limit=60.0)
    assert usual.n_newton > 0 == alone.n_newton
    assert alone.status is DualStatus.OPTIMAL
    assert alone.objective == pytest.approx(usual.objective, rel=1e-5)


def test_newton_steps_bear_negative_eigenvalues_of_the_size_of_rounding():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 8))
    y = X @ rng.standard_normal(8) + 0.3 * rng.standard_normal(60)
    K, dual = X @ X.T, DualProblem.regression(y, 100.0, 0.1)
    shifted = K - 1e-11 * np.mean(np.diag(K)) * np.eye(60)  # has eigenvalues below zero
    settings = DualSettings(low_rank_entries=0, max_interior_point_runs=0)
    answer = solve_dual(shifted, dual, settings=settings)
    assert answer.status is DualStatus.OPTIMAL
    assert answer.n_newton > 0
    assert answer.objective == pytest.approx(solve_dual(K, dual).objective, rel=1e-5)


def test_time_limit_returns_a_feasible_point():
    K, dual = hard_problem()
    answer = solve_dual(K, dual, tol=1e-12, time_limit=0.2)
    assert answer.status is DualStatus.TIME_LIMIT
    assert_feasible(dual, answer.w)
    assert answer.objective > 0


def test_zero_time_still_answers():
    K, dual = make_problem("classification")
    answer = solve_dual(K, dual, tol=1e-12, time_limit=0.0)
    assert answer.status is DualStatus.TIME_LIMIT
    assert_feasible(dual, answer.w)


def test_ctrl_c_returns_a_feasible_point():
    K, dual = hard_problem()
    timer = threading.Timer(0.3, signal.raise_signal, [signal.SIGINT])
    timer.start()
    answer = solve_dual(K, dual, tol=1e-12, time_limit=60.0)
    timer.join()
    assert answer.status is DualStatus.INTERRUPTED
    assert_feasible(dual, answer.w)


def test_another_thread_runs_during_the_pair_steps():
    """The call returns early only because a thread that needs the interpreter interrupts it.

    Python code gives way to another thread after the switch interval, here an hour, and numpy
    keeps the interpreter for arrays as small as these. So the thread runs while the compiled
    code has released the interpreter, or not before the call is over.
    """
    rng = np.random.default_rng(0)
    K, dual = rbf(rng.random((300, 6)), 0.01), DualProblem.regression(rng.random(300), 1e6, 0.0)
    begin, over, turns = threading.Event(), threading.Event(), []

    def take_turns():
        begin.wait()
        while len(turns) < 100 and not over.is_set():
            turns.append(None)
            time.sleep(0)  # lets the solver have the interpreter, should it wait for it
        if not over.is_set():
            signal.raise_signal(signal.SIGINT)

    thread = threading.Thread(target=take_turns)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(3600.0)
    try:
        thread.start()
        begin.set()
        one_call = DualSettings(min_pair_steps=10**12)
        answer = solve_dual(K, dual, tol=0.0, max_iter=20_000_000, settings=one_call)
        during = len(turns)
    finally:
        over.set()
        sys.setswitchinterval(interval)
    thread.join()
    assert during == 100
    assert answer.status is DualStatus.INTERRUPTED


LARGE = 2500


@needs_task_list
def test_threads_start_where_they_are_worth_it():
    """Guards the test below, which would compare one thread with one thread."""
    assert threads_used("svm.work", LARGE, "solve") == [2]


def test_threads_do_not_change_the_answer():
    """Large enough for several threads of pair steps, which must compute the same bits."""
    one, three = (solve(LARGE, n_jobs) for n_jobs in (1, 3))
    assert one.status is DualStatus.OPTIMAL
    assert one.n_newton > 0
    assert (one.w == three.w).all()
    assert (one.n_iter, one.objective) == (three.n_iter, three.objective)


def test_threads_of_blas_change_the_rounding_alone():
    """The interior point method has products of BLAS, which adds up in another order.

    That changes the last digits of all steps, but neither their number nor what they find: w is
    compared much more closely than the tolerance of the solver determines it.
    """
    at_once = DualSettings(interior_point_share=0.0)
    one, three = (solve(LARGE, n_jobs, settings=at_once) for n_jobs in (1, 3))
    without = solve(LARGE, 1)
    assert one.n_newton > without.n_newton  # it has been used
    assert np.abs(one.w - without.w).max() > 1e-3
    assert (one.n_iter, one.n_newton) == (three.n_iter, three.n_newton)
    np.testing.assert_allclose(three.w, one.w, rtol=0.0, atol=1e-9)
    assert three.objective == pytest.approx(one.objective, rel=1e-13)


# ---- bad input


def test_bad_input():
    dual = DualProblem.classification([1, -1], 1.0)
    with pytest.raises(ValueError, match=r"K has shape \(3, 3\)"):
        solve_dual(np.eye(3), dual)
    with pytest.raises(TypeError, match="float32 or float64, not int64"):
        solve_dual(np.eye(2, dtype=np.int64), dual)
    with pytest.raises(ValueError, match="NaN or an infinity"):
        solve_dual(np.full((2, 2), np.nan), dual)
    with pytest.raises(ValueError, match="tol=-1"):
        solve_dual(np.eye(2), dual, tol=-1)
    with pytest.raises(ValueError, match="w has shape"):
        solve_dual(np.eye(2), dual, w0=np.zeros(3))
    with pytest.raises(ValueError, match="Labels must be"):
        DualProblem.classification([0, 1], 1.0)
    with pytest.raises(ValueError, match="C must be finite"):
        DualProblem.regression([0.0, 1.0], -1.0, 0.1)
    with pytest.raises(ValueError, match="epsilon must not be negative"):
        DualProblem.regression([0.0, 1.0], 1.0, -0.1)
    with pytest.raises(ValueError, match="target contains a NaN"):
        DualProblem.regression([np.nan, 1.0], 1.0, 0.1)
    with pytest.raises(ValueError, match="at least one sample"):
        DualProblem.regression([], 1.0, 0.1)


@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize("m", [10, 50, 300])
def test_nans_off_the_diagonal_are_never_certified(task, m):
    """The solver refuses them, or it ends and what it claims is not finite."""
    K, dual = make_problem(task, m)
    K[1, 2:] = K[2:, 1] = K[0, 1] = K[1, 0] = np.nan
    with suppress(ValueError):
        answer = solve_dual(K, dual, tol=1e-6)
        assert answer.status is DualStatus.PRECISION
        assert np.isnan(answer.objective)
        assert np.isnan(answer.primal)


def test_any_memory_layout():
    K, dual = make_problem("classification")
    expected = solve_dual(K, dual).w
    padded = np.zeros((len(K), 2 * len(K)))
    padded[:, ::2] = K
    frozen = K.copy()
    frozen.flags.writeable = False
    for variant in (np.asfortranarray(K), padded[:, ::2], frozen):
        assert (solve_dual(variant, dual).w == expected).all()


def test_balancing_leaves_samples_at_a_bound_where_they_are():
    problem = DualProblem.regression(np.zeros(5), 1.0, 0.1)
    w = problem.feasible([1.0, -1.0, 0.5, 0.0, -0.4])
    assert w.tolist()[:2] == [1.0, -1.0]
    assert w[3] == 0.0
    assert w.sum() == pytest.approx(0.0, abs=1e-15)


def test_no_newton_step_is_begun_that_would_end_after_the_limit():
    """The steps of the model are long, and those of the problem take no time at all."""
    K, dual = make_problem("regression", m=120, C=100.0)
    long = 1e6
    costs = CostModel(
        pair_fixed=0.5, newton_fixed=50.0, interior_point_fixed=long, factor_fixed=long
    )
    settings = DualSettings(costs=costs)
    steps = {
        limit: solve_dual(K, dual, tol=1e-9, time_limit=limit, settings=settings).n_newton
        for limit in (None, 100.0, 30.0)
    }
    assert steps[None] > 0
    assert steps[100.0] == steps[None]
    assert steps[30.0] == 0
