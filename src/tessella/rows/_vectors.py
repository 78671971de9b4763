"""Numbers that belong to the rows of each leaf."""

from __future__ import annotations

import shutil
import uuid
from pathlib import Path
from threading import Lock

import numpy as np
from numpy.typing import ArrayLike

from tessella.rows._disk import LeavesOnDisk
from tessella.rows._source import FloatArray


class LeafVectors:
    """Named vectors of float64 with a part for each leaf, in memory or on disk.

    Several threads may read and set parts at once, but not the same part.

    Parameters
    ----------
    sizes : array-like of int, shape (n_leaves,)
        Number of values of each leaf, which need not be its number of rows.
    on_disk : LeavesOnDisk or None
        Store whose temporary folder holds the vectors. None keeps them in memory.
    """

    def __init__(self, sizes: ArrayLike, on_disk: LeavesOnDisk | None = None) -> None:
        self._ends = np.concatenate([[0], np.cumsum(np.asarray(sizes, dtype=np.int64))])
        self._vectors: _Vectors = (
            _InMemory(int(self._ends[-1])) if on_disk is None else _OnDisk(on_disk)
        )

    def get(self, name: str, k: int) -> FloatArray:
        """Return the part of a leaf.

        Parameters
        ----------
        name : str
            Name of the vector.
        k : int
            Number of the leaf.

        Returns
        -------
        ndarray of float64, shape (sizes[k],)
            A copy of the values, which are zero until they are set.
        """
        start, count = self._place(k)
        return self._vectors.read(name, start, count)

    def set(self, name: str, k: int, values: ArrayLike) -> None:
        """Store the part of a leaf.

        Parameters
        ----------
        name : str
            Name of the vector.
        k : int
            Number of the leaf.
        values : array-like of float, shape (sizes[k],)
            The values, which are copied.
        """
        start, count = self._place(k)
        values = np.ascontiguousarray(values, dtype=np.float64)
        if values.shape != (count,):
            raise ValueError(
                f"Leaf {k} has {count} values, but the shape of those for {name!r} is "
                f"{values.shape}."
            )
        self._vectors.write(name, start, values)

    def copy(self, source: str, target: str) -> None:
        """Give a vector the values of another one.

        Parameters
        ----------
        source : str
            Name of the vector that is copied.
        target : str
            Name of the vector that is replaced.
        """
        if source != target:
            self._vectors.copy(source, target)

    def _place(self, k: int) -> tuple[int, int]:
        if not 0 <= k < len(self._ends) - 1:
            raise ValueError(f"Leaves have numbers from 0 to {len(self._ends) - 2}, not {k}.")
        return int(self._ends[k]), int(self._ends[k + 1] - self._ends[k])


class _InMemory:
    """Vectors of one length in memory."""

    def __init__(self, length: int) -> None:
        self._length = length
        self._values: dict[str, FloatArray] = {}
        self._lock = Lock()

    def read(self, name: str, start: int, count: int) -> FloatArray:
        if name not in self._values:
            return np.zeros(count)
        return self._values[name][start : start + count].copy()

    def write(self, name: str, start: int, values: FloatArray) -> None:
        with self._lock:
            if name not in self._values:
                self._values[name] = np.zeros(self._length)
        self._values[name][start : start + len(values)] = values

    def copy(self, source: str, target: str) -> None:
        if source in self._values:
            self._values[target] = self._values[source].copy()
        else:
            self._values.pop(target, None)


class _OnDisk:
    """Vectors in the temporary folder of a store, read and written as files.

    Files that are mapped into memory would end the process if the disk is full.
    """

    def __init__(self, store: LeavesOnDisk) -> None:
        self._scratch = store.scratch
        self._paths: dict[str, Path] = {}
        self._lock = Lock()

    def read(self, name: str, start: int, count: int) -> FloatArray:
        values = np.zeros(count)
        if name in self._paths:
            with open(self._paths[name], "rb") as file:
                file.seek(8 * start)
                file.readinto(values.data)  # what is beyond the end was never set
        return values

    def write(self, name: str, start: int, values: FloatArray) -> None:
        with self._scratch.writing(), open(self._path(name), "r+b") as file:
            file.seek(8 * start)
            file.write(values.data)

    def copy(self, source: str, target: str) -> None:
        if source in self._paths:
            with self._scratch.writing():
                shutil.copyfile(self._paths[source], self._path(target))
        elif target in self._paths:
            self._paths.pop(target).unlink()

    def _path(self, name: str) -> Path:
        """Return the file of a vector, which is created if necessary."""
        with self._lock:
            if name not in self._paths:
                path = self._scratch.path / f"{uuid.uuid4().hex}.vector"
                path.touch()
                self._paths[name] = path
            return self._paths[name]


_Vectors = _InMemory | _OnDisk
