"""What goes on around a run: progress, checkpoints, scores, and reasons to stop."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from tessella.cones import Point
from tessella.solvers._result import IterationRecord, SolverResult, SolverStatus

FloatArray = NDArray[np.float64]
Pair = tuple[Point, FloatArray]


class Monitor:
    """Follows a run of a solver; pass one as its `callback`.

    A plain function of the record is enough for many purposes. A monitor also learns which phase
    the run is in, can look at the best certified pair at every record, and can hand the run pairs
    that are known from an earlier one. Every method may be left as it is.
    """

    def known(self) -> Sequence[Pair]:
        """Pairs (parameter, w) that the run certifies first of all and never falls behind."""
        return ()

    def phase(self, text: str) -> None:
        """Told what the run is about to do, in a few words."""

    def record(
        self,
        record: IterationRecord,  # noqa: ARG002
        answer: Callable[[], SolverResult],  # noqa: ARG002
    ) -> SolverStatus | None:
        """Told of every iteration.

        Parameters
        ----------
        record : IterationRecord
            Where the run is.
        answer : callable
            Gives what the run would return if it were interrupted now.

        Returns
        -------
        SolverStatus or None
            A reason to stop, or None to go on. A gap within the tolerance comes first.
        """
        return None


Callback = Callable[[IterationRecord], None] | Monitor


class Monitors(Monitor):
    """Several monitors as one; None among them is left out.

    Each is told of everything, in the order given. The first reason to stop counts.
    """

    def __init__(self, callbacks: Iterable[Callback | None]) -> None:
        self._monitors = [as_monitor(callback) for callback in callbacks if callback is not None]

    def known(self) -> Sequence[Pair]:
        """The pairs of all."""
        return [pair for monitor in self._monitors for pair in monitor.known()]

    def phase(self, text: str) -> None:
        """Pass it on."""
        for monitor in self._monitors:
            monitor.phase(text)

    def record(
        self, record: IterationRecord, answer: Callable[[], SolverResult]
    ) -> SolverStatus | None:
        """Pass it on."""
        reasons = [monitor.record(record, answer) for monitor in self._monitors]
        return next((reason for reason in reasons if reason is not None), None)


class _Function(Monitor):
    def __init__(self, function: Callable[[IterationRecord], None]) -> None:
        self._function = function

    def record(self, record: IterationRecord, answer: Callable[[], SolverResult]) -> None:  # noqa: ARG002
        self._function(record)


def as_monitor(callback: Callback | None) -> Monitor:
    """A monitor as it is, a function of the record as one, and one that does nothing for None."""
    if callback is None:
        return Monitor()
    return callback if isinstance(callback, Monitor) else _Function(callback)
