"""Frank-Wolfe followed by the accelerated method: the boosted algorithm of the paper."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tessella.cones import Point
from tessella.problems import SaddlePoint
from tessella.solvers._result import SolverResult, SolverStatus
from tessella.solvers._run import Callback, StopRun, run_to_end
from tessella.solvers.apd import AcceleratedStage, ProximalRun
from tessella.solvers.frank_wolfe import FrankWolfeStage

FloatArray = NDArray[np.float64]


def hybrid(
    problem: SaddlePoint,
    *,
    tol: float = 1e-3,
    max_iter: int = 2000,
    time_limit: float | None = None,
    parameter0: Point | None = None,
    w0: FloatArray | None = None,
    switch_tol: float = 1e-2,
    n_jobs: int | None = None,
    callback: Callback | None = None,
) -> SolverResult:
    """Run Frank-Wolfe to a coarse gap, then the accelerated primal-dual method.

    Frank-Wolfe is fast as long as its vertices are far apart and slow afterwards, while the
    accelerated method is slow at first and fast later. The run ends with a warm exact SVM at the
    best P.

    Primal: ``min_P max_w κ(w) - ½ wᵀK(P)w``. Dual bound: ``κ(w) - ½ support(D(w))``. Stops
    when the certified relative gap between the two, computed by `problem`, is at most `tol`.

    Parameters
    ----------
    problem : SaddlePoint
        Problem to solve: a bound kernel set and the dual problem of its machines.
    tol : float
        Certified relative gap at which to stop.
    max_iter : int
        Largest number of iterations of both stages together.
    time_limit : float, optional
        Largest number of seconds of both stages together. When it is reached, the best certified
        pair is returned.
    parameter0 : Point, optional
        Feasible parameter to start from. The default is the centre of the feasible set. If the
        parameter is one matrix P, a factor U of P = U Uᵀ with fewer columns than rows is accepted.
    w0 : ndarray of shape (m,), optional
        Dual vector to start from.
    switch_tol : float
        Certified relative gap at which the accelerated method takes over.
    n_jobs : int, optional
        Number of threads. None uses all cores that the process may use.
    callback : callable or Monitor, optional
        Called with each :class:`IterationRecord`, whose time and counts cover both stages.

    Returns
    -------
    SolverResult
        Best certified pair of a parameter and a dual vector.

    Notes
    -----
    An iteration costs what it does in :func:`frank_wolfe`, and later what it does in :func:`apd`.
    The method holds two m × m matrices in addition to those of the kernel set. It is the last
    algorithm of the paper (its "final version of GKL").
    """
    if not switch_tol > 0:
        raise ValueError(f"switch_tol={switch_tol!r} must be positive.")
    P = problem.cone.checked(parameter0)
    run = ProximalRun(
        "hybrid",
        problem,
        tol=tol,
        max_iter=max_iter,
        time_limit=time_limit,
        n_jobs=n_jobs,
        callback=callback,
    )
    return run_to_end(run, lambda _: _solve(run, P, w0, switch_tol))


def _solve(run: ProximalRun, P: Point, w0: FloatArray | None, switch_tol: float) -> SolverStatus:
    try:
        # The matrices of the first stage are freed before the second stage allocates its own.
        FrankWolfeStage(run, P, w0).iterate(until=switch_tol)
        status = AcceleratedStage(run, *run.best).iterate()
    except StopRun as stop:
        if stop.status in (SolverStatus.TIME_LIMIT, SolverStatus.INTERRUPTED):
            raise
        status = stop.status
    P, w = run.best
    K = run.problem.kernels.gram(P, centred=True)
    run.replace(P, run.svm(K, P, w, 0.1 * max(run.tol, 1e-10)).w)
    return SolverStatus.OPTIMAL if run.gap <= run.tol else status
