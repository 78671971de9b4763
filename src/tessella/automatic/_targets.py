"""What a machine is fitted to, and how its scores predict the outputs.

A machine is fitted to the outputs themselves (a standardised target, or indicators of classes), to
the logarithm of a skewed target, or to labels -1 and +1 for the hinge loss. Scores of the latter
two do not estimate means; they are multiplied by the factor with the smallest squared held-out
error.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

# Skewness from which the logarithm of a target is worth a trial; that of an exponential
# distribution is two, that of a normal distribution is zero.
_SKEWED = 0.8
# Distance from zero, in deviations, beyond which the logarithm of a target is as good as linear.
_FAR = 1e3
# Logarithms are predicted up to this far beyond their range on the training rows, in deviations.
_BEYOND = 0.25
# Scores of support vector machines beyond this say no more about the class.
_LARGEST_SCORE = 1.5


@dataclass(frozen=True)
class PlainTarget:
    """Outputs of machines that are used as they are: class indicators or a standardised target."""

    name = "plain"

    def forward(self, Y: FloatArray) -> FloatArray:
        """Return what a machine is fitted to."""
        return Y

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
        # From a zero that is far below all values the logarithm is a line, and loses their digits.
        keeps_zero = sign > 0 and zero < own.min() < zero + _FAR
        start = zero if keeps_zero else own.min() - 0.1 * float(share @ own - own.min())
        logs = np.log(own - start)
        mean = float(share @ logs)
        deviation = float(np.sqrt(share @ (logs - mean) ** 2))
        scores = (logs - mean) / deviation
        low, high = float(scores.min()) - _BEYOND, float(scores.max()) + _BEYOND
        return cls(sign, float(-start), mean, deviation, low, high)

    def forward(self, Y: FloatArray) -> FloatArray:
        """Return what a machine is fitted to."""
        return (np.log(self.sign * Y + self.shift) - self.mean) / self.deviation

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


@dataclass(frozen=True)
class MarginTarget:
    """Labels -1 and +1: one output for two classes, one for each of several classes."""

    name = "margin"

    def forward(self, Y: FloatArray) -> FloatArray:
        """Return what a machine is fitted to."""
        return 2.0 * (Y[:, 1:] if Y.shape[1] == 2 else Y) - 1.0

    def factor(self, scores: FloatArray, Y: FloatArray, weight: FloatArray) -> float:
        """Return the factor of the predictions with the smallest squared error."""
        own, wanted = _bounded(scores), 0.5 * self.forward(Y)
        return float((weight[:, None] * own * wanted).sum() / (weight[:, None] * own**2).sum())

    def backward(self, scores: FloatArray, factor: float) -> FloatArray:
        """Return predictions of the outputs from scores of a machine."""
        halves = 0.5 + factor * _bounded(scores)
        return np.column_stack([1.0 - halves, halves]) if scores.shape[1] == 1 else halves


def _bounded(scores: FloatArray) -> FloatArray:
    return np.clip(scores, -_LARGEST_SCORE, _LARGEST_SCORE)


Target = PlainTarget | LogTarget | MarginTarget
