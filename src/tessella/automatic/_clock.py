"""The time that a fit may take."""

from __future__ import annotations

import math
import time


class OutOfTimeError(Exception):
    """Raised when a search has to end."""


class Clock:
    """The time since the start of a fit, and the limit of the search.

    Parameters
    ----------
    seconds : float or None
        Seconds that the whole fit may take. None for no limit.
    """

    def __init__(self, seconds: float | None) -> None:
        self._start = time.monotonic()
        self._seconds = float("inf") if seconds is None else float(seconds)
        self._reserved = 0.0
        self._rest = 0.0  # seconds after this clock that are left of another limit

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._start

    @property
    def left(self) -> float:
        """Seconds that are left; infinity without a limit."""
        return self._seconds - self.elapsed

    @property
    def limit(self) -> float | None:
        """Seconds that the whole fit may take; None without a limit."""
        return self._seconds + self._rest if math.isfinite(self._seconds) else None

    def part(self, fraction: float) -> Clock:
        """Return a clock with the same start and a fraction of the limit.

        The rest of the limit is the first that it reserves for the fits that follow.
        """
        part = Clock(fraction * self._seconds)
        part._start = self._start
        part._rest = self._seconds - part._seconds if math.isfinite(self._seconds) else 0.0
        return part

    def reserve(self, seconds: float) -> None:
        """Keep some seconds for the fits that follow the search."""
        self._reserved = max(0.0, seconds - self._rest)

    @property
    def over(self) -> bool:
        """Whether the time of the search is over."""
        return self.left <= self._reserved

    def check(self, needed: float = 0.0) -> None:
        """Raise :class:`OutOfTimeError` unless the search has more than some seconds left."""
        if self.left <= self._reserved + needed:
            raise OutOfTimeError
