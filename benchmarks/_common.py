"""What the benchmarks share: data, the problem an estimator solves, cross-validation, options."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold, StratifiedKFold

from tessella import LearnedKernelSVC, LearnedKernelSVR
from tessella.backend import limit_blas
from tessella.estimators._training_set import TrainingSet
from tessella.kernels import KernelSet, UnitBox
from tessella.problems import SaddlePoint
from tessella.solvers import SolverResult, choose_solver
from tessella.svm import DualProblem

FloatArray = NDArray[np.float64]

CLASSIFICATION, REGRESSION = "classification", "regression"

# The paper's twelve sets (its Tables 2 and 3), its Table 1 and its Figure 2.
TWELVE = (
    *("abalone", "hill_valley", "transfusion", "shill_bidding", "german_numer", "fourclass"),
    *("gas_turbine", "airfoil", "ccpp", "cadata", "space_ga", "boston"),
)
TABLE_1 = ("liver", "cancer_wbc", "heart", "pima")
FIGURE_2 = ("cancer_wbc", "pima")

EPSILON = 0.1  # tube of the regressions, in standard deviations of y: the estimator's default
_UNLIMITED = 10**6  # iterations; the gap and the clock are the limits here
_MATURE_RINGS = 9

_NO_DATA = """\
TESSELLA_DATA does not name a folder with a MANIFEST.json. Set it to the folder of the data sets:

    export TESSELLA_DATA=/path/to/data

benchmarks/README.md says what has to be in it."""


# ---------------------------------------------------------------------------------------- data


@dataclass(frozen=True)
class Dataset:
    """Raw rows of a set: labels -1 and +1, or targets in their own units."""

    name: str
    task: str
    X: FloatArray
    y: FloatArray

    def take(self, rows: int | None, seed: int) -> Dataset:
        """At most `rows` rows, drawn at random with a fixed seed, in their order in the file."""
        if rows is None or rows >= len(self.y):
            return self
        kept = np.sort(np.random.default_rng(seed).permutation(len(self.y))[:rows])
        return replace(self, X=self.X[kept], y=self.y[kept])

    def split_at_median(self) -> Dataset:
        """The classification that asks whether the target reaches its median."""
        signs = np.where(self.y >= np.median(self.y), 1.0, -1.0)
        return replace(self, task=CLASSIFICATION, y=signs)


def data_folder() -> Path:
    """The folder TESSELLA_DATA names; exits with status 2 and an explanation without one."""
    folder = Path(os.environ.get("TESSELLA_DATA", ""))
    if not os.environ.get("TESSELLA_DATA") or not (folder / "MANIFEST.json").is_file():
        print(_NO_DATA, file=sys.stderr)
        raise SystemExit(2)
    return folder


@cache
def _manifest(folder: Path) -> dict[str, dict[str, Any]]:
    sets = json.loads((folder / "MANIFEST.json").read_text())["sets"]
    return {entry["name"]: entry for entry in sets}


def load(name: str, rows: int | None = None, seed: int = 0) -> Dataset:
    """A data set by name, with at most `rows` rows."""
    folder = data_folder()
    if name not in _manifest(folder):
        print(f"{name!r} is not in {folder / 'MANIFEST.json'}.", file=sys.stderr)
        raise SystemExit(2)
    entry = _manifest(folder)[name]
    table = np.loadtxt(folder / entry["file"], delimiter=",", skiprows=1)
    X, y = table[:, :-1], table[:, -1]
    task = REGRESSION if entry["task"].startswith(REGRESSION) else CLASSIFICATION
    if name == "abalone":
        y = np.where(y >= _MATURE_RINGS, 1.0, -1.0)
    elif name == "gas_turbine":
        X = X[:, :-1]  # the target is NOX; CO, the other emission, is not a feature
    return Dataset(name, task, np.ascontiguousarray(X), y).take(rows, seed)


# ------------------------------------------------------------------------------------- problem


def saddle_point(data: Dataset, kernels: KernelSet, C: float) -> SaddlePoint:
    """The problem that an estimator's `fit` would solve on these rows."""
    # Classes by number, as estimators have them: the order of the rows depends on it.
    y = (data.y > 0).astype(np.float64) if data.task == CLASSIFICATION else data.y
    rows = TrainingSet.build(data.X, y, np.ones(len(data.y)))
    if data.task == CLASSIFICATION:
        dual = DualProblem.classification(2.0 * rows.y - 1.0, C * rows.weight)
    else:
        mean = np.average(rows.y, weights=rows.weight)
        deviation = np.sqrt(np.average((rows.y - mean) ** 2, weights=rows.weight))
        dual = DualProblem.regression((rows.y - mean) / deviation, C * rows.weight, EPSILON)
    box = UnitBox.fit(rows.X)
    with limit_blas():
        return SaddlePoint(kernels.bind(box.apply(rows.X)), dual)


def solve(
    solver: str | Any, problem: SaddlePoint, *, tol: float, time_limit: float | None, **options: Any
) -> tuple[SolverResult, float]:
    """Answer and wall-clock seconds of a solver, by name or as a function, from a cold start.

    BLAS gets as many threads as it would in an estimator. The binding of the kernel set, which
    all solvers need alike, is not part of the time.
    """
    run = choose_solver(solver, problem) if isinstance(solver, str) else solver
    limits = {"tol": tol, "max_iter": _UNLIMITED, "time_limit": time_limit}
    start = {"P0": None, "w0": None, "n_jobs": None, "callback": None}
    with limit_blas():
        begin = time.perf_counter()
        result = run(problem, **limits, **start, **options)
        return result, time.perf_counter() - begin


def numerical_rank(P: FloatArray, threshold: float = 1e-4) -> int:
    """Number of eigenvalues above `threshold` times the largest."""
    values = np.linalg.eigvalsh(P)
    return int((values > threshold * values[-1]).sum())


# ---------------------------------------------------------------------------- cross-validation


def cross_validate(
    data: Dataset,
    kernels: KernelSet,
    C: float,
    *,
    folds: int = 2,
    seed: int = 0,
    tol: float = 1e-3,
    time_limit: float | None = 60.0,
) -> dict[str, Any]:
    """Out-of-fold scores of the estimator, and what its fits cost.

    Returns
    -------
    dict
        ``score`` (larger is better: accuracy, or minus the mean squared error), ``accuracy`` or
        ``mse`` and ``r2`` in the units of the data; ``gap`` (the largest), ``solver``, and the
        means over the folds ``steps``, ``n_svm`` (during the steps) and ``fit_seconds``.
    """
    classify = data.task == CLASSIFICATION
    splitter = (StratifiedKFold if classify else KFold)(folds, shuffle=True, random_state=seed)
    estimator = LearnedKernelSVC if classify else LearnedKernelSVR
    predicted = np.empty(len(data.y))
    models, seconds = [], []
    for train, test in splitter.split(data.X, data.y):
        model = estimator(C=C, kernels=kernels, tol=tol, time_limit=time_limit)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the gap is reported instead
            begin = time.perf_counter()
            model.fit(data.X[train], data.y[train])
        seconds.append(time.perf_counter() - begin)
        predicted[test] = model.predict(data.X[test])
        models.append(model)
    return {
        **_scores(data, predicted),
        "gap": max(model.gap_ for model in models),
        "steps": float(np.mean([model.n_iter_ for model in models])),
        "n_svm": float(np.mean([model.history_[-1].n_svm for model in models])),
        "fit_seconds": float(np.mean(seconds)),
        "solver": "/".join(sorted({model.solver_ for model in models})),
    }


def _scores(data: Dataset, predicted: FloatArray) -> dict[str, float]:
    if data.task == CLASSIFICATION:
        accuracy = float(np.mean(predicted == data.y))
        return {"score": accuracy, "accuracy": accuracy}
    mse = float(np.mean((predicted - data.y) ** 2))
    return {"score": -mse, "mse": mse, "r2": 1.0 - mse / float(data.y.var())}


# ------------------------------------------------------------------------------------- options


def options(
    description: str | None, *, rows: int | None, datasets: Sequence[str]
) -> argparse.ArgumentParser:
    """A parser with the options every benchmark has."""
    parser = argparse.ArgumentParser(
        description=description,
        epilog="The data sets are read from the folder that TESSELLA_DATA names.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    shown = "all of them" if rows is None else f"{rows:,}"
    parser.add_argument(
        "--rows", type=int, default=rows, help=f"most rows of a set (default: {shown})"
    )
    parser.add_argument(
        "--datasets",
        nargs="+",
        default=list(datasets),
        metavar="NAME",
        help=f"sets to run (default: {' '.join(datasets)})",
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=Path(__file__).parent / "results",
        help="folder of the results (default: benchmarks/results)",
    )
    parser.add_argument("--seed", type=int, default=0, help="of the rows drawn (default: 0)")
    parser.add_argument(
        "--fresh", action="store_true", help="do not reuse what an earlier run left in the cache"
    )
    return parser


_START = time.monotonic()


def say(text: str) -> None:
    """A line of progress, with the minutes since the start."""
    print(f"[{(time.monotonic() - _START) / 60:6.1f} min] {text}", flush=True)
