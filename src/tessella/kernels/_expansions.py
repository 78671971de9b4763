"""Kernels on one feature as sums of products, which gives ``wᵀKw`` in a few passes over w.

A polynomial in the product of two numbers is a short sum of products of powers,

    (x y + c)^d = Σ_j binom(d, j) c^(d-j) x^j y^j,

and a Gaussian is a quickly converging one: with u = (x - centre) / bandwidth,

    exp(-(x - y)² / (2 bandwidth²)) = Σ_k φ_k(x) φ_k(y),   φ_k(x) = exp(-u²/2) u^k / √k!.

Hence ``wᵀKw = Σ_k (Σ_i w_i φ_k(x_i))²``. All terms are squares, so nothing cancels. The φ_k(x)² are
the probabilities of a Poisson distribution with mean u², so that the terms from K on add up to at
most ``(Σ|w|)² P(Poisson(max u²) ≥ K)``. K is chosen such that this is below the rounding of a sum
over all pairs of rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import comb
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from tessella.kernels._functions import FloatArray, Gaussian, Polynomial, SingleKernel

IntArray = NDArray[np.intp]

_LOG_TAIL = -42.0  # the natural logarithm of what may be left out, 6e-19
# Most terms of a Gaussian. Up to these, the largest value of exp(-u²/2) u^k is about 1e186.
_MOST_TERMS = 200


@dataclass(frozen=True)
class GaussianSeries:
    """Gaussian kernels on one feature each, with the number of terms that they need.

    Attributes
    ----------
    positions : ndarray of int of shape (n_kernels,)
        Numbers of the kernels, those with the most terms first.
    columns : ndarray of int of shape (n_kernels,)
        Feature of each kernel.
    centres : ndarray of shape (n_kernels,)
        Middle of the range of each feature.
    bandwidths : ndarray of shape (n_kernels,)
        Bandwidth of each kernel.
    terms : ndarray of int of shape (n_kernels,)
        Number of terms of each kernel, in descending order.
    """

    positions: IntArray
    columns: IntArray
    centres: FloatArray
    bandwidths: FloatArray
    terms: IntArray

    @classmethod
    def of(cls, kernels: Sequence[SingleKernel], which: Sequence[int], rows: FloatArray) -> Self:
        """Return the kernels among `which` whose series are short on these rows.

        Parameters
        ----------
        kernels : sequence of SingleKernel
            Kernels of a dictionary.
        which : sequence of int
            Numbers of the kernels that are of interest.
        rows : ndarray of shape (m, n_features)
            Scaled rows. The series hold for all rows within their range.
        """
        own = [(k, kernels[k]) for k in which]
        gaussians = [(k, g) for k, g in own if isinstance(g, Gaussian) and _on_one_feature(g)]
        positions = np.array([k for k, _ in gaussians], dtype=np.intp)
        columns = np.array([_column(g) for _, g in gaussians], dtype=np.intp)
        bandwidths = np.array([float(g.bandwidth) for _, g in gaussians])
        low, high = rows.min(axis=0)[columns], rows.max(axis=0)[columns]
        centres = 0.5 * (low + high)
        terms = series_length((0.5 * (high - low) / bandwidths) ** 2)
        order = np.argsort(-terms, kind="stable")
        everything = cls(
            positions[order], columns[order], centres[order], bandwidths[order], terms[order]
        )
        return everything.for_rows(len(rows))

    def for_rows(self, count: int) -> Self:
        """Return the kernels whose series take less time than their matrices on some rows."""
        long = int(np.searchsorted(-self.terms, -min(_MOST_TERMS, count // 2)))
        return type(self)(
            self.positions[long:],
            self.columns[long:],
            self.centres[long:],
            self.bandwidths[long:],
            self.terms[long:],
        )

    def forms(self, sums: FloatArray) -> FloatArray:
        """Return ``wᵀKw`` of every kernel from what :meth:`sums` returns."""
        squares: FloatArray = np.square(sums).sum(axis=0)
        return squares

    def sums(self, rows: FloatArray, w: FloatArray) -> FloatArray:
        """Return ``Σ_i w_i φ_k(x_i)`` of all terms, of shape (most terms, n_kernels)."""
        orders = np.arange(int(self.terms[0]))
        sums = np.zeros((len(orders), len(self.terms)))
        u = np.ascontiguousarray(((rows[:, self.columns] - self.centres) / self.bandwidths).T)
        values = np.exp(-0.5 * np.square(u))
        counts = np.searchsorted(-self.terms, -orders).tolist()  # of kernels with more terms
        for k, needed in enumerate(counts):
            if k > 0:
                values[:needed] *= u[:needed]
            np.matmul(values[:needed], w, out=sums[k, :needed])
        sums *= np.exp(-0.5 * gammaln(orders + 1.0))[:, None]
        return sums


@dataclass(frozen=True)
class PolynomialSeries:
    """Polynomial kernels on one feature each, as sums of products of powers.

    Attributes
    ----------
    positions : ndarray of int of shape (n_kernels,)
        Numbers of the kernels.
    columns : ndarray of int of shape (n_columns,)
        Features that the kernels use, each once.
    place : ndarray of int of shape (n_kernels,)
        Position of the feature of each kernel in `columns`.
    coefficients : ndarray of shape (largest degree + 1, n_kernels)
        Coefficient of each power of the product of two numbers.
    """

    positions: IntArray
    columns: IntArray
    place: IntArray
    coefficients: FloatArray

    @classmethod
    def of(cls, kernels: Sequence[SingleKernel], which: Sequence[int]) -> Self:
        """Return the polynomial kernels on one feature among `which`."""
        own = [(k, kernels[k]) for k in which]
        found = [(k, p) for k, p in own if isinstance(p, Polynomial) and _on_one_feature(p)]
        positions = np.array([k for k, _ in found], dtype=np.intp)
        used = np.array([_column(p) for _, p in found], dtype=np.intp)
        columns, place = np.unique(used, return_inverse=True)
        most = max((int(p.degree) for _, p in found), default=0)
        coefficients = np.zeros((most + 1, len(found)))
        for k, (_, p) in enumerate(found):
            degree, offset = int(p.degree), float(p.offset)
            for power in range(degree + 1):
                coefficients[power, k] = comb(degree, power) * offset ** (degree - power)
        return cls(positions, columns, place, coefficients)

    def for_rows(self, count: int) -> Self:
        """Return all of the kernels, because powers take little time whatever the rows."""
        del count
        return self

    def forms(self, sums: FloatArray) -> FloatArray:
        """Return ``wᵀKw`` of every kernel from what :meth:`sums` returns."""
        total: FloatArray = (self.coefficients * np.square(sums)[:, self.place]).sum(axis=0)
        return total

    def sums(self, rows: FloatArray, w: FloatArray) -> FloatArray:
        """Return ``Σ_i w_i x_i^j`` of all powers, of shape (largest degree + 1, n_columns)."""
        x = np.ascontiguousarray(rows[:, self.columns].T)
        sums, powers = np.empty((len(self.coefficients), len(x))), np.ones_like(x)
        for j in range(len(sums)):
            if j > 0:
                powers *= x
            sums[j] = powers @ w
        return sums


def _on_one_feature(kernel: Gaussian | Polynomial) -> bool:
    return kernel.features is not None and len(kernel.features) == 1


def _column(kernel: Gaussian | Polynomial) -> int:
    assert kernel.features is not None
    return kernel.features[0]


def series_length(mean: FloatArray) -> IntArray:
    """Return numbers K for which Poisson variables with these means are hardly ever K or more.

    A number above the largest length of a series means that no such series is long enough.
    """
    length: IntArray = 1 + np.searchsorted(_largest_means(), mean)
    return length


@lru_cache(maxsize=1)
def _largest_means() -> FloatArray:
    """Return the largest mean for which K terms are enough, for every K, by bisection.

    The bound is that of Chernoff, ``P(X ≥ K) ≤ exp(K - mean) (mean / K)^K`` for a mean below K,
    which grows with the mean.
    """
    K = np.arange(1.0, _MOST_TERMS + 1)
    low, high = np.zeros_like(K), K.copy()
    for _ in range(60):
        middle = 0.5 * (low + high)
        small = K - middle + K * np.log(middle / K) <= _LOG_TAIL
        low, high = np.where(small, middle, low), np.where(small, high, middle)
    return low
