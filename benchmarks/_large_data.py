"""Rows of a made-up table of any length: a known function of ten columns, with noise.

Columns are uniform with a correlation of about 0.2. The function has interactions, a smooth and a
kinked part; the last column has no effect. It is standardised with the constants of its
distribution, so that a row does not depend on the others. The noise of a regression has 20 % of the
deviation of the function. Classes are drawn with a logistic probability, so that the best possible
error rate is about 9.8 %.

Rows come in blocks of 10,000, each with a counter-based generator of its own. A row depends on the
seed and on its number alone, however many rows are asked for at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, ndtr

FloatArray = NDArray[np.float64]

REGRESSION, CLASSIFICATION = "regression", "classification"
BLOCK_ROWS = 10_000
COLUMNS = 10
CORRELATION = 0.2
NOISE = 0.2  # deviations of the function
LOGISTIC_SCALE = 0.2  # deviations of the function
TEST_ROWS_FROM = 10**11  # the number of the first test row: no training set reaches it

# Of 8,000,000 rows, to three digits.
MEAN, DEVIATION, MEDIAN = 15.76, 5.741, 15.78


class Rows(NamedTuple):
    """Rows of the table.

    Attributes
    ----------
    X : ndarray of shape (n_rows, 10)
        Columns between 0 and 1.
    y : ndarray of shape (n_rows,)
        Targets of type float64, or classes -1 and 1.
    clean : ndarray of shape (n_rows,)
        Targets without noise, or probabilities of the class 1.
    """

    X: FloatArray
    y: NDArray[Any]
    clean: FloatArray


def make_rows(n_rows: int, kind: str, seed: int, first: int = 0) -> Rows:
    """Rows `first` to ``first + n_rows - 1`` of the table of that seed.

    Parameters
    ----------
    n_rows : int
        How many rows.
    kind : {"regression", "classification"}
        Kind of the target; both have the same columns.
    seed : int
        Of the table, not negative.
    first : int
        Number of the first row.
    """
    if kind not in (REGRESSION, CLASSIFICATION):
        raise ValueError(f"There is no kind {kind!r}; use {REGRESSION} or {CLASSIFICATION}.")
    rows = Rows(
        np.empty((n_rows, COLUMNS)),
        np.empty(n_rows, np.float64 if kind == REGRESSION else np.int64),
        np.empty(n_rows),
    )
    for block, inside, place in _pieces(n_rows, first):
        for whole, part in zip(rows, _block(block, kind, seed), strict=True):
            whole[place] = part[inside]
    return rows


def _pieces(n_rows: int, first: int) -> Iterator[tuple[int, slice, slice]]:
    """Blocks, the rows wanted from each, and their places in the answer."""
    row = first
    while row < first + n_rows:
        block, begin = divmod(row, BLOCK_ROWS)
        count = min(BLOCK_ROWS - begin, first + n_rows - row)
        yield block, slice(begin, begin + count), slice(row - first, row - first + count)
        row += count


def _block(block: int, kind: str, seed: int) -> Rows:
    rng = np.random.Generator(np.random.Philox(key=np.array([seed, block], np.uint64)))
    normals = rng.standard_normal((BLOCK_ROWS, COLUMNS + 2))
    own, common, noise = normals[:, :COLUMNS], normals[:, COLUMNS, None], normals[:, COLUMNS + 1]
    X = ndtr(np.sqrt(1.0 - CORRELATION) * own + np.sqrt(CORRELATION) * common)
    raw = function(X)
    if kind == REGRESSION:
        clean = (raw - MEAN) / DEVIATION
        return Rows(X, clean + NOISE * noise, clean)
    score = (raw - MEDIAN) / DEVIATION
    flipped = score + LOGISTIC_SCALE * logit(ndtr(noise))
    return Rows(X, np.where(flipped > 0, 1, -1), expit(score / LOGISTIC_SCALE))


def function(X: FloatArray) -> FloatArray:
    """The function of the columns, before it is standardised."""
    x = X.T
    smooth: FloatArray = (
        10.0 * np.sin(np.pi * x[0] * x[1])
        + 20.0 * (x[2] - 0.5) ** 2
        + 10.0 * x[3]
        + 5.0 * x[4]
        + 5.0 * np.sin(6.0 * x[5]) * x[6]
    )
    return smooth + 5.0 * np.abs(x[7] - x[8])


def errors(kind: str, predicted: NDArray[Any], rows: Rows) -> dict[str, float]:
    """The errors of predictions of some rows, relative as in 1 - R², or rates.

    Returns
    -------
    dict
        ``test_error``: against the targets, with their noise. ``excess``: what is above the best
        possible predictions, which is the squared error against the function in units of the
        variance of the targets, or the error rate that the predictions add on average. ``least``:
        the error of the best possible predictions.
    """
    if kind == REGRESSION:
        variance = float(np.var(rows.y))
        return {
            "test_error": float(np.mean((predicted - rows.y) ** 2)) / variance,
            "excess": float(np.mean((predicted - rows.clean) ** 2)) / variance,
            "least": float(np.mean((rows.clean - rows.y) ** 2)) / variance,
        }
    best = np.where(rows.clean > 0.5, 1, -1)
    lost = np.abs(2.0 * rows.clean - 1.0) * (predicted != best)
    return {
        "test_error": float(np.mean(predicted != rows.y)),
        "excess": float(np.mean(lost)),
        "least": float(np.mean(best != rows.y)),
    }


def leaves_of(model: Any) -> int | None:
    """Leaves of all trees of a fitted model; None for one without leaves."""
    found = getattr(model, "leaves_", None) or getattr(model, "partition_", None)
    return None if found is None else int(found.n_leaves)
