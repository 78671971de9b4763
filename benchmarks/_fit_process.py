"""Fits of one installation of Tessella, timed in a process of its own; see before_after.py.

Reads requests from standard input, one JSON object a line, and answers each with one line. Uses
nothing but public names that all versions share.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from typing import Any

import numpy as np


def main() -> None:
    import tessella
    from tessella.kernels import TessellatedKernels

    warnings.simplefilter("ignore")
    for line in sys.stdin:
        request = json.loads(line)
        table = np.load(request["data"])
        name = request["estimator"]
        params: dict[str, Any] = dict(request["params"])
        if "delta" in params:
            params["kernels"] = TessellatedKernels(degree=1, delta=params.pop("delta"))
        model = getattr(tessella, name)(n_jobs=1, max_iter=10**6, **params)
        begin = time.process_time()
        model.fit(table["X"], table["y"])
        answer = {
            "seconds": time.process_time() - begin,
            "objective": model.objective_,
            "lower_bound": model.lower_bound_,
            "gap": model.gap_,
            "n_svm": model.history_[-1].n_svm,
            "n_newton": model.history_[-1].n_newton,
        }
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
