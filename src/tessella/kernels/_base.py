"""The base classes of kernel sets, which define what solvers can ask of a kernel set.

A kernel set is a family of kernels that is linear in a parameter P of a cone
(:mod:`tessella.cones`): k(x, y) = ∫ N(z, x)ᵀ P N(z, y) dz with a positive semidefinite matrix P,
or k(x, y) = Σ_i P_i k_i(x, y) with nonnegative weights P, or a sum of such families. Solvers use it
only through a :class:`BoundKernelSet`: the set on a fixed training sample, where it is the linear
map P ↦ K(P) and its adjoint w ↦ D(w).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from tessella.backend import BlockDiagonal, KernelOnDemand, MachineForms, ProductForm
from tessella.backend._lazy import cached_property
from tessella.cones import (
    PSD,
    Cone,
    Face,
    Factors,
    Point,
    Sensitivities,
    is_factor,
    symmetric_factors,
)
from tessella.kernels._predictor import MatrixPredictor, Predictor

if TYPE_CHECKING:
    from tessella.kernels._on_features import KernelsOnFeatures
    from tessella.kernels._sum import KernelSum

FloatArray = NDArray[np.float64]

_DENSE_ROWS = 2000  # up to so many rows, the whole matrix costs less than its rows one by one


class Moments(ABC):
    """Moments of a dual vector w, from which D(w) and the scores K(P)w follow for every P.

    They are computed once for a w, always in float64. The gradient and the scores for any P then
    cost little, so one product serves both bounds of a certificate.
    """

    @property
    @abstractmethod
    def gradient(self) -> Point:
        """The point D(w) of the shape of the parameter, with ``<D(w), P> = w @ K(P) @ w``."""

    @abstractmethod
    def face_gradient(self, face: Face) -> Point:
        """Return D(w) in coordinates of a face of the cone, or the whole of D(w) for None."""

    @abstractmethod
    def scores(self, P: Point) -> FloatArray:
        """Return ``K(P) @ w`` of shape (m,), without forming K(P)."""

    @abstractmethod
    def factor_scores(self, factors: Factors) -> FloatArray:
        """Return ``K(P) @ w`` from the factors of P, which the cone computes."""

    @abstractmethod
    def sensitivities(self, face: Face, rows: NDArray[np.intp]) -> Sensitivities:
        """Return the derivatives of the scores of `rows` with respect to a parameter of a face.

        Parameters
        ----------
        face : Face
            Face of the cone. None stands for the whole cone.
        rows : ndarray of int
            Positions of the rows.
        """


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


@dataclass(frozen=True)
class ThinRows:
    """Training rows of a kernel with one max-product part, apart from their thin matrices.

    Attributes
    ----------
    products : ndarray of shape (m, m)
        Factors of the max-product part.
    ratio : ndarray of shape (m,)
        Factor that turns a vector of the max-product part into its moment.
    box : float
        Moment of the whole box.
    """

    products: FloatArray
    ratio: FloatArray
    box: float


class KernelWorkspace:
    """Memory for a kernel matrix, which the machines use one after the other.

    Parameters
    ----------
    dtype : float32 or float64
        Data type of the entries.
    """

    def __init__(self, dtype: DTypeLike) -> None:
        self.dtype = np.dtype(dtype)
        self.rows = KernelOnDemand(self.dtype)
        self._memory: NDArray[Any] | None = None
        self._label: tuple[object, Any] | None = None

    def matrix(self, side: int) -> NDArray[Any]:
        """Return a matrix of the given side, in the memory of the last one if that is possible."""
        if self._memory is None or len(self._memory) < side * side:
            self._memory = np.empty(side * side, self.dtype)
            self._label = None
        return self._memory[: side * side].reshape(side, side)

    def label(self, owner: object, content: Any) -> None:
        """Note the owner and the content of the matrix."""
        self._label = (owner, content)

    def labelled(self, owner: object) -> Any:
        """Return the content of the matrix if `owner` was the last to write it, else None."""
        return self._label[1] if self._label is not None and self._label[0] is owner else None


@dataclass(frozen=True)
class CommonRows:
    """Rows of which several machines see parts.

    Attributes
    ----------
    kernels : BoundKernelSet
        The kernel set on all rows.
    index : ndarray of int of shape (m,)
        Row of each sample, one machine after the other.
    """

    kernels: BoundKernelSet
    index: NDArray[np.intp]


class BoundKernelSet(ABC):
    """A kernel set on a training sample of m rows.

    Attributes
    ----------
    n_samples : int
        Number of training rows m.
    cone : Cone
        Cone that contains the parameter.
    dtype : dtype
        Data type of matrices with m² entries.
    kernels : KernelSet
        The set that was bound, resolved so that it no longer depends on the training rows. A
        :class:`LearnedKernel` keeps this set.
    """

    kernels: KernelSet
    n_samples: int
    cone: Cone
    dtype: np.dtype[Any]

    @property
    def machines(self) -> tuple[BoundKernelSet, ...]:
        """The set on the rows of each machine, which is the set itself if there is one machine."""
        return (self,)

    @property
    def n_machines(self) -> int:
        """Number of machines."""
        return len(self.machines)

    def gram(
        self, P: Point, *, centred: bool = False, out: NDArray[Any] | None = None
    ) -> NDArray[Any]:
        """Return the kernel matrix K(P), exactly symmetric, in the dtype of the binding.

        Parameters
        ----------
        P : Point
            Parameter: a symmetric matrix, which need not be positive, or a factor U of a matrix
            U Uᵀ with fewer columns than rows, weights, or blocks of those.
        centred : bool
            Whether to return HKH with H = I - 11ᵀ/m. Because Σw = 0, centring changes only the
            intercept of an SVM, and it removes the large common part of the entries, which would
            cost digits.
        out : ndarray of shape (m, m), optional
            Matrix to overwrite. It saves the allocation, which costs as much as the arithmetic.

        Returns
        -------
        ndarray of shape (m, m)
            Kernel matrix.
        """
        return self.factor_gram(self.cone.read_factors(P), centred, out)

    def gram_factor(
        self, L: Point, *, centred: bool = False, out: NDArray[Any] | None = None
    ) -> NDArray[Any]:
        """Return the kernel matrix of a parameter that is given by its root L.

        The root is that of :meth:`Cone.factor`. For a matrix P = L Lᵀ with L of shape
        (n_params, r), the cost grows with r.
        """
        return self.factor_gram(self.cone.square(L), centred, out)

    def factor_blocks(self, factors: Factors, centred: bool) -> NDArray[Any] | BlockDiagonal:
        """Return K(P) without the zeros between several machines, for a Newton iteration."""
        return self.factor_gram(factors, centred, None)

    def svm_kernel(
        self, factors: Factors, workspace: KernelWorkspace
    ) -> NDArray[Any] | KernelOnDemand:
        """Return K(P), up to centring, in the form that suits an SVM solver best.

        This is the whole matrix, in the memory of the workspace. For many rows and a kernel set
        with a product form, it is a matrix whose rows are computed on demand.
        """
        large = self.n_samples > _DENSE_ROWS
        form = self.product_form(factors, centred=True) if large else None
        if form is None:
            return self.factor_gram(factors, True, workspace.matrix(self.n_samples))
        workspace.rows.hold(form)
        return workspace.rows

    def svm_kernels(
        self, factors: Factors, workspace: KernelWorkspace
    ) -> Iterator[NDArray[Any] | KernelOnDemand]:
        """Yield the matrix of :meth:`svm_kernel` for each machine, in the same memory."""
        return (machine.svm_kernel(factors, workspace) for machine in self.machines)

    def product_form(self, factors: Factors, *, centred: bool = False) -> ProductForm | None:
        """Return K(P) in the form that the compiled loops use, or None if it has no such form.

        With this form, a solver can ask for single rows instead of the whole matrix.
        """
        del factors, centred
        return None

    def thin_rows(self) -> ThinRows | None:
        """Return what the compiled steps of an interior point method need, or None."""
        return None

    def kernel_parameter(self, P: Point) -> Point:
        """Return the parameter of the kernel that a point of the cone stands for.

        The parameter belongs to :attr:`kernels`. It is the point itself, unless the set has a floor
        under its parameter.
        """
        return P

    def free_parameter(self, P: Point) -> Point:
        """Return the feasible point that stands for a kernel, or for one as near as possible.

        The inverse of :meth:`kernel_parameter`.
        """
        return P

    def times(self, K: NDArray[Any], w: FloatArray) -> FloatArray:
        """Return the product of a matrix of :meth:`gram` with a dual vector, in float64."""
        product: FloatArray = (K @ w.astype(K.dtype, copy=False)).astype(np.float64, copy=False)
        return product

    def gradient(self, w: ArrayLike) -> Point:
        """Return D(w), with ``<D(w), P> = w @ K(P) @ w`` for every P."""
        return self.moments(w).gradient

    @abstractmethod
    def factor_gram(
        self, factors: Factors, centred: bool, out: NDArray[Any] | None
    ) -> NDArray[Any]:
        """Return the kernel matrix of a parameter that is given by its factors."""

    def machine_forms(self, factors: Factors) -> MachineForms | None:
        """Return the centred kernel matrices of all machines if these see the same rows.

        None, the default, means that :meth:`svm_kernels` is to be asked for them one by one.
        """
        del factors
        return None

    def common_rows(self) -> CommonRows | None:
        """Return the rows that all machines see parts of; None, the default, if there are none."""
        return None

    @abstractmethod
    def moments(self, w: ArrayLike) -> Moments:
        """Return the :class:`Moments` of a dual vector of shape (m,), in float64."""

    @abstractmethod
    def restrict(self, rows: NDArray[np.intp], face: Face = None) -> BoundKernelSet:
        """Return the set on some of the training rows and a face, stored in float64.

        Parameters
        ----------
        rows : ndarray of int
            Positions of the training rows of the restriction.
        face : Face, optional
            Face of the cone that contains the parameter of the result, in coordinates of the face.
            For matrices it is a V of r columns with P = V M Vᵀ, and costs are those of r basis
            functions instead of n_params. For weights it is the indices of the kernels that
            remain.
        """

    def in_span(self, span: Any) -> BoundKernelSet:
        """Return the set on the same rows with its parameter in coordinates of a span of rows.

        Parameters
        ----------
        span : Span
            Span of rows from :meth:`KernelSet.row_span` that contains the rows of this binding.
        """
        raise NotImplementedError(f"{type(self).__name__} defines no span of rows.")

    def subset(self, rows: NDArray[np.intp]) -> BoundKernelSet:
        """Return the set on some of the training rows, in any order, as if it were bound to them.

        Unlike :meth:`restrict`, this method prepares nothing for the repeated evaluations of a
        Newton iteration.
        """
        return self.restrict(rows)

    @abstractmethod
    def diag(self, P: Point) -> FloatArray:
        """Return ``k(x, x)`` for each training row, of shape (m,)."""

    @cached_property
    def centre_diag(self) -> FloatArray:
        """Diagonal of K(P) for the centre of the cone, which bounds that of every kernel."""
        return self.diag(self.cone.centre)

    @property
    def plain_parameter(self) -> Point:
        """A feasible parameter that nothing was learned for and whose kernel costs little."""
        return self.cone.centre

    @abstractmethod
    def cross(self, X_new: FloatArray, P: Point) -> FloatArray:
        """Return the kernel between new rows and the training rows, of shape (len(X_new), m)."""


def suitable_form(
    form: ProductForm, workspace: KernelWorkspace, threads: int
) -> NDArray[Any] | KernelOnDemand:
    """Return a product form as the matrix, or for many rows as rows that are computed on demand."""
    if len(form) > _DENSE_ROWS:
        workspace.rows.hold(form)
        return workspace.rows
    K = workspace.matrix(len(form))
    form.matrix(K, threads)
    return K


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
    """Base class of kernel sets, families of kernels that are linear in their parameter.

    Subclasses are dataclasses whose fields are the hyperparameters. They are cheap to copy and are
    not changed by fits. ``get_params`` and ``set_params`` follow scikit-learn, so ``GridSearchCV``
    can set ``kernels__delta``. Kernel sets can be added: ``a + b`` is the set of all convex
    combinations of a kernel of each set, and ``a.on_features([0, 2])`` is the set on some columns
    of the data.
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
        """Distance from the unit cube of the training data up to which one formula holds."""
        return np.inf

    @property
    def outside_rule(self) -> str:
        """Description, as a clause, of what the kernels do beyond :attr:`margin`."""
        return "the kernel is given by the same formula"

    @property
    def wants_raw_features(self) -> bool:
        """Whether the set takes features in their own units, and not in the unit cube."""
        return False

    @property
    def names_features(self) -> bool:
        """Whether the set refers to single columns, so that none of them may be left out."""
        return False

    def __add__(self, other: KernelSet) -> KernelSum:
        """Return the set of all convex combinations of a kernel of each set."""
        from tessella.kernels._sum import KernelSum

        return KernelSum.of(self, other) if isinstance(other, KernelSet) else NotImplemented

    def on_features(self, features: ArrayLike) -> KernelsOnFeatures:
        """Return the same set on some columns of the data.

        Parameters
        ----------
        features : array-like of int
            Numbers of the columns.

        Returns
        -------
        KernelsOnFeatures
            Kernel set that sees only these columns.
        """
        from tessella.kernels._on_features import KernelsOnFeatures

        numbers = np.atleast_1d(np.asarray(features))
        return KernelsOnFeatures(self, tuple(numbers.tolist()))

    def with_floor(self, floor: float) -> KernelSet:
        """Return the set with a floor under its parameter.

        The parameter of its kernels is ``floor * centre + (1 - floor) * P`` with a feasible P that
        is learned, by the same convex problem with the same certificate. The centre is the
        identity matrix, or equal weights.

        Parameters
        ----------
        floor : float
            Share of the centre, between 0 and 1.

        Returns
        -------
        KernelSet
            Kernel set with the floor.
        """
        from tessella.kernels._floor import KernelsWithFloor

        return KernelsWithFloor(self, floor)

    def count_params(self, n_features: int) -> int:
        """Return the side of P for data with `n_features` columns, if P is one matrix."""
        raise NotImplementedError

    def cone(self, n_features: int) -> Cone:
        """Return the cone that contains the parameter, for data with `n_features` columns.

        The default is the cone of positive semidefinite matrices of side :meth:`count_params`.
        """
        return PSD(self.count_params(n_features))

    def cone_on_rows(self, n_rows: int, n_features: int) -> Cone:
        """Return the cone in which a fit on so many rows learns its parameter.

        It is that of :meth:`cone`, or that of the span of :meth:`row_span` if this is smaller.
        """
        del n_rows
        return self.cone(n_features)

    def row_span(self, X: ArrayLike) -> Any:
        """Return the span of parameters that contains all that rows can tell apart, or None.

        The kernels of some sets depend on few directions of a large parameter as long as they are
        evaluated on few rows only. A fit then learns the parameter in coordinates of these
        directions, which changes neither the optimum nor the certificate. None stands for all
        parameters.

        Parameters
        ----------
        X : array-like of shape (m, n)
            Scaled training rows. The set is one that :meth:`resolve` has returned.
        """
        del X

    @abstractmethod
    def bind(
        self, X: ArrayLike, *, dtype: DTypeLike = np.float64, n_jobs: int | None = None
    ) -> BoundKernelSet:
        """Return the set on the rows of X, which should lie in the unit cube.

        Parameters
        ----------
        X : array-like of shape (m, n)
            Scaled training data.
        dtype : float32 or float64
            Data type of matrices with m² entries. All other arrays are float64.
        n_jobs : int, optional
            Number of threads. None uses all cores that the process may use.
        """

    def bind_resolved(
        self, X: ArrayLike, *, dtype: DTypeLike = np.float64, n_jobs: int | None = None
    ) -> BoundKernelSet:
        """Bind a set that :meth:`resolve` has returned.

        Unlike in :meth:`bind`, nothing is derived from the rows, so several bindings have the same
        parameter.
        """
        return self.bind(X, dtype=dtype, n_jobs=n_jobs)

    def bind_machines(
        self,
        X: FloatArray,
        rows: Sequence[NDArray[np.intp]],
        *,
        dtype: DTypeLike = np.float64,
        n_jobs: int | None = None,
        span: Any = None,
    ) -> BoundKernelSet:
        """Bind a resolved set to the rows of several machines, one machine after the other.

        Parameters
        ----------
        X : ndarray of shape (m, n)
            Scaled training data.
        rows : sequence of ndarray of int
            Positions of the rows of each machine.
        dtype : float32 or float64
            Data type of kernel matrices. All other arrays are float64.
        n_jobs : int, optional
            Number of threads. None uses all cores that the process may use.
        span : Span, optional
            Span of the rows, in whose coordinates the parameter is.

        Returns
        -------
        BoundKernelSet
            The set on the stacked rows. K(P) is block diagonal.
        """
        from tessella.kernels._stacked import StackedKernels

        parts = [self.bind_resolved(X[own], dtype=dtype, n_jobs=n_jobs) for own in rows]
        return StackedKernels(parts if span is None else [part.in_span(span) for part in parts])

    def resolve(self, X: ArrayLike, sample_weight: ArrayLike | None = None) -> KernelSet:
        """Return the set with everything fixed that depends on training rows.

        Most sets do not depend on training rows and return themselves.

        Parameters
        ----------
        X : array-like of shape (m, n)
            Training rows.
        sample_weight : array-like of shape (m,), optional
            Weight of each row. A weight of k is equivalent to k copies of the row.
        """
        del X, sample_weight
        return self

    @abstractmethod
    def memory_estimate(self, n_samples: int, n_features: int, itemsize: int) -> int:
        """Return the bytes that a binding holds before any kernel matrix is computed."""

    @abstractmethod
    def cross(
        self, X: ArrayLike, Y: ArrayLike, P: FloatArray, *, n_jobs: int | None = None
    ) -> FloatArray:
        """Compute the kernel matrix between two sets of rows.

        Parameters
        ----------
        X : array-like of shape (m, n)
            Rows of the kernel matrix, in the scale of the unit cube.
        Y : array-like of shape (l, n)
            Columns of the kernel matrix, in the scale of the unit cube.
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
            An object whose ``scores(X)`` is ``cross(X, Y, P) @ coefficients``.
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
        X : array-like of shape (m, n)
            Rows of the kernel matrix, in the scale of the unit cube.
        Y : array-like of shape (l, n)
            Columns of the kernel matrix, in the scale of the unit cube.
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
        """Return hyperparameters by name; names such as ``"kernels__delta"`` are nested."""
        params = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        inner = [(k, v) for k, v in params.items() if deep and isinstance(v, KernelSet)]
        for name, kernels in inner:
            own = kernels.get_params(deep=True)
            params |= {f"{name}__{key}": value for key, value in own.items()}
        return params

    def set_params(self, **params: Any) -> Self:
        """Set hyperparameters by name; names such as ``"kernels__delta"`` are nested."""
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


def numbers_or_nan(value: Any) -> FloatArray:
    """Return numbers as an array of float64, and NaN for anything else.

    That includes text, such as "1", which numpy would read as a number.
    """
    try:
        given = np.asarray(value)
    except ValueError:  # lists of different lengths
        return np.array(np.nan)
    return given.astype(np.float64) if given.dtype.kind in "iuf" else np.array(np.nan)


def as_rows(X: ArrayLike) -> FloatArray:
    """Return X as a C-contiguous float64 matrix of rows."""
    X = np.ascontiguousarray(X, dtype=np.float64)
    if X.ndim != 2:
        raise ValueError(f"Expected a matrix of rows, got an array of shape {X.shape}.")
    return X


def as_dual_vector(w: ArrayLike, size: int) -> FloatArray:
    """Return `w` as a float64 vector of the given length."""
    w = np.asarray(w, dtype=np.float64)
    if w.shape != (size,):
        raise ValueError(f"w has shape {w.shape}, expected ({size},).")
    return w


def checked_parameter(P: ArrayLike, n_params: int) -> FloatArray:
    """Return P as a symmetric float64 matrix of side `n_params`."""
    P = np.asarray(P, dtype=np.float64)
    if P.shape != (n_params, n_params):
        raise ValueError(f"P has shape {P.shape}, expected ({n_params}, {n_params}).")
    asymmetry = float(np.abs(P - P.T).max(initial=0.0))
    if asymmetry > 1e-9 * float(np.abs(P).max(initial=0.0)):
        raise ValueError(f"P must be symmetric; entries differ by up to {asymmetry:.3g}.")
    return P


def parameter_factors(P: ArrayLike, n_params: int) -> tuple[FloatArray, FloatArray]:
    """Return thin factors of a matrix of side `n_params`, or of U Uᵀ if a factor U is given."""
    given = np.asarray(P, dtype=np.float64)
    if is_factor(given) and len(given) == n_params:
        return given, given
    return symmetric_factors(checked_parameter(given, n_params))


def within(outer: FloatArray | None, inner: FloatArray | None) -> FloatArray | None:
    """Return the span `inner`, which is given in coordinates of `outer`; None is everything."""
    if outer is None or inner is None:
        return inner if outer is None else outer
    product: FloatArray = outer @ inner
    return product
