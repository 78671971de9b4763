"""From cells of the suite to the numbers of its report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from tessella_bench._cells import OK, TIME_CAP, CellStore, Record
from tessella_bench._report import circumstances, why
from tessella_bench.suite._comparison import (
    DONE,
    EMPTY,
    LAST,
    PARTLY,
    ablation,
    against,
    log_loss_ranks,
    parts_of_the_average,
    ranks,
    seconds,
)
from tessella_bench.suite._divisions import DIVISIONS, SIZES
from tessella_bench.suite._methods import OURS, VARIANT, find_title, suite_methods
from tessella_bench.suite._plan import divisions

_ABOUT = ("task", "table_rows", "train_rows", "test_rows", "features", "text_features", "classes")
_MEANS = ("error", "log_loss", "seconds", "processor_seconds", "predict_processor_seconds")


def gather_suite(
    store: CellStore,
    sizes: Sequence[int] = SIZES,
    splits: int = DIVISIONS[SIZES[0]],
    datasets: Sequence[str] | None = None,
    method_names: Sequence[str] | None = None,
) -> dict[str, Any]:
    """All numbers of the report, from the cells that are there.

    Parameters
    ----------
    store : CellStore
        Where the cells are.
    sizes : sequence of int
        Sizes of the report.
    splits : int, default=3
        Divisions at 1,000 rows; others are left out, and so are methods that have fewer.
    datasets, method_names : sequence of str, optional
        Only these.

    Returns
    -------
    dict
        Ready for JSON: "sizes" with the sets and the comparisons, and the machines and versions
        that the cells were measured with.
    """
    records = [
        record
        for record in store.records()
        if record.get("rows") in sizes
        and record["split"] < divisions(record["rows"], splits)
        and (datasets is None or record["dataset"] in datasets)
        and (method_names is None or record["method"] in method_names)
    ]
    methods = _ordered({record["method"] for record in records})
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "methods": {name: find_title(name) for name in methods},
        "sizes": {
            str(size): _sized(
                [record for record in records if record["rows"] == size],
                divisions(size, splits),
            )
            for size in sizes
            if any(record["rows"] == size for record in records)
        },
        "measured_with": circumstances(records),
    }


def _ordered(names: set[str]) -> list[str]:
    known = [method.name for method in suite_methods() if method.name in names]
    return known + sorted(names - set(known))


def _sized(records: Sequence[Record], splits: int) -> dict[str, Any]:
    names = _ordered({record["method"] for record in records})
    methods = [name for name in names if VARIANT not in name]
    rows = _rows(records, names, splits)
    shown = {row["name"] for row in rows}
    ranked = ranks(rows, methods)
    common = ranked["all"]["sets"] if ranked["all"] is not None else shown
    return {
        "splits": splits,
        "sets": rows,
        "methods": methods,
        "ranks": ranked,
        "log_loss_ranks": log_loss_ranks(rows, methods),
        "against": against(rows, [name for name in methods if name != OURS]),
        "seconds": seconds([row for row in rows if row["name"] in common], methods),
        "failures": _failures(rows, methods),
        "other_divisions": _other_divisions(records),
        "without_result": sorted({record["dataset"] for record in records} - shown),
        "average": parts_of_the_average(
            [record for record in records if record["method"] == OURS and record["status"] == OK]
        ),
        "ablation": _ablations(records, [name for name in names if VARIANT in name]),
    }


def _ablations(records: Sequence[Record], variants: Sequence[str]) -> dict[str, Any]:
    """Compare each variant with the whole on the divisions that both have."""
    result: dict[str, Any] = {}
    for name in variants:
        common = _divisions_of(records, name) & _divisions_of(records, OURS)
        paired = [
            record
            for record in records
            if record["method"] in (name, OURS) and (record["dataset"], record["split"]) in common
        ]
        found = ablation(_rows(paired, (OURS, name), None), [name])[name]
        result[name] = found | {"fits": len(common)}
    return result


def _divisions_of(records: Sequence[Record], method: str) -> set[tuple[str, int]]:
    own = (record for record in records if record["method"] == method)
    return {(record["dataset"], record["split"]) for record in own}


def _rows(
    records: Sequence[Record], methods: Sequence[str], splits: int | None
) -> list[dict[str, Any]]:
    """Sets of which something is known, regressions first, each from the smallest.

    A set with another number of divisions than `splits` is known in part, if there is a number.
    """
    rows = []
    for name in sorted({record["dataset"] for record in records}):
        own = [record for record in records if record["dataset"] == name]
        known = next((record for record in own if record["status"] == OK), None)
        if known is None:
            continue
        cells = {
            method: _summary([r for r in own if r["method"] == method], splits)
            for method in methods
        }
        rows.append({"name": name, **{key: known[key] for key in _ABOUT}, "cells": cells})
    return sorted(rows, key=lambda row: (row["task"] != "regression", row["table_rows"]))


def _summary(records: Sequence[Record], splits: int | None) -> dict[str, Any]:
    """Means over the divisions of one method on one set.

    One division without a result is enough to be last: the mean of the others would be of easier
    ones.
    """
    if not records:
        return {"state": EMPTY}
    bad = [record for record in records if record["status"] != OK]
    if bad:
        capped = bad[0]["status"] == TIME_CAP
        found = {"state": LAST, "why": why(bad[0]), "capped": capped}
        return found | ({"processor_seconds": bad[0]["time_cap"]} if capped else {})
    means = {
        key: float(np.mean([record[key] for record in records]))
        for key in _MEANS
        if all(record.get(key) is not None for record in records)
    }
    errors = [record["error"] for record in records]
    return {
        "state": DONE if splits in (None, len(records)) else PARTLY,
        "divisions": len(records),
        "deviation": float(np.std(errors, ddof=1)) if len(errors) > 1 else None,
        **means,
    }


def _failures(rows: Sequence[Mapping[str, Any]], methods: Sequence[str]) -> list[dict[str, str]]:
    return [
        {"method": name, "dataset": row["name"], "why": row["cells"][name]["why"]}
        for name in methods
        for row in rows
        if row["cells"][name]["state"] == LAST
    ]


def _other_divisions(records: Sequence[Record]) -> list[str]:
    """Sets whose methods did not all have the same rows, which a changed file would cause."""
    marks: dict[tuple[str, int], set[str]] = {}
    for record in records:
        if "division" in record:
            marks.setdefault((record["dataset"], record["split"]), set()).add(record["division"])
    return sorted({dataset for (dataset, _), found in marks.items() if len(found) > 1})
