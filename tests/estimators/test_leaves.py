"""Fits in leaves: gap, certificate, predictions, storage and order of the rows, groups, weights."""

from __future__ import annotations

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from estimators.leaf_cases import (
    CASES,
    FEW,
    LEAVES,
    NEW,
    SIGN,
    THREE,
    X,
    Y,
    base_scores,
    leaf_scores,
    scores,
    slow_leaves,
    slow_scores,
    slow_value,
    support_of,
)
from sklearn.base import clone

from tessella import LearnedKernelRidge, LearnedKernelSVC, LearnedKernelSVR, MultipleKernelSVC
from tessella.estimators._leaf_model import LeavesPredictor
from tessella.partitions import UnknownGroupError

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


@pytest.fixture(scope="module")
def fitted():
    return {name: clone(model).fit(X, y) for name, (model, y) in CASES.items()}


@pytest.fixture(params=CASES)
def case(request, fitted):
    """A fitted model and its targets."""
    return fitted[request.param], CASES[request.param][1]


# ---------------------------------------------------------------------- the answer and its proof


def test_the_gap_is_within_the_tolerance(case):
    model, y = case
    assert model.gap_ <= model.tol
    assert model.status_ == "optimal"
    assert model.solver_ == "leaves"
    assert model.gap_ == pytest.approx((model.objective_ - model.lower_bound_) / model.objective_)
    assert model.score(X, y) > 0.9


def test_the_model_alone_has_the_certified_value(case):
    model, y = case
    assert slow_value(model, X, y) == pytest.approx(model.objective_, rel=1e-7)


def test_no_machine_of_a_leaf_is_better_than_the_lower_bound(fitted):
    """Other intercepts and coefficients that shrink or grow have values above the lower bound."""
    model = fitted["regression"]
    best = slow_value(model, X, Y)
    for factor in (0.9, 1.1):
        other = clone(model)
        other.__dict__ = vars(model) | {"dual_coef_": factor * model.dual_coef_}
        assert slow_value(other, X, Y) > best
        other.__dict__ = vars(model) | {"intercept_": model.intercept_ + 0.2 * (factor - 1.0)}
        assert slow_value(other, X, Y) > best
    assert best >= model.lower_bound_


def test_predictions_are_those_of_the_slow_reference(case):
    model, _ = case
    expected = slow_scores(model, NEW)
    assert scores(model, NEW) == pytest.approx(expected, rel=1e-8, abs=1e-8)
    assert scores(model, NEW[:1]) == pytest.approx(expected[:1], rel=1e-8, abs=1e-8)


def test_labels_follow_from_the_scores(fitted):
    model = fitted["three classes"]
    votes = np.zeros((len(NEW), 3), dtype=int)
    for score, (a, b) in zip(slow_scores(model, NEW).T, ((0, 1), (0, 2), (1, 2)), strict=True):
        votes[:, a] += score > 0
        votes[:, b] += score <= 0
    assert (model.predict(NEW) == model.classes_[votes.argmax(axis=1)]).all()
    two = fitted["two classes"]
    assert (two.predict(NEW) == np.where(slow_scores(two, NEW)[:, 0] > 0, "yes", "no")).all()


def test_attributes_have_a_part_for_each_leaf(case):
    model, y = case
    leaves = model.leaves_
    n_machines = len(model.dual_coef_)
    assert model.intercept_.shape == (leaves.n_leaves, n_machines)
    assert leaves.partition.n_trees == model.n_partitions
    assert len(leaves.ends) == leaves.n_leaves
    assert leaves.ends[-1] == len(model.support_) == model.dual_coef_.shape[1]
    assert np.array_equal(X[model.support_], model.support_vectors_)
    assert model.dual_coef_.any(axis=0).all()
    of_rows = slow_leaves(model, X)
    for k in range(leaves.n_leaves):
        own = slice(leaves.ends[k - 1] if k else 0, leaves.ends[k])
        assert (of_rows[model.support_[own]] == k).any(axis=1).all()
        assert (of_rows == k).sum() <= model.max_leaf_rows
    assert model._n_rows == len(y)
    assert np.array_equal(model._training_range, [X.min(axis=0), X.max(axis=0)])


def test_a_rule_gives_the_weights_of_all_leaves(fitted):
    assert fitted["average"].weights_ == pytest.approx(np.full(3, 1.0 / 3.0))
    assert len(fitted["average"].history_) == 1
    assert fitted["weights"].weights_.sum() == pytest.approx(1.0)


def test_leaves_have_one_kernel_and_learn_more_than_the_base(fitted):
    """The kernel of all leaves is better for them than the kernel of the base function."""
    model = fitted["regression"]
    X_, y = X, Y
    part = clone(model).set_params(max_iter=0)
    with pytest.warns(UserWarning, match="gap"):
        part.fit(X_, y)
    assert model.objective_ < part.objective_


# ----------------------------------------------------------- order, threads and place of the rows


def as_memmap(folder, rows):
    path = folder / "X.npy"
    np.save(path, rows)
    return np.load(path, mmap_mode="r")


def as_parquet(folder, rows, parts=3, **columns):
    """A folder of Parquet files of the rows, with the features x0, x1, ..."""
    path = folder / "parts"
    path.mkdir()
    for number, own in enumerate(np.array_split(np.arange(len(rows)), parts)):
        features = {f"x{j}": rows[own, j] for j in range(rows.shape[1])}
        others = {name: np.asarray(column)[own] for name, column in columns.items()}
        pq.write_table(pa.table({**features, **others}), path / f"{number}.parquet")
    return path


def assert_same(model, other, rel=1e-6):
    """Two fits of the same problem, to rounding."""
    assert model.objective_ == pytest.approx(other.objective_, rel=rel)
    for own, its in zip(blocks(model), blocks(other), strict=True):
        assert own == pytest.approx(its, abs=1e-6 * np.abs(its).max())
    assert scores(model, NEW) == pytest.approx(scores(other, NEW), rel=1e-5, abs=1e-5)


def blocks(model):
    return [model.parameter_] if isinstance(model.parameter_, np.ndarray) else model.parameter_


@pytest.mark.parametrize("name", ["three classes", "regression", "ridge", "weights"])
def test_the_order_of_the_rows_does_not_matter(name, fitted):
    model, y = CASES[name]
    order = np.random.default_rng(5).permutation(len(X))
    other = clone(model).fit(X[order], y[order])
    assert_same(other, fitted[name])
    assert sorted(order[other.support_]) == sorted(fitted[name].support_)


@pytest.mark.parametrize("name", ["two classes", "regression", "ridge classes"])
def test_threads_do_not_matter(name, fitted):
    model, y = CASES[name]
    assert_same(clone(model).set_params(n_jobs=2).fit(X, y), fitted[name])


@pytest.mark.parametrize("name", ["three classes", "regression", "ridge", "weights"])
def test_rows_on_disk_give_the_same_model(name, fitted, tmp_path):
    model, y = CASES[name]
    mapped = clone(model).fit(as_memmap(tmp_path, X), y)
    assert_same(mapped, fitted[name])
    assert np.array_equal(mapped.support_, fitted[name].support_)
    stored = clone(model).fit(as_parquet(tmp_path, X, target=y), "target")
    assert stored.feature_names_in_.tolist() == ["x0", "x1", "x2"]
    with pytest.warns(UserWarning, match="feature names"):
        assert_same(stored, fitted[name])
    assert np.array_equal(stored.support_, fitted[name].support_)
    if hasattr(model, "classes_"):
        assert stored.classes_.tolist() == model.classes_.tolist()


def test_leaves_that_are_cut_in_two_steps_on_disk(monkeypatch, fitted, tmp_path):
    monkeypatch.setattr("tessella.estimators._leaf_store._COARSE_BYTES", 16_000)
    model = clone(CASES["regression"][0]).fit(as_memmap(tmp_path, X), Y)
    assert model.gap_ <= model.tol
    assert slow_value(model, X, Y) == pytest.approx(model.objective_, rel=1e-7)
    assert scores(model, NEW) == pytest.approx(slow_scores(model, NEW), rel=1e-8)
    assert model.score(X, Y) > 0.98


def test_weights_from_a_column_of_the_files(tmp_path):
    weight = np.random.default_rng(3).integers(0, 3, len(X)).astype(float)
    model = LearnedKernelRidge(**LEAVES)
    path = as_parquet(tmp_path, X, target=Y, weight=weight)
    stored = clone(model).fit(path, "target", sample_weight="weight")
    given = clone(model).fit(X, Y, sample_weight=weight)
    with pytest.warns(UserWarning, match="feature names"):
        assert_same(stored, given)


# -------------------------------------------------------------------------------------- weights


@pytest.mark.parametrize("name", ["three classes", "regression", "ridge"])
def test_weights_are_factors_of_the_losses(name):
    model, y = CASES[name]
    weight = np.random.default_rng(2).uniform(0.5, 3.0, len(X))
    model = clone(model).fit(X, y, sample_weight=weight)
    assert model.gap_ <= model.tol
    assert slow_value(model, X, y, weight) == pytest.approx(model.objective_, rel=1e-7)


def test_equal_weights_are_another_c(fitted):
    model = clone(CASES["given tube"][0]).set_params(C=2.0)
    model.fit(X, Y, sample_weight=np.full(len(X), 2.0))
    assert model.objective_ == pytest.approx(fitted["given tube"].objective_, rel=1e-5)
    assert scores(model, NEW) == pytest.approx(scores(fitted["given tube"], NEW), rel=1e-5)


def test_rows_of_weight_zero_are_left_out(fitted):
    rng = np.random.default_rng(4)
    extra = rng.random((50, 3)) * [100.0, 1.0, 300.0]  # beyond the range of the others
    rows, y = np.vstack([extra, X]), np.concatenate([1e4 * rng.random(50), Y])
    weight = np.repeat([0.0, 1.0], [50, len(X)])
    model = clone(CASES["ridge"][0]).fit(rows, y, sample_weight=weight)
    assert (model.support_ >= 50).all()
    assert np.array_equal(model._training_range, [X.min(axis=0), X.max(axis=0)])
    # The sample of the base function may be larger, as there are more rows as given.
    assert model.leaves_.n_leaves == fitted["ridge"].leaves_.n_leaves
    assert scores(model, NEW) == pytest.approx(scores(fitted["ridge"], NEW), abs=0.3)


def test_a_class_of_weight_zero_is_absent():
    y, weight = THREE.copy(), np.ones(len(X))
    weight[y == "b"] = 0.0
    model = LearnedKernelSVC(**LEAVES).fit(X, y, sample_weight=weight)
    assert model.classes_.tolist() == ["a", "c"]
    assert set(model.predict(NEW)) == {"a", "c"}


def test_copies_of_rows_are_merged():
    twice, y = np.vstack([X, X]), np.concatenate([Y, Y])
    model = LearnedKernelRidge(**LEAVES).fit(twice, y)
    for k in range(model.leaves_.n_leaves):
        vectors, _ = support_of(model, k)
        assert len(np.unique(vectors, axis=0)) == len(vectors)
    assert (model.support_ < len(X)).all()
    assert slow_value(model, twice, y) == pytest.approx(model.objective_, rel=1e-7)


# --------------------------------------------------------------------------------------- groups


GROUP = np.random.default_rng(6).choice([-2.0, 0.0, 7.5], len(X), p=[0.5, 0.4, 0.1])
GROUPED = np.column_stack([X[:, :2], GROUP, X[:, 2]])


@pytest.fixture(scope="module")
def grouped():
    return LearnedKernelSVR(partition=2, **LEAVES).fit(GROUPED, Y + 20.0 * GROUP)


def test_leaves_have_rows_of_one_group(grouped):
    partition = grouped.leaves_.partition
    assert partition.column == 2
    leaves = partition.leaves_of(grouped.kernel_.box.apply(GROUPED), GROUPED)
    assert np.array_equal(leaves.T, slow_leaves(grouped, GROUPED))
    for tree in leaves:
        for k in np.unique(tree):
            assert len(np.unique(GROUP[tree == k])) == 1
    y = Y + 20.0 * GROUP
    assert grouped.gap_ <= grouped.tol
    assert slow_value(grouped, GROUPED, y) == pytest.approx(grouped.objective_, rel=1e-7)
    assert scores(grouped, GROUPED) == pytest.approx(slow_scores(grouped, GROUPED), rel=1e-8)


def test_groups_by_name_are_those_by_number(grouped, tmp_path):
    path = as_parquet(tmp_path, GROUPED, target=Y + 20.0 * GROUP)
    named = LearnedKernelSVR(partition="x2", **LEAVES).fit(path, "target")
    assert named.leaves_.partition.column == 2
    with pytest.warns(UserWarning, match="feature names"):
        found = named.predict(GROUPED)
    assert found == pytest.approx(grouped.predict(GROUPED), rel=1e-5)


def test_an_unknown_group_is_named(grouped):
    rows = GROUPED[:3].copy()
    rows[1, 2] = 3.25
    with pytest.raises(UnknownGroupError, match=r"The group 3\.25 is not among the 3 groups"):
        grouped.predict(rows)


def test_a_group_that_the_sample_does_not_know():
    """A group of two rows is rarely in the sample of the base function, but has a leaf."""
    rows = GROUPED.copy()
    rows[[3, 500], 2] = 5.0
    model = LearnedKernelRidge(partition=2, **LEAVES).fit(rows, Y)
    assert model.leaves_.partition.trees[0].groups.tolist() == [-2.0, 0.0, 5.0, 7.5]
    assert np.isfinite(model.predict(rows)).all()


# ------------------------------------------------------------------------- classes of the leaves


def test_leaves_of_one_class_have_constants():
    """Where a class is alone, no machine is needed, and no row there has a loss."""
    labels = np.where(X[:, 0] < 5.0, "left", np.where(np.median(Y) < Y, "up", "down"))
    rows = np.column_stack([X, X[:, 0] < 5.0])
    model = LearnedKernelSVC(partition=3, decision_function_shape="ovo", **LEAVES)
    model.fit(rows, labels)
    leaves = slow_leaves(model, rows)[:, 0]
    alone = [k for k in np.unique(leaves) if (labels[leaves == k] == "left").all()]
    assert alone
    for k in alone:
        vectors, _ = support_of(model, k)
        assert not len(vectors)
        found = model.decision_function(rows[leaves == k])
        assert (found[:, 1] <= 1e-9 - 1.0).all() or model.n_partitions > 1
    assert slow_value(model, rows, labels) == pytest.approx(model.objective_, rel=1e-7)
    assert model.score(rows, labels) > 0.95


def test_every_leaf_has_one_class(tmp_path):
    """Then there is nothing to learn but constants, and the value is zero."""
    rows = np.column_stack([X, SIGN == "yes"])
    path = tmp_path / "fit.ckpt"
    model = LearnedKernelSVC(partition=3, checkpoint=path, **LEAVES).fit(rows, SIGN)
    assert model.objective_ == model.lower_bound_ == model.gap_ == 0.0
    assert not len(model.support_)
    assert model.score(rows, SIGN) == 1.0
    assert slow_value(model, rows, SIGN) == pytest.approx(0.0, abs=1e-9)
    assert (model.predict(rows) == clone(model).fit(rows, SIGN).predict(rows)).all()


def test_a_rare_class_is_in_the_sample():
    labels = np.where(np.arange(len(X)) % 150 == 7, "rare", SIGN)
    model = LearnedKernelSVC(decision_function_shape="ovo", **LEAVES).fit(X, labels)
    assert model.classes_.tolist() == ["no", "rare", "yes"]
    assert slow_value(model, X, labels) == pytest.approx(model.objective_, rel=1e-7)


def test_labels_of_numbers_and_booleans():
    for labels in (np.where(SIGN == "yes", 7, -3), SIGN == "yes"):
        model = LearnedKernelSVC(**LEAVES).fit(X, labels)
        assert model.classes_.dtype == labels.dtype
        assert model.score(X, labels) > 0.95


# --------------------------------------------------------------------------------- few rows


@pytest.mark.parametrize("name", ["two classes", "regression", "ridge"])
def test_few_rows_are_fitted_as_always(name, tmp_path):
    model, y = CASES[name]
    plain = clone(model).set_params(max_leaf_rows=None).fit(X[:100], y[:100])
    small = clone(model).fit(X[:100], y[:100])
    mapped = clone(model).fit(as_memmap(tmp_path, X[:100]), y[:100])
    stored = clone(model).fit(as_parquet(tmp_path, X[:100], target=y[:100]), "target")
    assert stored.feature_names_in_.tolist() == ["x0", "x1", "x2"]
    for other in (small, mapped, stored):
        assert not hasattr(other, "leaves_")
        assert other.objective_ == plain.objective_
        for attribute in ("parameter_", "dual_coef_", "intercept_", "support_"):
            assert np.array_equal(getattr(other, attribute), getattr(plain, attribute))


def test_a_fit_without_leaves_forgets_those_of_the_fit_before():
    model = LearnedKernelRidge(**LEAVES).fit(X, Y)
    model.fit(X[:100], Y[:100])
    assert not hasattr(model, "leaves_")
    assert model.predict(X[:5]).shape == (5,)


# -------------------------------------------------------------------------- the cache of leaves


def test_few_leaves_are_kept_ready(monkeypatch, fitted):
    model = fitted["regression"]
    most = int(np.diff(model.leaves_.ends, prepend=0).max())
    monkeypatch.setattr("tessella.estimators._leaf_model._MOST_READY", 2 * most)
    predictor = LeavesPredictor(
        model.kernel_, model.support_vectors_, model.dual_coef_, model.leaves_, model.intercept_
    )
    expected = slow_scores(model, NEW)
    for _ in range(2):
        assert predictor.scores(NEW, 1) == pytest.approx(expected, rel=1e-8)
        held = sum(
            model.leaves_.support_of(k).stop - model.leaves_.support_of(k).start
            for k in predictor._ready
        )
        assert held == predictor._n_ready <= 2 * most
        assert predictor._ready


def test_two_threads_that_prepare_one_leaf_count_it_once(fitted):
    model = fitted["regression"]
    predictor = LeavesPredictor(
        model.kernel_, model.support_vectors_, model.dual_coef_, model.leaves_, model.intercept_
    )
    own = model.leaves_.support_of(0)
    # Each of them was there before the other one has kept its own.
    made = [model.kernel_.predictor(X[:2], np.ones((2, 1))) for _ in range(2)]
    with ThreadPoolExecutor(2) as pool:
        kept = list(pool.map(lambda one: predictor._kept(0, one, own.stop - own.start), made))
    assert kept[0] is kept[1]
    assert predictor._ready == {0: kept[0]}
    assert predictor._n_ready == own.stop - own.start > 0


def test_a_lock_of_the_predictor_is_not_copied(fitted):
    model = fitted["regression"]
    expected = model.predict(NEW)
    for other in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert np.array_equal(other.predict(NEW), expected)


def test_scores_of_single_leaves_add_up(fitted):
    model = fitted["given tube"]
    k = int(slow_leaves(model, NEW[:1])[0, 0])
    base = model.leaves_.base.scores(NEW[:1], 1)
    expected = base + leaf_scores(model, k, NEW[:1])
    assert model.predict(NEW[:1]) == pytest.approx(expected[0])


def test_raw_features_of_a_dictionary_have_gradients_too():
    """A dictionary gets features that are far outside the unit cube."""
    model = MultipleKernelSVC(10.0, FEW, **LEAVES).fit(X + np.array([0.0, 50.0, 1e4]), SIGN)
    directions = model.leaves_.partition.trees[0].directions
    assert np.isfinite(directions).all()
    assert (np.abs(directions[0]) > 1e-12).all()  # along a gradient, not along a feature


def test_the_base_function_has_the_weights_of_the_classes():
    """Of labels that do not depend on the features, it gives the heavy one."""
    labels = np.random.default_rng(0).choice(["no", "yes"], len(X), p=[0.7, 0.3])
    model = LearnedKernelSVC(0.1, class_weight={"yes": 20.0}, **LEAVES).fit(X, labels)
    assert (base_scores(model, X) > 0).mean() > 0.95
