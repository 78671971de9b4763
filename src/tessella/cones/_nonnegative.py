"""The cone of nonnegative weights."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tessella.cones._cone import Cone, Face, Factors, Frame, LeadingFace, Scaling, Spectrum

FloatArray = NDArray[np.float64]

_WHOLE_COUNT = 32  # largest number of weights that always move together
_LEAST_SUBSAMPLE = 40  # smallest number of samples on which the first weights are learned
_NEAR = 0.8  # fraction of the mean gradient above which a weight of the last face stays
_PROMISING = 0.9  # fraction of the mean gradient above which a weight outside may join the face
_FRESH = 0.75  # largest fraction of the directions that join, as each costs a kernel matrix


class Nonnegative(Cone):
    """The cone of nonnegative weights, whose feasible points sum to one.

    Parameters
    ----------
    count : int
        Number of weights k.
    """

    def __init__(self, count: int) -> None:
        self.count = self.degree = count

    def __repr__(self) -> str:
        return f"Nonnegative({self.count})"

    def describe(self) -> str:
        """See :meth:`Cone.describe`."""
        return f"an array of {self.count} nonnegative weights that sum to one"

    @property
    def unit(self) -> FloatArray:
        """See :meth:`Cone.unit`."""
        return np.ones(self.count)

    @property
    def identity(self) -> FloatArray:
        """See :meth:`Cone.identity`."""
        return np.ones(self.count)

    @property
    def sizes(self) -> FloatArray:
        """See :meth:`Cone.sizes`."""
        return np.ones(self.count)

    # ------------------------------------------------------------------------------- spectra

    def spectrum(self, D: FloatArray) -> Spectrum:
        """See :meth:`Cone.spectrum`; the values are in the order of the weights, not sorted."""
        return Spectrum(D, None)

    def shares(self, P: FloatArray) -> Spectrum:
        """See :meth:`Cone.shares`."""
        return Spectrum(P, None)

    def compose(self, shares: FloatArray, frame: Frame) -> FloatArray:
        """See :meth:`Cone.compose`."""
        del frame
        return shares.copy()

    def forms(self, D: FloatArray, frame: Frame) -> FloatArray:
        """See :meth:`Cone.forms`."""
        del frame
        return D

    # ------------------------------------------------------------------------------- factors

    def factor(self, M: FloatArray) -> FloatArray:
        """See :meth:`Cone.factor`; the result is the weights themselves."""
        if not M.min(initial=1.0) > 0.0:
            raise np.linalg.LinAlgError("a weight is no longer positive")
        return M

    def square(self, L: FloatArray) -> Factors:
        """See :meth:`Cone.square`."""
        return L

    def factors(self, P: FloatArray) -> Factors:
        """See :meth:`Cone.factors`."""
        return P

    def positive_factors(self, P: FloatArray) -> Factors:
        """See :meth:`Cone.positive_factors`."""
        return np.maximum(P, 0.0)

    def trace_of(self, factors: Factors) -> float:
        """See :meth:`Cone.trace_of`."""
        return float(np.sum(factors))

    def scaling(self, L: FloatArray, S: FloatArray) -> WeightScaling:
        """See :meth:`Cone.scaling`."""
        return WeightScaling(L, S)

    # --------------------------------------------------------------------------------- faces

    def face(self, face: Face) -> Nonnegative:
        """See :meth:`Cone.face`; a face is given by the indices of its weights."""
        return self if face is None else Nonnegative(len(face))

    def compress(self, face: Face, D: FloatArray) -> FloatArray:
        """See :meth:`Cone.compress`."""
        return D if face is None else D[face]

    def restrict(self, face: Face, P: FloatArray) -> FloatArray:
        """See :meth:`Cone.restrict`."""
        return self.compress(face, P)

    def expand(self, face: Face, M: FloatArray) -> FloatArray:
        """See :meth:`Cone.expand`."""
        if face is None:
            return M
        P = np.zeros(self.count)
        P[face] = M
        return P

    def leading_face(
        self,
        P: FloatArray,
        D: FloatArray,
        spectrum: Spectrum,
        size: int,
        memory: list[Any],
        whole: int | None = None,
    ) -> LeadingFace:
        """See :meth:`Cone.leading_face`.

        Weights that are not zero stay in the face, and so do those of the last face whose gradient
        is near the mean. The other weights with the largest gradients join them.
        """
        del spectrum
        if self.count <= (_WHOLE_COUNT if whole is None else whole):
            return LeadingFace(None, True)
        level = float(P @ D)
        # Equal weights carry no information yet, so none of them stays for being positive.
        kept = P > 0.0 if not P.all() else np.zeros(self.count, dtype=np.bool_)
        if memory:
            in_last_face = np.zeros(self.count, dtype=np.bool_)
            in_last_face[memory[-1]] = True
            kept |= in_last_face & (_NEAR * level < D)
        order = np.argsort(-D, kind="stable")
        fresh = order[~kept[order] & (D[order] > _PROMISING * level)]
        room = int(_FRESH * size)
        joined = np.union1d(np.flatnonzero(kept), fresh[:room]).astype(np.intp)
        memory[:] = [joined]
        whole = len(joined) == self.count
        return LeadingFace(None if whole else joined, whole or len(fresh) <= room)

    # ------------------------------------------------------------------------------- vectors

    @property
    def moves_whole(self) -> bool:
        """See :attr:`Cone.moves_whole`."""
        return self.count <= _WHOLE_COUNT

    @property
    def largest_side(self) -> int:
        """See :attr:`Cone.largest_side`."""
        return 0

    @property
    def effective_degree(self) -> int:
        """See :attr:`Cone.effective_degree`; few weights are positive in the end."""
        return min(self.count, _WHOLE_COUNT)

    def subsample_size(self, n_samples: int, least: int) -> int:
        """See :meth:`Cone.subsample_size`.

        With many equal weights every kernel is evaluated on all pairs of rows, so even a poor
        subsample is better than starting from the centre.
        """
        if self.moves_whole:
            return least if 2 * least < n_samples else 0
        size = max(_LEAST_SUBSAMPLE, min(n_samples // 3, least))
        return size if 2 * size <= n_samples else 0

    def magnitude(self, D: FloatArray) -> float:
        """See :meth:`Cone.magnitude`."""
        return float(np.abs(D).max(initial=0.0))

    @property
    def dimension(self) -> int:
        """See :meth:`Cone.dimension`."""
        return self.count

    def vector(self, P: FloatArray) -> FloatArray:
        """See :meth:`Cone.vector`."""
        return P

    def point(self, vector: FloatArray) -> FloatArray:
        """See :meth:`Cone.point`."""
        return np.array(vector)

    def read(self, P: Any) -> FloatArray:
        """See :meth:`Cone.read`."""
        given = np.array(P, dtype=np.float64)
        if given.shape != (self.count,):
            raise ValueError(f"The weights have shape {given.shape}, expected ({self.count},).")
        return given


class WeightScaling(Scaling):
    """The scaling M = F Λ and S = Λ / F, entry by entry, with Λ = √(M S)."""

    def __init__(self, L: FloatArray, S: FloatArray) -> None:
        if not S.min(initial=1.0) > 0.0:
            raise np.linalg.LinAlgError("a slack is no longer positive")
        self._middle = np.sqrt(L * S)
        self.factor = np.sqrt(L / S)

    def to_scaled(self, D: FloatArray) -> FloatArray:
        """See :meth:`Scaling.to_scaled`."""
        scaled: FloatArray = self.factor * D
        return scaled

    def from_scaled(self, X: FloatArray) -> FloatArray:
        """See :meth:`Scaling.from_scaled`."""
        M: FloatArray = self.factor * X
        return M

    def towards(
        self, mu: float, dX: FloatArray | None = None, dZ: FloatArray | None = None
    ) -> FloatArray:
        """See :meth:`Scaling.towards`."""
        target: FloatArray = mu / self._middle - self._middle
        if dX is None or dZ is None:
            return target
        return target - dX * dZ / self._middle

    def room(self, change: FloatArray) -> float:
        """See :meth:`Scaling.room`."""
        lowest = float(np.min(change / self._middle, initial=0.0))
        return np.inf if lowest >= 0 else -1.0 / lowest

    def complementarity(self, dX: FloatArray, dZ: FloatArray, length: float) -> float:
        """See :meth:`Scaling.complementarity`."""
        return float((self._middle + length * dX) @ (self._middle + length * dZ))
