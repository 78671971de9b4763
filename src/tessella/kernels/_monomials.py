"""Monomials of bounded total degree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations_with_replacement
from math import comb

import numpy as np
from numpy.typing import NDArray

from tessella.kernels._base import FloatArray

IntArray = NDArray[np.intp]
Power = tuple[tuple[int, int], ...]  # the variables of a monomial, each with its exponent


def count_monomials(n_variables: int, degree: int) -> int:
    """Return the number of monomials of total degree at most `degree`."""
    return comb(n_variables + degree, degree)


def exponent_bytes(n_variables: int, degree: int) -> int:
    """Return the bytes of the powers while monomials are prepared, which are Python objects."""
    return 150 * (degree + 1) * count_monomials(n_variables, degree)


def powers(n_variables: int, degree: int) -> list[Power]:
    """Return all monomials of total degree at most `degree`, by degree.

    A table of exponents would have a column for each variable, nearly all of them zero.
    """
    linear: list[Power] = [((variable, 1),) for variable in range(n_variables)]
    return [(), *(linear if degree else [])] + [
        tuple(Counter(choice).items())
        for total in range(2, degree + 1)
        for choice in combinations_with_replacement(range(n_variables), total)
    ]


def exponents(n_variables: int, degree: int) -> IntArray:
    """Return the exponents of all monomials of total degree at most `degree`, in rows by degree."""
    found = powers(n_variables, degree)
    table = np.zeros((len(found), n_variables), dtype=np.intp)
    for row, power in zip(table, found, strict=True):
        for variable, exponent in power:
            row[variable] = exponent
    return table


def powers_of(table: IntArray) -> list[Power]:
    """Return the monomials of a table of exponents, one for each row."""
    return [tuple((int(k), int(row[k])) for k in row.nonzero()[0]) for row in table]


class Monomials:
    """A fixed list of monomials, prepared for evaluation in a few array operations.

    Parameters
    ----------
    powers : sequence of Power
        Variables of each monomial with their exponents.
    n_variables : int
        Number of variables.
    """

    def __init__(self, powers: Sequence[Power], n_variables: int) -> None:
        self._count = len(powers)
        highest = max((exponent for power in powers for _, exponent in power), default=0)
        self._higher = [np.intp(e) for e in range(2, highest + 1)]
        # Column 0 of the table of powers is one. The powers of the variables follow, by power.
        factors = [
            [1 + variable + n_variables * (exponent - 1) for variable, exponent in power]
            for power in powers
        ]
        most = max(map(len, factors), default=0)
        padded = [columns + [0] * (most - len(columns)) for columns in factors]
        self._factors: IntArray = np.array(padded, dtype=np.intp).reshape(len(padded), most).T

    def __len__(self) -> int:
        return self._count

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
    return Monomials(powers(n_variables, degree), n_variables)


def checked_degree(degree: int) -> int:
    """Return `degree`; ValueError if it is not a nonnegative whole number."""
    if isinstance(degree, bool) or not isinstance(degree, int | np.integer) or degree < 0:
        raise ValueError(f"degree={degree!r} must be a whole number >= 0.")
    return int(degree)
