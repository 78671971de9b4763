from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_circles

from tessella import (
    KernelDictionary,
    LearnedKernelSVC,
    LearnedKernelSVR,
    MultipleKernelSVC,
    MultipleKernelSVR,
    TessellatedKernels,
)
from tessella.cones import Blocks
from tessella.kernels import Gaussian, Polynomial

FEW = (Gaussian(0.5), Gaussian(2.0), Polynomial(2))


@pytest.fixture(scope="module")
def circles():
    return make_circles(150, noise=0.1, factor=0.4, random_state=0)


@pytest.fixture(scope="module")
def waves():
    rng = np.random.default_rng(0)
    X = rng.random((120, 2)) * [10.0, 0.01] + [5.0, -3.0]
    y = 100.0 + 40.0 * np.sin(0.6 * X[:, 0]) + rng.standard_normal(120)
    return X, y


@pytest.fixture(params=["classification", "regression"])
def case(request, circles, waves):
    if request.param == "classification":
        return LearnedKernelSVC(), *circles
    return LearnedKernelSVR(), *waves


def sum_of_sets():
    """Kernels with a matrix and with weights as parameters."""
    return TessellatedKernels() + KernelDictionary(FEW)


@pytest.fixture(params=["classification", "regression", "weights", "weights regression", "sum"])
def every_case(request, circles, waves):
    """What every estimator has to do: with a matrix, with weights, and with both."""
    return {
        "classification": (LearnedKernelSVC(), *circles),
        "regression": (LearnedKernelSVR(), *waves),
        "weights": (MultipleKernelSVC(10.0, FEW), *circles),
        "weights regression": (MultipleKernelSVR(10.0, FEW), *waves),
        "sum": (LearnedKernelSVC(kernels=sum_of_sets()), *circles),
    }[request.param]


def with_solver(model, solver):
    """The same model with a solver; MultipleKernelSVC chooses it itself, and always "joint"."""
    if "solver" in model.get_params():
        return clone(model).set_params(solver=solver)
    if solver not in ("joint", "auto"):
        pytest.skip("the estimator has no parameter for the solver")
    return clone(model)


def blocks_of(point):
    """The arrays of a parameter, whatever its kind."""
    return list(point) if isinstance(point, Blocks) else [point]


def raw_scores(model, X):
    return model.decision_function(X) if hasattr(model, "classes_") else model.predict(X)
