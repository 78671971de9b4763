"""Client of OpenML that downloads a data set and converts it to a table."""

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
_SECONDS = 60.0  # longest time to wait for an answer

FloatArray = NDArray[np.float64]


def fetch(copy: OpenMLCopy, info: DatasetInfo, folder: Path) -> Path:
    """Download a copy of a data set, verify it and store it in the folder.

    Parameters
    ----------
    copy : OpenMLCopy
        Identifier of the copy, and the meaning of its columns.
    info : DatasetInfo
        Description of the expected data set.
    folder : Path
        Folder in which ``<name>.csv.gz`` is stored. It is created if necessary.

    Returns
    -------
    Path
        Path of the new file. Nothing is written unless the checksum of the rows is correct.
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
            f"{table.shape[1] - 1} features) is not the expected data set {info.name!r} "
            f"({info.shape[0]} rows, {info.shape[1]} features): the checksum of its rows differs. "
            f"Nothing was stored. Download the data set from its source: {info.source}."
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
        f"{info.name!r} is not in the data folder and could not be downloaded from {address}: "
        f"{why}. Without a network, save {info.file_stem}.csv.gz in the folder yourself (the "
        f"environment variable TESSELLA_DATA names the folder). The source is {info.source}."
    )


def _description(content: bytes, address: str) -> dict[str, Any]:
    try:
        description: dict[str, Any] = json.loads(content)["data_set_description"]
        description["url"]
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f"{address} did not return the description of a data set.") from error
    return description


def _check_file(content: bytes, description: dict[str, Any], info: DatasetInfo) -> None:
    expected = description.get("md5_checksum")
    found = hashlib.md5(content, usedforsecurity=False).hexdigest()
    if expected and found != expected:
        raise DataError(
            f"The file of {info.name!r} from {description['url']} is damaged: its MD5 checksum is "
            f"{found}, but OpenML states {expected}. Try again."
        )


def _table(content: bytes, copy: OpenMLCopy, info: DatasetInfo) -> tuple[list[str], FloatArray]:
    """Return the features and the target as numbers, without rows with missing values."""
    from scipy.io import arff

    try:
        rows, meta = arff.loadarff(io.StringIO(content.decode("utf-8")))
    except (arff.ArffError, UnicodeDecodeError, ValueError, StopIteration) as error:
        raise DataError(f"OpenML's file of {info.name!r} cannot be read: {error}") from error
    names = list(meta.names())
    if copy.target not in names:
        raise DataError(
            f"OpenML's file of {info.name!r} has no column {copy.target!r}. Its columns are "
            f"{', '.join(names)}."
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
        raise DataError(f"Column {name!r} of OpenML's file contains text: {error}.") from error


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
            f"{info.name!r} was downloaded but cannot be stored in {folder}: {error.strerror}. "
            "Name a writable folder with data_home or TESSELLA_DATA."
        ) from error
    return target
