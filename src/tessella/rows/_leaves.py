"""Rows by leaf: the interface of a store, and the store in memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from itertools import pairwise
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from tessella.rows._source import FloatArray

IntArray = NDArray[np.int64]


class LeafRows(ABC):
    """Rows of float64 by leaf, which are appended in any order and read leaf by leaf.

    Rows of a leaf keep the order in which they were appended. After :meth:`finish`, several
    threads may read rows at once.

    Parameters
    ----------
    n_leaves : int
        Number of leaves, of which some may remain empty.
    n_columns : int
        Number of columns of every row.
    """

    def __init__(self, n_leaves: int, n_columns: int) -> None:
        if n_leaves < 1 or n_columns < 1:
            raise ValueError(
                "A store needs at least one leaf and one column, but n_leaves is "
                f"{n_leaves} and n_columns is {n_columns}."
            )
        self.n_columns = n_columns
        self._sizes = np.zeros(n_leaves, dtype=np.int64)
        self._finished = False
        self._lock = Lock()

    @property
    def sizes(self) -> IntArray:
        """Number of rows of each leaf."""
        return self._sizes.copy()

    @property
    def nbytes(self) -> int:
        """Number of bytes of all rows."""
        return 8 * int(self._sizes.sum()) * self.n_columns

    def append(self, leaf: NDArray[np.integer], block: FloatArray) -> None:
        """Add rows to leaves.

        Parameters
        ----------
        leaf : ndarray of int, shape (k,)
            Leaf of each row.
        block : ndarray of float64, shape (k, n_columns)
            The rows, which are copied.
        """
        if self._finished:
            raise RuntimeError("Rows cannot be appended after finish().")
        leaf = np.asarray(leaf)
        block = self._checked(block)
        if leaf.shape != (len(block),) or leaf.dtype.kind not in "iu":
            raise ValueError(
                f"leaf must be {len(block)} integers, one for each row, but has the shape "
                f"{leaf.shape} and the type {leaf.dtype}."
            )
        if not len(leaf):
            return
        if leaf.min() < 0 or leaf.max() >= len(self._sizes):
            raise ValueError(
                f"Leaves have numbers from 0 to {len(self._sizes) - 1}, but leaf contains numbers "
                f"from {leaf.min()} to {leaf.max()}."
            )
        numbers = np.asarray(leaf, dtype=np.int64)
        self._append(numbers, block)
        self._sizes += np.bincount(numbers, minlength=len(self._sizes))

    def finish(self) -> None:
        """Declare that all rows have been appended, after which they can be read."""
        if not self._finished:
            self._finish()
            self._finished = True

    def rows(self, k: int) -> FloatArray:
        """Return the rows of a leaf.

        Parameters
        ----------
        k : int
            Number of the leaf.

        Returns
        -------
        ndarray of float64, shape (sizes[k], n_columns)
            The rows in the order in which they were appended. The array may be read-only.
        """
        self._require(k)
        return self._rows(k)

    def replace(self, k: int, parts: Sequence[FloatArray]) -> list[int]:
        """Split a leaf: replace its rows by those of several leaves.

        Parameters
        ----------
        k : int
            Number of the leaf.
        parts : sequence of ndarray of float64, each of shape (any number, n_columns)
            Rows of each leaf that takes its place.

        Returns
        -------
        list of int
            Numbers of these leaves: `k` for the first one, and new numbers for the others.
        """
        self._require(k)
        if not len(parts):
            raise ValueError("parts must have at least one array of rows.")
        blocks = [self._checked(part) for part in parts]
        with self._lock:
            numbers = [k, *range(len(self._sizes), len(self._sizes) + len(blocks) - 1)]
            self._replace(k, blocks)
            counts = [len(block) for block in blocks]
            sizes = np.append(self._sizes, counts[1:])
            sizes[k] = counts[0]
            self._sizes = sizes
        return numbers

    def _checked(self, block: FloatArray) -> FloatArray:
        block = np.asarray(block, dtype=np.float64)
        if block.ndim != 2 or block.shape[1] != self.n_columns:
            raise ValueError(
                f"Rows must have {self.n_columns} columns, but the shape is {block.shape}."
            )
        return block

    def _require(self, k: int) -> None:
        if not self._finished:
            raise RuntimeError("Rows can be read only after finish().")
        if not 0 <= k < len(self._sizes):
            raise ValueError(f"Leaves have numbers from 0 to {len(self._sizes) - 1}, not {k}.")

    @abstractmethod
    def _append(self, leaf: IntArray, block: FloatArray) -> None: ...

    @abstractmethod
    def _finish(self) -> None: ...

    @abstractmethod
    def _rows(self, k: int) -> FloatArray: ...

    @abstractmethod
    def _replace(self, k: int, blocks: list[FloatArray]) -> None:
        """Put the first block in the place of leaf `k` and the others after the last leaf."""


def by_leaf(leaf: IntArray) -> Iterator[tuple[int, IntArray]]:
    """Yield every leaf that occurs, with the numbers of its rows in their order."""
    order = np.argsort(leaf, kind="stable")
    starts = np.flatnonzero(np.diff(leaf[order], prepend=-1)).tolist()
    for start, end in pairwise([*starts, len(leaf)]):
        yield int(leaf[order[start]]), order[start:end]


class LeavesInMemory(LeafRows):
    """Rows by leaf in memory.

    Arrays that :meth:`rows` returns are read-only. At no time is more than one leaf held twice.

    Parameters
    ----------
    n_leaves : int
        Number of leaves, of which some may remain empty.
    n_columns : int
        Number of columns of every row.
    """

    def __init__(self, n_leaves: int, n_columns: int) -> None:
        super().__init__(n_leaves, n_columns)
        self._parts: list[list[FloatArray]] = [[] for _ in range(n_leaves)]
        self._leaves: list[FloatArray] = []

    def _append(self, leaf: IntArray, block: FloatArray) -> None:
        for k, chosen in by_leaf(leaf):
            self._parts[k].append(block[chosen])

    def _finish(self) -> None:
        empty = np.empty((0, self.n_columns))
        for k, parts in enumerate(self._parts):
            self._leaves.append(_fixed(np.concatenate([empty, *parts])))
            self._parts[k] = []
        self._parts = []

    def _rows(self, k: int) -> FloatArray:
        return self._leaves[k]

    def _replace(self, k: int, blocks: list[FloatArray]) -> None:
        self._leaves.extend(_fixed(block.copy()) for block in blocks[1:])
        self._leaves[k] = _fixed(blocks[0].copy())


def _fixed(array: FloatArray) -> FloatArray:
    """Make an array read-only, because all readers share it."""
    array.flags.writeable = False
    return array
