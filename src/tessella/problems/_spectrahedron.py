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

    def checked(self, P: ArrayLike | None) -> FloatArray:
        """P as an array if it is feasible, the centre for None."""
        if P is None:
            return self.centre
        given = np.array(P, dtype=np.float64)
        if not self.contains(given):
            raise ValueError(
                f"P0 must be positive semidefinite of shape ({self.side}, {self.side}) with "
                f"trace {self.side}."
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
