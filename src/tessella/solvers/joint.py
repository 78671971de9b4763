"""The joint interior point method: dual vector and parameter in one Newton iteration."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tessella.backend import limit_blas
from tessella.cones import Point
from tessella.problems import SaddlePoint
from tessella.solvers._majorant import majorant_start
from tessella.solvers._result import SolverResult, SolverStatus
from tessella.solvers._run import Callback, Run, StopRun, run_to_end
from tessella.solvers.central_path import WholeProblem, inwards, neutral_alpha, state_near
from tessella.solvers.working_set import DEFAULT_SETTINGS, machines_come_first
from tessella.svm import CentralPathState, InteriorPoint

FloatArray = NDArray[np.float64]

_ROUNDING = 1e3  # growth of the merit over its best value that indicates rounding
_FLOOR = 1e-12  # merit below which further steps only change rounding errors


def joint(
    problem: SaddlePoint,
    *,
    tol: float = 1e-3,
    max_iter: int = 100,
    time_limit: float | None = None,
    parameter0: Point | None = None,
    w0: FloatArray | None = None,
    n_jobs: int | None = None,
    callback: Callback | None = None,
) -> SolverResult:
    """Solve for the dual vector and P together by an interior point method.

    The method is one Newton iteration on the optimality conditions of the whole saddle point,
    instead of an SVM solve per step of P. The number of iterations hardly depends on the data, on C
    or on the rank of the optimal P, which makes it the robust choice if O(m³) is affordable.

    Primal: ``min_P max_w κ(w) - ½ wᵀK(P)w``. Dual bound: ``κ(w) - ½ support(D(w))``. Stops
    when the certified relative gap between the two, computed by `problem`, is at most `tol`.
    A warm SVM solve at the final P then sets the samples that are not support vectors to zero.

    Parameters
    ----------
    problem : SaddlePoint
        Problem to solve: a kernel set that is bound in float64, and the dual problem of its
        machines.
    tol : float
        Certified relative gap at which to stop.
    max_iter : int
        Largest number of Newton steps.
    time_limit : float, optional
        Largest number of seconds. When it is reached, the best certified pair is returned.
    parameter0 : Point, optional
        Feasible parameter to start from. The default is the centre of the feasible set, or, for a
        smooth loss and a matrix of 48 or more rows, the parameter of a few machines, which are
        nearly optimal with many features. If the parameter is one matrix P, a factor U of
        P = U Uᵀ with fewer columns than rows is accepted.
    w0 : ndarray of shape (m,), optional
        Dual vector to start from.
    n_jobs : int, optional
        Number of threads of the final SVM solve. None uses all cores that the process may use.
    callback : callable or Monitor, optional
        Called with each :class:`IterationRecord`, whose `step` is the length of the Newton step.

    Returns
    -------
    SolverResult
        Best certified pair of a parameter and a dual vector.

    Notes
    -----
    A step costs one Cholesky factorisation of side m, the kernel matrix for a P of full rank, and
    products of the size m · m · n_P. The method holds about six m × m matrices in float64 and
    typically takes 13 to 40 steps to a gap of 1e-6. The equations are the optimality conditions of
    the paper's problem (its equation for the saddle point), with Nesterov-Todd scaling.
    """
    start = problem.cone.checked(parameter0)
    run = Run(
        "joint",
        problem,
        tol=tol,
        max_iter=max_iter,
        time_limit=time_limit,
        n_jobs=n_jobs,
        callback=callback,
    )
    with limit_blas(n_jobs, problem.dual.size):
        return run_to_end(run, lambda run: _iterate(run, start, w0, resumed=parameter0 is not None))


def _iterate(run: Run, P0: Point, w0: FloatArray | None, *, resumed: bool) -> SolverStatus:
    if resumed and w0 is not None:
        run.record(P0, w0, 0.0)  # keeps the given pair, which the interior start leaves
    if not run.problem.dual.kappa_rises():
        run.record(P0, np.zeros(run.problem.dual.size), 0.0)  # certifies that w = 0 is optimal
    elif run.problem.dual.is_smooth and not resumed and machines_come_first(run.problem.cone):
        majorant_start(run, w0, 0.1 * run.tol)
        if run.gap < DEFAULT_SETTINGS.near_of_many:
            P0, w0 = run.best
    whole = WholeProblem(run.problem)
    method = InteriorPoint(whole, *_start(run.problem, whole, P0, w0))
    best = np.inf
    length = 0.0
    try:
        while True:
            run.record(_feasible(method), method.w, length)
            best = min(best, method.merit)
            length = method.advance()
            run.count_newton()
            rounding = method.merit > _ROUNDING * best or method.merit < _FLOOR
            if length == 0.0 or (best < 1e-6 and rounding):
                raise StopRun(SolverStatus.STALLED)
    except StopRun as stop:
        if stop.status in (SolverStatus.TIME_LIMIT, SolverStatus.INTERRUPTED) or not run.has_answer:
            raise
        # An exact SVM at the final P has a w with exact zeros, and its certificate is free of the
        # rounding in the last interior iterates.
        P, w = run.best
        K = run.problem.kernels.gram(P, centred=True)
        run.replace(P, run.svm(K, P, w, 0.1 * max(run.tol, 1e-10)).w)
        return SolverStatus.OPTIMAL if run.gap <= run.tol else stop.status


def _feasible(method: InteriorPoint) -> Point:
    """Return the parameter of the iterate, scaled to trace one."""
    return method.problem.cone.normalised(method.state.M)


def _start(
    problem: SaddlePoint, whole: WholeProblem, P0: Point, w0: FloatArray | None
) -> tuple[CentralPathState, float]:
    """Return an interior iterate near the given point, and the scale of the scores."""
    M = problem.cone.interior(P0)
    alpha = neutral_alpha(whole, M)
    if w0 is not None:
        # The mean of the given and the neutral vector is interior and still a good start.
        alpha = 0.5 * inwards(whole.halves, problem.dual.feasible(w0)) + 0.5 * alpha
    return state_near(whole, M, alpha)
