"""A fit of a folder of Parquet files that is several times larger than the memory it may use.

Writes the folder first, in a process with little memory; a folder that is complete is used again.
The fit then runs in a process of its own with a limit of memory. With RLIMIT_DATA the system
refuses to give it more private memory; where the system does not keep this limit, or with
--limit-by watch, the process is ended when its resident memory is above the limit, which is looked
at twenty times a second. With RLIMIT_DATA both hold.
Writes out-of-core.json and out-of-core.md. Needs the package pyarrow and, for the default size,
5 GB of disk.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

from _common import say
from _large_data import BLOCK_ROWS, CLASSIFICATION, COLUMNS, REGRESSION
from _out_of_core_process import GROUP_BLOCKS
from _report import write_report
from _watched import DATA, WATCH, Ending, data_limit_holds, run_watched

SCRIPT = "_out_of_core_process.py"
GIGABYTE = 10**9
FILE_ROWS = 10 * GROUP_BLOCKS * BLOCK_ROWS
WRITER_BYTES = GIGABYTE
RECORD = "table.json"  # what the folder holds, beside it


def main() -> None:
    arguments = _parse()
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.folder or Path(temporary) / "table"
        written = prepare(folder, arguments)
        method = limit_method(arguments.limit_by)
        say(f"fitting with at most {arguments.memory:g} GB, by {method}")
        ending = fit(folder, arguments, method)
        if arguments.remove and arguments.folder:
            shutil.rmtree(folder)
    record = {"table": written, "limit_by": method, **outcome(ending)}
    say(str(record.get("error") or f"finished: gap {record['gap']:.1e}"))
    write_report(arguments, "out-of-core", record, HEADERS, [_row(record, arguments)])


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--gigabytes", type=float, default=5.0, help="size of the folder (default: 5)")
    add("--memory", type=float, default=1.5, help="gigabytes of the fit (default: 1.5)")
    add("--folder", type=Path, help="of the table, which is kept (default: a temporary one)")
    add("--remove", action="store_true", help="remove --folder in the end")
    columns = "ten with the function, further ones without effect: fewer rows (default: 10)"
    add("--columns", type=int, default=COLUMNS, help=columns)
    add("--kind", choices=(REGRESSION, CLASSIFICATION), default=REGRESSION)
    add("--limit-by", choices=("data", "watch"), default="data", help="RLIMIT_DATA if it holds")
    add("--tol", type=float, default=1e-2, help="gap of the fit (default: 0.01)")
    add("--max-leaf-rows", type=int, default=5000, help="rows of a leaf (default: 5,000)")
    add("--settings", type=json.loads, default={}, help="other parameters of the fit, in JSON")
    add("--threads", type=int, default=2, help="of the fit (default: 2)")
    add("--time-limit", type=float, help="parameter of the fit, in seconds (default: none)")
    add("--time-cap", type=float, help="seconds after which it is ended (default: none)")
    add("--seed", type=int, default=0, help="of the table (default: 0)")
    results = Path(__file__).parent / "results"
    add("--output", type=Path, default=results, help="folder of the results")
    arguments = parser.parse_args()
    if arguments.columns < COLUMNS:
        parser.error(f"--columns must be at least {COLUMNS}")
    return arguments


# -------------------------------------------------------------------------------------- table


def rows_of(gigabytes: float, columns: int) -> int:
    """Rows of a table of that size, in whole row groups: numbers of 8 bytes, the target too.

    Random numbers do not become smaller by compression.
    """
    group = GROUP_BLOCKS * BLOCK_ROWS
    return max(1, round(gigabytes * GIGABYTE / (8 * (columns + 1) * group))) * group


def prepare(folder: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    """Write the table, or what the folder lacks of it."""
    given = {
        "rows": rows_of(arguments.gigabytes, arguments.columns),
        "columns": arguments.columns,
        "file_rows": FILE_ROWS,
        "kind": arguments.kind,
        "seed": arguments.seed,
    }
    beside, begun = folder.with_name(f"{folder.name}-{RECORD}"), False
    if beside.is_file() and folder.is_dir():
        kept: dict[str, Any] = json.loads(beside.read_text())
        if kept["given"] == given and "bytes" in kept:
            return kept
        begun = kept["given"] == given
    if not begun and folder.exists() and any(folder.iterdir()):
        raise SystemExit(f"{folder} holds something else; remove it, or name another --folder.")
    folder.mkdir(parents=True, exist_ok=True)
    beside.write_text(json.dumps({"given": given}))
    say(f"writing {given['rows']:,} rows to {folder.name}")
    request = {"action": "write", "folder": str(folder), **given}
    ending = run_watched(SCRIPT, request, most_bytes=WRITER_BYTES)
    if ending.answer is None:
        raise SystemExit(f"The table was not written: {ending.why}")
    record = {"given": given, **ending.answer}
    beside.write_text(json.dumps(record))
    say(f"{record['bytes'] / GIGABYTE:.2f} GB in {record['seconds']:.0f} s")
    return record


# ---------------------------------------------------------------------------------------- fit


def limit_method(asked: str) -> str:
    """How the memory is limited."""
    return DATA if asked == "data" and data_limit_holds() else WATCH


def fit(folder: Path, arguments: argparse.Namespace, method: str) -> Ending:
    """The fit, in a process with little memory."""
    settings = {
        "max_leaf_rows": arguments.max_leaf_rows,
        "tol": arguments.tol,
        "n_jobs": arguments.threads,
        "time_limit": arguments.time_limit,
        **arguments.settings,
    }
    request = {
        "action": "fit",
        "folder": str(folder),
        "columns": arguments.columns,
        "kind": arguments.kind,
        "seed": arguments.seed,
        "settings": settings,
    }
    most = round(arguments.memory * GIGABYTE)
    return run_watched(
        SCRIPT, request, most_bytes=most, limit_by=method, time_limit=arguments.time_cap
    )


def outcome(ending: Ending) -> dict[str, Any]:
    """What a fit told, or why it did not finish."""
    common = {"process_seconds": ending.seconds, "tree_peak_bytes": ending.peak_bytes}
    if ending.answer is None:
        return {**common, "finishes": False, "error": ending.why}
    return {**common, "finishes": True, **ending.answer}


HEADERS = (
    *("table GB", "rows", "columns", "memory GB", "limit by", "peak GB", "leaves", "rounds"),
    *("fit s", "gap", "error", "above the best", "verdict"),
)


def _row(record: dict[str, Any], arguments: argparse.Namespace) -> list[Any]:
    table = record["table"]
    named = [
        *(table["bytes"] / GIGABYTE, table["rows"], table["columns"]),
        *(arguments.memory, record["limit_by"], record["tree_peak_bytes"] / GIGABYTE),
    ]
    if not record["finishes"]:
        empty = len(HEADERS) - len(named) - 4
        return [*named, *[None, None, record["process_seconds"]], *[None] * empty, _verdict(record)]
    return [
        *(*named, record["leaves"], record["rounds"], record["seconds"], record["gap"]),
        *(f"{record['test_error']:.4f}", f"{record['excess']:.4f}", _verdict(record)),
    ]


def _verdict(record: dict[str, Any]) -> str:
    if not record["finishes"]:
        return f"failed: {record['error']}"
    return "finishes" if record["status"] == "optimal" else f"missed: {record['status']}"


if __name__ == "__main__":
    main()
