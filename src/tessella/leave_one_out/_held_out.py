"""The error of held-out rows as a function of the kernel of a squared-loss machine.

With ``G = (K + Λ)⁻¹`` on the rows of the fit, ``H = G - G11ᵀG / (1ᵀG1)`` and ``p = G1 / (1ᵀG1)``,
the coefficients are ``a = HY`` and the predictions of other rows with the kernel matrix L are
``La + 1 pᵀY``. A change of both kernel matrices changes the predictions by
``dL a - (LH + 1pᵀ) dK a``, so that the gradient of any function of them has the rank of Y. It costs
one Cholesky factorisation, while the leave-one-out error needs an inverse and a product as well.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from tessella.leave_one_out._gradient import cholesky_factor

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class HeldOutGradient:
    """Predictions of held-out rows and the gradient of their mean squared error.

    Attributes
    ----------
    error : float
        Weighted mean over the held-out rows of the squared errors, summed over the outputs.
    predictions : ndarray of shape (m - n_fitted, k)
        Predictions of the held-out rows.
    kernel_gradient : ndarray of shape (m, m)
        Symmetric matrix M whose inner product with a change of K is the change of the error.
    diagonal_gradient : float
        Derivative of the error by the logarithm of the regularisation.
    """

    error: float
    predictions: FloatArray
    kernel_gradient: FloatArray
    diagonal_gradient: float


def held_out_gradient(
    K: FloatArray, Y: FloatArray, regularisation: float, weight: FloatArray, n_fitted: int
) -> HeldOutGradient:
    """Fit a squared-loss machine to the first rows, and differentiate the error of the others.

    Parameters
    ----------
    K : ndarray of shape (m, m)
        Kernel matrix of all rows.
    Y : ndarray of shape (m, k)
        Targets.
    regularisation : float
        Number that is added to the diagonal of K, divided by the weight of each row. It is 1 / C.
    weight : ndarray of shape (m,)
        Weight of each row in the loss or, for the held-out rows, in the error.
    n_fitted : int
        Number of rows that the machine is fitted to. The other rows are held out.

    Returns
    -------
    HeldOutGradient
        Error, predictions and gradient.

    Raises
    ------
    NotPositiveDefiniteError
        If rounding makes the matrix indefinite.

    See Also
    --------
    leave_one_out_gradient : The same for the leave-one-out error, which uses every row for both.

    Examples
    --------
    >>> import numpy as np
    >>> from tessella.leave_one_out import held_out_gradient
    >>> x = np.random.default_rng(0).random(30)
    >>> squares = (x[:, None] - x) ** 2
    >>> def error(width):
    ...     K = np.exp(-squares / width)
    ...     return held_out_gradient(K, np.sin(6 * x)[:, None], 0.1, np.ones(30), 20)
    >>> found = error(0.5)
    >>> slope = np.sum(found.kernel_gradient * np.exp(-squares / 0.5) * squares / 0.5**2)
    >>> difference = (error(0.5 + 1e-6).error - error(0.5 - 1e-6).error) / 2e-6
    >>> bool(np.isclose(slope, difference, rtol=1e-5))
    True
    """
    ridge = regularisation / weight[:n_fitted]
    factor = cholesky_factor(K[:n_fitted, :n_fitted], ridge)
    sums, coef, intercept = _machine(factor, Y[:n_fitted])
    cross = K[n_fitted:, :n_fitted]
    predictions = cross @ coef + intercept
    errors = predictions - Y[n_fitted:]
    share = weight[n_fitted:] / weight[n_fitted:].sum()
    error = float(share @ (errors * errors).sum(axis=1))
    slopes = 2.0 * share[:, None] * errors
    back = _solved(factor, cross.T @ slopes)
    back -= sums * ((back.sum(axis=0) - slopes.sum(axis=0)) / sums.sum())
    by_ridge = -float(ridge @ (back * coef).sum(axis=1))
    half = 0.5 * np.vstack([-back, slopes]) @ coef.T
    M = np.zeros_like(K)
    M[:, :n_fitted] = half
    M[:n_fitted] += half.T
    return HeldOutGradient(error, predictions, M, by_ridge)


def held_out_predictions(
    K: FloatArray, Y: FloatArray, regularisation: float, weight: FloatArray
) -> FloatArray:
    """Fit a squared-loss machine to the first rows and predict the others.

    Parameters
    ----------
    K : ndarray of shape (m, n_fitted)
        Kernel matrix of all rows and those of the fit.
    Y : ndarray of shape (n_fitted, k)
        Targets of the rows of the fit.
    regularisation : float
        Number that is added to the diagonal of K, divided by the weight of each row. It is 1 / C.
    weight : ndarray of shape (n_fitted,)
        Weight of each row of the fit.

    Returns
    -------
    ndarray of shape (m - n_fitted, k)
        Predictions.

    Raises
    ------
    NotPositiveDefiniteError
        If rounding makes the matrix indefinite.

    Examples
    --------
    >>> import numpy as np
    >>> from tessella.leave_one_out import held_out_predictions
    >>> x = np.linspace(0.0, 1.0, 21)
    >>> order = np.append(np.arange(0, 21, 2), np.arange(1, 21, 2))
    >>> K = np.exp(-np.subtract.outer(x[order], x[order[:11]]) ** 2)
    >>> found = held_out_predictions(K, x[order[:11], None], 1e-6, np.ones(11))
    >>> bool(np.allclose(found[:, 0], x[order[11:]], atol=1e-3))
    True
    """
    n_fitted = len(Y)
    factor = cholesky_factor(K[:n_fitted], regularisation / weight)
    _, coef, intercept = _machine(factor, Y)
    return np.asarray(K[n_fitted:] @ coef + intercept)


def _machine(factor: FloatArray, Y: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return G1, the coefficients and the intercepts."""
    solved = _solved(factor, np.column_stack([np.ones(len(Y)), Y]))
    sums, raw = solved[:, :1], solved[:, 1:]
    intercept = raw.sum(axis=0) / sums.sum()
    return sums, raw - sums * intercept, intercept


def _solved(factor: FloatArray, right: FloatArray) -> FloatArray:
    solution, _ = lapack.dpotrs(factor, right, lower=1)
    return np.asarray(solution)
