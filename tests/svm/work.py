"""Problems of the dual solver, of any size."""

from __future__ import annotations

import numpy as np

from tessella.backend import KernelOnDemand
from tessella.kernels import TessellatedKernels
from tessella.svm import DualProblem, DualSettings, solve_dual


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


WITHOUT_INTERIOR_POINT = DualSettings(max_interior_point_runs=0, low_rank_entries=0)


def solve(m, n_jobs, settings=WITHOUT_INTERIOR_POINT):
    """Solve a problem that is large enough for several threads.

    The interior point method of so many samples uses the threads of BLAS, and is left out.
    """
    K, dual = make_problem("regression", m=m, C=1.0)
    return solve_dual(K, dual, tol=1e-4, n_jobs=n_jobs, settings=settings)


def on_demand(X, dtype=np.float64, max_bytes=None):
    """Return a tessellated kernel matrix as rows on demand, and as an array in float64."""
    bound = TessellatedKernels(1, 0.3).bind(X)
    root = np.eye(bound.n_params) / np.sqrt(bound.n_params)
    K = KernelOnDemand(dtype, max_bytes)
    K.hold(bound.product_form((root, root), centred=True))
    return K, bound.gram(root @ root.T, centred=True)


def make_problem_by_rows(task, m=80, C=5.0, seed=0):
    """The problem of make_problem with a kernel matrix whose rows are computed on demand."""
    _, dual = make_problem(task, m, C, seed)
    return *on_demand(np.random.default_rng(seed).random((m, 3))), dual


def separable_problem(m=400, C=100.0, seed=0):
    """Two classes with a few samples between them, so that few samples are support vectors."""
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(m) % 2 == 0, 1.0, -1.0)
    X = rng.standard_normal((m, 4)) + 1.6 * y[:, None]
    return rbf(X, 0.2), DualProblem.classification(y, C)


def only_blocks(size):
    """Settings with which all steps are pair steps in blocks of some size."""
    return DualSettings(
        least_blocks=2,
        min_block=size,
        max_block=size,
        max_free=0,
        max_interior_point_runs=0,
        low_rank_entries=0,
    )


def solve_by_rows(m, n_jobs):
    """Solve a problem whose blocks are large enough for several threads."""
    K, _ = on_demand(np.random.default_rng(0).random((m, 6)))
    y = np.random.default_rng(1).standard_normal(m)
    dual = DualProblem.regression(y, 0.01, 0.5)
    settings = only_blocks(512)
    return solve_dual(K, dual, tol=1e-2, max_iter=3000, n_jobs=n_jobs, settings=settings)
