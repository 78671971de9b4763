"""The time at which a run has to be over, for loops that may take long.

A solver looks at the clock between its steps. Some steps are long loops themselves, such as a pass
over all kernels of a dictionary, far below the solver. They look at the deadline of the run that
they are part of. It holds for the thread that has set it and for the pieces of its work that
:func:`in_threads` hands to others, so runs of several threads have deadlines of their own.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_DEADLINE: ContextVar[float] = ContextVar("deadline", default=math.inf)


class OutOfTimeError(Exception):
    """Raised by a long loop when the deadline of its run is over."""


@contextmanager
def deadline(moment: float | None) -> Iterator[None]:
    """Let loops end at a moment of ``time.monotonic()`` inside a ``with`` block.

    Parameters
    ----------
    moment : float or None
        The moment. None leaves what holds already, and of two deadlines the earlier one holds.
    """
    before = _DEADLINE.get()
    token = _DEADLINE.set(before if moment is None else min(before, moment))
    try:
        yield
    finally:
        _DEADLINE.reset(token)


def check_deadline() -> None:
    """Raise :class:`OutOfTimeError` if the deadline of the run is over."""
    moment = _DEADLINE.get()
    if moment < math.inf and time.monotonic() >= moment:
        raise OutOfTimeError
