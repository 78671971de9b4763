"""Where the time of a default fit goes, and what the machine would allow.

Every part of a fit is timed by wrapping the functions it consists of; the times are exclusive, so
the rows add up to the fit. Flops and bytes are those each part needs, from shapes and counts; a
stream copy and a matrix product timed in the same run give the roofs, and the last columns the
part of the binding roof that was attained. Data that stays in the cache can exceed the roof of
the memory. Writes profile.json and profile.md. With --cases, the tables are small, wide, nearly
separable or of several classes instead, each with the fastest of some fits, and the files are
profile-cases.json and profile-cases.md.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from _common import CLASSIFICATION, Dataset, load, options, say
from _fit_cases import CASES
from _fit_probes import ORDER, REST, probes
from _report import attempt, write_report
from _roofs import Roofs, measure_roofs
from _speed import prepare_memory
from _timers import Row, Timers
from sklearn.exceptions import ConvergenceWarning

from tessella import LearnedKernelSVC, LearnedKernelSVR
from tessella.estimators import paper_settings
from tessella_bench._library import TrainingSet

_REPEATS = 5


def main() -> None:
    arguments = _parse()
    _warm_up()
    roofs = measure_roofs()
    say(roofs.described())
    records = []
    for name, rows, profile in _cases(roofs) if arguments.cases else _sets(arguments, roofs):
        record = {"name": name, "rows": rows, **attempt(profile)}
        say(f"{name}, {rows} rows: {_progress(record)}")
        records.append(record)
    lines = [line for record in records for line in _lines(record)]
    results = {"roofs": roofs.as_dict(), "fits": records}
    report = "profile-cases" if arguments.cases else "profile"
    path = write_report(arguments, report, results, HEADERS, lines)
    notes = "\n".join(f"- {r['name']}, {r['rows']} rows: {_progress(r)}" for r in records)
    table = path.with_suffix(".md")
    table.write_text(f"{table.read_text()}\n{roofs.described()}\n\n{notes}\n")
    print(f"\n{roofs.described()}\n\n{notes}", flush=True)


Profile = tuple[str, int, Callable[[], dict[str, Any]]]


def _sets(arguments: argparse.Namespace, roofs: Roofs) -> Iterator[Profile]:
    """Sets of the paper at several numbers of rows, with given settings."""
    for name in arguments.datasets:
        for rows in arguments.sizes:
            data = load(name, rows, arguments.seed)
            yield name, len(data.y), partial(_profile_set, data, arguments, roofs)


def _cases(roofs: Roofs) -> Iterator[Profile]:
    """The other tables, with the settings of each."""
    for name, case in CASES.items():
        X, y = case.table()
        model = LearnedKernelSVC(**case.settings)
        yield f"{case.kind}: {name}", len(y), partial(_fastest, model, X, y, roofs)


def _parse() -> argparse.Namespace:
    parser = options(__doc__, rows=None, datasets=["cadata"])
    parser.add_argument(
        "--sizes",
        type=int,
        nargs="+",
        default=[2000, 8000, 20000],
        metavar="ROWS",
        help="rows of the fits (default: 2000 8000 20000)",
    )
    parser.add_argument(
        "--cases",
        action="store_true",
        help="small, wide and nearly separable tables and several classes, with the defaults",
    )
    parser.add_argument("--C", type=float, default=10.0, help="weight of the loss (default: 10)")
    parser.add_argument("--delta", type=float, default=0.5, help="margin (default: 0.5)")
    parser.add_argument("--tol", type=float, default=1e-3, help="gap (default: 1e-3)")
    parser.add_argument(
        "--precision", default="float64", choices=("float64", "float32"), help="of the storage"
    )
    return parser.parse_args()


def _warm_up() -> None:
    """A fit that is not measured: the first one of a process also loads what it needs."""
    rng = np.random.default_rng(0)
    LearnedKernelSVR().fit(rng.random((600, 2)), rng.random(600))


def _profile_set(data: Dataset, arguments: argparse.Namespace, roofs: Roofs) -> dict[str, Any]:
    estimator = LearnedKernelSVC if data.task == CLASSIFICATION else LearnedKernelSVR
    given = {name: getattr(arguments, name) for name in ("C", "delta", "tol", "precision")}
    model = estimator(**{**paper_settings(data.task), **given})
    return _profile(model, data.X, data.y, roofs)


def _fastest(model: Any, X: Any, y: Any, roofs: Roofs) -> dict[str, Any]:
    """The fastest of some fits after one that warms up, because these fits are short."""
    records = [_profile(model, X, y, roofs) for _ in range(_REPEATS + 1)]
    return min(records[1:], key=lambda record: record["seconds"])


def _profile(model: Any, X: Any, y: Any, roofs: Roofs) -> dict[str, Any]:
    distinct = len(TrainingSet.build(X, y, np.ones(len(y))).y)
    timers = Timers()
    prepare_memory(24.0 * distinct**2)
    with warnings.catch_warnings(), timers.installed(probes(distinct)):
        warnings.simplefilter("ignore", ConvergenceWarning)  # the gap is reported instead
        begin = time.perf_counter()
        with timers.row(REST):
            model.fit(X, y)
        seconds = time.perf_counter() - begin
    last = model.history_[-1]
    return {
        "distinct_rows": distinct,
        "features": X.shape[1],
        "n_params": len(model.parameter_),
        "seconds": seconds,
        "solver": model.solver_,
        "gap": model.gap_,
        "objective": model.objective_,
        "n_svm": last.n_svm,
        "svm_pair_steps": last.svm_iter,
        "n_newton": last.n_newton,
        "support": len(model.support_),
        "free": _count_free(model),
        "not_found": timers.missing,
        "parts": [_part(name, timers.rows[name], seconds, roofs) for name in _names(timers)],
    }


def _count_free(model: Any) -> int:
    """Support vectors strictly inside the box."""
    coefficients = np.abs(model.dual_coef_[0])
    return int((coefficients < coefficients.max() * (1 - 1e-12)).sum())


def _names(timers: Timers) -> list[str]:
    """Rows that were met, in the order of the page."""
    unknown = [name for name in timers.rows if name not in ORDER]
    return [name for name in (*ORDER, *unknown) if name in timers.rows]


def _part(name: str, row: Row, total: float, roofs: Roofs) -> dict[str, Any]:
    bound, roof = roofs.bound(row.flops, row.bytes)
    counted, seconds = row.flops > 0, max(row.seconds, 1e-9)
    return {
        "part": name,
        "calls": row.calls,
        "seconds": row.seconds,
        "share": row.seconds / total,
        "gflop": 1e-9 * row.flops if counted else None,
        "gb": 1e-9 * row.bytes if counted else None,
        "gflop_per_s": 1e-9 * row.flops / seconds if counted else None,
        "gb_per_s": 1e-9 * row.bytes / seconds if counted else None,
        "roof": roof if counted else None,
        "of_roof": bound / seconds if counted else None,
    }


HEADERS = (
    *("set", "rows", "part", "calls", "seconds", "share", "GFlop", "GB", "GFlop/s", "GB/s"),
    *("roof", "of the roof"),
)


def _lines(record: dict[str, Any]) -> list[list[Any]]:
    if "error" in record:
        return [[record["name"], record["rows"], "failed", *[None] * 9]]
    head = [record["name"], record["rows"]]
    keys = ("gflop", "gb", "gflop_per_s", "gb_per_s")
    lines = [
        [
            *head,
            part["part"],
            part["calls"],
            part["seconds"],
            f"{100 * part['share']:.1f} %",
            *(part[key] for key in keys),
            part["roof"] or "–",
            part["of_roof"],
        ]
        for part in record["parts"]
    ]
    sums = [sum(part[key] or 0.0 for part in record["parts"]) for key in keys[:2]]
    return [*lines, [*head, "all", 1, record["seconds"], "100 %", *sums, None, None, "–", None]]


def _progress(record: dict[str, Any]) -> str:
    if "error" in record:
        return f"failed: {record['error']}"
    found = f"; not found: {', '.join(record['not_found'])}" if record["not_found"] else ""
    return (
        f"{record['seconds']:.2f} s, {record['solver']}, gap {record['gap']:.1e}, objective "
        f"{record['objective']:.6g}, {record['n_svm']} SVM solves, {record['n_newton']} Newton "
        f"steps, {record['support']} support vectors of which {record['free']} free{found}"
    )


if __name__ == "__main__":
    main()
