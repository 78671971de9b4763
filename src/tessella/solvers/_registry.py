"""Solvers by name."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tessella.problems import SaddlePoint
from tessella.solvers._result import SolverResult
from tessella.solvers._run import Callback
from tessella.solvers.apd import apd
from tessella.solvers.frank_wolfe import frank_wolfe
from tessella.solvers.hybrid import hybrid
from tessella.solvers.joint import joint
from tessella.solvers.sdp import sdp
from tessella.solvers.working_set import working_set

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


SOLVERS: dict[str, Solver] = {
    "apd": apd,
    "frank-wolfe": frank_wolfe,
    "hybrid": hybrid,
    "joint": joint,
    "sdp": sdp,
    "working-set": working_set,
}

_JOINT_MAX_ROWS = 200
_JOINT_MAX_PARAMS = 64  # beyond, eigenproblems of side n_P at every Newton step are the cost


def check_solver(name: str) -> None:
    """Raise ValueError for a name that :func:`choose_solver` would not know."""
    if name != "auto" and name not in SOLVERS:
        raise ValueError(f"solver={name!r} is unknown; use 'auto' or one of {sorted(SOLVERS)}.")


def choose_solver(name: str, problem: SaddlePoint) -> Solver:
    """The solver of that name; for "auto" the one that suits the size of the problem.

    The joint method up to 200 rows, where one run of it costs less than finding a working set;
    the working-set method for any number of rows beyond, and for a P so large that it has to be
    moved a few directions at a time.
    """
    check_solver(name)
    if name != "auto":
        return SOLVERS[name]
    kernels = problem.kernels
    small = kernels.n_samples <= _JOINT_MAX_ROWS and kernels.n_params <= _JOINT_MAX_PARAMS
    return joint if small and kernels.dtype == np.float64 else working_set
