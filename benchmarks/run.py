"""Every row of the speed table, with one command: times against peers, targets and verdicts.

Peers and ours are measured in turn in the same run, the best of several repetitions for short
ones, once for those of more than 20 seconds. Peers' results are kept in the cache, by machine and
versions, and marked "cached" where they are reused; --fresh measures everything anew. Results of
Tessella are never kept. Writes results/speed.json, and RESULTS.md from it; rows that were not
asked for stay as they are. With --quick, small sizes show that everything runs, and the files
go to results/cache.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from _common import data_folder, options, say
from _report import Cache, attempt, commit, machine, versions, write_json
from _speed import Outcome, Session
from _speed_fit import growth, large_set, memory, whole_fit
from _speed_kernel import max_product
from _speed_predict import predict, start_up
from _speed_pypmkl import against_pypmkl, small_against_pypmkl
from _speed_report import page, summary
from _speed_rows import rows_predicted
from _speed_search import automatic_search, leave_one_out_path
from _speed_separable import nearly_separable
from _speed_sklearnex import against_sklearnex
from _speed_svm import cold_start, warm_start
from _speed_threads import several_threads


@dataclass(frozen=True)
class TableRow:
    """A row of the table, as it was asked for."""

    what: str
    peer: str
    target: str
    measure: Callable[[Session], Outcome]


TABLE = {
    1: TableRow(
        "SVM dual, cold start, same K, objective no worse",
        'scikit-learn SVC/SVR(kernel="precomputed", tol=1e-3)',
        "at most 0.4 of its time",
        cold_start,
    ),
    2: TableRow(
        "SVM dual, warm start after an outer step",
        "its own cold solve",
        "at most 0.15 of its time",
        warm_start,
    ),
    3: TableRow(
        "whole fit, gap 1e-3",
        "one scikit-learn RBF SVC/SVR fit, C and gamma cross-validated",
        "at most 2 times (moonshot: 1)",
        whole_fit,
    ),
    4: TableRow(
        "whole fit at an equal or smaller gap",
        "pyPMKL 0.1.5",
        "at least 100 times faster",
        against_pypmkl,
    ),
    5: TableRow(
        "max-product matrix",
        "the machine's GEMM and stream roofs",
        "at least 0.5 of the binding roof",
        max_product,
    ),
    6: TableRow(
        "growth of the whole fit with rows, California housing",
        "the paper's exponents 2.4 to 2.7",
        "exponent at most 2.1",
        growth,
    ),
    7: TableRow(
        "memory of a fit in float32",
        "the m × m float32 matrix",
        "peak at most 2.2 of it plus 500 MB",
        memory,
    ),
    8: TableRow(
        "Gas Turbine, 29,386 training rows, gap 1e-3",
        "the paper's 13,580 s (8 cores)",
        "under 1,200 s",
        large_set,
    ),
    9: TableRow(
        "predict",
        "scikit-learn RBF SVC/SVR.predict, same support vectors and rows",
        "at most 1 times",
        predict,
    ),
    10: TableRow(
        "import, and the first fit of a process",
        "import sklearn.svm, and its second fit",
        "no compile step; import at most 1.3 times",
        start_up,
    ),
    11: TableRow(
        "SVM dual, cold start, rows on demand, several threads",
        "itself on one thread",
        "2 threads at least 1.7 times faster; 50,000 rows × 8 features under 40 s",
        several_threads,
    ),
    12: TableRow(
        "whole fit, gap 1e-3, and predictions",
        "scikit-learn-intelex 2026 patched into scikit-learn, one RBF SVC/SVR",
        "at most 1.0 of its fit, at most 0.25 of its predict",
        against_sklearnex,
    ),
    13: TableRow(
        "predict one row, 100 and 100,000 rows, every estimator",
        "scikit-learn RBF SVC/SVR with as many support vectors",
        "one row under 150 µs; never slower",
        rows_predicted,
    ),
    14: TableRow(
        "leave-one-out path over 15 values of C, squared loss, 2,000 and 5,000 rows",
        "LAPACK's symmetric eigendecomposition of that side, the faster driver",
        "at most 1.3 times",
        leave_one_out_path,
    ),
    15: TableRow(
        "search of an automatic model, 1,200 rows × 10 columns, one thread",
        "none",
        "under 5 s",
        automatic_search,
    ),
    16: TableRow(
        "whole fit of 100 to 1,000 rows × 2 to 10 features at an equal or smaller gap",
        "pyPMKL 0.1.5",
        "at least 100 times faster",
        small_against_pypmkl,
    ),
    17: TableRow(
        "nearly separable data (Shill Bidding, C = 100): SVM cold, and the whole fit",
        "libsvm with the same K; one scikit-learn RBF SVC fit, C and gamma cross-validated",
        "SVM at most 0.4, whole fit at most 1.5 of the peer's time",
        nearly_separable,
    ),
}


def main() -> None:
    arguments = _parse()
    data_folder()
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    folder: Path = arguments.output / "cache" if arguments.quick else arguments.output
    path = folder / ("speed-quick.json" if arguments.quick else "speed.json")
    for number in sorted(set(arguments.rows_of_table)):
        say(f"row {number}: {TABLE[number].what}")
        measured = _measure(number, arguments, load)
        say(f"row {number}: {measured['measured']} ({measured['verdict']})")
        _store(path, measured)  # after each row: an interrupted run keeps what it has
    content = json.loads(path.read_text())
    # Beside this script for the results that are kept; beside the JSON for any other run.
    kept = not arguments.quick and arguments.output == _parser().get_default("output")
    report = Path(__file__).parent / "RESULTS.md" if kept else path.with_suffix(".md")
    report.write_text(page(content))
    print(f"\n{summary(content)}\nWritten: {path}, {report}", flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = options(__doc__, rows=None, datasets=())
    parser.add_argument(
        "--rows-of-table",
        type=int,
        nargs="+",
        default=list(TABLE),
        choices=list(TABLE),
        metavar="N",
        help=f"rows to measure, 1 to {max(TABLE)} (default: all)",
    )
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that all runs")
    parser.add_argument("--threads", type=int, default=2, help="of both sides (default: 2)")
    return parser


def _parse() -> argparse.Namespace:
    return _parser().parse_args()


def _measure(number: int, arguments: argparse.Namespace, load: float | None) -> dict[str, Any]:
    """A row as values for JSON."""
    asked = TABLE[number]
    settings = {key: getattr(arguments, key) for key in ("seed", "quick", "threads")}
    session = Session(arguments, Cache(arguments, f"speed-{number}", settings), load)
    about = {
        "row": number,
        "what": asked.what,
        "peer": asked.peer,
        "target": asked.target,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "fresh": bool(arguments.fresh),
        "load": load,
        "settings": settings,
        "machine": machine(),
        "versions": versions(),
    }
    found = attempt(lambda: _as_values(asked.measure(session)))
    if "error" in found:
        found |= {"measured": "–", "verdict": f"failed: {found['error']}"}
    if arguments.quick:
        found["verdict"] = f"small sizes, no statement ({found['verdict']})"
    return about | found


def _as_values(outcome: Outcome) -> dict[str, Any]:
    return {
        "measured": outcome.measured,
        "verdict": outcome.verdict,
        "columns": outcome.columns,
        "cells": outcome.cells,
        "notes": outcome.notes,
    }


def _store(path: Path, measured: dict[str, Any]) -> None:
    """Put a row in the file, in the place of its last measurement."""
    rows = json.loads(path.read_text())["rows"] if path.is_file() else []
    others = [row for row in rows if row["row"] != measured["row"]]
    content = {
        "benchmark": "speed",
        "rows": sorted([*others, measured], key=lambda row: row["row"]),
    }
    write_json(path, content)


if __name__ == "__main__":
    main()
