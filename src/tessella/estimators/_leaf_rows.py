"""Where the rows of a fit in leaves are, and what runs the tasks on its leaves."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from tessella.backend import effective_threads, require_memory
from tessella.estimators._leaf_scan import Scan, row_hash, scan, target_numbers
from tessella.estimators._leaf_store import Cuts, LeafSpec, LeafStore, LeafSupport, Spread
from tessella.estimators._leaf_targets import LeafTargets
from tessella.partitions import Partition
from tessella.rows import Batch, LeafVectors, LeavesOnDisk, RowSource
from tessella.solvers import LeafPool, LeavesResult, LocalLeaves

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]


class LeafRowsOfFit(ABC):
    """The rows of a fit, first as they are given and then by leaf.

    The methods are called in the order in which they stand here.

    Attributes
    ----------
    n_features : int
        Number of features.
    n_rows : int
        Number of rows as given.
    on_disk : bool
        Whether this process keeps on disk what may be as large as the rows.
    """

    n_features: int
    n_rows: int
    on_disk: bool

    @abstractmethod
    def scan(self, count: int, *, classify: bool, column: int) -> Scan:
        """Read all rows once, see :func:`tessella.estimators._leaf_scan.scan`."""

    @abstractmethod
    def divide(self, n_rows: int, cuts: Cuts, spread: Spread) -> Partition:
        """Divide the rows of positive weight, and return the partition."""

    @abstractmethod
    def sizes(self, targets: LeafTargets) -> IntArray:
        """Return the number of samples of the machines of each leaf, which may be zero."""

    @abstractmethod
    def pool(self, spec: LeafSpec, numbers: IntArray, sizes: IntArray) -> LeafPool:
        """Return the pool of the leaves with some numbers, in this order.

        Parameters
        ----------
        spec : LeafSpec
            How rows become problems.
        numbers : ndarray of int
            Numbers of the leaves that have machines.
        sizes : ndarray of int
            Number of samples of each of them.
        """

    @abstractmethod
    def supports(
        self, spec: LeafSpec, numbers: IntArray, pool: LeafPool, result: LeavesResult
    ) -> Iterator[LeafSupport]:
        """Yield what each leaf of the partition contributes to the model."""

    @abstractmethod
    def digest(self) -> str:
        """Return a text that identifies rows, targets and weights, whatever their order."""

    @abstractmethod
    def require_memory(self, leaf: int, rows: int, n_trees: int, n_jobs: int | None) -> str:
        """Raise MemoryError for leaves that do not fit, or return a text about the memory.

        Parameters
        ----------
        leaf : int
            Bytes that the tasks of a leaf need.
        rows : int
            Rows of a leaf.
        n_trees : int
            Number of trees.
        n_jobs : int or None
            Number of threads of this process.
        """

    @abstractmethod
    def close(self) -> None:
        """Give back whatever the fit has used."""


class LocalRows(LeafRowsOfFit):
    """Rows that this process reads, and leaves whose tasks run in its threads.

    Parameters
    ----------
    source : RowSource
        The rows.
    n_jobs : int or None
        Number of threads.
    on_disk : bool
        Whether leaves are kept on disk.
    """

    def __init__(self, source: RowSource, n_jobs: int | None, *, on_disk: bool) -> None:
        self._source, self._n_jobs, self.on_disk = source, n_jobs, on_disk
        self.n_features, self.n_rows = source.n_features, source.n_rows
        self._store: LeafStore | None = None

    def scan(self, count: int, *, classify: bool, column: int) -> Scan:
        """See :meth:`LeafRowsOfFit.scan`."""
        return scan(self._source, count, classify=classify, column=column)

    def divide(self, n_rows: int, cuts: Cuts, spread: Spread) -> Partition:
        """See :meth:`LeafRowsOfFit.divide`."""
        self._store = LeafStore.build(self._source, n_rows, cuts, spread, on_disk=self.on_disk)
        return self._store.partition

    @property
    def store(self) -> LeafStore:
        """The rows by leaf."""
        assert self._store is not None
        return self._store

    def sizes(self, targets: LeafTargets) -> IntArray:
        """See :meth:`LeafRowsOfFit.sizes`."""
        leaves = map(self.store.leaf, range(self.store.n_leaves))
        return np.array([targets.sizes(leaf.y) for leaf in leaves], dtype=np.intp)

    def pool(self, spec: LeafSpec, numbers: IntArray, sizes: IntArray) -> LeafPool:
        """See :meth:`LeafRowsOfFit.pool`."""
        rows = self.store.rows
        vectors = LeafVectors(sizes, rows if isinstance(rows, LeavesOnDisk) else None)
        return LocalLeaves(
            lambda k: spec.problem(self.store.leaf(int(numbers[k]))),
            sizes.tolist(),
            self._n_jobs,
            vectors,
        )

    def supports(
        self, spec: LeafSpec, numbers: IntArray, pool: LeafPool, result: LeavesResult
    ) -> Iterator[LeafSupport]:
        """See :meth:`LeafRowsOfFit.supports`."""
        place = {int(number): k for k, number in enumerate(numbers)}
        for number in range(self.store.n_leaves):
            k = place.get(number)
            w = None if k is None else pool.vector(result.best, k)
            intercepts = None if k is None else result.intercepts[k]
            yield spec.support(self.store.leaf(number), w, intercepts)

    def digest(self) -> str:
        """See :meth:`LeafRowsOfFit.digest`."""
        return joined_digest(self.n_rows, map(batch_digest, self._source.batches()))

    def require_memory(self, leaf: int, rows: int, n_trees: int, n_jobs: int | None) -> str:
        """See :meth:`LeafRowsOfFit.require_memory`."""
        threads = effective_threads(n_jobs)
        in_memory = 0 if self.on_disk else (n_trees + 1) * self._bytes
        needed = threads * leaf + in_memory
        text = f"leaves of {rows} rows, {threads} at a time"
        require_memory(
            needed,
            f"Learning a kernel on {self.n_rows} rows of {self.n_features} features in {text}",
            "Use a smaller max_leaf_rows, fewer n_jobs, or rows that stay on disk: a numpy memmap "
            "or Parquet files.",
        )
        on_disk = n_trees * self._bytes if self.on_disk else 0
        scratch = f", {on_disk / 2**30:.1f} GiB in temporary files" if on_disk else ""
        return f"{text}: at most about {needed / 2**30:.1f} GiB of memory{scratch}"

    @property
    def _bytes(self) -> int:
        return 8 * (self.n_features + 4) * self.n_rows

    def close(self) -> None:
        """See :meth:`LeafRowsOfFit.close`."""
        if self._store is not None:
            self._store.close()


_MIXED = np.uint64(0x9E3779B97F4A7C15)


def batch_digest(batch: Batch) -> tuple[int, int]:
    """Return two numbers that depend on the rows of a batch, and not on their order."""
    ranks = row_hash(np.column_stack([batch.X, target_numbers(batch.y), batch.weight]))
    with np.errstate(over="ignore"):
        total = int(ranks.sum(dtype=np.uint64))
        mixed = int((ranks * (ranks ^ _MIXED)).sum(dtype=np.uint64))
    return total, mixed


def joined_digest(n_rows: int, digests: Iterator[tuple[int, int]]) -> str:
    """Return a text that identifies the rows of all batches."""
    first = second = 0
    for total, mixed in digests:
        first, second = (first + total) % 2**64, (second + mixed) % 2**64
    return f"{n_rows}-{first:016x}-{second:016x}"
