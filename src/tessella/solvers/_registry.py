"""Solvers by name."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tessella.problems import SaddlePoint
from tessella.solvers._result import SolverResult
from tessella.solvers._run import Callback
from tessella.solvers.frank_wolfe import frank_wolfe

FloatArray = NDArray[np.float64]


class Solver(Protocol):
    """The call every solver answers."""

    def __call__(
        self,
        problem: SaddlePoint,
        *,
        tol: float,
        max_iter: int,
        time_limit: float | None,
        P0: FloatArray | None,
        w0: FloatArray | None,
        n_jobs: int | None,
        callback: Callback | None,
    ) -> SolverResult:
        """Solve `problem` to a relative gap of `tol`."""


SOLVERS: dict[str, Solver] = {"frank-wolfe": frank_wolfe}


def get_solver(name: str) -> Solver:
    """The solver of that name; "auto" is the best one for general use."""
    if name == "auto":
        return frank_wolfe
    if name not in SOLVERS:
        raise ValueError(f"solver={name!r} is unknown; use 'auto' or one of {sorted(SOLVERS)}.")
    return SOLVERS[name]
