"""SimpleMKL: reduced gradient on the simplex (Rakotomamonjy, Bach, Canu, Grandvalet, 2008).

The value J(μ) of the SVM with kernel K(μ) is convex and differentiable with gradient
``-½ wᵀK_i w`` at its solution w. Each iteration takes the reduced gradient with respect to the
largest weight, follows it as long as the value falls, drops kernels whose weight reaches zero on
the way, and ends with a line search. Every trial point requires an SVM solve. As in the original
method, the stopping test is the duality gap; here it is certified, as in all other solvers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tessella.cones import Nonnegative, Point
from tessella.kernels import BoundKernelSet
from tessella.problems import DualPoint, SaddlePoint
from tessella.solvers._result import SolverResult, SolverStatus
from tessella.solvers._run import Callback, Run, StopRun, run_to_end

FloatArray = NDArray[np.float64]

_TRIALS = 20  # largest number of SVM solves of a line search
_FLAT = 0.1  # a line search ends where the slope is below this fraction of the first one
_NO_WEIGHT = 1e-8  # fraction of the largest weight below which a weight is set to zero


def simple_mkl(
    problem: SaddlePoint,
    *,
    tol: float = 1e-3,
    max_iter: int = 1000,
    time_limit: float | None = None,
    parameter0: Point | None = None,
    w0: FloatArray | None = None,
    n_jobs: int | None = None,
    callback: Callback | None = None,
) -> SolverResult:
    """Learn the weights of a dictionary by the reduced gradient method of SimpleMKL.

    Parameters
    ----------
    problem : SaddlePoint
        Problem to solve: a bound kernel set whose parameter is a vector of weights, and the dual
        problem of its machines.
    tol : float
        Certified relative gap at which to stop.
    max_iter : int
        Largest number of descent directions.
    time_limit : float, optional
        Largest number of seconds. When it is reached, the best certified pair is returned.
    parameter0 : ndarray of shape (n_kernels,), optional
        Weights to start from. The default is equal weights.
    w0 : ndarray of shape (m,), optional
        Dual vector to start from.
    n_jobs : int, optional
        Number of threads. None uses all cores that the process may use.
    callback : callable or Monitor, optional
        Called with each :class:`IterationRecord`, or a monitor that follows the run.

    Returns
    -------
    SolverResult
        Best certified pair of weights and a dual vector.

    Raises
    ------
    ValueError
        If the parameter of the kernel set is not a vector of weights.

    Notes
    -----
    An iteration costs dozens of SVM solves on all samples, each with a pass over three matrices,
    and three passes over all kernels: for the direction, for its gradient on the support vectors,
    and for the certificate. The method holds three kernel matrices for each machine.
    """
    if not isinstance(problem.cone, Nonnegative):
        raise ValueError(
            "The solver 'simple-mkl' learns the weights of a KernelDictionary; use 'auto' for "
            "other kernel sets."
        )
    start = problem.cone.checked(parameter0)
    run = Run(
        "simple-mkl",
        problem,
        tol=tol,
        max_iter=max_iter,
        time_limit=time_limit,
        n_jobs=n_jobs,
        callback=callback,
    )
    return run_to_end(run, lambda run: _Descent(run).iterate(start, w0))


class _WeightLine:
    """Kernel matrices ``K(weights + step · direction)`` of each machine, for any step.

    A descent on the weights needs dozens of sums along one direction and drops kernels from it one
    at a time. The class keeps the matrix at the start of the line and the matrix of the direction.
    A sum then costs one pass over memory, and a dropped kernel one or two kernel evaluations,
    instead of an evaluation of every kernel.

    Parameters
    ----------
    machines : sequence of BoundKernelSet
        The kernels on the rows of each machine.
    """

    def __init__(self, machines: tuple[BoundKernelSet, ...]) -> None:
        self._machines = machines
        sides = [machine.n_samples for machine in machines]
        self._base, self._change, self.matrices = (
            [np.empty((side, side)) for side in sides] for _ in range(3)
        )

    def stand_at(self, weights: FloatArray) -> None:
        """Start a line at the given weights, whose kernel matrices are evaluated."""
        self.weights = weights
        for machine, base, matrix in zip(self._machines, self._base, self.matrices, strict=True):
            machine.gram(weights, out=base)
            np.copyto(matrix, base)

    def go_on_from(self, weights: FloatArray) -> None:
        """Start a line at the weights of the last step that was tried."""
        self.weights = weights
        for base, matrix in zip(self._base, self.matrices, strict=True):
            np.copyto(base, matrix)

    def head_for(self, direction: FloatArray) -> None:
        """Choose a direction with sum zero; evaluates every kernel whose entry is not zero."""
        self.direction = direction
        for machine, change in zip(self._machines, self._change, strict=True):
            machine.gram(direction, out=change)

    def turn(self, direction: FloatArray) -> None:
        """Choose another direction; evaluates every kernel whose entry has changed."""
        difference = direction - self.direction
        self.direction = direction
        parts = zip(self._machines, self._change, self.matrices, strict=True)
        for machine, change, scratch in parts:
            change += machine.gram(difference, out=scratch)

    def weights_at(self, step: float) -> FloatArray:
        """Return the weights after a step, and set :attr:`matrices` to their kernel matrices."""
        along = self.weights + step * self.direction
        positive: FloatArray = np.where(along > _NO_WEIGHT * along.max(), along, 0.0)
        # Tiny weights are removed, because the next step would have to stop where they vanish.
        total, dropped = float(positive.sum()), positive - along
        for k, matrix in enumerate(self.matrices):
            if dropped.any():
                self._machines[k].gram(dropped, out=matrix)
                matrix += self._base[k]
            else:
                np.copyto(matrix, self._base[k])
            for start in range(0, len(matrix), 64):  # rows that stay in the cache
                rows = slice(start, start + 64)
                matrix[rows] += step * self._change[k][rows]
                matrix[rows] /= total
        return positive / total

    def slope(self, parts: list[FloatArray]) -> float:
        """Return the derivative of the value along the line, from the dual vectors of machines."""
        forms = 0.0
        for w, change in zip(parts, self._change, strict=True):
            support = np.flatnonzero(w)
            forms += float(w[support] @ change[np.ix_(support, support)] @ w[support])
        return -0.5 * forms


@dataclass(frozen=True)
class _Trial:
    """Weights with the solution of their SVM."""

    weights: FloatArray
    point: DualPoint
    value: float

    @property
    def gradient(self) -> FloatArray:
        half: FloatArray = -0.5 * self.point.gradient
        return half


class _Descent:
    """The iterations of one run."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._problem = run.problem
        self._accuracy = min(1e-4, 0.1 * run.tol)
        self._line = _WeightLine(run.problem.kernels.machines)

    def iterate(self, weights: FloatArray, w0: FloatArray | None) -> SolverStatus:
        """Iterate until the run is over."""
        self._line.stand_at(weights)
        self._lowest = self._svm(weights, w0)
        try:
            return self._descend_all(self._lowest)
        except (StopRun, KeyboardInterrupt):
            # An iteration may consist of hundreds of SVM solves, so its best trial is kept.
            if self._run.has_answer and self._lowest.value < self._run.value:
                self._run.replace(self._lowest.weights, self._lowest.point.w)
            raise

    def _descend_all(self, here: _Trial) -> SolverStatus:
        step = 0.0
        while True:
            self._run.record_point(here.weights, here.point, step)
            before = here
            self._line.stand_at(before.weights)  # removes the rounding of earlier lines
            self._line.head_for(_descent_direction(before))
            here = self._descend(before)
            step = float(np.abs(here.weights - before.weights).sum())
            if here.value >= before.value * (1.0 - 1e-15):
                if self._accuracy < 1e-12:
                    return SolverStatus.STALLED
                self._accuracy *= 0.1  # the SVMs were too inexact to show a descent
                self._line.stand_at(before.weights)
                here = self._svm(before.weights, before.point.w)

    def _descend(self, here: _Trial) -> _Trial:
        """Descend along one direction, first by dropping kernels and then by a line search."""
        there, longest, end = self._drop_kernels(here)
        return there if end is None else self._line_search(there, longest, end)

    def _svm(self, weights: FloatArray, w: FloatArray | None) -> _Trial:
        """Solve the SVM of the weights whose matrices the line holds."""
        answer = self._run.svm(iter(self._line.matrices), weights, w, self._accuracy)
        return _Trial(weights, self._problem.at(answer.w), answer.objective)

    def _slope(self, trial: _Trial) -> float:
        dual = self._problem.dual
        return self._line.slope([trial.point.w[rows] for rows in dual.machines])

    def _lower(self, trial: _Trial) -> _Trial:
        """Return the trial, and remember it if its value is the lowest so far."""
        self._lowest = trial
        return trial

    def _drop_kernels(self, here: _Trial) -> tuple[_Trial, float, _Trial | None]:
        """Take the largest step as long as the value falls; each step drops one kernel.

        Return the point where the line search starts, the longest step from there, and the trial
        at its end.
        """
        line, rounding = self._line, _rounding(here)
        while True:
            falling = np.flatnonzero(line.direction < 0)
            if not len(falling):
                return here, 0.0, None
            ratios = -line.weights[falling] / line.direction[falling]
            first = falling[np.argmin(ratios)]
            longest = float(ratios.min())
            end = self._svm(line.weights_at(longest), here.point.w)
            # Over a short step the values differ by less than the accuracy of the SVMs. A slope
            # that is still negative at the end shows the descent as well.
            if end.value >= here.value and self._slope(end) > 0:
                return here, longest, end
            here = self._lower(end)
            line.go_on_from(here.weights)
            direction = line.direction.copy()
            direction[first] = 0.0
            line.turn(_balanced(direction, int(np.argmax(here.weights)), rounding))

    def _line_search(self, here: _Trial, longest: float, end: _Trial) -> _Trial:
        """Return the lowest of a few trials, chosen by the slopes at both ends of the interval."""
        first = self._slope(here)
        low, high = 0.0, longest
        slope_low, slope_high = first, self._slope(end)
        best = here
        for _ in range(_TRIALS):
            if slope_low >= 0 or slope_high <= 0:
                break
            part = np.clip(-slope_low / (slope_high - slope_low), 0.1, 0.9)
            middle = low + float(part) * (high - low)
            trial = self._svm(self._line.weights_at(middle), best.point.w)
            slope = self._slope(trial)
            if trial.value < best.value:
                best = self._lower(trial)
            if abs(slope) <= _FLAT * abs(first):
                break
            if slope < 0:
                low, slope_low = middle, slope
            else:
                high, slope_high = middle, slope
        return best


def _descent_direction(here: _Trial) -> FloatArray:
    """Return the reduced gradient with respect to the largest weight."""
    gradient, weights = here.gradient, here.weights
    largest = int(np.argmax(weights))
    direction: FloatArray = gradient[largest] - gradient
    direction[(weights <= 0) & (direction < 0)] = 0.0
    return _balanced(direction, largest, _rounding(here))


def _rounding(here: _Trial) -> float:
    """Return the size of the rounding error in a difference of derivatives."""
    return 1e-14 * float(np.abs(here.gradient).max())


def _balanced(direction: FloatArray, largest: int, rounding: float) -> FloatArray:
    """Return a direction without rounding errors, whose sum is zero by its largest weight."""
    clean = np.where(np.abs(direction) > rounding, direction, 0.0)
    clean[largest] = 0.0
    clean[largest] = -clean.sum()
    return clean
