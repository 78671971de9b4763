"""Processes that are killed while they fit, save or write a checkpoint.

Whatever the moment, the file of a model is the old one or the new one, a checkpoint can be read,
the fit goes on to a true certificate, and the next write leaves no temporary file behind.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import tessella
from tessella.kernels import Gaussian, Polynomial
from tessella_bench.campaign._certificates import faults
from tessella_bench.campaign._children import in_child
from tessella_bench.campaign._outcome import CHANGED, CRASH, FALSE, FINE, HANG, Outcome

_RNG = np.random.default_rng(0)
_X = _RNG.random((60, 3))
_SIGN = (_X[:, 0] > _X[:, 1]).astype(int)
_TARGET = np.sin(5 * _X[:, 0]) + _X[:, 1]
_ROUNDS = 10_000  # writes of a child, which does not live to see the last


@cache
def _pair() -> tuple[Any, Any]:
    """Return two models that one path has in turn."""
    first = tessella.LearnedKernelSVC().fit(_X, _SIGN)
    return first, tessella.LearnedKernelSVR().fit(_X, _TARGET)


def run(number: int, folder: Path) -> Outcome:
    """Kill a process at a random time, and look at what it leaves."""
    rng = np.random.default_rng([3, number])
    kind = ["save", "checkpoint", "fit"][number % 3]
    delay = float(10.0 ** rng.uniform(-3, -0.3))
    if kind == "save":
        return _during_save(folder, delay)
    return _during_fit(folder, delay, rng, often=kind == "checkpoint")


def killer(delay: float, what: int = signal.SIGKILL) -> Callable[[int], None]:
    """Return a function that sends a signal to a process after a time."""

    def disturb(child: int) -> None:
        time.sleep(delay)
        with suppress(ProcessLookupError):
            os.kill(child, what)

    return disturb


def _during_save(folder: Path, delay: float) -> Outcome:
    path, (first, second) = folder / "model.tsl", _pair()
    tessella.save(first, path)

    def work() -> None:
        for round_ in range(_ROUNDS):
            tessella.save((second, first)[round_ % 2], path)

    ending = in_child(work, killer(delay))
    if ending.hung:
        return Outcome(HANG, "save", "the child was not ended by SIGKILL")
    model = tessella.load(path)
    expected = first if hasattr(model, "classes_") else second
    if not np.array_equal(model.predict(_X), expected.predict(_X)):
        return Outcome(CHANGED, "save", "the file is neither the old nor the new model")
    left = [own for own in os.listdir(folder) if own != path.name]
    tessella.save(second, path)
    after = [own for own in os.listdir(folder) if own != path.name]
    if after:
        return Outcome(CHANGED, "save", f"temporary files stay: {after}")
    return Outcome(FINE, "save", f"{len(left)} temporary files removed")


def _during_fit(folder: Path, delay: float, rng: np.random.Generator, often: bool) -> Outcome:
    kind = "checkpoint" if often else "fit"
    path = folder / "fit.ckpt"
    few = (Gaussian(0.5), Gaussian(2.0), Polynomial(2))
    problems: list[tuple[Any, Any]] = [
        (tessella.LearnedKernelSVC(solver="working-set"), _SIGN),
        (tessella.LearnedKernelSVR(solver="frank-wolfe", epsilon=0.1), _TARGET),
        (tessella.MultipleKernelSVC(10.0, few), _SIGN),
        (tessella.LearnedKernelRidge(solver="frank-wolfe"), _TARGET),
    ]
    model, y = problems[rng.integers(len(problems))]
    model.set_params(tol=1e-6, checkpoint=path, n_jobs=1)

    def work() -> None:
        if often:  # every record is written, because the clock runs fast
            ticks, clock = [0.0], time.monotonic

            def fast() -> float:
                ticks[0] += 60.0
                return clock() + ticks[0]

            time.monotonic = fast
        for _ in range(_ROUNDS):
            model.fit(_X, y)

    ending = in_child(work, killer(delay))
    if ending.hung:
        return Outcome(HANG, kind, "the child was not ended by SIGKILL")
    if ending.signal != signal.SIGKILL:
        return Outcome(CRASH, kind, f"the child ended by itself: {ending}")
    existed = path.exists()
    model.set_params(time_limit=20.0, max_iter=20).fit(_X, y)
    found = faults(model, _X, y)
    if found:
        return Outcome(FALSE, kind, " ".join(found))
    left = [own for own in os.listdir(folder) if own != path.name]
    if left:
        return Outcome(CHANGED, kind, f"temporary files stay: {left}")
    return Outcome(FINE, kind, "resumed" if existed else "began anew")
