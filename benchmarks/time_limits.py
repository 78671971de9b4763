"""How well fits keep their time limit, and what they leave when it ends them.

Twenty tables of normal columns with up to 5,000 columns, 20,000 rows and 26 classes, a score of a
few columns as the target, and every estimator with the parameter time_limit, each with two limits.
A limit is kept if the fit ends at most 10 % or 0.5 s later. A model is usable if its predictions of
the training rows are no worse than the best constant. Where half of the limit is enough for a
machine with a fixed kernel of the family, its objective is at most that of this machine. A fit that
has not ended after a minute is ended.
Writes time-limits.json and time-limits.md.
"""

from __future__ import annotations

import argparse
import signal
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from _common import FloatArray, options, say
from _report import Cache, write_report
from numpy.typing import NDArray

from tessella import (
    LearnedKernelRidge,
    LearnedKernelRidgeClassifier,
    LearnedKernelSVC,
    LearnedKernelSVR,
    MultipleKernelSVC,
    MultipleKernelSVR,
    TessellaClassifier,
    TessellaRegressor,
)
from tessella.solvers import SolverStatus

LATE_SHARE, LATE_SECONDS = 0.1, 0.5
LIMITS = ((0.5, 2.0), (2.0, 5.0))  # of every other table
CAP = 60.0  # seconds after which a fit is ended
RIDGE_ROWS = 5000  # beyond, the squared loss needs more memory than a small machine has
AS_GOOD = 1.01  # times the objective of a machine with a fixed kernel, which is solved to 1e-3
ENOUGH = 0.5  # part of a limit in which that machine has to be solved to be compared
NEARLY = 0.01  # of a score: the tube of a regression is centred at another constant than the mean


@dataclass(frozen=True)
class Shape:
    """The size of a table; no classes stand for a regression."""

    rows: int
    columns: int
    classes: int = 0

    def __str__(self) -> str:
        target = f"{self.classes} classes" if self.classes else "regression"
        return f"{self.rows} x {self.columns}, {target}"


SHAPES = (
    Shape(100, 5000, 2),
    Shape(400, 1200, 2),
    Shape(500, 5000, 2),
    Shape(1000, 2000, 2),
    Shape(2000, 100, 2),
    Shape(20000, 8, 2),
    Shape(300, 5000, 3),
    Shape(600, 500, 5),
    Shape(1500, 64, 10),
    Shape(600, 100, 26),
    Shape(4000, 16, 26),
    Shape(100, 5000),
    Shape(300, 3000),
    Shape(400, 1200),
    Shape(500, 5000),
    Shape(1000, 2000),
    Shape(2000, 100),
    Shape(3000, 300),
    Shape(5000, 20),
    Shape(20000, 8),
)
CLASSIFIERS = (
    *(LearnedKernelSVC, LearnedKernelRidgeClassifier, MultipleKernelSVC, TessellaClassifier),
)
REGRESSORS = (LearnedKernelSVR, LearnedKernelRidge, MultipleKernelSVR, TessellaRegressor)
RIDGE = (LearnedKernelRidge, LearnedKernelRidgeClassifier)


def main() -> None:
    arguments = _parse()
    chosen = [(k, shape) for k, shape in enumerate(SHAPES) if str(shape) in arguments.datasets]
    cache = Cache(arguments, "time-limits", {"seed": arguments.seed, "rows": arguments.rows})
    _warm_up()
    records = []
    for k, shape in chosen:
        for estimator in CLASSIFIERS if shape.classes else REGRESSORS:
            if estimator in RIDGE and shape.rows > RIDGE_ROWS:
                continue
            for limit in LIMITS[k % 2]:
                key = f"{shape}: {estimator.__name__}, {limit:g} s"
                cell = cache.cell(
                    key,
                    lambda s=shape, e=estimator, t=limit: measure(s, e, t, arguments),
                )
                named = {"table": str(shape), "estimator": estimator.__name__, "limit": limit}
                records.append({**named, **cell})
                say(f"{key}: {verdict(records[-1])}")
    kept = sum(verdict(record) == "ok" for record in records)
    say(f"{kept} of {len(records)} are ok")
    write_report(arguments, "time-limits", records, HEADERS, [_row(r) for r in records])


def _parse() -> argparse.Namespace:
    return options(__doc__, rows=None, datasets=tuple(map(str, SHAPES))).parse_args()


def _warm_up() -> None:
    """Load what every estimator needs."""
    for shape, estimators in ((Shape(40, 3, 2), CLASSIFIERS), (Shape(40, 3), REGRESSORS)):
        X, y = table_of(shape, 0)
        for estimator in estimators:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                estimator(time_limit=0.5).fit(X, y)


def table_of(shape: Shape, seed: int) -> tuple[FloatArray, NDArray[Any]]:
    """Normal columns, and a score of at most four of them with noise, or its quantiles."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((shape.rows, shape.columns))
    score = X[:, 0] * X[:, 1] + X[:, 2:4].sum(axis=1) + 0.5 * rng.standard_normal(shape.rows)
    if not shape.classes:
        return X, score
    ranks = np.argsort(np.argsort(score))
    return X, (ranks * shape.classes) // shape.rows


def measure(
    shape: Shape, estimator: Any, limit: float, arguments: argparse.Namespace
) -> dict[str, Any]:
    """One fit: its seconds, its gap, and whether its model is usable."""
    X, y = table_of(shape, arguments.seed)
    if arguments.rows is not None:
        X, y = X[: arguments.rows], y[: arguments.rows]
    model = estimator(time_limit=limit)
    begin = time.perf_counter()
    with warnings.catch_warnings(), _ended_after(CAP):
        warnings.simplefilter("ignore")
        model.fit(X, y)
        seconds = time.perf_counter() - begin
        score = float(model.score(X, y))
    constant = float(np.bincount(y).max() / len(y)) if shape.classes else 0.0
    return {
        "seconds": seconds,
        "gap": float(model.gap_),
        "score": score,
        "constant": constant,
        "share": share_of_plain(model, X, y),
    }


def share_of_plain(model: Any, X: FloatArray, y: NDArray[Any]) -> float | None:
    """The objective of a model, relative to that of the same machines with a fixed kernel.

    None for models without an objective, and if half of the time limit of the model is not enough
    for these machines.
    """
    if not hasattr(model, "objective_"):
        return None

    class Plain(type(model)):  # type: ignore[misc]
        def _fixed_parameter(self, _problem: Any, bound: Any) -> Any:
            return bound.plain_parameter

    plain = Plain(time_limit=ENOUGH * model.time_limit)
    begin = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain.fit(X, y)
    late = time.perf_counter() - begin > plain.time_limit
    if late or plain.status_ != SolverStatus.OPTIMAL.value:
        return None
    return float(model.objective_ / plain.objective_)


@contextmanager
def _ended_after(seconds: float) -> Iterator[None]:
    def end(*_: Any) -> None:
        raise TimeoutError(f"not ended after {seconds:g} s")

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


HEADERS = (
    *("table", "estimator", "limit s", "fit s", "late s", "gap", "training score", "constant"),
    *("objective / fixed kernel", "verdict"),
)


def _row(record: dict[str, Any]) -> list[Any]:
    named = [record["table"], record["estimator"], record["limit"]]
    if "error" in record:
        return [*named, *[None] * (len(HEADERS) - 4), verdict(record)]
    late = max(0.0, record["seconds"] - record["limit"])
    scores = [record["score"], record["constant"], record["share"]]
    return [*named, record["seconds"], late, record["gap"], *scores, verdict(record)]


def verdict(record: dict[str, Any]) -> str:
    """Whether a fit has kept its limit and left a usable model."""
    if "error" in record:
        return f"failed: {record['error']}"
    late = record["seconds"] - record["limit"]
    if late > max(LATE_SHARE * record["limit"], LATE_SECONDS):
        return f"missed: {late:.1f} s late"
    if not record["score"] >= record["constant"] - NEARLY:
        return "missed: worse than a constant"
    if record["share"] is not None and record["share"] > AS_GOOD:
        return f"missed: {record['share']:.2f} times the objective of a fixed kernel"
    return "ok"


if __name__ == "__main__":
    main()
