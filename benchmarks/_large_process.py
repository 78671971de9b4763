"""One fit of a large table in a process of its own: its seconds and its peak memory are its own."""

from __future__ import annotations

import json
import sys
import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from _large_data import REGRESSION, TEST_ROWS_FROM, Rows, errors, leaves_of, make_rows
from _watched import peak_bytes, processor_seconds
from numpy.typing import NDArray

TEST_ROWS = 50_000
TRAINING_SHARE = 0.8


@dataclass
class Division:
    """Rows to learn from and rows to predict; those of a made-up table have clean targets."""

    task: str
    X: NDArray[np.float64]
    y: NDArray[Any]
    test: Rows


def main() -> None:
    """Answer a request, a JSON object in the first argument, on the last line of the output."""
    request = json.loads(sys.argv[1])
    warnings.simplefilter("ignore")  # the gap is reported instead
    print(json.dumps(measure(**request)))


def measure(
    *, table: dict[str, Any], model: str, settings: dict[str, Any], seed: int
) -> dict[str, Any]:
    """A fit, its errors on the other rows, and the peak of the memory before these are predicted.

    Parameters
    ----------
    table : dict
        "kind" and "rows" of a made-up table, or "name" and "most" of a set.
    model : {"ours", "lightgbm"}
        Which model.
    settings : dict
        Its parameters.
    seed : int
        Of the table, or of the division of a set.
    """
    data = made_up(seed=seed, **table) if "kind" in table else of_set(seed=seed, **table)
    estimator = ours(data.task, settings) if model == "ours" else lightgbm(data.task, settings)
    before = peak_bytes()
    begin, used = time.perf_counter(), processor_seconds()
    estimator.fit(data.X, data.y)
    seconds, used = time.perf_counter() - begin, processor_seconds() - used
    peak = peak_bytes()
    begin = time.perf_counter()
    predicted = estimator.predict(data.test.X)
    predict_seconds = time.perf_counter() - begin
    return {
        "task": data.task,
        "rows": len(data.X),
        "columns": data.X.shape[1],
        "test_rows": len(data.test.y),
        "seconds": seconds,
        "processor_seconds": used,
        "peak_bytes": peak,
        "peak_bytes_before": before,
        "predict_seconds": predict_seconds,
        **scores(data, predicted, with_clean="kind" in table),
        **facts(estimator),
    }


# ------------------------------------------------------------------------------------ tables


def made_up(*, kind: str, rows: int, seed: int) -> Division:
    """The first rows of a made-up table."""
    train = make_rows(rows, kind, seed)
    return Division(kind, train.X, train.y, make_rows(TEST_ROWS, kind, seed, TEST_ROWS_FROM))


def of_set(*, name: str, most: int | None, seed: int) -> Division:
    """Four fifths of the rows of a set, or of `most` of them; text is encoded."""
    from tessella.tabular import TabularEncoder
    from tessella_bench.suite import load_table

    table = load_table(name)
    order = np.random.default_rng(seed).permutation(len(table.y))[:most]
    cut = int(TRAINING_SHARE * len(order))
    train, test = np.sort(order[:cut]), np.sort(order[cut:])
    encoder = TabularEncoder().fit(table.X.iloc[train])
    X = [np.asarray(encoder.transform(table.X.iloc[k]), np.float64) for k in (train, test)]
    y = table.y[test]
    return Division(table.task, X[0], table.y[train], Rows(X[1], y, y))


def scores(data: Division, predicted: NDArray[Any], *, with_clean: bool) -> dict[str, float]:
    """1 - R² or the error rate, and for made-up tables the excess."""
    if with_clean:
        return errors(data.task, predicted, data.test)
    y = data.test.y
    if data.task == REGRESSION:
        return {"test_error": float(np.mean((predicted - y) ** 2) / np.var(y))}
    return {"test_error": float(np.mean(predicted != y))}


# ------------------------------------------------------------------------------------ models


def ours(task: str, settings: dict[str, Any]) -> Any:
    """A machine with a learned kernel, after a small fit that loads what it needs."""
    from tessella import LearnedKernelSVC, LearnedKernelSVR

    kind = LearnedKernelSVR if task == REGRESSION else LearnedKernelSVC
    rng = np.random.default_rng(0)
    X = rng.random((100, 2))
    kind().fit(X, X[:, 0] if task == REGRESSION else X[:, 0] > 0.5)
    return kind(**settings)


def lightgbm(task: str, settings: dict[str, Any]) -> Any:
    """LightGBM as it comes."""
    from lightgbm import LGBMClassifier, LGBMRegressor

    kind = LGBMRegressor if task == REGRESSION else LGBMClassifier
    return kind(verbosity=-1, **settings)


def facts(model: Any) -> dict[str, Any]:
    """What a fit of ours tells; nothing of a peer."""
    if not hasattr(model, "gap_"):
        return {}
    last = model.history_[-1]
    return {
        "gap": float(model.gap_),
        "status": str(model.status_),
        "objective": float(model.objective_),
        "leaves": leaves_of(model),
        "rounds": len(model.history_),
        "n_svm": int(last.n_svm),
        "n_newton": int(last.n_newton),
    }


if __name__ == "__main__":
    main()
