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
from functools import cache
from itertools import combinations_with_replacement
from math import prod
from typing import Any, TypeAlias

import numpy as np

Long = np.longdouble
_EPS = Long(np.finfo(np.float64).eps)
_COORDINATE_UNITS = 16  # rounding errors of a coordinate of the unit cube
# Arrays of extended precision, whose arithmetic mypy does not follow.
LongArray: TypeAlias = Any


class Family(ABC):
    """All kernels of a kernel set on the training rows, by definition."""

    @abstractmethod
    def matrix(self, parameter: Any) -> LongArray:
        """Return the kernel matrix of the training rows for a parameter."""

    @abstractmethod
    def size(self, parameter: Any) -> LongArray:
        """Return the sums of the sizes of the terms that the entries of the matrix are sums of.

        Rounding errors are relative to these, and not to sums in which terms have cancelled.
        """

    @abstractmethod
    def support(self, W: LongArray) -> Any:
        """Return the largest ``sum of w @ K(P) @ w`` over the rows w of W and all parameters P.

        Where rounding is involved, the result is an upper bound.
        """

    @abstractmethod
    def support_size(self, W: LongArray) -> Any:
        """Return the sum of the sizes of the terms that the support is a sum of, or a bound."""

    @abstractmethod
    def infeasibility(self, parameter: Any) -> float:
        """Return by how much a parameter misses its feasible set: zero, or a rounding error."""

    @abstractmethod
    def trace(self, parameter: Any) -> float:
        """Return the linear functional that is one on feasible parameters."""


class MatrixFamily(Family):
    """A family ``k(x, y) = <P, G(x, y)>`` with a positive semidefinite matrix P of trace n_P."""

    def __init__(self, G: Sequence[Sequence[LongArray]], floor: float = 0.0) -> None:
        self._side, self._floor = len(G), Long(floor)
        self._G = np.array([entry for line in G for entry in line], dtype=Long)  # (side², m, m)

    def matrix(self, parameter: Any) -> LongArray:
        """See :meth:`Family.matrix`."""
        return np.tensordot(np.asarray(parameter, dtype=Long).ravel(), self._G, 1)

    def size(self, parameter: Any) -> LongArray:
        """See :meth:`Family.size`."""
        return np.tensordot(np.abs(np.asarray(parameter, dtype=Long)).ravel(), np.abs(self._G), 1)

    def support(self, W: LongArray) -> Any:
        """See :meth:`Family.support`; n_P times the largest eigenvalue of D, beside the floor."""
        side = self._side
        D = sum(((self._G @ w) @ w for w in W), start=np.zeros(side**2, Long)).reshape(side, side)
        free = side * largest_eigenvalue((D + D.T) / 2)
        return self._floor * np.trace(D) + (1 - self._floor) * free

    def support_size(self, W: LongArray) -> Any:
        """See :meth:`Family.support_size`; row sums bound eigenvalues."""
        sizes, own = np.abs(self._G), np.abs(W)
        D = sum(((sizes @ w) @ w for w in own), start=np.zeros(self._side**2, Long))
        return self._side * D.reshape(self._side, self._side).sum(axis=1).max()

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

    def __init__(self, kernels: Sequence[tuple[LongArray, LongArray]], floor: float = 0.0) -> None:
        self._matrices = [matrix for matrix, _ in kernels]
        self._sizes = [size for _, size in kernels]
        self._floor = Long(floor)

    def matrix(self, parameter: Any) -> LongArray:
        """See :meth:`Family.matrix`."""
        weights = np.asarray(parameter, dtype=Long)
        parts = zip(weights, self._matrices, strict=True)
        return np.sum([weight * own for weight, own in parts], axis=0)

    def size(self, parameter: Any) -> LongArray:
        """See :meth:`Family.size`."""
        parts = zip(np.asarray(parameter, dtype=Long), self._sizes, strict=True)
        return np.sum([np.abs(weight) * own for weight, own in parts], axis=0)

    def support(self, W: LongArray) -> Any:
        """See :meth:`Family.support`; the largest value of a single kernel, beside the floor."""
        values = np.array([_quadratic(own, W) for own in self._matrices])
        return self._floor * values.mean() + (1 - self._floor) * values.max()

    def support_size(self, W: LongArray) -> Any:
        """See :meth:`Family.support_size`."""
        return max(_quadratic(own, np.abs(W)) for own in self._sizes)

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

    def size(self, parameter: Any) -> LongArray:
        """See :meth:`Family.size`."""
        pairs = zip(self._parts, parameter, strict=True)
        return np.sum([part.size(own) for part, own in pairs], axis=0)

    def support(self, W: LongArray) -> Any:
        """See :meth:`Family.support`; the largest of the parts."""
        return max(part.support(W) for part in self._parts)

    def support_size(self, W: LongArray) -> Any:
        """See :meth:`Family.support_size`."""
        return max(part.support_size(W) for part in self._parts)

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
        return WeightFamily(_dictionary_kernels(resolved, X), floor)
    if kind in _SINGLE:
        return WeightFamily([_SINGLE[kind](resolved, X)])
    return MatrixFamily(_MATRIX[kind](resolved, X), floor)


def scaled_rows(box: Any, X: Any) -> LongArray:
    """Return raw training rows in the coordinates of a fitted kernel, numbers of double precision.

    They are the coordinates that the library uses, of which the kernels are functions, after a
    comparison with those that follow from the knots of its scaling in extended precision. A narrow
    kernel would multiply the difference, the rounding of a coordinate, by its slope.
    """
    own = np.asarray(box.apply(np.asarray(X, dtype=np.float64)), dtype=Long)
    if not np.abs(own - _by_knots(box, X)).max(initial=0) <= _COORDINATE_UNITS * _EPS:
        raise ArithmeticError("The coordinates of the rows are not those of the knots.")
    return own


def _by_knots(box: Any, X: Any) -> LongArray:
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

    @cache
    def regions(power: tuple[int, ...]) -> tuple[LongArray, ...]:
        """The integrals of z^power above both rows, above one and below the other, below both."""
        above, of_row = integral(both, power), integral(corner, power)
        of_x, of_y = of_row[:, None], of_row[None, :]
        whole = integral(lower[None, :], power)[0]
        return above, of_x - above, of_y - above, whole - of_x - of_y + above

    q = len(basis)
    first, second = _tessellated_scales(kernels.balance, integral(corner, [0] * n), q)
    left = [(_monomial(X, power) * first[i], power_z) for i, (power, power_z) in enumerate(basis)]
    right = [(_monomial(X, power) * second[i], power_z) for i, (power, power_z) in enumerate(basis)]
    G: list[list[LongArray]] = [[np.zeros(0, Long)] * (2 * q) for _ in range(2 * q)]
    for i in range(q):
        for j in range(q):
            power = tuple(a + b for a, b in zip(left[i][1], left[j][1], strict=True))
            above, beyond_x, beyond_y, below = regions(power)
            G[i][j] = np.outer(left[i][0], left[j][0]) * above
            G[i][q + j] = np.outer(left[i][0], right[j][0]) * beyond_x
            G[q + i][j] = np.outer(right[i][0], left[j][0]) * beyond_y
            G[q + i][q + j] = np.outer(right[i][0], right[j][0]) * below
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


def _with_size(K: LongArray, norms: LongArray) -> tuple[LongArray, LongArray]:
    """Return a kernel of distances and its size.

    Distances are computed from coordinates in units of the width, perhaps after another origin was
    chosen. The largest of their squares or sums `norms` is the size of the terms that cancel. They
    are exponents, so that their errors are relative ones.
    """
    return K, K * (1 + 2 * norms.max(initial=0))


def _gaussian(kernels: Any, X: LongArray) -> tuple[LongArray, LongArray]:
    rows = np.sqrt(Long(12) / X.shape[1]) * X / Long(kernels.width)
    K = np.exp(-(_differences(rows) ** 2).sum(axis=2) / 2)
    return _with_size(K, (rows**2).sum(axis=1))


def _matern(kernels: Any, X: LongArray) -> tuple[LongArray, LongArray]:
    rows = np.sqrt(24 * Long(kernels.nu) / X.shape[1]) * X / Long(kernels.width)
    r = np.sqrt((_differences(rows) ** 2).sum(axis=2))
    polynomial = 1 + r if kernels.nu == 1.5 else 1 + r + r**2 / 3
    return _with_size(polynomial * np.exp(-r), (rows**2).sum(axis=1))


def _laplace(kernels: Any, X: LongArray) -> tuple[LongArray, LongArray]:
    rows = np.sqrt(Long(12)) * X / X.shape[1] / Long(kernels.width)
    K = np.exp(-np.abs(_differences(rows)).sum(axis=2))
    return _with_size(K, np.abs(rows).sum(axis=1))


_SINGLE: dict[str, Callable[[Any, LongArray], tuple[LongArray, LongArray]]] = {
    "GaussianKernels": _gaussian,
    "MaternKernels": _matern,
    "LaplaceKernels": _laplace,
}


def _dictionary_kernels(dictionary: Any, X: LongArray) -> list[tuple[LongArray, LongArray]]:
    """Return the normalised matrix of each kernel of a fitted dictionary, and its size."""
    mean, scale = (np.asarray(own, dtype=Long) for own in (dictionary.mean, dictionary.scale))
    rows = (X - mean) / scale
    found = []
    for kernel, factor in zip(dictionary.kernels, dictionary.factors, strict=True):
        own = rows if kernel.features is None else rows[:, list(kernel.features)]
        K, size = _dictionary_kernel(kernel, own)
        divisor: LongArray = Long(1)
        if dictionary.cosine:
            root = np.sqrt(np.diagonal(K))
            root = np.where(root > 0, root, 1)
            divisor = np.outer(root, root)
        found.append((Long(factor) * K / divisor, Long(factor) * size / divisor))
    return found


def _dictionary_kernel(kernel: Any, X: LongArray) -> tuple[LongArray, LongArray]:
    kind = type(kernel).__name__
    if kind == "Gaussian":
        rows = X / Long(kernel.bandwidth)
        K = np.exp(-(_differences(rows) ** 2).sum(axis=2) / 2)
        return _with_size(K, (rows**2).sum(axis=1))
    if kind == "Polynomial":
        degree, offset = int(kernel.degree), Long(kernel.offset)
        size = degree * (np.abs(X) @ np.abs(X).T + np.abs(offset)) ** degree
        return (X @ X.T + offset) ** degree, size
    rows = X.astype(np.float64)
    K = np.asarray(kernel.function(rows, rows), dtype=Long)
    return K, np.abs(K)
