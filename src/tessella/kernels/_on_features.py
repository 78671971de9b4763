"""Kernel sets on some columns of the data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from tessella.cones import Cone, Face, Factors, Point
from tessella.kernels._base import (
    BoundKernelSet,
    FloatArray,
    KernelSet,
    KernelWorkspace,
    Moments,
    as_rows,
)
from tessella.kernels._functions import checked_features
from tessella.kernels._predictor import ColumnPredictor


@dataclass
class KernelsOnFeatures(KernelSet):
    """A kernel set that sees only some columns of the data.

    ``kernels.on_features(...)`` returns such a set.

    Parameters
    ----------
    kernels : KernelSet
        Kernel set that is applied to the columns.
    features : tuple of int
        Numbers of the columns that `kernels` sees, in this order.

    Examples
    --------
    The sum of a family for each of two groups of features has one certificate:

    >>> from tessella.kernels import TessellatedKernels
    >>> groups = TessellatedKernels().on_features([0, 1]) + TessellatedKernels().on_features([2])
    >>> groups.cone(3)
    ProductCone([PSD(6), PSD(4)])
    """

    kernels: KernelSet
    features: tuple[int, ...]

    family: ClassVar[str | None] = "on features"

    def __post_init__(self) -> None:
        if not isinstance(self.kernels, KernelSet):
            raise TypeError(f"kernels={self.kernels!r} must be a kernel set.")
        if checked_features(self.features) != tuple(self.features):
            raise ValueError(f"features={self.features!r} must be column numbers >= 0.")

    @property
    def by_rows(self) -> bool:
        """See :attr:`KernelSet.by_rows`."""
        return self.kernels.by_rows

    @property
    def wants_raw_features(self) -> bool:
        """See :attr:`KernelSet.wants_raw_features`."""
        return self.kernels.wants_raw_features

    @property
    def names_features(self) -> bool:
        """See :attr:`KernelSet.names_features`; always True."""
        return True

    @property
    def margin(self) -> float:
        """See :attr:`KernelSet.margin`."""
        return self.kernels.margin

    @property
    def outside_rule(self) -> str:
        """See :attr:`KernelSet.outside_rule`."""
        return self.kernels.outside_rule

    def cone(self, n_features: int) -> Cone:
        """See :meth:`KernelSet.cone`."""
        del n_features
        return self.kernels.cone(len(self.features))

    def cone_on_rows(self, n_rows: int, n_features: int) -> Cone:
        """See :meth:`KernelSet.cone_on_rows`."""
        del n_features
        return self.kernels.cone_on_rows(n_rows, len(self.features))

    def row_span(self, X: ArrayLike) -> Any:
        """See :meth:`KernelSet.row_span`."""
        return self.kernels.row_span(self.seen(X))

    def count_params(self, n_features: int) -> int:
        """See :meth:`KernelSet.count_params`."""
        del n_features
        return self.kernels.count_params(len(self.features))

    def seen(self, X: ArrayLike) -> FloatArray:
        """Return the columns of X that the set sees."""
        rows = as_rows(X)
        if max(self.features) >= rows.shape[1]:
            raise ValueError(
                f"The kernel set looks at feature {max(self.features)} and the data has "
                f"{rows.shape[1]} features, numbered from 0."
            )
        return np.ascontiguousarray(rows[:, list(self.features)])

    def resolve(self, X: ArrayLike, sample_weight: ArrayLike | None = None) -> KernelsOnFeatures:
        """See :meth:`KernelSet.resolve`; columns that do not vary are left out."""
        rows = self.seen(X)
        varying = np.flatnonzero(np.ptp(rows, axis=0) > 0)
        if not len(varying):
            raise ValueError(f"The features {self.features} are constant in the training data.")
        if self.kernels.names_features or len(varying) == len(self.features):
            return KernelsOnFeatures(self.kernels.resolve(rows, sample_weight), self.features)
        left = tuple(self.features[k] for k in varying)
        return KernelsOnFeatures(self.kernels.resolve(rows[:, varying], sample_weight), left)

    def bind(
        self, X: ArrayLike, *, dtype: DTypeLike = np.float64, n_jobs: int | None = None
    ) -> BoundOnFeatures:
        """See :meth:`KernelSet.bind`."""
        return self.resolve(X).bind_resolved(X, dtype=dtype, n_jobs=n_jobs)

    def bind_resolved(
        self, X: ArrayLike, *, dtype: DTypeLike = np.float64, n_jobs: int | None = None
    ) -> BoundOnFeatures:
        """See :meth:`KernelSet.bind_resolved`."""
        inner = self.kernels.bind_resolved(self.seen(X), dtype=dtype, n_jobs=n_jobs)
        return BoundOnFeatures(inner, self.features)

    def memory_estimate(self, n_samples: int, n_features: int, itemsize: int) -> int:
        """See :meth:`KernelSet.memory_estimate`."""
        del n_features
        return self.kernels.memory_estimate(n_samples, len(self.features), itemsize)

    def cross(self, X: ArrayLike, Y: ArrayLike, P: Any, *, n_jobs: int | None = None) -> FloatArray:
        """See :meth:`KernelSet.cross`."""
        return self.kernels.cross(self.seen(X), self.seen(Y), P, n_jobs=n_jobs)

    def predictor(self, P: Any, Y: ArrayLike, coefficients: FloatArray) -> ColumnPredictor:
        """See :meth:`KernelSet.predictor`."""
        inner = self.kernels.predictor(P, self.seen(Y), coefficients)
        return ColumnPredictor(inner, self.features)

    def diag(self, X: ArrayLike, P: Any) -> FloatArray:
        """See :meth:`KernelSet.diag`."""
        return self.kernels.diag(self.seen(X), P)


class BoundOnFeatures(BoundKernelSet):
    """A bound kernel set that sees only some columns of new rows.

    Parameters
    ----------
    inner : BoundKernelSet
        Kernel set, bound to the columns that it sees.
    features : tuple of int
        Numbers of the columns that the set sees.
    """

    kernels: KernelsOnFeatures

    def __init__(self, inner: BoundKernelSet, features: tuple[int, ...]) -> None:
        self._inner = inner
        self._features = features
        self.kernels = KernelsOnFeatures(inner.kernels, features)
        self.n_samples, self.dtype, self.cone = inner.n_samples, inner.dtype, inner.cone

    def kernel_parameter(self, P: Point) -> Point:
        """See :meth:`BoundKernelSet.kernel_parameter`."""
        return self._inner.kernel_parameter(P)

    def free_parameter(self, P: Point) -> Point:
        """See :meth:`BoundKernelSet.free_parameter`."""
        return self._inner.free_parameter(P)

    def factor_gram(
        self, factors: Factors, centred: bool, out: NDArray[Any] | None
    ) -> NDArray[Any]:
        """See :meth:`BoundKernelSet.factor_gram`."""
        return self._inner.factor_gram(factors, centred, out)

    def svm_kernel(self, factors: Factors, workspace: KernelWorkspace) -> Any:
        """See :meth:`BoundKernelSet.svm_kernel`."""
        return self._inner.svm_kernel(factors, workspace)

    def product_form(self, factors: Factors, *, centred: bool = False) -> Any:
        """See :meth:`BoundKernelSet.product_form`."""
        return self._inner.product_form(factors, centred=centred)

    def moments(self, w: ArrayLike) -> Moments:
        """See :meth:`BoundKernelSet.moments`."""
        return self._inner.moments(w)

    def restrict(self, rows: NDArray[np.intp], face: Face = None) -> BoundOnFeatures:
        """See :meth:`BoundKernelSet.restrict`."""
        return BoundOnFeatures(self._inner.restrict(rows, face), self._features)

    def in_span(self, span: Any) -> BoundOnFeatures:
        """See :meth:`BoundKernelSet.in_span`."""
        return BoundOnFeatures(self._inner.in_span(span), self._features)

    def subset(self, rows: NDArray[np.intp]) -> BoundOnFeatures:
        """See :meth:`BoundKernelSet.subset`."""
        return BoundOnFeatures(self._inner.subset(rows), self._features)

    def diag(self, P: Point) -> FloatArray:
        """See :meth:`BoundKernelSet.diag`."""
        return self._inner.diag(P)

    def cross(self, X_new: FloatArray, P: Point) -> FloatArray:
        """See :meth:`BoundKernelSet.cross`."""
        return self._inner.cross(self.kernels.seen(X_new), P)
