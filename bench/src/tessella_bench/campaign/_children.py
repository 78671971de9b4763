"""Forked processes that report what they have found."""

from __future__ import annotations

import os
import pickle
import select
import signal
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from tessella_bench.campaign._patience import Patience

_PATIENCE = 40.0  # seconds after which a child counts as hanging
_SIGNALS = (signal.SIGINT, signal.SIGALRM)
OUTSIDE = 4  # exit status of a child whose signal came before or after its work


@dataclass(frozen=True)
class Ending:
    """How a child has ended.

    Attributes
    ----------
    answer : object
        What its work has returned, or None.
    signal : int
        Number of the signal that has ended it, or 0.
    status : int
        Its exit status, if no signal has ended it.
    hung : bool
        Whether it had to be ended.
    """

    answer: Any
    signal: int
    status: int
    hung: bool


def in_child(
    work: Callable[[], Any],
    disturb: Callable[[int], None] | None = None,
    patience: float = _PATIENCE,
) -> Ending:
    """Run some work in a forked process, and disturb it.

    Parameters
    ----------
    work : callable
        Work whose result can be pickled.
    disturb : callable, optional
        Called in this process with the number of the child.
    patience : float
        Seconds to wait for the child, or longer if it is ready to run and does not get to.
    """
    read_end, write_end = os.pipe()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # which background processes ignore
    # A signal that comes before the child is ready waits until it is.
    usual = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    child = os.fork()
    if child == 0:
        _work_and_exit(work, read_end, write_end, usual)
    signal.pthread_sigmask(signal.SIG_SETMASK, usual)
    os.close(write_end)
    try:
        if disturb is not None:
            disturb(child)
        data, ended = _read_all(read_end, child, patience)
    finally:
        os.close(read_end)
    if not ended:
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
    _, code = os.waitpid(child, 0)
    by_signal = os.WTERMSIG(code) if os.WIFSIGNALED(code) else 0
    status = os.WEXITSTATUS(code) if os.WIFEXITED(code) else 0
    return Ending(pickle.loads(data) if data else None, by_signal, status, not ended)


def _work_and_exit(
    work: Callable[[], Any], read_end: int, write_end: int, mask: set[signal.Signals | int]
) -> None:
    """Do the work of a child, send its result, and end without the clean-up of the parent."""
    status = 3
    try:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        os.close(read_end)
        warnings.simplefilter("ignore")
        data = pickle.dumps(work())
        while data:
            data = data[os.write(write_end, data) :]
        status = 0
    except (KeyboardInterrupt, TimeoutError):
        status = OUTSIDE
    finally:
        os._exit(status)


def _read_all(end: int, child: int, seconds: float) -> tuple[bytes, bool]:
    """Read what a child writes, and return whether it has closed its end in time."""
    patience = Patience(child, seconds)
    parts: list[bytes] = []
    while True:
        ready, _, _ = select.select([end], [], [], seconds)
        if not ready:
            if patience.is_over():
                return b"", False
            continue
        part = os.read(end, 1 << 16)
        if not part:
            return b"".join(parts), True
        parts.append(part)
