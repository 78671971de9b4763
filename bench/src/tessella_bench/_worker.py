"""The process of one cell: read the request, tune, fit, predict, tell.

Talks to the engine in lines of JSON: "ready" once the data are there, "fitted" after tuning and
fit, then the record. The engine holds the other end of standard input; when it is gone, so is the
process.
"""

from __future__ import annotations

import json
import math
import os
import sys
import threading
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, TextIO

import numpy as np

from tessella.datasets import Dataset, describe, load, names
from tessella_bench._cells import FAILED, NOT_APPLICABLE, OK, Cell, Record
from tessella_bench._methods import (
    CLASSIFICATION,
    Fitted,
    NotApplicableError,
    find_method,
    plain,
)

READY, FITTED, DONE = "ready", "fitted", "done"

# Measures what has been prepared; the argument is called between the fit and the prediction.
Prepared = Callable[[Callable[[], None]], Record]


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
        "cell" and "data_home"; "options" of the method and "processor_cap", the seconds of the
        processor that tuning and fit may take, if they have any.
    answer : file
        Where the lines go.

    Returns
    -------
    dict
        The record, whatever went wrong.
    """
    cell = Cell(**request["cell"])
    try:
        prepared = _prepared(cell, request["data_home"], request.get("options") or {})
        _tell(answer, READY)
        return prepared(_limited(request.get("processor_cap"), answer))
    except NotApplicableError as reason:
        return {"status": NOT_APPLICABLE, "error": str(reason)}
    except MemoryError as error:
        return {"status": NOT_APPLICABLE, "error": f"not enough memory {error}".strip()}
    except Exception as error:
        return {"status": FAILED, "error": f"{type(error).__name__}: {error}"}


def _limited(processor_cap: float | None, answer: TextIO) -> Callable[[], None]:
    """Start the cap; what is returned ends it, and tells that the model is fitted."""
    if processor_cap is not None:
        _limit_processor(processor_cap)

    def fitted_now() -> None:
        if processor_cap is not None:
            _limit_processor(None)
        _tell(answer, FITTED)

    return fitted_now


def _prepared(cell: Cell, data_home: str | None, options: dict[str, Any]) -> Prepared:
    """All that happens before the clock starts: imports and data."""
    if cell.rows is not None:
        from tessella_bench.suite import prepare  # pandas is not needed for the paper's tables

        return prepare(cell, data_home, options)
    data = load(cell.dataset, data_home)
    return partial(_measured, cell, data, find_method(cell.method).load())


def _measured(cell: Cell, data: Dataset, run: Any, fitted_now: Callable[[], None]) -> Record:
    train, test = data.split(cell.split)
    y = _in_the_papers_unit(data)
    fitted: Fitted = run(data.task, data.X[train], y[train], cell.split)
    fitted_now()
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
        "params": plain(fitted.params),
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


def _limit_processor(seconds: float | None) -> None:
    """Let the system end this process when it has used so many more seconds; None takes it back."""
    import resource  # not every system has it; the engine does not ask for a limit there

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the signal would write one
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    soft = hard if seconds is None else math.ceil(time.process_time() + seconds)
    resource.setrlimit(resource.RLIMIT_CPU, (soft, hard))


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
