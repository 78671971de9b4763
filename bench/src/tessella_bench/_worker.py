"""The process of one cell: read the request, tune, fit, predict, tell.

Talks to the engine in lines of JSON: "ready" once the data are there, "fitted" after tuning and
fit, then the record. The engine holds the other end of standard input; when it is gone, so is the
process.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
import warnings
from typing import Any, TextIO

import numpy as np

from tessella.datasets import Dataset, describe, load, names
from tessella_bench._cells import FAILED, NOT_APPLICABLE, OK, Cell, Record
from tessella_bench._methods import (
    CLASSIFICATION,
    Fitted,
    NotApplicableError,
    find_method,
)

READY, FITTED, DONE = "ready", "fitted", "done"


def main() -> None:
    """Measure the cell that standard input asks for."""
    answer = _own_output()
    request = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_the_engine, daemon=True).start()
    warnings.simplefilter("ignore")  # of all methods alike; gaps are in the record
    _tell(answer, DONE, record=measure(request, answer))


def measure(request: dict[str, Any], answer: TextIO) -> Record:
    """Tune, fit and score, and tell of the stages.

    Parameters
    ----------
    request : dict
        "cell" and "data_home".
    answer : file
        Where the lines go.

    Returns
    -------
    dict
        The record, whatever went wrong.
    """
    cell = Cell(**request["cell"])
    try:
        data = load(cell.dataset, request["data_home"])
        run = find_method(cell.method).load()
        _tell(answer, READY)
        return _measured(cell, data, run, answer)
    except NotApplicableError as reason:
        return {"status": NOT_APPLICABLE, "error": str(reason)}
    except MemoryError as error:
        return {"status": NOT_APPLICABLE, "error": f"not enough memory {error}".strip()}
    except Exception as error:
        return {"status": FAILED, "error": f"{type(error).__name__}: {error}"}


def _measured(cell: Cell, data: Dataset, run: Any, answer: TextIO) -> Record:
    train, test = data.split(cell.split)
    y = _in_the_papers_unit(data)
    fitted: Fitted = run(data.task, data.X[train], y[train], cell.split)
    _tell(answer, FITTED)
    begin = time.perf_counter()
    predicted = np.asarray(fitted.model.predict(data.X[test])).ravel()
    seconds = time.perf_counter() - begin
    return {
        "status": OK,
        "task": data.task,
        "train_rows": len(train),
        "test_rows": len(test),
        "features": data.X.shape[1],
        **_score(data.task, y[test], predicted),
        "tune_seconds": fitted.tune_seconds,
        "fit_seconds": fitted.fit_seconds,
        "predict_seconds": seconds,
        "params": {name: _plain(value) for name, value in fitted.params.items()},
        "gap": fitted.gap,
    }


def _in_the_papers_unit(data: Dataset) -> Any:
    """The target: its errors, and a tube that is told in its unit, then compare."""
    unit = describe(data.name).paper_unit if data.name in names() else 1.0
    return data.y if unit == 1.0 else data.y / unit


def _score(task: str, y: Any, predicted: Any) -> Record:
    """Accuracy in per cent, or the mean squared error."""
    if not np.isfinite(predicted).all():
        raise ValueError("predictions that are not finite")
    if task == CLASSIFICATION:
        return {"metric": "accuracy", "score": 100.0 * float(np.mean(predicted == y))}
    return {"metric": "mse", "score": float(np.mean((predicted - y) ** 2))}


def _plain(value: Any) -> Any:
    """A parameter as JSON has it."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    keywords = getattr(value, "keywords", None)  # of a partial function: a kernel and its width
    return {name: _plain(v) for name, v in keywords.items()} if keywords else str(value)


def _own_output() -> TextIO:
    """Standard output for us alone: what libraries print goes to standard error."""
    own = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return own


def _tell(answer: TextIO, event: str, **more: Any) -> None:
    answer.write(json.dumps({"event": event, **more}) + "\n")
    answer.flush()


def _end_with_the_engine() -> None:
    sys.stdin.read()
    os._exit(1)


if __name__ == "__main__":
    main()
