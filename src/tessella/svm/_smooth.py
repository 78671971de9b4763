"""The dual problem of a smooth loss without bounds: one linear system with the kernel matrix.

Without bounds the optimality conditions of the dual are linear. With Λ = diag(curvature),

    (K + Λ) w + b 1 = target,      1ᵀw = 0,

so that w = H target with H = G - G11ᵀG / (1ᵀG1) and G = (K + Λ)⁻¹. Machines that see the same rows
with the same curvature share K + Λ, and one Cholesky factorisation serves all of them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from tessella.svm._problem import DualProblem

FloatArray = NDArray[np.float64]

# Numbers added to the diagonal, relative to its mean, until the factorisation succeeds. A kernel
# matrix of low rank has negative eigenvalues of the size of its rounding errors.
_RIDGES = (0.0, 1e-14, 1e-12, 1e-9, 1e-6)
_REFINEMENTS = 2  # rounds of iterative refinement, which undo the number added to the diagonal


class SmoothDual:
    """Machines with a smooth loss without bounds, solved for one kernel matrix.

    Parameters
    ----------
    K : ndarray of shape (m, m)
        Kernel matrix in float64 that all machines share.
    dual : DualProblem
        One or several machines on the m rows of K, whose losses are smooth
        (:attr:`DualProblem.is_smooth`).

    Attributes
    ----------
    w : ndarray of shape (n_machines * m,)
        Optimal dual vector, one machine after the other.
    intercepts : ndarray of shape (n_machines,)
        Intercept of each machine.
    residual : ndarray of shape (n_machines * m,)
        Targets minus scores, without the intercepts.

    Notes
    -----
    The cost is m³/3 operations for the factorisation, which is done once for all machines with
    the same curvature, and 4 m² operations for each machine. K is copied once.
    """

    def __init__(self, K: FloatArray, dual: DualProblem) -> None:
        self._K = K
        self._dual = dual
        shared = all(np.array_equal(own.curvature, dual.losses[0].curvature) for own in dual.losses)
        distinct = dual.losses[:1] if shared else dual.losses
        self._inverses = [RidgeInverse(K, loss.curvature) for loss in distinct]
        self.w, self.intercepts = self._solve()
        self.residual: FloatArray = dual.linear - self.scores(self.w)

    def inverse(self, machine: int) -> RidgeInverse:
        """Return the factorised matrix K + Λ of a machine."""
        return self._inverses[machine if len(self._inverses) > 1 else 0]

    def _solve(self) -> tuple[FloatArray, FloatArray]:
        if len(self._inverses) == 1:
            targets = np.column_stack([loss.target for loss in self._dual.losses])
            columns, intercepts = self._inverses[0].solve(targets)
            return columns.T.ravel(), intercepts
        answers = [
            self.inverse(k).solve(loss.target[:, None]) for k, loss in enumerate(self._dual.losses)
        ]
        w = np.concatenate([column[:, 0] for column, _ in answers])
        return w, np.concatenate([intercept for _, intercept in answers])

    def scores(self, w: FloatArray) -> FloatArray:
        """Return the product of K with the dual vector of each machine."""
        columns = w.reshape(len(self._dual.losses), -1)
        return (columns @ self._K).ravel()


class RidgeInverse:
    """The Cholesky factor of K + Λ, and the matrix H that maps targets to dual variables.

    Parameters
    ----------
    K : ndarray of shape (m, m)
        Symmetric positive semidefinite kernel matrix in float64.
    curvature : ndarray of shape (m,)
        Diagonal of Λ; positive.

    Examples
    --------
    >>> import numpy as np
    >>> from tessella.svm import RidgeInverse
    >>> inverse = RidgeInverse(np.zeros((2, 2)), np.ones(2))
    >>> w, intercept = inverse.solve(np.array([[1.0], [3.0]]))
    >>> w[:, 0].tolist(), intercept.tolist()
    ([-1.0, 1.0], [2.0])
    """

    def __init__(self, K: FloatArray, curvature: FloatArray) -> None:
        self._K, self._curvature = K, curvature
        self._factor = _factorised(K, curvature)
        self._ones = self._refined(np.ones((len(K), 1)))[:, 0]
        self._total = float(self._ones.sum())

    def solve(self, targets: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the dual variables and the intercept of each column of targets.

        Parameters
        ----------
        targets : ndarray of shape (m, n_outputs)
            Targets of each output.

        Returns
        -------
        w : ndarray of shape (m, n_outputs)
            Dual variables, whose columns sum to zero up to rounding.
        intercepts : ndarray of shape (n_outputs,)
            Intercept of each output.
        """
        # The mean is a good guess of the intercept, and smaller numbers have smaller errors.
        means = targets.mean(axis=0)
        solved = self._refined(targets - means)
        shift = solved.sum(axis=0) / self._total
        return solved - np.outer(self._ones, shift), means + shift

    def form(self, columns: FloatArray) -> FloatArray:
        """Return ``columns.T @ H @ columns`` for a matrix of shape (m, k), exactly symmetric."""
        half = _half_solved(self._factor, columns)
        # 1ᵀG times the columns
        border = self._ones @ columns
        product: FloatArray = half.T @ half - np.outer(border, border / self._total)
        return product

    def _refined(self, rhs: FloatArray) -> FloatArray:
        """Return G times the columns of `rhs`, with iterative refinement."""
        solution = _solved(self._factor, rhs)
        for _ in range(_REFINEMENTS):
            product = self._K @ solution + self._curvature[:, None] * solution
            solution = solution + _solved(self._factor, rhs - product)
        return solution


def _factorised(K: FloatArray, curvature: FloatArray) -> FloatArray:
    """Return the lower Cholesky factor of K + Λ."""
    mean = float(np.trace(K)) / len(K) + float(curvature.mean())
    for ridge in _RIDGES:
        matrix = K.copy()
        matrix.flat[:: len(K) + 1] += curvature + ridge * mean
        # The matrix is symmetric, so its transpose is the column-major matrix of LAPACK.
        factor, failed = lapack.dpotrf(matrix.T, lower=1, clean=0, overwrite_a=1)
        if not failed:
            found: FloatArray = factor
            return found
    raise np.linalg.LinAlgError("the kernel matrix has large negative eigenvalues")


def _solved(factor: FloatArray, rhs: FloatArray) -> FloatArray:
    solution: FloatArray = lapack.dpotrs(factor, rhs, lower=1)[0]
    return solution


def _half_solved(factor: FloatArray, rhs: FloatArray) -> FloatArray:
    solution: FloatArray = lapack.dtrtrs(factor, rhs, lower=1)[0]
    return solution
