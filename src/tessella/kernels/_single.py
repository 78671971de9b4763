"""Kernel sets of a single kernel: Gaussian, Matérn and Laplace kernels of given width."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from tessella.backend import ProductForm
from tessella.backend._lazy import cached_property
from tessella.cones import Nonnegative
from tessella.kernels._base import (
    BoundKernelSet,
    FloatArray,
    KernelSet,
    Moments,
    as_dual_vector,
    as_rows,
)
from tessella.kernels._bound_dictionary import WeightSensitivities, centre
from tessella.kernels._distances import DistanceSide, GaussianSide, LaplaceSide, MaternSide
from tessella.kernels._functions import require_number
from tessella.kernels._predictor import Predictor

IntArray = NDArray[np.intp]

_INVERSE_VARIANCE = 12.0  # of a uniform distribution on [0, 1]


@dataclass
class SingleKernelSet(KernelSet):
    """Base class of the sets of one kernel, whose parameter is one weight, equal to one.

    Nothing is learned but the machine. As parts of a sum, such sets get a share that is learned.

    Parameters
    ----------
    width : float, default=0.5
        Length scale of the kernel.
    """

    width: float = 0.5

    def __post_init__(self) -> None:
        self._checked_width()

    def _checked_width(self) -> float:
        require_number("width", self.width, above_zero=True)
        return float(self.width)

    @property
    def outside_rule(self) -> str:
        """See :attr:`KernelSet.outside_rule`."""
        return "the kernel fades, so predictions approach the intercept"

    @abstractmethod
    def side(self, X: FloatArray) -> DistanceSide:
        """Return rows in coordinates of the kernel, prepared for evaluations."""

    @abstractmethod
    def coordinates(self, X: FloatArray) -> FloatArray:
        """Return rows in coordinates in which the kernel has no parameter."""

    def cone(self, n_features: int) -> Nonnegative:
        """See :meth:`KernelSet.cone`; one weight."""
        del n_features
        return Nonnegative(1)

    def memory_estimate(self, n_samples: int, n_features: int, itemsize: int) -> int:
        """See :meth:`KernelSet.memory_estimate`."""
        del itemsize  # nothing of size m² is held
        return 8 * n_samples * (3 * n_features + 3)

    def bind(
        self, X: ArrayLike, *, dtype: DTypeLike = np.float64, n_jobs: int | None = None
    ) -> BoundSingleKernel:
        """See :meth:`KernelSet.bind`."""
        return BoundSingleKernel(self, as_rows(X), np.dtype(dtype), n_jobs)

    def cross(
        self, X: ArrayLike, Y: ArrayLike, P: FloatArray, *, n_jobs: int | None = None
    ) -> FloatArray:
        """See :meth:`KernelSet.cross`."""
        left, right = as_rows(X), as_rows(Y)
        if left.shape[1] != right.shape[1]:
            raise ValueError(f"X has {left.shape[1]} features and Y has {right.shape[1]}.")
        K = np.empty((len(left), len(right)))
        self.side(right).matrix(self.coordinates(left), K, n_jobs)
        return _times(K, _weight(self.cone(0).read(P)))

    def predictor(self, P: FloatArray, Y: ArrayLike, coefficients: FloatArray) -> Predictor:
        """See :meth:`KernelSet.predictor`."""
        weight = _weight(self.cone(0).read(P))
        return SingleKernelPredictor(self, as_rows(Y), weight * coefficients)

    def diag(self, X: ArrayLike, P: FloatArray) -> FloatArray:
        """See :meth:`KernelSet.diag`."""
        return np.full(len(as_rows(X)), _weight(self.cone(0).read(P)))


@dataclass
class GaussianKernels(SingleKernelSet):
    """The Gaussian kernel ``exp(-12 |x - y|² / (2 n width²))`` of n features.

    A feature that is uniform on [0, 1] has the variance 1/12, so ``12 |x - y|² / n`` is the mean
    over the features of the squared difference in standard deviations, and `width` is a length in
    standard deviations. A good value depends little on the number of features.

    Parameters
    ----------
    width : float, default=0.5
        Length scale of the kernel.

    Notes
    -----
    The kernel is the only one of its set, so there is nothing to learn but the machine: the solver
    "auto" solves one support vector machine. A kernel matrix is one product of matrices and an
    exponential for each entry.

    Examples
    --------
    >>> from tessella.kernels import GaussianKernels
    >>> kernels = GaussianKernels(width=1.0)
    >>> kernels.cross([[0.0, 0.0]], [[0.0, 0.0], [0.5, 0.5]], [1.0]).round(4).tolist()
    [[1.0, 0.2231]]
    """

    family: ClassVar[str | None] = "gaussian"

    def coordinates(self, X: FloatArray) -> FloatArray:
        """See :meth:`SingleKernelSet.coordinates`."""
        return _standardised(X, self._checked_width())

    def side(self, X: FloatArray) -> GaussianSide:
        """See :meth:`SingleKernelSet.side`."""
        return GaussianSide(self.coordinates(X))


@dataclass
class MaternKernels(SingleKernelSet):
    """The Matérn kernel of n features, between the Gaussian and the Laplace kernel in smoothness.

    With ``r² = 2 nu · 12 |x - y|² / (n width²)``, the kernel is ``(1 + r) exp(-r)`` for nu = 3/2
    and ``(1 + r + r²/3) exp(-r)`` for nu = 5/2. The functions that it learns have one or two
    derivatives. As for :class:`GaussianKernels`, `width` is a length in standard deviations of a
    feature that is uniform on [0, 1].

    Parameters
    ----------
    width : float, default=0.5
        Length scale of the kernel.
    nu : {1.5, 2.5}, default=1.5
        Smoothness.

    Examples
    --------
    >>> from tessella.kernels import MaternKernels
    >>> kernels = MaternKernels(width=1.0)
    >>> kernels.cross([[0.0, 0.0]], [[0.0, 0.0], [0.5, 0.5]], [1.0]).round(4).tolist()
    [[1.0, 0.1991]]
    """

    nu: float = 1.5

    family: ClassVar[str | None] = "matern"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._checked_nu()

    def _checked_nu(self) -> float:
        if self.nu not in (1.5, 2.5):
            raise ValueError(f"nu={self.nu!r} must be 1.5 or 2.5.")
        return float(self.nu)

    def coordinates(self, X: FloatArray) -> FloatArray:
        """See :meth:`SingleKernelSet.coordinates`."""
        return _standardised(X, self._checked_width())

    def side(self, X: FloatArray) -> MaternSide:
        """See :meth:`SingleKernelSet.side`."""
        return MaternSide(self.coordinates(X), self._checked_nu())


@dataclass
class LaplaceKernels(SingleKernelSet):
    """The Laplace kernel ``exp(-√12 Σ_j |x_j - y_j| / (n width))`` of n features.

    A feature that is uniform on [0, 1] has the variance 1/12, so ``√12 Σ_j |x_j - y_j| / n`` is
    the mean over the features of the difference in standard deviations, and `width` is a length in
    standard deviations. A good value depends little on the number of features.

    Parameters
    ----------
    width : float, default=0.5
        Length scale of the kernel.

    Notes
    -----
    The kernel is the only one of its set, so there is nothing to learn but the machine: the solver
    "auto" solves one support vector machine.

    The kernel is a max-product, like the tessellated part of a tessellated kernel, and needs no
    exponential for a pair of rows. The tessellated kernel of degree 0 with pointwise balance and P
    on its first block is a Laplace kernel of the coordinates ``½ log(1 + delta - x)``. See
    :func:`laplace_gram` for coordinates that are scaled already.

    Examples
    --------
    >>> from tessella.kernels import LaplaceKernels
    >>> kernels = LaplaceKernels(width=1.0)
    >>> kernels.cross([[0.0, 0.0]], [[0.0, 0.0], [0.5, 0.5]], [1.0]).round(4).tolist()
    [[1.0, 0.1769]]
    """

    family: ClassVar[str | None] = "laplace"

    @property
    def by_rows(self) -> bool:
        """See :attr:`KernelSet.by_rows`; always True."""
        return True

    def coordinates(self, X: FloatArray) -> FloatArray:
        """See :meth:`SingleKernelSet.coordinates`."""
        scale = np.sqrt(_INVERSE_VARIANCE) / (X.shape[1] * self._checked_width())
        with np.errstate(over="ignore"):  # the kernel of rows infinitely far away is zero
            rows: FloatArray = scale * X
        return rows

    def side(self, X: FloatArray) -> LaplaceSide:
        """See :meth:`SingleKernelSet.side`."""
        return LaplaceSide(self.coordinates(X))


def _standardised(X: FloatArray, width: float) -> FloatArray:
    """Return rows whose squared distances are means over features of squared differences."""
    scale = np.sqrt(_INVERSE_VARIANCE / X.shape[1]) / width
    with np.errstate(over="ignore"):  # the kernel of rows infinitely far away is zero
        rows: FloatArray = scale * (X - 0.5)  # centred, so that products cancel fewer digits
    return rows


def _weight(P: FloatArray) -> float:
    """Return the weight of the kernel, which is zero in a face without it."""
    return float(P.sum())


def _times(K: NDArray[Any], weight: float) -> NDArray[Any]:
    """Multiply a kernel matrix by its weight in place, which is nearly always one."""
    if weight != 1.0:
        K *= weight
    return K


class SingleKernelPredictor(Predictor):
    """Predictions of a single kernel, with support vectors that are prepared once."""

    def __init__(self, kernels: SingleKernelSet, Y: FloatArray, coefficients: FloatArray) -> None:
        self._kernels, self._coefficients = kernels, coefficients
        self._side = kernels.side(Y)
        self.products_per_row = Y.size + coefficients.size

    def scores(self, X: ArrayLike, *, n_jobs: int | None = None) -> FloatArray:
        """See :meth:`Predictor.scores`."""
        left = self._kernels.coordinates(as_rows(X))
        return self._side.product(left, self._coefficients, n_jobs)


class BoundSingleKernel(BoundKernelSet):
    """A :class:`SingleKernelSet` on training rows.

    Parameters
    ----------
    kernels : SingleKernelSet
        The kernel.
    X : ndarray of shape (m, n)
        Training rows.
    dtype : dtype
        Data type of kernel matrices.
    n_jobs : int or None
        Number of threads. None uses all cores that the process may use.
    count : int
        Number of weights, which is zero in a face without the kernel.
    """

    kernels: SingleKernelSet
    cone: Nonnegative

    def __init__(
        self,
        kernels: SingleKernelSet,
        X: FloatArray,
        dtype: np.dtype[Any],
        n_jobs: int | None,
        count: int = 1,
    ) -> None:
        self.kernels = kernels
        self.dtype = dtype
        self.n_samples = len(X)
        self.cone = Nonnegative(count)
        self._X, self._n_jobs = X, n_jobs
        self._side = kernels.side(X)

    def factor_gram(
        self, factors: FloatArray, centred: bool, out: NDArray[Any] | None
    ) -> NDArray[Any]:
        """See :meth:`BoundKernelSet.factor_gram`."""
        K = np.empty((self.n_samples, self.n_samples), self.dtype) if out is None else out
        self._side.gram(K, self._n_jobs)
        K = _times(K, _weight(factors))
        return centre(K) if centred else K

    def product_form(self, factors: FloatArray, *, centred: bool = False) -> ProductForm | None:
        """See :meth:`BoundKernelSet.product_form`; for the Laplace kernel."""
        side = self._side
        if not isinstance(side, LaplaceSide) or side.room is None:
            return None
        weight = _weight(factors)
        high = (np.sqrt(weight) * side.factor)[:, None]
        if not centred:
            none = np.empty((self.n_samples, 0))
            return ProductForm(side.room, high, none, none)
        means = weight * self._row_means
        shift = (0.5 * means.mean() - means)[:, None]
        return ProductForm(side.room, high, shift, np.ones_like(shift))

    @cached_property
    def _row_means(self) -> FloatArray:
        return self.product(np.full(self.n_samples, 1.0 / self.n_samples))

    def product(self, w: FloatArray) -> FloatArray:
        """Return the kernel matrix times a vector, whatever the weight of the kernel."""
        return self._side.product(self._side.rows, w[:, None], self._n_jobs)[:, 0]

    def moments(self, w: ArrayLike) -> SingleKernelMoments:
        """See :meth:`BoundKernelSet.moments`."""
        dual = as_dual_vector(w, self.n_samples)
        return SingleKernelMoments(self.cone.count, dual, self.product(dual))

    def restrict(self, rows: IntArray, face: IntArray | None = None) -> BoundSingleKernel:
        """See :meth:`BoundKernelSet.restrict`."""
        return self._on_rows(rows, np.dtype(np.float64), face)

    def subset(self, rows: IntArray) -> BoundSingleKernel:
        """See :meth:`BoundKernelSet.subset`."""
        return self._on_rows(rows, self.dtype, None)

    def _on_rows(
        self, rows: IntArray, dtype: np.dtype[Any], face: IntArray | None
    ) -> BoundSingleKernel:
        count = self.cone.count if face is None else len(face)
        return BoundSingleKernel(self.kernels, self._X[rows], dtype, self._n_jobs, count)

    def diag(self, P: FloatArray) -> FloatArray:
        """See :meth:`BoundKernelSet.diag`."""
        return np.full(self.n_samples, _weight(self.cone.read(P)))

    def cross(self, X_new: FloatArray, P: FloatArray) -> FloatArray:
        """See :meth:`BoundKernelSet.cross`."""
        K = np.empty((len(X_new), self.n_samples))
        self._side.matrix(self.kernels.coordinates(as_rows(X_new)), K, self._n_jobs)
        return _times(K, _weight(self.cone.read(P)))


class SingleKernelMoments(Moments):
    """Moments of a dual vector for a single kernel.

    Parameters
    ----------
    count : int
        Number of weights, one or zero.
    w : ndarray of shape (m,)
        Dual vector.
    products : ndarray of shape (m,)
        Kernel matrix times the dual vector.
    """

    def __init__(self, count: int, w: FloatArray, products: FloatArray) -> None:
        self._count, self._w, self._products = count, w, products

    @cached_property
    def gradient(self) -> FloatArray:
        """The quadratic form of the kernel."""
        # A negative value of a positive semidefinite quadratic form is rounding.
        return np.full(self._count, max(0.0, float(self._w @ self._products)))

    def face_gradient(self, face: IntArray | None) -> FloatArray:
        """See :meth:`Moments.face_gradient`."""
        return self.gradient if face is None else self.gradient[face]

    def scores(self, P: FloatArray) -> FloatArray:
        """See :meth:`Moments.scores`."""
        return _weight(P) * self._products

    def factor_scores(self, factors: FloatArray) -> FloatArray:
        """See :meth:`Moments.factor_scores`."""
        return self.scores(factors)

    def sensitivities(self, face: IntArray | None, rows: IntArray) -> WeightSensitivities:
        """See :meth:`Moments.sensitivities`."""
        count = self._count if face is None else len(face)
        return WeightSensitivities(np.repeat(self._products[rows, None], count, axis=1))
