"""Encoder of tables with text, dates and missing values as matrices of finite numbers."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from tessella.tabular._columns import (
    CATEGORY,
    Column,
    as_categories,
    as_numbers,
    kind_of,
    require_no_numerals,
)
from tessella.tabular._input import table_columns

FloatArray = NDArray[np.float64]


class TabularEncoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Encode the columns of a table as numbers, and impute missing values.

    The encoder accepts pandas and polars frames, and arrays or lists of numbers or objects. When it
    is fitted, it determines the kind of each column:

    - Numbers and booleans: missing values are replaced by the median. If a column has missing
      values in the training data, a second column indicates where they are.
    - Dates and durations: they are converted to days (dates to days since 1970) and then treated
      like numbers.
    - Categories: text, categorical columns of pandas and polars, and columns that are declared to
      be categorical. Each category becomes a column of zeros and ones, and missing values are a
      category of their own. Rare categories share one column. Categories that did not occur in
      the training data belong to this column too, or become zeros if there is no such column.

    Parameters
    ----------
    categorical_features : sequence of str or int, default=None
        Names of columns (numbers of columns, for arrays) to treat as categories, such as numeric
        codes. Text columns and categorical columns of pandas and polars are always treated as
        categories.
    max_categories : int, default=12
        Largest number of columns that one column of categories is encoded as. If there are more
        categories, the most frequent ones have columns of their own and the others share the last
        column. This limit prevents identifiers and names with thousands of values from becoming
        thousands of features.
    min_frequency : int, default=5
        Smallest number of rows for which a category has a column of its own. Rarer categories
        share one column.

    Attributes
    ----------
    kinds_ : tuple of str
        Kind of each column: "number", "date" or "category".
    medians_ : ndarray of shape (n_numbers,)
        Medians of the columns with numbers and dates, in the order of the table. The median of a
        column without any values is 0.
    gappy_ : ndarray of shape (n_gappy,)
        Indices of the columns with missing values in the training data, counted among the columns
        with numbers and dates.
    one_hot_ : OneHotEncoder or None
        Encoder of the columns with categories, or None if there are no such columns.
    n_features_in_ : int
        Number of columns of the training data.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns of the training data, with which the names of other tables are
        compared. Defined only if the columns have names.

    See Also
    --------
    make_tabular_pipeline : Create a pipeline of an encoder and a model.

    Notes
    -----
    The first columns of the result are the numbers and dates, in the order of the table. They are
    followed by the indicators of missing values and by the categories. The encoder does not scale
    the columns, because the models do.

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
        """Determine the kinds of the columns, the medians and the categories.

        Parameters
        ----------
        X : frame or array-like of shape (n_samples, n_features)
            Training data.
        y : ignored
            Not used. It exists for compatibility with scikit-learn's pipelines.

        Returns
        -------
        TabularEncoder
            The fitted encoder.
        """
        del y
        self._check_params()
        columns = table_columns(self, X, self.categorical_features, reset=True)
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
            Table with the same columns as the training data.

        Returns
        -------
        ndarray of shape (n_samples, n_features_out)
            Encoded table of finite numbers. It is a frame if ``set_output`` was called.
        """
        check_is_fitted(self, "kinds_")
        columns = table_columns(self, X, None, reset=False)
        numbers = _numbers(columns, self.kinds_)
        missing = np.isnan(numbers)
        parts = [np.where(missing, self.medians_, numbers), missing[:, self.gappy_]]
        if self.one_hot_ is not None:
            kinds = zip(columns, self.kinds_, strict=True)
            names = [as_categories(column) for column, kind in kinds if kind == CATEGORY]
            parts.append(self.one_hot_.transform(np.column_stack(names)))
        return np.hstack(parts, dtype=np.float64)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the names of the columns of the encoded table.

        Parameters
        ----------
        input_features : array-like of str, optional
            Names of the columns of the training data, if it was fitted without names.

        Returns
        -------
        ndarray of str objects
            Names of the columns of the encoded table.
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
                raise ValueError(f"{name}={value!r} must be an integer >= {least}.")

    def _new_categories(self, column: Column) -> NDArray[Any]:
        names = as_categories(column)
        if not column.categorical:
            require_no_numerals(column, names, int(self.max_categories))
        return names

    def _new_one_hot(self) -> Any:
        from sklearn.preprocessing import OneHotEncoder  # slow to import

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
