"""Frames of named columns, for models that take a table as it comes.

The command line reads files with pyarrow and does not need pandas or polars. A frame has what
models use of the frames of these libraries: names, and columns that become arrays.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Series:
    """A column of a frame."""

    values: NDArray[Any]

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the values."""
        return self.values.dtype

    def __len__(self) -> int:
        return len(self.values)

    def to_numpy(self) -> NDArray[Any]:
        """Return the values."""
        return self.values


@dataclass(frozen=True, eq=False)
class Frame:
    """Named columns of equal length.

    Attributes
    ----------
    content : dict of str to ndarray
        Values of each column, in the order of the columns.
    """

    content: dict[str, NDArray[Any]]

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(self.content)

    @property
    def dtypes(self) -> list[np.dtype[Any]]:
        """Types of the columns."""
        return [values.dtype for values in self.content.values()]

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of columns."""
        return len(next(iter(self.content.values()), ())), len(self.content)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, name: str) -> Series:
        return Series(self.content[name])
