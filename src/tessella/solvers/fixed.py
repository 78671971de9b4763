"""The solver for a parameter that is given: one SVM with its certificate."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tessella.cones import Point
from tessella.problems import SaddlePoint
from tessella.solvers._result import SolverResult, SolverStatus
from tessella.solvers._run import Callback, Run, run_to_end

FloatArray = NDArray[np.float64]

_ATTEMPTS = 3  # number of SVM solves, each to a tenth of the tolerance of the one before


def fixed(
    problem: SaddlePoint,
    *,
    tol: float = 1e-3,
    max_iter: int = 1000,
    time_limit: float | None = None,
    parameter0: Point | None = None,
    w0: FloatArray | None = None,
    n_jobs: int | None = None,
    callback: Callback | None = None,
) -> SolverResult:
    """Solve the machines of the parameter that `problem` has fixed.

    Nothing is learned: the certified gap is that of the machines with this one kernel.

    Parameters
    ----------
    problem : SaddlePoint
        Problem with a fixed parameter.
    tol : float
        Certified relative gap at which to stop.
    max_iter : int
        Largest number of SVM solves.
    time_limit : float, optional
        Largest number of seconds. When it is reached, the best certified pair is returned.
    parameter0 : Point, optional
        Ignored, because the parameter is that of the problem.
    w0 : ndarray of shape (m,), optional
        Dual vector to start from.
    n_jobs : int, optional
        Number of threads. None uses all cores that the process may use.
    callback : callable or Monitor, optional
        Called with each :class:`IterationRecord`, or a monitor that follows the run.

    Returns
    -------
    SolverResult
        Best certified dual vector with the parameter, where `n_iter` counts the SVM solves.

    Raises
    ------
    ValueError
        If the problem has no fixed parameter.
    """
    del parameter0
    if problem.fixed is None:
        raise ValueError("The solver 'fixed' needs a problem with a fixed parameter.")
    run = Run(
        "fixed",
        problem,
        tol=tol,
        max_iter=max_iter,
        time_limit=time_limit,
        n_jobs=n_jobs,
        callback=callback,
    )
    result = run_to_end(run, lambda run: _solve(run, problem.fixed, w0))
    return replace(result, n_iter=result.n_svm)


def _solve(run: Run, P: Point, w: FloatArray | None) -> SolverStatus:
    for attempt in range(_ATTEMPTS):
        answer = run.svm_at(P, w, run.tol * 0.5 * 0.1**attempt)
        w = run.record(P, answer.w, 0.0).w
    return SolverStatus.STALLED
