"""Inputs that have to be refused, with an error that says what to change.

Every case is one row of a table: an estimator with a wrong parameter, or wrong data for one of the
estimators. The table is the same in every campaign; a case is a row by its number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

import tessella
from tessella import KernelDictionary, TessellatedKernels
from tessella.kernels import Gaussian, Polynomial, PolynomialKernels
from tessella_bench.campaign._outcome import CHANGED, Outcome, judged

_RNG = np.random.default_rng(0)
_X = _RNG.random((20, 3))
_CLASSES = (_X[:, 0] > 0.5).astype(int)
_TARGET = _X[:, 0] + _X[:, 1]
_NAN, _INF = float("nan"), float("inf")

_CLASSIFIERS = ("LearnedKernelSVC", "LearnedKernelRidgeClassifier", "MultipleKernelSVC")
_REGRESSORS = ("LearnedKernelSVR", "LearnedKernelRidge", "MultipleKernelSVR")
_MATRIX_LEARNERS = ("LearnedKernelSVC", "LearnedKernelSVR", "LearnedKernelRidge")
_AUTOMATIC = ("TessellaClassifier", "TessellaRegressor")


@dataclass(frozen=True)
class BadInput:
    """One row of the table.

    Attributes
    ----------
    name : str
        What is wrong.
    fit : callable
        Attempts the fit, or the prediction, that has to be refused.
    """

    name: str
    fit: Callable[[], Any]


def run(number: int, folder: Path) -> Outcome:
    """Try one row of the table; a number beyond its end is the same row again."""
    del folder
    case = table()[number % len(table())]
    try:
        case.fit()
    except Exception as error:
        return judged(case.name, error)
    return Outcome(CHANGED, case.name, "the input was accepted without a word")


@cache
def table() -> tuple[BadInput, ...]:
    """Return all rows."""
    return (*_bad_rows(), *_bad_targets(), *_bad_weights(), *_bad_params(), *_bad_kernels())


def _y_of(name: str) -> Any:
    return _CLASSES if name.endswith(("SVC", "Classifier")) else _TARGET


def _estimator(name: str, **params: Any) -> Any:
    if name in _AUTOMATIC:
        params = {"effort": "low", "n_jobs": 1} | params
    return getattr(tessella, name)(**params)


def _with_entry(value: Any, dtype: Any = np.float64) -> Any:
    X = _X.astype(dtype)
    X[4, 1] = value
    return X


def _bad_rows() -> Iterator[BadInput]:
    """Wrong features, for fits and for predictions."""
    masked = np.ma.MaskedArray(_X, mask=_X > 0.9)
    everywhere: dict[str, Any] = {
        "no rows": _X[:0],
        "no columns": _X[:, :0],
        "one dimension": _X[:, 0],
        "three dimensions": _X[:, :, None],
        "infinite": _with_entry(_INF),
        "minus infinite": _with_entry(-_INF),
        "complex": _X.astype(complex) + 1j,
        "None": None,
        "a number": 3.0,
        "ragged": [[1.0, 2.0], [3.0]],
        "masked": masked,
        "fewer rows than targets": _X[:15],
        "a range that overflows": np.where(_X > 0.5, 1.5e308, -1.5e308),
        "a dictionary": {"a": 1},
        "objects": np.full(_X.shape, object()),
    }
    of_numbers: dict[str, Any] = {
        "NaN": _with_entry(_NAN),
        "text": _with_entry("abc", object),
        "None among numbers": _with_entry(None, object),
        "all columns constant": np.ones_like(_X),
        "one distinct row": np.tile(_X[:1], (20, 1)),
    }
    for name in (*_CLASSIFIERS, *_REGRESSORS, *_AUTOMATIC):
        cases = everywhere if name in _AUTOMATIC else everywhere | of_numbers
        for what, X in cases.items():
            if name in _AUTOMATIC and what in ("a range that overflows", "objects", "masked"):
                continue  # a table may have any values, and gaps
            yield BadInput(f"X: {what}, {name}", partial(_fit, name, X, _y_of(name)))
    for name in (*_CLASSIFIERS, *_REGRESSORS):
        for what in ("NaN", "infinite", "complex", "one dimension", "masked", "text"):
            X = (everywhere | of_numbers)[what]
            yield BadInput(f"X of predict: {what}, {name}", partial(_predict, name, X))
        yield BadInput(f"X of predict: columns, {name}", partial(_predict, name, _X[:, :2]))
        yield BadInput(f"predict before fit, {name}", partial(_predict_unfitted, name))


def _fit(name: str, X: Any, y: Any, weight: Any = None, **params: Any) -> Any:
    return _estimator(name, **params).fit(X, y, sample_weight=weight)


def _predict(name: str, X: Any) -> Any:
    return _estimator(name).fit(_X, _y_of(name)).predict(X)


def _predict_unfitted(name: str) -> Any:
    return _estimator(name).predict(_X)


def _fit_with(name: str, kernels: Callable[[], Any]) -> Any:
    return _fit(name, _X, _y_of(name), kernels=kernels())


def _bad_targets() -> Iterator[BadInput]:
    short, column = _TARGET[:10], np.column_stack([_TARGET, _TARGET])
    numbers: dict[str, Any] = {
        "NaN": np.where(np.arange(20) == 3, _NAN, _TARGET),
        "infinite": np.where(np.arange(20) == 3, _INF, _TARGET),
        "too short": short,
        "two columns": column,
        "None": None,
        "text": np.array(["a", "b"] * 10),
        "complex": _TARGET + 1j,
        "a range that overflows": np.where(_TARGET > 1.0, 1.7e308, -1.7e308),
    }
    labels: dict[str, Any] = {
        "one class": np.zeros(20),
        "a class for each row": _TARGET,
        "NaN": np.where(np.arange(20) == 3, _NAN, _CLASSES.astype(float)),
        "too short": _CLASSES[:10],
        "two columns": np.column_stack([_CLASSES, _CLASSES]),
        "None": None,
        "masked": np.ma.MaskedArray(_CLASSES, mask=_CLASSES == 0),
    }
    for name in (*_REGRESSORS, "TessellaRegressor"):
        for what, y in numbers.items():
            yield BadInput(f"y: {what}, {name}", partial(_fit, name, _X, y))
    for name in (*_CLASSIFIERS, "TessellaClassifier"):
        for what, y in labels.items():
            yield BadInput(f"y: {what}, {name}", partial(_fit, name, _X, y))


def _bad_weights() -> Iterator[BadInput]:
    weights: dict[str, Any] = {
        "negative": np.where(np.arange(20) == 3, -1.0, 1.0),
        "NaN": np.where(np.arange(20) == 3, _NAN, 1.0),
        "infinite": np.where(np.arange(20) == 3, _INF, 1.0),
        "all zero": np.zeros(20),
        "too short": np.ones(19),
        "two columns": np.ones((20, 2)),
        "text": np.array(["a"] * 20),
    }
    for name in (*_CLASSIFIERS, *_REGRESSORS, *_AUTOMATIC):
        for what, weight in weights.items():
            yield BadInput(f"weight: {what}, {name}", partial(_fit, name, _X, _y_of(name), weight))
    for value in ({0: _NAN}, {0: -1.0}, {0: 0.0}, {7: 1.0}, {0: _INF}, "unbalanced", 3.0, {0: "a"}):
        for name in _CLASSIFIERS:
            yield BadInput(
                f"class_weight={value!r}, {name}",
                partial(_fit, name, _X, _CLASSES, class_weight=value),
            )


def _bad_params() -> Iterator[BadInput]:
    common: dict[str, tuple[Any, ...]] = {
        "C": (0.0, -1.0, _NAN, _INF, "1", None, 10**400, [1.0]),
        "tol": (0.0, -1.0, _NAN, "1e-3", None),
        "max_iter": (-1, 1.5, _NAN, "10", None),
        "time_limit": (0.0, -1.0, _NAN, "1"),
        "precision": ("float16", 64, None),
        "validation_fraction": (0.0, 1.0, -0.5, _NAN),
        "n_iter_no_change": (0, -1, 1.5),
        "n_jobs": (0, 1.5, "2"),
        "checkpoint": ("/no/such/folder/fit.ckpt", 3.0),
    }
    matrix: dict[str, tuple[Any, ...]] = {
        "kernels": ("cosine", 3, None, [], object()),
        "degree": (-1, 1.5, "2", None),
        "delta": (0.0, -1.0, _NAN, _INF, "1", [0.1, 0.2]),
        "width": (0.0, -1.0, _NAN, _INF, "1"),
        "scaling": ("minmax", None, 3),
        "feature_scale": ([1.0], [0.0, 1.0, 1.0], [2.0, 1.0, 1.0], "a", [_NAN, 1.0, 1.0]),
        "solver": ("cvxpy", None, 3),
    }
    for name in (*_CLASSIFIERS, *_REGRESSORS):
        for key, values in common.items():
            if name != "LearnedKernelSVC" and key in ("precision", "checkpoint", "max_iter"):
                values = values[:1]  # the same code serves all of them
            for value in values:
                yield _bad_param(name, key, value)
    for name in _MATRIX_LEARNERS:
        for key, values in matrix.items():
            for value in values:
                yield _bad_param(name, key, value)
    for name in ("LearnedKernelSVR", "MultipleKernelSVR"):
        for value in (-0.1, _NAN, _INF, "wide", None):
            yield _bad_param(name, "epsilon", value)
    for name in ("MultipleKernelSVC", "MultipleKernelSVR"):
        for value in ("best", None, 3):
            yield _bad_param(name, "weighting", value)
    for name in _AUTOMATIC:
        for key, value in (
            ("effort", "heroic"),
            ("effort", 3),
            ("families", ("sines",)),
            ("families", ()),
            ("scalings", ("minmax",)),
            ("encodings", ("hash",)),
            ("losses", ("cubic",)),
            ("time_limit", -1.0),
            ("time_limit", _NAN),
            ("categorical_features", ["no such column"]),
        ):
            yield _bad_param(name, key, value)


def _bad_param(name: str, key: str, value: Any) -> BadInput:
    shown = repr(value) if len(repr(value)) < 40 else f"{type(value).__name__}"
    params: dict[str, Any] = {key: value}
    if key == "width":
        params["kernels"] = "gaussian"
    if key in ("validation_fraction", "n_iter_no_change"):
        params["early_stopping"] = True
    return BadInput(f"{key}={shown}, {name}", lambda: _fit(name, _X, _y_of(name), **params))


def _bad_kernels() -> Iterator[BadInput]:
    """Kernel sets and functions that are no kernels."""

    def with_nan(X: Any, Y: Any) -> Any:
        K = X @ Y.T
        if len(X) == len(Y):
            K[0, 1:] = _NAN
        return K

    functions: dict[str, Any] = {
        "NaN off the diagonal": with_nan,
        "infinite": lambda X, Y: np.full((len(X), len(Y)), _INF),
        "not symmetric": lambda X, Y: X @ Y.T + np.arange(len(Y)),
        "indefinite": lambda X, Y: -(X @ Y.T),
        "wrong shape": lambda X, Y: np.ones((len(X), len(Y) + 1)),
        "text": lambda X, Y: np.full((len(X), len(Y)), "a"),
        "nothing": lambda _X, _Y: None,
        "zero": lambda X, Y: np.zeros((len(X), len(Y))),
    }
    for what, function in functions.items():
        for name in ("MultipleKernelSVC", "MultipleKernelSVR"):
            yield BadInput(
                f"function: {what}, {name}",
                partial(_fit, name, _X, _y_of(name), kernels=[function]),
            )
    sets: dict[str, Callable[[], Any]] = {
        "balance": lambda: TessellatedKernels(balance="equal"),
        "balance of wrong length": lambda: TessellatedKernels(balance=(1.0, 2.0)),
        "huge balance": lambda: TessellatedKernels(balance=(1e200,) * 8),
        "monomials": lambda: TessellatedKernels(monomials="z"),
        "out_of_box": lambda: TessellatedKernels(out_of_box="wrap"),
        "floor": lambda: TessellatedKernels(floor=1.5),
        "NaN floor": lambda: TessellatedKernels(floor=_NAN),
        "degree": lambda: PolynomialKernels(degree=-1),
        "feature beyond the last": lambda: TessellatedKernels().on_features([7]),
        "no features": lambda: TessellatedKernels().on_features([]),
        "no kernels": lambda: KernelDictionary([]),
        "bandwidth": lambda: KernelDictionary([Gaussian(-1.0)]),
        "NaN bandwidth": lambda: KernelDictionary([Gaussian(_NAN)]),
        "degree of a polynomial": lambda: KernelDictionary([Polynomial(0)]),
        "not a kernel": lambda: KernelDictionary([3]),
    }
    for what, kernels in sets.items():
        for name in _MATRIX_LEARNERS:
            yield BadInput(
                f"kernel set: {what}, {name}",
                partial(_fit_with, name, kernels),
            )
