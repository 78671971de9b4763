"""Fits of Parquet files that are read in parts, so that they may be larger than memory."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tessella.cli._errors import CommandError, complain
from tessella.cli._tables import PARQUET, READ_AHEAD, listed, pandas_index, parquet_dataset
from tessella.rows import ParquetSource

_KIB, _MIB = 1 << 10, 1 << 20


@dataclass(frozen=True)
class StoredTable:
    """Parquet files with a target.

    Attributes
    ----------
    path : Path
        A file or a folder.
    source : ParquetSource
        Rows of the features and the target.
    target : str
        Name of the target.
    is_text : bool
        Whether the target is text or booleans.
    values : ndarray
        Distinct values of the target; of many, some.
    """

    path: Path
    source: ParquetSource
    target: str
    is_text: bool
    values: NDArray[Any]

    @property
    def features(self) -> list[str]:
        """Names of the features."""
        return [str(name) for name in self.source.feature_names]  # type: ignore[union-attr]


def is_parquet(path: Path) -> bool:
    """Return whether a path is a Parquet file or a folder, which contains such files."""
    return path.is_dir() or path.name.lower().endswith(PARQUET)


def read_stored(path: Path, target: str, drop: Sequence[str], most: int) -> StoredTable:
    """Look at Parquet files without reading their features.

    Parameters
    ----------
    path : Path
        A file or a folder.
    target : str
        Name of the column to predict.
    drop : sequence of str
        Names of columns to leave out.
    most : int
        Number of distinct values of the target after which no others are looked for.
    """
    try:
        schema = parquet_dataset(path).schema
        unknown = [name for name in (target, *drop) if name not in schema.names]
        if unknown:
            raise CommandError(
                f"{path}: there is no column {unknown[0]!r}; the columns are {listed(schema.names)}"
            )
        index = pandas_index(schema)
        if index:
            complain("note", f"{path}: index columns are left out: {listed(index)}")
        left_out = {target, *drop, *index}
        features = [name for name in schema.names if name not in left_out]
        if not features:
            raise CommandError(f"{path}: there is no column except the target {target!r}")
        source = ParquetSource(path, target, features=features)
    except CommandError:
        raise
    except ValueError as error:
        raise CommandError(f"{path}: {_in_words_of_options(str(error))}") from error
    values = _distinct(path, target, most)
    kind = values.dtype.kind
    return StoredTable(path, source, target, kind not in "iuf", values)


def _in_words_of_options(text: str) -> str:
    """Name options of the command instead of parameters in a message."""
    return text.replace(
        "Encode it as numbers, or name the columns to use in features.",
        "Leave it out with --drop, or encode it as numbers. Without --max-leaf-rows, --model "
        "automatic takes text, dates and gaps, and reads the whole table.",
    )


def _distinct(path: Path, name: str, most: int) -> NDArray[Any]:
    """Return the distinct values of a column, or those found first if there are many."""
    found: Any = None
    for batch in parquet_dataset(path).to_batches(columns=[name], **READ_AHEAD):
        column = batch.column(0).drop_null()
        if hasattr(column, "dictionary_decode"):
            column = column.dictionary_decode()
        if pa.types.is_decimal(column.type):
            column = column.cast(pa.float64())
        values = np.unique(column.to_numpy(zero_copy_only=False))
        found = values if found is None else np.union1d(found, values)
        if len(found) > most:
            break
    return np.empty(0) if found is None else found


def peak_memory() -> str | None:
    """Return the largest memory of this process so far in words; None where it is not known."""
    try:
        usage = import_module("resource")
    except ModuleNotFoundError:  # Windows
        return None
    unit = 1 if sys.platform == "darwin" else _KIB
    peak = usage.getrusage(usage.RUSAGE_SELF).ru_maxrss * unit
    return f"{peak / _MIB:,.0f} MiB at most"
