"""Time of predicting one row, 100 rows and 100,000 rows, beside SVC and SVR with an RBF kernel.

Every estimator with a learned kernel is fitted to an artificial problem. The RBF machine of its
task has as many support vectors (one fewer where their number is odd): it is fitted to that many
rows with so small a C that every row is one. Times are those of the public methods, including
their checks, as the smallest of several repetitions in turn. Needs no data, and writes nothing
but a table.
"""

from __future__ import annotations

import argparse
import timeit
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from _report import markdown_table
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC, SVR

from tessella import (
    LearnedKernelRidge,
    LearnedKernelRidgeClassifier,
    LearnedKernelSVC,
    LearnedKernelSVR,
    MultipleKernelSVC,
    MultipleKernelSVR,
)

FloatArray = NDArray[np.float64]

ONE_ROW_MICROSECONDS, TARGET = 150.0, 1.0
ROWS = (1, 100, 100_000)
METHODS = ("predict", "decision_function")
TWO, SEVERAL, VALUES = "two classes", "four classes", "regression"

_FIT_TOL = 1e-2
_REPETITIONS = 7
_LONG = 0.2  # seconds of a call from which on two repetitions have to do


@dataclass(frozen=True)
class Case:
    """A kind of estimator and the targets that it is fitted to."""

    name: str
    task: str
    make: Callable[..., Any]


CASES = (
    Case("LearnedKernelSVC", TWO, LearnedKernelSVC),
    Case("LearnedKernelSVC", SEVERAL, LearnedKernelSVC),
    Case("LearnedKernelSVR", VALUES, LearnedKernelSVR),
    Case("LearnedKernelRidgeClassifier", TWO, LearnedKernelRidgeClassifier),
    Case("LearnedKernelRidge", VALUES, LearnedKernelRidge),
    Case("MultipleKernelSVC", TWO, MultipleKernelSVC),
    Case("MultipleKernelSVR", VALUES, MultipleKernelSVR),
)
COLUMNS = {
    "estimator": "name",
    "task": "task",
    "support vectors": "support",
    "RBF support vectors": "peer_support",
    "method": "method",
    "rows": "rows",
    "RBF (µs)": "peer_microseconds",
    "ours (µs)": "microseconds",
    "ratio": "ratio",
    "verdict": "verdict",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--training-rows", type=int, default=600)
    parser.add_argument("--features", type=int, default=10)
    parser.add_argument("--rows", type=int, nargs="+", default=list(ROWS), help="rows to predict")
    parser.add_argument("--n-jobs", type=int, default=None, help="threads of the learned models")
    arguments = parser.parse_args()
    cells = []
    for case in CASES:
        cells += measure(
            case, arguments.training_rows, arguments.features, arguments.rows, arguments.n_jobs
        )
    print(
        markdown_table(list(COLUMNS), [[cell[key] for key in COLUMNS.values()] for cell in cells])
    )


def measure(
    case: Case, training_rows: int, features: int, rows: Sequence[int], n_jobs: int | None
) -> list[dict[str, Any]]:
    """Times of an estimator and of an RBF machine of its size, by method and number of rows."""
    X = problem(training_rows, features)
    model = case.make(tol=_FIT_TOL, n_jobs=n_jobs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # its accuracy does not matter here
        model.fit(X, targets(X, case.task))
    support = len(getattr(model, "support_", X))  # a ridge regression has no others
    peer = rbf_of_size(case.task, support, features)
    cells = []
    for count in rows:
        new = problem(count, features, seed=1)
        for method in METHODS:
            if not hasattr(peer, method):
                continue
            ours, theirs = seconds([getattr(model, method), getattr(peer, method)], new)
            cell = {
                "name": case.name,
                "task": case.task,
                "support": support,
                "peer_support": len(peer.support_),
                "method": method,
                "rows": count,
                "peer_microseconds": 1e6 * theirs,
                "microseconds": 1e6 * ours,
                "ratio": ours / theirs,
            }
            cells.append(cell | {"verdict": verdict(cell)})
    return cells


def verdict(cell: dict[str, Any]) -> str:
    """ "ok", or what was missed."""
    missed = []
    if not cell["ratio"] <= TARGET:
        missed.append("slower")
    if cell["rows"] == 1 and not cell["microseconds"] <= ONE_ROW_MICROSECONDS:
        missed.append(f"above {ONE_ROW_MICROSECONDS:g} µs")
    return ", ".join(missed) or "ok"


def problem(rows: int, features: int, seed: int = 0) -> FloatArray:
    """Rows in the unit cube."""
    return np.random.default_rng(seed).random((rows, features))


def targets(X: FloatArray, task: str) -> NDArray[Any]:
    """A noisy target, or its classes, which overlap, so that many rows are support vectors."""
    noise = np.random.default_rng(2).standard_normal(len(X))
    signal = np.sin(4.0 * X[:, 0]) + X[:, 1] * X[:, -1] + 0.7 * noise
    if task == VALUES:
        return signal
    parts = 2 if task == TWO else 4
    edges = np.quantile(signal, np.arange(1, parts) / parts)
    return np.searchsorted(edges, signal)


def rbf_of_size(task: str, support: int, features: int) -> Any:
    """An RBF machine with that many support vectors: all coefficients at a tiny bound."""
    classes = 4 if task == SEVERAL else 2
    even = support - support % classes  # an odd row could not balance another one
    X, labels = problem(even, features), np.arange(even) % classes
    if task == VALUES:
        return SVR(C=1e-3, epsilon=0.0).fit(X, 2.0 * labels - 1.0)
    return SVC(C=1e-3).fit(X, labels)


def seconds(methods: Sequence[Callable[[FloatArray], Any]], X: FloatArray) -> list[float]:
    """Seconds of one call of each: the smallest mean of several runs of calls, in turn."""
    timers = [timeit.Timer(lambda method=method: method(X)) for method in methods]
    ranges = [timer.autorange() for timer in timers]
    slowest = max(taken / calls for calls, taken in ranges)
    best = [taken / calls for calls, taken in ranges]
    for _ in range(1 if slowest > _LONG else _REPETITIONS):
        for k, (timer, (calls, _taken)) in enumerate(zip(timers, ranges, strict=True)):
            best[k] = min(best[k], timer.timeit(calls) / calls)
    return best


if __name__ == "__main__":
    main()
