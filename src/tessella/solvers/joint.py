"""The joint interior point method on the whole problem."""

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
from tessella.solvers._run import Callback, Run, run_to_end
from tessella.svm import DualProblem

FloatArray = NDArray[np.float64]


class _Centred(Sensitivities):
    """Sensitivities of centred scores: what the intercept cannot absorb."""

    def __init__(self, inner: Sensitivities) -> None:
        self._inner = inner

    def apply(self, M: FloatArray) -> FloatArray:
        scores = self._inner.apply(M)
        return scores - scores.mean()

    def adjoint(self, v: FloatArray) -> FloatArray:
        return self._inner.adjoint(v - v.mean())

    def gram(self, F: FloatArray) -> FloatArray:
        G = self._inner.gram(F)
        means = G.mean(axis=0)
        G -= means
        G -= means[:, None]
        G += means.mean()
        return G


class _WholeProblem(JointProblem):
    """The saddle point itself: kernel matrix and sensitivities change with every step."""

    def __init__(self, problem: SaddlePoint) -> None:
        self._kernels = problem.kernels
        self.halves = halves_of(problem.dual)
        self.sum_w = 0.0
        self.trace = float(problem.parameters.side)
        self._all = np.arange(problem.dual.size)

    def linearise(self, w: FloatArray, M: FloatArray) -> Linearisation:
        moments = self._kernels.moments(w)
        K = self._kernels.gram(M, centred=True)
        inner = moments.sensitivities(np.eye(len(M)), self._all)
        return Linearisation(
            K=K,
            sensitivities=_Centred(inner),
            scores=K @ w,
            half_gradient=0.5 * moments.gradient,
        )


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


def _start(problem: SaddlePoint, joint: _WholeProblem) -> tuple[JointState, float]:
    halves, side = joint.halves, problem.parameters.side
    M = np.eye(side)
    K = problem.kernels.gram(M, centred=True)
    both = halves.total(np.ones(len(halves.sample))) > 1
    alpha = 0.5 * halves.upper
    if not both.all():
        # Half the box is far too large when C is: stop at the maximiser along a balanced ray.
        ray = problem.dual.feasible(np.where(problem.dual.linear > 0, problem.dual.upper, problem.dual.lower))
        peak = float(np.abs(ray).max())
        ray = ray / peak
        t = float(np.abs(ray).sum()) / max(1e-300, float(ray @ K @ ray))
        C = float(halves.upper.max())
        cap = min(0.5 * C, np.sqrt(0.5 * C * t), 100.0 * t)
        size = np.maximum(np.abs(ray)[halves.sample], 1e-3) * cap
        alpha = np.minimum(size, 0.9 * halves.upper)
    w = halves.join(alpha)
    scale = max(float(np.abs(problem.dual.linear).max()), float(np.abs(K @ w).max()), 1e-12)
    zl = np.full(len(alpha), scale)
    zu = scale * float(alpha.max()) / (halves.upper - alpha)
    half = 0.5 * problem.kernels.gradient(w)
    top = float(np.linalg.eigvalsh(half)[-1])
    xi = max(1.1 * top, float(alpha.max()) * scale * len(alpha) / side)
    return JointState(alpha, M, zl, zu, xi * np.eye(side) - half, 0.0, xi), scale


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
    run = Run("joint", problem, tol=tol, max_iter=max_iter, time_limit=time_limit, n_jobs=n_jobs, callback=callback)

    def body(run: Run) -> SolverStatus:
        whole = _WholeProblem(problem)
        method = InteriorPoint(whole, *_start(problem, whole))
        length = 0.0
        best = np.inf
        while True:
            M = method.state.M * (whole.trace / np.trace(method.state.M))
            run.record(M, method.w, length)
            best = min(best, method.merit)
            length = method.advance()
            if length == 0.0 or (method.merit > 1e3 * best and best < 1e-6):
                return SolverStatus.STALLED

    return run_to_end(run, body)
