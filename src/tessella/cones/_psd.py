"""The cone of positive semidefinite matrices."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tessella.cones._cone import Cone, Face, Factors, Frame, LeadingFace, Scaling, Spectrum

FloatArray = NDArray[np.float64]

_WHOLE_SIDE = 64  # largest side for which an eigenproblem in every Newton step is cheap
_REMEMBERED = 2  # leading directions of D(w) that later rounds keep
_MEMORY = 16  # rounds whose leading directions are kept
_FEW = 4  # columns of a factor that are tried before a decomposition
_NEGLIGIBLE = 1e-6  # fraction of the largest eigenvalue of P below which directions are dropped


class PSD(Cone):
    """The cone of positive semidefinite matrices of side n, whose feasible points have trace n.

    Parameters
    ----------
    side : int
        Number of rows n.
    total : float, optional
        Sum of the eigenvalues of a feasible matrix. The default is `side`. A face has a smaller
        side than the cone it belongs to and the same total.
    """

    def __init__(self, side: int, total: float | None = None) -> None:
        self.side = self.degree = side
        self.total = float(side if total is None else total)

    def __repr__(self) -> str:
        return f"PSD({self.side})"

    def describe(self) -> str:
        """See :meth:`Cone.describe`."""
        return (
            f"positive semidefinite of shape ({self.side}, {self.side}) with trace "
            f"{self.total:g}, or a factor U of such a matrix U @ U.T with fewer columns"
        )

    @property
    def unit(self) -> FloatArray:
        """See :meth:`Cone.unit`."""
        return np.eye(self.side) / self.total

    @property
    def identity(self) -> FloatArray:
        """See :meth:`Cone.identity`."""
        return np.eye(self.side)

    @property
    def sizes(self) -> FloatArray:
        """See :meth:`Cone.sizes`."""
        return np.full(self.side, self.total**2)

    def trace(self, P: FloatArray) -> float:
        """See :meth:`Cone.trace`; that of U Uᵀ for a factor U with fewer columns than rows."""
        return float(np.vdot(P, P) if is_factor(P) else np.trace(P)) / self.total

    @property
    def centre(self) -> FloatArray:
        """See :meth:`Cone.centre`."""
        return np.eye(self.side) * (self.total / self.side)

    # ------------------------------------------------------------------------------- spectra

    def spectrum(self, D: FloatArray) -> Spectrum:
        """See :meth:`Cone.spectrum`."""
        values, vectors = decomposition(D)
        return Spectrum(self.total * values, vectors)

    def support_bound(self, D: FloatArray) -> float:
        """Return an upper bound of :meth:`support` for a positive semidefinite D, by its norm."""
        return self.total * float(np.linalg.norm(D))

    def shares(self, P: FloatArray) -> Spectrum:
        """See :meth:`Cone.shares`."""
        # The antisymmetric part is orthogonal to every feasible matrix.
        values, vectors = decomposition(0.5 * (P + P.T))
        return Spectrum(values / self.total, vectors)

    def compose(self, shares: FloatArray, frame: Frame) -> FloatArray:
        """See :meth:`Cone.compose`; the result is symmetric to the last bit."""
        kept = shares != 0.0
        right = frame[:, kept] * np.sqrt(self.total * np.abs(shares[kept]))
        left = right if (shares >= 0.0).all() else right * np.sign(shares[kept])
        P: FloatArray = left @ right.T
        return P

    def forms(self, D: FloatArray, frame: Frame) -> FloatArray:
        """See :meth:`Cone.forms`."""
        values: FloatArray = self.total * np.einsum("ia,ia->a", frame, D @ frame)
        return values

    # ------------------------------------------------------------------------------- factors

    def factor(self, M: FloatArray) -> FloatArray:
        """See :meth:`Cone.factor`; the result is the Cholesky factor."""
        return np.linalg.cholesky(M).astype(np.float64, copy=False)

    def square(self, L: FloatArray) -> Factors:
        """See :meth:`Cone.square`."""
        return L, L

    def factors(self, P: FloatArray) -> Factors:
        """See :meth:`Cone.factors`."""
        return symmetric_factors(P)

    def positive_factors(self, P: FloatArray) -> Factors:
        """See :meth:`Cone.positive_factors`."""
        U = positive_factor(P)
        return U, U

    def trace_of(self, factors: Factors) -> float:
        """See :meth:`Cone.trace_of`."""
        left, right = factors
        return float(np.vdot(left, right)) / self.total

    def scaling(self, L: FloatArray, S: FloatArray) -> MatrixScaling:
        """See :meth:`Cone.scaling`."""
        return MatrixScaling(L, S)

    # --------------------------------------------------------------------------------- faces

    def face(self, face: Face) -> PSD:
        """See :meth:`Cone.face`; a face is given by an orthonormal basis V of its span."""
        return self if face is None else PSD(face.shape[1], self.total)

    def compress(self, face: Face, D: FloatArray) -> FloatArray:
        """See :meth:`Cone.compress`."""
        small: FloatArray = D if face is None else face.T @ D @ face
        return small

    def restrict(self, face: Face, P: FloatArray) -> FloatArray:
        """See :meth:`Cone.restrict`."""
        return self.compress(face, P)

    def expand(self, face: Face, M: FloatArray) -> FloatArray:
        """See :meth:`Cone.expand`."""
        P: FloatArray = M if face is None else face @ M @ face.T
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

        The optimal P lies in the leading eigenspace of D at the optimal w, and the eigenspace at
        the current w is close to it. The range of P and the top directions of earlier rounds are
        included so that no round undoes an earlier one.
        """
        del D
        if self.side <= max(_WHOLE_SIDE if whole is None else whole, 2 * size):
            return LeadingFace(None, True)
        values, vectors = decomposition(P)
        held = vectors[:, values > _NEGLIGIBLE * values[-1]][:, -(size // 2) :]
        leading = spectrum.frame
        span: FloatArray = np.linalg.qr(
            np.hstack([held, leading[:, -(size // 2) :], *memory[-_MEMORY:]])
        )[0]
        memory.append(leading[:, -_REMEMBERED:])
        return LeadingFace(span, False)

    def narrow_face(
        self,
        P: FloatArray,
        D: FloatArray,
        spectrum: Spectrum,
        part: float,
        fewest: int,
        memory: list[Any],
    ) -> LeadingFace:
        """Return the smallest face with the directions that matter in P or in D.

        These are the directions in which the sum of both matrices, each divided by its largest
        eigenvalue, is above `part`. Several machines have many such directions, and the cost of a
        Newton step grows with the fourth power of their number.

        Parameters
        ----------
        P : ndarray of shape (n, n)
            Feasible matrix.
        D : ndarray of shape (n, n)
            Gradient of wᵀK(P)w at the current dual vector.
        spectrum : Spectrum
            Spectrum of D.
        part : float
            Value from which on a direction belongs to the face.
        memory : list
            Leading directions of earlier calls, which belong to the face too.
        """
        largest = float(np.linalg.eigvalsh(P)[-1])
        both = P / largest + (self.total / self.support(spectrum)) * D
        both += sum(V @ V.T for V in memory[-_MEMORY:])
        values, vectors = decomposition(_symmetrised(both))
        memory.append(spectrum.frame[:, -_REMEMBERED:])
        kept = (values > part) | (np.arange(self.side) >= self.side - fewest)
        return LeadingFace(None, True) if kept.all() else LeadingFace(vectors[:, kept], False)

    # ------------------------------------------------------------------------------- vectors

    @property
    def moves_whole(self) -> bool:
        """See :attr:`Cone.moves_whole`."""
        return self.side <= _WHOLE_SIDE

    @property
    def effective_degree(self) -> int:
        """See :attr:`Cone.effective_degree`."""
        return self.side

    def subsample_size(self, n_samples: int, least: int) -> int:
        """See :meth:`Cone.subsample_size`."""
        return least if 2 * least < n_samples else 0

    def magnitude(self, D: FloatArray) -> float:
        """See :meth:`Cone.magnitude`."""
        return self.total * float(np.abs(D).max(initial=0.0))

    @property
    def dimension(self) -> int:
        """See :meth:`Cone.dimension`."""
        return self.side * (self.side + 1) // 2

    def vector(self, P: FloatArray) -> FloatArray:
        """See :meth:`Cone.vector`; the entries are the upper triangle, column by column."""
        i, j = upper_triangle(self.side)
        entries: FloatArray = P[i, j] * np.where(i == j, 1.0, np.sqrt(2.0))
        return entries

    def point(self, vector: FloatArray) -> FloatArray:
        """See :meth:`Cone.point`."""
        i, j = upper_triangle(self.side)
        P = np.zeros((self.side, self.side))
        P[i, j] = vector / np.where(i == j, 1.0, np.sqrt(2.0))
        P[j, i] = P[i, j]
        return P

    def read(self, P: Any) -> FloatArray:
        """See :meth:`Cone.read`; a matrix with fewer columns than rows is taken as a factor U."""
        given = np.array(P, dtype=np.float64)
        if is_factor(given) and len(given) == self.side:
            given = given @ given.T
        if given.shape != (self.side, self.side):
            shape = f"({self.side}, {self.side})"
            raise ValueError(f"P has shape {np.shape(P)}, expected {shape}.")
        asymmetry = float(np.abs(given - given.T).max(initial=0.0))
        if asymmetry > 1e-9 * float(np.abs(given).max(initial=0.0)):
            raise ValueError(f"P must be symmetric; entries differ by up to {asymmetry:.3g}.")
        return given

    def read_factors(self, P: Any) -> Factors:
        """See :meth:`Cone.read_factors`; a given factor is used as it is."""
        given = np.asarray(P, dtype=np.float64)
        if is_factor(given) and len(given) == self.side:
            return given, given
        return super().read_factors(given)

    def share(self, P: Any, rtol: float) -> float:
        """See :meth:`Cone.share`; U Uᵀ is positive for every factor U and is not computed."""
        if not (is_factor(P) and len(P) == self.side):
            return super().share(P, rtol)
        return self.trace(P) if np.isfinite(P).all() else np.nan


class MatrixScaling(Scaling):
    """The scaling M = R Λ Rᵀ and S = R⁻ᵀ Λ R⁻¹ with a diagonal Λ."""

    def __init__(self, L: FloatArray, S: FloatArray) -> None:
        G = np.linalg.cholesky(S)
        _, diagonal, Vt = np.linalg.svd(G.T @ L)
        if not diagonal[-1] > 0:
            raise np.linalg.LinAlgError("M or S is no longer positive definite")
        self._diagonal = diagonal
        self.factor = self._R = (L @ Vt.T) / np.sqrt(diagonal)

    def to_scaled(self, D: FloatArray) -> FloatArray:
        """See :meth:`Scaling.to_scaled`."""
        scaled: FloatArray = self._R.T @ D @ self._R
        return scaled

    def from_scaled(self, X: FloatArray) -> FloatArray:
        """See :meth:`Scaling.from_scaled`; the result is exactly symmetric."""
        return _symmetrised(self._R @ X @ self._R.T)

    def towards(
        self, mu: float, dX: FloatArray | None = None, dZ: FloatArray | None = None
    ) -> FloatArray:
        """See :meth:`Scaling.towards`."""
        diagonal = self._diagonal
        target: FloatArray = np.diag(mu / diagonal - diagonal)
        if dX is None or dZ is None:
            return target
        error = _symmetrised(dX @ dZ)
        error *= 2.0 / (diagonal[:, None] + diagonal)
        return target - error

    def room(self, change: FloatArray) -> float:
        """See :meth:`Scaling.room`."""
        root = np.sqrt(self._diagonal)
        lowest = float(np.linalg.eigvalsh(change / root / root[:, None])[0])
        return np.inf if lowest >= 0 else -1.0 / lowest

    def complementarity(self, dX: FloatArray, dZ: FloatArray, length: float) -> float:
        """See :meth:`Scaling.complementarity`."""
        middle = np.diag(self._diagonal)
        return float(np.sum((middle + length * dX) * (middle + length * dZ)))


def decomposition(A: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the eigenvalues of a symmetric matrix, ascending, and its eigenvectors as columns.

    Those of a diagonal matrix, such as the centre of the feasible set, are known without work,
    which saves minutes for a matrix of thousands of rows.
    """
    diagonal = np.diagonal(A)
    if np.count_nonzero(A) > np.count_nonzero(diagonal):
        values, vectors = np.linalg.eigh(A)
        return values.astype(np.float64, copy=False), vectors.astype(np.float64, copy=False)
    order = np.argsort(diagonal, kind="stable")
    unit = np.zeros(A.shape)
    unit[order, np.arange(len(A))] = 1.0
    return diagonal[order].astype(np.float64), unit


def is_factor(P: Any) -> bool:
    """Return whether a parameter is a factor U of a matrix U Uᵀ: one with fewer columns than rows.

    Parameters of wide problems are kept in this form.
    """
    return isinstance(P, np.ndarray) and P.ndim == 2 and P.shape[1] < P.shape[0]


def diagonal_square(U: FloatArray) -> FloatArray | None:
    """Return the diagonal of U Uᵀ if this is a diagonal matrix by the zeros of U, or None.

    A factor of the centre of the feasible set is like that, and has as many columns as rows.
    """
    if U.shape[1] < _FEW or np.count_nonzero(U) > U.shape[1]:
        return None
    if np.count_nonzero(U, axis=0).max() > 1:
        return None
    squares: FloatArray = np.square(U).sum(axis=1)
    return squares


def symmetric_factors(P: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return (L, R) with ``P = L @ R.T`` and L = R up to signs; the rank is the number of columns.

    Directions whose eigenvalue is rounding noise are dropped: learned matrices have rank one or
    two, and every later cost grows with the number of columns. Because columns differ at most in
    their sign, a kernel matrix computed from L and R is symmetric to the last bit.
    """
    thin = _thin_factor(P) if len(P) > _WHOLE_SIDE else None
    if thin is not None:
        return thin, thin
    eigenvalues, vectors = decomposition(0.5 * (P + P.T))
    size = np.abs(eigenvalues)
    keep = size > len(P) * np.finfo(float).eps * size.max(initial=0.0)
    right = vectors[:, keep] * np.sqrt(size[keep])
    if (eigenvalues[keep] > 0.0).all():
        return right, right
    return right * np.sign(eigenvalues[keep]), right


def _thin_factor(P: FloatArray) -> FloatArray | None:
    """Return U with ``P = U @ U.T`` up to rounding if a few columns are enough, or None.

    Learned matrices have rank one or two, and a Cholesky factorisation with pivots then takes a few
    columns, where a decomposition would take all of them.
    """
    diagonal = np.diagonal(P).copy()
    largest = float(np.abs(P).max(initial=0.0))
    rounding = len(P) * np.finfo(float).eps * largest
    U = np.zeros((len(P), _FEW))
    for k in range(_FEW):
        pivot = int(np.argmax(diagonal))
        if not diagonal[pivot] > rounding:
            U = U[:, :k]
            break
        U[:, k] = (P[:, pivot] - U[:, :k] @ U[pivot, :k]) / np.sqrt(diagonal[pivot])
        diagonal -= U[:, k] ** 2
    return U if float(np.abs(P - U @ U.T).max(initial=0.0)) <= rounding else None


def positive_factor(P: FloatArray) -> FloatArray:
    """Return U with ``P = U @ U.T``; negative eigenvalues of P are dropped as rounding."""
    left, right = symmetric_factors(P)
    return right[:, (left == right).all(axis=0)]


@lru_cache(maxsize=8)  # a model of the value asks for it with every step and every column
def upper_triangle(side: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the row and the column of each entry of the upper triangle, column by column."""
    column, row = np.tril_indices(side)
    for positions in (row, column):
        positions.flags.writeable = False
    return row, column


def _symmetrised(A: FloatArray) -> FloatArray:
    return 0.5 * (A + A.T)
