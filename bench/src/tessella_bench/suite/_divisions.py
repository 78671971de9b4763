"""Training and test rows of the suite, the same for all methods."""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

from tessella_bench._methods import CLASSIFICATION

SIZES = (1000, 4000)
DIVISIONS = {1000: 3, 4000: 1}
TRAINING_SHARE = 0.8  # at most
MOST_TEST_ROWS = 10_000

Rows = NDArray[np.intp]


def training_rows(rows: int, size: int) -> int:
    """How many rows of a table are learned from.

    Parameters
    ----------
    rows : int
        Of the table.
    size : int
        What is asked for.

    Returns
    -------
    int
        `size`, or 80 % of the rows where that is less.

    Examples
    --------
    >>> from tessella_bench.suite import training_rows
    >>> training_rows(20_000, 1000), training_rows(500, 1000)
    (1000, 400)
    """
    return min(size, int(TRAINING_SHARE * rows))


def sizes_of(rows: int) -> tuple[int, ...]:
    """The sizes at which a table is used.

    Every table is used at the smallest size; at a larger one only if it has as many training rows,
    which is 5,000 rows for 4,000 training rows.
    """
    return tuple(size for size in SIZES if size == SIZES[0] or training_rows(rows, size) == size)


def divide(task: str, y: NDArray[np.generic], size: int, seed: int) -> tuple[Rows, Rows]:
    """Training and test rows of a division.

    Classes keep their shares in both parts, to the nearest row. The generator is one whose stream
    never changes, so that environments with other versions have the same divisions.

    Parameters
    ----------
    task : {"classification", "regression"}
        Whether there are classes.
    y : ndarray
        Target of all rows.
    size : int
        Training rows that are asked for.
    seed : int
        Number of the division.

    Returns
    -------
    train, test : ndarray of int
        In ascending order: :func:`training_rows` of them, and at most 10,000 of the others.
    """
    count = training_rows(len(y), size)
    return draw(task, y, count, min(len(y) - count, MOST_TEST_ROWS), seed)


def hold_out(task: str, y: NDArray[np.generic], share: float, seed: int) -> tuple[Rows, Rows]:
    """The rows that are kept and those that are held out, a share of all."""
    held_out = round(share * len(y))
    return draw(task, y, len(y) - held_out, held_out, seed)


def draw(
    task: str, y: NDArray[np.generic], first: int, second: int, seed: int
) -> tuple[Rows, Rows]:
    """Two parts of so many rows without a common row, with the shares of the classes.

    Parameters
    ----------
    task : {"classification", "regression"}
        Whether there are classes.
    y : ndarray
        Target of all rows.
    first, second : int
        Rows of the parts.
    seed : int
        Of the draw.

    Returns
    -------
    tuple of ndarray
        In ascending order.
    """
    if first < 1 or second < 1 or first + second > len(y):
        raise ValueError(f"{len(y)} rows cannot be divided into {first} and {second}.")
    order = np.random.RandomState(seed).permutation(len(y))
    if task != CLASSIFICATION:
        return np.sort(order[:first]), np.sort(order[first : first + second])
    labels = np.unique(y, return_inverse=True)[1][order]
    chosen = _with_shares(labels, first)
    left = np.flatnonzero(~np.isin(np.arange(len(y)), chosen))
    others = left[_with_shares(labels[left], second)]
    return np.sort(order[chosen]), np.sort(order[others])


def _with_shares(labels: NDArray[np.intp], count: int) -> Rows:
    """The first rows of each class, as many as its share of `count`; largest remainders first."""
    members = np.bincount(labels)
    exact = members * (count / len(labels))
    quota = np.floor(exact).astype(int)
    by_remainder = np.argsort(quota - exact, kind="stable")
    quota[by_remainder[: count - quota.sum()]] += 1
    return np.concatenate([np.flatnonzero(labels == k)[:n] for k, n in enumerate(quota)])


def checksum(train: Rows, test: Rows) -> str:
    """A short mark of a division, by which a report knows that methods had the same."""
    content = np.concatenate([train, [-1], test]).astype("<i8").tobytes()
    return hashlib.sha256(content).hexdigest()[:16]
