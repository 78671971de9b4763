"""Weights of the entries of a search in the average of a model.

The greedy average finds entries that complement each other, and fits some noise of the held-out
errors with so much freedom. Weights that only depend on the error of each entry by itself have
nearly none. A mean of both is more reliable than either, in classification above all, where the
errors of all entries are dominated by the same noise.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

_SOFTNESS = 20.0  # relative excess times rows at which a weight falls by a factor of e
_NEGLIGIBLE = 0.05  # relative to the largest weight; a machine has a cost


def greedy_average(
    held_out: list[FloatArray], Y: FloatArray, weight: FloatArray, steps: int
) -> FloatArray:
    """Return weights with which the average of held-out predictions has a small squared error.

    In each step the predictions that reduce the error of the average most are added to it, and
    predictions may be added several times. The best average of all steps is returned; the first
    step is the best single entry.

    Parameters
    ----------
    held_out : list of ndarray of shape (m, k)
        Held-out predictions of each entry.
    Y : ndarray of shape (m, k)
        Targets.
    weight : ndarray of shape (m,)
        Weight of each row.
    steps : int
        Number of steps.

    Returns
    -------
    ndarray of shape (n_entries,)
        Weights that are not negative and sum to one.
    """
    # The squared error of an average is a quadratic form of the errors, which are few.
    roots = np.sqrt(weight / weight.sum())[:, None]
    errors = np.array([(roots * (own - Y)).ravel() for own in held_out])
    products = errors @ errors.T
    counts = np.zeros(len(held_out))
    best, best_counts = np.inf, counts
    for step in range(1, steps + 1):
        grown = np.diag(products) + 2.0 * products @ counts + counts @ products @ counts
        chosen = int(np.argmin(grown))
        counts[chosen] += 1.0
        value = grown[chosen] / step**2
        if value < best * (1.0 - 1e-12):
            best, best_counts = value, counts.copy()
    weights: FloatArray = best_counts / best_counts.sum()
    return weights


def soft_average(errors: FloatArray, n_rows: int) -> FloatArray:
    """Return weights that fall exponentially with the relative excess of the error.

    The excess at which the weight falls by a factor of e is inversely proportional to the number
    of rows, like the noise of the square of an error.

    Parameters
    ----------
    errors : ndarray of shape (n_entries,)
        Held-out error of each entry.
    n_rows : int
        Number of rows that the errors are means of.

    Returns
    -------
    ndarray of shape (n_entries,)
        Weights that are positive and sum to one.
    """
    smallest = errors.min()
    if smallest <= 0.0:
        exact = (errors <= 0.0).astype(np.float64)
        return np.asarray(exact / exact.sum())
    weights = np.exp(-(errors / smallest - 1.0) * n_rows / _SOFTNESS)
    return np.asarray(weights / weights.sum())


def blended_average(
    held_out: list[FloatArray], Y: FloatArray, weight: FloatArray, steps: int, softness: float
) -> FloatArray:
    """Return a mean of the greedy and the soft weights, without negligible ones.

    Parameters
    ----------
    held_out : list of ndarray of shape (m, k)
        Held-out predictions of each entry.
    Y : ndarray of shape (m, k)
        Targets.
    weight : ndarray of shape (m,)
        Weight of each row.
    steps : int
        Number of steps of the greedy average.
    softness : float
        Part of the soft weights in the mean.

    Returns
    -------
    ndarray of shape (n_entries,)
        Weights that are not negative and sum to one.
    """
    share = weight / weight.sum()
    errors = np.array([share @ ((own - Y) ** 2).sum(axis=1) for own in held_out])
    blended = (1.0 - softness) * greedy_average(held_out, Y, weight, steps)
    blended += softness * soft_average(errors, len(Y))
    blended[blended < _NEGLIGIBLE * blended.max()] = 0.0
    return np.asarray(blended / blended.sum())
