"""The problem that an estimator solves, and a solver run on it from a cold start."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tessella.backend import limit_blas
from tessella.estimators import paper_settings
from tessella.kernels import KernelSet, UnitBox
from tessella.problems import SaddlePoint
from tessella.solvers import SOLVERS, SolverResult, choose_solver
from tessella.svm import DualProblem
from tessella_bench._library import TrainingSet

FloatArray = NDArray[np.float64]

CLASSIFICATION, REGRESSION = "classification", "regression"
EPSILON: float = paper_settings(REGRESSION)["epsilon"]  # tube, in standard deviations of y
UNLIMITED = 10**6  # iterations, where the gap and the clock are the limits
# Solvers of these problems for any number of rows: "sdp" is for few of them, and "simple-mkl"
# learns weights, not matrices.
ITERATIVE = tuple(name for name in SOLVERS if name not in ("newton", "sdp", "simple-mkl"))


def split_at_median(y: FloatArray) -> FloatArray:
    """+1 where an output reaches the median, -1 elsewhere."""
    return np.where(y >= np.median(y), 1.0, -1.0)


def saddle_point(
    X: FloatArray, y: FloatArray, task: str, kernels: KernelSet, C: float
) -> SaddlePoint:
    """The problem that an estimator's `fit` would solve on these rows; labels are signs."""
    # Classes by number, as estimators have them: the order of the rows depends on it.
    targets = (y > 0).astype(np.float64) if task == CLASSIFICATION else y
    rows = TrainingSet.build(X, targets, np.ones(len(y)))
    if task == CLASSIFICATION:
        dual = DualProblem.classification(2.0 * rows.y - 1.0, C * rows.weight)
    else:
        mean = np.average(rows.y, weights=rows.weight)
        deviation = np.sqrt(np.average((rows.y - mean) ** 2, weights=rows.weight))
        dual = DualProblem.regression((rows.y - mean) / deviation, C * rows.weight, EPSILON)
    box = UnitBox.fit(rows.X)
    with limit_blas():
        return SaddlePoint(kernels.bind(box.apply(rows.X)), dual)


def solve(
    solver: str | Any,
    problem: SaddlePoint,
    *,
    tol: float,
    time_limit: float | None,
    max_iter: int = UNLIMITED,
    n_jobs: int | None = None,
    clock: Callable[[], float] = time.perf_counter,
    **options: Any,
) -> tuple[SolverResult, float]:
    """Answer and seconds of a solver, by name or as a function, from a cold start.

    The seconds are those of `clock`, by default on the wall. BLAS gets as many threads as it would
    in an estimator. The binding of the kernel set, which all solvers need alike, is not part of
    the time.
    """
    run: Any = choose_solver(solver, problem) if isinstance(solver, str) else solver
    limits = {"tol": tol, "max_iter": max_iter, "time_limit": time_limit}
    start = {"parameter0": None, "w0": None, "n_jobs": n_jobs, "callback": None}
    with limit_blas():
        begin = clock()
        result = run(problem, **limits, **start, **options)
        return result, clock() - begin


def numerical_rank(P: FloatArray, threshold: float = 1e-4) -> int:
    """Number of eigenvalues above `threshold` times the largest."""
    values = np.linalg.eigvalsh(P)
    return int((values > threshold * values[-1]).sum())
