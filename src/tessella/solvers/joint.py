"""The joint interior point method: dual vector and parameter in one Newton iteration."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tessella.backend import limit_blas
from tessella.cones import Point
from tessella.problems import SaddlePoint
from tessella.solvers._result import SolverResult, SolverStatus
from tessella.solvers._run import Callback, Run, StopRun, run_to_end
from tessella.solvers.central_path import WholeProblem, inwards, neutral_alpha, state_near
from tessella.svm import CentralPathState, InteriorPoint

FloatArray = NDArray[np.float64]

_ROUNDING = 1e3  # growth of the merit over its best that tells rounding has taken over
_FLOOR = 1e-12  # merit below which steps change nothing but rounding


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
    """Solve for the dual vector and P together, by an interior point method.

    One Newton iteration on the optimality conditions of the whole saddle point, instead of an
    SVM solve per step of P: the number of iterations hardly depends on the data, on C or on the
    rank of the optimal P, which makes it the robust choice wherever m³ is affordable.

    Primal: ``min_P max_w κ(w) - ½ wᵀK(P)w``. Dual bound: ``κ(w) - ½ support(D(w))``. Stops
    when the certified relative gap between the two, computed by `problem`, is at most `tol`.
    A warm SVM solve at the final P then sets the samples that are not support vectors to zero.

    Parameters
    ----------
    problem : SaddlePoint
        Kernel set and SVM. The kernel set has to be bound in float64.
    tol : float
        Relative gap.
    max_iter : int
        Limit on Newton steps.
    time_limit : float, optional
        Seconds; the best certified pair is returned when they are over.
    parameter0 : Point, optional
        Feasible parameter to start from; the centre of the feasible set by default. For one
        positive matrix also a factor U of P = U Uᵀ with fewer columns than rows.
    w0 : ndarray of shape (m,), optional
        Dual vector to start from.
    n_jobs : int, optional
        Threads of the final SVM solve.
    callback : callable, optional
        Called with each :class:`IterationRecord`; `step` is the length of the Newton step.

    Returns
    -------
    SolverResult

    Notes
    -----
    Cost per step: one Cholesky factorisation of side m, the kernel matrix for a P of full rank,
    and products of the size m · m · n_P; about six m × m matrices in float64. Typically 13 to 40
    steps to a gap of 1e-6. The equations are those of the optimality conditions of the paper's
    problem (its equation for the saddle point), with Nesterov-Todd scaling.
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
        run.record(P0, w0, 0.0)  # the path back through the interior must not lose it
    if not run.problem.dual.kappa_rises():
        run.record(P0, np.zeros(run.problem.dual.size), 0.0)  # w = 0 is optimal: that is proved
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
        if stop.status in (SolverStatus.TIME_LIMIT, SolverStatus.INTERRUPTED):
            raise
        # An exact SVM at the final P: its w has exact zeros, and its certificate lacks the
        # rounding that the last interior iterates carry.
        P, w = run.best
        K = run.problem.kernels.gram(P, centred=True)
        run.replace(P, run.svm(K, P, w, 0.1 * max(run.tol, 1e-10)).w)
        return SolverStatus.OPTIMAL if run.gap <= run.tol else stop.status


def _feasible(method: InteriorPoint) -> Point:
    """The iterate's parameter with the exact trace."""
    return method.problem.cone.normalised(method.state.M)


def _start(
    problem: SaddlePoint, whole: WholeProblem, P0: Point, w0: FloatArray | None
) -> tuple[CentralPathState, float]:
    """An interior iterate near the given point, and the scale of the scores."""
    M = problem.cone.interior(P0)
    alpha = neutral_alpha(whole, M)
    if w0 is not None:
        # Half of the given vector, half of the neutral one: near enough to gain by it.
        alpha = 0.5 * inwards(whole.halves, problem.dual.feasible(w0)) + 0.5 * alpha
    return state_near(whole, M, alpha)
