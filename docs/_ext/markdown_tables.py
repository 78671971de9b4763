"""Markdown tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[str]], align: str) -> str:
    """A Markdown table; `align` has r for columns of numbers."""
    marks = ["---:" if i < len(align) and align[i] == "r" else "---" for i, _ in enumerate(head)]
    lines = [head, marks, *rows]
    return "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines
    )
