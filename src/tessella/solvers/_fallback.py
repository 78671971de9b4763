"""The solver "auto": a first choice by the size of the problem, and others where it stalls."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tessella.cones import Point
from tessella.problems import SaddlePoint
from tessella.solvers._monitor import Callback, Monitor, Pair, as_monitor
from tessella.solvers._registry import Solver, choose_solver
from tessella.solvers._result import IterationRecord, SolverResult, SolverStatus, continued
from tessella.solvers.hybrid import hybrid
from tessella.solvers.joint import joint
from tessella.solvers.working_set import working_set

FloatArray = NDArray[np.float64]

# Rounding explains a smaller gap, whatever the solver.
_LARGE_GAP = 1e-6
# The other solvers hold matrices of all rows, and a stall with more rows has other reasons.
_MOST_ROWS = 1000


def run_solver(
    name: str,
    problem: SaddlePoint,
    *,
    tol: float,
    max_iter: int,
    time_limit: float | None = None,
    parameter0: Point | None = None,
    w0: FloatArray | None = None,
    n_jobs: int | None = None,
    callback: Callback | None = None,
) -> SolverResult:
    """Solve a problem with the solver of a name; "auto" goes on with others if the first stalls.

    Interior point methods stall on some small problems with a very large C, where methods that
    only solve support vector machines do not, and the other way round. If the first choice of
    "auto" makes no further progress with a gap above 1e-6 on at most 1,000 rows, other solvers go
    on in the time and with the iterations that are left. They start afresh and return nothing
    worse than the pair that is known.

    Parameters
    ----------
    name : str
        Name of a solver, or "auto".
    problem : SaddlePoint
        Problem to solve.
    tol : float
        Certified relative gap at which to stop.
    max_iter : int
        Largest number of iterations of all solvers together.
    time_limit : float, optional
        Largest number of seconds of all solvers together.
    parameter0 : Point, optional
        Feasible parameter that the first solver starts from.
    w0 : ndarray of shape (m,), optional
        Dual vector that the first solver starts from.
    n_jobs : int, optional
        Number of threads. None uses all cores that the process may use.
    callback : callable or Monitor, optional
        Called with each :class:`IterationRecord`, whose time and counts cover all solvers.

    Returns
    -------
    SolverResult
        Best certified pair. Its `solver` is the one that ran last.
    """
    deadline = None if time_limit is None else time.monotonic() + time_limit
    first, monitor = choose_solver(name, problem), as_monitor(callback)
    common: dict[str, Any] = {"tol": tol, "n_jobs": n_jobs}
    result = first(
        problem,
        max_iter=max_iter,
        time_limit=time_limit,
        parameter0=parameter0,
        w0=w0,
        callback=monitor,
        **common,
    )
    for other in _others(name, problem, first):
        left = None if deadline is None else deadline - time.monotonic()
        steps = max_iter - result.n_iter
        if not _is_stalled(result, tol) or steps <= 0 or (left is not None and left <= 0.0):
            break
        answer = other(
            problem,
            max_iter=steps,
            time_limit=left,
            parameter0=None,
            w0=None,
            callback=_Continuation(result, monitor),
            **common,
        )
        result = _joined(result, answer)
    return result


def _is_stalled(result: SolverResult, tol: float) -> bool:
    return result.status is SolverStatus.STALLED and result.gap > max(tol, _LARGE_GAP)


def _others(name: str, problem: SaddlePoint, first: Solver) -> Sequence[Solver]:
    """Return the solvers that "auto" tries after its first choice."""
    if name != "auto" or problem.fixed is not None or problem.dual.size > _MOST_ROWS:
        return ()
    others: list[Solver] = [hybrid]
    if problem.kernels.dtype == np.float64:
        others.append(joint)
    if not problem.dual.is_smooth:
        others.append(working_set)
    return [solver for solver in others if solver is not first]


class _Continuation(Monitor):
    """Presents the run of another solver as the continuation of an earlier one.

    Parameters
    ----------
    earlier : SolverResult
        What is known already.
    monitor : Monitor
        The monitor of the whole run.
    """

    def __init__(self, earlier: SolverResult, monitor: Monitor) -> None:
        self._earlier, self._monitor = earlier, monitor

    def known(self) -> Sequence[Pair]:
        """Return the pairs of the earlier run."""
        own = self._earlier
        return [(own.parameter, own.w), (own.parameter, own.w_bound)]

    def phase(self, text: str) -> None:
        """See :meth:`Monitor.phase`."""
        self._monitor.phase(text)

    def record(
        self, record: IterationRecord, answer: Callable[[], SolverResult]
    ) -> SolverStatus | None:
        """See :meth:`Monitor.record`."""
        (entry,) = continued(self._earlier.history, (record,))[len(self._earlier.history) :]
        return self._monitor.record(entry, lambda: _joined(self._earlier, answer()))


def _joined(earlier: SolverResult, later: SolverResult) -> SolverResult:
    """Return the result of the later run with the history of both."""
    return replace(
        later,
        n_iter=earlier.n_iter + later.n_iter,
        n_svm=earlier.n_svm + later.n_svm,
        history=continued(earlier.history, later.history),
    )
