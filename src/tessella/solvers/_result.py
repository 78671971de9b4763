"""What every solver returns."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from tessella.svm import relative_gap

FloatArray = NDArray[np.float64]


class SolverStatus(Enum):
    """Why a solver stopped. Only ``OPTIMAL`` means that the tolerance was reached."""

    OPTIMAL = "optimal"
    MAX_ITER = "iteration limit"
    TIME_LIMIT = "time limit"
    INTERRUPTED = "interrupted"
    VALIDATION = "validation score"
    CALLBACK = "stopped by a callback"
    OUT_OF_MEMORY = "out of memory"
    STALLED = "no further progress in double precision"


@dataclass(frozen=True)
class IterationRecord:
    """One line of a solver's history.

    Attributes
    ----------
    iteration : int
        Outer iterations so far; 0 is the starting point.
    time : float
        Seconds since the solver started.
    value, bound : float
        Best certified upper and lower bounds of the optimum so far.
    gap : float
        Their relative difference.
    step : float
        Length of the step that led here.
    n_svm, svm_iter : int
        SVM solves and their pair steps so far.
    n_newton : int
        Newton steps of the joint interior point method so far.
    """

    iteration: int
    time: float
    value: float
    bound: float
    gap: float
    step: float
    n_svm: int
    svm_iter: int
    n_newton: int


@dataclass(frozen=True)
class SolverResult:
    """Answer of a solver: the best certified pair it met.

    Attributes
    ----------
    solver : str
        Name of the algorithm.
    status : SolverStatus
        Why it stopped.
    P : ndarray of shape (n_params, n_params)
        Feasible matrix of the kernel.
    w : ndarray of shape (m,)
        Feasible signed dual vector that attains `value` with P.
    intercept : ndarray of shape (n_machines,)
        Offset b of the decision function ``K(P) w + b`` of each machine; most have one.
    value, bound : float
        Certified upper and lower bounds of the optimum. `bound` may come from another w.
    gap : float
        ``(value - bound) / |value|``.
    n_iter, n_svm : int
        Outer iterations and SVM solves.
    history : tuple of IterationRecord
        One record per iteration, the starting point included.
    w_bound : ndarray of shape (m,)
        Feasible dual vector that proves `bound`.
    """

    solver: str
    status: SolverStatus
    P: FloatArray
    w: FloatArray
    intercept: FloatArray
    value: float
    bound: float
    n_iter: int
    n_svm: int
    history: tuple[IterationRecord, ...]
    w_bound: FloatArray

    @property
    def gap(self) -> float:
        """Relative gap between `value` and `bound`."""
        return relative_gap(self.value, self.bound)
