"""Frank-Wolfe first, the accelerated method after it: the paper's boosted algorithm."""

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

    Frank-Wolfe is quick while its vertices are far apart and slow after that; the accelerated
    method is the other way round. A warm exact SVM at the best P ends the run.

    Primal: ``min_P max_w κ(w) - ½ wᵀK(P)w``. Dual bound: ``κ(w) - ½ support(D(w))``. Stops
    when the certified relative gap between the two, computed by `problem`, is at most `tol`.

    Parameters
    ----------
    problem : SaddlePoint
        Kernel set and SVM.
    tol : float
        Relative gap.
    max_iter : int
        Limit on the iterations of both stages together.
    time_limit : float, optional
        Seconds for both; the best certified pair is returned when they are over.
    parameter0 : Point, optional
        Feasible parameter to start from; the centre of the feasible set by default. For one
        positive matrix also a factor U of P = U Uᵀ with fewer columns than rows.
    w0 : ndarray of shape (m,), optional
        Dual vector to start from.
    switch_tol : float
        Gap at which the second stage takes over.
    n_jobs : int, optional
        Threads.
    callback : callable, optional
        Called with each :class:`IterationRecord`; times and counts run through both stages.

    Returns
    -------
    SolverResult

    Notes
    -----
    Cost per iteration: that of :func:`frank_wolfe`, then that of :func:`apd`. Holds two m × m
    matrices beyond the kernel set's own. The paper's last algorithm (its "final version of GKL").
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
        # The first stage's matrices are gone before the second one asks for its own.
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
