"""Kernel matrices on the vectors of weighted sum zero, where the intercept has disappeared.

With A = S^{1/2} K S^{1/2} and q = S^{1/2} 1, the machine without its intercept lives on the
hyperplane of vectors orthogonal to q. A reflection Q that takes q to the first axis turns this
hyperplane into all coordinates but the first. On it,

    H = G - G11ᵀG / (1ᵀG1) = S^{1/2} Q (QAQ + λI)⁻¹ Q S^{1/2},      G = (K + λS⁻¹)⁻¹,

so that the diagonal of H is a sum of squares. The difference on the left loses all its digits
where the two terms are large, that is for a large C and a constant part of the kernel.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dsyr2

FloatArray = NDArray[np.float64]


class Centring:
    """The reflection that takes the roots of the weights to the first axis.

    Parameters
    ----------
    weight : ndarray of shape (m,)
        Positive weights of the rows.

    Attributes
    ----------
    root : ndarray of shape (m,)
        Roots of the weights.
    normal : ndarray of shape (m,)
        Vector that the reflection turns round.
    """

    def __init__(self, weight: FloatArray) -> None:
        self.root = np.sqrt(weight)
        unit = self.root / np.linalg.norm(self.root)
        # The entries of `unit` are positive, so nothing cancels in this sum.
        self.normal = unit.copy()
        self.normal[0] += 1.0
        self._factor = 1.0 / self.normal[0]

    def reflect(self, vectors: FloatArray) -> FloatArray:
        """Return Q times the columns of an array of shape (m, k)."""
        products = self._factor * (self.normal @ vectors)
        reflected: FloatArray = vectors - np.multiply.outer(self.normal, products)
        return reflected

    def reflect_in_place(self, vectors: FloatArray) -> None:
        """Replace the columns of `vectors`, of shape (m, k), by Q times these columns."""
        products = self._factor * (self.normal @ vectors)
        vectors -= np.multiply.outer(self.normal, products)

    def last_diagonal(self, diagonal: FloatArray, product: FloatArray) -> FloatArray:
        """Return the last entries of the diagonal of QNQ for a symmetric matrix N.

        Parameters
        ----------
        diagonal : ndarray of shape (count,)
            Last entries of the diagonal of N.
        product : ndarray of shape (m,)
            N times the normal.
        """
        # A row of Q is a unit vector minus a multiple of the normal.
        first = len(product) - len(diagonal)
        multiple = self._factor * self.normal[first:]
        own: FloatArray = 2.0 * product[first:] - multiple * (self.normal @ product)
        last: FloatArray = diagonal - multiple * own
        return last

    def targets(self, Y: FloatArray) -> FloatArray:
        """Return Q S^{1/2} Y without its part along the first axis."""
        reflected = self.reflect(self.root[:, None] * Y)
        reflected[0] = 0.0
        return reflected

    def matrix(self, K: FloatArray, overwrite: bool) -> FloatArray:
        """Return QAQ in the lower triangle of a Fortran-ordered matrix, with a zero first column.

        Parameters
        ----------
        K : ndarray of shape (m, m)
            Symmetric kernel matrix.
        overwrite : bool
            Whether the result may take the memory of `K`.
        """
        A = _fortran_ordered(K, overwrite)
        if (self.root != 1.0).any():
            A *= self.root
            A *= self.root[:, None]
        product = A @ self.normal
        bend = 0.5 * self._factor * float(self.normal @ product)
        product = self._factor * (product - bend * self.normal)
        reflected: FloatArray = dsyr2(-1.0, self.normal, product, a=A, lower=1, overwrite_a=1)
        reflected[:, 0] = 0.0
        return reflected


def _fortran_ordered(K: FloatArray, overwrite: bool) -> FloatArray:
    """The matrix or, because it is symmetric, its transpose in Fortran order; a copy by default."""
    if not overwrite:
        return np.array(K.T if K.flags.c_contiguous else K, order="F")
    return np.asfortranarray(K.T if K.flags.c_contiguous else K)
