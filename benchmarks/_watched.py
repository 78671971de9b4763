"""Programs in processes of their own, whose memory is watched and can be limited."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_LOOKS = 0.05  # seconds between two looks
_STALLED = 300.0  # seconds without any time of a processor

DATA, WATCH = "RLIMIT_DATA", "watching the resident memory"


@dataclass
class Ending:
    """How a program ended.

    Attributes
    ----------
    answer : dict or None
        What it printed on its last line; None if it did not end by itself.
    seconds : float
        Wall clock of the whole process.
    peak_bytes : int
        Largest resident memory that was seen, of the process and all that it started. What
        several of them share counts several times.
    why : str
        Why there is no answer; empty if there is one.
    """

    answer: dict[str, Any] | None
    seconds: float
    peak_bytes: int
    why: str = ""


def run_watched(
    script: str,
    request: dict[str, Any],
    *,
    most_bytes: int | None = None,
    limit_by: str = WATCH,
    time_limit: float | None = None,
) -> Ending:
    """The answer of a script of this folder to a request, both in JSON.

    Parameters
    ----------
    script : str
        Name of its file. It reads the request from its first argument.
    request : dict
        What it is asked.
    most_bytes : int, optional
        A process that has more resident memory, with all that it started, is ended.
    limit_by : str
        With RLIMIT_DATA, the system also refuses to give the process more private memory.
    time_limit : float, optional
        Seconds after which it is ended.
    """
    command = [sys.executable, str(Path(__file__).parent / script), json.dumps(request)]
    environment, limit = dict(os.environ), None
    if most_bytes is not None and limit_by == DATA:
        # The default pool of pyarrow asks for a GiB of addresses at once, and a thread that does
        # not get it waits for ever.
        environment["ARROW_DEFAULT_MEMORY_POOL"] = "system"
        limit = _limiter(most_bytes)
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as told:
        begin = time.monotonic()
        process = subprocess.Popen(
            command, stdout=out, stderr=told, env=environment, preexec_fn=limit, text=True
        )
        peak, why = _watch(process, most_bytes, time_limit)
        seconds = time.monotonic() - begin
        out.seek(0)
        told.seek(0)
        return _ending(process.returncode, out.read(), told.read(), seconds, peak, why)


def _ending(code: int, out: str, told: str, seconds: float, peak: int, why: str) -> Ending:
    if not why and code != 0:
        why = (told.strip().splitlines()[-1:] or [f"exit status {code}"])[0]
    lines = out.strip().splitlines()
    if not why and not lines:
        why = "no answer"
    return Ending(None if why else json.loads(lines[-1]), seconds, peak, why)


def in_own_process(
    script: str, request: dict[str, Any], time_limit: float | None = None
) -> dict[str, Any]:
    """The answer of a script, with "tree_peak_bytes"; raises RuntimeError without an answer."""
    ending = run_watched(script, request, time_limit=time_limit)
    if ending.answer is None:
        raise RuntimeError(ending.why)
    return {**ending.answer, "tree_peak_bytes": ending.peak_bytes}


# ---------------------------------------------------------------------------------- inside


def peak_bytes() -> int:
    """Peak of the resident memory of this process.

    Linux hands the peak of the parent down through `ru_maxrss`; the one in /proc starts anew.
    """
    status = Path("/proc/self/status")
    if status.is_file():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    # In bytes on macOS, in KiB elsewhere.
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def processor_seconds() -> float:
    """Seconds of all processors of this process and of its children that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


# ---------------------------------------------------------------------------------- limits


def _limiter(most_bytes: int) -> Callable[[], None]:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_DATA, (most_bytes, most_bytes))

    return limit


def data_limit_holds() -> bool:
    """Whether this system refuses memory beyond RLIMIT_DATA, found out in a process."""
    code = (
        "import mmap, resource; "
        f"resource.setrlimit(resource.RLIMIT_DATA, ({2**28}, {2**28})); "
        f"mmap.mmap(-1, {2**29}, mmap.MAP_PRIVATE)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    return ended.returncode != 0


# ---------------------------------------------------------------------------------- watching


def _watch(
    process: subprocess.Popen[str], most_bytes: int | None, time_limit: float | None
) -> tuple[int, str]:
    """Wait for a process; its peak, and why it was ended, if it was."""
    begin = moved = time.monotonic()
    peak, ticks = 0, -1
    try:
        while process.poll() is None:
            now = time.monotonic()
            resident, used = _of_tree(process.pid)
            peak = max(peak, resident)
            if used != ticks:
                moved, ticks = now, used
            why = ""
            if most_bytes is not None and resident > most_bytes:
                why = f"ended with {resident / 2**20:.0f} MiB of memory"
            elif time_limit is not None and now - begin > time_limit:
                why = f"ended after {time_limit:g} s"
            elif now - moved > _STALLED:
                why = f"ended after {_STALLED:g} s in which it did nothing"
            if why:
                return peak, why
            time.sleep(_LOOKS)
    finally:
        _end(process)
    return peak, ""


def _end(process: subprocess.Popen[str]) -> None:
    """End a process and all that it started, if they still run."""
    if process.poll() is None:
        for pid in reversed(_tree(process.pid)):
            try:
                os.kill(pid, 9)
            except ProcessLookupError:
                continue
    process.wait()


def _of_tree(pid: int) -> tuple[int, int]:
    """Resident bytes and ticks of processor time of a process and all that it started.

    Pages of files that are mapped into memory do not count: the system takes them back whenever
    other memory is needed.
    """
    resident = ticks = 0
    for each in _tree(pid):
        fields = _stat(each)
        if fields is not None:
            resident += _private_bytes(each, int(fields[21]))
            ticks += int(fields[11]) + int(fields[12])
    return resident, ticks


def _private_bytes(pid: int, pages: int) -> int:
    """Resident bytes that belong to no file; all resident pages where the system does not tell."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    parts = [line.split() for line in lines if line.startswith(("RssAnon:", "RssShmem:"))]
    if not parts:
        return pages * os.sysconf("SC_PAGE_SIZE")
    return 1024 * sum(int(part[1]) for part in parts)


def _tree(pid: int) -> list[int]:
    """A process and all that it started, itself first. Only itself where there is no /proc."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        fields = _stat(int(entry.name))
        if fields is not None:
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    found = [pid]
    for each in found:
        found += children.get(each, [])
    return found


def _stat(pid: int) -> list[str] | None:
    """Fields of /proc/PID/stat after the name, which may hold spaces; None if it has ended."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    return text.rpartition(")")[2].split()
