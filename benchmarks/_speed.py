"""What the rows of the speed table share: settings, clocks, peers from the cache, outcomes."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from _common import CLASSIFICATION, Dataset
from _report import Cache, text

from tessella import LearnedKernelSVC, LearnedKernelSVR
from tessella.estimators import paper_settings
from tessella_bench._machine import THREAD_VARIABLES

LONG = 20.0  # seconds from which on a measurement is made once
_TIMES = ((LONG, 1), (5.0, 2), (1.0, 3), (0.0, 5))  # repetitions by the seconds of the first


@dataclass(frozen=True)
class Session:
    """The settings of one run, and the peers' results it may reuse.

    Attributes
    ----------
    arguments : Namespace
        Options of the command line.
    cache : Cache
        Peers' results on this machine with these versions.
    load : float, optional
        Load of the machine before this run began. Kept beside a peer's time, because a busy
        machine makes a peer slow (threads of BLAS that wait for each other: many times) and a
        ratio flattering.
    """

    arguments: argparse.Namespace
    cache: Cache
    load: float | None = None

    @property
    def quick(self) -> bool:
        """Whether small sizes are asked for, to see that everything runs."""
        return bool(self.arguments.quick)

    @property
    def threads(self) -> int:
        """Threads of both sides."""
        return int(self.arguments.threads)

    @property
    def seed(self) -> int:
        """Of the rows drawn."""
        return int(self.arguments.seed)

    def sizes(self, full: Sequence[int], quick: Sequence[int]) -> Sequence[int]:
        """The sizes of a full run or of a quick one."""
        return quick if self.quick else full

    def known(self, key: str) -> dict[str, Any] | None:
        """A peer's result of an earlier run, or None."""
        return self.cache.cell(key, dict) if key in self.cache else None

    def keep(self, key: str, result: dict[str, Any]) -> dict[str, Any]:
        """Keep a peer's result for later runs."""
        return self.cache.cell(key, lambda: result | {"load": self.load})


@dataclass(frozen=True)
class Outcome:
    """A row of the table, measured.

    Attributes
    ----------
    measured : str
        The number that stands against the target.
    missed : str
        What missed the target; empty when nothing did.
    columns : dict
        Header and key of the columns of the detailed table.
    cells : list of dict
        Its lines.
    notes : list of str
        How it was measured.
    """

    measured: str
    missed: str
    columns: dict[str, str]
    cells: list[dict[str, Any]]
    notes: list[str] = field(default_factory=list)

    @property
    def verdict(self) -> str:
        """ "ok", or what was missed."""
        return f"missed: {self.missed}" if self.missed else "ok"


# -------------------------------------------------------------------------------------- clocks


@dataclass
class Timed:
    """Seconds of the repetitions of a call, and its last result."""

    seconds: list[float]
    result: Any

    @property
    def best(self) -> float:
        """The fastest repetition: what else ran on the machine only ever adds."""
        return min(self.seconds)


def timed(call: Callable[[], Any]) -> Timed:
    """One call."""
    begin = time.perf_counter()
    result = call()
    return Timed([time.perf_counter() - begin], result)


def alternate(*calls: Callable[[], Any], most: int = 5) -> list[Timed]:
    """Calls in turn, so that a slow minute of the machine hits all of them alike.

    How often depends on the slowest of the first turn.
    """
    clocks = [timed(call) for call in calls]
    slowest = max(clock.best for clock in clocks)
    times = min(most, next(times for least, times in _TIMES if slowest >= least))
    for _ in range(times - 1):
        for clock, call in zip(clocks, calls, strict=True):
            again = timed(call)
            clock.seconds += again.seconds
            clock.result = again.result
    return clocks


def race(
    session: Session,
    key: str,
    peer: Callable[[], Any],
    ours: Callable[[], Any],
    describe: Callable[[Any], dict[str, Any]],
) -> tuple[dict[str, Any], Timed]:
    """The peer's cell ("seconds", "cached", and what `describe` tells of its result) and ours."""
    known = session.known(key)
    if known is not None:
        return known | {"cached": True}, alternate(ours)[0]
    theirs, mine = alternate(peer, ours)
    cell = session.keep(key, {"seconds": theirs.best, **describe(theirs.result)})
    return cell | {"cached": False}, mine


def prepare_memory(n_bytes: float) -> None:
    """Touch memory that the next measurement will ask for.

    Pages that a virtual machine has never used, or has given back, cost its host a moment each,
    once: whoever comes first would pay for the others.
    """
    np.empty(int(n_bytes) // 8).fill(0.0)


# -------------------------------------------------------------------------------------- models


def estimator(task: str, **settings: Any) -> Any:
    """The estimator of a task, with the paper's setting where nothing else is given."""
    kind = LearnedKernelSVC if task == CLASSIFICATION else LearnedKernelSVR
    return kind(**{**paper_settings(task), **settings})


def fit_facts(model: Any) -> dict[str, Any]:
    """What stands beside the time of a fit."""
    last = model.history_[-1]
    return {
        "solver": model.solver_,
        "status": model.status_,
        "gap": model.gap_,
        "objective": model.objective_,
        "n_svm": last.n_svm,
        "svm_pair_steps": last.svm_iter,
        "n_newton": last.n_newton,
        "support": len(model.support_),
    }


def standardised(data: Dataset) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Labels as they are, targets with mean 0 and deviation 1: what the estimators learn."""
    if data.task == CLASSIFICATION:
        return data.y
    targets: np.ndarray[Any, np.dtype[np.float64]] = (data.y - data.y.mean()) / data.y.std()
    return targets


# ------------------------------------------------------------------------------------ verdicts


def worst(cells: Sequence[dict[str, Any]], key: str) -> float:
    """The largest value of a key; NaN without any."""
    values = [float(cell[key]) for cell in cells if cell.get(key) is not None]
    return max(values, default=float("nan"))


def at_most(cells: Sequence[dict[str, Any]], key: str, limit: float) -> str:
    """What missed "at most `limit`", in words for a verdict."""
    over = [cell for cell in cells if not (cell.get(key) is not None and cell[key] <= limit)]
    if not over:
        return ""
    return f"{len(over)} of {len(cells)} above {text(float(limit))}"


def spread(cells: Sequence[dict[str, Any]], key: str) -> str:
    """ "smallest to largest" of a key."""
    values = [float(cell[key]) for cell in cells if cell.get(key) is not None]
    if not values:
        return "–"
    low, high = text(min(values)), text(max(values))
    return low if low == high else f"{low} to {high}"


# ----------------------------------------------------------------------------------- processes


def in_process(
    script: str,
    request: dict[str, Any],
    python: str = sys.executable,
    blas_threads: int | None = None,
    timeout: float | None = None,
) -> Any:
    """What a script of this folder answers, in JSON on its last line, to a request in JSON.

    Raises subprocess.TimeoutExpired after `timeout` seconds.
    """
    command = [python, str(Path(__file__).parent / script), json.dumps(request)]
    limits = {} if blas_threads is None else dict.fromkeys(THREAD_VARIABLES, str(blas_threads))
    answer = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | limits,
        timeout=timeout,
    )
    if answer.returncode != 0:
        told = answer.stderr.strip().splitlines()[-1:] or [f"exit code {answer.returncode}"]
        raise RuntimeError(f"{script}: {told[0]}")
    return json.loads(answer.stdout.strip().splitlines()[-1])
