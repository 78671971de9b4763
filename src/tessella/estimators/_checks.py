"""Checks of the parameters and the data of a fit."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import _check_sample_weight, validate_data

from tessella.kernels import KernelSet, UnitBox, varying_columns
from tessella.kernels._base import numbers_or_nan

FloatArray = NDArray[np.float64]

_LARGEST_TOTAL = 1e100  # of the weights of all rows, so that quadratic forms stay finite


def require_positive(name: str, value: Any, *, or_zero: bool = False) -> None:
    """Raise ValueError unless a parameter is a positive finite number."""
    number = isinstance(value, Real) and not isinstance(value, bool)
    if not number or not 0 <= _as_float(value) < np.inf or (value == 0 and not or_zero):
        kind = "a finite number >= 0" if or_zero else "a positive finite number"
        raise ValueError(f"{name}={_short(value)} must be {kind}.")


def _as_float(value: Any) -> float:
    """Return a number as a float, an infinity if it is too large to be one."""
    try:
        return float(value)
    except OverflowError:
        return np.inf


def _short(value: Any) -> str:
    """Return the text of a value for a message, without the middle if it is very long."""
    if isinstance(value, int) and abs(value) > 10**60:  # Python refuses to write very long ones
        return f"an integer of {value.bit_length()} bits"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:28]}...{text[-28:]}"


def require_flags(**values: Any) -> None:
    """Raise ValueError unless each of some parameters is True or False."""
    for name, value in values.items():
        if not isinstance(value, bool | np.bool_):
            raise ValueError(f"{name}={value!r} must be True or False.")


def require_verbosity(verbose: Any) -> None:
    """Raise ValueError unless `verbose` is False, True or a whole number that is not negative."""
    if not isinstance(verbose, Integral) or verbose < 0:
        raise ValueError(f"verbose={verbose!r} must be a whole number >= 0.")


def require_seed(random_state: Any) -> None:
    """Raise ValueError unless `random_state` is one of the kinds that scikit-learn accepts."""
    kinds = (Integral, np.random.RandomState)
    if random_state is not None and not isinstance(random_state, kinds):
        raise ValueError(
            f"random_state={random_state!r} must be None, a whole number or a "
            "numpy.random.RandomState."
        )


def require_threads(n_jobs: Any) -> None:
    """Raise ValueError unless `n_jobs` is None or a whole number other than zero."""
    if n_jobs is None:
        return
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral) or n_jobs == 0:
        raise ValueError(
            f"n_jobs={n_jobs!r} is not allowed; use None for all cores or a whole number but 0."
        )


def require_unmasked(**arguments: Any) -> None:
    """Raise ValueError for masked values, which scikit-learn would use like any others."""
    for name, values in arguments.items():
        if isinstance(values, np.ma.MaskedArray) and np.ma.getmaskarray(values).any():
            raise ValueError(
                f"{name} is a masked array with masked values, and a mask would be ignored. Fill "
                "them in, for example by NaN and tessella.make_tabular_pipeline, or leave out "
                "their rows."
            )


def loss_weights(C: float, weight: FloatArray) -> FloatArray:
    """Return the weight of the loss of each row, `C` times its sample weight.

    Raise ValueError if products of the weights would overflow or vanish in double precision.
    """
    with np.errstate(over="ignore", under="ignore"):
        weights = float(C) * weight
        total, least = float(weights.sum()), float(weights.min())
    if not 1.0 / _LARGEST_TOTAL <= total <= _LARGEST_TOTAL:
        raise ValueError(
            f"C={C!r} times the weights of the rows is {total:.3g} in total, and must be between "
            f"{1.0 / _LARGEST_TOTAL:g} and {_LARGEST_TOTAL:g}, so that products do not overflow. "
            "Use another C, or sample weights and class weights on another scale."
        )
    if not least >= total / _LARGEST_TOTAL:
        raise ValueError(
            f"The smallest weight of a row is {least / total:.3g} of the total, too small for "
            "double precision. Leave out rows of negligible weight: set their sample_weight to 0."
        )
    return weights


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
    require_unmasked(X=X, y=y, sample_weight=sample_weight)
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
    scale = numbers_or_nan(value)
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
    if not varying_columns(X).any():
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
