"""The gap of automatic models: members satisfy the optimality conditions of their problems."""

import numpy as np
import pytest

from tessella import TessellaRegressor


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(4)
    X = rng.random((90, 3))
    y = np.sin(6 * X[:, 0]) + X[:, 1] + 0.1 * rng.standard_normal(90)
    return TessellaRegressor(losses=("squared",)).fit(X, y), y


def test_members_are_optimal_for_their_kernels(fitted):
    """Residual of every row = coefficient / C, and the coefficients sum to zero."""
    model, y = fitted
    targets = np.sort((y - y.mean()) / y.std())
    for member in model.members_:
        own = member.machine
        K = own.kernel.matrix(own.space.coordinates)
        scores = K @ member.coef[0] + member.intercept
        np.testing.assert_allclose(member.coef.sum(), 0.0, atol=1e-8 * np.abs(member.coef).sum())
        # The rows of a model are in an order of its own.
        np.testing.assert_allclose(
            np.sort((scores + member.coef[0] / own.C)[:, 0]), targets, atol=1e-7
        )


def test_gap_is_the_largest_of_those_of_the_members(fitted):
    model, _ = fitted
    assert model.gap_ == max(member.gap for member in model.members_)
    for member in model.members_:
        own = member.machine
        K = own.kernel.matrix(own.space.coordinates)
        (coef,) = member.coef
        norm = float((coef * (K @ coef)).sum())
        slack = float((coef**2).sum()) / own.C
        scores = K @ coef + member.intercept
        targets = scores + coef / own.C
        upper = 0.5 * (norm + slack)
        lower = float((targets * coef).sum()) - 0.5 * slack - 0.5 * norm
        assert (upper - lower) / upper == pytest.approx(member.gap, abs=1e-9)
        assert member.gap <= 1e-8
    assert sum(member.share for member in model.members_) == pytest.approx(1.0)
