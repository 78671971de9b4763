"""Predictions with a fixed kernel and fixed support vectors, prepared once and used many times."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import reduce
from operator import add
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from tessella.kernels._base import KernelSet

FloatArray = NDArray[np.float64]

_TILE_BYTES = 64 * 2**20


class Predictor(ABC):
    """Base class of predictions for which everything about the support vectors is prepared.

    A :class:`KernelSet` builds it for one parameter, one set of support vectors and one matrix of
    coefficients, none of which may be changed in place afterwards.

    Attributes
    ----------
    products_per_row : int
        Multiplications per row of X in the largest matrix product that is left to BLAS. A caller
        can decide by it whether BLAS would start threads.
    """

    products_per_row: int

    @abstractmethod
    def scores(self, X: ArrayLike, *, n_jobs: int | None = None) -> FloatArray:
        """Compute the kernel between X and the support vectors, times the coefficients.

        Parameters
        ----------
        X : array-like of shape (m, n)
            Rows to predict, with scaled features.
        n_jobs : int, optional
            Number of threads. None uses all cores that the process may use.

        Returns
        -------
        ndarray of shape (m, n_columns)
            One column for each column of coefficients.
        """


class MatrixPredictor(Predictor):
    """Predictions for any kernel set, by kernel matrices for one tile of rows after the other."""

    def __init__(
        self, kernels: KernelSet, P: FloatArray, Y: FloatArray, coefficients: FloatArray
    ) -> None:
        self._kernels, self._P, self._Y = kernels, P, Y
        self._coefficients = coefficients
        self.products_per_row = coefficients.size

    def scores(self, X: ArrayLike, *, n_jobs: int | None = None) -> FloatArray:
        """See :meth:`Predictor.scores`."""
        rows = np.asarray(X, dtype=np.float64)
        result = np.empty((len(rows), self._coefficients.shape[1]))
        for tile in row_tiles(len(rows), len(self._Y)):
            matrix = self._kernels.cross(rows[tile], self._Y, self._P, n_jobs=n_jobs)
            result[tile] = matrix @ self._coefficients
        return result


class SumPredictor(Predictor):
    """The sum of the predictions of several kernel sets, each with the columns that it sees.

    Parameters
    ----------
    parts : sequence of Predictor
        The predictor of each kernel set.
    """

    def __init__(self, parts: Sequence[Predictor]) -> None:
        self._parts = tuple(parts)
        self.products_per_row = max(part.products_per_row for part in self._parts)

    def scores(self, X: ArrayLike, *, n_jobs: int | None = None) -> FloatArray:
        """See :meth:`Predictor.scores`."""
        return reduce(add, (part.scores(X, n_jobs=n_jobs) for part in self._parts))


class ColumnPredictor(Predictor):
    """Predictions of a kernel set that sees only some columns.

    Parameters
    ----------
    inner : Predictor
        Predictor on the columns that the kernel set sees.
    features : tuple of int
        Numbers of the columns that the kernel set sees.
    """

    def __init__(self, inner: Predictor, features: tuple[int, ...]) -> None:
        self._inner, self._features = inner, list(features)
        self.products_per_row = inner.products_per_row

    def scores(self, X: ArrayLike, *, n_jobs: int | None = None) -> FloatArray:
        """See :meth:`Predictor.scores`."""
        rows = np.asarray(X, dtype=np.float64)[:, self._features]
        return self._inner.scores(np.ascontiguousarray(rows), n_jobs=n_jobs)


def row_tiles(n_rows: int, row_size: int) -> list[slice]:
    """Return slices of rows whose tiles, with `row_size` numbers per row, need bounded memory."""
    step = max(1, _TILE_BYTES // (8 * max(1, row_size)))
    return [slice(start, start + step) for start in range(0, n_rows, step)]
