"""What every kernel set offers: the contract between the mathematics and the solvers.

A kernel set is a family of kernels that is linear in a parameter P of a cone
(:mod:`tessella.cones`): k(x, y) = ∫ N(z, x)ᵀ P N(z, y) dz with a positive semidefinite matrix P,
or k(x, y) = Σ_i P_i k_i(x, y) with nonnegative weights P, or a sum of such families. Solvers see it
only through a :class:`BoundKernelSet`: the set on a fixed training sample, where it becomes the
linear map P ↦ K(P) and its adjoint w ↦ D(w).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import fields
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from tessella.backend import KernelOnDemand, ProductForm
from tessella.cones import PSD, Cone, Face, Factors, Point, Sensitivities
from tessella.kernels._predictor import MatrixPredictor, Predictor

if TYPE_CHECKING:
    from tessella.kernels._on_features import KernelsOnFeatures
    from tessella.kernels._sum import KernelSum

FloatArray = NDArray[np.float64]

_DENSE_ROWS = 2000  # up to here the whole kernel matrix costs less than rows one at a time


class Moments(ABC):
    """What a dual vector w needs to know of all kernels of the set at once.

    Computed once for a w, always in float64; the gradient and the scores for any P then cost
    little, which is how one product serves both halves of the certificate.
    """

    @property
    @abstractmethod
    def gradient(self) -> Point:
        """D(w), of the shape of the parameter, with ``<D(w), P> = w @ K(P) @ w``."""

    def face_gradient(self, face: Face) -> Point:
        """D(w) as a face of the cone sees it; the whole of it for None."""
        raise NotImplementedError

    @abstractmethod
    def scores(self, P: Point) -> FloatArray:
        """``K(P) @ w`` of shape (m,), never forming K(P)."""

    @abstractmethod
    def factor_scores(self, factors: Factors) -> FloatArray:
        """The same from the factors of P, which the cone makes."""

    @abstractmethod
    def sensitivities(self, face: Face, rows: NDArray[np.intp]) -> Sensitivities:
        """How the scores of `rows` answer to a parameter within a face; None is everything."""


class MatrixMoments(Moments):
    """Moments for kernel sets whose parameter is one positive semidefinite matrix."""

    def face_gradient(self, face: Face) -> FloatArray:
        """See :meth:`Moments.face_gradient`."""
        D: FloatArray = self.gradient
        return D if face is None else face.T @ D @ face

    def factor_scores(self, factors: Factors) -> FloatArray:
        """See :meth:`Moments.factor_scores`."""
        left, right = factors
        return self.scores(left @ right.T)


class KernelWorkspace:
    """Memory for the kernel matrix of one machine after another.

    Parameters
    ----------
    dtype : float32 or float64
        Storage of the entries.
    """

    def __init__(self, dtype: DTypeLike) -> None:
        self.dtype = np.dtype(dtype)
        self.rows = KernelOnDemand(self.dtype)
        self._memory: NDArray[Any] | None = None
        self._label: tuple[object, Any] | None = None

    def matrix(self, side: int) -> NDArray[Any]:
        """A matrix of that side: the memory of the last one, if it was as large."""
        if self._memory is None or len(self._memory) < side * side:
            self._memory = np.empty(side * side, self.dtype)
            self._label = None
        return self._memory[: side * side].reshape(side, side)

    def label(self, owner: object, content: Any) -> None:
        """Note what the matrix holds."""
        self._label = (owner, content)

    def labelled(self, owner: object) -> Any:
        """What the matrix holds, if `owner` was the last to write it; None otherwise."""
        return self._label[1] if self._label is not None and self._label[0] is owner else None


class BoundKernelSet(ABC):
    """A kernel set on a training sample of m rows.

    Attributes
    ----------
    n_samples : int
        Number of training rows m.
    cone : Cone
        Where the parameter lives.
    dtype : dtype
        Storage of matrices with m² entries.
    kernels : KernelSet
        The set that was bound, with nothing left that depends on the training rows: what a
        :class:`LearnedKernel` has to remember.
    """

    kernels: KernelSet
    n_samples: int
    cone: Cone
    dtype: np.dtype[Any]

    @property
    def machines(self) -> tuple[BoundKernelSet, ...]:
        """The set on the rows of each machine: itself, unless it is a stack."""
        return (self,)

    def gram(
        self, P: Point, *, centred: bool = False, out: NDArray[Any] | None = None
    ) -> NDArray[Any]:
        """Kernel matrix K(P) of shape (m, m), exactly symmetric, in the dtype of the binding.

        Parameters
        ----------
        P : Point
            Parameter: a symmetric matrix, weights, or blocks of those. It need not be positive.
        centred : bool
            Return HKH with H = I - 11ᵀ/m. Because Σw = 0 this changes an SVM's intercept and
            nothing else, and it removes the large common part of the entries that costs digits.
        out : ndarray of shape (m, m), optional
            Matrix to overwrite; saves the allocation, which costs as much as the arithmetic.
        """
        return self.factor_gram(self.cone.factors(self.cone.read(P)), centred, out)

    def gram_factor(
        self, L: Point, *, centred: bool = False, out: NDArray[Any] | None = None
    ) -> NDArray[Any]:
        """``gram`` of a parameter given by its root L, as :meth:`Cone.factor` makes it.

        For a matrix P = L Lᵀ, L of shape (n_params, r), the cost grows with r.
        """
        return self.factor_gram(self.cone.square(L), centred, out)

    def svm_kernel(
        self, factors: Factors, workspace: KernelWorkspace
    ) -> NDArray[Any] | KernelOnDemand:
        """K(P), up to centring, in the form in which an SVM solver uses it best.

        The whole matrix, in the memory of the workspace; or, for many rows and a kernel set that
        offers a product form, one whose rows are computed on demand.
        """
        large = self.n_samples > _DENSE_ROWS
        form = self.product_form(factors, centred=True) if large else None
        if form is None:
            return self.factor_gram(factors, True, workspace.matrix(self.n_samples))
        workspace.rows.hold(form)
        return workspace.rows

    def product_form(self, factors: Factors, *, centred: bool = False) -> ProductForm | None:
        """K(P) as the compiled loops want it, if it has that form.

        A solver can then ask for single rows instead of the whole matrix.
        """
        del factors, centred
        return None

    def gradient(self, w: ArrayLike) -> Point:
        """D(w), with ``<D(w), P> = w @ K(P) @ w`` for every P."""
        return self.moments(w).gradient

    @abstractmethod
    def factor_gram(
        self, factors: Factors, centred: bool, out: NDArray[Any] | None
    ) -> NDArray[Any]:
        """Kernel matrix of a parameter given by its factors."""

    @abstractmethod
    def moments(self, w: ArrayLike) -> Moments:
        """The :class:`Moments` of a dual vector of shape (m,), in float64."""

    @abstractmethod
    def restrict(self, rows: NDArray[np.intp], face: Face = None) -> BoundKernelSet:
        """The same set on some of the training rows, stored in float64.

        Parameters
        ----------
        rows : ndarray of int
            Training rows of the restriction.
        face : Face, optional
            Face of the cone: the parameter of the result is a point of that face, in its own
            coordinates. For matrices V with P = V M Vᵀ, at the price of r basis functions instead
            of n_params; for weights the indices of the kernels that are left.
        """

    def subset(self, rows: NDArray[np.intp]) -> BoundKernelSet:
        """The same set on some of the training rows, in any order, as if it were bound to them.

        Unlike :meth:`restrict`, it prepares nothing for the repeated evaluations of a Newton
        iteration.
        """
        return self.restrict(rows)

    @abstractmethod
    def diag(self, P: Point) -> FloatArray:
        """``k(x, x)`` for each training row."""

    @abstractmethod
    def cross(self, X_new: FloatArray, P: Point) -> FloatArray:
        """Kernel between new rows and the training rows, of shape (len(X_new), m)."""


class BoundMatrixSet(BoundKernelSet):
    """A bound kernel set whose parameter is one positive semidefinite matrix.

    Attributes
    ----------
    n_params : int
        Side of P.
    """

    @property
    def n_params(self) -> int:
        """Side of P."""
        return self.cone.degree


class KernelSet(ABC):
    """A family of kernels that is linear in its parameter; immutable in use, cheap to copy.

    Subclasses are dataclasses whose fields are the hyperparameters. ``get_params`` and
    ``set_params`` follow scikit-learn, so ``GridSearchCV`` reaches ``kernels__delta``. Kernel
    sets add up: ``a + b`` is the set of all convex combinations of a kernel of each, and
    ``a.on_features([0, 2])`` is the set on some columns of the data.
    """

    #: Name under which model files record the family; None when it cannot be written as data. Model
    #: files store kernel sets that :func:`tessella.persistence.register_kernel_set` was called for.
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

    @property
    def wants_raw_features(self) -> bool:
        """Whether the set wants features in their own units, and not in the unit cube."""
        return False

    @property
    def names_features(self) -> bool:
        """Whether the set refers to single columns, so that none of them may be left out."""
        return False

    def __add__(self, other: KernelSet) -> KernelSum:
        """The set of all convex combinations of a kernel of each set."""
        from tessella.kernels._sum import KernelSum

        return KernelSum.of(self, other) if isinstance(other, KernelSet) else NotImplemented

    def on_features(self, features: ArrayLike) -> KernelsOnFeatures:
        """The same set on some columns of the data.

        Parameters
        ----------
        features : array-like of int
            Numbers of the columns.

        Returns
        -------
        KernelsOnFeatures
        """
        from tessella.kernels._on_features import KernelsOnFeatures

        numbers = np.atleast_1d(np.asarray(features))
        return KernelsOnFeatures(self, tuple(numbers.tolist()))

    def count_params(self, n_features: int) -> int:
        """Side of P for data with `n_features` columns, where P is one matrix."""
        raise NotImplementedError

    def cone(self, n_features: int) -> Cone:
        """Where the parameter lives, for data with `n_features` columns.

        By default positive semidefinite matrices of side :meth:`count_params`.
        """
        return PSD(self.count_params(n_features))

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

    def bind_resolved(
        self, X: ArrayLike, *, dtype: DTypeLike = np.float64, n_jobs: int | None = None
    ) -> BoundKernelSet:
        """Like :meth:`bind`, for a set that :meth:`resolve` has returned.

        Nothing is read off the rows, so that several bindings have the same parameter.
        """
        return self.bind(X, dtype=dtype, n_jobs=n_jobs)

    def resolve(self, X: ArrayLike, sample_weight: ArrayLike | None = None) -> KernelSet:
        """The same set with nothing left that depends on training rows; most sets are that.

        Parameters
        ----------
        X : array-like of shape (m, n)
            Training rows.
        sample_weight : array-like of shape (m,), optional
            Weight of each row; a weight of k is the same as k copies of the row.
        """
        del X, sample_weight
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

    def predictor(self, P: Point, Y: ArrayLike, coefficients: FloatArray) -> Predictor:
        """Prepare predictions with a fixed P and fixed support vectors.

        Whatever depends on the support vectors alone is computed here, once, so that each later
        call of :meth:`Predictor.scores` pays for its own rows only.

        Parameters
        ----------
        P : Point
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

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Hyperparameters by name; those of a kernel set within as ``"kernels__delta"``."""
        params = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        inner = [(k, v) for k, v in params.items() if deep and isinstance(v, KernelSet)]
        for name, kernels in inner:
            own = kernels.get_params(deep=True)
            params |= {f"{name}__{key}": value for key, value in own.items()}
        return params

    def set_params(self, **params: Any) -> Self:
        """Change hyperparameters by name; those of a kernel set within as ``"kernels__delta"``."""
        for name, value in params.items():
            known = self.get_params()
            if name not in known:
                raise ValueError(
                    f"{type(self).__name__} has no parameter {name!r}; it has {sorted(known)}."
                )
            own, _, inner = name.partition("__")
            if inner:
                getattr(self, own).set_params(**{inner: value})
            else:
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
