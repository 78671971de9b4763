"""Rows by leaf on disk."""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np

from tessella.rows._leaves import IntArray, LeafRows, by_leaf
from tessella.rows._scratch import Scratch
from tessella.rows._source import FloatArray

_BUFFER_BYTES = 64 << 20


class LeavesOnDisk(LeafRows):
    """Rows by leaf in files of a temporary folder, one file for each leaf.

    Rows are collected in a buffer, which is written when it is full. No file stays open. The
    folder is removed by :meth:`close`, at the end of a ``with`` statement, when the object is
    deleted, when the interpreter ends, and if writing fails. The folder of a process that was
    killed is removed when the next one is made in the same place (except on Windows).

    Parameters
    ----------
    n_leaves : int
        Number of leaves, of which some may remain empty.
    n_columns : int
        Number of columns of every row.
    folder : path-like, optional
        Existing folder in which the temporary folder is made. By default, it is that of Python,
        which the environment variable TMPDIR sets.
    buffer_bytes : int
        Size of the buffer.
    expected_bytes : int
        Number of bytes that will be written. It is compared with the free space of the disk before
        anything is written.

    Attributes
    ----------
    scratch : Scratch
        The temporary folder, for files that should be removed with it.

    Raises
    ------
    OSError
        If the disk has less free space than `expected_bytes`, or the folder cannot be used.
    """

    def __init__(
        self,
        n_leaves: int,
        n_columns: int,
        folder: str | os.PathLike[str] | None = None,
        buffer_bytes: int = _BUFFER_BYTES,
        expected_bytes: int = 0,
    ) -> None:
        super().__init__(n_leaves, n_columns)
        self.scratch = Scratch(folder, expected_bytes)
        self._files = list(range(n_leaves))
        self._next_file = n_leaves
        capacity = max(1, buffer_bytes // (8 * (n_columns + 1)))
        self._held = np.empty((capacity, n_columns))
        self._held_leaf = np.empty(capacity, dtype=np.int64)
        self._n_held = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Remove the temporary folder; rows cannot be read any more."""
        self.scratch.close()

    def _append(self, leaf: IntArray, block: FloatArray) -> None:
        self._require_open()
        start = 0
        while start < len(leaf):
            count = min(len(leaf) - start, len(self._held) - self._n_held)
            place = slice(self._n_held, self._n_held + count)
            self._held[place] = block[start : start + count]
            self._held_leaf[place] = leaf[start : start + count]
            self._n_held += count
            start += count
            if self._n_held == len(self._held):
                self._write_held()

    def _finish(self) -> None:
        self._require_open()
        self._write_held()
        self._held, self._held_leaf = np.empty((0, self.n_columns)), np.empty(0, dtype=np.int64)

    def _write_held(self) -> None:
        for k, chosen in by_leaf(self._held_leaf[: self._n_held]):
            self._write(self._files[k], self._held[chosen])
        self._n_held = 0

    def _rows(self, k: int) -> FloatArray:
        self._require_open()
        if not self._sizes[k]:
            return np.empty((0, self.n_columns))
        found = np.fromfile(self._path(self._files[k]), dtype=np.float64)
        if found.size != self._sizes[k] * self.n_columns:
            raise OSError(f"The temporary file {self._path(self._files[k])} was changed.")
        return found.reshape(-1, self.n_columns)

    def _replace(self, k: int, blocks: list[FloatArray]) -> None:
        self._require_open()
        numbers = range(self._next_file, self._next_file + len(blocks))
        self._next_file = numbers.stop
        for number, block in zip(numbers, blocks, strict=True):
            self._write(number, block)
        replaced, self._files[k] = self._files[k], numbers[0]
        self._files.extend(numbers[1:])
        self._path(replaced).unlink(missing_ok=True)

    def _write(self, number: int, block: FloatArray) -> None:
        with self.scratch.writing(), open(self._path(number), "ab") as file:
            file.write(np.ascontiguousarray(block).data)

    def _path(self, number: int) -> Path:
        return self.scratch.path / f"{number}.rows"

    def _require_open(self) -> None:
        if self.scratch.closed:
            raise RuntimeError("The temporary files of these rows have been removed.")
