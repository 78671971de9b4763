"""Predictions for Dask collections, which are computed when they are asked for."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
from dask import delayed
from numpy.typing import NDArray

from tessella.dask._chunks import is_array, is_frame
from tessella.dask._cluster import ClusterError


def lazily(
    model: Any, X: Any, method: str, example: NDArray[Any], *, as_series: bool = True
) -> Any:
    """Return what a method of a fitted model returns for each row, as a collection.

    Parameters
    ----------
    model : estimator
        The model, without a client, whose methods use one thread.
    X : array or data frame of Dask
        Rows.
    method : str
        Name of the method.
    example : ndarray
        What the method returns for no rows.
    as_series : bool
        Whether one value for each row of a data frame is a series.

    Returns
    -------
    dask.array.Array or dask.dataframe.Series
        A series for a data frame and one value for each row, otherwise an array.
    """
    # One node of the graph, so that the model is sent once, and prepared once in each worker.
    node = delayed(model, traverse=False, pure=False)
    if is_array(X):
        return _of_array(node, X, method, example)
    if not is_frame(X):
        raise ClusterError(f"X must be an array or a data frame, not a {type(X).__name__}.")
    if example.ndim == 1 and as_series:
        return _of_frame(node, X, method, example)
    parts = [delayed(_values)(part, node, method, example) for part in X.to_delayed()]
    shape = (np.nan, *example.shape[1:])
    arrays = [da.from_delayed(part, shape, dtype=example.dtype) for part in parts]
    return da.concatenate(arrays, allow_unknown_chunksizes=True)


def _of_frame(node: Any, X: Any, method: str, example: NDArray[Any]) -> Any:
    from dask.dataframe import from_delayed
    from pandas import Series

    parts = [delayed(_series)(part, node, method, example) for part in X.to_delayed()]
    divisions = X.divisions if X.known_divisions else None
    meta = Series(example, index=X._meta.index[:0])
    return from_delayed(parts, meta=meta, divisions=divisions, verify_meta=False)


def _of_array(node: Any, X: Any, method: str, example: NDArray[Any]) -> Any:
    if X.ndim == 2 and X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    if example.ndim == 1:
        return X.map_blocks(_values, node, method, example, drop_axis=1, meta=example)
    chunks = (X.chunks[0], example.shape[1:])
    return X.map_blocks(_values, node, method, example, chunks=chunks, meta=example)


def _values(X: Any, model: Any, method: str, example: NDArray[Any]) -> NDArray[Any]:
    """Return what a method of a model returns for a chunk."""
    return np.asarray(getattr(model, method)(X)) if len(X) else example


def _series(X: Any, model: Any, method: str, example: NDArray[Any]) -> Any:
    """Return the values of a method for a partition, with the index of its rows."""
    from pandas import Series

    return Series(_values(X, model, method, example), index=X.index)
