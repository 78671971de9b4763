"""Batches of rows and the interface of their sources."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
ObjectArray = NDArray[np.object_]

_BATCH_ROWS = 65_536
_BATCH_BYTES = 32 << 20


@dataclass(frozen=True)
class Batch:
    """Rows that follow each other in the data.

    Attributes
    ----------
    X : ndarray of float64, shape (k, n_features)
        Finite features, contiguous by rows.
    y : ndarray, shape (k,)
        Targets, as they are in the data.
    weight : ndarray of float64, shape (k,)
        Finite weights that are not negative.
    first : int
        Number of the first of these rows in the whole data, counted from 0.
    """

    X: FloatArray
    y: NDArray[Any]
    weight: FloatArray
    first: int


class RowSource(ABC):
    """Rows that are read in batches, as often as necessary.

    Attributes
    ----------
    n_rows : int
        Number of rows.
    n_features : int
        Number of features.
    feature_names : ndarray of object or None
        Names of the features, if they have any.
    """

    n_rows: int
    n_features: int
    feature_names: ObjectArray | None

    @property
    def nbytes(self) -> int:
        """Number of bytes of all features and targets as float64."""
        return 8 * self.n_rows * (self.n_features + 1)

    @abstractmethod
    def batches(self) -> Iterator[Batch]:
        """Read all rows, always in the same order and in the same batches.

        The batches depend on the number of features alone, so the same rows arrive in the same
        batches whatever holds them. A batch has at most 65,536 rows and about 32 MiB.

        Yields
        ------
        Batch
            Arrays that belong to the caller.

        Raises
        ------
        ValueError
            If a value is missing or infinite, or a weight is negative.
        """


def batch_rows(n_features: int) -> int:
    """Return the number of rows of a batch, of which the last batch may have fewer."""
    return max(1, min(_BATCH_ROWS, _BATCH_BYTES // (8 * n_features)))
