"""Trees of cuts: where they cut, and to which leaf a row belongs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tessella.partitions import (
    CutRule,
    CutTree,
    Partition,
    UnknownGroupError,
    cut_tree,
    grafted,
    grouped_tree,
    leading_gradients,
)


def rows(m=600, n=3, seed=0):
    return np.random.default_rng(seed).random((m, n))


def slow_leaf(tree, x, root=0):
    """The leaf of one row, cut by cut."""
    place = int(tree.roots[root])
    while place >= 0:
        above = float(sum(x * tree.directions[place])) > tree.thresholds[place]
        place = int(tree.sides[place, int(above)])
    return -1 - place


def test_leaves_have_about_equal_sizes_up_to_the_largest():
    A = rows(1000)
    tree = cut_tree(A, CutRule(150))
    sizes = np.bincount(tree.leaf_of(A))
    assert tree.n_leaves == len(sizes) == 7
    assert sizes.max() <= 150
    assert sizes.min() >= 140


def test_the_leaf_of_a_row_follows_the_cuts():
    A = rows(400)
    gradients = np.random.default_rng(1).standard_normal((400, 3)) * [3.0, 1.0, 0.2]
    tree = cut_tree(A, CutRule(60, A, gradients, seed=3))
    assert [slow_leaf(tree, x) for x in A] == tree.leaf_of(A).tolist()


def test_the_first_cut_is_across_the_direction_in_which_the_function_varies_most():
    A = rows(4000) * [1.0, 1.0, 0.1]  # the third feature has a tenth of the spread
    slope = np.array([2.0, 1.0, 5.0])
    tree = cut_tree(A, CutRule(2000, A, np.tile(slope, (len(A), 1))))
    # f = slope · x, so that q is proportional to s * slope and the direction to q / s = slope.
    expected = slope / np.linalg.norm(slope)
    assert np.allclose(tree.directions[0], expected, atol=1e-9)
    assert np.isclose(np.mean(A @ expected <= tree.thresholds[0]), 0.5, atol=1e-3)


def test_nodes_use_the_gradients_of_their_own_rows():
    A = rows(4000, 2)
    left = A[:, 0] < 0.5
    gradients = np.where(left[:, None], [[0.0, 4.0]], [[4.0, 0.0]]) + [[6.0, 0.0]] * 1
    gradients[left] = [0.0, 4.0]
    tree = cut_tree(A, CutRule(1000, A, gradients))
    first = tree.directions[0]
    assert abs(first[0]) > 0.99  # the mean of all rows varies most along the first feature
    below = tree.directions[tree.sides[0, 0]]
    assert abs(below[1]) > 0.99  # and on this side only along the second


def test_without_gradients_the_feature_of_largest_relative_spread_is_cut():
    A = rows(800, 2)
    tree = cut_tree(A, CutRule(200))
    assert sorted(np.abs(tree.directions).sum(axis=1)) == [1.0, 1.0, 1.0]
    # After one feature is halved, the other is spread more.
    first, second = np.argmax(np.abs(tree.directions[[0, tree.sides[0, 0]]]), axis=1)
    assert first != second


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 40), st.sampled_from([None, 1, 2]))
def test_no_leaf_is_too_large_unless_rows_are_equal(seed, largest, tree_seed):
    rng = np.random.default_rng(seed)
    A = np.round(rng.random((120, 2)) * rng.integers(1, 5), 0)  # many equal rows
    tree = cut_tree(A, CutRule(largest, seed=tree_seed))
    assert tree.is_sound(2)
    leaf = tree.leaf_of(A)
    for k in np.unique(leaf):
        own = A[leaf == k]
        assert len(own) <= largest or (own == own[0]).all()


def test_seeds_move_the_cuts_and_the_order_of_rows_does_not():
    A = rows(900)
    one, two = (cut_tree(A, CutRule(100, seed=seed)) for seed in (1, 2))
    assert not np.allclose(one.thresholds[0], two.thresholds[0])
    shuffled = cut_tree(A[::-1].copy(), CutRule(100, seed=1))
    assert np.allclose(one.thresholds, shuffled.thresholds)


def test_groups_are_never_together():
    A = rows(500)
    group = np.floor(4 * np.random.default_rng(5).random(500))
    groups = np.array([0.0, 1.0, 2.0, 3.0, 7.0])  # the last one has no rows
    tree = grouped_tree(A, CutRule(60), group, groups)
    assert tree.is_sound(3)
    leaf = tree.leaf_of(A, group)
    for k in np.unique(leaf):
        assert len(np.unique(group[leaf == k])) == 1
    alone = tree.leaf_of(A[:2], np.array([7.0, 7.0]))
    assert alone[0] == alone[1]
    assert alone[0] not in leaf
    with pytest.raises(UnknownGroupError, match="The group 5 is not among the 5 groups"):
        tree.leaf_of(A[:1], np.array([5.0]))


def test_a_grafted_tree_cuts_every_leaf_by_its_own_tree():
    A = rows(800)
    coarse = cut_tree(A, CutRule(400))
    leaf = coarse.leaf_of(A)
    parts = [cut_tree(A[leaf == k], CutRule(100)) for k in range(2)]
    whole = grafted(coarse, parts)
    assert whole.is_sound(3)
    assert whole.n_leaves == sum(part.n_leaves for part in parts)
    expected = np.where(leaf == 0, parts[0].leaf_of(A), parts[0].n_leaves + parts[1].leaf_of(A))
    assert np.array_equal(whole.leaf_of(A), expected)


def test_leaves_of_a_partition_are_numbered_tree_after_tree():
    A = rows(300)
    trees = tuple(cut_tree(A, CutRule(80, seed=seed)) for seed in (None, 1))
    partition = Partition(trees)
    leaves = partition.leaves_of(A)
    assert leaves.shape == (2, 300)
    assert np.array_equal(leaves[0], trees[0].leaf_of(A))
    assert np.array_equal(leaves[1], trees[0].n_leaves + trees[1].leaf_of(A))
    assert partition.n_leaves == trees[0].n_leaves + trees[1].n_leaves


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("sides", np.array([[0, -1]])),  # a cut that follows itself
        ("sides", np.array([[-1, -1]])),  # two ways to one leaf
        ("sides", np.array([[-1, -3]])),  # a leaf that no way leads to
        ("thresholds", np.array([np.nan])),
        ("directions", np.ones((1, 3))),
    ],
)
def test_arrays_that_are_no_tree_are_noticed(name, value):
    sound = {
        "directions": np.ones((1, 2)),
        "thresholds": np.zeros(1),
        "sides": np.array([[-1, -2]]),
        "roots": np.array([0]),
        "groups": np.empty(0),
    }
    assert CutTree(**sound).is_sound(2)
    assert not CutTree(**(sound | {name: value})).is_sound(2)


def test_a_row_on_a_cut_is_on_its_first_side():
    tree = CutTree(
        directions=np.array([[1.0, 0.0]]),
        thresholds=np.array([0.5]),
        sides=np.array([[-1, -2]]),
        roots=np.array([0]),
        groups=np.empty(0),
    )
    assert tree.leaf_of(np.array([[0.5, 9.0], [np.nextafter(0.5, 1.0), 0.0]])).tolist() == [0, 1]


def test_cuts_are_in_the_middle_between_rows():
    """So that rounding does not move a row to another leaf."""
    A = rows(500)
    gradients = np.random.default_rng(2).standard_normal((500, 3))
    for rule in (CutRule(60), CutRule(60, A, gradients), CutRule(60, seed=1)):
        tree = cut_tree(A, rule)
        for direction, threshold in zip(tree.directions, tree.thresholds, strict=True):
            assert np.abs(A @ direction - threshold).min() > 1e-9


def test_a_cut_that_no_root_leads_to_is_noticed():
    """Each number is there once, but the second cut follows itself."""
    tree = CutTree(
        directions=np.ones((2, 2)),
        thresholds=np.zeros(2),
        sides=np.array([[-1, -2], [1, -3]]),
        roots=np.array([0]),
        groups=np.empty(0),
    )
    assert not tree.is_sound(2)


def test_each_group_has_the_tree_of_its_own_rows():
    A, group = rows(300), np.random.default_rng(1).integers(0, 3, 300).astype(float)
    leaf = grouped_tree(A, CutRule(40), group, np.arange(3.0)).leaf_of(A, group)
    first = 0
    for own in range(3):
        alone = cut_tree(A[group == own], CutRule(40))
        assert np.array_equal(leaf[group == own], first + alone.leaf_of(A[group == own]))
        first += alone.n_leaves


@pytest.mark.parametrize(("column", "sound"), [(0, True), (2, True), (3, False), (-2, False)])
def test_the_column_of_groups_is_one_of_the_data(column, sound):
    A, group = rows(60), np.arange(60) % 2.0
    partition = Partition((grouped_tree(A, CutRule(20), group, np.arange(2.0)),), column)
    assert partition.is_sound(3, 3) == sound


@pytest.mark.parametrize("column", [0.5, "x", None])
def test_the_column_of_groups_is_a_number(column):
    A, group = rows(60), np.arange(60) % 2.0
    assert not Partition((grouped_tree(A, CutRule(20), group, [0.0, 1.0]),), column).is_sound(3, 3)


def test_leading_gradients_are_those_of_the_sum_over_outputs():
    gradients = np.random.default_rng(0).standard_normal((5, 3, 4))
    leading = leading_gradients(gradients)
    for own, found in zip(gradients, leading, strict=True):
        values, vectors = np.linalg.eigh(own.T @ own)
        np.testing.assert_allclose(np.abs(found), np.sqrt(values[-1]) * np.abs(vectors[:, -1]))
    np.testing.assert_array_equal(leading_gradients(gradients[:, :1]), gradients[:, 0])


def test_rows_without_features_are_one_leaf():
    tree = cut_tree(np.empty((50, 0)), CutRule(10))
    assert tree.n_leaves == 1
    assert tree.is_sound(0)
    assert not tree.leaf_of(np.empty((7, 0))).any()
