"""Measuring one cell of the suite, in the process of that cell."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from tessella_bench._cells import OK, Cell, Record
from tessella_bench._machine import PACKAGES, versions
from tessella_bench._methods import CLASSIFICATION, Fitted, plain
from tessella_bench.suite._data import SuiteTable, load_table
from tessella_bench.suite._divisions import checksum, divide
from tessella_bench.suite._methods import find_method
from tessella_bench.suite._scores import log_loss, scores


def prepare(
    cell: Cell, data_home: str | None, options: dict[str, Any]
) -> Callable[[Callable[[], None]], Record]:
    """Load data and method of a cell.

    Parameters
    ----------
    cell : Cell
        What to measure.
    data_home : str or None
        As for :func:`tessella.datasets.load`.
    options : dict
        Keywords for the method.

    Returns
    -------
    callable
        Measures the cell; its argument is called between the fit and the prediction.
    """
    table = load_table(cell.dataset, data_home)
    return partial(_measured, cell, table, partial(find_method(cell.method).load(), **options))


def _measured(
    cell: Cell, table: SuiteTable, run: Callable[..., Fitted], fitted_now: Callable[[], None]
) -> Record:
    assert cell.rows is not None
    train, test = divide(table.task, table.y, cell.rows, cell.split)
    # Rows are numbered anew, as in a table that was read from a file of its own.
    A, B = (table.X.iloc[rows].reset_index(drop=True) for rows in (train, test))
    with _clock() as fit:
        fitted = run(table.task, A, table.y[train], cell.split)
    fitted_now()
    with _clock() as prediction:
        predicted = np.asarray(fitted.model.predict(B)).ravel()
    return {
        "status": OK,
        "task": table.task,
        "table_rows": len(table.y),
        "train_rows": len(train),
        "test_rows": len(test),
        "features": table.X.shape[1],
        "text_features": len(table.text_columns),
        "classes": table.classes,
        "division": checksum(train, test),
        **scores(table.task, table.y[test], predicted),
        **_chances(table.task, fitted.model, B, table.y[test]),
        "seconds": fit.seconds,
        # The processor only waits for a GPU: its seconds say nothing.
        "processor_seconds": None if _on_gpu(fitted) else fit.processor_seconds,
        "tune_seconds": fitted.tune_seconds,
        "fit_seconds": fitted.fit_seconds,
        "predict_seconds": prediction.seconds,
        "predict_processor_seconds": prediction.processor_seconds,
        "params": plain(fitted.params),
        "gap": fitted.gap,
        "versions": versions(PACKAGES),  # of this environment, which may not be the engine's
    }


def _on_gpu(fitted: Fitted) -> bool:
    return str(fitted.params.get("device", "cpu")).startswith("cuda")


def _chances(task: str, model: Any, X: Any, y: Any) -> Record:
    """Log-loss of a classifier that has probabilities."""
    if task != CLASSIFICATION or not hasattr(model, "predict_proba"):
        return {}
    return {"log_loss": log_loss(y, model.predict_proba(X), model.classes_)}


@dataclass
class _Times:
    """Seconds of a block: on the clock, and of the processor."""

    seconds: float = 0.0
    processor_seconds: float = 0.0


@contextmanager
def _clock() -> Iterator[_Times]:
    times, begin, used = _Times(), time.perf_counter(), _processor_seconds()
    yield times
    times.seconds = time.perf_counter() - begin
    times.processor_seconds = _processor_seconds() - used


def _processor_seconds() -> float:
    """Of this process, its threads and the processes it has waited for."""
    return sum(os.times()[:4])
