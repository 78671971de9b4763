"""What the benchmarks share: data, the problem an estimator solves, cross-validation, options."""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold, StratifiedKFold

from tessella import LearnedKernelSVC, LearnedKernelSVR, datasets
from tessella.estimators import paper_settings
from tessella.kernels import KernelSet
from tessella.problems import SaddlePoint
from tessella_bench.figures._problem import CLASSIFICATION, REGRESSION, split_at_median
from tessella_bench.figures._problem import EPSILON as EPSILON
from tessella_bench.figures._problem import numerical_rank as numerical_rank
from tessella_bench.figures._problem import saddle_point as problem_of
from tessella_bench.figures._problem import solve as solve

FloatArray = NDArray[np.float64]

# The paper's twelve sets (its Tables 2 and 3), its Table 1 and its Figure 2.
TWELVE = (
    *("abalone", "hill_valley", "transfusion", "shill_bidding", "german_numer", "fourclass"),
    *("gas_turbine", "airfoil", "ccpp", "cadata", "space_ga", "boston"),
)
TABLE_1 = ("liver", "cancer_wbc", "heart", "pima")
FIGURE_2 = ("cancer_wbc", "pima")

_STORED_AS = {"gas_turbine": "gas_turbine_nox"}  # the target of these benchmarks

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
        return replace(self, task=CLASSIFICATION, y=split_at_median(self.y))


def data_folder() -> Path:
    """The folder TESSELLA_DATA names; exits with status 2 and an explanation without one."""
    folder = Path(os.environ.get("TESSELLA_DATA", ""))
    if not os.environ.get("TESSELLA_DATA") or not (folder / "MANIFEST.json").is_file():
        print(_NO_DATA, file=sys.stderr)
        raise SystemExit(2)
    return folder


def load(name: str, rows: int | None = None, seed: int = 0) -> Dataset:
    """A data set by name, with at most `rows` rows; any that lies in the folder."""
    folder = data_folder()
    stored = _STORED_AS.get(name, name)
    try:
        if stored not in datasets.names_in(folder):
            raise datasets.DataError(f"{name!r} is not in {folder / 'MANIFEST.json'}.")
        found = datasets.load(stored, folder, verify=False)
    except datasets.DataError as error:
        print(error, file=sys.stderr)
        raise SystemExit(2) from None
    y = found.y if found.task == REGRESSION else 2.0 * found.y - 1.0
    return Dataset(name, found.task, found.X, y).take(rows, seed)


# ------------------------------------------------------------------------------------- problem


def saddle_point(data: Dataset, kernels: KernelSet, C: float) -> SaddlePoint:
    """The problem that an estimator's `fit` would solve on these rows."""
    return problem_of(data.X, data.y, data.task, kernels, C)


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
        given = {"C": C, "kernels": kernels, "tol": tol, "time_limit": time_limit}
        model = estimator(**{**paper_settings(data.task), **given})
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
