"""One rule for the number of threads, for the compiled loops and for BLAS alike."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

from tessella import _core

_SIDE_WORTH_THREADS = 2500


def effective_threads(n_jobs: int | None = None) -> int:
    """Number of threads that `n_jobs` stands for.

    Parameters
    ----------
    n_jobs : int or None
        None for every core this process may use (or ``OMP_NUM_THREADS``), a positive count, or
        a negative one counted from the end as in joblib: -1 is all cores, -2 all but one.

    Returns
    -------
    int
        At least 1.
    """
    if n_jobs is None:
        return max(1, _core.max_threads())
    if n_jobs == 0:
        raise ValueError("n_jobs=0 has no meaning; use None for all cores or a positive number.")
    if n_jobs > 0:
        return n_jobs
    return max(1, _usable_cores() + 1 + n_jobs)


def _usable_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def limit_blas(n_jobs: int | None = None, size: int = 0) -> AbstractContextManager[Any]:
    """Choose the threads of BLAS inside a ``with`` block, for factorisations of side `size`.

    One thread below some thousands. Waking the others would cost several times a small product,
    and BLAS keeps its threads spinning for a while after each call, in the way of the compiled
    loops, which do all work of size m² here. Above, `n_jobs` threads.
    """
    threads = 1 if size < _SIDE_WORTH_THREADS else effective_threads(n_jobs)
    limits: AbstractContextManager[Any] = _loaded_blas().limit(limits=threads, user_api="blas")
    return limits


@cache
def _loaded_blas() -> ThreadpoolController:
    """The BLAS libraries of this process: finding them takes longer than a small fit."""
    return ThreadpoolController()
