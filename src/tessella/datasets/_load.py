"""Reading a data set from a folder, after fetching it if need be."""

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
    """A data set that is not there, or is not what it should be."""


def data_folder(data_home: str | os.PathLike[str] | None = None) -> Path:
    """The folder that data sets are read from.

    Parameters
    ----------
    data_home : path, optional
        By default what the environment variable ``TESSELLA_DATA`` names, or else
        ``.cache/tessella/data`` in the home directory.

    Returns
    -------
    Path
        The folder; a given one exists.
    """
    named = data_home if data_home is not None else os.environ.get(VARIABLE) or None
    if named is None:
        return Path.home() / ".cache" / "tessella" / "data"
    folder = Path(named)
    if not folder.is_dir():
        origin = "data_home" if data_home is not None else VARIABLE
        raise DataError(
            f"{origin} names {str(folder)!r}, which is not a folder. Make it, or name the folder "
            "that holds the data sets."
        )
    return folder


def names_in(data_home: str | os.PathLike[str] | None = None) -> tuple[str, ...]:
    """Names of the sets that :func:`load` would find in a folder without fetching.

    Parameters
    ----------
    data_home : path, optional
        As for :func:`data_folder`.

    Returns
    -------
    tuple of str
        Those of the registry first, then others that the folder's manifest lists as tables.
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
    name: str, data_home: str | os.PathLike[str] | None = None, *, verify: bool = True
) -> Dataset:
    """Read a data set.

    The folder holds a table ``<name>.csv.gz`` for each set, with a header and the target in the
    last column (a class is positive or not), and may have a ``MANIFEST.json`` with a list "sets"
    of entries "name", "file" and "task": sets listed there that the registry does not know are
    read too. A set that is not in the folder is fetched from OpenML, where a copy is known, and
    stored there.

    Parameters
    ----------
    name : str
        One of :func:`names`, or of the folder's own sets.
    data_home : path, optional
        The folder; by default what ``TESSELLA_DATA`` names, or else a cache in the home directory.
    verify : bool, default=True
        Compare the rows of a set of the registry with its checksum.

    Returns
    -------
    Dataset
        Features as float64; classes as 0 and 1, targets of a regression in their own unit.

    Raises
    ------
    DataError
        When the set is unknown, not there and not to be had, or not what it should be.

    Examples
    --------
    >>> from tessella.datasets import load
    >>> load("boston")  # doctest: +SKIP
    """
    folder = data_folder(data_home)
    manifest = _manifest(folder)
    if name not in REGISTRY:
        return _load_own(name, folder, manifest)
    info = REGISTRY[name]
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
            f'{path} is not a manifest: it needs a list "sets" of entries with "name", "file" and '
            f'"task" ({error}).'
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
            f"{missing}, and no copy of {info.name!r} on OpenML is known. Get it from its source "
            f"({info.source}) and put it there, or name another folder by data_home or {VARIABLE}."
        )
    from tessella.datasets._openml import fetch  # the network is needed for nothing else

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
        raise DataError(f"{path}: the header has {len(columns)} columns, the rows have {width}.")
    return columns, table


# ------------------------------------------------------------------------------------- meaning


def checksum(table: FloatArray) -> str:
    """SHA-256 of the rows as little-endian float64, sorted."""
    rows = table[np.lexsort(table.T[::-1])]
    return hashlib.sha256(np.ascontiguousarray(rows, dtype="<f8").tobytes()).hexdigest()


def _check(info: DatasetInfo, table: FloatArray, path: Path) -> None:
    if checksum(table) == info.checksum:
        return
    rows, width = table.shape
    raise DataError(
        f"{path} has {rows} rows of {width} columns and is not the {info.name!r} that is known "
        f"({info.shape[0]} rows): the checksum of its rows differs. Replace the file, or use "
        "verify=False to take it as it is."
    )


def _arranged(info: DatasetInfo, columns: list[str], table: FloatArray, path: Path) -> Dataset:
    """Features and target of a set of the registry."""
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
            f"{path} has {rows} rows: the year of each is known for {sum(info.years)} only."
        )
    return np.repeat(_FIRST_YEAR + np.arange(len(info.years)), info.years)


def _load_own(name: str, folder: Path, manifest: dict[str, dict[str, Any]]) -> Dataset:
    """A set that only the folder's manifest knows."""
    if name not in manifest:
        hint = suggestion(name, {**REGISTRY, **manifest})
        raise DataError(f"{name!r} is neither known nor in {folder / _MANIFEST}.{hint}")
    entry = manifest[name]
    if not _is_table(entry):
        raise DataError(f"{name!r} is not a table of features and a target: {entry.get('file')}.")
    path = folder / entry["file"]
    if not path.exists():
        raise DataError(f"{path} is in the manifest of its folder, and is not there.")
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
