"""From a table with text, dates and missing values to a matrix of finite numbers."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted, validate_data

from tessella.tabular._columns import (
    CATEGORY,
    Column,
    array_columns,
    as_categories,
    as_numbers,
    frame_columns,
    is_frame,
    kind_of,
    require_distinct_names,
    require_no_numerals,
)

FloatArray = NDArray[np.float64]


class TabularEncoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Turn the columns of a table into numbers: impute, indicate, encode.

    Takes pandas and polars frames, and arrays or lists of numbers or objects. Each column is one
    of three kinds, decided when the encoder is fitted:

    - numbers, truth values included: missing ones are replaced by the median, and a column that
      had any gets a second one that says where;
    - dates and durations: the same, in days, dates since 1970;
    - categories, which is text and whatever is declared to be one: a column of zeros and ones for
      each, missing being a category of its own. Rare ones share a column, and so do categories
      that were not there in training (all zeros, if there were no rare ones).

    Parameters
    ----------
    categorical_features : sequence of str or int, default=None
        Names of further columns (numbers of columns, for arrays) to take as categories, such as
        codes that look like numbers. Text and pandas' and polars' categorical columns are taken
        as such anyway.
    max_categories : int, default=12
        Most columns of zeros and ones for one column of categories. Of more, the most frequent
        keep theirs and the others share the last. This is what keeps identifiers and names with
        thousands of values from becoming thousands of features.
    min_frequency : int, default=5
        Categories with fewer rows than this share one column.

    Attributes
    ----------
    kinds_ : tuple of str
        "number", "date" or "category" for each column.
    medians_ : ndarray of shape (n_numbers,)
        Of the columns with numbers and dates, in the order of the table; 0 for a column without
        any value.
    gappy_ : ndarray of shape (n_gappy,)
        Which of those columns had missing values.
    one_hot_ : OneHotEncoder or None
        Of the categories, when there are any.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, when the table had any. They are checked when another one comes.

    See Also
    --------
    make_tabular_pipeline : This and a model in one.

    Notes
    -----
    The result has the numbers and dates first, in the order of the table, then their indicators
    of missing values, then the categories. Scaling is left to the model.

    Examples
    --------
    >>> import pandas as pd
    >>> from tessella.tabular import TabularEncoder
    >>> table = pd.DataFrame({"age": [20.0, None, 40.0], "town": ["Ulm", "Bern", None]})
    >>> encoder = TabularEncoder(min_frequency=1).fit(table)
    >>> encoder.get_feature_names_out().tolist()
    ['age', 'age_missing', 'town_Bern', 'town_Ulm', 'town_nan']
    >>> encoder.transform(table)
    array([[20.,  0.,  0.,  1.,  0.],
           [30.,  1.,  1.,  0.,  0.],
           [40.,  0.,  0.,  0.,  1.]])
    """

    def __init__(
        self,
        *,
        categorical_features: Sequence[Hashable] | None = None,
        max_categories: int = 12,
        min_frequency: int = 5,
    ) -> None:
        self.categorical_features = categorical_features
        self.max_categories = max_categories
        self.min_frequency = min_frequency

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the kinds of the columns, medians and categories.

        Parameters
        ----------
        X : frame or array-like of shape (n_samples, n_features)
            The table.
        y : ignored
            For scikit-learn's pipelines.

        Returns
        -------
        TabularEncoder
            The fitted encoder.
        """
        del y
        self._check_params()
        columns = self._columns(X, reset=True)
        kinds = tuple(map(kind_of, columns))
        categories = [
            self._new_categories(column)
            for column, kind in zip(columns, kinds, strict=True)
            if kind == CATEGORY
        ]
        numbers = _numbers(columns, kinds)
        self.kinds_ = kinds
        self.medians_ = _medians(numbers)
        self.gappy_ = np.flatnonzero(np.isnan(numbers).any(axis=0))
        self.one_hot_ = self._new_one_hot().fit(np.column_stack(categories)) if categories else None
        return self

    def transform(self, X: Any) -> FloatArray:
        """Encode a table.

        Parameters
        ----------
        X : frame or array-like of shape (n_samples, n_features)
            A table with the columns of the one that the encoder was fitted on.

        Returns
        -------
        ndarray of shape (n_samples, n_features_out)
            Finite numbers; a frame after ``set_output``.
        """
        check_is_fitted(self, "kinds_")
        columns = self._columns(X, reset=False)
        numbers = _numbers(columns, self.kinds_)
        missing = np.isnan(numbers)
        parts = [np.where(missing, self.medians_, numbers), missing[:, self.gappy_]]
        if self.one_hot_ is not None:
            kinds = zip(columns, self.kinds_, strict=True)
            names = [as_categories(column) for column, kind in kinds if kind == CATEGORY]
            parts.append(self.one_hot_.transform(np.column_stack(names)))
        return np.hstack(parts, dtype=np.float64)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Names of the columns of the result.

        Parameters
        ----------
        input_features : array-like of str, optional
            Names of the columns of the table, when it had none.

        Returns
        -------
        ndarray of str objects
        """
        check_is_fitted(self, "kinds_")
        names = _check_feature_names_in(self, input_features)
        categorical = np.array([kind == CATEGORY for kind in self.kinds_])
        numbers = names[~categorical]
        parts = [numbers, numbers[self.gappy_] + "_missing"]
        if self.one_hot_ is not None:
            parts.append(self.one_hot_.get_feature_names_out(names[categorical]))
        return np.concatenate(parts)

    def _check_params(self) -> None:
        for name, least in (("max_categories", 2), ("min_frequency", 1)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
                raise ValueError(f"{name}={value!r} must be a whole number >= {least}.")

    def _columns(self, X: Any, *, reset: bool) -> list[Column]:
        """Columns of a table whose names and number are as they should be."""
        if is_frame(X):
            require_distinct_names(X)
            validate_data(self, X, reset=reset, skip_check_array=True)
            if not all(X.shape):
                raise ValueError(
                    f"The table has {X.shape[0]} rows (sample(s)) and {X.shape[1]} columns "
                    "(feature(s)); a minimum of 1 is required of both."
                )
            return frame_columns(X, self._declared(X.columns) if reset else frozenset())
        if isinstance(X, list | tuple):  # numpy would make text of numbers beside text
            X = np.array(X, dtype=object)
        X = validate_data(self, X, reset=reset, dtype=None, ensure_all_finite="allow-nan")
        return array_columns(X, self._declared(range(X.shape[1])) if reset else frozenset())

    def _declared(self, known: Iterable[Hashable]) -> frozenset[Hashable]:
        """Columns that a fit has to take as categories; what is encoded later follows the fit."""
        given = self.categorical_features
        if isinstance(given, str):
            raise ValueError(
                f"categorical_features={given!r} must be a sequence of columns; use [{given!r}]."
            )
        declared = frozenset(() if given is None else given)
        unknown = sorted(str(name) for name in declared - set(known))
        if unknown:
            raise ValueError(
                f"categorical_features names {unknown}, which are not among the columns "
                f"{list(known)}."
            )
        return declared

    def _new_categories(self, column: Column) -> NDArray[Any]:
        names = as_categories(column)
        if not column.categorical:
            require_no_numerals(column, names, int(self.max_categories))
        return names

    def _new_one_hot(self) -> Any:
        from sklearn.preprocessing import OneHotEncoder  # loads much more than it is

        return OneHotEncoder(
            handle_unknown="infrequent_if_exist",
            max_categories=int(self.max_categories),
            min_frequency=int(self.min_frequency),
            sparse_output=False,
        ).set_output(transform="default")


def _medians(numbers: FloatArray) -> FloatArray:
    present = [column[~np.isnan(column)] for column in numbers.T]
    return np.array([np.median(values) if len(values) else 0.0 for values in present])


def _numbers(columns: list[Column], kinds: tuple[str, ...]) -> FloatArray:
    wanted = [
        as_numbers(column, kind)
        for column, kind in zip(columns, kinds, strict=True)
        if kind != CATEGORY
    ]
    rows = len(columns[0].values) if columns else 0
    return np.column_stack(wanted) if wanted else np.empty((rows, 0))
