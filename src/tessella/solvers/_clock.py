"""The clock of a run: how much time is left, and whether the next step fits into it."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from tessella.backend._lazy import cached_property
from tessella.cones import Cone
from tessella.problems import SaddlePoint
from tessella.solvers._estimate import LONG, Estimate, run_seconds, seconds_to_go
from tessella.solvers._monitor import Monitor
from tessella.solvers._result import IterationRecord

_SLOW_SIDE = 400  # of a matrix, from which on one decomposition takes a noticeable time
_GROWTH = 2.6  # exponent of its time, because small ones are slow for their size
_RESERVED = 0.3  # largest part of the time that is left for the certificate of machines
_NEWTON_POWER = 2.0  # of the rows in the time of a Newton step
_TOO_SHORT = 2.0  # times the expected time after which it is estimated again


class RunClock:
    """The time of a run since its start, its limit, and the seconds of its indivisible steps.

    Parameters
    ----------
    time_limit : float or None
        Largest number of seconds.
    cone : Cone
        Cone of the parameter, whose decompositions may be such steps.

    Attributes
    ----------
    deadline : float or None
        Moment of ``time.monotonic()`` at which the run has to be over.
    is_large : bool
        Whether a decomposition of the parameter takes a noticeable time.
    machine_seconds : float
        Seconds of all machines with their certificate, if these are steps that cannot be ended:
        for a large parameter, and for linear systems. Zero otherwise.
    certificate_seconds : float
        Expected seconds of the certificate of a dual vector, which follows on its machines.
    """

    def __init__(self, time_limit: float | None, cone: Cone) -> None:
        self._start = time.monotonic()
        self.limit = time_limit
        self.deadline = None if time_limit is None else self._start + time_limit
        self.is_large = cone.largest_side >= _SLOW_SIDE
        self._side = cone.largest_side
        self._ahead = self.decomposition_seconds if time_limit is not None else 0.0
        self.machine_seconds = self.certificate_seconds = self._newton_seconds = 0.0
        self._last_newton, self._newton_rows = self._start, 0

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._start

    @property
    def left(self) -> float | None:
        """Seconds until the time limit; None without a limit."""
        return None if self.deadline is None else max(0.0, self.deadline - time.monotonic())

    @property
    def left_for_machines(self) -> float | None:
        """Seconds until machines have to end, so that their pair can be certified in time.

        They get most of the time, whatever is expected of the certificate.
        """
        left = self.left
        return None if left is None else left - min(self.certificate_seconds, _RESERVED * left)

    @property
    def has_long_steps(self) -> bool:
        """Whether steps that cannot be ended take a noticeable time."""
        return self.is_large or self.machine_seconds > 0.0

    def is_late(self, decompositions: int) -> bool:
        """Whether the time is over, or will be after the next step.

        A step of a large parameter costs some decompositions, and machines with their certificate.
        A Newton step takes as long as the last one, or longer with more rows.
        """
        if self.deadline is None:
            return False
        ahead = max(decompositions * self._ahead + self.machine_seconds, self._newton_seconds)
        return time.monotonic() + ahead >= self.deadline

    def begin_phase(self) -> None:
        """Let the next Newton step begin now; it is expected to take as long as the last one."""
        self._last_newton = time.monotonic()

    def begin_newton_steps(self, rows: int) -> None:
        """Expect Newton steps on some rows, by the last step and its number of rows."""
        if self._newton_rows:
            self._newton_seconds *= (rows / self._newton_rows) ** _NEWTON_POWER
        self._newton_rows = rows

    def end_newton_step(self) -> None:
        """Take the time of a Newton step, from the end of the one before."""
        now = time.monotonic()
        self._newton_seconds = now - self._last_newton
        self._last_newton = now

    @cached_property
    def decomposition_seconds(self) -> float:
        """Seconds of a decomposition of a large parameter, by a small one on this machine."""
        if not self.is_large:
            return 0.0
        half = _SLOW_SIDE // 2
        sample = np.random.default_rng(0).standard_normal((half, half))
        seconds = []
        for _ in range(2):  # the first one also loads what it needs
            started = time.monotonic()
            np.linalg.eigh(sample + sample.T)
            seconds.append(time.monotonic() - started)
        return float(min(seconds) * (self._side / half) ** _GROWTH)


class Forecast:
    """Tells a monitor how long a run may take, if that is long.

    Parameters
    ----------
    clock : RunClock
        Clock of the run.
    monitor : Monitor
        Who is told.
    tol : float
        Relative gap at which the run ends.
    """

    def __init__(self, clock: RunClock, monitor: Monitor, tol: float) -> None:
        self._clock, self._monitor, self._tol = clock, monitor, tol
        self._expected = 0.0

    def by_machines(self, seconds: float, problem: SaddlePoint) -> None:
        """Tell the time of a run whose machines with one kernel take some seconds."""
        ahead = seconds
        if problem.fixed is None:
            ahead = run_seconds(
                seconds,
                self._clock.decomposition_seconds,
                smooth=problem.dual.is_smooth,
                several=len(problem.dual.starts) > 1,
            )
        self._tell(self._clock.elapsed + ahead)

    def revise(self, history: Sequence[IterationRecord]) -> None:
        """Tell the time that follows from the gaps so far, if the last estimate was too short."""
        now = history[-1].time
        if not self._monitor.wants_estimate or now < max(LONG, _TOO_SHORT * self._expected):
            return
        times, gaps = [one.time for one in history], [one.gap for one in history]
        ahead = seconds_to_go(times, gaps, self._tol)
        if LONG <= ahead < np.inf:
            self._tell(now + ahead)

    def _tell(self, seconds: float) -> None:
        self._expected = seconds
        estimate = Estimate(seconds, self._clock.limit)
        if estimate.is_long or estimate.exceeds_limit:
            self._monitor.estimate(estimate)
