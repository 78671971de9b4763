"""Names of the basis functions: what the rows and columns of P stand for."""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch
from typing import NamedTuple

import numpy as np

from tessella.kernels._base import KernelSet
from tessella.kernels._monomials import IntArray, checked_degree, exponents
from tessella.kernels._polynomial import PolynomialKernels
from tessella.kernels._tessellated import TessellatedKernels
from tessella.kernels._tessellated_basis import _powers

_SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
#: Where a basis function of a tessellated kernel lives: z above x in every coordinate, or not.
REGIONS = ("[z≥x]", "[z≱x]")


class BasisFunction(NamedTuple):
    """One entry of N(z, x), by name.

    Attributes
    ----------
    monomial : str
        The polynomial factor, such as ``"age·height²"``; ``"1"`` for the constant.
    region : str
        The indicator it is multiplied with; empty when there is none.
    """

    monomial: str
    region: str = ""

    def __str__(self) -> str:
        return f"{self.monomial}·{self.region}" if self.region else self.monomial


def basis_names(kernels: KernelSet, feature_names: Sequence[str]) -> list[str]:
    """Names of the basis functions of a kernel set, in the order of the rows of P.

    Parameters
    ----------
    kernels : KernelSet
        The family.
    feature_names : sequence of str
        Names of the features that the kernel sees: those of the columns that are not constant.

    Returns
    -------
    list of str
        One name per row of P. For tessellated kernels a monomial times ``[z≥x]``, which is one
        where z is at least x in every coordinate, or times ``[z≱x]``, which is one where it is
        not. Features stand for their values scaled to [0, 1].

    Examples
    --------
    >>> from tessella.kernels import PolynomialKernels, TessellatedKernels, basis_names
    >>> basis_names(TessellatedKernels(degree=1), ["age", "height"])
    ['1·[z≥x]', 'age·[z≥x]', 'height·[z≥x]', '1·[z≱x]', 'age·[z≱x]', 'height·[z≱x]']
    >>> basis_names(PolynomialKernels(degree=2), ["a", "b"])
    ['1', 'a', 'b', 'a²', 'a·b', 'b²']
    """
    return [str(function) for function in basis_functions(kernels, feature_names)]


@singledispatch
def basis_functions(kernels: KernelSet, feature_names: Sequence[str]) -> list[BasisFunction]:
    """See :func:`basis_names`; the parts of each name by themselves.

    A family that is not known here has numbered functions.
    """
    return [BasisFunction(f"N{i}") for i in range(kernels.count_params(len(feature_names)))]


@basis_functions.register
def _(kernels: PolynomialKernels, feature_names: Sequence[str]) -> list[BasisFunction]:
    powers = exponents(len(feature_names), checked_degree(kernels.degree))
    return [BasisFunction(_monomial(power, feature_names)) for power in powers]


@basis_functions.register
def _(kernels: TessellatedKernels, feature_names: Sequence[str]) -> list[BasisFunction]:
    degree = checked_degree(kernels.degree)
    powers = np.hstack(_powers(kernels.monomials, len(feature_names), degree))
    variables = [*feature_names, *(f"z({name})" for name in feature_names)]
    monomials = [_monomial(power, variables) for power in powers]
    return [BasisFunction(monomial, region) for region in REGIONS for monomial in monomials]


def _monomial(power: IntArray, names: Sequence[str]) -> str:
    factors = [
        name + (str(exponent).translate(_SUPERSCRIPTS) if exponent > 1 else "")
        for name, exponent in zip(names, power.tolist(), strict=True)
        if exponent
    ]
    return "·".join(factors) or "1"
