"""Equal rows of a table: rows that happen to agree, or copies of the same row."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

# Equal pairs of rows are no coincidence if there are this many times more than expected.
_TOO_MANY = 10.0


def left_out_fraction(
    codes: FloatArray, categorical: NDArray[np.bool_], weight: FloatArray
) -> FloatArray:
    """Return the part of the weight of each row that is left out with it.

    A row of weight k stands for k equal rows. In a table of few categories, rows happen to be
    equal, and new rows will be equal to training rows as well: one row of the k is left out. Rows
    that agree in columns with many values are copies. With one of them in the training data, the
    error of the other says nothing about new rows, so that all k are left out together.

    The two cases are told apart by the number of equal pairs of rows that would be expected if the
    columns were independent. Whether the values of a column of numbers repeat is seen from rows
    that differ otherwise, so that copies and weights of continuous columns are no coincidence.

    Parameters
    ----------
    codes : ndarray of shape (m, n)
        Rows that are distinct together with their targets, with NaN for missing values.
    categorical : ndarray of bool of shape (n,)
        Whether each column contains categories.
    weight : ndarray of shape (m,)
        Number of equal rows that each row stands for.

    Returns
    -------
    ndarray of shape (m,)
        Fractions above 0 and at most 1.
    """
    equal_pairs = 0.5 * float((weight * np.maximum(weight - 1.0, 0.0)).sum())
    fractions: FloatArray = np.minimum(1.0, 1.0 / weight)
    if equal_pairs == 0.0:
        return fractions
    chance = 1.0
    for column, of_categories in zip(codes.T, categorical, strict=True):
        _, place = np.unique(column, return_inverse=True)
        chance *= _agreement(place, weight) if of_categories else _agreement_of_others(place)
    total = float(weight.sum())
    if equal_pairs > _TOO_MANY * chance * 0.5 * total**2:
        return np.ones(len(weight))
    return fractions


def _agreement(place: NDArray[np.intp], weight: FloatArray) -> float:
    """Return the probability that two random rows have equal values."""
    shares = np.bincount(place, weights=weight) / weight.sum()
    return float(shares @ shares)


def _agreement_of_others(place: NDArray[np.intp]) -> float:
    """Return the fraction of pairs of different rows with equal values."""
    counts = np.bincount(place)
    n_rows = len(place)
    return float((counts * (counts - 1)).sum() / max(1, n_rows * (n_rows - 1)))
