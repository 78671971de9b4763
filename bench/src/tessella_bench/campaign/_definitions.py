"""Kernels by their definitions, in extended precision and without the library's numerics.

A family is read from the public parameters of a fitted kernel set (`model.kernel_.kernels`), and
its kernel matrices are computed from the formulas of the specification: the closed forms of the
integrals for tessellated kernels, basis function by basis function, and the formulas of the
documentation for the other kernels. Nothing is imported from the library, so that a mistake in its
factorised, streamed and compiled evaluations cannot hide here. Everything is slow and holds one
matrix for each entry of the parameter: it is for a few dozen rows and small parameters.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from itertools import combinations_with_replacement
from math import prod
from typing import Any, TypeAlias

import numpy as np

Long = np.longdouble
# Arrays of extended precision, whose arithmetic mypy does not follow.
LongArray: TypeAlias = Any


class Family(ABC):
    """All kernels of a kernel set on the training rows, by definition."""

    @abstractmethod
    def matrix(self, parameter: Any) -> LongArray:
        """Return the kernel matrix of the training rows for a parameter."""

    @abstractmethod
    def support(self, W: LongArray) -> Any:
        """Return the largest ``sum of w @ K(P) @ w`` over the rows w of W and all parameters P.

        Where rounding is involved, the result is an upper bound.
        """

    @abstractmethod
    def infeasibility(self, parameter: Any) -> float:
        """Return by how much a parameter misses its feasible set: zero, or a rounding error."""

    @abstractmethod
    def trace(self, parameter: Any) -> float:
        """Return the linear functional that is one on feasible parameters."""


class MatrixFamily(Family):
    """A family ``k(x, y) = <P, G(x, y)>`` with a positive semidefinite matrix P of trace n_P."""

    def __init__(self, G: Sequence[Sequence[LongArray]], floor: float = 0.0) -> None:
        self._G, self._side, self._floor = G, len(G), Long(floor)

    def matrix(self, parameter: Any) -> LongArray:
        """See :meth:`Family.matrix`."""
        P = np.asarray(parameter, dtype=Long)
        total = np.zeros_like(self._G[0][0])
        for i in range(self._side):
            for j in range(self._side):
                total += P[i, j] * self._G[i][j]
        return total

    def support(self, W: LongArray) -> Any:
        """See :meth:`Family.support`; n_P times the largest eigenvalue of D, beside the floor."""
        side = self._side
        D = np.array([[_quadratic(self._G[i][j], W) for j in range(side)] for i in range(side)])
        free = side * largest_eigenvalue((D + D.T) / 2)
        return self._floor * np.trace(D) + (1 - self._floor) * free

    def infeasibility(self, parameter: Any) -> float:
        """See :meth:`Family.infeasibility`."""
        P = np.asarray(parameter, dtype=np.float64)
        if P.shape != (self._side, self._side) or not np.isfinite(P).all():
            return np.inf
        lowest = float(np.linalg.eigvalsh((P + P.T) / 2)[0]) / self._side
        return max(float(np.abs(P - P.T).max()), -lowest)

    def trace(self, parameter: Any) -> float:
        """See :meth:`Family.trace`."""
        return float(np.trace(np.asarray(parameter, dtype=Long)) / self._side)


class WeightFamily(Family):
    """Weighted sums of given kernel matrices, with nonnegative weights that sum to one."""

    def __init__(self, matrices: Sequence[LongArray], floor: float = 0.0) -> None:
        self._matrices, self._floor = matrices, Long(floor)

    def matrix(self, parameter: Any) -> LongArray:
        """See :meth:`Family.matrix`."""
        weights = np.asarray(parameter, dtype=Long)
        parts = zip(weights, self._matrices, strict=True)
        return np.sum([weight * own for weight, own in parts], axis=0)

    def support(self, W: LongArray) -> Any:
        """See :meth:`Family.support`; the largest value of a single kernel, beside the floor."""
        values = np.array([_quadratic(own, W) for own in self._matrices])
        return self._floor * values.mean() + (1 - self._floor) * values.max()

    def infeasibility(self, parameter: Any) -> float:
        """See :meth:`Family.infeasibility`."""
        weights = np.asarray(parameter, dtype=np.float64)
        if weights.shape != (len(self._matrices),) or not np.isfinite(weights).all():
            return np.inf
        return max(0.0, -float(weights.min()))

    def trace(self, parameter: Any) -> float:
        """See :meth:`Family.trace`."""
        return float(np.asarray(parameter, dtype=Long).sum())


class SumFamily(Family):
    """Convex combinations of one kernel from each of several families."""

    def __init__(self, parts: Sequence[Family]) -> None:
        self._parts = parts

    def matrix(self, parameter: Any) -> LongArray:
        """See :meth:`Family.matrix`."""
        pairs = zip(self._parts, parameter, strict=True)
        return np.sum([part.matrix(own) for part, own in pairs], axis=0)

    def support(self, W: LongArray) -> Any:
        """See :meth:`Family.support`; the largest of the parts."""
        return max(part.support(W) for part in self._parts)

    def infeasibility(self, parameter: Any) -> float:
        """See :meth:`Family.infeasibility`."""
        return max(
            part.infeasibility(own) for part, own in zip(self._parts, parameter, strict=True)
        )

    def trace(self, parameter: Any) -> float:
        """See :meth:`Family.trace`."""
        return sum(part.trace(own) for part, own in zip(self._parts, parameter, strict=True))


def _quadratic(K: LongArray, W: LongArray) -> Any:
    """Return the sum of ``w @ K @ w`` over the rows w of W."""
    return np.sum(W * (W @ K.T))


def largest_eigenvalue(D: LongArray) -> Any:
    """Return an upper bound of the largest eigenvalue that is sharp to the last digits.

    Eigenvectors in double precision nearly diagonalise the matrix, and Gershgorin's circles bound
    the eigenvalues of what is left, which is computed in extended precision.
    """
    size = np.abs(D).max()
    if not np.isfinite(size) or size == 0:
        return Long(size)
    V = np.linalg.eigh((D / size).astype(np.float64))[1].astype(Long)
    for k in range(V.shape[1]):  # orthonormal to extended precision, by Gram and Schmidt
        for _ in range(2):
            V[:, k] -= V[:, :k] @ (V[:, :k].T @ V[:, k])
        V[:, k] /= np.sqrt(V[:, k] @ V[:, k])
    T = V.T @ (D / size) @ V
    radius = np.abs(T).sum(axis=1) - np.abs(np.diagonal(T))
    return size * (np.diagonal(T) + radius).max()


def family_of(resolved: Any, X: LongArray, given: Any = None, floor: float = 0.0) -> Family:
    """Return the family that a fitted kernel set stands for, on scaled rows.

    Parameters
    ----------
    resolved : KernelSet
        The kernel set of a fitted model, ``model.kernel_.kernels``.
    X : ndarray of shape (m, n)
        Scaled training rows, from :func:`scaled_rows`.
    given : KernelSet, optional
        The kernel set that was passed to the estimator. Only its floors are read, which the fitted
        kernel set no longer has. Not needed for names such as "tessellated".
    floor : float
        Floor of a set around this one.
    """
    floor = max(floor, float(getattr(given, "floor", 0.0)))
    kind = type(resolved).__name__
    if type(given).__name__ == "KernelsWithFloor":
        return family_of(resolved, X, given.kernels, floor)
    if kind == "KernelsOnFeatures":
        inner = given.kernels if type(given).__name__ == kind else given
        return family_of(resolved.kernels, X[:, list(resolved.features)], inner, floor)
    if kind == "KernelSum":
        parts = getattr(given, "parts", (None,) * len(resolved.parts))
        if floor:
            raise ValueError("A floor under a whole sum is not covered; give each part its own.")
        return SumFamily(
            [family_of(own, X, g) for own, g in zip(resolved.parts, parts, strict=True)]
        )
    if kind == "FittedDictionary":
        return WeightFamily(_dictionary_matrices(resolved, X), floor)
    if kind in _SINGLE:
        return WeightFamily([_SINGLE[kind](resolved, X)])
    return MatrixFamily(_MATRIX[kind](resolved, X), floor)


def scaled_rows(box: Any, X: Any) -> LongArray:
    """Return raw rows in the coordinates of a fitted kernel, from the knots of its scaling."""
    raw = np.asarray(X, dtype=Long)
    columns, start = [], 0
    for column, count in zip(box.kept, box.counts, strict=True):
        knots = np.asarray(box.knots[start : start + count], dtype=Long)
        heights = np.asarray(box.heights[start : start + count], dtype=Long)
        columns.append(_piecewise_linear(raw[:, column], knots, heights))
        start += count
    return np.stack(columns, axis=1)


def _piecewise_linear(values: LongArray, knots: LongArray, heights: LongArray) -> LongArray:
    """Interpolate between knots; np.interp would round to double precision."""
    if np.isinf(knots[-1]):  # a constant column that was kept
        return np.full(len(values), heights[0])
    place = np.clip(np.searchsorted(knots, values, side="right") - 1, 0, len(knots) - 2)
    share = (values - knots[place]) / (knots[place + 1] - knots[place])
    return heights[place] + share * (heights[place + 1] - heights[place])


# ------------------------------------------------------------------------------ matrix families


def _powers(variables: int, degree: int) -> list[tuple[int, ...]]:
    """Return the exponents of all monomials of total degree at most `degree`, by degree."""
    return [
        tuple(choice.count(variable) for variable in range(variables))
        for total in range(degree + 1)
        for choice in combinations_with_replacement(range(variables), total)
    ]


def _monomial(X: LongArray, powers: Sequence[int]) -> LongArray:
    return prod((X[:, j] ** power for j, power in enumerate(powers)), start=np.ones(len(X), Long))


def _tessellated(kernels: Any, X: LongArray) -> list[list[LongArray]]:
    """Return G(x, y), entry by entry, from the closed forms of the integrals over the box."""
    n = X.shape[1]
    margin = np.broadcast_to(np.asarray(kernels.delta, dtype=Long), (n,))
    lower, upper = -margin, 1 + margin
    volume = np.prod(upper - lower)
    basis = _tessellated_powers(kernels.monomials, n, kernels.degree)
    corner = np.clip(X, lower, upper)
    both = np.maximum(corner[:, None, :], corner[None, :, :])

    def integral(limits: LongArray, power: Sequence[int]) -> LongArray:
        """The integral of z^power over the box above `limits`, divided by the volume."""
        terms = [
            (upper[r] ** (s + 1) - limits[..., r] ** (s + 1)) / (s + 1) for r, s in enumerate(power)
        ]
        return prod(terms[1:], start=terms[0]) / volume

    q = len(basis)
    first, second = _tessellated_scales(kernels.balance, integral(corner, [0] * n), q)
    G: list[list[LongArray]] = [[np.zeros(0, Long)] * (2 * q) for _ in range(2 * q)]
    for i, (x_power, z_power) in enumerate(basis):
        for j, (y_power, other_power) in enumerate(basis):
            power = [a + b for a, b in zip(z_power, other_power, strict=True)]
            factor = np.outer(_monomial(X, x_power), _monomial(X, y_power))
            above = integral(both, power)
            of_x = integral(corner, power)[:, None]
            of_y = integral(corner, power)[None, :]
            whole = integral(lower[None, :], power)[0]
            G[i][j] = factor * above * np.outer(first[i], first[j])
            G[i][q + j] = factor * (of_x - above) * np.outer(first[i], second[j])
            G[q + i][j] = factor * (of_y - above) * np.outer(second[i], first[j])
            both_below = whole - of_x - of_y + above
            G[q + i][q + j] = factor * both_below * np.outer(second[i], second[j])
    return G


def _tessellated_powers(
    monomials: str, n: int, degree: int
) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Return the powers of x and of z of each monomial, in the order of the rows of P."""
    if monomials == "x":
        return [(power, (0,) * n) for power in _powers(n, degree)]
    both = [(power[:n], power[n:]) for power in _powers(2 * n, degree)]
    return sorted(both, key=lambda pair: pair[1])  # stable: by the power of z


def _tessellated_scales(balance: Any, share: LongArray, q: int) -> tuple[LongArray, LongArray]:
    """Return the factors of the basis functions of both halves at each row, (q, m) each."""
    m = len(share)
    if isinstance(balance, str) and balance == "none":
        return np.ones((q, m), Long), np.ones((q, m), Long)
    if isinstance(balance, str) and balance == "pointwise":
        return np.tile(share**-0.5, (q, 1)), np.tile((1 - share) ** -0.5, (q, 1))
    factors = np.asarray(balance, dtype=Long)
    return np.tile(factors[:q, None], (1, m)), np.tile(factors[q:, None], (1, m))


def _polynomial(kernels: Any, X: LongArray) -> list[list[LongArray]]:
    columns = [_monomial(X, power) for power in _powers(X.shape[1], kernels.degree)]
    return [[np.outer(left, right) for right in columns] for left in columns]


def _integral(kernels: Any, X: LongArray) -> list[list[LongArray]]:
    """Return the weighted sums over the nodes that the kernel set gives."""
    points, weights = kernels.quadrature()
    values = np.asarray(kernels.basis(points, X.astype(np.float64)), dtype=Long)
    share = np.asarray(weights, dtype=Long)[:, None]
    columns = [values[:, :, k] for k in range(values.shape[2])]
    return [[(share * left).T @ right for right in columns] for left in columns]


_MATRIX: dict[str, Callable[[Any, LongArray], list[list[LongArray]]]] = {
    "TessellatedKernels": _tessellated,
    "PolynomialKernels": _polynomial,
    "IntegralKernels": _integral,
}

# ------------------------------------------------------------------------------ single kernels


def _differences(X: LongArray) -> LongArray:
    return X[:, None, :] - X[None, :, :]


def _gaussian(kernels: Any, X: LongArray) -> LongArray:
    squares = 12 * (_differences(X) ** 2).sum(axis=2) / X.shape[1]
    return np.exp(-squares / (2 * Long(kernels.width) ** 2))


def _matern(kernels: Any, X: LongArray) -> LongArray:
    squares = 12 * (_differences(X) ** 2).sum(axis=2) / X.shape[1]
    r = np.sqrt(2 * Long(kernels.nu) * squares) / Long(kernels.width)
    polynomial = 1 + r if kernels.nu == 1.5 else 1 + r + r**2 / 3
    return polynomial * np.exp(-r)


def _laplace(kernels: Any, X: LongArray) -> LongArray:
    distance = np.sqrt(Long(12)) * np.abs(_differences(X)).sum(axis=2) / X.shape[1]
    return np.exp(-distance / Long(kernels.width))


_SINGLE: dict[str, Callable[[Any, LongArray], LongArray]] = {
    "GaussianKernels": _gaussian,
    "MaternKernels": _matern,
    "LaplaceKernels": _laplace,
}


def _dictionary_matrices(dictionary: Any, X: LongArray) -> list[LongArray]:
    """Return the normalised matrix of each kernel of a fitted dictionary."""
    mean, scale = (np.asarray(own, dtype=Long) for own in (dictionary.mean, dictionary.scale))
    rows = (X - mean) / scale
    matrices = []
    for kernel, factor in zip(dictionary.kernels, dictionary.factors, strict=True):
        own = rows if kernel.features is None else rows[:, list(kernel.features)]
        K = _dictionary_kernel(kernel, own)
        if dictionary.cosine:
            root = np.sqrt(np.diagonal(K))
            root = np.where(root > 0, root, 1)
            K = K / np.outer(root, root)
        matrices.append(Long(factor) * K)
    return matrices


def _dictionary_kernel(kernel: Any, X: LongArray) -> LongArray:
    kind = type(kernel).__name__
    if kind == "Gaussian":
        squares = (_differences(X) ** 2).sum(axis=2)
        return np.exp(-squares / (2 * Long(kernel.bandwidth) ** 2))
    if kind == "Polynomial":
        return (X @ X.T + Long(kernel.offset)) ** int(kernel.degree)
    rows = X.astype(np.float64)
    return np.asarray(kernel.function(rows, rows), dtype=Long)
