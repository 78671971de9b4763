"""How much memory may be used, asked before anything large is allocated."""

from __future__ import annotations

import os
from pathlib import Path

_CGROUP_FILES = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    (
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
        "/sys/fs/cgroup/memory/memory.usage_in_bytes",
    ),
)


def available_memory() -> int | None:
    """Bytes this process can still allocate, or None where the system does not tell.

    The smallest of the machine's available memory and of what the limits of a container and of
    the shell (``ulimit -v``) leave.
    """
    asked = (_system_available(), _container_available(), _limit_available())
    answers = [answer for answer in asked if answer is not None]
    return min(answers) if answers else None


def _system_available() -> int | None:
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def _container_available() -> int | None:
    for limit_file, usage_file in _CGROUP_FILES:
        try:
            limit = Path(limit_file).read_text().strip()
            usage = int(Path(usage_file).read_text())
        except (OSError, ValueError):
            continue
        if limit != "max":
            return max(0, int(limit) - usage)
    return None


def _limit_available() -> int | None:
    """What the limit on the address space of this process leaves."""
    try:
        import resource  # not on Windows

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    except (ImportError, OSError, ValueError):
        return None
    return None if limit == resource.RLIM_INFINITY else max(0, limit - used)


def format_bytes(count: float) -> str:
    """`count` bytes in the largest unit that keeps the number above one."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"


def require_memory(needed: int, purpose: str, remedy: str) -> None:
    """Raise MemoryError, before anything is allocated, when `needed` bytes are not there."""
    available = available_memory()
    if available is not None and needed > available:
        raise MemoryError(
            f"{purpose} needs {format_bytes(needed)} of memory and "
            f"{format_bytes(available)} are available. {remedy}"
        )
