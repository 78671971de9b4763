"""The tables of the suite: the paper's data sets and twelve more, as data frames."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tessella.datasets import DataError, data_folder, load, names
from tessella_bench._methods import CLASSIFICATION, REGRESSION

FOLDER = "suite"  # below the folder of the data sets
_MANIFEST = "MANIFEST.json"
_SHARES_A_TABLE = "gas_turbine_nox"  # with gas_turbine, which would then count twice
PAPER_SETS = tuple(name for name in names() if name != _SHARES_A_TABLE)


@dataclass(frozen=True, eq=False)
class SuiteTable:
    """A table as a user would have it.

    Attributes
    ----------
    name : str
        Its name.
    task : {"classification", "regression"}
        What it asks for.
    X : DataFrame
        Features: numbers and text, with NaN for what is missing.
    y : ndarray
        Target: numbers, or classes as text or integers.
    """

    name: str
    task: str
    X: Any
    y: NDArray[Any]

    @property
    def text_columns(self) -> list[str]:
        """Names of the columns that are not numbers."""
        return text_columns(self.X)

    @property
    def classes(self) -> int | None:
        """Number of classes; None in a regression."""
        return len(np.unique(self.y)) if self.task == CLASSIFICATION else None


def text_columns(X: Any) -> list[str]:
    """Names of the columns of a frame that are not numbers.

    Parameters
    ----------
    X : DataFrame
        A table.

    Returns
    -------
    list of str
        In the order of the table.
    """
    return [name for name in X.columns if not pd.api.types.is_numeric_dtype(X[name])]


def suite_names(data_home: str | PathLike[str] | None = None) -> tuple[str, ...]:
    """Names of the sets of the suite: those of its own folder, then the paper's.

    Parameters
    ----------
    data_home : path, optional
        As for :func:`tessella.datasets.load`.

    Returns
    -------
    tuple of str
        Whether the paper's are there is found when they are loaded.
    """
    return (*_manifest(data_folder(data_home)), *PAPER_SETS)


def load_table(name: str, data_home: str | PathLike[str] | None = None) -> SuiteTable:
    """Read a table.

    Parameters
    ----------
    name : str
        A set of the folder's ``suite/MANIFEST.json``, or one that
        :func:`tessella.datasets.load` knows.
    data_home : path, optional
        As for :func:`tessella.datasets.load`.

    Returns
    -------
    SuiteTable
        The whole table.
    """
    folder = data_folder(data_home)
    entry = _manifest(folder).get(name)
    if entry is not None:
        return _own(name, entry, folder / FOLDER)
    data = load(name, folder if data_home is not None else None)
    frame = pd.DataFrame(data.X, columns=list(data.feature_names))
    return SuiteTable(name, data.task, frame, data.y)


def _manifest(folder: Path) -> dict[str, dict[str, Any]]:
    path = folder / FOLDER / _MANIFEST
    if not path.is_file():
        return {}
    try:
        found: dict[str, dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
        return {name: {"task": entry["task"], **entry} for name, entry in found.items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(
            f'{path} is not a manifest: it must map names to entries with a "task" ({error}).'
        ) from error


def _own(name: str, entry: dict[str, Any], folder: Path) -> SuiteTable:
    path = folder / str(entry.get("file", f"{name}.csv.gz"))
    if not path.is_file():
        raise DataError(f"{path}, which the manifest of the suite names, is not there.")
    if "sha256" in entry and hashlib.sha256(path.read_bytes()).hexdigest() != entry["sha256"]:
        raise DataError(f"{path} is not the expected file: its SHA-256 differs.")
    table = pd.read_csv(path)
    target = str(entry.get("target", table.columns[-1]))
    if target not in table.columns:
        raise DataError(f"{path} has no column {target!r}.")
    task = REGRESSION if entry["task"] == REGRESSION else CLASSIFICATION
    y = table[target].to_numpy(dtype=np.float64 if task == REGRESSION else object)
    if task == CLASSIFICATION and pd.api.types.is_integer_dtype(table[target]):
        y = table[target].to_numpy()
    return SuiteTable(name, task, table.drop(columns=target), y)
