"""Monomials of bounded total degree."""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations_with_replacement
from math import comb

import numpy as np
from numpy.typing import NDArray

from tessella.kernels._base import FloatArray

IntArray = NDArray[np.intp]


def count_monomials(n_variables: int, degree: int) -> int:
    """Return the number of monomials of total degree at most `degree`."""
    return comb(n_variables + degree, degree)


def exponent_bytes(n_variables: int, degree: int) -> int:
    """Return the bytes that exponents take while monomials are prepared: four tables of them."""
    return 4 * 8 * n_variables * count_monomials(n_variables, degree)


def exponents(n_variables: int, degree: int) -> IntArray:
    """Return the exponents of all monomials of total degree at most `degree`, in rows by degree."""
    rows = [
        np.bincount(np.array(choice, dtype=np.intp), minlength=n_variables)
        for total in range(degree + 1)
        for choice in combinations_with_replacement(range(n_variables), total)
    ]
    return np.array(rows, dtype=np.intp).reshape(len(rows), n_variables)


class Monomials:
    """A fixed list of monomials, prepared for evaluation in a few array operations.

    Parameters
    ----------
    powers : ndarray of shape (n_monomials, n_variables)
        Exponents of each monomial.
    """

    def __init__(self, powers: IntArray) -> None:
        self._count, n_variables = powers.shape
        self._higher = [np.intp(e) for e in range(2, int(powers.max(initial=0)) + 1)]
        # Column 0 of the table of powers is one. The powers of the variables follow, by power.
        factors = [
            [1 + variable + n_variables * (int(row[variable]) - 1) for variable in row.nonzero()[0]]
            for row in powers
        ]
        most = max(map(len, factors), default=0)
        padded = [columns + [0] * (most - len(columns)) for columns in factors]
        self._factors: IntArray = np.array(padded, dtype=np.intp).reshape(len(padded), most).T

    def __call__(self, X: FloatArray) -> FloatArray:
        """Return the value of each monomial at each row, of shape (len(X), n_monomials)."""
        ones = np.ones((len(X), 1))
        if not len(self._factors):
            return ones.repeat(self._count, axis=1)
        table = np.concatenate([ones, X, *(X**exponent for exponent in self._higher)], axis=1)
        values: FloatArray = table.take(self._factors[0], axis=1)
        for columns in self._factors[1:]:
            values *= table.take(columns, axis=1)
        return values


@lru_cache(maxsize=32)
def monomials(n_variables: int, degree: int) -> Monomials:
    """Return all monomials of total degree at most `degree`."""
    return Monomials(exponents(n_variables, degree))


def checked_degree(degree: int) -> int:
    """Return `degree`; ValueError if it is not a nonnegative whole number."""
    if isinstance(degree, bool) or not isinstance(degree, int | np.integer) or degree < 0:
        raise ValueError(f"degree={degree!r} must be a whole number >= 0.")
    return int(degree)
