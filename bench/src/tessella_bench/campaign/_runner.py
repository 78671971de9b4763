"""Runs cases in processes of their own, and notices those that hang or die."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import IO

from tessella_bench.campaign._outcome import CRASH, HANG, Outcome
from tessella_bench.campaign._parts import Part
from tessella_bench.campaign._patience import Patience
from tessella_bench.campaign._record import Result
from tessella_bench.campaign._worker import END, READY

_START_SECONDS = 120.0  # for the imports of a process
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def run_cases(
    part: Part,
    numbers: Sequence[int],
    tell: Callable[[Result], None],
    jobs: int = 1,
    deadline: float | None = None,
) -> None:
    """Run cases of a part, some processes at a time.

    Parameters
    ----------
    part : Part
        The part.
    numbers : sequence of int
        Numbers of the cases.
    tell : callable
        Called with each result, by one thread at a time.
    jobs : int
        Number of processes.
    deadline : float, optional
        Value of :func:`time.monotonic` after which no new process is started.
    """
    lock = threading.Lock()
    batches = [numbers[k : k + part.batch] for k in range(0, len(numbers), part.batch)]

    def run(batch: Sequence[int]) -> None:
        if deadline is not None and time.monotonic() >= deadline:
            return
        for result in run_batch(part, batch):
            with lock:
                tell(result)

    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(run, batches))


def run_batch(part: Part, numbers: Sequence[int]) -> Iterator[Result]:
    """Run cases in one process, and in another one after each case that has ended the process."""
    left = list(numbers)
    while left:
        for result in _run_until_death(part, tuple(left)):
            left.remove(result.number)
            yield result


def _run_until_death(part: Part, numbers: Sequence[int]) -> Iterator[Result]:
    """Yield results of a process; the last one says how the process ended, if it was too early."""
    command = [sys.executable, "-m", "tessella_bench.campaign._worker", part.name]
    environment = {**os.environ, **dict.fromkeys(_THREADS, "1")}
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            [*command, ",".join(map(str, numbers))],
            stdout=subprocess.PIPE,
            stderr=errors,
            stdin=subprocess.DEVNULL,
            env=environment,
            text=True,
            start_new_session=True,  # so that its children can be killed with it
        )
        try:
            yield from _followed(part, numbers, process, errors)
        finally:
            _kill_group(process)


def _followed(
    part: Part, numbers: Sequence[int], process: subprocess.Popen[str], errors: IO[bytes]
) -> Iterator[Result]:
    assert process.stdout is not None
    lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
    threading.Thread(target=_pump, args=(process.stdout, lines), daemon=True).start()
    began, limit, done = time.monotonic(), _START_SECONDS, 0
    patience: Patience | None = None  # from the first period without an answer on
    while done < len(numbers):
        try:
            line = lines.get(timeout=limit)
        except queue.Empty:
            patience = Patience(process.pid, limit) if patience is None else patience
            if not patience.is_over():
                continue
            seconds = time.monotonic() - began
            detail = f"no answer within {seconds:.0f} seconds"
            yield Result(part.name, numbers[done], seconds, Outcome(HANG, "process", detail))
            return
        if line is None:
            detail = f"{_way_of_death(process)}: {_tail(errors)}"
            seconds = time.monotonic() - began
            yield Result(part.name, numbers[done], seconds, Outcome(CRASH, "process", detail))
            return
        word, _, rest = line.partition(" ")
        if word in (READY, END):
            began, limit, patience = time.monotonic(), part.seconds, None
        if word == END:
            number, seconds, outcome = json.loads(rest)
            done += 1
            yield Result(part.name, number, seconds, Outcome(**outcome))


def _pump(stream: IO[str], lines: queue.SimpleQueue[str | None]) -> None:
    """Pass lines on, and None at the end."""
    for line in stream:
        lines.put(line.rstrip("\n"))
    lines.put(None)


def _way_of_death(process: subprocess.Popen[str]) -> str:
    code = process.wait()
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit status {code}"


def _tail(errors: IO[bytes]) -> str:
    errors.seek(0)
    return " ".join(errors.read().decode(errors="replace").split())[-400:]


def _kill_group(process: subprocess.Popen[str]) -> None:
    """End a process and the children that it has left behind."""
    if hasattr(os, "killpg"):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    process.wait()
    if process.stdout is not None:
        process.stdout.close()
