"""Early stopping: what is held out, when a fit stops, and which model it keeps."""

import warnings
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from estimators.conftest import raw_scores
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split

from tessella import LearnedKernelSVC


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


def validation_rows(X, y, *, fraction, stratify):
    """The rows that random_state=0 holds out: those of scikit-learn's function."""
    classes = y if stratify else None
    return train_test_split(
        np.arange(len(X)), test_size=fraction, random_state=0, stratify=classes
    )[1]


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
    assert more.gap_ <= model.gap_ + 1e-13  # a relative gap has the rounding of both bounds


def test_the_certificate_is_that_of_the_rows_not_held_out(patient):
    model, X, y = patient
    model = stopped(model, X, y)
    test = validation_rows(X, y, fraction=0.1, stratify=hasattr(model, "classes_"))
    assert len(test) == len(X) // 10
    assert not np.isin(model.support_, test).any()
    kept = np.delete(np.arange(len(X)), test)
    plain = clone(model).set_params(early_stopping=False, max_iter=model.n_iter_)
    with pytest.warns(ConvergenceWarning):
        plain.fit(X[kept], y[kept])
    assert plain.objective_ == pytest.approx(model.objective_, rel=1e-12)
    assert plain.lower_bound_ == model.lower_bound_
    np.testing.assert_allclose(raw_scores(plain, X), raw_scores(model, X), rtol=1e-9)
    assert plain.validation_scores_ is None
    score = model.score(X[test], y[test])
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
    # Of this solver the model of the last record is the one that is kept.
    plain = LearnedKernelSVC(C=0.01, solver="frank-wolfe", tol=1e-15, max_iter=2)
    model = clone(plain).set_params(early_stopping=True, validation_fraction=0.3, random_state=0)
    test = validation_rows(X, y, fraction=0.3, stratify=True)
    with pytest.warns(ConvergenceWarning, match="iteration limit"):
        model.fit(X, y, sample_weight=weight)
    right = model.predict(X[test]) == y[test]
    expected = np.average(right, weights=weight[test])
    assert expected != pytest.approx(right.mean(), abs=1e-3)
    assert model.validation_scores_[-1] == pytest.approx(expected)
    # The other rows have their weights too, and those held out have none.
    learned = weight.copy()
    learned[test] = 0.0
    with pytest.warns(ConvergenceWarning, match="iteration limit"):
        plain.fit(X, y, sample_weight=learned)
    assert plain.objective_ == pytest.approx(model.objective_, rel=1e-12)
    np.testing.assert_array_equal(plain.support_, model.support_)


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


class Scripted(LearnedKernelSVC):
    """A classifier whose scores on the validation rows are given beforehand."""

    script: ClassVar[list[float]] = []

    def score(self, X, y, sample_weight=None):
        return self.script.pop(0)


def scripted_fit(circles, scores, patience, **params):
    """The fit with these scores. The solver improves its model with every record from the fifth."""
    Scripted.script = list(scores)
    model = Scripted(solver="apd", tol=1e-15, early_stopping=True, random_state=0)
    model.set_params(n_iter_no_change=patience, **params)
    with pytest.warns(ConvergenceWarning):
        return model.fit(*circles)


def test_patience_counts_records_since_the_first_best_score(circles):
    # The first four records are of one model.
    scores = [0.5, 0.5, 0.5, 0.5, 0.7, 0.7, 0.8, 0.8, 0.7, 0.8, 0.8]
    model = scripted_fit(circles, scores[3:], patience=4, max_iter=20)
    values = [record.value for record in model.history_]
    assert values[0] == values[3] > values[4]
    assert len(set(values[3:])) == len(values[3:])
    assert model.validation_scores_.tolist() == scores
    assert model.status_ == "validation score"


def test_a_model_that_is_still_the_best_is_not_scored_again(circles):
    model = scripted_fit(circles, [0.5, 0.6, 0.7], patience=4, max_iter=5)
    values = [record.value for record in model.history_]
    assert values[0] == values[3] > values[4] > values[5]
    assert model.validation_scores_.tolist() == [0.5, 0.5, 0.5, 0.5, 0.6, 0.7]
    assert model.status_ == "iteration limit"
    assert Scripted.script == []


def test_scores_of_an_earlier_run_count(circles, tmp_path):
    file = tmp_path / "checkpoint"
    first = scripted_fit(circles, [0.7, 0.6], patience=5, max_iter=4, checkpoint=file)
    assert first.status_ == "iteration limit"
    before = first.validation_scores_.tolist()
    assert before == [0.7, 0.7, 0.7, 0.7, 0.6]
    again = scripted_fit(circles, [0.6], patience=5, max_iter=20, checkpoint=file)
    assert again.validation_scores_.tolist() == [*before, 0.6]
    assert again.status_ == "validation score"
