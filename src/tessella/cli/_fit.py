"""The command ``tessella fit``, which fits a model to a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tessella.cli._errors import CommandError, collected_warnings, complain, require_writable
from tessella.cli._render import as_duration, as_gap, in_leaves, show_pairs, watched_console
from tessella.cli._stored import StoredTable, is_parquet, peak_memory, read_stored
from tessella.cli._tables import Table, listed, read_table
from tessella.estimators import LearnedKernelSVC, LearnedKernelSVR
from tessella.inspection._summary import is_far_from_optimal
from tessella.persistence import save
from tessella.progress import ProgressDisplay, SearchDisplay
from tessella.rows import ParquetSource
from tessella.solvers import SolverStatus

_REMEDY = {
    SolverStatus.MAX_ITER: "raise --max-iter or accept a larger --tol",
    SolverStatus.TIME_LIMIT: "raise --time-limit or accept a larger --tol",
    SolverStatus.INTERRUPTED: "the best model found so far is kept",
    SolverStatus.OUT_OF_MEMORY: "the best model found so far is kept; use --precision float32",
    SolverStatus.STALLED: "use --precision float64, a smaller --C or a larger --tol",
}
_FEW_VALUES = 10  # distinct whole numbers of a target that may be meant as classes


class Task(StrEnum):
    """Task of a fit."""

    auto = "auto"
    classification = "classification"
    regression = "regression"


class Model(StrEnum):
    """Kind of model that is fitted."""

    automatic = "automatic"
    learned_kernel = "learned-kernel"


# Options of one of the models, by the names of the parameters. All others belong to both.
_FLAGS = {
    Model.automatic: {"effort": "--effort", "categorical_features": "--categorical"},
    Model.learned_kernel: {
        "C": "--C",
        "epsilon": "--epsilon",
        "degree": "--degree",
        "delta": "--delta",
        "solver": "--solver",
        "tol": "--tol",
        "max_iter": "--max-iter",
        "precision": "--precision",
        "checkpoint": "--checkpoint",
        "max_leaf_rows": "--max-leaf-rows",
    },
}
_NOT_NUMBERS = (
    f"--model {Model.learned_kernel} needs numeric features without missing values: leave out "
    f"columns with --drop, or use --model {Model.automatic}, which takes text, dates and gaps"
)


@dataclass(frozen=True)
class TrainingTable:
    """What a model is fitted to.

    Attributes
    ----------
    table : Table
        Table with the target and the features.
    features : list of str
        Names of the columns that are features.
    task : Task
        Classification or regression.
    reason : str
        Reason of the task.
    y : ndarray
        Target.
    """

    table: Table
    features: list[str]
    task: Task
    reason: str
    y: NDArray[Any]


@dataclass(frozen=True)
class StoredRows:
    """What a model is fitted to that reads its rows in parts.

    Attributes
    ----------
    source : ParquetSource
        Rows of the features and the target.
    features : list of str
        Names of the columns that are features.
    task : Task
        Classification or regression.
    reason : str
        Reason of the task.
    """

    source: ParquetSource
    features: list[str]
    task: Task
    reason: str


def fit_file(
    train: Path,
    target: str,
    output: Path,
    task: Task,
    model: Model,
    params: dict[str, Any],
    *,
    drop: Sequence[str] = (),
    force: bool,
) -> None:
    """Fit an estimator to the rows of a file and save it.

    Parameters
    ----------
    train : Path
        Path of a table with the target and the features. With the parameter `max_leaf_rows`, it may
        be a folder of Parquet files.
    target : str
        Name of the column to predict. All other columns except those in `drop` are features.
    output : Path
        Path of the model file to write.
    task : Task
        Classification or regression, or "auto" to choose the task by the values of the target.
    model : Model
        Kind of model.
    params : dict
        Parameters of the estimator that differ from its default values.
    drop : sequence of str
        Names of columns to leave out.
    force : bool
        Whether an existing output may be replaced.
    """
    _require_own_options(model, params)
    require_writable(output, force=force, inputs=(train,))
    data: TrainingTable | StoredRows
    if "max_leaf_rows" in params and is_parquet(train):
        data = _look_at(read_stored(train, target, drop, _FEW_VALUES), task)
        estimator, summary, texts = _fit_stored(data, params)
    else:
        data = _read(train, target, task, drop, params.get("categorical_features", ()))
        fit = _fit_automatic if model is Model.automatic else _fit_learned_kernel
        estimator, summary, texts = fit(data, params)
    # With these names, the columns are checked in Python as if the model was fitted on a frame.
    estimator.feature_names_in_ = np.array(data.features, dtype=object)
    metadata = {"features": data.features, "target": target, "task": data.task.value}
    save(estimator, output, metadata=metadata)
    chosen = {"task": f"{data.task.value} ({data.reason})"}
    show_pairs("Fitted model", {**chosen, **summary, "saved as": str(output)})
    for text in texts:
        complain("warning", text)


def _require_own_options(model: Model, params: dict[str, Any]) -> None:
    for owner, flags in _FLAGS.items():
        foreign = [flag for name, flag in flags.items() if name in params and owner is not model]
        if foreign:
            verb = "is an option" if len(foreign) == 1 else "are options"
            raise CommandError(
                f"{', '.join(foreign)} {verb} of --model {owner}, but this is --model {model}"
            )


def _read(
    train: Path, target: str, task: Task, drop: Sequence[str], categorical: Sequence[str]
) -> TrainingTable:
    table = read_table(train, text=[name for name in categorical if name != target])
    for name in (target, *drop, *categorical):
        table.require(name)
    features = [name for name in table.columns if name != target and name not in drop]
    if not features:
        raise CommandError(f"{train}: there is no column except the target {target!r}")
    useless = [name for name in categorical if name not in features]
    if useless:
        raise CommandError(f"--categorical {useless[0]}: this column is not a feature")
    reason = "as given by --task"
    if task is Task.auto:
        task, reason = _guess(table, target)
    y = _classes(table, target) if task is Task.classification else _numbers(table, target)
    return TrainingTable(table, features, task, reason, y)


# ------------------------------------------------------------------------------------- target


def _guess(table: Table, name: str) -> tuple[Task, str]:
    """Return the task that the values of the target suggest, and the reason."""
    if table.is_categorical(name):
        return Task.classification, "the target is text"
    return _guess_by_values(np.unique(table.numbers(name)))


def _guess_by_values(values: NDArray[Any]) -> tuple[Task, str]:
    """Return the task that the distinct numbers of the target suggest, and the reason."""
    if len(values) == 2:
        return Task.classification, "the target has two values"
    reason = f"the target has {len(values)} distinct numbers"
    if len(values) <= _FEW_VALUES and (values == np.round(values)).all():
        reason += "; if they are classes, use --task classification"
    return Task.regression, reason


def _look_at(data: StoredTable, task: Task) -> StoredRows:
    """Return the rows of Parquet files, with the task that the values of the target suggest."""
    reason = "as given by --task"
    if task is Task.auto and data.is_text:
        task, reason = Task.classification, "the target is text"
    elif task is Task.auto and len(data.values) > _FEW_VALUES:
        task, reason = Task.regression, f"the target has more than {_FEW_VALUES} distinct numbers"
    elif task is Task.auto:
        task, reason = _guess_by_values(data.values)
    if task is Task.regression and data.is_text:
        raise CommandError(
            f"{data.path}: the target {data.target!r} is text; regression needs numbers"
        )
    if len(data.values) < 2:
        raise CommandError(f"{data.path}: every value of the target {data.target!r} is the same")
    return StoredRows(data.source, data.features, task, reason)


def _numbers(table: Table, name: str) -> NDArray[Any]:
    y = table.numbers(name)
    if (y == y[0]).all():
        raise CommandError(
            f"{table.path}: the target {name!r} is constant: every value is {y[0]:g}"
        )
    return y


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


# --------------------------------------------------------------------------- automatic models

Fitted = tuple[Any, dict[str, str], list[str]]


def _fit_automatic(data: TrainingTable, params: dict[str, Any]) -> Fitted:
    """Fit an automatic model, and return it with its summary and warnings."""
    from tessella.automatic import TessellaClassifier, TessellaRegressor  # slow to import

    kinds = {Task.classification: TessellaClassifier, Task.regression: TessellaRegressor}
    model = kinds[data.task](**params)
    X = data.table.frame(data.features)
    with collected_warnings() as texts, _in_words_of_options():
        model._fit(X, data.y, None, search_display())
    if not model.search_complete_:
        texts.append(
            "the search ended before everything was tried; the best machines found so far are "
            "used, and a larger --time-limit or --effort low lets it finish"
        )
    score = "accuracy" if data.task is Task.classification else "R²"
    summary = {
        "rows": str(len(data.y)),
        "columns": _counted_kinds(model._reader.kinds),
        f"leave-one-out {score}": f"{model.loo_score_:.4f}",
        "machines": str(len(model.members_)),
        "certified gap": as_gap(model.gap_),
        "time": as_duration(model.fit_time_),
    }
    return model, summary, texts


@contextmanager
def _in_words_of_options() -> Iterator[None]:
    """Name options of the command instead of parameters in the messages of a fit."""
    try:
        yield
    except ValueError as error:
        raise CommandError(str(error).replace("categorical_features", "--categorical")) from error


@contextmanager
def search_display() -> Iterator[Any]:
    """Show the progress of a search on a terminal; yields the function that tells it."""
    console = watched_console()
    with SearchDisplay(console=console, disable=not console.is_terminal) as display:
        yield display.tell


def _counted_kinds(kinds: Sequence[str]) -> str:
    words = {"number": "numbers", "date": "dates", "category": "categories"}
    counted = {kind: kinds.count(kind) for kind in words}
    texts = [
        f"{count} {kind if count == 1 else words[kind]}" for kind, count in counted.items() if count
    ]
    return f"{len(kinds)} ({', '.join(texts)})"


# ------------------------------------------------------------------- models of a learned kernel


def _fit_learned_kernel(data: TrainingTable, params: dict[str, Any]) -> Fitted:
    """Fit a machine with a learned kernel, and return it with its summary and warnings."""
    X = _matrix(data.table, data.features)
    model = _estimator(data.task, params)
    console = watched_console()
    display = ProgressDisplay(model.tol, console=console, disable=not console.is_terminal)
    with collected_warnings() as texts, display:
        model._fit(X, data.y, None, display)
    score = "training accuracy" if data.task is Task.classification else "training R²"
    summary = {
        **_sizes(model, len(X)),
        score: f"{model.score(X, data.y):.4f}",
        **_certificate(model),
    }
    return model, summary, _shortfall(model, texts)


def _fit_stored(data: StoredRows, params: dict[str, Any]) -> Fitted:
    """Fit a machine in leaves to rows that are read in parts."""
    model = _estimator(data.task, params)
    console = watched_console()
    display = ProgressDisplay(model.tol, console=console, disable=not console.is_terminal)
    with collected_warnings() as texts, display:
        model._fit(data.source, None, None, display)
    summary = {**_sizes(model, data.source.n_rows), **_certificate(model)}
    return model, summary, _shortfall(model, texts)


def _sizes(model: Any, n_rows: int) -> dict[str, str]:
    """Return the numbers of rows, features and leaves of a model, and its memory."""
    sizes = {"rows": str(n_rows), "features": str(model.n_features_in_)}
    if hasattr(model, "leaves_"):
        partition = model.leaves_.partition
        sizes["leaves"] = in_leaves(partition.n_leaves, partition.n_trees)
        memory = peak_memory()
        if memory is not None:
            sizes["memory"] = memory
    return {**sizes, "support vectors": str(len(model.support_))}


def _certificate(model: Any) -> dict[str, str]:
    return {
        "certified gap": as_gap(model.gap_),
        "status": f"{model.status_}, {model.n_iter_} iterations",
    }


def _matrix(table: Table, features: list[str]) -> NDArray[Any]:
    try:
        return table.matrix(features)
    except CommandError as error:
        raise CommandError(f"{error}; {_NOT_NUMBERS}") from error


def _estimator(task: Task, params: dict[str, Any]) -> Any:
    if task is Task.regression:
        return LearnedKernelSVR(**params)
    if "epsilon" in params:
        raise CommandError("--epsilon is an option of regression, but this is a classification")
    return LearnedKernelSVC(**params)


def _shortfall(model: Any, texts: list[str]) -> list[str]:
    """Return warnings of a fit that refer to the options of the command."""
    status = SolverStatus(model.status_)
    if status is SolverStatus.OPTIMAL:
        return texts
    unfinished = model.checkpoint is not None and status is not SolverStatus.STALLED
    remedy = (
        f"the same command continues from {model.checkpoint}" if unfinished else _REMEDY[status]
    )
    far = "do not use this model: " if is_far_from_optimal(model.gap_, model.tol) else ""
    text = (
        f"{far}not converged ({status.value}): the certified gap {model.gap_:.1e} is above "
        f"tol={model.tol:g}; {remedy}"
    )
    return [text, *(other for other in texts if "certified relative gap" not in other)]
