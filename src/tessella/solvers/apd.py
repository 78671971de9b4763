"""The accelerated primal-dual method: Algorithms 3 and 4 of the paper, with adaptive steps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigvalsh

from tessella.cones import Point, inner
from tessella.kernels import BoundKernelSet
from tessella.problems import SaddlePoint
from tessella.solvers._result import SolverResult, SolverStatus
from tessella.solvers._run import Callback, Run, StopRun, require_bounds, run_to_end
from tessella.solvers.frank_wolfe import add_scaled

FloatArray = NDArray[np.float64]

_SAFETY = 0.9  # fraction of the largest step that the convergence proof allows
_GROWTH = 1.2  # largest factor by which an accepted step grows
_CAUTION = 0.95  # fraction of the step allowed by the last two points, so that few are rejected
_SHRINK = 0.7  # largest factor by which a rejected step is multiplied
_MAX_REJECTIONS = 20
_FIRST_CHECK = 20  # steps of an epoch before its average is checked by an SVM
_CHECK_SPACING = 0.5  # steps to the next check, as a fraction of the steps of the epoch so far
_RESTART = 0.25  # a restart follows if the gap has fallen to this fraction
_SVM_TOL_MAX = 1e-3
_SVM_TOL_MIN = 1e-12  # the SVM solver cannot always reach a smaller gap
_ROUNDING = 1e-10  # gap below which a check without improvement indicates rounding


def apd(
    problem: SaddlePoint,
    *,
    tol: float = 1e-3,
    max_iter: int = 2000,
    time_limit: float | None = None,
    parameter0: Point | None = None,
    w0: FloatArray | None = None,
    safe_steps: bool = False,
    n_jobs: int | None = None,
    callback: Callback | None = None,
) -> SolverResult:
    """Move P and w together by the accelerated primal-dual method.

    One iteration takes a projected gradient step in P along an extrapolated gradient, then a
    proximal step in w that keeps the whole quadratic term:

        P⁺ = project(P + σ S),    S = (1 + θ) D(w)/2 - θ D(w⁻)/2,    θ = σ⁻/σ
        w⁺ = argmax κ(v) - ½ vᵀK(P⁺)v - (1/2τ) ‖v - w‖²_M

    Primal: ``min_P max_w κ(w) - ½ wᵀK(P)w``. Dual bound: ``κ(w) - ½ support(D(w))``. Stops
    when the certified relative gap between the two, computed by `problem`, is at most `tol`.

    Parameters
    ----------
    problem : SaddlePoint
        Problem to solve: a bound kernel set and the dual problem of its machines.
    tol : float
        Certified relative gap at which to stop.
    max_iter : int
        Largest number of iterations. Every proximal step counts, including rejected ones, and so
        does every exact SVM of a check.
    time_limit : float, optional
        Largest number of seconds. When it is reached, the best certified pair is returned.
    parameter0 : Point, optional
        Feasible parameter to start from. The default is the centre of the feasible set. If the
        parameter is one matrix P, a factor U of P = U Uᵀ with fewer columns than rows is accepted.
    w0 : ndarray of shape (m,), optional
        Dual vector to start from.
    safe_steps : bool
        Whether to use the Euclidean norm of the paper and the constant steps that its theorem
        allows, without restarts. These steps are too short for practical use and are provided for
        comparison only.
    n_jobs : int, optional
        Number of threads. None uses all cores that the process may use.
    callback : callable or Monitor, optional
        Called with each :class:`IterationRecord`, whose `step` is √(στ), or 0 for an exact SVM.

    Returns
    -------
    SolverResult
        Best certified pair of a parameter and a dual vector.

    Notes
    -----
    *Metric.* The theorem holds for any Bregman distance, and it bounds the coupling in that
    distance's norm. The default here is M = K(I), because

        ‖D(v) - D(w)‖_F ≤ ‖v - w‖_K(I) ‖v + w‖_K(I)

    for all v and w. The Lipschitz constant of D/2 is then the size of w, whatever m and n_P, while
    in the Euclidean norm it contains the largest eigenvalue of an ill-conditioned K(I). K(I) may
    be singular; the directions in its null space affect neither P, D, the scores nor the
    certificate. In both metrics the proximal step is an SVM dual in w itself, with the matrix
    K(P) + M/τ and the linear term shifted by Mw/τ. The kink of regression remains ε|w|, and the
    variables do not have to be split.

    *Steps.* σ = sω and τ = s/ω. With weights σ_k and constant ω the proof of convergence requires
    of each step only s ‖D(w⁺) - D(w)‖_F / 2 ≤ ‖w⁺ - w‖_M, which is tested here; s may grow and
    shrink freely otherwise. The next step to be tried is the one that the last two points would
    have allowed.

    *Restarts.* At growing intervals, two exact warm SVM solves certify the weighted average of P
    since the last restart and the current P. If the gap has fallen to a quarter, the iteration
    restarts from the better of the two, and ω moves towards the ratio of the distances that P and
    w have covered.

    The objective is not strongly concave in w for every P, so the modulus μ of the paper is zero
    and its rate O(1/k²) is not claimed. The proved rate is O(1/k) for averages.

    *Cost.* An iteration costs one kernel matrix for a P of any rank, one warm SVM, one gradient of
    O(m · support · n_P) and two eigenproblems of side n_P. The method holds two m × m matrices in
    addition to those of the kernel set, or one with safe steps.
    """
    if safe_steps:
        require_bounds("apd with safe_steps", problem)  # the theorem bounds w by its box
    P = problem.cone.checked(parameter0)
    run = ProximalRun(
        "apd",
        problem,
        tol=tol,
        max_iter=max_iter,
        time_limit=time_limit,
        n_jobs=n_jobs,
        callback=callback,
    )
    return run_to_end(run, lambda _: _solve(run, P, w0, safe_steps))


def _solve(run: ProximalRun, P: Point, w0: FloatArray | None, safe_steps: bool) -> SolverStatus:
    K = run.problem.kernels.gram(P, centred=True)
    w = run.svm(K, P, w0, max(0.1 * run.tol, _SVM_TOL_MIN)).w
    del K
    run.record(P, w, step=0.0)
    return AcceleratedStage(run, P, w, safe_steps=safe_steps).iterate()


class ProximalRun(Run):
    """A run that also solves SVMs whose linear term has been shifted by a proximal step."""

    def proximal_svm(
        self, K: NDArray[Any], linear: FloatArray, w0: FloatArray, tol: float
    ) -> FloatArray:
        """Solve the SVM with another linear term; the solve is counted as in :meth:`svm`."""
        dual = self.problem.dual.with_linear(linear)
        answer, stopped = self._solve_machines(K, dual, w0, tol)
        if stopped is not None:
            raise StopRun(stopped)
        return answer.w


class _Metric(ABC):
    """The matrix M of the norm in which w moves."""

    @abstractmethod
    def times(self, w: FloatArray) -> FloatArray:
        """Return M w."""

    @abstractmethod
    def add_to(self, K: NDArray[Any], scale: float) -> None:
        """Add ``scale * M`` to K in place."""


class _KernelMetric(_Metric):
    """M = K(I), the sum of all kernels of the set."""

    def __init__(self, kernels: BoundKernelSet) -> None:
        self._kernels = kernels
        self._M = kernels.gram(kernels.cone.identity, centred=True)

    def times(self, w: FloatArray) -> FloatArray:
        return self._kernels.times(self._M, w)

    def add_to(self, K: NDArray[Any], scale: float) -> None:
        add_scaled(K, self._M, scale)


class _EuclideanMetric(_Metric):
    """M = I, the choice of the paper."""

    def times(self, w: FloatArray) -> FloatArray:
        return w

    def add_to(self, K: NDArray[Any], scale: float) -> None:
        K.flat[:: len(K) + 1] += K.dtype.type(scale)


@dataclass(frozen=True)
class _Iterate:
    """A pair with the half gradient D(w)/2 and M w."""

    P: Point
    w: FloatArray
    half_gradient: Point
    Mw: FloatArray

    @property
    def size(self) -> float:
        """Norm ‖w‖_M."""
        return _root(float(self.w @ self.Mw))

    @property
    def size_at_least(self) -> float:
        """Norm ‖w‖_M, or its rounding error where that is larger; 1 for w = 0.

        Steps are in units of it, and a kernel matrix in single precision can make zero of it.
        """
        rounding = float(np.finfo(np.float64).eps * np.linalg.norm(self.w))
        return max(self.size, _root(rounding * float(np.linalg.norm(self.Mw)))) or 1.0


class _Average:
    """Weighted averages of P and w over the iterates of an epoch."""

    def __init__(self, start: _Iterate) -> None:
        self._P, self._w, self._weight = 0.0 * start.P, np.zeros(len(start.w)), 0.0
        self.count = 0

    def add(self, iterate: _Iterate, weight: float) -> None:
        self._P = self._P + weight * iterate.P
        self._w += weight * iterate.w
        self._weight += weight
        self.count += 1

    @property
    def pair(self) -> tuple[Point, FloatArray]:
        return self._P / self._weight, self._w / self._weight


class AcceleratedStage:
    """The accelerated iteration from a certified pair, which :meth:`iterate` runs.

    Parameters
    ----------
    run : ProximalRun
        The run that takes the records. It must hold a certified pair already.
    P : Point
        Feasible parameter to start from.
    w : ndarray of shape (m,)
        Dual vector to start from.
    safe_steps : bool
        Whether to use the constant steps of the paper's theorem, without restarts.
    """

    def __init__(
        self, run: ProximalRun, P: Point, w: FloatArray, *, safe_steps: bool = False
    ) -> None:
        self._run = run
        self._problem = run.problem
        self._safe = safe_steps
        kernels = run.problem.kernels
        self._metric: _Metric = _EuclideanMetric() if safe_steps else _KernelMetric(kernels)
        self._K = kernels.gram(P, centred=True)
        self._here = self._at(P, w, run.problem.at(w).gradient)
        if safe_steps:
            self._step, self._balance = _safe_steps(run.problem)
        else:
            size = self._here.size_at_least
            self._step, self._balance = 1.0 / size, run.problem.cone.radius / size
        self._start_epoch()

    def _at(self, P: Point, w: FloatArray, gradient: Point) -> _Iterate:
        return _Iterate(P, w, 0.5 * gradient, self._metric.times(w))

    def _start_epoch(self) -> None:
        self._previous = self._epoch_start = self._here
        self._allowed = np.inf
        self._average = _Average(self._here)
        self._next_check = _FIRST_CHECK
        self._epoch_gap = self._run.gap

    def iterate(self) -> SolverStatus:
        """Iterate until the run is over."""
        while self._advance():
            if self._average.count >= self._next_check and not self._check():
                break
        return SolverStatus.STALLED

    def _advance(self) -> bool:
        """Take one accepted step; return False if it changed nothing."""
        here, last_sigma = self._here, self._step * self._balance
        step = self._proposal()
        for _ in range(_MAX_REJECTIONS):
            there = self._trial(step, last_sigma)
            moved = _root(float((there.w - here.w) @ (there.Mw - here.Mw)))
            turned = _norm(there.half_gradient - here.half_gradient)
            self._allowed = _SAFETY * moved / turned if turned > 0.0 else np.inf
            if self._safe or step <= self._allowed:
                break
            step = min(_SHRINK * step, _CAUTION * self._allowed)
            if step == 0.0:
                return False
        self._previous, self._here, self._step = here, there, step
        self._average.add(there, step)
        return _norm(there.P - here.P) > 0.0 or bool((there.w != here.w).any())

    def _proposal(self) -> float:
        if self._safe:
            return self._step
        return min(_GROWTH * self._step, _CAUTION * self._allowed)

    def _trial(self, step: float, last_sigma: float) -> _Iterate:
        """Return the pair after a step of length √(στ); the pair is certified too."""
        here = self._here
        sigma, tau = step * self._balance, step / self._balance
        theta = last_sigma / sigma
        S = here.half_gradient + theta * (here.half_gradient - self._previous.half_gradient)
        P = self._problem.cone.project(here.P + sigma * S)
        self._problem.kernels.gram(P, centred=True, out=self._K)
        self._metric.add_to(self._K, 1.0 / tau)
        value = abs(self._run.value)
        # The value of the proximal problem is larger by about ‖w‖²/2τ, so its relative tolerance
        # is scaled to keep the absolute accuracy.
        tol = self._svm_tol() * value / (value + 0.5 * here.size**2 / tau)
        linear = self._problem.dual.linear + here.Mw / tau
        w = self._run.proximal_svm(self._K, linear, here.w, max(_SVM_TOL_MIN, tol))
        return self._at(P, w, self._run.record(P, w, step).gradient)

    def _svm_tol(self) -> float:
        return max(_SVM_TOL_MIN, min(_SVM_TOL_MAX, 0.1 * self._run.gap))

    def _check(self) -> bool:
        """Certify the average and the last P, perhaps restart; return False at rounding."""
        before = self._run.gap
        mean_P, mean_w = self._average.pair
        pairs = [self._exact(mean_P, mean_w), self._exact(self._here.P, self._here.w)]
        self._next_check += max(_FIRST_CHECK, int(_CHECK_SPACING * self._average.count))
        gap = self._run.gap
        if not self._safe and gap <= _RESTART * self._epoch_gap:
            self._rebalance(mean_P, mean_w)
            self._here = min(pairs, key=lambda pair: pair[0])[1]
            self._start_epoch()
        return gap > _ROUNDING or gap < before

    def _exact(self, P: Point, w0: FloatArray) -> tuple[float, _Iterate]:
        """Solve the SVM of P exactly; return its certified gap and the pair."""
        self._problem.kernels.gram(P, centred=True, out=self._K)
        w = self._run.svm(self._K, P, w0, self._svm_tol()).w
        point = self._run.record(P, w, step=0.0)
        return point.certificate(P).gap, self._at(P, w, point.gradient)

    def _rebalance(self, P: Point, w: FloatArray) -> None:
        """Move log ω halfway to that of the ratio of the distances that P and w have covered."""
        start = self._epoch_start
        change = w - start.w
        way_P = _norm(P - start.P)
        way_w = _root(float(change @ self._metric.times(change)))
        if way_P > 0.0 and way_w > 0.0:
            self._balance = float(np.sqrt(self._balance * way_P / way_w))


def _safe_steps(problem: SaddlePoint) -> tuple[float, float]:
    """Return √(στ) and √(σ/τ) of the paper's theorem with bounds that hold for every P and w.

    L_aa = r ‖K(I)‖ because K(P) ≤ λ_max(P) K(I), with the largest eigenvalue r that a feasible P
    can have, and L_aP = ‖box‖ ‖K(I)‖, which is C √m ‖K(I)‖ if all samples have the same weight.
    """
    radius, dual = problem.cone.radius, problem.dual
    K = problem.kernels.gram(problem.cone.identity, centred=True)
    norm = float(eigvalsh(K, subset_by_index=[len(K) - 1, len(K) - 1])[0])
    box = float(np.linalg.norm(np.maximum(dual.upper, -dual.lower)))
    tiny = np.finfo(float).tiny
    L_aa, L_aP = max(radius * norm, tiny), max(box * norm, tiny)
    tau, sigma = 1.0 / (3.0 * L_aa), L_aa / (2.0 * L_aP**2)
    return float(np.sqrt(sigma * tau)), float(np.sqrt(sigma / tau))


def _root(square: float) -> float:
    """Return the root of a square that rounding may have made negative."""
    return float(np.sqrt(max(0.0, square)))


def _norm(change: Point) -> float:
    """Return the Frobenius norm of a point."""
    return _root(inner(change, change))
