"""Time limits: a fit ends in time, with a certificate that is true."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

import tessella
from tessella_bench.campaign._certificates import faults
from tessella_bench.campaign._outcome import FALSE, FINE, HANG, Outcome, judged

# A limit may be missed by one step of a solver. Its seconds are those of the processor, because
# machines of the campaign are busy.
_SLACK_SECONDS, _SLACK_FACTOR = 15.0, 4.0
_CHECKED = 60  # rows and features up to which the slow implementation is used


def run(number: int, folder: Path) -> Outcome:
    """Fit with a random time limit."""
    del folder
    rng = np.random.default_rng([7, number])
    wide = number % 3 == 2
    m, n = (40, int(rng.integers(100, 800))) if wide else (int(rng.integers(10, 900)), 3)
    limit = float(10.0 ** rng.uniform(-3, 0.5))
    X = rng.random((m, n))
    target = np.sin(7 * X[:, 0]) + 0.3 * rng.standard_normal(m)
    model, y = _estimator(rng, target, limit)
    kind = f"{'wide' if wide else 'long'}, {type(model).__name__}"
    started = time.process_time()
    try:
        model.fit(X, y)
    except Exception as error:
        return judged(kind, error)
    seconds = time.process_time() - started
    detail = f"{m} x {n}, limit {limit:.3f}, {seconds:.1f} seconds, {model.status_}"
    if seconds > _SLACK_FACTOR * limit + _SLACK_SECONDS:
        return Outcome(HANG, kind, f"{detail}: too late")
    found = faults(model, X, y) if m <= _CHECKED and n <= 4 else []
    if found:
        return Outcome(FALSE, kind, f"{detail}: {' '.join(found)}")
    return Outcome(FINE, kind, detail)


def _estimator(rng: np.random.Generator, target: Any, limit: float) -> tuple[Any, Any]:
    params: dict[str, Any] = {
        "C": float(10.0 ** rng.uniform(0, 6)),
        "tol": 1e-10,
        "max_iter": 10**6,
        "time_limit": limit,
        "n_jobs": 1,
    }
    sign = np.where(target > np.median(target), 1, -1)
    choices: list[tuple[Any, Any]] = [
        (tessella.LearnedKernelSVC(**params), sign),
        (tessella.LearnedKernelSVR(**params), target),
        (tessella.LearnedKernelRidge(**params), target),
        (tessella.MultipleKernelSVC(kernels="standard", **params), sign),
        (tessella.MultipleKernelSVR(kernels="standard", **params), target),
    ]
    return choices[rng.integers(len(choices))]
