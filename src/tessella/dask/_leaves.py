"""Leaves whose tasks run on the workers of a cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from distributed import Future
from numpy.typing import NDArray

from tessella.dask._arguments import packed
from tessella.dask._cluster import Cluster
from tessella.dask._tasks import (
    given_vector,
    mixed_vector,
    result_of,
    run_leaf,
    same,
    vector_of,
)
from tessella.estimators._leaf_store import LeafSpec
from tessella.solvers import LeafPool
from tessella.solvers._leaf_pool import ArgumentsOf, Task

FloatArray = NDArray[np.float64]


class Sent:
    """Arguments of tasks, of which large arrays are sent to the cluster once.

    Parameters
    ----------
    cluster : Cluster
        The cluster.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        # With the arrays, so that the number of an array is not that of another one later.
        self._futures: dict[int, tuple[NDArray[Any], Future]] = {}

    def __call__(self, *values: Any) -> tuple[Any, ...]:
        """Return the arguments of a task that unpacks them; see :mod:`tessella.dask._arguments`."""
        content, large = packed(values)
        return content, *(self._future(array) for array in large)

    def _future(self, array: NDArray[Any]) -> Future:
        if id(array) not in self._futures:
            self._futures[id(array)] = array, self._cluster.submit(same, array)
        return self._futures[id(array)][1]


class DaskLeaves(LeafPool):
    """Leaves whose tasks run on the workers of a cluster, where the dual vectors stay.

    A name of dual vectors stands for one future for each leaf: the answer of the task that has
    computed the vector, or None for zeros.

    Each answer depends on the one before it, because machines start from their last vectors. The
    answers that have a name are kept. The scheduler keeps the tasks, but not the results, of all
    that lead to them, so that the answers of a lost worker are computed again from its leaves on.
    This takes the passes so far, for the leaves of that worker alone, and the others help. The
    chain is not cut, because whatever cuts it makes results depend on what was lost: a copy of the
    vectors in the memory of workers can be lost as well, and the client has no room for all of
    them. A fit takes some ten passes.

    Parameters
    ----------
    cluster : Cluster
        The cluster.
    leaves : sequence of Future
        Block of rows of each leaf.
    sizes : sequence of int
        Number of samples of each leaf.
    spec : LeafSpec
        How rows become problems.
    n_features : int
        Number of features.
    """

    def __init__(
        self,
        cluster: Cluster,
        leaves: Sequence[Future],
        sizes: Sequence[int],
        spec: LeafSpec,
        n_features: int,
    ) -> None:
        self._cluster, self._leaves, self.sizes = cluster, leaves, sizes
        self._spec, self._n_features = spec, n_features
        self._answers: dict[str, list[Future | None]] = {}

    @property
    def workers(self) -> int:
        """See :attr:`LeafPool.workers`."""
        return self._cluster.threads

    def map(
        self,
        task: Task,
        arguments: ArgumentsOf,
        *,
        read: str = "w",
        write: str | None = None,
        leaves: Sequence[int] | None = None,
    ) -> Iterator[Any]:
        """See :meth:`LeafPool.map`."""
        cluster, sent = self._cluster, Sent(self._cluster)
        chosen = range(self.n_leaves) if leaves is None else leaves
        running: dict[int, Future] = {}

        def submit(k: int) -> Future:
            given = self.answer(read, k)
            own = sent(self._spec, self._n_features, task, arguments(k))
            running[k] = cluster.submit(run_leaf, self._leaves[k], given, self.sizes[k], *own)
            return cluster.submit(result_of, running[k])

        for k, result in cluster.ordered(chosen, submit):
            answer = running.pop(k)
            if write is not None:
                self._named(write)[k] = answer
            del answer
            yield result

    def answer(self, name: str, k: int) -> Future | None:
        """Return the future of a dual vector of a leaf; None for zeros."""
        return self._answers[name][k] if name in self._answers else None

    def _named(self, name: str) -> list[Future | None]:
        return self._answers.setdefault(name, [None] * self.n_leaves)

    def copy(self, source: str, target: str) -> None:
        """See :meth:`LeafPool.copy`."""
        if source in self._answers:
            self._answers[target] = list(self._answers[source])
        else:
            self._answers.pop(target, None)

    def vector(self, name: str, k: int) -> FloatArray:
        """See :meth:`LeafPool.vector`."""
        return next(self._vectors(name, [k]))

    def stacked(self, name: str) -> FloatArray:
        """See :meth:`LeafPool.stacked`."""
        parts = list(self._vectors(name, range(self.n_leaves)))
        return np.concatenate(parts) if parts else np.empty(0)

    def _vectors(self, name: str, leaves: Sequence[int]) -> Iterator[FloatArray]:
        """Yield the dual vectors of some leaves."""
        cluster = self._cluster
        known = [k for k in leaves if self.answer(name, k) is not None]
        found = cluster.ordered(known, lambda k: cluster.submit(vector_of, self.answer(name, k)))
        for k in leaves:
            if self.answer(name, k) is None:
                yield np.zeros(self.sizes[k])
            else:
                yield next(found)[1]

    def mix(self, name: str, other: str, share: float) -> None:
        """See :meth:`LeafPool.mix`."""
        for k, size in enumerate(self.sizes):
            first, second = self.answer(name, k), self.answer(other, k)
            if first is not None or second is not None:
                own = self._cluster.submit(mixed_vector, first, second, size, share)
                self._named(name)[k] = own

    def set_vector(self, name: str, k: int, values: FloatArray) -> None:
        """See :meth:`LeafPool.set_vector`."""
        own = self._cluster.submit(given_vector, values.copy()) if values.any() else None
        self._named(name)[k] = own
