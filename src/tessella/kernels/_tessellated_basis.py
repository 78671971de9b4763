"""The arithmetic of tessellated kernels: the basis functions, and one argument of a kernel.

With Z(z, x) the vector of monomials x^δ z^γ of total degree at most d, the family is

    N(z, x) = [ s₁(x) Z(z, x) · 1{z ≥ x} ;  s₂(x) Z(z, x) · (1 - 1{z ≥ x}) ]

for z in the box [-delta, 1 + delta]ⁿ, with s₁ = s₂ = 1 in the paper. Write the moment of z^s over
the part of the box above a corner l, divided by the box's volume, as mom_s(l). For a factor U of
P = U Vᵀ, with halves U₁ and U₂, and ζ_γ the powers of x of the monomials with power γ of z, put

    high_γ(x) = s₁(x) ζ_γ(x)ᵀ U₁γ - s₂(x) ζ_γ(x)ᵀ U₂γ,        low_γ(x) = s₂(x) ζ_γ(x)ᵀ U₂γ

because N(z, x)ᵀU = Σ_γ z^γ (1{z ≥ x} high_γ(x) + low_γ(x)). Integrating the product over z,

    k(x, y) = Σ_γγ' mom_{γ+γ'}(max(x, y)) high_γ(x) · high_γ'(y)        (the max-product part)
            + Σ_γγ' mom_{γ+γ'}(x) high_γ(x) · low_γ'(y)  +  its mirror image in (x, y)
            + Σ_γγ' mom_{γ+γ'}(a) low_γ(x) · low_γ'(y)                  (separable, low rank)

so a kernel matrix is one max-product matrix per power of z, times entrywise products of thin
matrices, plus a thin product.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tessella.backend._lazy import cached_property
from tessella.cones._psd import diagonal_square
from tessella.kernels._base import FloatArray, numbers_or_nan
from tessella.kernels._monomials import (
    IntArray,
    Monomials,
    Power,
    checked_degree,
    exponents,
    powers,
    powers_of,
)
from tessella.kernels._row_span import RowSpan

_ROOM_FLOOR = 1e-12  # smallest side of the box above a corner by which a norm is divided


class Basis:
    """The monomials of a kernel set for a given number of features, and the integration box.

    Attributes
    ----------
    half : int
        Number of monomials q.
    n_params : int
        Side of P, which is 2q.
    monomials : Monomials
        The powers of x of the monomials, prepared for evaluation.
    apart : bool
        Whether the two halves of N have their own columns in `high`, because they are not the
        same functions of x.
    groups : list of ndarray of int
        Columns of `low`, of which there are q, that have the same power of z.
    high_groups : list of ndarray of int
        Columns of `high`, of which there are p, that have the same power of z.
    group_powers : ndarray of shape (groups, n)
        Power of z of each group.
    sums : list of (power, pairs)
        Each distinct power γ + γ' and the pairs of groups with that sum.
    """

    def __init__(
        self,
        *,
        n_features: int,
        degree: int,
        delta: float | FloatArray,
        monomials: str,
        out_of_box: str,
        balance: str | FloatArray,
    ) -> None:
        margin = _checked_margin(delta, n_features)
        if out_of_box not in ("extrapolate", "clip", "error"):
            raise ValueError(
                f"out_of_box={out_of_box!r} is unknown; use 'extrapolate', 'clip' or 'error'."
            )
        self.lower, self.upper = -margin, 1.0 + margin
        self.out_of_box = out_of_box
        x_powers, self.group_powers, self.groups = _powers(
            monomials, n_features, checked_degree(degree)
        )
        self.monomials = Monomials(x_powers, n_features)
        self.half = len(x_powers)
        self.n_params = 2 * self.half
        self.pointwise = self.apart = isinstance(balance, str) and balance == "pointwise"
        self._scales = _scales(balance, self.n_params)
        self.high_groups = self._high_groups()
        self.sums = _group_sums(self.group_powers)

    def _high_groups(self) -> list[IntArray]:
        if not self.apart:
            return self.groups
        return [np.concatenate([g, g + self.half]) for g in self.groups]

    def split(self, U: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the coefficients of `high` (p × r) and of `low` (q × r) of a factor of P."""
        if self._scales is not None:
            U = self._scales[:, None] * U
        first, second = U[: self.half], U[self.half :]
        high: FloatArray = np.vstack([first, -second]) if self.apart else first - second
        return high, second

    def split_weights(self, diagonal: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the weights of the squares of `high`, of the products and of the squares of `low`.

        They are what :meth:`split` makes of a diagonal P. Products are those of an entry of `low`
        with the entry of `high` that is the same function; these are the last ones of `high`.
        """
        weights = diagonal if self._scales is None else self._scales**2 * diagonal
        first, second = weights[: self.half], weights[self.half :]
        return weights if self.apart else first + second, -second, second

    def join(self, high: FloatArray, cross: FloatArray, low: FloatArray) -> FloatArray:
        """Return a matrix of side n_params from its parts; the adjoint of :meth:`split`."""
        half = self.half
        if self.apart:
            sign = np.concatenate([np.ones(half), -np.ones(half)])
            D: FloatArray = sign[:, None] * high * sign
            right = sign[:, None] * cross
            D[:, half:] += right
            D[half:, :] += right.T
            D[half:, half:] += low
        else:
            D = np.empty((2 * half, 2 * half))
            D[:half, :half] = D[half:, half:] = high
            D[:half, half:] = cross - high
            D[half:, :half] = D[:half, half:].T
            D[half:, half:] += low - cross - cross.T
        if self._scales is not None:
            D *= self._scales[:, None]
            D *= self._scales
        return D

    def mean_power(self, variable: int, corner: FloatArray, power: int) -> FloatArray:
        """Return the mean of z**power over [corner, upper], for one coordinate z."""
        upper = self.upper if np.ndim(self.upper) == 0 else self.upper[variable]
        total = np.zeros_like(corner)
        for k in range(power + 1):
            total += upper ** (power - k) * corner**k
        return total / (power + 1)

    @cached_property
    def box_moments(self) -> FloatArray:
        """Moments mom_{γ+γ'} of the whole box for each pair of groups."""
        corner = np.broadcast_to(self.lower, self.group_powers.shape[1:])
        count = len(self.groups)
        moments = np.ones((count, count))
        for power, pairs in self.sums:
            means = [self.mean_power(j, corner[[j]], s)[0] for j, s in enumerate(power) if s]
            value = np.prod(means or [1.0])
            for left, right in pairs:
                moments[left, right] = value
        return moments

    @cached_property
    def half_box_moments(self) -> FloatArray:
        """Half of :attr:`box_moments`, which is the share of each side in the separable part."""
        return 0.5 * self.box_moments

    def halves(self, zeta: FloatArray) -> tuple[FloatArray, ...]:
        """Return the monomials of rows times the factors of each half of N; one if they agree."""
        if self._scales is None:
            return (zeta,)
        return zeta * self._scales[: self.half], zeta * self._scales[self.half :]


class RowSpanBasis(Basis):
    """The basis functions N(z, x)ᵀV for a span V of rows, with the same structure as N itself.

    V has a block for each half of N, so the result has two halves, too. It is for one power of z.

    Parameters
    ----------
    whole : Basis
        The basis functions N.
    span : RowSpan
        Span of rows.
    """

    def __init__(self, whole: Basis, span: RowSpan) -> None:
        self.lower, self.upper = whole.lower, whole.upper
        self.half, self.n_params = span.blocks[0].shape[1], span.side
        self.pointwise = whole.pointwise
        self.apart = whole.apart or whole._scales is not None
        self._scales = None
        self.group_powers, self.sums = whole.group_powers, whole.sums
        self.groups = [np.arange(self.half, dtype=np.intp)]
        self.high_groups = self._high_groups()


class SpanBasis(Basis):
    """The basis functions N(z, x)ᵀV, for P = V M Vᵀ as a function of M.

    A power of z contributes r columns, `high_γ` and `low_γ` of V themselves, instead of one per
    monomial. `split` and `join` then only add up the powers.
    """

    def __init__(self, whole: Basis, r: int) -> None:
        self.lower, self.upper = whole.lower, whole.upper
        self.half = self.n_params = r
        self.pointwise, self.apart = whole.pointwise, whole.apart
        self.group_powers, self.sums = whole.group_powers, whole.sums
        blocks = range(len(whole.groups))
        self.groups = [np.arange(r * k, r * (k + 1), dtype=np.intp) for k in blocks]
        self.high_groups = self.groups

    def split(self, U: FloatArray) -> tuple[FloatArray, FloatArray]:
        """See :meth:`Basis.split`."""
        repeated = np.vstack([U] * len(self.groups))
        return repeated, repeated

    def split_weights(self, diagonal: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """See :meth:`Basis.split_weights`; for one power of z."""
        return diagonal, diagonal, diagonal

    def join(self, high: FloatArray, cross: FloatArray, low: FloatArray) -> FloatArray:
        """See :meth:`Basis.join`."""
        count, r = len(self.groups), self.n_params
        total = (high + cross + cross.T + low).reshape(count, r, count, r)
        D: FloatArray = total.sum(axis=(0, 2))
        return D


def _powers(
    monomials: str, n_features: int, degree: int
) -> tuple[list[Power], IntArray, list[IntArray]]:
    """Return the powers of x of all monomials, the distinct powers of z, and who has each."""
    if monomials == "x":
        x_powers = powers(n_features, degree)
        everything = np.arange(len(x_powers), dtype=np.intp)
        return x_powers, np.zeros((1, n_features), dtype=np.intp), [everything]
    both = _joint_exponents(monomials, n_features, degree)
    return powers_of(both[:, :n_features]), *_group(both[:, n_features:])


def joint_powers(monomials: str, n_features: int, degree: int) -> list[Power]:
    """Return the monomials of the variables x and z, one after the other, grouped by power of z."""
    if monomials == "x":
        return powers(n_features, degree)
    return powers_of(_joint_exponents(monomials, n_features, degree))


def _joint_exponents(monomials: str, n_features: int, degree: int) -> IntArray:
    """Return the exponents of x and z of all monomials, grouped by power of z."""
    if monomials != "xz":
        raise ValueError(f"monomials={monomials!r} is unknown; use 'x' or 'xz'.")
    both = exponents(2 * n_features, degree)
    # A stable sort groups monomials by power of z and keeps the order of the powers of x.
    return both[np.lexsort(both[:, : n_features - 1 : -1].T)]


def _checked_margin(delta: float | FloatArray, n_features: int) -> Any:
    """Return the margin of the box as a number, or as one number per feature."""
    margin = numbers_or_nan(delta)
    if margin.ndim == 0 and np.isfinite(margin) and margin > 0:
        return float(margin)
    if margin.ndim == 0 or not (np.isfinite(margin).all() and (margin > 0).all()):
        raise ValueError(f"delta={delta!r} must be a positive number, or one for each feature.")
    if margin.shape != (n_features,):
        raise ValueError(
            f"delta has shape {margin.shape}, but the kernel sees {n_features} features: give one "
            "number for all features, or one for each feature that is not constant."
        )
    return margin


def _scales(balance: str | FloatArray, n_params: int) -> FloatArray | None:
    if isinstance(balance, str):
        if balance == "unit":
            raise ValueError("balance='unit' is defined by training rows: bind or resolve first.")
        if balance not in ("none", "pointwise"):
            raise ValueError(
                f"balance={balance!r} is unknown; use 'none', 'unit', 'pointwise' or one positive "
                "number per basis function."
            )
        return None
    scales = numbers_or_nan(balance)
    if scales.shape != (n_params,) or not (np.isfinite(scales).all() and (scales > 0).all()):
        raise ValueError(f"balance must hold {n_params} positive numbers for this data.")
    return scales


def _group(z_powers: IntArray) -> tuple[IntArray, list[IntArray]]:
    """Return the distinct rows and the positions of each."""
    change = np.flatnonzero((z_powers[1:] != z_powers[:-1]).any(axis=1)) + 1
    runs = np.split(np.arange(len(z_powers), dtype=np.intp), change)
    return z_powers[[run[0] for run in runs]], runs


def _group_sums(powers: IntArray) -> list[tuple[tuple[int, ...], list[tuple[int, int]]]]:
    sums: dict[tuple[int, ...], list[tuple[int, int]]] = {}
    for left in range(len(powers)):
        for right in range(len(powers)):
            key = tuple(int(s) for s in powers[left] + powers[right])
            sums.setdefault(key, []).append((left, right))
    return list(sums.items())


class Side:
    """One set of rows, prepared as an argument of the kernel.

    Attributes
    ----------
    room : ndarray of shape (m, n)
        Sides of the box above each row, relative to the sides of the whole box.
    moment_ratio : ndarray of shape (m,)
        Factor that turns an entry of `high` into its moment, before powers of z.
    zeta_high : ndarray of shape (m, p)
        Monomials in `high`, multiplied by the factors s₁ and s₂ of the row.
    zeta_low : ndarray of shape (m, q)
        Monomials in `low`, multiplied by the factor s₂ of the row.
    """

    def __init__(self, basis: Basis, X: FloatArray) -> None:
        self.basis = basis
        self.corner: FloatArray = np.minimum(np.maximum(X, basis.lower), basis.upper)
        if basis.out_of_box == "error":
            _refuse_outside(basis, X, self.corner)
        rows = self.corner if basis.out_of_box == "clip" else X
        zeta = basis.monomials(rows)
        self.room: FloatArray = (basis.upper - self.corner) / (basis.upper - basis.lower)
        if basis.pointwise:
            self._normalise_halves(zeta)
        else:
            self.volume: FloatArray = np.multiply.reduce(self.room, axis=1)
            self.moment_ratio: FloatArray = self.volume
            self.zeta_high = self.zeta_low = zeta

    def _normalise_halves(self, zeta: FloatArray) -> None:
        """Divide each half of N by its norm at x.

        Here `room` is measured in halves of the box, a common factor that cancels. Products over
        hundreds of features then stay within the range of double precision.
        """
        n_features = self.room.shape[1]
        self.room = 2.0 * np.maximum(self.room, _ROOM_FLOOR)
        log_product = np.log(self.room).sum(axis=1)
        log_volume = log_product - n_features * np.log(2.0)
        first = np.exp(-0.5 * np.clip(log_product, -600.0, 600.0))
        second = 1.0 / np.sqrt(-np.expm1(np.minimum(log_volume, -_ROOM_FLOOR)))
        root_unit = 2.0 ** (-0.5 * n_features)
        self.volume = np.exp(np.clip(log_product, -600.0, 600.0))
        self.moment_ratio = np.exp(log_product - 0.5 * n_features * np.log(2.0))
        self.zeta_low = zeta * second[:, None]
        self.zeta_high = np.hstack([zeta * first[:, None], root_unit * self.zeta_low])

    def take(self, rows: NDArray[np.intp]) -> Side:
        """Return some of the rows."""
        part = copy(self)
        for name in ("corner", "room", "volume", "moment_ratio", "zeta_low"):
            setattr(part, name, getattr(self, name)[rows])
        same = self.zeta_high is self.zeta_low
        part.zeta_high = part.zeta_low if same else self.zeta_high[rows]
        return part

    def on_rows(self, span: RowSpan) -> Side:
        """Return the same rows for the basis functions of a span of rows."""
        whole = self.basis
        reduced = copy(self)
        reduced.basis = RowSpanBasis(whole, span)
        first, second = span.blocks
        if whole.pointwise:
            high = np.split(self.zeta_high, 2, axis=1)
            reduced.zeta_low = self.zeta_low @ second
            reduced.zeta_high = np.hstack([high[0] @ first, high[1] @ second])
            return reduced
        halves = whole.halves(self.zeta_low)
        reduced.zeta_low = reduced.zeta_high = halves[-1] @ second
        if reduced.basis.apart:
            reduced.zeta_high = np.hstack([halves[0] @ first, reduced.zeta_low])
        return reduced

    def within(self, span: FloatArray) -> Side:
        """Return the same rows for the basis functions of `span`."""
        whole = self.basis
        high, low = whole.split(span)
        reduced = copy(self)
        reduced.basis = SpanBasis(whole, span.shape[1])
        reduced.zeta_high = np.hstack(
            [columns_of(self.zeta_high, g) @ high[g] for g in whole.high_groups]
        )
        reduced.zeta_low = np.hstack([columns_of(self.zeta_low, g) @ low[g] for g in whole.groups])
        return reduced

    def __len__(self) -> int:
        return len(self.corner)

    def group_moments(self, group: int) -> FloatArray:
        """Return entries of `high` times mom_{γ_i + γ}(x) for the power γ of `group`: (m, p)."""
        return self._times_moments(group, self.moment_ratio)

    def _times_moments(self, group: int, scale: FloatArray) -> FloatArray:
        basis = self.basis
        values: FloatArray = self.zeta_high * scale[:, None]
        shared = basis.group_powers[group]
        for other, columns in enumerate(basis.high_groups):
            power = basis.group_powers[other] + shared
            for variable in np.flatnonzero(power):
                corner = self.corner[:, variable]
                mean = basis.mean_power(int(variable), corner, int(power[variable]))
                values[:, columns] *= mean[:, None]
        return values

    def factor(self, U: FloatArray) -> Factor:
        """Return the thin matrices of this side for one factor U of P."""
        return self.factor_of_halves(*self.basis.split(U))

    def factor_of_halves(self, high: FloatArray, low: FloatArray) -> Factor:
        """Return the thin matrices for a factor of P that :meth:`Basis.split` has split."""
        basis = self.basis
        return Factor(
            basis=basis,
            high=[columns_of(self.zeta_high, g) @ high[g] for g in basis.high_groups],
            low=[columns_of(self.zeta_low, g) @ low[g] for g in basis.groups],
            moment=[self.group_moments(k) @ high for k in range(len(basis.groups))],
        )

    def condensed(self, U: FloatArray) -> tuple[list[FloatArray], tuple[FloatArray, FloatArray]]:
        """Return `high` and thin factors of the separable part, for P = U Uᵀ and one power of z.

        A row has p monomials however many columns U has, so inner products over these columns can
        be written as inner products over the monomials, with only p columns.
        """
        diagonal = diagonal_square(U)
        if diagonal is not None:
            return self._condensed_weights(*self.basis.split_weights(diagonal))
        high, low = self.basis.split(U)
        mixed = self.moment_ratio[:, None] * (self.zeta_high @ (high @ low.T))
        mixed += self.zeta_low @ (0.5 * self.basis.box_moments[0, 0] * (low @ low.T))
        triangle: FloatArray = np.asarray(np.linalg.qr(high.T, mode="r"))
        return [self.zeta_high @ triangle.T], (mixed, self.zeta_low)

    def _condensed_weights(
        self, high: FloatArray, mixed: FloatArray, low: FloatArray
    ) -> tuple[list[FloatArray], tuple[FloatArray, FloatArray]]:
        """Return what :meth:`condensed` returns for a diagonal P, without products of matrices."""
        moments = self.moment_ratio[:, None] * self.zeta_high[:, -len(low) :]
        box = 0.5 * self.basis.box_moments[0, 0]
        return [self.zeta_high * np.sqrt(high)], (
            moments * mixed + self.zeta_low * (box * low),
            self.zeta_low,
        )

    def weighted_scores(
        self, diagonal: FloatArray, pushed: FloatArray, moments: FloatArray, low_sums: FloatArray
    ) -> FloatArray:
        """Return scores for a diagonal P and one power of z, in O(p) for each row.

        Parameters
        ----------
        diagonal : ndarray of shape (n_params,)
            Diagonal of P.
        pushed : ndarray of shape (m, p)
            Sums over the max-product part, for each row.
        moments : ndarray of shape (p,) or (m, p)
            Sum of the moments of `high`, for all rows or for each of them.
        low_sums : ndarray of shape (q,) or (m, q)
            Sum of `low`, for all rows or for each of them.
        """
        high, mixed, low = self.basis.split_weights(diagonal)
        q = slice(-len(low), None)
        own = self.moment_ratio[:, None] * self.zeta_high[:, q] * low_sums
        low_part = moments[..., q] * mixed + low_sums * (self.basis.box_moments[0, 0] * low)
        scores: FloatArray = (self.zeta_high * pushed) @ high
        scores += own @ mixed + (self.zeta_low * low_part).sum(axis=1)
        return scores

    def matrix_diag(self, P: FloatArray) -> FloatArray:
        """Return k(x, x) for a symmetric P and one power of z, without factors of P."""
        diagonal, box = np.diagonal(P), self.basis.box_moments[0, 0]
        if np.count_nonzero(P) == np.count_nonzero(diagonal):
            return self._diag_of_weights(*self.basis.split_weights(diagonal))
        high, low = self.basis.split(P)
        both, mixed = self.basis.split(high.T)
        own = self.basis.split(low.T)[1]
        moments = self.zeta_high * self.moment_ratio[:, None]
        result: FloatArray = np.einsum("kp,kp->k", self.zeta_high @ both, self.zeta_high)
        result *= self.volume
        result += 2.0 * np.einsum("kq,kq->k", moments @ mixed.T, self.zeta_low)
        result += box * np.einsum("kq,kq->k", self.zeta_low @ own, self.zeta_low)
        return result

    def _diag_of_weights(self, high: FloatArray, mixed: FloatArray, low: FloatArray) -> FloatArray:
        """Return k(x, x) for a diagonal P that :meth:`Basis.split_weights` has split."""
        own = self.zeta_high[:, -len(low) :] * self.zeta_low
        result: FloatArray = self.volume * (np.square(self.zeta_high) @ high)
        result += 2.0 * self.moment_ratio * (own @ mixed)
        result += self.basis.box_moments[0, 0] * (np.square(self.zeta_low) @ low)
        return result

    def diag(self, left: FloatArray, right: FloatArray) -> FloatArray:
        """Return k(x, x) for P = left · rightᵀ, where max(x, x) = x."""
        ours, theirs = self.factor(left), self.factor(right)
        weights = self.basis.box_moments
        coefficients, _ = self.basis.split(left)
        result = np.zeros(len(self))
        for k in range(len(self.basis.groups)):
            pushed = self._times_moments(k, self.volume) @ coefficients
            result += np.einsum("kr,kr->k", pushed, theirs.high[k])
            result += np.einsum("kr,kr->k", ours.moment[k], theirs.low[k])
            mixed = theirs.moment[k] + sum(
                w * low for w, low in zip(weights[k], theirs.low, strict=True)
            )
            result += np.einsum("kr,kr->k", ours.low[k], mixed)
        return result


def columns_of(values: FloatArray, group: IntArray) -> FloatArray:
    """Return the columns of a group without a copy if these are all columns."""
    return values if len(group) == values.shape[1] else values[:, group]


def _refuse_outside(basis: Basis, X: FloatArray, clipped: FloatArray) -> None:
    outside = (clipped != X).any(axis=1)
    if outside.any():
        box = f" [{basis.lower:g}, {basis.upper:g}]" if np.ndim(basis.upper) == 0 else ""
        raise ValueError(
            f"{int(outside.sum())} of {len(X)} rows lie outside the integration box"
            f"{box} in scaled units, the first at row "
            f"{int(np.flatnonzero(outside)[0])}. Use out_of_box='extrapolate' or 'clip', or a "
            "larger delta."
        )


@dataclass(frozen=True)
class Factor:
    """Rows of one side times one factor of P, a matrix of shape (m, r) per power of z.

    `high` enters the max-product part, `moment` and `low` enter the separable part.
    """

    basis: Basis
    high: list[FloatArray]
    low: list[FloatArray]
    moment: list[FloatArray]

    @cached_property
    def separable(self) -> tuple[FloatArray, FloatArray]:
        """Two thin matrices, the share of this side in the separable part, with its rows.

        The separable part of a kernel matrix is ``first @ other_second.T`` plus
        ``second @ other_first.T``.
        """
        weights = self.basis.half_box_moments
        mixed = [
            moment + sum(weights[k, other] * low for other, low in enumerate(self.low))
            for k, moment in enumerate(self.moment)
        ]
        if len(mixed) == 1:
            return mixed[0], self.low[0]
        return np.hstack(mixed), np.hstack(self.low)
