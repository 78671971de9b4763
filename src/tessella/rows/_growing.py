"""Arrays that grow by blocks of rows, in memory or in a file."""

from __future__ import annotations

import tempfile
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray


class GrowingArray:
    """Rows that are appended block by block and then are one array.

    Parameters
    ----------
    n_columns : int
        Number of columns.
    dtype : dtype
        Data type of the entries.
    on_disk : bool
        Whether the rows are written to a temporary file. The array then maps the file into memory,
        so that only the parts that are read take memory. The file has no name and disappears with
        the array, and with the process at the latest.
    """

    def __init__(self, n_columns: int, dtype: DTypeLike, *, on_disk: bool) -> None:
        self._shape, self._dtype = n_columns, np.dtype(dtype)
        self._blocks: list[NDArray[Any]] = []
        self._file = tempfile.TemporaryFile() if on_disk else None  # noqa: SIM115 - the map needs it
        self._n_rows = 0

    def append(self, block: NDArray[Any]) -> None:
        """Add rows.

        Parameters
        ----------
        block : ndarray of shape (k, n_columns)
            The rows, which are copied.
        """
        rows = np.array(block, dtype=self._dtype, order="C").reshape(-1, self._shape)
        self._n_rows += len(rows)
        if self._file is None:
            self._blocks.append(rows)
        else:
            self._file.write(rows.tobytes())

    def finish(self) -> NDArray[Any]:
        """Return all rows as an array of shape (n_rows, n_columns), which must not be changed."""
        if self._file is None:
            empty = np.empty((0, self._shape), dtype=self._dtype)
            return np.concatenate(self._blocks) if self._blocks else empty
        with self._file as file:  # which the map needs no longer once it exists
            file.flush()
            shape = (self._n_rows, self._shape)
            if not self._n_rows:
                return np.empty(shape, dtype=self._dtype)
            mapped = np.memmap(file, dtype=self._dtype, mode="r", shape=shape)
        # A plain array: the map stays alive as its base.
        return np.asarray(mapped)
