"""The bookkeeping of a run on leaves: limits, history, passes and the best certified answer."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tessella.backend import limit_blas
from tessella.cones import Cone, Point
from tessella.problems import Certificate, LeafEvidence, SumOfLeaves
from tessella.solvers._leaf_pool import LeafPool
from tessella.solvers._leaf_tasks import Wanted, certify_leaf, move_leaf, solve_leaf
from tessella.solvers._monitor import Callback, as_monitor
from tessella.solvers._result import IterationRecord, Round, SolverResult, SolverStatus
from tessella.solvers._run import StopRun
from tessella.svm import relative_gap

FloatArray = NDArray[np.float64]

_NAME = "leaves"
_BEST = ("best", "other best")  # names of dual vectors that attain the value, in turn
_BOUND = "bound"  # name of those that prove the bound


@dataclass(frozen=True)
class LeavesResult:
    """The best certified answer for all leaves; dual vectors stay in the pool.

    Attributes
    ----------
    parameter : Point
        Parameter of the kernel of all leaves.
    best, bound : str
        Names of the dual vectors in the pool that attain the value and that prove the bound.
    intercepts : list of ndarray
        Offsets of the machines of each leaf.
    status : SolverStatus
        Why the run has ended.
    value, lower : float
        Certified bounds of the optimum.
    history : tuple of IterationRecord
        The records.
    rounds : tuple of Round
        What each pass over the leaves has cost.
    """

    parameter: Point
    best: str
    bound: str
    intercepts: list[FloatArray]
    status: SolverStatus
    value: float
    lower: float
    history: tuple[IterationRecord, ...]
    rounds: tuple[Round, ...]

    @property
    def gap(self) -> float:
        """Relative gap between the bounds."""
        return relative_gap(self.value, self.lower)

    @property
    def stacked_intercepts(self) -> FloatArray:
        """Offsets of the machines of all leaves, one after the other."""
        return np.concatenate([np.empty(0), *self.intercepts])


@dataclass(frozen=True)
class StackedLeavesResult(SolverResult):
    """A result with the dual vectors of all leaves, one leaf after the other.

    Attributes
    ----------
    leaves : LeavesResult or None
        The result from which it was made.
    """

    leaves: LeavesResult | None = None


def as_solver_result(result: LeavesResult, pool: LeafPool) -> StackedLeavesResult:
    """Return a result with the dual vectors of all leaves, one leaf after the other.

    It needs memory for two numbers of each sample of all leaves.

    Parameters
    ----------
    result : LeavesResult
        Result of :func:`solve_leaves`.
    pool : LeafPool
        Pool of the leaves, which has the dual vectors.

    Returns
    -------
    StackedLeavesResult
        The same result, as other solvers return it.
    """
    last = result.history[-1]
    return StackedLeavesResult(
        leaves=result,
        solver=_NAME,
        status=result.status,
        parameter=result.parameter,
        w=pool.stacked(result.best),
        intercept=result.stacked_intercepts,
        value=result.value,
        bound=result.lower,
        n_iter=len(result.history) - 1,
        n_svm=last.n_svm,
        history=result.history,
        w_bound=pool.stacked(result.bound),
    )


def n_bytes_of(value: Any) -> int:
    """Return the bytes of the arrays in an object, its attributes and its items."""
    if isinstance(value, type | Enum):  # the members of an enumeration refer to each other
        return 0
    if isinstance(value, np.ndarray):
        return value.nbytes
    if isinstance(value, Enum):
        return 0
    if isinstance(value, dict):
        return sum(map(n_bytes_of, value.values()))
    if isinstance(value, list | tuple):
        return sum(map(n_bytes_of, value))
    if hasattr(value, "__dict__"):
        return sum(map(n_bytes_of, vars(value).values()))
    return 0


@dataclass(frozen=True)
class _Pair:
    """A parameter with dual vectors of the pool, and the value that they attain."""

    value: float
    parameter: Point
    intercepts: list[FloatArray]
    name: str


class LeavesRun:
    """State of a run: the best certified answer, its history, and the clock."""

    def __init__(
        self,
        pool: LeafPool,
        cone: Cone,
        parameter0: Point,
        fixed: bool,
        tol: float,
        max_iter: int,
        time_limit: float | None,
        n_jobs: int | None,
        callback: Callback | None,
    ) -> None:
        self.pool, self.cone, self.fixed = pool, cone, fixed
        self.tol, self.n_jobs = tol, n_jobs
        self._max_iter = max_iter
        self._monitor = as_monitor(callback)
        self._begun = time.monotonic()
        self._deadline = None if time_limit is None else self._begun + time_limit
        self._history: list[IterationRecord] = []
        self._rounds: list[Round] = []
        self._n_svm = self._svm_iter = self._n_newton = 0
        self._plain: list[LeafEvidence] = []
        self._best = _Pair(np.inf, parameter0, [], _BEST[1])
        self._bound = -np.inf

    # ------------------------------------------------------------------------------ the clock

    @property
    def seconds_left(self) -> float | None:
        """Seconds until the limit; None without one."""
        return None if self._deadline is None else max(0.0, self._deadline - time.monotonic())

    @property
    def is_late(self) -> bool:
        """Whether the time is over."""
        return self.seconds_left == 0.0

    def require_time(self, seconds: float) -> None:
        """Stop the run unless there are so many seconds left."""
        left = self.seconds_left
        if left is not None and left <= seconds:
            raise StopRun(SolverStatus.TIME_LIMIT)

    # ---------------------------------------------------------------------------- the answer

    @property
    def gap(self) -> float:
        """Best certified relative gap so far."""
        return relative_gap(self.value, self._bound) if np.isfinite(self.value) else np.inf

    @property
    def value(self) -> float:
        """Best certified upper bound so far."""
        return self._best.value

    def to_end(self, rounds: Callable[[Point], SolverStatus]) -> LeavesResult:
        """Run rounds from the first parameter until a reason to stop; return the best answer."""
        try:
            with limit_blas():
                self._begin()
                status = rounds(self._best.parameter)
        except StopRun as stop:
            status = stop.status
        except KeyboardInterrupt:
            if not self._best.intercepts:
                raise
            status = SolverStatus.INTERRUPTED
        except MemoryError:
            if not self._best.intercepts:
                raise
            status = SolverStatus.OUT_OF_MEMORY
        if status is not SolverStatus.INTERRUPTED and self.gap <= self.tol:
            status = SolverStatus.OPTIMAL
        return self._result(status)

    def _begin(self) -> None:
        """Certify the dual vectors of zeros, and those of an earlier run."""
        self._monitor.phase(f"intercepts of {self.pool.n_leaves} leaves")
        P = self._best.parameter
        total = self._summed("certify", certify_leaf, lambda _: (P,), read="zero", keep=self._plain)
        self.keep(P, total, "zero")
        for number, (known, w) in enumerate(self._monitor.known()):
            self._certify_known(known, w, f"known{number}")
            if number == 0:  # the pair of the best value; the others prove bounds
                self.pool.copy("known0", "w")
        if self._max_iter == 0:
            raise StopRun(SolverStatus.MAX_ITER)

    def _certify_known(self, P: Point, w: FloatArray, name: str) -> None:
        """Certify a pair of an earlier run."""
        self.pool.set_stacked(name, w)
        self._monitor.phase(f"certificate of {self.pool.n_leaves} leaves")
        total = self._summed("certify", certify_leaf, lambda _: (P,), read=name, write=name)
        self.keep(P, total, name)

    def keep(self, P: Point, total: SumOfLeaves, name: str) -> Certificate:
        """Keep a parameter with dual vectors if one of their bounds is the best so far."""
        certificate = total.certificate()
        if np.isfinite(certificate.lower) and certificate.lower > self._bound:
            self.pool.copy(name, _BOUND)
            self._bound = certificate.lower
        if np.isfinite(certificate.upper) and certificate.upper < self.value:
            # Ctrl-C may come at any time: the last pair stays whole until there is another one.
            other = _BEST[self._best.name == _BEST[0]]
            self.pool.copy(name, other)
            self._best = _Pair(certificate.upper, P, total.intercepts, other)
        return certificate

    def record(self, step: float) -> None:
        """Add a record, and stop if the run is over."""
        entry = self._entry(step)
        self._history.append(entry)
        reason = self._monitor.record(entry, self._answer)
        if self.gap <= self.tol:
            raise StopRun(SolverStatus.OPTIMAL)
        if reason is not None:
            raise StopRun(reason)
        if entry.iteration >= self._max_iter:
            raise StopRun(SolverStatus.MAX_ITER)
        if self.is_late:
            raise StopRun(SolverStatus.TIME_LIMIT)

    def _entry(self, step: float) -> IterationRecord:
        return IterationRecord(
            iteration=len(self._history),
            time=time.monotonic() - self._begun,
            value=float(self.value),
            bound=float(self._bound),
            gap=float(self.gap),
            step=float(step),
            n_svm=self._n_svm,
            svm_iter=self._svm_iter,
            n_newton=self._n_newton,
        )

    def _answer(self) -> SolverResult:
        """Return what the run would return now, with the dual vectors of all leaves."""
        return as_solver_result(self._result(SolverStatus.INTERRUPTED), self.pool)

    def _result(self, status: SolverStatus) -> LeavesResult:
        history = self._history or [self._entry(0.0)]
        best = self._best
        return LeavesResult(
            parameter=best.parameter,
            best=best.name,
            bound=_BOUND,
            intercepts=best.intercepts,
            status=status,
            value=float(best.value),
            lower=float(self._bound),
            history=tuple(history),
            rounds=tuple(self._rounds),
        )

    # ---------------------------------------------------------------------------- the passes

    def phase(self, text: str) -> None:
        """Tell the monitor what comes next."""
        self._monitor.phase(text)

    def count_newton(self) -> None:
        """Count a Newton step of the coordinator."""
        self._n_newton += 1

    def _summed(
        self,
        kind: str,
        task: Callable[..., Any],
        arguments: Callable[[int], tuple[Any, ...]],
        *,
        read: str,
        write: str | None = None,
        keep: list[LeafEvidence] | None = None,
    ) -> SumOfLeaves:
        """Run a task that returns evidence on all leaves, and add up what they return."""
        begun, n_bytes = time.monotonic(), 0
        total = SumOfLeaves(self.cone)
        for evidence in self.pool.map(task, arguments, read=read, write=write):
            total.add(evidence)
            n_bytes += n_bytes_of(evidence)
            if keep is not None:
                keep.append(evidence)
        self._count_round(Round(kind, time.monotonic() - begun, n_bytes))
        return total

    def _count_round(self, entry: Round) -> None:
        self._rounds.append(entry)
        self._monitor.passed(entry)

    def certified(self, P: Point, moves: dict[int, tuple[Any, ...]]) -> SumOfLeaves:
        """Return the sum for the dual vectors with other values of some samples."""
        nothing = np.empty(0, dtype=np.intp), np.empty(0)
        self.phase(f"certificate of {self.pool.n_leaves} leaves")
        return self._summed(
            "move", move_leaf, lambda k: (P, *moves.get(k, nothing)), read="w", write="moved"
        )

    def certified_vectors(self, P: Point, name: str) -> SumOfLeaves:
        """Return the sum for the dual vectors of a name."""
        self.phase(f"certificate of {self.pool.n_leaves} leaves")
        return self._summed("certify", certify_leaf, lambda _: (P,), read=name)

    def solved(
        self, P: Point, tol: float, wanted: Callable[[int], Wanted], taken: Callable[..., None]
    ) -> tuple[SumOfLeaves, float]:
        """Solve the machines of all leaves, and return the sum and the dual value.

        Parameters
        ----------
        P : Point
            Parameter.
        tol : float
            Relative gap of the machines.
        wanted : callable
            What each leaf returns beside its bounds.
        taken : callable
            Gets the number of each leaf and its answer.
        """
        self._n_svm += 1
        self.phase(f"SVM {self._n_svm} on {self.pool.n_leaves} leaves")
        total, objective, done, n_bytes = SumOfLeaves(self.cone), 0.0, 0, 0
        begun, stopped = time.monotonic(), None

        def arguments(k: int) -> tuple[Any, ...]:
            return P, tol, self._seconds_of_leaf(self.pool.n_leaves - k), wanted(k)

        try:
            for k, answer in enumerate(self.pool.map(solve_leaf, arguments, write="w")):
                total.add(answer.evidence)
                objective += answer.objective
                self._svm_iter += answer.svm_iter
                stopped = stopped or answer.stopped
                n_bytes += n_bytes_of(answer)
                taken(k, answer)
                done += 1
                if answer.stopped is SolverStatus.INTERRUPTED:  # Ctrl-C within the machines
                    raise KeyboardInterrupt
                self._monitor.leaf(done, self.pool.n_leaves, lambda: self._unfinished(P))
        except KeyboardInterrupt:
            self._keep_part(P, total, done)
            raise
        self._count_round(Round("solve", time.monotonic() - begun, n_bytes))
        if stopped is not None:
            self.keep(P, total, "w")
            raise StopRun(stopped)
        return total, objective

    def _seconds_of_leaf(self, left: int) -> float | None:
        """Return the share of a leaf of the time that is left."""
        seconds = self.seconds_left
        return None if seconds is None else seconds * self.pool.workers / max(1, left)

    def _keep_part(self, P: Point, total: SumOfLeaves, done: int) -> None:
        """Keep the machines of the first leaves, with a constant in each of the others."""
        for k in range(done, self.pool.n_leaves):
            total.add(self._plain[k])
            self.pool.set_vector("w", k, np.zeros(self.pool.sizes[k]))
        self.keep(P, total, "w")

    def _unfinished(self, P: Point) -> SolverResult:
        """Return the parameter of a pass that is not finished, with the dual vectors so far."""
        result = self._result(SolverStatus.INTERRUPTED)
        return SolverResult(
            solver=_NAME,
            status=result.status,
            parameter=P,
            w=self.pool.stacked("w"),
            intercept=result.stacked_intercepts,
            value=result.value,
            bound=result.lower,
            n_iter=len(result.history) - 1,
            n_svm=self._n_svm,
            history=result.history,
            w_bound=self.pool.stacked(_BOUND),
        )

    @property
    def last_pass(self) -> float:
        """Seconds of the last pass over the machines; 0 before the first."""
        return next((own.seconds for own in reversed(self._rounds) if own.kind == "solve"), 0.0)
