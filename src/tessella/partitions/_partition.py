"""Trees of cuts that divide rows into leaves, and partitions that consist of several trees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tessella.backend._lazy import cached_property

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

#: Column of a tree without groups.
NO_COLUMN = -1


class UnknownGroupError(ValueError):
    """A row belongs to a group that no training row belongs to."""


@dataclass(frozen=True, eq=False)
class CutTree:
    """A binary tree that divides rows by linear functions of their scaled features.

    A row goes to the second side of a cut if the product of its features with the direction of the
    cut is above the threshold. Sides and roots are numbers of cuts, or ``-1 - k`` for leaf k.

    Attributes
    ----------
    directions : ndarray of shape (n_cuts, n_features)
        Direction of each cut, for the features scaled to the unit cube.
    thresholds : ndarray of shape (n_cuts,)
        Largest product on the first side of each cut.
    sides : ndarray of int of shape (n_cuts, 2)
        What follows on the two sides of each cut.
    roots : ndarray of int of shape (n_groups,)
        What a row of each group begins with. Without groups there is one root.
    groups : ndarray of shape (n_groups,)
        Sorted values of the groups; without groups, an array of shape (0,).
    """

    directions: FloatArray
    thresholds: FloatArray
    sides: IntArray
    roots: IntArray
    groups: FloatArray

    @cached_property
    def n_leaves(self) -> int:
        """Number of leaves."""
        ends = np.concatenate([self.sides.ravel(), self.roots])
        return int(np.count_nonzero(ends < 0))

    def leaf_of(self, A: FloatArray, group: FloatArray | None = None) -> IntArray:
        """Return the leaf of each row.

        Parameters
        ----------
        A : ndarray of shape (m, n_features)
            Features scaled to the unit cube.
        group : ndarray of shape (m,), optional
            Group of each row, for a tree with groups.

        Returns
        -------
        ndarray of int of shape (m,)
            Number of the leaf of each row.

        Raises
        ------
        UnknownGroupError
            If a row belongs to a group that the tree does not know.
        """
        leaf = np.empty(len(A), dtype=np.intp)
        waiting = [
            (int(root), rows)
            for root, rows in zip(self.roots, self._by_group(len(A), group), strict=True)
            if len(rows)
        ]
        while waiting:
            place, rows = waiting.pop()
            if place < 0:
                leaf[rows] = -1 - place
                continue
            # Row by row, so that the leaf of a row does not depend on the rows beside it.
            above = np.einsum("ij,j->i", A[rows], self.directions[place]) > self.thresholds[place]
            for side, own in zip(self.sides[place], (rows[~above], rows[above]), strict=True):
                if len(own):
                    waiting.append((int(side), own))
        return leaf

    def _by_group(self, n_rows: int, group: FloatArray | None) -> list[IntArray]:
        """Return the rows of each root."""
        if not len(self.groups):
            return [np.arange(n_rows)]
        assert group is not None
        place = np.minimum(np.searchsorted(self.groups, group), len(self.groups) - 1)
        unknown = self.groups[place] != group
        if unknown.any():
            raise UnknownGroupError(
                f"The group {group[unknown][0]:g} is not among the {len(self.groups)} groups of "
                "the training data, so no leaf of the partition is for it. Leave out the rows of "
                "unknown groups, or fit without groups."
            )
        order = np.argsort(place, kind="stable")
        return np.split(order, np.searchsorted(place[order], np.arange(1, len(self.groups))))

    def is_sound(self, n_features: int) -> bool:
        """Return whether the arrays describe a tree of cuts of some features."""
        count = len(self.thresholds)
        shapes = (
            self.directions.shape == (count, n_features)
            and self.thresholds.shape == (count,)
            and self.sides.shape == (count, 2)
            and self.groups.ndim == self.roots.ndim == 1
            and len(self.roots) == max(1, len(self.groups))
        )
        if not shapes or self.sides.dtype.kind != "i" or self.roots.dtype.kind != "i":
            return False
        ends = np.concatenate([self.sides.ravel(), self.roots])
        # Every cut and every leaf is the end of one way, and cuts follow cuts with smaller numbers.
        cuts, leaves = np.sort(ends[ends >= 0]), np.sort(-1 - ends[ends < 0])
        later = (self.sides < 0) | (self.sides > np.arange(count)[:, None])
        return (
            np.array_equal(cuts, np.arange(count))
            and np.array_equal(leaves, np.arange(len(leaves)))
            and bool(later.all())
            and bool(np.isfinite(self.directions).all() and np.isfinite(self.thresholds).all())
            and bool((np.diff(self.groups) > 0).all())
        )


@dataclass(frozen=True, eq=False)
class Partition:
    """One or several trees, each of which divides all rows into leaves.

    Leaves are numbered tree after tree, so that a row belongs to one leaf of each tree.

    Attributes
    ----------
    trees : tuple of CutTree
        The trees.
    column : int
        Column of the data that has the groups, or -1 without groups.

    Examples
    --------
    >>> import numpy as np
    >>> from tessella.partitions import CutRule, Partition, cut_tree
    >>> A = np.random.default_rng(0).random((1000, 2))
    >>> partition = Partition((cut_tree(A, CutRule(largest=250)),))
    >>> partition.n_leaves
    4
    >>> np.bincount(partition.leaves_of(A)[0]).tolist()
    [250, 250, 250, 250]
    """

    trees: tuple[CutTree, ...]
    column: int = NO_COLUMN

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return len(self.trees)

    @property
    def first_leaves(self) -> IntArray:
        """Number of the first leaf of each tree, and the number of all leaves."""
        return np.cumsum([0, *(tree.n_leaves for tree in self.trees)])

    @property
    def n_leaves(self) -> int:
        """Number of leaves of all trees."""
        return int(self.first_leaves[-1])

    def leaves_of(self, A: FloatArray, X: FloatArray | None = None) -> IntArray:
        """Return the leaves of each row, one for each tree.

        Parameters
        ----------
        A : ndarray of shape (m, n_scaled)
            Features scaled to the unit cube.
        X : ndarray of shape (m, n_features), optional
            Rows in the units of the data, for a partition with groups.

        Returns
        -------
        ndarray of int of shape (n_trees, m)
            Numbers of the leaves.
        """
        group = None
        if self.column != NO_COLUMN:
            assert X is not None
            group = X[:, self.column]
        first = self.first_leaves
        return np.array([tree.leaf_of(A, group) + first[k] for k, tree in enumerate(self.trees)])

    def is_sound(self, n_scaled: int, n_features: int) -> bool:
        """Return whether the partition is one of rows with some features."""
        grouped = self.column != NO_COLUMN
        return (
            bool(self.trees)
            and isinstance(self.column, int)
            and -1 <= self.column < n_features
            and all(tree.is_sound(n_scaled) for tree in self.trees)
            and all(bool(len(tree.groups)) == grouped for tree in self.trees)
        )


def joined(parts: Sequence[CutTree], groups: FloatArray) -> CutTree:
    """Return one tree that begins with the groups, with a tree without groups for each of them."""
    cuts = np.cumsum([0, *(len(part.thresholds) for part in parts)])
    leaves = np.cumsum([0, *(part.n_leaves for part in parts)])

    def moved(places: IntArray, k: int) -> IntArray:
        result: IntArray = np.where(places < 0, places - leaves[k], places + cuts[k])
        return result

    return CutTree(
        directions=np.concatenate([part.directions for part in parts]),
        thresholds=np.concatenate([part.thresholds for part in parts]),
        sides=np.concatenate([moved(part.sides, k) for k, part in enumerate(parts)]),
        roots=np.concatenate([moved(part.roots, k) for k, part in enumerate(parts)]),
        groups=groups,
    )


def grafted(tree: CutTree, parts: Sequence[CutTree]) -> CutTree:
    """Return a tree in which each leaf is cut further.

    Parameters
    ----------
    tree : CutTree
        Tree whose leaves are cut.
    parts : sequence of CutTree
        A tree without groups for each leaf. The new leaves have the order of these trees.

    Returns
    -------
    CutTree
        Tree with the groups of the first one.
    """
    below = joined(parts, np.empty(0))
    count = len(tree.thresholds)
    below_sides = np.where(below.sides < 0, below.sides, below.sides + count)

    def replaced(places: IntArray) -> IntArray:
        roots = below.roots[np.where(places < 0, -1 - places, 0)]
        moved = np.where(roots < 0, roots, roots + count)
        return np.where(places < 0, moved, places)

    return CutTree(
        directions=np.concatenate([tree.directions, below.directions]),
        thresholds=np.concatenate([tree.thresholds, below.thresholds]),
        sides=np.concatenate([replaced(tree.sides), below_sides]),
        roots=replaced(tree.roots),
        groups=tree.groups,
    )
