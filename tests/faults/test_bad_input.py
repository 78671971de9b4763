"""Bad input of every kind gets one clear error before any long work, or a certified model.

Each case is an input that is wrong somewhere, with words that the message has to contain. An input
that can be used after all, such as a very large scale of the features, has to give a finite model
whose certificate holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.svm import SVC

from tessella import (
    IntegralKernels,
    KernelDictionary,
    KernelFeatures,
    KernelPathCV,
    LearnedKernelRidge,
    LearnedKernelRidgeClassifier,
    LearnedKernelSVC,
    LearnedKernelSVR,
    MultipleKernelSVC,
    MultipleKernelSVR,
    PolynomialKernels,
    TessellaClassifier,
    TessellaRegressor,
    TessellatedKernels,
    make_tabular_pipeline,
)
from tessella.kernels import (
    FunctionKernel,
    Gaussian,
    GaussianKernels,
    KernelSum,
    MaternKernels,
    Polynomial,
)
from tessella.leave_one_out import ridge_leave_one_out
from tessella.svm import DualProblem, solve_dual
from tessella.tabular import TabularEncoder

ROWS = 24
RNG = np.random.default_rng(0)
X = RNG.random((ROWS, 3))
Y = np.sin(5 * X[:, 0]) + X[:, 1]
LABELS = (Y.mean() < Y).astype(int)
NAMED = pd.DataFrame(X, columns=["a", "b", "c"])

ESTIMATORS: dict[Any, Any] = {
    LearnedKernelSVC: LABELS,
    LearnedKernelSVR: Y,
    LearnedKernelRidge: Y,
    LearnedKernelRidgeClassifier: LABELS,
    MultipleKernelSVC: LABELS,
    MultipleKernelSVR: Y,
}
CLASSIFIERS = [one for one, target in ESTIMATORS.items() if target is LABELS]
REGRESSORS = [one for one, target in ESTIMATORS.items() if target is Y]
AUTOMATIC: dict[Any, Any] = {TessellaClassifier: LABELS, TessellaRegressor: Y}


@dataclass(frozen=True)
class Case:
    """An action that has to fail with a message that contains some words."""

    name: str
    action: Callable[[], Any]
    words: str
    error: type[Exception] | tuple[type[Exception], ...] = (ValueError, TypeError)


def replaced(values: Any, position: Any, value: Any, dtype: Any = None) -> Any:
    """Return a copy of an array with another entry."""
    changed = np.array(values, dtype=dtype or np.asarray(values).dtype)
    changed[position] = value
    return changed


def masked(values: Any) -> Any:
    """Return an array with one masked value."""
    mask = np.zeros(np.shape(values), dtype=bool)
    mask.flat[0] = True
    return np.ma.array(values, mask=mask)


# ------------------------------------------------------------------------- parameters of estimators

NOT_POSITIVE = (0, -1.0, np.nan, np.inf, "1", None, True, [1.0], 1j, 10**400)

COMMON_PARAMETERS: dict[str, tuple[Any, ...]] = {
    "C": (*NOT_POSITIVE, 1e308, 1e-320),
    "tol": NOT_POSITIVE,
    "max_iter": (-1, 1.5, "9", None, True, np.nan),
    "time_limit": (0, -1, np.nan, np.inf, "1", True),
    "precision": ("float16", None, 64),
    "n_jobs": (0, 1.5, "2", True, np.nan),
    "early_stopping": ("yes", None, 2),
    "validation_fraction": (0, 1, 2.0, np.nan, "0.1", None),
    "n_iter_no_change": (0, 1.5, "5", None),
    "checkpoint": (3, "/no/such/folder/file.ckpt", b"x"),
    "warm_start": ("yes", None),
    "warn_outside": ("yes", None),
    "verbose": ("loud", None, 1.5, -1),
    "random_state": ("seed", 1.5),
}
LEARNED_PARAMETERS: dict[str, tuple[Any, ...]] = {
    "kernels": ("rbf", None, 7, [], KernelDictionary),
    "degree": (-1, 1.5, "1", None, True),
    "delta": (0, -0.5, np.nan, np.inf, "wide", "1", True, None, [0.1, 0.2], [[0.1]]),
    "scaling": ("log", None, 3),
    "feature_scale": (
        [2.0, 1.0, 1.0],
        [0.0, 1.0, 1.0],
        [1.0],
        [np.nan, 1.0, 1.0],
        "x",
        ["1", "1", "1"],
        [[1.0]],
    ),
    "solver": ("simplex", None, 3),
}
CLASSIFIER_PARAMETERS: dict[str, tuple[Any, ...]] = {
    "class_weight": (
        {0: np.nan},
        {0: -1.0},
        {0: 0},
        {0: np.inf},
        {0: "2"},
        {0: None},
        {9: 1.0},
        "equal",
        3,
        [1.0, 2.0],
        {0: 1e308},
    ),
}
PAIR_PARAMETERS: dict[str, tuple[Any, ...]] = {
    "multi_class": ("crammer", None, 1),
    "decision_function_shape": ("ovx", None),
}


def with_parameter(estimator: Any, name: str, value: Any) -> Case:
    """Return the case of one bad value of a parameter."""

    def action() -> Any:
        return estimator(**{name: value}).fit(X, ESTIMATORS[estimator])

    words = "class weights|class_weight" if name == "class_weight" else name
    return Case(f"{estimator.__name__}-{name}-{str(value)[:24]}", action, words)


def bad_parameters() -> Iterator[Case]:
    """Yield all bad values of the parameters of the estimators."""
    tables = [
        (tuple(ESTIMATORS), COMMON_PARAMETERS),
        (tuple(ESTIMATORS)[:4], LEARNED_PARAMETERS),
        (CLASSIFIERS, CLASSIFIER_PARAMETERS),
        ((LearnedKernelSVC, MultipleKernelSVC), PAIR_PARAMETERS),
        ((LearnedKernelSVR, MultipleKernelSVR), {"epsilon": ("wide", -1.0, np.nan, np.inf, None)}),
        ((MultipleKernelSVC, MultipleKernelSVR), {"weighting": ("best", None, 1)}),
        ((MultipleKernelSVC, MultipleKernelSVR), {"kernels": ("rbf", None, 7, [], [3], ["x"])}),
        ((LearnedKernelRidge,), {"solver": ("sdp", "working-set")}),
    ]
    for estimators, table in tables:
        for estimator in estimators:
            for name, values in table.items():
                yield from (with_parameter(estimator, name, value) for value in values)
    for value in (0, -1.0, np.nan, "x", 1e300):

        def action(value: Any = value) -> Any:
            return LearnedKernelSVC(kernels="gaussian", width=value).fit(X, LABELS)

        yield Case(f"width-{value}", action, "width")


# ------------------------------------------------------------------------------------ training data

BAD_X: dict[str, tuple[Any, str]] = {
    "NaN": (replaced(X, (2, 1), np.nan), "X contains NaN"),
    "infinity": (replaced(X, (2, 1), np.inf), "X contains infinity"),
    "minus infinity": (replaced(X, (2, 1), -np.inf), "X contains infinity"),
    "one dimension": (X[:, 0], "Expected 2D array"),
    "three dimensions": (X[None], "dim 3|3D"),
    "no rows": (X[:0], "0 sample"),
    "no columns": (X[:, :0], "0 feature"),
    "complex": (X + 1j, "[Cc]omplex"),
    "text": (replaced(X.astype(object), (0, 0), "blue"), "could not convert string"),
    "None": (None, "None|array"),
    "a string": ("table", "table|array"),
    "a dict": ({"a": [1, 2]}, "dict|array"),
    "sparse": (sparse.csr_matrix(X), "[Ss]parse"),
    "ragged": ([[1.0, 2.0], [1.0]], "inhomogeneous|setting an array"),
    "constant": (np.ones_like(X), "constant"),
    "masked": (masked(X), "X is a masked array"),
    "too wide a range": (
        replaced(X, (0, 0), 1.7e308) - replaced(X, (0, 0), 0) * 1e308 * 1.7,
        "range",
    ),
    "fewer rows": (X[:-1], "inconsistent|samples"),
}
BAD_WEIGHTS: dict[str, tuple[Any, str]] = {
    "NaN": (replaced(np.ones(ROWS), 3, np.nan), "NaN"),
    "infinity": (replaced(np.ones(ROWS), 3, np.inf), "infinity"),
    "negative": (replaced(np.ones(ROWS), 3, -1.0), "[Nn]egative"),
    "zeros": (np.zeros(ROWS), "[Ss]ample.weight"),
    "too few": (np.ones(ROWS - 1), "sample_weight"),
    "two columns": (np.ones((ROWS, 2)), "[Ss]ample weights|sample_weight"),
    "text": (["x"] * ROWS, "convert|sample_weight|string"),
    "complex": (np.ones(ROWS) + 1j, "[Cc]omplex"),
    "masked": (masked(np.ones(ROWS)), "sample_weight is a masked array"),
    "huge": (np.full(ROWS, 1e308), "weights"),
    "tiny": (np.full(ROWS, 1e-308), "weights"),
    "very different": (10.0 ** -np.arange(0.0, 10 * ROWS, 10), "weight"),
}
BAD_TARGETS: dict[str, tuple[Any, str]] = {
    "None": (None, "y"),
    "too short": (Y[:-1], "inconsistent|length|rows"),
    "empty": (Y[:0], "inconsistent|0 sample|length|rows"),
    "two columns": (np.column_stack([Y, Y]), "1d array|1D|column"),
    "complex": (Y + 1j, "[Cc]omplex"),
}
BAD_NUMBERS: dict[str, tuple[Any, str]] = {
    "NaN": (replaced(Y, 3, np.nan), "y contains NaN"),
    "infinity": (replaced(Y, 3, np.inf), "y contains infinity"),
    "text": (["x"] * ROWS, "convert|text|string|numeric"),
    "masked": (masked(Y), "y is a masked array"),
    "range overflows": (replaced(np.where(LABELS, 1.7e308, -1.7e308), 0, 0.0), "target y"),
    "too small": (Y * 1e-315, "target y"),
}
BAD_LABELS: dict[str, tuple[Any, str]] = {
    "one class": (np.ones(ROWS, dtype=int), "one class|single class"),
    "quantities": (Y, "Unknown label type|continuous"),
    "gap": (replaced(np.where(LABELS, "yes", "no").astype(object), 4, None), "y contains NaN"),
    "NaN": (replaced(LABELS.astype(float), 3, np.nan), "NaN"),
    "masked": (masked(LABELS), "y is a masked array"),
}


def bad_data() -> Iterator[Case]:
    """Yield all bad training data of the estimators and of automatic models."""
    for estimator, target in (ESTIMATORS | AUTOMATIC).items():
        automatic = estimator in AUTOMATIC
        for name, (values, words) in BAD_X.items():
            if automatic and name in USABLE_TABLES:
                continue
            yield fitted(estimator, f"X-{name}", (values, target), words)
        for name, (values, words) in BAD_WEIGHTS.items():
            yield fitted(estimator, f"weight-{name}", (X, target, values), words)
        own = BAD_LABELS if target is LABELS else BAD_NUMBERS
        for name, (values, words) in (BAD_TARGETS | own).items():
            yield fitted(estimator, f"y-{name}", (X, values), words)
        yield fitted(estimator, "one-row", (X[:1], target[:1]), "sample|one class|row")


# Automatic models and tabular pipelines read text, gaps and dates.
USABLE_TABLES = ("NaN", "text", "constant", "ragged", "too wide a range")


def fitted(estimator: Any, name: str, arguments: tuple[Any, ...], words: str) -> Case:
    """Return the case of a fit on bad data."""
    return Case(
        f"{estimator.__name__}-{name}",
        lambda: estimator().fit(arguments[0], arguments[1], *arguments[2:]),
        words,
    )


# -------------------------------------------------------------------------------------- predictions

BAD_ROWS: dict[str, tuple[Any, str]] = {
    "NaN": (replaced(X, (2, 1), np.nan), "X contains NaN"),
    "infinity": (replaced(X, (2, 1), np.inf), "X contains infinity"),
    "narrow": (X[:, :2], "2 features"),
    "wide": (np.hstack([X, X]), "6 features"),
    "one row": (X[0], "Expected 2D array"),
    "no rows": (X[:0], "0 sample"),
    "complex": (X + 1j, "[Cc]omplex"),
    "text": (replaced(X.astype(object), (0, 0), "blue"), "convert"),
    "sparse": (sparse.csr_matrix(X), "[Ss]parse"),
    "masked": (masked(X), "X is a masked array"),
    "None": (None, "None|array"),
}


# -------------------------------------------------------------------------------------- kernel sets


def with_kernels(kernels: Any, rows: Any = X) -> Callable[[], Any]:
    """Return the fit of a classifier with a kernel set, which may be made by a function."""

    def action() -> Any:
        made = kernels() if callable(kernels) and not isinstance(kernels, type) else kernels
        return LearnedKernelSVC(kernels=made).fit(rows, LABELS)

    return action


def function(values: Callable[[Any], Any]) -> Callable[[], Any]:
    """Return a dictionary with a user's kernel, made from a Gaussian matrix."""

    def kernel(A: Any, B: Any) -> Any:
        return values(np.exp(-((A[:, None] - B[None]) ** 2).sum(axis=2)))

    return lambda: KernelDictionary([kernel, Gaussian(1.0)])


def _with_a_hole(value: float) -> Callable[[Any], Any]:
    return lambda K: np.where(K < 0.05, value, K)


def _basis(values: Any) -> Callable[[Any, Any], Any]:
    return lambda z, rows: np.full((len(z), len(rows), 1), values)


KERNEL_SETS: dict[str, tuple[Any, str]] = {
    "monomials": (TessellatedKernels(monomials="z"), "monomials"),
    "balance": (TessellatedKernels(balance="even"), "balance"),
    "balance of the wrong length": (TessellatedKernels(balance=[1.0, 2.0]), "balance"),
    "negative balance": (TessellatedKernels(balance=[-1.0] * 8), "balance"),
    "huge balance": (TessellatedKernels(balance=[1e200] * 8), "balance"),
    "larger balance": (TessellatedKernels(balance=[1e308] * 8), "balance"),
    "balance with a NaN": (TessellatedKernels(balance=[np.nan] * 8), "balance"),
    "out of box": (TessellatedKernels(out_of_box="reflect"), "out_of_box"),
    "floor": (TessellatedKernels(floor=1.5), "floor"),
    "floor NaN": (TessellatedKernels(floor=np.nan), "floor"),
    "floor text": (TessellatedKernels(floor="x"), "floor"),
    "margins of the wrong length": (TessellatedKernels(delta=[0.1, 0.1]), "delta"),
    "a balance of text": (TessellatedKernels(degree=0, balance=("1", "1")), "balance"),
    "polynomial degree": (PolynomialKernels(degree=-2), "degree"),
    "polynomial degree text": (PolynomialKernels(degree="2"), "degree"),
    "with a floor": (lambda: PolynomialKernels().with_floor(2.0), "floor"),
    "no features": (lambda: PolynomialKernels().on_features([]), "features"),
    "negative feature": (lambda: PolynomialKernels().on_features([-1]), "features"),
    "missing feature": (lambda: PolynomialKernels().on_features([7]), "feature 7"),
    "constant feature": (lambda: PolynomialKernels().on_features([3]), "constant"),
    "a sum of one": (lambda: KernelSum((PolynomialKernels(),)), "parts"),
    "a sum with text": (lambda: KernelSum((PolynomialKernels(), "x")), "parts"),
    "width": (lambda: GaussianKernels(width=-1.0), "width"),
    "large width": (lambda: GaussianKernels(width=1e200), "width"),
    "nu": (lambda: MaternKernels(nu=0.7), "nu"),
    "empty dictionary": (lambda: KernelDictionary([]), "at least one kernel"),
    "text for a dictionary": (lambda: KernelDictionary("gaussian"), "kernels"),
    "text in a dictionary": (lambda: KernelDictionary(["gaussian"]), "kernels"),
    "normalisation": (
        lambda: KernelDictionary([Gaussian(1.0)], normalisation="max"),
        "normalisation",
    ),
    "bandwidth": (lambda: KernelDictionary([Gaussian(0.0)]), "bandwidth"),
    "small bandwidth": (lambda: KernelDictionary([Gaussian(1e-200)]), "bandwidth"),
    "large bandwidth": (lambda: KernelDictionary([Gaussian(10**400)]), "bandwidth"),
    "polynomial": (lambda: KernelDictionary([Polynomial(0)]), "degree"),
    "polynomial of a high degree": (lambda: KernelDictionary([Polynomial(900)]), "diagonal"),
    "offset": (lambda: KernelDictionary([Polynomial(2, offset=-1.0)]), "offset"),
    "feature of a kernel": (lambda: KernelDictionary([Gaussian(1.0, features=(9,))]), "feature 9"),
    "function with a NaN": (function(_with_a_hole(np.nan)), "NaN or an infinity"),
    "function with an infinity": (function(_with_a_hole(np.inf)), "NaN or an infinity"),
    "function with minus infinity": (function(_with_a_hole(-np.inf)), "NaN or an infinity"),
    "function of the wrong shape": (function(lambda K: K[:, :1]), "shape"),
    "function that gives None": (function(lambda K: None), "shape"),
    "function that gives text": (function(lambda K: "K"), "convert|shape"),
    "complex function": (function(lambda K: K + 1j), "complex"),
    "zero function": (function(lambda K: 0.0 * K), "diagonal"),
    "negative function": (function(lambda K: -K), "diagonal"),
    "indefinite function": (function(lambda K: K - 0.9), "positive semidefinite"),
    "asymmetric function": (function(lambda K: np.tril(K)), "symmetric"),
    "huge function": (function(lambda K: 1e308 * K), "diagonal|overflow"),
    "function that raises": (function(lambda K: K[len(K) + 7]), "out of bounds"),
    "not a function": (lambda: FunctionKernel("k")(X), "not callable|callable"),
    "integral with a NaN": (lambda: IntegralKernels(_basis(np.nan), [0.0], [1.0]), "basis"),
    "integral corners": (lambda: IntegralKernels(_basis(1.0), [1.0], [0.0]), "lower"),
    "integral nodes": (lambda: IntegralKernels(_basis(1.0), [0.0], [1.0], nodes=0), "nodes"),
    "integral rule": (lambda: IntegralKernels(_basis(1.0), [0.0], [1.0], rule="mc"), "rule"),
}


def bad_kernel_sets() -> Iterator[Case]:
    """Yield fits with bad kernel sets."""
    with_constant = np.column_stack([X, np.ones(ROWS)])
    for name, (kernels, words) in KERNEL_SETS.items():
        rows = with_constant if name == "constant feature" else X
        error = (ValueError, TypeError, IndexError) if "raises" in name else (ValueError, TypeError)
        yield Case(f"kernels-{name}", with_kernels(kernels, rows), words, error)


# ------------------------------------------------------- searches, tables, automatic models, others


def searched(**parameters: Any) -> Callable[[], Any]:
    """Return the fit of a small search with some parameters."""
    settings: dict[str, Any] = {"param_grid": {"C": [1.0]}, "cv": 2} | parameters
    estimator = settings.pop("estimator", LearnedKernelSVC())
    return lambda: KernelPathCV(estimator, **settings).fit(X, LABELS)


SEARCHES: dict[str, tuple[Callable[[], Any], str]] = {
    "estimator": (searched(estimator=SVC()), "SVC"),
    "text for an estimator": (searched(estimator="svc"), "svc"),
    "unknown parameter": (searched(param_grid={"gamma": [1.0]}), "gamma"),
    "empty list": (searched(param_grid={"C": []}), "C|empty|non-empty"),
    "text for a grid": (searched(param_grid="C"), "grid|dict"),
    "bad C": (searched(param_grid={"C": [1.0, np.nan]}), "C=nan"),
    "huge C": (searched(param_grid={"C": [1e308]}, error_score="raise"), "C=1e"),
    "one fold": (searched(cv=1), "n_splits|folds"),
    "unknown folds": (searched(cv="kfold"), "cv="),
    "more folds than rows": (searched(cv=100), "n_splits|members"),
    "no folds": (searched(cv=0), "n_splits|folds"),
    "scoring": (searched(scoring="beauty"), "scoring|beauty"),
    "n_jobs": (searched(n_jobs=1.5), "n_jobs"),
    "n_jobs zero": (searched(n_jobs=0), "n_jobs"),
    "error_score": (searched(error_score="pass"), "error_score"),
    "eliminate": (searched(eliminate="yes"), "eliminate"),
    "refit": (searched(refit="accuracy"), "refit"),
    "one class": (lambda: KernelPathCV(cv=2).fit(X, np.ones(ROWS, dtype=int)), "one class|y"),
    "NaN": (lambda: KernelPathCV(cv=2).fit(replaced(X, 0, np.nan), LABELS), "X contains NaN"),
    "masked": (lambda: KernelPathCV(cv=2).fit(masked(X), LABELS), "masked"),
    "unfitted": (lambda: KernelPathCV().predict(X), "not fitted"),
}
AUTOMATIC_PARAMETERS: dict[str, tuple[Any, ...]] = {
    "effort": ("best", None, 3),
    "time_limit": (0, -1, np.nan, "x"),
    "families": ((), "laplace", ("rbf",), None),
    "scalings": ((), "range", ("log",), None),
    "encodings": ((), ("hash",), None),
    "losses": ((), ("svm",), ("hinge",), None),
    "n_jobs": (0, 1.5, "2"),
    "categorical_features": ("a", [9], 3),
    "verbose": ("loud",),
}
FRAME = pd.DataFrame({"number": X[:, 0], "word": np.where(LABELS, "x", "y")})
DOUBLED = pd.DataFrame(X, columns=["a", "a", "b"])


def tabular(estimator: Any = None) -> Any:
    """Return a pipeline for tables."""
    return make_tabular_pipeline(LearnedKernelSVC() if estimator is None else estimator)


def _table_after_fit(table: Any) -> Callable[[], Any]:
    return lambda: tabular().fit(FRAME, LABELS).predict(table)


OTHERS: dict[str, tuple[Callable[[], Any], str]] = {
    "pipeline of text": (lambda: make_tabular_pipeline("svc").fit(FRAME, LABELS), "svc|estimator"),
    "doubled names": (lambda: tabular().fit(DOUBLED, LABELS), "names|twice|distinct|duplicate"),
    "table without rows": (lambda: tabular().fit(FRAME[:0], LABELS[:0]), "0 rows|0 sample"),
    "table without columns": (lambda: tabular().fit(FRAME[[]], LABELS), "columns|feature"),
    "masked table": (lambda: tabular().fit(masked(X), LABELS), "X is a masked array"),
    "missing column": (_table_after_fit(FRAME[["number"]]), "feature names|word"),
    "renamed column": (_table_after_fit(FRAME.rename(columns={"word": "w"})), "feature names"),
    "array for a frame": (_table_after_fit(X), "features|columns"),
    "unknown categorical column": (
        lambda: TabularEncoder(categorical_features=["z"]).fit(FRAME),
        "categorical_features",
    ),
    "components": (
        lambda: KernelFeatures(LearnedKernelSVC(), n_components=0).fit(X, LABELS),
        "n_components",
    ),
    "interval": (
        lambda: (
            TessellaRegressor(effort="low", refine=False, learn=False)
            .fit(X, Y)
            .predict_interval(X, coverage=1.5)
        ),
        "coverage",
    ),
    "kernel matrix with a NaN": (
        lambda: solve_dual(replaced(np.eye(4), (0, 1), np.nan), MACHINE),
        "kernel matrix|K contains",
    ),
    "kernel matrix with an infinity": (
        lambda: solve_dual(replaced(np.eye(4), (0, 0), np.inf), MACHINE),
        "K contains",
    ),
    "kernel matrix of the wrong side": (lambda: solve_dual(np.eye(3), MACHINE), "shape"),
    "kernel matrix of integers": (lambda: solve_dual(np.eye(4, dtype=int), MACHINE), "float"),
    "labels": (lambda: DualProblem.classification([0, 1], 1.0), "-1 or"),
    "weights of losses": (lambda: DualProblem.regression([0.0, 1.0], np.nan, 0.1), "C must"),
    "targets": (lambda: DualProblem.ridge([0.0, np.inf], 1.0), "target"),
    "leave one out": (
        lambda: ridge_leave_one_out(replaced(np.eye(4), (0, 1), np.nan), np.ones(4), 1.0),
        "NaN|finite",
    ),
}
MACHINE = DualProblem.classification([1, 1, -1, -1], C=1.0)


def others() -> Iterator[Case]:
    """Yield bad input of everything but the estimators."""
    errors = (ValueError, TypeError, NotFittedError)
    for name, (action, words) in SEARCHES.items():
        yield Case(f"search-{name}", action, words, errors)
    for name, (action, words) in OTHERS.items():
        yield Case(name, action, words, errors)
    for estimator, target in AUTOMATIC.items():
        for name, values in AUTOMATIC_PARAMETERS.items():
            for value in values:
                yield Case(
                    f"{estimator.__name__}-{name}-{value}",
                    lambda e=estimator, n=name, v=value, t=target: e(**{n: v}).fit(X, t),
                    name,
                )
        yield Case(
            f"{estimator.__name__}-unfitted",
            lambda e=estimator: e().predict(X),
            "not fitted",
            NotFittedError,
        )


CASES = [*bad_parameters(), *bad_data(), *bad_kernel_sets(), *others()]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_bad_input_has_one_clear_error(case):
    with pytest.raises(case.error, match=case.words):
        case.action()


@cache
def trained(estimator: Any, *, named: bool = False) -> Any:
    """Return an estimator that was fitted to rows with or without names."""
    rules = estimator in (MultipleKernelSVC, MultipleKernelSVR)
    model = estimator(**({"kernels": [Gaussian(1.0)]} if rules else {}))
    return model.fit(NAMED if named else X, ESTIMATORS[estimator])


@pytest.mark.parametrize("name", BAD_ROWS)
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_bad_rows_are_not_predicted(estimator, name):
    rows, words = BAD_ROWS[name]
    with pytest.raises((ValueError, TypeError), match=words):
        trained(estimator).predict(rows)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_other_names_are_not_predicted(estimator):
    with pytest.raises(ValueError, match="feature names"):
        trained(estimator, named=True).predict(NAMED.rename(columns={"a": "z"}))


@pytest.mark.parametrize("method", ["predict", "count_outside"])
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_models_that_are_not_fitted_say_so(estimator, method):
    with pytest.raises(NotFittedError, match="not fitted"):
        getattr(estimator(), method)(X)


def test_a_mask_without_masked_values_is_no_error():
    plain = np.ma.array(X, mask=np.zeros(X.shape, dtype=bool))
    model = LearnedKernelSVC().fit(plain, LABELS)
    np.testing.assert_array_equal(model.predict(plain), model.predict(X))
