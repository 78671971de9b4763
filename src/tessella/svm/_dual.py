"""The solver of the dual problem: compiled pair steps, Newton steps and interior point steps."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tessella import _core
from tessella.backend import KernelOnDemand, effective_threads, limit_blas
from tessella.svm._interior import interior_point
from tessella.svm._low_rank import LowRankMatrix, low_rank
from tessella.svm._newton import FreeKernel, newton_step
from tessella.svm._problem import DualProblem, best_intercept
from tessella.svm._schedule import Effort, Progress, Schedule
from tessella.svm._settings import DualSettings
from tessella.svm._smooth import SmoothDual
from tessella.svm._solution import DualSolution, DualStatus, relative_gap

FloatArray = NDArray[np.float64]


def solve_dual(
    K: NDArray[Any] | KernelOnDemand,
    problem: DualProblem,
    *,
    w0: ArrayLike | None = None,
    tol: float = 1e-6,
    max_iter: int = -1,
    time_limit: float | None = None,
    n_jobs: int | None = None,
    settings: DualSettings | None = None,
) -> DualSolution:
    """Solve the dual problem of a support vector machine for a given kernel matrix.

    The method is sequential minimal optimisation with second-order choice of the working pair.
    It is compiled and releases the global interpreter lock. If the rows of the kernel matrix are
    computed on demand, or if few samples are support vectors, the pair steps are taken in blocks
    of a few hundred samples, and the gradient of all samples follows after each block. Newton
    steps on the free samples alternate with the pair steps once these have taken as long as one
    Newton step. Where both make slow progress (a large `C` and a kernel matrix of low rank, which
    is nearly a linear program), an interior point method takes over for a while: with a factor of
    low rank if the kernel matrix has one, otherwise with the whole matrix of up to 4,000 samples.

    The solver stops when the gap between the primal and the dual value, computed with a gradient
    that is free of accumulated rounding, is at most `tol` times the primal value. It also stops
    at `max_iter`, at `time_limit`, on Ctrl-C (with the status ``INTERRUPTED`` and without an
    exception), and when no step can change w in double precision (``PRECISION``).

    Parameters
    ----------
    K : ndarray of shape (m, m), float32 or float64, or KernelOnDemand
        Symmetric positive semidefinite kernel matrix, or an object that computes its rows when
        they are needed. A matrix that is not C-contiguous is copied unless its transpose is.
        Sums are accumulated in float64 in all cases.
    problem : DualProblem
        A single machine with a piecewise linear loss, such as the hinge loss or the
        ε-insensitive loss, or with a smooth loss without bounds, such as the squared loss. A loss
        with curvature within bounds raises a ValueError.
    w0 : array-like of shape (m,), optional
        Dual vector to start from. It is made feasible first. By default the solver starts from
        zero.
    tol : float, default=1e-6
        Largest gap between the primal and the dual value, relative to the primal value.
    max_iter : int, default=-1
        Largest number of pair steps. A negative number means that there is no limit.
    time_limit : float, optional
        Largest duration in seconds. By default there is no limit.
    n_jobs : int, optional
        Number of threads for rows of the kernel matrix and products with it. See
        :func:`tessella.backend.effective_threads`.
    settings : DualSettings, optional
        Tuned constants of the solver. The defaults are meant for every problem.

    Returns
    -------
    DualSolution
        The dual vector with its bounds of the optimum and the reason why the solver stopped.

    Notes
    -----
    A pair step reads 3m entries of the kernel matrix and takes about 12m operations. In a block
    it takes as many operations for the samples of the block, and each round of steps reads or
    computes one row for each sample that has moved, with several threads. A Newton step takes
    f³/3 operations for f free samples, where f is at most 8,000. Beyond the kernel matrix the
    solver holds O(m + f²) numbers, and during the interior point method O(m²), or O(m r) with a
    factor of rank r. Of a KernelOnDemand only the rows of samples that change are computed, once
    for each block that moves them, except that the interior point method with the whole matrix
    computes all of them.

    With a smooth loss there are no steps: the dual vector is the solution of one linear system,
    by a Cholesky factorisation of m³/3 operations and one more matrix of the size of K. The other
    parameters are not used then.

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
    _check_problem(problem)
    K = _checked_kernel(K, problem.size)
    if not tol >= 0:
        raise ValueError(f"tol={tol!r} must not be negative.")
    if problem.is_smooth:
        return _linear_solution(K, problem, effective_threads(n_jobs), tol)
    w = np.zeros(problem.size) if w0 is None else problem.feasible(w0)
    limits = _Limits(
        tol=float(tol),
        max_iter=int(max_iter),
        deadline=None if time_limit is None else time.monotonic() + time_limit,
        threads=effective_threads(n_jobs),
    )
    solver = _DualSolver(K, problem, w, limits, settings or DualSettings())
    try:
        return solver.alternate()
    except KeyboardInterrupt:
        # The signal came outside of the compiled code: measure the current point.
        return replace(solver.take_pair_steps(0), status=DualStatus.INTERRUPTED)


@dataclass(frozen=True)
class _Limits:
    tol: float
    max_iter: int
    deadline: float | None
    threads: int


class _DualSolver:
    """Pair steps, Newton steps and the interior point method on one point w."""

    def __init__(
        self,
        K: NDArray[Any] | KernelOnDemand,
        problem: DualProblem,
        w: FloatArray,
        limits: _Limits,
        settings: DualSettings,
    ) -> None:
        self._K = K
        self._problem = problem
        self._w = w
        self._gradient = np.empty(problem.size)
        self._gradient_at = w  # the point it belongs to
        self._limits = limits
        self._settings = settings
        self._effort = Effort()
        self._progress = Progress()
        self._factor: LowRankMatrix | None = None  # until it has been used

    def alternate(self) -> DualSolution:
        """Take pair steps and Newton steps in turn until the problem is solved or a limit ends."""
        schedule = self._first_schedule()
        while True:
            solution = self._round(schedule)
            at_floor = solution.status is DualStatus.PRECISION
            last_attempt = at_floor and schedule.newton_enabled
            if last_attempt:
                schedule.give_up_newton()  # after one more Newton step, which may still help
            elif self._limit_reached():
                return self.take_pair_steps(0)  # the same point, with a gradient computed afresh
            elif solution.status is not DualStatus.MAX_ITER:
                return solution
            if self._interior_point_pays():
                self._run_interior_point(solution.objective)
                schedule.after_interior_point()
                continue
            newton_cost = self._newton_cost()
            if schedule.newton_enabled and not schedule.newton_is_due(newton_cost):
                schedule.wait_for_newton(newton_cost)
            elif (schedule.newton_enabled or last_attempt) and self._take_newton_step():
                schedule.after_newton_step(newton_cost)
            elif last_attempt:
                return solution
            else:
                schedule.after_failed_newton_step()

    def _first_schedule(self) -> Schedule:
        if self._w.any():
            return Schedule.warm_start(self._settings, self._newton_cost())
        return Schedule.cold_start(self._settings, self._problem.size)

    def _round(self, schedule: Schedule) -> DualSolution:
        """Take the pair steps of one round and tell the schedule what they have achieved."""
        before = self._effort.pair_steps
        solution = self.take_pair_steps(schedule.pair_step_limit, schedule.gradient_is_known)
        self._progress.update(solution, self._settings)
        schedule.after_pair_steps(self._effort.pair_steps - before, self._progress)
        return solution

    def _limit_reached(self) -> bool:
        return 0 <= self._limits.max_iter <= self._effort.pair_steps

    def _newton_cost(self) -> int:
        """Return the number of pair steps that take about as long as one Newton step."""
        settings, costs = self._settings, self._settings.costs
        free = min(int(self._problem.free(self._w).sum()), settings.max_free)
        gradient = costs.gradient(self._problem.size, free)
        ratio = (costs.newton_step(free) + gradient) / self._pair_step_cost()
        return max(settings.min_pair_steps, int(ratio))

    def _pair_step_cost(self) -> float:
        """Return the estimated duration of a pair step, in a block or of the whole problem.

        The compiled code takes steps in blocks if rows have to be computed, or if all samples
        that move are members of one block.
        """
        size, block = self._problem.size, self._settings.block(self._problem.size)
        computed = isinstance(self._K, KernelOnDemand)
        in_blocks = computed or int(np.count_nonzero(self._w)) <= block
        return self._settings.costs.pair_step(size, block if in_blocks else 0)

    def _take_newton_step(self) -> bool:
        """Move to a better point on the free samples; return whether there was one."""
        free = np.flatnonzero(self._problem.free(self._w))
        if not 2 <= len(free) <= self._settings.max_free or self._ends_before(len(free)):
            return False
        kernel, storage = FreeKernel(self._block(free)), self._K.dtype
        with limit_blas(self._limits.threads, len(free)):
            moved = newton_step(
                kernel, free, self._problem, self._w, self._gradient, storage, self._settings
            )
        if moved is None:
            return False
        self._w = self._problem.feasible(moved)
        self._effort.newton_steps += 1
        return True

    def _ends_before(self, free: int) -> bool:
        """Return whether the limit ends before a Newton step, which cannot be divided."""
        deadline = self._limits.deadline
        if deadline is None:
            return False
        return time.monotonic() + self._settings.costs.newton_step(free) > deadline

    def _interior_point_pays(self) -> bool:
        """Return whether the other steps have been slow enough for the interior point method."""
        size, settings = self._problem.size, self._settings
        return self._low_rank_pays() or self._effort.interior_point_pays(size, settings)

    def _low_rank_pays(self) -> bool:
        """Return whether there is a factor of low rank, not used yet, whose use pays now."""
        size, settings, effort = self._problem.size, self._settings, self._effort
        if self._factor is None and not effort.has_factorised:
            most = max(settings.least_low_rank, size // settings.low_rank_share)
            most = min(most, size // 2, settings.low_rank_entries // size)
            if not effort.low_rank_pays(size, settings.least_rank, settings):
                return False
            if not effort.search_pays(size, most, settings):
                return False
            effort.has_factorised = True
            with limit_blas():  # products of a matrix with vectors are too short for threads
                limits, tol = self._limits, settings.low_rank_tol
                self._factor = low_rank(self._K, most, tol, limits.threads, limits.deadline)
        return self._factor is not None and effort.low_rank_pays(size, self._factor.rank, settings)

    def _run_interior_point(self, objective: float) -> None:
        """Move to the point that the interior point method finds; pair steps finish from there.

        With a factor of low rank, the point may be worse than the current one, whose objective is
        given. The current one is kept then.
        """
        factor, self._factor = self._factor, None
        before = self._w
        tol = self._settings.interior_point_tol * self._limits.tol
        if factor is None:
            tol *= self._settings.interior_point_tol**self._effort.interior_point_runs
        matrix = self._block(None) if factor is None else factor
        with limit_blas(self._limits.threads, self._problem.size):
            found, n_steps = interior_point(
                matrix,
                self._problem,
                before,
                max(self._settings.min_interior_point_tol, tol),
                self._limits.deadline,
            )
        self._effort.add_interior_point_run(n_steps, whole=factor is None)
        if found is None:
            return
        self._w = self._problem.feasible(found)
        if factor is not None and self.take_pair_steps(0).objective < objective:
            self._w = before

    def _block(self, rows: NDArray[np.intp] | None) -> FloatArray:
        """Return the float64 kernel matrix of some samples, or of all for None."""
        if rows is None:
            return whole_matrix(self._K, self._limits.threads)
        if isinstance(self._K, KernelOnDemand):
            return self._K.block(rows, self._limits.threads)
        return self._K[np.ix_(rows, rows)].astype(np.float64, copy=False)

    def take_pair_steps(self, at_most: int, gradient_is_known: bool = False) -> DualSolution:
        """Take pair steps in compiled code; a negative number means no limit.

        A gradient that is known at an earlier point is updated by the samples that moved since;
        otherwise it is computed afresh.
        """
        limits, problem, effort = self._limits, self._problem, self._effort
        left = limits.max_iter - effort.pair_steps if limits.max_iter >= 0 else -1
        counts = [count for count in (at_most, left) if count >= 0]
        until = limits.deadline
        code, n_steps, intercept, objective, primal, violation = _core.solve_dual(
            self._K.native if isinstance(self._K, KernelOnDemand) else self._K,
            problem.linear,
            problem.epsilon,
            problem.lower,
            problem.upper,
            self._w,
            self._gradient,
            limits.tol,
            self._gradient_at if gradient_is_known else None,
            min(counts) if counts else -1,
            self._settings.block(problem.size),
            -1.0 if until is None else max(0.0, until - time.monotonic()),
            limits.threads,
        )
        self._gradient_at = self._w
        effort.add_pair_steps(n_steps, self._pair_step_cost())
        if not (np.isfinite(objective) and np.isfinite(primal)):
            raise ValueError(
                "The bounds of the support vector machine are not finite: the kernel matrix "
                "contains a NaN or an infinity, or its products with dual vectors overflow. Check "
                "the kernel, or use a smaller C."
            )
        return DualSolution(
            w=self._w,
            gradient=self._gradient,
            intercept=intercept,
            objective=objective,
            primal=primal,
            violation=violation,
            n_iter=effort.pair_steps,
            n_newton=effort.newton_steps,
            status=DualStatus(code),
        )


def _check_problem(problem: DualProblem) -> None:
    if len(problem.losses) > 1:
        raise ValueError(
            f"The problem has {len(problem.losses)} machines and one kernel matrix was given. "
            "Solve each machine of problem.each with its own matrix."
        )
    if not (problem.is_boxed or problem.is_smooth):
        raise ValueError(
            f"solve_dual supports losses with finite bounds and without curvature, such as "
            f"HingeLoss and TubeLoss, and losses with curvature and without bounds, such as "
            f"SquaredLoss; got {type(problem.losses[0]).__name__}."
        )


def _linear_solution(
    K: NDArray[Any] | KernelOnDemand, problem: DualProblem, threads: int, tol: float
) -> DualSolution:
    """Solve the dual of a smooth loss without bounds, which is a linear system."""
    matrix = whole_matrix(K, threads)
    with limit_blas(threads, problem.size):
        answer = SmoothDual(matrix, problem)
        w = problem.feasible(answer.w)
        scores = matrix @ w
    energy = 0.5 * float(np.maximum(w @ scores, 0.0))  # which keeps a NaN
    intercept, loss = best_intercept(problem, scores)
    objective, primal = problem.kappa(w) - energy, energy + loss
    # At the optimum the slope of the loss is w, so this is the distance of the two.
    violation = np.abs(problem.linear - scores - intercept - problem.curvature * w).max()
    met = relative_gap(primal, objective) <= tol
    return DualSolution(
        w=w,
        gradient=problem.linear - scores,
        intercept=intercept,
        objective=objective,
        primal=primal,
        violation=float(violation),
        n_iter=0,
        n_newton=1,
        status=DualStatus.OPTIMAL if met else DualStatus.PRECISION,
    )


def whole_matrix(K: NDArray[Any] | KernelOnDemand, threads: int) -> FloatArray:
    """Return a kernel matrix as an array in float64."""
    if isinstance(K, KernelOnDemand):
        return K.block(np.arange(len(K)), threads)
    return K.astype(np.float64, copy=False)


def _checked_kernel(K: NDArray[Any] | KernelOnDemand, size: int) -> NDArray[Any] | KernelOnDemand:
    if isinstance(K, KernelOnDemand):
        if len(K) != size:
            raise ValueError(f"K has {len(K)} rows, expected {size}.")
        return K
    if K.shape != (size, size):
        raise ValueError(f"K has shape {K.shape}, expected ({size}, {size}).")
    if K.dtype not in (np.float32, np.float64):
        raise TypeError(f"K must be float32 or float64, not {K.dtype}.")
    if not K.flags.c_contiguous:
        # K is symmetric, so the transpose of a Fortran-ordered K is the same matrix for free.
        K = K.T if K.flags.f_contiguous else np.ascontiguousarray(K)
    if not np.isfinite(K.diagonal()).all():
        raise ValueError("K contains a NaN or an infinity on its diagonal.")
    return K
