"""A fit with leaves on a local cluster of Dask, beside the same fit without it.

Two processes of one thread each against two threads, on made-up rows; the faster of two fits of
each, in turn. Also the bytes of each round and, as constants of `tessella_bench.clusters`, the
seconds of the scheduler for a task, of a message, the rate of the link, and the seconds of a leaf
by its rows, from fits without Dask. The seconds of the coordinator are given with --coordinator.
Writes clusters.json, clusters.md and cluster-constants.json. Needs the packages of tessella[dask].
"""

from __future__ import annotations

import argparse
import json
from typing import Any

import numpy as np
from _common import options, say
from _report import attempt, write_report
from _watched import in_own_process

from tessella_bench.figures._record import write_json

SCRIPT = "_clusters_process.py"
MOST_TIMES = 1.2
REPEATS = 2
LEAF_SHARES = (0.2, 0.5, 1.0)  # of the rows of a leaf, for the constants
N_PARAMS = 22  # of ten columns and degree 1


def main() -> None:
    arguments = _parse()
    fits = {name: [] for name in ("fit", "dask")}
    for _ in range(arguments.repeats):
        for name, found in fits.items():
            found.append(attempt(lambda n=name: measure(n, arguments)))
            say(f"{name}: {found[-1].get('error') or format(found[-1]['seconds'], '.1f') + ' s'}")
    record = compared(fits)
    for k, sent in enumerate(record.get("bytes_of_rounds", [])):
        say(f"round {k}: {sent:,.0f} bytes")
    write_report(arguments, "clusters", record, HEADERS, [_row(record)])
    if arguments.constants:
        path = arguments.output / "cluster-constants.json"
        write_json(path, {"constants": constants(arguments, record)})
        say(f"Written: {path}")


def _parse() -> argparse.Namespace:
    parser = options(__doc__, rows=200_000, datasets=())
    add = parser.add_argument
    add("--processes", type=int, default=2, help="of the cluster, and threads (default: 2)")
    add("--max-leaf-rows", type=int, default=5000, help="rows of a leaf (default: 5,000)")
    add("--tol", type=float, default=1e-2, help="gap (default: 0.01)")
    add("--settings", type=json.loads, default={}, help="other parameters of both, in JSON")
    add("--repeats", type=int, default=REPEATS, help="fits of each (default: 2)")
    add("--constants", action="store_true", help="measure the constants too")
    coordinator = "seconds of the coordinator in a round, and for a leaf and entry"
    add("--coordinator", type=float, nargs=2, default=(0.02, 1e-9), help=coordinator)
    return parser.parse_args()


def measure(action: str, arguments: argparse.Namespace, **changed: Any) -> dict[str, Any]:
    """One fit, in a process of its own."""
    leaves = {"max_leaf_rows": arguments.max_leaf_rows} if arguments.max_leaf_rows else {}
    settings = {"tol": arguments.tol, **leaves, **arguments.settings, **changed}
    request = {
        "action": action,
        "rows": arguments.rows,
        "seed": arguments.seed,
        "processes": arguments.processes,
        "settings": settings,
    }
    return in_own_process(SCRIPT, request)


def compared(fits: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """The faster fits of both kinds, and their ratio."""
    broken = [fit["error"] for found in fits.values() for fit in found if "error" in fit]
    if broken:
        return {**fits, "error": broken[0]}
    ours, dask = (min(fits[n], key=lambda fit: fit["seconds"]) for n in ("fit", "dask"))
    return {
        **fits,
        "seconds": ours["seconds"],
        "dask_seconds": dask["seconds"],
        "ratio": dask["seconds"] / ours["seconds"],
        "gaps": [ours["gap"], dask["gap"]],
        "objectives": [ours["objective"], dask["objective"]],
        "leaves": dask["leaves"],
        "bytes_of_rounds": dask["bytes_of_rounds"],
    }


def constants(arguments: argparse.Namespace, record: dict[str, Any]) -> dict[str, float]:
    """What the simulation of clusters needs."""
    request = {"processes": arguments.processes, "tasks": 2000, "megabytes": 100}
    found = in_own_process(SCRIPT, {"action": "network", **request})
    rows, seconds = [], []
    for share in LEAF_SHARES if arguments.max_leaf_rows else ():
        size = round(share * arguments.max_leaf_rows)
        fit = measure("fit", arguments, max_leaf_rows=size)
        trees = arguments.settings.get("n_partitions", 2)
        rows.append(trees * arguments.rows / fit["leaves"])
        seconds.append(fit["processor_seconds"] / (fit["leaves"] * fit["rounds"]))
    answer = {key: found[key] for key in ("task_seconds", "latency", "bandwidth")}
    base, entry = arguments.coordinator
    answer |= {"coordinator_seconds": base, "coordinator_leaf_seconds": entry}
    if rows:
        slope, height = np.polyfit(np.log(rows), np.log(seconds), 1)
        answer |= {"leaf_seconds": float(np.exp(height)), "leaf_exponent": float(slope)}
    if record.get("leaves"):
        sent = float(np.mean(record["bytes_of_rounds"])) / record["leaves"]
        answer["packet_bytes"] = max(0.0, sent - 8 * N_PARAMS**2)
    return answer


HEADERS = (
    *("without Dask s", "Dask s", "times", "gap", "gap with Dask", "leaves"),
    *("largest round, MB", "verdict"),
)


def _row(record: dict[str, Any]) -> list[Any]:
    if "error" in record:
        return [*[None] * (len(HEADERS) - 1), f"failed: {record['error']}"]
    met = record["ratio"] <= MOST_TIMES
    return [
        *(record["seconds"], record["dask_seconds"], record["ratio"], *record["gaps"]),
        *(record["leaves"], max(record["bytes_of_rounds"], default=0.0) / 1e6),
        "ok" if met else f"missed: {record['ratio']:.2f} times",
    ]


if __name__ == "__main__":
    main()
