"""Conversion of the columns of frames and arrays to numbers or categories.

Neither pandas nor polars is imported. A column is converted to a numpy array by its own method,
and the missing values of a library are recognised by the names of their types.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

NUMBER, DATE, CATEGORY = "number", "date", "category"

_MISSING, _TEXT, _OTHER = "missing", "text", "other"
_PLAIN_KINDS = "biuf"  # numpy's codes for numeric dtypes
_TIME_KINDS = "mM"
_TEXT_KINDS = "UT"
_EPOCH = date(1970, 1, 1).toordinal()
_SECONDS = 86_400.0


@dataclass(frozen=True)
class Column:
    """One column of a table.

    Attributes
    ----------
    label : str
        Name or number of the column, for messages.
    values : ndarray
        Values of the column, of any dtype.
    categorical : bool
        Whether the column is declared to contain categories, whatever its values are.
    """

    label: str
    values: NDArray[Any]
    categorical: bool = False


def is_frame(X: Any) -> bool:
    """Return whether X has named columns, like the frames of pandas and polars."""
    return all(hasattr(X, name) for name in ("shape", "columns", "dtypes"))


def require_distinct_names(X: Any) -> None:
    """Raise an error if two columns of a frame have the same name."""
    names = list(X.columns)
    if len(set(names)) < len(names):
        twice = sorted({str(name) for name in names if names.count(name) > 1})
        raise ValueError(f"Column names must differ; more than one column is called {twice}.")


def frame_columns(X: Any, declared: frozenset[Hashable]) -> list[Column]:
    """Return the columns of a frame; `declared` are the names of columns with categories."""
    return [_frame_column(name, X[name], name in declared) for name in X.columns]


def _frame_column(name: Any, series: Any, declared: bool) -> Column:
    # The categories of polars are text; those of pandas may be numbers.
    categorical = declared or str(series.dtype) == "category"
    if str(series.dtype) == "Null":  # of polars, for a column without any values
        return Column(repr(name), np.full(len(series), None), categorical)
    return Column(repr(name), series.to_numpy(), categorical)


def array_columns(X: NDArray[Any], declared: frozenset[Hashable]) -> list[Column]:
    """Return the columns of an array; `declared` are the numbers of columns with categories."""
    return [Column(str(j), X[:, j], j in declared) for j in range(X.shape[1])]


# -------------------------------------------------------------------------- kinds of columns


def kind_of(column: Column) -> str:
    """Return NUMBER, DATE or CATEGORY, or raise an error that names the column."""
    letter = column.values.dtype.kind
    if column.values.ndim != 1 or letter not in _PLAIN_KINDS + _TIME_KINDS + _TEXT_KINDS + "O":
        raise _unsupported(column, f"values of dtype {column.values.dtype}")
    if letter in _PLAIN_KINDS:
        return CATEGORY if column.categorical else NUMBER
    if letter in _TIME_KINDS:
        return CATEGORY if column.categorical else DATE
    return CATEGORY if letter in _TEXT_KINDS else _kind_of_objects(column)


def _kind_of_objects(column: Column) -> str:
    examples = {_sort_of(value): value for value in column.values[::-1]}
    examples.pop(_MISSING, None)
    if _OTHER in examples:
        raise _unsupported(column, f"objects of type {type(examples[_OTHER]).__name__}")
    if column.categorical or not examples:
        return CATEGORY
    if len(examples) > 1:
        first, second = list(examples.values())[:2]
        raise ValueError(
            f"Column {column.label} mixes values of different kinds, for instance {first!r} and "
            f"{second!r}. Convert all values to numbers or to text, or name the column in "
            "categorical_features to treat every distinct value as a category."
        )
    (sort,) = examples
    return CATEGORY if sort == _TEXT else sort


def _sort_of(value: Any) -> str:
    if is_missing(value):
        return _MISSING
    if isinstance(value, date | timedelta | np.datetime64 | np.timedelta64):
        return DATE  # checked before numbers, because durations of numpy are integers
    if isinstance(value, Real | Decimal | np.bool_):
        return NUMBER
    return _TEXT if isinstance(value, str) else _OTHER


def is_missing(value: Any) -> bool:
    """Return whether a value is None, NaN, or a missing value of pandas."""
    if value is None:
        return True
    if isinstance(value, float | np.floating | Decimal):
        return bool(value != value)
    if isinstance(value, np.datetime64 | np.timedelta64):
        return bool(np.isnat(value))
    return type(value).__name__ in ("NAType", "NaTType")


def _unsupported(column: Column, what: str) -> TypeError:
    return TypeError(
        f"Column {column.label} holds {what}, which is neither a number, a date, text nor a "
        "category. Convert the column, or remove it."
    )


# ----------------------------------------------------------------------- conversion of columns


def as_numbers(column: Column, kind: str) -> FloatArray:
    """Return the values as float64, with dates in days since 1970 and NaN for missing values.

    The argument `kind` is the kind of the column when the encoder was fitted.
    """
    values = column.values
    letter = values.dtype.kind if values.ndim == 1 else ""
    if letter and letter in _PLAIN_KINDS and (kind == NUMBER or np.isnan(values).all()):
        numbers = values.astype(np.float64)
    elif letter and letter in _TIME_KINDS and kind == DATE:
        numbers = _days_of_array(values)
    else:
        numbers = np.array([_number(column, value, kind) for value in values], dtype=np.float64)
    if np.isinf(numbers).any():
        row = int(np.flatnonzero(np.isinf(numbers))[0])
        raise ValueError(f"Column {column.label} contains infinity, first in row {row}.")
    return numbers


def _number(column: Column, value: Any, kind: str) -> float:
    sort = _sort_of(value)
    if sort == _MISSING:
        return np.nan
    if sort != kind:
        raise ValueError(
            f"Column {column.label} held {kind}s when the encoder was fitted, but now holds "
            f"{value!r}."
        )
    return float(value) if sort == NUMBER else _days(value)


def _days_of_array(values: NDArray[Any]) -> FloatArray:
    if values.dtype.kind == "M":
        values = values - np.datetime64(0, "D")
    days: FloatArray = values / np.timedelta64(1, "D")
    return days


def _days(value: Any) -> float:
    if isinstance(value, np.datetime64 | np.timedelta64):
        return float(_days_of_array(np.array([value]))[0])
    if isinstance(value, timedelta):
        return value.total_seconds() / _SECONDS
    if isinstance(value, datetime):
        # A time without a time zone is interpreted as UTC, not in the time zone of the machine.
        aware = value if value.tzinfo else value.replace(tzinfo=UTC)
        return aware.timestamp() / _SECONDS
    return float(value.toordinal() - _EPOCH)


def as_categories(column: Column) -> NDArray[Any]:
    """Return the values as text in an object array, with NaN for missing values.

    Categories are text, because a category may be 1 in one table and 1.0 in another.
    """
    if column.values.ndim != 1:
        raise _unsupported(column, f"values of dtype {column.values.dtype}")
    names = [np.nan if is_missing(value) else _category_name(value) for value in column.values]
    return np.array(names, dtype=object)


def _category_name(value: Any) -> str:
    if isinstance(value, bool | np.bool_):
        return str(bool(value))
    if isinstance(value, Integral):
        return str(int(value))
    if isinstance(value, float | np.floating) and value.is_integer():
        return str(int(value))
    return str(value)


def require_no_numerals(column: Column, names: NDArray[Any], limit: int) -> None:
    """Raise an error if a text column contains only numbers, and too many of them to be codes."""
    distinct = {name for name in names if isinstance(name, str)}
    if len(distinct) > limit and all(map(_is_numeral, distinct)):
        raise ValueError(
            f"Column {column.label} holds numbers written as text, for instance "
            f"{min(distinct)!r}. Convert the column to numbers, or name it in "
            "categorical_features if its values are codes."
        )


def _is_numeral(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
