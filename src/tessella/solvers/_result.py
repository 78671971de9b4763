"""The result that every solver returns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from tessella.cones import Point
from tessella.svm import relative_gap

FloatArray = NDArray[np.float64]


class SolverStatus(Enum):
    """Reason why a solver stopped; only ``OPTIMAL`` means that the tolerance was reached."""

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
        Number of outer iterations so far; 0 is the starting point.
    time : float
        Seconds since the solver started.
    value : float
        Best certified upper bound of the optimum so far.
    bound : float
        Best certified lower bound of the optimum so far.
    gap : float
        Certified relative gap ``(value - bound) / |value|`` of the best bounds so far.
    step : float
        Length of the step that led to this iterate.
    n_svm : int
        Number of SVM solves so far.
    svm_iter : int
        Number of pair steps of all SVM solves so far.
    n_newton : int
        Number of Newton steps of the interior point method so far.
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

    @property
    def is_sound(self) -> bool:
        """Whether the record can be that of a run, which one that was read from a file need not be.

        Counts are whole numbers from zero on, and the others are numbers, of which the time and the
        gap are not negative, and the time is finite.
        """
        counts = (self.iteration, self.n_svm, self.svm_iter, self.n_newton)
        numbers = (self.time, self.value, self.bound, self.gap, self.step)
        return (
            all(type(count) is int and count >= 0 for count in counts)
            and all(type(number) in (int, float) and number == number for number in numbers)
            and 0.0 <= self.time < np.inf
            and self.gap >= 0.0
        )


@dataclass(frozen=True)
class SolverResult:
    """Answer of a solver: the best certified pair of a parameter and a dual vector.

    Attributes
    ----------
    solver : str
        Name of the algorithm.
    status : SolverStatus
        Reason why the solver stopped.
    parameter : ndarray or Blocks
        Feasible parameter of the kernel: a positive semidefinite matrix, the weights of a
        dictionary, or the blocks of a sum of kernel sets.
    w : ndarray of shape (m,)
        Feasible signed dual vector that attains `value` with the parameter.
    intercept : ndarray of shape (n_machines,)
        Offset b of the decision function ``K(P) w + b`` of each machine; most problems have one.
    value : float
        Certified upper bound of the optimum.
    bound : float
        Certified lower bound of the optimum. It may be proved by another dual vector than `w`.
    gap : float
        Relative gap ``(value - bound) / |value|``.
    n_iter : int
        Number of outer iterations. The search for a first kernel counts as one if it was all.
    n_svm : int
        Number of SVM solves.
    history : tuple of IterationRecord
        One record per iteration, the starting point included.
    w_bound : ndarray of shape (m,)
        Feasible dual vector that proves `bound`.
    """

    solver: str
    status: SolverStatus
    parameter: Point
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


def continued(
    earlier: tuple[IterationRecord, ...], history: tuple[IterationRecord, ...]
) -> tuple[IterationRecord, ...]:
    """Return the records of two runs as those of one, with counts and times added up."""
    if not earlier:
        return history
    last = earlier[-1]
    totals = ("time", "n_svm", "svm_iter", "n_newton")
    return earlier + tuple(
        replace(
            record,
            iteration=record.iteration + len(earlier),
            **{name: getattr(record, name) + getattr(last, name) for name in totals},
        )
        for record in history
    )


@dataclass(frozen=True)
class Round:
    """What a pass over all leaves has cost.

    Attributes
    ----------
    kind : str
        What the tasks of the pass did: "solve", "certify" or "move".
    seconds : float
        Duration.
    n_bytes : int
        Bytes of results that the leaves have sent, as arrays.
    """

    kind: str
    seconds: float
    n_bytes: int
