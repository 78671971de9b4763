"""Learned kernels of this library as methods of the table."""

from __future__ import annotations

from typing import Any

import numpy as np

from tessella.backend import require_memory
from tessella.estimators import LearnedKernelSVC, LearnedKernelSVR, paper_settings
from tessella.kernels import TessellatedKernels
from tessella.model_selection import KernelPathCV
from tessella.multiple_kernels import MultipleKernelSVC, MultipleKernelSVR
from tessella.solvers import working_memory
from tessella_bench._methods import CLASSIFICATION, Fitted
from tessella_bench._tuning import (
    SCORING,
    Stopwatch,
    best_parameters,
    folds,
    grid_search,
    tube,
)

# One margin more than the default grid of KernelPathCV: two folds cannot tell 0.1 from 1 on
# Airfoil, where 0.3 is best on every division.
_TKL_GRID = {
    "C": (0.1, 1.0, 10.0, 100.0, 1000.0, 10000.0),
    "delta": (0.1, 0.3, 1.0, 4.0),
}
# Two folds of 15,000 rows and 24 points are hours; the fit on all rows is minutes.
_MOST_ROWS_TO_TUNE_ON, _SAMPLE = 20_000, 5_000
# SimpleMKL's own default; the last digits cost it most of its time.
_TOL_OF_MKL, _TOL_OF_SIMPLEMKL = 1e-3, 1e-2
_MKL_STRENGTHS = (0.1, 1.0, 10.0, 100.0, 1000.0)


def tkl(task: str, X: Any, y: Any, seed: int) -> Fitted:
    """The paper's method: degree 1, C and delta by cross-validation, the tube of `tube`."""
    return _searched(task, "tessellated", X, y, seed)


def tkl_unit(task: str, X: Any, y: Any, seed: int) -> Fitted:
    """The same with basis functions of equal weight, which wide data need."""
    return _searched(task, TessellatedKernels(balance="unit"), X, y, seed)


def _searched(task: str, kernels: Any, X: Any, y: Any, seed: int) -> Fitted:
    precision = "float64" if len(y) <= _MOST_ROWS_TO_TUNE_ON else "float32"
    settings = {**paper_settings(task), "kernels": kernels, "precision": precision, "n_jobs": 1}
    model: Any
    if task == CLASSIFICATION:
        model = LearnedKernelSVC(**settings)
    else:
        model = LearnedKernelSVR(**{**settings, "epsilon": tube(y)})
    prefix = "" if isinstance(kernels, str) else "kernels__"
    grid: dict[str, Any] = {"C": _TKL_GRID["C"], f"{prefix}delta": _TKL_GRID["delta"]}
    rows = _rows_to_tune_on(len(y), seed)

    def search(points: dict[str, Any]) -> Any:
        divisions = folds(task, seed)
        path = KernelPathCV(model, points, cv=divisions, scoring=SCORING[task], refit=False)
        return path.fit(X[rows], y[rows])

    tuning, fitting = Stopwatch(), Stopwatch()
    with tuning():
        best = best_parameters(search, grid)
    with fitting():
        model.set_params(**best).fit(X, y)
    return Fitted(model, best, tuning.seconds, fitting.seconds, gap=float(model.gap_))


def _rows_to_tune_on(count: int, seed: int) -> Any:
    if count <= _MOST_ROWS_TO_TUNE_ON:
        return slice(None)
    return np.random.default_rng(seed).choice(count, _SAMPLE, replace=False)


def smkl(task: str, X: Any, y: Any, seed: int) -> Fitted:
    """Weights of a standard dictionary, learned with the machine in the way of SimpleMKL."""
    return _weighted("simple", task, X, y, seed, tol=_TOL_OF_SIMPLEMKL)


def mkl(task: str, X: Any, y: Any, seed: int) -> Fitted:
    """The same problem, solved our way."""
    return _weighted("learned", task, X, y, seed)


def amkl(task: str, X: Any, y: Any, seed: int) -> Fitted:
    """The average of a standard dictionary."""
    return _weighted("average", task, X, y, seed)


def pwmk(task: str, X: Any, y: Any, seed: int) -> Fitted:
    """Weights by the performance of each kernel of a standard dictionary."""
    return _weighted("performance", task, X, y, seed)


def cka(task: str, X: Any, y: Any, seed: int) -> Fitted:
    """Weights by the alignment of each kernel of a standard dictionary with the target."""
    return _weighted("alignment", task, X, y, seed)


def _require_memory(rows: int, weighting: str) -> None:
    """Refuse a fit on all rows that cannot succeed; the search before it may take an hour.

    The estimators refuse it as well, but a search fits them to half of the rows first.
    """
    needed = working_memory(
        "simple-mkl" if weighting == "simple" else "auto", [rows], 8, by_rows=False
    )
    if weighting == "performance":
        needed = max(needed, 2 * 8 * rows**2)  # the matrix of one kernel, and parts of it
    require_memory(needed, f"A weighted sum of kernels on {rows} rows", "Use fewer rows.")


def _weighted(
    weighting: str, task: str, X: Any, y: Any, seed: int, tol: float = _TOL_OF_MKL
) -> Fitted:
    _require_memory(len(y), weighting)
    model: Any
    if task == CLASSIFICATION:
        model = MultipleKernelSVC(weighting=weighting, tol=tol, n_jobs=1)
    else:
        model = MultipleKernelSVR(weighting=weighting, epsilon=tube(y), tol=tol, n_jobs=1)
    fitted = grid_search(task, model, {"C": _MKL_STRENGTHS}, X, y, seed)
    gap = getattr(fitted.model, "gap_", None)
    fitted.gap = None if gap is None else float(gap)
    return fitted
