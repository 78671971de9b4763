"""Learned kernels: functions of raw features that an estimator has learned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tessella.cones import Blocks, Point, ProductCone, is_factor
from tessella.kernels._base import FloatArray, KernelSet, as_rows
from tessella.kernels._predictor import Predictor
from tessella.kernels._scaling import UnitBox


@dataclass(frozen=True, eq=False, repr=False)
class LearnedKernel:
    """A learned kernel on raw features: ``k(X, Y)`` is its matrix.

    The kernel includes the scaling to the unit cube, so it is applied to data in the units of the
    training data. It can be pickled if its kernel set can. Two learned kernels are equal if they
    have the same kernel set, the same P and the same scaling.

    Attributes
    ----------
    kernels : KernelSet
        Family that the kernel was chosen from.
    parameter : ndarray or Blocks
        Parameter of the kernel within its family: a positive semidefinite matrix P, the weights of
        a dictionary, or the blocks of a sum of kernel sets. If P has far more rows than there were
        training rows, it is a factor U of P = U Uᵀ, which has fewer columns than rows.
    box : UnitBox
        Scaling of raw features to the unit cube.

    See Also
    --------
    tessella.gaussian_process.LearnedGPKernel : The same kernel for scikit-learn's Gaussian
        processes, and the fast way to use it in ``KernelRidge`` and ``KernelPCA``.
    tessella.KernelFeatures : Explicit features of a learned kernel, for linear models.

    Notes
    -----
    scikit-learn calls a kernel function in two ways. ``SVC`` and ``SVR`` ask for a whole matrix.
    ``KernelRidge``, ``KernelPCA`` and ``Nystroem`` call it once for every pair of rows and expect
    a number. Both work, but the second way needs a Python call for each entry. It is faster to
    give these estimators a :class:`~tessella.gaussian_process.LearnedGPKernel`, which they ask
    for whole matrices, or ``kernel="precomputed"`` and the matrix.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from sklearn.svm import SVC
    >>> from tessella import LearnedKernelSVC
    >>> X, y = make_moons(120, noise=0.2, random_state=0)
    >>> kernel = LearnedKernelSVC().fit(X, y).kernel_
    >>> kernel
    LearnedKernel(TessellatedKernels, n_features=2, n_params=6)
    >>> kernel(X, X[:5]).shape
    (120, 5)
    >>> bool(kernel(X[0], X[1]) == kernel(X[:1], X[1:2])[0, 0])
    True
    >>> SVC(kernel=kernel).fit(X, y).score(X, y) > 0.9
    True
    """

    kernels: KernelSet
    parameter: Point
    box: UnitBox

    @property
    def P(self) -> FloatArray:  # noqa: N802 - the name of the mathematics
        """Positive semidefinite matrix of the kernel, if its parameter is one matrix.

        It is computed each time if the parameter is a factor of the matrix.
        """
        if not (isinstance(self.parameter, np.ndarray) and self.parameter.ndim == 2):
            raise AttributeError(
                f"The parameter of this kernel, from {type(self.kernels).__name__}, is not one "
                "matrix P; use its attribute parameter."
            )
        given: FloatArray = self.parameter
        return given @ given.T if is_factor(given) else given

    @property
    def shares(self) -> FloatArray:
        """Share of each part of a sum of kernel sets; the shares add up to one."""
        cone = self.kernels.cone(len(self.box.kept))
        if not isinstance(cone, ProductCone):
            return np.ones(1)
        parts = zip(cone.cones, self.parameter, strict=True)
        return np.array([part.trace(block) for part, block in parts])

    def __call__(
        self, X: ArrayLike, Y: ArrayLike | None = None, *, n_jobs: int | None = None
    ) -> FloatArray:
        """Compute the kernel matrix, or the kernel of two single rows.

        Parameters
        ----------
        X : array-like of shape (m, n_features) or (n_features,)
            Rows or a single row, in the units of the training data.
        Y : array-like of shape (l, n_features) or (n_features,), optional
            Other rows or another row. X by default.
        n_jobs : int, optional
            Number of threads. None uses all cores that the process may use.

        Returns
        -------
        ndarray of shape (m, l), or float for single rows
            Kernel values. The matrix is exactly symmetric if Y is left out or is X.
        """
        if np.ndim(X) == 1:
            return self._of_two_rows(X, X if Y is None else Y)
        if Y is None or Y is X:
            return self.kernels.bind_resolved(self._scale(X), n_jobs=n_jobs).gram(self.parameter)
        return self.kernels.cross(self._scale(X), self._scale(Y), self.parameter, n_jobs=n_jobs)

    def diag(self, X: ArrayLike) -> FloatArray:
        """Compute ``k(x, x)`` for each row of X, without the kernel matrix.

        Parameters
        ----------
        X : array-like of shape (m, n_features)
            Rows in the units of the training data.

        Returns
        -------
        ndarray of shape (m,)
            Diagonal of the kernel matrix of X.
        """
        return self.kernels.diag(self._scale(X), self.parameter)

    def scores(
        self, X: ArrayLike, Y: ArrayLike, w: FloatArray, *, n_jobs: int | None = None
    ) -> FloatArray:
        """Compute ``self(X, Y) @ w`` without the whole kernel matrix.

        Parameters
        ----------
        X : array-like of shape (m, n_features)
            Rows of the kernel matrix, in the units of the training data.
        Y : array-like of shape (l, n_features)
            Columns of the kernel matrix, in the units of the training data.
        w : ndarray of shape (l,) or (l, k)
            Vector of coefficients, or several vectors as columns.
        n_jobs : int, optional
            Number of threads. None uses all cores that the process may use.

        Returns
        -------
        ndarray of shape (m,) or (m, k)
            Products of the kernel matrix with the vectors.
        """
        columns = w if w.ndim == 2 else w[:, None]
        result = self.predictor(Y, columns).scores(X, n_jobs=n_jobs)
        return result if w.ndim == 2 else result[:, 0]

    def predictor(self, Y: ArrayLike, coefficients: FloatArray) -> KernelPredictor:
        """Prepare predictions with fixed support vectors.

        Parameters
        ----------
        Y : array-like of shape (l, n_features)
            Support vectors in the units of the training data.
        coefficients : ndarray of shape (l, k)
            Coefficients of the support vectors, one column for each machine.

        Returns
        -------
        KernelPredictor
            An object whose ``scores(X)`` is ``self(X, Y) @ coefficients``. It pays for the
            support vectors once, however often it is used.
        """
        prepared = self.kernels.predictor(self.parameter, self._scale(Y), coefficients)
        return KernelPredictor(self.box, prepared)

    @property
    def n_features_in(self) -> int:
        """Number of features of the rows that the kernel takes."""
        return self.box.n_features_in

    def _of_two_rows(self, x: ArrayLike, y: ArrayLike) -> FloatArray:
        if np.ndim(y) != 1:
            raise ValueError(
                "Give two matrices of rows, or two single rows; got a row and an array of shape "
                f"{np.shape(y)}."
            )
        x_row, y_row = np.atleast_2d(x), np.atleast_2d(y)
        # One thread, because waking others takes longer than computing a single value.
        value: FloatArray = self(x_row, y_row, n_jobs=1)[0, 0]
        return value

    def _scale(self, X: ArrayLike) -> FloatArray:
        return self.box.apply(as_rows(X))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LearnedKernel):
            return NotImplemented
        return (
            _same(self.kernels, other.kernels)
            and _same(self.parameter, other.parameter)
            and self.box == other.box
        )

    def __hash__(self) -> int:
        return hash((type(self.kernels), _bytes(self.parameter), self.box))

    def __repr__(self) -> str:
        family = type(self.kernels).__name__
        degree = self.kernels.cone(len(self.box.kept)).degree
        return f"LearnedKernel({family}, n_features={self.n_features_in}, n_params={degree})"


@dataclass(frozen=True, eq=False)
class KernelPredictor:
    """Predictions of a learned kernel with fixed support vectors, on raw features.

    Attributes
    ----------
    box : UnitBox
        Scaling of the features.
    prepared : Predictor
        Predictions on scaled features.
    """

    box: UnitBox
    prepared: Predictor

    @property
    def products_per_row(self) -> int:
        """Multiplications per row of X in the largest matrix product that is left to BLAS."""
        return self.prepared.products_per_row

    def scores(self, X: ArrayLike, *, n_jobs: int | None = None) -> FloatArray:
        """Compute the kernel between X and the support vectors, times the coefficients.

        Parameters
        ----------
        X : array-like of shape (m, n_features)
            Rows in the units of the training data.
        n_jobs : int, optional
            Number of threads. None uses all cores that the process may use.

        Returns
        -------
        ndarray of shape (m, k)
            One column for each column of coefficients.
        """
        return self.prepared.scores(self.box.apply(as_rows(X)), n_jobs=n_jobs)


def _bytes(parameter: Point) -> bytes:
    """Return the entries of all blocks, which may have blocks themselves."""
    if isinstance(parameter, Blocks):
        return b"".join(map(_bytes, parameter))
    content: bytes = parameter.tobytes()
    return content


def _same(a: Any, b: Any) -> bool:
    """Return whether two values are equal, where arrays and containers are compared as a whole."""
    if isinstance(a, KernelSet) and isinstance(b, KernelSet):
        return type(a) is type(b) and _same(a.get_params(deep=False), b.get_params(deep=False))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_same(a[key], b[key]) for key in a)
    if isinstance(a, tuple | list) and isinstance(b, tuple | list):
        return len(a) == len(b) and all(map(_same, a, b))
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return np.array_equal(a, b)
    return bool(a == b)
