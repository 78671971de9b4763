"""The number of threads of the compiled core and of BLAS."""

from __future__ import annotations

import _thread
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress
from contextvars import copy_context
from functools import cache
from typing import Any, ClassVar, TypeVar

import numpy as np
from scipy.linalg import cholesky
from threadpoolctl import ThreadpoolController

from tessella import _core
from tessella.backend._deadline import check_deadline

_SIDE_WORTH_THREADS = 2500
_MOST_THREADS = 64  # or as many as there are cores

_S = TypeVar("_S")
_T = TypeVar("_T")


def effective_threads(n_jobs: int | None = None) -> int:
    """Return the number of threads that `n_jobs` stands for.

    Parameters
    ----------
    n_jobs : int or None
        None stands for all cores that this process may use, or for ``OMP_NUM_THREADS`` if this
        environment variable is set. Negative numbers are counted from the end as in joblib: -1
        stands for all cores, and -2 for all cores but one. Results do not depend on the number of
        threads, and no more than 64 or the number of cores, whichever is larger, are used.

    Returns
    -------
    int
        Number of threads, at least 1.
    """
    cores = _usable_cores()
    if n_jobs is None:
        n_jobs = _threads_of_environment() or cores
    if n_jobs == 0:
        raise ValueError("n_jobs=0 is not allowed; use None for all cores or a positive number.")
    wanted = n_jobs if n_jobs > 0 else max(1, cores + 1 + n_jobs)
    return min(wanted, max(_MOST_THREADS, cores))


def instruction_set() -> str:
    """Return the name of the instruction set that the compiled loops use.

    Returns
    -------
    str
        ``"avx512"`` or ``"avx2"`` on processors that have them, otherwise ``"baseline"``, which
        is SSE2 on x86-64 and NEON on ARM. The environment variable ``TESSELLA_SIMD`` is the widest
        set that may be used; it is read when the library is imported. All instruction sets give
        the same results to the last bit.

    Examples
    --------
    >>> from tessella.backend import instruction_set
    >>> instruction_set() in ("baseline", "avx2", "avx512")
    True
    """
    return _core.instruction_set()


def _threads_of_environment() -> int | None:
    """Return the number in ``OMP_NUM_THREADS``, by which joblib and Dask divide the cores."""
    first = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    return int(first) if first.isascii() and first.isdigit() and int(first) > 0 else None


def _usable_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def in_threads(work: Callable[[_S], _T], pieces: list[_S], n_jobs: int | None) -> list[_T]:
    """Return the results of pieces of work in their order, whatever the number of threads.

    The deadline of the calling thread holds for all pieces.
    """

    def in_time(piece: _S) -> _T:
        check_deadline()
        return work(piece)

    threads = min(effective_threads(n_jobs), len(pieces))
    if threads < 2:
        return [in_time(piece) for piece in pieces]
    contexts = [copy_context() for _ in pieces]  # one cannot be entered twice at a time
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(lambda context, piece: context.run(in_time, piece), contexts, pieces))


def limit_blas(n_jobs: int | None = None, size: int = 0) -> AbstractContextManager[Any]:
    """Limit the number of threads of BLAS inside a ``with`` block.

    For matrices with less than some thousands of rows, BLAS uses one thread. Starting other threads
    would take longer than a small product, and BLAS keeps its threads busy for a while after each
    call, which slows down the compiled core. For larger matrices, BLAS uses `n_jobs` threads.

    Parameters
    ----------
    n_jobs : int or None
        Number of threads for large matrices, as in :func:`effective_threads`.
    size : int, default=0
        Number of rows of the matrices that are factorised.

    Returns
    -------
    context manager
        Object that limits the number of threads until the ``with`` block ends.
    """
    return _BlasLimit(1 if size < _SIDE_WORTH_THREADS else effective_threads(n_jobs))


class _BlasLimit:
    """A limit of the threads of BLAS, which hold for the whole process.

    While fits of several threads overlap, the smallest of their limits holds, and the last one to
    end restores what was there before the first. Otherwise a fit that ends would hand back threads
    in the middle of another one, whose results would then round differently.
    """

    # Limits that hold, with the threads that have set them, and what was there before the first
    # of them, until it is there again.
    _held: ClassVar[list[tuple[int, int]]] = []
    _before: ClassVar[list[int]] = []
    _lock: ClassVar[Any] = threading.Lock()

    def __init__(self, threads: int) -> None:
        self._threads = threads

    def __enter__(self) -> None:
        self._entry = self._threads, threading.get_ident()
        libraries = _loaded_blas()
        with self._lock:
            if not self._before:
                self._before[:] = [library.num_threads for library in libraries]
            try:
                self._held.append(self._entry)
                self._set()
            except BaseException:  # of a signal handler: the block is not entered
                self._release()
                raise

    def __exit__(self, *exception: object) -> None:
        with self._lock:
            self._release()

    def _release(self) -> None:
        """Take the own limit back."""
        if self._entry in self._held:
            self._held.remove(self._entry)
        self._set()
        if not self._held:
            self._before.clear()

    @classmethod
    def _set(cls) -> None:
        """Let the smallest limit hold, or what was there before."""
        smallest = min((threads for threads, _ in cls._held), default=None)
        for library, before in zip(_loaded_blas(), cls._before, strict=True):
            wanted = before if smallest is None else min(smallest, before)
            if library.num_threads != wanted:
                # Since version 3.7, threadpoolctl lets one thread at a time set the number and
                # ignores others; here the lock and the count of the limits serve that purpose.
                getattr(library, "_real_set_num_threads", library.set_num_threads)(wanted)

    @classmethod
    def after_fork(cls) -> None:
        """Forget the limits of threads that do not exist in a child process.

        What was there before them is kept: the next limit to end in the child restores it.
        """
        cls._lock = threading.Lock()
        own = threading.get_ident()
        cls._held[:] = [entry for entry in cls._held if entry[1] == own]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_BlasLimit.after_fork)


def _let_blas_allocate() -> None:
    """Let the BLAS libraries of numpy and scipy allocate the buffers that they keep.

    OpenBLAS allocates them in the first call that needs them, and ends the process if it cannot.
    """
    np.linalg.cholesky(np.eye(2))
    cholesky(np.eye(2))


@cache
def _loaded_blas() -> list[Any]:
    """Return the BLAS libraries of this process. Finding them takes longer than a small fit.

    Another thread finds them. threadpoolctl looks at paths with functions that catch OSError, in a
    callback of the dynamic loader, from which no exception returns: one that the user's signal
    handler raises in there would be lost. Handlers run in the main thread, which waits here.
    """
    _let_blas_allocate()
    found: list[Any] = []
    # Neither Thread.start nor Thread.join may be left by an exception at any point; a lock may.
    searching = threading.Lock()

    def search() -> None:
        try:
            found.append(ThreadpoolController())
        finally:
            searching.release()

    searching.acquire()
    with suppress(RuntimeError):  # there may be no memory for another thread
        _thread.start_new_thread(search, ())
        searching.acquire()
    controller = found[0] if found else ThreadpoolController()
    return list(controller.select(user_api="blas").lib_controllers)
