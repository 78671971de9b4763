"""Partition of many rows into leaves that are small enough for exact machines."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

# Smallest part of the rows on one side of a split.
_SMALLEST_SIDE = 0.25


@dataclass(frozen=True, eq=False)
class Leaves:
    """A binary tree that divides rows by one coordinate at a time.

    Attributes
    ----------
    column : ndarray of int of shape (n_nodes,)
        Coordinate that each node compares, or -1 for a leaf.
    threshold : ndarray of shape (n_nodes,)
        Largest value that goes to the left.
    left : ndarray of int of shape (n_nodes,)
        Node on the left; the right one is the next number. For a leaf, the number of the leaf.
    """

    column: IntArray
    threshold: FloatArray
    left: IntArray

    @classmethod
    def build(cls, A: FloatArray, factors: FloatArray, largest: int) -> Leaves:
        """Divide rows at medians of the coordinate with the largest spread.

        Parameters
        ----------
        A : ndarray of shape (m, n)
            Rows.
        factors : ndarray of shape (n,)
            Importance of each coordinate, by which its spread is multiplied.
        largest : int
            Largest number of rows of a leaf.

        Returns
        -------
        Leaves
            The tree.
        """
        nodes: list[tuple[int, float, int]] = [(-1, 0.0, 0)]
        waiting = [(0, np.arange(len(A)))]
        n_leaves = 0
        while waiting:
            node, rows = waiting.pop()
            split = None if len(rows) <= largest else _best_split(A[rows], factors)
            if split is None:
                nodes[node] = (-1, 0.0, n_leaves)
                n_leaves += 1
                continue
            column, threshold = split
            nodes[node] = (column, threshold, len(nodes))
            below = A[rows, column] <= threshold
            waiting += [(len(nodes), rows[below]), (len(nodes) + 1, rows[~below])]
            nodes += [(-1, 0.0, 0), (-1, 0.0, 0)]
        columns, thresholds, left = zip(*nodes, strict=True)
        return cls(np.array(columns), np.array(thresholds), np.array(left))

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return int(np.count_nonzero(self.column < 0))

    def is_tree(self, n_columns: int) -> bool:
        """Return whether the arrays describe a tree that compares some columns."""
        if not self.column.shape == self.threshold.shape == self.left.shape:
            return False
        inner = np.flatnonzero(self.column >= 0)
        children = (self.left[inner][:, None] + np.arange(2)).ravel()
        ends = np.sort(self.left[self.column < 0])
        return (
            bool((self.column < n_columns).all())
            # Every node but the first has one parent, so that every path from the first one ends.
            and np.array_equal(np.sort(children), np.arange(1, len(self.column)))
            and np.array_equal(ends, np.arange(self.n_leaves))
        )

    def of(self, A: FloatArray) -> IntArray:
        """Return the number of the leaf of each row."""
        node = np.zeros(len(A), dtype=np.intp)
        rows = np.arange(len(A))
        while True:
            inner = self.column[node] >= 0
            if not inner.any():
                return self.left[node]
            own = node[inner]
            above = A[rows[inner], self.column[own]] > self.threshold[own]
            node[inner] = self.left[own] + above


def _best_split(A: FloatArray, factors: FloatArray) -> tuple[int, float] | None:
    """Return the coordinate with the largest spread that can be divided, and where."""
    for column in np.argsort(-factors * A.std(axis=0), kind="stable"):
        values = A[:, column]
        threshold = float(np.median(values))
        below = float(np.mean(values <= threshold))
        if below > 1.0 - _SMALLEST_SIDE:  # many values are equal to the median: split below it
            smaller = values[values < threshold]
            if not len(smaller):
                continue
            threshold = float(smaller.max())
            below = len(smaller) / len(values)
        if _SMALLEST_SIDE <= below <= 1.0 - _SMALLEST_SIDE:
            return int(column), threshold
    return None
