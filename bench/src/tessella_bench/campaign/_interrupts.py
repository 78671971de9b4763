"""Processes that get a signal while they fit.

After Ctrl-C a fit keeps its best certified model, or raises KeyboardInterrupt and leaves the
estimator as it was. The exception of another handler is raised, and not lost.
"""

from __future__ import annotations

import signal
import time
from pathlib import Path
from typing import Any

import numpy as np

import tessella
from tessella_bench.campaign._certificates import faults
from tessella_bench.campaign._children import OUTSIDE, Ending, in_child
from tessella_bench.campaign._kills import killer
from tessella_bench.campaign._outcome import CHANGED, CRASH, FALSE, FINE, HANG, Outcome

_RNG = np.random.default_rng(0)
_X = _RNG.random((150, 3))
_SIGN = np.sign(np.sin(9 * _X[:, 0]) + _X[:, 1] - 0.5 + 0.3 * _RNG.standard_normal(150))
_TARGET = np.sin(5 * _X[:, 0]) + _X[:, 1] + 0.1 * _RNG.standard_normal(150)
_LONG: dict[str, Any] = {"tol": 1e-13, "max_iter": 10**6, "time_limit": 30.0, "n_jobs": 1}


def run(number: int, folder: Path) -> Outcome:
    """Send a signal at a random time, and look at what the fit has made of it."""
    del folder
    rng = np.random.default_rng([4, number])
    model, y = _estimator(rng)
    alarm = bool(rng.random() < 0.3)
    delay = float(10.0 ** rng.uniform(-3, 0.3))
    kind = f"{'alarm' if alarm else 'Ctrl-C'}, {type(model).__name__}"
    disturb = killer(delay, signal.SIGALRM if alarm else signal.SIGINT)
    signal.signal(signal.SIGALRM, _ring)  # here, so that the child has the handler from the start
    return _judged(kind, alarm, in_child(lambda: _work(model, y), disturb))


def _estimator(rng: np.random.Generator) -> tuple[Any, Any]:
    choices: list[tuple[Any, Any]] = [
        (tessella.LearnedKernelSVC(1e4, solver="working-set", **_LONG), _SIGN),
        (tessella.LearnedKernelSVC(1e4, solver="frank-wolfe", **_LONG), _SIGN),
        (tessella.LearnedKernelSVR(1e4, solver="apd", **_LONG), _TARGET),
        (tessella.LearnedKernelRidge(1e4, solver="hybrid", **_LONG), _TARGET),
        (tessella.MultipleKernelSVC(1e4, weighting="simple", **_LONG), _SIGN),
        (tessella.MultipleKernelSVR(1e4, **_LONG), _TARGET),
    ]
    return choices[rng.integers(len(choices))]


def _work(model: Any, y: Any) -> tuple[str, Any]:
    """Fit in the child; return what came of it, and faults of the model."""
    try:
        model.fit(_X, y)
        time.sleep(0.0 if model.status_ == "interrupted" else 3.0)  # the signal may still come
    except (KeyboardInterrupt, TimeoutError) as error:
        left = [name for name in vars(model) if name.endswith("_")]
        return type(error).__name__, left if not hasattr(model, "status_") else []
    return model.status_, faults(model, _X, y)


def _ring(*_: Any) -> None:
    raise TimeoutError("the alarm of the campaign")


def _judged(kind: str, alarm: bool, ending: Ending) -> Outcome:
    if ending.hung:
        return Outcome(HANG, kind, "the fit did not end after the signal")
    if ending.answer is None and ending.status == OUTSIDE:
        return Outcome(FINE, kind, "the signal came before the fit")
    if ending.answer is None:
        return Outcome(CRASH, kind, f"signal {ending.signal}, status {ending.status}")
    what, found = ending.answer
    if what in ("KeyboardInterrupt", "TimeoutError"):
        if found:
            return Outcome(CHANGED, kind, f"the fit failed and left {found}")
        return Outcome(FINE, kind, what)
    if found:
        return Outcome(FALSE, kind, f"{what}: {' '.join(found)}")
    if alarm and what == "interrupted":
        return Outcome(CHANGED, kind, "the exception of the handler was lost")
    return Outcome(FINE, kind, what)
