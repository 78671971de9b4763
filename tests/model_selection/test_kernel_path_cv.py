from __future__ import annotations

import pickle
import re
import warnings

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import get_scorer, make_scorer, mean_absolute_error
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    RepeatedKFold,
    ShuffleSplit,
    StratifiedKFold,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from tessella import (
    KernelDictionary,
    KernelPathCV,
    LearnedKernelRidge,
    LearnedKernelRidgeClassifier,
    LearnedKernelSVC,
    LearnedKernelSVR,
    MultipleKernelSVC,
    MultipleKernelSVR,
    PolynomialKernels,
    TessellatedKernels,
)
from tessella.kernels import Gaussian, Polynomial

FEW = {"C": [0.3, 3.0]}
GRID = {"C": [10.0, 0.1, 1.0], "delta": [0.1, 1.0]}
OURS = {"mean_gap", "worst_gap", "n_uncertified", "n_folds"}


@parametrize_with_checks(
    [
        KernelPathCV(LearnedKernelSVC(), FEW, cv=2),
        KernelPathCV(LearnedKernelSVR(), {"C": [1.0]}, cv=2, error_score="raise"),
        KernelPathCV(LearnedKernelRidge(), FEW, cv=2),
        KernelPathCV(LearnedKernelRidgeClassifier(), {"C": [1.0]}, cv=2),
        KernelPathCV(None, {"C": [1.0]}, cv=2),
        KernelPathCV(MultipleKernelSVC(kernels=[Gaussian(1.0), Polynomial(2)]), FEW, cv=2),
        KernelPathCV(MultipleKernelSVR(kernels=[Gaussian(1.0)]), {"C": [1.0]}, cv=2),
    ]
)
def test_scikit_learn_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        check(estimator)


# ---- the same answers as GridSearchCV


@pytest.mark.parametrize(
    ("cv", "scoring"),
    [
        (4, None),
        (KFold(3, shuffle=True, random_state=1), "neg_mean_absolute_error"),
        (
            ShuffleSplit(3, random_state=2),
            make_scorer(mean_absolute_error, greater_is_better=False),
        ),
        (RepeatedKFold(n_splits=2, n_repeats=2, random_state=3), "r2"),
    ],
)
@pytest.mark.parametrize("make", [LearnedKernelSVR, LearnedKernelRidge])
def test_regression_scores_are_those_of_grid_search(waves, cv, scoring, make):
    X, y = waves
    estimator = make(tol=1e-7)
    ours = KernelPathCV(estimator, GRID, cv=cv, scoring=scoring).fit(X, y)
    theirs = GridSearchCV(estimator, GRID, cv=cv, scoring=scoring).fit(X, y)
    for name in theirs.cv_results_:
        if name.startswith(("split", "mean_test", "std_test")):
            np.testing.assert_allclose(ours.cv_results_[name], theirs.cv_results_[name], atol=1e-4)
    assert ours.best_params_ == theirs.best_params_
    assert ours.best_score_ == pytest.approx(theirs.best_score_, abs=1e-4)
    assert (ours.predict(X) == theirs.predict(X)).all()
    assert ours.n_splits_ == theirs.n_splits_


def test_classification_scores_and_columns_are_those_of_grid_search(circles):
    X, y = circles
    estimator = LearnedKernelSVC(tol=1e-6)
    grid = [GRID, {"C": [1.0], "kernels": ["polynomial"], "degree": [2, 3]}]
    ours = KernelPathCV(estimator, grid, cv=3, scoring="roc_auc").fit(X, y)
    theirs = GridSearchCV(estimator, grid, cv=3, scoring="roc_auc").fit(X, y)
    assert set(ours.cv_results_) == set(theirs.cv_results_) | OURS
    assert ours.cv_results_["params"] == theirs.cv_results_["params"]
    for name, column in theirs.cv_results_.items():
        if name.startswith("param_"):
            assert (ours.cv_results_[name].mask == column.mask).all()
            assert (ours.cv_results_[name] == column).all()
            assert ours.cv_results_[name].dtype.kind == column.dtype.kind
    np.testing.assert_allclose(
        ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"], atol=2e-3
    )
    assert ours.best_params_ == theirs.best_params_
    assert ours.score(X, y) == theirs.score(X, y)
    assert ours.classes_.tolist() == [0, 1]


@pytest.mark.parametrize("make", [LearnedKernelSVR, LearnedKernelRidge])
def test_every_fit_is_certified_wherever_it_started(waves, make):
    search = KernelPathCV(make(tol=1e-5), GRID, cv=3).fit(*waves)
    assert (search.cv_results_["worst_gap"] <= 1e-5).all()
    assert (search.cv_results_["mean_gap"] <= search.cv_results_["worst_gap"]).all()
    assert not search.cv_results_["n_uncertified"].any()
    assert (search.cv_results_["n_folds"] == 3).all()


def test_best_estimator_is_the_estimator_with_the_best_parameters(waves):
    X, y = waves
    estimator = LearnedKernelSVR(epsilon=0.2, n_jobs=1)
    search = KernelPathCV(estimator, GRID, cv=2).fit(X, y)
    alone = clone(estimator).set_params(**search.best_params_).fit(X, y)
    assert (search.predict(X) == alone.predict(X)).all()
    assert search.best_estimator_.get_params() == alone.get_params()
    assert search.refit_time_ > 0
    assert not hasattr(estimator, "kernel_")


# ---- needs no thought


def test_chooses_the_task_by_the_target(circles, waves):
    few = {"cv": 2, "param_grid": FEW}
    assert is_classifier(KernelPathCV(**few).fit(*circles))
    assert is_classifier(KernelPathCV(**few).fit(circles[0], np.array(["a", "b"])[circles[1]]))
    assert is_regressor(KernelPathCV(**few).fit(*waves))
    assert is_regressor(KernelPathCV(**few).fit(waves[0], (100 * waves[1]).round()))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_default_grid_has_what_the_kernels_have(circles):
    X, y = circles[0][:30], circles[1][:30]
    values = {"C": [0.1, 1.0, 10.0, 100.0, 1000.0, 10000.0], "delta": [0.1, 1.0, 4.0]}
    with_delta = LearnedKernelSVC(kernels=TessellatedKernels())
    expected = [
        (LearnedKernelSVR(), {"C", "delta"}),
        (LearnedKernelSVR(kernels="polynomial"), {"C"}),
        (LearnedKernelSVC(kernels=PolynomialKernels(2)), {"C"}),
        (with_delta, {"C", "kernels__delta"}),
        (MultipleKernelSVC(kernels="standard"), {"C"}),
        (MultipleKernelSVC(kernels=[Gaussian(1.0)]), {"C"}),
        (MultipleKernelSVC(kernels=KernelDictionary([Gaussian(1.0)])), {"C"}),
        (LearnedKernelSVC(kernels=sum_of_sets()), {"C"}),
        (
            make_pipeline(StandardScaler(), LearnedKernelSVC()),
            {"learnedkernelsvc__C", "learnedkernelsvc__delta"},
        ),
    ]
    for estimator, names in expected:
        model = clone(estimator)
        (model[-1] if hasattr(model, "steps") else model).set_params(tol=0.5, max_iter=2)
        search = KernelPathCV(model, cv=2, refit=False).fit(X, y)
        assert set(search.best_params_) == names
        for name in names:
            tried = np.unique(search.cv_results_[f"param_{name}"].data.astype(float))
            assert tried.tolist() == values[name.rpartition("__")[2]]


def test_default_grid_is_as_good_as_the_untuned_estimator(waves):
    X, y = waves
    search = KernelPathCV(cv=3).fit(X, y)
    plain = GridSearchCV(LearnedKernelSVR(), {"C": [10.0]}, cv=3).fit(X, y)
    # The default delta is not in the grid, whose best point loses at most 0.01 by its study.
    assert search.best_score_ >= plain.best_score_ - 0.01
    assert len(search.cv_results_["params"]) == 18


# ---- other estimators, other parameters


def test_any_parameter_may_be_searched(circles):
    grid = {"C": [1.0], "kernels__balance": ["none", "unit"], "kernels__degree": [0, 1]}
    estimator = LearnedKernelSVC(kernels=TessellatedKernels(), tol=1e-2)
    search = KernelPathCV(estimator, grid, cv=2).fit(*circles)
    assert set(search.best_params_) == set(grid)
    without_c = KernelPathCV(LearnedKernelSVC(), {"delta": [0.1, 1.0]}, cv=2).fit(*circles)
    assert set(without_c.best_params_) == {"delta"}


def sum_of_sets():
    return TessellatedKernels() + KernelDictionary([Gaussian(0.5), Gaussian(2.0)])


SEARCHES = {
    "weights": (MultipleKernelSVC(), {"C": [0.1, 1.0, 10.0]}),
    "weightings": (
        MultipleKernelSVC(kernels=[Gaussian(0.5), Polynomial(2)]),
        {"C": [1.0, 10.0], "weighting": ["learned", "average", "alignment"]},
    ),
    "dictionary": (
        LearnedKernelSVC(kernels=KernelDictionary([Gaussian(0.5), Polynomial(2)])),
        {"C": [1.0, 10.0], "kernels__normalisation": ["trace", "cosine"]},
    ),
    "sum": (
        LearnedKernelSVC(kernels=sum_of_sets()),
        {"C": [1.0, 10.0], "kernels__0__delta": [0.1, 1.0]},
    ),
    "features": (
        LearnedKernelSVC(kernels=TessellatedKernels().on_features([0]) + PolynomialKernels(2)),
        {"C": [1.0, 10.0], "kernels__0__kernels__delta": [0.1, 1.0]},
    ),
    "pipeline": (
        make_pipeline(StandardScaler(), MultipleKernelSVC(kernels=[Gaussian(0.5), Polynomial(2)])),
        {"multiplekernelsvc__C": [0.1, 10.0]},
    ),
    "pipeline with a sum": (
        make_pipeline(StandardScaler(), LearnedKernelSVC(kernels=sum_of_sets())),
        {"learnedkernelsvc__C": [1.0, 10.0], "learnedkernelsvc__kernels__0__delta": [0.1, 1.0]},
    ),
}


@pytest.mark.parametrize("name", SEARCHES)
def test_weights_and_sums_are_searched_as_by_grid_search(circles, name):
    model, grid = SEARCHES[name]
    model = clone(model)
    (model[-1] if name.startswith("pipeline") else model).set_params(tol=1e-7)
    ours = KernelPathCV(model, grid, cv=3).fit(*circles)
    theirs = GridSearchCV(model, grid, cv=3).fit(*circles)
    np.testing.assert_allclose(
        ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"], atol=1e-9
    )
    assert ours.best_params_ == theirs.best_params_
    np.testing.assert_array_equal(ours.predict(circles[0]), theirs.predict(circles[0]))
    assert ours.cv_results_["worst_gap"].max() <= 1e-7


def test_later_fits_of_weights_start_from_earlier_ones(circles):
    """As in a search with a matrix: there is no need to find first weights on a few rows."""
    X, y = circles
    model = MultipleKernelSVC(10.0, tol=1e-6).fit(X[:100], y[:100])
    cold = clone(model).fit(X, y)
    warm = clone(model).set_params(warm_start=True)
    warm._start_from(model.kernel_)
    warm.fit(X, y)
    assert warm.history_[0].n_newton == 0 < cold.history_[0].n_newton
    assert warm.objective_ == pytest.approx(cold.objective_, rel=2e-6)


def test_fits_of_a_few_machines_start_from_nothing():
    """With many features, a kernel of other data costs more than a few machines."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 40))
    y = X[:, 0] * X[:, 1] + X[:, 2] + 0.3 * rng.standard_normal(120) > 0
    folds = list(StratifiedKFold(3).split(X, y))
    values = [1.0, 10.0, 100.0]
    search = KernelPathCV(LearnedKernelSVC(), {"C": values}, cv=folds, refit=False).fit(X, y)
    for place, C in enumerate(values):
        cold = [LearnedKernelSVC(C=C).fit(X[train], y[train]) for train, _ in folds]
        assert all(model.history_[-1].n_newton == 0 for model in cold)
        gaps = [model.gap_ for model in cold]
        assert search.cv_results_["mean_gap"][place] == pytest.approx(np.mean(gaps), rel=1e-9)
        assert search.cv_results_["worst_gap"][place] == pytest.approx(max(gaps), rel=1e-9)


def test_paths_of_fits_that_start_from_nothing_are_cut(capsys):
    """Two jobs ask for eight pieces: four folds have two each."""
    X = np.random.default_rng(0).standard_normal((100, 40))
    grid = {"C": [1.0, 10.0]}
    with joblib.parallel_config("threading", n_jobs=2):
        KernelPathCV(LearnedKernelSVC(), grid, verbose=1, refit=False).fit(X, X[:, 0] > 0)
    told = re.findall(r"fold (\d), (\d) candidates", capsys.readouterr().out)
    assert told == [("0", "2"), *((str(fold), "1") for fold in (1, 2, 3, 4) for _ in range(2))]


def test_fits_of_many_machines_start_from_the_first_fold():
    """Frank-Wolfe takes no Newton steps, but a machine in each of its many steps."""
    rng = np.random.default_rng(0)
    X = rng.random((80, 4))
    y = np.sin(5 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.standard_normal(80) > 0.6
    model = LearnedKernelSVC(solver="frank-wolfe", tol=1e-2)
    folds = list(StratifiedKFold(2).split(X, y))
    search = KernelPathCV(model, {"C": [10.0]}, cv=folds, refit=False).fit(X, y)
    first, second = (train for train, _ in folds)
    cold = clone(model).set_params(C=10.0).fit(X[first], y[first])
    warm = clone(cold).set_params(warm_start=True)
    warm._start_from(cold.kernel_)
    warm.fit(X[second], y[second])
    assert cold.history_[-1].n_svm > 5
    assert cold.history_[-1].n_newton == 0
    mean = 0.5 * (cold.gap_ + warm.gap_)
    assert search.cv_results_["mean_gap"][0] == pytest.approx(mean, rel=1e-9)


@pytest.mark.parametrize("kernels", ["standard", "sum"])
def test_kernels_of_another_shape_are_no_start(kernels):
    """A feature that is constant in the rows of a fold has no kernels of its own there."""
    rng = np.random.default_rng(0)
    X = rng.random((60, 3))
    X[:20, 2] = 0.5
    y = X[:, 0] > X[:, 1]
    model = MultipleKernelSVC()
    if kernels == "sum":
        model = LearnedKernelSVC(kernels=TessellatedKernels() + KernelDictionary.standard())
    folds = [(np.arange(20), np.arange(20, 60)), (np.arange(20, 60), np.arange(20))]
    search = KernelPathCV(model, {"C": [1.0, 10.0]}, cv=folds, error_score="raise").fit(X, y)
    again = GridSearchCV(model, {"C": [1.0, 10.0]}, cv=folds).fit(X, y)
    assert search.cv_results_["n_uncertified"].sum() == 0
    np.testing.assert_allclose(
        search.cv_results_["mean_test_score"], again.cv_results_["mean_test_score"], atol=0.06
    )


def test_pipeline_that_ends_in_a_learner(waves):
    X, y = waves
    wide = np.column_stack([X, X[:, :1] ** 2])
    pipeline = make_pipeline(StandardScaler(), PCA(), LearnedKernelSVR(tol=1e-7))
    grid = {"pca__n_components": [2, 3], "learnedkernelsvr__C": [1.0, 0.1]}
    ours = KernelPathCV(pipeline, grid, cv=3).fit(wide, y)
    theirs = GridSearchCV(pipeline, grid, cv=3).fit(wide, y)
    np.testing.assert_allclose(
        ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"], atol=1e-4
    )
    assert ours.best_params_ == theirs.best_params_
    assert (ours.predict(wide) == theirs.predict(wide)).all()


def test_search_as_the_last_step_of_a_pipeline(circles):
    X, y = circles
    model = make_pipeline(StandardScaler(), KernelPathCV(LearnedKernelSVC(), FEW, cv=2))
    assert model.fit(X, y).score(X, y) > 0.7


# ---- weights, groups, routing


def test_weight_zero_is_absence_in_every_fold(waves):
    X, y = waves
    rng = np.random.default_rng(0)
    weight = (rng.random(len(y)) < 0.8).astype(float)
    spoiled = np.where(weight == 0, 1e3, y)
    cv = KFold(3)
    search = KernelPathCV(LearnedKernelSVR(), GRID, cv=cv)
    one = clone(search).fit(X, y, sample_weight=weight)
    two = clone(search).fit(X, spoiled, sample_weight=weight)
    for name in ("split0_test_score", "split1_test_score", "split2_test_score"):
        np.testing.assert_allclose(one.cv_results_[name], two.cv_results_[name], atol=1e-9)
    assert (one.predict(X) == two.predict(X)).all()


def test_groups_go_to_the_splitter(circles):
    X, y = circles
    groups = np.arange(len(y)) % 7
    seen = []

    def note(model, X_test, y_test):
        seen.append({tuple(row) for row in X_test})
        return 0.0

    KernelPathCV(LearnedKernelSVC(tol=1e-2), {"C": [1.0]}, cv=GroupKFold(3), scoring=note).fit(
        X, y, groups=groups
    )
    assert len(seen) == 3
    for rows in seen:
        here = {g for g, row in zip(groups, X, strict=True) if tuple(row) in rows}
        assert len(rows) == np.isin(groups, list(here)).sum()


def test_metadata_routing(waves):
    X, y = waves
    weight = np.random.default_rng(0).random(len(y))
    with config_context(enable_metadata_routing=True):
        estimator = LearnedKernelSVR(tol=1e-6).set_fit_request(sample_weight=True)
        scorer = get_scorer("neg_mean_squared_error").set_score_request(sample_weight=False)
        ours = KernelPathCV(estimator, FEW, cv=2, scoring=scorer)
        theirs = GridSearchCV(estimator, FEW, cv=2, scoring=scorer)
        ours.fit(X, y, sample_weight=weight)
        theirs.fit(X, y, sample_weight=weight)
        np.testing.assert_allclose(
            ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"], atol=1e-4
        )
        assert ours.score(X, y) == theirs.score(X, y)
        with pytest.raises(ValueError, match="sample_weight"):
            KernelPathCV(LearnedKernelSVR(), FEW, cv=2).fit(X, y, sample_weight=weight)


# ---- several scores, and who chooses


def test_several_scores(circles):
    X, y = circles
    scoring = {"auc": "roc_auc", "hits": "accuracy"}
    search = KernelPathCV(LearnedKernelSVC(), GRID, cv=2, scoring=scoring, refit="auc").fit(X, y)
    best = search.cv_results_["mean_test_auc"].max()
    assert search.best_score_ == best
    assert search.multimetric_
    assert search.cv_results_["rank_test_hits"].min() == 1
    assert search.score(X, y) == get_scorer("roc_auc")(search.best_estimator_, X, y)
    none = KernelPathCV(LearnedKernelSVC(), FEW, cv=2, scoring=scoring, refit=False).fit(X, y)
    assert not hasattr(none, "best_params_")


def test_scorer_that_returns_several_scores(circles):
    def both(model, X, y):
        hits = (model.predict(X) == y).mean()
        return {"hits": hits, "misses": 1 - hits}

    search = KernelPathCV(LearnedKernelSVC(), FEW, cv=2, scoring=both, refit="hits").fit(*circles)
    assert search.best_score_ == search.cv_results_["mean_test_hits"].max()
    with pytest.raises(ValueError, match="does not name the one that decides"):
        KernelPathCV(LearnedKernelSVC(), FEW, cv=2, scoring=both, eliminate=True).fit(*circles)


def test_refit_by_a_function_and_not_at_all(circles):
    X, y = circles
    search = KernelPathCV(LearnedKernelSVC(), FEW, cv=2, refit=lambda results: 1).fit(X, y)
    assert search.best_params_ == {"C": 3.0}
    search = KernelPathCV(LearnedKernelSVC(), FEW, cv=2, refit=False).fit(X, y)
    assert search.best_params_["C"] in (0.3, 3.0)
    assert not hasattr(search, "predict")
    with pytest.raises(AttributeError) as refused:
        search.predict(X)
    assert "refit=False" in str(refused.value.__cause__)
    with pytest.raises(ValueError, match="not the index"):
        KernelPathCV(LearnedKernelSVC(), FEW, cv=2, refit=lambda results: 7).fit(X, y)


# ---- giving up points


def test_elimination_chooses_the_same_with_fewer_fits(waves):
    X, y = waves
    grid = {"C": np.logspace(-4, 2, 7), "delta": [0.1, 1.0]}
    cv = KFold(5, shuffle=True, random_state=0)
    everything = KernelPathCV(LearnedKernelSVR(), grid, cv=cv).fit(X, y)
    search = KernelPathCV(LearnedKernelSVR(), grid, cv=cv, eliminate=True).fit(X, y)
    assert search.best_params_ == everything.best_params_
    results = search.cv_results_
    given_up = results["n_folds"] < 5
    assert given_up.sum() >= 7
    assert results["n_folds"].min() == 1
    assert np.isnan(results["mean_test_score"][given_up]).all()
    assert np.isnan(results["split4_test_score"][given_up]).all()
    assert (results["rank_test_score"][given_up] == (~given_up).sum() + 1).all()
    np.testing.assert_allclose(
        results["mean_test_score"][~given_up],
        everything.cv_results_["mean_test_score"][~given_up],
        atol=1e-2,
    )


def folds_of_given_scores(table):
    """The number of folds on which each candidate was evaluated, if these were its scores."""
    X = np.arange(30.0)[:, None]
    y = np.tile([0, 1], 15)

    def given_score(model, X_test, y_test):
        return table[round(model.C) - 1][int(X_test[0, 0] // 10)]

    search = KernelPathCV(
        LearnedKernelSVC(tol=0.5),
        {"C": np.arange(1.0, len(table) + 1)},
        cv=KFold(3),
        scoring=given_score,
        eliminate=True,
        refit=False,
    )
    return search.fit(X, y).cv_results_["n_folds"].tolist()


def test_survivors_by_hand():
    # The leader, an equal in other folds, one clearly worse, a failed one, a hopeless one: after
    # the first fold the better half is left, of those that have a score.
    table = [[0.9, 0.8, 0.9], [0.8, 0.9, 0.9], [0.6, 0.5, 0.5], [np.nan] * 3, [-5.0] * 3]
    assert folds_of_given_scores(table) == [3, 3, 1, 1, 1]
    # The lags of the first four vary by 0.02 together, which is 0.02 / 3 for each that is not the
    # leader: two standard errors of two folds are 0.115. The third is 0.15 behind, the fourth 0.1.
    table = [[0.9, 0.8, 0.9], [0.8, 0.9, 0.9], [0.75, 0.65, 0.7], [0.8, 0.7, 0.7]]
    assert folds_of_given_scores([*table, *[[0.1] * 3] * 4]) == [3, 3, 2, 3, 1, 1, 1, 1]


# ---- side by side


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_backends_give_the_same(waves, backend):
    X, y = waves
    alone = KernelPathCV(LearnedKernelSVR(n_jobs=1), GRID, cv=2).fit(X, y)
    with joblib.parallel_config(backend=backend, n_jobs=2):
        search = KernelPathCV(LearnedKernelSVR(), GRID, cv=2).fit(X, y)
    for name in ("split0_test_score", "split1_test_score", "worst_gap"):
        np.testing.assert_allclose(search.cv_results_[name], alone.cv_results_[name], rtol=1e-9)


def test_only_paths_without_a_chain_are_cut(waves, capsys):
    """Two jobs ask for eight pieces: four folds have two each, and what is left over."""
    values = [10.0**k for k in range(-2, 3)]
    alone = KernelPathCV(LearnedKernelSVR(n_jobs=1), {"C": values}, cv=5).fit(*waves)
    with joblib.parallel_config("threading", n_jobs=2):
        search = KernelPathCV(LearnedKernelSVR(), {"C": values}, cv=5, verbose=1).fit(*waves)
    told = re.findall(r"fold (\d), (\d) candidates up to C=(\S+):", capsys.readouterr().out)
    chain = [("0", "5", "100.0")]  # its fits start from each other
    pieces = [("2", "0.1"), ("2", "10.0"), ("1", "100.0")]  # theirs start from those of fold 0
    assert told == chain + [(str(fold), *piece) for fold in range(1, 5) for piece in pieces]
    for name in ("split0_test_score", "split1_test_score", "split4_test_score", "worst_gap"):
        np.testing.assert_allclose(search.cv_results_[name], alone.cv_results_[name], rtol=1e-9)


def test_dask_backend(waves):
    distributed = pytest.importorskip("distributed")
    with (
        distributed.Client(processes=False, dashboard_address=None),
        joblib.parallel_config("dask"),
    ):
        search = KernelPathCV(LearnedKernelSVR(), FEW, cv=2).fit(*waves)
    assert (search.cv_results_["worst_gap"] <= 1e-3).all()


def test_fits_have_one_thread_when_paths_have_the_cores(waves):
    def threads(model, X, y):
        return float("nan" if model.n_jobs is None else model.n_jobs)

    one = KernelPathCV(LearnedKernelSVR(), FEW, cv=2, scoring=threads, refit=False)
    two = clone(one).set_params(n_jobs=2)
    told = clone(two).set_params(estimator=LearnedKernelSVR(n_jobs=3))
    assert np.isnan(one.fit(*waves).cv_results_["split0_test_score"]).all()
    with joblib.parallel_config("threading"):
        assert (two.fit(*waves).cv_results_["split0_test_score"] == 1).all()
        assert (told.fit(*waves).cv_results_["split0_test_score"] == 3).all()


def test_verbose_tells_of_each_path(circles, capsys):
    KernelPathCV(LearnedKernelSVC(), GRID, cv=2, verbose=1).fit(*circles)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4
    assert all("worst gap" in line for line in lines)


def test_pickle_and_names(circles):
    X, y = circles
    frame = pd.DataFrame(X, columns=["east", "north"])
    search = KernelPathCV(LearnedKernelSVC(), FEW, cv=StratifiedKFold(2)).fit(frame, y)
    assert search.feature_names_in_.tolist() == ["east", "north"]
    again = pickle.loads(pickle.dumps(search))
    assert (again.decision_function(frame) == search.decision_function(frame)).all()


@pytest.mark.parametrize("multi_class", ["shared", "separate"])
def test_several_classes(multi_class):
    """Kernels of the first fold are handed on whether there is one or one for each pair."""
    X, y = load_iris(return_X_y=True)
    grid = {"C": [1.0, 10.0], "delta": [0.5]}
    model = LearnedKernelSVC(multi_class=multi_class, tol=1e-5)
    path = KernelPathCV(model, grid, cv=StratifiedKFold(3)).fit(X, y)
    search = GridSearchCV(model, grid, cv=StratifiedKFold(3)).fit(X, y)
    np.testing.assert_allclose(
        path.cv_results_["mean_test_score"], search.cv_results_["mean_test_score"], atol=1e-9
    )
    assert path.best_params_ == search.best_params_
    np.testing.assert_array_equal(path.predict(X), search.predict(X))
    assert path.decision_function(X).shape == (150, 3)
