"""Kernel matrices that are nearly of low rank, factorised by a few of their rows.

A tessellated kernel of many features is nearly linear, and the eigenvalues of its matrix fall by
orders of magnitude after as many as there are features. A pivoted Cholesky factorisation finds the
rows that matter. What the factor Z misses is kept on the diagonal:

    K ≈ ZᵀZ + diag(rest),    rest ≥ 0,

which has the diagonal of K, and whose systems take m r² operations for a rank of r.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tessella.backend import KernelOnDemand

FloatArray = NDArray[np.float64]

# Few features leave a tail of eigenvalues that fall like a power of their number. It is recognised
# once the factor misses little: each doubling of its rows then has to shrink what is missing. A
# matrix of low rank may have equal eigenvalues, of which the first rows miss most.
_FEWEST = 32
_TAIL = 0.1
_FALL = 0.25
# Part of the trace that a factor may miss if a smaller part would take many more rows.
_USABLE = 1e-5


@dataclass(frozen=True, eq=False)
class LowRankMatrix:
    """The matrix ``Z.T @ Z + diag(rest)``.

    Attributes
    ----------
    Z : ndarray of shape (r, m)
        Factor.
    rest : ndarray of shape (m,)
        Diagonal of what the factor misses, not negative.
    """

    Z: FloatArray
    rest: FloatArray

    @property
    def rank(self) -> int:
        """Number of rows of the factor."""
        return len(self.Z)

    def __len__(self) -> int:
        return len(self.rest)

    def __matmul__(self, v: FloatArray) -> FloatArray:
        product: FloatArray = (self.Z @ v) @ self.Z + self.rest * v
        return product

    def diagonal(self) -> FloatArray:
        """Return the diagonal, which is that of the matrix that was factorised."""
        own: FloatArray = np.einsum("km,km->m", self.Z, self.Z) + self.rest
        return own


def low_rank(
    K: NDArray[Any] | KernelOnDemand,
    most: int,
    tol: float,
    threads: int = 1,
    deadline: float | None = None,
) -> LowRankMatrix | None:
    """Return a factor of a kernel matrix, or None if it has no low rank.

    Parameters
    ----------
    K : ndarray of shape (m, m) or KernelOnDemand
        Positive semidefinite kernel matrix.
    most : int
        Largest rank.
    tol : float
        Part of the trace that the factor may miss. If a much larger factor would be needed for it,
        ten times the default of the solver is accepted.
    threads : int
        Number of threads for the rows of a KernelOnDemand.
    deadline : float, optional
        Moment of ``time.monotonic()`` at which the search ends without a factor.

    Returns
    -------
    LowRankMatrix or None

    Notes
    -----
    Reads one row of K and takes 2 m r operations for the r-th row of the factor. The factorisation
    of a matrix whose eigenvalues fall slowly ends early.

    Examples
    --------
    >>> import numpy as np
    >>> from tessella.svm import low_rank
    >>> X = np.random.default_rng(0).standard_normal((50, 3))
    >>> factor = low_rank(X @ X.T, 10, 1e-9)
    >>> factor.rank
    3
    >>> bool(np.allclose(factor.Z.T @ factor.Z, X @ X.T))
    True
    """
    rest = _diagonal(K)
    trace = float(rest.sum())
    if not 0.0 < trace < np.inf:
        return None
    Z, rank, before = np.empty((min(most, len(rest)), len(rest))), 0, 1.0
    while (missing := float(rest.sum()) / trace) > tol:
        if deadline is not None and time.monotonic() >= deadline:
            return None
        slow = rank >= _FEWEST and _FALL * before < missing < _TAIL
        is_power = rank & (rank - 1) == 0
        if rank == len(Z) or (is_power and slow):
            if missing > _USABLE:
                return None
            break
        before = missing if is_power else before
        pivot = int(np.argmax(rest))
        row = _row(K, pivot, threads) - Z[:rank, pivot] @ Z[:rank]
        Z[rank] = row / np.sqrt(rest[pivot])
        rest = np.maximum(rest - Z[rank] ** 2, 0.0)
        rest[pivot] = 0.0
        rank += 1
    return LowRankMatrix(Z[:rank].copy(), rest)


def _diagonal(K: NDArray[Any] | KernelOnDemand) -> FloatArray:
    if isinstance(K, KernelOnDemand):
        return K.diagonal()
    diagonal: FloatArray = np.maximum(K.diagonal(), 0.0).astype(np.float64)
    return diagonal


def _row(K: NDArray[Any] | KernelOnDemand, k: int, threads: int) -> FloatArray:
    if isinstance(K, KernelOnDemand):
        return K.row(k, threads)
    row: FloatArray = K[k].astype(np.float64)
    return row
