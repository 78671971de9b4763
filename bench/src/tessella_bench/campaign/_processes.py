"""Forked and spawned processes, and threads: all of them predict and fit what one process does."""

from __future__ import annotations

import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np

import tessella
from tessella_bench.campaign._children import in_child
from tessella_bench.campaign._outcome import CHANGED, CRASH, FINE, HANG, Outcome

_RNG = np.random.default_rng(0)
_X = _RNG.random((80, 3))
_SIGN = (_X[:, 0] > _X[:, 1]).astype(int)
_NEW = _RNG.random((500, 3))
_METHODS = ("os.fork", "fork", "spawn", "forkserver", "threads", "fork from a thread")


def run(number: int, folder: Path) -> Outcome:
    """Use threads here, then predict and fit elsewhere, and compare.

    Whoever runs the cases notices a pool that hangs.
    """
    del folder
    rng = np.random.default_rng([5, number])
    method, threads = _METHODS[number % len(_METHODS)], int(rng.integers(1, 5))
    model = tessella.LearnedKernelSVC(float(10.0 ** rng.uniform(-2, 3)), n_jobs=threads)
    model.fit(_X, _SIGN)
    expected = model.decision_function(_NEW)
    try:
        answers = _elsewhere(method, model)
    except BrokenProcessPool as error:
        return Outcome(CRASH, method, str(error))
    if isinstance(answers, Outcome):
        return answers
    worst = max(float(np.abs(own - expected).max()) for own in answers)
    scale = float(np.abs(expected).max())
    if not worst <= 1e-9 * scale:
        return Outcome(CHANGED, method, f"scores differ by {worst / scale:.1e}, {threads} threads")
    return Outcome(FINE, method, f"{threads} threads")


def task(model: Any) -> Any:
    """Predict with a model that came from another process, and with one that is fitted here."""
    first = model.decision_function(_NEW)
    again = model.fit(_X, _SIGN).decision_function(_NEW)
    return first if np.array_equal(first, again) else again


def _elsewhere(method: str, model: Any) -> Any:
    if method == "threads":
        with ThreadPoolExecutor(6) as pool:
            jobs = [pool.submit(task, deepcopy(model)) for _ in range(12)]
            return [job.result() for job in jobs]
    if method == "os.fork":
        return _forked(model)
    if method == "fork from a thread":
        with ThreadPoolExecutor(3) as pool:
            jobs = [pool.submit(model.decision_function, _NEW) for _ in range(2)]
            answer = _forked(model)
            return answer if isinstance(answer, Outcome) else [*answer, *(j.result() for j in jobs)]
    context = multiprocessing.get_context(method)
    workers = ProcessPoolExecutor(2, mp_context=context)
    try:
        jobs = [workers.submit(task, model) for _ in range(3)]
        return [job.result() for job in jobs]
    finally:
        workers.shutdown(wait=False, cancel_futures=True)


def _forked(model: Any) -> Any:
    ending = in_child(lambda: task(model))
    if ending.hung:
        return Outcome(HANG, "os.fork", f"process {os.getpid()} has a child that does not answer")
    if ending.answer is None:
        return Outcome(CRASH, "os.fork", f"signal {ending.signal}, status {ending.status}")
    return [ending.answer]
