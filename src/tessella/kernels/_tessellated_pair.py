"""Tessellated kernels between two sets of rows: matrices, and products without a matrix."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tessella import _core
from tessella.backend import ProductForm, effective_threads
from tessella.backend._product_form import centred_separable
from tessella.cones import Factors
from tessella.kernels._base import FloatArray, as_rows
from tessella.kernels._monomials import IntArray
from tessella.kernels._predictor import Predictor, row_tiles
from tessella.kernels._tessellated_basis import Basis, Factor, Side

TILE = 1024  # side of a tile with powers of z: a few of them fit in the last-level cache


class ProductPair:
    """The kernel matrix K between two sides for P = left · rightᵀ.

    The separable part is ``first · secondᵀ`` plus its mirror image, from thin matrices of both
    sides. The max-product part is never held as a whole.
    """

    def __init__(self, sides: tuple[Side, Side], left: FloatArray, right: FloatArray) -> None:
        self._sides = sides
        self.basis = sides[0].basis
        symmetric = left is right and sides[0] is sides[1]
        wide = left.shape[1] > self.basis.half and len(self.basis.groups) == 1
        if wide and symmetric:
            self._left, self._first = sides[0].condensed(left)
            self._right, self._second = self._left, self._first
            return
        ours = sides[0].factor(left)
        self._set_factors(ours, ours if symmetric else sides[1].factor(right))

    @classmethod
    def of_factors(cls, sides: tuple[Side, Side], factors: tuple[Factor, Factor]) -> ProductPair:
        """Return the pair for given factors of both sides, which can be used in several pairs."""
        pair = cls.__new__(cls)
        pair._sides, pair.basis = sides, sides[0].basis
        pair._set_factors(*factors)
        return pair

    def _set_factors(self, ours: Factor, theirs: Factor) -> None:
        self._left, self._right = ours.high, theirs.high
        self._first = ours.separable
        self._second = self._first if theirs is ours else theirs.separable

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of K."""
        return len(self._sides[0]), len(self._sides[1])

    def subtract_means(self, row_means: FloatArray, mean: float) -> None:
        """Centre the matrix of a side with itself, given its row means and its mean."""
        same = self._second is self._first
        self._first = centred_separable(*self._first, row_means, mean)
        self._second = self._first if same else centred_separable(*self._second, row_means, mean)

    @property
    def form(self) -> ProductForm:
        """Return the product form of the left side with itself, for one power of z."""
        return ProductForm(self._sides[0].room, self._left[0], *self._first)

    def matrix(self, out: NDArray[Any], threads: int) -> None:
        """Write K to `out`; it is exactly symmetric if both sides and factors are the same."""
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


class TessellatedPredictor(Predictor):
    """Predictions for one vector of coefficients, with precomputed sums over support vectors.

    Parameters
    ----------
    basis : Basis
        Basis functions of the kernel.
    factors : pair of ndarray of shape (n_params, r)
        Parameter of the kernel.
    Y : ndarray of shape (l, n)
        Support vectors, in the scale of the unit cube.
    w : ndarray of shape (l,)
        Coefficients of the support vectors.
    """

    def __init__(self, basis: Basis, factors: Factors, Y: FloatArray, w: FloatArray) -> None:
        left, right = factors
        self._basis = basis
        self._halves = basis.split(left)
        side = Side(basis, Y)
        factor = side.factor(right)
        mixed, low = factor.separable
        self._low_sum, self._mixed_sum = low.T @ w, mixed.T @ w
        everything = np.arange(right.shape[1])
        parts = [(high * w[:, None], everything) for high in factor.high]
        self._support = WeightedRows(side, parts, len(everything))
        self.products_per_row = max(self._halves[0].size, len(low) * len(parts))

    def scores(self, X: ArrayLike, *, n_jobs: int | None = None) -> FloatArray:
        """See :meth:`Predictor.scores`."""
        rows, threads = as_rows(X), effective_threads(n_jobs)
        tiles = row_tiles(len(rows), 4 * self._basis.half)  # of wide rows, a few at a time
        parts = [self._scores(rows if len(tiles) == 1 else rows[tile], threads) for tile in tiles]
        return (parts[0] if len(parts) == 1 else np.concatenate([np.empty(0), *parts]))[:, None]

    def _scores(self, rows: FloatArray, threads: int) -> FloatArray:
        side = Side(self._basis, rows)
        factor = side.factor_of_halves(*self._halves)
        mixed, low = factor.separable
        result: FloatArray = mixed @ self._low_sum + low @ self._mixed_sum
        column_sums = self._support.push(side, threads)
        for high, sums in zip(factor.high, column_sums, strict=True):
            result += np.einsum("kr,kr->k", high, sums)
        return result


class TessellatedMatrixPredictor(Predictor):
    """Predictions for several vectors of coefficients, which share one kernel matrix."""

    def __init__(
        self, basis: Basis, factors: Factors, Y: FloatArray, coefficients: FloatArray
    ) -> None:
        left, right = factors
        self._basis = basis
        self._halves = basis.split(left)
        self._side = Side(basis, Y)
        self._factor = self._side.factor(right)
        self._coefficients = coefficients
        self.products_per_row = max(self._halves[0].size, coefficients.size)

    def scores(self, X: ArrayLike, *, n_jobs: int | None = None) -> FloatArray:
        """See :meth:`Predictor.scores`."""
        rows, threads = as_rows(X), effective_threads(n_jobs)
        result = np.empty((len(rows), self._coefficients.shape[1]))
        for tile in row_tiles(len(rows), len(self._side)):
            side = Side(self._basis, rows[tile])
            factors = side.factor_of_halves(*self._halves), self._factor
            pair = ProductPair.of_factors((side, self._side), factors)
            K = np.empty(pair.shape)
            pair.matrix(K, threads)
            result[tile] = K @ self._coefficients
        return result


class WeightedRows:
    """Rows of one side with weights, prepared for sums over them.

    Parameters
    ----------
    side : Side
        Rows to sum over.
    parts : list of (ndarray, ndarray of int)
        For each power of z, a matrix with a row of weights for each row of `side`, and the
        columns of the result that it adds to. Rows of zeros cost nothing.
    width : int
        Number of columns of the result.
    """

    def __init__(self, side: Side, parts: list[tuple[FloatArray, IntArray]], width: int) -> None:
        self._parts, self._width = parts, width
        self._used = np.logical_or.reduce([part.any(axis=1) for part, _ in parts])
        if len(parts) > 1:
            self._side = side
            return
        self._weights = np.ascontiguousarray(parts[0][0][self._used].T)
        self._room = side.room if self._used.all() else side.room[self._used]

    def push(self, left: Side, threads: int) -> list[FloatArray]:
        """Σ_γ' Σ_l mom_{γ+γ'}(max(x_k, y_l)) part_γ'[l], for each power γ of z: (m, width) each."""
        if len(self._parts) == 1:
            result = np.empty((len(left), self._width))
            _core.max_product_apply(left.room, self._room, self._weights, result, threads)
            return [result]
        pushed = [np.zeros((len(left), self._width)) for _ in left.basis.groups]
        for rows, cols in tiles(len(left), len(self._side)):
            if not self._used[cols].any():
                continue
            products = max_product_tile(left, self._side, rows, cols, threads)
            for power, pairs in left.basis.sums:
                factor = products.with_power(power)
                for a, b in pairs:
                    part, columns = self._parts[b]
                    pushed[a][rows, columns] += factor @ part[cols]
        return pushed


def push(
    left: Side,
    right: Side,
    parts: list[tuple[FloatArray, IntArray]],
    width: int,
    threads: int,
) -> list[FloatArray]:
    """Return the sums of :meth:`WeightedRows.push` for rows that are used once."""
    return WeightedRows(right, parts, width).push(left, threads)


class MaxProductTile:
    """Values of mom_s(max(x, y)) for all pairs of a tile, for any power s of z."""

    def __init__(
        self, basis: Basis, base: NDArray[np.floating], left: FloatArray, right: FloatArray
    ) -> None:
        self._basis = basis
        self._base = base
        self._left, self._right = left, right

    def with_power(self, power: tuple[int, ...]) -> NDArray[np.floating]:
        """Return the tile for z^power, which is the base tile for power zero."""
        result = self._base
        for variable, s in enumerate(power):
            if s:
                corner = np.maximum.outer(self._left[:, variable], self._right[:, variable])
                result = result * self._basis.mean_power(variable, corner, s)
        return result


def max_product_tile(
    left: Side, right: Side, rows: slice, cols: slice, threads: int
) -> MaxProductTile:
    """Compute a tile in float64."""
    room_left, room_right = left.room[rows], right.room[cols]
    base = np.empty((len(room_left), len(room_right)))
    _core.max_product(room_left, room_right, base, threads)
    return MaxProductTile(left.basis, base, left.corner[rows], right.corner[cols])


def tiles(n_rows: int, n_cols: int) -> Iterator[tuple[slice, slice]]:
    """Yield slices that cover a matrix with tiles, row by row."""
    for row in range(0, n_rows, TILE):
        for col in range(0, n_cols, TILE):
            yield slice(row, min(n_rows, row + TILE)), slice(col, min(n_cols, col + TILE))
