"""A live display of a fit: how far the certified gap is on its way to the tolerance.

Estimators show it with ``verbose=2``, the command line on a terminal. It needs rich
(``pip install "tessella[cli]"``), which is imported only when a display is made. In a notebook it
is a line of HTML instead, which needs nothing and is still there when the notebook is saved.
"""

from __future__ import annotations

import importlib
import math
import sys
import time
from collections.abc import Callable
from html import escape
from importlib.util import find_spec
from threading import Event, Thread
from typing import Any, Self

from tessella.solvers import IterationRecord, Monitor, SolverResult

__all__ = ["ProgressDisplay", "part_done"]

_REDRAWN_EVERY = 0.5  # seconds, in a notebook


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
        Where to draw; the notebook, or standard output, by default.
    disable : bool, default=False
        Show nothing.

    Raises
    ------
    ImportError
        Without rich, outside of notebooks; or without ipywidgets, for a console in a notebook.

    Notes
    -----
    A context manager: the line is drawn from ``__enter__`` to ``__exit__``, after which its last
    state stays on the screen.
    """

    def __init__(self, tol: float, *, console: Any = None, disable: bool = False) -> None:
        self._tol = tol
        self._first = math.inf
        self._progress: Any = (
            _NotebookProgress() if console is None and _in_notebook() else _on(console, disable)
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


def _on(console: Any, disable: bool) -> Any:
    """The line of a terminal."""
    rich = _rich_progress()
    console = rich.get_console() if console is None else console
    if console.is_jupyter and find_spec("ipywidgets") is None:
        raise ImportError(
            "A live display in a notebook needs ipywidgets, which is not installed: pip "
            "install ipywidgets, or use verbose=1 for a table."
        )

    def fixed(width: int) -> Any:
        return importlib.import_module("rich.table").Column(min_width=width, no_wrap=True)

    return rich.Progress(
        # On a narrow screen the bar and the texts give way; that it lives is always seen.
        rich.SpinnerColumn(table_column=fixed(1)),
        rich.TextColumn("{task.description}", markup=False),
        rich.BarColumn(bar_width=16),
        rich.TextColumn("{task.fields[state]}", markup=False),
        rich.TimeElapsedColumn(table_column=fixed(7)),
        console=console,
        disable=disable,
    )


def _in_notebook() -> bool:
    """Whether a kernel runs this program and shows its output as HTML."""
    ipython = sys.modules.get("IPython")
    return ipython is not None and hasattr(ipython.get_ipython(), "kernel")


class _NotebookProgress:
    """What of rich's ``Progress`` is needed here, as a line of HTML in a notebook.

    rich draws in a widget, which asks for ipywidgets and is gone when the notebook is opened
    again or turned into a page. An output that is replaced twice a second stays.
    """

    def __init__(self) -> None:
        self._fields: dict[str, Any] = {"completed": 0.0}
        self._begin = time.monotonic()
        self._over = Event()
        self._clock = Thread(target=self._tick, daemon=True)

    def add_task(self, description: str, **fields: Any) -> int:
        """The line begins with these texts."""
        self._fields |= {"description": description, **fields}
        return 0

    def update(self, task: int, *, refresh: bool = False, **fields: Any) -> None:  # noqa: ARG002
        """Change what the line shows; it is drawn in its own time, or now."""
        self._fields |= fields
        if refresh:
            self._handle.update(self._bundle(), raw=True)

    def start(self) -> None:
        """Draw, and keep the clock running."""
        self._begin = time.monotonic()
        show = importlib.import_module("IPython.display").display
        self._handle = show(self._bundle(), raw=True, display_id=True)
        self._clock.start()

    def stop(self) -> None:
        """Leave the line as it is."""
        self._over.set()
        self._clock.join()

    def _tick(self) -> None:
        while not self._over.wait(_REDRAWN_EVERY):
            self._handle.update(self._bundle(), raw=True)

    def _bundle(self) -> dict[str, str]:
        fields, seconds = self._fields, int(time.monotonic() - self._begin)
        clock = f"{seconds // 3600}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
        parts = (fields["description"], fields["state"], clock)
        texts = "".join(f'<span style="margin-left: 1em">{escape(part)}</span>' for part in parts)
        bar = f'<progress max="1" value="{fields["completed"]:.3f}"></progress>'
        return {
            "text/plain": "  ".join(part for part in parts if part),
            "text/html": f'<div style="font-family: monospace">{bar}{texts}</div>',
        }


def _rich_progress() -> Any:
    try:
        return importlib.import_module("rich.progress")
    except ImportError as error:
        raise ImportError(
            "A live display needs rich, which is not installed: pip install 'tessella[cli]', or "
            "use verbose=1 for a table."
        ) from error
