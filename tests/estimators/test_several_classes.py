"""More than two classes: one kernel for all pairs, or one for each."""

from __future__ import annotations

import warnings
from copy import copy
from itertools import combinations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import cross_val_score
from sklearn.svm import SVC

import tessella
from tessella import KernelDictionary, KernelFeatures, LearnedKernelSVC
from tessella.inspection import ConvergenceDisplay, ParameterDisplay
from tessella.kernels import LearnedKernel, TessellatedKernels
from tessella.problems import SaddlePoint
from tessella.svm import DualProblem, relative_gap

BOTH = pytest.mark.parametrize("multi_class", ["shared", "separate"])


@pytest.fixture(scope="module")
def iris():
    data = load_iris()
    return data.data, data.target_names[data.target]


@pytest.fixture(scope="module")
def shared(iris):
    return LearnedKernelSVC(tol=1e-5).fit(*iris)


@pytest.fixture(scope="module")
def separate(iris):
    return LearnedKernelSVC(tol=1e-5, multi_class="separate").fit(*iris)


def pair_scores(model, X):
    """The score of each pair of classes."""
    return copy(model).set_params(decision_function_shape="ovo").decision_function(X)


def test_attributes_of_a_shared_kernel(shared, iris):
    X, _ = iris
    assert isinstance(shared.kernel_, LearnedKernel)
    assert shared.classes_.tolist() == ["setosa", "versicolor", "virginica"]
    assert shared.dual_coef_.shape == (3, len(shared.support_))
    assert shared.intercept_.shape == (3,)
    np.testing.assert_array_equal(shared.support_vectors_, X[shared.support_])
    assert (np.diff(shared.support_) > 0).all()
    np.testing.assert_allclose(shared.dual_coef_.sum(axis=1), 0.0, atol=1e-9)
    assert shared.gap_ <= 1e-5


def test_the_certificate_is_that_of_the_sum_over_pairs(shared, iris):
    """Every pair by itself, with the shared kernel: primal values add up to the objective."""
    X, y = iris
    total, D = 0.0, np.zeros_like(shared.P_)
    kappa = 0.0
    for k, (a, b) in enumerate(combinations(shared.classes_, 2)):
        rows = np.flatnonzero((y == a) | (y == b))
        signs = np.where(y[rows] == a, 1.0, -1.0)
        w = np.zeros(len(X))
        w[shared.support_] = shared.dual_coef_[k]
        assert (w[rows] * signs >= 0).all()  # coefficients of the pair's classes only
        assert not np.delete(w, rows).any()
        f = shared.kernel_(X[rows], X) @ w + shared.intercept_[k]
        norm = w @ shared.kernel_(X) @ w
        total += 0.5 * norm + 10.0 * np.maximum(1.0 - signs * f, 0.0).sum()
        kappa += np.abs(w).sum()
        bound = shared.kernel_.kernels.bind(shared.kernel_.box.apply(X))
        D += bound.gradient(w)
    assert total == pytest.approx(shared.objective_, rel=1e-7)
    lower = kappa - 0.5 * len(D) * np.linalg.eigvalsh(D)[-1]
    assert shared.lower_bound_ >= lower - 1e-9
    assert shared.lower_bound_ <= shared.objective_


def test_separate_kernels_are_those_of_binary_fits(separate, iris):
    """The same scaling is the only thing they have in common."""
    X, y = iris
    assert len(separate.kernel_) == len(separate.P_) == len(separate.history_) == 3
    box = separate.kernel_[0].box
    for k, (a, b) in enumerate(combinations(separate.classes_, 2)):
        assert separate.kernel_[k].box == box
        rows = np.flatnonzero((y == a) | (y == b))
        dual = DualProblem.classification(np.where(y[rows] == a, 1.0, -1.0), 10.0)
        problem = SaddlePoint(TessellatedKernels().bind(box.apply(X[rows])), dual)
        w = np.zeros(len(X))
        w[separate.support_] = separate.dual_coef_[k]
        assert problem.certificate(separate.P_[k], w[rows]).gap <= 2e-5
    assert separate.gap_ <= 1e-5
    assert separate.status_ == "optimal"


def test_a_shared_kernel_cannot_beat_separate_ones_in_value(shared, separate):
    assert separate.objective_ <= shared.objective_ * (1 + 1e-5)
    assert separate.lower_bound_ <= separate.objective_


@BOTH
def test_shapes_and_ties_of_svc(multi_class, shared, separate, iris):
    """With the learned kernel given to SVC, its rules give our scores and labels."""
    X, y = iris
    model = {"shared": shared, "separate": separate}[multi_class]
    scores = pair_scores(model, X)
    assert scores.shape == (150, 3)
    assert model.decision_function(X).shape == (150, 3)
    if multi_class == "shared":
        svc = SVC(kernel=model.kernel_, C=10.0, tol=1e-8, decision_function_shape="ovo").fit(X, y)
        np.testing.assert_allclose(svc.decision_function(X), scores, atol=0.05)
        svc.decision_function_shape = "ovr"
        np.testing.assert_allclose(svc.decision_function(X), model.decision_function(X), atol=0.02)
        np.testing.assert_array_equal(svc.predict(X), model.predict(X))
    assert model.score(X, y) > 0.95


def same_row(X, Y):
    """A kernel without rounding: two for equal rows and one for others."""
    return 1.0 + (X[:, None, :] == Y[None, :, :]).all(axis=2)


def rows_with_equal_votes():
    """Classes without any order, so that several of them may win as many pairs."""
    rng = np.random.default_rng(0)
    X, y = rng.random((150, 2)), rng.integers(0, 4, 150)
    return LearnedKernelSVC(tol=0.1).fit(X, y), rng.random((2000, 2))


def rows_with_scores_of_zero():
    """Two classes at each of two places, which no machine can tell apart, and a third place."""
    X = np.array([[0.0, 0.0], [0.0, 0.0], [1.0, 1.0], [1.0, 1.0]])
    kernels = KernelDictionary([same_row])
    return LearnedKernelSVC(kernels=kernels).fit(X, np.arange(4)), np.vstack([X, [[3.0, 4.0]]])


@pytest.mark.parametrize("case", [rows_with_equal_votes, rows_with_scores_of_zero])
def test_rules_of_scikit_learn_for_ties(case):
    from sklearn.utils.multiclass import _ovr_decision_function

    model, X = case()
    scores = pair_scores(model, X)
    np.testing.assert_allclose(
        model.decision_function(X), _ovr_decision_function(scores < 0, -scores, 4)
    )
    votes = np.zeros((len(X), 4))
    for k, (i, j) in enumerate(combinations(range(4), 2)):
        for row, score in enumerate(scores[:, k]):
            votes[row, i if score > 0 else j] += 1  # LIBSVM's rule
    if case is rows_with_scores_of_zero:
        np.testing.assert_array_equal(scores[:, [0, 5]], 0.0)
    else:
        assert ((votes == votes.max(axis=1, keepdims=True)).sum(axis=1) > 1).sum() > 10
    np.testing.assert_array_equal(model.predict(X), votes.argmax(axis=1))


def test_breaking_ties(shared, iris):
    X, _ = iris
    model = clone(shared).set_params(break_ties=True).fit(*iris)
    best = model.decision_function(X).argmax(axis=1)
    np.testing.assert_array_equal(model.predict(X), model.classes_[best])
    model.decision_function_shape = "ovo"
    with pytest.raises(ValueError, match="break_ties"):
        model.predict(X)


@BOTH
@pytest.mark.parametrize(
    "names", [[3, 1, 2], ["c", "a", "b"], [True, False, True], [-1.0, 7.0, 5.0]]
)
def test_any_labels(multi_class, names, iris):
    X, y = iris
    labels = np.array(names)[np.unique(y, return_inverse=True)[1]]
    model = LearnedKernelSVC(tol=1e-2, multi_class=multi_class).fit(X[::3], labels[::3])
    np.testing.assert_array_equal(model.classes_, np.unique(labels))
    assert np.mean(model.predict(X) == labels) > 0.9


def test_order_of_rows_does_not_matter(shared, iris):
    X, y = iris
    order = np.random.default_rng(0).permutation(len(X))
    again = clone(shared).fit(X[order], y[order])
    np.testing.assert_array_equal(again.P_, shared.P_)
    np.testing.assert_allclose(
        pair_scores(again, X), pair_scores(shared, X), rtol=1e-11, atol=1e-11
    )


@BOTH
def test_weights_are_copies(multi_class, iris):
    X, y = iris
    weight = np.arange(len(X)) % 3
    model = LearnedKernelSVC(tol=1e-3, multi_class=multi_class)
    weighted = clone(model).fit(X, y, sample_weight=weight)
    copied = clone(model).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_array_equal(weighted.decision_function(X), copied.decision_function(X))


def test_balanced_classes_weigh_the_same(iris):
    X, y = iris
    keep = np.r_[0:50, 50:70, 100:110]
    balanced = LearnedKernelSVC(tol=1e-4, class_weight="balanced").fit(X[keep], y[keep])
    factors = {
        label: 80 / (3 * count)
        for label, count in zip(*np.unique(y[keep], return_counts=True), strict=True)
    }
    by_hand = LearnedKernelSVC(tol=1e-4, class_weight=factors).fit(X[keep], y[keep])
    np.testing.assert_allclose(pair_scores(balanced, X), pair_scores(by_hand, X), rtol=1e-9)


@BOTH
def test_warm_start_goes_on(multi_class, iris):
    model = LearnedKernelSVC(multi_class=multi_class, warm_start=True, max_iter=0, tol=1e-7)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        gap = model.fit(*iris).gap_
    model.set_params(max_iter=1000).fit(*iris)
    assert model.gap_ <= 1e-7 < gap
    runs = [model.history_] if multi_class == "shared" else model.history_
    value, bound = (sum(getattr(run[0], name) for run in runs) for name in ("value", "bound"))
    assert relative_gap(value, bound) <= gap * (1 + 1e-9)


def test_another_number_of_classes_starts_afresh(iris):
    X, y = iris
    model = LearnedKernelSVC(warm_start=True).fit(X, y)
    model.fit(X, y == "setosa")
    assert model.dual_coef_.shape[0] == 1
    assert model.score(X, y == "setosa") == 1.0


@BOTH
def test_saved_and_loaded(multi_class, shared, separate, iris, tmp_path):
    X, _ = iris
    model = {"shared": shared, "separate": separate}[multi_class]
    model.save(tmp_path / "model.tsl")
    loaded = tessella.load(tmp_path / "model.tsl")
    np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))
    assert loaded.history_ == model.history_
    assert tessella.persistence.read_info(tmp_path / "model.tsl")["classes"] == list(model.classes_)


def test_a_time_limit_is_for_all_pairs_together(iris):
    model = LearnedKernelSVC(multi_class="separate", time_limit=1e-6, tol=1e-9)
    with pytest.warns(ConvergenceWarning, match="time limit"):
        model.fit(*iris)
    assert model.status_ == "time limit"
    assert model.decision_function(iris[0]).shape == (150, 3)


def test_an_interrupted_pair_ends_the_others_soon(iris):
    model = LearnedKernelSVC(multi_class="separate", tol=1e-9)
    seen = []

    def interrupt(record):
        seen.append(record)
        if len(seen) == 2:
            raise KeyboardInterrupt

    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model._fit(*iris, callback=interrupt)
    assert model.status_ == "interrupted"
    assert len(seen) <= 2 + 2  # one record for each of the two pairs that were left
    assert model.score(*iris) > 0.5


@BOTH
def test_checkpoints(multi_class, iris, tmp_path):
    path = tmp_path / "fit.ckpt"
    model = LearnedKernelSVC(multi_class=multi_class, checkpoint=path, max_iter=0, tol=1e-7)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        gap = model.fit(*iris).gap_
    files = sorted(p.name for p in tmp_path.iterdir())
    assert files == (
        ["fit.ckpt"] if multi_class == "shared" else [f"fit.ckpt.{k}" for k in range(3)]
    )
    again = clone(model).set_params(max_iter=1000).fit(*iris)
    assert again.gap_ <= 1e-7 < gap


@BOTH
def test_early_stopping(multi_class, iris):
    model = LearnedKernelSVC(
        multi_class=multi_class, early_stopping=True, validation_fraction=0.2, random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(*iris)
    assert model.score(*iris) > 0.9
    scores = model.validation_scores_
    runs = [scores] if multi_class == "shared" else scores
    assert all(len(run) > 0 for run in runs)


@BOTH
def test_relevance_and_outside(multi_class, shared, separate, iris):
    X, _ = iris
    model = {"shared": shared, "separate": separate}[multi_class]
    relevance = model.feature_relevance_
    assert relevance.shape == (4,)
    assert relevance[2:].min() > relevance[:2].max()  # petals tell irises apart
    assert model.count_outside(10 * X).n_outside == 150


def test_parts_that_need_one_kernel_say_so(shared, separate, iris):
    assert ParameterDisplay.from_estimator(shared).P.shape == (10, 10)
    with pytest.raises(ValueError, match="3 kernels, one for each pair"):
        ParameterDisplay.from_estimator(separate)
    with pytest.raises(ValueError, match="3 runs, one for each pair"):
        ConvergenceDisplay.from_estimator(separate)
    with pytest.raises(ValueError, match="did not learn a single kernel"):
        KernelFeatures(LearnedKernelSVC(multi_class="separate")).fit(*iris)
    features = KernelFeatures(LearnedKernelSVC(), n_components=20).fit(*iris)
    assert isinstance(features.kernel_, LearnedKernel)


@pytest.mark.parametrize("solver", ["frank-wolfe", "apd", "hybrid", "joint", "working-set"])
def test_every_solver_learns_a_shared_kernel(solver, shared, iris):
    model = LearnedKernelSVC(solver=solver, tol=1e-3).fit(*iris)
    assert model.gap_ <= 1e-3
    assert model.objective_ == pytest.approx(shared.objective_, rel=1e-3)


def test_float32_storage(iris):
    model = LearnedKernelSVC(precision="float32").fit(*iris)
    assert model.gap_ <= 1e-3


def test_balance_is_decided_by_all_rows(iris):
    X, y = iris
    kernels = TessellatedKernels(balance="unit")
    model = LearnedKernelSVC(kernels=kernels).fit(X, y)
    resolved = kernels.resolve(model.kernel_.box.apply(np.unique(X, axis=0)))
    assert model.kernel_.kernels.balance == pytest.approx(resolved.balance, rel=0.05)
    assert model.score(X, y) > 0.95


def test_as_good_as_svc_on_wine():
    X, y = load_wine(return_X_y=True)
    ours = cross_val_score(LearnedKernelSVC(), X, y, cv=3).mean()
    assert ours > 0.95
