"""Python face of the compiled dual solver."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tessella import _core
from tessella.backend import KernelOnDemand, effective_threads, limit_blas
from tessella.svm._interior import STEPS, interior_point
from tessella.svm._newton import MAX_FREE, newton_step
from tessella.svm._problem import DualProblem

FloatArray = NDArray[np.float64]


class DualStatus(Enum):
    """How a run of :func:`solve_dual` ended."""

    OPTIMAL = 0
    MAX_ITER = 1
    TIME_LIMIT = 2
    INTERRUPTED = 3
    PRECISION = 4


@dataclass(frozen=True)
class DualSolution:
    """Answer of :func:`solve_dual`.

    Attributes
    ----------
    w : ndarray of shape (m,)
        Feasible dual vector, whatever the status.
    gradient : ndarray of shape (m,)
        ``linear - K @ w``: the residual of each sample before the intercept.
    intercept : float
        Offset b minimising the primal for this w.
    objective, primal : float
        Dual and primal values; the optimum lies between them.
    violation : float
        Largest violation of the optimality conditions (0 at the optimum).
    n_iter, n_newton : int
        Pair steps and Newton steps taken.
    status : DualStatus
        Why the solver stopped.
    """

    w: FloatArray
    gradient: FloatArray
    intercept: float
    objective: float
    primal: float
    violation: float
    n_iter: int
    n_newton: int
    status: DualStatus

    @property
    def gap(self) -> float:
        """Primal minus dual value, relative to the primal."""
        return relative_gap(self.primal, self.objective)


def relative_gap(upper: float, lower: float) -> float:
    """``(upper - lower) / |upper|``; 0 when the two agree, whatever their size."""
    difference = max(0.0, upper - lower)
    return difference / max(abs(upper), np.finfo(float).tiny) if difference else 0.0


def solve_dual(
    K: NDArray[Any] | KernelOnDemand,
    problem: DualProblem,
    *,
    w0: ArrayLike | None = None,
    tol: float = 1e-6,
    max_iter: int = -1,
    time_limit: float | None = None,
    n_jobs: int | None = None,
) -> DualSolution:
    """Solve the SVM dual for a kernel matrix.

    Sequential minimal optimisation with second-order choice of the working pair, compiled and
    free of the GIL, alternating with Newton steps on the free samples once pair steps alone have
    cost as much as one. Where both creep (C large, K of low rank: nearly a linear program) an
    interior point method takes over for a while, up to 4,000 samples. Stops when the primal-dual
    gap, computed on a gradient free of accumulated rounding, is at most `tol` times the primal
    value; on `max_iter`; on `time_limit`; on Ctrl-C (status ``INTERRUPTED``, no exception); or
    when no step can change w in double precision (``PRECISION``).

    Parameters
    ----------
    K : ndarray of shape (m, m), float32 or float64, or KernelOnDemand
        Symmetric positive semidefinite, C-contiguous; or one whose rows are computed as they are
        needed. Accumulation is float64 in all cases.
    problem : DualProblem
        Labels or targets, box and tube.
    w0 : array-like of shape (m,), optional
        Warm start; made feasible first. Zero by default.
    tol : float
        Relative duality gap.
    max_iter : int
        Limit on pair steps; negative for none.
    time_limit : float, optional
        Seconds.
    n_jobs : int, optional
        Threads for the products with K; see :func:`tessella.backend.effective_threads`.

    Returns
    -------
    DualSolution

    Notes
    -----
    A pair step reads 3m entries of K and costs about 12m flops; a Newton step f³/3 flops for f
    free samples. The solver holds O(m + f²) numbers beyond K, with f at most 8000. Of a
    KernelOnDemand only the rows of samples that ever move are computed.

    Examples
    --------
    >>> import numpy as np
    >>> from tessella.svm import DualProblem, solve_dual
    >>> x = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    >>> problem = DualProblem.classification([-1, -1, 1, 1], C=10.0)
    >>> answer = solve_dual(x @ x.T, problem)
    >>> answer.w.round(6).tolist()
    [0.0, -0.5, 0.5, 0.0]
    """
    if not problem.is_boxed:
        raise ValueError("The loss has curvature or no bounds; solve_dual supports neither.")
    if len(problem.starts) > 1:
        raise ValueError(f"One kernel matrix for {len(problem.starts)} machines: solve each.")
    if isinstance(K, KernelOnDemand):
        if len(K) != problem.size:
            raise ValueError(f"K has {len(K)} rows, expected {problem.size}.")
    else:
        K = _checked_kernel(K, problem.size)
    if not tol >= 0:
        raise ValueError(f"tol={tol!r} must not be negative.")
    w = np.zeros(problem.size) if w0 is None else problem.feasible(w0)
    limits = _Limits(
        tol=float(tol),
        max_iter=int(max_iter),
        deadline=None if time_limit is None else time.monotonic() + time_limit,
        threads=effective_threads(n_jobs),
    )
    return _Alternation(K, problem, w, limits).run()


_IDLE_ROUNDS = 20
_MAX_INTERIOR = 4000  # samples up to which the interior point method is affordable: 10 s
_MAX_RESCUES = 3
_LEAST_BUDGET = 200  # pair steps between two looks at the whole


@dataclass(frozen=True)
class _Limits:
    tol: float
    max_iter: int
    deadline: float | None
    threads: int


class _Alternation:
    """Pair steps and Newton steps in turn, each given about the same time."""

    def __init__(
        self,
        K: NDArray[Any] | KernelOnDemand,
        problem: DualProblem,
        w: FloatArray,
        limits: _Limits,
    ) -> None:
        self._K = K
        self._problem = problem
        self._w = w
        self._gradient = np.empty(problem.size)
        self._limits = limits
        self._n_iter = self._n_newton = 0
        self._rescues = 0
        self._paid_for = (0, 0)  # pair and Newton steps up to the last rescue

    def run(self) -> DualSolution:
        try:
            return self._alternate()
        except KeyboardInterrupt:
            # Python was in charge when the signal came: measure where we are and say so.
            return replace(self._pair_steps(0), status=DualStatus.INTERRUPTED)

    def _alternate(self) -> DualSolution:
        # `worth` is what a Newton step may cost, in units of the pair steps before it. A warm start
        # mostly has its support and gets one early; a cold one has to find it first.
        warm = bool(self._w.any())
        budget = max(_LEAST_BUDGET, self._newton_cost() // 8 if warm else self._problem.size)
        spent, worth, resumed = 0, 10.0 if warm else 1.0, False
        newton_works = True
        gap, value, idle = np.inf, -np.inf, 0
        while True:
            before = self._n_iter
            pairs = self._pair_steps(budget if newton_works else -1, resumed)
            spent += self._n_iter - before
            risen = pairs.objective > value + 1e-14 * abs(pairs.objective)
            idle = 0 if risen or pairs.gap < 0.9 * gap else idle + 1
            gap, value = min(gap, pairs.gap), max(value, pairs.objective)
            if idle >= _IDLE_ROUNDS:
                newton_works = False  # at the rounding floor, which pair steps alone can tell
            over_limit = 0 <= self._limits.max_iter <= self._n_iter
            if pairs.status is DualStatus.PRECISION and newton_works:
                newton_works = False  # one Newton step may still help; then it is final
            elif over_limit:
                return self._pair_steps(0)  # the same point, its gradient computed afresh
            elif pairs.status is not DualStatus.MAX_ITER:
                return pairs
            if self._is_creeping():
                self._rescue()
                spent, budget, resumed = 0, _LEAST_BUDGET, False
                continue
            cost = self._newton_cost()
            if newton_works and cost > worth * spent:
                budget, resumed = max(_LEAST_BUDGET, int(cost / worth) - spent), True
                continue
            resumed = False
            moved = None
            if newton_works or pairs.status is DualStatus.PRECISION:
                moved = self._newton_step()
            if moved is None:
                if pairs.status is DualStatus.PRECISION:
                    return pairs
                budget *= 4  # the support is not settled yet
            else:
                self._w = self._problem.feasible(moved)
                self._n_newton += 1
                budget, spent, worth = cost, 0, 1.0

    def _newton_step(self) -> FloatArray | None:
        free = np.flatnonzero(self._problem.free(self._w))
        K, threads = self._K, self._limits.threads
        if not 2 <= len(free) <= MAX_FREE:
            return None
        if isinstance(K, KernelOnDemand):
            block = K.block(free, threads)
        else:
            block = K[np.ix_(free, free)].astype(np.float64, copy=False)
        with limit_blas(threads, len(free)):
            return newton_step(block, free, self._problem, self._w, self._gradient, K.dtype)

    def _is_creeping(self) -> bool:
        """Whether an interior point method would have been done by now."""
        m = self._problem.size
        if self._rescues == _MAX_RESCUES or m > _MAX_INTERIOR:
            return False
        price = STEPS * (1e-8 * m**2 + 2e-11 * m**3)
        steps, newton_steps = self._n_iter - self._paid_for[0], self._n_newton - self._paid_for[1]
        paid = steps * _pair_seconds(m) + newton_steps * _newton_seconds(m // 4)
        return paid > 0.5 * price

    def _rescue(self) -> None:
        """Leave a nearly linear program to the interior point method; pair steps finish it."""
        self._rescues += 1
        K, threads, m = self._K, self._limits.threads, self._problem.size
        if isinstance(K, KernelOnDemand):
            matrix = K.block(np.arange(m), threads)
        else:
            matrix = K.astype(np.float64, copy=False)
        with limit_blas(threads, m):
            exactness = max(1e-9, 0.1**self._rescues * self._limits.tol)
            found, n_steps = interior_point(
                matrix, self._problem, self._w, exactness, self._limits.deadline
            )
        if found is not None:
            self._w = self._problem.feasible(found)
        self._n_newton += n_steps
        self._paid_for = (self._n_iter, self._n_newton)

    def _newton_cost(self) -> int:
        """Pair steps that take about as long as one Newton step."""
        m = self._problem.size
        f = min(int(self._problem.free(self._w).sum()), MAX_FREE)
        return max(_LEAST_BUDGET, int(_newton_seconds(f) / _pair_seconds(m)))

    def _pair_steps(self, budget: int, resumed: bool = False) -> DualSolution:
        limits, p = self._limits, self._problem
        left = limits.max_iter - self._n_iter if limits.max_iter >= 0 else -1
        counts = [count for count in (budget, left) if count >= 0]
        until = limits.deadline
        code, n_iter, intercept, objective, primal, violation = _core.solve_dual(
            self._K.native if isinstance(self._K, KernelOnDemand) else self._K,
            p.linear,
            p.epsilon,
            p.lower,
            p.upper,
            self._w,
            self._gradient,
            limits.tol,
            resumed,
            min(counts) if counts else -1,
            -1.0 if until is None else max(0.0, until - time.monotonic()),
            limits.threads,
        )
        self._n_iter += n_iter
        return DualSolution(
            w=self._w,
            gradient=self._gradient,
            intercept=intercept,
            objective=objective,
            primal=primal,
            violation=violation,
            n_iter=self._n_iter,
            n_newton=self._n_newton,
            status=DualStatus(code),
        )


def _newton_seconds(free: int) -> float:
    return 5e-4 + 1e-8 * free**2 + 2e-11 * free**3


def _pair_seconds(size: int) -> float:
    return 1e-7 + 1e-9 * size


def _checked_kernel(K: NDArray[Any], size: int) -> NDArray[Any]:
    if K.shape != (size, size):
        raise ValueError(f"K has shape {K.shape}, expected ({size}, {size}).")
    if K.dtype not in (np.float32, np.float64):
        raise TypeError(f"K must be float32 or float64, not {K.dtype}.")
    if not K.flags.c_contiguous:
        # K is symmetric, so the transpose of a Fortran-ordered one is the same matrix for free.
        K = K.T if K.flags.f_contiguous else np.ascontiguousarray(K)
    if not np.isfinite(K.diagonal()).all():
        raise ValueError("K holds a NaN or an infinity on its diagonal.")
    return K
