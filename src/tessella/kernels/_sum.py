"""Sums of kernel sets: learned convex combinations of one kernel from each set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from tessella.backend._lazy import cached_property
from tessella.cones import (
    Blocks,
    Cone,
    Face,
    Factors,
    ProductCone,
    Sensitivities,
    SumOfSensitivities,
)
from tessella.kernels._base import (
    BoundKernelSet,
    FloatArray,
    KernelSet,
    Moments,
    as_dual_vector,
    as_rows,
)
from tessella.kernels._predictor import SumPredictor
from tessella.kernels._row_span import SumSpan


@dataclass
class KernelSum(KernelSet):
    """The sum of several kernel sets, such as ``a + b``.

    Its kernels are all convex combinations ``Σ_b θ_b k_b`` of a kernel k_b of each set. The shares
    θ and the kernels are learned together, by one convex problem with one certificate. The
    parameter is a :class:`~tessella.cones.Blocks` with the parameter of each set, and the trace
    of a block is the share of its set.

    Parameters
    ----------
    parts : tuple of KernelSet
        Kernel sets of the sum, at least two.

    Examples
    --------
    >>> from tessella.kernels import Gaussian, KernelDictionary, TessellatedKernels
    >>> both = TessellatedKernels(delta=0.5) + KernelDictionary([Gaussian(1.0), Gaussian(4.0)])
    >>> both.cone(3)
    ProductCone([PSD(8), Nonnegative(2)])
    """

    parts: tuple[KernelSet, ...]

    family: ClassVar[str | None] = "sum"

    def __post_init__(self) -> None:
        if len(self.parts) < 2 or not all(isinstance(part, KernelSet) for part in self.parts):
            raise TypeError(f"parts={self.parts!r} must be at least two kernel sets.")

    @classmethod
    def of(cls, *sets: KernelSet) -> KernelSum:
        """Return the sum of kernel sets; sets that are sums are replaced by their parts."""
        parts = [part for own in sets for part in (own.parts if isinstance(own, cls) else (own,))]
        return cls(tuple(parts))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return hyperparameters by name; those of part 0 have names such as ``"0__delta"``."""
        params: dict[str, Any] = {"parts": self.parts}
        if deep:
            for number, part in enumerate(self.parts):
                own = part.get_params(deep=True)
                params |= {f"{number}__{name}": value for name, value in own.items()}
        return params

    def set_params(self, **params: Any) -> Self:
        """Set hyperparameters by name; those of part 0 have names such as ``"0__delta"``."""
        known = self.get_params()
        for name, value in params.items():
            if name not in known:
                raise ValueError(f"KernelSum has no parameter {name!r}; it has {sorted(known)}.")
            number, _, inner = name.partition("__")
            if inner:
                self.parts[int(number)].set_params(**{inner: value})
            else:
                self.parts = value
        return self

    @property
    def wants_raw_features(self) -> bool:
        """See :attr:`KernelSet.wants_raw_features`."""
        return all(part.wants_raw_features for part in self.parts)

    @property
    def names_features(self) -> bool:
        """See :attr:`KernelSet.names_features`."""
        return any(part.names_features for part in self.parts)

    @property
    def margin(self) -> float:
        """See :attr:`KernelSet.margin`; the result is the smallest margin of the parts."""
        return min(part.margin for part in self.parts)

    @property
    def outside_rule(self) -> str:
        """See :attr:`KernelSet.outside_rule`; the part with the smallest margin decides."""
        return min(self.parts, key=lambda part: part.margin).outside_rule

    def cone(self, n_features: int) -> Cone:
        """See :meth:`KernelSet.cone`."""
        return ProductCone([part.cone(n_features) for part in self.parts])

    def cone_on_rows(self, n_rows: int, n_features: int) -> Cone:
        """See :meth:`KernelSet.cone_on_rows`."""
        return ProductCone([part.cone_on_rows(n_rows, n_features) for part in self.parts])

    def row_span(self, X: ArrayLike) -> SumSpan | None:
        """See :meth:`KernelSet.row_span`."""
        spans = [part.row_span(X) for part in self.parts]
        return None if all(span is None for span in spans) else SumSpan(spans)

    def resolve(self, X: ArrayLike, sample_weight: ArrayLike | None = None) -> KernelSum:
        """See :meth:`KernelSet.resolve`.

        A part that does not name features itself is restricted to the columns that vary, because a
        constant column carries no information but would shrink a tessellated kernel.
        """
        rows = as_rows(X)
        varying = np.flatnonzero(np.ptp(rows, axis=0) > 0)
        some_constant = len(varying) < rows.shape[1]
        parts = [
            part.on_features(varying) if some_constant and not part.names_features else part
            for part in self.parts
        ]
        return KernelSum(tuple(part.resolve(rows, sample_weight) for part in parts))

    def bind(
        self, X: ArrayLike, *, dtype: DTypeLike = np.float64, n_jobs: int | None = None
    ) -> BoundSum:
        """See :meth:`KernelSet.bind`."""
        return self.resolve(X).bind_resolved(X, dtype=dtype, n_jobs=n_jobs)

    def bind_resolved(
        self, X: ArrayLike, *, dtype: DTypeLike = np.float64, n_jobs: int | None = None
    ) -> BoundSum:
        """See :meth:`KernelSet.bind_resolved`."""
        rows = as_rows(X)
        parts = [part.bind_resolved(rows, dtype=dtype, n_jobs=n_jobs) for part in self.parts]
        return BoundSum(parts)

    def memory_estimate(self, n_samples: int, n_features: int, itemsize: int) -> int:
        """See :meth:`KernelSet.memory_estimate`; adding up the parts needs a second matrix."""
        parts = (part.memory_estimate(n_samples, n_features, itemsize) for part in self.parts)
        return sum(parts) + itemsize * n_samples**2

    def cross(self, X: ArrayLike, Y: ArrayLike, P: Any, *, n_jobs: int | None = None) -> FloatArray:
        """See :meth:`KernelSet.cross`."""
        parts = zip(self.parts, P, strict=True)
        return reduce(add, (part.cross(X, Y, own, n_jobs=n_jobs) for part, own in parts))

    def predictor(self, P: Any, Y: ArrayLike, coefficients: FloatArray) -> SumPredictor:
        """See :meth:`KernelSet.predictor`."""
        parts = zip(self.parts, P, strict=True)
        return SumPredictor([part.predictor(own, Y, coefficients) for part, own in parts])

    def diag(self, X: ArrayLike, P: Any) -> FloatArray:
        """See :meth:`KernelSet.diag`."""
        return reduce(add, (part.diag(X, own) for part, own in zip(self.parts, P, strict=True)))


class BoundSum(BoundKernelSet):
    """A :class:`KernelSum` on training rows.

    Parameters
    ----------
    parts : sequence of BoundKernelSet
        Parts of the sum, bound to the same rows.
    """

    def __init__(self, parts: Sequence[BoundKernelSet]) -> None:
        self.parts = tuple(parts)
        first = self.parts[0]
        self.kernels = KernelSum(tuple(part.kernels for part in self.parts))
        self.n_samples, self.dtype = first.n_samples, first.dtype
        self.cone = ProductCone([part.cone for part in self.parts])

    def kernel_parameter(self, P: Blocks) -> Blocks:
        """See :meth:`BoundKernelSet.kernel_parameter`; the floor of a part is within its share."""
        own = zip(self.parts, P, strict=True)
        return Blocks(part.kernel_parameter(block) for part, block in own)

    def free_parameter(self, P: Blocks) -> Blocks:
        """See :meth:`BoundKernelSet.free_parameter`."""
        return Blocks(
            _scaled(part, block, part.cone.trace(block))
            for part, block in zip(self.parts, P, strict=True)
        )

    def factor_gram(
        self, factors: Factors, centred: bool, out: NDArray[Any] | None
    ) -> NDArray[Any]:
        """See :meth:`BoundKernelSet.factor_gram`."""
        own = list(zip(self.parts, factors, strict=True))
        K = own[0][0].factor_gram(own[0][1], centred, out)
        other: NDArray[Any] | None = None
        for part, factor in own[1:]:
            other = part.factor_gram(factor, centred, other)
            K += other
        return K

    def moments(self, w: ArrayLike) -> SumMoments:
        """See :meth:`BoundKernelSet.moments`."""
        dual = as_dual_vector(w, self.n_samples)
        return SumMoments([part.moments(dual) for part in self.parts])

    def restrict(self, rows: NDArray[np.intp], face: Face = None) -> BoundSum:
        """See :meth:`BoundKernelSet.restrict`."""
        faces = zip(self.parts, _each(face, self.parts), strict=True)
        return BoundSum([part.restrict(rows, own) for part, own in faces])

    def in_span(self, span: SumSpan) -> BoundSum:
        """See :meth:`BoundKernelSet.in_span`."""
        own = zip(self.parts, span.parts, strict=True)
        return BoundSum([part if face is None else part.in_span(face) for part, face in own])

    def subset(self, rows: NDArray[np.intp]) -> BoundSum:
        """See :meth:`BoundKernelSet.subset`."""
        return BoundSum([part.subset(rows) for part in self.parts])

    def diag(self, P: Blocks) -> FloatArray:
        """See :meth:`BoundKernelSet.diag`."""
        return reduce(add, (part.diag(own) for part, own in zip(self.parts, P, strict=True)))

    def cross(self, X_new: FloatArray, P: Blocks) -> FloatArray:
        """See :meth:`BoundKernelSet.cross`."""
        parts = zip(self.parts, P, strict=True)
        return reduce(add, (part.cross(X_new, own) for part, own in parts))


class SumMoments(Moments):
    """Moments of a dual vector for all parts of a sum."""

    def __init__(self, parts: Sequence[Moments]) -> None:
        self._parts = parts

    @cached_property
    def gradient(self) -> Blocks:
        """See :meth:`Moments.gradient`."""
        return Blocks(part.gradient for part in self._parts)

    def face_gradient(self, face: Face) -> Blocks:
        """See :meth:`Moments.face_gradient`."""
        faces = zip(self._parts, _each(face, self._parts), strict=True)
        return Blocks(part.face_gradient(own) for part, own in faces)

    def scores(self, P: Blocks) -> FloatArray:
        """See :meth:`Moments.scores`."""
        return reduce(add, (part.scores(own) for part, own in zip(self._parts, P, strict=True)))

    def factor_scores(self, factors: Factors) -> FloatArray:
        """See :meth:`Moments.factor_scores`."""
        parts = zip(self._parts, factors, strict=True)
        return reduce(add, (part.factor_scores(own) for part, own in parts))

    def sensitivities(self, face: Face, rows: NDArray[np.intp]) -> Sensitivities:
        """See :meth:`Moments.sensitivities`."""
        faces = zip(self._parts, _each(face, self._parts), strict=True)
        return SumOfSensitivities([part.sensitivities(own, rows) for part, own in faces])


def _scaled(part: BoundKernelSet, block: Any, trace: float) -> Any:
    """Return the free parameter of a block, which need not have trace one."""
    return part.free_parameter(block / trace) * trace if trace > 0.0 else block


def _each(face: Face, parts: Sequence[Any]) -> Sequence[Face]:
    """Return the face of each part; None stands for the whole cone."""
    return [None] * len(parts) if face is None else face
