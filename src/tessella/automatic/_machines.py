"""Machines on all training rows, and their predictions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tessella.automatic._entries import Machine
from tessella.automatic._families import FAMILIES
from tessella.automatic._kernels import ScaledKernel
from tessella.automatic._leaves import Leaves

FloatArray = NDArray[np.float64]

# Kernel values between new rows and training rows that are held at a time.
_TILE_ENTRIES = 4_000_000


@dataclass(frozen=True, eq=False)
class FittedMachine:
    """A machine that was fitted on all training rows.

    Attributes
    ----------
    machine : Machine
        Space, kernel, loss and C.
    share : float
        Weight of the machine in the average of the model.
    leaves : Leaves
        Partition of the training rows. With few rows there is one leaf.
    coef : ndarray of shape (m, k)
        Dual coefficients of the training rows, one column for each output.
    intercept : ndarray of shape (n_leaves, k)
        Intercept of each output in each leaf.
    gap : float
        Largest certified relative gap between the primal and the dual value of a leaf.
    """

    machine: Machine
    share: float
    leaves: Leaves
    coef: FloatArray
    intercept: FloatArray
    gap: float

    def outputs(self, coordinates: FloatArray) -> FloatArray:
        """Return predictions of the outputs for rows in the coordinates of the space."""
        own = self.machine
        training = own.space.coordinates
        leaf, training_leaf = self.leaves.of(coordinates), self.leaves.of(training)
        scores = np.empty((len(coordinates), self.coef.shape[1]))
        for k in np.unique(leaf):
            rows, known = np.flatnonzero(leaf == k), training_leaf == k
            right, coef = training[known], self.coef[known]
            step = max(1, _TILE_ENTRIES // max(1, len(right)))
            for begin in range(0, len(rows), step):
                part = rows[begin : begin + step]
                scores[part] = own.kernel.matrix(coordinates[part], right) @ coef
            scores[rows] += self.intercept[k]
        return own.target.backward(scores, own.factor)

    def is_consistent(self, n_columns: int) -> bool:
        """Return whether the arrays fit together and belong to a table of some columns."""
        space, kernel = self.machine.space, self.machine.kernel
        n_rows, n_features = space.coordinates.shape
        shape = (n_features,)
        return (
            len(space.encoding.categorical) == n_columns
            and space.group.shape == space.box.kept.shape == shape
            and (not isinstance(kernel, ScaledKernel) or kernel.scales.shape == shape)
            and self.leaves.is_tree(n_features)
            and self.coef.ndim == 2
            and len(self.coef) == n_rows
            and self.intercept.shape == (self.leaves.n_leaves, self.coef.shape[1])
        )


def fit_machine(
    machine: Machine, share: float, Y: FloatArray, weight: FloatArray, largest: int
) -> FittedMachine:
    """Fit a machine on all rows, exactly in every leaf of at most `largest` rows."""
    A, Y = machine.space.coordinates, machine.target.forward(Y)
    leaves = Leaves.build(A, _factors(machine), largest)
    leaf = leaves.of(A)
    coef, intercept, gap = np.empty_like(Y), np.empty((leaf.max() + 1, Y.shape[1])), 0.0
    for k in range(leaf.max() + 1):
        rows = np.flatnonzero(leaf == k)
        K = machine.kernel.matrix(A[rows])
        solution = machine.loss.solve(K, Y[rows], machine.C, weight[rows])
        coef[rows], intercept[k] = solution.coef, solution.intercept
        gap = max(gap, solution.gap)
    return FittedMachine(machine, share, leaves, coef, intercept, gap)


def _factors(machine: Machine) -> FloatArray:
    """Return the importance of each coordinate for the kernel of a machine."""
    kernel = machine.kernel
    if isinstance(kernel, ScaledKernel):
        return np.asarray(FAMILIES[kernel.family].steepness(kernel.scales))
    return np.ones(machine.space.coordinates.shape[1])
