"""The rows of a fit on a cluster: chunks of collections, and then leaves on the workers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
from distributed import Future
from numpy.typing import NDArray

from tessella.backend import available_memory, format_bytes
from tessella.dask._chunks import Chunks
from tessella.dask._cluster import Cluster
from tessella.dask._leaves import DaskLeaves, Sent
from tessella.dask._tasks import (
    cut_leaf,
    digest_chunk,
    item,
    join_seen,
    leaf_rows,
    leaf_size,
    leaf_support,
    scan_chunk,
    split_pieces,
    spread_chunk,
)
from tessella.estimators._leaf_rows import LeafRowsOfFit, joined_digest
from tessella.estimators._leaf_scan import Scan, ScanSettings
from tessella.estimators._leaf_store import Cuts, LeafSpec, LeafSupport, Spread, partition_of_parts
from tessella.estimators._leaf_targets import LeafTargets
from tessella.partitions import Partition
from tessella.solvers import LeafPool, LeavesResult

IntArray = NDArray[np.intp]

_OF_MEMORY = 0.1  # part that the rows may take before a model is kept on disk
_TOGETHER = 32  # parts that one task joins, or that it splits rows into


class DaskRows(LeafRowsOfFit):
    """Rows of Dask collections, and leaves whose tasks run on the workers.

    The collections are computed twice, for the sample and for the leaves, and are not kept.

    Parameters
    ----------
    cluster : Cluster
        The cluster.
    chunks : Chunks
        The rows.
    """

    def __init__(self, cluster: Cluster, chunks: Chunks) -> None:
        self._cluster, self._chunks = cluster, chunks
        self.n_features, self.n_rows = chunks.n_features, chunks.n_rows
        # The model has nearly all rows of each tree at most.
        room = available_memory()
        size = 8 * (self.n_features + 2) * self.n_rows
        self.on_disk = room is not None and size > _OF_MEMORY * room
        self._leaves: list[Future] = []

    def scan(self, count: int, *, classify: bool, column: int) -> Scan:
        """See :meth:`LeafRowsOfFit.scan`."""
        cluster, wanted = self._cluster, ScanSettings(count, classify, column)
        parts = self._chunks.submit(cluster, scan_chunk, wanted)
        while len(parts) > 1:
            parts = [cluster.submit(join_seen, own, wanted) for own in _groups(parts, _TOGETHER)]
        return cluster.result(parts[0]).scan(wanted)  # type: ignore[no-any-return]

    def divide(self, n_rows: int, cuts: Cuts, spread: Spread) -> Partition:
        """See :meth:`LeafRowsOfFit.divide`.

        Rows go from chunks to coarse leaves by tasks that split and join pieces, and the rows of a
        coarse leaf are cut into leaves by one task.
        """
        cluster, sent = self._cluster, Sent(self._cluster)
        coarse = cuts.coarse(n_rows, self.n_features + 3 + spread.n_machines)
        pieces = self._chunks.submit(cluster, spread_chunk, *sent(spread, coarse))
        divided = [
            cluster.submit(cut_leaf, own, *sent(self.n_features, rule, spread.box))
            for own, rule in zip(
                self._by_leaf(pieces, 0, coarse.n_leaves, 1),
                cuts.rules_of_leaves(coarse),
                strict=True,
            )
        ]
        del pieces
        trees = list(cluster.results([cluster.submit(item, own, 0) for own in divided]))
        self._leaves = [
            cluster.submit(leaf_rows, own, k)
            for own, tree in zip(divided, trees, strict=True)
            for k in range(tree.n_leaves)
        ]
        return partition_of_parts(coarse, trees)

    def _by_leaf(
        self, pieces: list[Future], low: int, high: int, together: int
    ) -> Iterator[list[Future]]:
        """Yield the pieces of each coarse leaf of a range, in the order of the chunks.

        A task splits the rows of `together` pieces into few ranges, whose rows are then split
        again, so that the number of pieces grows with the number of chunks and not with the number
        of chunks times that of leaves.
        """
        if high - low == 1:
            yield pieces
            return
        cluster = self._cluster
        count = min(_TOGETHER, high - low)
        bounds = np.linspace(low, high, count + 1).astype(int).tolist()
        groups = _groups(pieces, together)
        split = [cluster.submit(split_pieces, own, bounds) for own in groups]
        for k, (start, end) in enumerate(pairwise(bounds)):
            own = [cluster.submit(item, parts, k) for parts in split]
            yield from self._by_leaf(own, start, end, _TOGETHER)

    def sizes(self, targets: LeafTargets) -> IntArray:
        """See :meth:`LeafRowsOfFit.sizes`."""
        cluster, sent = self._cluster, Sent(self._cluster)
        own = sent(self.n_features, targets)
        found = cluster.ordered(self._leaves, lambda leaf: cluster.submit(leaf_size, leaf, *own))
        return np.array([size for _, size in found], dtype=np.intp)

    def pool(self, spec: LeafSpec, numbers: IntArray, sizes: IntArray) -> LeafPool:
        """See :meth:`LeafRowsOfFit.pool`."""
        leaves = [self._leaves[number] for number in numbers]
        return DaskLeaves(self._cluster, leaves, sizes.tolist(), spec, self.n_features)

    def supports(
        self, spec: LeafSpec, numbers: IntArray, pool: LeafPool, result: LeavesResult
    ) -> Iterator[LeafSupport]:
        """See :meth:`LeafRowsOfFit.supports`."""
        assert isinstance(pool, DaskLeaves)
        cluster, sent = self._cluster, Sent(self._cluster)
        place = {int(number): k for k, number in enumerate(numbers)}

        def submit(number: int) -> Future:
            k = place.get(number)
            given = None if k is None else pool.answer(result.best, k)
            size = None if k is None else pool.sizes[k]
            intercepts = None if k is None else result.intercepts[k]
            own = sent(spec, self.n_features, intercepts)
            return cluster.submit(leaf_support, self._leaves[number], given, size, *own)

        for _, support in cluster.ordered(range(len(self._leaves)), submit):
            yield support

    def digest(self) -> str:
        """See :meth:`LeafRowsOfFit.digest`."""
        futures = self._chunks.submit(self._cluster, digest_chunk)
        return joined_digest(self.n_rows, self._cluster.results(futures))

    def require_memory(self, leaf: int, rows: int, n_trees: int, n_jobs: int | None) -> str:  # noqa: ARG002
        """See :meth:`LeafRowsOfFit.require_memory`."""
        threads = self._cluster.threads
        worker = self._cluster.smallest_worker()
        if worker is not None and worker[1] * leaf > worker[0]:
            raise MemoryError(
                f"A leaf of {rows} rows needs {format_bytes(leaf)}, and a worker of "
                f"{format_bytes(worker[0])} has {worker[1]} threads, each of which has a leaf. Use "
                "a smaller max_leaf_rows, fewer threads for each worker, or more memory."
            )
        return (
            f"leaves of {rows} rows, {threads} at a time on the cluster: about "
            f"{format_bytes(leaf)} of memory for each thread of a worker"
        )

    def close(self) -> None:
        """See :meth:`LeafRowsOfFit.close`."""
        self._leaves = []


def _groups(parts: Sequence[Future], size: int) -> list[list[Future]]:
    """Return parts in groups of some size."""
    return [list(parts[start : start + size]) for start in range(0, len(parts), size)]
