from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_circles


@pytest.fixture(scope="session")
def circles():
    return make_circles(80, noise=0.2, factor=0.5, random_state=0)


@pytest.fixture(scope="session")
def waves():
    rng = np.random.default_rng(0)
    X = rng.random((70, 2))
    return X, np.sin(6 * X[:, 0]) * X[:, 1] + 0.1 * rng.standard_normal(70)
