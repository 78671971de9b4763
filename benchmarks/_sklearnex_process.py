"""scikit-learn with scikit-learn-intelex patched in, in its own environment: fits and predictions.

Run by the Python of that environment, which has neither Tessella nor the other benchmarks.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import numpy as np

_ACCELERATED = "running accelerated version"


def main() -> None:
    """Answer a request, a JSON object in the first argument, on the last line of the output."""
    request = json.loads(sys.argv[1])
    print(json.dumps(_measure(**request)))


class _Messages(logging.Handler):
    """What the patch says about each call: whether it ran its own code or scikit-learn's."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.kept: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.kept.append(record.getMessage())


def _measure(
    *, data: str, task: str, settings: dict[str, float], threads: int, seconds: float
) -> dict[str, Any]:
    from sklearnex import patch_sklearn

    patch_sklearn(verbose=False)
    from daal4py import daalinit
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC, SVR

    daalinit(threads)
    messages = _Messages()
    logger = logging.getLogger("sklearnex")
    logger.setLevel(logging.INFO)
    logger.addHandler(messages)
    table = np.load(data)
    machine = (SVC if task == "classification" else SVR)(**settings)
    model = make_pipeline(StandardScaler(), machine)
    fit = _fastest(lambda: model.fit(table["X"], table["y"]), seconds)
    predict = _fastest(lambda: model.predict(table["new"]), seconds)
    own = [text for text in messages.kept if "sklearn.svm" in text]
    return {
        "fit_seconds": fit,
        "predict_seconds": predict,
        "support": len(machine.support_),
        "module": type(machine).__module__,
        "accelerated": bool(own) and all(_ACCELERATED in text for text in own),
        "version": version("scikit-learn-intelex"),
    }


def _fastest(call: Callable[[], Any], seconds: float) -> float:
    """Seconds of the fastest call, of as many as fit into some seconds: two at least."""
    call()
    taken: list[float] = []
    while not taken or sum(taken) < seconds:
        begin = time.perf_counter()
        call()
        taken.append(time.perf_counter() - begin)
    return min(taken)


if __name__ == "__main__":
    main()
