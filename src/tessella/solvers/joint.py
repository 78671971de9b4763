"""The joint interior point method: dual vector and kernel matrix in one Newton iteration."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tessella.kernels import Sensitivities
from tessella.problems import SaddlePoint
from tessella.solvers._interior_point import (
    Halves,
    InteriorPoint,
    JointProblem,
    JointState,
    Linearisation,
)
from tessella.solvers._result import SolverResult, SolverStatus
from tessella.solvers._run import Callback, Run, StopRun, run_to_end
from tessella.svm import DualProblem

FloatArray = NDArray[np.float64]

_ROUNDING = 1e3  # growth of the merit over its best that tells rounding has taken over
_FLOOR = 1e-12  # merit below which steps change nothing but rounding


def joint(
    problem: SaddlePoint,
    *,
    tol: float = 1e-3,
    max_iter: int = 100,
    time_limit: float | None = None,
    P0: FloatArray | None = None,
    w0: FloatArray | None = None,
    n_jobs: int | None = None,
    callback: Callback | None = None,
) -> SolverResult:
    """Solve for the dual vector and P together, by an interior point method.

    One Newton iteration on the optimality conditions of the whole saddle point, instead of an
    SVM solve per step of P: the number of iterations hardly depends on the data, on C or on the
    rank of the optimal P, which makes it the robust choice wherever m³ is affordable.

    Primal: ``min_P max_w κ(w) - ½ wᵀK(P)w``. Dual bound: ``κ(w) - (n_P/2) λ_max(D(w))``. Stops
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
    P0, w0 : ndarray, optional
        Where to start: a feasible P and a dual vector. Both are moved into the interior.
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
    and products of the size m · m · n_P; about six m × m matrices in float64. Typically 15 to 35
    steps to a gap of 1e-6. The equations are those of the optimality conditions of the paper's
    problem (its equation for the saddle point), with Nesterov-Todd scaling.
    """
    start = problem.parameters.checked(P0)
    run = Run(
        "joint",
        problem,
        tol=tol,
        max_iter=max_iter,
        time_limit=time_limit,
        n_jobs=n_jobs,
        callback=callback,
    )
    return run_to_end(run, lambda run: _iterate(run, start, w0, resumed=P0 is not None))


def _iterate(run: Run, P0: FloatArray, w0: FloatArray | None, *, resumed: bool) -> SolverStatus:
    if resumed and w0 is not None:
        run.record(P0, w0, 0.0)  # the path back through the interior must not lose it
    if not run.problem.dual.kappa_rises():
        run.record(P0, np.zeros(run.problem.dual.size), 0.0)  # w = 0 is optimal: that is proved
    whole = _WholeProblem(run.problem)
    method = InteriorPoint(whole, *_start(run.problem, whole, P0, w0))
    best = np.inf
    length = 0.0
    try:
        while True:
            run.record(_feasible(method), method.w, length)
            best = min(best, method.merit)
            length = method.advance()
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


def _feasible(method: InteriorPoint) -> FloatArray:
    """The iterate's M with the exact trace."""
    M: FloatArray = method.state.M * (method.problem.trace / float(np.trace(method.state.M)))
    return M


class _WholeProblem(JointProblem):
    """The saddle point itself: kernel matrix and sensitivities change with every step."""

    def __init__(self, problem: SaddlePoint) -> None:
        self._kernels = problem.kernels
        self.halves = halves_of(problem.dual)
        self.sum_w = 0.0
        self.trace = float(problem.parameters.side)
        self._rows = np.arange(problem.dual.size)

    def linearise(self, w: FloatArray, M: FloatArray) -> Linearisation:
        moments = self._kernels.moments(w)
        K = self._kernels.gram(M, centred=True)
        inner = moments.sensitivities(np.eye(len(M)), self._rows)
        return Linearisation(
            K=K,
            sensitivities=_Centred(inner),
            scores=K @ w,
            half_gradient=0.5 * moments.gradient,
        )


class _Centred(Sensitivities):
    """Sensitivities of centred scores, to go with a centred kernel matrix."""

    def __init__(self, inner: Sensitivities) -> None:
        self._inner = inner

    def apply(self, M: FloatArray) -> FloatArray:
        scores = self._inner.apply(M)
        centred: FloatArray = scores - scores.mean()
        return centred

    def adjoint(self, v: FloatArray) -> FloatArray:
        return self._inner.adjoint(v - v.mean())

    def gram(self, F: FloatArray) -> FloatArray:
        G = self._inner.gram(F)
        means = G.mean(axis=0)
        G -= means
        G -= (means - means.mean())[:, None]
        return G


def halves_of(dual: DualProblem) -> Halves:
    """The nonnegative halves of a dual vector: those whose bound is not zero."""
    up, down = np.flatnonzero(dual.upper > 0), np.flatnonzero(dual.lower < 0)
    sample = np.concatenate([up, down])
    sign = np.concatenate([np.ones(len(up)), -np.ones(len(down))])
    return Halves(
        sample=sample,
        sign=sign,
        cost=sign * dual.linear[sample] - dual.epsilon[sample],
        upper=np.concatenate([dual.upper[up], -dual.lower[down]]),
        size=dual.size,
    )


def _start(
    problem: SaddlePoint, joint_problem: _WholeProblem, P0: FloatArray, w0: FloatArray | None
) -> tuple[JointState, float]:
    """An interior iterate, and the scale of the scores."""
    halves, side = joint_problem.halves, problem.parameters.side
    M = 0.9 * P0 + 0.1 * problem.parameters.centre
    K = problem.kernels.gram(M, centred=True)
    alpha = _interior_alpha(problem.dual, halves, K)
    if w0 is not None:
        # Half of the given vector, half of the centre: near enough to gain, far enough to move.
        given = halves.sign * problem.dual.feasible(w0)[halves.sample]
        alpha = 0.5 * np.maximum(given, 0.0) + 0.5 * alpha
    w = halves.join(alpha)
    scale = max(float(np.abs(problem.dual.linear).max()), float(np.abs(K @ w).max()), 1e-12)
    half = 0.5 * problem.kernels.gradient(w)
    top = float(np.linalg.eigvalsh(half)[-1])
    xi = max(1.1 * top, float(alpha.max()) * scale * len(alpha) / side)
    state = JointState(
        alpha=alpha,
        M=M,
        zl=np.full(len(alpha), scale),
        zu=scale * float(alpha.max()) / (halves.upper - alpha),
        S=xi * np.eye(side) - half,
        nu=0.0,
        xi=xi,
    )
    return state, scale


def _interior_alpha(dual: DualProblem, halves: Halves, K: FloatArray) -> FloatArray:
    """Half the box for samples with two halves; less for large C where there is only one.

    With one half per sample w cannot vanish, and half the box is far too much when C is nearly
    that of a hard margin: the maximiser of the dual along a balanced ray says how much is not.
    """
    if len(halves.sample) > halves.size:
        return 0.5 * halves.upper
    ray = dual.feasible(np.where(dual.linear > 0, dual.upper, dual.lower))
    box = float(np.abs(ray).max())
    ray = ray / box
    peak = float(np.abs(ray).sum()) / max(1e-300, float(ray @ K @ ray))
    cap = min(0.5 * box, np.sqrt(0.5 * box * peak), 100.0 * peak)
    alpha: FloatArray = np.maximum(np.abs(ray[halves.sample]), 1e-3) * cap
    return np.minimum(alpha, 0.9 * halves.upper)
