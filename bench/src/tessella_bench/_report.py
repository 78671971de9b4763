"""From cells to the numbers of the report."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from tessella.datasets import describe
from tessella.datasets import names as registered_names
from tessella_bench._cells import NOT_APPLICABLE, OK, TIME_CAP, Cell, CellStore, Record
from tessella_bench._methods import CLASSIFICATION, REGRESSION, Method
from tessella_bench._paper import paper, printed
from tessella_bench._plan import Plan, PlannedSet
from tessella_bench._statistics import Ranks, Scores, improvement, rank

DONE, PARTLY, NONE, BROKEN, EMPTY = "done", "partly", "n/a", "failed", "not measured"
_TIMES = ("tune_seconds", "fit_seconds", "predict_seconds")


def gather(plan: Plan, store: CellStore) -> dict[str, Any]:
    """All numbers of the report, from the cells that are there.

    Parameters
    ----------
    plan : Plan
        Data sets, methods and divisions of the report.
    store : CellStore
        Where the cells are.

    Returns
    -------
    dict
        Ready for JSON: "tables" by task, with the rows, the improvement and the ranks, and the
        machines and versions that the cells were measured with.
    """
    records: list[Record] = []
    tables = {}
    for task in (CLASSIFICATION, REGRESSION):
        sets = [data for data in plan.sets if data.task == task]
        methods = [method for method in plan.methods if task in method.tasks]
        if sets:
            rows = [_row(data, methods, plan.splits, store, records) for data in sets]
            tables[task] = _table(task, rows, methods)
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "splits": plan.splits,
        "paper": {key: paper()[key] for key in ("source", "machine")},
        "methods": {m.name: {"title": m.title, "paper": m.paper} for m in plan.methods},
        "tables": tables,
        "among_the_papers": _among_the_papers(tables, plan.methods),
        "measured_with": circumstances(records),
    }


# ---------------------------------------------------------------------------------------- rows


def _row(
    data: PlannedSet,
    methods: Sequence[Method],
    splits: int,
    store: CellStore,
    records: list[Record],
) -> dict[str, Any]:
    cells = {}
    for method in methods:
        found = [store.read(Cell(data.name, method.name, split)) for split in range(splits)]
        present = [record for record in found if record is not None]
        records += present
        cells[method.name] = _summary(present, splits)
        beside = printed(data.task, data.name, method.paper)
        if beside is not None:
            cells[method.name] |= _beside(cells[method.name], beside, data.task)
    info = describe(data.name) if data.name in registered_names() else None
    return {
        "name": data.name,
        "title": info.title if info else data.name,
        "rows": data.rows,
        "features": data.features,
        "note": info.note if info else "",
        "target_rule": info.target_rule if info else "",
        "cells": cells,
    }


def _summary(records: Sequence[Record], splits: int) -> dict[str, Any]:
    """Mean and deviation over the divisions of one method on one set."""
    good = [record for record in records if record["status"] == OK]
    first = next((record for record in records if record["split"] == 0), None)
    if not records:
        return {"state": EMPTY}
    if not good:
        known = first or records[0]
        stopped = known["status"] in (TIME_CAP, NOT_APPLICABLE)
        return {"state": NONE if stopped else BROKEN, "why": why(known)}
    scores = np.array([record["score"] for record in good])
    gaps = [record["gap"] for record in good if record.get("gap") is not None]
    return {
        "state": DONE if len(good) == splits else PARTLY,
        "splits": len(good),
        "mean": float(scores.mean()),
        "deviation": float(scores.std(ddof=1)) if len(scores) > 1 else None,
        "scores": {str(record["split"]): record["score"] for record in good},
        "largest_gap": max(gaps) if gaps else None,
        **{name: float(np.mean([record[name] for record in good])) for name in _TIMES},
    }


def why(record: Record) -> str:
    """Why a cell has no result."""
    if record["status"] == TIME_CAP:
        return f"more than {record['time_cap']:g} s"
    return str(record.get("error", record["status"]))


def _beside(cell: dict[str, Any], beside: dict[str, Any], task: str) -> dict[str, Any]:
    """The paper's value, and how far ours is from it in deviations of the paper's."""
    result: dict[str, Any] = {"paper": beside}
    if cell.get("mean") is None or beside["score"] is None:
        return result
    mean, deviation = beside["score"]
    distance = (cell["mean"] - mean) / deviation
    better = distance > 0 if task == CLASSIFICATION else distance < 0
    verdict = "within" if abs(distance) <= 1.0 else "better" if better else "worse"
    return result | {"deviations_from_paper": distance, "verdict": verdict}


# -------------------------------------------------------------------------------------- tables


def _table(task: str, rows: list[dict[str, Any]], methods: Sequence[Method]) -> dict[str, Any]:
    ours = {row["name"]: _settled(row) for row in rows}
    of_paper = _methods_of_paper(task, methods)
    return {
        "metric": "accuracy in %" if task == CLASSIFICATION else "mean squared error",
        "paper_table": paper()[task]["table"],
        "rows": rows,
        "improvement": _improvements(task, ours, of_paper),
        "ranks": _ranks(task, ours, [method.name for method in methods]),
    }


def _settled(row: dict[str, Any]) -> dict[str, float | None]:
    """Means of the methods whose part in the row is known: done, or N/A."""
    return {
        name: cell.get("mean")
        for name, cell in row["cells"].items()
        if cell["state"] in (DONE, NONE)
    }


def _comparable(ours: Scores, methods: Sequence[str], fewest: int = 1) -> Scores:
    """The largest part of the table without a gap: sets, and methods settled on all of them.

    The first method is always among them, and at least so many methods are.
    """
    best: Scores = {}
    for anchor in ours.values():
        kept = [method for method in methods if method in anchor]
        if kept[:1] != list(methods[:1]) or len(kept) < fewest:
            continue
        rows = {
            name: {method: row[method] for method in kept}
            for name, row in ours.items()
            if all(method in row for method in kept)
        }
        if _cells_of(rows) > _cells_of(best):
            best = rows
    return best


def _cells_of(rows: Scores) -> int:
    return sum(map(len, rows.values()))


def _improvements(task: str, ours: Scores, methods: Sequence[Method]) -> dict[str, Any]:
    """The paper's measure for its own values and for ours, over the paper's methods."""
    ours = _comparable(ours, [method.name for method in methods])
    ours = {name: row for name, row in ours.items() if name in paper()[task]["rows"]}
    rows = paper()[task]["rows"]
    theirs: Scores = {
        name: {m: cell["score"] and cell["score"][0] for m, cell in row.items()}
        for name, row in rows.items()
    }
    # Only what is measured here, so that the two can be compared.
    printed_names = {method.name: str(method.paper) for method in methods}
    same: Scores = {
        name: {printed_names[m]: theirs[name].get(printed_names[m]) for m in row}
        for name, row in ours.items()
    }
    values = {
        name: {
            "ours": improvement(ours, name),
            "paper_same": improvement(same, printed_name),
            "paper": improvement(theirs, printed_name),
        }
        for name, printed_name in printed_names.items()
    }
    return {
        "sets": list(ours),
        "methods": sorted({method for row in ours.values() for method in row}),
        "values": values,
        "stated_for_tkl": paper()[task]["improvement_of_tkl"],
    }


def _ranks(task: str, ours: Scores, methods: Sequence[str]) -> dict[str, Any] | None:
    """Ranks of the methods that can be compared; None without two of them."""
    return ranks_by_loss(_losses(task, ours), methods)


def _losses(task: str, ours: Scores) -> Scores:
    """Scores of which the smaller is the better."""
    sign = -1.0 if task == CLASSIFICATION else 1.0
    return {
        name: {method: None if mean is None else sign * mean for method, mean in row.items()}
        for name, row in ours.items()
    }


def _among_the_papers(
    tables: dict[str, Any], methods: Sequence[Method]
) -> dict[str, dict[str, Any] | None]:
    """Ranks of the paper's methods alone on the paper's sets: each task, and both together."""
    names = {task: [m.name for m in _methods_of_paper(task, methods)] for task in tables}
    losses = {
        task: _losses(task, {row["name"]: _settled(row) for row in _of_paper(task, table["rows"])})
        for task, table in tables.items()
    }
    ranks = {task: ranks_by_loss(part, names[task]) for task, part in losses.items()}
    together = {name: row for part in losses.values() for name, row in part.items()}
    shared = [m.name for m in methods if all(m.name in own for own in names.values())]
    return ranks | {"both": ranks_by_loss(together, shared)}


def _methods_of_paper(task: str, methods: Sequence[Method]) -> list[Method]:
    """Those the paper has measured on this task: its averaged kernels classify only."""
    shown = {name for row in paper()[task]["rows"].values() for name in row}
    return [method for method in methods if method.paper in shown]


def _of_paper(task: str, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [row for row in rows if row["name"] in paper()[task]["rows"]]


def ranks_by_loss(losses: Scores, methods: Sequence[str]) -> dict[str, Any] | None:
    """Ranks in the largest part of a table that has no gap.

    Parameters
    ----------
    losses : mapping
        Losses by set and method; None is last, and a method that is missing is a gap.
    methods : sequence of str
        Whom to rank; the first is always among them.

    Returns
    -------
    dict or None
        Sets and methods of that part, the mean ranks and the whole table of ranks, Friedman's p
        and Nemenyi's critical difference. None without two methods and a set.
    """
    rows = _comparable(losses, methods, fewest=2)
    ranked = list(next(iter(rows.values()), {}))
    ranks: Ranks | None = rank(rows, ranked, larger_is_better=False)
    if ranks is None:
        return None
    return {
        "sets": list(rows),
        "methods": list(ranks.methods),
        "mean": [float(value) for value in ranks.means],
        "table": ranks.table.tolist(),
        "friedman_p": ranks.friedman_p,
        "critical_difference": ranks.critical_difference,
        "not_ranked": [m for m in methods if m not in ranked],
    }


def circumstances(records: Sequence[Record]) -> dict[str, Any]:
    """Machines and versions, each once."""
    machines: dict[str, None] = {}
    versions: dict[str, dict[str, None]] = {}
    for record in records:
        machine = record["machine"]
        text = (
            f"{machine['processor']}, usable cores: {machine['usable_cores']}, "
            f"{machine['memory_gib']} GiB, {machine['system']}"
        )
        machines[text] = None
        for package, version in record["versions"].items():
            if version is not None:
                versions.setdefault(package, {})[version] = None
    loads = [record["machine"].get("load_at_start") for record in records]
    known = [load for load in loads if load is not None]
    return {
        "machines": list(machines),
        "median_load": float(np.median(known)) if known else None,
        "versions": {package: sorted(found) for package, found in versions.items()},
        "cells": len(records),
    }
