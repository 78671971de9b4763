"""Monomials of bounded total degree."""

from __future__ import annotations

from itertools import combinations_with_replacement
from math import comb

import numpy as np
from numpy.typing import NDArray

from tessella.kernels._base import FloatArray

IntArray = NDArray[np.intp]


def count_monomials(n_variables: int, degree: int) -> int:
    """Number of monomials of total degree at most `degree`."""
    return comb(n_variables + degree, degree)


def exponents(n_variables: int, degree: int) -> IntArray:
    """Exponents of all monomials of total degree at most `degree`, one a row, by degree."""
    rows = [
        np.bincount(np.array(choice, dtype=np.intp), minlength=n_variables)
        for total in range(degree + 1)
        for choice in combinations_with_replacement(range(n_variables), total)
    ]
    return np.array(rows, dtype=np.intp).reshape(len(rows), n_variables)


def evaluate(X: FloatArray, powers: IntArray) -> FloatArray:
    """Matrix of shape (len(X), len(powers)): each monomial at each row of X."""
    values = np.ones((len(X), len(powers)))
    for column, exponent in enumerate(powers):
        for variable in np.flatnonzero(exponent):
            values[:, column] *= X[:, variable] ** exponent[variable]
    return values


def checked_degree(degree: int) -> int:
    """`degree` if it is a whole number that is not negative."""
    if isinstance(degree, bool) or not isinstance(degree, int | np.integer) or degree < 0:
        raise ValueError(f"degree={degree!r} must be a whole number >= 0.")
    return int(degree)
