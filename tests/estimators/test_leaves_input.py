"""Fits in leaves: bad parameters and data, and what else can be asked of a fitted model."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from estimators.leaf_cases import CASES, FEW, LEAVES, NEW, SIGN, THREE, X, Y, scores
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from tessella import (
    KernelFeatures,
    LearnedKernelRidge,
    LearnedKernelRidgeClassifier,
    LearnedKernelSVC,
    LearnedKernelSVR,
    MultipleKernelSVC,
    TessellatedKernels,
)
from tessella.estimators import _leaf_rows
from tessella.estimators._warm_start import PreviousFit
from tessella.inspection import (
    feature_relevance,
    interaction_relevance,
    linear_share,
    relevance_scale,
)


@pytest.fixture
def untouched(monkeypatch):
    """Makes a test fail if rows are read before an error."""

    def read(*_, **__):
        pytest.fail("rows were read before the parameters were checked")

    monkeypatch.setattr(_leaf_rows, "scan", read)


@pytest.fixture(scope="module")
def models():
    names = ("two classes", "three classes", "regression", "ridge", "ridge classes", "weights")
    return {name: clone(CASES[name][0]).fit(X, CASES[name][1]) for name in names}


# ------------------------------------------------------------------------------- bad parameters


@pytest.mark.parametrize("value", [0, 10, 49, -5, 1.5, 200.0, "x", "200", True, [200]])
def test_a_size_of_leaves_that_is_none(value, untouched):
    with pytest.raises(ValueError, match=r"max_leaf_rows=.* must be a whole number >= 50\."):
        LearnedKernelSVC(max_leaf_rows=value).fit(X, SIGN)


@pytest.mark.parametrize("value", [0, -1, 1.5, "two", True, None])
def test_a_number_of_partitions_that_is_none(value, untouched):
    for leaves in (None, 100):
        with pytest.raises(ValueError, match=r"n_partitions=.* must be a whole number >= 1\."):
            LearnedKernelSVR(n_partitions=value, max_leaf_rows=leaves).fit(X, Y)


@pytest.mark.parametrize("value", [3.5, None, True, ["a"], (0,)])
def test_a_partition_that_is_none(value, untouched):
    with pytest.raises(ValueError, match=r"partition=.* must be 'gradient', 'median' or the name"):
        LearnedKernelRidge(partition=value, **LEAVES).fit(X, Y)


@pytest.mark.parametrize("value", [3, -1, 10**6])
def test_a_column_of_groups_that_is_none(value, untouched):
    with pytest.raises(ValueError, match=r"is not the number of a column: there are 3\."):
        LearnedKernelRidge(partition=value, **LEAVES).fit(X, Y)


def test_a_name_of_groups_that_is_none(untouched):
    model = LearnedKernelRidge(partition="site", **LEAVES)
    with pytest.raises(ValueError, match=r"partition='site' is neither .* have no names"):
        model.fit(X, Y)
    with pytest.raises(ValueError, match=r"the features are \['a', 'b', 'c'\]"):
        model.fit(pd.DataFrame(X, columns=list("abc")), Y)


def test_what_has_no_meaning_with_leaves(untouched):
    with pytest.raises(ValueError, match="early_stopping=True has no meaning with max_leaf_rows"):
        LearnedKernelSVC(early_stopping=True, **LEAVES).fit(X, SIGN)
    with pytest.raises(ValueError, match="multi_class='separate' cannot be used with"):
        LearnedKernelSVC(multi_class="separate", **LEAVES).fit(X, THREE)
    with pytest.raises(ValueError, match="multi_class='separate' cannot be used with"):
        MultipleKernelSVC(multi_class="separate", **LEAVES).fit(X, THREE)


def test_rows_of_files_need_leaves(tmp_path, untouched):
    for path in (tmp_path, str(tmp_path)):
        with pytest.raises(ValueError, match=r"Rows of files are fitted in leaves: give max_leaf"):
            LearnedKernelSVC().fit(path, "target")
    with pytest.raises(TypeError, match="y must be the name of the column"):
        LearnedKernelSVC(**LEAVES).fit(tmp_path, SIGN)
    with pytest.raises(FileNotFoundError, match="no Parquet file"):
        LearnedKernelSVC(**LEAVES).fit(tmp_path, "target")
    with pytest.raises(FileNotFoundError, match="There is no file or folder"):
        LearnedKernelSVC(**LEAVES).fit(tmp_path / "missing", "target")


def test_a_mapped_file_without_leaves_is_an_array(tmp_path):
    mapped = mapped_rows(tmp_path, X[:80])
    assert not hasattr(LearnedKernelRidge().fit(mapped, Y[:80]), "leaves_")


# ------------------------------------------------------------------------------------- bad data


def mapped_rows(folder, rows):
    np.save(folder / "X.npy", rows)
    return np.load(folder / "X.npy", mmap_mode="r")


@pytest.mark.parametrize(("value", "kind"), [(np.nan, "a missing"), (np.inf, "an infinite")])
def test_a_gap_in_a_mapped_file_is_named_by_its_row(value, kind, tmp_path):
    rows = X.copy()
    rows[417, 1] = value
    with pytest.raises(ValueError, match=rf"Column number 1 of X has {kind} value in row 417"):
        LearnedKernelSVR(**LEAVES).fit(mapped_rows(tmp_path, rows), Y)


def test_a_gap_in_a_target(tmp_path):
    y = Y.copy()
    y[5] = np.nan
    with pytest.raises(ValueError, match="The target has a missing value in row 5"):
        LearnedKernelSVR(**LEAVES).fit(mapped_rows(tmp_path, X), y)
    with pytest.raises(ValueError, match="Input y contains NaN"):
        LearnedKernelSVR(**LEAVES).fit(X, y)


def test_weights_that_are_none(tmp_path):
    rows = mapped_rows(tmp_path, X)
    weight = np.ones(len(X))
    weight[9] = -1.0
    with pytest.raises(ValueError, match="weight of row 9 is negative"):
        LearnedKernelSVR(**LEAVES).fit(rows, Y, sample_weight=weight)
    with pytest.raises(ValueError, match="no rows of positive weight"):
        LearnedKernelSVR(**LEAVES).fit(rows, Y, sample_weight=np.zeros(len(X)))


@pytest.mark.parametrize("kind", [LearnedKernelSVC, LearnedKernelRidgeClassifier])
def test_targets_that_are_no_labels(kind, tmp_path):
    for rows in (X, mapped_rows(tmp_path, X)):
        with pytest.raises(ValueError, match=r"use a regressor|Unknown label type"):
            kind(**LEAVES).fit(rows, Y)
        with pytest.raises(ValueError, match="one class only"):
            kind(**LEAVES).fit(rows, np.ones(len(X)))


def test_text_as_a_target_of_a_regression(tmp_path):
    for rows in (X, mapped_rows(tmp_path, X)):
        with pytest.raises(ValueError, match=r"could not convert string|dtype='numeric'"):
            LearnedKernelSVR(**LEAVES).fit(rows, SIGN)


def test_features_that_are_all_constant():
    with pytest.raises(ValueError, match="All 3 features are constant"):
        LearnedKernelSVR(**LEAVES).fit(np.ones((600, 3)), Y)


def test_a_constant_feature_and_a_constant_target():
    rows = np.column_stack([X, np.full(len(X), 3.0)])
    model = LearnedKernelSVR(**LEAVES).fit(rows, Y)
    assert model.score(rows, Y) > 0.9
    flat = LearnedKernelRidge(**LEAVES).fit(X, np.full(len(X), 2.5))
    assert flat.predict(NEW) == pytest.approx(np.full(len(NEW), 2.5))
    assert flat.gap_ <= flat.tol


def test_few_distinct_rows():
    """Equal rows are not cut apart, and the sample has all of them."""
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 5, (2000, 2)).astype(float)
    y = rows[:, 0] * rows[:, 1] + 0.1 * rng.standard_normal(2000)
    model = LearnedKernelRidge(**LEAVES).fit(rows, y)
    assert len(np.unique(model.leaves_.base.support_vectors, axis=0)) == 25
    assert model.score(rows, y) > 0.99
    labels = np.where(rows.sum(axis=1) > 4, 1, 0)
    classes = LearnedKernelSVC(**LEAVES).fit(rows, labels)
    assert classes.score(rows, labels) == 1.0


def test_memory_is_checked_before_the_base_is_fitted(monkeypatch):
    monkeypatch.setattr("tessella.backend._memory.available_memory", lambda: 1000)
    with pytest.raises(MemoryError, match=r"leaves of 120 rows.*Use a smaller max_leaf_rows"):
        LearnedKernelSVR(**LEAVES).fit(X, Y)


# ------------------------------------------------------------------- what a fitted model can do


@pytest.mark.parametrize("name", ["two classes", "regression", "ridge", "ridge classes"])
def test_leave_one_out_says_why_it_is_not_there(name, models):
    for attribute in ("loo_score_", "loo_predictions_"):
        with pytest.raises(AttributeError, match=r"this model has leaves\. Hold out rows instead"):
            getattr(models[name], attribute)
    assert not hasattr(models[name], "loo_score_")


@pytest.mark.parametrize("name", ["two classes", "three classes", "regression", "weights"])
def test_inspection(name, models):
    model = models[name]
    relevance = feature_relevance(model)
    assert relevance.shape == (3,)
    assert relevance == pytest.approx(model.feature_relevance_)
    assert relevance[0] > 0.3
    assert interaction_relevance(model).shape == (3, 3)
    assert 0.0 <= linear_share(model) <= 1.0
    assert "leaves" in model._repr_html_()
    assert dir(model)


def test_relevance_scale_is_that_of_the_base(models):
    model = models["regression"]
    base = model.leaves_.base
    step = 1e-5
    box, rows = base.kernel.box, model._sample_rows
    slopes = []
    for j in range(3):
        ends = []
        for sign in (1.0, -1.0):
            A = box.apply(rows)
            A[:, j] += sign * step
            ends.append(base.scores(box.invert(A), 1)[:, 0])
        slopes.append(np.sqrt(np.mean(((ends[0] - ends[1]) / (2 * step)) ** 2)))
    expected = np.maximum(np.array(slopes) / max(slopes), 1e-3)
    assert relevance_scale(model) == pytest.approx(expected, rel=1e-3)
    again = clone(model).set_params(feature_scale=relevance_scale(model)).fit(X, Y)
    assert again.gap_ <= again.tol


def test_rows_outside_are_counted(models):
    rows = NEW.copy()
    rows[:4, 0] = 1e3
    assert models["regression"].count_outside(rows).n_outside == 4
    model = clone(models["regression"]).set_params(warn_outside=True).fit(X, Y)
    with pytest.warns(UserWarning, match="outside"):
        model.predict(rows)


def test_the_kernel_serves_other_models(models):
    features = KernelFeatures(models["regression"].kernel_).fit(X)
    assert np.isfinite(features.transform(NEW)).all()


def test_frames_and_their_names():
    frame = pd.DataFrame(X, columns=list("abc"))
    model = LearnedKernelRidge(partition="median", **LEAVES).fit(frame, Y)
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    plain = LearnedKernelRidge(partition="median", **LEAVES).fit(X, Y)
    new = pd.DataFrame(NEW, columns=list("abc"))
    assert model.predict(new) == pytest.approx(plain.predict(NEW))


@pytest.mark.parametrize(
    "options",
    [
        {"scaling": "quantile"},
        {"scaling": "robust"},
        {"feature_scale": [1.0, 0.5, 1e-3]},
        {"precision": "float32"},
        {"kernels": "polynomial", "degree": 2},
        {"kernels": TessellatedKernels(1, 0.5, floor=0.1)},
        {"kernels": TessellatedKernels(balance="unit")},
    ],
    ids=str,
)
def test_options_of_the_kernel(options):
    model = LearnedKernelSVR(**LEAVES, **options).fit(X, Y)
    assert model.gap_ <= model.tol
    assert model.score(X, Y) > 0.8


@pytest.mark.parametrize("weighting", ["simple", "alignment", "performance"])
def test_other_weightings(weighting):
    model = MultipleKernelSVC(10.0, FEW, weighting=weighting, **LEAVES).fit(X, SIGN)
    assert model.gap_ <= model.tol
    assert model.weights_.sum() == pytest.approx(1.0)
    if weighting != "simple":
        assert np.array_equal(model.weights_, model.leaves_.base.kernel.parameter)


# ------------------------------------------------------------------------------------ warm start


def test_a_warm_start_takes_the_kernel_of_the_fit_before():
    model = LearnedKernelRidge(warm_start=True, **LEAVES).fit(X, Y)
    first = model.parameter_
    with pytest.warns(ConvergenceWarning):
        model.set_params(max_iter=0).fit(X, Y)
    assert np.array_equal(model.parameter_, first)
    model.set_params(max_iter=1000).fit(X, Y)
    fresh = LearnedKernelRidge(**LEAVES).fit(X, Y)
    assert model.gap_ <= model.tol
    assert model.objective_ == pytest.approx(fresh.objective_, rel=2e-3)


def test_a_warm_start_from_another_kernel_set_is_a_cold_one():
    model = LearnedKernelRidge(warm_start=True, kernels="polynomial", **LEAVES).fit(X, Y)
    model.set_params(kernels="tessellated").fit(X, Y)
    fresh = LearnedKernelRidge(**LEAVES).fit(X, Y)
    assert np.array_equal(scores(model, NEW), scores(fresh, NEW))


def test_a_warm_start_between_leaves_and_one_machine():
    model = LearnedKernelRidge(warm_start=True, max_leaf_rows=120, n_jobs=1).fit(X, Y)
    assert PreviousFit.of(model).coefficients is None  # of other machines
    model.set_params(max_leaf_rows=None).fit(X, Y)
    whole = LearnedKernelRidge(n_jobs=1).fit(X, Y)
    assert not hasattr(model, "leaves_")
    assert model.objective_ == pytest.approx(whole.objective_, rel=2e-3)
    model.set_params(max_leaf_rows=120).fit(X, Y)
    assert model.gap_ <= model.tol
    assert model.leaves_.n_leaves > 1


def test_weights_of_a_rule_are_not_those_of_a_warm_start():
    model = MultipleKernelSVC(10.0, FEW, warm_start=True, **LEAVES).fit(X, SIGN)
    model.set_params(weighting="average").fit(X, SIGN)
    assert model.weights_ == pytest.approx(np.full(3, 1.0 / 3.0))


# ------------------------------------------------------------------------------------- callbacks


class Recorder:
    def __init__(self):
        self.events, self.gaps = [], []

    def setup(self, estimator, context):
        self.events.append("setup")

    def teardown(self, estimator, context):
        self.events.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        self.events.append(("begin", context.task_name))

    def on_fit_task_end(self, estimator, context, *, X=None, y=None, fitted_estimator=None):
        self.events.append(("end", context.task_name))
        if context.task_name == "iteration":
            self.gaps.append(fitted_estimator.gap_)
            assert fitted_estimator.predict(X[:3]).shape == (3,)


def test_callbacks_of_scikit_learn_follow_the_leaves():
    pytest.importorskip("sklearn.callback")
    recorder = Recorder()
    model = LearnedKernelRidge(**LEAVES).set_callbacks(recorder).fit(X, Y)
    assert recorder.events[:2] == ["setup", ("begin", "fit")]
    assert recorder.events[-2:] == [("end", "fit"), "teardown"]
    assert recorder.events.count("setup") == 1  # the base function is no fit of its own
    assert recorder.gaps == [record.gap for record in model.history_]
