"""First pairs from machines whose kernel is at least every kernel of the set."""

from __future__ import annotations

import numpy as np
import pytest
from solvers.conftest import make_problem
from solvers.test_frank_wolfe import assert_certified
from solvers.test_working_set import ROUNDS, RowsOfRounds

from tessella.solvers import SolverStatus, WorkingSetSettings, joint, working_set
from tessella.solvers._run import Run
from tessella.svm import solve_dual


@pytest.mark.parametrize("n", [2, 8, 24, 40])
@pytest.mark.parametrize("C", [0.1, 1.0, 10.0])
def test_agrees_with_the_joint_method(task, n, C):
    problem = make_problem(task, m=150, n=n, C=C, seed=n)
    result = working_set(problem, tol=1e-6)
    assert result.status is SolverStatus.OPTIMAL
    assert_certified(problem, result)
    assert result.value == pytest.approx(joint(problem, tol=1e-6).value, rel=3e-6)


@pytest.mark.parametrize(("n", "machines"), [(40, 1), (26, 2)])
def test_a_machine_or_two_are_enough_with_many_features(task, n, machines):
    """With a single direction of D(w), the dual vector of the largest kernel is that of P too."""
    problem = make_problem(task, m=150, n=n)
    result = working_set(problem, tol=1e-3)
    assert result.status is SolverStatus.OPTIMAL
    assert (result.n_svm, result.history[-1].n_newton) == (machines, 0)
    assert_certified(problem, result)


def test_the_norm_of_the_function_gives_a_better_parameter(task):
    """Where the first parameter is not near enough, the one that its function asks for is."""
    problem = make_problem(task, m=400, n=24, C=30.0)
    result = working_set(problem, tol=1e-3)
    assert_certified(problem, result)
    first, second = result.history
    assert (result.n_svm, second.n_newton) == (3, 0)
    assert second.gap <= 1e-3 < first.gap < 0.01
    assert result.value == pytest.approx(joint(problem, tol=1e-6).value, rel=1e-3)


def test_rounds_go_on_from_the_pair_of_the_machines(task):
    """The pair is not solved again: the second record is that of the first interior step."""
    problem = make_problem(task, m=150, n=6, C=10.0)
    result = working_set(problem, tol=1e-6)
    first = next(k for k, record in enumerate(result.history) if record.n_newton)
    assert first > 0
    assert result.history[first].n_svm == result.history[first - 1].n_svm
    assert all(record.step == 1.0 for record in result.history[first:])  # the value has fallen
    assert_certified(problem, result)
    assert result.value == pytest.approx(joint(problem, tol=1e-6).value, rel=3e-6)


def test_the_first_pair_with_few_features_is_that_of_the_response(task):
    """The machine of the largest kernel is rough, and that of its response nearly exact."""
    problem = make_problem(task, m=300, n=5)
    cone = problem.cone
    first = working_set(problem, tol=1e-9, max_iter=0)
    assert (first.n_svm, first.history[0].n_newton) == (2, 0)
    largest = solve_dual(problem.kernels.gram(cone.degree * cone.centre), problem.dual, tol=1e-9)
    response = problem.at(largest.w).best_response
    aligned = np.sum(response * first.parameter) / np.sum(response**2)
    assert aligned == pytest.approx(1.0, abs=0.02)
    exact = solve_dual(problem.kernels.gram(first.parameter), problem.dual, tol=1e-9)
    assert exact.primal <= first.value <= exact.primal * (1 + 2e-4)


def test_first_joint_steps_move_a_part_of_many_free_samples():
    """In a regression with a narrow tube most of 700 samples are free."""
    problem, seen = make_problem("regression", m=700, n=4, C=10.0), RowsOfRounds()
    result = working_set(problem, tol=1e-5, callback=seen)
    free = problem.dual.free(result.w).sum()
    assert free > 330
    assert seen.sizes[0] == 300
    assert_certified(problem, result)
    assert result.value == pytest.approx(joint(problem, tol=1e-6).value, rel=2e-5)


def test_the_first_bound_is_that_of_the_largest_kernel(task):
    """With the kernel of degree · centre, the dual value is a lower bound of the optimum."""
    problem = make_problem(task, m=150, n=8)
    cone = problem.cone
    largest = solve_dual(problem.kernels.gram(cone.degree * cone.centre), problem.dual, tol=1e-9)
    first = working_set(problem, tol=1e-12, max_iter=0).history[0]
    assert largest.objective <= first.bound * (1 + 1e-3)
    assert first.bound <= joint(problem, tol=1e-6).value


def test_machines_between_the_response_and_the_centre_lower_the_value():
    problem = make_problem("classification", m=150, n=40, C=10.0)
    history = working_set(problem, tol=1e-9).history
    searched = [record for record in history if record.n_newton == 0]
    assert len(searched) > 2
    assert searched[-1].value < searched[0].value
    assert searched[-1].gap < 0.7 * searched[0].gap
    assert all(0.0 < record.step <= 1.0 for record in searched)


def test_far_machines_leave_the_rounds_to_the_subsample():
    """No pair is near enough, and the first P comes from the joint method on a subsample."""
    problem = make_problem("regression", m=700, n=6, C=10.0)
    result = working_set(problem, tol=1e-4, settings=WorkingSetSettings(near=0.0))
    rounds = working_set(problem, tol=1e-4, settings=ROUNDS)
    assert result.history[0].n_newton == 0
    first = next(record for record in result.history if record.n_newton)
    assert first.n_newton == rounds.history[0].n_newton
    assert result.value == pytest.approx(rounds.value, rel=2e-4)


def test_time_that_ends_in_the_first_machine_leaves_a_certified_pair(task):
    problem = make_problem(task, m=400, n=8)
    result = working_set(problem, time_limit=1e-9)
    assert result.status is SolverStatus.TIME_LIMIT
    assert_certified(problem, result)
    assert np.trace(result.parameter) == pytest.approx(np.trace(problem.cone.centre))


def test_a_limit_after_the_proof_leaves_the_pair_optimal(monkeypatch):
    """The time is over in a machine whose inexact dual vector proves the tolerance."""
    problem, solve = make_problem("classification", m=150, n=40), Run._solve_machines

    def late(self, *arguments):
        answer, stopped = solve(self, *arguments)
        return answer, SolverStatus.TIME_LIMIT if self._n_svm == 2 else stopped

    monkeypatch.setattr(Run, "_solve_machines", late)
    result = working_set(problem, tol=1e-3)
    assert result.gap <= 1e-3
    assert result.status is SolverStatus.OPTIMAL
