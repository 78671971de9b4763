"""What the paper prints."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def paper() -> dict[str, Any]:
    """The paper's two tables of accuracies and errors, with their source.

    Returns
    -------
    dict
        By task: "table", "improvement_of_tkl" and "rows", which hold by data set and method
        "score" and "seconds" as pairs of mean and deviation, or None for N/A.
    """
    text = files("tessella_bench").joinpath("paper.json").read_text(encoding="utf-8")
    content: dict[str, Any] = json.loads(text)
    return content


def printed(task: str, dataset: str, method: str | None) -> dict[str, Any] | None:
    """What the paper prints for a cell of its tables; None if there is no such cell."""
    row: dict[str, Any] = paper()[task]["rows"].get(dataset, {})
    return row.get(method) if method else None
