"""Our own solver of multiple kernel learning: exact SVMs and joint steps in turn.

Most samples sit at a bound of the dual and only say so, most kernels end with weight zero. Which
ones matter is told by an exact SVM on all samples with the present weights and by the quadratic
forms wᵀK_i w of all kernels; the weights of the kernels that matter and the dual variables of the
samples that matter are then found together by an interior point method
(:mod:`tessella.multiple_kernels._joint`). A few rounds of this reach a gap of 1e-6, where
descent on the weights needs an SVM for every step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from tessella.multiple_kernels._joint import solve_joint
from tessella.multiple_kernels._problem import WeightsPoint, WeightsProblem
from tessella.multiple_kernels._subsample import subsample
from tessella.problems import DualPoint, SaddlePoint
from tessella.solvers import SolverResult, SolverStatus
from tessella.solvers._run import Callback, Run, run_to_end
from tessella.svm import DualProblem

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

_FIRST_KERNELS = 24  # taken at once into the joint problem
_NEAR = 0.8  # of the level of those with a weight: kernels of the last round that stay
_ALL_SAMPLES = 300  # up to here nobody is held
_SHARE = 1.2  # of the free samples, to begin with
_SUBSAMPLE, _LEAST_SUBSAMPLE = 300, 40  # samples of one machine that find the first weights
_COARSE, _COARSE_ROUNDS = 1e-2, 10  # how far
_SWAYING = 12  # kernels that tell which samples may move
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


@dataclass(frozen=True)
class _Stand:
    """Weights with their exact SVM."""

    weights: FloatArray
    point: WeightsPoint
    residual: FloatArray
    value: float


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
        self._more_kernels = False  # in the last joint problem than in the one before

    def go(self) -> SolverStatus:
        """Round after round until the run is over."""
        weights, w, step = self._first_weights(), None, 0.0
        best: _Stand | None = None
        gap = np.inf
        while True:
            stand = self._exact(weights, w, step)
            if not self._run.gap < 0.5 * gap:
                self._widen()  # some of the samples that were held should not have been
            gap = self._run.gap
            if best is None or stand.value < best.value:
                best = stand
            if self._idle > _PATIENCE:
                return SolverStatus.STALLED
            weights, w = self._joint(best, stand)
            step = float(np.abs(weights - best.weights).sum())

    def _first_weights(self) -> FloatArray:
        """Even ones for a small problem; those of a small part for a large one."""
        n, machines = len(self._problem.kernels), self._problem.kernels.machines
        third = self._dual.size // (3 * len(machines))
        size = max(_LEAST_SUBSAMPLE, min(third, 2 * _SUBSAMPLE // (1 + len(machines))))
        if 2 * size * len(machines) > self._dual.size:
            return np.full(n, 1.0 / n)
        rows, fewer = subsample(machines, size)
        self._run.phase(f"weights for {len(rows)} of the rows")
        part = WeightsProblem(self._problem.kernels.restrict(rows, fewer))
        first = learned(
            part,
            tol=max(_COARSE, self._run.tol),
            max_iter=_COARSE_ROUNDS,
            time_limit=self._run.seconds_left(),
            n_jobs=1,
        )
        if first.status is SolverStatus.INTERRUPTED:
            raise KeyboardInterrupt
        self._run.count_newton(first.history[-1].n_newton)
        return first.P

    def _exact(self, weights: FloatArray, w: FloatArray | None, step: float) -> _Stand:
        """The SVM of all samples, certified."""
        K = self._problem.kernels.machine_matrices(weights)
        answer = self._run.svm(K, weights, w, self._accuracy)
        point = cast(WeightsPoint, self._run.record(weights, answer.w, step))
        return _Stand(weights, point, answer.residual, answer.objective)

    def _widen(self) -> None:
        everything = self._share * _ALL_SAMPLES > self._dual.size
        self._idle += everything and not self._more_kernels
        if everything:
            self._accuracy *= 0.1
        self._share *= 2.0

    def _joint(self, stand: _Stand, latest: _Stand) -> tuple[FloatArray, FloatArray]:
        """Weights and dual vector from the joint problem of those that matter."""
        chosen = self._chosen_kernels(stand)
        if latest is not stand:
            # The kernels of the last round are not enough: their own SVM tells what is missing.
            chosen = np.union1d(chosen, np.union1d(self._kernels, self._chosen_kernels(latest)))
        self._more_kernels = not np.isin(chosen, self._kernels).all()
        self._kernels = chosen.astype(np.intp)
        moving = self._moving(stand)
        self._run.phase(f"{len(self._kernels)} kernels and {len(moving)} samples together")
        answer = solve_joint(
            self._problem.kernels,
            self._kernels.tolist(),
            moving,
            stand.weights[self._kernels],
            stand.point.w,
            tol=0.2 * self._accuracy,
            check=self._run.check_time,
        )
        self._run.count_newton(answer.n_steps)
        weights = np.zeros(len(stand.weights))
        weights[self._kernels] = answer.weights
        # It balances the kernels better than an exact SVM can, so it often proves the bound.
        self._run.raise_bound(cast(DualPoint, self._problem.at(answer.w)))
        return weights, answer.w

    def _chosen_kernels(self, stand: _Stand) -> IntArray:
        """Kernels with a weight, those of the last round near it, and the most promising others."""
        weights, forms = stand.weights, stand.point.forms
        order = np.argsort(-forms, kind="stable")
        level = float(weights @ forms)
        carrying = weights > 0 if not weights.all() else np.zeros(len(weights), dtype=np.bool_)
        near = np.isin(np.arange(len(weights)), self._kernels) & (forms > _NEAR * level)
        known = np.flatnonzero(carrying | near)
        fresh = order[~np.isin(order, known) & (forms[order] > 0.99 * level)]
        return np.union1d(known, fresh[:_FIRST_KERNELS]).astype(np.intp)

    def _moving(self, stand: _Stand) -> IntArray:
        """The free samples and those nearest to becoming so, should the weights change."""
        dual, w = self._dual, stand.point.w
        count = int(self._share * max(int(dual.free(w).sum()), _ALL_SAMPLES))
        if count >= dual.size:
            return np.arange(dual.size)
        distance = _distance_to_free(dual, w, stand.residual) / (0.1 + self._sway(stand))
        return np.sort(np.argsort(distance, kind="stable")[:count])

    def _sway(self, stand: _Stand) -> FloatArray:
        """How far the score of each sample moves between the kernels that want more weight."""
        forms, kernels = stand.point.forms, self._problem.kernels
        top = self._kernels[np.argsort(-forms[self._kernels], kind="stable")[:_SWAYING]]
        scores = kernels.scores(stand.weights, stand.point.w)
        apart = kernels.sample_products(top.tolist(), stand.point.w) - scores
        sway: FloatArray = np.abs(apart).max(axis=0)
        return sway


def _distance_to_free(dual: DualProblem, w: FloatArray, residual: FloatArray) -> FloatArray:
    """Change of its residual that would make a sample leave its bound or zero; 0 if it is free."""
    above, below = residual - dual.epsilon, -residual - dual.epsilon
    rise = np.where(dual.upper > 0, -above, np.inf)
    fall = np.where(dual.lower < 0, -below, np.inf)
    distance = np.where(w == 0.0, np.minimum(rise, fall), np.where(w > 0, above, below))
    distance[dual.free(w)] = 0.0
    return np.maximum(distance, 0.0)
