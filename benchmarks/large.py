"""Fits whose rows are divided into leaves: a million rows, growth, and what they lose.

Three parts, each with a table of its own. Every fit runs in a process of its own, which begins with
a small fit; its peak memory is that of the whole process with its data, before it predicts.

size      One fit of `--rows` made-up rows with ten columns, as a regression and as two classes,
          beside the exact fit of 50,000 of these rows and LightGBM with its defaults on all of
          them. Errors are those of 50,000 other rows: 1 - R² or error rates, and what is above the
          best possible predictions.
growth    Seconds for a tenth, three tenths and all of these rows, and the exponent of their growth.
held-out  Five real tables, a fifth of whose rows is held out, with text encoded: errors and seconds
          beside the exact fit of the same rows, for three divisions.

Writes large-data.json, large-data-growth.json and large-data-held-out.json, and .md of each; with
--quick, a run of small sizes that shows that everything works, "quick-" before each name. Needs the
package lightgbm for the part size.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from typing import Any

import numpy as np
from _common import options, say
from _large_data import CLASSIFICATION, REGRESSION
from _report import Cache, text, write_report
from _watched import in_own_process

KINDS = (REGRESSION, CLASSIFICATION)
PARTS = ("size", "growth", "held-out")
# Sets, and the most rows of each.
SETS: dict[str, int | None] = {
    "gas_turbine": None,
    "cadata": None,
    "electricity": None,
    "adult": 45_000,
    "bike_sharing": None,
}
SHARES = (0.1, 0.3, 1.0)

MOST_SECONDS, MOST_BYTES = 600.0, 4e9
MOST_EXPONENT = 1.1
MOST_ERROR = 1.03  # times that of the exact fit
MOST_TIME, FROM_ROWS = 0.3, 20_000  # times that of the exact fit, beyond so many training rows
QUICK_ROWS, QUICK_LEAF = 5000, 1000

Record = dict[str, Any]


def main() -> None:
    arguments = _parse()
    bench = Bench(arguments)
    if "size" in arguments.parts:
        records = [record for kind in KINDS for record in size(bench, kind)]
        bench.report("large-data", records, SIZE_HEADERS, [_size_row(r) for r in records])
    if "growth" in arguments.parts:
        records = [growth(bench, kind) for kind in KINDS]
        rows = [row for record in records for row in _growth_rows(record)]
        bench.report("large-data-growth", records, GROWTH_HEADERS, rows)
    if "held-out" in arguments.parts:
        records = [held_out(bench, name) for name in arguments.datasets]
        rows = [_held_out_row(record) for record in records]
        bench.report("large-data-held-out", records, HELD_OUT_HEADERS, rows)


def _parse() -> argparse.Namespace:
    parser = options(__doc__, rows=1_000_000, datasets=tuple(SETS))
    add = parser.add_argument
    add("--parts", nargs="+", choices=PARTS, default=list(PARTS), help="default: all of them")
    add("--seeds", type=int, default=3, help="divisions of a set (default: 3)")
    add("--threads", type=int, default=2, help="of every fit (default: 2)")
    add("--tol", type=float, default=1e-2, help="gap of made-up rows (default: 0.01)")
    add("--set-tol", type=float, default=1e-3, help="gap of the sets (default: 0.001)")
    add("--exact-rows", type=int, default=50_000, help="of the exact fit (default: 50,000)")
    leaf = "rows of a leaf; 0 for estimators without leaves (default: 5,000)"
    add("--max-leaf-rows", type=int, default=5000, help=leaf)
    more = """other parameters of the fits with leaves, in JSON: '{"partition": "median"}'"""
    add("--settings", type=json.loads, default={}, help=more)
    add("--time-cap", type=float, default=3600.0, help="seconds of a process (default: 3,600)")
    again = "measure the fits with leaves again, but not the others"
    add("--again", action="store_true", help=again)
    add("--quick", action="store_true", help="small sizes and one division, in minutes")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.rows = min(arguments.rows, QUICK_ROWS)
        arguments.exact_rows = QUICK_ROWS // 2
        arguments.max_leaf_rows = min(arguments.max_leaf_rows, QUICK_LEAF)
        arguments.seeds = 1
    return arguments


# ---------------------------------------------------------------------------------------- fits


class Bench:
    """The fits of this run, in processes of their own, and those of earlier ones."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.arguments = arguments
        threads = {"threads": arguments.threads}
        ours = argparse.Namespace(**vars(arguments))
        ours.fresh = arguments.fresh or arguments.again
        self._ours = Cache(ours, "large-data", threads)
        self._others = Cache(arguments, "large-data-others", threads)

    def leaves(self, table: Record, tol: float, seed: int) -> Record:
        """A fit with leaves."""
        given = self.arguments
        leaves = {"max_leaf_rows": given.max_leaf_rows} if given.max_leaf_rows else {}
        return self._fit(self._ours, "ours", table, {"tol": tol, **leaves, **given.settings}, seed)

    def exact(self, table: Record, tol: float, seed: int) -> Record:
        """The exact fit."""
        return self._fit(self._others, "ours", table, {"tol": tol}, seed)

    def lightgbm(self, table: Record, seed: int) -> Record:
        """LightGBM with its defaults."""
        return self._fit(self._others, "lightgbm", table, {}, seed)

    def _fit(self, cache: Cache, model: str, table: Record, settings: Record, seed: int) -> Record:
        settings = {**settings, "n_jobs": self.arguments.threads}
        request = {"table": table, "model": model, "settings": settings, "seed": seed}
        cap = self.arguments.time_cap
        found = cache.cell(
            json.dumps(request, sort_keys=True),
            lambda: in_own_process("_large_process.py", request, cap),
        )
        named = f"{table['name']}" if "name" in table else f"{table['kind']}, {table['rows']:,}"
        say(f"{named}, {model} {json.dumps(settings)}: {_told(found)}")
        return found

    def report(self, name: str, records: Any, headers: tuple[str, ...], rows: Any) -> None:
        """Write a table, and all numbers."""
        quick = "quick-" if self.arguments.quick else ""
        write_report(self.arguments, quick + name, records, headers, rows)


def _told(found: Record) -> str:
    if failed(found):
        return str(found["error"])
    gap = f", gap {found['gap']:.1e}" if "gap" in found else ""
    return f"{found['seconds']:.1f} s, error {found['test_error']:.4g}{gap}"


def failed(found: Record) -> bool:
    """Whether a fit has no result, but a text that says why."""
    return "error" in found


# ---------------------------------------------------------------------------------------- size


def size(bench: Bench, kind: str) -> list[Record]:
    """Fits of all rows, and the exact one of some of them."""
    given = bench.arguments
    every = {"kind": kind, "rows": given.rows}
    some = {"kind": kind, "rows": min(given.exact_rows, given.rows)}
    found = {
        "with leaves": bench.leaves(every, given.tol, given.seed),
        "exact": bench.exact(some, given.tol, given.seed),
        "LightGBM": bench.lightgbm(every, given.seed),
    }
    exact = found["exact"].get("test_error", 0.0)
    records = [{"kind": kind, "fit": name, **fit} for name, fit in found.items()]
    records[0]["verdict"] = size_verdict(records[0], exact, given.tol)
    return records


def size_verdict(ours: Record, exact: float, tol: float) -> str:
    """Whether the fit of all rows meets its targets."""
    if failed(ours):
        return f"failed: {ours['error']}"
    checks = {
        f"gap {ours['gap']:.1e}": ours["gap"] <= tol,
        f"{ours['seconds']:.0f} s": ours["seconds"] <= MOST_SECONDS,
        f"{ours['peak_bytes'] / 1e9:.2f} GB": ours["peak_bytes"] <= MOST_BYTES,
        "error": ours["test_error"] < exact,
    }
    return _verdict(checks)


def _verdict(checks: dict[str, bool]) -> str:
    missed = [name for name, met in checks.items() if not met]
    return f"missed: {', '.join(missed)}" if missed else "ok"


SIZE_HEADERS = (
    *("target", "fit", "rows", "leaves", "fit s", "processor s", "peak GB", "gap"),
    *("error", "above the best", "verdict"),
)


def _size_row(record: Record) -> list[Any]:
    named = [record["kind"], record["fit"]]
    if failed(record):
        return [*named, *[None] * (len(SIZE_HEADERS) - 3), record["error"]]
    return [
        *(*named, record["rows"], record.get("leaves"), record["seconds"]),
        *(record["processor_seconds"], record["peak_bytes"] / 1e9, record.get("gap")),
        *(_digits(record["test_error"]), _digits(record["excess"]), record.get("verdict", "")),
    ]


def _digits(error: float) -> str:
    return f"{error:.4f}"


# -------------------------------------------------------------------------------------- growth


def growth(bench: Bench, kind: str) -> Record:
    """Seconds for more and more rows."""
    given = bench.arguments
    sizes = [round(share * given.rows) for share in SHARES]
    fits = [bench.leaves({"kind": kind, "rows": n}, given.tol, given.seed) for n in sizes]
    ended = [fit for fit in fits if not failed(fit)]
    exponents = {
        key: exponent([fit["rows"] for fit in ended], [fit[key] for fit in ended])
        for key in ("seconds", "processor_seconds")
    }
    return {"kind": kind, "sizes": sizes, "fits": fits, "exponents": exponents}


def exponent(rows: list[int], seconds: list[float]) -> float | None:
    """Slope of the line through the logarithms; None for less than two fits."""
    if len(rows) < 2:
        return None
    return float(np.polyfit(np.log(rows), np.log(seconds), 1)[0])


GROWTH_HEADERS = (
    *("target", "rows", "leaves", "fit s", "processor s", "peak GB", "gap", "exponent"),
    *("of processor s", "verdict"),
)


def _growth_rows(record: Record) -> list[list[Any]]:
    empty = len(GROWTH_HEADERS) - 3
    rows = []
    for n, fit in zip(record["sizes"], record["fits"], strict=True):
        if failed(fit):
            rows.append([record["kind"], n, *[None] * empty, fit["error"]])
            continue
        named = [record["kind"], n, fit.get("leaves"), fit["seconds"], fit["processor_seconds"]]
        rows.append([*named, fit["peak_bytes"] / 1e9, fit["gap"], None, None, ""])
    found = record["exponents"]["seconds"]
    if not failed(record["fits"][-1]):
        met = found is not None and found <= MOST_EXPONENT
        last = [found, record["exponents"]["processor_seconds"]]
        rows[-1][-3:] = [*last, "ok" if met else f"missed: exponent {text(found)}"]
    return rows


# ------------------------------------------------------------------------------------ held-out


def held_out(bench: Bench, name: str) -> Record:
    """Both fits of the divisions of a set."""
    given = bench.arguments
    most = SETS.get(name)
    capped = given.rows if most is None else min(most, given.rows)
    table = {"name": name, "most": capped}
    fits: dict[str, list[Record]] = {"leaves": [], "exact": []}
    for seed in range(given.seed, given.seed + given.seeds):
        fits["exact"].append(bench.exact(table, given.set_tol, seed))
        fits["leaves"].append(bench.leaves(table, given.set_tol, seed))
    found = {"name": name, **fits}
    broken = [fit["error"] for fit in [*fits["leaves"], *fits["exact"]] if failed(fit)]
    if broken:
        return {**found, "verdict": f"failed: {broken[0]}"}
    return {**found, **compared(fits["leaves"], fits["exact"], given.set_tol)}


def compared(leaves: list[Record], exact: list[Record], tol: float) -> Record:
    """Means over the divisions, their ratios, and whether these meet the targets."""
    mean = _means(leaves), _means(exact)
    ratios = {key: mean[0](key) / mean[1](key) for key in ("test_error", "seconds")}
    gap = max(fit["gap"] for fit in leaves)
    late = leaves[0]["rows"] > FROM_ROWS and ratios["seconds"] > MOST_TIME
    checks = {
        f"gap {gap:.1e}": gap <= tol,
        f"error {ratios['test_error']:.3f} times": ratios["test_error"] <= MOST_ERROR,
        f"seconds {ratios['seconds']:.2f} times": not late,
    }
    return {"ratios": ratios, "worst_gap": gap, "verdict": _verdict(checks)}


def _means(fits: list[Record]) -> Callable[[str], float]:
    return lambda key: float(np.mean([fit[key] for fit in fits]))


HELD_OUT_HEADERS = (
    *("table", "rows", "columns", "leaves", "error", "exact error", "times", "fit s"),
    *("exact fit s", "times ", "peak GB", "exact peak GB", "worst gap", "verdict"),
)


def _held_out_row(record: Record) -> list[Any]:
    if "ratios" not in record:
        return [record["name"], *[None] * (len(HELD_OUT_HEADERS) - 2), record["verdict"]]
    ours, exact, ratios = _means(record["leaves"]), _means(record["exact"]), record["ratios"]
    first = record["leaves"][0]
    return [
        *(record["name"], first["rows"], first["columns"], first.get("leaves")),
        *(_digits(ours("test_error")), _digits(exact("test_error")), _digits(ratios["test_error"])),
        *(ours("seconds"), exact("seconds"), ratios["seconds"]),
        *(ours("peak_bytes") / 1e9, exact("peak_bytes") / 1e9, record["worst_gap"]),
        record["verdict"],
    ]


if __name__ == "__main__":
    main()
