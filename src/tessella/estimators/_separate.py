"""Several classes with a kernel for each pair of classes, instead of one kernel for all pairs."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tessella.estimators._layouts import support_to_given
from tessella.estimators._problem import TrainingProblem
from tessella.estimators._solving import FitCallbacks, solve_problem
from tessella.estimators._state import FittedState, combined_state
from tessella.estimators._warm_start import PreviousFit
from tessella.solvers import SolverStatus

FloatArray = NDArray[np.float64]

_LEAST_SECONDS = 1e-3  # for a pair that is due when the time is over


def solve_separately(
    estimator: Any,
    problem: TrainingProblem,
    callbacks: FitCallbacks,
    previous: PreviousFit | None,
) -> FittedState:
    """Learn a kernel for each machine of a problem, one after the other.

    All kernels scale the features in the same way. Once the time is over, or after Ctrl-C, each
    remaining pair gets the first certified answer of its solver.
    """
    limit, count = estimator.time_limit, len(problem.machines)
    deadline = None if limit is None else problem.begun + limit
    # A part is no model of all classes, so the callbacks of scikit-learn do not see it.
    inner = FitCallbacks(callbacks.callback, None)
    parts: list[FittedState] = []
    for k in range(count):
        part = _settings_of_part(estimator, k, deadline, parts)
        start = None if previous is None else previous.of_machine(k, count)
        parts.append(solve_problem(part, problem.of_machine(k), inner, start))
    return _combined(problem, parts)


def _settings_of_part(
    estimator: Any, k: int, deadline: float | None, earlier: Sequence[FittedState]
) -> Any:
    """The parameters of the fit of pair k: a checkpoint of its own, and what is left of limits."""
    part = copy(estimator)
    if estimator.checkpoint is not None:
        part.checkpoint = f"{os.fspath(estimator.checkpoint)}.{k}"
    if deadline is not None:
        part.time_limit = max(_LEAST_SECONDS, deadline - time.monotonic())
    if any(state.status_ == SolverStatus.INTERRUPTED.value for state in earlier):
        part.max_iter = 0
    return part


def _combined(problem: TrainingProblem, parts: Sequence[FittedState]) -> FittedState:
    coefficients = np.vstack(
        [support_to_given(part.support_, part.dual_coef_, problem.n_given) for part in parts]
    )
    if all(part._w_bound is None for part in parts):
        return combined_state(problem, parts, coefficients, None)
    # The coefficients of a pair prove its bound unless it has others for that.
    bounds = [
        own[None] if part._w_bound is None else part._w_bound
        for part, own in zip(parts, coefficients, strict=True)
    ]
    return combined_state(problem, parts, coefficients, np.vstack(bounds))
