"""Live display of the progress of a fit, from the first certified gap to the tolerance.

Estimators show the display with ``verbose=2``, and the command line shows it on a terminal. It
needs the package rich (``pip install "tessella[cli]"``), which is imported only when a display is
created. In a notebook, the display is a line of HTML, which needs no other package and is saved
with the notebook.
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

from tessella.solvers import Estimate, IterationRecord, Monitor, SolverResult
from tessella.solvers._estimate import LONG, in_words, seconds_to_go

__all__ = ["ProgressDisplay", "SearchDisplay", "part_done"]

_REDRAWN_EVERY = 0.5  # seconds, in a notebook


def part_done(gap: float, first: float, tol: float) -> float:
    """Compute the progress from the first gap to the tolerance, on a logarithmic scale.

    Parameters
    ----------
    gap : float
        Current certified relative gap.
    first : float
        Certified relative gap at the first record.
    tol : float
        Gap at which the solver stops.

    Returns
    -------
    float
        Progress in [0, 1].

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


class _Line:
    """A line that is updated from ``__enter__`` to ``__exit__``; its last state stays."""

    def __init__(self, console: Any, disable: bool) -> None:
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
        if not self._progress.disable:  # rich before 14.3 would end with an empty line
            self._progress.stop()


class SearchDisplay(_Line):
    """Line that shows the progress of an automatic search while it runs.

    Parameters
    ----------
    console : rich.console.Console, optional
        Console on which the line is drawn. By default, it is drawn in the notebook or on standard
        output.
    disable : bool, default=False
        Whether the display is turned off.

    Raises
    ------
    ImportError
        If rich is not installed and the program does not run in a notebook, or if a console in a
        notebook is given and ipywidgets is not installed.
    """

    def __init__(self, *, console: Any = None, disable: bool = False) -> None:
        super().__init__(console, disable)

    def tell(self, text: str, done: float) -> None:
        """Show a text and the finished fraction of the search."""
        self._progress.update(self._task, description="searching", completed=done, state=text)


class ProgressDisplay(_Line, Monitor):
    """Line that shows the progress of a fit while it runs.

    The line shows the phase of the solver, a progress bar, the gap, the objective, the number of
    SVMs that were solved and the elapsed time. Before the first record it shows the expected time
    of a long fit, and then how much of it is left if the gap goes on falling as it does. The bar is
    full when the gap has decreased from its first value to the tolerance, on a logarithmic scale. A
    clock and a spinner run in a separate thread, so that a long phase, such as a single SVM on many
    rows, does not look like a hang.

    Parameters
    ----------
    tol : float
        Gap at which the fit stops.
    console : rich.console.Console, optional
        Console on which the line is drawn. By default, it is drawn in the notebook or on standard
        output.
    disable : bool, default=False
        Whether the display is turned off.

    Raises
    ------
    ImportError
        If rich is not installed and the program does not run in a notebook, or if a console in a
        notebook is given and ipywidgets is not installed.

    Notes
    -----
    The display is a context manager. The line is updated from ``__enter__`` to ``__exit__``, and
    its last state stays on the screen.
    """

    def __init__(self, tol: float, *, console: Any = None, disable: bool = False) -> None:
        super().__init__(console, disable)
        self._tol = tol
        self._first = math.inf
        self._times: list[float] = []
        self._gaps: list[float] = []

    wants_estimate = True

    def estimate(self, estimate: Estimate) -> None:
        """Show the expected time until there are records."""
        self._progress.update(self._task, state=f"expected time: {estimate}")

    def phase(self, text: str) -> None:
        """Show the phase of the solver."""
        self._progress.update(self._task, description=text)

    def note(self, text: str) -> None:
        """Show a fact about the run until there are records."""
        self._progress.update(self._task, state=text)

    def leaf(self, done: int, total: int, answer: Callable[[], SolverResult]) -> None:  # noqa: ARG002
        """Show how many leaves of a pass are done."""
        self._progress.update(self._task, description=f"leaf {done} of {total}")

    def record(self, record: IterationRecord, answer: Callable[[], SolverResult]) -> None:  # noqa: ARG002
        """Show the progress at a record of the solver."""
        if not math.isfinite(self._first):
            self._first = record.gap
        self._times.append(record.time)
        self._gaps.append(record.gap)
        left = seconds_to_go(self._times, self._gaps, self._tol)
        ahead = f"  about {in_words(left)} left" if LONG <= left < math.inf else ""
        self._progress.update(
            self._task,
            completed=part_done(record.gap, self._first, self._tol),
            state=(
                f"gap {record.gap:.1e} → {self._tol:.0e}  value {record.value:.5g}  "
                f"SVMs {record.n_svm}{ahead}"
            ),
        )


def _on(console: Any, disable: bool) -> Any:
    """Return the progress line of a terminal."""
    rich = _rich_progress()
    console = rich.get_console() if console is None else console
    if console.is_jupyter and find_spec("ipywidgets") is None:
        raise ImportError(
            "A live display in a notebook needs ipywidgets, which is not installed. Run pip "
            "install ipywidgets, or use verbose=1 to print a table."
        )

    def fixed(width: int) -> Any:
        return importlib.import_module("rich.table").Column(min_width=width, no_wrap=True)

    return rich.Progress(
        # On a narrow screen the bar and the texts are shortened, but the spinner is always shown.
        rich.SpinnerColumn(table_column=fixed(1)),
        rich.TextColumn("{task.description}", markup=False),
        rich.BarColumn(bar_width=16),
        rich.TextColumn("{task.fields[state]}", markup=False),
        rich.TimeElapsedColumn(table_column=fixed(7)),
        console=console,
        disable=disable,
    )


def _in_notebook() -> bool:
    """Return whether the program runs in a notebook, which shows output as HTML."""
    ipython = sys.modules.get("IPython")
    return ipython is not None and hasattr(ipython.get_ipython(), "kernel")


class _NotebookProgress:
    """Replacement for rich's ``Progress`` that shows a line of HTML in a notebook.

    rich uses a widget, which needs ipywidgets and is lost when the notebook is reopened. This class
    replaces an ordinary output twice a second, and the last output is kept.
    """

    disable = False

    def __init__(self) -> None:
        self._fields: dict[str, Any] = {"completed": 0.0}
        self._begin = time.monotonic()
        self._over = Event()
        self._clock = Thread(target=self._tick, daemon=True)

    def add_task(self, description: str, **fields: Any) -> int:
        """Set the first texts of the line."""
        self._fields |= {"description": description, **fields}
        return 0

    def update(self, task: int, *, refresh: bool = False, **fields: Any) -> None:  # noqa: ARG002
        """Change the texts of the line; they are drawn later, or now with `refresh`."""
        self._fields |= fields
        if refresh:
            self._handle.update(self._bundle(), raw=True)

    def start(self) -> None:
        """Draw the line, and start the clock."""
        self._begin = time.monotonic()
        show = importlib.import_module("IPython.display").display
        self._handle = show(self._bundle(), raw=True, display_id=True)
        self._clock.start()

    def stop(self) -> None:
        """Stop the clock, and leave the line as it is."""
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
            "A live display needs rich, which is not installed. Run pip install 'tessella[cli]', "
            "or use verbose=1 to print a table."
        ) from error
