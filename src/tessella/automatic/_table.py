"""From a table as it comes to a matrix of numbers and codes of categories.

All decisions that depend on rows are made from this matrix. Two tables with the same content, one
with a frame of text and one with an array of objects, give the same matrix.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tessella.tabular._columns import (
    CATEGORY,
    DATE,
    NUMBER,
    Column,
    as_categories,
    as_numbers,
    kind_of,
    require_no_numerals,
)

FloatArray = NDArray[np.float64]

# Largest number of distinct numerals in a column of text that may be codes.
_MOST_NUMERALS = 12


@dataclass(frozen=True, eq=False)
class TableReader:
    """The columns of a training table: their kinds, and the categories of those with text.

    Attributes
    ----------
    kinds : tuple of str
        Kind of each column: "number", "date" or "category".
    vocabularies : tuple
        For each column the sorted categories of the training table, or None for a column of
        numbers or dates.
    """

    kinds: tuple[str, ...]
    vocabularies: tuple[NDArray[Any] | None, ...]

    @classmethod
    def fit(cls, columns: list[Column]) -> TableReader:
        """Determine the kinds and the categories of the columns of a table."""
        kinds = tuple(map(kind_of, columns))
        words = [
            _vocabulary(column) if kind == CATEGORY else None
            for column, kind in zip(columns, kinds, strict=True)
        ]
        return cls(kinds, tuple(words))

    def is_consistent(self, n_columns: int) -> bool:
        """Return whether the columns with categories, and no others, have a list of them."""
        return len(self.kinds) == len(self.vocabularies) == n_columns and all(
            _is_vocabulary(words) if kind == CATEGORY else words is None and kind in (NUMBER, DATE)
            for kind, words in zip(self.kinds, self.vocabularies, strict=True)
        )

    @property
    def categorical(self) -> NDArray[np.bool_]:
        """Whether each column contains categories."""
        return np.array([kind == CATEGORY for kind in self.kinds])

    def read(self, columns: list[Column]) -> FloatArray:
        """Return a table as a matrix, with NaN for every missing value.

        Categories are numbered in the order of their vocabulary; a category that the training
        table does not contain is -1.
        """
        parts = zip(columns, self.kinds, self.vocabularies, strict=True)
        table = np.column_stack(
            [
                as_numbers(column, kind) if words is None else _codes(column, words)
                for column, kind, words in parts
            ]
        )
        table[np.isnan(table)] = np.nan  # one bit pattern, so that equal rows have equal bytes
        return table


def _vocabulary(column: Column) -> NDArray[Any]:
    names = as_categories(column)
    if not column.categorical:
        require_no_numerals(column, names, _MOST_NUMERALS)
    return np.array(sorted({name for name in names if isinstance(name, str)}), dtype=object)


def _is_vocabulary(words: Any) -> bool:
    return (
        isinstance(words, np.ndarray)
        and words.ndim == 1
        and all(isinstance(word, str) for word in words.tolist())
    )


def _codes(column: Column, words: NDArray[Any]) -> FloatArray:
    place = {word: float(k) for k, word in enumerate(words)}
    return np.array(
        [
            place.get(name, -1.0) if isinstance(name, str) else np.nan
            for name in as_categories(column)
        ]
    )
