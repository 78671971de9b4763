"""The command ``tessella predict``, which predicts for the rows of a table."""

from __future__ import annotations

import csv
import io
import warnings
from pathlib import Path
from typing import Any

import typer

from tessella.cli._errors import CommandError, complain, require_writable
from tessella.cli._tables import FloatArray, Table, listed, read_table
from tessella.persistence import load, read_info

_OTHER_FORMATS = (".parquet", ".gz", ".tsv", ".xlsx", ".json")


def predict_file(model_path: Path, new: Path, output: Path | None, *, force: bool) -> None:
    """Predict for the rows of a file.

    Parameters
    ----------
    model_path : Path
        Path of the model file.
    new : Path
        Path of a table with the features.
    output : Path or None
        Path of the CSV file to write. None means standard output.
    force : bool
        Whether an existing output may be replaced.
    """
    if output is not None:
        if output.suffix.lower() in _OTHER_FORMATS:
            raise CommandError(
                f"{output}: predictions are written as CSV; use a name that ends in .csv"
            )
        require_writable(output, force=force, inputs=(model_path, new))
    model = load(model_path)
    table = read_table(new)
    X = _features(table, feature_columns(read_info(model_path)), model.n_features_in_)
    text = _predictions(model, X)
    if output is None:
        typer.echo(text, nl=False)
    else:
        output.write_text(text, encoding="utf-8", newline="\n")


def feature_columns(info: dict[str, Any]) -> list[str] | None:
    """Return the names of the columns that a model was fitted on, if they are in the file."""
    names: list[str] | None = info["metadata"].get("features") or info["feature_names"]
    return names


def _features(table: Table, names: list[str] | None, count: int) -> FloatArray:
    if names is None:
        if len(table.columns) != count:
            raise CommandError(
                f"{table.path}: the model has no column names and needs {count} columns in the "
                f"order of the training data, but there are {len(table.columns)}"
            )
        return table.matrix(list(table.columns))
    missing = [name for name in names if name not in table.columns]
    if len(missing) == 1:
        table.require(missing[0])
    if missing:
        raise CommandError(f"{table.path}: the columns {listed(missing)} are missing")
    extra = [name for name in table.columns if name not in set(names)]
    if extra:
        complain("note", f"{table.path}: columns that the model does not use: {listed(extra)}")
    return table.matrix(names)


def _scores(model: Any, X: FloatArray) -> dict[str, list[float]]:
    """Return the scores: one column for two classes, otherwise a column for each class."""
    scores = model.decision_function(X)
    if scores.ndim == 1:
        return {"score": scores.tolist()}
    named = zip(model.classes_.tolist(), scores.T.tolist(), strict=True)
    return {f"score {label}": column for label, column in named}


def _predictions(model: Any, X: FloatArray) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    with warnings.catch_warnings():
        # The columns were matched by name above, and scikit-learn gets an array without names.
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        columns = {"prediction": model.predict(X).tolist()}
        if hasattr(model, "classes_"):
            columns |= _scores(model, X)
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return buffer.getvalue()
