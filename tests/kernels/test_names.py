"""Names of basis functions, held against the functions themselves."""

from __future__ import annotations

import numpy as np
import pytest
from reference.basis import powers_of
from reference.quadrature import kernel_block_matrix

from tessella import IntegralKernels, KernelDictionary, PolynomialKernels, TessellatedKernels
from tessella.kernels import BasisFunction, Gaussian, Polynomial, basis_functions, basis_names

FEATURES = ["a", "b"]


@pytest.mark.parametrize("monomials", ["x", "xz"])
@pytest.mark.parametrize("degree", [0, 1, 2, 3])
def test_names_say_what_a_row_of_p_does(monomials, degree):
    kernels = TessellatedKernels(degree, 0.4, monomials)
    functions = basis_functions(kernels, FEATURES)
    half = len(functions) // 2
    assert len(functions) == kernels.count_params(2)
    assert [f.region for f in functions] == ["[z≥x]"] * half + ["[z≱x]"] * half
    assert len({str(f) for f in functions}) == len(functions)
    x_powers, z_powers = powers_of(kernels, 2)
    rng = np.random.default_rng(0)
    x, y = rng.random(2), rng.random(2)
    expected = kernel_block_matrix(x, y, 0.4, x_powers, z_powers)
    for i in range(len(functions)):
        P = np.zeros_like(expected)
        P[i, i] = 1.0
        value = kernels.cross(x[None], y[None], P)[0, 0]
        assert value == pytest.approx(expected[i, i], rel=1e-10)


def test_names_of_polynomials():
    assert basis_names(PolynomialKernels(2), ["p", "q"]) == ["1", "p", "q", "p²", "p·q", "q²"]
    assert basis_names(PolynomialKernels(12), ["p"])[-1] == "p¹²"


def test_names_of_kernels_have_what_is_not_the_default():
    offset = float("1.0")  # the default, but another object
    kernels = [Polynomial(2, offset), Polynomial(3, 0.5, (1,)), Gaussian(0.5)]
    assert basis_names(KernelDictionary(kernels), ["p", "q"]) == [
        "Polynomial(degree=2)",
        "Polynomial(degree=3, offset=0.5) of q",
        "Gaussian(bandwidth=0.5)",
    ]


def test_unknown_families_have_numbers():
    kernels = IntegralKernels(lambda z, X: np.ones((len(z), len(X), 3)), [0.0], [1.0], nodes=4)
    assert basis_names(kernels, FEATURES) == ["N0", "N1", "N2"]


def test_balance_does_not_change_names():
    plain = basis_names(TessellatedKernels(), FEATURES)
    assert basis_names(TessellatedKernels(balance="unit"), FEATURES) == plain
    assert basis_names(TessellatedKernels(balance="pointwise"), FEATURES) == plain


def test_name_joins_its_parts():
    assert str(BasisFunction("age", "[z≥x]")) == "age·[z≥x]"
    assert str(BasisFunction("age")) == "age"
