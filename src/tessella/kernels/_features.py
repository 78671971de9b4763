"""Kernel sets with finitely many nodes: k(x, y) = Σ_t ω_t N_t(x)ᵀ P N_t(y)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from tessella.backend import ProductForm
from tessella.cones import PSD, Face, Factors, Sensitivities
from tessella.kernels._base import (
    BoundMatrixSet,
    FloatArray,
    KernelSet,
    MatrixMoments,
    Moments,
    as_dual_vector,
    as_rows,
    checked_parameter,
    parameter_factors,
    within,
)
from tessella.kernels._predictor import Predictor, row_tiles
from tessella.kernels._row_span import RowSpan, span_side
from tessella.kernels._sensitivity import DenseSensitivities

_GRAM_ROWS = 1024


class FiniteKernelSet(KernelSet):
    """Base class of kernel sets with finitely many nodes, k(x, y) = Σ_t ω_t N_t(x)ᵀ P N_t(y).

    A subclass is a dataclass that defines :meth:`features`, :meth:`count_nodes` and
    :meth:`count_params`. Everything else follows from these methods.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> import numpy as np
    >>> from tessella.kernels import FiniteKernelSet
    >>> @dataclass
    ... class Waves(FiniteKernelSet):
    ...     frequency: float = 1.0
    ...
    ...     def count_params(self, n_features):
    ...         return 2 * n_features
    ...
    ...     def count_nodes(self, n_features):
    ...         return 1
    ...
    ...     def features(self, X):
    ...         phase = np.pi * self.frequency * X
    ...         return np.hstack([np.cos(phase), np.sin(phase)])[:, None, :]
    >>> Waves().bind(np.array([[0.0], [0.5], [1.0]])).gram(np.eye(2)).round(2).tolist()
    [[1.0, 0.0, -1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 1.0]]
    """

    @property
    def by_rows(self) -> bool:
        """See :attr:`KernelSet.by_rows`; always True."""
        return True

    def features(self, X: FloatArray) -> FloatArray:
        """Compute ``√ω_t N_t(x)`` for each row and each node.

        Parameters
        ----------
        X : ndarray of shape (m, n_features)
            Rows in the scale of the unit cube.

        Returns
        -------
        ndarray of shape (m, n_nodes, n_params)
            Features of each row.
        """
        raise NotImplementedError

    def count_nodes(self, n_features: int) -> int:
        """Return the number of nodes for data with `n_features` columns."""
        raise NotImplementedError

    def bind(
        self, X: ArrayLike, *, dtype: DTypeLike = np.float64, n_jobs: int | None = None
    ) -> BoundFeatures:
        """See :meth:`KernelSet.bind`; `n_jobs` has no effect, because BLAS does the work."""
        del n_jobs
        return BoundFeatures(self, as_rows(X), dtype)

    def memory_estimate(self, n_samples: int, n_features: int, itemsize: int) -> int:
        """See :meth:`KernelSet.memory_estimate`."""
        del itemsize  # the features stay in float64
        n_params, cone = self.count_params(n_features), self.cone_on_rows(n_samples, n_features)
        span = 4 * 8 * cone.side * n_params if cone.side < n_params else 0
        return 8 * n_samples * self.count_nodes(n_features) * n_params + span

    def cross(
        self, X: ArrayLike, Y: ArrayLike, P: FloatArray, *, n_jobs: int | None = None
    ) -> FloatArray:
        """See :meth:`KernelSet.cross`."""
        del n_jobs  # BLAS chooses its own threads
        return self._cross(X, Y, *parameter_factors(P, len(P)))

    def _cross(self, X: ArrayLike, Y: ArrayLike, left: FloatArray, right: FloatArray) -> FloatArray:
        """Return the kernel matrix between two sets of rows for P = left · rightᵀ."""
        ours, theirs = self.features(as_rows(X)), self.features(as_rows(Y))
        K: FloatArray = _flat(ours, left) @ _flat(theirs, right).T
        return K

    def cone_on_rows(self, n_rows: int, n_features: int) -> PSD:
        """See :meth:`KernelSet.cone_on_rows`."""
        n_params = self.count_params(n_features)
        side = span_side(n_params, n_rows * self.count_nodes(n_features))
        return PSD(n_params if side is None else side, n_params)

    def row_span(self, X: ArrayLike) -> RowSpan | None:
        """See :meth:`KernelSet.row_span`; it is the span of the features of all nodes."""
        rows = as_rows(X)
        cone = self.cone_on_rows(*rows.shape)
        if cone.side == cone.total:
            return None
        return RowSpan.of_rows([self.features(rows).reshape(cone.side, -1)], 1)

    def predictor(self, P: FloatArray, Y: ArrayLike, coefficients: FloatArray) -> FeaturePredictor:
        """See :meth:`KernelSet.predictor`."""
        return FeaturePredictor(self, P, as_rows(Y), coefficients)

    def diag(self, X: ArrayLike, P: FloatArray) -> FloatArray:
        """See :meth:`KernelSet.diag`."""
        phi = self.features(as_rows(X))
        left, right = parameter_factors(P, len(P))
        result: FloatArray = np.einsum("ktr,ktr->k", phi @ left, phi @ right)
        return result


class FeaturePredictor(Predictor):
    """Predictions as products of features with one weight for each node and basis function.

    The weights contain the support vectors, so the cost of a prediction does not depend on the
    number of support vectors.
    """

    def __init__(
        self, kernels: FiniteKernelSet, P: FloatArray, Y: FloatArray, coefficients: FloatArray
    ) -> None:
        self._kernels = kernels
        phi = kernels.features(Y)
        left, right = parameter_factors(P, len(P))
        self._weights = [np.einsum("k,ktp->tp", w, phi) @ left @ right.T for w in coefficients.T]
        self._row_size = phi.shape[1] * phi.shape[2]
        self.products_per_row = 0  # einsum does not call BLAS here

    def scores(self, X: ArrayLike, *, n_jobs: int | None = None) -> FloatArray:
        """See :meth:`Predictor.scores`."""
        del n_jobs
        rows = as_rows(X)
        result = np.empty((len(rows), len(self._weights)))
        for tile in row_tiles(len(rows), self._row_size):
            phi = self._kernels.features(rows[tile])
            for column, weight in enumerate(self._weights):
                result[tile, column] = np.einsum("ktp,tp->k", phi, weight)
        return result


def _flat(phi: FloatArray, factor: FloatArray) -> FloatArray:
    """Return features times a factor of P, of shape (m, nodes * r)."""
    flat: FloatArray = (phi @ factor).reshape(len(phi), phi.shape[1] * factor.shape[1])
    return flat


class BoundFeatures(BoundMatrixSet):
    """A :class:`FiniteKernelSet` on training rows, with their features in memory."""

    def __init__(
        self,
        kernels: FiniteKernelSet,
        X: FloatArray,
        dtype: DTypeLike,
        span: FloatArray | None = None,
    ) -> None:
        self.kernels: FiniteKernelSet = kernels
        self._X = X
        self._span = span
        self.dtype = np.dtype(dtype)
        self._phi = kernels.features(X) if span is None else kernels.features(X) @ span
        self.n_samples, _, side = self._phi.shape
        self.cone = PSD(side, kernels.count_params(X.shape[1]))

    def factor_gram(
        self, factors: Factors, centred: bool, out: NDArray[Any] | None
    ) -> NDArray[Any]:
        """See :meth:`BoundKernelSet.factor_gram`."""
        left, right = factors
        phi_left, phi_right = _flat(self._phi, left), _flat(self._phi, right)
        if centred:
            phi_left -= phi_left.mean(axis=0)
            phi_right -= phi_right.mean(axis=0)
        K = np.empty((self.n_samples, self.n_samples), self.dtype) if out is None else out
        for start in range(0, self.n_samples, _GRAM_ROWS):
            rows = slice(start, start + _GRAM_ROWS)
            K[rows, start:] = phi_left[rows] @ phi_right[start:].T
            # The two triangles are equal up to rounding, and solvers need exact symmetry.
            K[start:, rows] = K[rows, start:].T
            corner = K[rows, rows]
            corner[...] = 0.5 * (corner + corner.T)
        return K

    def product_form(self, factors: Factors, *, centred: bool = False) -> ProductForm:
        """See :meth:`BoundKernelSet.product_form`."""
        phi = _flat(self._phi, factors[0])
        if centred:
            phi -= phi.mean(axis=0)
        none = np.empty((self.n_samples, 0))
        return ProductForm(none, none, 0.5 * phi, phi)

    def moments(self, w: ArrayLike) -> Moments:
        """See :meth:`BoundKernelSet.moments`."""
        return _FeatureMoments(self._phi, as_dual_vector(w, self.n_samples))

    def restrict(self, rows: NDArray[np.intp], face: Face = None) -> BoundFeatures:
        """See :meth:`BoundKernelSet.restrict`."""
        return BoundFeatures(self.kernels, self._X[rows], np.float64, within(self._span, face))

    def in_span(self, span: RowSpan) -> BoundFeatures:
        """See :meth:`BoundKernelSet.in_span`."""
        return BoundFeatures(self.kernels, self._X, self.dtype, span.blocks[0])

    def diag(self, P: FloatArray) -> FloatArray:
        """See :meth:`BoundKernelSet.diag`."""
        P = checked_parameter(P, self.n_params)
        result: FloatArray = np.einsum("ktp,ktp->k", self._phi @ P, self._phi)
        return result

    def cross(self, X_new: FloatArray, P: FloatArray) -> FloatArray:
        """See :meth:`BoundKernelSet.cross`."""
        factors = parameter_factors(P, self.n_params)
        left, right = (U if self._span is None else self._span @ U for U in factors)
        return self.kernels._cross(X_new, self._X, left, right)


class _FeatureMoments(MatrixMoments):
    def __init__(self, phi: FloatArray, w: FloatArray) -> None:
        self._phi = phi
        self._sums = np.einsum("k,ktp->tp", w, phi)

    @property
    def gradient(self) -> FloatArray:
        D: FloatArray = self._sums.T @ self._sums
        return D

    def scores(self, P: FloatArray) -> FloatArray:
        result: FloatArray = np.einsum("ktp,tp->k", self._phi, self._sums @ P)
        return result

    def sensitivities(self, face: Face, rows: NDArray[np.intp]) -> Sensitivities:
        ours, theirs = self._phi[rows], self._sums
        if face is not None:
            ours, theirs = ours @ face, theirs @ face
        return DenseSensitivities(np.einsum("kti,tj->kij", ours, theirs))
