"""Names of the basis functions and the single kernels that the entries of a parameter belong to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from functools import singledispatch
from typing import Any, NamedTuple

from tessella.kernels._base import KernelSet
from tessella.kernels._dictionary import FittedDictionary, KernelDictionary
from tessella.kernels._monomials import Power, checked_degree, powers
from tessella.kernels._on_features import KernelsOnFeatures
from tessella.kernels._polynomial import PolynomialKernels
from tessella.kernels._single import SingleKernelSet
from tessella.kernels._sum import KernelSum
from tessella.kernels._tessellated import TessellatedKernels
from tessella.kernels._tessellated_basis import joint_powers

_FEW_NAMES = 3  # largest number of features that are listed in the name of a kernel
_SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
#: Region of a basis function of a tessellated kernel: z is above x in every coordinate, or not.
REGIONS = ("[z≥x]", "[z≱x]")


class BasisFunction(NamedTuple):
    """Name of one entry of N(z, x), in two parts.

    Attributes
    ----------
    monomial : str
        Polynomial factor, such as ``"age·height²"``, or ``"1"`` for the constant.
    region : str
        Indicator by which the monomial is multiplied. It is empty if there is none.
    """

    monomial: str
    region: str = ""

    def __str__(self) -> str:
        return f"{self.monomial}·{self.region}" if self.region else self.monomial


def basis_names(kernels: KernelSet, feature_names: Sequence[str]) -> list[str]:
    """Return names for the rows of a parameter, those of basis functions or of kernels.

    Parameters
    ----------
    kernels : KernelSet
        Family of kernels.
    feature_names : sequence of str
        Names of the features that the kernel sees: those of the columns that are not constant.

    Returns
    -------
    list of str
        For a family of kernels, the name of the basis function of each row of P. A basis function
        of a tessellated kernel is a monomial times ``[z≥x]``, which is one where z is at least x
        in every coordinate, or times ``[z≱x]``, which is one elsewhere. Features stand for their
        values scaled to [0, 1]. For a dictionary, the name of the kernel of each weight. For a sum
        of kernel sets, the names of all its parts, one part after the other.

    Examples
    --------
    >>> from tessella.kernels import PolynomialKernels, TessellatedKernels, basis_names
    >>> basis_names(TessellatedKernels(degree=1), ["age", "height"])
    ['1·[z≥x]', 'age·[z≥x]', 'height·[z≥x]', '1·[z≱x]', 'age·[z≱x]', 'height·[z≱x]']
    >>> basis_names(PolynomialKernels(degree=2), ["a", "b"])
    ['1', 'a', 'b', 'a²', 'a·b', 'b²']
    >>> from tessella.kernels import Gaussian, KernelDictionary
    >>> few = KernelDictionary([Gaussian(1.0), Gaussian(2.0, features=1)])
    >>> basis_names(PolynomialKernels(degree=1) + few, ["a", "b"])
    ['1', 'a', 'b', 'Gaussian(bandwidth=1.0)', 'Gaussian(bandwidth=2.0) of b']
    """
    return [str(function) for function in basis_functions(kernels, feature_names)]


@singledispatch
def basis_functions(kernels: KernelSet, feature_names: Sequence[str]) -> list[BasisFunction]:
    """Return the names of :func:`basis_names`, each divided into its parts.

    The functions of a family that is not part of the library are numbered.
    """
    return [BasisFunction(f"N{i}") for i in range(kernels.count_params(len(feature_names)))]


@basis_functions.register
def _(kernels: PolynomialKernels, feature_names: Sequence[str]) -> list[BasisFunction]:
    found = powers(len(feature_names), checked_degree(kernels.degree))
    return [BasisFunction(_monomial(power, feature_names)) for power in found]


@basis_functions.register
def _(kernels: TessellatedKernels, feature_names: Sequence[str]) -> list[BasisFunction]:
    degree = checked_degree(kernels.degree)
    found = joint_powers(kernels.monomials, len(feature_names), degree)
    variables = [*feature_names, *(f"z({name})" for name in feature_names)]
    monomials = [_monomial(power, variables) for power in found]
    return [BasisFunction(monomial, region) for region in REGIONS for monomial in monomials]


@basis_functions.register
def _(kernels: FittedDictionary, feature_names: Sequence[str]) -> list[BasisFunction]:
    return [BasisFunction(kernel_name(kernel, feature_names)) for kernel in kernels.kernels]


@basis_functions.register
def _(kernels: KernelDictionary, feature_names: Sequence[str]) -> list[BasisFunction]:
    found = kernels.listed(len(feature_names))
    return [BasisFunction(kernel_name(kernel, feature_names)) for kernel in found]


@basis_functions.register
def _(kernels: SingleKernelSet, feature_names: Sequence[str]) -> list[BasisFunction]:
    return [BasisFunction(kernel_name(kernels, feature_names))]


@basis_functions.register
def _(kernels: KernelsOnFeatures, feature_names: Sequence[str]) -> list[BasisFunction]:
    seen = [feature_names[feature] for feature in kernels.features]
    return basis_functions(kernels.kernels, seen)


@basis_functions.register
def _(kernels: KernelSum, feature_names: Sequence[str]) -> list[BasisFunction]:
    return [name for part in kernels.parts for name in basis_functions(part, feature_names)]


def kernel_name(kernel: Any, feature_names: Sequence[str]) -> str:
    """Return the name of a kernel with its settings and the features that it uses.

    Parameters
    ----------
    kernel : Gaussian, Polynomial, FunctionKernel or any other object
        Kernel to name.
    feature_names : sequence of str
        Names of all features, in the order of the columns.
    """
    if not is_dataclass(kernel):
        return repr(kernel)
    settings = [(f.name, getattr(kernel, f.name), f.default) for f in fields(kernel)]
    parts = [
        f"{name}={_short(value)}"
        for name, value, default in settings
        if name != "features" and value != default
    ]
    features = next((value for name, value, _ in settings if name == "features"), None)
    text = f"{type(kernel).__name__}({', '.join(parts)})"
    if features is None:
        return text
    return f"{text} of {shortened_list([feature_names[j] for j in features])}"


def _short(value: Any) -> str:
    return value.__name__ if hasattr(value, "__name__") else repr(value)


def shortened_list(names: Sequence[str]) -> str:
    """Return the first few names, and how many others there are."""
    hidden = len(names) - _FEW_NAMES
    return ", ".join(names[:_FEW_NAMES]) + (f" and {hidden} more" if hidden > 0 else "")


def _monomial(power: Power, names: Sequence[str]) -> str:
    factors = [
        names[variable] + (str(exponent).translate(_SUPERSCRIPTS) if exponent > 1 else "")
        for variable, exponent in power
    ]
    return "·".join(factors) or "1"
