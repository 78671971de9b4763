"""Moments of a dual vector for tessellated kernels: its gradient, scores and sensitivities."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tessella.backend._lazy import cached_property
from tessella.cones import Face, Factors, Sensitivities, symmetric_factors
from tessella.cones._psd import diagonal_square
from tessella.kernels._base import FloatArray, MatrixMoments
from tessella.kernels._sensitivity import (
    DenseSensitivities,
    FactoredSensitivities,
    SensitiveRows,
)
from tessella.kernels._tessellated_basis import Side

_FEW_MONOMIALS = 32  # with which products with a whole matrix take less time than its factors


class TessellatedMoments(MatrixMoments):
    """Moments of a dual vector w for tessellated kernels.

    Parameters
    ----------
    side : Side
        Training rows.
    w : ndarray of shape (m,)
        Dual vector.
    pushed : list of ndarray of shape (m, p)
        For each group γ, Σ_l w_l mom_{γ+γ'}(max(x_k, x_l)) high_γ'(x_l), γ' along the columns.
    """

    def __init__(self, side: Side, w: FloatArray, pushed: list[FloatArray]) -> None:
        self._side = side
        self._w = w
        self._pushed = pushed
        self._low_sum: FloatArray = side.zeta_low.T @ w
        self._moment_sums = [side.group_moments(k).T @ w for k in range(len(pushed))]

    @cached_property
    def gradient(self) -> FloatArray:
        basis, low_sum = self._side.basis, self._low_sum
        if len(basis.groups) == 1:
            weighted = self._side.zeta_high * self._w[:, None]
            high = weighted.T @ self._pushed[0]
            cross = np.outer(self._moment_sums[0], low_sum)
            low = basis.box_moments[0, 0] * np.outer(low_sum, low_sum)
            return basis.join(0.5 * (high + high.T), cross, low)
        width, low_width = self._side.zeta_high.shape[1], self._side.zeta_low.shape[1]
        high, cross = np.empty((width, width)), np.empty((width, low_width))
        low = np.empty((low_width, low_width))
        for k, g in enumerate(basis.groups):
            rows = basis.high_groups[k]
            high[rows] = (self._side.zeta_high[:, rows] * self._w[:, None]).T @ self._pushed[k]
            cross[:, g] = np.outer(self._moment_sums[k], low_sum[g])
            for other, h in enumerate(basis.groups):
                weight = basis.box_moments[other, k]
                low[np.ix_(h, g)] = weight * np.outer(low_sum[h], low_sum[g])
        return basis.join(0.5 * (high + high.T), cross, low)

    def scores(self, P: FloatArray) -> FloatArray:
        """See :meth:`Moments.scores`."""
        if len(self._pushed) == 1 and len(P) <= 2 * _FEW_MONOMIALS:
            return self._scores_of_matrix(P)
        return self.factor_scores(symmetric_factors(P))

    def factor_scores(self, factors: Factors) -> FloatArray:
        """See :meth:`Moments.factor_scores`."""
        left, right = factors
        if len(self._pushed) == 1:
            diagonal = diagonal_square(right) if left is right else None
            if diagonal is not None:
                sums = self._pushed[0], self._moment_sums[0], self._low_sum
                return self._side.weighted_scores(diagonal, *sums)
            return self._scores_of_one_power(left, right)
        ours = self._side.factor(left)
        result = np.zeros(len(self._side))
        for k, (pushed, low_sum, mixed) in enumerate(self._totals(right)):
            result += np.einsum("kr,kr->k", ours.high[k], pushed)
            result += ours.moment[k] @ low_sum
            result += ours.low[k] @ mixed
        return result

    def _scores_of_matrix(self, P: FloatArray) -> FloatArray:
        """Return the scores for a symmetric P and one power of z, without factors of P."""
        side, basis = self._side, self._side.basis
        high, low = basis.split(P)
        both, mixed = basis.split(high.T)
        own = basis.split(low.T)[1]
        tail = basis.box_moments[0, 0] * self._low_sum
        result: FloatArray = np.einsum("kp,kp->k", side.zeta_high @ both, self._pushed[0])
        result += side.moment_ratio * (side.zeta_high @ (self._low_sum @ mixed))
        result += side.zeta_low @ (mixed @ self._moment_sums[0] + own @ tail)
        return result

    def _scores_of_one_power(self, left: FloatArray, right: FloatArray) -> FloatArray:
        """Return the scores for one power of z, in which the separable part is a few vectors."""
        side, basis = self._side, self._side.basis
        (high, low), (other_high, other_low) = basis.split(left), basis.split(right)
        tail = self._low_sum @ other_low
        mixed = self._moment_sums[0] @ other_high + basis.box_moments[0, 0] * tail
        if left.shape[1] > len(high):  # products over the columns are products over the monomials
            ours, theirs = side.zeta_high @ (high @ other_high.T), self._pushed[0]
        else:
            ours, theirs = side.zeta_high @ high, self._pushed[0] @ other_high
        result: FloatArray = np.einsum("kr,kr->k", ours, theirs)
        result += side.moment_ratio * (side.zeta_high @ (high @ tail))
        result += side.zeta_low @ (low @ mixed)
        return result

    def sensitivities(self, face: Face, rows: NDArray[np.intp]) -> Sensitivities:
        """See :meth:`Moments.sensitivities`."""
        V = np.eye(self._side.basis.n_params) if face is None else face
        if len(self._side.basis.groups) == 1:
            return self._factored_sensitivities(V, rows)
        ours = self._side.factor(V)
        totals = self._totals(V)
        gamma = np.zeros((len(rows), V.shape[1], V.shape[1]))
        for k, (pushed, low_sum, mixed) in enumerate(totals):
            gamma += ours.high[k][rows][:, :, None] * pushed[rows][:, None, :]
            gamma += ours.moment[k][rows][:, :, None] * low_sum
            gamma += ours.low[k][rows][:, :, None] * mixed
        return DenseSensitivities(gamma)

    def _factored_sensitivities(
        self, V: FloatArray, rows: NDArray[np.intp]
    ) -> FactoredSensitivities:
        """Return sensitivities for one power of z, where moment_k is a multiple of high_k."""
        side, basis = self._side, self._side.basis
        high, low = basis.split(V)
        tail = self._low_sum @ low
        h = self._moment_sums[0] @ high + basis.box_moments[0, 0] * tail
        zeta_high, zeta_low = side.zeta_high[rows], side.zeta_low[rows]
        pushed = self._pushed[0][rows]
        if V.shape[1] < len(V):  # in coordinates of the span V
            zeta_high, zeta_low, pushed = zeta_high @ high, zeta_low @ low, pushed @ high
            high = low = np.eye(V.shape[1])
        followed = SensitiveRows(high=zeta_high, low=zeta_low, ratio=side.moment_ratio[rows])
        return FactoredSensitivities(followed, high, low, pushed, tail, h)

    def _totals(self, right: FloatArray) -> list[tuple[FloatArray, FloatArray, FloatArray]]:
        """Return the factors of `high`, `moment` and `low` of a row for each power of z."""
        basis = self._side.basis
        high, low = basis.split(right)
        low_sums = np.array([self._low_sum[g] @ low[g] for g in basis.groups])
        return [
            (
                self._pushed[k] @ high,
                low_sums[k],
                self._moment_sums[k] @ high + basis.box_moments[k] @ low_sums,
            )
            for k in range(len(basis.groups))
        ]
