"""Dictionaries of kernels: which there are, on which scale, and their evaluation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tessella.backend import effective_threads
from tessella.multiple_kernels._kernels import (
    Gaussian,
    Kernel,
    OnFeatures,
    Polynomial,
    tiles,
)

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
_S = TypeVar("_S")
_T = TypeVar("_T")

BANDWIDTHS = tuple(float(b) for b in np.geomspace(0.5, 10.0, 10).round(3))
DEGREES = (1, 2, 3)
_NORMALISATIONS = ("trace", "cosine", None)
_TILE_ENTRIES = 1 << 16  # half a megabyte: stays in the cache of a core while kernels pass by


@dataclass(frozen=True)
class KernelDictionary:
    """A list of kernels to weigh, with the scaling of features and of kernels.

    Parameters
    ----------
    kernels : sequence of Gaussian, Polynomial or callables
        A callable takes two arrays of rows and gives the matrix between them, positive
        semidefinite when both are the same; scikit-learn's Gaussian process kernels are such.
    each_feature : bool, default=False
        Whether every kernel without `features` of its own is there on all features and, besides,
        once on each feature alone. Constant features are left out.
    normalisation : {"trace", "cosine", None}, default="trace"
        "trace" divides a kernel by the mean of its diagonal on the training rows, so that its
        matrix there has trace m. "cosine" divides ``k(x, z)`` by ``sqrt(k(x, x) k(z, z))``. Both
        are applied to new rows alike. None takes kernels as they are.
    standardise : bool, default=True
        Whether kernels see features with the mean of the training rows subtracted, divided by
        their standard deviation.

    Examples
    --------
    >>> from tessella import KernelDictionary
    >>> from tessella.multiple_kernels import Gaussian, Polynomial
    >>> dictionary = KernelDictionary([Gaussian(1.0), Gaussian(4.0), Polynomial(2)])
    >>> len(dictionary.fit([[0.0, 1.0], [1.0, 3.0], [2.0, 0.0]]))
    3
    >>> len(KernelDictionary.standard().fit([[0.0, 1.0], [1.0, 3.0], [2.0, 0.0]]))
    39
    """

    kernels: Sequence[Any]
    each_feature: bool = False
    normalisation: str | None = "trace"
    standardise: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.kernels, Sequence) or isinstance(self.kernels, str):
            raise TypeError(
                f"kernels={self.kernels!r} must be a list of kernels, for instance "
                "[Gaussian(1.0), Polynomial(2)]."
            )
        if not len(self.kernels):
            raise ValueError("A dictionary needs at least one kernel.")
        strangers = [kernel for kernel in self.kernels if not callable(kernel)]
        if strangers:
            raise TypeError(
                f"kernels holds {strangers[0]!r}, which is not a kernel: use Gaussian, Polynomial "
                "or a callable of two arrays of rows."
            )
        if self.normalisation not in _NORMALISATIONS:
            raise ValueError(
                f"normalisation={self.normalisation!r} is unknown; use one of {_NORMALISATIONS}."
            )
        object.__setattr__(self, "kernels", tuple(self.kernels))

    @classmethod
    def standard(
        cls,
        bandwidths: Sequence[float] = BANDWIDTHS,
        degrees: Sequence[int] = DEGREES,
        *,
        each_feature: bool = True,
        normalisation: str | None = "trace",
        standardise: bool = True,
    ) -> KernelDictionary:
        """The dictionary of the paper and of SimpleMKL: 13 (n + 1) kernels for n features.

        Parameters
        ----------
        bandwidths : sequence of float
            Of the Gaussian kernels; ten from 0.5 to 10 in equal ratios by default.
        degrees : sequence of int
            Of the polynomial kernels ``(x · z + 1)^degree``; 1, 2, 3 by default.
        each_feature, normalisation, standardise
            As in the class.

        Returns
        -------
        KernelDictionary
        """
        gaussians = [Gaussian(bandwidth) for bandwidth in bandwidths]
        polynomials = [Polynomial(degree) for degree in degrees]
        return cls((*gaussians, *polynomials), each_feature, normalisation, standardise)

    def fit(self, X: ArrayLike, sample_weight: ArrayLike | None = None) -> FittedDictionary:
        """The dictionary for the features and the scale of training rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training rows.
        sample_weight : array-like of shape (n_samples,), optional
            Weight k is the same as k copies.

        Returns
        -------
        FittedDictionary
        """
        rows = np.asarray(X, dtype=np.float64)
        weight = np.ones(len(rows)) if sample_weight is None else np.asarray(sample_weight, float)
        varying = np.flatnonzero(np.ptp(rows, axis=0) > 0)
        mean, scale = np.zeros(rows.shape[1]), np.ones(rows.shape[1])
        if self.standardise:
            mean, scale = _mean_and_scale(rows, weight)
        kernels = self._resolved(rows.shape[1], varying)
        found = FittedDictionary(kernels, mean, scale, np.ones(len(kernels)), False)
        scaled = found.scaled(rows)
        diagonals = [np.average(kernel.diag(scaled), weights=weight) for kernel in kernels]
        _check_diagonals(kernels, diagonals)
        if self.normalisation == "trace":
            return replace(found, factors=1.0 / np.array(diagonals))
        return replace(found, cosine=self.normalisation == "cosine")

    def _resolved(self, n_features: int, varying: IntArray) -> tuple[Kernel, ...]:
        wrapped = [
            kernel if isinstance(kernel, Kernel) else OnFeatures(kernel) for kernel in self.kernels
        ]
        for kernel in wrapped:
            if kernel.features is not None and max(kernel.features) >= n_features:
                raise ValueError(
                    f"{kernel!r} looks at feature {max(kernel.features)} and the data has "
                    f"{n_features} features, numbered from 0."
                )
        if self.each_feature and len(varying) > 1:
            general = [kernel for kernel in wrapped if kernel.features is None]
            wrapped += [replace(k, features=(int(f),)) for f in varying for k in general]
        return tuple(wrapped)


def _mean_and_scale(rows: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Weighted mean and standard deviation of each feature; 1 for a constant one."""
    mean = np.average(rows, axis=0, weights=weight)
    deviation = np.sqrt(np.average((rows - mean) ** 2, axis=0, weights=weight))
    return mean, np.where(deviation > 1e-13 * np.abs(rows).max(axis=0), deviation, 1.0)


def _check_diagonals(kernels: Sequence[Kernel], diagonals: Sequence[float]) -> None:
    for kernel, mean in zip(kernels, diagonals, strict=True):
        if not np.isfinite(mean) or mean <= 0:
            raise ValueError(
                f"{kernel!r} has a diagonal with mean {mean} on the training rows: a kernel must "
                "be finite and positive semidefinite there, and not zero. Check its scale, or "
                "leave it out."
            )


@dataclass(frozen=True)
class FittedDictionary:
    """Kernels on the scale of their training rows; made by :meth:`KernelDictionary.fit`.

    Attributes
    ----------
    kernels : tuple
        The kernels, which see scaled features.
    mean, scale : ndarray of shape (n_features,)
        ``(x - mean) / scale`` is what they see.
    factors : ndarray of shape (n_kernels,)
        What each is multiplied by.
    cosine : bool
        Whether each is divided by the roots of its diagonal.
    """

    kernels: tuple[Kernel, ...]
    mean: FloatArray
    scale: FloatArray
    factors: FloatArray
    cosine: bool

    def __len__(self) -> int:
        return len(self.kernels)

    def scaled(self, X: FloatArray) -> FloatArray:
        """Raw rows as the kernels see them."""
        rows: FloatArray = np.ascontiguousarray((X - self.mean) / self.scale)
        return rows

    def matrix(self, number: int, X: ArrayLike, Y: ArrayLike | None = None) -> FloatArray:
        """The matrix of one kernel, normalised, between raw rows.

        Parameters
        ----------
        number : int
            Which kernel.
        X, Y : array-like of shape (n_samples, n_features)
            Raw rows; without Y those of X on both sides.

        Returns
        -------
        ndarray of shape (n_samples_X, n_samples_Y)
        """
        left = self.scaled(np.asarray(X, dtype=np.float64))
        right = left if Y is None else self.scaled(np.asarray(Y, dtype=np.float64))
        (tile,) = (values.copy() for _, values in self.tiles(left, right, [number]))
        return tile

    def tiles(
        self, left: FloatArray, right: FloatArray, which: Sequence[int]
    ) -> Iterator[tuple[int, FloatArray]]:
        """Normalised matrices of some kernels between few scaled rows, in one buffer."""
        for number, tile in tiles(self.kernels, left, right, which):
            values = tile
            if self.cosine and not isinstance(self.kernels[number], Gaussian):
                values = tile / self._root(number, left)[:, None]
                values /= self._root(number, right)
            elif self.factors[number] != 1.0:
                values = np.multiply(tile, self.factors[number], out=tile)
            yield number, values

    def _root(self, number: int, rows: FloatArray) -> FloatArray:
        diagonal = np.maximum(self.kernels[number].diag(rows), 0.0)
        return np.sqrt(np.where(diagonal > 0, diagonal, 1.0))

    def combined(
        self, weights: FloatArray, left: FloatArray, right: FloatArray, out: FloatArray
    ) -> None:
        """Write the weighted sum of the kernels between scaled rows to `out`."""
        out.fill(0.0)
        for number, tile in self.tiles(left, right, np.flatnonzero(weights).tolist()):
            tile = np.multiply(tile, weights[number], out=tile)
            out += tile

    def diag(self, weights: FloatArray, rows: FloatArray) -> FloatArray:
        """Diagonal of the weighted sum on scaled rows."""
        total = np.zeros(len(rows))
        for number in np.flatnonzero(weights).tolist():
            own = self.kernels[number].diag(rows)
            if self.cosine:
                own = own / self._root(number, rows) ** 2
            total += weights[number] * self.factors[number] * own
        return total


def strips(n_rows: int, n_columns: int) -> list[slice]:
    """Rows in pieces whose tiles fit the cache."""
    height = max(1, _TILE_ENTRIES // max(1, n_columns))
    return [slice(k, min(k + height, n_rows)) for k in range(0, n_rows, height)]


def in_threads(work: Callable[[_S], _T], pieces: list[_S], n_jobs: int | None) -> list[_T]:
    """The outcomes of pieces of work, in their order, whatever the number of threads."""
    threads = min(effective_threads(n_jobs), len(pieces))
    if threads < 2:
        return [work(piece) for piece in pieces]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(work, pieces))


class CombinedKernel:
    """A weighted sum of the kernels of a dictionary, on raw features.

    Parameters
    ----------
    dictionary : FittedDictionary
        The kernels.
    weights : ndarray of shape (n_kernels,)
        Their weights, not negative.
    """

    def __init__(self, dictionary: FittedDictionary, weights: FloatArray) -> None:
        self.dictionary = dictionary
        self.weights = weights

    def __call__(self, X: ArrayLike, Y: ArrayLike | None = None) -> FloatArray:
        """Matrix of the kernel between the raw rows of X and those of Y (of X without one)."""
        left = self.dictionary.scaled(np.asarray(X, dtype=np.float64))
        right = left if Y is None else self.dictionary.scaled(np.asarray(Y, dtype=np.float64))
        K = np.empty((len(left), len(right)))
        for rows in strips(len(left), len(right)):
            self.dictionary.combined(self.weights, left[rows], right, K[rows])
        return K

    def diag(self, X: ArrayLike) -> FloatArray:
        """``k(x, x)`` of each raw row."""
        rows = self.dictionary.scaled(np.asarray(X, dtype=np.float64))
        return self.dictionary.diag(self.weights, rows)

    def scores(
        self, X: FloatArray, Y: FloatArray, coefficients: FloatArray, n_jobs: int | None = None
    ) -> FloatArray:
        """``kernel(X, Y) @ coefficients`` in bounded memory."""
        left, right = self.dictionary.scaled(X), self.dictionary.scaled(Y)

        def strip(rows: slice) -> FloatArray:
            tile = np.empty((rows.stop - rows.start, len(right)))
            self.dictionary.combined(self.weights, left[rows], right, tile)
            product: FloatArray = tile @ coefficients
            return product

        parts = in_threads(strip, strips(len(left), len(right)), n_jobs)
        return np.concatenate(parts) if parts else np.zeros((0, coefficients.shape[1]))

    def __repr__(self) -> str:
        used = np.flatnonzero(self.weights)
        return f"CombinedKernel({len(used)} of {len(self.weights)} kernels)"
