"""KernelPathCV against GridSearchCV over the same grid, and how good the default grid is.

For each set, the estimator as shipped, the default grid, the same folds and the same `n_jobs`:
wall-clock and processor seconds of both searches, with the elimination of hopeless points off and
on, the choices, the scores of the choices and the worst certified gap. Writes tuning.json and
tuning.md.

Target: the choice of GridSearchCV at least 5 times faster, by the clock and by the processor: the
smaller ratio counts, so that a busy machine cannot flatter. Where a plateau of the score makes the
choice a matter of the last digits, "regret" tells what GridSearchCV's own table says the other
choice loses; scores of two fits certified to the same tolerance differ by about 0.001.

With --study: a fine grid on every set, and what the best point of some coarser grids loses to its
best. That is where the default grid comes from. Writes tuning-grid.json and tuning-grid.md.
"""

from __future__ import annotations

import argparse
import itertools
import os
import time
import warnings
from typing import Any

import numpy as np
from _common import CLASSIFICATION, TWELVE, Dataset, load, options, say
from _report import Cache, write_report
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold

from tessella import KernelPathCV, LearnedKernelSVC, LearnedKernelSVR
from tessella.model_selection._grid import DEFAULT_C, DEFAULT_DELTA

SETS = ("abalone", "airfoil")
FASTER = 5.0
AS_GOOD = 1e-3  # what the scores of two fits at tol=1e-3 may differ by

FINE_C = tuple(float(C) for C in np.logspace(-3, 4, 15))
FINE_DELTA = (0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
DECADES = (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0, 10000.0)
GRIDS: dict[str, tuple[tuple[float, ...], tuple[float, ...]]] = {
    "C=10, delta 0.5: the estimator as shipped": ((10.0,), (0.5,)),
    "C 0.1 to 1e4, delta 0.5": (DECADES[1:], (0.5,)),
    "C 0.1 to 1e4, delta 0.1 2": (DECADES[1:], (0.1, 2.0)),
    "C 0.01 to 1e3, delta 0.1 0.5 2": (DECADES[:-1], (0.1, 0.5, 2.0)),
    "C 0.1 to 1e4, delta 0.1 0.5 2": (DECADES[1:], (0.1, 0.5, 2.0)),
    "C 0.01 to 1e3, delta 0.1 1 4": (DECADES[:-1], (0.1, 1.0, 4.0)),
    "C 0.1 to 1e4, delta 0.1 1 4: the default grid": (DEFAULT_C, DEFAULT_DELTA),
    "C 0.01 to 1e4, delta 0.1 1 4": (DECADES, (0.1, 1.0, 4.0)),
    "C 0.1 to 1e4, delta 0.05 0.25 1 4": (DECADES[1:], (0.05, 0.25, 1.0, 4.0)),
    "C 0.1 to 1e4 in half decades, delta 0.1 1 4": (FINE_C[4:], (0.1, 1.0, 4.0)),
}


def main() -> None:
    arguments = _parse()
    if arguments.study:
        study(arguments)
    else:
        compare(arguments)


def _parse() -> argparse.Namespace:
    parser = options(__doc__, rows=None, datasets=())
    parser.add_argument("--study", action="store_true", help="of grids, instead of speed")
    parser.add_argument("--folds", type=int, default=5, help="(default: 5)")
    parser.add_argument(
        "--jobs", type=int, nargs="+", default=[1], help="n_jobs of both searches (default: 1)"
    )
    arguments = parser.parse_args()
    arguments.datasets = arguments.datasets or list(TWELVE if arguments.study else SETS)
    return arguments


def _estimator(data: Dataset) -> LearnedKernelSVC | LearnedKernelSVR:
    return LearnedKernelSVC() if data.task == CLASSIFICATION else LearnedKernelSVR()


def _folds(data: Dataset, arguments: argparse.Namespace) -> Any:
    kind = StratifiedKFold if data.task == CLASSIFICATION else KFold
    return kind(arguments.folds, shuffle=True, random_state=arguments.seed)


# --------------------------------------------------------------------------------------- speed


def compare(arguments: argparse.Namespace) -> None:
    records = []
    for name, jobs in itertools.product(arguments.datasets, arguments.jobs):
        data = load(name, arguments.rows, arguments.seed)
        grid = {"C": DEFAULT_C, "delta": DEFAULT_DELTA}
        common = {"cv": _folds(data, arguments), "n_jobs": jobs}
        searches = {
            "GridSearchCV": GridSearchCV(_estimator(data), grid, **common),
            "KernelPathCV": KernelPathCV(_estimator(data), grid, **common),
            "KernelPathCV, eliminate": KernelPathCV(
                _estimator(data), grid, eliminate=True, **common
            ),
        }
        about = {"name": name, "rows": len(data.y), "jobs": jobs}
        found = {label: about | measure(search, data) for label, search in searches.items()}
        reference = found["GridSearchCV"]
        for label, record in found.items():
            if record is not reference:
                record["verdict"] = verdict(record, reference)
            records.append(record | {"by": label})
            say(f"{name}, n_jobs={jobs}, {label}: {record['seconds']:.1f} s, {record['choice']}")
    write_report(arguments, "tuning", records, HEADERS, [_row(record) for record in records])


def measure(search: Any, data: Dataset) -> dict[str, Any]:
    """Seconds, choice and certificates of a search."""
    begin, before = time.perf_counter(), os.times()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search.fit(data.X, data.y)
    seconds, after = time.perf_counter() - begin, os.times()
    results = search.cv_results_
    return {
        "seconds": seconds,
        # Of this process: with more jobs than one those of the workers are missing.
        "processor_seconds": after.user + after.system - before.user - before.system,
        "choice": {name: float(value) for name, value in search.best_params_.items()},
        "score": float(search.best_score_),
        "points": [{k: float(v) for k, v in point.items()} for point in results["params"]],
        "scores": results["mean_test_score"].tolist(),
        "worst_gap": float(np.nanmax(results["worst_gap"])) if "worst_gap" in results else None,
        "fits": int(np.isfinite(scores_by_fold(search)).sum()),
    }


def scores_by_fold(search: Any) -> Any:
    """Scores by fold and point; NaN for fits that were not made."""
    return np.array([search.cv_results_[f"split{k}_test_score"] for k in range(search.n_splits_)])


def verdict(record: dict[str, Any], reference: dict[str, Any]) -> str:
    """About the choice and the ratio of the times; writes both into the record."""
    place = reference["points"].index(record["choice"])
    record["regret"] = reference["score"] - reference["scores"][place]
    record["ratio"] = reference["seconds"] / record["seconds"]
    record["processor_ratio"] = reference["processor_seconds"] / record["processor_seconds"]
    remarks = []
    if record["choice"] != reference["choice"]:
        tied = record["regret"] <= AS_GOOD
        remarks.append("another choice" + (", as good" if tied else ""))
    alone = record["jobs"] == 1
    if min(record["ratio"], record["processor_ratio"] if alone else np.inf) < FASTER:
        remarks.append(f"below {FASTER:g} times")
    return "missed: " + ", ".join(remarks) if remarks else "ok"


HEADERS = (
    *("set", "rows", "n_jobs", "search", "fits", "s", "times faster", "processor s"),
    *("times less", "C", "delta", "score", "regret", "worst gap", "verdict"),
)


def _row(record: dict[str, Any]) -> list[Any]:
    alone = record["jobs"] == 1  # else most of the work is done by processes not counted here
    return [
        *(record["name"], record["rows"], record["jobs"], record["by"], record["fits"]),
        *(record["seconds"], record.get("ratio")),
        record["processor_seconds"] if alone else None,
        record.get("processor_ratio") if alone else None,
        *(record["choice"]["C"], record["choice"]["delta"], f"{record['score']:.4f}"),
        *(record.get("regret"), record["worst_gap"], record.get("verdict", "–")),
    ]


# --------------------------------------------------------------------------------------- study


def study(arguments: argparse.Namespace) -> None:
    rows = arguments.rows or 1000
    settings = {"rows": rows, "seed": arguments.seed, "folds": arguments.folds}
    cache = Cache(arguments, "tuning-grid", settings)
    records = []
    for name in arguments.datasets:
        data = load(name, rows, arguments.seed)
        cell = cache.cell(f"{name}: fine grid", lambda data=data: _fine(data, arguments))
        records.append({"name": name, "rows": len(data.y), **cell, **_losses(cell["points"])})
        say(f"{name}: best {cell['best']}")
    names = [record["name"] for record in records]
    table = [
        [grid, len(Cs) * len(deltas)]
        + [f"{record['losses'][grid]:.4f}" for record in records]
        + [f"{np.mean([record['losses'][grid] for record in records]):.4f}"]
        for grid, (Cs, deltas) in GRIDS.items()
    ]
    write_report(arguments, "tuning-grid", records, ["grid", "points", *names, "mean"], table)


def _fine(data: Dataset, arguments: argparse.Namespace) -> dict[str, Any]:
    search = KernelPathCV(
        _estimator(data).set_params(time_limit=20.0),
        {"C": FINE_C, "delta": FINE_DELTA},
        cv=_folds(data, arguments),
        refit=False,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search.fit(data.X, data.y)
    scores = search.cv_results_["mean_test_score"]
    points = [
        {**params, "score": float(score)}
        for params, score in zip(search.cv_results_["params"], scores, strict=True)
    ]
    return {"points": points, "best": max(points, key=lambda point: point["score"])}


def _losses(points: list[dict[str, float]]) -> dict[str, Any]:
    """What the best point of each grid loses to the best of all, in accuracy or R2."""
    scores = {(f"{point['C']:.3g}", point["delta"]): point["score"] for point in points}
    best = max(scores.values())
    return {
        "losses": {
            name: best - max(scores[f"{C:.3g}", delta] for C in Cs for delta in deltas)
            for name, (Cs, deltas) in GRIDS.items()
        }
    }


if __name__ == "__main__":
    main()
