"""Every kind of bad input gets an error that names the value."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from tessella import (
    LearnedKernelSVC,
    LearnedKernelSVR,
)

# ---- bad input


def bad(case, X=None, y=None, **kwargs):
    model, X0, y0 = case
    return clone(model).fit(X0 if X is None else X, y0 if y is None else y, **kwargs)


def test_nan_and_infinity(case):
    X = case[1].copy()
    X[3, 1] = np.nan
    with pytest.raises(ValueError, match=r"Input X contains NaN.*make_tabular_pipeline"):
        bad(case, X=X)
    X[3, 1] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        bad(case, X=X)


def test_one_class(circles):
    with pytest.raises(ValueError, match="one class only: 1"):
        LearnedKernelSVC().fit(circles[0], np.ones(len(circles[0]), dtype=int))


def test_class_that_only_zero_weights_have(circles):
    X, y = circles
    with pytest.raises(ValueError, match="one class only: 0"):
        LearnedKernelSVC().fit(X, y, sample_weight=(y == 0).astype(float))


@pytest.mark.parametrize(
    ("params", "message"),
    [
        (
            {"multi_class": "crammer"},
            "use 'shared' or 'separate'",
        ),
        ({"decision_function_shape": "ovx"}, "use 'ovr' or 'ovo'"),
        ({"decision_function_shape": "ovo", "break_ties": True}, "break_ties=True needs"),
    ],
)
def test_parameters_of_several_classes(circles, params, message):
    X, _ = circles
    with pytest.raises(ValueError, match=message):
        LearnedKernelSVC(**params).fit(X, np.arange(len(X)) % 3)


def test_continuous_labels(circles):
    X, _ = circles
    with pytest.raises(ValueError, match="Unknown label type"):
        LearnedKernelSVC().fit(X, X[:, 0])


@pytest.mark.parametrize("gap", [None, float("nan")], ids=str)
def test_target_with_gaps(circles, gap):
    X, y = circles
    labels = np.where(y == 1, "yes", "no").astype(object)
    labels[4] = gap
    with pytest.raises(ValueError, match=r"y contains NaN.*leave out the rows"):
        LearnedKernelSVC().fit(X, labels)


def test_regression_target_with_gaps(waves):
    X, y = waves
    with pytest.raises(ValueError, match="y contains NaN: leave out the rows"):
        LearnedKernelSVR().fit(X, np.where(np.arange(len(y)) == 4, np.nan, y))


def test_prices_are_no_classes():
    """A machine for each of two million pairs of prices would never end."""
    X = np.arange(2000.0).reshape(-1, 1)
    with pytest.raises(ValueError, match=r"2000 different values in 2000 rows.*LearnedKernelSVR"):
        LearnedKernelSVC().fit(X, 1000.0 + np.arange(2000))


def test_probabilities_are_calibrated_on_top(circles):
    model = LearnedKernelSVC()
    assert not hasattr(model, "predict_proba")
    with pytest.raises(AttributeError, match="CalibratedClassifierCV"):
        model.predict_proba(circles[0])


def test_one_row(case):
    with pytest.raises(ValueError, match=r"1 sample\(s\).*minimum of 2"):
        bad(case, X=case[1][:1], y=case[2][:1])


def test_no_features(case):
    with pytest.raises(ValueError, match=r"0 feature\(s\)"):
        bad(case, X=np.zeros((len(case[2]), 0)))


def test_all_features_constant(case):
    with pytest.raises(ValueError, match="All 2 features are constant"):
        bad(case, X=np.ones_like(case[1]))


def test_lengths_differ(case):
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        bad(case, y=case[2][:-1])


def test_sparse(case):
    with pytest.raises(TypeError, match="Sparse data was passed"):
        bad(case, X=sparse.csr_matrix(case[1]))


def test_text_column(case):
    frame = pd.DataFrame(case[1], columns=["a", "b"]).astype({"b": object})
    frame.loc[4, "b"] = "Paris"
    with pytest.raises(ValueError, match=r"'Paris'.*make_tabular_pipeline.*OneHotEncoder"):
        bad(case, X=frame)


def test_weights(case):
    n = len(case[1])
    with pytest.raises(ValueError, match=r"[Nn]egative"):
        bad(case, sample_weight=np.full(n, -1.0))
    with pytest.raises(ValueError, match="at least one non-zero"):
        bad(case, sample_weight=np.zeros(n))
    with pytest.raises(ValueError, match="sample_weight"):
        bad(case, sample_weight=np.ones(n - 1))


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"C": -1.0}, r"C=-1.0 must be a positive"),
        ({"C": np.nan}, r"C=nan must be a positive"),
        ({"C": "big"}, r"C='big' must be a positive"),
        ({"tol": 0.0}, r"tol=0.0 must be a positive"),
        ({"time_limit": -5}, r"time_limit=-5 must be a positive"),
        ({"max_iter": 2.5}, r"max_iter=2.5 must be a whole number"),
        ({"precision": "float16"}, r"precision='float16' is unknown"),
        ({"solver": "gradient"}, r"solver='gradient' is unknown"),
        ({"kernels": "rbf"}, r"kernels='rbf' is unknown"),
        ({"degree": -1}, r"degree=-1 must be"),
        ({"delta": 0.0}, r"delta=0.0 must be"),
        ({"n_jobs": 0}, r"n_jobs=0 is not allowed"),
    ],
)
def test_bad_parameters(case, params, message):
    model, X, y = case
    with pytest.raises(ValueError, match=message):
        clone(model).set_params(**params).fit(X, y)


def test_bad_epsilon(waves):
    with pytest.raises(ValueError, match=r"epsilon=-0.1 must be"):
        LearnedKernelSVR(epsilon=-0.1).fit(*waves)


@pytest.mark.parametrize(
    ("class_weight", "message"),
    [
        ({9: 1.0}, r"names \['9'\], which are not among"),
        ({0: -1.0}, r"class_weight\[0\]=-1.0 must be a positive"),
        ("heavy", "must be None, 'balanced' or a dict"),
    ],
)
def test_bad_class_weight(circles, class_weight, message):
    with pytest.raises(ValueError, match=message):
        LearnedKernelSVC(class_weight=class_weight).fit(*circles)


def test_wrong_feature_count_at_predict(case):
    model, X, y = case
    model.fit(X, y)
    with pytest.raises(ValueError, match=r"X has 3 features, but .* expecting 2"):
        model.predict(np.ones((2, 3)))


def test_not_fitted(case):
    with pytest.raises(NotFittedError):
        clone(case[0]).predict(case[1])


def test_too_large_for_memory(case, monkeypatch):
    monkeypatch.setattr("tessella.backend._memory.available_memory", lambda: 1000)
    with pytest.raises(MemoryError, match=r"needs .* 1000 B are available. Use "):
        bad(case)


def test_memory_is_checked_before_anything_is_allocated():
    """Two matrices of a million rows need terabytes: the error comes at once."""
    X = np.random.default_rng(0).random((1_000_000, 1))
    message = r"1000000 rows .* needs .* TiB.*precision='float32' or solver='working-set'"
    with pytest.raises(MemoryError, match=message):
        LearnedKernelSVR(solver="frank-wolfe").fit(X, X[:, 0])


def test_the_default_solver_needs_no_whole_matrix(monkeypatch):
    """The joint method holds six matrices of 72 MB, the default some rows of one."""
    monkeypatch.setattr("tessella.backend._memory.available_memory", lambda: 256 * 2**20)
    X = np.random.default_rng(0).random((3000, 2))
    assert LearnedKernelSVR(tol=0.1).fit(X, X[:, 0]).gap_ <= 0.1
    with pytest.raises(MemoryError, match="3000 rows"):
        LearnedKernelSVR(solver="joint").fit(X, X[:, 0])
