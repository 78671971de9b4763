"""Validation of tables: frames, arrays and lists become columns."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from tessella.estimators._checks import require_unmasked
from tessella.tabular._columns import (
    Column,
    array_columns,
    frame_columns,
    is_frame,
    require_distinct_names,
)


def table_columns(
    estimator: Any, X: Any, categorical_features: Sequence[Hashable] | None, *, reset: bool
) -> list[Column]:
    """Return the columns of a table after their names and their number were checked.

    Parameters
    ----------
    estimator : estimator
        Estimator whose ``n_features_in_`` and ``feature_names_in_`` are set or compared.
    X : frame or array-like of shape (n_samples, n_features)
        The table.
    categorical_features : sequence of str or int, or None
        Columns that are declared to contain categories. Only used with `reset`.
    reset : bool
        Whether the table is that of a fit. Otherwise it is compared with the one of the fit.

    Returns
    -------
    list of Column
        The columns in their order.
    """
    if is_frame(X):
        require_distinct_names(X)
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        if not all(X.shape):
            raise ValueError(
                f"The table has {X.shape[0]} rows (sample(s)) and {X.shape[1]} columns "
                "(feature(s)); a minimum of 1 is required of both."
            )
        names = _declared(categorical_features, X.columns) if reset else frozenset()
        return frame_columns(X, names)
    require_unmasked(X=X)
    if isinstance(X, list | tuple):  # numpy would convert a mixture of numbers and text to text
        X = np.array(X, dtype=object)
    X = validate_data(estimator, X, reset=reset, dtype=None, ensure_all_finite="allow-nan")
    numbers = range(X.shape[1])
    return array_columns(X, _declared(categorical_features, numbers) if reset else frozenset())


def _declared(given: Sequence[Hashable] | None, known: Iterable[Hashable]) -> frozenset[Hashable]:
    """Return the columns that are declared as categories in a fit."""
    if isinstance(given, str) or (given is not None and not isinstance(given, Iterable)):
        raise ValueError(
            f"categorical_features={given!r} must be a sequence of columns; use [{given!r}]."
        )
    declared = frozenset(() if given is None else given)
    unknown = sorted(str(name) for name in declared - set(known))
    if unknown:
        raise ValueError(
            f"categorical_features names {unknown}, which are not among the columns {list(known)}."
        )
    return declared
