"""Bookkeeping shared by all solvers: limits, counts, history and the best certified pair."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tessella.backend import (
    KernelOnDemand,
    MachineForms,
    OutOfTimeError,
    deadline,
    effective_threads,
    limit_blas,
)
from tessella.cones import Point
from tessella.kernels import KernelWorkspace, SharedKernels
from tessella.kernels._base import suitable_form
from tessella.problems import Certificate, DualPoint, SaddlePoint
from tessella.solvers._clock import Forecast, RunClock
from tessella.solvers._monitor import Callback as Callback
from tessella.solvers._monitor import as_monitor
from tessella.solvers._plain import plain_machines
from tessella.solvers._result import IterationRecord, SolverResult, SolverStatus
from tessella.svm import (
    DualProblem,
    DualStatus,
    SmoothDual,
    best_intercepts,
    relative_gap,
    shared_product,
    solve_dual,
    solve_machines,
    whole_matrix,
)

FloatArray = NDArray[np.float64]
Kernels = NDArray[Any] | Iterable[NDArray[Any] | KernelOnDemand] | MachineForms


#: Names of the solvers for losses without bounds, for messages.
UNBOUNDED_SOLVERS = "'newton', 'joint', 'frank-wolfe', 'apd', 'hybrid' and 'simple-mkl'"


_DECOMPOSITIONS = 3  # of a large parameter, between two looks at the clock


class StopRun(Exception):  # noqa: N818 - the end of a run is not an error
    """Raised within a run when it is over, for example when a limit is reached.

    :func:`run_to_end` catches it and returns the best certified pair.

    Parameters
    ----------
    status : SolverStatus
        Reason to report in the result.
    """

    def __init__(self, status: SolverStatus) -> None:
        super().__init__(status.value)
        self.status = status


_STOPPED = {
    DualStatus.TIME_LIMIT: SolverStatus.TIME_LIMIT,
    DualStatus.INTERRUPTED: SolverStatus.INTERRUPTED,
}


@dataclass(frozen=True)
class SvmAnswer:
    """Solution of the support vector machines with a given kernel matrix.

    Attributes
    ----------
    w : ndarray of shape (m,)
        Dual vector.
    residual : ndarray of shape (m,)
        Targets minus scores, ``linear - K w - b``.
    objective : float
        Dual value, summed over all machines.
    """

    w: FloatArray
    residual: FloatArray
    objective: float


class Run:
    """One run of a solver on a problem.

    A solver calls :meth:`svm` for every SVM and :meth:`record` for every iterate. Both raise
    :class:`StopRun` when the run is over, and :meth:`finish` turns the best certified pair into
    a :class:`SolverResult` whatever happened. :func:`run_to_end` executes a solver in this way.

    Parameters
    ----------
    name : str
        Name of the algorithm, for the result and for messages.
    problem : SaddlePoint
        The problem, which certifies every pair.
    tol : float
        Certified relative gap at which the run ends.
    max_iter : int
        Largest number of iterations, as the solver counts them by :meth:`record`.
    time_limit : float or None
        Largest number of seconds.
    n_jobs : int or None
        Number of threads of the SVM solves.
    callback : callable, Monitor or None
        Called with each :class:`IterationRecord`, or a :class:`Monitor` that follows the run.
    is_part : bool, default=False
        Whether the run is a part of another one, which has a first pair of its own.

    Attributes
    ----------
    problem : SaddlePoint
        The problem of the run.
    tol : float
        Relative gap at which the run ends.
    clock : RunClock
        The time of the run.
    """

    def __init__(
        self,
        name: str,
        problem: SaddlePoint,
        *,
        tol: float,
        max_iter: int,
        time_limit: float | None,
        n_jobs: int | None,
        callback: Callback | None,
        is_part: bool = False,
    ) -> None:
        self.problem = problem
        self.tol = tol
        self._name = name
        self._max_iter = max_iter
        self.clock = RunClock(time_limit, problem.cone)
        self.n_jobs = n_jobs
        self._monitor = as_monitor(callback)
        self._forecast = Forecast(self.clock, self._monitor, tol)
        self._history: list[IterationRecord] = []
        self._n_svm = self._svm_iter = self._n_newton = self._least_iterations = 0
        self._best: tuple[Point, FloatArray, Certificate] | None = None
        self._best_point: DualPoint | None = None  # of that pair, where its moments are known
        self._bound = -np.inf
        self._bound_w: FloatArray | None = None
        self._workspace = KernelWorkspace(problem.kernels.dtype)
        self._is_part = is_part

    def begin(self) -> None:
        """Certify the pairs of an earlier run, and stop if no iterations are allowed.

        A run with a time limit that has no such pairs gets one of machines with a fixed kernel.
        """
        known = self._monitor.known()
        if known:
            self._check_start()
        elif not self._is_part:
            self._begin_plainly()
        self._check_start()
        for P, w in known:
            self._keep(P, self.problem.at(w))
        if self.has_answer and self._max_iter == 0:
            raise StopRun(SolverStatus.MAX_ITER)

    def _begin_plainly(self) -> None:
        """Solve machines with a fixed kernel, and tell how long the run may take by their time."""
        if self.clock.deadline is None and not self._monitor.wants_estimate:
            return
        learns = self.problem.fixed is None
        growth = plain_machines(self, with_gradient=learns and self._monitor.wants_estimate)
        seconds = growth.seconds(self.problem.dual.size)
        if self.clock.is_large or self.problem.dual.is_smooth:
            self.clock.machine_seconds = seconds
        self._forecast.by_machines(seconds, self.problem)

    def phase(self, text: str) -> None:
        """Tell the monitor what the run does next."""
        self.clock.begin_phase()
        self._monitor.phase(text)

    def begin_newton_steps(self, rows: int) -> None:
        """Tell the monitor of Newton steps on some rows, and stop if there is no time for one."""
        self.phase(f"joint step on {rows} rows")
        self.clock.begin_newton_steps(rows)
        self.check_time()

    @property
    def svm_iterations(self) -> int:
        """Number of pair steps of all machines so far."""
        return self._svm_iter

    @property
    def has_answer(self) -> bool:
        """Whether the run has a certified pair."""
        return self._best is not None

    @property
    def has_model(self) -> bool:
        """Whether the run has a certified pair that is better than a constant function."""
        return self._best is not None and bool(self._best[1].any())

    @property
    def best(self) -> tuple[Point, FloatArray]:
        """Parameter and dual vector of the best certified pair so far."""
        assert self._best is not None
        return self._best[0], self._best[1]

    @property
    def best_point(self) -> DualPoint:
        """The dual vector of the best certified pair, with its gradient and bound."""
        if self._best_point is None:
            self._best_point = self.problem.at(self.best[1])
        return self._best_point

    @property
    def value(self) -> float:
        """Best certified upper bound of the optimum so far."""
        return np.inf if self._best is None else self._best[2].upper

    @property
    def gap(self) -> float:
        """Best certified relative gap so far."""
        return np.inf if self._best is None else relative_gap(self._best[2].upper, self._bound)

    def svm(
        self,
        K: Kernels,
        P: Point,
        w0: FloatArray | None,
        tol: float,
    ) -> SvmAnswer:
        """Solve the SVM with kernel matrix K from `w0`, within the remaining time of the run.

        K is the matrix of the whole problem, an iterable with the matrix of each machine, or the
        forms of these matrices.
        """
        self.phase(f"SVM {self._n_svm + 1} on {self.problem.dual.size} rows")
        problem = self.problem
        answer, stopped = self._solve_machines(K, problem.dual, w0, tol)
        if stopped is not None:
            # An inexact SVM still proves bounds, and may be better than what is known.
            single = len(problem.dual.starts) == 1 or problem.fixed is not None
            if (single and not self.clock.is_large) or not self.has_answer:
                self._keep(P, problem.at(answer.w))
            raise StopRun(stopped)
        return answer

    def part_on(self, rows: NDArray[np.intp]) -> Run:
        """Return a run on some of the samples, which ends with this one and proves nothing for it.

        Parameters
        ----------
        rows : ndarray of int
            Positions of the samples, ascending. Machines without any of them are left out.
        """
        kernels, dual = self.problem.kernels, self.problem.dual
        return Run(
            self._name,
            SaddlePoint(kernels.subset(rows), dual.restrict(rows)),
            tol=self.tol,
            max_iter=self._max_iter,
            time_limit=self.seconds_left(),
            n_jobs=self.n_jobs,
            callback=None,
            is_part=True,
        )

    def take_counts(self, part: Run) -> None:
        """Count the machines of a part as those of this run, and no longer as those of the part."""
        self._n_svm += part._n_svm
        self._svm_iter += part._svm_iter
        part._n_svm = part._svm_iter = 0

    def solved_apart(
        self,
        K: Kernels,
        dual: DualProblem,
        tol: float,
    ) -> FloatArray:
        """Return the dual vector of the machines on a part of the rows, without counting them.

        When the time of the run is over, it is the best one so far.
        """
        counts = self._n_svm, self._svm_iter
        answer, stopped = self._solve_machines(K, dual, None, tol)
        self._n_svm, self._svm_iter = counts
        if stopped is SolverStatus.INTERRUPTED:
            raise StopRun(stopped)
        return answer.w

    def svm_at(
        self, P: Point, w0: FloatArray | None, tol: float, certified: Point | None = None
    ) -> SvmAnswer:
        """Solve the SVM of a parameter with the form of K(P) that needs least memory.

        Parameters
        ----------
        P : Point
            Parameter.
        w0 : ndarray of shape (m,) or None
            Dual vector to start from.
        tol : float
            Relative duality gap of the SVM at which to stop.
        certified : Point, optional
            Feasible parameter to keep with the dual vector if the run ends here without a
            certified pair. The default is P, which then has to be feasible.

        Returns
        -------
        SvmAnswer

        Raises
        ------
        StopRun
            If the time of the run is over or the run is interrupted.
        """
        self._check_start()
        factors = self.problem.cone.positive_factors(P)
        kept = P if certified is None else certified
        forms = self.problem.kernels.machine_forms(factors)
        if forms is not None and self.problem.dual.is_boxed:
            return self.svm(forms, kept, w0, tol)
        return self.svm(self.problem.kernels.svm_kernels(factors, self._workspace), kept, w0, tol)

    def _solve_machines(
        self,
        K: Kernels,
        dual: DualProblem,
        w0: FloatArray | None,
        tol: float,
    ) -> tuple[SvmAnswer, SolverStatus | None]:
        """Solve the SVM of every machine; also return the reason to stop, if there is one."""
        if isinstance(K, MachineForms):
            return self._solve_forms(K, dual, w0, tol)
        if dual.is_smooth and isinstance(self.problem.kernels, SharedKernels):
            return self._solve_together(K, dual), None
        kernels = _blocks(K, dual) if isinstance(K, np.ndarray) else K
        w = np.zeros(dual.size) if w0 is None else dual.feasible(w0)
        residual, objective = np.zeros(dual.size), 0.0
        self._n_svm += 1
        for machine, rows, own in zip(dual.each, dual.machines, kernels, strict=True):
            solution = solve_dual(
                own,
                machine,
                w0=None if w0 is None else w[rows],
                tol=tol,
                time_limit=self.clock.left_for_machines,
                n_jobs=self.n_jobs,
            )
            self._svm_iter += solution.n_iter
            w[rows] = solution.w
            residual[rows] = solution.gradient - solution.intercept
            objective += solution.objective
            if solution.status in _STOPPED:
                return SvmAnswer(w, residual, objective), _STOPPED[solution.status]
        return SvmAnswer(w, residual, objective), None

    def _solve_forms(
        self, forms: MachineForms, dual: DualProblem, w0: FloatArray | None, tol: float
    ) -> tuple[SvmAnswer, SolverStatus | None]:
        """Solve machines on parts of the same rows in one compiled loop."""
        self._n_svm += 1
        threads = effective_threads(self.n_jobs)
        solution = solve_machines(
            forms,
            dual,
            lambda k: suitable_form(forms.machine(k), self._workspace, threads),
            np.zeros(dual.size) if w0 is None else dual.feasible(w0),
            tol=tol,
            time_limit=self.clock.left_for_machines,
            n_jobs=self.n_jobs,
        )
        self._svm_iter += solution.n_iter
        answer = SvmAnswer(solution.w, solution.residual, solution.objective)
        return answer, _STOPPED.get(solution.status)

    def _solve_together(
        self, K: NDArray[Any] | Iterable[NDArray[Any] | KernelOnDemand], dual: DualProblem
    ) -> SvmAnswer:
        """Solve machines that share their rows and have a smooth loss, by one factorisation."""
        first = K if isinstance(K, np.ndarray) else next(iter(K))
        threads = effective_threads(self.n_jobs)
        matrix = whole_matrix(first, threads)
        self._n_svm += 1
        with limit_blas(threads, len(matrix)):
            answer = SmoothDual(matrix, dual)
            w = dual.feasible(answer.w)
            scores = shared_product(matrix, w)
        residual = answer.residual - answer.intercepts[dual.machine_of]
        return SvmAnswer(w, residual, dual.kappa(w) - 0.5 * float(w @ scores))

    def seconds_left(self) -> float | None:
        """Seconds until the time limit of the run; None without a limit."""
        return self.clock.left

    def record(self, P: Point, w: FloatArray, step: float) -> DualPoint:
        """Certify an iterate, keep it if it is the best, and stop if the run is over.

        Parameters
        ----------
        P : Point
            Feasible parameter.
        w : ndarray of shape (m,)
            Dual vector, which is made feasible first.
        step : float
            Length of the step that led to the iterate, for the history.

        Returns
        -------
        DualPoint
            The dual vector with its gradient, lower bound and best response.

        Raises
        ------
        StopRun
            If the gap is within the tolerance, a limit is reached or a monitor asks to stop.
        """
        return self.record_point(P, self.problem.at(w), step)

    def record_point(self, P: Point, point: DualPoint, step: float) -> DualPoint:
        """Record an iterate like :meth:`record`, with a dual vector whose moments are known."""
        self._check_start()
        self._keep(P, point)
        entry = self._add_record(step)
        self._forecast.revise(self._history)
        reason = self._monitor.record(entry, lambda: self.finish(SolverStatus.INTERRUPTED))
        if self.gap <= self.tol:
            raise StopRun(SolverStatus.OPTIMAL)
        if reason is not None:
            raise StopRun(reason)
        if entry.iteration >= self._max_iter:
            raise StopRun(SolverStatus.MAX_ITER)
        self.check_time()
        return point

    def _add_record(self, step: float) -> IterationRecord:
        entry = IterationRecord(
            iteration=len(self._history),
            time=self.clock.elapsed,
            value=self.value,
            bound=self._bound,
            gap=self.gap,
            step=step,
            n_svm=self._n_svm,
            svm_iter=self._svm_iter,
            n_newton=self._n_newton,
        )
        self._history.append(entry)
        return entry

    def count_svm(self) -> None:
        """Count an SVM that the solver has solved itself, by a linear system."""
        self._n_svm += 1

    def count_first_kernel(self) -> None:
        """Count the search for a first kernel as an iteration if no other one is needed."""
        self._least_iterations = min(1, self._max_iter)

    def count_newton(self, steps: int = 1) -> None:
        """Count Newton steps of the joint method, and take the time of a step."""
        self._n_newton += steps
        self.clock.end_newton_step()

    def check_time(self) -> None:
        """Stop the run if its time is over and it has a certified pair to return."""
        if self.has_answer and self.clock.is_late(_DECOMPOSITIONS):
            raise StopRun(SolverStatus.TIME_LIMIT)

    def _check_start(self) -> None:
        """Stop a run of a large parameter without the time for another step.

        Without a time limit to end early for, or with a smaller parameter, the run gets the
        certificate of its first machine, late as it may be.
        """
        if self.clock.has_long_steps and self.clock.is_late(1):
            if not self.has_answer:
                self.keep_constant()
            raise StopRun(SolverStatus.TIME_LIMIT)

    def keep_constant(self) -> None:
        """Keep the pair that costs nothing, whose bounds are those of a constant function.

        It is a parameter for which nothing was learned, with the dual vector of zeros.
        """
        dual, fixed = self.problem.dual, self.problem.fixed
        w = np.zeros(dual.size)
        intercept, loss = best_intercepts(dual, w)
        self._bound, self._bound_w = dual.kappa(w), w
        P = self.problem.kernels.plain_parameter if fixed is None else fixed
        self._best = (P, w, Certificate(loss, self._bound, intercept))
        self._best_point = None

    def keep_roughly(self, P: Point, w: FloatArray) -> None:
        """Keep a pair with a lower bound that needs no decomposition and no pass over a dictionary.

        The pair is that of a constant function if it would be worse.
        """
        if not self.has_answer:
            self.keep_constant()
        point = self.problem.at(w)
        upper, intercept = point.upper(P)
        bound, w_bound = point.rough_lower()
        if bound > self._bound:
            self._bound, self._bound_w = bound, w_bound
        if upper < self.value:
            self._best = (P, point.w, Certificate(upper, self._bound, intercept))
            self._best_point = point

    def replace(self, P: Point, w: FloatArray) -> bool:
        """Replace the best pair by a sparser one if its certificate is nearly as good.

        The value may grow by a tenth of the tolerance, in exchange for a sparse w.

        Parameters
        ----------
        P : Point
            Feasible parameter.
        w : ndarray of shape (m,)
            Dual vector.

        Returns
        -------
        bool
            Whether the answer was replaced.
        """
        assert self._best is not None
        point, before = self.problem.at(w), self._best[2].upper
        upper, intercept = point.upper(P)
        if not upper <= before + 0.1 * self.tol * abs(before):  # also if it is not a number
            return False
        # Only now, because the lower bound of a dictionary is a pass over all of its kernels.
        met = self.gap <= self.tol
        self.raise_bound(point)
        if met and relative_gap(upper, self._bound) > self.tol:
            return False
        self._best = (P.copy(), point.w.copy(), Certificate(upper, self._bound, intercept))
        self._best_point = point
        return True

    def raise_bound(self, point: DualPoint) -> None:
        """Keep the lower bound of a dual vector if it is the best one so far."""
        if np.isfinite(point.lower) and point.lower > self._bound:
            self._bound, self._bound_w = point.lower, point.w.copy()

    def _keep(self, P: Point, point: DualPoint) -> None:
        """Keep a pair if it is the best one so far; one without finite bounds is no pair."""
        certificate = point.certificate(P)
        self.raise_bound(point)
        if np.isfinite(certificate.upper) and certificate.upper < self.value:
            self._best = (P.copy(), point.w.copy(), certificate)
            self._best_point = point

    def finish(self, status: SolverStatus) -> SolverResult:
        """Return the best certified pair as a result with the given status.

        A limit that ends a run whose pair is within the tolerance has cut nothing short.
        """
        assert self._best is not None
        if status in (SolverStatus.TIME_LIMIT, SolverStatus.MAX_ITER) and self.gap <= self.tol:
            status = SolverStatus.OPTIMAL
        P, w, certificate = self._best
        if not self._history:  # stopped before the first iterate, so there is no record yet
            self._add_record(0.0)
        return SolverResult(
            solver=self._name,
            status=status,
            parameter=P,
            w=w,
            intercept=certificate.intercept,
            value=certificate.upper,
            bound=self._bound,
            n_iter=max(len(self._history) - 1, self._least_iterations),
            n_svm=self._n_svm,
            history=tuple(self._history),
            w_bound=w if self._bound_w is None else self._bound_w,
        )


def _blocks(K: NDArray[Any], dual: DualProblem) -> Iterator[NDArray[Any]]:
    """Yield the matrix of each machine, from a block diagonal or a shared matrix."""
    shared = len(K) * len(dual.starts) == dual.size
    for rows in dual.machines:
        yield K if shared else np.ascontiguousarray(K[rows, rows])


def require_bounds(solver: str, problem: SaddlePoint) -> None:
    """Raise a ValueError if a solver that needs losses with finite bounds has another loss."""
    if not problem.dual.is_boxed:
        names = ", ".join(sorted({type(loss).__name__ for loss in problem.dual.losses}))
        raise ValueError(
            f"The solver {solver!r} needs a loss with finite bounds, such as HingeLoss or "
            f"TubeLoss; got {names}. Use one of the solvers 'auto', {UNBOUNDED_SOLVERS}."
        )


def run_to_end(run: Run, body: Callable[[Run], SolverStatus]) -> SolverResult:
    """Execute the body of a solver and return the best certified pair, however the run ends.

    A KeyboardInterrupt, a MemoryError or a factorisation that fails ends the run like a limit
    does. Before the first certified pair there is nothing to keep, and the exception is passed on;
    so is a KeyboardInterrupt before the first pair that is better than a constant function.

    Parameters
    ----------
    run : Run
        The run.
    body : callable
        ``body(run)`` iterates until the run raises :class:`StopRun`, or returns a
        :class:`SolverStatus` of its own.

    Returns
    -------
    SolverResult
    """
    try:
        with deadline(run.clock.deadline):
            run.begin()
            status = body(run)
    except StopRun as stop:
        status = stop.status
    except OutOfTimeError:
        if not run.has_answer:
            run.keep_constant()
        status = SolverStatus.TIME_LIMIT
    except KeyboardInterrupt:
        status = SolverStatus.INTERRUPTED
    except MemoryError:
        if not run.has_answer:
            raise
        status = SolverStatus.OUT_OF_MEMORY
    except np.linalg.LinAlgError:  # a factorisation of numbers that rounding has spoilt
        if not run.has_answer:
            raise
        status = SolverStatus.STALLED
    if status is SolverStatus.INTERRUPTED and not run.has_model:
        raise KeyboardInterrupt
    if not run.has_answer:
        raise ValueError(
            "The problem has no finite bounds in double precision: its kernel values or its "
            "products with dual vectors overflow. Use a smaller C, or kernels on another scale."
        )
    return run.finish(status)
