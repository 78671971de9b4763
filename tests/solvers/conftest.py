from __future__ import annotations

import numpy as np
import pytest

from tessella.kernels import TessellatedKernels
from tessella.problems import SaddlePoint
from tessella.svm import DualProblem


def make_problem(task, m=30, n=2, C=4.0, seed=0, degree=1, monomials="x", delta=0.3):
    rng = np.random.default_rng(seed)
    X = rng.random((m, n))
    f = np.sin(5 * X[:, 0]) + 2 * X[:, -1] * X[:, 0]
    noisy = f + 0.2 * rng.standard_normal(m)
    kernels = TessellatedKernels(degree, delta, monomials).bind(X)
    if task == "classification":
        dual = DualProblem.classification(np.where(noisy > np.median(noisy), 1.0, -1.0), C)
    else:
        dual = DualProblem.regression((noisy - noisy.mean()) / noisy.std(), C, 0.1)
    return SaddlePoint(kernels, dual)


@pytest.fixture(params=["classification", "regression"])
def task(request):
    return request.param
