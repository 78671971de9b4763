"""Leave-one-out of a machine with the squared loss for one value of C, by a Cholesky factor."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg.lapack import dpotrf, dpotrs, dtrtri

from tessella.leave_one_out._centring import Centring
from tessella.leave_one_out._ridge import RidgePath
from tessella.leave_one_out._squared import (
    RidgeSolution,
    checked_fraction,
    checked_grid,
    checked_kernel,
    checked_targets,
    checked_weight,
    spread_without,
)

FloatArray = NDArray[np.float64]

# Above this product of C and the norm of the matrix, a Cholesky factor has lost too many digits
# of the directions in which the kernel matrix is singular.
_LARGEST_CHOLESKY_CONDITION = 1e8


def ridge_leave_one_out(
    K: NDArray[np.float64],
    Y: ArrayLike,
    C: float,
    sample_weight: ArrayLike | None = None,
    *,
    left_out: ArrayLike | None = None,
    overwrite: bool = False,
) -> RidgeSolution:
    """Fit a kernel machine with the squared loss and leave out each row in turn, for one C.

    Parameters
    ----------
    K : ndarray of shape (m, m)
        Symmetric positive semidefinite kernel matrix in float64. It may be singular.
    Y : array-like of shape (m,) or (m, k)
        Targets, one column for each output.
    C : float
        Weight of the loss; positive.
    sample_weight : array-like of shape (m,), optional
        Positive weights of the rows. By default all of them are 1.
    left_out : array-like of shape (m,), optional
        Fraction of the weight of each row that is left out with it, above 0 and at most 1. The
        default, the smaller one of 1 and ``1 / sample_weight``, treats weights as numbers of
        copies.
    overwrite : bool, default=False
        Whether the memory of `K` may be used. `K` is useless afterwards.

    Returns
    -------
    RidgeSolution
        Coefficients, intercepts and leave-one-out residuals, with one column for each output.

    See Also
    --------
    RidgePath : The same for many values of C, and for groups of rows.

    Notes
    -----
    Takes 2m³/3 operations in level 3 BLAS, by a Cholesky factorisation and the inverse of the
    factor, and holds m² numbers. For more than about five values of C, :class:`RidgePath` is
    faster. If C times the norm of the matrix exceeds 1e8, the factor would lose the directions in
    which K is singular, and the result is computed by :class:`RidgePath`.

    Examples
    --------
    >>> import numpy as np
    >>> from tessella.leave_one_out import ridge_leave_one_out
    >>> solution = ridge_leave_one_out(np.zeros((3, 3)), [1.0, 2.0, 6.0], C=1.0)
    >>> solution.intercept.round(6).tolist()
    [3.0]
    >>> solution.loo_residuals.ravel().round(6).tolist()
    [-3.0, -1.5, 4.5]
    """
    K = checked_kernel(K)
    weight = checked_weight(sample_weight, len(K))
    fraction = checked_fraction(left_out, weight)
    Y = checked_targets(Y, len(K))
    strength = float(checked_grid([C])[0])
    if strength * float(weight.max()) * float(np.linalg.norm(K)) > _LARGEST_CHOLESKY_CONDITION:
        return RidgePath(K, weight, left_out=fraction, overwrite=overwrite).fit(Y, strength)
    kernel_sums = K @ weight
    centring = Centring(weight)
    inverse = _inverse_factor(centring, K, strength, overwrite)
    errors = inverse @ centring.targets(Y)
    errors = centring.root[:, None] * centring.reflect(inverse.T @ errors)
    coef = strength * errors
    intercept = (weight @ Y - kernel_sums @ coef) / weight.sum()
    centring.reflect_in_place(inverse.T)
    spread = spread_without(weight, fraction, np.einsum("ij,ij->j", inverse, inverse))
    return RidgeSolution(coef, intercept, errors / spread[:, None])


def last_left_out(
    K: NDArray[np.float64],
    Y: FloatArray,
    C: float,
    weight: FloatArray,
    left_out: FloatArray,
    count: int,
) -> FloatArray:
    """Leave out each of the last rows of a machine with the squared loss, for one C.

    Parameters
    ----------
    K : ndarray of shape (m, m)
        Symmetric positive semidefinite kernel matrix, whose memory is used.
    Y : ndarray of shape (m, k)
        Targets.
    C : float
        Weight of the loss.
    weight : ndarray of shape (m,)
        Positive weight of each row.
    left_out : ndarray of shape (m,)
        Fraction of the weight of each row that is left out with it.
    count : int
        Number of the rows to leave out.

    Returns
    -------
    ndarray of shape (count, k)
        Targets of the last rows minus their scores in the machines that have not seen them.

    See Also
    --------
    ridge_leave_one_out : The same for all rows, which takes the inverse of the whole factor.

    Notes
    -----
    Takes a Cholesky factorisation, because the last rows and columns of the inverse of a matrix
    need nothing but the last rows and columns of its factor. The relative error of the residuals is
    about 1e-16 times C times the norm of the weighted kernel matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from tessella.leave_one_out import last_left_out
    >>> ones = np.ones(3)
    >>> y = np.array([[1.0], [2.0], [6.0]])
    >>> last_left_out(np.zeros((3, 3)), y, 1.0, ones, ones, 2).ravel().round(6).tolist()
    [-1.5, 4.5]
    """
    centring = Centring(weight)
    factor = _factor(centring, K, C, overwrite=True)
    right = np.column_stack([centring.normal, centring.targets(Y)])
    right[0, 0] = 0.0  # the first axis, that of the intercept, has no part in the inverse
    solved = dpotrs(factor, right, lower=1)[0]
    first = len(K) - count
    corner = dtrtri(factor[first:, first:], lower=1)[0]
    if first == 0:
        corner[0, 0] = 0.0
    spread = centring.last_diagonal(np.einsum("ij,ij->j", corner, corner), solved[:, 0])
    errors = centring.root[first:, None] * centring.reflect(solved[:, 1:])[first:]
    divisor = spread_without(weight[first:], left_out[first:], spread)
    return np.asarray(errors / divisor[:, None])


def _inverse_factor(centring: Centring, K: FloatArray, C: float, overwrite: bool) -> FloatArray:
    """Inverse of the Cholesky factor of I + C QAQ, with a zero first row and column."""
    inverse: FloatArray = dtrtri(_factor(centring, K, C, overwrite), lower=1, overwrite_c=1)[0]
    inverse[0, 0] = 0.0
    return inverse


def _factor(centring: Centring, K: FloatArray, C: float, overwrite: bool) -> FloatArray:
    """Lower Cholesky factor of I + C QAQ, of which the first row and column are those of I."""
    matrix = centring.matrix(K, overwrite)
    matrix *= C
    matrix.flat[:: len(K) + 1] += 1.0
    factor, failed = dpotrf(matrix, lower=1, clean=1, overwrite_a=1)
    if failed:
        raise ValueError(
            "K is not positive semidefinite: the Cholesky factorisation of K plus a positive "
            "diagonal has failed."
        )
    return np.asarray(factor)
