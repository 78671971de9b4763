"""Landmarks: a few points whose kernel functions come close to spanning those of all rows."""

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

_POOL = 20_000  # rows among which landmarks are looked for
_POOL_PER_LANDMARK = 10  # when that is more
_LLOYD_STEPS = 25  # the last decimals of a centre do not matter
_ROUNDS = 2
_SAMPLE_PER_LANDMARK = 2  # rows that leverage scores are judged by
# Effective dimension that the ridge allows. Landmarks are drawn by chance, so their number has to
# exceed what they shall span; a quarter does much better on uneven data than a half, and no worse
# on even data.
_DIMENSION_PER_LANDMARK = 0.25
_TILE_ROWS = 2048


@dataclass(frozen=True)
class Pool:
    """Distinct rows to find landmarks among, how often each occurs, and what it takes."""

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
        """From all rows of X, or `limit` of them at random."""
        if len(X) > limit:
            X = X[rng.choice(len(X), limit, replace=False)]
        rows, counts = np.unique(X, axis=0, return_counts=True)
        return cls(kernel, rows, counts, rng, n_jobs)

    def draw(self, count: int, chance: FloatArray | None = None) -> NDArray[np.intp]:
        """Numbers of `count` different rows, in order, by relative chances if given."""
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
    """At most `count` landmarks for the rows of X, in their units.

    All distinct rows when there are not more than that: the approximation is then exact.
    """
    pool = Pool.of(X, max(_POOL, _POOL_PER_LANDMARK * count), kernel, rng, n_jobs)
    return pool.rows if len(pool.rows) <= count else _METHODS[method](pool, count)


def _random(pool: Pool, count: int) -> FloatArray:
    return pool.rows[pool.draw(count)]


def _leverage(pool: Pool, count: int) -> FloatArray:
    return pool.rows[pool.draw(count, leverage_scores(pool, count))]


def _k_means(pool: Pool, count: int) -> FloatArray:
    """Centres of clusters, with distances in the unit cube of the kernel."""
    box, counts = pool.kernel.box, pool.counts
    scaled = box.apply(pool.rows)
    from sklearn.cluster import KMeans  # slow to import, and rarely needed

    machine = KMeans(count, n_init=1, max_iter=_LLOYD_STEPS, random_state=pool.rng)
    label = machine.fit(scaled, sample_weight=counts).labels_
    total = np.bincount(label, weights=counts, minlength=count)
    # The kernel does not see the columns that its box drops; any value will do, a mean is tidy.
    centres = np.tile(np.average(pool.rows, axis=0, weights=counts), (count, 1))
    for k, column in enumerate(box.kept):
        sums = np.bincount(label, weights=counts * scaled[:, k], minlength=count)
        centres[:, column] = box.offset[k] + box.span[k] * sums / np.maximum(total, 1)
    return centres[total > 0]


def leverage_scores(pool: Pool, count: int) -> FloatArray:
    """Approximate ridge leverage scores of the rows of a pool, for `count` landmarks.

    In two rounds: scores from a uniform sample, then from one drawn by those scores, so that rows
    which the first sample missed are in the second.
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
    """Ridge leverage scores of all rows, judged by some that were drawn with known chances.

    The score ``(K (K + ridge I)⁻¹)_ii`` is ``(k_ii - k_iX (K + ridge I)⁻¹ k_Xi) / ridge``. Here the
    sample S stands for X, each of its rows for 1 / chance rows:
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
    # Every row keeps a chance, or rounding might leave too few to choose from.
    score: FloatArray = np.clip(rest / ridge, 1e-6, 1.0)
    return score


def ridge_for(spectrum: FloatArray, dimension: float) -> float:
    """The ridge for which ``Σ λ / (λ + ridge)``, the effective dimension, is `dimension`.

    A ridge of the size of rounding if the rank is lower than that.
    """

    def excess(log_ridge: float) -> float:
        return float((spectrum / (spectrum + np.exp(log_ridge))).sum()) - dimension

    smallest = np.log(len(spectrum) * np.finfo(float).eps * spectrum.max())
    if excess(smallest) <= 0:
        return float(np.exp(smallest))
    # Each term is below λ / ridge, so this is large enough.
    largest = np.log(spectrum.sum() / dimension)
    return float(np.exp(brentq(excess, smallest, largest)))


_METHODS: dict[str, Callable[[Pool, int], FloatArray]] = {
    "leverage": _leverage,
    "k-means": _k_means,
    "random": _random,
}
LANDMARKS = tuple(_METHODS)
