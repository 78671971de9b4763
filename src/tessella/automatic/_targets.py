"""What a machine is fitted to: the target itself, or its logarithm where it is skewed.

A machine for a logarithm predicts a median-like value. Its predictions are multiplied by the factor
with the smallest squared held-out error, so that they estimate means like those of all others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

# Skewness from which the logarithm of a target is worth a trial; that of an exponential
# distribution is two, that of a normal distribution is zero.
_SKEWED = 0.8
# Logarithms are predicted up to this far beyond their range on the training rows, in deviations.
_BEYOND = 0.25


@dataclass(frozen=True)
class PlainTarget:
    """Outputs of machines that are used as they are: class indicators or a standardised target."""

    name = "plain"

    def forward(self, Y: FloatArray) -> FloatArray:
        """Return what a machine is fitted to."""
        return Y

    def held_out(self, scores: FloatArray, Y: FloatArray, weight: FloatArray) -> FloatArray:
        """Return held-out predictions of the outputs from held-out scores of a machine."""
        del Y, weight
        return scores

    def factor(self, scores: FloatArray, Y: FloatArray, weight: FloatArray) -> float:
        """Return the factor of the predictions."""
        del scores, Y, weight
        return 1.0

    def backward(self, scores: FloatArray, factor: float) -> FloatArray:
        """Return predictions of the outputs from scores of a machine."""
        del factor
        return scores


@dataclass(frozen=True)
class LogTarget:
    """The standardised logarithm of a target, after it is reflected and shifted to be positive.

    Attributes
    ----------
    sign : float
        -1 for a target with a long lower tail, otherwise 1.
    shift : float
        Number that is added to ``sign * y``.
    mean : float
        Mean of the logarithm.
    deviation : float
        Standard deviation of the logarithm.
    low : float
        Smallest score that is used.
    high : float
        Largest score that is used.
    """

    sign: float
    shift: float
    mean: float
    deviation: float
    low: float
    high: float

    name = "logarithm"

    @classmethod
    def fit(cls, y: FloatArray, weight: FloatArray, zero: float) -> LogTarget | None:
        """Return the logarithm of a standardised target, or None if it is not skewed.

        `zero` is the value of the standardised target for which the original one is zero.
        """
        share = weight / weight.sum()
        skewness = float(share @ y**3)
        if abs(skewness) < _SKEWED:
            return None
        sign = float(np.sign(skewness))
        own = sign * y
        # Positive targets such as prices keep their zero; others start below their smallest value.
        start = zero if sign > 0 and own.min() > zero else own.min() - 0.1 * (share @ own - own.min())
        logs = np.log(own - start)
        mean = float(share @ logs)
        deviation = float(np.sqrt(share @ (logs - mean) ** 2))
        scores = (logs - mean) / deviation
        low, high = float(scores.min()) - _BEYOND, float(scores.max()) + _BEYOND
        return cls(sign, float(-start), mean, deviation, low, high)

    def forward(self, Y: FloatArray) -> FloatArray:
        """Return what a machine is fitted to."""
        return (np.log(self.sign * Y + self.shift) - self.mean) / self.deviation

    def held_out(self, scores: FloatArray, Y: FloatArray, weight: FloatArray) -> FloatArray:
        """Return held-out predictions of the outputs from held-out scores of a machine."""
        return self.backward(scores, self.factor(scores, Y, weight))

    def factor(self, scores: FloatArray, Y: FloatArray, weight: FloatArray) -> float:
        """Return the factor of the predictions with the smallest squared error."""
        raw = self._positive(scores)
        actual = self.sign * Y + self.shift
        return float((weight[:, None] * raw * actual).sum() / (weight[:, None] * raw**2).sum())

    def backward(self, scores: FloatArray, factor: float) -> FloatArray:
        """Return predictions of the outputs from scores of a machine."""
        return self.sign * (factor * self._positive(scores) - self.shift)

    def _positive(self, scores: FloatArray) -> FloatArray:
        bounded = np.clip(scores, self.low, self.high)
        positive: FloatArray = np.exp(bounded * self.deviation + self.mean)
        return positive


Target = PlainTarget | LogTarget
