"""Tessellated kernels, by their structured closed form.

With Z(z, x) the vector of monomials x^δ z^γ of total degree at most d, the family is

    N(z, x) = [ Z(z, x) · 1{z ≥ x} ;  Z(z, x) · (1 - 1{z ≥ x}) ]

for z in the box [-delta, 1 + delta]ⁿ.

Write the moment of z^s over the part of the box above a corner l, divided by the box's volume, as
mom_s(l). Then with P = [P11 P12; P21 P22], Q = P11 - P12 - P21 + P22, R = P12 - P22, S = P22 and
the monomials grouped by their power γ of z (ζ_γ holds the powers of x of one group),

    k(x, y) = Σ_γγ' mom_{γ+γ'}(max(x, y)) ζ_γ(x)ᵀ Q_γγ' ζ_γ'(y)         (the max-product part)
            + Σ_γγ' mom_{γ+γ'}(x) ζ_γ(x)ᵀ R_γγ' ζ_γ'(y)  +  its mirror image in (x, y)
            + Σ_γγ' mom_{γ+γ'}(a) ζ_γ(x)ᵀ S_γγ' ζ_γ'(y)                 (separable, low rank)

so a kernel matrix is one max-product matrix per power of z, times entrywise products of thin
matrices, plus a thin product. With ``monomials="x"`` there is a single group, γ = 0, and a single
max-product matrix, which a binding computes once and keeps.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from tessella import _core
from tessella.backend import effective_threads
from tessella.kernels._base import (
    BoundKernelSet,
    FloatArray,
    KernelSet,
    Moments,
    as_dual_vector,
    as_rows,
    checked_parameter,
    symmetric_factors,
)
from tessella.kernels._monomials import (
    IntArray,
    checked_degree,
    count_monomials,
    evaluate,
    exponents,
)

_TILE = 1024  # side of a tile: a few of them in float64 fit in the last-level cache


@dataclass
class TessellatedKernels(KernelSet):
    """Tessellated kernels: tractable, dense in all kernels, universal for P ≻ 0.

    Parameters
    ----------
    degree : int, default=1
        Largest total degree d of the monomials.
    delta : float, default=0.5
        Margin of the integration box beyond the unit cube that holds the training data.
    monomials : {"x", "xz"}, default="x"
        Powers of x only, as in the paper's experiments (``n_params = 2 C(n + d, d)``), or of x
        and z, the full family of its text (``n_params = 2 C(2n + d, d)``).
    out_of_box : {"extrapolate", "clip", "error"}, default="extrapolate"
        What to do with points beyond the integration box: integrate exactly, so that the kernel
        continues as a polynomial of degree d; move the whole point to the box, so that the
        kernel stays constant outside; or refuse.

    Notes
    -----
    Integrals are divided by the volume of the box, factor by factor, so no entry overflows and
    `C` keeps its meaning when `delta` or the number of features changes.

    For ``monomials="x"`` a binding holds the m × m max-product matrix; a kernel matrix for P of
    rank r costs O(m² r) beyond it, a gradient O(m · support · n_params). For ``"xz"`` nothing of
    size m² is held and both cost C(n + 2d, 2d) times more.

    Examples
    --------
    >>> import numpy as np
    >>> from tessella.kernels import TessellatedKernels
    >>> kernels = TessellatedKernels(degree=1, delta=0.5)
    >>> kernels.count_params(n_features=2)
    6
    >>> bound = kernels.bind([[0.0, 0.0], [1.0, 1.0], [0.2, 0.9]])
    >>> K = bound.gram(np.eye(6))
    >>> w = np.array([1.0, -2.0, 1.0])
    >>> bool(np.isclose(np.trace(bound.gradient(w)), w @ K @ w))
    True
    """

    degree: int = 1
    delta: float = 0.5
    monomials: str = "x"
    out_of_box: str = "extrapolate"

    family: ClassVar[str | None] = "tessellated"

    def count_params(self, n_features: int) -> int:
        """Side of P."""
        variables = n_features if self.monomials == "x" else 2 * n_features
        return 2 * count_monomials(variables, checked_degree(self.degree))

    def bind(
        self, X: ArrayLike, *, dtype: DTypeLike = np.float64, n_jobs: int | None = None
    ) -> BoundTessellated:
        """See :meth:`KernelSet.bind`."""
        return BoundTessellated(self, as_rows(X), np.dtype(dtype), effective_threads(n_jobs))

    def memory_estimate(self, n_samples: int, n_features: int, itemsize: int) -> int:
        """See :meth:`KernelSet.memory_estimate`."""
        half = self.count_params(n_features) // 2
        if self.monomials == "x":
            return itemsize * n_samples**2 + 8 * n_samples * (n_features + 4 * half)
        return 8 * n_samples * (n_features + 1) * (4 * half)

    def cross(
        self, X: ArrayLike, Y: ArrayLike, P: FloatArray, *, n_jobs: int | None = None
    ) -> FloatArray:
        """See :meth:`KernelSet.cross`."""
        basis, X, Y = self._basis(X, Y)
        left_side, right_side = _Side(basis, X), _Side(basis, Y)
        left, right = symmetric_factors(checked_parameter(P, basis.n_params))
        pair = _ProductPair(left_side.factor(left), right_side.factor(right))
        K = np.empty((len(X), len(Y)))
        threads = effective_threads(n_jobs)
        for rows, cols in _tiles(len(X), len(Y)):
            products = _max_product(left_side, right_side, rows, cols, threads)
            K[rows, cols] = pair.tile(rows, cols, products)
        return K

    def scores(
        self,
        X: ArrayLike,
        Y: ArrayLike,
        P: FloatArray,
        w: FloatArray,
        *,
        n_jobs: int | None = None,
    ) -> FloatArray:
        """See :meth:`KernelSet.scores`."""
        basis, X, Y = self._basis(X, Y)
        left_side, right_side = _Side(basis, X), _Side(basis, Y)
        left, right = symmetric_factors(checked_parameter(P, basis.n_params))
        pair = _ProductPair(left_side.factor(left), right_side.factor(right))
        return pair.scores(
            left_side, right_side, as_dual_vector(w, len(Y)), effective_threads(n_jobs)
        )

    def diag(self, X: ArrayLike, P: FloatArray) -> FloatArray:
        """See :meth:`KernelSet.diag`."""
        basis, X, _ = self._basis(X, X)
        return _Side(basis, X).diag(checked_parameter(P, basis.n_params))

    def _basis(self, X: ArrayLike, Y: ArrayLike) -> tuple[_Basis, FloatArray, FloatArray]:
        X, Y = as_rows(X), as_rows(Y)
        if X.shape[1] != Y.shape[1]:
            raise ValueError(f"X has {X.shape[1]} features and Y has {Y.shape[1]}.")
        return _Basis(self, X.shape[1]), X, Y


class _Basis:
    """The monomials of a kernel set for a given number of features, and the integration box.

    Attributes
    ----------
    x_powers, z_powers : ndarray of shape (q, n)
        Exponents of the monomials.
    groups : list of slice
        Monomials that share their power of z, in order.
    group_powers : ndarray of shape (groups, n)
        That power.
    sums : list of (power, pairs)
        Each distinct power γ + γ' and the pairs of groups that give it.
    """

    def __init__(self, kernels: TessellatedKernels, n_features: int) -> None:
        degree = checked_degree(kernels.degree)
        delta = float(kernels.delta)
        if not (np.isfinite(delta) and delta > 0):
            raise ValueError(f"delta={kernels.delta!r} must be a positive number.")
        if kernels.out_of_box not in ("extrapolate", "clip", "error"):
            raise ValueError(
                f"out_of_box={kernels.out_of_box!r} is unknown; use 'extrapolate', 'clip' or "
                "'error'."
            )
        self.lower, self.upper = -delta, 1.0 + delta
        self.out_of_box = kernels.out_of_box
        self.x_powers, self.z_powers = _powers(kernels.monomials, n_features, degree)
        self.half = len(self.x_powers)
        self.n_params = 2 * self.half
        self.group_powers, self.groups = _group(self.z_powers)
        self.sums = _group_sums(self.group_powers)

    def mean_power(self, corner: FloatArray, power: int) -> FloatArray:
        """Mean of z**power over [corner, upper], for one coordinate."""
        total = np.zeros_like(corner)
        for k in range(power + 1):
            total += self.upper ** (power - k) * corner**k
        return total / (power + 1)

    @cached_property
    def box_moments(self) -> FloatArray:
        """mom_{γ+γ'} of the whole box for each pair of groups."""
        corner = np.full(1, self.lower)
        count = len(self.groups)
        moments = np.ones((count, count))
        for power, pairs in self.sums:
            value = np.prod([self.mean_power(corner, s)[0] for s in power if s] or [1.0])
            for left, right in pairs:
                moments[left, right] = value
        return moments


def _powers(monomials: str, n_features: int, degree: int) -> tuple[IntArray, IntArray]:
    if monomials == "x":
        x_powers = exponents(n_features, degree)
        return x_powers, np.zeros_like(x_powers)
    if monomials != "xz":
        raise ValueError(f"monomials={monomials!r} is unknown; use 'x' or 'xz'.")
    both = exponents(2 * n_features, degree)
    # Stable: groups by power of z, each in order of the power of x.
    order = np.lexsort(both[:, : n_features - 1 : -1].T) if n_features else np.arange(len(both))
    both = both[order]
    return both[:, :n_features], both[:, n_features:]


def _group(z_powers: IntArray) -> tuple[IntArray, list[slice]]:
    """Runs of equal rows."""
    change = np.flatnonzero((z_powers[1:] != z_powers[:-1]).any(axis=1)) + 1
    starts = np.concatenate([[0], change]).astype(np.intp)
    stops = np.concatenate([change, [len(z_powers)]]).astype(np.intp)
    return z_powers[starts], [slice(int(a), int(b)) for a, b in zip(starts, stops, strict=True)]


def _group_sums(powers: IntArray) -> list[tuple[tuple[int, ...], list[tuple[int, int]]]]:
    sums: dict[tuple[int, ...], list[tuple[int, int]]] = {}
    for left in range(len(powers)):
        for right in range(len(powers)):
            key = tuple(int(s) for s in powers[left] + powers[right])
            sums.setdefault(key, []).append((left, right))
    return list(sums.items())


class _Side:
    """Everything of one set of rows that a kernel value needs: one argument of k."""

    def __init__(self, basis: _Basis, X: FloatArray) -> None:
        self.basis = basis
        clipped = np.clip(X, basis.lower, basis.upper)
        if basis.out_of_box == "error" and (clipped != X).any():
            outside = (clipped != X).any(axis=1)
            raise ValueError(
                f"{int(outside.sum())} of {len(X)} rows lie outside the integration box "
                f"[{basis.lower:g}, {basis.upper:g}] in scaled units, the first at row "
                f"{int(np.flatnonzero(outside)[0])}. Use out_of_box='extrapolate' or 'clip', or a "
                "larger delta."
            )
        self.rows = clipped if basis.out_of_box == "clip" else X
        self.corner = clipped
        self.room = (basis.upper - clipped) / (basis.upper - basis.lower)
        self.zeta = evaluate(self.rows, basis.x_powers)
        self.volume: FloatArray = np.prod(self.room, axis=1)

    def __len__(self) -> int:
        return len(self.corner)

    def group_moments(self, group: int) -> FloatArray:
        """ζ_i(x) · mom_{γ_i + γ}(x) for the power γ of `group`, of shape (m, q)."""
        basis = self.basis
        values = self.zeta * self.volume[:, None]
        shared = basis.group_powers[group]
        for other, columns in enumerate(basis.groups):
            power = basis.group_powers[other] + shared
            for variable in np.flatnonzero(power):
                mean = basis.mean_power(self.corner[:, variable], int(power[variable]))
                values[:, columns] *= mean[:, None]
        return values

    def factor(self, U: FloatArray) -> _Factor:
        """The thin matrices of this side for one factor U of P."""
        basis = self.basis
        difference, low = U[: basis.half] - U[basis.half :], U[basis.half :]
        return _Factor(
            basis=basis,
            high=[self.zeta[:, g] @ difference[g] for g in basis.groups],
            low=[self.zeta[:, g] @ low[g] for g in basis.groups],
            moment=[self.group_moments(k) @ difference for k in range(len(basis.groups))],
        )

    def diag(self, P: FloatArray) -> FloatArray:
        """k(x, x): here max(x, x) = x, so every moment is a moment of this side."""
        basis = self.basis
        P11, _P12, P22 = _blocks(P)
        result = np.zeros(len(self))
        for k, g in enumerate(basis.groups):
            # mom(max) Q + mom(x) R + mom(x) R' collapses to mom(x) (P11 - P22) on the diagonal.
            moment = self.group_moments(k)
            result += np.einsum("ki,ij,kj->k", moment, (P11 - P22)[:, g], self.zeta[:, g])
            for other, h in enumerate(basis.groups):
                part = np.einsum("ki,ij,kj->k", self.zeta[:, h], P22[h, g], self.zeta[:, g])
                result += basis.box_moments[other, k] * part
        return result


def _blocks(P: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    half = len(P) // 2
    return P[:half, :half], P[:half, half:], P[half:, half:]


@dataclass(frozen=True)
class _Factor:
    """Rows of one side times one factor of P, a matrix of shape (m, r) per power of z.

    `high` multiplies the max-product matrices; `moment` and `low` the separable part.
    """

    basis: _Basis
    high: list[FloatArray]
    low: list[FloatArray]
    moment: list[FloatArray]


class _ProductPair:
    """K between two sides for P = left · rightᵀ, evaluated tile by tile."""

    def __init__(self, left: _Factor, right: _Factor) -> None:
        self.basis = left.basis
        self.left, self.right = left, right
        weights = self.basis.box_moments
        mixed = [
            moment + sum(weights[k, other] * low for other, low in enumerate(right.low))
            for k, moment in enumerate(right.moment)
        ]
        self.thin_left = np.hstack([*left.moment, *left.low])
        self.thin_right = np.hstack([*right.low, *mixed])

    def subtract_means(self, row_means: FloatArray) -> None:
        """Centre the matrix of a side with itself, given its row means."""
        ones = np.ones_like(row_means)
        self.thin_left = np.column_stack([self.thin_left, row_means, ones])
        self.thin_right = np.column_stack([self.thin_right, -ones, row_means.mean() - row_means])

    def tile(self, rows: slice, cols: slice, products: _MaxProductTile) -> FloatArray:
        """K[rows, cols]."""
        result: FloatArray = self.thin_left[rows] @ self.thin_right[cols].T
        for power, pairs in self.basis.sums:
            left = np.hstack([self.left.high[a][rows] for a, _ in pairs])
            right = np.hstack([self.right.high[b][cols] for _, b in pairs])
            entries = _thin_product(left, right)
            entries *= products.with_power(power)
            result += entries
        return result

    def scores(
        self, left_side: _Side, right_side: _Side, w: FloatArray, threads: int
    ) -> FloatArray:
        """K @ w without K."""
        result: FloatArray = self.thin_left @ (self.thin_right.T @ w)
        for rows, cols in _tiles(len(left_side), len(right_side)):
            products = _max_product(left_side, right_side, rows, cols, threads)
            for power, pairs in self.basis.sums:
                factor = products.with_power(power)
                for a, b in pairs:
                    pushed = factor @ (w[cols, None] * self.right.high[b][cols])
                    result[rows] += np.einsum("kr,kr->k", self.left.high[a][rows], pushed)
        return result


def _thin_product(left: FloatArray, right: FloatArray) -> FloatArray:
    """``left @ right.T``; BLAS is slow on a single column, which is the Frank-Wolfe vertex."""
    if left.shape[1] == 1:
        return np.multiply.outer(left[:, 0], right[:, 0])
    product: FloatArray = left @ right.T
    return product


class _MaxProductTile:
    """mom_s(max(x, y)) for all pairs of a tile, for any power s of z."""

    def __init__(
        self, basis: _Basis, base: FloatArray, left: FloatArray, right: FloatArray
    ) -> None:
        self._basis = basis
        self._base = base
        self._left, self._right = left, right

    def with_power(self, power: tuple[int, ...]) -> FloatArray:
        """The tile for z^power; the base tile itself for power zero."""
        result = self._base
        for variable, s in enumerate(power):
            if s:
                corner = np.maximum.outer(self._left[:, variable], self._right[:, variable])
                result = result * self._basis.mean_power(corner, s)
        return result


def _max_product(
    left: _Side, right: _Side, rows: slice, cols: slice, threads: int
) -> _MaxProductTile:
    room_left, room_right = left.room[rows], right.room[cols]
    base = np.empty((len(room_left), len(room_right)))
    _core.max_product(room_left, room_right, base, threads)
    return _MaxProductTile(left.basis, base, left.corner[rows], right.corner[cols])


def _tiles(n_rows: int, n_cols: int) -> Iterator[tuple[slice, slice]]:
    for row in range(0, n_rows, _TILE):
        for col in range(0, n_cols, _TILE):
            yield slice(row, min(n_rows, row + _TILE)), slice(col, min(n_cols, col + _TILE))


class BoundTessellated(BoundKernelSet):
    """:class:`TessellatedKernels` on training rows."""

    def __init__(
        self, kernels: TessellatedKernels, X: FloatArray, dtype: np.dtype[Any], threads: int
    ) -> None:
        self._kernels = kernels
        self._X = X
        self.dtype = dtype
        self._threads = threads
        self._side = _Side(_Basis(kernels, X.shape[1]), X)
        self.n_samples = len(X)
        self.n_params = self._side.basis.n_params
        # With powers of z there are C(n + 2d, 2d) max-product matrices: too many to keep.
        self._stored: NDArray[Any] | None = None
        if kernels.monomials == "x":
            self._stored = np.empty((len(X), len(X)), dtype)
            _core.max_product(self._side.room, self._side.room, self._stored, threads)

    def _products(self, rows: slice, cols: slice, *, exact: bool = False) -> _MaxProductTile:
        side = self._side
        if self._stored is None or (exact and self._stored.dtype != np.float64):
            return _max_product(side, side, rows, cols, self._threads)
        return _MaxProductTile(
            side.basis, self._stored[rows, cols], side.corner[rows], side.corner[cols]
        )

    def _gram(
        self, left: FloatArray, right: FloatArray, centred: bool, out: NDArray[Any] | None
    ) -> NDArray[Any]:
        pair = _ProductPair(self._side.factor(left), self._side.factor(right))
        if centred:
            pair.subtract_means(self._mean_moments.factor_scores(left, right))
        m = self.n_samples
        K = np.empty((m, m), self.dtype) if out is None else out
        for rows, cols in _tiles(m, m):
            if cols.start < rows.start:
                continue
            tile = pair.tile(rows, cols, self._products(rows, cols))
            if rows.start == cols.start:
                tile = 0.5 * (tile + tile.T)
            K[rows, cols] = tile
            if rows.start != cols.start:
                K[cols, rows] = K[rows, cols].T
        return K

    @cached_property
    def _mean_moments(self) -> _TessellatedMoments:
        return self.moments(np.full(self.n_samples, 1.0 / self.n_samples))

    def moments(self, w: ArrayLike) -> _TessellatedMoments:
        """See :meth:`BoundKernelSet.moments`."""
        w = as_dual_vector(w, self.n_samples)
        side, basis = self._side, self._side.basis
        weighted = side.zeta * w[:, None]
        pushed = [np.zeros_like(weighted) for _ in basis.groups]
        for rows, cols in _tiles(self.n_samples, self.n_samples):
            if not w[cols].any():
                continue
            products = self._products(rows, cols, exact=True)
            for power, pairs in basis.sums:
                factor = products.with_power(power)
                for a, b in pairs:
                    group = basis.groups[b]
                    pushed[a][rows, group] += factor @ weighted[cols, group]
        return _TessellatedMoments(side, w, pushed)

    def diag(self, P: FloatArray) -> FloatArray:
        """See :meth:`BoundKernelSet.diag`."""
        return self._side.diag(checked_parameter(P, self.n_params))

    def cross(self, X_new: FloatArray, P: FloatArray) -> FloatArray:
        """See :meth:`BoundKernelSet.cross`."""
        return self._kernels.cross(X_new, self._X, P)


class _TessellatedMoments(Moments):
    """Moments of w.

    Parameters
    ----------
    pushed : list of ndarray of shape (m, q)
        For each group γ, Σ_l w_l mom_{γ+γ'}(max(x_k, x_l)) ζ_γ'(x_l), γ' along the columns.
    """

    def __init__(self, side: _Side, w: FloatArray, pushed: list[FloatArray]) -> None:
        self._side = side
        self._w = w
        self._pushed = pushed
        self._zeta_sum: FloatArray = side.zeta.T @ w
        self._moment_sums = [side.group_moments(k).T @ w for k in range(len(pushed))]

    @cached_property
    def gradient(self) -> FloatArray:
        basis, zeta_sum = self._side.basis, self._zeta_sum
        half = basis.half
        high, cross, low = (np.empty((half, half)) for _ in range(3))
        for k, g in enumerate(basis.groups):
            high[g] = (self._side.zeta[:, g] * self._w[:, None]).T @ self._pushed[k]
            cross[:, g] = np.outer(self._moment_sums[k], zeta_sum[g])
            for other, h in enumerate(basis.groups):
                low[h, g] = basis.box_moments[other, k] * np.outer(zeta_sum[h], zeta_sum[g])
        high = 0.5 * (high + high.T)
        return np.block(
            [
                [high, cross - high],
                [(cross - high).T, low - cross - cross.T + high],
            ]
        )

    def scores(self, P: FloatArray) -> FloatArray:
        """``K(P) @ w``."""
        return self.factor_scores(*symmetric_factors(P))

    def factor_scores(self, left: FloatArray, right: FloatArray) -> FloatArray:
        """``K(left @ right.T) @ w``."""
        side, basis = self._side, self._side.basis
        ours = side.factor(left)
        difference, low = right[: basis.half] - right[basis.half :], right[basis.half :]
        result = np.zeros(len(side))
        low_sums = [self._zeta_sum[g] @ low[g] for g in basis.groups]
        for k in range(len(basis.groups)):
            result += np.einsum("kr,kr->k", ours.high[k], self._pushed[k] @ difference)
            result += ours.moment[k] @ low_sums[k]
            mixed = self._moment_sums[k] @ difference
            mixed = mixed + basis.box_moments[k] @ np.array(low_sums)
            result += ours.low[k] @ mixed
        return result
