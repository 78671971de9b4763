"""Checks of the parameters and the data of a fit."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import _check_sample_weight, validate_data

from tessella.kernels import KernelSet, UnitBox

FloatArray = NDArray[np.float64]


def require_positive(name: str, value: Any, *, or_zero: bool = False) -> None:
    """Raise ValueError unless a parameter is a positive finite number."""
    number = isinstance(value, Real) and not isinstance(value, bool)
    if not number or not 0 <= float(value) < np.inf or (value == 0 and not or_zero):
        kind = "a finite number >= 0" if or_zero else "a positive finite number"
        raise ValueError(f"{name}={value!r} must be {kind}.")


def require_count(name: str, value: Any, *, least: int = 0) -> None:
    """Raise ValueError unless a parameter is a whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < least:
        raise ValueError(f"{name}={value!r} must be a whole number >= {least}.")


def validated(
    estimator: Any, X: Any, y: Any, sample_weight: Any, **checks: Any
) -> tuple[FloatArray, Any, FloatArray]:
    """Check the arguments of ``fit`` with scikit-learn, which sets ``n_features_in_`` and, if the
    data has names, ``feature_names_in_`` of the estimator.

    Returns
    -------
    X, y, weight : ndarray
        Features in float64, targets or labels, and sample weights.
    """
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
    """Add to a message of scikit-learn about the data what can be done about it."""
    text = str(error)
    if "could not convert string" in text:
        return ValueError(
            f"{text}. All features must be numbers: tessella.make_tabular_pipeline(estimator) "
            "encodes text, dates and missing values, and so does scikit-learn's OneHotEncoder in "
            "a ColumnTransformer."
        )
    if "Input X contains NaN" in text:  # the rest of the text recommends other estimators
        return ValueError(
            "Input X contains NaN. tessella.make_tabular_pipeline(estimator) fills missing "
            "values and marks them; scikit-learn's SimpleImputer in a pipeline fills them, too."
        )
    if "Input y contains NaN" in text or text == "Input contains NaN":  # labels come without a name
        return ValueError("Input y contains NaN: leave out the rows that have no target.")
    return error


def checked_feature_scale(value: Any, n_features: int | None = None) -> FloatArray | None:
    """Return the parameter `feature_scale` as an array, or None; raise ValueError if it is wrong.

    Without `n_features`, its length is not checked.
    """
    if value is None:
        return None
    scale = np.asarray(value, dtype=np.float64)
    if scale.ndim != 1 or not ((scale > 0) & (scale <= 1)).all():
        raise ValueError(
            "feature_scale must have one number in (0, 1] for each feature; use None or 1 for "
            "features that are not to be pulled towards the centre."
        )
    if n_features is not None and len(scale) != n_features:
        raise ValueError(f"feature_scale has {len(scale)} entries for {n_features} features.")
    return scale


def fit_box(
    X: FloatArray,
    weight: FloatArray,
    kernels: KernelSet,
    scaling: str = "range",
    feature_scale: Any = None,
) -> UnitBox:
    """Fit the scaling of the features; raise ValueError if all features are constant."""
    box = UnitBox.fit(X)
    if not len(box.kept):
        raise ValueError(
            f"All {X.shape[1]} features are constant, so no kernel can tell the rows apart. Check "
            "that the right columns were selected."
        )
    scale = checked_feature_scale(feature_scale, X.shape[1])
    if kernels.wants_raw_features:
        if scale is not None:
            raise ValueError(
                f"feature_scale has no effect with {type(kernels).__name__}, which standardises "
                "the features itself; use None."
            )
        if scaling == "range":
            return UnitBox.identity(X.shape[1])
    keep = kernels.names_features or kernels.wants_raw_features
    return UnitBox.fit(X, weight, scaling=scaling, feature_scale=scale, keep_constant=keep)
