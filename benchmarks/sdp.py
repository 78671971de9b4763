"""The semidefinite program against our solvers, at the same certified gap: the paper's Table 1.

The SDP (Clarabel, through tessella's "sdp" solver) runs on subsamples, each in a process of its
own with a time cap; Frank-Wolfe and "auto" run on the same rows and on the whole sets. Finished
SDP cells are kept, so an interrupted run goes on where it stopped. Where the SDP does not fit in
memory, and on the whole sets, its time is extrapolated by a power law through the two largest
subsamples that it solved, and marked with "~"; ">" marks a run that was stopped at the cap.
Writes sdp.json and sdp.md.

With --small, instead: every solver against the SDP on 20 random small problems of both tasks,
both forms of the monomials and degrees 0 to 2. Writes sdp-small.json and sdp-small.md.

Targets: from 200 rows on, "auto" is at least 1000 times faster than the SDP; on the small
problems all certified intervals meet and "auto" is at most 1e-5 above the SDP's value.
"""

from __future__ import annotations

import argparse
import math
from typing import Any

from _common import TABLE_1, load, options, say
from _report import Cache, attempt, text, write_report
from _sdp_process import find_sdp, problem_of, run_solver, sdp_in_process
from _sdp_small import measure_small

from tessella.problems import SaddlePoint

MIN_SPEED_UP, FROM_ROWS = 1000, 200

# Mean seconds of 30 trials that the paper prints in its Table 1 (Intel i7-5960X, 128 GB).
PAPER_SECONDS = {
    "liver": {"sdp": 95.75, "frank-wolfe": 0.12},
    "cancer_wbc": {"sdp": 636.17, "frank-wolfe": 0.41},
    "heart": {"sdp": 221.67, "frank-wolfe": 4.71},
    "pima": {"sdp": 1211.66, "frank-wolfe": 0.80},
}


def main() -> None:
    arguments = _parse()
    sdp = find_sdp()
    if sdp is None:
        print(
            "The solver tessella.solvers.sdp cannot be imported. It needs Clarabel: "
            "pip install 'tessella[sdp]'. Its columns stay empty.",
            flush=True,
        )
    if arguments.small:
        measure_small(arguments, sdp)
    else:
        _measure_table(arguments, sdp is not None)


def _parse() -> argparse.Namespace:
    parser = options(__doc__, rows=None, datasets=TABLE_1)
    parser.add_argument("--tol", type=float, default=1e-4, help="certified gap (default: 1e-4)")
    parser.add_argument(
        "--sdp-rows",
        type=int,
        nargs="+",
        default=[60, 100, 150, 200],
        metavar="ROWS",
        help="rows of the SDP's subsamples (default: 60 100 150 200)",
    )
    parser.add_argument(
        "--time-cap", type=float, default=1200.0, help="seconds of a cell (default: 1200)"
    )
    parser.add_argument("--C", type=float, default=10.0, help="weight of the loss (default: 10)")
    parser.add_argument("--delta", type=float, default=0.5, help="margin (default: 0.5)")
    parser.add_argument("--small", action="store_true", help="agreement on small problems instead")
    return parser.parse_args()


# ------------------------------------------------------------------------------------- Table 1


def _measure_table(arguments: argparse.Namespace, with_sdp: bool) -> None:
    keys = ("tol", "time_cap", "C", "delta", "seed", "rows")
    cache = Cache(arguments, "sdp", {key: getattr(arguments, key) for key in keys})
    records: list[dict[str, Any]] = []
    for name in arguments.datasets:
        whole = load(name, arguments.rows, arguments.seed)
        sizes = [rows for rows in sorted(arguments.sdp_rows) if rows < len(whole.y)]
        solved: dict[int, float] = {}
        for rows in (*sizes, None):
            data = whole.take(rows, arguments.seed)
            record: dict[str, Any] = {"name": name, "rows": len(data.y), "whole": rows is None}
            record["paper"] = PAPER_SECONDS.get(name) if rows is None else None
            problem = problem_of(data, arguments.C, arguments.delta)
            for solver in ("auto", "frank-wolfe"):
                record[solver] = _fastest(solver, problem, arguments)
                say(f"{name} {len(data.y)} rows, {solver}: {_progress(record[solver])}")
            if rows is not None and with_sdp:
                model = (arguments.C, arguments.delta, arguments.tol, arguments.time_cap)
                record["sdp"] = cache.cell(
                    f"{name} {rows}", lambda data=data, model=model: sdp_in_process(data, *model)
                )
                say(f"{name} {len(data.y)} rows, SDP: {_progress(record['sdp'])}")
                if "gap" in record["sdp"] and not record["sdp"]["capped"]:
                    solved[rows] = record["sdp"]["seconds"]
            records.append(record | _judge(record, solved))
    write_report(arguments, "sdp", records, HEADERS, [_row(record) for record in records])


def _fastest(solver: str, problem: SaddlePoint, arguments: argparse.Namespace) -> dict[str, Any]:
    """The faster of two runs: the first also pays for what is loaded on first use."""

    def compute() -> dict[str, Any]:
        first = run_solver(solver, problem, arguments.tol, arguments.time_cap)
        if first["seconds"] > 10.0:
            return first
        again = run_solver(solver, problem, arguments.tol, arguments.time_cap)
        return min(first, again, key=lambda run: run["seconds"])

    return attempt(compute)


# ------------------------------------------------------------------------------------- verdict


def _judge(record: dict[str, Any], solved: dict[int, float]) -> dict[str, Any]:
    """Time of the SDP (measured, ">" a cap or "~" extrapolated), speed-up and verdict."""
    sdp, auto = record.get("sdp", {}), record["auto"]
    sign, seconds = "", sdp.get("seconds")
    if sdp.get("capped"):
        sign = ">"
    elif seconds is None and len(solved) >= 2:
        sign, seconds = "~", extrapolated(solved, record["rows"])
    difference = speed_up = None
    if "value" in sdp and "value" in auto and not sdp["capped"]:
        difference = (auto["value"] - sdp["value"]) / abs(sdp["value"])
    if seconds is not None and "seconds" in auto:
        speed_up = seconds / auto["seconds"]
    return {
        "sdp_seconds": seconds,
        "sdp_seconds_are": {"": "measured", ">": "a lower bound", "~": "extrapolated"}[sign],
        "difference": difference,
        "speed_up": speed_up,
        "sign": sign,
        "verdict": verdict(record, speed_up, sign),
    }


def extrapolated(solved: dict[int, float], rows: int) -> float:
    """Seconds for `rows` by the power law through the two largest samples solved."""
    (m1, t1), (m2, t2) = sorted(solved.items())[-2:]
    return t2 * (rows / m2) ** (math.log(t2 / t1) / math.log(m2 / m1))


def verdict(record: dict[str, Any], speed_up: float | None, sign: str) -> str:
    """Against the target where it applies; "–" where it does not."""
    failed = [s for s in ("auto", "frank-wolfe") if "error" in record[s]]
    if failed:
        return "failed: " + ", ".join(failed)
    if record["rows"] < FROM_ROWS or speed_up is None:
        return "SDP failed" if "error" in record.get("sdp", {}) else "–"
    said = "ok" if speed_up >= MIN_SPEED_UP else f"missed: {text(speed_up)} < {MIN_SPEED_UP}"
    return said + (" (extrapolated)" if sign == "~" else "")


def _progress(run: dict[str, Any]) -> str:
    if "error" in run:
        return f"failed: {run['error']}"
    if "gap" not in run:
        return str(run["status"])
    return f"gap {run['gap']:.1e} in {run['seconds']:.3f} s ({run['status']})"


HEADERS = (
    *("set", "rows", "SDP (s)", "SDP gap", "FW (s)", "FW gap", "auto", "auto (s)", "auto gap"),
    *("value: auto - SDP", "speed-up", "paper: SDP (s)", "paper: FW (s)", "verdict"),
)


def _row(record: dict[str, Any]) -> list[Any]:
    auto, other, paper = record["auto"], record["frank-wolfe"], record["paper"] or {}
    seconds, speed_up = record["sdp_seconds"], record["speed_up"]
    return [
        record["name"],
        record["rows"],
        None if seconds is None else f"{record['sign']}{text(seconds)}",
        record.get("sdp", {}).get("gap"),
        other.get("seconds"),
        other.get("gap"),
        auto.get("solver", "–"),
        auto.get("seconds"),
        auto.get("gap"),
        record["difference"],
        None if speed_up is None else f"{record['sign']}{text(speed_up)}",
        paper.get("sdp"),
        paper.get("frank-wolfe"),
        record["verdict"],
    ]


if __name__ == "__main__":
    main()
