"""Equal rows of a table: rows that happen to agree, or copies of the same row."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

# Equal pairs of rows are no coincidence if there are this many times more than expected.
_TOO_MANY = 10.0


def left_out_fraction(codes: FloatArray, y: FloatArray, weight: FloatArray) -> FloatArray:
    """Return the part of the weight of each row that is left out with it.

    A row of weight k stands for k equal rows. In a table of few categories, rows happen to be
    equal, and new rows will be equal to training rows as well: one row of the k is left out. Rows
    that agree in columns with many values are copies. With one of them in the training data, the
    error of the other says nothing about new rows, so that all k are left out together.

    The two cases are told apart by the number of equal pairs of rows that would be expected if the
    columns and the target were independent.

    Parameters
    ----------
    codes : ndarray of shape (m, n)
        Distinct rows, with NaN for missing values.
    y : ndarray of shape (m,)
        Targets; a row and its target are distinct together.
    weight : ndarray of shape (m,)
        Number of copies of each row.

    Returns
    -------
    ndarray of shape (m,)
        Fractions above 0 and at most 1.
    """
    equal_pairs = 0.5 * float((weight * np.maximum(weight - 1.0, 0.0)).sum())
    total = float(weight.sum())
    chance = np.prod([_coincidence(column, weight) for column in (y, *codes.T)])
    expected = 0.5 * total * max(total - 1.0, 0.0) * float(chance)
    if equal_pairs > _TOO_MANY * expected:
        return np.ones(len(weight))
    return np.minimum(1.0, 1.0 / weight)


def _coincidence(column: FloatArray, weight: FloatArray) -> float:
    """Return the probability that two random rows have equal values."""
    _, place = np.unique(column, return_inverse=True)
    shares = np.bincount(place, weights=weight) / weight.sum()
    return float(shares @ shares)
