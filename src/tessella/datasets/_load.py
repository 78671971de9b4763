"""Functions that read data sets from a folder, and download them if necessary."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tessella.datasets._dataset import CLASSIFICATION, REGRESSION, Dataset
from tessella.datasets._registry import REGISTRY, DatasetInfo, suggestion

VARIABLE = "TESSELLA_DATA"
_MANIFEST = "MANIFEST.json"
_FIRST_YEAR = 2011.0

FloatArray = NDArray[np.float64]


class DataError(ValueError):
    """A data set does not exist, or its contents are not as expected."""


def data_folder(data_home: str | os.PathLike[str] | None = None) -> Path:
    """Return the folder from which data sets are read.

    Parameters
    ----------
    data_home : path, optional
        Folder with data sets. By default, it is the folder named by the environment variable
        ``TESSELLA_DATA``, or ``.cache/tessella/data`` in the home directory if the variable is not
        set.

    Returns
    -------
    Path
        Folder from which data sets are read. It exists, unless it is the default folder in the
        home directory.
    """
    named = data_home if data_home is not None else os.environ.get(VARIABLE) or None
    if named is None:
        return Path.home() / ".cache" / "tessella" / "data"
    folder = Path(named)
    if not folder.is_dir():
        origin = "data_home" if data_home is not None else VARIABLE
        raise DataError(
            f"{origin} names {str(folder)!r}, which is not a folder. Create it, or name the folder "
            "that contains the data sets."
        )
    return folder


def names_in(data_home: str | os.PathLike[str] | None = None) -> tuple[str, ...]:
    """Return the names of the data sets in a folder, which :func:`load` does not have to download.

    Parameters
    ----------
    data_home : path, optional
        Folder with data sets. By default, it is the folder that :func:`data_folder` returns.

    Returns
    -------
    tuple of str
        Names of the data sets of the registry, followed by the names of other tables that are
        listed in the manifest of the folder.
    """
    folder = data_folder(data_home)
    manifest = _manifest(folder)
    registered = [name for name, info in REGISTRY.items() if _file(folder, manifest, info).exists()]
    own = [
        name
        for name, entry in manifest.items()
        if name not in REGISTRY and _is_table(entry) and (folder / entry["file"]).exists()
    ]
    return (*registered, *own)


def load(
    name: str | DatasetInfo,
    data_home: str | os.PathLike[str] | None = None,
    *,
    verify: bool = True,
) -> Dataset:
    """Load a data set.

    The folder contains a table ``<name>.csv.gz`` for each data set. A table has a header, and its
    last column is the target. In a classification, the positive values of the target are one class
    and all others are the other class. The folder may also contain a file ``MANIFEST.json`` with a
    list "sets" of entries "name", "file" and "task". Data sets in this list can be loaded even if
    the registry does not know them. If a data set is not in the folder and a copy on OpenML is
    known, the copy is downloaded and stored in the folder.

    Parameters
    ----------
    name : str or DatasetInfo
        Name of a data set of the registry (see :func:`names`) or of the manifest of the folder, or
        the description of a data set. A description of one's own says which columns are features
        and which rows are expected, for a table that the registry does not know or knows otherwise.
    data_home : path, optional
        Folder with data sets. By default, it is the folder named by the environment variable
        ``TESSELLA_DATA``, or a cache in the home directory if the variable is not set.
    verify : bool, default=True
        Whether the rows of a data set of the registry, or of one that is given by its description,
        are compared with the checksum of the description.

    Returns
    -------
    Dataset
        Features as float64, and the target: the classes 0 and 1, or numbers in the original unit.

    Raises
    ------
    DataError
        If the data set is unknown, is not in the folder and cannot be downloaded, or does not have
        the expected contents.

    Examples
    --------
    >>> from tessella.datasets import load
    >>> load("boston")  # doctest: +SKIP

    The description of a data set can be changed, for example to predict another class:

    >>> from dataclasses import replace
    >>> from tessella.datasets import describe
    >>> load(replace(describe("abalone"), threshold=12))  # doctest: +SKIP
    """
    folder = data_folder(data_home)
    manifest = _manifest(folder)
    if isinstance(name, str) and name not in REGISTRY:
        return _load_own(name, folder, manifest)
    info = REGISTRY[name] if isinstance(name, str) else name
    path = _file(folder, manifest, info)
    if not path.exists():
        path = _fetched(info, folder)
    columns, table = _read(path)
    if verify:
        _check(info, table, path)
    return _arranged(info, columns, table, path)


# --------------------------------------------------------------------------------------- files


def _manifest(folder: Path) -> dict[str, dict[str, Any]]:
    path = folder / _MANIFEST
    try:
        sets = json.loads(path.read_text(encoding="utf-8"))["sets"]
        return {entry["name"]: entry for entry in sets}
    except FileNotFoundError:
        return {}
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(
            f'{path} is not a manifest: it must contain a list "sets" of entries with "name", '
            f'"file" and "task" ({error}).'
        ) from error


def _is_table(entry: dict[str, Any]) -> bool:
    return str(entry.get("file", "")).endswith((".csv", ".csv.gz"))


def _file(folder: Path, manifest: dict[str, dict[str, Any]], info: DatasetInfo) -> Path:
    stem = info.file_stem
    return folder / str(manifest.get(stem, {}).get("file", f"{stem}.csv.gz"))


def _fetched(info: DatasetInfo, folder: Path) -> Path:
    missing = f"There is no {info.file_stem}.csv.gz in {folder}"
    if info.openml is None:
        raise DataError(
            f"{missing}, and no copy of {info.name!r} on OpenML is known. Download it from its "
            f"source ({info.source}) and save it in this folder, or name another folder with "
            f"data_home or {VARIABLE}."
        )
    from tessella.datasets._openml import fetch  # the only module that uses the network

    return fetch(info.openml, info, folder)


def _read(path: Path) -> tuple[list[str], FloatArray]:
    opener = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rt", encoding="utf-8") as file:
            columns = [column.strip() for column in file.readline().split(",")]
            table = np.loadtxt(file, delimiter=",", ndmin=2)
    except (ValueError, EOFError, gzip.BadGzipFile) as error:
        raise DataError(f"{path} is not a table of numbers with a header: {error}") from error
    if table.size == 0 or table.shape[1] != len(columns):
        width = table.shape[1] if table.size else 0
        raise DataError(
            f"{path}: the header has {len(columns)} columns, but the rows have {width}."
        )
    return columns, table


# ------------------------------------------------------------------------------------ contents


def checksum(table: FloatArray) -> str:
    """Return the SHA-256 of the sorted rows as little-endian float64."""
    rows = table[np.lexsort(table.T[::-1])]
    return hashlib.sha256(np.ascontiguousarray(rows, dtype="<f8").tobytes()).hexdigest()


def _check(info: DatasetInfo, table: FloatArray, path: Path) -> None:
    if checksum(table) == info.checksum:
        return
    rows, width = table.shape
    raise DataError(
        f"{path} has {rows} rows of {width} columns and is not the expected data set "
        f"{info.name!r} ({info.shape[0]} rows): the checksum of its rows differs. Replace the "
        "file, or use verify=False to load it anyway."
    )


def _arranged(info: DatasetInfo, columns: list[str], table: FloatArray, path: Path) -> Dataset:
    """Return the features and the target of a data set of the registry."""
    absent = {info.target, *info.left_out} - set(columns)
    if absent:
        raise DataError(f"{path} has no column {min(absent)!r}.")
    kept = [j for j, column in enumerate(columns) if column not in (info.target, *info.left_out)]
    X, names = table[:, kept], [columns[j] for j in kept]
    if info.years:
        X, names = np.column_stack([X, _years(info, len(table), path)]), [*names, "year"]
    y = table[:, columns.index(info.target)]
    return _dataset(info.name, info.task, X, y, names, info.threshold)


def _years(info: DatasetInfo, rows: int, path: Path) -> FloatArray:
    if rows != sum(info.years):
        raise DataError(
            f"{path} has {rows} rows, but the years are known for {sum(info.years)} rows only."
        )
    return np.repeat(_FIRST_YEAR + np.arange(len(info.years)), info.years)


def _load_own(name: str, folder: Path, manifest: dict[str, dict[str, Any]]) -> Dataset:
    """Load a data set that is listed in the manifest of the folder only."""
    if name not in manifest:
        hint = suggestion(name, {**REGISTRY, **manifest})
        raise DataError(f"{name!r} is neither in the registry nor in {folder / _MANIFEST}.{hint}")
    entry = manifest[name]
    if not _is_table(entry):
        raise DataError(f"{name!r} is not a table of features and a target: {entry.get('file')}.")
    path = folder / entry["file"]
    if not path.exists():
        raise DataError(f"{path} is listed in the manifest of its folder but does not exist.")
    columns, table = _read(path)
    task = REGRESSION if str(entry.get("task")).startswith(REGRESSION) else CLASSIFICATION
    return _dataset(name, task, table[:, :-1], table[:, -1], columns[:-1], 0.0)


def _dataset(
    name: str, task: str, X: FloatArray, y: FloatArray, names: list[str], threshold: float
) -> Dataset:
    if not (np.isfinite(X).all() and np.isfinite(y).all()):
        raise DataError(f"{name!r} has missing or infinite values.")
    target: Any = y
    if task == CLASSIFICATION:
        target = (y >= threshold if threshold else y > 0).astype(np.int64)
    return Dataset(name, task, np.ascontiguousarray(X), target, tuple(names))
