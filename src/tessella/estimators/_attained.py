"""The value of a regression as it predicts, where rounding of its predictions matters.

A solver certifies a function of the standardised target. The predictions of the model are numbers
in units of y. If y has a large offset compared to its deviation, these numbers have few digits
left for what was learned, and the value that they attain is larger than the one of the function.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from tessella.estimators._problem import TrainingProblem
from tessella.estimators._state import FittedState
from tessella.solvers import SolverResult, SolverStatus
from tessella.svm import relative_gap

_NEGLIGIBLE = 1e-6  # part of the tolerance that rounding may take without being looked at


def with_attained_value(
    state: FittedState, result: SolverResult, problem: TrainingProblem, estimator: Any
) -> FittedState:
    """Return the state with the value of the predictions, if that is larger than the certified one.

    Parameters
    ----------
    state : FittedState
        The fitted state.
    result : SolverResult
        The answer of the solver, for the standardised target.
    problem : TrainingProblem
        What was solved.
    estimator : estimator
        The estimator, for its parameters.
    """
    if problem.classes is not None or not _rounding_matters(state, problem, estimator.tol):
        return state
    model, rows = state.fitted_copy(estimator), problem.rows
    scores = model._machine_scores(rows.X, estimator.n_jobs)[:, 0]
    residual = (rows.y - (scores + state.intercept_[0])) / problem.target_scale
    energy = 0.5 * max(0.0, float(result.w @ (scores / problem.target_scale)))
    attained = energy + float(problem.machines.dual.sample_losses(residual).sum())
    if attained <= state.objective_:
        return state
    gap = relative_gap(attained, state.lower_bound_)
    missed = state.status_ == SolverStatus.OPTIMAL.value and gap > estimator.tol
    status = SolverStatus.STALLED.value if missed else state.status_
    return replace(state, objective_=attained, gap_=gap, status_=status)


def _rounding_matters(state: FittedState, problem: TrainingProblem, tol: float) -> bool:
    """Whether rounding the predictions could change the value by a part of the tolerance."""
    unit = float(np.spacing(np.abs(problem.rows.y).max())) / problem.target_scale
    dual = problem.machines.dual
    # The slope of a loss is limited by its bounds, or by the weight of a residual of this size.
    residual = np.abs(dual.linear) + 1.0
    steepest = residual / dual.curvature if dual.is_smooth else dual.upper
    return not unit * float(steepest.sum()) <= _NEGLIGIBLE * tol * abs(state.objective_)
