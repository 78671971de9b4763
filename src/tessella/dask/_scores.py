"""Scores of predictions that are collections of Dask."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np

from tessella.dask._chunks import is_array, is_collection


def r_squared(predicted: Any, y: Any, weight: Any) -> float:
    """Return 1 minus the weighted sum of squared errors, relative to that of the mean of y."""
    predicted, y, weight = _aligned(predicted, y, weight)
    mean = (weight * y).sum() / weight.sum()
    wrong = (weight * (y - predicted) ** 2).sum()
    whole = (weight * (y - mean) ** 2).sum()
    wrong, whole = (float(own) for own in da.compute(wrong, whole))
    if whole == 0.0:
        return 1.0 if wrong == 0.0 else 0.0
    return 1.0 - wrong / whole


def accuracy(predicted: Any, y: Any, weight: Any) -> float:
    """Return the part of the weight of the rows whose label is right."""
    predicted, y, weight = _aligned(predicted, y, weight)
    right, whole = da.compute((weight * (predicted == y)).sum(), weight.sum())
    return float(right / whole)


def _aligned(predicted: Any, y: Any, weight: Any) -> tuple[Any, Any, Any]:
    """Return predictions, targets and weights as arrays with the same chunks."""
    predicted, y = _as_array(predicted, None), _as_array(y, predicted)
    weight = da.ones_like(predicted, dtype=np.float64) if weight is None else weight
    return predicted, y, _as_array(weight, predicted)


def _as_array(values: Any, like: Any) -> Any:
    if not is_collection(values):
        values = da.from_array(np.asarray(values))
    elif not is_array(values):
        values = values.to_dask_array()
    if like is None or not is_array(like) or np.isnan(like.shape[0]) or np.isnan(values.shape[0]):
        return values
    return values.rechunk((like.chunks[0],))
