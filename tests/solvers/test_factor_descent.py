"""Descent on a factor of P for several machines."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from tessella.kernels import TessellatedKernels
from tessella.problems import SaddlePoint
from tessella.solvers import Run, StopRun, working_set
from tessella.solvers._factor_descent import (
    _near_rows,
    _Passes,
    descend,
    leading_factor,
    quasi_newton_direction,
)
from tessella.solvers._majorant import balanced_start
from tessella.svm import DualProblem


def problem_of(m: int, n: int, C: float = 2.0) -> SaddlePoint:
    rng = np.random.default_rng(5)
    X = rng.random((m, n))
    y = np.digitize(X[:, 0] + np.sin(3.0 * X[:, 1]) - 0.5 * X[:, 2], [0.5, 1.0])
    rows = [np.flatnonzero((y == a) | (y == b)) for a, b in combinations(range(3), 2)]
    signs = [np.where(y[own] == y[own].min(), 1.0, -1.0) for own in rows]
    duals = [DualProblem.classification(own, C) for own in signs]
    return SaddlePoint(
        TessellatedKernels(1, 0.3).bind_machines(X, rows), DualProblem.stacked(duals)
    )


def run_of(problem: SaddlePoint, tol: float = 1e-3, **limits: float) -> Run:
    settings = {"max_iter": 100, "time_limit": None, "n_jobs": 1, "callback": None} | limits
    return Run("descent", problem, tol=tol, **settings)


def test_the_slope_is_that_of_the_value():
    problem = problem_of(60, 3)
    passes = _Passes(run_of(problem), np.zeros(problem.dual.size), 100)
    passes._tol = 1e-11
    rng = np.random.default_rng(0)
    U = rng.standard_normal((problem.cone.side, 3))
    change = rng.standard_normal(U.shape)
    slope = passes._at(U)[1]
    step = 1e-5
    values = [passes._at(U + side * step * change)[0] for side in (-1.0, 1.0)]
    assert float(np.sum(slope * change)) == pytest.approx(
        (values[1] - values[0]) / (2 * step), rel=1e-5
    )
    # The parameter is scaled, so the value does not change along U.
    assert abs(float(np.sum(slope * U))) <= 1e-9 * np.linalg.norm(slope) * np.linalg.norm(U)


@pytest.mark.parametrize(("n", "left"), [(3, 0.01), (40, 1.0)])
def test_passes_come_near_the_optimum_and_the_average_proves_a_bound(n, left):
    problem = problem_of(150, n)
    optimum = working_set(problem, tol=1e-7)
    run = run_of(problem)
    P, w = balanced_start(run, None)
    before = problem.certificate(P, run.svm_at(P, w, 1e-7).w)
    found = descend(run, P, w, 48, 20)
    after = problem.certificate(found.P, run.svm_at(found.P, found.w, 1e-7).w)
    assert problem.has_unit_trace(found.P)
    assert np.linalg.eigvalsh(found.P)[0] >= -1e-12
    # With many features the pair of the start is nearly optimal, and must not become worse.
    most = left * (before.upper - optimum.value) + 1e-3 * optimum.value * (left == 1.0)
    assert optimum.bound <= after.upper <= optimum.value + most
    assert found.average.lower <= optimum.value
    behind = optimum.value - found.average.lower
    assert behind <= max(0.5 * (optimum.value - after.lower), 1e-4 * optimum.value)
    assert found.support[found.w != 0.0].all()


def test_passes_are_limited():
    problem = problem_of(60, 3)
    run = run_of(problem, tol=1e-9)
    P, w = balanced_start(run, None)
    already = run._n_svm
    descend(run, P, w, 8, 4)
    assert run._n_svm - already == 4


def test_later_passes_see_the_samples_near_a_margin_and_count():
    """Their answers are feasible for all samples, and nearly those of machines on all of them."""
    problem = problem_of(1500, 3, C=50.0)
    run = run_of(problem)
    passes = _Passes(run, np.zeros(problem.dual.size), 100)
    passes._tol = 1e-9
    P, _ = balanced_start(run_of(problem), None)
    U = leading_factor(P, 6)
    passes._first_at(U)
    near = U + 1e-4 * np.random.default_rng(1).standard_normal(U.shape)
    value, slope, w = passes._at(near)
    assert len(passes._rows) < 0.6 * problem.dual.size
    assert not np.delete(w, passes._rows).any()
    np.testing.assert_allclose(problem.dual.sums(w), 0.0, atol=1e-9 * np.abs(w).sum())
    whole = _Passes(run_of(problem), np.zeros(problem.dual.size), 100)
    whole._tol = 1e-9
    expected = whole._at(near)
    assert value == pytest.approx(expected[0], rel=1e-6)
    np.testing.assert_allclose(slope, expected[1], atol=1e-4 * abs(expected[1]).max())
    assert run._n_svm == 2


def test_near_rows_are_support_vectors_and_their_neighbours():
    problem = problem_of(200, 3, C=50.0)
    run = run_of(problem)
    answer = run.svm_at(problem.cone.centre, None, 1e-8)
    rows = _near_rows(problem.dual, answer)
    support = np.flatnonzero(answer.w)
    assert np.isin(support, rows).all()
    assert len(rows) == 3 * len(support)
    # The loss of a sample has its kink at the margin, where the residual is zero.
    distance = np.abs(answer.residual)
    others = np.setdiff1d(np.arange(len(answer.w)), rows)
    inside = np.setdiff1d(rows, support)
    assert distance[others].min() >= distance[inside].max()


def test_a_run_without_time_ends():
    problem = problem_of(60, 3)
    run = run_of(problem, time_limit=0.0)
    with pytest.raises(StopRun):
        descend(run, problem.cone.centre, np.zeros(problem.dual.size), 8, 4)


def test_the_factor_has_the_leading_directions():
    values = np.array([1e-9, 0.5, 1.0, 4.0])
    Q = np.linalg.qr(np.random.default_rng(1).standard_normal((4, 4)))[0]
    U = leading_factor(Q @ np.diag(values) @ Q.T, 3)
    expected = (Q[:, 1:] * values[1:]) @ Q[:, 1:].T / 5.5
    np.testing.assert_allclose(U @ U.T, expected, atol=1e-12)
    assert np.linalg.eigvalsh(leading_factor(np.diag(values), 9).T @ np.diag(values))[0] > 0


def test_the_direction_is_that_of_the_explicit_matrix():
    rng = np.random.default_rng(2)
    slope = rng.standard_normal((4, 2))
    pairs = []
    for _ in range(3):
        change = rng.standard_normal((4, 2))
        pairs.append((change, change + 0.3 * rng.standard_normal((4, 2))))
    last_change, last_bend = (own.ravel() for own in pairs[-1])
    H = np.eye(8) * (last_change @ last_bend) / (last_bend @ last_bend)
    for change, bend in pairs:
        s, y = change.ravel(), bend.ravel()
        turn = np.eye(8) - np.outer(y, s) / (s @ y)
        H = turn.T @ H @ turn + np.outer(s, s) / (s @ y)
    np.testing.assert_allclose(
        quasi_newton_direction(slope, pairs).ravel(), -H @ slope.ravel(), rtol=1e-10
    )
