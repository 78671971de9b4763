"""How a benchmark reports: the machine, JSON, tables, and a cache of finished cells."""

from __future__ import annotations

import argparse
import hashlib
import json
import math
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tessella_bench import _machine
from tessella_bench._machine import (  # noqa: F401
    THREAD_VARIABLES,
    commit,
    is_blas,
    machine,
)
from tessella_bench.figures._record import PACKAGES, plain, write_json

_NOT_SETTINGS = {"output", "fresh", "folder", "remove"}  # places, and what is kept there


def versions() -> dict[str, str | None]:
    """Python, the packages that matter, and the commit of this checkout."""
    return _machine.versions(PACKAGES)


# ---------------------------------------------------------------------------------------- JSON


def settings_of(arguments: argparse.Namespace) -> dict[str, Any]:
    """The options that change what is measured."""
    return {k: v for k, v in vars(arguments).items() if k not in _NOT_SETTINGS}


def write_report(
    arguments: argparse.Namespace, name: str, results: Any, headers: Sequence[str], rows: Any
) -> Path:
    """Print the table and write ``name.json`` and ``name.md`` in the folder of the results."""
    arguments.output.mkdir(parents=True, exist_ok=True)
    table = markdown_table(headers, rows)
    about = {"machine": machine(), "versions": versions()}
    path: Path = arguments.output / f"{name}.json"
    content = {
        "benchmark": name,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        **about,
        "settings": settings_of(arguments),
        "results": results,
    }
    write_json(path, content)
    described = (
        f"{about['machine']['processor']}, {about['machine']['usable_cores']} cores; tessella "
        f"{about['versions']['tessella']} ({about['versions']['commit']}), numpy "
        f"{about['versions']['numpy']}, Python {about['versions']['python']}"
    )
    path.with_suffix(".md").write_text(f"{table}\n\n{described}\n")
    print(f"\n{table}\n\n{described}\nWritten: {path}", flush=True)
    return path


# --------------------------------------------------------------------------------------- cache


class Cache:
    """Finished cells of a benchmark, written as they finish, so that a rerun goes on from there.

    Cells count only for the settings, the machine and the versions they were made with: each
    combination has a file of its own. A new commit does not void them; each remembers its own.
    """

    def __init__(self, arguments: argparse.Namespace, name: str, settings: dict[str, Any]) -> None:
        packages = {k: v for k, v in versions().items() if k != "commit"}
        self._made_with = plain({**settings, "machine": machine(), "packages": packages})
        mark = hashlib.sha256(json.dumps(self._made_with, sort_keys=True).encode()).hexdigest()
        self._path: Path = arguments.output / "cache" / f"{name}-{mark[:10]}.json"
        self._cells: dict[str, Any] = {}
        if self._path.is_file() and not arguments.fresh:
            self._cells = json.loads(self._path.read_text())["cells"]

    def cell(self, key: str, compute: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """The cell of that key, computed if it is not there. A failed one (with an "error") is
        reported but not kept, so that the next run tries it again.
        """
        if key not in self._cells:
            found = attempt(compute)
            if "error" in found:
                return found
            self._cells[key] = plain(found | {"commit": commit()})
            write_json(self._path, {"made_with": self._made_with, "cells": self._cells})
        kept: dict[str, Any] = self._cells[key]
        return kept

    def __contains__(self, key: str) -> bool:
        return key in self._cells


def attempt(compute: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What `compute` returns; for an exception, its text under "error".

    A failure of one cell is a result of the benchmark, and no reason to lose the others.
    """
    try:
        return compute()
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


# -------------------------------------------------------------------------------------- tables


def markdown_table(headers: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A Markdown table whose columns also line up in a terminal; numbers to the right."""
    cells = [[text(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(headers, *cells, strict=True)]
    right = [all(not isinstance(row[k], str) for row in rows) for k in range(len(headers))]

    def line(items: Sequence[str]) -> str:
        padded = [
            item.rjust(width) if to_right else item.ljust(width)
            for item, width, to_right in zip(items, widths, right, strict=True)
        ]
        return f"| {' | '.join(padded)} |"

    rule = "|".join(
        "-" * (width + 1) + (":" if to_right else "-")
        for width, to_right in zip(widths, right, strict=True)
    )
    return "\n".join([line(headers), f"|{rule}|", *map(line, cells)])


def text(value: Any) -> str:
    """A number with the digits worth reading; a dash for what is missing."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if isinstance(value, bool | str | int):
        return str(value)
    number = float(value)
    if number == 0 or 1e-3 <= abs(number) < 1e5:
        return f"{number:.0f}" if abs(number) >= 1000 else f"{number:.3g}"
    return f"{number:.1e}"
