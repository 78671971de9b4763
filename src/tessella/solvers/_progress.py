"""The table that a solver can print."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TextIO

from tessella.backend import format_bytes
from tessella.solvers._estimate import Estimate
from tessella.solvers._monitor import Monitor
from tessella.solvers._result import IterationRecord, Round, SolverResult

_WIDTHS = {
    "iter": 5,
    "value": 13,
    "bound": 13,
    "gap": 9,
    "step": 9,
    "svm": 5,
    "pairs": 9,
    "time": 8,
}
_SECONDS_BETWEEN = 10.0  # two lines within a pass over leaves
_HEADER = " ".join(f"{name:>{width}}" for name, width in _WIDTHS.items())


class TablePrinter(Monitor):
    """Monitor that writes one line per iteration, and first how long a long run may take.

    Parameters
    ----------
    stream : file, optional
        File to write to. None, the default, is the standard output.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream
        self._written = time.monotonic()

    wants_estimate = True

    def estimate(self, estimate: Estimate) -> None:
        """Write the expected time."""
        stream = self._stream or sys.stdout
        stream.write(f"expected time: {estimate}\n")
        stream.flush()

    def note(self, text: str) -> None:
        """Write a fact about the run."""
        stream = self._stream or sys.stdout
        stream.write(text + "\n")
        stream.flush()

    def leaf(self, done: int, total: int, answer: Callable[[], SolverResult]) -> None:  # noqa: ARG002
        """Write how many leaves of a pass are done, a few times in a minute."""
        now = time.monotonic()
        if now - self._written >= _SECONDS_BETWEEN and done < total:
            self.note(f"      {done} of {total} leaves")
            self._written = now

    def passed(self, entry: Round) -> None:
        """Write what a pass over the leaves has cost."""
        received = format_bytes(entry.n_bytes)
        self.note(f"      pass ({entry.kind}): {entry.seconds:.2f} s, {received} of results")

    def record(self, record: IterationRecord, answer: Callable[[], SolverResult]) -> None:  # noqa: ARG002
        """Write the line of a record."""
        stream = self._stream or sys.stdout
        if record.iteration == 0:
            stream.write(_HEADER + "\n")
        stream.write(
            f"{record.iteration:5d} {record.value:13.6e} {record.bound:13.6e} {record.gap:9.2e} "
            f"{record.step:9.2e} {record.n_svm:5d} {record.svm_iter:9d} {record.time:7.2f}s\n"
        )
        stream.flush()
