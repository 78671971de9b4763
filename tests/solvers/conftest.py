from __future__ import annotations

import numpy as np
import pytest

from tessella.kernels import TessellatedKernels
from tessella.problems import SaddlePoint
from tessella.svm import DualProblem


def rows_of(m=30, n=2, seed=0):
    """The training rows of :func:`make_problem`."""
    return np.random.default_rng(seed).random((m, n))


def dual_of(task, X, C=4.0, seed=0):
    """The machine of :func:`make_problem` on its rows."""
    rng = np.random.default_rng(seed)
    rng.random(X.shape)  # what the rows were drawn from comes first
    f = np.sin(5 * X[:, 0]) + 2 * X[:, -1] * X[:, 0]
    noisy = f + 0.2 * rng.standard_normal(len(X))
    if task == "classification":
        return DualProblem.classification(np.where(noisy > np.median(noisy), 1.0, -1.0), C)
    return DualProblem.regression((noisy - noisy.mean()) / noisy.std(), C, 0.1)


def make_problem(task, m=30, n=2, C=4.0, seed=0, degree=1, monomials="x", delta=0.3):
    X = rows_of(m, n, seed)
    kernels = TessellatedKernels(degree, delta, monomials).bind(X)
    return SaddlePoint(kernels, dual_of(task, X, C, seed))


@pytest.fixture(params=["classification", "regression"])
def task(request):
    return request.param
