"""The monomials of a tessellated kernel set, read from the names of its basis functions."""

from __future__ import annotations

import re

import numpy as np

from tessella.kernels import basis_functions

_DIGITS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")
_FACTOR = re.compile(r"(z\(x(?P<z>\d+)\)|x(?P<x>\d+))(?P<power>[⁰¹²³⁴⁵⁶⁷⁸⁹]*)")


def powers_of(kernels, n):
    """Exponents of x and of z, one row for each monomial, in the order of a half of P.

    Names are understood as a reader understands them: ``x0·z(x1)²`` is x₀ z₁².
    """
    functions = basis_functions(kernels, [f"x{j}" for j in range(n)])
    half = len(functions) // 2
    assert [f.monomial for f in functions[:half]] == [f.monomial for f in functions[half:]]
    x_powers, z_powers = np.zeros((half, n), dtype=int), np.zeros((half, n), dtype=int)
    for row, function in enumerate(functions[:half]):
        for factor in function.monomial.split("·"):
            if factor == "1":
                continue
            found = _FACTOR.fullmatch(factor)
            table, column = (z_powers, "z") if found["z"] else (x_powers, "x")
            table[row, int(found[column])] += int(found["power"].translate(_DIGITS) or 1)
    return x_powers, z_powers
