"""The page of the speed table, from its JSON alone."""

from __future__ import annotations

from typing import Any

from _report import markdown_table

_QUIET = 0.5  # load of the machine, before a run, above which its times are not to be trusted

_HEADERS = ("", "what", "peer", "target", "measured", "verdict")


def summary(content: dict[str, Any]) -> str:
    """The table with one line a row, and the machine below it."""
    lines = [
        [row["row"], *(row[key] for key in ("what", "peer", "target", "measured", "verdict"))]
        for row in content["rows"]
    ]
    about = "\n".join(f"- {line}" for line in _circumstances(content["rows"]))
    return f"{markdown_table(_HEADERS, lines)}\n\n{about}\n"


def page(content: dict[str, Any]) -> str:
    """The whole page: the summary, and a section with all measurements for each row."""
    sections = [_section(row) for row in content["rows"]]
    head = "# Speed\n\nMade by `python benchmarks/run.py` from `results/speed.json`.\n"
    return "\n".join([head, summary(content), *sections])


def _circumstances(rows: list[dict[str, Any]]) -> list[str]:
    """Machine, versions, and what a reader has to know of how the rows were measured."""
    said: dict[str, list[int]] = {}
    for row in rows:
        said.setdefault(_environment(row), []).append(row["row"])
    lines = [f"Rows {_listed(numbers)}: {text}" for text, numbers in said.items()]
    busy = [row["row"] for row in rows if (row.get("load") or 0.0) > _QUIET]
    if busy:
        lines.append(
            f"Rows {_listed(busy)}: the machine was busy before the run began (load above "
            f"{_QUIET:g}). Their times say little."
        )
    for row in rows:
        cached = [cell for cell in row.get("cells", []) if cell.get("peer_cached")]
        if cached:
            lines.append(
                f"Row {row['row']}: {len(cached)} of {len(row['cells'])} times of the peer are of "
                "an earlier run on this machine."
            )
    return lines


def _environment(row: dict[str, Any]) -> str:
    computer, packages = row["machine"], row["versions"]
    names = ("tessella", "numpy", "scipy", "scikit-learn")
    return (
        f"{computer['processor']}, {computer['usable_cores']} cores, "
        f"{row['settings']['threads']} threads, {computer['memory_gib']} GiB, "
        f"{', '.join(computer['blas'])}; {', '.join(f'{n} {packages[n]}' for n in names)}, "
        f"Python {packages['python']}; commit {row['commit']}, {row['date'][:10]}"
        f"{', everything measured anew' if row['fresh'] else ''}."
    )


def _listed(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers))


def _section(row: dict[str, Any]) -> str:
    title = f"## {row['row']}. {row['what']}\n\n"
    told = (
        f"Against: {row['peer']}. Target: {row['target']}. Measured: {row['measured']}. "
        f"Verdict: {row['verdict']}.\n"
    )
    if "cells" not in row:
        return title + told
    columns = row["columns"]
    lines = [[_shown(cell.get(key)) for key in columns.values()] for cell in row["cells"]]
    notes = "\n".join(f"- {note}" for note in row["notes"])
    return f"{title}{told}\n{markdown_table(list(columns), lines)}\n\n{notes}\n"


def _shown(value: Any) -> Any:
    """ "yes" and "no" for what is true or false."""
    return ("yes" if value else "no") if isinstance(value, bool) else value
