"""The search over the default grid beside the customary one of an RBF machine, on one thread.

`KernelPathCV` with a `LearnedKernelSVC` over its default grid (18 points of C and delta) against
`GridSearchCV` with an `SVC` on standardised features over 6 values of C and 6 of gamma, both with
the same five folds. Tables of 166 to 1,200 rows and 16 to 60 columns with two classes (of several,
the most frequent one against the others), and of 680 rows with four classes (the most frequent
ones). Seconds are those of the processor, with the fit of the best point on all rows; scores are
accuracies of the best points on the same rows that no search has seen.
Writes search-grid.json and search-grid.md.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from _common import options, say
from _report import write_report
from numpy.typing import NDArray
from sklearn.datasets import make_classification
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits
from wide import most_frequent

from tessella import KernelPathCV, LearnedKernelSVC
from tessella_bench.suite import load_table

Table = tuple[NDArray[np.float64], NDArray[Any]]

MOST_TIMES = 5.0
FOLDS = 5
RBF_GRID = {"svc__C": np.logspace(-1, 4, 6), "svc__gamma": np.logspace(-4, 1, 6)}
HELD_OUT = 1000  # rows at most


def main() -> None:
    arguments = _parse()
    records = []
    for name in arguments.datasets:
        records.append({"name": name, **measure(name, arguments.rows, arguments.seed)})
        ours, peer = records[-1]["seconds"], records[-1]["peer_seconds"]
        say(f"{name}: {ours:.2f} s, {ours / peer:.1f} times")
    write_report(arguments, "search-grid", records, HEADERS, [_row(r) for r in records])


def _parse() -> argparse.Namespace:
    return options(__doc__, rows=1200, datasets=tuple(SETS)).parse_args()


def measure(name: str, most: int, seed: int) -> dict[str, Any]:
    """Both searches on one table."""
    load, rows = SETS[name]
    X, y = load()
    order = np.random.default_rng(seed).permutation(len(X))
    rows = min(rows, most)
    train, test = order[:rows], order[rows : rows + HELD_OUT]
    folds = StratifiedKFold(FOLDS)
    search = KernelPathCV(LearnedKernelSVC(n_jobs=1), cv=folds)
    peer = GridSearchCV(make_pipeline(StandardScaler(), SVC()), RBF_GRID, cv=folds)
    with threadpool_limits(1):
        peer_seconds = processor_seconds(peer, X[train], y[train])
        seconds = processor_seconds(search, X[train], y[train])
    return {
        "rows": rows,
        "columns": X.shape[1],
        "classes": len(np.unique(y)),
        "seconds": seconds,
        "peer_seconds": peer_seconds,
        "params": search.best_params_,
        "peer_params": peer.best_params_,
        "score": float(search.score(X[test], y[test])),
        "peer_score": float(peer.score(X[test], y[test])),
        "worst_gap": float(np.max(search.cv_results_["worst_gap"])),
        "uncertified": int(search.cv_results_["n_uncertified"].sum()),
    }


def processor_seconds(search: Any, X: NDArray[np.float64], y: NDArray[Any]) -> float:
    """Seconds of the processor that a search takes."""
    begin = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search.fit(X, y)
    return time.process_time() - begin


def of_suite(name: str, classes: int = 2) -> Callable[[], Table]:
    """The numbers of a table of the suite, and two classes or the most frequent ones."""

    def load() -> Table:
        table = load_table(name)
        X, y = table.X.select_dtypes("number").to_numpy(np.float64), np.asarray(table.y)
        if table.task == "regression":
            return X, (y >= np.median(y)).astype(np.intp)
        if classes == 2:
            return X, most_frequent(y)
        labels, counts = np.unique(y, return_counts=True)
        kept = np.isin(y, labels[np.argsort(-counts, kind="stable")[:classes]])
        return X[kept], np.unique(y[kept], return_inverse=True)[1]

    return load


def of_clusters(columns: int) -> Callable[[], Table]:
    """Clusters of two classes in some of the columns, a third of which repeat others."""

    def load() -> Table:
        X, y = make_classification(
            2500,
            columns,
            n_informative=8,
            n_redundant=columns // 3,
            n_clusters_per_class=3,
            flip_y=0.05,
            random_state=0,
        )
        return X, y

    return load


# Tables and numbers of their rows that are searched on.
SETS: dict[str, tuple[Callable[[], Table], int]] = {
    "clusters, 34 columns": (of_clusters(34), 280),
    "clusters, 60 columns": (of_clusters(60), 166),
    "clusters, 57 columns": (of_clusters(57), 1200),
    "german_numer": (of_suite("german_numer"), 840),
    "ailerons": (of_suite("ailerons"), 840),
    "hill_valley": (of_suite("hill_valley"), 1000),
    "steel_plates": (of_suite("steel_plates"), 1200),
    "letter, 4 classes": (of_suite("letter", 4), 680),
    "steel_plates, 4 classes": (of_suite("steel_plates", 4), 680),
}

HEADERS = (
    *("table", "rows", "columns", "classes", "search s", "RBF search s", "times"),
    *("C", "delta", "score", "RBF score", "worst gap", "verdict"),
)


def _row(record: dict[str, Any]) -> list[Any]:
    times = record["seconds"] / record["peer_seconds"]
    return [
        *(record["name"], record["rows"], record["columns"], record["classes"]),
        *(record["seconds"], record["peer_seconds"], times),
        *(record["params"]["C"], record["params"]["delta"]),
        *(f"{record['score']:.3f}", f"{record['peer_score']:.3f}", record["worst_gap"]),
        "ok" if times <= MOST_TIMES else f"missed: {times:.1f} times",
    ]


if __name__ == "__main__":
    main()
