"""The workers of a cluster: tasks, their results in order, and errors that say what to change."""

from __future__ import annotations

import asyncio
import concurrent.futures
import time
import uuid
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

import dask
from distributed import Client, Future, KilledWorker, default_client
from distributed.comm import CommClosedError

_T = TypeVar("_T")

_AHEAD = 3  # tasks for each thread that are not finished
_HELD = 4  # as many results, as a multiple of them, may wait for those before them
_RETRIES = 5  # of a task that raises an error
_POLL = 2.0  # seconds between two looks at the cluster while nothing ends
_COUNTED = 1.0  # seconds for which the number of threads holds
_PATIENCE = 120.0  # seconds without any worker after which a fit gives up


class ClusterError(RuntimeError):
    """The cluster cannot do what a fit needs; the message says what to change."""


def current_client(client: Client | None) -> Client:
    """Return a client, or the current one; raise ClusterError if there is none."""
    if client is not None:
        return client
    try:
        return default_client()
    except ValueError as error:
        raise ClusterError(
            "There is no Dask client. Create one, such as distributed.Client(address) or "
            "distributed.Client() for a cluster on this machine, or give the parameter client."
        ) from error


class Cluster:
    """The tasks of one fit on the workers of a client.

    Every task is a pure function, and its key is unique to the fit. No task is bound to a worker.
    Data reach a task as its arguments or as results of other tasks, never by ``scatter``, because
    scattered data are gone with their worker. So whatever a lost worker had can be computed again
    by the others, for which the scheduler keeps the tasks that the results of this fit depend on.

    Parameters
    ----------
    client : distributed.Client
        The client.

    Raises
    ------
    ClusterError
        If the scheduler cannot be reached, or has no workers, within a bounded time.
    """

    def __init__(self, client: Client) -> None:
        self.client = client
        self._mark = uuid.uuid4().hex
        self._numbers = count()
        self._threads, self._counted = 0, -float("inf")
        self._alone_since: float | None = None
        self._require_workers()

    def _require_workers(self) -> None:
        seconds = _connect_seconds()
        self._require_open()
        try:
            self.client.wait_for_workers(1, timeout=seconds)
        except (TimeoutError, OSError) as error:
            raise ClusterError(
                f"No worker of {_name(self.client)} has answered in {seconds:g} seconds. Check "
                "that the scheduler runs and has workers, and that this machine can reach it; "
                "distributed.comm.timeouts.connect in the configuration of Dask is the limit."
            ) from error

    def _require_open(self) -> None:
        if self.client.status in ("closing", "closed"):
            raise ClusterError(
                f"The client of {_name(self.client)} is closed, or has lost its scheduler. Create "
                "another client and fit again."
            )

    # ---------------------------------------------------------------------------- submission

    def key(self, function: Callable[..., Any]) -> str:
        """Return a key that no other task has."""
        return f"{function.__name__.strip('_')}-{self._mark}-{next(self._numbers)}"

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future:
        """Return the future of a task, which gets the results of futures among its arguments."""
        self._require_open()
        with _explained(), warnings.catch_warnings():
            # The largest arguments are those of the base function, which are sent once.
            warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
            key = self.key(function)
            return self.client.submit(function, *arguments, key=key, retries=_RETRIES)

    def compute(self, parts: Sequence[Any]) -> list[Future]:
        """Return the futures of delayed objects."""
        self._require_open()
        with _explained():
            futures: list[Future] = self.client.compute(list(parts), retries=_RETRIES)
            return futures

    # ------------------------------------------------------------------------------- results

    @property
    def threads(self) -> int:
        """Number of threads of all workers, which may come and go."""
        now = time.monotonic()
        if now - self._counted > _COUNTED:
            self._threads, self._counted = self._count(), now
        return max(1, self._threads)

    def _count(self) -> int:
        if self.client.scheduler is None:
            return self._threads
        try:
            return sum(self.client.nthreads(callback_timeout=_connect_seconds()).values())
        except (TimeoutError, OSError, RuntimeError):
            return self._threads  # while the client connects again

    def result(self, future: Future) -> Any:
        """Return the result of a task."""
        return next(value for _, value in self.ordered([future], lambda own: own))

    def results(self, futures: Iterable[Future]) -> Iterator[Any]:
        """Yield the results of tasks in their order."""
        for _, value in self.ordered(futures, lambda own: own):
            yield value

    def ordered(
        self, items: Iterable[_T], submit: Callable[[_T], Future]
    ) -> Iterator[tuple[_T, Any]]:
        """Submit a task for each item, and yield the items with their results, in their order.

        Not more tasks are submitted than the threads need to stay busy, so that the results that
        wait to be read do not fill the memory of workers.
        """
        line: deque[tuple[_T, Future]] = deque()
        finished: SimpleQueue[str] = SimpleQueue()
        done: set[str] = set()
        source, more = iter(items), True
        try:
            while True:
                most = _AHEAD * self.threads
                while more and len(line) - len(done) < most and len(line) < _HELD * most:
                    item = next(source, _END)
                    if item is _END:
                        more = False
                        break
                    future = submit(item)
                    line.append((item, future))
                    future.add_done_callback(lambda own: finished.put(own.key))
                if not line:
                    return
                ready = []
                while line and line[0][1].key in done:
                    done.remove(line[0][1].key)
                    ready.append(line.popleft())
                if ready:
                    values = self._gather([future for _, future in ready])
                    yield from zip((item for item, _ in ready), values, strict=True)
                    continue
                self._wait(finished, done)
        finally:
            left = [future for _, future in line]
            line.clear()
            self._cancel(left)

    def _wait(self, finished: SimpleQueue[str], done: set[str]) -> None:
        """Wait until tasks are finished, and look at the cluster now and then."""
        try:
            done.add(finished.get(timeout=_POLL))
        except Empty:
            self._look_after()
            return
        while not finished.empty():
            done.add(finished.get())

    def _look_after(self) -> None:
        """Raise ClusterError if the cluster will not go on."""
        self._require_open()
        now = time.monotonic()
        if self._count():
            self._alone_since = None
            return
        self._alone_since = now if self._alone_since is None else self._alone_since
        if now - self._alone_since > _PATIENCE:
            raise ClusterError(
                f"{_name(self.client)} has had no workers for {_PATIENCE:g} seconds. Start "
                "workers, and fit again; with a checkpoint, the fit goes on where it was."
            )

    def _gather(self, futures: list[Future]) -> list[Any]:
        with _explained():
            values: list[Any] = self.client.gather(futures)
            return values

    def _cancel(self, futures: list[Future]) -> None:
        """Cancel tasks whose results nobody reads any more."""
        if futures and self.client.status == "running":
            self.client.cancel(futures)

    def smallest_worker(self) -> tuple[int, int] | None:
        """Return the memory and the threads of the worker with the least memory for a thread."""
        workers = self.client.scheduler_info().get("workers", {}).values()
        limits = [(own["memory_limit"], own["nthreads"]) for own in workers]
        limits = [own for own in limits if own[0] and own[1]]
        return min(limits, key=lambda own: own[0] / own[1]) if limits else None


_END: Any = object()


def _connect_seconds() -> float:
    """Return the seconds that Dask waits for a connection."""
    return float(dask.utils.parse_timedelta(dask.config.get("distributed.comm.timeouts.connect")))


def _name(client: Client) -> str:
    scheduler = getattr(client, "scheduler", None)
    return f"the cluster at {getattr(scheduler, 'address', 'an unknown address')}"


@contextmanager
def _explained() -> Iterator[None]:
    """Replace errors of the cluster by errors that say what to change."""
    try:
        yield
    except KilledWorker as error:
        raise ClusterError(
            f"The workers that had the task {error.task!r} have died one after the other, most "
            "likely because they ran out of memory. Use a smaller max_leaf_rows or smaller "
            "chunks, fewer threads for each worker, or workers with more memory. The setting "
            "distributed.scheduler.allowed-failures is the number of deaths that is allowed."
        ) from error
    except (asyncio.CancelledError, concurrent.futures.CancelledError) as error:
        raise ClusterError(
            "Tasks of the fit were cancelled, or the connection to the scheduler was lost. Fit "
            "again; with a checkpoint, the fit goes on where it was."
        ) from error
    except CommClosedError as error:
        raise ClusterError(
            f"The connection to the cluster was lost ({error}). Fit again; with a checkpoint, the "
            "fit goes on where it was."
        ) from error
