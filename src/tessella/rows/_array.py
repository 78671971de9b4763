"""Rows of arrays, which are converted batch by batch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse

from tessella.rows._checks import check_batch
from tessella.rows._source import Batch, ObjectArray, RowSource, batch_rows


class ArraySource(RowSource):
    """Rows of arrays in memory or of files that numpy maps into memory (``np.memmap``).

    Arrays are converted to float64 batch by batch, never as a whole.

    Parameters
    ----------
    X : array-like, shape (n_rows, n_features)
        Features of any type of numbers, or booleans.
    y : array-like, shape (n_rows,)
        Targets of any type.
    weight : array-like, shape (n_rows,), optional
        Weights of the rows. By default, all are one.
    feature_names : array-like of str, shape (n_features,), optional
        Names of the features.
    first : int
        Number of the first row, if the rows are a part of others.

    Raises
    ------
    TypeError
        If X is sparse or the features or weights are not numbers.
    ValueError
        If a shape is wrong, or values are masked.
    """

    def __init__(
        self,
        X: ArrayLike,
        y: ArrayLike,
        weight: ArrayLike | None = None,
        feature_names: ArrayLike | None = None,
        first: int = 0,
    ) -> None:
        self._first = first
        self._X = _numbers(X, "X")
        if self._X.ndim != 2 or 0 in self._X.shape:
            raise ValueError(
                "X must have two dimensions, with at least one row and one feature, but its shape "
                f"is {self._X.shape}."
            )
        self.n_rows, self.n_features = self._X.shape
        self._y = self._column(_array(y, "y"), "y")
        self._weight = (
            None if weight is None else self._column(_numbers(weight, "weight"), "weight")
        )
        self.feature_names = None if feature_names is None else self._names(feature_names)

    def _column(self, values: NDArray[Any], name: str) -> NDArray[Any]:
        if values.shape != (self.n_rows,):
            raise ValueError(
                f"{name} must have one value for each of the {self.n_rows} rows of X, so the shape "
                f"({self.n_rows},), but its shape is {values.shape}."
            )
        return values

    def _names(self, feature_names: ArrayLike) -> ObjectArray:
        names = np.array(feature_names, dtype=object)
        if names.shape != (self.n_features,):
            raise ValueError(
                f"feature_names must have one name for each of the {self.n_features} features, but "
                f"its shape is {names.shape}."
            )
        return names

    def batches(self) -> Iterator[Batch]:
        """Read all rows; see :meth:`RowSource.batches`."""
        size = batch_rows(self.n_features)
        for first in range(0, self.n_rows, size):
            batch = self._batch(slice(first, min(first + size, self.n_rows)))
            check_batch(batch, self.feature_names)
            yield batch

    def _batch(self, rows: slice) -> Batch:
        if self._weight is None:
            weight = np.ones(rows.stop - rows.start)
        else:
            weight = np.array(self._weight[rows], dtype=np.float64)
        # A number that is too large for float64 becomes infinite, which is an error of its own.
        with np.errstate(over="ignore"):
            X = np.array(self._X[rows], dtype=np.float64, order="C")
        return Batch(X, np.array(self._y[rows]), weight, self._first + rows.start)


def _array(values: ArrayLike, name: str) -> NDArray[Any]:
    if issparse(values):
        raise TypeError(f"{name} is a sparse matrix; pass a dense array ({name}.toarray()).")
    if np.ma.is_masked(values):
        raise ValueError(f"{name} has masked values. Fill them, or leave their rows out.")
    return np.asarray(values)


def _numbers(values: ArrayLike, name: str) -> NDArray[Any]:
    array = _array(values, name)
    if array.dtype.kind not in "biuf":
        raise TypeError(
            f"{name} must contain real numbers, but its type is {array.dtype}. Encode text and "
            "dates as numbers before the fit."
        )
    return array
