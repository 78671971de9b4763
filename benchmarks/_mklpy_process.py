"""MKLpy in its own environment: weights of given kernel matrices, and how long they took.

Run by the Python of that environment, which has neither Tessella nor the other benchmarks.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from typing import Any

import numpy as np


def main() -> None:
    """Answer a request, a JSON object in the first argument, on the last line of the output."""
    request = json.loads(sys.argv[1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        answer = {name: _weights(name, request["data"]) for name in request["algorithms"]}
    print(json.dumps(answer))


def _weights(name: str, data: str) -> dict[str, Any]:
    import torch
    from MKLpy import algorithms

    table = np.load(data)
    kernels = [torch.tensor(K) for K in table["kernels"]]
    labels = table["labels"]
    model = getattr(algorithms, name)()
    begin = time.perf_counter()
    model.fit(kernels, labels)
    seconds = time.perf_counter() - begin
    return {"weights": model.solution.weights.tolist(), "seconds": seconds}


if __name__ == "__main__":
    main()
