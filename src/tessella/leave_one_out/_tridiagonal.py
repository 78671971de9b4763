"""A positive semidefinite matrix as VTVᵀ with a tridiagonal matrix T.

An orthogonal V that makes the matrix tridiagonal costs half as much as its eigenvectors, and
``(T + λI)⁻¹`` nearly as little as the inverse of a diagonal matrix: with ``T + λI = LDLᵀ``, the
form ``vᵀ(T + λI)⁻¹v`` is a sum of squares over the solution of ``Lx = v``, in which nothing
cancels. Only where λ is as small as the rounding of the matrix, which directions are null has to be
decided, and that takes the eigenvalues. The matrix then becomes a diagonal one, which is
tridiagonal too.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh_tridiagonal
from scipy.linalg.lapack import dorgqr, dpttrf, dpttrs, dsytrd, dsytrd_lwork

from tessella import _core

FloatArray = NDArray[np.float64]

# Above this product of C and the norm of the matrix, the rounding of T begins to fill null
# directions.
_LARGEST_CONDITION = 2e9


class TridiagonalForm:
    """The products with ``(T + λI)⁻¹`` for many λ, where ``VTVᵀ`` is a given matrix.

    Parameters
    ----------
    matrix : ndarray of shape (m, m)
        Symmetric matrix, of which the lower triangle is read, in Fortran order. Its first row and
        column have to be zero, and are no part of T. The memory is used.

    Attributes
    ----------
    vectors : ndarray of shape (m, m - 1)
        V, in Fortran order, with a first row of zeros.
    smallest, largest : float
        Extreme eigenvalues of T.
    """

    def __init__(self, matrix: FloatArray) -> None:
        size = len(matrix)
        work, _ = dsytrd_lwork(size, lower=1)
        reduced, diagonal, beside, factors, _ = dsytrd(
            matrix, lower=1, lwork=int(work), overwrite_a=1
        )
        self._diagonal = diagonal[1:].copy()
        self._beside = beside[1:].copy() if size > 2 else np.zeros(1)  # SciPy wants an entry
        self.vectors = _orthogonal_factor(reduced, factors)
        self.smallest, self.largest = self._extremes()
        self._rounding = size * np.finfo(float).eps * max(self.largest, -self.smallest)
        if self.smallest < -self._rounding:
            self.diagonalise()

    def diagonalise(self) -> None:
        """Make T diagonal, with zeros for all eigenvalues that rounding cannot tell from zero."""
        if not self._beside.any() and (self._diagonal >= 0.0).all():
            return
        values, vectors = eigh_tridiagonal(
            self._diagonal, self._beside[: len(self._diagonal) - 1], check_finite=False
        )
        self._diagonal = np.where(values > self._rounding, values, 0.0)
        self._beside = np.zeros_like(self._beside)
        self.vectors = np.matmul(vectors.T, self.vectors.T).T  # in Fortran order again

    def solved(self, Cs: FloatArray, Z: FloatArray) -> FloatArray:
        """Return ``(I + CT)⁻¹ Z`` for each C, of shape (n, m - 1, k)."""
        return np.array([dpttrs(*factor, Z)[0] for factor in self._factors(Cs)])

    def forms(self, Cs: FloatArray) -> FloatArray:
        """Return the diagonal of ``V (I + CT)⁻¹ Vᵀ`` for each C, of shape (n, m)."""
        factors = self._factors(Cs)
        ratios = np.zeros((len(Cs), len(self._diagonal)))
        ratios[:, 1:] = [ratio[: ratios.shape[1] - 1] for _, ratio in factors]
        inverses = np.array([1.0 / pivots for pivots, _ in factors])
        forms = np.empty((len(Cs), len(self.vectors)))
        _core.tridiagonal_forms(ratios, inverses, self.vectors.T, forms, 1)
        return forms

    def roots(self, C: float) -> FloatArray:
        """Return the roots of the entries of ``(I + CT)⁻¹`` after :meth:`diagonalise`."""
        return np.asarray(1.0 / np.sqrt(1.0 + C * self._diagonal))

    def _factors(self, Cs: FloatArray) -> list[tuple[FloatArray, FloatArray]]:
        """The entries of D and those of L beside the diagonal of ``I + CT = LDLᵀ``."""
        if Cs.max() * self.largest > _LARGEST_CONDITION:
            self.diagonalise()
        found = []
        for C in Cs:
            pivots, ratios, _ = dpttrf(1.0 + C * self._diagonal, C * self._beside)
            found.append((pivots, ratios))
        return found

    def _extremes(self) -> tuple[float, float]:
        return -_largest(-self._diagonal, self._beside), _largest(self._diagonal, self._beside)


def _largest(diagonal: FloatArray, beside: FloatArray) -> float:
    """Return the largest eigenvalue of a tridiagonal matrix T, to the rounding of its norm.

    A number is above it if and only if that number times I, minus T, is positive definite.
    LAPACK's bisection (dstebz) finds no eigenvalue by its number where many of them are equal.
    """
    reach = np.zeros(len(diagonal) + 1)
    reach[1:-1] = np.abs(beside[: len(diagonal) - 1])
    low, high = float(diagonal.max()), float((diagonal + reach[:-1] + reach[1:]).max())
    least = np.finfo(float).eps * max(abs(low), abs(high), float((reach - diagonal.min()).max()))
    while high - low > least and low < (middle := 0.5 * (low + high)) < high:
        _, _, indefinite = dpttrf(middle - diagonal, beside)
        low, high = (middle, high) if indefinite else (low, middle)
    return high


def _orthogonal_factor(reduced: FloatArray, factors: FloatArray) -> FloatArray:
    """The product of the reflections that LAPACK has left below the diagonal, without an axis."""
    reflections = np.asfortranarray(reduced[1:, :-1])
    work = int(dorgqr(reflections[:1, :1], factors[:1], lwork=-1)[1][0])
    orthogonal, _, _ = dorgqr(reflections, factors, lwork=work * len(factors), overwrite_a=1)
    vectors = np.zeros((len(reduced), len(factors)), order="F")
    vectors[1:] = orthogonal
    return vectors
