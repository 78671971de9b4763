"""Machines on all training rows, and their predictions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from tessella.automatic._families import FAMILIES
from tessella.automatic._search import Machine

FloatArray = NDArray[np.float64]

# New rows whose kernel values with all training rows are held at a time, in numbers.
_TILE_ENTRIES = 4_000_000


@dataclass(frozen=True, eq=False)
class FittedMachine:
    """A squared-loss machine that was fitted on all training rows.

    Attributes
    ----------
    machine : Machine
        Space, family, scales and C.
    share : float
        Weight of the machine in the average of the model.
    coef : ndarray of shape (m, k)
        Dual coefficients, one column for each output.
    intercept : ndarray of shape (k,)
        Intercept of each output.
    gap : float
        Certified relative gap between the primal and the dual value.
    """

    machine: Machine
    share: float
    coef: FloatArray
    intercept: FloatArray
    gap: float

    def outputs(self, coordinates: FloatArray) -> FloatArray:
        """Return predictions of the outputs for rows in the coordinates of the machine's space."""
        own = self.machine
        family, training = FAMILIES[own.family], own.space.coordinates
        scores = np.empty((len(coordinates), self.coef.shape[1]))
        step = max(1, _TILE_ENTRIES // len(training))
        for begin in range(0, len(coordinates), step):
            rows = slice(begin, begin + step)
            scores[rows] = family.gram(coordinates[rows], own.scales, training) @ self.coef
        return own.target.backward(scores + self.intercept, own.factor)


def fit_machine(machine: Machine, share: float, Y: FloatArray, weight: FloatArray) -> FittedMachine:
    """Solve a machine on all rows, and certify the solution."""
    A, Y = machine.space.coordinates, machine.target.forward(Y)
    K = FAMILIES[machine.family].gram(A, machine.scales)
    ridge = 1.0 / (machine.C * weight)
    regularised = K.copy()
    regularised[np.diag_indices_from(regularised)] += ridge
    factor, failed = lapack.dpotrf(regularised.T, lower=1, overwrite_a=1)
    if failed:
        raise ArithmeticError("The kernel matrix is not positive definite.")
    right = np.column_stack([np.ones(len(A)), Y])
    solved, _ = lapack.dpotrs(factor, right, lower=1)
    intercept = solved[:, 0] @ Y / solved[:, 0].sum()
    coef = solved[:, 1:] - np.outer(solved[:, 0], intercept)
    coef -= coef.mean(axis=0)  # exactly feasible in spite of rounding
    gap = _relative_gap(K, Y, coef, intercept, ridge)
    return FittedMachine(machine, share, coef, intercept, gap)


def _relative_gap(
    K: FloatArray, Y: FloatArray, coef: FloatArray, intercept: FloatArray, ridge: FloatArray
) -> float:
    scores = K @ coef
    norm = float(np.vdot(coef, scores))
    upper = 0.5 * norm + 0.5 * float(((Y - scores - intercept) ** 2 / ridge[:, None]).sum())
    conjugate = 0.5 * float((ridge[:, None] * coef**2).sum())
    lower = float(np.vdot(Y, coef)) - conjugate - 0.5 * norm
    return (upper - lower) / abs(upper) if upper else 0.0
