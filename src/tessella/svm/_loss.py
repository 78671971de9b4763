"""The loss of an SVM as a function of its intercept."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tessella.svm._problem import DualProblem

FloatArray = NDArray[np.float64]


def best_intercepts(dual: DualProblem, scores: FloatArray) -> tuple[FloatArray, float]:
    """The offset of each machine that minimises the loss of ``scores + b``, and the whole loss."""
    machines = zip(dual.each, dual.machines, strict=True)
    found = [best_intercept(machine, scores[rows]) for machine, rows in machines]
    return np.array([intercept for intercept, _ in found]), sum(loss for _, loss in found)


def best_intercept(dual: DualProblem, scores: FloatArray) -> tuple[float, float]:
    """The offset b that minimises the loss of one machine with ``scores + b``, and that loss.

    The loss is convex and piecewise linear in b: sort its breakpoints and find where the slope
    changes sign. When a whole interval is optimal, its middle is returned.
    """
    residual = dual.linear - scores
    positions = np.concatenate([residual - dual.epsilon, residual + dual.epsilon])
    rises = np.concatenate([dual.upper, -dual.lower])
    active = rises > 0
    positions, rises = positions[active], rises[active]
    if not len(positions):
        return 0.0, 0.0
    order = np.argsort(positions, kind="stable")
    positions, rises = positions[order], rises[order]
    total = float(dual.upper.sum())
    slopes = np.cumsum(rises) - total
    # The last slope is minus the sum of `lower`, up to rounding never negative.
    first = min(int(np.searchsorted(slopes, -1e-12 * total)), len(positions) - 1)
    intercept = float(positions[first])
    if slopes[first] <= 1e-12 * total and first + 1 < len(positions):
        intercept = 0.5 * float(positions[first] + positions[first + 1])
    shifted = residual - intercept
    loss = dual.upper @ np.maximum(shifted - dual.epsilon, 0.0) - dual.lower @ np.maximum(
        -shifted - dual.epsilon, 0.0
    )
    return intercept, float(loss)
