"""The single kernels that a dictionary is made of, and their evaluation tile by tile."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from tessella.backend import check_deadline

FloatArray = NDArray[np.float64]

_LARGEST = 1e100  # number by which kernels multiply or divide
# Largest |a|² for which the digits that cancel in |a|² + |b|² - 2 a·b are not missed, even if a
# bandwidth is much smaller than one.
_LARGEST_SQUARE = 1e4


@dataclass(frozen=True)
class Gaussian:
    """The kernel ``exp(-|x - z|² / (2 bandwidth²))``.

    Parameters
    ----------
    bandwidth : float
        Width of the kernel, in units of the features. A :class:`KernelDictionary` standardises the
        features by default.
    features : tuple of int, optional
        Columns that the kernel uses. The default is all columns.

    Examples
    --------
    >>> from tessella.kernels import Gaussian
    >>> Gaussian(2.0)([[0.0]], [[0.0], [2.0]]).round(4).tolist()
    [[1.0, 0.6065]]
    """

    bandwidth: float
    features: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        require_number("bandwidth", self.bandwidth, above_zero=True)
        object.__setattr__(self, "features", checked_features(self.features))

    def __call__(self, X: Any, Y: Any = None) -> FloatArray:
        """Kernel matrix between the rows of X and those of Y, or of X with itself."""
        return evaluate(self, X, Y)

    def diag(self, X: FloatArray) -> FloatArray:
        """``k(x, x)`` of each row."""
        return np.ones(len(X))


@dataclass(frozen=True)
class Polynomial:
    """The kernel ``(x · z + offset)^degree``.

    Parameters
    ----------
    degree : int
        Degree of the polynomial, at least 1.
    offset : float, default=1.0
        Nonnegative constant that is added to the inner product.
    features : tuple of int, optional
        Columns that the kernel uses. The default is all columns.

    Examples
    --------
    >>> from tessella.kernels import Polynomial
    >>> Polynomial(2)([[1.0, 2.0]], [[1.0, 0.5]]).tolist()
    [[9.0]]
    """

    degree: int
    offset: float = 1.0
    features: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        degree: Any = self.degree
        if isinstance(degree, bool) or not isinstance(degree, Integral) or degree < 1:
            raise ValueError(f"degree={degree!r} must be a whole number >= 1.")
        require_number("offset", self.offset, above_zero=False)
        object.__setattr__(self, "features", checked_features(self.features))

    def __call__(self, X: Any, Y: Any = None) -> FloatArray:
        """Kernel matrix between the rows of X and those of Y, or of X with itself."""
        return evaluate(self, X, Y)

    def diag(self, X: FloatArray) -> FloatArray:
        """``k(x, x)`` of each row."""
        own = X if self.features is None else X[:, self.features]
        values: FloatArray = (np.einsum("ij,ij->i", own, own) + self.offset) ** self.degree
        return values


@dataclass(frozen=True)
class FunctionKernel:
    """A kernel given by a function of two arrays of rows, on all or some of their columns.

    Parameters
    ----------
    function : callable
        ``function(X, Y)`` returns the kernel matrix between two arrays of rows. A kernel of
        scikit-learn's Gaussian processes is such a function.
    features : tuple of int, optional
        Columns that are passed to the function. The default is all columns.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import Matern
    >>> from tessella.kernels import FunctionKernel
    >>> kernel = FunctionKernel(Matern(length_scale=2.0), features=(1,))
    >>> kernel([[5.0, 1.0]], [[7.0, 1.0]]).tolist()
    [[1.0]]
    """

    function: Callable[..., Any]
    features: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "features", checked_features(self.features))

    def __call__(self, X: Any, Y: Any = None) -> FloatArray:
        """Kernel matrix between the rows of X and those of Y, or of X with itself."""
        left = self._columns(np.asarray(X, dtype=np.float64))
        right = left if Y is None else self._columns(np.asarray(Y, dtype=np.float64))
        if not len(left) or not len(right):  # which many functions refuse
            return np.zeros((len(left), len(right)))
        given = self.function(left, right)
        if np.iscomplexobj(given):
            raise ValueError(f"The kernel {self.function!r} gave complex numbers.")
        values = np.array(given, dtype=np.float64)  # a copy, to be scaled
        if values.shape != (len(left), len(right)):
            raise ValueError(
                f"The kernel {self.function!r} gave an array of shape {values.shape} for "
                f"{len(left)} and {len(right)} rows, expected ({len(left)}, {len(right)})."
            )
        # A sum over all entries shows whether one of them is not finite, or it overflows itself.
        if not np.isfinite(values.sum()) and not np.isfinite(values).all():
            raise ValueError(
                f"The kernel {self.function!r} gave a NaN or an infinity for some pair of rows. A "
                "kernel must be finite for all pairs."
            )
        return values

    def _columns(self, X: FloatArray) -> FloatArray:
        return X if self.features is None else np.ascontiguousarray(X[:, self.features])

    def diag(self, X: FloatArray) -> FloatArray:
        """``k(x, x)`` of each row."""
        if hasattr(self.function, "diag"):
            return np.asarray(self.function.diag(self._columns(X)), dtype=np.float64)
        step = 64
        parts = [self(X[k : k + step]).diagonal() for k in range(0, len(X), step)]
        return np.concatenate(parts) if parts else np.zeros(0)


SingleKernel = Gaussian | Polynomial | FunctionKernel


def on_feature(kernel: SingleKernel, feature: int) -> SingleKernel:
    """Return the kernel on one feature; its parameters, which are valid, are not checked again."""
    own: SingleKernel = object.__new__(type(kernel))
    vars(own).update(vars(kernel), features=(feature,))
    return own


def evaluate(kernel: SingleKernel, X: Any, Y: Any = None) -> FloatArray:
    """Return the matrix of one kernel."""
    left = np.asarray(X, dtype=np.float64)
    right = left if Y is None else np.asarray(Y, dtype=np.float64)
    (tile,) = (values.copy() for _, values in tiles([kernel], left, right, [0]))
    return tile


def tiles(
    kernels: Sequence[SingleKernel], left: FloatArray, right: FloatArray, which: Sequence[int]
) -> Iterator[tuple[int, FloatArray]]:
    """Yield the matrices of the kernels `which` between few rows, in one buffer.

    Kernels on the same features follow one another and share their products and distances. A
    matrix is overwritten when the next one is requested.
    """
    groups: dict[tuple[int, ...] | None, list[int]] = {}
    for number in which:
        groups.setdefault(kernels[number].features, []).append(number)
    buffer = np.empty((len(left), len(right)))
    for features, members in groups.items():
        check_deadline()
        shared = _Shared(left, right, features)
        for number in members:
            kernel = kernels[number]
            if isinstance(kernel, Gaussian):
                np.multiply(shared.squares, -0.5 / float(kernel.bandwidth) ** 2, out=buffer)
                yield number, np.exp(buffer, out=buffer)
            elif isinstance(kernel, Polynomial):
                yield number, _power(shared.products, kernel, buffer)
            else:
                yield number, kernel(left, right)


class _Shared:
    """Inner products and squared distances on some features, computed when needed."""

    def __init__(
        self, left: FloatArray, right: FloatArray, features: tuple[int, ...] | None
    ) -> None:
        self._left = left if features is None else left[:, features]
        # If both sets of rows are one array, BLAS computes exactly symmetric products.
        others = right if features is None else right[:, features]
        self._right = self._left if right is left else others
        self._products: FloatArray | None = None
        self._squares: FloatArray | None = None

    @property
    def products(self) -> FloatArray:
        if self._products is None:
            self._products = self._left @ self._right.T
        return self._products

    @property
    def squares(self) -> FloatArray:
        if self._squares is None:
            self._squares = self._distances()
        return self._squares

    def _distances(self) -> FloatArray:
        if self._left.shape[1] == 1:
            squares: FloatArray = np.square(self._left - self._right.T)
            return squares
        norms = [np.einsum("ij,ij->i", side, side) for side in (self._left, self._right)]
        if max(side.max(initial=0.0) for side in norms) > _LARGEST_SQUARE:
            return np.asarray(cdist(self._left, self._right, "sqeuclidean"))
        # The norms are added first, so that the result is as symmetric as the products.
        squares = np.add.outer(*norms)
        squares -= 2.0 * self.products
        return np.maximum(squares, 0.0, out=squares)  # negative values are rounding


def _power(products: FloatArray, kernel: Polynomial, out: FloatArray) -> FloatArray:
    """Write ``(products + offset)^degree`` by multiplications, because np.power is much slower."""
    base = products + kernel.offset
    np.copyto(out, base)
    for _ in range(int(kernel.degree) - 1):
        out *= base
    return out


def checked_features(features: Any) -> tuple[int, ...] | None:
    """Return column numbers as a tuple of int, or None."""
    if features is None:
        return None
    numbers: list[Any] = [features] if isinstance(features, Integral) else list(features)
    if not numbers or not all(isinstance(n, Integral) and int(n) >= 0 for n in numbers):
        raise ValueError(f"features={features!r} must be column numbers >= 0, at least one.")
    return tuple(int(n) for n in numbers)


def require_number(name: str, value: Any, *, above_zero: bool) -> None:
    """Raise ValueError unless a parameter of a kernel is a number whose square is one, too."""
    number = isinstance(value, Real) and not isinstance(value, bool)
    if not number or not 0 <= value <= _LARGEST or (above_zero and value < 1.0 / _LARGEST):
        least = f"a positive finite number from {1.0 / _LARGEST:g}" if above_zero else "from 0"
        shown = repr(value) if not isinstance(value, int) or abs(value) < _LARGEST else "10**100..."
        raise ValueError(f"{name}={shown} must be {least} to {_LARGEST:g}.")
