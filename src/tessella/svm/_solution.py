"""What the dual solver returns."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


class DualStatus(Enum):
    """The reason why :func:`solve_dual` stopped.

    Attributes
    ----------
    OPTIMAL
        The relative gap between the primal and the dual value is at most the tolerance.
    MAX_ITER
        The limit on the number of pair steps was reached.
    TIME_LIMIT
        The time limit was reached.
    INTERRUPTED
        The user pressed Ctrl-C.
    PRECISION
        No step can change the dual vector any further in double precision.
    """

    OPTIMAL = 0
    MAX_ITER = 1
    TIME_LIMIT = 2
    INTERRUPTED = 3
    PRECISION = 4


@dataclass(frozen=True)
class DualSolution:
    """The result of :func:`solve_dual`.

    Attributes
    ----------
    w : ndarray of shape (m,)
        Dual vector. It is feasible whatever the status is.
    gradient : ndarray of shape (m,)
        The vector ``linear - K @ w``, which is the residual of each sample before the intercept
        is subtracted.
    intercept : float
        The intercept that minimises the primal objective for this dual vector.
    objective : float
        Value of the dual objective, a lower bound of the optimum.
    primal : float
        Value of the primal objective, an upper bound of the optimum.
    violation : float
        Largest violation of the optimality conditions; zero at the optimum.
    n_iter : int
        Number of pair steps.
    n_newton : int
        Number of Newton steps, including those of the interior point method.
    status : DualStatus
        The reason why the solver stopped.
    """

    w: FloatArray
    gradient: FloatArray
    intercept: float
    objective: float
    primal: float
    violation: float
    n_iter: int
    n_newton: int
    status: DualStatus

    @property
    def gap(self) -> float:
        """Difference of the primal and the dual value, relative to the primal value."""
        return relative_gap(self.primal, self.objective)

    def unless_interrupted(self) -> DualSolution:
        """Return this solution, or raise KeyboardInterrupt if Ctrl-C has stopped the solver.

        For callers that have no use for a solution that is not finished.
        """
        if self.status is DualStatus.INTERRUPTED:
            raise KeyboardInterrupt
        return self


def relative_gap(upper: float, lower: float) -> float:
    """Return ``(upper - lower) / |upper|``, or 0 when the two bounds agree.

    Parameters
    ----------
    upper : float
        Upper bound of the optimum.
    lower : float
        Lower bound of the optimum. A value above the upper bound, which rounding can cause,
        gives 0.
    """
    difference = max(0.0, upper - lower)
    return difference / max(abs(upper), np.finfo(float).tiny) if difference else 0.0
