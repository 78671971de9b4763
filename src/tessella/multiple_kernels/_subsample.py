"""A small problem with nearly the same weights: some of the samples, each standing for several."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tessella.estimators._machines import Machines
from tessella.svm import DualProblem

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]


def subsample(machines: Machines, size: int) -> tuple[IntArray, Machines]:
    """About `size` samples of each machine, evenly spaced, half of them from either class.

    Boxes grow by as much as samples are fewer, so that the loss weighs as much as it did.
    Training rows are sorted by target, so even spacing covers its range.

    Returns
    -------
    rows : ndarray of int
        Training rows that are left.
    machines : Machines
        The machines on them.
    """
    taken, parts, duals = [], [], []
    for own, dual in zip(machines.rows, machines.dual.each, strict=True):
        chosen, factor = _spaced(dual, size)
        taken.append(own[chosen])
        duals.append(dual.restrict(chosen, factor))
    rows = np.unique(np.concatenate(taken))
    parts = [np.searchsorted(rows, own) for own in taken]
    return rows, Machines(tuple(parts), DualProblem.stacked(duals), len(rows))


def _spaced(dual: DualProblem, size: int) -> tuple[IntArray, FloatArray]:
    up, down = dual.upper > 0, dual.lower < 0
    groups = [np.flatnonzero(group) for group in (up & ~down, down & ~up, up & down)]
    groups = [group for group in groups if len(group)]
    factor = np.ones(dual.size)
    picked = []
    for group in groups:
        count = min(len(group), max(1, size // len(groups)))
        own = group[np.linspace(0, len(group) - 1, count).round().astype(np.intp)]
        factor[own] = len(group) / count
        picked.append(own)
    chosen = np.sort(np.concatenate(picked))
    return chosen, factor[chosen]
