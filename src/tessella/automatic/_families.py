"""Families of kernels with one scale for each column, and the gradient of a sum over pairs.

A search compares families whose only parameters are the logarithms of the scales of the columns.
Each family is evaluated on coordinates of the unit cube, in which a column of numbers varies from
0 to 1. The gradient is that of ``sum(M * K)`` for a symmetric matrix M that is held fixed, which is
all that the gradient of any function of K needs.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tessella.kernels import absolute_pair_sums, laplace_gram
from tessella.kernels._distances import square_distances

FloatArray = NDArray[np.float64]

# The standard deviation of a uniform variable on [0, 1] is 1 / sqrt(12).
_UNIFORM_DEVIATION = 12.0**-0.5
# Margins below this one make the kernel of a column that of equal values only.
_SMALLEST_MARGIN = 1e-3


class Family(Protocol):
    """A family of kernels with one parameter for each column.

    Attributes
    ----------
    name : str
        Name of the family, which is the value of `kernels` of the estimators.
    widths : tuple of float
        Widths from which a search starts, relative to the spread of the data.
    """

    name: str
    widths: tuple[float, ...]

    def start(self, width: float, n_columns: int) -> float:
        """Return the parameter that gives every column the same share of a width."""
        ...

    def gram(self, A: FloatArray, scales: FloatArray, B: FloatArray | None = None) -> FloatArray:
        """Return the kernel matrix between the rows of A and those of B, by default those of A."""
        ...

    def steepness(self, scales: FloatArray) -> FloatArray:
        """Return how fast the kernel falls along each column."""
        ...

    def gradient(self, W: FloatArray, A: FloatArray, scales: FloatArray) -> FloatArray:
        """Return the derivatives of ``sum(M * K)`` by the parameters, with ``W = M * K``."""
        ...

    def slopes(self, W: FloatArray, A: FloatArray, B: FloatArray, scales: FloatArray) -> FloatArray:
        """Return the derivatives of ``sum(M * K)`` by the rows of A, with ``W = M * K``.

        K is the kernel matrix between the rows of A and those of B. Where a kernel has a kink, the
        derivative is the mean of those on both sides.
        """
        ...


class LaplaceFamily:
    """The kernels ``exp(-sum(exp(scale) * |x - y|))``, of rough functions."""

    name = "laplace"
    widths = (0.15, 0.4, 1.0, 3.0)

    def start(self, width: float, n_columns: int) -> float:
        """See :meth:`Family.start`."""
        return float(-np.log(width * n_columns * _UNIFORM_DEVIATION))

    def gram(self, A: FloatArray, scales: FloatArray, B: FloatArray | None = None) -> FloatArray:
        """See :meth:`Family.gram`."""
        factors = np.exp(scales)
        return laplace_gram(A * factors, None if B is None else B * factors, n_jobs=1)

    def steepness(self, scales: FloatArray) -> FloatArray:
        """See :meth:`Family.steepness`."""
        return np.exp(scales)

    def gradient(self, W: FloatArray, A: FloatArray, scales: FloatArray) -> FloatArray:
        """See :meth:`Family.gradient`."""
        return -np.exp(scales) * absolute_pair_sums(W, A, n_jobs=1)

    def slopes(self, W: FloatArray, A: FloatArray, B: FloatArray, scales: FloatArray) -> FloatArray:
        """See :meth:`Family.slopes`."""
        return -np.exp(scales) * _sign_sums(W, A, B)


class GaussianFamily:
    """The kernels ``exp(-sum(exp(2 * scale) * (x - y)**2) / 2)``, of smooth functions."""

    name = "gaussian"
    widths = (0.15, 0.4, 1.0, 3.0)

    def start(self, width: float, n_columns: int) -> float:
        """See :meth:`Family.start`."""
        return float(-np.log(width * np.sqrt(n_columns) * _UNIFORM_DEVIATION))

    def gram(self, A: FloatArray, scales: FloatArray, B: FloatArray | None = None) -> FloatArray:
        """See :meth:`Family.gram`."""
        K = _scaled_squares(A, 0.5**0.5 * np.exp(scales), B)
        np.negative(K, out=K)
        return np.exp(K, out=K)

    def steepness(self, scales: FloatArray) -> FloatArray:
        """See :meth:`Family.steepness`."""
        return np.exp(scales)

    def gradient(self, W: FloatArray, A: FloatArray, scales: FloatArray) -> FloatArray:
        """See :meth:`Family.gradient`."""
        return _square_sums(W, A, scales)

    def slopes(self, W: FloatArray, A: FloatArray, B: FloatArray, scales: FloatArray) -> FloatArray:
        """See :meth:`Family.slopes`."""
        return -_differences(W, A, B) * np.exp(2.0 * scales)


class MaternFamily:
    """The Matérn kernels ``(1 + r) exp(-r)`` of functions with one derivative.

    The distance is ``r² = 3 * sum(exp(2 * scale) * (x - y)**2)``.
    """

    name = "matern"
    widths = (0.15, 0.4, 1.0, 3.0)

    def start(self, width: float, n_columns: int) -> float:
        """See :meth:`Family.start`."""
        return float(-np.log(width * np.sqrt(n_columns) * _UNIFORM_DEVIATION))

    def gram(self, A: FloatArray, scales: FloatArray, B: FloatArray | None = None) -> FloatArray:
        """See :meth:`Family.gram`."""
        distances = self._distances(A, scales, B)
        K: FloatArray = np.exp(-distances)
        K *= 1.0 + distances
        return K

    def steepness(self, scales: FloatArray) -> FloatArray:
        """See :meth:`Family.steepness`."""
        return np.exp(scales)

    def gradient(self, W: FloatArray, A: FloatArray, scales: FloatArray) -> FloatArray:
        """See :meth:`Family.gradient`."""
        # The derivative by r² / 2 is -exp(-r), which is -K / (1 + r).
        return 3.0 * _square_sums(W / (1.0 + self._distances(A, scales, None)), A, scales)

    def slopes(self, W: FloatArray, A: FloatArray, B: FloatArray, scales: FloatArray) -> FloatArray:
        """See :meth:`Family.slopes`."""
        W = W / (1.0 + self._distances(A, scales, B))
        return -3.0 * _differences(W, A, B) * np.exp(2.0 * scales)

    def _distances(self, A: FloatArray, scales: FloatArray, B: FloatArray | None) -> FloatArray:
        squares = _scaled_squares(A, 3.0**0.5 * np.exp(scales), B)
        return np.sqrt(squares, out=squares)


class TessellatedFamily:
    """Tessellated kernels of degree 0 with pointwise balance and one margin for each column.

    The kernel is the product of ``sqrt((1 + margin - max(x, y)) / (1 + margin - min(x, y)))``, and
    the parameter is minus the logarithm of the margin, so that a larger parameter is a narrower
    kernel in every family.
    """

    name = "tessellated"
    widths = (0.05, 0.2, 1.0, 4.0)

    def start(self, width: float, n_columns: int) -> float:
        """See :meth:`Family.start`; a margin is not divided among the columns."""
        del n_columns
        return float(-np.log(width))

    def gram(self, A: FloatArray, scales: FloatArray, B: FloatArray | None = None) -> FloatArray:
        """See :meth:`Family.gram`."""
        right = None if B is None else _warped(B, scales)
        return laplace_gram(_warped(A, scales), right, n_jobs=1)

    def steepness(self, scales: FloatArray) -> FloatArray:
        """See :meth:`Family.steepness`."""
        return 0.5 / (0.5 + np.exp(-scales))

    def gradient(self, W: FloatArray, A: FloatArray, scales: FloatArray) -> FloatArray:
        """See :meth:`Family.gradient`."""
        margins = np.where(np.exp(-scales) > _SMALLEST_MARGIN, np.exp(-scales), 0.0)
        # |u - v| of the warped coordinates falls with the margin as fast as these differences.
        return -margins * absolute_pair_sums(W, 0.5 / _room(A, scales), n_jobs=1)

    def slopes(self, W: FloatArray, A: FloatArray, B: FloatArray, scales: FloatArray) -> FloatArray:
        """See :meth:`Family.slopes`."""
        return -_sign_sums(W, A, B) * 0.5 / _room(A, scales)


FAMILIES: dict[str, Any] = {
    family.name: family
    for family in (LaplaceFamily(), GaussianFamily(), MaternFamily(), TessellatedFamily())
}


def _scaled_squares(A: FloatArray, factors: FloatArray, B: FloatArray | None) -> FloatArray:
    """Return the squared distances of scaled rows of the unit cube."""
    # Smaller norms leave more digits of the distances, whatever the point that they are from.
    left = (A - 0.5) * factors
    return square_distances(left, None if B is None else (B - 0.5) * factors)


def _square_sums(W: FloatArray, A: FloatArray, scales: FloatArray) -> FloatArray:
    """Return ``-sum(W * exp(2 * scale) * (x - y)**2)`` over all pairs of rows for each column."""
    Z = A * np.exp(scales)
    half: FloatArray = np.einsum("ij,ij->j", Z, W @ Z) - W.sum(axis=1) @ (Z * Z)
    return 2.0 * half


def _differences(W: FloatArray, A: FloatArray, B: FloatArray) -> FloatArray:
    """Return ``sum(W * (x - y))`` over the rows y of B, for each row x of A and each column."""
    sums: FloatArray = W.sum(axis=1)[:, None] * A - W @ B
    return sums


def _sign_sums(W: FloatArray, A: FloatArray, B: FloatArray) -> FloatArray:
    """Return ``sum(W * sign(x - y))`` over the rows y of B, as :func:`_differences` does."""
    sums = np.empty_like(A)
    for j in range(A.shape[1]):
        signs = np.sign(A[:, j, None] - B[:, j])
        sums[:, j] = np.einsum("ij,ij->i", W, signs)
    return sums


def _room(A: FloatArray, scales: FloatArray) -> FloatArray:
    margins = np.maximum(np.exp(-scales), _SMALLEST_MARGIN)
    # Only new rows can be so far beyond the training rows that there is less room than this.
    return np.maximum(1.0 + margins - A, _SMALLEST_MARGIN)


def _warped(A: FloatArray, scales: FloatArray) -> FloatArray:
    return -0.5 * np.log(_room(A, scales))
