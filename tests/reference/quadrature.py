"""Tessellated kernels from their definition, by quadrature on cells that avoid the jumps."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np


def all_exponents(n_variables, degree):
    """Every exponent of total degree at most `degree`, by brute force."""
    every = product(range(degree + 1), repeat=n_variables)
    return np.array([e for e in every if sum(e) <= degree], dtype=int)


def basis_vector(z, x, x_powers, z_powers):
    """N(z, x) of shape (nodes, 2q), straight from the definition."""
    monomials = np.prod(x**x_powers, axis=1) * np.prod(z[:, None, :] ** z_powers, axis=2)
    above = np.all(z >= x, axis=1)[:, None]
    return np.hstack([monomials * above, monomials * ~above])


def cell_rule(x, y, lower, upper, order=6):
    """Gauss nodes and weights on the cells cut by the coordinates of x and y."""
    nodes, weights = np.polynomial.legendre.leggauss(order)
    axes = []
    for a, b, low, high in zip(x, y, lower, upper, strict=True):
        cuts = np.unique(np.clip([low, a, b, high], low, high))
        z = [0.5 * (hi - lo) * nodes + 0.5 * (hi + lo) for lo, hi in pairwise(cuts)]
        w = [0.5 * (hi - lo) * weights for lo, hi in pairwise(cuts)]
        axes.append((np.concatenate(z), np.concatenate(w)))
    points = np.stack(np.meshgrid(*[z for z, _ in axes], indexing="ij"), -1)
    total = np.ones(1)
    for _, w in axes:
        total = np.multiply.outer(total, w).ravel()
    return points.reshape(-1, len(x)), total


def kernel_block_matrix(x, y, delta, x_powers, z_powers):
    """G(x, y) = mean over the box of N(z, x) N(z, y)ᵀ; delta is one margin or one per feature."""
    margins = np.broadcast_to(delta, len(x))
    lower, upper = -margins, 1.0 + margins
    z, weights = cell_rule(x, y, lower, upper)
    weights = weights / np.prod(upper - lower)
    left = basis_vector(z, x, x_powers, z_powers)
    right = basis_vector(z, y, x_powers, z_powers)
    return (left * weights[:, None]).T @ right
