"""Points of a product of cones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


class Blocks:
    """One array for each cone of a product, with the arithmetic of a vector.

    Parameters
    ----------
    parts : iterable of ndarray
        The point of each cone, in the order of the product.

    Examples
    --------
    >>> import numpy as np
    >>> from tessella.cones import Blocks
    >>> point = Blocks([np.eye(2), np.array([0.5, 0.25])])
    >>> (2.0 * point - point)[1].tolist()
    [0.5, 0.25]
    >>> len(point)
    2
    """

    __array_ufunc__ = None  # makes numpy leave operations with an array on the left to this class

    def __init__(self, parts: Iterable[Any]) -> None:
        self.parts = tuple(parts)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.parts)

    def __len__(self) -> int:
        return len(self.parts)

    def __getitem__(self, number: int) -> Any:
        return self.parts[number]

    def __add__(self, other: Blocks) -> Blocks:
        return Blocks(a + b for a, b in zip(self.parts, other.parts, strict=True))

    def __sub__(self, other: Blocks) -> Blocks:
        return Blocks(a - b for a, b in zip(self.parts, other.parts, strict=True))

    def __mul__(self, factor: float) -> Blocks:
        return Blocks(a * factor for a in self.parts)

    __rmul__ = __mul__

    def __truediv__(self, divisor: float) -> Blocks:
        return Blocks(a / divisor for a in self.parts)

    def __neg__(self) -> Blocks:
        return Blocks(-a for a in self.parts)

    def copy(self) -> Blocks:
        """Return a copy that shares no memory with this point."""
        return Blocks(a.copy() for a in self.parts)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Blocks) or len(self) != len(other):
            return NotImplemented if not isinstance(other, Blocks) else False
        pairs = zip(self.parts, other.parts, strict=True)
        return all(a == b if isinstance(a, Blocks) else np.array_equal(a, b) for a, b in pairs)

    __hash__ = None  # type: ignore[assignment]  # arrays inside may change

    def __repr__(self) -> str:
        shapes = ", ".join(str(np.shape(part)) for part in self.parts)
        return f"Blocks(shapes: {shapes})"


Point = Any  # an ndarray for a single cone, Blocks for a product


def inner(a: Point, b: Point) -> float:
    """Return the inner product of two points, the sum of all products of entries."""
    if isinstance(a, Blocks):
        return sum(inner(x, y) for x, y in zip(a, b, strict=True))
    return float(np.vdot(a, b))
