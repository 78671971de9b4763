"""Random parts of a problem in which every machine and every class is represented."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tessella.kernels import BoundKernelSet, SharedKernels
from tessella.svm import DualProblem

FloatArray = NDArray[np.float64]
Rows = NDArray[np.intp]


def sample_strata(
    dual: DualProblem, count: int, rng: np.random.Generator
) -> tuple[Rows, FloatArray]:
    """Return about `count` random samples, ascending, and how many samples each represents.

    Every machine and every class is represented in proportion to its size, by at least two
    samples, because the dual vector of a machine without one of its classes could not move.
    """
    kind = 4 * dual.machine_of + 2 * (dual.upper > 0) + (dual.lower < 0)
    _, stratum, sizes = np.unique(kind, return_inverse=True, return_counts=True)
    share = np.minimum(np.maximum(2, np.round(count * sizes / dual.size)), sizes).astype(np.intp)
    order = rng.permutation(dual.size)
    order = order[np.argsort(stratum[order], kind="stable")]
    place = np.arange(dual.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    rows = np.sort(order[place < np.repeat(share, sizes)])
    return rows, (sizes / share)[stratum[rows]]


def sample_rows(kernels: BoundKernelSet, dual: DualProblem, count: int) -> Rows:
    """Return positions of about `count` random samples that a kernel set can be restricted to.

    Machines that share their rows keep the same ones.
    """
    rng = np.random.default_rng(0)
    if not isinstance(kernels, SharedKernels):
        return sample_strata(dual, count, rng)[0]
    machines = dual.size // kernels.n_rows
    return kernels.spread(np.sort(rng.permutation(kernels.n_rows)[: count // machines]))
