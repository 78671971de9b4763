"""Probabilities and intervals from held-out predictions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax

FloatArray = NDArray[np.float64]

_SMALLEST_SCORE = 0.01  # scores are not that accurate
# Inverse variances of the priors of the slopes and the offsets.
_SLOPE_PRECISION, _LOG_SLOPE_PRECISION, _OFFSET_PRECISION = 1e-3, 4.0, 1.0


def fit_calibration(
    scores: FloatArray, classes: NDArray[np.intp], weight: FloatArray
) -> FloatArray:
    """Find the map of scores to logits with the smallest held-out logarithmic loss.

    The logit of a class is ``a * score + b * log(score)`` plus an offset of the class, with scores
    bounded away from zero in the logarithm. Scores of squared-loss machines estimate
    probabilities, for which a = 0 and b = 1 would be right; with few rows the linear term is more
    reliable. A weak prior keeps b and the offsets small unless the rows speak for them.

    Parameters
    ----------
    scores : ndarray of shape (m, k)
        Held-out scores of the classes.
    classes : ndarray of int of shape (m,)
        Class of each row.
    weight : ndarray of shape (m,)
        Weight of each row.

    Returns
    -------
    ndarray of shape (2 + k,)
        The two slopes and the offset of each class.
    """
    share = (weight / weight.sum())[:, None]
    logs = _bounded_logs(scores)
    actual = np.eye(scores.shape[1])[classes]
    precision = np.full(2 + scores.shape[1], _OFFSET_PRECISION)
    precision[:2] = _SLOPE_PRECISION, _LOG_SLOPE_PRECISION
    precision /= len(scores)

    def loss(x: FloatArray) -> tuple[float, FloatArray]:
        logits = x[0] * scores + x[1] * logs + x[2:]
        value = float(
            (share[:, 0] * (logsumexp(logits, axis=1) - (actual * logits).sum(axis=1))).sum()
        )
        slope = share * (softmax(logits, axis=1) - actual)
        gradient = np.array([np.vdot(slope, scores), np.vdot(slope, logs), *slope.sum(axis=0)])
        return value + 0.5 * float(precision @ x**2), gradient + precision * x

    start = np.zeros(2 + scores.shape[1])
    start[0] = 4.0
    # A probability that falls with its score would make sense of scores that are worse than none.
    bounds = [(0.0, None)] * 2 + [(None, None)] * scores.shape[1]
    return np.asarray(minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds).x)


def probabilities(scores: FloatArray, calibration: FloatArray) -> FloatArray:
    """Return the probabilities of the classes for scores."""
    logits = calibration[0] * scores + calibration[1] * _bounded_logs(scores) + calibration[2:]
    result: FloatArray = softmax(logits, axis=1)
    return result


def _bounded_logs(scores: FloatArray) -> FloatArray:
    return np.log(np.clip(scores, _SMALLEST_SCORE, 1.0 - _SMALLEST_SCORE))


def interval_radius(residuals: FloatArray, weight: FloatArray, coverage: float) -> float:
    """Return the half-width of an interval around predictions with a given coverage.

    It is the quantile of the absolute held-out residuals at the level that makes the interval of
    one more exchangeable row cover it with the given probability.
    """
    order = np.argsort(np.abs(residuals), kind="stable")
    sizes, total = np.abs(residuals)[order], np.cumsum(weight[order])
    level = coverage * (total[-1] + total[-1] / len(residuals))
    place = int(np.searchsorted(total, level * (1.0 - 1e-12)))
    return float("inf") if place >= len(sizes) else float(sizes[place])
