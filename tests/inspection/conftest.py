from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pytest

from tessella import (
    LearnedKernelRidge,
    LearnedKernelRidgeClassifier,
    LearnedKernelSVC,
    LearnedKernelSVR,
)

mpl.use("Agg")


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


def known_rows(n_samples=600):
    """Eight features in units of their own, three of which matter: a pair, and one that adds."""
    rng = np.random.default_rng(0)
    U = rng.random((n_samples, 8))
    y = 6.0 * (U[:, 0] - 0.5) * (U[:, 1] - 0.5) + U[:, 2]
    X = U * [1.0, 10.0, 1e-3, 1.0, 5.0, 1.0, 2.0, 100.0] + [0.0, 3.0, 0.0, 0.0, 0.0, 0.0, 7.0, 0.0]
    return X, y + 0.05 * rng.standard_normal(n_samples)


@pytest.fixture(scope="session")
def regression():
    X, y = known_rows()
    return LearnedKernelSVR(epsilon=0.1).fit(X, y), X, y


@pytest.fixture(scope="session")
def classification():
    X, y = known_rows()
    labels = np.where(y > np.median(y), "above", "below")
    return LearnedKernelSVC().fit(X, labels), X, labels


@pytest.fixture(scope="session")
def ridge():
    X, y = known_rows()
    return LearnedKernelRidge().fit(X, y), X, y


@pytest.fixture(scope="session")
def ridge_classification():
    X, y = known_rows()
    labels = np.where(y > np.median(y), "above", "below")
    return LearnedKernelRidgeClassifier().fit(X, labels), X, labels


@pytest.fixture(params=["regression", "classification", "ridge", "ridge_classification"])
def case(request):
    return request.getfixturevalue(request.param)
