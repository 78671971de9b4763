"""Limits of memory, set before a fit or while it runs: an answer, or a clear error."""

from __future__ import annotations

import resource
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

import tessella
from tessella_bench.campaign._certificates import faults
from tessella_bench.campaign._children import in_child
from tessella_bench.campaign._outcome import CRASH, FALSE, FINE, HANG, REFUSED, Outcome, is_clear

_MEGABYTE = 2**20


def run(number: int, folder: Path) -> Outcome:
    """Fit with little memory in a child."""
    del folder
    rng = np.random.default_rng([6, number])
    during = number % 2 == 1
    room, delay = int(10.0 ** rng.uniform(0, 2.7)) * _MEGABYTE, float(10.0 ** rng.uniform(-3, -0.5))
    wide = bool(rng.random() < 0.3)
    m, n = (40, int(rng.integers(150, 400))) if wide else (int(rng.integers(40, 1500)), 4)
    X = rng.random((m, n))
    y = np.sign(X[:, 0] - 0.5 + 0.2 * rng.standard_normal(m))
    solvers = ["auto"] if wide or m > 800 else ["auto", "frank-wolfe", "joint"]
    model = tessella.LearnedKernelSVC(
        float(10.0 ** rng.uniform(-1, 3)),
        solver=solvers[rng.integers(len(solvers))],
        n_jobs=int(rng.integers(1, 4)),
        time_limit=10.0,
    )
    kind = f"limit {'during' if during else 'before'} a fit"
    ending = in_child(lambda: _work(model, X, y, room, delay if during else None), patience=90.0)
    detail = f"{m} x {n}, {room // _MEGABYTE} MiB, {model.solver}"
    if ending.hung:
        return Outcome(HANG, kind, detail)
    if ending.answer is None:
        return Outcome(CRASH, kind, f"{detail}: signal {ending.signal}, status {ending.status}")
    what, found = ending.answer
    if found:
        return Outcome(FALSE, kind, f"{detail}: {what}: {' '.join(found)}")
    return Outcome(REFUSED if what == "refused" else FINE, kind, f"{detail}: {what}")


def _work(model: Any, X: Any, y: Any, room: int, delay: float | None) -> tuple[str, list[str]]:
    if delay is None:
        _limit(room)
    else:
        threading.Thread(target=_limit_later, args=(room, delay), daemon=True).start()
    try:
        model.fit(X, y)
    except MemoryError:
        return "refused", []
    except RuntimeError as error:  # a thread that cannot be started says so
        return "refused", [] if "thread" in str(error) else [f"RuntimeError: {error}"]
    except Exception as error:
        return "refused", [] if is_clear(error) else [f"{type(error).__name__}: {error}"]
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    checked = len(X) <= 60 and X.shape[1] <= 6  # the slow implementation is for small problems
    return model.status_, faults(model, X, y) if checked else []


def _limit(room: int) -> None:
    """Let this process allocate so many bytes more than it has."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + room, resource.RLIM_INFINITY))


def _limit_later(room: int, delay: float) -> None:
    time.sleep(delay)
    _limit(room)


# A child must not write a core file for each crash.
resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
