"""Solvers by name."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tessella.problems import SaddlePoint
from tessella.solvers._result import SolverResult
from tessella.solvers._run import Callback
from tessella.solvers.frank_wolfe import frank_wolfe
from tessella.solvers.joint import joint

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


SOLVERS: dict[str, Solver] = {"frank-wolfe": frank_wolfe, "joint": joint}

_JOINT_MAX_ROWS = 2000
_JOINT_MAX_PARAMS = 256


def check_solver(name: str) -> None:
    """Raise ValueError for a name that :func:`choose_solver` would not know."""
    if name != "auto" and name not in SOLVERS:
        raise ValueError(f"solver={name!r} is unknown; use 'auto' or one of {sorted(SOLVERS)}.")


def choose_solver(name: str, problem: SaddlePoint) -> Solver:
    """The solver of that name; for "auto" the one that suits the size of the problem.

    Up to 2,000 rows stored in float64 and n_P of 256 the joint interior point method, which
    reaches any tolerance in a few dozen steps of O(m³); beyond that Frank-Wolfe.
    """
    check_solver(name)
    if name != "auto":
        return SOLVERS[name]
    kernels = problem.kernels
    small = kernels.n_samples <= _JOINT_MAX_ROWS and kernels.n_params <= _JOINT_MAX_PARAMS
    return joint if small and kernels.dtype == np.float64 else frank_wolfe
