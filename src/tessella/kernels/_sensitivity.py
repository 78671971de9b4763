"""How the scores of training rows answer to P: the derivative of K(P)w in P.

For a dual vector w and rows k, symmetric matrices Γ_k of side r with ``(K(V M Vᵀ) w)_k = <Γ_k, M>``
on a span V. Second-order solvers need products with them, and never the matrices themselves.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

_BLOCK = 128


class Sensitivities(ABC):
    """The matrices Γ_k of f rows, each symmetric of side r."""

    @abstractmethod
    def apply(self, M: FloatArray) -> FloatArray:
        """``<Γ_k, M>`` for each row, of shape (f,); M symmetric."""

    @abstractmethod
    def adjoint(self, v: FloatArray) -> FloatArray:
        """``Σ_k v_k Γ_k``, of shape (r, r)."""

    @abstractmethod
    def gram(self) -> FloatArray:
        """``<Γ_k, Γ_l>`` for all pairs of rows, of shape (f, f)."""

    @abstractmethod
    def transformed(self, F: FloatArray) -> Self:
        """The sensitivities ``Fᵀ Γ_k F``, those of scores to X in ``M = F X Fᵀ``."""

    @abstractmethod
    def plus(self, other: Self) -> Self:
        """Sensitivities of the same rows for the sum of two dual vectors."""


class DenseSensitivities(Sensitivities):
    """Given as an array of shape (f, r, r): for small r."""

    def __init__(self, gamma: FloatArray) -> None:
        self._gamma: FloatArray = 0.5 * (gamma + gamma.transpose(0, 2, 1))

    def apply(self, M: FloatArray) -> FloatArray:
        """See :meth:`Sensitivities.apply`."""
        result: FloatArray = np.einsum("kij,ij->k", self._gamma, M)
        return result

    def adjoint(self, v: FloatArray) -> FloatArray:
        """See :meth:`Sensitivities.adjoint`."""
        result: FloatArray = np.einsum("kij,k->ij", self._gamma, v)
        return result

    def gram(self) -> FloatArray:
        """See :meth:`Sensitivities.gram`."""
        upper = np.triu_indices(len(self._gamma[0]))
        weight = np.where(upper[0] == upper[1], 1.0, np.sqrt(2.0))
        packed = self._gamma[:, upper[0], upper[1]] * weight
        product: FloatArray = packed @ packed.T
        return product

    def transformed(self, F: FloatArray) -> Self:
        """See :meth:`Sensitivities.transformed`."""
        return type(self)(F.T @ self._gamma @ F)

    def plus(self, other: Self) -> Self:
        """See :meth:`Sensitivities.plus`."""
        return type(self)(self._gamma + other._gamma)


class FactoredSensitivities(Sensitivities):
    """Γ_k = sym(a_k g_kᵀ) + sym(l_k hᵀ): products of f × r matrices instead of f × r².

    Parameters
    ----------
    a, g, low : ndarray of shape (f, r)
        Row by row.
    h : ndarray of shape (r,)
        Common to all rows.
    """

    def __init__(self, a: FloatArray, g: FloatArray, low: FloatArray, h: FloatArray) -> None:
        self._a, self._g, self._l, self._h = a, g, low, h

    def apply(self, M: FloatArray) -> FloatArray:
        """See :meth:`Sensitivities.apply`."""
        result: FloatArray = np.einsum("kr,kr->k", self._a @ M, self._g) + self._l @ (M @ self._h)
        return result

    def adjoint(self, v: FloatArray) -> FloatArray:
        """See :meth:`Sensitivities.adjoint`."""
        result = self._a.T @ (v[:, None] * self._g) + np.outer(v @ self._l, self._h)
        return 0.5 * (result + result.T)

    def gram(self) -> FloatArray:
        """See :meth:`Sensitivities.gram`."""
        a, g, low, h = self._a, self._g, self._l, self._h
        ah, gh, lh = a @ h, g @ h, low @ h
        # All terms with the common h are one product of thin matrices.
        mixed = gh[:, None] * a + ah[:, None] * g + (0.5 * float(h @ h)) * low
        thin_left = np.column_stack([mixed, low, lh])
        thin_right = np.column_stack([low, mixed, lh])
        size = len(a)
        result = np.empty((size, size))
        # Blocks of rows keep the intermediate products in cache; the rest is symmetry.
        for start in range(0, size, _BLOCK):
            rows, cols = slice(start, start + _BLOCK), slice(start, None)
            block = a[rows] @ a[cols].T
            block *= g[rows] @ g[cols].T
            crossed = a[rows] @ g[cols].T
            crossed *= g[rows] @ a[cols].T
            block += crossed
            block += thin_left[rows] @ thin_right[cols].T
            block *= 0.5
            result[rows, cols] = block
            result[cols, rows] = block.T
        return result

    def transformed(self, F: FloatArray) -> Self:
        """See :meth:`Sensitivities.transformed`."""
        return type(self)(self._a @ F, self._g @ F, self._l @ F, self._h @ F)

    def plus(self, other: Self) -> Self:
        """See :meth:`Sensitivities.plus`; a and l belong to the rows, g and h to the vector."""
        return type(self)(self._a, self._g + other._g, self._l, self._h + other._h)
