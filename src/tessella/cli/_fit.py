"""The command ``tessella fit``, which fits a model to a table."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tessella.cli._errors import CommandError, collected_warnings, complain, require_writable
from tessella.cli._render import as_gap, show_pairs, watched_console
from tessella.cli._tables import Table, listed, read_table
from tessella.estimators import LearnedKernelSVC, LearnedKernelSVR
from tessella.persistence import save
from tessella.progress import ProgressDisplay
from tessella.solvers import SolverStatus

_REMEDY = {
    SolverStatus.MAX_ITER: "raise --max-iter or accept a larger --tol",
    SolverStatus.TIME_LIMIT: "raise --time-limit or accept a larger --tol",
    SolverStatus.INTERRUPTED: "the best model found so far is kept",
    SolverStatus.OUT_OF_MEMORY: "the best model found so far is kept; use --precision float32",
    SolverStatus.STALLED: "use --precision float64, a smaller --C or a larger --tol",
}
_NOT_NUMBERS = (
    "this command needs numeric features without missing values: leave out columns with --drop, or "
    "use tessella.make_tabular_pipeline in Python, which accepts text, dates and missing values"
)


class Task(StrEnum):
    """Task of a fit."""

    auto = "auto"
    classification = "classification"
    regression = "regression"


def fit_file(
    train: Path,
    target: str,
    output: Path,
    task: Task,
    params: dict[str, Any],
    *,
    drop: Sequence[str] = (),
    force: bool,
) -> None:
    """Fit an estimator to the rows of a file and save it.

    Parameters
    ----------
    train : Path
        Path of a table with the target and the features.
    target : str
        Name of the column to predict. All other columns except those in `drop` are features.
    output : Path
        Path of the model file to write.
    task : Task
        Classification or regression, or "auto" to choose the task by the values of the target.
    params : dict
        Parameters of the estimator that differ from its default values.
    drop : sequence of str
        Names of columns to leave out.
    force : bool
        Whether an existing output may be replaced.
    """
    require_writable(output, force=force, inputs=(train,))
    table = read_table(train)
    for name in (target, *drop):
        table.require(name)
    features = [name for name in table.columns if name != target and name not in drop]
    if not features:
        raise CommandError(f"{train}: there is no column except the target {target!r}")
    task, y = _target(table, target, task)
    X = _matrix(table, features)
    model = _estimator(task, params)
    texts = _fit(model, X, y)
    summary = _summary(model, X, y, task)
    # With these names, the columns are checked in Python as if the model was fitted on a frame.
    model.feature_names_in_ = np.array(features, dtype=object)
    save(model, output, metadata={"features": features, "target": target, "task": task.value})
    show_pairs("Fitted model", {**summary, "saved as": str(output)})
    for text in texts:
        complain("warning", text)


def _matrix(table: Table, features: list[str]) -> NDArray[Any]:
    try:
        return table.matrix(features)
    except CommandError as error:
        raise CommandError(f"{error}; {_NOT_NUMBERS}") from error


def _target(table: Table, name: str, task: Task) -> tuple[Task, NDArray[Any]]:
    if task is Task.auto:
        task = _guess(table, name)
    if task is Task.classification:
        return task, _classes(table, name)
    y = table.numbers(name)
    if (y == y[0]).all():
        raise CommandError(
            f"{table.path}: the target {name!r} is constant: every value is {y[0]:g}"
        )
    return task, y


def _guess(table: Table, name: str) -> Task:
    two_values = table.is_categorical(name) or len(np.unique(table.numbers(name))) == 2
    return Task.classification if two_values else Task.regression


def _classes(table: Table, name: str) -> NDArray[Any]:
    labels = table.labels(name)
    classes = [str(label) for label in np.unique(labels)]
    if len(classes) == 1:
        raise CommandError(
            f"{table.path}: the target {name!r} has a single class, {classes[0]!r}; classification "
            "needs at least two classes"
        )
    if len(classes) > 2 and 2 * len(classes) > len(labels):
        raise CommandError(
            f"{table.path}: the target {name!r} has {len(classes)} classes in {len(labels)} rows "
            f"({listed(classes)}); to predict a number use --task regression"
        )
    return labels


def _estimator(task: Task, params: dict[str, Any]) -> Any:
    if task is Task.regression:
        return LearnedKernelSVR(**params)
    if "epsilon" in params:
        raise CommandError("--epsilon is an option of regression, but this is a classification")
    return LearnedKernelSVC(**params)


def _fit(model: Any, X: NDArray[Any], y: NDArray[Any]) -> list[str]:
    """Fit a model with a progress display, and return warnings that refer to the options."""
    console = watched_console()
    display = ProgressDisplay(model.tol, console=console, disable=not console.is_terminal)
    with collected_warnings() as texts, display:
        model._fit(X, y, None, display)
    status = SolverStatus(model.status_)
    if status is SolverStatus.OPTIMAL:
        return texts
    unfinished = model.checkpoint is not None and status is not SolverStatus.STALLED
    remedy = (
        f"the same command continues from {model.checkpoint}" if unfinished else _REMEDY[status]
    )
    shortfall = (
        f"not converged ({status.value}): the certified gap {model.gap_:.1e} is above "
        f"tol={model.tol:g}; {remedy}"
    )
    return [shortfall, *(text for text in texts if "certified relative gap" not in text)]


def _summary(model: Any, X: NDArray[Any], y: NDArray[Any], task: Task) -> dict[str, str]:
    score_name = "training accuracy" if task is Task.classification else "training R²"
    return {
        "task": task.value,
        "rows": str(len(X)),
        "features": str(X.shape[1]),
        "support vectors": str(len(model.support_)),
        score_name: f"{model.score(X, y):.4f}",
        "certified gap": as_gap(model.gap_),
        "status": f"{model.status_}, {model.n_iter_} iterations",
    }
