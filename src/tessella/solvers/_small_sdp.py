"""A quadratic over a small spectrahedron, by a primal-dual interior point method."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, solve_triangular

FloatArray = NDArray[np.float64]

_MAX_ITER = 60
_TOL = 1e-11
_STEP = 0.97


class SymmetricVectors:
    """Symmetric r × r matrices as vectors, so that inner products agree."""

    def __init__(self, side: int) -> None:
        self.side = side
        self._rows, self._cols = np.triu_indices(side)
        self._weight = np.where(self._rows == self._cols, 1.0, np.sqrt(2.0))

    @property
    def size(self) -> int:
        """Length of the vectors."""
        return len(self._rows)

    def to_vector(self, matrix: FloatArray) -> FloatArray:
        """Vector of a symmetric matrix, or of each of a stack of them."""
        vector: FloatArray = matrix[..., self._rows, self._cols] * self._weight
        return vector

    def to_matrix(self, vector: FloatArray) -> FloatArray:
        """The symmetric matrix of a vector."""
        matrix = np.zeros((self.side, self.side))
        matrix[self._rows, self._cols] = vector / self._weight
        matrix[self._cols, self._rows] = matrix[self._rows, self._cols]
        return matrix

    @cached_property
    def trace(self) -> FloatArray:
        """Vector t with ``t @ to_vector(M) = trace M``."""
        return self.to_vector(np.eye(self.side))

    def congruence(self, A: FloatArray) -> FloatArray:
        """Matrix of the map M ↦ A M A for symmetric A."""
        i, j, weight = self._rows, self._cols, self._weight
        product = A[np.ix_(i, i)] * A[np.ix_(j, j)] + A[np.ix_(i, j)] * A[np.ix_(j, i)]
        scaled: FloatArray = 0.5 * product * np.outer(weight, weight)
        return scaled


def minimise_quadratic(G: FloatArray, H: FloatArray, trace: float) -> FloatArray:
    """Minimise ``<G, M> + ½ m'Hm`` over M ⪰ 0 with the given trace.

    Parameters
    ----------
    G : ndarray of shape (r, r)
        Linear term.
    H : ndarray of shape (r(r+1)/2, r(r+1)/2)
        Positive semidefinite, acting on :class:`SymmetricVectors`.
    trace : float
        Trace of M.

    Returns
    -------
    ndarray of shape (r, r)

    Notes
    -----
    Mehrotra's predictor-corrector with Nesterov-Todd scaling; some fifteen Cholesky
    factorisations of side r(r+1)/2.
    """
    vectors = SymmetricVectors(len(G))
    side, t = vectors.side, vectors.trace
    if side == 1:
        return np.full((1, 1), trace)
    g = vectors.to_vector(G)
    M = np.eye(side) * (trace / side)
    scale = max(float(np.abs(G).max()), float(np.abs(H @ vectors.to_vector(M)).max()), 1e-300)
    S = scale * np.eye(side)
    nu = 0.0
    for _ in range(_MAX_ITER):
        m, s = vectors.to_vector(M), vectors.to_vector(S)
        residual = g + H @ m - nu * t - s
        complementarity = float(m @ s)
        if complementarity <= _TOL * scale * trace and np.abs(residual).max() <= _TOL * scale:
            break
        try:
            L = np.linalg.cholesky(M)
            inverse = solve_triangular(L, np.eye(side), lower=True)
            values, Q = np.linalg.eigh(L.T @ S @ L)
            if values[0] <= 0:
                break
            half = inverse.T @ Q
            scaling = (half * np.sqrt(values)) @ half.T
            factor = cho_factor(H + vectors.congruence(scaling), check_finite=False)
        except np.linalg.LinAlgError:
            break
        solved_trace = cho_solve(factor, t, check_finite=False)
        inverse_M = vectors.to_vector(inverse.T @ inverse)

        def direction(
            target: float, correction: FloatArray
        ) -> tuple[FloatArray, FloatArray, float]:
            centre = target * inverse_M - s - correction
            solved = cho_solve(factor, centre - residual, check_finite=False)
            d_nu = -float(t @ solved) / float(t @ solved_trace)
            dm = solved + d_nu * solved_trace
            ds = residual + H @ dm - d_nu * t
            return dm, ds, d_nu

        dm, ds, _ = direction(0.0, np.zeros_like(s))
        affine = min(_room(vectors, M, dm), _room(vectors, S, ds), 1.0)
        reached = float((m + affine * dm) @ (s + affine * ds))
        centring = min(1.0, max(1e-6, (reached / complementarity) ** 3))
        second_order = _symmetrised(
            inverse.T @ inverse @ vectors.to_matrix(dm) @ vectors.to_matrix(ds)
        )
        target = centring * complementarity / side
        dm, ds, d_nu = direction(target, vectors.to_vector(second_order))
        length = min(1.0, _STEP * min(_room(vectors, M, dm), _room(vectors, S, ds)))
        M = _symmetrised(M + length * vectors.to_matrix(dm))
        S = _symmetrised(S + length * vectors.to_matrix(ds))
        nu += length * d_nu
        if length < 1e-8:
            break
    return M * (trace / float(np.trace(M)))


def _symmetrised(A: FloatArray) -> FloatArray:
    return 0.5 * (A + A.T)


def _room(vectors: SymmetricVectors, A: FloatArray, change: FloatArray) -> float:
    """Largest step along `change` that keeps A positive semidefinite."""
    L = np.linalg.cholesky(A)
    inverse = solve_triangular(L, np.eye(len(A)), lower=True)
    lowest = float(np.linalg.eigvalsh(inverse @ vectors.to_matrix(change) @ inverse.T)[0])
    return np.inf if lowest >= 0 else -1.0 / lowest
