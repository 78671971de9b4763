"""The source of what a fit is called with."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from tessella.rows._array import ArraySource
from tessella.rows._parquet import ParquetSource
from tessella.rows._source import ObjectArray, RowSource


def source_of(X: Any, y: Any, sample_weight: Any = None) -> RowSource:
    """Return the source of the rows that a fit is called with.

    Parameters
    ----------
    X : RowSource, path-like, object of pyarrow or array-like of shape (n_rows, n_features)
        A source, which is returned as it is, path of Parquet files, dataset or table of pyarrow, or
        the features.
    y : None, str or array-like of shape (n_rows,)
        None if X is a source, name of the column of the target if X is a path or an object of
        pyarrow, otherwise the targets.
    sample_weight : str or array-like of shape (n_rows,), optional
        Name of the column of the weights, or the weights, as for `y`.

    Returns
    -------
    RowSource
        A :class:`ParquetSource` or an :class:`ArraySource`. Columns of a data frame name the
        features, and the frame is converted to an array as a whole.
    """
    if isinstance(X, RowSource):
        if y is not None or sample_weight is not None:
            raise TypeError("A source has targets and weights itself: y must be None.")
        return X
    if not _has_columns(X):
        return ArraySource(X, y, sample_weight, names_of(X))
    if not isinstance(y, str):
        raise TypeError(
            "If X is a path or an object of pyarrow, y must be the name of the column of the "
            f"target, but its type is {type(y).__name__}."
        )
    if sample_weight is not None and not isinstance(sample_weight, str):
        raise TypeError(
            "If X is a path or an object of pyarrow, sample_weight must be the name of a column, "
            f"but its type is {type(sample_weight).__name__}."
        )
    return ParquetSource(X, y, weight=sample_weight)


def is_stored(X: object) -> bool:
    """Return whether X stands for rows that are read where they are stored.

    Parameters
    ----------
    X : object
        First argument of a fit.

    Returns
    -------
    bool
        True for sources, paths, objects of pyarrow and arrays that map a file into memory
        (``np.memmap``).
    """
    return _has_columns(X) or isinstance(X, (RowSource, np.memmap))


def _has_columns(X: object) -> bool:
    """Return whether X is a path or an object of pyarrow, whose columns are given by name."""
    return isinstance(X, (str, os.PathLike)) or type(X).__module__.split(".")[0] == "pyarrow"


def names_of(X: object) -> ObjectArray | None:
    """Return the names of the columns of a data frame, if all are text."""
    columns = getattr(X, "columns", None)
    names = [] if columns is None or callable(columns) else list(columns)
    if not names or not all(isinstance(name, str) for name in names):
        return None
    return np.array(names, dtype=object)
