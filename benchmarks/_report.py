"""How a benchmark reports: the machine, JSON, tables, and a cache of finished cells."""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import platform
import subprocess
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_info

from tessella.backend import effective_threads

_PACKAGES = ("tessella", "numpy", "scipy", "scikit-learn", "cvxpy", "clarabel", "matplotlib")
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_NOT_SETTINGS = {"output", "fresh"}


# ------------------------------------------------------------------------------------- machine


def machine() -> dict[str, Any]:
    """The computer, as far as it explains a time."""
    return {
        "processor": _processor(),
        "usable_cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None,
        "threads": effective_threads(),
        "memory_gib": _memory_gib(),
        "system": f"{platform.system()} {platform.machine()}",
        "blas": sorted(
            {f"{p['internal_api']} {p['version']}" for p in threadpool_info() if is_blas(p)}
        ),
        "environment": {k: os.environ[k] for k in THREAD_VARIABLES if k in os.environ},
    }


def versions() -> dict[str, str | None]:
    """Python, the packages that matter, and the commit of this checkout."""
    found: dict[str, str | None] = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = None
    return found | {"commit": commit()}


def commit() -> str | None:
    """The checked-out commit, marked when files differ from it; None outside of git."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=10"]
    try:
        answer = subprocess.run(
            command, cwd=Path(__file__).parent, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return answer.stdout.strip()


def is_blas(pool: dict[str, Any]) -> bool:
    """Whether a pool of threads is BLAS's."""
    return pool.get("user_api") == "blas"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or "unknown"
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or "unknown"


def _memory_gib() -> float | None:
    try:
        return round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30, 1)
    except (AttributeError, OSError, ValueError):
        return None


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


def write_json(path: Path, content: Any) -> None:
    """Write JSON in one move, so that an interrupted run leaves the old file or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(path.suffix + ".part")
    draft.write_text(json.dumps(plain(content), indent=1, allow_nan=False) + "\n")
    draft.replace(path)


def plain(value: Any) -> Any:
    """Values that JSON can hold: numpy's become Python's, NaN and infinities null."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return str(value) if isinstance(value, Path) else value


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
