"""Waiting for processes of a machine that may be busy with other work.

A process that has used all its time, or that sleeps although it should answer, hangs. One that is
ready to run but gets no processor does not: it is given more time, up to a limit.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

_MOST_PERIODS = 30  # after which a process counts as hanging, however busy the machine is
_LOOKS, _PAUSE = 20, 0.1  # a process that runs now and then is seen to run in one of these


class Patience:
    """Decides whether a process that has not answered in time is hanging.

    Parameters
    ----------
    group : int
        Number of the process, or of the group of processes, that is waited for.
    seconds : float
        Seconds of the processor that it may take, and of the clock between two looks.
    """

    def __init__(self, group: int, seconds: float) -> None:
        self._group, self._seconds = group, seconds
        self._used = own_seconds(group)  # a group has no other processes before its work begins
        self._periods = 0

    def is_over(self) -> bool:
        """Return whether the process hangs, at the end of a period in which it did not answer."""
        self._periods += 1
        if self._periods >= _MOST_PERIODS or used_seconds(self._group) - self._used > self._seconds:
            return True
        return not any(self._looks())

    def _looks(self) -> Iterator[bool]:
        for _ in range(_LOOKS):
            yield wants_to_run(self._group)
            time.sleep(_PAUSE)


def used_seconds(group: int) -> float:
    """Return the seconds of the processor that a process or the processes of a group have used."""
    return sum(map(_seconds, _stats(group, lambda _: [""])))


def own_seconds(process: int) -> float:
    """Return the seconds of one process, without a look at all others: each case begins with it."""
    with suppress(OSError, IndexError, ValueError):  # it has ended, or there is no /proc
        return _seconds(_fields(Path(f"/proc/{process}/stat")))
    return 0.0


def _seconds(fields: list[str]) -> float:
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def wants_to_run(group: int) -> bool:
    """Return whether a thread of a process or of a group is running or ready to run."""
    return any(fields[0] in "RD" for fields in _stats(group, _threads))


def _threads(process: Path) -> list[str]:
    return [f"task/{own.name}" for own in (process / "task").iterdir()]


def _stats(group: int, parts: Callable[[Path], list[str]]) -> Iterator[list[str]]:
    """Yield the fields of /proc/.../stat behind the name, for each process or each thread."""
    proc = Path("/proc")
    if not proc.is_dir():
        return
    for process in proc.iterdir():
        if not process.name.isdigit():
            continue
        with suppress(OSError, IndexError, ValueError):  # it has just ended
            own = _fields(process / "stat")
            if int(process.name) == group or int(own[2]) == group:
                for part in parts(process):
                    yield _fields(process / part / "stat")


def _fields(path: Path) -> list[str]:
    return path.read_text().rpartition(")")[2].split()
