from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_circles

from tessella import LearnedKernelSVC, LearnedKernelSVR


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


def raw_scores(model, X):
    return model.decision_function(X) if hasattr(model, "classes_") else model.predict(X)
