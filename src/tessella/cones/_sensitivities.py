"""Sensitivities of the scores of training rows: the derivative of K(P)w with respect to P.

For a dual vector w and rows k there are points Γ_k of the space of the parameter with
``(K(M) w)_k = <Γ_k, M>`` for every M of a face. Second-order methods need products with these
points, and never the points themselves.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Self

import numpy as np
from numpy.typing import NDArray

from tessella.cones._blocks import Blocks, Point
from tessella.cones._cone import Cone

FloatArray = NDArray[np.float64]


class Sensitivities(ABC):
    """The points Γ_k of f rows."""

    @abstractmethod
    def apply(self, M: Point) -> FloatArray:
        """Return ``<Γ_k, M>`` for each row, of shape (f,)."""

    @abstractmethod
    def adjoint(self, v: FloatArray) -> Point:
        """Return ``Σ_k v_k Γ_k``, a point of the space of the parameter."""

    @abstractmethod
    def gram(self) -> FloatArray | None:
        """Return ``<Γ_k, Γ_l>`` for all pairs of rows, of shape (f, f); None stands for zeros."""

    @abstractmethod
    def transformed(self, F: Point) -> Self:
        """Return the sensitivities to X, where M is X scaled by F as in :class:`Scaling`."""

    @abstractmethod
    def plus(self, other: Self) -> Self:
        """Return the sensitivities of the same rows for the sum of two dual vectors."""

    @abstractmethod
    def matrix(self) -> FloatArray:
        """Return Γ as a matrix J of shape (f, dimension), in the coordinates of ``Cone.vector``.

        Then ``gram() == J @ J.T`` and ``apply(M) == J @ cone.vector(M)``.
        """

    def columns(self) -> FloatArray | None:
        """Return Γ as a matrix J of shape (f, dimension) with ``gram() == J @ J.T``, or None.

        A Newton step may then treat J as a border instead of adding its products to K. None is
        returned if J would be expensive.
        """
        return None

    def couplings(self, count: int) -> Couplings | None:  # noqa: ARG002
        """Return `count` columns of J that have most of ``gram()`` between groups of rows, or None.

        Solvers of many machines use them as a preconditioner. None is returned if there are no
        groups.
        """
        return None


@dataclass(frozen=True)
class Couplings:
    """What a preconditioner needs of sensitivities J of groups of rows.

    Attributes
    ----------
    columns : ndarray of shape (f, count)
        Columns of J in some orthonormal coordinates, those with the largest norms.
    blocks : list of ndarray
        Blocks of ``J @ J.T`` of the groups.
    """

    columns: FloatArray
    blocks: list[FloatArray]


class LinearSensitivities(Sensitivities):
    """Sensitivities that are given as a matrix, for any cone.

    Parameters
    ----------
    matrix : ndarray of shape (f, dimension)
        One row for each score, in the coordinates of :meth:`Cone.vector`.
    cone : Cone
        Cone that contains the parameter.
    """

    def __init__(self, matrix: FloatArray, cone: Cone) -> None:
        self._matrix = matrix
        self._cone = cone

    def apply(self, M: Point) -> FloatArray:
        """See :meth:`Sensitivities.apply`."""
        result: FloatArray = self._matrix @ self._cone.vector(M)
        return result

    def adjoint(self, v: FloatArray) -> Point:
        """See :meth:`Sensitivities.adjoint`."""
        return self._cone.point(v @ self._matrix)

    def gram(self) -> FloatArray:
        """See :meth:`Sensitivities.gram`."""
        products: FloatArray = self._matrix @ self._matrix.T
        return products

    def transformed(self, F: Point) -> Self:
        """See :meth:`Sensitivities.transformed`."""
        points = [self._cone.point(row) for row in self._matrix]
        rows = [self._cone.vector(scaled_point(D, F)) for D in points]
        return type(self)(np.array(rows), self._cone)

    def plus(self, other: Self) -> Self:
        """See :meth:`Sensitivities.plus`."""
        return type(self)(self._matrix + other._matrix, self._cone)

    def matrix(self) -> FloatArray:
        """See :meth:`Sensitivities.matrix`."""
        return self._matrix


def scaled_point(D: Point, F: Point) -> Point:
    """Return a point of the dual space in the variables of :attr:`Scaling.factor`."""
    if isinstance(D, Blocks):
        return Blocks(scaled_point(d, f) for d, f in zip(D, F, strict=True))
    return F.T @ D @ F if D.ndim == 2 else D * F


class SumOfSensitivities(Sensitivities):
    """Sensitivities of scores to all blocks of a product together.

    Parameters
    ----------
    parts : sequence of Sensitivities
        Sensitivities of the same rows to each block.
    """

    def __init__(self, parts: Sequence[Sensitivities]) -> None:
        self.parts = tuple(parts)

    def apply(self, M: Point) -> FloatArray:
        """See :meth:`Sensitivities.apply`."""
        answers = (part.apply(m) for part, m in zip(self.parts, M, strict=True))
        return reduce(np.add, answers)

    def adjoint(self, v: FloatArray) -> Point:
        """See :meth:`Sensitivities.adjoint`."""
        return Blocks(part.adjoint(v) for part in self.parts)

    def gram(self) -> FloatArray | None:
        """See :meth:`Sensitivities.gram`."""
        total: FloatArray | None = None
        for own in (part.gram() for part in self.parts):
            if own is not None:
                total = own if total is None else np.add(total, own, out=total)
        return total

    def transformed(self, F: Point) -> Self:
        """See :meth:`Sensitivities.transformed`."""
        return type(self)([part.transformed(f) for part, f in zip(self.parts, F, strict=True)])

    def plus(self, other: Self) -> Self:
        """See :meth:`Sensitivities.plus`."""
        return type(self)([a.plus(b) for a, b in zip(self.parts, other.parts, strict=True)])

    def matrix(self) -> FloatArray:
        """See :meth:`Sensitivities.matrix`."""
        return np.hstack([part.matrix() for part in self.parts])

    def columns(self) -> FloatArray | None:
        """See :meth:`Sensitivities.columns`."""
        own = [part.columns() for part in self.parts]
        found = [part for part in own if part is not None]
        return np.hstack(found) if found and len(found) == len(own) else None
