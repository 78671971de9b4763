"""Available memory, which is checked before large arrays are allocated."""

from __future__ import annotations

import os

_CGROUP_FILES = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    (
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
        "/sys/fs/cgroup/memory/memory.usage_in_bytes",
    ),
)


def available_memory() -> int | None:
    """Return the number of bytes that this process can still allocate.

    Returns
    -------
    int or None
        Smallest of the available memory of the machine and of what the limits of a container and
        of the shell (``ulimit -v``) allow. None if the system does not provide this information.
    """
    asked = (_system_available(), _container_available(), _limit_available())
    answers = [answer for answer in asked if answer is not None]
    return min(answers) if answers else None


def _system_available() -> int | None:
    for line in (_text_of("/proc/meminfo") or "").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def _container_available() -> int | None:
    for limit_file, usage_file in _CGROUP_FILES:
        limit, usage = _number_in(limit_file), _number_in(usage_file)
        if limit is not None and usage is not None:
            return max(0, limit - usage)
    return None


def _limit_available() -> int | None:
    """Return what the limit on the address space of this process allows."""
    try:
        import resource  # not on Windows
    except ImportError:
        return None
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY:
        return None
    pages = _number_in("/proc/self/statm")
    return None if pages is None else max(0, limit - pages * resource.getpagesize())


def _number_in(path: str) -> int | None:
    """Return the number that a file begins with, or None if there is none."""
    words = (_text_of(path) or "").split()
    return int(words[0]) if words and words[0].isdigit() else None


def _text_of(path: str) -> str | None:
    """Return the text of a file of the system, or None if it cannot be read."""
    try:
        return _read(path).decode("ascii", "replace")
    except OSError as error:
        if error.errno is None:  # raised by a signal handler, such as a TimeoutError
            raise
        return None


def _read(path: str) -> bytes:
    """Return the content of a file of the system, in a way that takes microseconds."""
    with open(path, "rb", buffering=0) as file:
        return file.readall()


def format_bytes(count: float) -> str:
    """Format a number of bytes in the largest unit for which the number is at least one.

    Parameters
    ----------
    count : float
        Number of bytes.

    Returns
    -------
    str
        Number and unit, such as "1.5 GiB".
    """
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"


def require_memory(needed: int, purpose: str, remedy: str) -> None:
    """Raise MemoryError if `needed` bytes are not available.

    Parameters
    ----------
    needed : int
        Number of bytes that are about to be allocated.
    purpose : str
        Subject of the first sentence of the error message, such as "A fit".
    remedy : str
        Sentence at the end of the error message that says what to do.
    """
    available = available_memory()
    if available is not None and needed > available:
        raise MemoryError(
            f"{purpose} needs {format_bytes(needed)} of memory and "
            f"{format_bytes(available)} are available. {remedy}"
        )
