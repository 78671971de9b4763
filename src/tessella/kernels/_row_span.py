"""The span of the basis functions of some rows, which is all that their kernel values see of P.

Let N(z, x) be in the span of an orthonormal V for all z and for every row x of a training set, such
as blockdiag(V₁, V₁) with V₁ a basis of the span of the monomials of the rows. Then, for any P,

    K(P) = K(V M Vᵀ) with M = VᵀPV        and        D(w) = V (VᵀD(w)V) Vᵀ.

So the problem in M has the optimum, the bounds and the certificates of the problem in P:

- A feasible M, with M ⪰ 0 and trace n_P, is the feasible P = V M Vᵀ, because V is orthonormal. An
  upper bound of the problem in M therefore is one of the problem in P.
- The largest eigenvalue of VᵀD(w)V is that of D(w), which is positive semidefinite and zero beyond
  the span, so n_P λ_max and the lower bound are the same.
- Nothing is lost: a feasible P has the compression VᵀPV, with the same K and at most the trace of
  P. What is missing of the trace can be added as a multiple of the identity, which makes K larger
  in the order of matrices, and the value, a maximum of κ(w) - ½ wᵀKw, not larger.

With m rows, M has a side of at most 2m, whatever the number of columns. The learned P = V M Vᵀ is
kept as a factor U with P = U Uᵀ, which has as many columns as M has rank. V and U are the only
matrices that grow with the number of basis functions, and nothing has the side of P.

With a floor under the parameter, P contains a multiple of the identity and is no thin product.
Sets with a floor are learned as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tessella.cones import PSD, Blocks, Point, is_factor, positive_factor

FloatArray = NDArray[np.float64]

_LEAST_SIDE = 256  # of a matrix P, below which decompositions take no noticeable time
_WORTHWHILE = 0.75  # part of the side of P that the span may have


class Span(Protocol):
    """A part of the space of parameters that contains all that some rows can tell apart."""

    def whole(self, M: Point) -> Point:
        """Return the parameter of a kernel set, in factored form, of a point of the span."""
        ...

    def own(self, P: Point) -> Point:
        """Return a parameter of a kernel set, whole or factored, in coordinates of the span.

        The trace is kept: the part within the span is scaled, because what lies beyond it has no
        effect on the rows.
        """
        ...


class RowSpan:
    """Orthonormal directions of a matrix P that contain the basis functions of some rows.

    Parameters
    ----------
    blocks : sequence of ndarray of shape (q_b, r_b)
        Orthonormal basis of each block of rows of P. The directions are V = blockdiag(blocks).

    Attributes
    ----------
    side : int
        Number of directions.
    n_params : int
        Side of P.
    """

    def __init__(self, blocks: Sequence[FloatArray]) -> None:
        self.blocks = tuple(blocks)
        self.side = sum(block.shape[1] for block in self.blocks)
        self.n_params = sum(len(block) for block in self.blocks)

    @classmethod
    def of_rows(cls, halves: Sequence[FloatArray], count: int) -> RowSpan:
        """Return the span of the rows of some matrices, one for each of `count` blocks of P.

        A single matrix is for all blocks. The number of directions is that of the rows, even if
        these are linearly dependent: a few directions too many change nothing.
        """
        bases = [np.linalg.qr(half.T)[0].astype(np.float64, copy=False) for half in halves]
        return cls(bases * count if len(bases) == 1 else bases)

    @property
    def cone(self) -> PSD:
        """Cone of the matrices M in coordinates of the span."""
        return PSD(self.side, self.n_params)

    def times(self, L: FloatArray) -> FloatArray:
        """Return V @ L."""
        parts = np.split(L, np.cumsum([block.shape[1] for block in self.blocks])[:-1])
        return np.vstack([block @ part for block, part in zip(self.blocks, parts, strict=True)])

    def against(self, U: FloatArray) -> FloatArray:
        """Return Vᵀ @ U."""
        parts = np.split(U, np.cumsum([len(block) for block in self.blocks])[:-1])
        return np.vstack([block.T @ part for block, part in zip(self.blocks, parts, strict=True)])

    def whole(self, M: FloatArray) -> FloatArray:
        """See :meth:`Span.whole`; the result is a U of shape (n_params, rank of M).

        That of a diagonal M, such as the centre, needs no products.
        """
        diagonal = np.diagonal(M)
        if np.count_nonzero(M) > np.count_nonzero(diagonal):
            return self.times(positive_factor(M))
        kept = diagonal > 0.0
        U = np.zeros((self.n_params, int(np.count_nonzero(kept))))
        row = column = used = 0
        for block in self.blocks:
            own = slice(column, column + block.shape[1])
            part = block if kept[own].all() else block[:, kept[own]]  # a copy is as large as U
            rows, columns = slice(row, row + len(block)), slice(used, used + part.shape[1])
            np.multiply(part, np.sqrt(diagonal[own][kept[own]]), out=U[rows, columns])
            row, column, used = rows.stop, own.stop, columns.stop
        return U

    def own(self, P: FloatArray) -> FloatArray:
        """See :meth:`Span.own`."""
        thin = self.against(P)
        M: FloatArray = thin @ thin.T if is_factor(P) else self.against(thin.T)
        trace, seen = PSD(self.n_params).trace(P), self.cone.trace(M)
        if not seen > np.finfo(float).eps * trace:
            return trace * self.cone.centre
        return (0.5 * trace / seen) * (M + M.T)


class SumSpan:
    """The span of the rows for each part of a sum of kernel sets.

    Parameters
    ----------
    parts : sequence of Span or None
        Span of each part. None stands for all parameters of the part.
    """

    def __init__(self, parts: Sequence[Span | None]) -> None:
        self.parts = tuple(parts)

    def whole(self, M: Blocks) -> Blocks:
        """See :meth:`Span.whole`."""
        own = zip(self.parts, M, strict=True)
        return Blocks(block if part is None else part.whole(block) for part, block in own)

    def own(self, P: Blocks) -> Blocks:
        """See :meth:`Span.own`."""
        own = zip(self.parts, P, strict=True)
        return Blocks(block if part is None else part.own(block) for part, block in own)


def span_side(n_params: int, directions: int) -> int | None:
    """Return the side of M for rows with so many directions, or None if P itself is to be learned.

    P stays a matrix where it is small, and where the rows have nearly as many directions.
    """
    if n_params < _LEAST_SIDE or directions > _WORTHWHILE * n_params:
        return None
    return directions
