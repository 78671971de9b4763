"""The rows a fit really sees: weights applied, duplicates merged, order made canonical."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class TrainingSet:
    """Distinct weighted rows, in an order that does not depend on how they were given.

    A row of weight k and k equal rows are the same problem, and so are two orders of the same
    rows. Merging and sorting makes them the same numbers, so that the fits agree to the last bit
    however far they are solved; it also spares the SVM its duplicates.

    Attributes
    ----------
    X : ndarray of shape (m, n)
        Distinct rows of (X, y).
    y : ndarray of shape (m,)
        Their targets.
    weight : ndarray of shape (m,)
        Sum of the weights of the rows merged.
    index : ndarray of shape (m,)
        Position of each row in the data as given (the first of its equals).
    """

    X: FloatArray
    y: FloatArray
    weight: FloatArray
    index: NDArray[np.intp]

    @classmethod
    def build(cls, X: FloatArray, y: FloatArray, sample_weight: FloatArray) -> TrainingSet:
        """From validated data; rows of weight zero are left out."""
        positive = np.flatnonzero(sample_weight > 0)
        rows = np.column_stack([y, X])[positive] + 0.0  # + 0.0: one zero, not two
        keys = np.ascontiguousarray(rows).view(np.dtype((np.void, rows.itemsize * rows.shape[1])))
        _, first, inverse = np.unique(keys.ravel(), return_index=True, return_inverse=True)
        weight = _sorted_sums(sample_weight[positive], inverse, len(first))
        index = positive[first]
        return cls(X[index], y[index], weight, index)

    def gather(self, values: FloatArray) -> FloatArray:
        """Per-row values of the data as given, for the rows of this set."""
        gathered: FloatArray = values[..., self.index]
        return gathered

    def scatter(self, values: FloatArray, n_given: int) -> FloatArray:
        """The inverse of :meth:`gather`: zero for rows that are absent or merged into another."""
        given = np.zeros((*values.shape[:-1], n_given))
        given[..., self.index] = values
        return given


def _sorted_sums(values: FloatArray, group: NDArray[np.intp], count: int) -> FloatArray:
    """Sum of each group, added in order of size so that the order of the rows cannot matter."""
    order = np.argsort(values, kind="stable")
    sums = np.bincount(group[order], weights=values[order], minlength=count)
    return sums.astype(np.float64, copy=False)
