"""The feasible set of P."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Spectrahedron:
    """Positive semidefinite matrices of side n and trace n."""

    side: int

    @property
    def centre(self) -> FloatArray:
        """The identity: the feasible matrix that prefers no direction."""
        return np.eye(self.side)

    def vertex(self, direction: FloatArray) -> FloatArray:
        """Factor u of shape (n, 1) of the extreme point ``u @ u.T`` along a unit `direction`."""
        factor: FloatArray = np.sqrt(self.side) * direction[:, None]
        return factor

    def project(self, A: ArrayLike) -> FloatArray:
        """The feasible matrix nearest to a square A, in the Frobenius norm.

        The eigenvectors of the symmetric part stay, the eigenvalues are projected on the simplex
        they have to lie on. Exact up to rounding; costs one eigen-decomposition.
        """
        given = np.asarray(A, dtype=np.float64)
        if given.shape != (self.side, self.side):
            raise ValueError(f"A has shape {given.shape}, expected ({self.side}, {self.side}).")
        # The antisymmetric part is orthogonal to every feasible matrix.
        values, vectors = np.linalg.eigh(0.5 * (given + given.T))
        projected = project_on_simplex(values, float(self.side))
        positive = projected > 0.0
        # P = F Fᵀ is symmetric to the last bit.
        factor = vectors[:, positive] * np.sqrt(projected[positive])
        P: FloatArray = factor @ factor.T
        return P

    def checked(self, P: ArrayLike | None) -> FloatArray:
        """P as an array if it is feasible, the centre for None.

        A matrix with fewer columns than rows is taken as a factor U of P = U Uᵀ.
        """
        if P is None:
            return self.centre
        given = np.array(P, dtype=np.float64)
        if given.ndim == 2 and given.shape[1] < len(given):
            given = given @ given.T
        if not self.contains(given):
            raise ValueError(
                f"P0 must be positive semidefinite of shape ({self.side}, {self.side}) with "
                f"trace {self.side}, or a factor U of such a matrix with fewer columns."
            )
        return given

    def contains(self, P: FloatArray, rtol: float = 1e-8) -> bool:
        """Whether P is feasible up to `rtol` times the trace."""
        if P.shape != (self.side, self.side) or not np.isfinite(P).all():
            return False
        slack = rtol * self.side
        symmetric = float(np.abs(P - P.T).max()) <= slack
        balanced = abs(float(np.trace(P)) - self.side) <= slack
        return symmetric and balanced and float(np.linalg.eigvalsh(P)[0]) >= -slack


def project_on_simplex(values: FloatArray, total: float) -> FloatArray:
    """The point of ``{x >= 0, sum(x) == total}`` nearest to `values`.

    It is ``max(values - shift, 0)``. With the j largest entries positive the sum fixes the shift;
    the right j is the largest one for which the j-th entry stays positive.
    """
    descending = np.sort(values)[::-1]
    shifts = (np.cumsum(descending) - total) / np.arange(1, len(values) + 1)
    shift = shifts[np.flatnonzero(descending > shifts)[-1]]
    projected: FloatArray = np.maximum(values - shift, 0.0)
    return projected
