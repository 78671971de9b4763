"""The minimiser of a quadratic model of the value over the feasible set."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import helmert

from tessella.cones import Cone, LinearSensitivities, Point
from tessella.solvers.central_path import state_near
from tessella.svm import (
    CentralPathProblem,
    DualProblem,
    Halves,
    InteriorPoint,
    Linearisation,
    SquaredLoss,
)

FloatArray = NDArray[np.float64]


class QuadraticModel(CentralPathProblem):
    """A quadratic model of the value, as a saddle point for the interior point method.

    With H = BᵀB, the model is ``max_v v·B(M₀ - M) - ½ v·v - ½<D, M - M₀>`` up to a constant: a
    problem with a kernel matrix of zeros, the squared loss and sensitivities B that are constant.
    The iteration requires that the dual variables sum to zero, so v is written in an orthonormal
    basis of the vectors with this property, which has one entry more.
    """

    def __init__(self, cone: Cone, M0: Point, D: Point, H: FloatArray) -> None:
        values, vectors = np.linalg.eigh(H)
        B = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
        rows: FloatArray = helmert(len(B) + 1).T @ B
        self.cone = cone
        self._M0 = M0
        self._half_gradient = 0.5 * D
        self._J = LinearSensitivities(rows, cone)
        self._K = np.zeros((len(rows), len(rows)))
        self.dual = DualProblem(SquaredLoss(self._J.apply(M0), 1.0))  # type: ignore[arg-type]
        self.halves = Halves.of(self.dual)
        self.sum_w = np.zeros(1)

    def linearise(self, w: FloatArray, M: Point, L: Point) -> Linearisation:
        """See :meth:`CentralPathProblem.linearise`."""
        del L
        pull = self._half_gradient + self._J.adjoint(w)
        return Linearisation(self._K, self._J, self._J.apply(M), pull)

    def minimiser(self, accuracy: float, max_steps: int) -> Point:
        """Return a point whose model value is within `accuracy` of the smallest one."""
        M = self.cone.interior(self._M0)
        method = InteriorPoint(self, *state_near(self, M, self._J.apply(self._M0 - M)))
        for _ in range(max_steps):
            if method.gap <= accuracy or method.advance() == 0.0:
                break
        return method.state.M
