"""Choice of landmarks: points whose kernel functions approximate those of all rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, eigvalsh, solve_triangular
from scipy.optimize import brentq

from tessella.kernels import LearnedKernel

FloatArray = NDArray[np.float64]

_POOL = 20_000  # rows from which landmarks are chosen
_POOL_PER_LANDMARK = 10  # used instead if it is more
_LLOYD_STEPS = 25  # the centres need not be accurate
_ROUNDS = 2
_SAMPLE_PER_LANDMARK = 2  # rows from which leverage scores are computed
# Effective dimension for which the ridge is chosen. Landmarks are drawn at random, so their number
# has to exceed the dimension that they span. A quarter is much better than a half on unevenly
# distributed data, and no worse on evenly distributed data.
_DIMENSION_PER_LANDMARK = 0.25
_TILE_ROWS = 2048


@dataclass(frozen=True)
class Pool:
    """Distinct rows from which landmarks are chosen, with the number of times each row occurs."""

    kernel: LearnedKernel
    rows: FloatArray
    counts: NDArray[np.intp]
    rng: np.random.RandomState
    n_jobs: int | None = None

    @classmethod
    def of(
        cls,
        X: FloatArray,
        limit: int,
        kernel: LearnedKernel,
        rng: np.random.RandomState,
        n_jobs: int | None = None,
    ) -> Pool:
        """Create a pool from all rows of X, or from `limit` random rows if there are more."""
        if len(X) > limit:
            X = X[rng.choice(len(X), limit, replace=False)]
        rows, counts = np.unique(X, axis=0, return_counts=True)
        return cls(kernel, rows, counts, rng, n_jobs)

    def draw(self, count: int, chance: FloatArray | None = None) -> NDArray[np.intp]:
        """Return sorted indices of `count` different rows, drawn by `chance` if given."""
        share = None if chance is None else chance / chance.sum()
        return np.sort(self.rng.choice(len(self.rows), count, replace=False, p=share))


def choose_landmarks(
    method: str,
    kernel: LearnedKernel,
    X: FloatArray,
    count: int,
    rng: np.random.RandomState,
    n_jobs: int | None = None,
) -> FloatArray:
    """Choose at most `count` landmarks for the rows of X, in the units of X.

    If there are at most `count` distinct rows, all of them are landmarks, and the approximation is
    exact.
    """
    pool = Pool.of(X, max(_POOL, _POOL_PER_LANDMARK * count), kernel, rng, n_jobs)
    return pool.rows if len(pool.rows) <= count else _METHODS[method](pool, count)


def _random(pool: Pool, count: int) -> FloatArray:
    return pool.rows[pool.draw(count)]


def _leverage(pool: Pool, count: int) -> FloatArray:
    return pool.rows[pool.draw(count, leverage_scores(pool, count))]


def _k_means(pool: Pool, count: int) -> FloatArray:
    """Return the centres of clusters, with distances in the unit cube of the kernel."""
    box, counts = pool.kernel.box, pool.counts
    scaled = box.apply(pool.rows)
    from sklearn.cluster import KMeans  # slow to import and rarely needed

    machine = KMeans(count, n_init=1, max_iter=_LLOYD_STEPS, random_state=pool.rng)
    label = machine.fit(scaled, sample_weight=counts).labels_
    total = np.bincount(label, weights=counts, minlength=count)
    # The kernel does not depend on the columns that its box drops, so any value can be used.
    centres = np.tile(np.average(pool.rows, axis=0, weights=counts), (count, 1))
    sums = [np.bincount(label, weights=counts * x, minlength=count) for x in scaled.T]
    centres[:, box.kept] = box.invert(np.column_stack(sums) / np.maximum(total, 1)[:, None])
    return centres[total > 0]


def leverage_scores(pool: Pool, count: int) -> FloatArray:
    """Compute approximate ridge leverage scores of the rows of a pool, for `count` landmarks.

    The scores are computed in two rounds: from a uniform sample, and then from a sample that is
    drawn by the scores of the first round, so that it contains rows that the first sample missed.
    """
    total = len(pool.rows)
    size = min(total, _SAMPLE_PER_LANDMARK * count)
    chance = np.full(total, size / total)
    for _ in range(_ROUNDS):
        sample = pool.draw(size, chance)
        score = scores_from_sample(pool, sample, chance[sample], _DIMENSION_PER_LANDMARK * count)
        chance = np.minimum(1.0, size * score / score.sum())
    return score


def scores_from_sample(
    pool: Pool, sample: NDArray[np.intp], chance: FloatArray, dimension: float
) -> FloatArray:
    """Compute ridge leverage scores of all rows from a sample with known probabilities.

    The score ``(K (K + ridge I)⁻¹)_ii`` is ``(k_ii - k_iX (K + ridge I)⁻¹ k_Xi) / ridge``. The
    sample S replaces X, and each row of S represents 1 / chance rows of X:
    ``(k_ii - k_iS (K_SS + ridge diag(chance))⁻¹ k_Si) / ridge``.
    """
    kernel, X = partial(pool.kernel, n_jobs=pool.n_jobs), pool.rows
    K = kernel(X[sample])
    weight = 1.0 / np.sqrt(chance)
    ridge = ridge_for(np.maximum(eigvalsh(weight[:, None] * K * weight), 0.0), dimension)
    K[np.diag_indices_from(K)] += ridge * chance
    root = cholesky(K, lower=True)
    rest = pool.kernel.diag(X)
    for start in range(0, len(X), _TILE_ROWS):
        tile = slice(start, start + _TILE_ROWS)
        known = solve_triangular(root, kernel(X[sample], X[tile]), lower=True)
        rest[tile] -= (known**2).sum(axis=0)
    # Every row keeps a positive probability; otherwise rounding might leave too few rows.
    score: FloatArray = np.clip(rest / ridge, 1e-6, 1.0)
    return score


def ridge_for(spectrum: FloatArray, dimension: float) -> float:
    """Return the ridge for which the effective dimension ``Σ λ / (λ + ridge)`` is `dimension`.

    If the rank is smaller than `dimension`, the ridge is as small as rounding errors.
    """

    def excess(log_ridge: float) -> float:
        return float((spectrum / (spectrum + np.exp(log_ridge))).sum()) - dimension

    smallest = np.log(len(spectrum) * np.finfo(float).eps * spectrum.max())
    if excess(smallest) <= 0:
        return float(np.exp(smallest))
    # Each term is less than λ / ridge, so this value is large enough.
    largest = np.log(spectrum.sum() / dimension)
    return float(np.exp(brentq(excess, smallest, largest)))


_METHODS: dict[str, Callable[[Pool, int], FloatArray]] = {
    "leverage": _leverage,
    "k-means": _k_means,
    "random": _random,
}
LANDMARKS = tuple(_METHODS)
