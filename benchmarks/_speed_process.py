"""Fits in a process of their own: its peak memory, and its first fit, are theirs alone."""

from __future__ import annotations

import json
import resource
import sys
import time
import warnings
from pathlib import Path
from typing import Any

_KIB = 1024


def main() -> None:
    """Answer a request, a JSON object in the first argument, on the last line of the output."""
    request = json.loads(sys.argv[1])
    print(json.dumps(_fit(**request)))


def _fit(
    *,
    name: str,
    rows: int,
    seed: int,
    settings: dict[str, Any],
    times: int = 1,
    score: bool = False,
) -> dict[str, Any]:
    """Seconds of some fits of the same rows, facts of the last, and the peak of the memory."""
    import numpy as np
    from _common import load
    from _speed import estimator, fit_facts
    from sklearn.exceptions import ConvergenceWarning

    data = load(name)
    order = np.random.default_rng(seed).permutation(len(data.y))
    train, test = np.sort(order[:rows]), np.sort(order[rows:])
    seconds = []
    for _ in range(times):
        model = estimator(data.task, **settings)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the gap is reported instead
            begin = time.perf_counter()
            model.fit(data.X[train], data.y[train])
        seconds.append(time.perf_counter() - begin)
    peak = _peak_bytes()  # before predicting
    answer = {"seconds": seconds, "peak_bytes": peak, "rows": len(train), **fit_facts(model)}
    if score and len(test):
        answer["test_rows"] = len(test)
        answer["score"] = float(model.score(data.X[test], data.y[test]))
    return answer


def _peak_bytes() -> int:
    """Peak of the resident memory of this process.

    Linux hands the peak of the parent down through `ru_maxrss`; the one in /proc starts anew.
    """
    status = Path("/proc/self/status")
    if status.is_file():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * _KIB
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _KIB


if __name__ == "__main__":
    main()
