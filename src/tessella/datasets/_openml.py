"""A small client of OpenML: description, file, and the table made of it."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import urllib.error
import urllib.request
import uuid
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tessella.datasets._load import DataError, checksum
from tessella.datasets._registry import DatasetInfo, OpenMLCopy

SERVER_VARIABLE = "TESSELLA_OPENML"
_SERVER = "https://www.openml.org"
_SECONDS = 60.0  # without an answer

FloatArray = NDArray[np.float64]


def fetch(copy: OpenMLCopy, info: DatasetInfo, folder: Path) -> Path:
    """Store a copy of a data set in the folder, once it has been checked.

    Parameters
    ----------
    copy : OpenMLCopy
        Where it is, and how its columns are to be read.
    info : DatasetInfo
        What it has to be.
    folder : Path
        Where ``<name>.csv.gz`` is put; made if need be.

    Returns
    -------
    Path
        The new file. Nothing is written unless the checksum of the rows is right.
    """
    server = os.environ.get(SERVER_VARIABLE) or _SERVER
    address = f"{server.rstrip('/')}/api/v1/json/data/{copy.data_id}"
    description = _description(_get(address, info), address)
    content = _get(str(description["url"]), info)
    _check_file(content, description, info)
    names, table = _table(content, copy, info)
    if checksum(table) != info.checksum:
        raise DataError(
            f"OpenML's data set {copy.data_id} ({description.get('name')}, {table.shape[0]} rows, "
            f"{table.shape[1] - 1} features) is not the {info.name!r} that is known "
            f"({info.shape[0]} rows, {info.shape[1]} features): the checksum of its rows differs. "
            f"Nothing was stored. Get the set from its source: {info.source}."
        )
    return _store(folder, info, names, table)


def _get(address: str, info: DatasetInfo) -> bytes:
    try:
        with urllib.request.urlopen(address, timeout=_SECONDS) as answer:
            content: bytes = answer.read()
            return content
    except urllib.error.HTTPError as error:
        why = f"the server answered {error.code} {error.reason}"
    except (urllib.error.URLError, OSError, ValueError) as error:
        why = f"{getattr(error, 'reason', None) or error}"
    raise DataError(
        f"{info.name!r} is not in the data folder and could not be fetched from {address}: {why}. "
        f"Without a network, put {info.file_stem}.csv.gz into the folder yourself (the variable "
        f"TESSELLA_DATA names it); its source is {info.source}."
    )


def _description(content: bytes, address: str) -> dict[str, Any]:
    try:
        description: dict[str, Any] = json.loads(content)["data_set_description"]
        description["url"]
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f"{address} did not give the description of a data set.") from error
    return description


def _check_file(content: bytes, description: dict[str, Any], info: DatasetInfo) -> None:
    expected = description.get("md5_checksum")
    found = hashlib.md5(content, usedforsecurity=False).hexdigest()
    if expected and found != expected:
        raise DataError(
            f"The file of {info.name!r} from {description['url']} is damaged: its MD5 checksum is "
            f"{found}, OpenML names {expected}. Try again."
        )


def _table(content: bytes, copy: OpenMLCopy, info: DatasetInfo) -> tuple[list[str], FloatArray]:
    """Features and target as numbers; rows with missing values are left out."""
    from scipy.io import arff

    try:
        rows, meta = arff.loadarff(io.StringIO(content.decode("utf-8")))
    except (arff.ArffError, UnicodeDecodeError, ValueError, StopIteration) as error:
        raise DataError(f"OpenML's file of {info.name!r} cannot be read: {error}") from error
    names = list(meta.names())
    if copy.target not in names:
        raise DataError(
            f"OpenML's file of {info.name!r} has no column {copy.target!r}, but {', '.join(names)}."
        )
    features = [name for name in names if name != copy.target]
    columns = [_numbers(rows[name], copy.codes.get(name, {}), name) for name in features]
    columns.append(_target(rows[copy.target], copy))
    table = np.column_stack(columns)
    return features, table[np.isfinite(table).all(axis=1)]


def _target(values: Any, copy: OpenMLCopy) -> FloatArray:
    if not copy.positive:
        return _numbers(values, {}, copy.target)
    labels = [_text(value) for value in values]
    return np.where(np.isin(labels, copy.positive), 1.0, -1.0)


def _numbers(values: Any, codes: Any, name: str) -> FloatArray:
    if values.dtype.kind == "f":
        return np.asarray(values, dtype=np.float64)
    texts = [_text(value) for value in values]
    try:
        return np.array(
            [codes[t] if t in codes else np.nan if t == "?" else float(t) for t in texts]
        )
    except ValueError as error:
        raise DataError(f"Column {name!r} of OpenML's file holds text: {error}.") from error


def _text(value: Any) -> str:
    text = value.decode("utf-8") if isinstance(value, bytes) else str(value)
    return text.strip().strip("'\"")


def _store(folder: Path, info: DatasetInfo, names: list[str], table: FloatArray) -> Path:
    lines = [",".join([*names, info.target])]
    lines += [",".join(map(repr, row)) for row in table.tolist()]
    target = folder / f"{info.file_stem}.csv.gz"
    temporary = folder / f".{target.name}.{uuid.uuid4().hex}.tmp"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        temporary.write_bytes(gzip.compress("\n".join(lines).encode("utf-8"), mtime=0))
        os.replace(temporary, target)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise DataError(
            f"{info.name!r} was fetched and cannot be stored in {folder}: {error.strerror}. Name a "
            "folder that can be written to by data_home or TESSELLA_DATA."
        ) from error
    return target
