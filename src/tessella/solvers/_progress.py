"""The table that a solver can print."""

from __future__ import annotations

import sys
from typing import TextIO

from tessella.solvers._result import IterationRecord

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
_HEADER = " ".join(f"{name:>{width}}" for name, width in _WIDTHS.items())


class TablePrinter:
    """Callback that writes one line per iteration.

    Parameters
    ----------
    stream : file, optional
        File to write to. None, the default, is the standard output.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream

    def __call__(self, record: IterationRecord) -> None:
        stream = self._stream or sys.stdout
        if record.iteration == 0:
            stream.write(_HEADER + "\n")
        stream.write(
            f"{record.iteration:5d} {record.value:13.6e} {record.bound:13.6e} {record.gap:9.2e} "
            f"{record.step:9.2e} {record.n_svm:5d} {record.svm_iter:9d} {record.time:7.2f}s\n"
        )
        stream.flush()
