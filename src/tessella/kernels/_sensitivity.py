"""Sensitivities of scores to a matrix P = V M Vᵀ, which are symmetric matrices Γ_k of side r."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from tessella import _core
from tessella.backend._lazy import cached_property
from tessella.cones import Couplings, Sensitivities, SumOfSensitivities, upper_triangle

FloatArray = NDArray[np.float64]

_BLOCK = 64


class DenseSensitivities(Sensitivities):
    """Sensitivities as an array of shape (f, r, r), for small r."""

    def __init__(self, gamma: FloatArray) -> None:
        self._gamma: FloatArray = 0.5 * (gamma + gamma.transpose(0, 2, 1))

    @classmethod
    def stacked(cls, parts: Sequence[DenseSensitivities]) -> DenseSensitivities:
        """Return the sensitivities of several sets of rows, one after the other."""
        return cls(np.concatenate([part._gamma for part in parts]))

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
        packed = self.matrix()
        product: FloatArray = packed @ packed.T
        return product

    def matrix(self) -> FloatArray:
        """See :meth:`Sensitivities.matrix`."""
        row, column = upper_triangle(self._gamma.shape[1])
        packed: FloatArray = self._gamma[:, row, column]
        packed *= np.where(row == column, 1.0, np.sqrt(2.0))
        return packed

    def transformed(self, F: FloatArray) -> Self:
        """See :meth:`Sensitivities.transformed`."""
        return type(self)(F.T @ self._gamma @ F)

    def plus(self, other: Self) -> Self:
        """See :meth:`Sensitivities.plus`."""
        return type(self)(self._gamma + other._gamma)


class FactoredSensitivities(Sensitivities):
    """Sensitivities Γ_k = sym(a_k g_kᵀ) + sym(l_k hᵀ) with thin factors.

    They cost products of f × p matrices instead of f × r² matrices.

    Parameters
    ----------
    rows : SensitiveRows
        Monomials of the rows, with ``a = rows.high @ high`` and ``l = rows.low @ low``.
    high : ndarray of shape (p, r)
        Coefficients of the monomials in a.
    low : ndarray of shape (q, r)
        Coefficients of the monomials in l.
    pushed : ndarray of shape (f, p)
        Moments of the rows in ``g = pushed @ high + rows.ratio ⊗ tail``.
    tail : ndarray of shape (r,)
        Vector in ``g = pushed @ high + rows.ratio ⊗ tail`` that is common to all rows.
    h : ndarray of shape (r,)
        Vector h of the second term, which is common to all rows.
    """

    def __init__(
        self,
        rows: SensitiveRows,
        high: FloatArray,
        low: FloatArray,
        pushed: FloatArray,
        tail: FloatArray,
        h: FloatArray,
    ) -> None:
        self._rows = rows
        self._high, self._low = high, low
        self._pushed, self._tail, self._h = pushed, tail, h

    @cached_property
    def _g(self) -> FloatArray:
        g: FloatArray = self._pushed @ self._high
        g += self._rows.ratio[:, None] * self._tail
        return g

    def apply(self, M: FloatArray) -> FloatArray:
        """See :meth:`Sensitivities.apply`."""
        scores = np.einsum("kr,kr->k", self._rows.high @ (self._high @ M), self._g)
        result: FloatArray = scores + self._rows.low @ (self._low @ (M @ self._h))
        return result

    def adjoint(self, v: FloatArray) -> FloatArray:
        """See :meth:`Sensitivities.adjoint`."""
        result = self._high.T @ (self._rows.high.T @ (v[:, None] * self._g))
        result += np.outer((v @ self._rows.low) @ self._low, self._h)
        return 0.5 * (result + result.T)

    def gram(self) -> FloatArray:
        """See :meth:`Sensitivities.gram`.

        Inner products do not change under rotations of the r coordinates. In coordinates of the
        span of the rows of `high`, a has p columns and g has p + 1.
        """
        rows, h = self._rows, self._h
        Q, triangle = np.linalg.qr(self._high.T)
        a = rows.high @ triangle.T
        along = Q.T @ self._tail
        g = self._pushed @ triangle.T + rows.ratio[:, None] * along
        beyond = rows.ratio * float(np.linalg.norm(self._tail - Q @ along))
        # All terms with the common h form one product of thin matrices.
        h_along = Q.T @ h
        ah, gh = a @ h_along, self._pushed @ (self._high @ h) + rows.ratio * float(self._tail @ h)
        lh = rows.low @ (self._low @ h)
        mixed = gh[:, None] * (rows.high @ (self._high @ self._low.T))
        mixed += ah[:, None] * (self._g @ self._low.T)
        mixed += 0.5 * float(h @ h) * (rows.low @ (self._low @ self._low.T))
        return _gram(
            a,
            g,
            np.column_stack([g, beyond]),
            np.column_stack([mixed, rows.low, lh]),
            np.column_stack([rows.low, mixed, lh]),
        )

    def matrix(self) -> FloatArray:
        """See :meth:`Sensitivities.matrix`."""
        return self.rowwise().matrix()

    def rowwise(self) -> RowwiseSensitivities:
        """Return the same sensitivities in a form with separate vectors for each row."""
        return RowwiseSensitivities(
            a=self._rows.high @ self._high,
            g=self._g,
            low=self._rows.low @ self._low,
            h=self._h[None, :],
            group=np.zeros(len(self._pushed), dtype=np.intp),
        )

    def transformed(self, F: FloatArray) -> Self:
        """See :meth:`Sensitivities.transformed`."""
        high, low = self._high @ F, self._low @ F
        return type(self)(self._rows, high, low, self._pushed, self._tail @ F, self._h @ F)

    def plus(self, other: Self) -> Self:
        """See :meth:`Sensitivities.plus`; `pushed`, `tail` and `h` belong to the dual vector."""
        return type(self)(
            *(self._rows, self._high, self._low),
            *(self._pushed + other._pushed, self._tail + other._tail, self._h + other._h),
        )


@dataclass(frozen=True)
class SensitiveRows:
    """Monomials of the rows of sensitivities, and the ratio of moments to entries of `high`."""

    high: FloatArray
    low: FloatArray
    ratio: FloatArray


def _gram(
    a: FloatArray, g: FloatArray, whole_g: FloatArray, left: FloatArray, right: FloatArray
) -> FloatArray:
    """Return ½ (aaᵀ ∘ GGᵀ + agᵀ ∘ gaᵀ + left · rightᵀ) with G = `whole_g`."""
    size = len(a)
    result = np.empty((size, size))
    # Blocks of rows keep the intermediate products in the cache; symmetry gives the other half.
    for start in range(0, size, _BLOCK):
        rows, cols = slice(start, start + _BLOCK), slice(start, None)
        block = a[rows] @ a[cols].T
        block *= whole_g[rows] @ whole_g[cols].T
        crossed = a[rows] @ g[cols].T
        crossed *= g[rows] @ a[cols].T
        block += crossed
        block += left[rows] @ right[cols].T
        block *= 0.5
        result[rows, cols] = block
        result[cols, rows] = block.T
    return result


class RowwiseSensitivities(Sensitivities):
    """Sensitivities Γ_k = sym(a_k g_kᵀ) + sym(l_k hᵀ) of several machines, each with its own h.

    Parameters
    ----------
    a : ndarray of shape (f, r)
        Vector a_k of each row.
    g : ndarray of shape (f, r)
        Vector g_k of each row.
    low : ndarray of shape (f, r)
        Vector l_k of each row.
    h : ndarray of shape (groups, r)
        Vector h of each group of rows, one group for each machine.
    group : ndarray of int of shape (f,)
        Number of the group of each row; ascending, and every group has rows.
    threads : int
        Number of threads of compiled loops.
    """

    def __init__(
        self,
        a: FloatArray,
        g: FloatArray,
        low: FloatArray,
        h: FloatArray,
        group: NDArray[np.intp],
        threads: int = 1,
    ) -> None:
        self.a, self.g, self.low, self.h, self.group = a, g, low, h, group
        self.threads = threads

    @cached_property
    def _starts(self) -> NDArray[np.int64]:
        """First row of each group, and the number of rows."""
        return np.searchsorted(self.group, np.arange(len(self.h) + 1)).astype(np.int64, copy=False)

    @classmethod
    def stacked(cls, parts: Sequence[RowwiseSensitivities]) -> RowwiseSensitivities:
        """Return the sensitivities of several sets of rows, one after the other."""
        offsets = np.cumsum([0, *(len(part.h) for part in parts)])
        return cls(
            a=np.concatenate([part.a for part in parts]),
            g=np.concatenate([part.g for part in parts]),
            low=np.concatenate([part.low for part in parts]),
            h=np.concatenate([part.h for part in parts]),
            group=np.concatenate([part.group + offsets[k] for k, part in enumerate(parts)]),
            threads=parts[0].threads,
        )

    def apply(self, M: FloatArray) -> FloatArray:
        """See :meth:`Sensitivities.apply`."""
        result: FloatArray = np.einsum("kr,kr->k", self.a @ M, self.g)
        result += np.einsum("kr,kr->k", self.low, (self.h @ M)[self.group])
        return result

    def adjoint(self, v: FloatArray) -> FloatArray:
        """See :meth:`Sensitivities.adjoint`."""
        result = self.a.T @ (v[:, None] * self.g)
        sums = np.add.reduceat(v[:, None] * self.low, self._starts[:-1], axis=0)
        result += sums.T @ self.h
        return 0.5 * (result + result.T)

    def gram(self) -> FloatArray:
        """See :meth:`Sensitivities.gram`."""
        vectors = np.stack([self.a, self.g, self.low])
        ah, gh, lh = self.h @ vectors.transpose(0, 2, 1)
        hh = self.h @ self.h.T
        size = len(self.a)
        result = np.empty((size, size))
        # Blocks of rows keep the products in the cache; symmetry gives the other half.
        for first in range(0, size, _BLOCK):
            ours = vectors[:, first : first + _BLOCK].reshape(-1, vectors.shape[2])
            pairs = ours @ vectors[:, first:].transpose(0, 2, 1)
            _core.sum_sensitivities(
                pairs, ah, gh, lh, hh, self._starts, first, result, self.threads
            )
        return result

    def matrix(self) -> FloatArray:
        """See :meth:`Sensitivities.matrix`."""
        vectors = (self.a, self.g, self.low, self.h[self.group])
        a, g, low, h = (np.ascontiguousarray(part.T) for part in vectors)
        side, size = a.shape
        packed = np.empty((side * (side + 1) // 2, size))
        for j in range(side):  # the upper triangle, column by column
            first, upto = j * (j + 1) // 2, slice(0, j + 1)
            column = packed[first : first + j + 1]
            np.multiply(a[upto], g[j], out=column)
            column += g[upto] * a[j] + low[upto] * h[j] + h[upto] * low[j]
            # An entry off the diagonal counts twice, and its coordinate is √2 times the entry.
            column[:j] *= np.sqrt(0.5)
            column[j] *= 0.5
        return packed.T

    def columns(self) -> FloatArray | None:
        """See :meth:`Sensitivities.columns`; None with more columns than half of the rows."""
        size, side = self.a.shape
        return self.matrix() if side * (side + 1) < size else None

    def couplings(self, count: int) -> Couplings:
        """See :meth:`Sensitivities.couplings`; the coordinates are principal axes of all vectors.

        The norms of the columns are those of the two terms without their inner product.
        """
        parts = (self.a, self.g, self.low, self.h)
        moments = [part.T @ part / max(float(np.sum(part * part)), 1e-300) for part in parts]
        turned = self.transformed(np.linalg.eigh(sum(moments))[1])
        vectors = (turned.a, turned.g, turned.low, turned.h[self.group])
        a, g, low, h = (np.ascontiguousarray(part.T) for part in vectors)
        norms = (a * a) @ (g * g).T + (low * low) @ (h * h).T
        norms += norms.T
        row, column = upper_triangle(len(a))
        weight = np.where(row == column, 0.5, np.sqrt(0.5))
        sizes = weight**2 * norms[row, column]
        chosen = np.argsort(-sizes, kind="stable")[:count]
        p, q = row[chosen], column[chosen]
        columns = a[p] * g[q] + g[p] * a[q] + low[p] * h[q] + h[p] * low[q]
        columns *= weight[chosen, None]
        return Couplings(columns.T, self._group_grams())

    def _group_grams(self) -> list[FloatArray]:
        """Return the blocks of :meth:`gram` that belong to the groups."""
        vectors = np.stack([self.a, self.g, self.low])
        ah, gh, lh = np.einsum("vkr,kr->vk", vectors, self.h[self.group])
        hh = np.einsum("kr,kr->k", self.h, self.h)
        blocks = []
        for k, (first, end) in enumerate(pairwise(self._starts.tolist())):
            own, part = slice(first, end), vectors[:, first:end]
            pairs = part.reshape(-1, part.shape[2]) @ part.transpose(0, 2, 1)
            edges = np.array([0, end - first], dtype=np.int64)
            block = np.empty((end - first, end - first))
            _core.sum_sensitivities(
                *(pairs, ah[None, own], gh[None, own], lh[None, own], hh[None, k : k + 1]),
                *(edges, 0, block, self.threads),
            )
            blocks.append(block)
        return blocks

    def transformed(self, F: FloatArray) -> Self:
        """See :meth:`Sensitivities.transformed`."""
        a, g, low, h = (part @ F for part in (self.a, self.g, self.low, self.h))
        return type(self)(a, g, low, h, self.group, self.threads)

    def plus(self, other: Self) -> Self:
        """See :meth:`Sensitivities.plus`; a and l belong to the rows, g and h to the vector."""
        g, h = self.g + other.g, self.h + other.h
        return type(self)(self.a, g, self.low, h, self.group, self.threads)


def stack(parts: Sequence[Sensitivities]) -> Sensitivities:
    """Return the sensitivities of the rows of several machines, one after the other."""
    if len(parts) == 1:
        return parts[0]
    thin = [
        part for part in parts if isinstance(part, FactoredSensitivities | RowwiseSensitivities)
    ]
    if len(thin) == len(parts):
        return RowwiseSensitivities.stacked(
            [part.rowwise() if isinstance(part, FactoredSensitivities) else part for part in thin]
        )
    sums = [part for part in parts if isinstance(part, SumOfSensitivities)]
    if len(sums) == len(parts):
        blocks = zip(*(part.parts for part in sums), strict=True)
        return SumOfSensitivities([stack(block) for block in blocks])
    kind: Any = type(parts[0])
    stacked: Sensitivities = kind.stacked(parts)
    return stacked
