"""One default fit of several classes, beside one RBF machine with tuned parameters.

Digits, and tables of the suite with up to 26 classes, with one kernel for all pairs of classes. C
and gamma of the RBF machine are chosen by three-fold cross-validation on standardised features;
its time is that of one fit with these. Both are the fastest of three, after one that warms up. The
first record is the time after which a fit that is stopped has a certified model.
Writes many-classes.json and many-classes.md.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from _common import options, say
from _rbf import TunedRbf
from _report import Cache, write_report
from _roofs import best_of
from numpy.typing import NDArray
from sklearn.datasets import load_digits

from tessella import LearnedKernelSVC
from tessella.tabular import TabularEncoder
from tessella_bench.suite import load_table

Table = tuple[NDArray[np.float64], NDArray[Any]]

REPEATS = 3
MOST_TIMES = 5.0  # one RBF fit
LARGE_ROWS, LARGE_SECONDS = 20_000, 300.0


def main() -> None:
    arguments = _parse()
    settings = {"seed": arguments.seed, "rows": arguments.rows}
    cache = Cache(arguments, "many-classes", settings)
    records = []
    for name in arguments.datasets:
        cell = cache.cell(name, lambda n=name: measure(n, arguments.rows, arguments.seed))
        records.append({"name": name, **cell})
        say(f"{name}: {cell.get('error') or format(cell['seconds'], '.3f') + ' s'}")
    write_report(arguments, "many-classes", records, HEADERS, [_row(r) for r in records])


def _parse() -> argparse.Namespace:
    return options(__doc__, rows=4000, datasets=tuple(SETS)).parse_args()


def measure(name: str, rows: int, seed: int) -> dict[str, Any]:
    """The fits of one table; of more than twice the rows, ours is fitted once."""
    X, y = SETS[name]()
    chosen = np.random.default_rng(seed).permutation(len(X))[:rows]
    X, y = X[chosen], y[chosen]
    ours, peer = LearnedKernelSVC(), TunedRbf(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seconds = best_of(lambda: ours.fit(X, y), 1 if len(X) >= LARGE_ROWS else REPEATS)
    history = ours.history_
    return {
        "rows": len(X),
        "columns": X.shape[1],
        "classes": len(ours.classes_),
        "seconds": seconds,
        "peer_seconds": best_of(peer.fit, REPEATS),
        "peer_params": peer.params,
        "gap": float(ours.gap_),
        "objective": float(ours.objective_),
        "first_record": float(history[0].time),
        "first_gap": float(history[0].gap),
        "newton_steps": int(history[-1].n_newton),
    }


def of_suite(name: str) -> Callable[[], Table]:
    """A table of the suite, with its text encoded, and rows of classes with a single row left out.

    Cross-validation needs more than one row of a class.
    """

    def load() -> Table:
        table = load_table(name)
        X, y = np.asarray(TabularEncoder().fit_transform(table.X), np.float64), np.asarray(table.y)
        labels, counts = np.unique(y, return_counts=True)
        kept = np.isin(y, labels[counts > 1])
        return X[kept], y[kept]

    return load


SETS: dict[str, Callable[[], Table]] = {
    "digits": lambda: load_digits(return_X_y=True),
    "letter": of_suite("letter"),
    "soybean": of_suite("soybean"),
    "steel_plates": of_suite("steel_plates"),
}

HEADERS = (
    *("table", "rows", "columns", "classes", "fit s", "RBF fit s", "times", "gap", "objective"),
    *("first record s", "its gap", "Newton steps", "verdict"),
)


def _row(record: dict[str, Any]) -> list[Any]:
    if "error" in record:
        return [record["name"], *[None] * (len(HEADERS) - 2), record["error"]]
    return [
        *(record["name"], record["rows"], record["columns"], record["classes"]),
        *(record["seconds"], record["peer_seconds"], record["seconds"] / record["peer_seconds"]),
        *(record["gap"], record["objective"], record["first_record"], record["first_gap"]),
        *(record["newton_steps"], verdict(record)),
    ]


def verdict(record: dict[str, Any]) -> str:
    """Whether a table meets its target."""
    seconds, times = record["seconds"], record["seconds"] / record["peer_seconds"]
    if not record["gap"] <= 1e-3:
        return f"missed: gap {record['gap']:.0e}"
    if record["rows"] >= LARGE_ROWS:
        return "ok" if seconds <= LARGE_SECONDS else f"missed: {seconds:.0f} s"
    return "ok" if times <= MOST_TIMES else f"missed: {times:.1f} times"


if __name__ == "__main__":
    main()
