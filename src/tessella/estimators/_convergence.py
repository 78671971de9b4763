"""The warning about a fit that stopped before it reached its tolerance."""

from __future__ import annotations

import os
from typing import Any

from tessella.estimators._checkpoint import FINISHED
from tessella.estimators._state import FittedState
from tessella.solvers import SolverStatus

_RESUME = "Fit again with warm_start=True to go on from this model."
_REMEDIES = {
    SolverStatus.MAX_ITER: "Raise max_iter, or accept a larger tol.",
    SolverStatus.TIME_LIMIT: "Raise time_limit, or accept a larger tol.",
    SolverStatus.INTERRUPTED: _RESUME,
    SolverStatus.CALLBACK: _RESUME,
    SolverStatus.VALIDATION: "Raise n_iter_no_change to let the solver run for longer.",
    SolverStatus.OUT_OF_MEMORY: "Use precision='float32', another solver or fewer rows.",
    SolverStatus.STALLED: "Use precision='float64', a smaller C or a larger tol.",
}


def convergence_message(state: FittedState, tol: float, checkpoint: Any) -> str:
    """Text of the warning: how far the solver came, and what to do to get further."""
    status = SolverStatus(state.status_)
    remedy = _REMEDIES[status]
    if checkpoint is not None and status not in FINISHED:
        path = os.fspath(checkpoint)
        remedy = f"Fit the same data again to go on from the checkpoint {path}."
    return (
        f"The {state.solver_} solver stopped ({state.status_}) after {state.n_iter_} iterations "
        f"with a certified relative gap of {state.gap_:.2e}, above tol={tol:g}. The best model "
        f"found is kept. {remedy}"
    )
