"""Tables as each of the other methods wants them, in the way of their users."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from tessella_bench.suite._data import text_columns

MISSING = "missing"
_MOST_CATEGORIES, _FEWEST_ROWS = 30, 5  # of one column; rarer categories share a column

Prepare = Callable[[Any], Any]


@dataclass
class Prepared:
    """A fitted model behind the preparation of its tables.

    Attributes
    ----------
    prepare : callable
        Turns a table into what the model takes.
    model : object
        Fitted to prepared tables, and to the positions of the classes in `labels`.
    labels : ndarray or None
        The classes; None in a regression.
    """

    prepare: Prepare
    model: Any
    labels: NDArray[Any] | None = None

    def predict(self, X: Any) -> NDArray[Any]:
        """Classes or numbers for the rows of a table."""
        found = np.asarray(self.model.predict(self.prepare(X))).ravel()
        return found if self.labels is None else self.labels[found.astype(int)]

    def __getattr__(self, name: str) -> Any:
        """`predict_proba`, for models that have it."""
        if name != "predict_proba":
            raise AttributeError(name)
        predict_proba = self.model.predict_proba
        return lambda X: np.asarray(predict_proba(self.prepare(X)))

    @property
    def classes_(self) -> NDArray[Any]:
        """The classes of the columns of `predict_proba`."""
        assert self.labels is not None
        known = getattr(self.model, "classes_", np.arange(len(self.labels)))
        classes: NDArray[Any] = self.labels[np.asarray(known).astype(int)]
        return classes


def as_text(X: Any) -> Any:
    """The table with its text as plain strings, missing ones as a category of their own."""
    text = text_columns(X)
    filled = {name: X[name].astype(object).where(X[name].notna(), MISSING) for name in text}
    return X.assign(**{name: column.astype(str).astype(object) for name, column in filled.items()})


def as_categories(X: Any) -> Prepare:
    """Learn the categories of a table.

    Parameters
    ----------
    X : DataFrame
        Training part.

    Returns
    -------
    callable
        Gives tables whose text has pandas' categories, those of the training part; others become
        missing. Columns are numbered, since LightGBM refuses some characters in names.
    """
    known = {name: sorted(X[name].dropna().astype(str).unique()) for name in text_columns(X)}

    def prepare(table: Any) -> Any:
        columns = [
            pd.Categorical(_among(table[name], known[name]), categories=known[name])
            if name in known
            else table[name].to_numpy(dtype=np.float64)
            for name in table.columns
        ]
        return pd.DataFrame({f"f{j}": column for j, column in enumerate(columns)})

    return prepare


def _among(column: Any, known: list[str]) -> Any:
    values = column.astype(object)
    return values.where(values.isin(known), None)


def as_numbers(X: Any, *, scaled: bool) -> Prepare:
    """Learn to write a table as numbers.

    Missing numbers become the median, with a column that says so; text becomes one column for each
    of at most 30 categories with five rows or more, and one for the rest.

    Parameters
    ----------
    X : DataFrame
        Training part.
    scaled : bool
        Whether numbers are standardised.

    Returns
    -------
    callable
        Gives matrices of float64.
    """
    text = text_columns(X)
    numbers = [name for name in X.columns if name not in text]
    filling = SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)
    steps = [filling, StandardScaler()] if scaled else [filling]
    one_hot = OneHotEncoder(
        handle_unknown="infrequent_if_exist",
        max_categories=_MOST_CATEGORIES,
        min_frequency=_FEWEST_ROWS,
        sparse_output=False,
    )
    encoder = ColumnTransformer(
        [("numbers", make_pipeline(*steps), numbers), ("text", one_hot, text)]
    )
    encoder.fit(as_text(X))
    return lambda table: np.asarray(encoder.transform(as_text(table)), dtype=np.float64)


def with_filled_numbers(X: Any) -> Prepare:
    """Learn the medians of a table, for a net that takes categories but no missing numbers.

    Parameters
    ----------
    X : DataFrame
        Training part.

    Returns
    -------
    callable
        Gives tables whose text is filled as by :func:`as_text` and whose missing numbers are the
        median, with a column that says so for each column that has some in the training part.
    """
    numbers = [name for name in X.columns if name not in text_columns(X)]
    medians = {name: float(X[name].median()) if X[name].notna().any() else 0.0 for name in numbers}
    gaps = [name for name in numbers if X[name].isna().any()]

    def prepare(table: Any) -> Any:
        marks = {f"{name} {MISSING}": table[name].isna().astype(np.float64) for name in gaps}
        filled = {name: table[name].astype(np.float64).fillna(medians[name]) for name in numbers}
        return as_text(table).assign(**filled, **marks)

    return prepare
