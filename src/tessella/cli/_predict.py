"""The command ``tessella predict``, which predicts for the rows of a table."""

from __future__ import annotations

import csv
import io
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from tessella.cli._errors import CommandError, complain, require_writable
from tessella.cli._tables import Table, listed, read_in_parts, read_table
from tessella.persistence import load, read_info
from tessella.tabular._columns import CATEGORY

_OTHER_FORMATS = (".parquet", ".gz", ".tsv", ".xlsx", ".json")


def predict_file(
    model_path: Path,
    new: Path,
    output: Path | None,
    *,
    proba: bool = False,
    interval: float | None = None,
    force: bool,
) -> None:
    """Predict for the rows of a file.

    Parameters
    ----------
    model_path : Path
        Path of the model file.
    new : Path
        Path of a table with the features.
    output : Path or None
        Path of the CSV file to write. None means standard output.
    proba : bool
        Whether the probabilities of the classes are written.
    interval : float or None
        Coverage of the intervals that are written, or None for no intervals.
    force : bool
        Whether an existing output may be replaced.
    """
    if output is not None:
        if output.suffix.lower() in _OTHER_FORMATS:
            raise CommandError(
                f"{output}: predictions are written as CSV; use a name that ends in .csv"
            )
        require_writable(output, force=force, inputs=(model_path, new))
    info, model = read_info(model_path), load(model_path)
    _require_able(model, proba, interval)
    text = _predictions(model, _parts(new, info, model.n_features_in_), proba, interval)
    if output is None:
        typer.echo(text, nl=False)
    else:
        output.write_text(text, encoding="utf-8", newline="\n")


def feature_columns(info: dict[str, Any]) -> list[str] | None:
    """Return the names of the columns that a model was fitted on, if they are in the file."""
    names: list[str] | None = info["metadata"].get("features") or info["feature_names"]
    return names


def _require_able(model: Any, proba: bool, interval: float | None) -> None:
    """Raise an error if the model cannot predict what the options ask for."""
    name = type(model).__name__
    if proba and not hasattr(model, "predict_proba"):
        raise CommandError(f"--proba: a model of class {name} has no probabilities")
    if interval is None:
        return
    if not hasattr(model, "predict_interval"):
        raise CommandError(f"--interval: a model of class {name} has no intervals")
    if not 0.0 < interval < 1.0:
        raise CommandError(f"--interval {interval:g}: the probability must be between 0 and 1")


def _parts(path: Path, info: dict[str, Any], count: int) -> Iterator[Any]:
    """Yield the rows to predict for, as arrays of some of them or as one frame."""
    names, kinds = feature_columns(info), info.get("columns")
    if kinds is None:
        chosen = None
        for part in read_in_parts(path):
            chosen = _features(part, names, count) if chosen is None else chosen
            yield part.matrix(chosen)
        return
    # Categories are read as text, so that a column of codes is read as it was in the training data.
    known = names or []
    text = [name for name, kind in zip(known, kinds, strict=bool(known)) if kind == CATEGORY]
    table = read_table(path, text=text)
    yield table.frame(_features(table, names, count), kinds)


def _features(table: Table, names: list[str] | None, count: int) -> list[str]:
    """Return the names of the columns of a table that a model needs, in the order of the model."""
    if names is None:
        if len(table.columns) != count:
            raise CommandError(
                f"{table.path}: the model has no column names and needs {count} columns in the "
                f"order of the training data, but there are {len(table.columns)}"
            )
        return list(table.columns)
    missing = [name for name in names if name not in table.columns]
    if len(missing) == 1:
        table.require(missing[0])
    if missing:
        raise CommandError(f"{table.path}: the columns {listed(missing)} are missing")
    extra = [name for name in table.columns if name not in set(names)]
    if extra:
        complain("note", f"{table.path}: columns that the model does not use: {listed(extra)}")
    return names


Columns = dict[str, list[Any]]


def _scores(model: Any, X: Any) -> Columns:
    """Return the scores: one column for two classes, otherwise a column for each class."""
    scores = model.decision_function(X)
    if scores.ndim == 1:
        return {"score": scores.tolist()}
    return _by_class(model, "score", scores)


def _by_class(model: Any, what: str, values: Any) -> Columns:
    named = zip(model.classes_.tolist(), values.T.tolist(), strict=True)
    return {f"{what} {label}": column for label, column in named}


def _predictions(model: Any, parts: Iterator[Any], proba: bool, interval: float | None) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    for number, X in enumerate(parts):
        columns = _predicted(model, X, proba, interval)
        if not number:
            writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return buffer.getvalue()


def _predicted(model: Any, X: Any, proba: bool, interval: float | None) -> Columns:
    """Return the columns of the predictions for some rows."""
    with warnings.catch_warnings():
        # The columns were matched by name above, and scikit-learn gets an array without names.
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        columns: Columns = {"prediction": model.predict(X).tolist()}
        if proba:
            columns |= _by_class(model, "probability", model.predict_proba(X))
        elif hasattr(model, "decision_function"):
            columns |= _scores(model, X)
        if interval is not None:
            lower, upper = model.predict_interval(X, coverage=interval).T.tolist()
            columns |= {"lower": lower, "upper": upper}
    return columns
