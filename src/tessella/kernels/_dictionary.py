"""Dictionaries of kernels: k(x, y) = Σ_i μ_i k_i(x, y) with weights μ on the simplex."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from tessella.backend import in_threads
from tessella.cones import Cone, Nonnegative
from tessella.kernels._base import FloatArray, KernelSet, as_rows
from tessella.kernels._diagonals import diagonals, means_and_minima
from tessella.kernels._functions import (
    FunctionKernel,
    Gaussian,
    Polynomial,
    SingleKernel,
    on_feature,
    tiles,
)
from tessella.kernels._predictor import Predictor

if TYPE_CHECKING:
    from tessella.kernels._bound_dictionary import BoundDictionary
    from tessella.kernels._stacked import StackedKernels

IntArray = NDArray[np.intp]

BANDWIDTHS = tuple(float(b) for b in np.geomspace(0.5, 10.0, 10).round(3))
DEGREES = (1, 2, 3)
_NORMALISATIONS = ("trace", "cosine", None)
# Largest number of kernels, and of bytes, for which a Newton iteration keeps the kernel matrices
# instead of computing them again.
MOST_STACKED, MOST_STACKED_BYTES = 64, 1 << 30
_TILE_ENTRIES = 1 << 16  # half a megabyte, which stays in the cache of a core
_MIRRORED = 256  # side of the squares that are copied across the diagonal
# Functions of a user are checked on this many rows, up to rounding in single precision.
_CHECKED_ROWS, _ASYMMETRY, _INDEFINITENESS = 200, 1e-5, 1e-8


@dataclass
class KernelDictionary(KernelSet):
    """Weighted sums of the kernels of a list, with nonnegative weights that sum to one.

    Parameters
    ----------
    kernels : sequence of Gaussian, Polynomial or callables
        Kernels to weigh. A callable takes two arrays of rows and returns the matrix between them,
        which must be symmetric and positive semidefinite if both arrays are the same; this is
        checked on at most 200 training rows. The kernels of scikit-learn's Gaussian processes are
        such callables.
    each_feature : bool, default=False
        Whether every kernel without `features` of its own is used on all features and, in
        addition, once on each feature alone. Constant features are left out.
    normalisation : {"trace", "cosine", None}, default="trace"
        Scaling of the kernels, which is applied to new rows too. "trace" divides a kernel by the
        mean of its diagonal on the training rows, so that its matrix there has trace m. "cosine"
        divides ``k(x, z)`` by ``sqrt(k(x, x) k(z, z))``. None uses the kernels as they are.
    standardise : bool, default=True
        Whether the kernels see features from which the mean of the training rows has been
        subtracted and which have been divided by their standard deviation.

    Examples
    --------
    >>> from tessella import KernelDictionary
    >>> from tessella.kernels import Gaussian, Polynomial
    >>> dictionary = KernelDictionary([Gaussian(1.0), Gaussian(4.0), Polynomial(2)])
    >>> dictionary.cone(2)
    Nonnegative(3)
    >>> X = [[0.0, 1.0], [1.0, 3.0], [2.0, 0.0]]
    >>> len(KernelDictionary.standard().resolve(X))
    39
    """

    kernels: Sequence[Any]
    each_feature: bool = False
    normalisation: str | None = "trace"
    standardise: bool = True

    family: ClassVar[str | None] = "dictionary"

    def __post_init__(self) -> None:
        if not isinstance(self.kernels, Sequence) or isinstance(self.kernels, str):
            raise TypeError(
                f"kernels={self.kernels!r} must be a list of kernels, for instance "
                "[Gaussian(1.0), Polynomial(2)]."
            )
        if not len(self.kernels):
            raise ValueError("kernels is empty; a dictionary needs at least one kernel.")
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
        """Return the dictionary of the paper and of SimpleMKL, 13 (n + 1) kernels for n features.

        Parameters
        ----------
        bandwidths : sequence of float
            Widths of the Gaussian kernels. The default is ten widths from 0.5 to 10 in equal
            ratios.
        degrees : sequence of int
            Degrees of the polynomial kernels ``(x · z + 1)^degree``. The default is 1, 2 and 3.
        each_feature : bool, default=True
            Whether the kernels are also used on each feature alone.
        normalisation : {"trace", "cosine", None}, default="trace"
            Scaling of the kernels: by the mean of the diagonal, by the diagonal of each pair of
            rows, or none. See :class:`KernelDictionary`.
        standardise : bool, default=True
            Whether the kernels see standardised features.

        Returns
        -------
        KernelDictionary
            Dictionary of Gaussian and polynomial kernels.
        """
        gaussians = [Gaussian(bandwidth) for bandwidth in bandwidths]
        polynomials = [Polynomial(degree) for degree in degrees]
        return cls((*gaussians, *polynomials), each_feature, normalisation, standardise)

    @property
    def wants_raw_features(self) -> bool:
        """See :attr:`KernelSet.wants_raw_features`; a dictionary scales features itself."""
        return True

    @property
    def names_features(self) -> bool:
        """See :attr:`KernelSet.names_features`."""
        return self.each_feature or any(
            getattr(kernel, "features", None) is not None for kernel in self.kernels
        )

    def cone(self, n_features: int) -> Cone:
        """See :meth:`KernelSet.cone`; with `each_feature`, all features are assumed to vary."""
        return Nonnegative(self._count(n_features))

    def _count(self, n_features: int) -> int:
        """Return the number of kernels of :meth:`listed`, without making them."""
        if not self.each_feature or n_features < 2:
            return len(self.kernels)
        general = [k for k in self.kernels if getattr(k, "features", None) is None]
        return len(self.kernels) + n_features * len(general)

    def listed(self, n_features: int) -> tuple[SingleKernel, ...]:
        """Return the kernels in the order of their weights, for data whose features all vary.

        Parameters
        ----------
        n_features : int
            Number of features of the data.

        Returns
        -------
        tuple of Gaussian, Polynomial or FunctionKernel
            Kernels of the dictionary.
        """
        return self._listed(n_features, np.arange(n_features))

    def resolve(self, X: ArrayLike, sample_weight: ArrayLike | None = None) -> FittedDictionary:
        """Return the dictionary for the features and the scale of training rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training rows.
        sample_weight : array-like of shape (n_samples,), optional
            Weight of each row. A weight of k is equivalent to k copies of the row.

        Returns
        -------
        FittedDictionary
            Kernels with their normalisation on the training rows.
        """
        rows = as_rows(X)
        weight = np.ones(len(rows)) if sample_weight is None else np.asarray(sample_weight, float)
        varying = np.flatnonzero(np.ptp(rows, axis=0) > 0)
        mean, scale = np.zeros(rows.shape[1]), np.ones(rows.shape[1])
        if self.standardise:
            mean, scale = _mean_and_scale(rows, weight)
        kernels = self._listed(rows.shape[1], varying)
        found = FittedDictionary(kernels, mean, scale, np.ones(len(kernels)), False)
        scaled = found.scaled(rows)
        means, smallest = means_and_minima(kernels, scaled, weight)
        _check_diagonals(kernels, means, smallest)
        _check_functions(kernels, scaled)
        if self.normalisation == "trace":
            return replace(found, factors=1.0 / means)
        return replace(found, cosine=self.normalisation == "cosine")

    def _listed(self, n_features: int, varying: IntArray) -> tuple[SingleKernel, ...]:
        wrapped = [
            kernel if isinstance(kernel, SingleKernel) else FunctionKernel(kernel)
            for kernel in self.kernels
        ]
        for kernel in wrapped:
            if kernel.features is not None and max(kernel.features) >= n_features:
                raise ValueError(
                    f"{kernel!r} looks at feature {max(kernel.features)} and the data has "
                    f"{n_features} features, numbered from 0."
                )
        if self.each_feature and len(varying) > 1:
            general = [kernel for kernel in wrapped if kernel.features is None]
            wrapped += [on_feature(k, f) for f in varying.tolist() for k in general]
        return tuple(wrapped)

    def memory_estimate(self, n_samples: int, n_features: int, itemsize: int) -> int:
        """See :meth:`KernelSet.memory_estimate`; those of the kernels that move together."""
        del itemsize
        return _held_bytes(self.cone(n_features).degree, n_samples, n_features)

    def bind(
        self, X: ArrayLike, *, dtype: DTypeLike = np.float64, n_jobs: int | None = None
    ) -> BoundDictionary:
        """See :meth:`KernelSet.bind`."""
        return self.resolve(X).bind(X, dtype=dtype, n_jobs=n_jobs)

    def cross(self, *_: Any, **__: Any) -> FloatArray:
        """Not available before :meth:`resolve`: the scale of the kernels is not known."""
        raise _unresolved()

    def predictor(self, *_: Any, **__: Any) -> Predictor:
        """Not available before :meth:`resolve`: the scale of the kernels is not known."""
        raise _unresolved()

    def diag(self, *_: Any, **__: Any) -> FloatArray:
        """Not available before :meth:`resolve`: the scale of the kernels is not known."""
        raise _unresolved()


def _unresolved() -> ValueError:
    return ValueError(
        "The scale of a KernelDictionary depends on the training rows: call resolve(X) first and "
        "use what it returns."
    )


def _mean_and_scale(rows: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the weighted mean and standard deviation of each feature, 1 for a constant one.

    If a row of large weight leaves a deviation that is a rounding error, the range takes its place:
    a number that does not depend on the unit of the feature, as 1 would.
    """
    size = np.abs(rows).max(axis=0)
    unit = np.where(size > 0, size, 1.0)  # in units of it, squares neither overflow nor vanish
    relative = rows / unit
    mean = np.average(relative, axis=0, weights=weight)
    deviation = np.sqrt(np.average((relative - mean) ** 2, axis=0, weights=weight))
    spread = np.where(deviation > 1e-13, deviation, np.ptp(relative, axis=0))
    return mean * unit, np.where(spread > 0, spread * unit, 1.0)


def _check_diagonals(
    kernels: Sequence[SingleKernel], means: FloatArray, smallest: FloatArray
) -> None:
    good = np.isfinite(means) & (means > 0) & (smallest >= 0)
    for k in np.flatnonzero(~good)[:1]:
        raise ValueError(
            f"{kernels[k]!r} has a diagonal with mean {float(means[k])} and smallest entry "
            f"{smallest[k]:.3g} on the training rows: a kernel must be finite and positive "
            "semidefinite there, and not zero. Check its scale, or leave it out."
        )


def _check_functions(kernels: Sequence[SingleKernel], scaled: FloatArray) -> None:
    """Raise ValueError for a function that is no kernel on some of the training rows."""
    some = np.unique(np.linspace(0, len(scaled) - 1, _CHECKED_ROWS).round().astype(np.intp))
    for kernel in kernels:
        if not isinstance(kernel, FunctionKernel):
            continue
        K = kernel(scaled[some])
        size = float(np.abs(K).max())
        if float(np.abs(K - K.T).max()) > _ASYMMETRY * size:
            raise ValueError(f"{kernel!r} is not symmetric: k(x, z) and k(z, x) differ.")
        eigenvalues = np.linalg.eigvalsh(0.5 * (K + K.T) / size)
        if eigenvalues[0] < -_INDEFINITENESS * float(np.abs(eigenvalues).sum()):
            raise ValueError(
                f"{kernel!r} is not positive semidefinite: its matrix on {len(some)} training rows "
                f"has the eigenvalue {size * eigenvalues[0]:.3g} next to "
                f"{size * eigenvalues[-1]:.3g}. Certificates need positive semidefinite kernels; "
                "leave it out."
            )


@dataclass
class FittedDictionary(KernelSet):
    """A dictionary with the scale of its training rows, from :meth:`KernelDictionary.resolve`.

    Attributes
    ----------
    kernels : tuple
        Kernels of the dictionary, as functions of scaled features.
    mean : ndarray of shape (n_features,)
        Number that is subtracted from each feature before the kernels are evaluated.
    scale : ndarray of shape (n_features,)
        Number by which each feature is divided after its mean has been subtracted.
    factors : ndarray of shape (n_kernels,)
        Factor by which each kernel is multiplied.
    cosine : bool
        Whether each kernel is divided by the roots of its diagonal.
    """

    kernels: tuple[SingleKernel, ...]
    mean: FloatArray
    scale: FloatArray
    factors: FloatArray
    cosine: bool

    family: ClassVar[str | None] = "fitted dictionary"

    def __post_init__(self) -> None:
        if self.mean.ndim != 1 or self.scale.shape != self.mean.shape:
            raise ValueError("The means and the scales of a dictionary do not fit together.")
        if self.factors.shape != (len(self.kernels),):
            raise ValueError("The factors and the kernels of a dictionary do not fit together.")

    def __len__(self) -> int:
        return len(self.kernels)

    def __deepcopy__(self, memo: dict[int, Any]) -> FittedDictionary:
        # Kernels of the library are immutable and need no copies; functions of a user may change.
        kernels = tuple(
            deepcopy(kernel, memo) if isinstance(kernel, FunctionKernel) else kernel
            for kernel in self.kernels
        )
        arrays = (self.mean.copy(), self.scale.copy(), self.factors.copy())
        return FittedDictionary(kernels, *arrays, self.cosine)

    @property
    def names_features(self) -> bool:
        """See :attr:`KernelSet.names_features`; means and scales belong to single features."""
        return True

    def cone(self, n_features: int) -> Cone:
        """See :meth:`KernelSet.cone`."""
        del n_features
        return Nonnegative(len(self.kernels))

    def memory_estimate(self, n_samples: int, n_features: int, itemsize: int) -> int:
        """See :meth:`KernelSet.memory_estimate`; those of the kernels that move together."""
        del itemsize
        return _held_bytes(self.cone(n_features).degree, n_samples, n_features)

    def bind(
        self, X: ArrayLike, *, dtype: DTypeLike = np.float64, n_jobs: int | None = None
    ) -> BoundDictionary:
        """See :meth:`KernelSet.bind`."""
        from tessella.kernels._bound_dictionary import BoundDictionary

        everything = np.arange(len(self))
        return BoundDictionary(self, self.scaled(as_rows(X)), np.dtype(dtype), n_jobs, everything)

    def bind_machines(
        self,
        X: FloatArray,
        rows: Sequence[IntArray],
        *,
        dtype: DTypeLike = np.float64,
        n_jobs: int | None = None,
        span: Any = None,
    ) -> StackedKernels:
        """See :meth:`KernelSet.bind_machines`; the machines share the memory for matrices."""
        from tessella.kernels._bound_dictionary import BoundDictionary
        from tessella.kernels._stacked import StackedKernels

        del span  # of matrices
        scaled, everything = self.scaled(as_rows(X)), np.arange(len(self))
        settings = np.dtype(dtype), n_jobs, everything
        return StackedKernels(
            [BoundDictionary(self, scaled[own], *settings, sharers=len(rows)) for own in rows]
        )

    def scaled(self, X: FloatArray) -> FloatArray:
        """Return rows with scaled features, as the kernels take them."""
        if X.shape[1] != len(self.mean):
            raise ValueError(f"Expected rows with {len(self.mean)} features, got {X.shape[1]}.")
        rows: FloatArray = np.ascontiguousarray((X - self.mean) / self.scale)
        return rows

    def matrix(self, number: int, X: ArrayLike, Y: ArrayLike | None = None) -> FloatArray:
        """Return the normalised matrix of one kernel between unscaled rows.

        Parameters
        ----------
        number : int
            Index of the kernel in :attr:`kernels`.
        X : array-like of shape (n_samples_X, n_features)
            Unscaled rows.
        Y : array-like of shape (n_samples_Y, n_features), optional
            Other unscaled rows. The default is X.

        Returns
        -------
        ndarray of shape (n_samples_X, n_samples_Y)
            Kernel values.
        """
        left = self.scaled(as_rows(X))
        right = left if Y is None else self.scaled(as_rows(Y))
        (tile,) = (values.copy() for _, values in self.tiles(left, right, [number]))
        return tile

    def tiles(
        self, left: FloatArray, right: FloatArray, which: Sequence[int]
    ) -> Iterator[tuple[int, FloatArray]]:
        """Yield the normalised matrices of some kernels between scaled rows, in one buffer."""
        for number, tile in tiles(self.kernels, left, right, which):
            values = tile
            if self.cosine and not isinstance(self.kernels[number], Gaussian):
                values = tile / np.multiply.outer(
                    self._root(number, left), self._root(number, right)
                )
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

    def scaled_diag(self, weights: FloatArray, rows: FloatArray) -> FloatArray:
        """Return the diagonal of the weighted sum on scaled rows."""
        total = np.zeros(len(rows))
        for numbers, values in diagonals(self.kernels, np.flatnonzero(weights).tolist(), rows):
            shares = weights[numbers] * self.factors[numbers]
            if self.cosine:
                values = values / np.where(values > 0, values, 1.0)
            total += (
                values @ shares if len(numbers) == values.shape[1] else values[:, 0] * shares.sum()
            )
        return total

    def diag(self, X: ArrayLike, P: FloatArray) -> FloatArray:
        """See :meth:`KernelSet.diag`."""
        return self.scaled_diag(self.cone(0).read(P), self.scaled(as_rows(X)))

    def cross(
        self, X: ArrayLike, Y: ArrayLike, P: FloatArray, *, n_jobs: int | None = None
    ) -> FloatArray:
        """See :meth:`KernelSet.cross`."""
        weights = self.cone(0).read(P)
        left, right = self.scaled(as_rows(X)), self.scaled(as_rows(Y))
        K = np.empty((len(left), len(right)))
        in_threads(
            lambda rows: self.combined(weights, left[rows], right, K[rows]),
            strips(*K.shape),
            n_jobs,
        )
        return K

    def predictor(self, P: FloatArray, Y: ArrayLike, coefficients: FloatArray) -> Predictor:
        """See :meth:`KernelSet.predictor`."""
        return DictionaryPredictor(self, self.cone(0).read(P), as_rows(Y), coefficients)


class DictionaryPredictor(Predictor):
    """Predictions of a weighted sum of kernels, with support vectors that are scaled once."""

    def __init__(
        self, kernels: FittedDictionary, weights: FloatArray, Y: FloatArray, w: FloatArray
    ) -> None:
        self._kernels, self._weights, self._coefficients = kernels, weights, w
        self._support = kernels.scaled(Y)
        self.products_per_row = self._support.size + w.size

    def scores(self, X: ArrayLike, *, n_jobs: int | None = None) -> FloatArray:
        """See :meth:`Predictor.scores`."""
        rows, support = self._kernels.scaled(as_rows(X)), self._support

        def strip(own: slice) -> FloatArray:
            tile = np.empty((own.stop - own.start, len(support)))
            self._kernels.combined(self._weights, rows[own], support, tile)
            product: FloatArray = tile @ self._coefficients
            return product

        parts = in_threads(strip, strips(len(rows), len(support)), n_jobs)
        return np.concatenate(parts) if parts else np.zeros((0, self._coefficients.shape[1]))


def _held_bytes(n_kernels: int, n_samples: int, n_features: int) -> int:
    """Return the bytes of the scaled rows and of the matrices that a Newton iteration keeps."""
    stacked = 8 * min(n_kernels, MOST_STACKED) * n_samples**2
    return 8 * n_samples * n_features + min(stacked, MOST_STACKED_BYTES)


def strips(n_rows: int, n_columns: int) -> list[slice]:
    """Return slices of rows whose tiles fit the cache."""
    height = max(1, _TILE_ENTRIES // max(1, n_columns))
    return [slice(k, min(k + height, n_rows)) for k in range(0, n_rows, height)]


def mirror(K: NDArray[Any], n_jobs: int | None) -> None:
    """Copy the entries right of the diagonal to those left of it, so that K is exactly symmetric.

    This is done by rows: a column touches all of a large new matrix.
    """

    def rows(own: slice) -> None:
        for start in range(0, own.start, _MIRRORED):
            left = slice(start, min(start + _MIRRORED, own.start))
            K[own, left] = K[left, own].T
        upper = np.triu(K[own, own])
        K[own, own] = upper + np.triu(upper, 1).T

    pieces = [slice(k, min(k + _MIRRORED, len(K))) for k in range(0, len(K), _MIRRORED)]
    in_threads(rows, pieces, n_jobs)
