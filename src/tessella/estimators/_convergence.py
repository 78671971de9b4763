"""The warning about a fit that stopped before it reached its tolerance."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from tessella.estimators._checkpoint import FINISHED
from tessella.estimators._state import FittedState
from tessella.inspection._summary import LARGEST_USABLE_GAP, is_far_from_optimal
from tessella.solvers import SolverStatus

_LARGE_OFFSET = 1e6  # in deviations of the target

_RESUME = "Fit again with warm_start=True to go on from this model."
_REMEDIES = {
    SolverStatus.MAX_ITER: "Raise max_iter, or accept a larger tol.",
    SolverStatus.TIME_LIMIT: "Raise time_limit, or accept a larger tol.",
    SolverStatus.INTERRUPTED: _RESUME,
    SolverStatus.CALLBACK: _RESUME,
    SolverStatus.VALIDATION: "Raise n_iter_no_change to let the solver run for longer.",
}


def convergence_message(state: FittedState, estimator: Any) -> str:
    """Text of the warning: how far the solver came, and what to do to get further."""
    tol = estimator.tol
    remedy = _remedy(state, estimator)
    if is_far_from_optimal(state.gap_, tol):
        return (
            f"Do not use this model: the {state.solver_} solver stopped ({state.status_}) after "
            f"{state.n_iter_} iterations with a certified relative gap of {state.gap_:.2e}, above "
            f"tol={tol:g}. With a gap above {LARGEST_USABLE_GAP:g}, the model may be far from the "
            f"optimum of its training problem and worse than a constant. {remedy}"
        )
    return (
        f"The {state.solver_} solver stopped ({state.status_}) after {state.n_iter_} iterations "
        f"with a certified relative gap of {state.gap_:.2e}, above tol={tol:g}. The best model "
        f"found is kept. {remedy}"
    )


def _remedy(state: FittedState, estimator: Any) -> str:
    status = SolverStatus(state.status_)
    if estimator.checkpoint is not None and status not in FINISHED:
        path = os.fspath(estimator.checkpoint)
        return f"Fit the same data again to go on from the checkpoint {path}."
    if status is SolverStatus.OUT_OF_MEMORY:
        return str(estimator._memory_remedy())
    if status is SolverStatus.STALLED:
        offset = float(np.abs(state.intercept_).max()) / state._target_scale
        if state.classes_ is None and offset > _LARGE_OFFSET:
            return (
                f"Subtract a constant from y: its offset is {offset:.0e} times its deviation, so "
                "that predictions have few digits left for what was learned."
            )
        precise = "" if estimator.precision == "float64" else "precision='float64', "
        return f"Use {precise}a smaller C or a larger tol."
    return _REMEDIES[status]
