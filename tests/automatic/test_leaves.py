"""The partition of many rows, and models whose machines see only their leaf."""

from __future__ import annotations

import numpy as np
import pytest

from tessella import TessellaClassifier, TessellaRegressor
from tessella.automatic import Leaves


def by_hand(leaves, row):
    """The leaf of one row, by walking down the tree."""
    node = 0
    while leaves.column[node] >= 0:
        node = leaves.left[node] + (row[leaves.column[node]] > leaves.threshold[node])
    return leaves.left[node]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("largest", [5, 20, 64, 1000])
def test_every_row_is_in_one_leaf_of_limited_size(seed, largest):
    rng = np.random.default_rng(seed)
    A = rng.random((300, 4))
    A[:, 3] = A[:, 3] > 0.3
    A[:, 2] = np.where(A[:, 2] > 0.6, A[:, 2], 0.0)  # more than half of the values are equal
    leaves = Leaves.build(A, rng.uniform(0.1, 3.0, 4), largest)
    found = leaves.of(A)
    sizes = np.bincount(found)
    assert sizes.sum() == 300
    assert len(sizes) == leaves.n_leaves
    assert sizes.min() > 0
    assert sizes.max() <= largest
    assert leaves.is_tree(4)
    new = rng.uniform(-1.0, 2.0, (50, 4))
    for rows in (A, new):
        assert leaves.of(rows).tolist() == [by_hand(leaves, row) for row in rows]
    if largest >= 300:
        assert leaves.n_leaves == 1


def test_the_first_split_is_at_the_median_of_the_widest_coordinate():
    rng = np.random.default_rng(0)
    A = rng.random((100, 3)) * [1.0, 3.0, 1.0]
    for factors, column in (([1.0, 1.0, 1.0], 1), ([1.0, 0.01, 2.0], 2)):
        leaves = Leaves.build(A, np.array(factors), 50)
        assert leaves.column[0] == column
        assert leaves.threshold[0] == np.median(A[:, column])
        assert np.bincount(leaves.of(A)).tolist() == [50, 50]


def test_arrays_that_are_no_tree():
    def is_tree(column, left):
        return Leaves(np.array(column), np.zeros(len(column)), np.array(left)).is_tree(2)

    assert is_tree([-1], [0])
    assert is_tree([1, -1, -1], [1, 1, 0])
    assert is_tree([0, -1, 1, -1, -1], [1, 0, 3, 1, 2])
    assert not is_tree([0, -1, -1], [0, 0, 1])  # a node that is its own child
    assert not is_tree([0, 0, -1, -1, -1], [1, 0, 0, 1, 2])  # a loop
    assert not is_tree([0, -1, -1], [2, 0, 1])  # a node that does not exist
    assert not is_tree([2, -1, -1], [1, 0, 1])  # a column that does not exist
    assert not is_tree([0, -1, -1], [1, 0, 0])  # two leaves with one number
    assert not Leaves(np.array([-1]), np.zeros(2), np.array([0])).is_tree(2)


def test_equal_rows_cannot_be_divided():
    A = np.ones((50, 2))
    leaves = Leaves.build(A, np.ones(2), 10)
    assert leaves.n_leaves == 1
    assert (leaves.of(A) == 0).all()
    A[:5] = 0.0  # a side of a tenth of the rows is not worth a split
    assert Leaves.build(A, np.ones(2), 10).n_leaves == 1


def test_many_values_equal_to_the_median_go_to_one_side():
    A = np.concatenate([np.linspace(0.0, 0.4, 40), np.full(60, 0.5)])[:, None]
    leaves = Leaves.build(A, np.ones(1), 60)
    assert np.bincount(leaves.of(A)).tolist() in ([40, 60], [60, 40])


def waves(n_rows, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((n_rows, 3))
    return X, np.sin(6.0 * X[:, 0]) + X[:, 1] ** 2 + 0.05 * rng.normal(size=n_rows)


def test_leaves_are_nearly_as_good_as_one_machine(low_with):
    X, y = waves(700)
    new, truth = waves(400, seed=1)
    exact = TessellaRegressor(effort="low").fit(X, y)
    assert exact.members_[0].leaves.n_leaves == 1
    low_with(largest_leaf=250)
    divided = TessellaRegressor(effort="low").fit(X, y)
    assert divided.leaderboard_ == exact.leaderboard_  # the search is the same
    for member in divided.members_:
        sizes = np.bincount(member.leaves.of(member.machine.space.coordinates))
        assert len(sizes) == 4
        assert sizes.max() <= 250
    assert divided.gap_ < 1e-6
    errors = [np.mean((model.predict(new) - truth) ** 2) for model in (exact, divided)]
    assert errors[0] < 0.006  # the noise is 0.0025
    assert errors[1] < 1.5 * errors[0]
    # No jumps beyond what the noise explains.
    assert np.abs(divided.predict(new) - exact.predict(new)).max() < 0.3


def test_every_leaf_is_an_exact_machine_of_its_own_rows(low_with):
    """The optimality conditions of the squared loss hold in each leaf by itself."""
    X, y = waves(240)
    low_with(largest_leaf=100)
    model = TessellaRegressor(effort="low", average=False, losses=["squared"]).fit(X, y)
    outputs = (y - y.mean()) / y.std()
    for member in model.members_:
        coordinates, machine = member.machine.space.coordinates, member.machine
        scores = machine.target.forward(member.outputs(coordinates))
        leaf = member.leaves.of(coordinates)
        # C times the residual is the coefficient, which sums to zero in every leaf.
        order = np.argsort(member.machine.space.apply(X)[:, 0], kind="stable")
        canonical = np.argsort(coordinates[:, 0], kind="stable")
        given = np.empty(len(y))
        given[canonical] = outputs[order]
        residuals = machine.target.forward(given[:, None]) - scores
        np.testing.assert_allclose(member.coef, machine.C * residuals, rtol=1e-4, atol=1e-4)
        for k in range(member.leaves.n_leaves):
            assert abs(member.coef[leaf == k].sum()) < 1e-8 * np.abs(member.coef).max()


def test_classes_that_a_leaf_does_not_contain(low_with):
    X = np.random.default_rng(0).random((300, 2))
    y = np.digitize(X[:, 0], [0.2, 0.4, 0.6, 0.8])
    low_with(largest_leaf=80)
    model = TessellaClassifier(effort="low").fit(X, y)
    assert model.members_[0].leaves.n_leaves > 2
    assert model.score(X, y) > 0.95
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
