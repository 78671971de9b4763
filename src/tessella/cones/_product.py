"""Products of cones with one trace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tessella.cones._blocks import Blocks
from tessella.cones._cone import Cone, Face, Factors, Frame, LeadingFace, Scaling, Spectrum

FloatArray = NDArray[np.float64]


class ProductCone(Cone):
    """A product of cones, whose points are :class:`Blocks` with traces that add up to one.

    A feasible point is a convex combination of feasible points of the cones, so the support
    function is the largest one of the cones. An empty product describes a kernel that is given;
    its only point has no blocks.

    Parameters
    ----------
    cones : sequence of Cone
        Cones of the product, in the order of the blocks.
    """

    def __init__(self, cones: Sequence[Cone]) -> None:
        self.cones = tuple(cones)
        self.degree = sum(cone.degree for cone in self.cones)
        self._ends = np.cumsum([cone.degree for cone in self.cones])[:-1]

    def __repr__(self) -> str:
        return f"ProductCone({list(self.cones)})"

    def describe(self) -> str:
        """See :meth:`Cone.describe`."""
        kinds = "; ".join(cone.describe() for cone in self.cones)
        return f"Blocks of points whose shares add up to one ({kinds})"

    def _split(self, values: FloatArray) -> list[FloatArray]:
        return np.split(values, self._ends) if self.cones else []

    def _each(self, method: str, *arguments: Any) -> list[Any]:
        """Call a method of every cone with the block of each argument that belongs to it."""
        columns = [(None,) * len(self.cones) if a is None else tuple(a) for a in arguments]
        rows = zip(self.cones, *columns, strict=True)
        return [getattr(cone, method)(*own) for cone, *own in rows]

    @property
    def unit(self) -> Blocks:
        """See :meth:`Cone.unit`."""
        return Blocks(cone.unit for cone in self.cones)

    @property
    def identity(self) -> Blocks:
        """See :meth:`Cone.identity`."""
        return Blocks(cone.identity for cone in self.cones)

    @property
    def sizes(self) -> FloatArray:
        """See :meth:`Cone.sizes`."""
        return np.concatenate([np.zeros(0), *(cone.sizes for cone in self.cones)])

    # ------------------------------------------------------------------------------- spectra

    def spectrum(self, D: Blocks) -> Spectrum:
        """See :meth:`Cone.spectrum`; the values of the blocks follow one another."""
        return _joined(self._each("spectrum", D))

    def shares(self, P: Blocks) -> Spectrum:
        """See :meth:`Cone.shares`."""
        return _joined(self._each("shares", P))

    def compose(self, shares: FloatArray, frame: Frame) -> Blocks:
        """See :meth:`Cone.compose`."""
        return Blocks(self._each("compose", self._split(shares), frame))

    def forms(self, D: Blocks, frame: Frame) -> FloatArray:
        """See :meth:`Cone.forms`."""
        return np.concatenate([np.zeros(0), *self._each("forms", D, frame)])

    # ------------------------------------------------------------------------------- factors

    def factor(self, M: Blocks) -> Blocks:
        """See :meth:`Cone.factor`."""
        return Blocks(self._each("factor", M))

    def square(self, L: Blocks) -> Factors:
        """See :meth:`Cone.square`."""
        return Blocks(self._each("square", L))

    def factors(self, P: Blocks) -> Factors:
        """See :meth:`Cone.factors`."""
        return Blocks(self._each("factors", P))

    def positive_factors(self, P: Blocks) -> Factors:
        """See :meth:`Cone.positive_factors`."""
        return Blocks(self._each("positive_factors", P))

    def trace_of(self, factors: Factors) -> float:
        """See :meth:`Cone.trace_of`."""
        return float(sum(self._each("trace_of", factors)))

    def scaling(self, L: Blocks, S: Blocks) -> ProductScaling:
        """See :meth:`Cone.scaling`."""
        return ProductScaling(self._each("scaling", L, S))

    # --------------------------------------------------------------------------------- faces

    def face(self, face: Face) -> ProductCone:
        """See :meth:`Cone.face`; a face of the product consists of a face of each cone."""
        return self if face is None else ProductCone(self._each("face", face))

    def compress(self, face: Face, D: Blocks) -> Blocks:
        """See :meth:`Cone.compress`."""
        return Blocks(self._each("compress", face, D))

    def restrict(self, face: Face, P: Blocks) -> Blocks:
        """See :meth:`Cone.restrict`."""
        return Blocks(self._each("restrict", face, P))

    def expand(self, face: Face, M: Blocks) -> Blocks:
        """See :meth:`Cone.expand`."""
        return Blocks(self._each("expand", face, M))

    def leading_face(
        self,
        P: Blocks,
        D: Blocks,
        spectrum: Spectrum,
        size: int,
        memory: list[Any],
        whole: int | None = None,
    ) -> LeadingFace:
        """See :meth:`Cone.leading_face`."""
        if not memory:
            memory.extend([] for _ in self.cones)
        spectra = map(Spectrum, self._split(spectrum.values), spectrum.frame)
        each = [[size] * len(self.cones), memory, [whole] * len(self.cones)]
        found = self._each("leading_face", P, D, spectra, *each)
        faces = tuple(own.face for own in found)
        whole = all(face is None for face in faces)
        return LeadingFace(None if whole else faces, all(own.complete for own in found))

    # ------------------------------------------------------------------------------- vectors

    @property
    def moves_whole(self) -> bool:
        """See :attr:`Cone.moves_whole`."""
        return all(cone.moves_whole for cone in self.cones)

    @property
    def largest_side(self) -> int:
        """See :attr:`Cone.largest_side`."""
        return max((cone.largest_side for cone in self.cones), default=0)

    @property
    def effective_degree(self) -> int:
        """See :attr:`Cone.effective_degree`."""
        return sum(cone.effective_degree for cone in self.cones)

    def subsample_size(self, n_samples: int, least: int) -> int:
        """See :meth:`Cone.subsample_size`; the result is the largest size over the cones."""
        return max(cone.subsample_size(n_samples, least) for cone in self.cones)

    def magnitude(self, D: Blocks) -> float:
        """See :meth:`Cone.magnitude`."""
        return max(self._each("magnitude", D), default=0.0)

    @property
    def dimension(self) -> int:
        """See :meth:`Cone.dimension`."""
        return sum(cone.dimension for cone in self.cones)

    def vector(self, P: Blocks) -> FloatArray:
        """See :meth:`Cone.vector`."""
        return np.concatenate([np.zeros(0), *self._each("vector", P)])

    def point(self, vector: FloatArray) -> Blocks:
        """See :meth:`Cone.point`."""
        ends = np.cumsum([cone.dimension for cone in self.cones])[:-1]
        return Blocks(self._each("point", np.split(vector, ends) if self.cones else []))

    def trace(self, P: Blocks) -> float:
        """See :meth:`Cone.trace`."""
        return float(sum(self._each("trace", P)))

    def _require_blocks(self, P: Any) -> None:
        if not isinstance(P, Blocks | tuple | list) or len(P) != len(self.cones):
            raise ValueError(
                f"The parameter must have {len(self.cones)} blocks, one for each kernel set of "
                "the sum."
            )

    def read(self, P: Any) -> Blocks:
        """See :meth:`Cone.read`."""
        self._require_blocks(P)
        return Blocks(self._each("read", P))

    def read_factors(self, P: Any) -> Factors:
        """See :meth:`Cone.read_factors`."""
        self._require_blocks(P)
        return Blocks(self._each("read_factors", P))

    def share(self, P: Any, rtol: float) -> float:
        """See :meth:`Cone.share`; it is the sum of those of the blocks."""
        try:
            self._require_blocks(P)
        except ValueError:
            return np.nan
        return float(sum(cone.share(own, rtol) for cone, own in zip(self.cones, P, strict=True)))


class ProductScaling(Scaling):
    """The scaling of a product, which consists of the scaling of each cone."""

    def __init__(self, parts: Sequence[Scaling]) -> None:
        self._parts = tuple(parts)
        self.factor = Blocks(part.factor for part in self._parts)

    def to_scaled(self, D: Blocks) -> Blocks:
        """See :meth:`Scaling.to_scaled`."""
        return Blocks(part.to_scaled(d) for part, d in zip(self._parts, D, strict=True))

    def from_scaled(self, X: Blocks) -> Blocks:
        """See :meth:`Scaling.from_scaled`."""
        return Blocks(part.from_scaled(x) for part, x in zip(self._parts, X, strict=True))

    def towards(self, mu: float, dX: Blocks | None = None, dZ: Blocks | None = None) -> Blocks:
        """See :meth:`Scaling.towards`."""
        if dX is None or dZ is None:
            return Blocks(part.towards(mu) for part in self._parts)
        steps = zip(self._parts, dX, dZ, strict=True)
        return Blocks(part.towards(mu, x, z) for part, x, z in steps)

    def room(self, change: Blocks) -> float:
        """See :meth:`Scaling.room`."""
        rooms = (part.room(c) for part, c in zip(self._parts, change, strict=True))
        return min(rooms, default=np.inf)

    def complementarity(self, dX: Blocks, dZ: Blocks, length: float) -> float:
        """See :meth:`Scaling.complementarity`."""
        steps = zip(self._parts, dX, dZ, strict=True)
        return sum(part.complementarity(x, z, length) for part, x, z in steps)


def _joined(parts: Sequence[Spectrum]) -> Spectrum:
    values = np.concatenate([np.zeros(0), *(part.values for part in parts)])
    return Spectrum(values, tuple(part.frame for part in parts))
