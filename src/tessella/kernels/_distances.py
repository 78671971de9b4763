"""Compiled and tiled evaluation of kernels of distances: Gaussian, Matérn and Laplace.

A side holds one set of rows, in coordinates in which the kernel has no parameter left, and is
evaluated against other rows. The Laplace kernel needs no exponential for a pair of rows:

    exp(-|a - b|) = min(exp(2a), exp(2b)) · exp(-a) · exp(-b),

so the sum over features is a max-product, like the tessellated part of a tessellated kernel. In
fact, the tessellated kernel of degree 0 with pointwise balance and P on its first block is
Π_j sqrt((1 + δ - max) / (1 + δ - min)) = exp(-Σ_j |a_j - b_j|) with a_j = ½ log(1 + δ - x_j): a
Laplace kernel in coordinates that are warped by a logarithm. One compiled routine serves both.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import copy
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.distance import cdist

from tessella import _core
from tessella.backend import effective_threads, in_threads
from tessella.kernels._base import FloatArray, as_rows
from tessella.kernels._dictionary import mirror, strips

# Largest sum of the ranges of all coordinates for which the factors exp(2a) of a pair of rows and
# all their products stay within the range of double precision, which ends at exp(709).
_LARGEST_RANGE = 600.0
# Largest |a|²/2 for which the digits that cancel in |a|² + |b|² - 2 a·b are not missed.
_LARGEST_NORM = 1e6


class DistanceSide(ABC):
    """One set of rows of a kernel of distances, prepared for evaluations against other rows.

    Parameters
    ----------
    rows : ndarray of shape (l, n)
        Coordinates in which the kernel has no parameter.
    """

    def __init__(self, rows: FloatArray) -> None:
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    @abstractmethod
    def tile(self, left: FloatArray, out: FloatArray | None = None) -> FloatArray:
        """Return the kernel between few rows and the rows of this side, in `out` if it is given."""

    def matrix(self, left: FloatArray, out: NDArray[Any], n_jobs: int | None) -> None:
        """Write the kernel between `left` and the rows of this side to `out`."""
        direct = out.dtype == np.float64 and out.flags.c_contiguous

        def strip(own: slice) -> None:
            if direct:
                self.tile(left[own], out[own])
            else:
                out[own] = self.tile(left[own])

        in_threads(strip, strips(len(left), len(self)), n_jobs)

    def gram(self, out: NDArray[Any], n_jobs: int | None) -> None:
        """Write the kernel matrix of the rows of this side to `out`, exactly symmetric."""

        def strip(own: slice) -> None:
            tile = self.part(slice(own.start, None)).tile(self.rows[own])
            square = tile[:, : len(tile)]
            np.copyto(square, 0.5 * (square + square.T))
            out[own, own.start :] = tile

        in_threads(strip, strips(len(self), len(self)), n_jobs)
        mirror(out, n_jobs)

    @abstractmethod
    def part(self, own: slice | NDArray[np.bool_]) -> DistanceSide:
        """Return some of the rows, without preparing them again."""

    def product(self, left: FloatArray, weights: FloatArray, n_jobs: int | None) -> FloatArray:
        """Return the kernel between `left` and this side times `weights` of shape (l, k)."""
        used = np.asarray(weights.any(axis=1))
        side, weights = self.part(used), weights[used]
        out = np.empty((len(left), weights.shape[1]))

        def strip(own: slice) -> None:
            out[own] = side.tile(left[own]) @ weights

        in_threads(strip, strips(len(left), max(1, len(side))), n_jobs)
        return out


class SquaredDistanceSide(DistanceSide):
    """Rows of a kernel of the distance |a - b|, whose squares are one product of matrices."""

    def __init__(self, rows: FloatArray) -> None:
        super().__init__(rows)
        self._right = np.column_stack([rows, _half_norms(rows), np.ones(len(rows))])

    def exponents(self, left: FloatArray, out: FloatArray | None) -> FloatArray:
        """Return -|a - b|²/2 for few rows and the rows of this side, in `out` if it is given."""
        norms = _half_norms(left)
        if min(norms.min(initial=0.0), self._right[:, -2].min(initial=0.0)) < -_LARGEST_NORM:
            squares = cdist(left, self.rows, "sqeuclidean")
            result: FloatArray = np.multiply(squares, -0.5, out=out)
        else:
            columns = np.column_stack([left, np.ones(len(left)), norms])
            result = np.matmul(columns, self._right.T, out=out)
        return result

    def part(self, own: slice | NDArray[np.bool_]) -> Self:
        """See :meth:`DistanceSide.part`."""
        rest = copy(self)
        rest.rows, rest._right = self.rows[own], self._right[own]
        return rest


class GaussianSide(SquaredDistanceSide):
    """Rows of the kernel exp(-|a - b|² / 2)."""

    def tile(self, left: FloatArray, out: FloatArray | None = None) -> FloatArray:
        """See :meth:`DistanceSide.tile`."""
        exponents = self.exponents(left, out)
        return np.exp(exponents, out=exponents)


class MaternSide(SquaredDistanceSide):
    """Rows of a Matérn kernel: (1 + r) exp(-r) for ν = 3/2, (1 + r + r²/3) exp(-r) for ν = 5/2.

    Here r = √(2ν) |a - b|.

    Parameters
    ----------
    rows : ndarray of shape (l, n)
        Coordinates in which the kernel has no parameter but ν.
    nu : float
        3/2 or 5/2.
    """

    def __init__(self, rows: FloatArray, nu: float) -> None:
        super().__init__(rows)
        self._nu = nu

    def tile(self, left: FloatArray, out: FloatArray | None = None) -> FloatArray:
        """See :meth:`DistanceSide.tile`."""
        squares = self.exponents(left, out)
        squares *= -4.0 * self._nu
        # Negative values are rounding, and infinite ones would become infinity times zero.
        np.clip(squares, 0.0, 1e300, out=squares)
        r = np.sqrt(squares)
        factor = squares  # whose memory is used again
        if self._nu == 1.5:
            np.add(r, 1.0, out=factor)
        else:
            factor /= 3.0
            factor += r
            factor += 1.0
        np.negative(r, out=r)
        factor *= np.exp(r, out=r)
        return factor


def square_distances(A: FloatArray, B: FloatArray | None = None) -> FloatArray:
    """Return |a - b|² of all rows of A and B, by one product of matrices unless norms are large.

    B is A by default, and the result is then exactly symmetric with zeros on its diagonal.
    """
    squares = GaussianSide(A if B is None else B).exponents(A, None)
    squares *= -2.0
    np.maximum(squares, 0.0, out=squares)  # negative values are rounding
    if B is None:
        np.fill_diagonal(squares, 0.0)
        squares += squares.T
        squares *= 0.5
    return squares


def _half_norms(rows: FloatArray) -> FloatArray:
    """Return -|a|²/2 of each row, so that a · b plus those of both is -|a - b|²/2."""
    with np.errstate(over="ignore"):
        halves: FloatArray = -0.5 * np.einsum("ij,ij->i", rows, rows)
    return halves


class LaplaceSide(DistanceSide):
    """Rows of the kernel exp(-Σ_j |a_j - b_j|), as factors of a max-product.

    Coordinates of other rows that lie beyond the range [low, high] of these rows are moved to its
    edge, which multiplies the kernel by the same number for all rows of this side.

    Attributes
    ----------
    room : ndarray of shape (l, n) or None
        Factors of the max-product; None if the coordinates span too much for double precision.
        The kernel is then evaluated by its definition.
    factor : ndarray of shape (l,)
        Number by which the max-product of each row is multiplied.
    """

    def __init__(self, rows: FloatArray) -> None:
        super().__init__(rows)
        empty = not len(rows)
        self._low = np.zeros(rows.shape[1]) if empty else rows.min(axis=0)
        self._high = self._low if empty else rows.max(axis=0)
        self._middle = 0.5 * self._low + 0.5 * self._high
        self.room: FloatArray | None = None
        if float((self._high - self._low).sum()) <= _LARGEST_RANGE:
            self.room, self.factor = self.factors(rows)

    def factors(self, left: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the factors of a max-product for rows of the other side."""
        inside = np.clip(left, self._low, self._high)
        with np.errstate(over="ignore"):  # the kernel of rows infinitely far away is zero
            beyond = np.abs(left - inside).sum(axis=1)
        centred = inside - self._middle
        return np.exp(2.0 * centred), np.exp(-centred.sum(axis=1) - beyond)

    def tile(self, left: FloatArray, out: FloatArray | None = None) -> FloatArray:
        """See :meth:`DistanceSide.tile`; by definition, for coordinates that span too much."""
        exponents: FloatArray = np.negative(cdist(left, self.rows, "cityblock"), out=out)
        return np.exp(exponents, out=exponents)

    def part(self, own: slice | NDArray[np.bool_]) -> LaplaceSide:
        """See :meth:`DistanceSide.part`."""
        return LaplaceSide(self.rows[own])

    def matrix(self, left: FloatArray, out: NDArray[Any], n_jobs: int | None) -> None:
        """See :meth:`DistanceSide.matrix`."""
        if self.room is None:
            super().matrix(left, out, n_jobs)
        else:
            self._max_product(*self.factors(left), out, n_jobs)

    def gram(self, out: NDArray[Any], n_jobs: int | None) -> None:
        """See :meth:`DistanceSide.gram`."""
        if self.room is None:
            super().gram(out, n_jobs)
        else:
            self._max_product(self.room, self.factor, out, n_jobs)

    def _max_product(
        self, room: FloatArray, factor: FloatArray, out: NDArray[Any], n_jobs: int | None
    ) -> None:
        if not out.size or self.room is None:
            return
        none_left, none_right = np.empty((len(room), 0)), np.empty((len(self), 0))
        _core.kernel_matrix(
            *(room, factor[:, None], none_left, none_left),
            *(self.room, self.factor[:, None], none_right, none_right),
            out,
            effective_threads(n_jobs),
        )

    def product(self, left: FloatArray, weights: FloatArray, n_jobs: int | None) -> FloatArray:
        """See :meth:`DistanceSide.product`."""
        if self.room is None:
            return super().product(left, weights, n_jobs)
        used = np.asarray(weights.any(axis=1))
        room, factor = self.factors(left)
        # Factors may be as large or as small as double precision allows, so weights must not be. A
        # power of two changes no digit of them.
        size = np.ldexp(1.0, np.frexp(np.abs(weights).max(axis=0, initial=0.0))[1] - 1)
        columns = np.ascontiguousarray((weights[used] / size * self.factor[used, None]).T)
        out = np.empty((len(left), weights.shape[1]))
        threads = effective_threads(n_jobs)
        _core.max_product_apply(room, self.room[used], columns, out, threads)
        scores: FloatArray = out * factor[:, None] * size
        return scores


def laplace_gram(
    A: ArrayLike, B: ArrayLike | None = None, *, n_jobs: int | None = None
) -> FloatArray:
    """Compute the Laplace kernel ``exp(-Σ_j |a_j - b_j|)`` between rows.

    The compiled loop needs n products for a pair of rows and no exponential.

    Parameters
    ----------
    A : array-like of shape (m, n)
        Rows, divided by the length scale of each coordinate.
    B : array-like of shape (l, n), optional
        Other rows. A by default, and the matrix is then exactly symmetric with ones on its
        diagonal.
    n_jobs : int, optional
        Number of threads. None uses all cores that the process may use.

    Returns
    -------
    ndarray of shape (m, l)
        Kernel matrix.

    Examples
    --------
    >>> from tessella.kernels import laplace_gram
    >>> laplace_gram([[0.0, 0.0]], [[0.0, 0.0], [1.0, -1.0]]).round(4).tolist()
    [[1.0, 0.1353]]
    """
    left = as_rows(A)
    if B is None:
        K = np.empty((len(left), len(left)))
        LaplaceSide(left).gram(K, n_jobs)
        np.fill_diagonal(K, 1.0)
        return K
    right = as_rows(B)
    if left.shape[1] != right.shape[1]:
        raise ValueError(f"A has {left.shape[1]} columns and B has {right.shape[1]}.")
    K = np.empty((len(left), len(right)))
    LaplaceSide(right).matrix(left, K, n_jobs)
    return K


def absolute_pair_sums(W: ArrayLike, A: ArrayLike, *, n_jobs: int | None = None) -> FloatArray:
    """Sum ``W[i, k] * |A[i, j] - A[k, j]|`` over all pairs of rows, for each column j.

    It is what the derivative of a sum over the entries of a Laplace kernel by the scales of its
    columns needs. Nothing of size (m, m) is allocated.

    Parameters
    ----------
    W : array-like of shape (m, m)
        Symmetric matrix of weights. Only the entries below the diagonal are read.
    A : array-like of shape (m, n)
        Rows.
    n_jobs : int, default=None
        Number of threads. None uses all cores that the process may use. The result does not
        depend on it.

    Returns
    -------
    ndarray of shape (n,)
        A sum for each column.

    Examples
    --------
    >>> from tessella.kernels import absolute_pair_sums
    >>> absolute_pair_sums([[1.0, 2.0], [2.0, 5.0]], [[0.0, 3.0], [1.0, 3.0]]).tolist()
    [4.0, 0.0]
    """
    rows = as_rows(A)
    weights = np.ascontiguousarray(W, dtype=np.float64)
    if weights.shape != (len(rows), len(rows)):
        raise ValueError(f"W has shape {weights.shape}, but A has {len(rows)} rows.")
    sums = np.empty(rows.shape[1])
    _core.absolute_pair_sums(weights, np.ascontiguousarray(rows.T), sums, effective_threads(n_jobs))
    return sums
