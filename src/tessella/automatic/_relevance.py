"""Relevance of the columns of a table for the predictions of an automatic model."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

_LEVELS = 12
_ROUNDING = 1e-24  # variance of constant predictions, relative to their mean square


def relevance_of_columns(
    outputs: Callable[[FloatArray], FloatArray], codes: FloatArray
) -> FloatArray:
    """Return the share of the variance of the outputs that is lost by averaging over a column.

    A column runs over its values while the other columns keep those of a row, as in
    :func:`tessella.inspection.feature_relevance`, but for tables with categories and gaps.

    Parameters
    ----------
    outputs : callable
        Function of rows of codes that returns an array of shape (n_rows, k).
    codes : ndarray of shape (m, n)
        Rows, with NaN for missing values.

    Returns
    -------
    ndarray of shape (n,)
        Shares in [0, 1].
    """
    return np.array([_total_share(outputs, codes, j) for j in range(codes.shape[1])])


def _total_share(
    outputs: Callable[[FloatArray], FloatArray], codes: FloatArray, column: int
) -> float:
    levels = _levels(codes[:, column])
    grid = np.repeat(codes, len(levels), axis=0)
    grid[:, column] = np.tile(levels, len(codes))
    table = outputs(grid).reshape(len(codes), len(levels), -1)
    total = float(table.var(axis=(0, 1)).sum())
    if total <= _ROUNDING * float(np.square(table).mean(axis=(0, 1)).sum()):
        return 0.0  # the predictions are constant
    return float(table.var(axis=1).mean(axis=0).sum()) / total


def _levels(values: FloatArray) -> FloatArray:
    """Return at most some values of a column, evenly spaced in their order."""
    ordered = np.sort(values)  # missing values come last
    places = np.linspace(0, len(ordered) - 1, min(_LEVELS, len(ordered))).round().astype(np.intp)
    return ordered[places]
