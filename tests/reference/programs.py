"""The SVM and kernel-learning problems as generic convex programs (cvxpy + Clarabel)."""

from __future__ import annotations

import warnings

import cvxpy as cp
import numpy as np

from tessella.cones import PSD, Blocks, ProductCone

_TIGHT = {"tol_gap_abs": 1e-11, "tol_gap_rel": 1e-11, "tol_feas": 1e-11, "max_iter": 300}


def svm_primal_value(K, dual):
    """Optimal value of ½‖f‖² + loss for the kernel matrix K, in the span of its rows."""
    eigenvalues, vectors = np.linalg.eigh(K)
    root = vectors * np.sqrt(np.maximum(eigenvalues, 0.0))
    beta, b = cp.Variable(len(K)), cp.Variable()
    residual = dual.linear - root @ beta - b
    loss = dual.upper @ cp.pos(residual - dual.epsilon) - dual.lower @ cp.pos(
        -residual - dual.epsilon
    )
    problem = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(beta) + loss))
    problem.solve(solver=cp.CLARABEL, **_TIGHT)
    return float(problem.value)


def kernel_learning(kernels, dual):
    """(optimal value, parameter) of the saddle point, as one semidefinite program.

    min ½t + loss(u + b) over feasible P with [K(P) u; uᵀ t] ⪰ 0. K(P) is written as the sum of
    K(E) over the entries of P, which no fast formula can hide an error from. The feasible set is
    written out for each block: matrices of side n and trace n, weights that sum to one, and one
    sum of shares over all of them.
    """
    m, cone = kernels.n_samples, kernels.cone
    blocks = [_Block(part) for part in _leaves(cone)]
    maps = []
    for number, block in enumerate(blocks):
        columns = []
        for unit in block.units():
            point = [unit if k == number else np.zeros(b.shape) for k, b in enumerate(blocks)]
            columns.append(kernels.gram(_assembled(cone, iter(point))).ravel())
        maps.append(np.array(columns).T)
    scale = float(dual.upper.max())
    big, b = cp.Variable((m + 1, m + 1), PSD=True), cp.Variable(len(dual.starts))
    residual = dual.linear - big[:m, m] - b[dual.machine_of]
    loss = dual.upper @ cp.pos(residual - dual.epsilon) - dual.lower @ cp.pos(
        -residual - dual.epsilon
    )
    upper = np.flatnonzero(np.triu(np.ones((m, m))).ravel())
    gram = sum(own[upper] @ block.entries for block, own in zip(blocks, maps, strict=True))
    constraints = [
        cp.reshape(big[:m, :m], (m * m,), order="C")[upper] == gram,
        sum(block.share for block in blocks) == 1,
        *(block.positive for block in blocks),
    ]
    # Divided by C so that the solver sees numbers of size one.
    problem = cp.Problem(cp.Minimize((0.5 * big[m, m] + loss) / scale), constraints)
    with warnings.catch_warnings():
        # Clarabel is asked for more digits than it can always give; the tests say how many count.
        warnings.filterwarnings("ignore", "Solution may be inaccurate")
        problem.solve(
            solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10, max_iter=300
        )
    found = (np.asarray(block.variable.value) for block in blocks)
    return float(problem.value) * scale, _assembled(cone, found)


def _leaves(cone):
    """The cones of a product, of any depth, that are no products themselves."""
    if isinstance(cone, ProductCone):
        return [leaf for part in cone.cones for leaf in _leaves(part)]
    return [cone]


def _assembled(cone, leaves):
    """The point of a cone from the points of its leaves, one after the other."""
    if isinstance(cone, ProductCone):
        return Blocks([_assembled(part, leaves) for part in cone.cones])
    return next(leaves)


class _Block:
    """A positive matrix or nonnegative weights, as a variable of a program."""

    def __init__(self, cone):
        if isinstance(cone, PSD):
            n = cone.side
            self.shape = (n, n)
            self.variable = cp.Variable((n, n), symmetric=True)
            self.positive = self.variable >> 0
            self.share = cp.trace(self.variable) / n
            self.entries = cp.reshape(self.variable, (n * n,), order="C")
        else:
            self.shape = (cone.count,)
            self.variable = self.entries = cp.Variable(cone.count)
            self.positive = self.variable >= 0
            self.share = cp.sum(self.variable)

    def units(self):
        """A point for each entry; those off a diagonal are symmetric."""
        for place in np.ndindex(self.shape):
            unit = np.zeros(self.shape)
            unit[place] += 0.5
            unit[place[::-1]] += 0.5
            yield unit


def multiple_kernel_value(matrices, dual):
    """Optimal value of multiple kernel learning, as a program with quadratic constraints.

    max κ(w) - ½t over the box and the zero sums with wᵀK_i w ≤ t; `matrices` holds the kernels on
    the samples of all machines, block diagonal.
    """
    scale = float(max(dual.upper.max(), -dual.lower.min()))
    v, t = cp.Variable(dual.size), cp.Variable()  # w = scale v
    constraints = [v >= dual.lower / scale, v <= dual.upper / scale]
    constraints += [cp.sum(v[own]) == 0 for own in dual.machines]
    for K in matrices:
        eigenvalues, vectors = np.linalg.eigh(K)
        root = vectors * np.sqrt(np.maximum(eigenvalues, 0.0))
        constraints.append(cp.sum_squares(root.T @ v) * scale <= t)
    kappa = dual.linear @ v - dual.epsilon @ cp.abs(v)
    problem = cp.Problem(cp.Maximize(kappa - 0.5 * t), constraints)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Solution may be inaccurate")  # as above
        problem.solve(solver=cp.CLARABEL, **_TIGHT)
    return float(problem.value) * scale
