"""Tessellated kernels: the kernel set and its binding to training rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from tessella import _core
from tessella.backend import KernelOnDemand, ProductForm, effective_threads
from tessella.backend._lazy import cached_property
from tessella.cones import PSD, Face, Factors, is_factor, symmetric_factors
from tessella.kernels._base import (
    BoundKernelSet,
    BoundMatrixSet,
    FloatArray,
    KernelSet,
    KernelWorkspace,
    ThinRows,
    as_dual_vector,
    as_rows,
    checked_parameter,
    parameter_factors,
    suitable_form,
    within,
)
from tessella.kernels._floor import checked_floor, raised, raised_parameter
from tessella.kernels._monomials import checked_degree, count_monomials, exponent_bytes
from tessella.kernels._predictor import Predictor
from tessella.kernels._row_span import RowSpan, span_side
from tessella.kernels._tessellated_basis import Basis, Side, columns_of
from tessella.kernels._tessellated_moments import TessellatedMoments
from tessella.kernels._tessellated_pair import (
    ProductPair,
    TessellatedMatrixPredictor,
    TessellatedPredictor,
    push,
)

_MEAN_ROWS = 128  # whose means are subtracted from the kernel matrix of an SVM


@dataclass
class TessellatedKernels(KernelSet):
    """Tessellated kernels, a tractable family that is dense in all kernels.

    A kernel of the family is universal if P ≻ 0.

    Parameters
    ----------
    degree : int, default=1
        Largest total degree d of the monomials.
    delta : float or array-like of shape (n_features,), default=0.5
        Margin of the integration box beyond the unit cube that holds the training data, for all
        features or for each feature that is not constant. The kernel depends less on a feature
        with a larger margin.
    monomials : {"x", "xz"}, default="x"
        Variables of the monomials. "x" uses powers of x only, as in the paper's experiments, with
        ``n_params = 2 C(n + d, d)``. "xz" uses powers of x and z, which is the full family of the
        paper's text, with ``n_params = 2 C(2n + d, d)``.
    balance : {"none", "unit", "pointwise"} or array-like of shape (n_params,), default="none"
        How the basis functions share the trace of P. "none" is the paper's family, in which the
        tessellated half fades as features are added. "unit" divides each basis function by its
        root mean square on the training data. "pointwise" divides each half of N by its norm at
        x, which turns the max-product part into ``prod sqrt((b - max) / (b - min))``, a bounded,
        Laplace-like kernel for any number of features. An array gives the factors themselves.
        Each is a family of its own, and the certificate is for the family chosen.
    out_of_box : {"extrapolate", "clip", "error"}, default="extrapolate"
        Treatment of points beyond the integration box. "extrapolate" integrates exactly, so that
        the kernel continues as a polynomial of degree d. "clip" moves the point to the box, so
        that the kernel is constant outside. "error" raises a ValueError.
    floor : float, default=0.0
        Share τ of the identity in P, between 0 and 1: what is learned is ``τ I + (1 - τ) P'`` with
        P' positive semidefinite of the usual trace, by the same convex problem with the same
        certificate. A learned P has rank one or two without a floor; with a positive one every
        kernel is universal. With 1 nothing is learned and the kernel is the plain kernel of the
        family, that of P = I.

    Notes
    -----
    Integrals are divided by the volume of the box, factor by factor, so no entry overflows and
    `C` keeps its meaning if `delta` or the number of features changes.

    Nothing of size m² is held: the max-product matrix is computed in registers wherever it is
    needed, which is faster than reading it from memory. For ``monomials="x"`` a kernel matrix for
    P of rank r costs O(m² (n + r)) and a gradient O(m · support · (n + n_params)). For ``"xz"``
    both cost C(n + 2d, 2d) times more.

    Examples
    --------
    >>> import numpy as np
    >>> from tessella.kernels import TessellatedKernels
    >>> kernels = TessellatedKernels(degree=1, delta=0.5)
    >>> kernels.count_params(n_features=2)
    6
    >>> bound = kernels.bind([[0.0, 0.0], [1.0, 1.0], [0.2, 0.9]])
    >>> K = bound.gram(np.eye(6))
    >>> w = np.array([1.0, -2.0, 1.0])
    >>> bool(np.isclose(np.trace(bound.gradient(w)), w @ K @ w))
    True
    """

    degree: int = 1
    delta: Any = 0.5
    monomials: str = "x"
    balance: Any = "none"
    out_of_box: str = "extrapolate"
    floor: float = 0.0

    family: ClassVar[str | None] = "tessellated"

    @property
    def by_rows(self) -> bool:
        """See :attr:`KernelSet.by_rows`; only with powers of x alone and without a floor."""
        return self.monomials == "x" and not self.floor

    @property
    def margin(self) -> float:
        """See :attr:`KernelSet.margin`; the smallest margin of the integration box."""
        return float(np.min(self.delta))

    @property
    def outside_rule(self) -> str:
        """See :attr:`KernelSet.outside_rule`; the rule depends on `out_of_box`."""
        rule = {
            "extrapolate": f"the kernel goes on as a polynomial of degree {self.degree}",
            "clip": "points are moved to the edge, so the kernel stays constant",
            "error": "the kernel refuses points",
        }[self.out_of_box]
        return f"{rule} (out_of_box={self.out_of_box!r})"

    def count_params(self, n_features: int) -> int:
        """See :meth:`KernelSet.count_params`."""
        variables = n_features if self.monomials == "x" else 2 * n_features
        return 2 * count_monomials(variables, checked_degree(self.degree))

    def bind(
        self, X: ArrayLike, *, dtype: DTypeLike = np.float64, n_jobs: int | None = None
    ) -> BoundKernelSet:
        """See :meth:`KernelSet.bind`."""
        rows = as_rows(X)
        threads = effective_threads(n_jobs)
        plain = replace(self.resolve(rows), floor=0.0)
        side = Side(plain._basis(rows.shape[1]), rows)
        return raised(BoundTessellated(plain, rows, np.dtype(dtype), threads, side), self.floor)

    def bind_machines(
        self,
        X: FloatArray,
        rows: Sequence[NDArray[np.intp]],
        *,
        dtype: DTypeLike = np.float64,
        n_jobs: int | None = None,
        span: Any = None,
    ) -> BoundKernelSet:
        """See :meth:`KernelSet.bind_machines`; machines share what depends on a row alone."""
        from tessella.kernels._tessellated_machines import TessellatedMachines

        whole = self.bind_resolved(X, dtype=dtype, n_jobs=n_jobs)
        if isinstance(whole, BoundTessellated) and whole.n_powers == 1:
            return TessellatedMachines(whole if span is None else whole.in_span(span), rows)
        return super().bind_machines(X, rows, dtype=dtype, n_jobs=n_jobs, span=span)

    def with_floor(self, floor: float) -> TessellatedKernels:
        """See :meth:`KernelSet.with_floor`; the result has the parameter `floor`."""
        return replace(self, floor=floor)

    def resolve(self, X: ArrayLike, sample_weight: ArrayLike | None = None) -> TessellatedKernels:
        """See :meth:`KernelSet.resolve`; distinct rows count equally, whatever their weight."""
        del sample_weight
        if not (isinstance(self.balance, str) and self.balance == "unit"):
            return self
        plain, rows = replace(self, balance="none"), as_rows(X)
        side = Side(plain._basis(rows.shape[1]), rows)
        n_params = side.basis.n_params
        mean_square = np.empty(n_params)
        for k in range(n_params):
            unit = np.zeros((n_params, 1))
            unit[k] = 1.0
            mean_square[k] = side.diag(unit, unit).mean()
        # A basis function that vanishes on the data cannot be scaled, and need not be.
        positive = mean_square > np.finfo(float).tiny
        factors = 1.0 / np.sqrt(np.where(positive, mean_square, 1.0))
        return replace(self, balance=tuple(factors.tolist()))  # a tuple compares as a whole

    def memory_estimate(self, n_samples: int, n_features: int, itemsize: int) -> int:
        """See :meth:`KernelSet.memory_estimate`."""
        fixed = itemsize * n_samples**2 if self.floor else 0  # otherwise nothing of size m² is held
        half, degree = self.count_params(n_features) // 2, checked_degree(self.degree)
        if self.monomials == "x":
            groups, tables = 1, exponent_bytes(n_features, degree)
        else:
            groups = count_monomials(n_features, degree)
            tables = exponent_bytes(2 * n_features, degree) + _bytes_of_sums(n_features, degree)
            tables += 3 * 8 * 2 * n_features * half  # exponents, sorted and unsorted
        side = self.cone_on_rows(n_samples, n_features).side
        if side == 2 * half:
            return 8 * n_samples * (3 * n_features + 6 * groups * half) + tables + fixed
        # The monomials, their span and what its computation needs; the rest is as wide as the span.
        whole = 8 * n_samples * (3 * n_features + 2 * half) + 3 * 8 * half * (side // 2)
        return whole + tables

    def cross(
        self, X: ArrayLike, Y: ArrayLike, P: FloatArray, *, n_jobs: int | None = None
    ) -> FloatArray:
        """See :meth:`KernelSet.cross`."""
        pair = self._pair(X, Y, P)
        K = np.empty(pair.shape)
        pair.matrix(K, effective_threads(n_jobs))
        return K

    def predictor(self, P: FloatArray, Y: ArrayLike, coefficients: FloatArray) -> Predictor:
        """See :meth:`KernelSet.predictor`."""
        rows = as_rows(Y)
        basis = self._basis(rows.shape[1])
        factors = self._kernel_factors(P, basis.n_params)
        if coefficients.shape[1] == 1:
            return TessellatedPredictor(basis, factors, rows, coefficients[:, 0])
        return TessellatedMatrixPredictor(basis, factors, rows, coefficients)

    def diag(self, X: ArrayLike, P: FloatArray) -> FloatArray:
        """See :meth:`KernelSet.diag`."""
        rows = as_rows(X)
        basis = self._basis(rows.shape[1])
        return Side(basis, rows).diag(*self._kernel_factors(P, basis.n_params))

    def _kernel_factors(self, P: FloatArray, n_params: int) -> Factors:
        """Return thin factors of a checked parameter with the floor, if there is one."""
        if not self.floor:
            return parameter_factors(P, n_params)
        free = checked_parameter(P @ P.T if is_factor(P) else P, n_params)
        return symmetric_factors(raised_parameter(free, PSD(n_params), checked_floor(self.floor)))

    def cone_on_rows(self, n_rows: int, n_features: int) -> PSD:
        """See :meth:`KernelSet.cone_on_rows`.

        A floor is a multiple of the identity, which is no thin product, and powers of z leave
        little of P to save. Both are learned as they are.
        """
        n_params = self.count_params(n_features)
        if self.floor or self.monomials != "x":
            return PSD(n_params)
        side = span_side(n_params, 2 * min(n_rows, n_params // 2))
        return PSD(n_params if side is None else side, n_params)

    def row_span(self, X: ArrayLike) -> RowSpan | None:
        """See :meth:`KernelSet.row_span`; it is the span of the monomials, for both halves of N.

        The factors of rows of ``balance="pointwise"`` do not change the span. The factors of basis
        functions of the other balances do, so that each half has its own span.
        """
        rows = as_rows(X)
        cone = self.cone_on_rows(*rows.shape)
        if cone.side == cone.total:
            return None
        basis = self._basis(rows.shape[1])
        return RowSpan.of_rows(basis.halves(Side(basis, rows).zeta_low), 2)

    def _basis(self, n_features: int) -> Basis:
        params = {name: value for name, value in self.get_params().items() if name != "floor"}
        return Basis(n_features=n_features, **params)

    def _pair(self, X: ArrayLike, Y: ArrayLike, P: FloatArray) -> ProductPair:
        X_rows, Y_rows = as_rows(X), as_rows(Y)
        if X_rows.shape[1] != Y_rows.shape[1]:
            raise ValueError(f"X has {X_rows.shape[1]} features and Y has {Y_rows.shape[1]}.")
        basis = self._basis(X_rows.shape[1])
        factors = self._kernel_factors(P, basis.n_params)
        return ProductPair((Side(basis, X_rows), Side(basis, Y_rows)), *factors)


def _bytes_of_sums(n_features: int, degree: int) -> int:
    """Return the bytes of all sums of two powers of z, which are kept as tuples, and of pairs."""
    sums = count_monomials(n_features, 2 * degree)
    return (8 * n_features + 64) * sums + 80 * count_monomials(n_features, degree) ** 2


class BoundTessellated(BoundMatrixSet):
    """:class:`TessellatedKernels` on training rows.

    Parameters
    ----------
    kernels : TessellatedKernels
        The kernel set.
    X : ndarray of shape (m, n)
        Training rows.
    dtype : dtype
        Data type of kernel matrices.
    threads : int
        Number of threads.
    side : Side
        The rows as an argument of the kernels, in coordinates of the parameter.
    span : RowSpan, optional
        Span of rows that contains the parameter.
    face : ndarray, optional
        Face that contains the parameter, in coordinates of the span.
    """

    def __init__(
        self,
        kernels: TessellatedKernels,
        X: FloatArray,
        dtype: np.dtype[Any],
        threads: int,
        side: Side,
        span: RowSpan | None = None,
        face: FloatArray | None = None,
    ) -> None:
        self.kernels: TessellatedKernels = kernels
        self.dtype = dtype
        self._X = X
        self.threads = threads
        self.side, self._span, self._face = side, span, face
        self.n_samples = len(X)
        self.cone = PSD(side.basis.n_params, kernels.count_params(X.shape[1]))

    @property
    def n_powers(self) -> int:
        """Number of distinct powers of z, one if the monomials are those of x alone."""
        return len(self.side.basis.groups)

    def factor_gram(
        self, factors: Factors, centred: bool, out: NDArray[Any] | None
    ) -> NDArray[Any]:
        """See :meth:`BoundKernelSet.factor_gram`."""
        pair = ProductPair((self.side, self.side), *factors)
        if centred:
            means = self._mean_moments.factor_scores(factors)
            pair.subtract_means(means, float(means.mean()))
        K = np.empty(pair.shape, self.dtype) if out is None else out
        pair.matrix(K, self.threads)
        return K

    def product_form(self, factors: Factors, *, centred: bool = False) -> ProductForm | None:
        """See :meth:`BoundKernelSet.product_form`.

        The means that are subtracted are those of some rows.
        """
        if self.n_powers > 1:
            return None
        pair = ProductPair((self.side, self.side), *factors)
        if centred:
            weights, moments = self._rough_means
            means = moments.factor_scores(factors)
            pair.subtract_means(means, float(weights @ means))
        return pair.form

    def svm_kernel(
        self, factors: Factors, workspace: KernelWorkspace
    ) -> NDArray[Any] | KernelOnDemand:
        """See :meth:`BoundKernelSet.svm_kernel`."""
        form = self.product_form(factors, centred=True)
        if form is None:
            return super().svm_kernel(factors, workspace)
        return suitable_form(form, workspace, self.threads)

    def thin_rows(self) -> ThinRows | None:
        """See :meth:`BoundKernelSet.thin_rows`."""
        if self.n_powers > 1:
            return None
        products = np.empty((self.n_samples, self.n_samples))
        _core.max_product(self.side.room, self.side.room, products, self.threads)
        box = float(self.side.basis.box_moments[0, 0])
        return ThinRows(products, self.side.moment_ratio, box)

    @cached_property
    def _mean_moments(self) -> TessellatedMoments:
        return self.moments(np.full(self.n_samples, 1.0 / self.n_samples))

    @cached_property
    def _rough_means(self) -> tuple[FloatArray, TessellatedMoments]:
        """Equal weights of some rows that add up to one, and their moments.

        Any such weights give the same machine, and some rows are enough to find what the entries
        of a kernel matrix have in common.
        """
        count = min(self.n_samples, _MEAN_ROWS)
        weights = np.zeros(self.n_samples)
        weights[np.arange(count) * self.n_samples // count] = 1.0 / count
        return weights, self.moments(weights)

    def moments(self, w: ArrayLike) -> TessellatedMoments:
        """See :meth:`BoundKernelSet.moments`."""
        dual = as_dual_vector(w, self.n_samples)
        side, basis = self.side, self.side.basis
        weighted = side.zeta_high * dual[:, None]
        parts = [(columns_of(weighted, group), group) for group in basis.high_groups]
        pushed = push(side, side, parts, weighted.shape[1], self.threads)
        return TessellatedMoments(side, dual, pushed)

    def in_span(self, span: RowSpan) -> BoundTessellated:
        """See :meth:`BoundKernelSet.in_span`."""
        side = self.side.on_rows(span)
        return BoundTessellated(self.kernels, self._X, self.dtype, self.threads, side, span)

    def restrict(self, rows: NDArray[np.intp], face: Face = None) -> BoundTessellated:
        """See :meth:`BoundKernelSet.restrict`."""
        side = self.side.take(rows)
        return BoundTessellated(
            self.kernels,
            self._X[rows],
            np.dtype(np.float64),
            self.threads,
            side if face is None else side.within(face),
            self._span,
            within(self._face, face),
        )

    def diag(self, P: FloatArray) -> FloatArray:
        """See :meth:`BoundKernelSet.diag`."""
        if is_factor(P) or self.n_powers > 1:
            return self.side.diag(*parameter_factors(P, self.n_params))
        return self.side.matrix_diag(checked_parameter(P, self.n_params))

    def cross(self, X_new: FloatArray, P: FloatArray) -> FloatArray:
        """See :meth:`BoundKernelSet.cross`."""
        side = Side(self.kernels._basis(self._X.shape[1]), as_rows(X_new))
        side = side if self._span is None else side.on_rows(self._span)
        side = side if self._face is None else side.within(self._face)
        pair = ProductPair((side, self.side), *parameter_factors(P, self.n_params))
        K = np.empty(pair.shape)
        pair.matrix(K, self.threads)
        return K
