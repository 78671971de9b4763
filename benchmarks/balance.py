"""How the basis functions share the trace of P, and what that does to the score.

For each set and each `balance` of the tessellated kernels ("none", the paper's family, "unit" and
"pointwise"): the best two-fold cross-validation score over a grid of C and delta, with the gap,
the steps and the time of the fits at that point. The grid of "pointwise" has two more deltas, n/4
and n for n features, because delta is a length there. Every point of the grid is kept as it
finishes, so an interrupted run goes on where it stopped. Writes balance.json and balance.md.

Target: the best balance is certified to the tolerance, and "none" loses at most 2 % of its score
(accuracy, or R2) to the best of the others; where it loses more, the verdict names the winner.
"""

from __future__ import annotations

import argparse
import itertools
from typing import Any

from _common import TWELVE, Dataset, cross_validate, load, options, say
from _report import Cache, text, write_report

from tessella.kernels import TessellatedKernels

BALANCES = ("none", "unit", "pointwise")
GRID_C = (0.01, 0.1, 1.0, 10.0, 100.0)
GRID_DELTA = (0.1, 0.5, 2.0)
MAX_LOSS = 0.02  # of accuracy or R2


def main() -> None:
    arguments = _parse()
    keys = ("rows", "seed", "tol", "time_limit", "degree")
    cache = Cache(arguments, "balance", {key: getattr(arguments, key) for key in keys})
    records = []
    for name in arguments.datasets:
        data = load(name, arguments.rows, arguments.seed)
        for balance in arguments.balances:
            cells = _grid(data, balance, cache, arguments)
            records.append(_best(data, balance, cells))
            say(f"{name}, {balance}: {_progress(records[-1])}")
    for name in arguments.datasets:
        judge([record for record in records if record["name"] == name], arguments.tol)
    write_report(arguments, "balance", records, HEADERS, [_row(record) for record in records])


def _parse() -> argparse.Namespace:
    parser = options(__doc__, rows=1000, datasets=TWELVE)
    parser.add_argument(
        "--balances", nargs="+", choices=BALANCES, default=list(BALANCES), help="(default: all)"
    )
    parser.add_argument("--tol", type=float, default=1e-3, help="gap of the fits (default: 1e-3)")
    parser.add_argument(
        "--time-limit", type=float, default=30.0, help="seconds of a fit (default: 30)"
    )
    parser.add_argument("--degree", type=int, default=1, help="of the monomials (default: 1)")
    return parser.parse_args()


def deltas(balance: str, n_features: int) -> tuple[float, ...]:
    """The deltas to try: "pointwise" makes delta a length scale, which grows with n."""
    more = (n_features / 4, float(n_features)) if balance == "pointwise" else ()
    return tuple(sorted({*GRID_DELTA, *more}))


def _grid(
    data: Dataset, balance: str, cache: Cache, arguments: argparse.Namespace
) -> list[dict[str, Any]]:
    """Every point of the grid, computed or from the cache; failed ones carry an "error"."""
    cells = []
    for C, delta in itertools.product(GRID_C, deltas(balance, data.X.shape[1])):
        kernels = TessellatedKernels(degree=arguments.degree, delta=delta, balance=balance)

        def compute(kernels: TessellatedKernels = kernels, C: float = C) -> dict[str, Any]:
            return cross_validate(
                data,
                kernels,
                C,
                seed=arguments.seed,
                tol=arguments.tol,
                time_limit=arguments.time_limit,
            )

        key = f"{data.name} {balance} C={C:g} delta={delta:g}"
        known = key in cache
        cell = {"C": C, "delta": delta, **cache.cell(key, compute)}
        cells.append(cell)
        if not known:
            say(f"  {key}: {_progress(cell)}")
    return cells


def _best(data: Dataset, balance: str, cells: list[dict[str, Any]]) -> dict[str, Any]:
    """The point with the best score; of equals, the one with the smallest C."""
    good = [cell for cell in cells if "error" not in cell]
    about = {
        "name": data.name,
        "task": data.task,
        "rows": len(data.y),
        "features": data.X.shape[1],
        "balance": balance,
        "failed_cells": len(cells) - len(good),
    }
    if not good:
        return about | {"error": cells[0]["error"], "grid": cells}
    return about | max(good, key=lambda cell: cell["score"]) | {"grid": cells}


def quality(record: dict[str, Any]) -> float:
    """Accuracy or R2."""
    return float(record.get("accuracy", record.get("r2", float("-inf"))))


def judge(records: list[dict[str, Any]], tol: float) -> None:
    """Write the verdict of one set into its records: about the best of them, and about "none"."""
    best = max(records, key=quality)
    for record in records:
        remarks = []
        if "error" in record:
            remarks.append("failed")
        elif record["gap"] > tol:
            remarks.append(f"gap {record['gap']:.0e}")
        loss = quality(best) - quality(record)
        if record["balance"] == "none" and loss > MAX_LOSS:
            remarks.append(f"loses {text(loss)} to {best['balance']}")
        missed = "missed: " + ", ".join(remarks)
        record["verdict"] = missed if remarks else ("ok, best" if record is best else "ok")


def _progress(cell: dict[str, Any]) -> str:
    if "error" in cell:
        return f"failed: {cell['error']}"
    shown = "accuracy" if "accuracy" in cell else "mse"
    return (
        f"{shown} {text(cell[shown])} at C={cell['C']:g} delta={cell['delta']:g}, gap "
        f"{cell['gap']:.0e}, {cell['fit_seconds']:.2f} s a fit"
    )


HEADERS = (
    *("set", "rows", "n", "balance", "accuracy", "MSE", "R2", "C", "delta", "solver", "gap"),
    *("steps", "SVM solves", "fit (s)", "verdict"),
)


def _row(record: dict[str, Any]) -> list[Any]:
    accuracy = record.get("accuracy")
    return [
        *(record["name"], record["rows"], record["features"], record["balance"]),
        None if accuracy is None else f"{100 * accuracy:.1f} %",
        *(record.get("mse"), record.get("r2"), record.get("C"), record.get("delta")),
        record.get("solver", "–"),
        *(record.get("gap"), record.get("steps"), record.get("n_svm"), record.get("fit_seconds")),
        record["verdict"],
    ]


if __name__ == "__main__":
    main()
