"""Solvers of the linear equations of a Newton step, K + J Jᵀ + T with one equation per machine.

The unknowns are a change w of the dual vector and a multiplier ν for each machine:

    (K + J Jᵀ + T) w + ν = rhs,    Σ over each machine of w = sums

K is the kernel matrix, which is block diagonal if there are several machines, T is diagonal, and J
couples the machines by the parameter of their common kernel.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, lapack

from tessella.backend import BlockDiagonal
from tessella.cones import Couplings, Sensitivities
from tessella.svm._problem import DualProblem

FloatArray = NDArray[np.float64]

_ACCURACY = (
    1e-4  # of conjugate gradients, relative to the first residual; Newton steps need no more
)
_MANY_MACHINES = 32  # whose sums are factorised once for all right-hand sides of a step
_MOST_PRODUCTS = 60  # more of them take longer than the factorisation of the whole matrix


class SlowConvergenceError(Exception):
    """Raised by :class:`CoupledMachines` if a factorisation of the whole matrix is faster."""


class NewtonFactor(ABC):
    """A way to solve the equations for many right-hand sides."""

    @abstractmethod
    def solve(self, rhs: FloatArray, sums: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return w and ν for a right-hand side and the sums of the machines."""


class _Factorised(NewtonFactor):
    """A factorisation of the matrix, from which the multipliers are eliminated."""

    def __init__(self, dual: DualProblem) -> None:
        self._dual = dual

    @abstractmethod
    def _inverse_times(self, rhs: FloatArray) -> FloatArray:
        """Return the inverse of the matrix times a vector."""

    @abstractmethod
    def _sums_of_inverse(self) -> FloatArray:
        """Return the sums of the inverse over the rows and columns of each pair of machines."""

    @cached_property
    def _sums(self) -> FloatArray:
        return self._sums_of_inverse()

    def _multipliers(self, surplus: FloatArray) -> FloatArray:
        """Return the multipliers of the equations of the sums."""
        if len(surplus) < _MANY_MACHINES:
            return np.linalg.solve(self._sums, surplus).astype(np.float64, copy=False)
        factor, pivots = self._factored_sums
        solution: FloatArray = lapack.dgetrs(factor, pivots, surplus)[0]
        return solution

    @cached_property
    def _factored_sums(self) -> tuple[FloatArray, NDArray[np.int32]]:
        """The factors of the equations of the sums, which serve all right-hand sides of a step."""
        factor, pivots, failed = lapack.dgetrf(self._sums)
        if failed:
            raise np.linalg.LinAlgError("the equations of the sums are singular")
        return factor, pivots

    def solve(self, rhs: FloatArray, sums: FloatArray) -> tuple[FloatArray, FloatArray]:
        """See :meth:`NewtonFactor.solve`."""
        free = self._inverse_times(rhs)
        surplus = self._dual.sums(free) - sums
        nu = self._multipliers(surplus)
        return free - self._inverse_times(nu[self._dual.machine_of]), nu


class WholeFactor(_Factorised):
    """One Cholesky factorisation of the whole matrix.

    Parameters
    ----------
    K : ndarray of shape (f, f) or BlockDiagonal
        Kernel matrix.
    T : ndarray of shape (f,)
        Diagonal to add.
    J : Sensitivities
        Sensitivities of the scores to the scaled parameter.
    dual : DualProblem
        Dual problem of the f samples.
    """

    def __init__(
        self,
        K: FloatArray | BlockDiagonal,
        T: FloatArray,
        J: Sensitivities,
        dual: DualProblem,
    ) -> None:
        super().__init__(dual)
        gram = J.gram()
        if isinstance(K, BlockDiagonal):
            matrix = K.whole() if gram is None else K.added_to(gram)
        else:
            matrix = K.copy() if gram is None else np.add(gram, K, out=gram)
        self._factor = _cholesky(matrix, T)

    def _inverse_times(self, rhs: FloatArray) -> FloatArray:
        solution: FloatArray = lapack.dpotrs(self._factor, rhs, lower=1)[0]
        return solution

    def _sums_of_inverse(self) -> FloatArray:
        machines = np.equal.outer(self._dual.machine_of, np.arange(len(self._dual.starts)))
        half = lapack.dtrtrs(self._factor, machines.astype(np.float64), lower=1)[0]
        sums: FloatArray = half.T @ half
        return sums


class MachineFactors(_Factorised):
    """A Cholesky factorisation for each machine, and J as a border that couples them.

    K is block diagonal, so if J has few columns this is cheaper than one factorisation of the whole
    matrix by the square of the number of machines. Machines that share K and have the same T share
    a factorisation too.

    Parameters
    ----------
    K : ndarray of shape (f / c, f / c) or BlockDiagonal
        Kernel matrices of the c machines, or the one that they share.
    T : ndarray of shape (f,)
        Diagonal to add.
    columns : ndarray of shape (f, dimension)
        J as a matrix.
    dual : DualProblem
        Dual problem of the f samples.
    """

    def __init__(
        self,
        K: FloatArray | BlockDiagonal,
        T: FloatArray,
        columns: FloatArray,
        dual: DualProblem,
    ) -> None:
        super().__init__(dual)
        self._machines = dual.machines
        self._factors: list[FloatArray] = []
        blocks = K.blocks if isinstance(K, BlockDiagonal) else [K] * len(self._machines)
        for block, rows in zip(blocks, self._machines, strict=True):
            shared = self._factors and block is blocks[0]
            if shared and np.array_equal(T[rows], T[self._machines[0]]):
                self._factors.append(self._factors[0])
            else:
                self._factors.append(_cholesky(block.copy(), T[rows]))
        self._columns = columns
        parts = zip(self._factors, self._machines, strict=True)
        halves = [lapack.dtrtrs(factor, columns[rows], lower=1)[0] for factor, rows in parts]
        border = blas.dsyrk(1.0, np.concatenate(halves), trans=1, lower=1)
        self._border = _cholesky(border.T, np.ones(len(border)))

    def _solve_machines(self, rhs: FloatArray) -> FloatArray:
        parts = zip(self._factors, self._machines, strict=True)
        return np.concatenate(
            [lapack.dpotrs(factor, rhs[rows], lower=1)[0] for factor, rows in parts]
        )

    def _inverse_times(self, rhs: FloatArray) -> FloatArray:
        alone = self._solve_machines(rhs)
        coupling = lapack.dpotrs(self._border, self._columns.T @ alone, lower=1)[0]
        solution: FloatArray = alone - self._solve_machines(self._columns @ coupling)
        return solution

    def _sums_of_inverse(self) -> FloatArray:
        ones = self._solve_machines(np.ones(self._dual.size))
        coupled = np.add.reduceat(self._columns * ones[:, None], self._dual.starts, axis=0)
        inner = lapack.dpotrs(self._border, coupled.T, lower=1)[0]
        sums: FloatArray = np.diag(self._dual.sums(ones)) - coupled @ inner
        return sums


class CoupledMachines(NewtonFactor):
    """Conjugate gradients for many machines whose J has many columns.

    The preconditioner has all products within a machine, and between machines those of the columns
    of J that matter most. It keeps the sums of the machines, so every iterate satisfies these
    equations. Some ten products with the matrix replace its factorisation.

    Parameters
    ----------
    K : BlockDiagonal
        Kernel matrices of the machines.
    T : ndarray of shape (f,)
        Diagonal to add.
    J : Sensitivities
        Sensitivities of the scores to the scaled parameter.
    couplings : Couplings
        Leading columns of J and its products within each machine.
    dual : DualProblem
        Dual problem of the f samples.
    """

    def __init__(
        self,
        K: BlockDiagonal,
        T: FloatArray,
        J: Sensitivities,
        couplings: Couplings,
        dual: DualProblem,
    ) -> None:
        self._K, self._T, self._J, self._dual = K, T, J, dual
        self._columns = columns = couplings.columns
        self._unit = np.empty(dual.size)  # the cheapest change of each machine with the sum one
        self._moved = np.empty(columns.shape)
        inverses = []
        parts = zip(K.blocks, couplings.blocks, dual.machines, strict=True)
        for block, products, rows in parts:
            own = columns[rows]
            inverse = _inverse(block + products - own @ own.T, T[rows])
            ones = inverse.sum(axis=0)
            total = float(ones.sum())
            inverse -= np.outer(ones / total, ones)
            inverses.append(inverse)
            self._unit[rows] = ones / total
            self._moved[rows] = inverse @ own
        self._inverses = BlockDiagonal(inverses)
        border = columns.T @ self._moved
        self._border = _cholesky(0.5 * (border + border.T), np.ones(len(border)))

    def solve(self, rhs: FloatArray, sums: FloatArray) -> tuple[FloatArray, FloatArray]:
        """See :meth:`NewtonFactor.solve`."""
        w = self._unit * sums[self._dual.machine_of]
        residual, nu = self._without_multipliers(rhs - self._times(w))
        step = direction = self._preconditioned(residual)
        size = first = float(residual @ step)
        for _ in range(_MOST_PRODUCTS):
            if size <= _ACCURACY**2 * first:
                return w, nu
            product = self._times(direction)
            length = size / float(direction @ product)
            w = w + length * direction
            residual, change = self._without_multipliers(residual - length * product)
            nu += change
            step = self._preconditioned(residual)
            before, size = size, float(residual @ step)
            direction = step + (size / before) * direction
        raise SlowConvergenceError

    def _without_multipliers(self, residual: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return a residual without its part that ν takes up, and this ν.

        Steps do not depend on this part, but its rounding errors would grow in them.
        """
        nu = self._dual.sums(self._unit * residual)
        return residual - nu[self._dual.machine_of], nu

    def _times(self, v: FloatArray) -> FloatArray:
        result: FloatArray = self._K @ v + self._T * v + self._J.apply(self._J.adjoint(v))
        return result

    def _preconditioned(self, residual: FloatArray) -> FloatArray:
        alone = self._inverses @ residual
        coupling = lapack.dpotrs(self._border, self._columns.T @ alone, lower=1)[0]
        result: FloatArray = alone - self._moved @ coupling
        return result


def _cholesky(matrix: FloatArray, diagonal: FloatArray) -> FloatArray:
    """Return the Cholesky factor of a symmetric matrix plus a diagonal, in place."""
    matrix.flat[:: len(matrix) + 1] += diagonal
    # The matrix is symmetric, so its transpose is the column-major matrix that LAPACK needs to
    # work in place.
    factor, failed = lapack.dpotrf(matrix.T, lower=1, clean=0, overwrite_a=1)
    if failed:
        raise np.linalg.LinAlgError("the Newton equations are singular")
    found: FloatArray = factor
    return found


def _inverse(matrix: FloatArray, diagonal: FloatArray) -> FloatArray:
    """Return the inverse of a symmetric matrix plus a diagonal."""
    lower = lapack.dpotri(_cholesky(matrix, diagonal), lower=1, overwrite_c=1)[0]
    lower = np.tril(lower)
    inverse: FloatArray = lower + np.tril(lower, -1).T
    return inverse
