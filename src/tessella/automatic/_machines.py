"""Machines on all training rows, and their predictions.

With few rows, a machine is one exact machine. With more rows it is a sum f₀ + f_j: a base function
f₀, which is the machine of a sample of the rows, and for each leaf of a partition a machine f_j of
the rows of the leaf, which learns what the base function leaves. The partition has one or several
trees, over which the functions of the leaves are averaged.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tessella.automatic._entries import Machine
from tessella.automatic._kernels import MachineKernel, ScaledKernel
from tessella.estimators._leaf_scan import row_hash
from tessella.partitions import CutRule, Partition, cut_tree, leading_gradients

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

# Kernel values between new rows and training rows that are held at a time.
_TILE_ENTRIES = 4_000_000
# Rows at which the gradients of the base function decide the cuts, for one output and at least.
_GRADIENT_ROWS, _LEAST_GRADIENT_ROWS = 500, 100


@dataclass(frozen=True)
class LeafSizes:
    """How many rows are divided.

    Attributes
    ----------
    largest : int
        Largest number of rows of a leaf.
    n_trees : int
        Number of trees.
    """

    largest: int
    n_trees: int = 1


@dataclass(frozen=True, eq=False)
class BaseMachine:
    """The machine of a sample of the training rows.

    Attributes
    ----------
    rows : ndarray of int of shape (n_sample,)
        Numbers of the training rows. There are none if the machine is not divided.
    coef : ndarray of shape (n_sample, k)
        Dual coefficients, one column for each output.
    intercept : ndarray of shape (k,)
        Intercept of each output.
    """

    rows: IntArray
    coef: FloatArray
    intercept: FloatArray


@dataclass(frozen=True, eq=False)
class FittedMachine:
    """A machine that was fitted on all training rows.

    Attributes
    ----------
    machine : Machine
        Space, kernel, loss and C.
    share : float
        Weight of the machine in the average of the model.
    base : BaseMachine
        Machine of a sample of the rows, to which those of the leaves are added.
    partition : Partition
        Trees that divide the training rows. With few rows there is one leaf.
    coef : ndarray of shape (n_trees, m, k)
        Dual coefficients of the training rows in their leaf of each tree, one column for each
        output.
    intercept : ndarray of shape (n_leaves, k)
        Intercept of each output in each leaf.
    gap : float
        Largest certified relative gap between the primal and the dual value of a leaf or of the
        base machine.
    """

    machine: Machine
    share: float
    base: BaseMachine
    partition: Partition
    coef: FloatArray
    intercept: FloatArray
    gap: float

    def outputs(self, coordinates: FloatArray) -> FloatArray:
        """Return predictions of the outputs for rows in the coordinates of the space."""
        own = self.machine
        scores = _base_scores(own, self.base, coordinates) + self._leaf_scores(coordinates)
        return own.target.backward(scores, own.factor)

    def _leaf_scores(self, coordinates: FloatArray) -> FloatArray:
        """Return the mean over the trees of the scores of the leaves."""
        kernel, training = self.machine.kernel, self.machine.space.coordinates
        places = self.partition.leaves_of(coordinates), self.partition.leaves_of(training)
        total = np.zeros((len(coordinates), self.coef.shape[2]))
        for leaf, training_leaf, coef in zip(*places, self.coef, strict=True):
            for k in np.unique(leaf):
                rows, known = np.flatnonzero(leaf == k), training_leaf == k
                total[rows] += _scores(kernel, coordinates[rows], training[known], coef[known])
                total[rows] += self.intercept[k]
        return total / self.partition.n_trees

    def is_consistent(self, n_columns: int) -> bool:
        """Return whether the arrays fit together and belong to a table of some columns."""
        space, kernel, base = self.machine.space, self.machine.kernel, self.base
        n_rows, n_features = space.coordinates.shape
        shape = (n_features,)
        return (
            len(space.encoding.categorical) == n_columns
            and space.group.shape == space.box.kept.shape == shape
            and (not isinstance(kernel, ScaledKernel) or kernel.scales.shape == shape)
            and self.partition.is_sound(n_features, 0)
            and self.coef.ndim == 3
            and self.coef.shape[:2] == (self.partition.n_trees, n_rows)
            and self.intercept.shape == (self.partition.n_leaves, self.coef.shape[2])
            and base.rows.dtype.kind == "i"
            and bool(((base.rows >= 0) & (base.rows < n_rows)).all())
            and base.coef.shape == (*base.rows.shape, self.coef.shape[2])
            and base.intercept.shape == (self.coef.shape[2],)
        )


def fit_machine(
    machine: Machine, share: float, Y: FloatArray, weight: FloatArray, sizes: LeafSizes
) -> FittedMachine:
    """Fit a machine on all rows.

    Parameters
    ----------
    machine : Machine
        Space with the rows, kernel, loss and C, which are those of all leaves and of the base
        function.
    share : float
        Weight in the average of the model.
    Y : ndarray of shape (m, k)
        Outputs of all rows.
    weight : ndarray of shape (m,)
        Weights of all rows.
    sizes : LeafSizes
        How the rows are divided, if there are more than fit in a leaf.

    Returns
    -------
    FittedMachine
        The machine, whose parts are all exact.
    """
    A, Y = machine.space.coordinates, machine.target.forward(Y)
    base, gap = _base_machine(machine, Y, weight, sizes.largest)
    others = _base_scores(machine, base, A)
    partition = _partition(machine, base, sizes)
    coef = np.empty((partition.n_trees, *Y.shape))
    intercept = np.zeros((partition.n_leaves, Y.shape[1]))
    for tree, leaf in enumerate(partition.leaves_of(A)):
        for k in np.unique(leaf):
            rows = np.flatnonzero(leaf == k)
            K = machine.kernel.matrix(A[rows])
            found = machine.loss.solve(K, Y[rows], machine.C, weight[rows], others[rows])
            coef[tree, rows], intercept[k] = found.coef, found.intercept
            gap = max(gap, found.gap)
    return FittedMachine(machine, share, base, partition, coef, intercept, gap)


def _base_machine(
    machine: Machine, Y: FloatArray, weight: FloatArray, largest: int
) -> tuple[BaseMachine, float]:
    """Return the machine of a sample of as many rows as a leaf has, and its gap.

    The values of the rows decide whether they are in the sample, which makes it the same for any
    order of the rows.
    """
    A, k = machine.space.coordinates, Y.shape[1]
    if len(A) <= largest:
        return BaseMachine(np.empty(0, dtype=np.intp), np.empty((0, k)), np.zeros(k)), 0.0
    rows = np.argsort(row_hash(A), kind="stable")[:largest]
    K = machine.kernel.matrix(A[rows])
    found = machine.loss.solve(K, Y[rows], machine.C, weight[rows])
    return BaseMachine(rows, found.coef, found.intercept), found.gap


def _partition(machine: Machine, base: BaseMachine, sizes: LeafSizes) -> Partition:
    """Return the leaves of all rows, cut across the directions of the base function."""
    A = machine.space.coordinates
    if not len(base.rows):
        return Partition((cut_tree(A, CutRule(len(A))),))
    count = max(_LEAST_GRADIENT_ROWS, _GRADIENT_ROWS // base.coef.shape[1])
    rows = A[base.rows[:count]]
    gradients = leading_gradients(machine.kernel.slopes(rows, A[base.rows], base.coef))
    seeds = [None, *range(1, sizes.n_trees)]
    trees = [cut_tree(A, CutRule(sizes.largest, rows, gradients, seed)) for seed in seeds]
    # Rows that cannot be divided are not learned twice.
    return Partition(tuple(trees if trees[0].n_leaves > 1 else trees[:1]))


def _base_scores(machine: Machine, base: BaseMachine, A: FloatArray) -> FloatArray:
    """Return the scores of the base function, which is zero if the machine is not divided."""
    B = machine.space.coordinates[base.rows]
    scores: FloatArray = _scores(machine.kernel, A, B, base.coef) + base.intercept
    return scores


def _scores(kernel: MachineKernel, A: FloatArray, B: FloatArray, coef: FloatArray) -> FloatArray:
    """Return the scores of rows without an intercept, some rows at a time."""
    scores = np.zeros((len(A), coef.shape[1]))
    if not len(B):
        return scores
    step = max(1, _TILE_ENTRIES // len(B))
    for begin in range(0, len(A), step):
        part = slice(begin, begin + step)
        scores[part] = kernel.matrix(A[part], B) @ coef
    return scores
