"""A floor under the parameter of a kernel set: P = τ · centre + (1 - τ) · P' with a feasible P'.

On points of trace one this is the linear map A(P') = τ trace(P') · centre + (1 - τ) P', so the
kernels K(A(P')) are a kernel set like any other, with the parameter P' and the gradient

    A*(D) = (1 - τ) D + τ <D, centre> · unit,

whose support function is τ <D, centre> + (1 - τ) support(D). Learning, bounds and certificates are
those of this set, and so are its kernel values. What a fit returns is the kernel of the set without
the floor, with the parameter P = A(P').
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from tessella.backend._lazy import cached_property
from tessella.cones import Cone, Face, Factors, Point, Sensitivities, inner, scaled_point
from tessella.kernels._base import BoundKernelSet, FloatArray, KernelSet, Moments, as_rows
from tessella.kernels._predictor import Predictor
from tessella.kernels._sensitivity import stack


@dataclass
class KernelsWithFloor(KernelSet):
    """A kernel set whose parameter keeps a given share of the centre of its feasible set.

    ``kernels.with_floor(floor)`` returns such a set. Its kernels have the parameter
    ``floor * centre + (1 - floor) * P`` with a feasible P that is learned. The centre is the
    identity matrix, or equal weights, so that every basis function and every kernel of a
    dictionary keeps a positive weight.

    Parameters
    ----------
    kernels : KernelSet
        Kernel set without a floor.
    floor : float
        Share of the centre, between 0 and 1. With 1 nothing is learned.

    Examples
    --------
    >>> import numpy as np
    >>> from tessella.kernels import Gaussian, KernelDictionary
    >>> kernels = KernelDictionary([Gaussian(0.5), Gaussian(2.0)]).with_floor(0.2)
    >>> bound = kernels.bind(np.random.default_rng(0).random((5, 2)))
    >>> bound.kernel_parameter(np.array([1.0, 0.0])).tolist()
    [0.9, 0.1]
    """

    kernels: KernelSet
    floor: float

    family: ClassVar[str | None] = "floor"

    def __post_init__(self) -> None:
        if not isinstance(self.kernels, KernelSet):
            raise TypeError(f"kernels={self.kernels!r} must be a kernel set.")
        checked_floor(self.floor)

    @property
    def wants_raw_features(self) -> bool:
        """See :attr:`KernelSet.wants_raw_features`."""
        return self.kernels.wants_raw_features

    @property
    def names_features(self) -> bool:
        """See :attr:`KernelSet.names_features`."""
        return self.kernels.names_features

    @property
    def margin(self) -> float:
        """See :attr:`KernelSet.margin`."""
        return self.kernels.margin

    @property
    def outside_rule(self) -> str:
        """See :attr:`KernelSet.outside_rule`."""
        return self.kernels.outside_rule

    def with_floor(self, floor: float) -> KernelSet:
        """Return the set with another floor in place of its own."""
        return KernelsWithFloor(self.kernels, floor)

    def cone(self, n_features: int) -> Cone:
        """See :meth:`KernelSet.cone`."""
        return self.kernels.cone(n_features)

    def count_params(self, n_features: int) -> int:
        """See :meth:`KernelSet.count_params`."""
        return self.kernels.count_params(n_features)

    def resolve(self, X: ArrayLike, sample_weight: ArrayLike | None = None) -> KernelsWithFloor:
        """See :meth:`KernelSet.resolve`."""
        return KernelsWithFloor(self.kernels.resolve(X, sample_weight), self.floor)

    def bind(
        self, X: ArrayLike, *, dtype: DTypeLike = np.float64, n_jobs: int | None = None
    ) -> BoundKernelSet:
        """See :meth:`KernelSet.bind`."""
        return raised(self.kernels.bind(X, dtype=dtype, n_jobs=n_jobs), self.floor)

    def bind_resolved(
        self, X: ArrayLike, *, dtype: DTypeLike = np.float64, n_jobs: int | None = None
    ) -> BoundKernelSet:
        """See :meth:`KernelSet.bind_resolved`."""
        return raised(self.kernels.bind_resolved(X, dtype=dtype, n_jobs=n_jobs), self.floor)

    def memory_estimate(self, n_samples: int, n_features: int, itemsize: int) -> int:
        """See :meth:`KernelSet.memory_estimate`; the kernel matrix of the centre is kept."""
        plain = self.kernels.memory_estimate(n_samples, n_features, itemsize)
        return plain + itemsize * n_samples**2

    def cross(self, X: ArrayLike, Y: ArrayLike, P: Any, *, n_jobs: int | None = None) -> FloatArray:
        """See :meth:`KernelSet.cross`; P is the free parameter, to which the floor is added."""
        return self.kernels.cross(X, Y, self._raised(P, X), n_jobs=n_jobs)

    def predictor(self, P: Any, Y: ArrayLike, coefficients: FloatArray) -> Predictor:
        """See :meth:`KernelSet.predictor`; P is the free parameter, to which the floor is added."""
        return self.kernels.predictor(self._raised(P, Y), Y, coefficients)

    def diag(self, X: ArrayLike, P: Any) -> FloatArray:
        """See :meth:`KernelSet.diag`; P is the free parameter, to which the floor is added."""
        return self.kernels.diag(X, self._raised(P, X))

    def _raised(self, P: Any, X: ArrayLike) -> Point:
        return raised_parameter(P, self.kernels.cone(as_rows(X).shape[1]), self.floor)


def checked_floor(floor: Any) -> float:
    """Return a floor as a number; ValueError unless it lies between 0 and 1."""
    try:
        number = float(floor)
    except (TypeError, ValueError):
        number = np.nan
    if not 0.0 <= number <= 1.0:
        raise ValueError(f"floor={floor!r} must be a number between 0 and 1.")
    return number


def raised_parameter(P: Point, cone: Cone, floor: float) -> Point:
    """Return the parameter with the floor, τ trace(P) · centre + (1 - τ) P."""
    return (1.0 - floor) * P + (floor * cone.trace(P)) * cone.centre


def raised(bound: BoundKernelSet, floor: float) -> BoundKernelSet:
    """Return a bound kernel set with a floor under its parameter; itself for the floor 0."""
    share = checked_floor(floor)
    return bound if share == 0.0 else BoundWithFloor(bound, bound, share)


class BoundWithFloor(BoundKernelSet):
    """A bound kernel set with a floor, as a linear function of the free parameter P'.

    ``kernels`` is the set without the floor, and :meth:`kernel_parameter` is the parameter of the
    kernel in this set.

    Parameters
    ----------
    part : BoundKernelSet
        The set in coordinates of P', perhaps within a face.
    whole : BoundKernelSet
        The set on the same rows in its own coordinates, which contain the centre.
    floor : float
        Share τ of the centre.
    """

    def __init__(self, part: BoundKernelSet, whole: BoundKernelSet, floor: float) -> None:
        self._part, self._whole, self._floor = part, whole, floor
        self.kernels, self.dtype, self.cone = part.kernels, part.dtype, part.cone
        self.n_samples = part.n_samples
        self._centre_grams: dict[bool, NDArray[Any]] = {}

    def kernel_parameter(self, P: Point) -> Point:
        """See :meth:`BoundKernelSet.kernel_parameter`."""
        return raised_parameter(P, self.cone, self._floor)

    def free_parameter(self, P: Point) -> Point:
        """See :meth:`BoundKernelSet.free_parameter`; what lies below the floor is projected."""
        if self._floor == 1.0:
            return self.cone.centre
        return self.cone.project((P - self._floor * self.cone.centre) / (1.0 - self._floor))

    def _centre_gram(self, centred: bool) -> NDArray[Any]:
        """Return the kernel matrix of the centre, which is computed once."""
        if centred not in self._centre_grams:
            self._centre_grams[centred] = self._whole.gram(self._whole.cone.centre, centred=centred)
        return self._centre_grams[centred]

    def factor_gram(
        self, factors: Factors, centred: bool, out: NDArray[Any] | None
    ) -> NDArray[Any]:
        """See :meth:`BoundKernelSet.factor_gram`."""
        K = self._part.factor_gram(factors, centred, out)
        share = self._floor * self.cone.trace_of(factors)
        K *= K.dtype.type(1.0 - self._floor)
        K += K.dtype.type(share) * self._centre_gram(centred)
        return K

    def moments(self, w: ArrayLike) -> MomentsWithFloor:
        """See :meth:`BoundKernelSet.moments`."""
        own = self._part.moments(w)
        whole = own if self._part is self._whole else self._whole.moments(w)
        dual = np.asarray(w, dtype=np.float64)
        return MomentsWithFloor(own, whole.scores(self._whole.cone.centre), dual, self)

    def restrict(self, rows: NDArray[np.intp], face: Face = None) -> BoundWithFloor:
        """See :meth:`BoundKernelSet.restrict`."""
        part = self._part.restrict(rows, face)
        same = face is None and self._part is self._whole
        return BoundWithFloor(part, part if same else self._whole.restrict(rows), self._floor)

    def subset(self, rows: NDArray[np.intp]) -> BoundWithFloor:
        """See :meth:`BoundKernelSet.subset`."""
        part = self._part.subset(rows)
        same = self._part is self._whole
        return BoundWithFloor(part, part if same else self._whole.subset(rows), self._floor)

    def diag(self, P: Point) -> FloatArray:
        """See :meth:`BoundKernelSet.diag`."""
        share = self._floor * self.cone.trace(P)
        centre = self._whole.diag(self._whole.cone.centre)
        return (1.0 - self._floor) * self._part.diag(P) + share * centre

    def cross(self, X_new: FloatArray, P: Point) -> FloatArray:
        """See :meth:`BoundKernelSet.cross`."""
        share = self._floor * self.cone.trace(P)
        centre = self._whole.cross(X_new, self._whole.cone.centre)
        return (1.0 - self._floor) * self._part.cross(X_new, P) + share * centre

    @property
    def floor(self) -> float:
        """Share of the centre in the parameter of the kernel."""
        return self._floor


class MomentsWithFloor(Moments):
    """Moments of a dual vector for a kernel set with a floor.

    Parameters
    ----------
    own : Moments
        Moments of the set without the floor.
    centre_scores : ndarray of shape (m,)
        Scores of the kernel of the centre.
    w : ndarray of shape (m,)
        Dual vector.
    bound : BoundWithFloor
        The kernel set.
    """

    def __init__(
        self, own: Moments, centre_scores: FloatArray, w: FloatArray, bound: BoundWithFloor
    ) -> None:
        self._own, self._centre_scores = own, centre_scores
        self._cone, self._floor = bound.cone, bound.floor
        self._centre_form = float(w @ centre_scores)

    @cached_property
    def gradient(self) -> Point:
        """See :meth:`Moments.gradient`."""
        return self.face_gradient(None)

    def face_gradient(self, face: Face) -> Point:
        """See :meth:`Moments.face_gradient`."""
        unit = self._cone.face(face).unit
        free = (1.0 - self._floor) * self._own.face_gradient(face)
        return free + (self._floor * self._centre_form) * unit

    def scores(self, P: Point) -> FloatArray:
        """See :meth:`Moments.scores`."""
        return self._mixed(self._own.scores(P), self._cone.trace(P))

    def factor_scores(self, factors: Factors) -> FloatArray:
        """See :meth:`Moments.factor_scores`."""
        return self._mixed(self._own.factor_scores(factors), self._cone.trace_of(factors))

    def _mixed(self, own: FloatArray, trace: float) -> FloatArray:
        mixed: FloatArray = (1.0 - self._floor) * own + (self._floor * trace) * self._centre_scores
        return mixed

    def sensitivities(self, face: Face, rows: NDArray[np.intp]) -> Sensitivities:
        """See :meth:`Moments.sensitivities`."""
        own = self._own.sensitivities(face, rows)
        cone = self._cone.face(face)
        return SensitivitiesWithFloor(
            own, 1.0 - self._floor, self._floor * self._centre_scores[rows], cone.unit, cone
        )


class SensitivitiesWithFloor(Sensitivities):
    """Sensitivities ``share * Γ_k + shift_k * U`` with a point U that is common to all rows.

    Parameters
    ----------
    own : Sensitivities
        Sensitivities Γ of the set without the floor.
    share : float
        Factor of Γ.
    shift : ndarray of shape (f,)
        Factor of U for each row.
    U : Point
        The unit of the cone, in the variables of Γ.
    cone : Cone
        Cone that contains the parameter.
    """

    def __init__(
        self, own: Sensitivities, share: float, shift: FloatArray, U: Point, cone: Cone
    ) -> None:
        self._own, self._share, self._shift, self._U, self._cone = own, share, shift, U, cone

    @classmethod
    def stacked(cls, parts: Sequence[SensitivitiesWithFloor]) -> SensitivitiesWithFloor:
        """Return the sensitivities of several sets of rows, one after the other."""
        first = parts[0]
        own = stack([part._own for part in parts])
        shift = np.concatenate([part._shift for part in parts])
        return cls(own, first._share, shift, first._U, first._cone)

    def apply(self, M: Point) -> FloatArray:
        """See :meth:`Sensitivities.apply`."""
        return self._share * self._own.apply(M) + inner(self._U, M) * self._shift

    def adjoint(self, v: FloatArray) -> Point:
        """See :meth:`Sensitivities.adjoint`."""
        return self._share * self._own.adjoint(v) + float(v @ self._shift) * self._U

    def gram(self) -> FloatArray | None:
        """See :meth:`Sensitivities.gram`."""
        mixed = np.outer(self._shift, self._share * self._own.apply(self._U))
        own = self._own.gram()
        total: FloatArray = mixed + mixed.T
        total += inner(self._U, self._U) * np.outer(self._shift, self._shift)
        return total if own is None else total + self._share**2 * own

    def transformed(self, F: Point) -> Self:
        """See :meth:`Sensitivities.transformed`."""
        own, U = self._own.transformed(F), scaled_point(self._U, F)
        return type(self)(own, self._share, self._shift, U, self._cone)

    def plus(self, other: Self) -> Self:
        """See :meth:`Sensitivities.plus`."""
        own, shift = self._own.plus(other._own), self._shift + other._shift
        return type(self)(own, self._share, shift, self._U, self._cone)

    def matrix(self) -> FloatArray:
        """See :meth:`Sensitivities.matrix`."""
        common = np.outer(self._shift, self._cone.vector(self._U))
        return self._share * self._own.matrix() + common

    def columns(self) -> FloatArray | None:
        """See :meth:`Sensitivities.columns`."""
        return None if self._own.columns() is None else self.matrix()
