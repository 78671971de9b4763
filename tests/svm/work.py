"""Problems of the dual solver, of any size."""

from __future__ import annotations

import numpy as np

from tessella.svm import DualProblem, solve_dual


def rbf(X, gamma=2.0):
    return np.exp(-gamma * ((X[:, None] - X[None]) ** 2).sum(axis=2))


def make_problem(task, m=80, C=5.0, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((m, 3))
    f = np.sin(5 * X[:, 0]) + X[:, 1] * X[:, 2]
    K = rbf(X)
    if task == "classification":
        y = np.where(f + 0.3 * rng.standard_normal(m) > np.median(f), 1.0, -1.0)
        return K, DualProblem.classification(y, C)
    return K, DualProblem.regression(f + 0.1 * rng.standard_normal(m), C, 0.05)


def solve(m, n_jobs):
    """Solve a problem that is large enough for several threads."""
    K, dual = make_problem("regression", m=m, C=1.0)
    return solve_dual(K, dual, tol=1e-4, n_jobs=n_jobs)
