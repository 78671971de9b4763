"""Monitors of a run, which show progress, write checkpoints, compute scores or stop the run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from tessella.cones import Point
from tessella.solvers._estimate import Estimate
from tessella.solvers._result import IterationRecord, Round, SolverResult, SolverStatus

FloatArray = NDArray[np.float64]
Pair = tuple[Point, FloatArray]


class Monitor:
    """Base class of objects that follow a run of a solver and are passed as its `callback`.

    A plain function of the record is enough for many purposes. A monitor is also told which phase
    the run is in, can look at the best certified pair at every record, and can give the run pairs
    that are known from an earlier run. No method has to be overridden.
    """

    def known(self) -> Sequence[Pair]:
        """Return pairs (parameter, w) to certify first; the run returns nothing worse than them."""
        return ()

    #: Whether the run should estimate its time, at the cost of a few machines on samples.
    wants_estimate = False

    def estimate(self, estimate: Estimate) -> None:
        """Receive an estimate of the time of a run that is expected to take long."""

    def phase(self, text: str) -> None:
        """Receive a short description of what the run does next."""

    def note(self, text: str) -> None:
        """Receive a fact that users may want to know before a long run begins."""

    def leaf(self, done: int, total: int, answer: Callable[[], SolverResult]) -> None:
        """Receive how many leaves of a pass are done; ``answer()`` has their dual vectors."""

    def passed(self, entry: Round) -> None:
        """Receive what a pass over all leaves has cost."""

    def record(
        self,
        record: IterationRecord,  # noqa: ARG002
        answer: Callable[[], SolverResult],  # noqa: ARG002
    ) -> SolverStatus | None:
        """Receive the record of an iteration, and decide whether the run goes on.

        Parameters
        ----------
        record : IterationRecord
            Bounds, counts and time of the run at this iteration.
        answer : callable
            ``answer()`` is the result that the run would return if it were interrupted now.

        Returns
        -------
        SolverStatus or None
            A reason to stop, or None to go on. A gap within the tolerance takes precedence.
        """
        return None


Callback = Callable[[IterationRecord], None] | Monitor


class Monitors(Monitor):
    """Several monitors as one monitor.

    Every monitor receives every phase and every record, in the order given, and the run stops for
    the first reason that one of them returns. Entries that are None are ignored.
    """

    def __init__(self, callbacks: Iterable[Callback | None]) -> None:
        self._monitors = [as_monitor(callback) for callback in callbacks if callback is not None]

    def known(self) -> Sequence[Pair]:
        """Return the known pairs of all monitors."""
        return [pair for monitor in self._monitors for pair in monitor.known()]

    @property
    def wants_estimate(self) -> bool:  # type: ignore[override]
        """Whether one of the monitors wants an estimate."""
        return any(monitor.wants_estimate for monitor in self._monitors)

    def estimate(self, estimate: Estimate) -> None:
        """See :meth:`Monitor.estimate`."""
        for monitor in self._monitors:
            monitor.estimate(estimate)

    def phase(self, text: str) -> None:
        """See :meth:`Monitor.phase`."""
        for monitor in self._monitors:
            monitor.phase(text)

    def note(self, text: str) -> None:
        """See :meth:`Monitor.note`."""
        for monitor in self._monitors:
            monitor.note(text)

    def leaf(self, done: int, total: int, answer: Callable[[], SolverResult]) -> None:
        """See :meth:`Monitor.leaf`."""
        for monitor in self._monitors:
            monitor.leaf(done, total, answer)

    def passed(self, entry: Round) -> None:
        """See :meth:`Monitor.passed`."""
        for monitor in self._monitors:
            monitor.passed(entry)

    def record(
        self, record: IterationRecord, answer: Callable[[], SolverResult]
    ) -> SolverStatus | None:
        """See :meth:`Monitor.record`."""
        reasons = [monitor.record(record, answer) for monitor in self._monitors]
        return next((reason for reason in reasons if reason is not None), None)


class _Function(Monitor):
    def __init__(self, function: Callable[[IterationRecord], None]) -> None:
        self._function = function

    def record(self, record: IterationRecord, answer: Callable[[], SolverResult]) -> None:  # noqa: ARG002
        self._function(record)


def as_monitor(callback: Callback | None) -> Monitor:
    """Return a monitor for a callback: a monitor itself, a function of the record, or None."""
    if callback is None:
        return Monitor()
    return callback if isinstance(callback, Monitor) else _Function(callback)
