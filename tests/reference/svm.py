"""Optimality conditions of the SVM dual, written out."""

from __future__ import annotations

import numpy as np


def assert_feasible(dual, w):
    assert (w >= dual.lower).all()
    assert (w <= dual.upper).all()
    assert abs(w.sum()) <= 1e-12 * max(1.0, np.abs(w).sum())


def kkt_violation(K, dual, w, intercept):
    """Largest breach of the conditions on r = linear - Kw - b, sample by sample.

    w at its lower end (or below a kink) wants r small, at its upper end large, in between exact.
    """
    r = dual.linear - K @ w - intercept
    eps = dual.epsilon
    breach = np.zeros(len(w))
    may_grow, may_shrink = w < dual.upper, w > dual.lower
    slope_up = r - np.where(w >= 0, eps, -eps)
    slope_down = r - np.where(w > 0, eps, -eps)
    breach[may_grow] = np.maximum(breach[may_grow], slope_up[may_grow])
    breach[may_shrink] = np.maximum(breach[may_shrink], -slope_down[may_shrink])
    return float(breach.max())


def primal_value(K, dual, w, intercept):
    r = dual.linear - K @ w - intercept
    loss = dual.upper * np.maximum(r - dual.epsilon, 0) - dual.lower * np.maximum(
        -r - dual.epsilon, 0
    )
    return 0.5 * w @ K @ w + loss.sum()


def dual_value(K, dual, w):
    return dual.linear @ w - dual.epsilon @ np.abs(w) - 0.5 * w @ K @ w
