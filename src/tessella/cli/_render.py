"""Output of tables and text on the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Table

NOTHING = "—"


def watched_console() -> Console:
    """Return the console for progress: standard error, so that the output can be piped."""
    return Console(stderr=True)


def show_pairs(title: str, pairs: Mapping[str, str]) -> None:
    """Print names and values in two columns."""
    table = Table(title=title, title_justify="left", show_header=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in pairs.items():
        table.add_row(_plain(name), _plain(value))
    Console().print(table)


def show_rows(title: str, header: list[str], rows: list[list[str]]) -> None:
    """Print a table whose first column is text and whose other columns are numbers."""
    table = Table(title=title, title_justify="left")
    for position, name in enumerate(header):
        table.add_column(name, justify="right" if position else "left", no_wrap=not position)
    for row in rows:
        table.add_row(*map(_plain, row))
    Console().print(table)


def show_sentence(text: str, style: str | None = None) -> None:
    """Print text that is wrapped at the width of the terminal, in a style such as "bold red"."""
    Console().print(text, markup=False, highlight=False, style=style)


def show_line(text: str) -> None:
    """Print text as one line, without wrapping."""
    Console().print(" ".join(text.split()), markup=False, highlight=False, soft_wrap=True)


def as_gap(gap: float | None) -> str:
    """Format a relative gap, or return a dash for None."""
    return NOTHING if gap is None else f"{gap:.1e}"


def as_duration(seconds: float) -> str:
    """Format a duration in milliseconds or seconds."""
    return f"{1000 * seconds:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"


def in_leaves(leaves: int, trees: int) -> str:
    """Return numbers of leaves and trees in words."""
    return f"{leaves} in {trees} tree{'s' if trees > 1 else ''}"


def as_text(value: Any) -> str:
    """Format a value: numbers with few digits, None as a dash."""
    if value is None:
        return NOTHING
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _plain(text: str) -> str:
    """Escape brackets, which rich would interpret as markup."""
    return text.replace("[", r"\[")
