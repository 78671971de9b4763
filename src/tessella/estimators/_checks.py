"""What an estimator refuses, and how it says that a fit fell short."""

from __future__ import annotations

import os
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import _check_sample_weight, validate_data

from tessella.estimators._checkpoint import FINISHED
from tessella.estimators._fitting import Outcome
from tessella.kernels import UnitBox
from tessella.solvers import SolverStatus

FloatArray = NDArray[np.float64]


def require_positive(name: str, value: Any, *, or_zero: bool = False) -> None:
    number = isinstance(value, Real) and not isinstance(value, bool)
    if not number or not 0 <= float(value) < np.inf or (value == 0 and not or_zero):
        kind = "a finite number >= 0" if or_zero else "a positive finite number"
        raise ValueError(f"{name}={value!r} must be {kind}.")


def require_count(name: str, value: Any, *, least: int = 0) -> None:
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < least:
        raise ValueError(f"{name}={value!r} must be a whole number >= {least}.")


def validated(
    estimator: Any, X: Any, y: Any, sample_weight: Any, **checks: Any
) -> tuple[FloatArray, Any, FloatArray]:
    """The data of a fit and its weights, checked before anything is done with it."""
    try:
        X, y = validate_data(
            estimator, X, y, dtype=np.float64, order="C", ensure_min_samples=2, **checks
        )
    except ValueError as error:
        raise _with_remedy(error) from error
    weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    if not weight.any():  # older versions of scikit-learn let it pass
        raise ValueError("sample_weight must have at least one non-zero weight.")
    return X, y, weight


def _with_remedy(error: ValueError) -> ValueError:
    """scikit-learn's complaint about the data, with what to do about it."""
    text = str(error)
    if "could not convert string" in text:
        return ValueError(
            f"{text}. All features must be numbers: tessella.make_tabular_pipeline(estimator) "
            "encodes text, dates and missing values, and so does scikit-learn's OneHotEncoder in "
            "a ColumnTransformer."
        )
    if "Input X contains NaN" in text:  # what follows in scikit-learn's text is other estimators
        return ValueError(
            "Input X contains NaN. tessella.make_tabular_pipeline(estimator) fills gaps and marks "
            "them; scikit-learn's SimpleImputer in a pipeline fills them, too."
        )
    if "Input y contains NaN" in text or text == "Input contains NaN":  # of labels, nameless
        return ValueError("Input y contains NaN: leave out the rows that have no target.")
    return error


def fit_box(X: FloatArray) -> UnitBox:
    """The scaling of training rows; an error when they do not differ."""
    box = UnitBox.fit(X)
    if not len(box.kept):
        raise ValueError(
            f"All {X.shape[1]} features are constant, so no kernel can tell the rows apart. Check "
            "that the right columns were selected."
        )
    return box


def shortfall(outcome: Outcome, tol: float, checkpoint: Any) -> str:
    again = "Fit again with warm_start=True to go on from here."
    remedy = {
        SolverStatus.MAX_ITER: "Raise max_iter, or accept a larger tol.",
        SolverStatus.TIME_LIMIT: "Raise time_limit, or accept a larger tol.",
        SolverStatus.INTERRUPTED: again,
        SolverStatus.CALLBACK: again,
        SolverStatus.VALIDATION: "Raise n_iter_no_change to go on for longer.",
        SolverStatus.OUT_OF_MEMORY: "Use precision='float32', another solver or fewer rows.",
        SolverStatus.STALLED: "Use precision='float64', a smaller C or a larger tol.",
    }[outcome.status]
    if checkpoint is not None and outcome.status not in FINISHED:
        remedy = f"Fit the same data again to go on from the checkpoint {os.fspath(checkpoint)}."
    return (
        f"The {outcome.solver} solver stopped ({outcome.status.value}) after {outcome.n_iter} "
        f"iterations with a certified relative gap of {outcome.gap:.2e}, above tol={tol:g}. The "
        f"best model found is kept. {remedy}"
    )
