"""Early stopping: what is held out, when a fit stops, and which model it keeps."""

import warnings

import numpy as np
import pandas as pd
import pytest
from estimators.conftest import raw_scores
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from tessella import LearnedKernelSVC
from tessella.estimators._early_stopping import ScoreMonitor, hold_out
from tessella.solvers import SolverStatus


@pytest.fixture
def patient(every_case):
    """A slow solver that cannot reach its tolerance, so that only the score can stop it."""
    model, X, y = every_case
    params = {"early_stopping": True, "random_state": 0, "tol": 1e-15, "n_iter_no_change": 2}
    params |= {"solver": "apd"} if "solver" in model.get_params() else {"kernels": "standard"}
    return clone(model).set_params(**params), X, y


def stopped(model, X, y, **options):
    with pytest.warns(ConvergenceWarning, match=r"\(validation score\).*Raise n_iter_no_change"):
        return clone(model).fit(X, y, **options)


def test_stops_when_the_score_does(patient):
    model, X, y = patient
    model = stopped(model, X, y)
    scores = model.validation_scores_
    assert model.status_ == "validation score"
    assert len(scores) == len(model.history_) == model.n_iter_ + 1
    assert scores.argmax() == len(scores) - 3  # two records without a better one
    assert np.isfinite(model.gap_)
    more = stopped(clone(model).set_params(n_iter_no_change=6), X, y)
    assert (more.validation_scores_[: len(scores)] == scores).all()
    assert len(more.validation_scores_) > len(scores)
    assert more.gap_ <= model.gap_


def test_the_certificate_is_that_of_the_rows_not_held_out(patient):
    model, X, y = patient
    model = stopped(model, X, y)
    weight, held_out = hold_out(
        X,
        y,
        np.ones(len(X)),
        fraction=0.1,
        random_state=0,
        stratify=hasattr(model, "classes_"),
    )
    assert len(held_out.X) == len(X) // 10
    assert not np.isin(model.support_, np.flatnonzero(weight == 0)).any()
    plain = clone(model).set_params(early_stopping=False, max_iter=model.n_iter_)
    with pytest.warns(ConvergenceWarning):
        plain.fit(X[weight > 0], y[weight > 0])
    assert plain.objective_ == model.objective_
    assert plain.lower_bound_ == model.lower_bound_
    np.testing.assert_allclose(raw_scores(plain, X), raw_scores(model, X), rtol=1e-9)
    assert plain.validation_scores_ is None
    score = model.score(held_out.X, held_out.y)
    assert score == pytest.approx(model.validation_scores_[-1], abs=0.05)


def test_an_optimal_fit_says_so(every_case):
    model, X, y = every_case
    model = clone(model).set_params(early_stopping=True, n_iter_no_change=50, random_state=0)
    model.fit(X, y)
    assert model.status_ == "optimal"
    assert model.gap_ <= model.tol
    assert len(model.validation_scores_) == len(model.history_)


def test_the_draw_is_that_of_random_state(patient):
    model, X, y = patient
    one, two = stopped(model, X, y), stopped(model, X, y)
    assert (one.predict(X) == two.predict(X)).all()
    assert (one.validation_scores_ == two.validation_scores_).all()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # this draw may be solved to the end
        other = clone(model).set_params(random_state=1).fit(X, y)
    assert one.objective_ != other.objective_


def test_rows_of_weight_zero_are_absent_there_too(patient):
    model, X, y = patient
    rng = np.random.default_rng(0)
    weight = rng.integers(0, 3, len(X)).astype(float)
    kept = weight > 0
    weighted = stopped(model, X, y, sample_weight=weight)
    without = stopped(model, X[kept], y[kept], sample_weight=weight[kept])
    assert (weighted.validation_scores_ == without.validation_scores_).all()
    np.testing.assert_allclose(raw_scores(weighted, X), raw_scores(without, X), rtol=1e-9)


def test_scores_are_weighted(circles):
    X, y = circles
    weight = np.where(X[:, 0] > 0, 5.0, 1.0)
    learned, held_out = hold_out(X, y, weight, fraction=0.3, random_state=0, stratify=True)
    assert (held_out.weight == np.where(held_out.X[:, 0] > 0, 5.0, 1.0)).all()
    model = LearnedKernelSVC(C=0.01).fit(X, y)
    right = model.predict(held_out.X) == held_out.y
    assert 0 < right.mean() < 1
    expected = np.average(right, weights=held_out.weight)
    assert held_out.score(model) == pytest.approx(expected)
    assert set(np.unique(learned)) == {0.0, 1.0, 5.0}


def test_names_and_labels_of_any_kind(circles, recwarn):
    X, y = circles
    frame = pd.DataFrame(X, columns=["east", "north"])
    labels = np.array(["no", "yes"])[y]
    model = LearnedKernelSVC(early_stopping=True, random_state=0, class_weight="balanced")
    model.fit(frame, labels)
    assert model.feature_names_in_.tolist() == ["east", "north"]
    assert model.validation_scores_.max() > 0.9
    assert not [w for w in recwarn if "feature names" in str(w.message)]


def test_too_few_rows_are_named():
    X = np.random.default_rng(0).random((12, 2))
    y = np.array([0] * 11 + [1])
    with pytest.raises(
        ValueError, match=r"early_stopping=True cannot hold out .* 12 rows: .*class"
    ):
        LearnedKernelSVC(early_stopping=True).fit(X, y)


class Answers:
    """A run's values, and models whose score is given."""

    def __init__(self, scores):
        self.scores = iter(scores)

    def score(self, model):
        return next(self.scores)


def statuses(scores, values, patience, earlier=()):
    class Record:
        def __init__(self, value):
            self.value = value

    log = list(earlier)
    monitor = ScoreMonitor(Answers(scores), lambda result: result, patience, log)
    return [monitor.record(Record(value), lambda: None) for value in values], log


def test_patience_counts_records_since_the_first_best_score():
    scores = [0.5, 0.7, 0.7, 0.6]
    told, log = statuses(scores, [4.0, 3.0, 2.0, 1.0], patience=2)
    assert told == [None, None, None, SolverStatus.VALIDATION]
    assert log == scores


def test_a_model_that_is_still_the_best_is_not_scored_again():
    told, log = statuses([0.5, 0.6], [4.0, 4.0, 3.0], patience=2)
    assert told == [None, None, None]
    assert log == [0.5, 0.5, 0.6]


def test_scores_of_an_earlier_run_count():
    told, log = statuses([0.6], [1.0], patience=2, earlier=[0.7, 0.6])
    assert told == [SolverStatus.VALIDATION]
    assert log == [0.7, 0.6, 0.6]
