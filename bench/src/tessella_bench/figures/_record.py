"""What was measured, on which machine: JSON files that a later run goes on from."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from tessella_bench._machine import machine, versions

PACKAGES = ("tessella", "numpy", "scipy", "scikit-learn", "cvxpy", "clarabel", "matplotlib")


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


def write_json(path: Path, content: Any) -> None:
    """Write JSON in one move, so that an interrupted run leaves the old file or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(path.suffix + ".part")
    draft.write_text(json.dumps(plain(content), indent=1, allow_nan=False) + "\n")
    draft.replace(path)


class Record:
    """The data of one figure: a JSON file of cells, written whenever one is finished.

    Cells count only for the settings they were made with: a file with other settings is begun
    anew. So an interrupted run loses the cell it was at, and a finished one only draws again.

    Parameters
    ----------
    path : Path
        The file.
    settings : dict
        All that decides what is measured.
    fresh : bool
        Whether to measure everything again.
    """

    def __init__(self, path: Path, settings: dict[str, Any], *, fresh: bool = False) -> None:
        self._path = path
        self._settings = plain(settings)
        self._cells: dict[str, Any] = {}
        self._summary: Any = None
        if path.is_file() and not fresh:
            kept = json.loads(path.read_text())
            if kept.get("settings") == self._settings:
                self._cells, self._summary = kept["cells"], kept.get("summary")

    def cell(self, key: str, compute: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """The cell of that key, computed if it is not there, as JSON gives it back."""
        if key not in self._cells:
            self._cells[key] = plain(compute())
            self._write()
        found: dict[str, Any] = self._cells[key]
        return found

    def conclude(self, summary: dict[str, Any]) -> None:
        """Keep what follows from the cells beside them."""
        if plain(summary) != self._summary:
            self._summary = plain(summary)
            self._write()

    def _write(self) -> None:
        content = {
            "figure": self._path.stem,
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "machine": machine(),
            "versions": versions(PACKAGES),
            "settings": self._settings,
            "summary": self._summary,
            "cells": self._cells,
        }
        write_json(self._path, content)
