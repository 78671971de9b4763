"""How the scores of training rows answer to P: the derivative of K(P)w in P.

For a dual vector w and rows k, symmetric matrices Γ_k of side r with ``(K(V M Vᵀ) w)_k = <Γ_k, M>``
on a span V. Second-order solvers need three things of them, and never the matrices themselves.
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
    def gram(self, F: FloatArray) -> FloatArray:
        """``<FᵀΓ_kF, FᵀΓ_lF>`` for all pairs of rows, of shape (f, f)."""

    @abstractmethod
    def plus(self, other: Self) -> Self:
        """Sensitivities of the same rows for the sum of two dual vectors."""


class DenseSensitivities(Sensitivities):
    """Given as an array of shape (f, r, r): for small r."""

    def __init__(self, gamma: FloatArray) -> None:
        self._gamma = 0.5 * (gamma + gamma.transpose(0, 2, 1))

    def apply(self, M: FloatArray) -> FloatArray:
        """See :meth:`Sensitivities.apply`."""
        result: FloatArray = np.einsum("kij,ij->k", self._gamma, M)
        return result

    def adjoint(self, v: FloatArray) -> FloatArray:
        """See :meth:`Sensitivities.adjoint`."""
        result: FloatArray = np.einsum("kij,k->ij", self._gamma, v)
        return result

    def gram(self, F: FloatArray) -> FloatArray:
        """See :meth:`Sensitivities.gram`."""
        upper = np.triu_indices(len(self._gamma[0]))
        weight = np.where(upper[0] == upper[1], 1.0, np.sqrt(2.0))
        scaled = (F.T @ self._gamma @ F)[:, upper[0], upper[1]] * weight
        product: FloatArray = scaled @ scaled.T
        return product

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

    def gram(self, F: FloatArray) -> FloatArray:
        """See :meth:`Sensitivities.gram`."""
        a, g, low, h = self._a @ F, self._g @ F, self._l @ F, self._h @ F
        ah, gh, lh, hh = a @ h, g @ h, low @ h, float(h @ h)
        size = len(a)
        result = np.empty((size, size))
        # Blocks of rows keep the intermediate products in cache; the rest is symmetry.
        for start in range(0, size, _BLOCK):
            rows, cols = slice(start, start + _BLOCK), slice(start, None)
            block = (a[rows] @ a[cols].T) * (g[rows] @ g[cols].T)
            block += (a[rows] @ g[cols].T) * (g[rows] @ a[cols].T)
            block += (a[rows] @ low[cols].T) * gh[rows, None]
            block += (g[rows] @ low[cols].T) * ah[rows, None]
            block += (low[rows] @ a[cols].T) * gh[cols]
            block += (low[rows] @ g[cols].T) * ah[cols]
            block += (low[rows] @ low[cols].T) * hh
            block += np.multiply.outer(lh[rows], lh[cols])
            block *= 0.5
            result[rows, cols] = block
            result[cols, rows] = block.T
        return result

    def plus(self, other: Self) -> Self:
        """See :meth:`Sensitivities.plus`; a and l belong to the rows, g and h to the vector."""
        return type(self)(self._a, self._g + other._g, self._l, self._h + other._h)
