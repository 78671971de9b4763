"""The time that a fit may take."""

from __future__ import annotations

import time


class OutOfTimeError(Exception):
    """Raised when a search has to end."""


class Clock:
    """The time since the start of a fit, and the limit of the search.

    Parameters
    ----------
    seconds : float or None
        Seconds after which the search ends. None for no limit.
    """

    def __init__(self, seconds: float | None) -> None:
        self._start = time.monotonic()
        self._seconds = seconds

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._start

    def left(self) -> float:
        """Return the seconds that are left, infinity without a limit."""
        return float("inf") if self._seconds is None else self._seconds - self.elapsed

    def check(self, *, needed: bool) -> None:
        """Raise :class:`OutOfTimeError` if the time is over and an answer is there (`needed`)."""
        if needed and self.left() <= 0:
            raise OutOfTimeError
