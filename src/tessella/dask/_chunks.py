"""The rows of Dask collections as chunks: parts of X, y and the weights with the same rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import dask.array as da
import numpy as np
from dask import delayed
from distributed import Future
from numpy.typing import NDArray

from tessella.dask._cluster import Cluster
from tessella.dask._tasks import Names, chunk_columns, chunk_length
from tessella.rows._choose import names_of

_CHUNK_ROWS = 65_536  # of arrays that are not those of Dask


def is_frame(value: Any) -> bool:
    """Return whether a value is a data frame of Dask."""
    return _is_dask(value) and hasattr(value, "columns") and value.ndim == 2


def is_series(value: Any) -> bool:
    """Return whether a value is a series of Dask."""
    return _is_dask(value) and hasattr(value, "to_delayed") and not is_array(value)


def is_array(value: Any) -> bool:
    """Return whether a value is an array of Dask."""
    return isinstance(value, da.Array)


def is_collection(value: Any) -> bool:
    """Return whether a value is an array, a series or a data frame of Dask."""
    return is_array(value) or is_frame(value) or is_series(value)


def _is_dask(value: Any) -> bool:
    return hasattr(value, "__dask_graph__")


@dataclass(frozen=True)
class Chunks:
    """The chunks of the rows of a fit.

    Attributes
    ----------
    parts : list of tuple
        Delayed X, y and weights (or None) of each chunk.
    firsts : list of int
        Number of the first row of each chunk in the data.
    n_rows, n_features : int
        Number of rows and of features.
    names : ndarray of object or None
        Names of the features.
    """

    parts: list[tuple[Any, Any, Any]]
    firsts: list[int]
    n_rows: int
    n_features: int
    names: Names

    @classmethod
    def of(cls, cluster: Cluster, X: Any, y: Any, weight: Any) -> Chunks:
        """Return the chunks of what a fit is called with.

        Raises
        ------
        ValueError
            If X, y and the weights have different rows, or the wrong shape.
        """
        X = X if is_collection(X) else _converted(X)
        if X.ndim != 2:
            raise ValueError(f"X must have two dimensions, but it has {X.ndim}.")
        n_features, names = X.shape[1], names_of(X)
        if is_array(X):
            X = X if X.numblocks[1] == 1 else X.rechunk({1: -1})
        y, weight = _beside(X, y, "y"), _beside(X, weight, "sample_weight")
        columns = [_delayed(part) for part in (X, y, weight)]
        missing = [None] * len(columns[0] or [])
        parts = [tuple(own) for own in zip(*(c or missing for c in columns), strict=True)]
        lengths = _lengths(cluster, X, y, weight, parts)
        firsts = np.cumsum([0, *lengths])
        return cls(parts, firsts[:-1].tolist(), int(firsts[-1]), int(n_features), names)

    def gathered(self, cluster: Cluster) -> tuple[Any, Any, Any]:
        """Return all rows, targets and weights (or None) in the memory of this process."""
        lazy = delayed(chunk_columns, pure=False)
        keys = (cluster.key(chunk_columns) for _ in self.parts)
        futures = cluster.compute(
            [lazy(*part, dask_key_name=key) for part, key in zip(self.parts, keys, strict=True)]
        )
        X, y, weight = zip(*cluster.results(futures), strict=True)
        rows = np.concatenate(X)
        if self.names is not None:
            from pandas import DataFrame

            rows = DataFrame(rows, columns=self.names)
        return rows, np.concatenate(y), None if weight[0] is None else np.concatenate(weight)

    def submit(self, cluster: Cluster, task: Callable[..., Any], *arguments: Any) -> list[Future]:
        """Return the futures of a task on each chunk."""
        lazy = delayed(task, pure=False)
        return cluster.compute(
            [
                lazy(*part, first, self.names, *arguments, dask_key_name=cluster.key(task))
                for part, first in zip(self.parts, self.firsts, strict=True)
            ]
        )


def _converted(X: Any) -> Any:
    """Return rows that are in the memory of the client as a collection."""
    if hasattr(X, "columns"):
        from dask.dataframe import from_pandas

        return from_pandas(X, npartitions=-(-len(X) // _CHUNK_ROWS), sort=False)
    X = np.asarray(X)
    return da.from_array(X, chunks=(_CHUNK_ROWS, -1)) if X.ndim == 2 else da.from_array(X)


def _beside(X: Any, values: Any, name: str) -> Any:
    """Return a column with the chunks of X."""
    if values is None:
        return None
    if not is_collection(values):
        values = np.asarray(values)
        if not is_array(X) or np.isnan(X.shape[0]):
            raise TypeError(
                f"{name} must be a Dask collection with the partitions of X, but its type is "
                f"{type(values).__name__}."
            )
        values = da.from_array(values)
    if values.ndim != 1:
        raise ValueError(f"{name} must have one dimension, but it has {values.ndim}.")
    if not (is_array(X) and is_array(values)):
        return values
    lengths = X.shape[0], values.shape[0]
    if np.isnan(lengths).any() or X.chunks[0] == values.chunks[0]:
        return values
    if lengths[0] != lengths[1]:
        raise ValueError(f"X has {lengths[0]} rows, but {name} has {lengths[1]}.")
    return values.rechunk((X.chunks[0],))


def _delayed(values: Any) -> list[Any] | None:
    if values is None:
        return None
    parts = values.to_delayed()
    return list(parts.ravel()) if isinstance(parts, np.ndarray) else list(parts)


def _lengths(
    cluster: Cluster, X: Any, y: Any, weight: Any, parts: Sequence[tuple[Any, ...]]
) -> NDArray[np.intp]:
    """Return the number of rows of each chunk."""
    known = [own for own in (X, y, weight) if own is not None]
    if all(is_array(own) and not np.isnan(own.shape[0]) for own in known):
        return np.array(X.chunks[0], dtype=np.intp)
    lazy = delayed(chunk_length, pure=False)
    futures = cluster.compute([lazy(*p, dask_key_name=cluster.key(chunk_length)) for p in parts])
    return np.array(list(cluster.results(futures)), dtype=np.intp)
