"""The second pass over many rows: rows to leaves, in memory or on disk."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tessella.cones import Point
from tessella.estimators._leaf_targets import LeafTargets
from tessella.estimators._training_set import TrainingSet
from tessella.kernels import KernelSet, UnitBox
from tessella.partitions import CutRule, CutTree, Partition, cut_tree, grafted, grouped_tree
from tessella.rows import Batch, LeafRows, LeavesInMemory, LeavesOnDisk, RowSource
from tessella.solvers import LeafProblem

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

# Bytes of the rows that are cut at a time, so that one task can hold them.
_COARSE_BYTES = 64 << 20
# Part of it that a coarse leaf has on average, because its size is estimated from a sample.
_FILLED = 0.7


@dataclass(frozen=True)
class RowsOfLeaf:
    """The distinct rows of a leaf.

    Attributes
    ----------
    X : ndarray of shape (m, n)
        Features in the units of the data.
    y : ndarray of shape (m,)
        Targets, or codes of classes.
    weight : ndarray of shape (m,)
        Positive weights.
    index : ndarray of int of shape (m,)
        Numbers of the rows in the data.
    base : ndarray of shape (m, n_machines)
        Scores of the base function.
    """

    X: FloatArray
    y: FloatArray
    weight: FloatArray
    index: IntArray
    base: FloatArray

    @classmethod
    def of_block(cls, block: FloatArray, n_features: int) -> RowsOfLeaf:
        """Return the rows of a block of a store."""
        n = n_features
        return cls(
            X=np.ascontiguousarray(block[:, :n]),
            y=block[:, n],
            weight=block[:, n + 1],
            index=block[:, n + 2].astype(np.intp),
            base=block[:, n + 3 :],
        )

    @property
    def block(self) -> FloatArray:
        """The rows as a block of a store."""
        columns = (self.X, self.y, self.weight, self.index.astype(np.float64), self.base)
        return np.column_stack(columns)

    def merged(self) -> RowsOfLeaf:
        """Return distinct rows in canonical order, so that the order of the data cannot matter."""
        rows = TrainingSet.build(self.X, self.y, self.weight)
        first = rows.index
        return RowsOfLeaf(rows.X, rows.y, rows.weight, self.index[first], self.base[first])

    def subset(self, rows: IntArray) -> RowsOfLeaf:
        """Return some of the rows."""
        return RowsOfLeaf(
            self.X[rows], self.y[rows], self.weight[rows], self.index[rows], self.base[rows]
        )


@dataclass(frozen=True)
class Cuts:
    """How the rows are divided.

    Attributes
    ----------
    largest : int
        Largest number of rows of a leaf.
    n_trees : int
        Number of trees.
    column : int
        Column of groups, or -1.
    groups : ndarray
        Values of the groups.
    rows, gradients : ndarray or None
        Scaled rows of a sample, and gradients of the base function there.
    sample : ndarray of shape (k, n_scaled)
        Scaled rows of a sample.
    sample_groups : ndarray of shape (k,)
        Groups of these rows.
    """

    largest: int
    n_trees: int
    column: int
    groups: FloatArray
    rows: FloatArray | None
    gradients: FloatArray | None
    sample: FloatArray
    sample_groups: FloatArray

    def rule(self, tree: int, largest: int) -> CutRule:
        """Return the rule of a tree for leaves of some size."""
        return CutRule(largest, self.rows, self.gradients, None if tree == 0 else tree)

    def rules_of_leaves(self, coarse: Partition) -> list[CutRule]:
        """Return the rule by which each leaf of a coarse partition is cut."""
        return [
            self.rule(number, self.largest)
            for number, tree in enumerate(coarse.trees)
            for _ in range(tree.n_leaves)
        ]

    def coarse(self, n_rows: int, width: int) -> Partition:
        """Return the coarse partition, whose leaves are small enough to be cut by one task.

        Rows of less than 64 MiB are one such leaf. More rows are cut by the sample, wherever they
        are, so that the leaves do not depend on where the rows are.

        Parameters
        ----------
        n_rows : int
            Number of rows.
        width : int
            Number of columns of a block of a store.
        """
        most = max(self.largest, int(_FILLED * _COARSE_BYTES / (8 * width)))
        trees = [self.coarse_tree(tree, n_rows, most) for tree in range(self.n_trees)]
        return Partition(tuple(trees), self.column)

    def coarse_tree(self, tree: int, n_rows: int, most: int) -> CutTree:
        """Return a tree, cut by the sample, whose leaves have about `most` of all rows."""
        largest = len(self.sample) if n_rows <= most else int(len(self.sample) * most / n_rows)
        largest = max(1, largest)
        rule = self.rule(tree, largest)
        if self.column < 0:
            return cut_tree(self.sample, rule)
        return grouped_tree(self.sample, rule, self.sample_groups, self.groups)


@dataclass(frozen=True)
class Spread:
    """What is done with a batch of rows on its way into the leaves.

    Attributes
    ----------
    box : UnitBox
        Scaling of the features.
    code : callable
        ``code(y, weight)`` returns targets as numbers and the weights of the losses.
    base : callable
        ``base(X, n_jobs)`` returns the scores of the base function.
    n_machines : int
        Number of machines.
    n_jobs : int or None
        Number of threads.
    """

    box: UnitBox
    code: Callable[[NDArray[np.generic], FloatArray], tuple[FloatArray, FloatArray]]
    base: Callable[[FloatArray, int | None], FloatArray]
    n_machines: int
    n_jobs: int | None = None

    def rows_of(self, batch: Batch) -> RowsOfLeaf:
        """Return the rows of positive weight of a batch."""
        used = np.flatnonzero(batch.weight > 0)
        X = np.ascontiguousarray(batch.X[used])
        y, weight = self.code(batch.y[used], batch.weight[used])
        return RowsOfLeaf(X, y, weight, used + batch.first, self.base(X, self.n_jobs))


class LeafStore:
    """The rows of all leaves of a partition.

    Parameters
    ----------
    rows : LeafRows
        Where the rows are.
    partition : Partition
        The partition.
    place : ndarray of int of shape (n_leaves,)
        Number of each leaf in `rows`.
    n_features : int
        Number of features.
    """

    def __init__(
        self, rows: LeafRows, partition: Partition, place: IntArray, n_features: int
    ) -> None:
        self.rows, self.partition = rows, partition
        self._place, self._n_features = place, n_features

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return len(self._place)

    @property
    def sizes(self) -> IntArray:
        """Number of distinct rows of each leaf."""
        return self.rows.sizes[self._place].astype(np.intp)

    def leaf(self, k: int) -> RowsOfLeaf:
        """Return the rows of a leaf."""
        return RowsOfLeaf.of_block(self.rows.rows(int(self._place[k])), self._n_features)

    @classmethod
    def build(
        cls, source: RowSource, n_rows: int, cuts: Cuts, spread: Spread, *, on_disk: bool
    ) -> LeafStore:
        """Read all rows, and divide them.

        They are first divided by cuts of the sample, see :meth:`Cuts.coarse`.
        """
        width = source.n_features + 3 + spread.n_machines
        partition = cuts.coarse(n_rows, width)
        expected = 8 * width * n_rows * cuts.n_trees
        rows: LeafRows
        if on_disk:
            rows = LeavesOnDisk(partition.n_leaves, width, expected_bytes=expected)
        else:
            rows = LeavesInMemory(partition.n_leaves, width)
        try:
            return cls._filled(rows, source, partition, cuts, spread)
        except BaseException:
            if isinstance(rows, LeavesOnDisk):
                rows.close()
            raise

    @classmethod
    def _filled(
        cls,
        rows: LeafRows,
        source: RowSource,
        partition: Partition,
        cuts: Cuts,
        spread: Spread,
    ) -> LeafStore:
        for batch in source.batches():
            own = spread.rows_of(batch)
            block = own.block
            for leaf in partition.leaves_of(spread.box.apply(own.X), own.X):
                rows.append(leaf, block)
        rows.finish()
        parts, place = [], []
        for k, rule in enumerate(cuts.rules_of_leaves(partition)):
            part, blocks = cut_block(rows.rows(k), source.n_features, rule, spread.box)
            parts.append(part)
            place += rows.replace(k, blocks)
        whole = partition_of_parts(partition, parts)
        return cls(rows, whole, np.array(place, dtype=np.intp), source.n_features)

    def close(self) -> None:
        """Remove the rows, if they are on disk."""
        if isinstance(self.rows, LeavesOnDisk):
            self.rows.close()


def cut_block(
    block: FloatArray, n_features: int, rule: CutRule, box: UnitBox
) -> tuple[CutTree, list[FloatArray]]:
    """Divide the rows of a coarse leaf into leaves, and return its tree and their blocks.

    The answer depends on the order of equal rows only.
    """
    own = RowsOfLeaf.of_block(block, n_features).merged()
    A = box.apply(own.X)
    tree = cut_tree(A, rule)
    leaf = tree.leaf_of(A)
    parts = [own.subset(np.flatnonzero(leaf == j)).block for j in range(tree.n_leaves)]
    return tree, parts


def partition_of_parts(coarse: Partition, parts: Sequence[CutTree]) -> Partition:
    """Return the partition whose coarse leaves are cut further, by a tree for each of them."""
    first = coarse.first_leaves
    trees = [
        grafted(tree, parts[first[number] : first[number + 1]])
        for number, tree in enumerate(coarse.trees)
    ]
    return Partition(tuple(trees), coarse.column)


@dataclass(frozen=True)
class LeafSpec:
    """How the rows of a leaf become a problem, and its answer a part of the model.

    It is the same for all leaves and small, so it can be sent to other processes.

    Attributes
    ----------
    targets : LeafTargets
        How targets become machines.
    kernels : KernelSet
        Resolved kernel set.
    box : UnitBox
        Scaling of the features.
    dtype : str
        Data type of kernel matrices.
    fixed : Point or None
        Parameter that is not learned.
    """

    targets: LeafTargets
    kernels: KernelSet
    box: UnitBox
    dtype: str
    fixed: Point | None

    def problem(self, rows: RowsOfLeaf) -> LeafProblem:
        """Return the problem of a leaf that has machines."""
        machines = self.targets.machines(rows.y, rows.weight, rows.base)
        assert machines.dual is not None
        return LeafProblem(
            kernels=self.kernels,
            rows=self.box.apply(rows.X),
            machine_rows=machines.rows,
            dual=machines.dual,
            dtype=self.dtype,
            fixed=self.fixed,
        )

    def support(
        self, rows: RowsOfLeaf, w: FloatArray | None, intercepts: FloatArray | None
    ) -> LeafSupport:
        """Return the support vectors of a leaf; without machines it has constants only."""
        machines = self.targets.machines(rows.y, rows.weight, rows.base)
        constants = machines.constants.copy()
        coefficients = np.zeros((self.targets.n_machines, len(rows.y)))
        if w is not None and intercepts is not None:
            start = 0
            for machine, own in zip(machines.numbers, machines.rows, strict=True):
                coefficients[machine, own] = w[start : start + len(own)]
                start += len(own)
            constants[list(machines.numbers)] = intercepts
        used = np.flatnonzero(coefficients.any(axis=0))
        return LeafSupport(rows.index[used], rows.X[used], coefficients[:, used], constants)


@dataclass(frozen=True)
class LeafSupport:
    """What a leaf contributes to a model.

    Attributes
    ----------
    index : ndarray of int of shape (n_support,)
        Numbers of its support vectors in the data.
    vectors : ndarray of shape (n_support, n_features)
        The support vectors.
    coefficients : ndarray of shape (n_machines, n_support)
        Their coefficients.
    intercepts : ndarray of shape (n_machines,)
        Constants of the machines.
    """

    index: IntArray
    vectors: FloatArray
    coefficients: FloatArray
    intercepts: FloatArray
