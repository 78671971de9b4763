"""From a training problem to a fitted state: one run of a solver, and all that watches it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tessella.backend import limit_blas, require_memory
from tessella.estimators._attained import with_attained_value
from tessella.estimators._callbacks import CallbackMonitor
from tessella.estimators._checkpoint import Checkpoint, StartingPoint, fingerprint
from tessella.estimators._early_stopping import ScoreMonitor
from tessella.estimators._problem import TrainingProblem
from tessella.estimators._state import FittedState, fitted_state
from tessella.estimators._warm_start import PreviousFit
from tessella.kernels import BoundKernelSet, KernelSet, varying_columns
from tessella.problems import SaddlePoint
from tessella.progress import ProgressDisplay
from tessella.solvers import (
    Callback,
    Monitors,
    SolverResult,
    TablePrinter,
    parameter_memory,
    run_solver,
    working_memory,
)

FloatArray = NDArray[np.float64]

_MANY_COLUMNS = 256  # of which the parameter and the scaling take noticeable memory
_LARGEST_KERNEL_VALUE = 1e100

StateOf = Callable[[SolverResult], FittedState]

_WIDE_REMEDY = (
    "Use fewer features, a smaller degree of the monomials, or kernels without a matrix for all "
    "features: 'laplace', 'matern', 'gaussian' or a KernelDictionary."
)


@dataclass(frozen=True)
class FitCallbacks:
    """Callbacks that follow a fit from outside.

    Attributes
    ----------
    callback : Callback or None
        A function of the iteration records or a monitor, given by a caller within the library.
    scikit_learn : CallbackMonitor or None
        The callbacks that were set with ``set_callbacks``.
    """

    callback: Callback | None
    scikit_learn: CallbackMonitor | None


def solve_problem(
    estimator: Any,
    problem: TrainingProblem,
    callbacks: FitCallbacks,
    previous: PreviousFit | None,
) -> FittedState:
    """Learn a kernel for all machines of a problem; the estimator gives its parameters only."""
    kernels = estimator._kernel_set()
    require_fit_memory(estimator, kernels, problem)
    checkpoint = _open_checkpoint(estimator, problem, kernels)
    scores = [] if checkpoint is None else checkpoint.scores
    start = checkpoint.start if checkpoint is not None else None
    resumed = start is not None
    if start is None and previous is not None:
        start = previous.starting_point(problem)
    with limit_blas(), fit_display(estimator) as display, _flushed(checkpoint):
        bound, span = _bind(estimator, problem, kernels)
        _require_finite_values(bound)
        if checkpoint is not None:
            checkpoint.span = span
        cone = bound.kernels.cone(len(problem.box.kept))
        if start is not None and resumed:
            start.require_place_in(cone, problem.machines.dual, estimator.checkpoint)
        elif start is not None and not cone.contains(start.parameter):
            start = None  # the parameter of another kernel set means nothing here
        if start is not None and span is not None:
            start = start.with_parameter(span.own(start.parameter))
        if start is not None and not resumed:  # that of a kernel, and not of a run of the solver
            start = start.with_parameter(bound.free_parameter(start.parameter))
        state_of = partial(_state_of, bound, span, problem, deepcopy(bound.kernels), scores)
        scorer = _score_monitor(estimator, problem, state_of, scores)
        fixed = estimator._fixed_parameter(problem, bound)
        if start is not None and fixed is not None:
            start = start.with_parameter(fixed)  # of an earlier fit, only the machines are left
        if callbacks.scikit_learn is not None:
            callbacks.scikit_learn.state_of = state_of
        monitors = [start, display, scorer, checkpoint, callbacks.scikit_learn, callbacks.callback]
        saddle_point = SaddlePoint(bound, problem.machines.dual, fixed)
        spent = time.monotonic() - problem.begun
        result = _run_solver(estimator, saddle_point, start, Monitors(monitors), spent)
    if checkpoint is not None:
        result = checkpoint.finish(result)
    return with_attained_value(state_of(result), result, problem, estimator)


def _state_of(
    bound: BoundKernelSet,
    span: Any,
    problem: TrainingProblem,
    kernels: KernelSet,
    scores: list[float],
    result: SolverResult,
) -> FittedState:
    """The fitted state of the kernel that the result of a solver stands for."""
    parameter = bound.kernel_parameter(result.parameter)
    if span is not None:
        parameter = span.whole(parameter)
    return fitted_state(problem, kernels, scores, replace(result, parameter=parameter))


def _run_solver(
    estimator: Any,
    problem: SaddlePoint,
    start: StartingPoint | None,
    monitor: Monitors,
    spent: float,
) -> SolverResult:
    """Run the solver for what is left of the time limit, after the seconds that were spent."""
    limit = estimator.time_limit
    return run_solver(
        estimator._solver_name(),
        problem,
        tol=estimator.tol,
        max_iter=int(estimator.max_iter),
        time_limit=None if limit is None else max(0.0, limit - spent),
        parameter0=None if start is None else start.parameter,
        w0=None if start is None else start.w,
        n_jobs=estimator.n_jobs,
        callback=monitor,
    )


def _bind(
    estimator: Any, problem: TrainingProblem, kernels: KernelSet
) -> tuple[BoundKernelSet, Any]:
    """The kernel set on the rows of all machines, and the span of the rows that it is bound in."""
    dtype = np.dtype(estimator.precision)
    # Whatever depends on the data is decided by all rows, so that all machines agree on it.
    unit = problem.box.apply(problem.rows.X)
    resolved = kernels.resolve(unit, problem.rows.weight)
    span = resolved.row_span(unit)
    return problem.machines.bind(resolved, unit, dtype, estimator.n_jobs, span), span


def _require_finite_values(bound: BoundKernelSet) -> None:
    """Raise ValueError for a kernel set with values that overflow, or that products overflow."""
    with np.errstate(all="ignore"):
        largest = float(np.abs(bound.centre_diag).max())
    if not largest <= _LARGEST_KERNEL_VALUE:
        raise ValueError(
            f"The kernels of {type(bound.kernels).__name__} have values of {largest:.3g} on the "
            f"training rows, and products with values above {_LARGEST_KERNEL_VALUE:g} overflow. "
            "Check what scales the kernels, such as the parameter balance."
        )


def _open_checkpoint(
    estimator: Any, problem: TrainingProblem, kernels: KernelSet
) -> Checkpoint | None:
    if estimator.checkpoint is None:
        return None
    name, dual = type(estimator).__name__, problem.machines.dual
    mark = fingerprint(name, problem.rows, dual, kernels, problem.box, estimator._rule())
    return Checkpoint(estimator.checkpoint, mark)


def _score_monitor(
    estimator: Any, problem: TrainingProblem, state_of: StateOf, scores: list[float]
) -> ScoreMonitor | None:
    if problem.validation_set is None:
        return None

    def model_of(result: SolverResult) -> Any:
        return state_of(result).fitted_copy(estimator)

    return ScoreMonitor(problem.validation_set, model_of, int(estimator.n_iter_no_change), scores)


def fit_display(estimator: Any) -> Any:
    """A context manager whose value shows the progress of the run, or is None."""
    if estimator.verbose > 1:
        return ProgressDisplay(estimator.tol)
    return nullcontext(TablePrinter() if estimator.verbose else None)


@contextmanager
def _flushed(checkpoint: Checkpoint | None) -> Iterator[None]:
    """Write what a checkpoint has not written yet when a run fails."""
    try:
        yield
    except BaseException:
        if checkpoint is not None:
            checkpoint.flush()
        raise


def require_fit_memory(estimator: Any, kernels: KernelSet, problem: TrainingProblem) -> None:
    """Raise MemoryError, before anything large is allocated, for a fit that cannot succeed."""
    sizes, itemsize = problem.machines.sizes, np.dtype(estimator.precision).itemsize
    n_features, name = len(problem.box.kept), estimator._solver_name()
    needed = kernels.memory_estimate(sum(sizes), n_features, itemsize)
    needed += working_memory(
        name,
        sizes,
        itemsize,
        by_rows=kernels.by_rows,
        smooth=problem.machines.dual.is_smooth,
        cone=kernels.cone_on_rows(len(problem.rows.X), n_features),
    )
    several = f" in {len(sizes)} machines" if len(sizes) > 1 else ""
    wide = 2 * _width_memory(name, kernels, len(problem.rows.X), n_features) > needed
    require_memory(
        needed,
        f"Learning a kernel on {sum(sizes)} rows of {n_features} features{several}",
        _WIDE_REMEDY if wide else estimator._memory_remedy(),
    )


def require_width_memory(estimator: Any, X: FloatArray, weight: FloatArray) -> None:
    """Raise MemoryError for rows that are too wide, before a scaling is fitted to each column.

    Only what every fit with so many features needs is counted here. :func:`require_fit_memory`
    counts everything, once the rows of each machine are known. The scaling of few columns needs
    next to nothing, so that this is soon enough for them.
    """
    if X.shape[1] < _MANY_COLUMNS:
        return
    kernels = estimator._kernel_set()
    keeps = kernels.names_features or kernels.wants_raw_features
    rows = X if (weight > 0).all() else X[weight > 0]
    n_features = X.shape[1] if keeps else int(varying_columns(rows).sum())
    require_memory(
        _width_memory(estimator._solver_name(), kernels, len(rows), n_features),
        f"Learning a kernel on rows of {n_features} features",
        _WIDE_REMEDY,
    )


def _width_memory(name: str, kernels: KernelSet, n_rows: int, n_features: int) -> int:
    """Bytes that a fit needs for its parameter, and for the basis of a single row."""
    return kernels.memory_estimate(1, n_features, 8) + parameter_memory(
        name, kernels.cone_on_rows(n_rows, n_features)
    )
