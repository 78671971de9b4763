"""Cells of the table and the small files that keep them."""

from __future__ import annotations

import json
import os
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

OK, TIME_CAP, FAILED, NOT_APPLICABLE = "ok", "time-cap", "failed", "not-applicable"
PROTOCOL = 1  # of the measurement; cells of another one are measured again

Record = dict[str, Any]


@dataclass(frozen=True, order=True)
class Cell:
    """One method on one division of one data set.

    Attributes
    ----------
    dataset, method : str
        Names of the two.
    split : int
        Number of the division, which is its seed.
    rows : int or None
        Size of the training part that the suite asks for; None in the paper's tables, which have
        one size.
    """

    dataset: str
    method: str
    split: int
    rows: int | None = None


@dataclass(frozen=True)
class Recipe:
    """What decides the result of a method besides its name.

    A cell that was measured with another edition or with other options is measured again.

    Attributes
    ----------
    edition : int
        Counts the changes of the method's code that can change its results.
    options : mapping
        Keywords for the method, as JSON has them.
    python : str or None
        Interpreter whose packages the method needs; None is the one that runs the command. It
        has no part in the comparison.
    """

    edition: int = 1
    options: Mapping[str, Any] = field(default_factory=dict)
    python: str | None = None

    def record(self) -> Record:
        """The part that is kept with a cell."""
        return {"edition": self.edition, "options": dict(self.options)}


PLAIN = Recipe()


@dataclass(frozen=True)
class CellStore:
    """A folder with one JSON file for each finished cell.

    Attributes
    ----------
    folder : Path
        ``<dataset>/<method>-<split>.json`` lie in it, or ``<method>-<rows>-<split>.json`` for
        cells with a size.
    """

    folder: Path

    def path(self, cell: Cell) -> Path:
        """The file of a cell."""
        method = re.sub(r"[^\w.-]", "_", cell.method)
        size = "" if cell.rows is None else f"-{cell.rows}"
        return self.folder / cell.dataset / f"{method}{size}-{cell.split}.json"

    def read(self, cell: Cell) -> Record | None:
        """What was measured, or None.

        Parameters
        ----------
        cell : Cell
            Which one.

        Returns
        -------
        dict or None
            The record; None when there is none of this protocol.
        """
        path = self.path(cell)
        return _read(path) if path.exists() else None

    def records(self) -> list[Record]:
        """All records of this protocol, in the order of their file names."""
        found = [_read(path) for path in sorted(self.folder.glob("*/*.json"))]
        return [record for record in found if record is not None]

    def write(self, cell: Cell, record: Record) -> None:
        """Keep a record; a kill at any moment leaves the old file or the new one."""
        path = self.path(cell)
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
        try:
            temporary.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
            os.replace(temporary, path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise

    def forget(self, cell: Cell) -> None:
        """Remove what was measured, so that it is measured again."""
        self.path(cell).unlink(missing_ok=True)

    def usable(self, cell: Cell, time_cap: float, recipe: Recipe = PLAIN) -> Record | None:
        """The record of a cell that need not be measured again.

        Parameters
        ----------
        cell : Cell
            Which one.
        time_cap : float
            Seconds that the cell might take now: one that was stopped earlier than that is worth
            another try, as is one that failed.
        recipe : Recipe
            How it would be measured now.

        Returns
        -------
        dict or None
            The record.
        """
        record = self.read(cell)
        if record is None or record["status"] == FAILED:
            return None
        if record.get("recipe", PLAIN.record()) != recipe.record():
            return None
        if record["status"] == TIME_CAP and record["time_cap"] < time_cap:
            return None
        return record


def _read(path: Path) -> Record | None:
    try:
        record: Record = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is not JSON ({error}); remove it to measure again.") from error
    return record if record.get("protocol") == PROTOCOL else None
