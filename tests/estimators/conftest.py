from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_circles

from tessella import (
    KernelDictionary,
    LearnedKernelRidge,
    LearnedKernelRidgeClassifier,
    LearnedKernelSVC,
    LearnedKernelSVR,
    MultipleKernelSVC,
    MultipleKernelSVR,
    TessellatedKernels,
)
from tessella.cones import Blocks
from tessella.kernels import Gaussian, Polynomial

RIDGE = (LearnedKernelRidge, LearnedKernelRidgeClassifier)
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


@pytest.fixture(params=["classification", "regression", "ridge", "ridge classification"])
def case(request, circles, waves):
    return {
        "classification": (LearnedKernelSVC(), *circles),
        "regression": (LearnedKernelSVR(), *waves),
        "ridge": (LearnedKernelRidge(), *waves),
        "ridge classification": (LearnedKernelRidgeClassifier(), *circles),
    }[request.param]


def sum_of_sets():
    """Kernels with a matrix and with weights as parameters."""
    return TessellatedKernels() + KernelDictionary(FEW)


EVERY_CASE = (
    "classification",
    "regression",
    "weights",
    "weights regression",
    "sum",
    "ridge",
    "ridge classes",
)


@pytest.fixture(params=EVERY_CASE)
def every_case(request, circles, waves):
    """What every estimator has to do: with a matrix, with weights, and with both."""
    return {
        "classification": (LearnedKernelSVC(), *circles),
        "regression": (LearnedKernelSVR(), *waves),
        "weights": (MultipleKernelSVC(10.0, FEW), *circles),
        "weights regression": (MultipleKernelSVR(10.0, FEW), *waves),
        "sum": (LearnedKernelSVC(kernels=sum_of_sets()), *circles),
        "ridge": (LearnedKernelRidge(), *waves),
        "ridge classes": (LearnedKernelRidgeClassifier(), circles[0], three_classes(circles)),
    }[request.param]


def three_classes(circles):
    X, y = circles
    return np.where(X[:, 0] > 0.7, 2, y)


def with_solver(model, solver):
    """The same model with a solver; MultipleKernelSVC chooses it itself, and always "joint".

    A working set has no meaning for the squared loss; its method of many rounds is "newton".
    """
    if isinstance(model, RIDGE) and solver == "working-set":
        solver = "newton"
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
