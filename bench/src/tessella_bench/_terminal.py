"""What the commands of the benchmarks show on a terminal, and where they write."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, Protocol

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from tessella_bench._cells import Cell, Record

IN_CHECKOUT = Path("benchmarks", "reports")
ELSEWHERE = Path("tessella-benchmark")
EXIT_INTERRUPTED = 130


class Planned(Protocol):
    """What a progress bar needs to know of a plan."""

    def cells(self) -> list[Cell]:
        """All cells."""

    def weight(self, cell: Cell) -> float:
        """A guess at the work of a cell."""


def listed(texts: list[str] | None) -> list[str] | None:
    """Names separated by commas, or given one by one."""
    if texts is None:
        return None
    return [name.strip() for text in texts for name in text.split(",") if name.strip()]


def default_folder() -> Path:
    """Where reports go: the checkout, or a folder of their own."""
    return IN_CHECKOUT if IN_CHECKOUT.parent.is_dir() else ELSEWHERE


def note(text: str) -> None:
    """One line to standard error, as the other commands write theirs."""
    typer.echo(f"tessella: note: {' '.join(text.split())}", err=True)


@contextmanager
def progress(plan: Planned, outcome: Callable[[Record], str]) -> Iterator[Any]:
    """A bar with the time left on a terminal, a line for each new cell anywhere else.

    Parameters
    ----------
    plan : Plan or SuitePlan
        What is measured.
    outcome : callable
        What to say of the record of a cell that has a result.

    Yields
    ------
    callable
        A watcher for :func:`fill`.
    """
    console = Console(stderr=True)  # so that the output can be piped
    columns = (
        SpinnerColumn(),
        BarColumn(),
        TextColumn("{task.fields[count]} of {task.fields[cells]} cells"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        TextColumn("{task.description}"),
    )
    cells = plan.cells()
    bar = _Weighted(*columns, console=console, disable=not console.is_terminal)
    with nullcontext() if bar.disable else bar:  # rich before 14.3 would print an empty line
        task = bar.add_task("", total=sum(map(plan.weight, cells)), count=0, cells=len(cells))

        def watch(cell: Cell, record: Record | None, how: str) -> None:
            bar.count(task, plan.weight(cell), f"{cell.dataset} {cell.method}", how)
            if how == "measured" and record is not None:
                text = f"{name_of(cell)}: {_told(record, outcome)}"
                bar.console.print(text, markup=False, highlight=False, soft_wrap=True)

        yield watch


def name_of(cell: Cell) -> str:
    """A cell in a line of text."""
    size = "" if cell.rows is None else f" {cell.rows}"
    return f"{cell.dataset} {cell.method}{size} {cell.split}"


def _told(record: Record, outcome: Callable[[Record], str]) -> str:
    if record["status"] == "ok":
        return outcome(record)
    return f"{record['status']} {record.get('error', '')}".strip()


class _Weighted(Progress):
    """Progress in work, not in cells: those of large sets take longer."""

    def count(self, task: Any, weight: float, text: str, how: str) -> None:
        """One cell is settled; what was not measured now does not count for the speed."""
        state = self.tasks[task]
        state.fields["count"] += 1
        if how == "measured":
            self.update(task, advance=weight, description=text)
        else:
            self.update(task, total=(state.total or weight) - weight, description=text)
