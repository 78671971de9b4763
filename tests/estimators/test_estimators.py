from __future__ import annotations

import os
import pickle
import signal
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from estimators.conftest import raw_scores
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, make_circles
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from tessella import (
    IntegralKernels,
    LearnedKernelRidge,
    LearnedKernelRidgeClassifier,
    LearnedKernelSVC,
    LearnedKernelSVR,
    PolynomialKernels,
    TessellatedKernels,
)
from tessella.problems import SaddlePoint
from tessella.svm import DualProblem

ESTIMATORS = [
    LearnedKernelSVC(),
    LearnedKernelSVR(),
    LearnedKernelRidge(),
    LearnedKernelRidgeClassifier(),
]


@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        check(estimator)


# ---- what a fit gives


def test_learns_what_a_linear_model_cannot(case):
    model, X, y = case
    assert model.fit(X, y).score(X, y) > 0.95


def test_certificate_is_that_of_the_problem_on_scaled_data(case):
    model, X, y = case
    model.fit(X, y)
    assert model.gap_ <= model.tol
    assert model.lower_bound_ <= model.objective_
    unit = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    w = np.zeros(len(X))
    w[model.support_] = model.dual_coef_[0]
    labels, standardised = np.where(y == 1, 1.0, -1.0), (y - y.mean()) / y.std()
    w /= 1.0 if hasattr(model, "classes_") else y.std()
    dual = {
        LearnedKernelSVC: lambda: DualProblem.classification(labels, model.C),
        LearnedKernelSVR: lambda: DualProblem.regression(standardised, model.C, model.epsilon_),
        LearnedKernelRidge: lambda: DualProblem.ridge(standardised, model.C),
        LearnedKernelRidgeClassifier: lambda: DualProblem.ridge(labels, model.C),
    }[type(model)]()
    problem = SaddlePoint(TessellatedKernels(1, 0.5).bind(unit), dual)
    certificate = problem.certificate(model.P_, w)
    assert certificate.upper == pytest.approx(model.objective_, rel=1e-8)
    assert model.lower_bound_ == pytest.approx(certificate.lower, rel=model.tol)


def test_prediction_is_the_kernel_expansion(case):
    model, X, y = case
    model.fit(X, y)
    by_hand = model.kernel_(X, X[model.support_]) @ model.dual_coef_[0] + model.intercept_[0]
    np.testing.assert_allclose(raw_scores(model, X), by_hand, rtol=1e-9, atol=1e-9)
    assert (model.support_vectors_ == X[model.support_]).all()
    assert (np.diff(model.support_) > 0).all()
    assert (model.dual_coef_ != 0).all()


def test_learned_kernel_serves_another_machine(circles):
    X, y = circles
    model = LearnedKernelSVC().fit(X, y)
    peer = SVC(kernel=model.kernel_, C=model.C).fit(X, y)
    assert (peer.predict(X) == model.predict(X)).mean() > 0.98


def test_labels_of_any_type(circles):
    X, y = circles
    expected = LearnedKernelSVC().fit(X, y).predict(X)
    for labels in (np.array(["no", "yes"]), np.array([False, True]), np.array([-7, 3])):
        model = LearnedKernelSVC().fit(X, labels[y])
        assert (model.classes_ == labels).all()
        assert (model.predict(X) == labels[expected]).all()


def test_epsilon_and_c_do_not_know_the_units_of_y(waves):
    X, y = waves
    model = LearnedKernelSVR().fit(X, y)
    # A power of two changes no digit, so the very same problem is solved.
    doubled = LearnedKernelSVR().fit(X, 2.0 * y)
    assert (doubled.predict(X) == 2.0 * model.predict(X)).all()
    assert doubled.objective_ == model.objective_
    moved = LearnedKernelSVR().fit(X, 1000.0 * y - 5e4)
    np.testing.assert_allclose((moved.predict(X) + 5e4) / 1000.0, model.predict(X), rtol=1e-3)
    assert moved.objective_ == pytest.approx(model.objective_, rel=1e-3)


def test_units_of_x_do_not_matter(case):
    model, X, y = case
    expected = raw_scores(model.fit(X, y), X)
    moved = 8.0 * X + 64.0
    np.testing.assert_allclose(
        raw_scores(clone(model).fit(moved, y), moved), expected, rtol=1e-3, atol=1e-2
    )


def test_order_of_rows_does_not_matter(case):
    model, X, y = case
    order = np.random.default_rng(0).permutation(len(X))
    first = raw_scores(clone(model).fit(X, y), X)
    second = raw_scores(clone(model).fit(X[order], y[order]), X)
    # The same model to the last bit; only the order of the sum over support vectors differs.
    np.testing.assert_allclose(first, second, rtol=1e-11, atol=1e-11)


def test_weights_are_copies_and_absence(case):
    model, X, y = case
    weight = np.random.default_rng(1).integers(0, 4, len(X))
    weighted = raw_scores(clone(model).fit(X, y, sample_weight=weight), X)
    copied = raw_scores(clone(model).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight)), X)
    assert (weighted == copied).all()


def test_duplicates_are_merged_in_support(circles):
    X, y = circles
    once = LearnedKernelSVC(C=2.0).fit(X, y)
    twice = LearnedKernelSVC(C=1.0).fit(np.vstack([X, X]), np.concatenate([y, y]))
    assert (twice.support_ == once.support_).all()
    assert (twice.decision_function(X) == once.decision_function(X)).all()


@pytest.mark.parametrize("class_weight", ["balanced", {0: 1.0, 1: 20.0}])
def test_class_weight(class_weight):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 2))
    y = (X[:, 0] + rng.standard_normal(200) > 1.3).astype(int)
    plain = LearnedKernelSVC().fit(X, y).predict(X).mean()
    weighted = LearnedKernelSVC(class_weight=class_weight).fit(X, y).predict(X).mean()
    assert weighted > plain + 0.05


@pytest.mark.parametrize(
    "kernels",
    ["polynomial", PolynomialKernels(3), TessellatedKernels(2, 0.2), TessellatedKernels(0, 0.2)],
    ids=str,
)
def test_other_kernel_sets(case, kernels):
    model, X, y = case
    model = clone(model).set_params(kernels=kernels, degree=2, tol=1e-2)
    assert model.fit(X, y).score(X, y) > 0.6


def waves_basis(z, X):
    phase = z @ X.T
    return np.stack([np.cos(phase), np.sin(phase)], axis=-1)


def test_integral_kernels_end_to_end(circles):
    X, y = circles
    kernels = IntegralKernels(waves_basis, [-8.0, -8.0], [8.0, 8.0], nodes=64)
    model = LearnedKernelSVC(kernels=kernels).fit(X, y)
    assert model.score(X, y) > 0.95
    assert (pickle.loads(pickle.dumps(model)).predict(X) == model.predict(X)).all()


def test_full_monomials(circles):
    X, y = circles
    model = LearnedKernelSVC(kernels=TessellatedKernels(monomials="xz")).fit(X, y)
    assert model.P_.shape == (10, 10)
    assert model.score(X, y) > 0.95


def test_constant_features_change_nothing(case):
    model, X, y = case
    padded = np.insert(X, 1, 3.5, axis=1)
    expected = raw_scores(clone(model).fit(X, y), X)
    wide = clone(model).fit(padded, y)
    assert wide.n_features_in_ == 3
    np.testing.assert_allclose(raw_scores(wide, padded), expected, rtol=1e-3, atol=1e-2)


def test_constant_target_is_predicted():
    X = np.random.default_rng(0).random((20, 2))
    model = LearnedKernelSVR().fit(X, np.full(20, 7.0))
    np.testing.assert_allclose(model.predict(X + 10.0), 7.0)
    assert len(model.support_) == 0
    assert model.gap_ == 0.0


def test_float32_precision_is_certified(case):
    model, X, y = case
    exact = clone(model).fit(X, y)
    model = clone(model).set_params(precision="float32").fit(X, y)
    assert model.gap_ <= model.tol
    assert model.objective_ == pytest.approx(exact.objective_, rel=2e-3)


def count_threads():
    return len(os.listdir("/proc/self/task"))


@pytest.mark.parametrize("make", [LearnedKernelSVC, LearnedKernelSVR])
def test_threads_do_not_change_the_model(make):
    """Large enough for threads: compiled loops start them from about 2**24 operations."""
    X, y = make_circles(4000, noise=0.3, factor=0.5, random_state=0)
    new = np.random.default_rng(0).uniform(-1.5, 1.5, (20_000, 2))
    one = make(C=1.0, tol=1e-2, n_jobs=1).fit(X, y)
    many = make(C=1.0, tol=1e-2, n_jobs=7).fit(X, y)
    if sys.platform == "linux":
        assert count_threads() >= 7, "the fit was too small to start threads"
    np.testing.assert_allclose(many.P_, one.P_, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(raw_scores(many, new), raw_scores(one, new), rtol=1e-9, atol=1e-9)


def test_threads_do_not_change_predictions(case):
    model, X, y = case
    model.fit(X, y)
    new = np.tile(X, (400, 1))
    one = raw_scores(model.set_params(n_jobs=1), new)
    many = raw_scores(model.set_params(n_jobs=7), new)
    if sys.platform == "linux":
        assert count_threads() >= 7, "the prediction was too small to start threads"
    np.testing.assert_array_equal(many, one)


def test_default_on_raw_real_data():
    X, y = load_diabetes(return_X_y=True)
    assert cross_val_score(LearnedKernelSVR(), X, y, cv=3).mean() > 0.4
    X, y = load_breast_cancer(return_X_y=True)
    X = X[:, :10]
    assert cross_val_score(LearnedKernelSVC(tol=1e-2), X, y, cv=3).mean() > 0.9


# ---- scikit-learn's world


def test_grid_search_reaches_into_the_kernel_set(circles):
    X, y = circles
    search = GridSearchCV(
        make_pipeline(StandardScaler(), LearnedKernelSVC(kernels=TessellatedKernels(), tol=1e-2)),
        {
            "learnedkernelsvc__C": [0.1, 10.0],
            "learnedkernelsvc__kernels__delta": [0.1, 0.5],
        },
        cv=2,
    ).fit(X, y)
    assert set(search.best_params_) == {"learnedkernelsvc__C", "learnedkernelsvc__kernels__delta"}
    assert search.best_score_ > 0.9


def test_pandas_names_are_checked(circles):
    X, y = circles
    frame = pd.DataFrame(X, columns=["east", "north"])
    model = LearnedKernelSVC().fit(frame, y)
    assert model.feature_names_in_.tolist() == ["east", "north"]
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[["north", "east"]])


def test_pickle(case):
    model, X, y = case
    again = pickle.loads(pickle.dumps(model.fit(X, y)))
    assert (raw_scores(again, X) == raw_scores(model, X)).all()


def test_warm_start_goes_on_from_where_it_was(case):
    model, X, y = case
    model = clone(model).set_params(warm_start=True, max_iter=1, tol=1e-9)
    with pytest.warns(ConvergenceWarning):
        model.fit(X, y)
    first = model.history_[-1].value
    model.set_params(max_iter=500, tol=1e-3).fit(X, y)
    assert model.history_[0].value <= first * (1 + 1e-3)
    assert model.gap_ <= 1e-3


def test_warm_start_survives_other_data_and_other_kernels(case):
    model, X, y = case
    model = clone(model).set_params(warm_start=True)
    model.fit(X, y).fit(X[:90], y[:90])
    model.set_params(degree=0).fit(X, y)
    assert model.P_.shape == (2, 2)
    assert model.gap_ <= model.tol


def test_verbose_prints_a_table(case, capsys):
    model, X, y = case
    clone(model).set_params(verbose=1).fit(X, y)
    assert "gap" in capsys.readouterr().out


def test_silent_by_default(case, capsys):
    model, X, y = case
    clone(model).fit(X, y)
    captured = capsys.readouterr()
    assert captured.out == captured.err == ""


# ---- fits that cannot finish


@pytest.mark.parametrize("limit", [{"max_iter": 1}, {"time_limit": 1e-6}])
def test_limits_keep_a_certified_model_and_say_so(case, limit):
    model, X, y = case
    model = clone(model).set_params(tol=1e-9, **limit)
    with pytest.warns(ConvergenceWarning, match=r"certified relative gap of .* above tol=1e-09"):
        model.fit(X, y)
    assert np.isfinite(model.gap_)
    assert np.isfinite(raw_scores(model, X)).all()


def test_ctrl_c_keeps_a_certified_model(case):
    model, X, y = case

    def interrupt(record):
        if record.iteration == 1:
            signal.raise_signal(signal.SIGINT)

    model = clone(model).set_params(tol=1e-9)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model._fit(X, y, callback=interrupt)
    assert model.status_ == "interrupted"
    assert np.isfinite(raw_scores(model, X)).all()


def test_failed_first_fit_is_no_fit(circles):
    model = LearnedKernelSVC()
    with pytest.raises(ValueError, match="one class"):
        model.fit(circles[0], np.zeros(len(circles[0])))
    with pytest.raises(NotFittedError):
        model.predict(circles[0])


def test_parameters_changed_after_fit_do_not_change_the_model(case):
    model, X, y = case
    model = clone(model).set_params(kernels=TessellatedKernels()).fit(X, y)
    expected = raw_scores(model, X)
    model.set_params(kernels__delta=5.0)
    assert (raw_scores(model, X) == expected).all()


def test_failed_refit_keeps_the_old_model(case):
    model, X, y = case
    expected = raw_scores(model.fit(X, y), X)
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.full_like(X, np.nan), y)
    assert (raw_scores(model, X) == expected).all()
