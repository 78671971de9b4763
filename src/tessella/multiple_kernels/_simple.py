"""SimpleMKL: reduced gradient on the simplex (Rakotomamonjy, Bach, Canu, Grandvalet, 2008).

The value J(μ) of the SVM with kernel K(μ) is convex and differentiable with gradient
``-½ wᵀK_i w`` at its solution w. Each iteration takes the reduced gradient with respect to the
largest weight, goes along it for as long as the value falls, dropping kernels whose weight
reaches zero on the way, and ends with a line search. Every trial point is an SVM. The stopping
test is theirs, the duality gap, certified as everywhere here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from tessella.multiple_kernels._learned import start_run
from tessella.multiple_kernels._line import KernelLine
from tessella.multiple_kernels._problem import WeightsPoint, WeightsProblem
from tessella.problems import DualPoint
from tessella.solvers import SolverResult, SolverStatus
from tessella.solvers._run import Callback, Run, StopRun, run_to_end

FloatArray = NDArray[np.float64]

_TRIALS = 20  # SVMs of a line search
_FLAT = 0.1  # a slope this part of the first one ends it


def simple(
    problem: WeightsProblem,
    *,
    tol: float = 1e-3,
    max_iter: int = 1000,
    time_limit: float | None = None,
    n_jobs: int | None = None,
    callback: Callback | None = None,
) -> SolverResult:
    """Learn the weights by SimpleMKL's reduced gradient; `P` of the result holds them.

    Parameters
    ----------
    problem : WeightsProblem
        Kernels and SVM.
    tol : float
        Certified relative gap at which to stop.
    max_iter : int
        Limit on descent directions.
    time_limit : float, optional
        Limit in seconds.
    n_jobs : int, optional
        Threads.
    callback : callable or Monitor, optional
        Follows the run.

    Returns
    -------
    SolverResult

    Notes
    -----
    An iteration costs dozens of SVMs on all samples, each with a pass over three matrices, and
    three passes over all kernels: for the direction, for its gradient on the support vectors, and
    for the certificate.
    """
    run = start_run(
        "simple",
        problem,
        tol=tol,
        max_iter=max_iter,
        time_limit=time_limit,
        n_jobs=n_jobs,
        callback=callback,
    )
    return run_to_end(run, lambda own: _Descent(own, problem).go())


@dataclass(frozen=True)
class _Trial:
    """Weights with the solution of their SVM."""

    weights: FloatArray
    point: WeightsPoint
    value: float

    @property
    def gradient(self) -> FloatArray:
        return -0.5 * self.point.forms


class _Descent:
    """The iterations of one run."""

    def __init__(self, run: Run, problem: WeightsProblem) -> None:
        self._run = run
        self._problem = problem
        self._accuracy = min(1e-4, 0.1 * run.tol)

    def go(self) -> SolverStatus:
        """Iterate until the run is over."""
        n = len(self._problem.kernels)
        self._lowest = self._svm(np.full(n, 1.0 / n), None)
        try:
            return self._iterate(self._lowest)
        except (StopRun, KeyboardInterrupt):
            # In the middle of an iteration, of perhaps hundreds of SVMs: keep what it has found.
            if self._run.has_answer and self._lowest.value < self._run.value:
                self._problem.kernels.forget()
                self._run.replace(self._lowest.weights, self._lowest.point.w)
            raise

    def _iterate(self, here: _Trial) -> SolverStatus:
        step = 0.0
        while True:
            self._run.record_point(here.weights, cast(DualPoint, here.point), step)
            before = here
            here = self._descend(before)
            # What is certified next is the sum of its kernels, without the rounding of a line.
            self._problem.kernels.forget()
            step = float(np.abs(here.weights - before.weights).sum())
            if here.value >= before.value * (1.0 - 1e-15):
                if self._accuracy < 1e-12:
                    return SolverStatus.STALLED
                self._accuracy *= 0.1  # the SVMs were too inexact to tell up from down
                here = self._svm(before.weights, before.point.w)

    def _descend(self, here: _Trial) -> _Trial:
        """Along one direction, first to where kernels end, then by a line search."""
        line = KernelLine(self._problem.kernels, here.weights, _descent_direction(here))
        there, longest, end = self._drop_kernels(line, here)
        return there if end is None else self._line_search(line, there, longest, end)

    def _svm(self, weights: FloatArray, w: FloatArray | None) -> _Trial:
        K = self._problem.kernels.machine_matrices(weights)
        answer = self._run.svm(K, weights, w, self._accuracy)
        return _Trial(weights, self._problem.at(answer.w), answer.objective)

    def _lower(self, trial: _Trial) -> _Trial:
        """The same, remembered as the lowest so far."""
        self._lowest = trial
        return trial

    def _drop_kernels(self, line: KernelLine, here: _Trial) -> tuple[_Trial, float, _Trial | None]:
        """Go to the largest step as long as that lowers the value, each time one kernel fewer.

        Gives the point where the line search begins, the longest step from there, and the trial
        at its end.
        """
        rounding = _rounding(here)
        while True:
            falling = np.flatnonzero(line.direction < 0)
            if not len(falling):
                return here, 0.0, None
            ratios = -line.weights[falling] / line.direction[falling]
            first = falling[np.argmin(ratios)]
            longest = float(ratios.min())
            end = self._svm(line.weights_at(longest), here.point.w)
            # Over a short step the values differ by less than the SVMs are accurate; a slope that
            # still falls says the same.
            if end.value >= here.value and line.slope(end.point.w) > 0:
                return here, longest, end
            here = self._lower(end)
            line.stand_at(here.weights)
            direction = line.direction.copy()
            direction[first] = 0.0
            line.turn(_balanced(direction, int(np.argmax(here.weights)), rounding))

    def _line_search(self, line: KernelLine, here: _Trial, longest: float, end: _Trial) -> _Trial:
        """The lowest of a few trials; slopes at both ends of the interval say where to try."""
        first = line.slope(here.point.w)
        low, high = 0.0, longest
        slope_low, slope_high = first, line.slope(end.point.w)
        best = here
        for _ in range(_TRIALS):
            if slope_low >= 0 or slope_high <= 0:
                break
            part = np.clip(-slope_low / (slope_high - slope_low), 0.1, 0.9)
            middle = low + float(part) * (high - low)
            trial = self._svm(line.weights_at(middle), best.point.w)
            slope = line.slope(trial.point.w)
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
    """The reduced gradient with respect to the largest weight."""
    gradient, weights = here.gradient, here.weights
    largest = int(np.argmax(weights))
    direction: FloatArray = gradient[largest] - gradient
    direction[(weights <= 0) & (direction < 0)] = 0.0
    return _balanced(direction, largest, _rounding(here))


def _rounding(here: _Trial) -> float:
    """What in a difference of derivatives is rounding."""
    return 1e-14 * float(np.abs(here.gradient).max())


def _balanced(direction: FloatArray, largest: int, rounding: float) -> FloatArray:
    """A direction free of rounding, whose sum the largest weight makes zero."""
    clean = np.where(np.abs(direction) > rounding, direction, 0.0)
    clean[largest] = 0.0
    clean[largest] = -clean.sum()
    return clean
