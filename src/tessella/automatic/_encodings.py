"""Encodings of tables as features: numbers, indicators of gaps, and two ways to treat categories.

"one-hot" gives every frequent category a column of zeros and ones. "target" replaces a category by
the mean of the target over the rows with this category, shrunk towards the mean of all rows. Rare
categories get the mean of all rows. The code of a category is the same on training rows and on new
ones. Cross-fitted codes, which leave out the fold of a row, differ within a category, and how they
differ depends on the targets of the fold: a kernel machine learns from these differences what new
rows do not have, and its leave-one-out error is too small.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

ONE_HOT, TARGET = "one-hot", "target"

# More columns for one column of categories would only describe categories with few rows.
_MOST_LEVELS = 30
_LEAST_ROWS = 3.0  # of a category with a column of its own
_PRIOR_ROWS = 10.0  # rows of average target that are added to every category
# Rows of a category with a mean of its own. With fewer, the mean would tell the target of a row.
_LEAST_MEAN_ROWS = 10.0
_MOST_OUTPUTS = 8  # classes whose frequencies become columns


@dataclass(frozen=True, eq=False)
class Encoding:
    """An encoding of the codes of a :class:`TableReader` as features.

    Attributes
    ----------
    categories : str
        Treatment of the categories, "one-hot" or "target".
    categorical : ndarray of bool of shape (n,)
        Whether each column of the table contains categories.
    medians : ndarray of shape (n_numbers,)
        Values that replace missing numbers.
    gappy : ndarray of int
        Columns, counted among those of numbers, whose gaps have an indicator.
    levels : tuple of ndarray
        For each column of categories the codes that have a column of their own, for "one-hot".
    means : tuple of ndarray
        For each column of categories the shrunk means of the targets of every code, for "target".
        The last row belongs to missing values and the one before it to unknown categories.
    """

    categories: str
    categorical: NDArray[np.bool_]
    medians: FloatArray
    gappy: IntArray
    levels: tuple[IntArray, ...] = ()
    means: tuple[FloatArray, ...] = ()

    def apply(self, codes: FloatArray) -> FloatArray:
        """Return the features of the rows of a table."""
        parts = [self._numbers(codes)]
        for k, column in enumerate(codes[:, self.categorical].T):
            if self.categories == ONE_HOT:
                parts.append(_indicators(column, self.levels[k]))
            else:
                parts.append(self.means[k][_places(column, len(self.means[k]) - 2)])
        return np.hstack(parts)

    def _numbers(self, codes: FloatArray) -> FloatArray:
        numbers = codes[:, ~self.categorical]
        missing = np.isnan(numbers)
        filled = np.where(missing, self.medians, numbers)
        return np.hstack([filled, missing[:, self.gappy]])

    @property
    def groups(self) -> IntArray:
        """Number of the group of each feature; the features of a group have one scale.

        A column of numbers, the indicator of its gaps, and all features of a column of categories
        are groups. A scale for each category would fit the noise of rare ones.
        """
        widths = [1] * (len(self.medians) + len(self.gappy))
        parts = self.levels if self.categories == ONE_HOT else self.means
        widths += [part.shape[-1] for part in parts]
        return np.repeat(np.arange(len(widths)), widths)

    @property
    def sources(self) -> IntArray:
        """Number of the column of the table that each group comes from."""
        numbers = np.flatnonzero(~self.categorical)
        own = [numbers, numbers[self.gappy], np.flatnonzero(self.categorical)]
        return np.concatenate(own).astype(np.intp)


def fit_encoding(
    categories: str,
    categorical: NDArray[np.bool_],
    codes: FloatArray,
    targets: FloatArray,
    weight: FloatArray,
) -> Encoding:
    """Fit an encoding to training rows.

    Parameters
    ----------
    categories : str
        Treatment of the categories, "one-hot" or "target".
    categorical : ndarray of bool of shape (n,)
        Whether each column contains categories.
    codes : ndarray of shape (m, n)
        Distinct training rows in canonical order, as read by a :class:`TableReader`.
    targets : ndarray of shape (m, k)
        Standardised target, or indicators of the classes.
    weight : ndarray of shape (m,)
        Weight of each row.

    Returns
    -------
    Encoding
        Encoding of the training rows and of new ones.
    """
    numbers = codes[:, ~categorical]
    missing = np.isnan(numbers)
    medians = _weighted_medians(numbers, missing, weight)
    gappy = np.flatnonzero(weight @ missing >= _LEAST_ROWS)
    columns = list(codes[:, categorical].T)
    if categories == ONE_HOT:
        levels = tuple(_frequent_levels(column, weight) for column in columns)
        return Encoding(categories, categorical, medians, gappy, levels=levels)
    outputs = _frequent_outputs(targets, weight)
    means = tuple(_shrunk_means(column, outputs, weight, _size(column)) for column in columns)
    return Encoding(categories, categorical, medians, gappy, means=means)


def _weighted_medians(
    numbers: FloatArray, missing: NDArray[np.bool_], weight: FloatArray
) -> FloatArray:
    """Return the weighted median of each column: those without gaps together, others one by one."""
    whole = ~missing.any(axis=0)
    columns = numbers[:, whole]
    medians = np.empty(numbers.shape[1])
    if (weight == weight[0]).all():  # the median of each column has the same rank
        total = np.cumsum(weight)
        rank = int((total < 0.5 * total[-1]).sum())
        medians[whole] = np.partition(columns, rank, axis=0)[rank]
    else:
        order = np.argsort(columns, axis=0, kind="stable")
        total = np.cumsum(weight[order], axis=0)
        below = (total < 0.5 * total[-1:]).sum(axis=0)
        medians[whole] = columns[order[below, np.arange(len(below))], np.arange(len(below))]
    for k in np.flatnonzero(~whole):
        medians[k] = _weighted_median(numbers[:, k], weight)
    return medians


def _weighted_median(column: FloatArray, weight: FloatArray) -> float:
    present = ~np.isnan(column)
    if not present.any():
        return 0.0
    order = np.argsort(column[present], kind="stable")
    values, total = column[present][order], np.cumsum(weight[present][order])
    return float(values[np.searchsorted(total, 0.5 * total[-1])])


def _size(column: FloatArray) -> int:
    """Number of categories of a training column, without missing values."""
    return int(np.nanmax(column, initial=-1.0)) + 1


def _places(column: FloatArray, size: int) -> IntArray:
    """Return the number of each category; unknown ones come after all, missing ones last."""
    known = np.where(np.isnan(column), size + 1.0, np.where(column < 0, size, column))
    return np.minimum(known, size + 1.0).astype(np.intp)


def _frequent_levels(column: FloatArray, weight: FloatArray) -> IntArray:
    """Return the categories with enough rows; -1 stands for missing values."""
    size = _size(column)
    counts = np.bincount(_places(column, size), weights=weight, minlength=size + 2)
    order = np.argsort(-counts, kind="stable")[:_MOST_LEVELS]
    kept = np.sort(order[counts[order] >= _LEAST_ROWS])
    if len(kept) == 2 and np.count_nonzero(counts) == 2:
        kept = kept[:1]  # of two categories, one column says all
    return np.where(kept == size + 1, -1, kept).astype(np.intp)


def _indicators(column: FloatArray, levels: IntArray) -> FloatArray:
    codes = np.where(np.isnan(column), -1.0, np.where(column < 0, -2.0, column))
    indicators: FloatArray = (codes[:, None] == levels).astype(np.float64)
    return indicators


def _frequent_outputs(targets: FloatArray, weight: FloatArray) -> FloatArray:
    """Return the targets whose means describe a category: of two classes, one says all."""
    if targets.shape[1] == 1:
        return targets
    counts = weight @ targets
    most = min(_MOST_OUTPUTS, targets.shape[1] if targets.shape[1] > 2 else 1)
    return targets[:, np.sort(np.argsort(-counts, kind="stable")[:most])]


def _shrunk_means(
    column: FloatArray, outputs: FloatArray, weight: FloatArray, size: int
) -> FloatArray:
    """Return the mean targets of every category, of unknown ones and of missing values."""
    places = _places(column, size)
    counts = np.bincount(places, weights=weight, minlength=size + 2)
    sums = np.column_stack(
        [np.bincount(places, weights=weight * y, minlength=size + 2) for y in outputs.T]
    )
    average = weight @ outputs / weight.sum()
    shrunk: FloatArray = (sums + _PRIOR_ROWS * average) / (counts + _PRIOR_ROWS)[:, None]
    shrunk[counts < _LEAST_MEAN_ROWS] = average
    return shrunk
