"""The search that scores each candidate by leave-one-out."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.metrics import make_scorer, mean_absolute_error, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from tessella import KernelPathCV, LearnedKernelSVC, LearnedKernelSVR, MultipleKernelSVR
from tessella.kernels import Gaussian

GRID = {"C": [0.1, 1.0, 10.0], "delta": [0.1, 1.0]}


@parametrize_with_checks(
    [
        KernelPathCV(LearnedKernelSVC(), {"C": [0.3, 3.0]}, cv="loo"),
        KernelPathCV(LearnedKernelSVR(), {"C": [1.0]}, cv="loo"),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("tol", [1e-6])
def test_scores_are_those_of_single_fits(circles, waves, tol):
    for (X, y), model in ((circles, LearnedKernelSVC(tol=tol)), (waves, LearnedKernelSVR(tol=tol))):
        search = KernelPathCV(model, GRID, cv="loo").fit(X, y)
        expected = [
            type(model)(tol=tol, **params).fit(X, y).loo_score_
            for params in search.cv_results_["params"]
        ]
        np.testing.assert_allclose(search.cv_results_["mean_test_score"], expected, atol=2e-3)
        assert search.n_splits_ == 1
        assert search.best_index_ == int(np.argmax(search.cv_results_["mean_test_score"]))
        assert search.best_score_ == search.cv_results_["split0_test_score"][search.best_index_]
        assert search.best_params_["C"] == search.best_estimator_.C
        assert (search.cv_results_["n_folds"] == 1).all()


def test_other_scores(circles, waves):
    X, y = waves
    score = make_scorer(mean_absolute_error, greater_is_better=False)
    search = KernelPathCV(LearnedKernelSVR(), {"C": [1.0]}, cv="loo", scoring=score).fit(X, y)
    expected = -np.abs(LearnedKernelSVR(C=1.0).fit(X, y).loo_predictions_ - y).mean()
    assert search.best_score_ == pytest.approx(expected)
    X, y = circles
    scoring = ["accuracy", "roc_auc"]
    search = KernelPathCV(
        LearnedKernelSVC(), {"C": [1.0]}, cv="loo", scoring=scoring, refit="roc_auc"
    ).fit(X, y)
    model = LearnedKernelSVC(C=1.0).fit(X, y)
    assert search.best_score_ == pytest.approx(roc_auc_score(y, model.loo_decision_function_))
    assert search.cv_results_["mean_test_accuracy"][0] == pytest.approx(model.loo_score_)


def test_several_classes_and_pipelines():
    X, y = load_iris(return_X_y=True, as_frame=True)
    model = make_pipeline(StandardScaler(), LearnedKernelSVC())
    grid = {"learnedkernelsvc__C": [0.1, 1.0]}
    search = KernelPathCV(model, grid, cv="loo").fit(X, y)
    assert search.best_score_ > 0.9
    assert isinstance(search.best_estimator_.predict(pd.DataFrame(X))[0], np.int64)


def test_sample_weights_as_copies(waves):
    X, y = waves
    weight = np.random.default_rng(0).integers(0, 3, len(y))
    model = MultipleKernelSVR(kernels=[Gaussian(1.0)])
    search = KernelPathCV(model, {"C": [0.1, 10.0]}, cv="loo", refit=False)
    weighted = search.fit(X, y, sample_weight=weight.astype(float)).cv_results_
    copies = np.repeat(np.arange(len(y)), weight)
    repeated = search.fit(X[copies], y[copies]).cv_results_
    np.testing.assert_allclose(weighted["mean_test_score"], repeated["mean_test_score"], rtol=1e-9)


def test_the_number_of_jobs_changes_nothing(waves):
    X, y = waves
    one, two = (
        KernelPathCV(LearnedKernelSVR(), GRID, cv="loo", refit=False, n_jobs=n).fit(X, y)
        for n in (None, 2)
    )
    np.testing.assert_allclose(
        one.cv_results_["mean_test_score"], two.cv_results_["mean_test_score"], rtol=1e-9
    )


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"cv": "leave"}, "cv='leave' is unknown"),
        ({"cv": "loo", "eliminate": True}, "eliminate=True needs folds"),
        ({"cv": "loo", "scoring": "neg_log_loss"}, "computed from predictions"),
    ],
)
def test_bad_input(circles, given, message):
    with pytest.raises(ValueError, match=message):
        KernelPathCV(LearnedKernelSVC(), {"C": [1.0]}, **given).fit(*circles)


def test_groups_are_refused(circles):
    X, y = circles
    with pytest.raises(ValueError, match="GroupKFold"):
        KernelPathCV(LearnedKernelSVC(), cv="loo").fit(X, y, groups=np.arange(len(y)))


class WithoutLeaveOneOut(LearnedKernelSVC):
    """A classifier that somebody has derived and that hides what it inherits."""

    _leave_one_out = property()  # type: ignore[assignment]


def test_estimators_without_leave_one_out_are_refused(circles):
    with pytest.raises(TypeError, match="WithoutLeaveOneOut does not have"):
        KernelPathCV(WithoutLeaveOneOut(), {"C": [1.0]}, cv="loo").fit(*circles)
