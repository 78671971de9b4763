"""Rows of Parquet files, which are read in batches."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tessella.rows._checks import check_batch
from tessella.rows._source import Batch, FloatArray, RowSource, batch_rows

_NAMES_SHOWN = 5

# Batches and files that pyarrow reads ahead. Each costs memory, and decoding is never the
# bottleneck of a fit.
_READ_AHEAD = 1
_BUFFER_BYTES = 1 << 20


class ParquetSource(RowSource):
    """Rows of Parquet files, or of a table or a dataset of pyarrow.

    Only the columns that are needed are read, and at no time more than some batches and the parts
    of files (row groups) that they lie in.

    Parameters
    ----------
    data : path-like, pyarrow.dataset.Dataset or pyarrow.Table
        A Parquet file, a folder of them with all folders in it (names such as ``year=2024`` are
        values of a column), or an object of pyarrow. Files are read in the order of their paths.
    target : str
        Name of the column of the target, which contains numbers, booleans or text.
    features : sequence of str, optional
        Names of the columns of the features, which contain numbers or booleans. By default, they
        are all columns except `target` and `weight`.
    weight : str, optional
        Name of the column of the weights of the rows. By default, all are one.

    Raises
    ------
    ImportError
        If pyarrow is not installed.
    FileNotFoundError
        If there is no such file or folder, or no Parquet file in the folder.
    ValueError
        If a file cannot be read, a column does not exist, or its type does not fit.
    """

    def __init__(
        self,
        data: Any,
        target: str,
        *,
        features: Sequence[str] | None = None,
        weight: str | None = None,
    ) -> None:
        self._arrow = _pyarrow("pyarrow")
        self._dataset = _dataset_of(data)
        self._own_files = isinstance(data, (str, os.PathLike))
        self._target, self._weight = target, weight
        self._check_names([target] if weight is None else [target, weight])
        if weight == target:
            raise ValueError(f"The column {target!r} cannot be both the target and the weight.")
        self._features = self._chosen(features)
        self._check_types()
        self.n_features = len(self._features)
        self.feature_names = np.array(self._features, dtype=object)
        self.n_rows = self._dataset.count_rows()
        if not self.n_rows:
            raise ValueError("The data have no rows.")

    def batches(self) -> Iterator[Batch]:
        """Read all rows; see :meth:`RowSource.batches`."""
        size = batch_rows(self.n_features)
        first = 0
        for X, y, weight in _regrouped(self._parts(size), size):
            batch = Batch(X, y, weight, first)
            check_batch(batch, self.feature_names)
            first += len(y)
            yield batch
        if first != self.n_rows:
            raise ValueError(
                f"The data had {self.n_rows} rows and now have {first}. Files must not change "
                "while they are used."
            )

    def _chosen(self, features: Sequence[str] | None) -> list[str]:
        taken = {self._target, self._weight}
        if features is None:
            names = [name for name in self._dataset.schema.names if name not in taken]
        elif isinstance(features, str):
            raise TypeError(f"features must be a list of names, such as [{features!r}].")
        else:
            names = list(features)
        self._check_names(names)
        for name in names:
            if name in taken:
                raise ValueError(
                    f"The column {name!r} is the target or the weight and cannot be a feature."
                )
            if names.count(name) > 1:
                raise ValueError(f"The column {name!r} is named twice in features.")
        if not names:
            raise ValueError("There is no column for a feature.")
        return names

    def _check_names(self, names: Sequence[str]) -> None:
        known = self._dataset.schema.names
        for name in names:
            if not isinstance(name, str):
                raise TypeError(f"Columns are given by their names, but {name!r} is not text.")
            if name not in known:
                close = get_close_matches(name, known, n=3, cutoff=0.5)
                hint = f"Did you mean {_listed(close)}" if close else f"There are {_listed(known)}"
                raise ValueError(f"There is no column {name!r}. {hint}{'?' if close else '.'}")
            if known.count(name) > 1:
                raise ValueError(
                    f"The data have {known.count(name)} columns {name!r}; rename them."
                )

    def _check_types(self) -> None:
        for name in self._features:
            if not self._is_number(name):
                raise ValueError(
                    f"The column {name!r} has the type {self._type(name)}, but features must be "
                    "numbers or booleans. Encode it as numbers, or name the columns to use in "
                    "features."
                )
        if self._weight is not None and not self._is_number(self._weight):
            raise ValueError(
                f"The weight {self._weight!r} must be numbers, but it has the type "
                f"{self._type(self._weight)}."
            )
        if not self._is_number(self._target) and not self._is_text(self._target):
            raise ValueError(
                f"The target {self._target!r} must be numbers, booleans or text, but it has the "
                f"type {self._type(self._target)}."
            )

    def _type(self, name: str) -> Any:
        """Return the type of the values of a column, also of one that is stored as codes."""
        kind = self._dataset.schema.field(name).type
        return kind.value_type if self._arrow.types.is_dictionary(kind) else kind

    def _is_number(self, name: str) -> bool:
        types, kind = self._arrow.types, self._type(name)
        checks = (types.is_integer, types.is_floating, types.is_decimal, types.is_boolean)
        return any(check(kind) for check in checks)

    def _is_text(self, name: str) -> bool:
        types, kind = self._arrow.types, self._type(name)
        views = getattr(types, "is_string_view", None)  # exists in newer versions of pyarrow
        checks = (types.is_string, types.is_large_string, *([views] if views else []))
        return any(check(kind) for check in checks)

    def _parts(self, size: int) -> Iterator[tuple[FloatArray, NDArray[Any], FloatArray]]:
        """Read features, targets and weights in parts as they are stored."""
        columns = [*self._features, self._target, *([self._weight] if self._weight else [])]
        first = 0
        for record in self._records(columns, size):
            count = record.num_rows
            if not count:
                continue
            self._refuse_gaps(record, first)
            part = self._features_of(record), self._target_of(record), self._weight_of(record)
            del record  # which may keep its whole row group while the next one is read
            yield part
            first += count

    def _records(self, columns: list[str], size: int) -> Iterator[Any]:
        """Read record batches; those of our own files by row group, which needs least memory."""
        parquet = _pyarrow("pyarrow.dataset")
        options: dict[str, Any] = {
            "columns": columns,
            "batch_size": size,
            "batch_readahead": _READ_AHEAD,
            "fragment_readahead": _READ_AHEAD,
        }
        if isinstance(self._dataset, parquet.FileSystemDataset):
            # The defaults read row groups ahead without end, which may hold all of the data.
            options["fragment_scan_options"] = parquet.ParquetFragmentScanOptions(
                pre_buffer=False, use_buffered_stream=True, buffer_size=_BUFFER_BYTES
            )
        if not self._own_files:  # a dataset of the caller may have a filter, its files do not
            yield from self._dataset.to_batches(**options)
            return
        for fragment in self._dataset.get_fragments():
            for group in fragment.split_by_row_group():
                yield from group.to_batches(schema=self._dataset.schema, **options)

    def _refuse_gaps(self, record: Any, first: int) -> None:
        for name, column in zip(record.schema.names, record.columns, strict=True):
            if column.null_count:
                row = int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
                raise ValueError(
                    f"The column {name!r} has no value in row {first + row} (rows are counted from "
                    "0). Fill or leave out such rows before the fit."
                )

    def _features_of(self, record: Any) -> FloatArray:
        X = np.empty((record.num_rows, len(self._features)))
        for j, name in enumerate(self._features):
            X[:, j] = self._numbers_of(record.column(name))
        return X

    def _weight_of(self, record: Any) -> FloatArray:
        if self._weight is None:
            return np.ones(record.num_rows)
        return np.array(self._numbers_of(record.column(self._weight)), dtype=np.float64)

    def _target_of(self, record: Any) -> NDArray[Any]:
        column = _decoded(record.column(self._target))
        if self._is_text(self._target):
            return np.array(column.to_pylist(), dtype=object)
        if self._arrow.types.is_decimal(column.type):
            return np.array(self._numbers_of(column))
        return np.array(column.to_numpy(zero_copy_only=False))

    def _numbers_of(self, column: Any) -> NDArray[Any]:
        column = _decoded(column)
        if self._arrow.types.is_decimal(column.type):
            column = column.cast(self._arrow.float64())
        return np.asarray(column.to_numpy(zero_copy_only=False))


def _pyarrow(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise ImportError(
            "Parquet files and tables of pyarrow need the package pyarrow: python -m pip install "
            "'tessella[cli]'."
        ) from error


def _dataset_of(data: Any) -> Any:
    """Return a dataset of pyarrow for a path or an object of pyarrow."""
    arrow, dataset = _pyarrow("pyarrow"), _pyarrow("pyarrow.dataset")
    if isinstance(data, dataset.Dataset):
        return data
    if isinstance(data, arrow.Table):
        return dataset.dataset(data)
    if isinstance(data, (str, os.PathLike)):
        return _dataset_at(Path(data))
    raise TypeError(
        "data must be a path, a pyarrow.dataset.Dataset or a pyarrow.Table, but its type is "
        f"{type(data).__name__}."
    )


def _dataset_at(path: Path) -> Any:
    if not path.exists():
        raise FileNotFoundError(
            f"There is no file or folder {os.fspath(path)!r}. Data that are not on a disk of this "
            "machine are opened by pyarrow.dataset.dataset(...)."
        )
    arrow, dataset = _pyarrow("pyarrow"), _pyarrow("pyarrow.dataset")
    disk = importlib.import_module("pyarrow.fs").LocalFileSystem()
    options = {"format": "parquet", "filesystem": disk, "partitioning": "hive"}
    try:
        found = dataset.dataset(os.fspath(path.absolute()), **options)
    except (arrow.ArrowException, OSError) as error:
        raise ValueError(f"{os.fspath(path)} cannot be read as Parquet files: {error}") from error
    if not found.files:
        raise FileNotFoundError(f"There is no Parquet file in the folder {os.fspath(path)!r}.")
    return found


def _decoded(column: Any) -> Any:
    """Return a column whose values are not codes."""
    return column.dictionary_decode() if hasattr(column, "dictionary_decode") else column


def _regrouped(
    parts: Iterator[tuple[FloatArray, NDArray[Any], FloatArray]], size: int
) -> Iterator[tuple[FloatArray, NDArray[Any], FloatArray]]:
    """Yield the same rows in groups of `size` rows, of which the last may have fewer."""
    held: list[tuple[Any, ...]] = []
    n_held = 0
    for part in parts:
        start, count = 0, len(part[1])
        while start < count:
            stop = min(count, start + size - n_held)
            held.append(tuple(values[start:stop] for values in part))
            n_held += stop - start
            start = stop
            if n_held == size:
                yield _joined(held)
                held, n_held = [], 0
    if held:
        yield _joined(held)


def _joined(held: list[tuple[Any, ...]]) -> tuple[FloatArray, NDArray[Any], FloatArray]:
    X, y, weight = (np.concatenate(values) for values in zip(*held, strict=True))
    return X, y, weight


def _listed(names: Sequence[str]) -> str:
    shown = [repr(name) for name in names[:_NAMES_SHOWN]]
    if len(names) > _NAMES_SHOWN:
        return f"{', '.join(shown)} and {len(names) - _NAMES_SHOWN} more"
    return " or ".join(shown) if len(shown) < 3 else f"{', '.join(shown[:-1])} or {shown[-1]}"
