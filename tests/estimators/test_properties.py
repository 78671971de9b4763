"""What must hold for any data: containers, labels, weights, order, units, threads."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from estimators.conftest import FEW, blocks_of, raw_scores, sum_of_sets
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from tessella import (
    LearnedKernelSVC,
    LearnedKernelSVR,
    MultipleKernelSVC,
    MultipleKernelSVR,
)

few = settings(max_examples=12, deadline=None, derandomize=True)
seeds = st.integers(0, 10_000)
tasks = st.sampled_from(["classification", "regression"])
every_task = st.sampled_from(
    ["classification", "regression", "weights", "weights regression", "sum"]
)

# Fits that are solved this far agree to about the square root of it, and in fact far better.
TIGHT = 1e-8


def problem(task, seed, rows=None, features=None):
    """An estimator and data in general position, with about as much noise as structure."""
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(8, 30)) if rows is None else rows
    features = int(rng.integers(1, 5)) if features is None else features
    X = rng.standard_normal((rows, features))
    target = np.sin(2 * X[:, 0]) + X[:, 0] * X[:, -1] + 0.3 * rng.standard_normal(rows)
    model = {
        "classification": LearnedKernelSVC(C=1.0),
        "regression": LearnedKernelSVR(C=1.0),
        "weights": MultipleKernelSVC(kernels=FEW),
        "weights regression": MultipleKernelSVR(kernels="standard"),
        "sum": LearnedKernelSVC(C=1.0, kernels=sum_of_sets()),
    }[task]
    y = target if "regression" in task else (target > np.median(target)).astype(int)
    return clone(model).set_params(tol=TIGHT), X, y


def assert_same_parameter(a, b):
    for x, y in zip(blocks_of(a.parameter_), blocks_of(b.parameter_), strict=True):
        np.testing.assert_array_equal(x, y)


def fitted_scores(model, X, y, at=None, **fit_params):
    return raw_scores(clone(model).fit(X, y, **fit_params), X if at is None else at)


def assert_same_function(given, expected, tolerance=1e-5):
    """Equal to a fraction of the spread of the values."""
    np.testing.assert_allclose(given, expected, rtol=0, atol=tolerance * np.ptp(expected))


# ---- shapes


@few
@given(task=tasks, seed=seeds, rows=st.integers(2, 30), features=st.integers(1, 6))
def test_any_shape(task, seed, rows, features):
    model, X, y = problem(task, seed, rows, features)
    if task == "classification":
        y[:2] = [0, 1]
    model.set_params(tol=1e-3).fit(X, y)
    count = len(model.support_)
    assert model.gap_ <= 1e-3
    assert model.lower_bound_ <= model.objective_
    assert model.P_.shape == (2 * (features + 1),) * 2
    np.testing.assert_allclose(np.trace(model.P_), len(model.P_), rtol=1e-6)
    assert model.support_vectors_.shape == (count, features)
    assert model.dual_coef_.shape == (1, count)
    assert model.dual_coef_.sum() == pytest.approx(0.0, abs=1e-9 * (1 + np.ptp(y)))
    new = np.random.default_rng(seed + 1).standard_normal((7, features))
    scores = raw_scores(model, new)
    assert scores.shape == model.predict(new).shape == (7,)
    assert np.isfinite(scores).all()
    # Rows are predicted one by one as they are together.
    np.testing.assert_allclose(raw_scores(model, new[:1]), scores[:1], rtol=1e-12, atol=1e-12)


# ---- containers and dtypes


def strided(X):
    wide = np.full((2 * len(X), 3 * X.shape[1]), np.nan)
    wide[::2, ::3] = X
    return wide[::2, ::3]


def read_only(X):
    X = X.copy()
    X.flags.writeable = False
    return X


CONTAINERS = {
    "float32": lambda X: X.astype(np.float32),
    "float16": lambda X: X.astype(np.float16),
    "int64": lambda X: X.astype(np.int64),
    "int8": lambda X: X.astype(np.int8),
    "big-endian": lambda X: X.astype(">f8"),
    "object": lambda X: X.astype(object),
    "Fortran": np.asfortranarray,
    "strided": strided,
    "backwards": lambda X: X[::-1].copy()[::-1],
    "read-only": read_only,
    "lists": lambda X: X.tolist(),
    "pandas": lambda X: pd.DataFrame(X).astype({0: "Int64"}),
    "polars": lambda X: pl.DataFrame(X, schema=[f"c{j}" for j in range(X.shape[1])]),
}


@few
@given(task=tasks, seed=seeds, data=st.data())
def test_any_container_of_the_same_numbers(task, seed, data):
    model, X, y = problem(task, seed)
    whole = np.round(4 * X)  # numbers that every dtype can hold
    expected = fitted_scores(model, whole, y)
    for name in data.draw(st.sets(st.sampled_from(sorted(CONTAINERS)), min_size=3, max_size=3)):
        held = CONTAINERS[name](whole)
        again = clone(model).fit(held, pd.Series(y) if name == "pandas" else list(y))
        np.testing.assert_array_equal(raw_scores(again, held), expected, err_msg=name)


@few
@given(task=every_task, seed=seeds)
def test_truth_values_are_numbers(task, seed):
    model, X, y = problem(task, seed, features=3)
    truth = X > 0
    assert (fitted_scores(model, truth, y) == fitted_scores(model, truth.astype(float), y)).all()


# ---- labels

LABELS = st.one_of(
    st.lists(st.integers(-(2**40), 2**40), min_size=2, max_size=2, unique=True).map(np.array),
    st.lists(st.text("aäzß 1", max_size=5), min_size=2, max_size=2, unique=True).map(np.array),
    st.lists(st.text("ab", min_size=1), min_size=2, max_size=2, unique=True).map(
        lambda pair: np.array(pair, dtype=object)
    ),
    st.sampled_from(
        [
            np.array([True, False]),
            np.array([-1, 1], dtype=np.int8),
            np.array([7, 3], dtype=np.uint16),
            np.array([2.0, -0.0]),
        ]
    ),
)


@few
@given(seed=seeds, labels=LABELS)
def test_any_two_labels(seed, labels):
    model, X, y = problem("classification", seed)
    expected = clone(model).fit(X, y).predict(X)
    named = clone(model).fit(X, labels[y])
    assert (named.classes_ == np.sort(labels)).all()
    assert named.predict(X).dtype == named.classes_.dtype
    assert (named.predict(X) == labels[expected]).all()
    positive = named.decision_function(X) > 0
    assert (named.predict(X) == named.classes_[positive.astype(int)]).all()


# ---- weights


@few
@given(task=every_task, seed=seeds)
def test_weights_are_copies_to_the_last_bit(task, seed):
    model, X, y = problem(task, seed)
    weight = np.random.default_rng(seed).integers(0, 4, len(X))
    weight[[int(np.argmin(y)), int(np.argmax(y))]] = 1  # of each class
    many = np.random.default_rng(seed + 1).permutation(np.repeat(np.arange(len(X)), weight))
    weighted = clone(model).fit(X, y, sample_weight=weight)
    copied = clone(model).fit(X[many], y[many])
    assert_same_parameter(weighted, copied)
    assert weighted.objective_ == copied.objective_
    np.testing.assert_allclose(raw_scores(weighted, X), raw_scores(copied, X), rtol=1e-11)
    np.testing.assert_array_equal(weighted._sample_rows, copied._sample_rows)


@few
@given(task=every_task, seed=seeds, factor=st.sampled_from([0.125, 4.0]))
def test_weights_multiply_c(task, seed, factor):
    model, X, y = problem(task, seed)
    weight = np.random.default_rng(seed).random(len(X)) + 0.1
    expected = fitted_scores(model, X, y, sample_weight=weight)
    model.set_params(C=model.C / factor)
    assert (fitted_scores(model, X, y, sample_weight=factor * weight) == expected).all()


# ---- order


@few
@given(task=every_task, seed=seeds)
def test_order_of_rows(task, seed):
    model, X, y = problem(task, seed)
    order = np.random.default_rng(seed).permutation(len(X))
    first, second = clone(model).fit(X, y), clone(model).fit(X[order], y[order])
    assert_same_parameter(first, second)
    assert set(order[second.support_]) == set(first.support_)
    # Only the order of the sum over support vectors differs.
    assert_same_function(raw_scores(second, X), raw_scores(first, X), 1e-12)
    assert_same_function(raw_scores(first, X[order]), raw_scores(first, X)[order], 1e-12)


@few
@given(task=tasks, seed=seeds)
def test_order_of_features(task, seed):
    model, X, y = problem(task, seed)
    order = np.random.default_rng(seed).permutation(X.shape[1])
    first, second = clone(model).fit(X, y), clone(model).fit(X[:, order], y)
    assert second.objective_ == pytest.approx(first.objective_, rel=2 * TIGHT)
    assert_same_function(raw_scores(second, X[:, order]), raw_scores(first, X))
    np.testing.assert_allclose(
        second.feature_relevance_, first.feature_relevance_[order], atol=1e-4
    )


# ---- units


@few
@given(task=tasks, seed=seeds, exponents=st.lists(st.floats(-9, 9), min_size=4, max_size=4))
def test_units_of_features(task, seed, exponents):
    """Positive factors: a tessellated kernel knows up from down."""
    model, X, y = problem(task, seed)
    factor = 10.0 ** np.array(exponents[: X.shape[1]])
    moved = factor * (X + np.random.default_rng(seed).uniform(-3, 3, X.shape[1]))
    first, second = clone(model).fit(X, y), clone(model).fit(moved, y)
    assert second.objective_ == pytest.approx(first.objective_, rel=2 * TIGHT)
    assert_same_function(raw_scores(second, moved), raw_scores(first, X))
    np.testing.assert_allclose(second.feature_relevance_, first.feature_relevance_, atol=1e-4)


@few
@given(seed=seeds, exponent=st.floats(-9, 9), sign=st.sampled_from([-1.0, 1.0]))
def test_units_of_the_target(seed, exponent, sign):
    model, X, y = problem("regression", seed)
    factor = sign * 10.0**exponent
    first, second = clone(model).fit(X, y), clone(model).fit(X, factor * (y + 2.0))
    assert second.objective_ == pytest.approx(first.objective_, rel=2 * TIGHT)
    assert_same_function(second.predict(X) / factor - 2.0, first.predict(X))


@few
@given(seed=seeds)
def test_names_of_the_classes_exchanged(seed):
    model, X, y = problem("classification", seed)
    assert_same_function(-fitted_scores(model, X, 1 - y), fitted_scores(model, X, y))


# ---- determinism


@few
@given(task=every_task, seed=seeds)
def test_same_bits_again(task, seed):
    model, X, y = problem(task, seed)
    one, two, threads = (
        clone(model).set_params(n_jobs=n_jobs).fit(X, y) for n_jobs in (None, None, 1)
    )
    for other in (two, threads):
        assert_same_parameter(other, one)
        np.testing.assert_array_equal(raw_scores(other, X), raw_scores(one, X))


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_number_of_threads_on_data_large_enough_to_use_them(task):
    model, X, y = problem(task, 0, rows=2500, features=3)
    model.set_params(tol=1e-4)
    one, two, again = (clone(model).set_params(n_jobs=n).fit(X, y) for n in (1, 2, 2))
    for other in (two, again):  # each entry is summed by one thread, in one order
        assert_same_parameter(other, one)
        np.testing.assert_array_equal(raw_scores(other, X), raw_scores(one, X))
