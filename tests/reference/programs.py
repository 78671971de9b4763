"""The SVM and kernel-learning problems as generic convex programs (cvxpy + Clarabel)."""

from __future__ import annotations

import warnings

import cvxpy as cp
import numpy as np

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
    """(optimal value, P) of the saddle point, as one semidefinite program.

    min ½t + loss(u + b) over P ⪰ 0, trace P = n_P, with [K(P) u; uᵀ t] ⪰ 0. K(P) is written as
    Σ_ij P_ij K(E_ij), which no fast formula can hide an error from.
    """
    m, n = kernels.n_samples, kernels.n_params
    columns = []
    for i in range(n):
        for j in range(n):
            unit = np.zeros((n, n))
            unit[i, j] += 0.5
            unit[j, i] += 0.5
            columns.append(kernels.gram(unit).ravel())
    linear_map = np.array(columns).T
    scale = float(dual.upper.max())
    P, big = cp.Variable((n, n), PSD=True), cp.Variable((m + 1, m + 1), PSD=True)
    b = cp.Variable(len(dual.starts))
    residual = dual.linear - big[:m, m] - b[dual.machine_of]
    loss = dual.upper @ cp.pos(residual - dual.epsilon) - dual.lower @ cp.pos(
        -residual - dual.epsilon
    )
    upper = np.flatnonzero(np.triu(np.ones((m, m))).ravel())
    gram = linear_map[upper] @ cp.reshape(P, (n * n,), order="C")
    constraints = [
        cp.reshape(big[:m, :m], (m * m,), order="C")[upper] == gram,
        cp.trace(P) == n,
    ]
    # Divided by C so that the solver sees numbers of size one.
    problem = cp.Problem(cp.Minimize((0.5 * big[m, m] + loss) / scale), constraints)
    with warnings.catch_warnings():
        # Clarabel is asked for more digits than it can always give; the tests say how many count.
        warnings.filterwarnings("ignore", "Solution may be inaccurate")
        problem.solve(
            solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10, max_iter=300
        )
    return float(problem.value) * scale, np.asarray(P.value)


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
