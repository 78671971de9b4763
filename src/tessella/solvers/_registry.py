"""The registry of solvers by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tessella.cones import PSD, Cone, Point
from tessella.problems import SaddlePoint
from tessella.solvers._result import SolverResult
from tessella.solvers._run import Callback
from tessella.solvers.apd import apd
from tessella.solvers.fixed import fixed
from tessella.solvers.frank_wolfe import frank_wolfe
from tessella.solvers.hybrid import hybrid
from tessella.solvers.joint import joint
from tessella.solvers.newton import newton
from tessella.solvers.sdp import sdp
from tessella.solvers.simple_mkl import simple_mkl
from tessella.solvers.working_set import DEFAULT_SETTINGS, working_set

FloatArray = NDArray[np.float64]


class Solver(Protocol):
    """The signature of every solver."""

    def __call__(
        self,
        problem: SaddlePoint,
        *,
        tol: float,
        max_iter: int,
        time_limit: float | None,
        parameter0: Point | None,
        w0: FloatArray | None,
        n_jobs: int | None,
        callback: Callback | None,
    ) -> SolverResult:
        """Solve `problem` to a certified relative gap of `tol`."""


SOLVERS: dict[str, Solver] = {
    "apd": apd,
    "frank-wolfe": frank_wolfe,
    "hybrid": hybrid,
    "joint": joint,
    "newton": newton,
    "sdp": sdp,
    "simple-mkl": simple_mkl,
    "working-set": working_set,
}

_JOINT_MAX_ROWS = 200
_JOINT_MAX_ROWS_OF_A_MATRIX = 60  # from which on a few machines are faster
_JOINT_MAX_DEGREE = DEFAULT_SETTINGS.many_params  # from which on a few machines are faster


def check_solver(name: str) -> None:
    """Raise a ValueError for a name that :func:`choose_solver` does not know."""
    if name != "auto" and name not in SOLVERS:
        raise ValueError(f"solver={name!r} is unknown; use 'auto' or one of {sorted(SOLVERS)}.")


def choose_solver(name: str, problem: SaddlePoint) -> Solver:
    """Return the solver of that name, or for "auto" one that suits the size of the problem.

    In a problem with a fixed parameter nothing is learned, so the solver "fixed" is returned for
    every name. "auto" chooses the joint method up to 60 rows, or up to 200 if the parameter is not
    a single matrix: there, one run of it costs less than machines and a working set. It chooses the
    working-set method for more rows, and for a parameter so large that it is moved a few directions
    at a time.

    With a loss without bounds, all samples are free and a working set has no meaning. "auto" then
    chooses the joint method for a single machine in float64, and Newton's method in the parameter
    alone for several machines, which share one factorisation in each step.
    """
    check_solver(name)
    if problem.fixed is not None:
        return fixed
    if name != "auto":
        return SOLVERS[name]
    kernels = problem.kernels
    if problem.dual.is_smooth:
        single = len(problem.dual.losses) == 1 and kernels.dtype == np.float64
        return joint if single else newton
    small = _is_small(kernels.n_samples, kernels.cone)
    return joint if small and kernels.dtype == np.float64 else working_set


def _is_small(n_samples: int, cone: Cone | None) -> bool:
    """Return whether the joint method moves everything at less cost than machines on all rows."""
    few = cone is None or (cone.moves_whole and cone.degree < _JOINT_MAX_DEGREE)
    most = _JOINT_MAX_ROWS_OF_A_MATRIX if isinstance(cone, PSD) else _JOINT_MAX_ROWS
    return few and n_samples <= most


@dataclass(frozen=True)
class _Held:
    """Numbers of matrices that a solver holds at its peak, as measured.

    Attributes
    ----------
    rows : int
        Matrices whose side is the number of rows.
    params : int
        Matrices of the size of the parameter. Decompositions need three of them for themselves.
    """

    rows: int
    params: int


_HELD = {
    "joint": _Held(6, 30),
    "frank-wolfe": _Held(2, 15),
    "apd": _Held(2, 19),
    "hybrid": _Held(2, 19),
    "sdp": _Held(2, 12),
    "newton": _Held(3, 32),
    "simple-mkl": _Held(3, 15),
    "working-set": _Held(1, 20),
}
_USUAL = _Held(2, 20)  # of a solver that somebody else has added to SOLVERS
_KEPT_ROWS = 2000  # of a kernel matrix, below which a solver would compute them over and over


def working_memory(
    name: str,
    sizes: Sequence[int],
    itemsize: int,
    *,
    by_rows: bool,
    smooth: bool = False,
    cone: Cone | None = None,
) -> int:
    """Return the bytes that a solver needs in addition to those of the kernel set.

    Parameters
    ----------
    name : str
        Name of a solver, or "auto".
    sizes : sequence of int
        Number of rows of each machine. The working-set method holds the kernel matrix of one
        machine at a time; the other solvers hold that of all machines together.
    itemsize : int
        Number of bytes of an entry of a kernel matrix.
    by_rows : bool
        Whether the kernel set gives single rows of a kernel matrix.
    smooth : bool
        Whether the loss has no bounds. Matrices are then factorised, always in float64.
    cone : Cone, optional
        Cone of the parameter, which is counted too if the cone is given.
    """
    check_solver(name)
    n_samples, largest = sum(sizes), max(sizes)
    if smooth:
        itemsize = 8
    name = _expected_solver(name, len(sizes), n_samples, smooth, cone)
    params = 0 if cone is None else parameter_memory(name, cone)
    if name != "working-set":
        return params + _HELD.get(name, _USUAL).rows * itemsize * n_samples**2
    rows = min(largest, _KEPT_ROWS) if by_rows else largest
    moving = min(n_samples, DEFAULT_SETTINGS.max_rows)
    return params + itemsize * rows * largest + 3 * 8 * moving**2


def parameter_memory(name: str, cone: Cone) -> int:
    """Return the bytes of the parameters, gradients and factors that a solver holds at its peak.

    Parameters
    ----------
    name : str
        Name of a solver. For "auto" the result is that of the working-set method.
    cone : Cone
        Cone of the parameter. A matrix of side n_P counts with n_P² numbers.
    """
    check_solver(name)
    held = _HELD["working-set"] if name == "auto" else _HELD.get(name, _USUAL)
    return held.params * 8 * (2 * cone.dimension - cone.degree)


def _expected_solver(
    name: str, n_machines: int, n_samples: int, smooth: bool, cone: Cone | None
) -> str:
    """Return the solver that :func:`choose_solver` is going to choose, or one like it."""
    if name != "auto":
        return name
    if smooth:
        return "joint" if n_machines == 1 else "newton"
    return "joint" if _is_small(n_samples, cone) else "working-set"
