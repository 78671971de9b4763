"""Measuring cells: one process each, some at a time, stopped at the cap, saved as they finish."""

from __future__ import annotations

import importlib.util
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from os import PathLike, fspath
from typing import IO, Any, Protocol

from tessella_bench._cells import (
    FAILED,
    OK,
    PLAIN,
    PROTOCOL,
    TIME_CAP,
    Cell,
    CellStore,
    Recipe,
    Record,
)
from tessella_bench._machine import PACKAGES, THREAD_VARIABLES, machine, versions
from tessella_bench._worker import DONE, FITTED, READY

REUSED, MEASURED, SKIPPED = "reused", "measured", "skipped"
_START_SECONDS = 300.0  # for imports and data
_POLL_SECONDS = 0.2
# A process that shares its core needs longer; one that waits for ever ends all the same.
_BUSY_FACTOR = 20.0

WALL, PROCESSOR = "wall", "processor"
# The clock to cap by: not every system can end a process by what it has used.
BEST_CLOCK = WALL if importlib.util.find_spec("resource") is None else PROCESSOR


@dataclass(frozen=True)
class Settings:
    """How cells are measured.

    Attributes
    ----------
    time_cap : float
        Seconds that tuning and fit of a cell may take.
    jobs : int
        Cells at the same time, in processes of one thread each.
    data_home : path or None
        As for :func:`tessella.datasets.load`.
    recipes : mapping
        How single methods are run, by name; the others run in this interpreter, without options.
    clock : {"wall", "processor"}
        Which seconds the cap counts. Those of the processor do not depend on what else the machine
        does; with one thread and an idle machine the two are the same.
    """

    time_cap: float = 1800.0
    jobs: int = 1
    data_home: str | PathLike[str] | None = None
    recipes: Mapping[str, Recipe] = field(default_factory=dict)
    clock: str = WALL

    def __post_init__(self) -> None:
        """Refuse what makes no sense."""
        if not self.time_cap > 0:
            raise ValueError(f"time_cap={self.time_cap} must be a positive number of seconds.")
        if self.jobs < 1:
            raise ValueError(f"jobs={self.jobs} must be at least 1.")
        if self.clock not in (WALL, PROCESSOR):
            raise ValueError(f"clock={self.clock!r} must be {WALL!r} or {PROCESSOR!r}.")

    def recipe(self, method: str) -> Recipe:
        """How a method is run."""
        return self.recipes.get(method, PLAIN)

    @property
    def wall_limit(self) -> float:
        """Seconds after which a cell is ended whatever its processor has done."""
        return self.time_cap * (_BUSY_FACTOR if self.clock == PROCESSOR else 1.0)


class Work(Protocol):
    """What is to be measured: groups of cells, one after the other."""

    def groups(self) -> list[list[Cell]]:
        """Cells of a group may run at the same time."""


# Told of a cell, its record (None when it was skipped) and REUSED, MEASURED or SKIPPED.
Watch = Callable[[Cell, Record | None, str], None]


@dataclass
class Stop:
    """A request to end, and the processes that it ends."""

    asked: threading.Event = field(default_factory=threading.Event)
    processes: set[subprocess.Popen[bytes]] = field(default_factory=set)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def now(self) -> None:
        """Start nothing more, and end what runs."""
        self.asked.set()
        with self.lock:
            for process in self.processes:
                _end(process)


Runner = Callable[[Cell, Settings, Stop], Record]


class Stopped(Exception):  # noqa: N818
    """The cell was ended because everything ends."""


def fill(
    plan: Work, store: CellStore, settings: Settings, watch: Watch, runner: Runner | None = None
) -> None:
    """Measure the cells of a plan that are not in the store.

    Finished cells are in the store whatever happens afterwards: Ctrl-C, a kill or an error. After
    Ctrl-C the running processes are ended and KeyboardInterrupt is raised.

    Parameters
    ----------
    plan : Plan or SuitePlan
        What to measure.
    store : CellStore
        Where finished cells are, and go.
    settings : Settings
        Cap, jobs and data.
    watch : callable
        Told of every cell, one at a time.
    runner : callable, optional
        How to measure one; a process of its own by default.
    """
    stop, telling = Stop(), threading.Lock()
    run = runner or run_in_process

    def settle(cell: Cell) -> None:
        if stop.asked.is_set():
            return
        record, how = _settled(cell, store, settings, run, stop)
        with telling:
            watch(cell, record, how)

    with ThreadPoolExecutor(settings.jobs) as pool:
        try:
            for group in plan.groups():
                _finish([pool.submit(settle, cell) for cell in group])
        except BaseException:
            stop.now()
            pool.shutdown(cancel_futures=True)
            raise


def _settled(
    cell: Cell, store: CellStore, settings: Settings, run: Runner, stop: Stop
) -> tuple[Record | None, str]:
    recipe = settings.recipe(cell.method)
    record = store.usable(cell, settings.time_cap, recipe)
    if record is not None:
        return record, REUSED
    first = store.usable(replace(cell, split=0), settings.time_cap, recipe)
    if first is not None and first["status"] != OK:
        return None, SKIPPED  # capped, or not meant for such a set
    head = _head(cell, settings)
    record = head | run(cell, settings, stop)
    store.write(cell, record)
    return record, MEASURED


def _head(cell: Cell, settings: Settings) -> Record:
    """What every record says, however the cell ends."""
    load = round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None
    return {
        **{name: value for name, value in asdict(cell).items() if value is not None},
        "recipe": settings.recipe(cell.method).record(),
        "protocol": PROTOCOL,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "time_cap": settings.time_cap,
        "jobs": settings.jobs,
        "machine": _machine() | {"load_at_start": load},
        "versions": _versions(),
    }


@cache
def _machine() -> dict[str, Any]:
    return machine()


@cache
def _versions() -> dict[str, str | None]:
    return versions(PACKAGES)


def _finish(tasks: list[Future[None]]) -> None:
    """Wait in short steps, so that Ctrl-C is heard, and pass errors on."""
    left = set(tasks)
    while left:
        done, left = wait(left, timeout=_POLL_SECONDS)
        for task in done:
            task.result()


# --------------------------------------------------------------------------- one process a cell


def run_in_process(cell: Cell, settings: Settings, stop: Stop) -> Record:
    """Measure a cell in a process of its own, which is killed at the cap.

    Parameters
    ----------
    cell : Cell
        What to measure.
    settings : Settings
        Cap and data.
    stop : Stop
        Ends the process from another thread.

    Returns
    -------
    dict
        The record, whatever happened.
    """
    with tempfile.TemporaryFile() as errors:
        process = _start(cell, settings, errors)
        with stop.lock:
            stop.processes.add(process)
        try:
            if stop.asked.is_set():
                raise Stopped
            outcome = _followed(process, settings)
        finally:
            _end(process)
            process.wait()
            with stop.lock:
                stop.processes.discard(process)
        if stop.asked.is_set():
            raise Stopped
        return outcome or _failure(process.returncode, errors)


def _ended_by_processor_limit(code: int) -> bool:
    limit = getattr(signal, "SIGXCPU", None)
    return limit is not None and code == -limit


def _start(cell: Cell, settings: Settings, errors: IO[bytes]) -> subprocess.Popen[bytes]:
    recipe = settings.recipe(cell.method)
    process = subprocess.Popen(
        [recipe.python or sys.executable, "-m", "tessella_bench._worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        env=os.environ | dict.fromkeys(THREAD_VARIABLES, "1"),
        start_new_session=True,  # Ctrl-C is for the engine, and a kill reaches grandchildren
    )
    home = None if settings.data_home is None else fspath(settings.data_home)
    request = {
        "cell": asdict(cell),
        "data_home": home,
        "options": dict(recipe.options),
        "processor_cap": settings.time_cap if settings.clock == PROCESSOR else None,
    }
    assert process.stdin is not None
    with suppress(BrokenPipeError):  # if it has died already, the end of its output will tell
        process.stdin.write(json.dumps(request).encode() + b"\n")
        process.stdin.flush()
    return process


def _followed(process: subprocess.Popen[bytes], settings: Settings) -> Record | None:
    """The record a process gives; None if it ends without one."""
    messages: queue.Queue[dict[str, Any] | None] = queue.Queue()
    threading.Thread(target=_read, args=(process.stdout, messages), daemon=True).start()
    limit, stage = _START_SECONDS, "start"
    deadline = time.monotonic() + limit
    while True:
        try:
            message = messages.get(timeout=max(deadline - time.monotonic(), 0.0))
        except queue.Empty:
            if stage == READY and settings.clock == WALL:
                return {"status": TIME_CAP}
            if stage == READY:
                return {"status": FAILED, "error": f"not finished after {limit:g} s on the clock"}
            what = "imports and data" if stage == "start" else "the prediction"
            return {"status": FAILED, "error": f"{what} took more than {limit:g} s"}
        if message is None:
            return None
        if message["event"] == DONE:
            record: Record = message["record"]
            return record
        stage = message["event"]
        limit = settings.wall_limit
        if stage != READY:
            limit = max(limit, _START_SECONDS)
        deadline = time.monotonic() + limit
        assert stage in (READY, FITTED)


def _read(output: IO[bytes], messages: queue.Queue[dict[str, Any] | None]) -> None:
    for line in output:
        messages.put(json.loads(line))
    messages.put(None)


def _failure(code: int, errors: IO[bytes]) -> Record:
    if _ended_by_processor_limit(code):
        return {"status": TIME_CAP}
    errors.seek(0)
    lines = errors.read().decode("utf-8", "replace").strip().splitlines()
    last = lines[-1] if lines else "no message"
    return {"status": FAILED, "error": f"the process ended with code {code}: {last}"}


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is not None:
        return
    if hasattr(os, "killpg"):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # its own session: no other process is in it
    else:
        process.kill()
