"""Checks of the values of a batch, whose errors name the row and the column."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tessella.rows._source import Batch, ObjectArray

_GAPS = "Fill or leave out such rows before the fit."


def check_batch(batch: Batch, names: ObjectArray | None) -> None:
    """Raise ValueError if a feature, a target or a weight of a batch cannot be used.

    Parameters
    ----------
    batch : Batch
        Some rows.
    names : ndarray of object or None
        Names of the features for the error message.
    """
    if not np.isfinite(batch.X).all():
        row, column = np.argwhere(~np.isfinite(batch.X))[0]
        name = f"number {column}" if names is None else repr(names[column])
        _refuse(batch, int(row), f"Column {name} of X", batch.X[row, column])
    wrong = unusable(batch.y)
    if wrong.any():
        row = int(np.argmax(wrong))
        _refuse(batch, row, "The target", batch.y[row])
    _check_weights(batch)


def _check_weights(batch: Batch) -> None:
    wrong = ~np.isfinite(batch.weight)
    if wrong.any():
        row = int(np.argmax(wrong))
        _refuse(batch, row, "The weight", batch.weight[row])
    if (batch.weight < 0).any():
        row = int(np.argmax(batch.weight < 0))
        raise ValueError(
            f"The weight of row {batch.first + row} is negative ({batch.weight[row]:g}); rows are "
            "counted from 0. Give it a weight of zero, or leave the row out."
        )


def unusable(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which values are missing or infinite; text is never either."""
    if values.dtype.kind == "f":
        return np.asarray(~np.isfinite(values))
    if values.dtype.kind == "O":
        return np.array([_is_gap(value) for value in values], dtype=bool)
    return np.zeros(len(values), dtype=bool)


def _is_gap(value: object) -> bool:
    if isinstance(value, (float, np.floating)):
        return not np.isfinite(value)
    return value is None or type(value).__name__ in ("NAType", "NaTType")  # gaps of pandas


def _refuse(batch: Batch, row: int, what: str, value: object) -> None:
    infinite = isinstance(value, (float, np.floating)) and np.isinf(value)
    kind = "an infinite value" if infinite else "a missing value"
    raise ValueError(
        f"{what} has {kind} in row {batch.first + row} (rows are counted from 0). {_GAPS}"
    )
