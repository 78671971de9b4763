"""pyPMKL in its own environment: one fit, and what our certificate needs to know of it.

Run by the Python of that environment, which has neither Tessella nor the other benchmarks.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
import time
import warnings
from typing import Any

import numpy as np


def main() -> None:
    """Answer a request, a JSON object in the first argument, on the last line of the output."""
    request = json.loads(sys.argv[1])
    with _silence():
        answer = _fit(**request)
    print(json.dumps(answer))


@contextlib.contextmanager
def _silence() -> Any:
    """Nothing on the output, not even from libsvm, whose C code writes there by itself."""
    sys.stdout.flush()
    kept, nowhere = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    try:
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
        os.close(nowhere)


def _fit(*, data: str, C: float, bound: float, tol: float, max_iter: int) -> dict[str, Any]:
    from PMKL.PMKL import PMKL

    table = np.load(data)
    model = PMKL(C=C, bound=bound, tol=tol, maxit=max_iter, to_print=False)
    begin = time.perf_counter()
    model.fit(table["X"], table["y"])
    seconds = time.perf_counter() - begin
    machine, parameters = model.model, model.Params
    return {
        "seconds": seconds,
        "iterations": len(model.Opt.dualGap),
        "reported_gap": float(np.ravel(model.Opt.dualGap[-1])[0]),
        "reported_objective": float(np.ravel(model.Opt.Obj[-1])[0]),
        "P": np.asarray(parameters.P, dtype=float).tolist(),
        "monomials": np.asarray(model.Kernel.Z[:50], dtype=float).tolist(),
        "scaled_rows": np.asarray(model.x[:50], dtype=float).tolist(),
        "support": np.ravel(machine.support_).tolist(),
        "coefficients": np.ravel(machine.dual_coef_).tolist(),
    }


if __name__ == "__main__":
    main()
