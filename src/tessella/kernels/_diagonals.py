"""Diagonals of the kernels of a dictionary, many kernels at a time.

A dictionary has many kernels for each feature. One call of numpy for each of them would take longer
than all of the arithmetic.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from tessella.backend import check_deadline
from tessella.kernels._functions import Gaussian, Polynomial, SingleKernel

FloatArray = NDArray[np.float64]

_BLOCK_ENTRIES = 1 << 20  # of the diagonals that are held at a time


def diagonals(
    kernels: Sequence[SingleKernel], which: Sequence[int], rows: FloatArray
) -> Iterator[tuple[list[int], FloatArray]]:
    """Yield numbers of kernels together with their diagonals on scaled rows.

    Parameters
    ----------
    kernels : sequence of kernels
        All kernels.
    which : sequence of int
        Numbers of the kernels whose diagonals are wanted, each once. The order of the result is
        another one.
    rows : ndarray of shape (m, n_features)
        Scaled rows.

    Yields
    ------
    numbers : list of int
        Numbers of some kernels.
    values : ndarray of shape (m, len(numbers)) or (m, 1)
        Their diagonals. A single column is the diagonal of all of them.
    """
    gaussians: list[int] = []
    alike: dict[tuple[int, float], list[int]] = {}
    for number in which:
        kernel = kernels[number]
        if isinstance(kernel, Gaussian):
            gaussians.append(number)
        elif isinstance(kernel, Polynomial) and kernel.features and len(kernel.features) == 1:
            alike.setdefault((int(kernel.degree), float(kernel.offset)), []).append(number)
        else:
            check_deadline()
            yield [number], kernel.diag(rows)[:, None]
    if gaussians:
        yield gaussians, np.ones((len(rows), 1))
    step = max(1, _BLOCK_ENTRIES // max(1, len(rows)))
    for (degree, offset), numbers in alike.items():
        for k in range(0, len(numbers), step):
            own = numbers[k : k + step]
            columns = [(kernels[number].features or (0,))[0] for number in own]
            yield own, (np.square(rows[:, columns]) + offset) ** degree


def means_and_minima(
    kernels: Sequence[SingleKernel], rows: FloatArray, weight: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the weighted mean and the smallest entry of the diagonal of every kernel.

    Parameters
    ----------
    kernels : sequence of kernels
        Kernels.
    rows : ndarray of shape (m, n_features)
        Scaled rows.
    weight : ndarray of shape (m,)
        Weight of each row.
    """
    means, minima = np.empty(len(kernels)), np.empty(len(kernels))
    # The same product in both, so that the mean of a diagonal of ones is one to the last bit.
    total = weight @ np.ones((len(rows), 1))
    for numbers, values in diagonals(kernels, range(len(kernels)), rows):
        means[numbers] = weight @ values / total
        minima[numbers] = values.min(axis=0)
    return means, minima
