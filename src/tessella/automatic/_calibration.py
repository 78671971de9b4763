"""Probabilities and intervals from held-out predictions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax

FloatArray = NDArray[np.float64]


def fit_calibration(
    scores: FloatArray, classes: NDArray[np.intp], weight: FloatArray
) -> FloatArray:
    """Find the map of scores to logits with the smallest held-out logarithmic loss.

    The logits are ``slope * scores`` plus, for two classes, an offset of the second one. More
    offsets than that would fit the noise of rare classes.

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
    ndarray of shape (2,)
        Slope and offset.
    """
    share = weight / weight.sum()
    n_rows, n_classes = scores.shape
    own = scores[np.arange(n_rows), classes]
    second = (classes == 1).astype(np.float64)
    offset_used = float(n_classes == 2)

    def loss(x: FloatArray) -> tuple[float, FloatArray]:
        logits = _logits(scores, x)
        probability = softmax(logits, axis=1)
        picked = x[0] * own + x[1] * second * offset_used
        value = share @ (logsumexp(logits, axis=1) - picked)
        slope = share @ ((probability * scores).sum(axis=1) - own)
        offset = offset_used * (share @ (probability[:, 1] - second))
        # A weak pull keeps the slope finite where the classes are separated.
        pull = 1e-4 / n_rows
        return value + pull * x[0] ** 2, np.array([slope + 2 * pull * x[0], offset])

    start = np.array([4.0, 0.0])
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=[(0.0, 200.0), (-50.0, 50.0)])
    return np.asarray(found.x)


def probabilities(scores: FloatArray, calibration: FloatArray) -> FloatArray:
    """Return the probabilities of the classes for scores."""
    result: FloatArray = softmax(_logits(scores, calibration), axis=1)
    return result


def _logits(scores: FloatArray, calibration: FloatArray) -> FloatArray:
    logits: FloatArray = calibration[0] * scores
    if scores.shape[1] == 2:
        logits[:, 1] += calibration[1]
    return logits


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
