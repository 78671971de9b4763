"""Tessellated kernels between two sets of rows: matrices, and products without a matrix."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tessella import _core
from tessella.backend import ProductForm
from tessella.kernels._base import FloatArray
from tessella.kernels._monomials import IntArray
from tessella.kernels._tessellated_basis import Basis, Factor, Side

TILE = 1024  # side of a tile with powers of z: a few of them fit in the last-level cache


class ProductPair:
    """K between two sides for P = left · rightᵀ.

    The separable part is ``first · secondᵀ`` plus its mirror image, from thin matrices of both
    sides; the rest, max-product matrices times products of `high`, is never held as a whole.
    """

    def __init__(self, sides: tuple[Side, Side], left: FloatArray, right: FloatArray) -> None:
        self._sides = sides
        self.basis = sides[0].basis
        wide = left.shape[1] > self.basis.half and len(self.basis.groups) == 1
        if wide and left is right and sides[0] is sides[1]:
            self._left, self._first = sides[0].condensed(left)
            self._right, self._second = self._left, self._first
            return
        ours, theirs = sides[0].factor(left), sides[1].factor(right)
        self._left, self._right = ours.high, theirs.high
        self._first, self._second = self._thin(ours), self._thin(theirs)

    @property
    def shape(self) -> tuple[int, int]:
        """That of K."""
        return len(self._sides[0]), len(self._sides[1])

    def _thin(self, factor: Factor) -> tuple[FloatArray, FloatArray]:
        weights = 0.5 * self.basis.box_moments
        mixed = [
            moment + sum(weights[k, other] * low for other, low in enumerate(factor.low))
            for k, moment in enumerate(factor.moment)
        ]
        return np.hstack(mixed), np.hstack(factor.low)

    def subtract_means(self, row_means: FloatArray) -> None:
        """Centre the matrix of a side with itself, given its row means."""
        ones = np.ones_like(row_means)
        shift = 0.5 * row_means.mean() - row_means
        for name in ("_first", "_second"):
            mixed, low = getattr(self, name)
            setattr(self, name, (np.column_stack([mixed, shift]), np.column_stack([low, ones])))

    @property
    def form(self) -> ProductForm:
        """The left side with itself; for one power of z."""
        return ProductForm(self._sides[0].room, self._left[0], *self._first)

    def matrix(self, out: NDArray[Any], threads: int) -> None:
        """Write K to `out`; exactly symmetric where the two sides and factors are one."""
        if not out.size:
            return None
        if len(self.basis.groups) > 1:
            return self._tiled(out, threads)
        (left, right), (first, second) = self._sides, (self._first, self._second)
        _core.kernel_matrix(
            *(left.room, self._left[0], *first),
            *(right.room, self._right[0], *second),
            out,
            threads,
        )
        return None

    def _tiled(self, out: NDArray[Any], threads: int) -> None:
        left, right = self._sides
        for rows, cols in tiles(len(left), len(right)):
            mirrored = left is right and cols.start < rows.start
            out[rows, cols] = out[cols, rows].T if mirrored else self._tile(rows, cols, threads)
            if left is right and rows.start == cols.start:
                out[rows, cols] = 0.5 * (out[rows, cols] + out[rows, cols].T)

    def _tile(self, rows: slice, cols: slice, threads: int) -> FloatArray:
        mixed, low = self._first
        other_mixed, other_low = self._second
        result: FloatArray = mixed[rows] @ other_low[cols].T
        result += low[rows] @ other_mixed[cols].T
        products = max_product_tile(*self._sides, rows, cols, threads)
        for power, pairs in self.basis.sums:
            left = np.hstack([self._left[a][rows] for a, _ in pairs])
            right = np.hstack([self._right[b][cols] for _, b in pairs])
            entries = left @ right.T
            entries *= products.with_power(power)
            result += entries
        return result

    def scores(self, w: FloatArray, threads: int) -> FloatArray:
        """K @ w without K."""
        (mixed, low), (other_mixed, other_low) = self._first, self._second
        result: FloatArray = mixed @ (other_low.T @ w) + low @ (other_mixed.T @ w)
        everything = np.arange(self._right[0].shape[1])
        parts = [(high * w[:, None], everything) for high in self._right]
        pushed = push(*self._sides, parts, len(everything), threads)
        for high, column_sums in zip(self._left, pushed, strict=True):
            result += np.einsum("kr,kr->k", high, column_sums)
        return result


def push(
    left: Side,
    right: Side,
    parts: list[tuple[FloatArray, IntArray]],
    width: int,
    threads: int,
) -> list[FloatArray]:
    """Σ_γ' Σ_l mom_{γ+γ'}(max(x_k, y_l)) part_γ'[l], for each power γ of z: (m, width) each.

    A part is a matrix with a row for each row of `right`, and the columns of the result that it
    adds to. Rows of zeros cost nothing.
    """
    basis = left.basis
    support = np.logical_or.reduce([part.any(axis=1) for part, _ in parts])
    if len(parts) == 1:
        result = np.empty((len(left), width))
        weights = np.ascontiguousarray(parts[0][0][support].T)
        _core.max_product_apply(left.room, right.room[support], weights, result, threads)
        return [result]
    pushed = [np.zeros((len(left), width)) for _ in basis.groups]
    for rows, cols in tiles(len(left), len(right)):
        if not support[cols].any():
            continue
        products = max_product_tile(left, right, rows, cols, threads)
        for power, pairs in basis.sums:
            factor = products.with_power(power)
            for a, b in pairs:
                part, columns = parts[b]
                pushed[a][rows, columns] += factor @ part[cols]
    return pushed


class MaxProductTile:
    """mom_s(max(x, y)) for all pairs of a tile, for any power s of z."""

    def __init__(
        self, basis: Basis, base: NDArray[np.floating], left: FloatArray, right: FloatArray
    ) -> None:
        self._basis = basis
        self._base = base
        self._left, self._right = left, right

    def with_power(self, power: tuple[int, ...]) -> NDArray[np.floating]:
        """The tile for z^power; the base tile itself for power zero."""
        result = self._base
        for variable, s in enumerate(power):
            if s:
                corner = np.maximum.outer(self._left[:, variable], self._right[:, variable])
                result = result * self._basis.mean_power(corner, s)
        return result


def max_product_tile(
    left: Side, right: Side, rows: slice, cols: slice, threads: int
) -> MaxProductTile:
    """The tile, computed here and now in float64."""
    room_left, room_right = left.room[rows], right.room[cols]
    base = np.empty((len(room_left), len(room_right)))
    _core.max_product(room_left, room_right, base, threads)
    return MaxProductTile(left.basis, base, left.corner[rows], right.corner[cols])


def tiles(n_rows: int, n_cols: int) -> Iterator[tuple[slice, slice]]:
    """Slices that cover a matrix, row by row of tiles."""
    for row in range(0, n_rows, TILE):
        for col in range(0, n_cols, TILE):
            yield slice(row, min(n_rows, row + TILE)), slice(col, min(n_cols, col + TILE))
