"""The steps of a fit in leaves: scan, cuts, targets of the leaves, gradients, and the noise."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tessella.estimators._leaf_fit import as_arrays, gradients_of, group_column
from tessella.estimators._leaf_rows import LocalRows, batch_digest, joined_digest
from tessella.estimators._leaf_scan import row_hash, scan, target_numbers
from tessella.estimators._leaf_store import Cuts, LeafSpec, LeafStore, RowsOfLeaf, Spread
from tessella.estimators._leaf_targets import PairTargets, SquaredTargets, TubeTargets
from tessella.estimators._noise import local_noise_level, noise_level
from tessella.kernels import TessellatedKernels, UnitBox
from tessella.partitions import leading_gradients
from tessella.rows import ArraySource, Batch, RowSource


class Batches(RowSource):
    """Rows in batches of some sizes."""

    def __init__(self, X, y, weight=None, size=7):
        self._columns = X, y, np.ones(len(X)) if weight is None else weight
        self.n_rows, self.n_features = X.shape
        self.feature_names, self._size = None, size

    def batches(self):
        for first in range(0, self.n_rows, self._size):
            yield Batch(*(own[first : first + self._size] for own in self._columns), first)


def sample_of(found):
    """The rows of a sample as a set, with their weights."""
    rows = zip(found.X.tolist(), found.y.tolist(), np.round(found.weight, 9), strict=True)
    return {(*x, y, w) for x, y, w in rows}


# ----------------------------------------------------------------------------------- the scan


def data(m=300, seed=0, distinct=None):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, 3))
    if distinct:
        X = X[rng.integers(0, distinct, m)]
    y = np.array(["a", "b", "c"])[rng.choice(3, m, p=[0.6, 0.39, 0.01])]
    return X, y, rng.integers(0, 4, m).astype(float)


@pytest.mark.parametrize("distinct", [None, 40])
@pytest.mark.parametrize("classify", [False, True])
@pytest.mark.parametrize("size", [1, 7, 300])
def test_the_sample_does_not_depend_on_order_and_batches(distinct, classify, size):
    X, y, weight = data(distinct=distinct)
    y = y if classify else X[:, 0] ** 2
    expected = scan(Batches(X, y, weight, 300), 20, classify=classify, column=1)
    order = np.random.default_rng(1).permutation(len(X))
    found = scan(Batches(X[order], y[order], weight[order], size), 20, classify=classify, column=1)
    assert sample_of(found) == sample_of(expected)
    assert np.array_equal(found.X, expected.X)  # in the same order, too
    assert found.n_rows == expected.n_rows == np.count_nonzero(weight)
    assert found.total_weight == expected.total_weight == weight.sum()
    assert np.array_equal(found.groups, np.unique(X[weight > 0, 1]))
    if classify:
        assert found.classes.tolist() == np.unique(y[weight > 0]).tolist()
        totals = [weight[y == label].sum() for label in found.classes]
        assert found.class_weight.tolist() == totals


def test_the_sample_has_the_rows_of_smallest_hash_with_the_weight_of_their_copies():
    X, _, weight = data(distinct=40)
    target = np.round(X[:, 0], 1)
    found = scan(Batches(X, target, weight), 10, classify=False)
    used = weight > 0
    keys = np.column_stack([X, target])[used]
    distinct, place = np.unique(keys, axis=0, return_inverse=True)
    totals = np.bincount(place.ravel(), weight[used])
    order = np.argsort(row_hash(distinct))[:10]
    expected = {(*distinct[k], totals[k]) for k in order}
    kept = sample_of(found)
    assert expected <= kept
    assert len(kept) <= 10 + 2 * 3  # the others have an end of a range
    totals_of = {tuple(row): total for row, total in zip(distinct, totals, strict=True)}
    assert all(totals_of[own[:4]] == own[4] for own in kept)


def test_the_sample_has_the_range_of_the_data():
    X, y, _ = data(500)
    X[77] = [9.0, -9.0, 0.0]
    found = scan(Batches(X, y), 5, classify=False)
    for array in (found.low, found.X.min(axis=0)):
        assert np.array_equal(array, X.min(axis=0))
    for array in (found.high, found.X.max(axis=0)):
        assert np.array_equal(array, X.max(axis=0))
    assert len(found.X) <= 5 + 6


def test_rows_without_weight_are_not_seen():
    X, y, _ = data()
    weight = np.ones(len(X))
    X[5], weight[5] = 1e6, 0.0
    y[y == "c"] = "a"
    y[5] = "c"
    found = scan(Batches(X, y, weight), 50, classify=True, column=0)
    assert found.high.max() < 1e6
    assert found.classes.tolist() == ["a", "b"]
    assert 1e6 not in found.groups
    with pytest.raises(ValueError, match="no rows of positive weight"):
        scan(Batches(X, y, np.zeros(len(X))), 50, classify=False)


def test_the_sample_has_rows_of_every_class():
    X, y, _ = data(3000)
    y[:] = "a"
    y[[5, 1001]] = "b"
    y[np.arange(0, 3000, 10)] = "c"
    found = scan(Batches(X, y, size=100), 10, classify=True)
    counts = {label: int((found.y == label).sum()) for label in "abc"}
    assert counts["b"] == 2
    assert 50 <= counts["c"] <= 50 + 10 + 6
    assert 50 <= counts["a"] <= 50 + 10 + 6


def test_equal_features_with_other_targets_are_different_rows():
    """Of few distinct rows with many targets, the sample is not that of one row."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (1000, 2)).astype(float)
    y = rng.random(1000)
    found = scan(Batches(X, y), 40, classify=False)
    assert len(np.unique(found.X, axis=0)) == 4
    assert len(found.X) <= 40 + 4


def test_few_rows_are_all_in_the_sample():
    X, y, weight = data(30)
    found = scan(Batches(X, y, weight), 100, classify=True)
    assert len(found.X) == np.count_nonzero(weight)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=2), min_size=2, max_size=20))
def test_hashes_depend_on_values_alone(rows):
    X = np.array(rows)
    found = row_hash(X)
    alone = [int(row_hash(X[k : k + 1])[0]) for k in range(len(X))]
    assert found.tolist() == alone
    for a, b in itertools.combinations(range(len(X)), 2):
        assert (found[a] == found[b]) == (X[a] == X[b]).all()
    assert np.array_equal(row_hash(np.where(X == 0.0, -0.0, X)), found)


def test_hashes_look_random():
    X = np.arange(4000.0)[:, None] * [1.0, 0.0]
    parts = row_hash(X) / 2.0**64
    counts = np.histogram(parts, 10, (0.0, 1.0))[0]
    assert np.abs(counts - 400).max() < 80


def test_targets_of_text_have_numbers_that_do_not_depend_on_the_others():
    labels = np.array(["b", "a", "b", "c"])
    numbers = target_numbers(labels)
    assert numbers[0] == numbers[2]
    assert len(set(numbers)) == 3
    assert target_numbers(labels.astype(object)[:1])[0] == numbers[0]
    assert target_numbers(np.array([True, False])).tolist() == [1.0, 0.0]


def test_a_digest_depends_on_the_rows_and_not_on_their_order():
    X, y, weight = data()

    def digest(X, y, weight, size=50):
        source = Batches(X, y, weight, size)
        return joined_digest(source.n_rows, map(batch_digest, source.batches()))

    expected = digest(X, y, weight)
    order = np.random.default_rng(1).permutation(len(X))
    assert digest(X[order], y[order], weight[order], 13) == expected
    for changed in (0, 1, 2):
        columns = [X.copy(), y.copy(), weight.copy()]
        columns[changed][3] = columns[changed][3] + 1.0 if changed != 1 else "other"
        assert digest(*columns) != expected
    assert digest(np.vstack([X, X]), np.tile(y, 2), np.tile(weight, 2)) != expected


def test_all_rows_as_arrays():
    X, y, weight = data()
    for own, expected in zip(as_arrays(Batches(X, y, weight)), (X, y, weight), strict=True):
        assert np.array_equal(own, expected)


def test_columns_of_groups():
    names = np.array(["a", "median", "c"], dtype=object)
    assert group_column("gradient", 3, names) == group_column("median", 3, None) == -1
    assert group_column("c", 3, names) == group_column(2, 3, None) == 2


# ---------------------------------------------------------------------------------- the leaves


def cuts_of(X, largest, *, n_trees=2, column=-1):
    box = UnitBox.fit(X)
    groups = np.unique(X[:, column]) if column >= 0 else np.empty(0)
    A = box.apply(X[::3])
    own = X[::3, column] if column >= 0 else np.empty(0)
    cuts = Cuts(largest, n_trees, column, groups, None, None, A, own)
    code = lambda y, weight: (y, 2.0 * weight)  # noqa: E731
    return cuts, Spread(box, code, lambda rows, n_jobs: rows[:, :2] - 1.0, 2)


@pytest.mark.parametrize("on_disk", [False, True])
@pytest.mark.parametrize("column", [-1, 2])
@pytest.mark.parametrize("coarse", [1 << 27, 4000])
def test_every_row_is_in_one_leaf_of_each_tree(on_disk, column, coarse, monkeypatch):
    monkeypatch.setattr("tessella.estimators._leaf_store._COARSE_BYTES", coarse)
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.random((500, 2)), rng.integers(0, 3, 500)])
    y, weight = rng.random(500), rng.integers(0, 3, 500).astype(float)
    cuts, spread = cuts_of(X, 60, column=column)
    store = LeafStore.build(Batches(X, y, weight, 90), 500, cuts, spread, on_disk=on_disk)
    try:
        used = np.flatnonzero(weight > 0)
        assert store.sizes.sum() == 2 * len(used)
        first = store.partition.first_leaves
        expected = store.partition.leaves_of(spread.box.apply(X), X)
        for tree in range(2):
            seen = []
            for k in range(first[tree], first[tree + 1]):
                leaf = store.leaf(k)
                assert 0 < len(leaf.y) == store.sizes[k] <= 60
                assert (expected[tree, leaf.index] == k).all()
                assert np.array_equal(leaf.X, X[leaf.index])
                assert np.array_equal(leaf.y, y[leaf.index])
                assert np.array_equal(leaf.weight, 2.0 * weight[leaf.index])
                assert np.array_equal(leaf.base, leaf.X[:, :2] - 1.0)
                assert column < 0 or len(np.unique(leaf.X[:, 2])) == 1
                seen += leaf.index.tolist()
            assert sorted(seen) == used.tolist()
    finally:
        store.close()


def test_leaves_on_disk_are_those_in_memory():
    rng = np.random.default_rng(0)
    X, y = rng.random((400, 3)), rng.random(400)
    cuts, spread = cuts_of(X, 50)
    stores = [
        LeafStore.build(Batches(X, y, size=90), 400, cuts, spread, on_disk=on_disk)
        for on_disk in (False, True)
    ]
    for k in range(stores[0].n_leaves):
        leaves = [store.leaf(k) for store in stores]
        assert np.array_equal(leaves[0].block, leaves[1].block)
    stores[1].close()
    with pytest.raises(RuntimeError, match="have been removed"):
        stores[1].leaf(0)


def test_trees_have_cuts_at_different_places():
    X = np.random.default_rng(0).random((300, 2))
    cuts, spread = cuts_of(X, 100, n_trees=3)
    store = LeafStore.build(Batches(X, X[:, 0]), 300, cuts, spread, on_disk=False)
    firsts = [tree.thresholds[0] for tree in store.partition.trees]
    assert len(set(firsts)) == 3
    assert store.partition.trees[0].n_leaves == 3  # as few as there can be


def test_equal_rows_are_one_row_of_their_leaf():
    X = np.repeat(np.random.default_rng(0).random((40, 2)), 3, axis=0)
    y = np.repeat(np.arange(40.0), 3)
    leaf = RowsOfLeaf(X, y, np.arange(1.0, 121.0), np.arange(120), X + 5.0).merged()
    assert len(leaf.y) == 40
    assert (leaf.index % 3 == 0).all()
    assert np.array_equal(leaf.weight, 3.0 * leaf.index + 6.0)
    assert np.array_equal(leaf.base, leaf.X + 5.0)
    again = RowsOfLeaf.of_block(leaf.block, 2)
    for name in ("X", "y", "weight", "index", "base"):
        assert np.array_equal(getattr(again, name), getattr(leaf, name))


def test_a_coarse_leaf_has_its_part_of_the_sample():
    X = np.random.default_rng(0).random((3000, 2))
    cuts, spread = cuts_of(X, 10)
    tree = cuts.coarse_tree(0, 3000, 500)
    assert tree.n_leaves == 7  # 1,000 rows of the sample stand for 3,000, and 166 for 500
    assert np.bincount(tree.leaf_of(spread.box.apply(X))).max() < 600


def test_support_of_a_leaf():
    rng = np.random.default_rng(0)
    X, codes = rng.random((6, 2)), np.array([0, 0, 1, 1, 2, 2.0])
    rows = RowsOfLeaf(X, codes, np.ones(6), 10 * np.arange(6), np.zeros((6, 6)))
    spec = LeafSpec(PairTargets(1.0, 4), TessellatedKernels(1), UnitBox.fit(X), "float64", None)
    w = np.array([0.5, 0.0, -0.5, 0.0, *np.zeros(4), 0.0, 0.3, 0.0, -0.3])
    found = spec.support(rows, w, np.array([1.0, 2.0, 3.0]))
    assert found.index.tolist() == [0, 20, 30, 50]
    assert found.coefficients[0].tolist() == [0.5, -0.5, 0.0, 0.0]  # of classes 0 and 1
    assert found.coefficients[3].tolist() == [0.0, 0.0, 0.3, -0.3]  # of classes 1 and 2
    # Of the pairs with class 3, each row is on the first side, and has no loss from 1 on.
    assert found.intercepts.tolist() == [1.0, 2.0, 1.0, 3.0, 1.0, 1.0]
    plain = spec.support(rows, None, None)
    assert not len(plain.index)
    assert spec.problem(rows).dual.size == 12


def test_sizes_are_those_of_the_problems():
    rng = np.random.default_rng(0)
    X = rng.random((300, 2))
    y = np.floor(3 * X[:, 0] + 0.4 * rng.random(300)).clip(0, 2)
    for targets in (
        PairTargets(1.0, 3),
        SquaredTargets(1.0, 1.0, 3, 3),
        TubeTargets(1.0, 0.1, 1.0),
    ):
        count = targets.n_machines
        rows = LocalRows(Batches(X, y), 1, on_disk=False)
        cuts, spread = cuts_of(X, 50)
        spread = Spread(
            spread.box, spread.code, lambda A, n_jobs, n=count: np.zeros((len(A), n)), count
        )
        rows.divide(300, cuts, spread)
        sizes = rows.sizes(targets)
        for k in range(rows.store.n_leaves):
            leaf = rows.store.leaf(k)
            dual = targets.machines(leaf.y, leaf.weight, leaf.base).dual
            assert sizes[k] == (0 if dual is None else dual.size)
        rows.close()


# ---------------------------------------------------------------------------------- the targets


@pytest.mark.parametrize("sign", [0, 1])
def test_constants_of_one_class_are_the_smallest_without_a_loss(sign):
    base = np.array([[0.4], [-0.3], [2.0]])
    found = PairTargets(3.0, 2).machines(np.full(3, float(sign)), np.ones(3), base)
    assert found.dual is None
    assert found.numbers == ()
    direction = 1.0 if sign == 1 else -1.0  # scores are positive for the second of two classes
    margins = direction * (base[:, 0] + found.constants[0])
    assert margins.min() == pytest.approx(1.0)


def test_constants_that_are_not_needed_are_zero():
    targets = PairTargets(3.0, 3)
    base = np.full((4, 3), 2.5)
    found = targets.machines(np.zeros(4), np.ones(4), base)
    assert found.constants.tolist() == [0.0, 0.0, 0.0]  # the first two have margins of 2.5
    found = targets.machines(np.full(4, 2.0), np.ones(4), base)
    assert found.constants.tolist() == [0.0, -3.5, -3.5]


def test_the_targets_of_pairs_are_what_the_base_leaves():
    y = np.array([0, 1, 2, 0, 1.0])
    base = np.arange(15.0).reshape(5, 3) / 10
    weight = np.arange(1.0, 6.0)
    found = PairTargets(2.0, 3).machines(y, weight, base)
    assert found.numbers == (0, 1, 2)
    assert [own.tolist() for own in found.rows] == [[0, 1, 3, 4], [0, 2, 3], [1, 2, 4]]
    signs = [[1, -1, 1, -1], [1, -1, 1], [1, -1, 1]]
    start = 0
    for k, (own, sign) in enumerate(zip(found.rows, signs, strict=True)):
        part = slice(start, start + len(own))
        start += len(own)
        assert found.dual.linear[part] == pytest.approx(sign - base[own, k])
        w = found.dual.upper[part] - found.dual.lower[part]
        assert w == pytest.approx(2.0 * weight[own])
    # The loss of a score f is the hinge loss of base and f together.
    f = 0.3 * np.arange(10.0)
    losses = sum(
        np.sum(2.0 * weight[own] * np.maximum(0.0, 1.0 - np.array(s) * (base[own, k] + part)))
        for k, (own, s, part) in enumerate(zip(found.rows, signs, np.split(f, [4, 7]), strict=True))
    )
    values = [
        loss.values(loss.target - part)
        for loss, part in zip(found.dual.losses, np.split(f, [4, 7]), strict=True)
    ]
    assert np.concatenate(values).sum() == pytest.approx(losses)


def test_the_targets_of_a_regression_are_in_units_of_their_scale():
    y, weight, base = np.array([1.0, 5.0]), np.array([1.0, 2.0]), np.array([[0.5], [4.0]])
    tube = TubeTargets(3.0, 0.1, 2.0).machines(y, weight, base)
    assert tube.dual.linear == pytest.approx([0.25, 0.5])
    assert tube.dual.upper == pytest.approx([3.0, 6.0])
    assert tube.dual.epsilon == pytest.approx(0.1)
    ridge = SquaredTargets(3.0, 2.0).machines(y, weight, base)
    assert ridge.dual.linear == pytest.approx([0.25, 0.5])
    assert ridge.dual.curvature == pytest.approx([1 / 3, 1 / 6])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_targets_of_codes(n_classes):
    outputs = 1 if n_classes == 2 else 3
    y = np.arange(n_classes, dtype=float)
    base = np.full((n_classes, outputs), 0.25)
    found = SquaredTargets(1.0, 1.0, outputs, n_classes).machines(y, np.ones(n_classes), base)
    codes = np.array([[-1.0, 1.0]]) if n_classes == 2 else 2 * np.eye(3) - 1
    assert found.dual.linear == pytest.approx((codes - 0.25).ravel())
    assert found.numbers == tuple(range(outputs))
    assert all(len(own) == n_classes for own in found.rows)


# -------------------------------------------------------------------------- gradients and noise


def function(A, *slopes):
    return np.column_stack([np.sin(A @ slope) for slope in slopes])


@pytest.mark.parametrize("unit", [1e-4, 1.0, 1e4])
def test_gradients_are_those_of_the_function(unit):
    A = 3.0 + unit * np.random.default_rng(0).random((200, 3))  # not in the unit cube
    slope = np.array([1.0, -2.0, 0.0]) / unit
    found = gradients_of(lambda B: function(B, slope), A)[:, 0]
    expected = np.cos(A @ slope)[:, None] * slope
    assert found.shape == (200, 3)
    assert found * unit == pytest.approx(expected * unit, abs=0.03)


def test_several_machines_give_the_leading_direction():
    A = np.random.default_rng(0).random((50, 3))
    slopes = np.array([1.0, 0.0, 0.0]), np.array([2.0, 0.0, 0.0]), np.array([0.0, 0.5, 0.0])
    found = leading_gradients(gradients_of(lambda B: B @ np.column_stack(slopes), A))
    # Root of the sum of squares along the first feature, which is the leading direction.
    assert np.abs(found) == pytest.approx(np.tile([np.sqrt(5.0), 0.0, 0.0], (50, 1)), abs=1e-9)


def test_a_feature_without_a_range_has_no_slope():
    A = np.random.default_rng(0).random((50, 2))
    A[:, 1] = 0.5
    found = gradients_of(lambda B: B @ np.ones((2, 1)), A)[:, 0]
    assert found == pytest.approx(np.tile([1.0, 0.0], (50, 1)))


def test_the_local_noise_of_a_rough_function_is_that_of_cells():
    rng = np.random.default_rng(0)
    X = rng.random((4000, 2))
    rough = np.sin(20.0 * X[:, 0]) * np.cos(20.0 * X[:, 1])
    y = rough + 0.2 * rng.standard_normal(4000)
    local = local_noise_level(X, y, np.ones(4000), 1)
    assert 0.15 < local < 0.3
    few = local_noise_level(X[:900], y[:900], np.ones(900), 1)
    assert few == noise_level(X[:900], y[:900], np.ones(900), 1)


def test_the_local_noise_is_the_median_of_the_cells():
    from tessella.partitions import CutRule, cut_tree

    rng = np.random.default_rng(0)
    X = rng.random((3000, 2))
    y = rng.standard_normal(3000) * np.where(X[:, 0] < 0.3, 5.0, 1.0)
    weight = rng.uniform(0.5, 2.0, 3000)
    A = UnitBox.fit(X).apply(X)
    tree = cut_tree(A, CutRule(1000))
    leaf = tree.leaf_of(A)
    cells = [leaf == k for k in range(tree.n_leaves)]
    levels = [noise_level(X[own], y[own], weight[own], 1) for own in cells]
    assert local_noise_level(X, y, weight, 1) == np.median(levels)


def test_sources_of_arrays_are_scanned():
    X, y, _ = data()
    found = scan(ArraySource(X, y), 20, classify=True)
    assert sample_of(found) == sample_of(scan(Batches(X, y), 20, classify=True))
