"""The tube that is chosen from the noise of the target."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from tessella import LearnedKernelSVR, MultipleKernelSVR
from tessella.kernels import Gaussian

RNG = np.random.default_rng(0)


def smooth(X):
    f = np.sin(6.0 * X[:, 0]) * X[:, 1]
    return f / f.std()


@pytest.mark.parametrize("m", [400, 1500])
@pytest.mark.parametrize("noise", [0.1, 0.5, 2.0])
def test_tube_is_a_share_of_the_noise(m, noise):
    X = RNG.random((m, 2))
    y = smooth(X) + noise * RNG.standard_normal(m)
    model = LearnedKernelSVR(kernels="laplace", epsilon="auto").fit(X, y)
    assert model.epsilon_ * y.std() == pytest.approx(0.612 * noise, rel=0.2)


def test_target_without_noise_is_not_limited_by_the_tube():
    X = RNG.random((400, 2))
    y = smooth(X)
    common = {"kernels": "gaussian", "C": 1e4, "tol": 1e-4}
    auto = LearnedKernelSVR(epsilon="auto", **common).fit(X[:300], y[:300])
    tube = LearnedKernelSVR(epsilon=0.1, **common).fit(X[:300], y[:300])
    assert auto.epsilon_ < 1e-4
    errors = [np.mean((model.predict(X[300:]) - y[300:]) ** 2) for model in (auto, tube)]
    assert errors[0] < 1e-5
    assert errors[0] < 0.01 * errors[1]


@pytest.mark.parametrize("m", [60, 1300])
def test_weights_are_copies_and_order_and_units_do_not_matter(m):
    X = RNG.random((m, 3))
    y = smooth(X) + 0.3 * RNG.standard_normal(m)
    count = RNG.integers(1, 4, m)
    model = LearnedKernelSVR(0.1, kernels="laplace", epsilon="auto")
    weighted = clone(model).fit(X, y, sample_weight=count)
    order = RNG.permutation(count.sum())
    copied = clone(model).fit(np.repeat(X, count, axis=0)[order], np.repeat(y, count)[order])
    assert weighted.epsilon_ == copied.epsilon_
    units = clone(model).fit(X * [1.0, 1e3, 1e-9], 1e5 * y, sample_weight=count)
    assert units.epsilon_ == pytest.approx(weighted.epsilon_, rel=1e-6)


def test_given_numbers_are_kept_and_constant_targets_have_no_tube():
    X = RNG.random((30, 2))
    assert LearnedKernelSVR(epsilon=0.25).fit(X, smooth(X)).epsilon_ == 0.25
    assert LearnedKernelSVR(epsilon="auto").fit(X, np.ones(30)).epsilon_ == 0.0


def forget_estimates():
    """Fit many other rows, because the last estimates are remembered."""
    for k in range(70):
        LearnedKernelSVR(kernels="laplace").fit([[0.0], [1.0], [k + 2.0]], [0.0, 1.0, 0.5])


def test_estimate_does_not_depend_on_threads():
    X = RNG.random((500, 4))
    y = X[:, 0] * X[:, 1] + 0.1 * RNG.standard_normal(500)
    tubes = []
    for threads in (1, 2):
        forget_estimates()
        with threadpool_limits(threads):
            model = LearnedKernelSVR(1.0, kernels="laplace", n_jobs=threads).fit(X, y)
        tubes.append(model.epsilon_)
    assert tubes[0] == tubes[1]


def test_estimate_does_not_depend_on_what_was_fitted_before():
    X = RNG.random((60, 2))
    y = smooth(X) + 0.3 * RNG.standard_normal(60)
    other = RNG.permutation(y)
    weight = np.where(np.arange(60) < 30, 1.0, 3.0)
    model = LearnedKernelSVR(kernels="laplace", C=1.0)
    fits = [(X, y, None), (X, other, None), (X[:, ::-1], other, None), (X, y, weight)]
    first = [clone(model).fit(*data).epsilon_ for data in fits]
    forget_estimates()
    again = [clone(model).fit(*data).epsilon_ for data in fits]
    # The estimates are made again, and then once more as remembered.
    assert first == again == [clone(model).fit(*data).epsilon_ for data in fits]
    # The order of the columns alone does not change distances, everything else does.
    assert len({round(epsilon, 6) for epsilon in first}) == 3


def test_default_tube_follows_the_noise():
    assert LearnedKernelSVR().epsilon == MultipleKernelSVR().epsilon == "auto"


def test_other_estimators():
    X = RNG.random((150, 2))
    y = smooth(X) + 0.5 * RNG.standard_normal(150)
    model = MultipleKernelSVR(kernels=[Gaussian(0.5), Gaussian(2.0)], epsilon="auto").fit(X, y)
    assert model.epsilon_ * y.std() == pytest.approx(0.3, rel=0.3)


@pytest.mark.parametrize("epsilon", ["noise", -1.0, None, np.nan])
def test_refusals(epsilon):
    with pytest.raises(ValueError, match="epsilon="):
        LearnedKernelSVR(epsilon=epsilon).fit(np.eye(4), np.arange(4.0))


def test_constant_features_have_their_own_message():
    with pytest.raises(ValueError, match="All 2 features are constant"):
        LearnedKernelSVR(epsilon="auto").fit(np.ones((5, 2)), np.arange(5.0))
