"""The greedy average of the entries of a search."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


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
