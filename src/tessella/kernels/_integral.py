"""Kernels from any bounded function N(z, x), by numerical integration."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import qmc

from tessella.kernels._base import FloatArray
from tessella.kernels._features import FiniteKernelSet

Basis = Callable[[FloatArray, FloatArray], Any]


@dataclass
class IntegralKernels(FiniteKernelSet):
    """Kernels ``k(x, y) = mean over z in a box of N(z, x)ᵀ P N(z, y)`` for a given function N.

    The mean is taken over finitely many nodes with positive weights, so every member of the family
    is a positive semidefinite kernel, whatever the accuracy of the quadrature.

    Parameters
    ----------
    basis : callable
        ``basis(z, X)`` for z of shape (t, dim) and X of shape (m, n), scaled to the unit cube,
        returns N of shape (t, m, n_params). It must be bounded. To pickle models, it has to be
        importable (a function of a module, not a lambda).
    lower : array-like of shape (dim,)
        Lower corner of the box of z.
    upper : array-like of shape (dim,)
        Upper corner of the box of z.
    nodes : int or (points, weights), default=256
        Number of nodes, in total for ``rule="sobol"`` and per coordinate for ``rule="gauss"``. The
        nodes themselves can be given as points of shape (t, dim) and positive weights of shape
        (t,).
    rule : {"sobol", "gauss"}, default="sobol"
        Rule for the choice of nodes. "sobol" are scrambled Sobol' points with a fixed seed, for any
        `dim` and discontinuous N. "gauss" is a tensor Gauss-Legendre rule, for smooth N and small
        `dim`. Ignored if the nodes themselves are given.

    Notes
    -----
    The integral is divided by the volume of the box, as in :class:`TessellatedKernels`, so `C`
    keeps its meaning if the box changes. A binding holds m * nodes * n_params numbers.

    Examples
    --------
    Cosines of random frequency give kernels with a learned spectral density:

    >>> import numpy as np
    >>> from tessella.kernels import IntegralKernels
    >>> def waves(z, X):
    ...     phase = z @ X.T
    ...     return np.stack([np.cos(phase), np.sin(phase)], axis=-1)
    >>> kernels = IntegralKernels(waves, lower=[-5.0], upper=[5.0], nodes=32, rule="gauss")
    >>> K = kernels.bind([[0.0], [0.5], [1.0]]).gram(np.eye(2))
    >>> bool(np.allclose(K, np.sinc(5.0 / np.pi * np.array([[0, .5, 1], [.5, 0, .5], [1, .5, 0]]))))
    True
    """

    basis: Basis
    lower: ArrayLike
    upper: ArrayLike
    nodes: Any = 256
    rule: str = "sobol"

    family: ClassVar[str | None] = None

    def quadrature(self) -> tuple[FloatArray, FloatArray]:
        """Return the nodes of shape (t, dim) and their weights, which sum to one by default."""
        lower = np.atleast_1d(np.asarray(self.lower, dtype=np.float64))
        upper = np.atleast_1d(np.asarray(self.upper, dtype=np.float64))
        if lower.shape != upper.shape or lower.ndim != 1 or not (lower < upper).all():
            raise ValueError(
                f"lower={self.lower!r} and upper={self.upper!r} must be vectors of one length "
                "with lower < upper."
            )
        if not isinstance(self.nodes, int | np.integer):
            return self._given_nodes(len(lower))
        if self.nodes < 1:
            raise ValueError(f"nodes={self.nodes!r} must be at least 1.")
        if self.rule == "gauss":
            return _gauss_grid(int(self.nodes), lower, upper)
        if self.rule == "sobol":
            points = qmc.Sobol(len(lower), seed=0).random_base2(int(self.nodes - 1).bit_length())
            points = lower + points[: self.nodes] * (upper - lower)
            return points, np.full(len(points), 1.0 / len(points))
        raise ValueError(f"rule={self.rule!r} is unknown; use 'sobol' or 'gauss'.")

    def _given_nodes(self, dim: int) -> tuple[FloatArray, FloatArray]:
        points, weights = (np.asarray(part, dtype=np.float64) for part in self.nodes)
        if points.ndim != 2 or points.shape[1] != dim or weights.shape != (len(points),):
            raise ValueError(
                f"nodes must be points of shape (t, {dim}) and weights of shape (t,), got "
                f"{points.shape} and {weights.shape}."
            )
        if not (weights > 0).all():
            raise ValueError("the weights of nodes must be positive, or k would not be a kernel.")
        return points, weights

    def count_params(self, n_features: int) -> int:
        """See :meth:`KernelSet.count_params`; the basis is evaluated once."""
        points, _ = self.quadrature()
        return int(self._evaluate(points[:1], np.zeros((1, n_features))).shape[2])

    def count_nodes(self, n_features: int) -> int:
        """See :meth:`FiniteKernelSet.count_nodes`."""
        del n_features
        return len(self.quadrature()[1])

    def features(self, X: FloatArray) -> FloatArray:
        """Return ``√ω_t N(z_t, x)``, of shape (len(X), nodes, n_params)."""
        points, weights = self.quadrature()
        values = self._evaluate(points, X) * np.sqrt(weights)[:, None, None]
        return np.ascontiguousarray(values.transpose(1, 0, 2))

    def _evaluate(self, points: FloatArray, X: FloatArray) -> FloatArray:
        values = np.asarray(self.basis(points, X), dtype=np.float64)
        if values.ndim != 3 or values.shape[:2] != (len(points), len(X)):
            raise ValueError(
                f"basis returned shape {values.shape} for {len(points)} nodes and {len(X)} rows; "
                f"expected ({len(points)}, {len(X)}, n_params)."
            )
        if not np.isfinite(values).all():
            raise ValueError("basis returned a NaN or an infinity; N must be bounded.")
        return values


def _gauss_grid(count: int, lower: FloatArray, upper: FloatArray) -> tuple[FloatArray, FloatArray]:
    nodes, weights = np.polynomial.legendre.leggauss(count)
    grid = np.stack(np.meshgrid(*[nodes] * len(lower), indexing="ij"), axis=-1)
    points = lower + 0.5 * (grid.reshape(-1, len(lower)) + 1.0) * (upper - lower)
    product = np.ones(1)
    for _ in lower:
        product = np.multiply.outer(product, 0.5 * weights).ravel()
    return points, product
