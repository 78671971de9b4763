"""Where tasks run on leaves, and where the dual vectors of the leaves are kept."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tessella.backend import effective_threads
from tessella.rows import LeafVectors
from tessella.solvers._leaf_tasks import LeafProblem

FloatArray = NDArray[np.float64]

Task = Callable[..., tuple[FloatArray | None, Any]]
ArgumentsOf = Callable[[int], tuple[Any, ...]]

_WAITING = 2  # tasks for each thread whose answers are not yet asked for


class LeafPool(ABC):
    """The leaves of a problem, and the workers that run tasks on them.

    Attributes
    ----------
    sizes : sequence of int
        Number of samples of each leaf, which is the size of its dual vector.
    """

    sizes: Sequence[int]

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return len(self.sizes)

    @abstractmethod
    def map(
        self,
        task: Task,
        arguments: ArgumentsOf,
        *,
        read: str = "w",
        write: str | None = None,
        leaves: Sequence[int] | None = None,
    ) -> Iterator[Any]:
        """Run a task on leaves, and yield its results in the order of the leaves.

        Parameters
        ----------
        task : callable
            ``task(leaf, w, *arguments, n_jobs=n_jobs)`` returns a dual vector to keep, or None, and
            a result.
        arguments : callable
            ``arguments(k)`` returns the further arguments for leaf k, when its task begins.
        read : str
            Name of the dual vectors that the task gets.
        write : str, optional
            Name under which the dual vectors that it returns are kept.
        leaves : sequence of int, optional
            Leaves to run the task on, ascending. The default is all of them.
        """

    @abstractmethod
    def copy(self, source: str, target: str) -> None:
        """Give the dual vectors of one name another name too."""

    @abstractmethod
    def vector(self, name: str, k: int) -> FloatArray:
        """Return a dual vector of a leaf."""

    @abstractmethod
    def set_vector(self, name: str, k: int, values: FloatArray) -> None:
        """Keep a dual vector of a leaf."""

    def mix(self, name: str, other: str, share: float) -> None:
        """Move the dual vectors of one name by a part of the way to those of another one."""
        for k in range(self.n_leaves):
            mixed = (1.0 - share) * self.vector(name, k) + share * self.vector(other, k)
            self.set_vector(name, k, mixed)

    def stacked(self, name: str) -> FloatArray:
        """Return the dual vectors of all leaves, one after the other."""
        parts = [self.vector(name, k) for k in range(self.n_leaves)]
        return np.concatenate(parts) if parts else np.empty(0)

    def set_stacked(self, name: str, w: FloatArray) -> None:
        """Keep the dual vectors of all leaves, given one after the other."""
        ends = np.cumsum(self.sizes)
        for k, (end, size) in enumerate(zip(ends, self.sizes, strict=True)):
            self.set_vector(name, k, w[end - size : end])

    @property
    def workers(self) -> int:
        """Number of tasks that run side by side."""
        return 1


class LocalLeaves(LeafPool):
    """Leaves whose tasks run in the threads of this process.

    Not more leaves than threads are in memory at a time, unless `load` keeps them.

    Parameters
    ----------
    load : callable
        ``load(k)`` returns the :class:`LeafProblem` of a leaf.
    sizes : sequence of int
        Number of samples of each leaf.
    n_jobs : int or None
        Number of threads.
    vectors : LeafVectors, optional
        Where dual vectors are kept. The default is in memory.
    """

    def __init__(
        self,
        load: Callable[[int], LeafProblem],
        sizes: Sequence[int],
        n_jobs: int | None,
        vectors: LeafVectors | None = None,
    ) -> None:
        self._load = load
        self.sizes = sizes
        self._vectors = LeafVectors(sizes) if vectors is None else vectors
        threads = effective_threads(n_jobs)
        self._workers = max(1, min(threads, len(sizes)))
        self._threads_of_task = max(1, threads // self._workers)

    @classmethod
    def of(cls, leaves: Sequence[LeafProblem], n_jobs: int | None) -> LocalLeaves:
        """Return a pool of leaves that are in memory."""
        return cls(leaves.__getitem__, [leaf.dual.size for leaf in leaves], n_jobs)

    @property
    def workers(self) -> int:
        """See :attr:`LeafPool.workers`."""
        return self._workers

    def copy(self, source: str, target: str) -> None:
        """See :meth:`LeafPool.copy`."""
        self._vectors.copy(source, target)

    def vector(self, name: str, k: int) -> FloatArray:
        """See :meth:`LeafPool.vector`."""
        return self._vectors.get(name, k)

    def set_vector(self, name: str, k: int, values: FloatArray) -> None:
        """See :meth:`LeafPool.set_vector`."""
        self._vectors.set(name, k, values)

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

        def run(k: int) -> Any:
            given = self.vector(read, k)
            w, result = task(self._load(k), given, *arguments(k), n_jobs=self._threads_of_task)
            if write is not None and w is not None:
                self.set_vector(write, k, w)
            return result

        chosen = list(range(self.n_leaves) if leaves is None else leaves)
        if self._workers == 1 or len(chosen) < 2:
            yield from map(run, chosen)
            return
        yield from self._in_threads(run, chosen)

    def _in_threads(self, run: Callable[[int], Any], chosen: list[int]) -> Iterator[Any]:
        """Yield the results of some leaves in order, with a few tasks ahead of the reader."""
        pool = ThreadPoolExecutor(self._workers)
        running: deque[Future[Any]] = deque()
        try:
            for k in chosen:
                # A context of its own for each task: one cannot be entered twice at a time.
                running.append(pool.submit(copy_context().run, run, k))
                if len(running) > _WAITING * self._workers:
                    yield running.popleft().result()
            while running:
                yield running.popleft().result()
        finally:
            # After an exception or Ctrl-C the tasks that run are waited for, and no others begin.
            pool.shutdown(wait=True, cancel_futures=True)


class PartOfPool(LeafPool):
    """Some leaves of a pool, with dual vectors of their own.

    Parameters
    ----------
    pool : LeafPool
        The pool.
    leaves : sequence of int
        Numbers of the leaves, ascending.
    """

    _PREFIX = "part: "

    def __init__(self, pool: LeafPool, leaves: Sequence[int]) -> None:
        self._pool, self._leaves = pool, list(leaves)
        self.sizes = [pool.sizes[k] for k in self._leaves]

    @property
    def workers(self) -> int:
        """See :attr:`LeafPool.workers`."""
        return self._pool.workers

    def copy(self, source: str, target: str) -> None:
        """See :meth:`LeafPool.copy`."""
        self._pool.copy(self._PREFIX + source, self._PREFIX + target)

    def vector(self, name: str, k: int) -> FloatArray:
        """See :meth:`LeafPool.vector`."""
        return self._pool.vector(self._PREFIX + name, self._leaves[k])

    def set_vector(self, name: str, k: int, values: FloatArray) -> None:
        """See :meth:`LeafPool.set_vector`."""
        self._pool.set_vector(self._PREFIX + name, self._leaves[k], values)

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
        place = {number: k for k, number in enumerate(self._leaves)}
        chosen = self._leaves if leaves is None else [self._leaves[k] for k in leaves]
        return self._pool.map(
            task,
            lambda number: arguments(place[number]),
            read=self._PREFIX + read,
            write=None if write is None else self._PREFIX + write,
            leaves=chosen,
        )
