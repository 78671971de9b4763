"""Estimates of the time that a run takes, from what its first steps have taken."""

from __future__ import annotations

import math

_LEAST_POWER, _MOST_POWER = 1.0, 3.0  # of the rows; a linear system is cubic in them
_USUAL_POWER = 1.5  # of a single measurement, part of which does not depend on the rows
_CLOCK = 1e-4  # seconds below which a measurement is mostly overhead


class Growth:
    """Seconds of the same work on samples of growing size, and what they tell of a larger one.

    The time is taken as a power of the number of rows. Its exponent is that of the last two
    samples, within the exponents of work that is linear and of work that is cubic in the rows.
    """

    def __init__(self) -> None:
        self._measured: list[tuple[int, float]] = []

    def add(self, rows: int, seconds: float) -> None:
        """Add the seconds of a sample, which is larger than the ones before."""
        self._measured.append((rows, max(seconds, _CLOCK)))

    @property
    def power(self) -> float:
        """Exponent of the rows in the time."""
        if len(self._measured) < 2:
            return _USUAL_POWER
        (few, short), (many, long) = self._measured[-2:]
        power = math.log(long / short) / math.log(many / few)
        return min(max(power, _LEAST_POWER), _MOST_POWER)

    def seconds(self, rows: int) -> float:
        """Estimate the seconds with some number of rows; zero before the first measurement."""
        if not self._measured:
            return 0.0
        known, seconds = self._measured[-1]
        return float(seconds * (rows / known) ** self.power)
