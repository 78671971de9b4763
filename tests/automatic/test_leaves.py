"""Machines of many rows: a base machine, leaves that learn what it leaves, and several trees."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from tessella import TessellaClassifier, TessellaRegressor
from tessella.automatic._entries import Machine
from tessella.automatic._kernels import CertifiedKernel, ScaledKernel, learn_kernel
from tessella.automatic._losses import Hinge, SquaredError, Tube
from tessella.automatic._machines import LeafSizes, fit_machine
from tessella.automatic._targets import MarginTarget
from tessella.estimators._leaf_fit import gradients_of


def waves(n_rows, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((n_rows, 3))
    return X, np.sin(6.0 * X[:, 0]) + X[:, 1] ** 2 + 0.05 * rng.normal(size=n_rows)


@pytest.fixture(scope="module")
def space():
    """A space of 240 rows, in which machines are fitted."""
    X, y = waves(240)
    model = TessellaRegressor(effort="low", refine=False, average=False).fit(X, y)
    return model.members_[0].machine.space


KERNEL = ScaledKernel("laplace", np.array([0.5, -0.2, -1.0]))


def target_of(A):
    return (np.sin(6.0 * A[:, 0]) + A[:, 1] ** 2)[:, None]


def weights():
    return np.random.default_rng(1).uniform(0.5, 2.0, 240)


def fitted(space, sizes, Y=None, **parts):
    machine = Machine(space=space, kernel=KERNEL, C=50.0, **parts)
    Y = target_of(space.coordinates) if Y is None else Y
    return fit_machine(machine, 1.0, Y, weights(), sizes)


def base_scores(member, A):
    """The scores of the base machine, by its formula."""
    training = member.machine.space.coordinates[member.base.rows]
    return member.machine.kernel.matrix(A, training) @ member.base.coef + member.base.intercept


# ---- the parts of a machine


def test_predictions_are_the_base_and_the_mean_of_the_leaves(space):
    member = fitted(space, LeafSizes(100, 3))
    new, A = np.random.default_rng(5).random((40, 3)), space.coordinates
    assert member.partition.n_trees == 3
    assert member.partition.n_leaves > 6
    expected = base_scores(member, new)
    training = member.partition.leaves_of(A)
    for i, row in enumerate(new):
        for tree, leaf in enumerate(member.partition.leaves_of(row[None])[:, 0]):
            own = training[tree] == leaf
            K = member.machine.kernel.matrix(row[None], A[own])
            expected[i] += (K @ member.coef[tree, own] + member.intercept[leaf])[0] / 3
    np.testing.assert_allclose(member.outputs(new), expected, rtol=1e-10)


def test_few_rows_are_one_machine(space):
    member = fitted(space, LeafSizes(240, 3))
    assert (member.partition.n_trees, member.partition.n_leaves) == (1, 1)
    assert len(member.base.rows) == 0
    assert not base_scores(member, space.coordinates).any()


def test_leaves_and_the_base_machine_have_limited_sizes(space):
    member = fitted(space, LeafSizes(70, 2))
    assert len(np.unique(member.base.rows)) == 70
    for leaf in member.partition.leaves_of(space.coordinates):
        assert np.unique(leaf, return_counts=True)[1].max() <= 70
    first, second = member.partition.trees
    assert first.thresholds[0] != second.thresholds[0]


def test_cuts_are_across_the_direction_in_which_the_base_function_varies(space):
    Y = 5.0 * space.coordinates[:, 1:2] + 0.1 * space.coordinates[:, :1]
    member = fitted(space, LeafSizes(120), Y)
    direction = np.abs(member.partition.trees[0].directions[0])
    assert direction[1] > 0.9
    assert direction[1] > 5.0 * np.delete(direction, 1).max()


def test_squared_loss_of_the_sum(space):
    """In each leaf, C times the weighted residual of base and leaf is the coefficient."""
    member = fitted(space, LeafSizes(100, 2))
    weight = weights()
    A, Y = space.coordinates, target_of(space.coordinates)
    for tree, leaf in enumerate(member.partition.leaves_of(A)):
        for k in np.unique(leaf):
            rows = leaf == k
            K = member.machine.kernel.matrix(A[rows])
            scores = base_scores(member, A[rows]) + K @ member.coef[tree, rows]
            residual = Y[rows] - scores - member.intercept[k]
            expected = 50.0 * weight[rows, None] * residual
            np.testing.assert_allclose(member.coef[tree, rows], expected, rtol=1e-6, atol=1e-7)
            assert abs(member.coef[tree, rows].sum()) < 1e-8
    own = member.base
    K = member.machine.kernel.matrix(A[own.rows])
    residual = Y[own.rows] - K @ own.coef - own.intercept
    np.testing.assert_allclose(own.coef, 50.0 * weight[own.rows, None] * residual, rtol=1e-6)


def test_the_gap_is_the_largest_of_the_base_machine_and_the_leaves(space):
    member = fitted(space, LeafSizes(100, 2), loss=Tube(0.05))
    A, Y, weight = space.coordinates, target_of(space.coordinates), weights()
    loss, C, own = member.machine.loss, member.machine.C, member.base.rows
    gaps = [loss.solve(KERNEL.matrix(A[own]), Y[own], C, weight[own]).gap]
    for leaf in member.partition.leaves_of(A):
        for k in np.unique(leaf):
            rows = np.flatnonzero(leaf == k)
            others = base_scores(member, A[rows])
            gaps.append(loss.solve(KERNEL.matrix(A[rows]), Y[rows], C, weight[rows], others).gap)
    assert np.argmax(gaps) > 0
    assert member.gap == pytest.approx(max(gaps), rel=1e-6)


def test_hinge_loss_of_the_sum(space):
    """The margins of base and leaf together satisfy the optimality conditions of the hinge loss."""
    A = space.coordinates
    Y = np.eye(2)[(np.sin(6.0 * A[:, 0]) + 0.5 * A[:, 1] > 0.2).astype(int)]
    member = fitted(space, LeafSizes(100), Y, loss=Hinge(), target=MarginTarget())
    weight = weights()
    sign = 2.0 * Y[:, 1] - 1.0
    (leaf,) = member.partition.leaves_of(A)
    inside = 0
    for k in np.unique(leaf):
        rows = leaf == k
        if abs(sign[rows].sum()) == rows.sum():
            continue  # a leaf of one class
        w = member.coef[0, rows, 0]
        scores = base_scores(member, A[rows])[:, 0] + member.intercept[k, 0]
        margin = sign[rows] * (scores + member.machine.kernel.matrix(A[rows]) @ w)
        size = sign[rows] * w / (50.0 * weight[rows])
        assert (size > -1e-9).all()
        assert (size < 1.0 + 1e-9).all()
        assert abs(w.sum()) < 1e-8 * np.abs(w).sum()
        assert (margin[size < 1e-6] > 1.0 - 1e-2).all()
        assert (margin[size > 1.0 - 1e-6] < 1.0 + 1e-2).all()
        between = (size > 1e-3) & (size < 1.0 - 1e-3)
        np.testing.assert_allclose(margin[between], 1.0, atol=1e-2)
        inside += int(between.sum())
    assert inside > 10
    assert member.gap < 1e-5


def test_leaves_of_one_class_keep_the_base_function_or_meet_the_margin():
    K, y = np.eye(3), np.ones((3, 1))
    for base, intercept in (([0.2, 0.5, 3.0], 0.8), ([1.5, 2.0, 1.2], 0.0)):
        other = np.array(base)[:, None]
        found = Hinge().solve(K, y, 1.0, np.ones(3), other)
        assert found.intercept == pytest.approx([intercept])
        assert not found.coef.any()
        mirrored = Hinge().solve(K, -y, 1.0, np.ones(3), -other)
        assert mirrored.intercept == pytest.approx([-intercept])


@pytest.mark.parametrize("loss", [SquaredError(), Tube(0.1)], ids=lambda own: own.name)
def test_other_scores_are_subtracted_from_targets(loss):
    rng = np.random.default_rng(0)
    rows, Y, base = rng.random((30, 2)), rng.normal(size=(30, 2)), rng.normal(size=(30, 2))
    K = ScaledKernel("gaussian", np.ones(2)).matrix(rows)
    found = loss.solve(K, Y, 3.0, np.ones(30), base)
    expected = loss.solve(K, Y - base, 3.0, np.ones(30))
    np.testing.assert_allclose(found.coef, expected.coef, atol=1e-8)
    np.testing.assert_allclose(found.intercept, expected.intercept, atol=1e-8)


def test_slopes_of_learned_kernels_are_those_of_differences():
    rng = np.random.default_rng(0)
    B = rng.random((40, 2))
    kernel = CertifiedKernel(learn_kernel(B, np.abs(B[:, :1] - 0.4), 10.0, np.ones(40)))
    A, coef = rng.uniform(0.1, 0.9, (9, 2)), rng.normal(size=(40, 2))
    expected = gradients_of(lambda rows: kernel.matrix(rows, B) @ coef, A)
    np.testing.assert_allclose(kernel.slopes(A, B, coef), expected, rtol=1e-6, atol=1e-9)


# ---- models


def test_leaves_are_nearly_as_good_as_one_machine(low_with):
    X, y = waves(700)
    new, truth = waves(400, seed=1)
    exact = TessellaRegressor(effort="low").fit(X, y)
    assert exact.members_[0].partition.n_leaves == 1
    low_with(largest_leaf=250)
    divided = TessellaRegressor(effort="low").fit(X, y)
    assert divided.leaderboard_ == exact.leaderboard_  # the search is the same
    assert divided.gap_ == max(member.gap for member in divided.members_)
    for member in divided.members_:
        assert member.partition.n_trees == 2
        assert member.partition.n_leaves >= 6
    assert divided.gap_ < 1e-6
    errors = [np.mean((model.predict(new) - truth) ** 2) for model in (exact, divided)]
    assert errors[0] < 0.006  # the noise is 0.0025
    assert errors[1] < 1.2 * errors[0]
    # No jumps beyond what the noise explains.
    assert np.abs(divided.predict(new) - exact.predict(new)).max() < 0.3


def test_leaves_do_not_depend_on_the_order_of_the_rows(low_with):
    low_with(largest_leaf=100, refined=0)
    X, y = waves(240)
    order = np.random.default_rng(2).permutation(240)
    models = [
        TessellaRegressor(effort="low").fit(X[rows], y[rows]) for rows in (slice(None), order)
    ]
    one, other = (model.predict(X) for model in models)
    np.testing.assert_array_equal(one, other)


def test_classes_that_a_leaf_does_not_contain(low_with):
    X = np.random.default_rng(0).random((300, 2))
    y = np.digitize(X[:, 0], [0.2, 0.4, 0.6, 0.8])
    low_with(largest_leaf=80)
    model = TessellaClassifier(effort="low").fit(X, y)
    assert model.members_[0].partition.n_leaves > 2
    assert model.score(X, y) > 0.95
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)


def test_support_vector_machines_in_leaves(low_with):
    low_with(svm_strengths=(1.0,), refined=0, most_svm_classes=2, largest_leaf=80)
    X = np.random.default_rng(0).random((300, 2))
    y = X[:, 0] + 0.2 * np.sin(8.0 * X[:, 1]) > 0.5
    model = TessellaClassifier(effort="low").fit(X, y)
    (member,) = (own for own in model.members_ if own.machine.loss.name == "hinge")
    assert member.partition.n_leaves > 2
    labels = member.outputs(member.machine.space.coordinates)[:, 1] > 0.5
    assert 0.3 < labels.mean() < 0.7
    assert model.score(X, y) > LogisticRegression().fit(X, y).score(X, y)


def test_rows_that_cannot_be_divided_are_one_leaf(low_with):
    low_with(largest_leaf=20)
    X, y = np.ones((60, 2)), np.arange(60.0)
    for member in TessellaRegressor(effort="low").fit(X, y).members_:
        assert (member.partition.n_trees, member.partition.n_leaves) == (1, 1)
