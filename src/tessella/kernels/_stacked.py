"""One kernel set on the rows of several machines, which share only P."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import add
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tessella.backend import BlockDiagonal
from tessella.backend._lazy import cached_property
from tessella.cones import Cone, Face, Factors, Point, Sensitivities
from tessella.kernels._base import (
    BoundKernelSet,
    FloatArray,
    Moments,
    as_dual_vector,
)
from tessella.kernels._sensitivity import stack


class StackedKernels(BoundKernelSet):
    """The rows of several machines, one machine after the other.

    K(P) is block diagonal, because there are no kernel values between rows of different machines.
    Its adjoint is a sum, D(w) = Σ D_j(w_j), so the saddle-point problem over P and all dual
    vectors together is still convex.

    Parameters
    ----------
    parts : sequence of BoundKernelSet
        One kernel set, bound to the rows of each machine.
    """

    def __init__(self, parts: Sequence[BoundKernelSet]) -> None:
        self._parts = tuple(parts)
        first = self._parts[0]
        self.kernels, self.dtype, self.cone = first.kernels, first.dtype, first.cone
        self._starts = np.cumsum([0, *(part.n_samples for part in self._parts)])
        self.n_samples = int(self._starts[-1])

    @property
    def machines(self) -> tuple[BoundKernelSet, ...]:
        """See :meth:`BoundKernelSet.machines`."""
        return self._parts

    @property
    def _slices(self) -> list[slice]:
        return list(map(slice, self._starts[:-1].tolist(), self._starts[1:].tolist()))

    @property
    def plain_parameter(self) -> Point:
        """See :meth:`BoundKernelSet.plain_parameter`."""
        return self._parts[0].plain_parameter

    def kernel_parameter(self, P: Point) -> Point:
        """See :meth:`BoundKernelSet.kernel_parameter`."""
        return self._parts[0].kernel_parameter(P)

    def free_parameter(self, P: Point) -> Point:
        """See :meth:`BoundKernelSet.free_parameter`."""
        return self._parts[0].free_parameter(P)

    def factor_gram(
        self, factors: Factors, centred: bool, out: NDArray[Any] | None
    ) -> NDArray[Any]:
        """See :meth:`BoundKernelSet.factor_gram`."""
        return self.factor_blocks(factors, centred).whole(out)

    def factor_blocks(self, factors: Factors, centred: bool) -> BlockDiagonal:
        """See :meth:`BoundKernelSet.factor_blocks`."""
        return BlockDiagonal([part.factor_gram(factors, centred, None) for part in self._parts])

    def moments(self, w: ArrayLike) -> StackedMoments:
        """See :meth:`BoundKernelSet.moments`."""
        dual = as_dual_vector(w, self.n_samples)
        slices = self._slices
        parts = [part.moments(dual[rows]) for part, rows in zip(self._parts, slices, strict=True)]
        return StackedMoments(parts, self._starts, self.cone)

    def restrict(self, rows: NDArray[np.intp], face: Face = None) -> StackedKernels:
        """See :meth:`BoundKernelSet.restrict`; `rows` ascend, machines without any are left out."""
        chosen = zip(self._parts, split_rows(rows, self._starts), strict=True)
        return StackedKernels([part.restrict(own, face) for part, own in chosen if len(own)])

    def subset(self, rows: NDArray[np.intp]) -> StackedKernels:
        """See :meth:`BoundKernelSet.subset`; `rows` ascend, machines without any are left out."""
        chosen = zip(self._parts, split_rows(rows, self._starts), strict=True)
        return StackedKernels([part.subset(own) for part, own in chosen if len(own)])

    def diag(self, P: Point) -> FloatArray:
        """See :meth:`BoundKernelSet.diag`."""
        return np.concatenate([part.diag(P) for part in self._parts])

    def cross(self, X_new: FloatArray, P: Point) -> FloatArray:
        """See :meth:`BoundKernelSet.cross`."""
        return np.hstack([part.cross(X_new, P) for part in self._parts])


class StackedMoments(Moments):
    """Moments of the dual vectors of all machines."""

    def __init__(self, parts: Sequence[Moments], starts: NDArray[np.intp], cone: Cone) -> None:
        self._parts = parts
        self._starts = starts
        self._cone = cone

    @cached_property
    def gradient(self) -> Point:
        """See :meth:`Moments.gradient`; the result is the sum over the machines."""
        return reduce(add, (part.gradient for part in self._parts))

    def face_gradient(self, face: Face) -> Point:
        """See :meth:`Moments.face_gradient`."""
        return reduce(add, (part.face_gradient(face) for part in self._parts))

    def scores(self, P: Point) -> FloatArray:
        """See :meth:`Moments.scores`."""
        return self.factor_scores(self._cone.factors(P))

    def factor_scores(self, factors: Factors) -> FloatArray:
        """See :meth:`Moments.factor_scores`."""
        return np.concatenate([part.factor_scores(factors) for part in self._parts])

    def sensitivities(self, face: Face, rows: NDArray[np.intp]) -> Sensitivities:
        """See :meth:`Moments.sensitivities`; `rows` ascend, machines without any are left out."""
        chosen = zip(self._parts, split_rows(rows, self._starts), strict=True)
        return stack([part.sensitivities(face, own) for part, own in chosen if len(own)])


def split_rows(rows: NDArray[np.intp], starts: NDArray[np.intp]) -> list[NDArray[np.intp]]:
    """Return ascending positions in a stack as positions in each of its parts."""
    parts = np.split(rows, np.searchsorted(rows, starts[1:-1]))
    return [own - start for own, start in zip(parts, starts[:-1], strict=True)]
