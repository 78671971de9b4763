"""Our own solver of multiple kernel learning: exact SVMs and joint steps in turn.

Most samples sit at a bound of the dual and only say so, most kernels end with weight zero. Which
ones matter is told by an exact SVM on all samples with the present weights and by the quadratic
forms wᵀK_i w of all kernels; the weights of the kernels that matter and the dual variables of the
samples that matter are then found together by an interior point method
(:mod:`tessella.multiple_kernels._joint`). A few rounds of this reach a gap of 1e-6, where
descent on the weights needs an SVM for every step.
"""

from __future__ import annotations

from typing import cast

import numpy as np
from numpy.typing import NDArray

from tessella.multiple_kernels._joint import solve_joint
from tessella.multiple_kernels._problem import WeightsPoint, WeightsProblem
from tessella.problems import DualPoint, SaddlePoint
from tessella.solvers import SolverResult, SolverStatus
from tessella.solvers._run import Callback, Run, run_to_end

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

_FIRST_KERNELS = 24  # taken at once into the joint problem
_MOST_KERNELS = 96
_ALL_SAMPLES = 300  # up to here nobody is held
_SHARE = 1.2  # of the free samples, to begin with
_PATIENCE = 3  # rounds with everything in them that may bring nothing


def start_run(
    name: str,
    problem: WeightsProblem,
    *,
    tol: float,
    max_iter: int,
    time_limit: float | None,
    n_jobs: int | None,
    callback: Callback | None,
) -> Run:
    """The bookkeeping of a run, which asks no more of its problem than `dual` and `at`."""
    return Run(
        name,
        cast(SaddlePoint, problem),
        tol=tol,
        max_iter=max_iter,
        time_limit=time_limit,
        n_jobs=n_jobs,
        callback=callback,
    )


def learned(
    problem: WeightsProblem,
    *,
    tol: float = 1e-3,
    max_iter: int = 1000,
    time_limit: float | None = None,
    n_jobs: int | None = None,
    callback: Callback | None = None,
) -> SolverResult:
    """Learn the weights with a certified gap; `P` of the result holds them.

    Parameters
    ----------
    problem : WeightsProblem
        Kernels and SVM.
    tol : float
        Certified relative gap at which to stop.
    max_iter : int
        Limit on rounds.
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
    A round is an SVM on all samples, a pass over all kernels on the support vectors, and some
    20 Newton steps on the kernels and samples that matter.
    """
    run = start_run(
        "learned",
        problem,
        tol=tol,
        max_iter=max_iter,
        time_limit=time_limit,
        n_jobs=n_jobs,
        callback=callback,
    )
    return run_to_end(run, lambda own: _Rounds(own, problem).go())


class _Rounds:
    """The rounds of one run."""

    def __init__(self, run: Run, problem: WeightsProblem) -> None:
        self._run = run
        self._problem = problem
        self._dual = problem.dual
        self._share = _SHARE
        self._kernels: IntArray = np.zeros(0, dtype=np.intp)
        self._accuracy = 0.1 * run.tol
        self._idle = 0
        self._kernels_missing = True

    def go(self) -> SolverStatus:
        n = len(self._problem.kernels)
        weights, w0, step = np.full(n, 1.0 / n), None, 0.0
        while True:
            K = self._problem.kernels.machine_matrices(weights)
            answer = self._run.svm(K, weights, w0, self._accuracy)
            point = cast(WeightsPoint, self._run.record(weights, answer.w, step))
            if not self._kernels_missing:
                self._widen()
            if self._idle > _PATIENCE:
                return SolverStatus.STALLED
            found, w0 = self._joint(weights, point, answer.residual)
            step = float(np.abs(found - weights).sum())
            weights = found

    def _widen(self) -> None:
        """The kernels were right and the gap is too large: more samples have to move."""
        everything = self._share * 0.1 > self._dual.size
        self._idle += everything
        if everything:
            self._accuracy *= 0.1
        self._share *= 2.0

    def _joint(
        self, weights: FloatArray, point: WeightsPoint, residual: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Weights and dual vector from the joint problem of those that matter."""
        self._kernels = self._chosen_kernels(weights, point.forms)
        moving = self._moving(point.w, residual)
        self._run.phase(f"{len(self._kernels)} kernels and {len(moving)} samples together")
        answer = solve_joint(
            self._problem.kernels,
            self._kernels.tolist(),
            moving,
            weights[self._kernels],
            point.w,
            tol=self._accuracy,
            check=self._run.check_time,
        )
        self._run.count_newton(answer.n_steps)
        found = np.zeros(len(weights))
        found[self._kernels] = answer.weights
        # It balances the kernels better than an exact SVM can, so it often proves the bound.
        joint = self._problem.at(answer.w)
        self._run.raise_bound(cast(DualPoint, joint))
        level = joint.forms[self._kernels].max()
        self._kernels_missing = bool(joint.forms.max() > (1.0 + 0.5 * self._run.tol) * level)
        return found, answer.w

    def _chosen_kernels(self, weights: FloatArray, forms: FloatArray) -> IntArray:
        """Kernels with a weight, those of the last rounds, and the most promising others."""
        order = np.argsort(-forms, kind="stable")
        kept = self._kernels
        if len(kept) > _MOST_KERNELS:
            kept = kept[weights[kept] > 0]
        carrying = np.flatnonzero(weights > 0)
        if len(carrying) == len(weights):
            carrying = carrying[:0]  # the even start says nothing
        known = np.union1d(kept, carrying)
        fresh = order[~np.isin(order, known) & (forms[order] > 0.99 * (weights @ forms))]
        fresh = fresh[:_FIRST_KERNELS]
        return np.union1d(known, fresh).astype(np.intp)

    def _moving(self, w: FloatArray, residual: FloatArray) -> IntArray:
        """The free samples and those nearest to becoming so."""
        dual = self._dual
        count = int(self._share * max(int(dual.free(w).sum()), _ALL_SAMPLES))
        if count >= dual.size:
            return np.arange(dual.size)
        above, below = residual - dual.epsilon, -residual - dual.epsilon
        distance = np.where(
            w >= dual.upper,
            above,
            np.where(w <= dual.lower, below, np.maximum(-above, -below)),
        )
        distance = np.where(w == 0.0, np.minimum(
            np.where(dual.upper > 0, -above, np.inf), np.where(dual.lower < 0, -below, np.inf)
        ), distance)
        distance[dual.free(w)] = -np.inf
        return np.sort(np.argsort(distance, kind="stable")[:count])
