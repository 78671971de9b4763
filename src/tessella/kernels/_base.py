"""What every kernel set offers: the contract between the mathematics and the solvers.

A kernel set is a family k(x, y) = ∫ N(z, x)ᵀ P N(z, y) dz, linear in a positive semidefinite
matrix P of side ``n_params``. Solvers see it only through a :class:`BoundKernelSet`: the set on a
fixed training sample, where it becomes the linear map P ↦ K(P) and its adjoint w ↦ D(w).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import fields
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from tessella.backend import ProductForm
from tessella.kernels._predictor import MatrixPredictor, Predictor
from tessella.kernels._sensitivity import Sensitivities

FloatArray = NDArray[np.float64]


class Moments(ABC):
    """What a dual vector w needs to know of all kernels of the set at once.

    Computed once for a w, always in float64; the gradient and the scores for any P then cost
    little, which is how one product serves both halves of the certificate.
    """

    @property
    @abstractmethod
    def gradient(self) -> FloatArray:
        """D(w) of shape (n_params, n_params), with ``<D(w), P> = w @ K(P) @ w``."""

    @abstractmethod
    def scores(self, P: FloatArray) -> FloatArray:
        """``K(P) @ w`` of shape (m,), never forming K(P)."""

    def factor_scores(self, left: FloatArray, right: FloatArray) -> FloatArray:
        """``K(left @ right.T) @ w``, for factors of a symmetric matrix."""
        return self.scores(left @ right.T)

    @abstractmethod
    def sensitivities(self, V: FloatArray, rows: NDArray[np.intp]) -> Sensitivities:
        """How the scores of `rows` answer to P within the span of V, of shape (n_params, r)."""


class BoundKernelSet(ABC):
    """A kernel set on a training sample of m rows.

    Attributes
    ----------
    n_samples, n_params : int
        m, and the side of P.
    dtype : dtype
        Storage of matrices with m² entries.
    kernels : KernelSet
        The set that was bound, with nothing left that depends on the training rows: what a
        :class:`LearnedKernel` has to remember.
    """

    kernels: KernelSet
    n_samples: int
    n_params: int
    dtype: np.dtype[Any]

    @property
    def machines(self) -> tuple[BoundKernelSet, ...]:
        """The set on the rows of each machine: itself, unless it is a stack."""
        return (self,)

    def gram(
        self, P: FloatArray, *, centred: bool = False, out: NDArray[Any] | None = None
    ) -> NDArray[Any]:
        """Kernel matrix K(P) of shape (m, m), exactly symmetric, in the dtype of the binding.

        Parameters
        ----------
        P : ndarray of shape (n_params, n_params)
            Symmetric; need not be positive.
        centred : bool
            Return HKH with H = I - 11ᵀ/m. Because Σw = 0 this changes an SVM's intercept and
            nothing else, and it removes the large common part of the entries that costs digits.
        out : ndarray of shape (m, m), optional
            Matrix to overwrite; saves the allocation, which costs as much as the arithmetic.
        """
        left, right = symmetric_factors(checked_parameter(P, self.n_params))
        return self._gram(left, right, centred, out)

    def gram_factor(
        self, U: FloatArray, *, centred: bool = False, out: NDArray[Any] | None = None
    ) -> NDArray[Any]:
        """``gram(U @ U.T)`` for U of shape (n_params, r), at a cost that grows with r."""
        U = np.asarray(U, dtype=np.float64)
        if U.ndim != 2 or len(U) != self.n_params:
            raise ValueError(f"U has shape {U.shape}, expected ({self.n_params}, r).")
        return self._gram(U, U, centred, out)

    def product_form(self, U: FloatArray, *, centred: bool = False) -> ProductForm | None:
        """K(U Uᵀ) as the compiled loops want it, if it has that form.

        A solver can then ask for single rows instead of the whole matrix.
        """
        del U, centred
        return None

    def gradient(self, w: ArrayLike) -> FloatArray:
        """D(w), the matrix with ``<D(w), P> = w @ K(P) @ w`` for every P."""
        return self.moments(w).gradient

    @abstractmethod
    def _gram(
        self, left: FloatArray, right: FloatArray, centred: bool, out: NDArray[Any] | None
    ) -> NDArray[Any]:
        """Kernel matrix of the symmetric P = left @ right.T."""

    @abstractmethod
    def moments(self, w: ArrayLike) -> Moments:
        """The :class:`Moments` of a dual vector of shape (m,), in float64."""

    @abstractmethod
    def restrict(self, rows: NDArray[np.intp], span: FloatArray | None = None) -> BoundKernelSet:
        """The same set on some of the training rows, stored in float64.

        Parameters
        ----------
        rows : ndarray of int
            Which ones.
        span : ndarray of shape (n_params, r), optional
            V: the result is the set of all P = V M Vᵀ, linear in M of side r, at the price of
            r basis functions instead of n_params.
        """

    @abstractmethod
    def diag(self, P: FloatArray) -> FloatArray:
        """``k(x, x)`` for each training row."""

    @abstractmethod
    def cross(self, X_new: FloatArray, P: FloatArray) -> FloatArray:
        """Kernel between new rows and the training rows, of shape (len(X_new), m)."""


class KernelSet(ABC):
    """A family of kernels linear in a positive matrix; immutable in use, cheap to copy.

    Subclasses are dataclasses whose fields are the hyperparameters. ``get_params`` and
    ``set_params`` follow scikit-learn, so ``GridSearchCV`` reaches ``kernels__delta``.
    """

    #: Name under which model files record the family; None when it cannot be written as data.
    family: ClassVar[str | None] = None

    @property
    def by_rows(self) -> bool:
        """Whether bindings offer a product form, so that solvers need no whole kernel matrix."""
        return False

    @property
    def margin(self) -> float:
        """How far around the unit cube of the training data the kernels have one formula."""
        return np.inf

    @property
    def outside_rule(self) -> str:
        """What the kernels do beyond that margin, as a clause."""
        return "the kernel is given by the same formula"

    @abstractmethod
    def count_params(self, n_features: int) -> int:
        """Side of P for data with `n_features` columns."""

    @abstractmethod
    def bind(
        self, X: ArrayLike, *, dtype: DTypeLike = np.float64, n_jobs: int | None = None
    ) -> BoundKernelSet:
        """The set on the rows of X, which should lie in the unit cube.

        Parameters
        ----------
        X : array-like of shape (m, n)
            Scaled training data.
        dtype : float32 or float64
            Storage of matrices with m² entries; everything else is float64.
        n_jobs : int, optional
            Threads of the compiled loops.
        """

    def resolve(self, X: FloatArray) -> KernelSet:
        """The same set with nothing left that depends on training rows; most sets are that."""
        del X
        return self

    @abstractmethod
    def memory_estimate(self, n_samples: int, n_features: int, itemsize: int) -> int:
        """Bytes a binding holds, before any kernel matrix is asked for."""

    @abstractmethod
    def cross(
        self, X: ArrayLike, Y: ArrayLike, P: FloatArray, *, n_jobs: int | None = None
    ) -> FloatArray:
        """Compute the kernel matrix between two sets of rows.

        Parameters
        ----------
        X, Y : array-like of shape (m, n) and (l, n)
            Rows in the scale of the unit cube.
        P : ndarray of shape (n_params, n_params)
            Parameter of the kernel.
        n_jobs : int, optional
            Number of threads. None uses all cores that the process may use.

        Returns
        -------
        ndarray of shape (m, l)
            Kernel values.
        """

    def predictor(self, P: FloatArray, Y: ArrayLike, coefficients: FloatArray) -> Predictor:
        """Prepare predictions with a fixed P and fixed support vectors.

        Whatever depends on the support vectors alone is computed here, once, so that each later
        call of :meth:`Predictor.scores` pays for its own rows only.

        Parameters
        ----------
        P : ndarray of shape (n_params, n_params)
            Parameter of the kernel.
        Y : array-like of shape (l, n)
            Support vectors, in the scale of the unit cube.
        coefficients : ndarray of shape (l, n_columns)
            Coefficients of the support vectors, one column for each machine.

        Returns
        -------
        Predictor
            ``scores(X)`` is ``cross(X, Y, P) @ coefficients``.
        """
        return MatrixPredictor(self, P, as_rows(Y), coefficients)

    def scores(
        self,
        X: ArrayLike,
        Y: ArrayLike,
        P: FloatArray,
        w: FloatArray,
        *,
        n_jobs: int | None = None,
    ) -> FloatArray:
        """Compute ``cross(X, Y, P) @ w`` without the whole matrix.

        Parameters
        ----------
        X, Y : array-like of shape (m, n) and (l, n)
            Rows in the scale of the unit cube.
        P : ndarray of shape (n_params, n_params)
            Parameter of the kernel.
        w : ndarray of shape (l,)
            Vector of coefficients.
        n_jobs : int, optional
            Number of threads. None uses all cores that the process may use.

        Returns
        -------
        ndarray of shape (m,)
            Product of the kernel matrix with the vector.
        """
        rows, support = as_rows(X), as_rows(Y)
        column = as_dual_vector(w, len(support))[:, None]
        return self.predictor(P, support, column).scores(rows, n_jobs=n_jobs)[:, 0]

    @abstractmethod
    def diag(self, X: ArrayLike, P: FloatArray) -> FloatArray:
        """Compute ``k(x, x)`` for each row of X.

        Parameters
        ----------
        X : array-like of shape (m, n)
            Rows in the scale of the unit cube.
        P : ndarray of shape (n_params, n_params)
            Parameter of the kernel.

        Returns
        -------
        ndarray of shape (m,)
            Diagonal of the kernel matrix of X.
        """

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002 - scikit-learn's signature
        """Hyperparameters by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]

    def set_params(self, **params: Any) -> Self:
        """Change hyperparameters by name."""
        known = self.get_params()
        for name, value in params.items():
            if name not in known:
                raise ValueError(
                    f"{type(self).__name__} has no parameter {name!r}; it has {sorted(known)}."
                )
            setattr(self, name, value)
        return self


def as_rows(X: ArrayLike) -> FloatArray:
    """X as a C-contiguous float64 matrix of rows."""
    X = np.ascontiguousarray(X, dtype=np.float64)
    if X.ndim != 2:
        raise ValueError(f"Expected a matrix of rows, got an array of shape {X.shape}.")
    return X


def as_dual_vector(w: ArrayLike, size: int) -> FloatArray:
    """W as a float64 vector of the given length."""
    w = np.asarray(w, dtype=np.float64)
    if w.shape != (size,):
        raise ValueError(f"w has shape {w.shape}, expected ({size},).")
    return w


def checked_parameter(P: ArrayLike, n_params: int) -> FloatArray:
    """P as a float64 symmetric matrix of the right side."""
    P = np.asarray(P, dtype=np.float64)
    if P.shape != (n_params, n_params):
        raise ValueError(f"P has shape {P.shape}, expected ({n_params}, {n_params}).")
    asymmetry = float(np.abs(P - P.T).max(initial=0.0))
    if asymmetry > 1e-9 * float(np.abs(P).max(initial=0.0)):
        raise ValueError(f"P must be symmetric; entries differ by up to {asymmetry:.3g}.")
    return P


def symmetric_factors(P: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(L, R) with ``P = L @ R.T``, as many columns as P has rank, and L = R up to signs.

    Directions whose eigenvalue is rounding noise are dropped: learned matrices have rank one or
    two, and every later cost grows with the number of columns. Because columns differ in their
    sign at most, a kernel matrix made of the two is symmetric to the last bit.
    """
    eigenvalues, vectors = np.linalg.eigh(0.5 * (P + P.T))
    size = np.abs(eigenvalues)
    keep = size > len(P) * np.finfo(float).eps * size.max(initial=0.0)
    right = vectors[:, keep] * np.sqrt(size[keep])
    return right * np.sign(eigenvalues[keep]), right


def positive_factor(P: FloatArray) -> FloatArray:
    """U with ``P = U @ U.T``; what is negative in P is taken for rounding and dropped."""
    left, right = symmetric_factors(P)
    return right[:, (left == right).all(axis=0)]


def within(outer: FloatArray | None, inner: FloatArray | None) -> FloatArray | None:
    """The span of `inner`, given in coordinates of `outer`; None stands for everything."""
    if outer is None or inner is None:
        return inner if outer is None else outer
    product: FloatArray = outer @ inner
    return product


def in_full(span: FloatArray | None, M: FloatArray) -> FloatArray:
    """P of a matrix in coordinates of `span`."""
    if span is None:
        return M
    P: FloatArray = span @ M @ span.T
    return P
