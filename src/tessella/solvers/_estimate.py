"""Estimates of the time that a run takes, from what its first steps have taken."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

_LEAST_POWER, _MOST_POWER = 1.0, 3.0  # of the rows; a linear system is cubic in them
# Exponents of a single measurement: that of the entries of a kernel matrix for one machine; of many
# machines, samples have nearly as many rows as the whole problem; a certificate is a pass over all
# rows, and in part one over the support vectors.
_FIRST_POWER, _FIRST_OF_SEVERAL, _FIRST_OF_CERTIFICATES = 2.0, 1.0, 0.3
LONG = 10.0  # seconds from which on a run takes long
_CLEARLY = 1.5  # times a time limit that an estimate has to be in order to exceed it clearly
_MACHINES = 6.0  # solves of all machines in a usual run, together with the steps between them
_LINEAR_SYSTEMS = 20.0  # in a usual run with a loss without bounds
# Decompositions of a large parameter in a usual run. A few machines are nearly optimal for one
# machine, while several machines take rounds.
_DECOMPOSITIONS, _DECOMPOSITIONS_OF_SEVERAL = 2.0, 8.0
_LAST = 5  # records from which the gap is continued
_CLOCK = 1e-4  # seconds below which a measurement is mostly overhead


class Growth:
    """Seconds of the same work on samples of growing size, and what they tell of a larger one.

    The time is taken as a power of the number of rows. Its exponent is that of the last two
    samples, within the exponents of work that is linear and of work that is cubic in the rows.

    Parameters
    ----------
    least, first, most : float
        Other bounds of the exponent, and that of a single measurement.
    """

    def __init__(
        self,
        least: float = _LEAST_POWER,
        first: float = _FIRST_POWER,
        most: float = _MOST_POWER,
    ) -> None:
        self._measured: list[tuple[int, float]] = []
        self._least, self._first, self._most = least, first, most

    def add(self, rows: int, seconds: float) -> None:
        """Add the seconds of a sample, which is larger than the ones before."""
        self._measured.append((rows, max(seconds, _CLOCK)))

    @property
    def power(self) -> float:
        """Exponent of the rows in the time."""
        power = self._first
        if len(self._measured) > 1:
            (few, short), (many, long) = self._measured[-2:]
            power = math.log(long / short) / math.log(many / few)
        return min(max(power, self._least), self._most)

    def seconds(self, rows: int) -> float:
        """Estimate the seconds with some number of rows; zero before the first measurement."""
        if not self._measured:
            return 0.0
        known, seconds = self._measured[-1]
        return float(seconds * (rows / known) ** self.power)


class MachineGrowth:
    """Seconds of machines on samples, and of certificates of their pairs for the whole problem.

    A certificate needs the scores of all rows, whatever the sample. Only a part of its time grows
    with the support vectors.

    Parameters
    ----------
    several : bool, default=False
        Whether there are several machines.
    """

    def __init__(self, *, several: bool = False) -> None:
        self._machines = Growth(first=_FIRST_OF_SEVERAL if several else _FIRST_POWER)
        self._certificates = Growth(0.0, _FIRST_OF_CERTIFICATES, 1.0)

    def add(self, rows: int, machines: float, certificate: float) -> None:
        """Add the seconds of a sample, which is larger than the ones before."""
        self._machines.add(rows, machines)
        self._certificates.add(rows, certificate)

    def seconds(self, rows: int) -> float:
        """Estimate the seconds with some number of rows; zero before the first measurement."""
        return self._machines.seconds(rows) + self.certificate_seconds(rows)

    def certificate_seconds(self, rows: int) -> float:
        """Estimate the seconds of a certificate with as many rows in its machines."""
        return self._certificates.seconds(rows)


@dataclass(frozen=True)
class Estimate:
    """How long a run is expected to take.

    The number comes from the first steps of the run itself. It tells seconds from minutes and
    minutes from hours; the run may well take half as long, or three times as long.

    Attributes
    ----------
    seconds : float
        Expected seconds of the whole run.
    limit : float or None
        Time limit of the run, in seconds.

    Examples
    --------
    >>> from tessella.solvers import Estimate
    >>> print(Estimate(200.0))
    about 3 min
    >>> print(Estimate(200.0, limit=60.0))
    about 3 min, which the time limit of 1 min cuts short: the best model found until then is kept
    """

    seconds: float
    limit: float | None = None

    @property
    def is_long(self) -> bool:
        """Whether the run takes so long that a user wants to know it before."""
        return self.seconds >= LONG

    @property
    def exceeds_limit(self) -> bool:
        """Whether the run clearly takes longer than its time limit."""
        return self.limit is not None and self.seconds > _CLEARLY * self.limit

    def __str__(self) -> str:
        text = f"about {in_words(self.seconds)}"
        if self.limit is None or not self.exceeds_limit:
            return text
        return (
            f"{text}, which the time limit of {in_words(self.limit)} cuts short: the best model "
            "found until then is kept"
        )


def run_seconds(
    machine: float, decomposition: float, *, smooth: bool = False, several: bool = False
) -> float:
    """Estimate the seconds of a run.

    Parameters
    ----------
    machine : float
        Seconds of all machines with one kernel and of their certificate, on all rows.
    decomposition : float
        Seconds of a decomposition of the parameter, zero for a small one.
    smooth : bool, default=False
        Whether every Newton step of the run is a linear system on all rows, as for losses without
        bounds.
    several : bool, default=False
        Whether there are several machines.
    """
    count = _LINEAR_SYSTEMS if smooth else _MACHINES
    decompositions = _DECOMPOSITIONS_OF_SEVERAL if several else _DECOMPOSITIONS
    return count * machine + decompositions * decomposition


def seconds_to_go(times: Sequence[float], gaps: Sequence[float], tol: float) -> float:
    """Estimate the seconds until the gap of a run is within its tolerance.

    The logarithm of the gap is continued along the line through its last values. The result is
    infinite as long as it does not fall.

    Parameters
    ----------
    times : sequence of float
        Seconds of the records so far.
    gaps : sequence of float
        Certified gaps of these records.
    tol : float
        Tolerance.
    """
    if len(gaps) and gaps[-1] <= tol:
        return 0.0
    known = [(t, math.log(g)) for t, g in zip(times, gaps, strict=True) if 0.0 < g < math.inf]
    if len(known) < 2:
        return math.inf
    (begin, before), (end, after) = known[-_LAST:][0], known[-1]
    if not after < before:
        return math.inf
    return (after - math.log(tol)) * (end - begin) / (before - after)


def in_words(seconds: float) -> str:
    """Return seconds as a text with one or two digits and a suitable unit.

    Examples
    --------
    >>> from tessella.solvers._estimate import in_words
    >>> [in_words(seconds) for seconds in (0.4, 14.2, 95.0, 5000.0, 90000.0)]
    ['1 s', '14 s', '2 min', '1.4 h', '25 h']
    """
    if seconds < 60.0:
        return f"{max(1, round(seconds))} s"
    if seconds < 3600.0:
        return f"{round(seconds / 60.0)} min"
    return f"{seconds / 3600.0:.2g} h"
