"""Predictions are prepared once for each model, and the short cut of their checks is safe."""

from __future__ import annotations

import copy
import pickle
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from estimators.conftest import raw_scores
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError

import tessella
from tessella import LearnedKernelSVC, LearnedKernelSVR
from tessella.kernels import FittedDictionary, KernelSum, PolynomialKernels, TessellatedKernels


@pytest.fixture
def preparations(monkeypatch):
    """The number of support vectors of each preparation, in order."""
    seen = []
    for family in (TessellatedKernels, PolynomialKernels, FittedDictionary, KernelSum):
        original = family.predictor

        def counted(self, P, Y, coefficients, original=original):
            before = len(seen)
            predictor = original(self, P, Y, coefficients)
            seen[before:] = [len(Y)]  # the parts of a sum are not counted
            return predictor

        monkeypatch.setattr(family, "predictor", counted)
    return seen


def test_a_model_is_prepared_once(every_case, preparations):
    model, X, y = every_case
    model = clone(model).fit(X, y)
    assert preparations == []
    for rows in (X[:1], X, X[:1].tolist(), X.astype(np.float32)):
        model.predict(rows)
        raw_scores(model, rows)
    assert preparations == [len(model.support_)]


def test_each_separate_machine_is_prepared_once(preparations):
    X, y = load_iris(return_X_y=True)
    model = LearnedKernelSVC(tol=1e-2, multi_class="separate").fit(X, y)
    for _ in range(3):
        model.predict(X)
    assert preparations == [np.count_nonzero(w) for w in model.dual_coef_]


def test_another_fit_is_prepared_anew(every_case, preparations):
    model, X, y = every_case
    model = clone(model).fit(X, y)
    first = raw_scores(model, X)
    model.set_params(C=0.1).fit(X[:100], y[:100])
    second = raw_scores(model, X)
    assert len(preparations) == 2
    assert not np.allclose(first, second)
    fresh = clone(model).fit(X[:100], y[:100])
    np.testing.assert_array_equal(second, raw_scores(fresh, X))


@pytest.mark.parametrize("name", ["dual_coef_", "support_vectors_"])
def test_a_replaced_attribute_takes_effect(every_case, name):
    model, X, y = every_case
    model = clone(model).fit(X, y)
    before = raw_scores(model, X)
    setattr(model, name, 2.0 * getattr(model, name))
    expected = model.kernel_(X, model.support_vectors_) @ model.dual_coef_.T + model.intercept_
    assert not np.allclose(before.reshape(expected.shape), expected)
    scores = raw_scores(model, X)
    np.testing.assert_allclose(scores, expected.reshape(scores.shape), rtol=1e-9, atol=1e-9)


def test_what_is_prepared_is_neither_copied_nor_stored(every_case, preparations, tmp_path):
    model, X, y = every_case
    model = clone(model).fit(X, y)
    before = pickle.dumps(model)
    expected = raw_scores(model, X)
    assert pickle.dumps(model) == before
    tessella.save(model, tmp_path / "model.tsl")
    others = [pickle.loads(before), copy.deepcopy(model), tessella.load(tmp_path / "model.tsl")]
    assert len(preparations) == 2  # one of them by the check of a file, with a copy of the model
    for count, other in enumerate(others, start=3):
        np.testing.assert_array_equal(raw_scores(other, X), expected)
        assert len(preparations) == count


def test_a_model_serves_several_threads(every_case):
    model, X, y = every_case
    model = clone(model).fit(X, y)
    expected = [raw_scores(clone(model).fit(X, y), X[k : k + 1]) for k in range(20)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda k: raw_scores(model, X[k : k + 1]), range(20)))
    np.testing.assert_array_equal(found, expected)


def test_every_kind_of_array_gives_the_same_scores(every_case):
    model, X, y = every_case
    model = clone(model).fit(X, y)
    expected = raw_scores(model, X)
    wide = np.repeat(X, 2, axis=1)
    same = [np.asfortranarray(X), X.tolist(), wide[:, ::2], X.astype(">f8"), X.astype(object)]
    for rows in same:
        np.testing.assert_array_equal(raw_scores(model, rows), expected)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (np.ones((2, 3)), "X has 3 features, but .* is expecting 2 features"),
        (np.ones(2), "Expected 2D array, got 1D array"),
        (np.ones((0, 2)), r"Found array with 0 sample\(s\)"),
        (np.array([[1.0, np.nan]]), "Input X contains NaN"),
        (np.array([[1.0, np.inf]]), "Input X contains infinity"),
        (np.ones((1, 2)) * 1j, "Complex data not supported"),
    ],
)
def test_bad_rows_are_refused_as_by_scikit_learn(every_case, rows, message):
    model, X, y = every_case
    model = clone(model).fit(X, y)
    for predict in (model.predict, model.count_outside):
        with pytest.raises(ValueError, match=message):
            predict(rows)


def test_missing_names_are_still_noticed(every_case):
    model, X, y = every_case
    model = clone(model).fit(pd.DataFrame(X, columns=["a", "b"]), y)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        model.predict(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clone(model).fit(X, y).predict(X)


@pytest.mark.parametrize("make", [LearnedKernelSVC, LearnedKernelSVR])
def test_not_fitted(make):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        make().predict(np.ones((1, 2)))
