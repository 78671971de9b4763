"""Improvement, ranks and their critical difference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

# Means by data set and method; None is N/A, which is worse than any value.
Scores = Mapping[str, Mapping[str, float | None]]


def improvement(scores: Scores, method: str) -> float | None:
    """Average improvement over the average method, in per cent, as the paper defines it.

    The score of the method on a data set is divided by the mean of all methods that have one
    there; the mean of these ratios over the data sets, less one, is the improvement. A method that
    has no score on a data set has no part in its mean.

    Parameters
    ----------
    scores : mapping
        Means by data set and method.
    method : str
        Whose improvement.

    Returns
    -------
    float or None
        Negative is better for errors, positive for accuracies; None without any score.
    """
    ratios = []
    for row in scores.values():
        present = [value for value in row.values() if value is not None]
        own = row.get(method)
        if own is not None:
            ratios.append(own / np.mean(present))
    return float(100.0 * (np.mean(ratios) - 1.0)) if ratios else None


@dataclass(frozen=True)
class Ranks:
    """Ranks of methods on data sets, 1 being the best.

    Attributes
    ----------
    methods : tuple of str
        From the best mean rank to the worst.
    table : ndarray of shape (n_sets, n_methods)
        Ranks; equal scores share the mean of theirs.
    friedman_p : float or None
        Chance of ranks so different if all methods were alike (Friedman's test); None for less
        than three methods or two data sets.
    critical_difference : float or None
        Mean ranks that differ by less are not told apart at the level of 5 % (Nemenyi's test).
    """

    methods: tuple[str, ...]
    table: np.ndarray
    friedman_p: float | None
    critical_difference: float | None

    @property
    def means(self) -> np.ndarray:
        """Mean ranks, in ascending order."""
        mean: np.ndarray = self.table.mean(axis=0)
        return mean


def rank(scores: Scores, methods: Sequence[str], *, larger_is_better: bool) -> Ranks | None:
    """Rank methods on the data sets.

    Parameters
    ----------
    scores : mapping
        Means by data set and method; every method has an entry in each.
    methods : sequence of str
        Whom to rank.
    larger_is_better : bool
        For accuracies; not for errors.

    Returns
    -------
    Ranks or None
        None without two methods and a data set.
    """
    if len(methods) < 2 or not scores:
        return None
    sign = -1.0 if larger_is_better else 1.0
    losses = np.array([[_loss(row[m], sign) for m in methods] for row in scores.values()])
    table = stats.rankdata(losses, axis=1)
    order = np.argsort(table.mean(axis=0), kind="stable")
    return Ranks(
        methods=tuple(methods[j] for j in order),
        table=table[:, order],
        friedman_p=_friedman(table),
        critical_difference=_critical_difference(*table.shape),
    )


def _loss(value: float | None, sign: float) -> float:
    return np.inf if value is None else sign * value


def _friedman(table: np.ndarray) -> float | None:
    n_sets, n_methods = table.shape
    if n_methods < 3 or n_sets < 2 or np.ptp(table, axis=1).max() == 0:
        return None
    return float(stats.friedmanchisquare(*table.T).pvalue)


def _critical_difference(n_sets: int, n_methods: int, level: float = 0.05) -> float | None:
    if n_sets < 2:
        return None
    q = stats.studentized_range.ppf(1.0 - level, n_methods, np.inf) / np.sqrt(2.0)
    return float(q * np.sqrt(n_methods * (n_methods + 1) / (6.0 * n_sets)))
