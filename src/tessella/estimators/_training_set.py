"""The rows that a fit learns from: distinct, weighted and in a canonical order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class TrainingSet:
    """Distinct weighted rows, in an order that does not depend on how they were given.

    A row of weight k and k equal rows define the same problem, and so do two orders of the same
    rows. After merging and sorting they are the same numbers, so that the fits agree to the last
    bit, however accurately they are solved. The SVM also has fewer rows to deal with.

    Attributes
    ----------
    X : ndarray of shape (m, n)
        Features of the distinct rows of (X, y).
    y : ndarray of shape (m,)
        Targets of the distinct rows of (X, y).
    weight : ndarray of shape (m,)
        Sum of the weights of the rows that were merged into each row.
    index : ndarray of shape (m,)
        Position of each row in the data as given; of equal rows, the first.
    of_given : ndarray of int
        For each row of the data as given, the row that it was merged into, or -1 if it was left
        out.
    """

    X: FloatArray
    y: FloatArray
    weight: FloatArray
    index: NDArray[np.intp]
    of_given: NDArray[np.intp]

    @classmethod
    def build(cls, X: FloatArray, y: FloatArray, sample_weight: FloatArray) -> TrainingSet:
        """Merge and sort validated data; rows of weight zero are left out."""
        positive = np.flatnonzero(sample_weight > 0)
        rows = np.column_stack([y, X])
        rows = rows if len(positive) == len(rows) else rows[positive]
        rows += 0.0  # turns -0.0 into 0.0, so that equal rows have equal bytes
        keys = np.ascontiguousarray(rows).view(np.dtype((np.void, rows.itemsize * rows.shape[1])))
        _, first, inverse = np.unique(keys.ravel(), return_index=True, return_inverse=True)
        weight = _sorted_sums(sample_weight[positive], inverse, len(first))
        index = positive[first]
        of_given = np.full(len(X), -1, dtype=np.intp)
        of_given[positive] = inverse
        return cls(X[index], y[index], weight, index, of_given)

    def subset(self, chosen: NDArray[np.intp]) -> TrainingSet:
        """Some of the rows, in the order given by `chosen`."""
        place = np.full(len(self.X) + 1, -1, dtype=np.intp)  # the last entry is for -1
        place[chosen] = np.arange(len(chosen))
        columns = (self.X[chosen], self.y[chosen], self.weight[chosen], self.index[chosen])
        return TrainingSet(*columns, place[self.of_given])


def _sorted_sums(values: FloatArray, group: NDArray[np.intp], count: int) -> FloatArray:
    """Sum of each group, added in ascending order so that the order of the rows cannot matter."""
    order = np.argsort(values, kind="stable")
    sums = np.bincount(group[order], weights=values[order], minlength=count)
    return sums.astype(np.float64, copy=False)
