"""A live display of a fit: how far the certified gap is on its way to the tolerance.

Estimators show it with ``verbose=2``, the command line on a terminal; both in a notebook as well.
It needs rich (``pip install "tessella[cli]"``), which is imported only when a display is made,
and in a notebook ipywidgets, as rich does.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, Self

from tessella.solvers import IterationRecord, Monitor, SolverResult

__all__ = ["ProgressDisplay", "part_done"]


def part_done(gap: float, first: float, tol: float) -> float:
    """How much of the way from the first gap to the tolerance is done, in orders of magnitude.

    Parameters
    ----------
    gap, first : float
        The certified relative gap now, and at the first record.
    tol : float
        Where the solver stops.

    Returns
    -------
    float
        In [0, 1].

    Examples
    --------
    >>> from tessella.progress import part_done
    >>> round(part_done(1e-2, first=1e-1, tol=1e-3), 6)
    0.5
    """
    if gap <= tol:
        return 1.0
    if not gap < first < math.inf:
        return 0.0
    return math.log(first / gap) / math.log(first / tol)


class ProgressDisplay(Monitor):
    """A line that lives while a model is fitted.

    It shows the phase the solver is in, a bar that fills as the gap falls from its first value to
    the tolerance on a logarithmic scale, the gap, the objective, the number of SVMs solved and
    the time. A clock and a spinner run in a thread of their own, so a phase of minutes, such as
    one SVM on 100,000 rows, does not look like a hang.

    Parameters
    ----------
    tol : float
        The gap at which the fit stops.
    console : rich.console.Console, optional
        Where to draw; standard output, or the notebook, by default.
    disable : bool, default=False
        Show nothing.

    Raises
    ------
    ImportError
        Without rich, or without ipywidgets in a notebook.

    Notes
    -----
    A context manager: the line is drawn from ``__enter__`` to ``__exit__``, after which its last
    state stays on the screen.
    """

    def __init__(self, tol: float, *, console: Any = None, disable: bool = False) -> None:
        rich = _rich_progress()
        console = rich.get_console() if console is None else console
        if console.is_jupyter and find_spec("ipywidgets") is None:
            raise ImportError(
                "A live display in a notebook needs ipywidgets, which is not installed: pip "
                "install ipywidgets, or use verbose=1 for a table."
            )

        def fixed(width: int) -> Any:
            return importlib.import_module("rich.table").Column(min_width=width, no_wrap=True)

        self._tol = tol
        self._first = math.inf
        self._progress = rich.Progress(
            # On a narrow screen the bar and the texts give way; that it lives is always seen.
            rich.SpinnerColumn(table_column=fixed(1)),
            rich.TextColumn("{task.description}", markup=False),
            rich.BarColumn(bar_width=16),
            rich.TextColumn("{task.fields[state]}", markup=False),
            rich.TimeElapsedColumn(table_column=fixed(7)),
            console=console,
            disable=disable,
        )
        self._task = self._progress.add_task("preparing", total=1.0, state="")

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        ended = "stopped" if kind is not None else "done"
        self._progress.update(self._task, description=ended, refresh=True)
        self._progress.stop()

    def phase(self, text: str) -> None:
        """Show what the solver is doing."""
        self._progress.update(self._task, description=text)

    def record(self, record: IterationRecord, answer: Callable[[], SolverResult]) -> None:  # noqa: ARG002
        """Show where the solver is."""
        if not math.isfinite(self._first):
            self._first = record.gap
        self._progress.update(
            self._task,
            completed=part_done(record.gap, self._first, self._tol),
            state=(
                f"gap {record.gap:.1e} → {self._tol:.0e}  value {record.value:.5g}  "
                f"SVMs {record.n_svm}"
            ),
        )


def _rich_progress() -> Any:
    try:
        return importlib.import_module("rich.progress")
    except ImportError as error:
        raise ImportError(
            "A live display needs rich, which is not installed: pip install 'tessella[cli]', or "
            "use verbose=1 for a table."
        ) from error
