"""The leave-one-out error of a squared-loss machine as a function of its kernel, with its gradient.

With ``G = (K + Λ)⁻¹`` and ``H = G - G11ᵀG / (1ᵀG1)``, the coefficients are ``a = HY`` and the
residual of row i in the fit without it is ``r_i = a_i / H_ii``, or ``r_i = a_i / d_i`` with
``d_i = (1 - φ) / Λ_ii + φ H_ii`` in the fit without the fraction φ of its weight. A change dK of
the kernel matrix changes H by ``-H dK H``. The derivative of the weighted mean of the squared
residuals is therefore ``<M, dK>`` with one symmetric matrix M, whatever the parameters of the
kernel are, and costs a Cholesky factorisation, an inverse and one product of matrices.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack
from scipy.linalg.blas import dsymv, dsyr, dsyr2k, dsyrk

FloatArray = NDArray[np.float64]


_TILE = 128  # side of a square of numbers that fits in the second-level cache


class NotPositiveDefiniteError(ArithmeticError):
    """A kernel matrix with its diagonal has no Cholesky factor in floating point."""


@dataclass(frozen=True)
class LeaveOneOutGradient:
    """Leave-one-out residuals of one kernel matrix and the gradient of their mean square.

    Attributes
    ----------
    error : float
        Weighted mean over the counted rows of the squared residuals, summed over the outputs.
    residuals : ndarray of shape (m, k)
        Residual of every row in the fit without this row.
    coef : ndarray of shape (m, k)
        Coefficients of the fit to all rows.
    intercept : ndarray of shape (k,)
        Intercepts of the fit to all rows.
    kernel_gradient : ndarray of shape (m, m)
        Symmetric matrix M whose inner product with a change of K is the change of the error.
    diagonal_gradient : float
        Derivative of the error by the logarithm of the regularisation.
    """

    error: float
    residuals: FloatArray
    coef: FloatArray
    intercept: FloatArray
    kernel_gradient: FloatArray
    diagonal_gradient: float


def leave_one_out_gradient(
    K: FloatArray,
    Y: FloatArray,
    regularisation: float,
    weight: FloatArray,
    counted: FloatArray,
    left_out: FloatArray | None = None,
) -> LeaveOneOutGradient:
    """Compute the leave-one-out error of counted rows and its gradient.

    Parameters
    ----------
    K : ndarray of shape (m, m)
        Kernel matrix.
    Y : ndarray of shape (m, k)
        Targets.
    regularisation : float
        Number that is added to the diagonal of K, divided by the weight of each row. It is 1 / C.
    weight : ndarray of shape (m,)
        Weight of each row in the loss.
    counted : ndarray of shape (m,)
        Weight of each row in the error. Rows with weight zero are used by the fits but their own
        residuals are not part of the error.
    left_out : ndarray of shape (m,), optional
        Fraction of the weight of each row that is left out with it, above 0 and at most 1. By
        default, rows are left out as a whole. It is 1 / k for a row that stands for k copies of
        which one is left out.

    Returns
    -------
    LeaveOneOutGradient
        Error, residuals and gradient.

    Raises
    ------
    NotPositiveDefiniteError
        If rounding makes the matrix indefinite.

    Notes
    -----
    The cost is a Cholesky factorisation, an inverse and a product of matrices of side m. With
    parameters t of the kernel, the derivative of the error by t is the sum of the products of the
    entries of `kernel_gradient` and of dK/dt.

    Examples
    --------
    >>> import numpy as np
    >>> from tessella.leave_one_out import leave_one_out_gradient
    >>> x, ones = np.linspace(0.0, 1.0, 20), np.ones(20)
    >>> squares = (x[:, None] - x) ** 2
    >>> def error(width):
    ...     K = np.exp(-squares / width)
    ...     return leave_one_out_gradient(K, np.sin(6 * x)[:, None], 0.1, ones, ones)
    >>> found = error(0.5)
    >>> slope = np.sum(found.kernel_gradient * np.exp(-squares / 0.5) * squares / 0.5**2)
    >>> difference = (error(0.5 + 1e-6).error - error(0.5 - 1e-6).error) / 2e-6
    >>> bool(np.isclose(slope, difference, rtol=1e-5))
    True
    """
    ridge = regularisation / weight
    H = _centred_inverse(K, ridge)
    a = H @ Y
    fraction = np.ones(len(K)) if left_out is None else left_out
    divisor = (1.0 - fraction) / ridge + fraction * np.diag(H)
    residuals = a / divisor[:, None]
    share = counted / counted.sum()
    error = float(share @ (residuals * residuals).sum(axis=1))
    u = (2.0 * share / divisor)[:, None] * residuals
    slopes = (u * residuals).sum(axis=1)  # minus the derivatives of the error by the divisors
    M = dsyrk(1.0, H * np.sqrt(fraction * slopes), lower=1)
    M = dsyr2k(-0.5, np.asfortranarray(H @ u), a, beta=1.0, c=M, lower=1, overwrite_c=1)
    mirror_lower(M)
    by_ridge = float(ridge @ np.diag(M)) + float(slopes @ ((1.0 - fraction) / ridge))
    # The residuals of the fit are ridge * a.
    intercept = (Y - ridge[:, None] * a - K @ a).mean(axis=0)
    # The transpose of a symmetric matrix is in row-major order, as kernel matrices are.
    return LeaveOneOutGradient(error, residuals, a, intercept, M.T, by_ridge)


def cholesky_factor(K: FloatArray, ridge: FloatArray) -> FloatArray:
    """Return the lower Cholesky factor of ``K + diag(ridge)``, in column-major order."""
    regularised = K.copy()
    regularised[np.diag_indices_from(regularised)] += ridge
    # The matrix is symmetric, so its transpose is the column-major matrix that LAPACK overwrites.
    factor, failed = lapack.dpotrf(regularised.T, lower=1, overwrite_a=1)
    if failed:
        raise NotPositiveDefiniteError
    return np.asarray(factor)


def mirror_lower(matrix: FloatArray) -> None:
    """Copy the triangle below the diagonal to that above, in tiles that stay in the cache."""
    tiles = [slice(k, k + _TILE) for k in range(0, len(matrix), _TILE)]
    for place, rows in enumerate(tiles):
        for columns in tiles[:place]:
            matrix[columns, rows] = matrix[rows, columns].T
        own = matrix[rows, rows]
        own[...] = np.tril(own) + np.tril(own, -1).T


def _centred_inverse(K: FloatArray, ridge: FloatArray) -> FloatArray:
    """Return ``G - G11ᵀG / (1ᵀG1)`` for ``G = (K + diag(ridge))⁻¹``, in column-major order."""
    H: FloatArray
    H, _ = lapack.dpotri(cholesky_factor(K, ridge), lower=1, overwrite_c=1)
    sums = dsymv(1.0, H, np.ones(len(H)), lower=1)
    H = dsyr(-1.0 / sums.sum(), sums, a=H, lower=1, overwrite_a=1)
    mirror_lower(H)
    return H
