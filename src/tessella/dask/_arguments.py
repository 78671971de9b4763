"""Arguments of tasks as bytes, without the large arrays in them.

A task of each leaf gets the same parameter, and large arrays should cross the network once for each
worker and not once for each leaf. They are taken out of the arguments, whatever object contains
them, and become results of tasks of their own, which workers hand to each other.
"""

from __future__ import annotations

import io
import pickle
from typing import Any

import cloudpickle
import numpy as np
from numpy.typing import NDArray

LARGE = 10_000  # bytes from which on an array is sent by itself


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    """Writes the number of a large array in its place."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self.large: list[NDArray[Any]] = []
        self._numbers: dict[int, int] = {}

    def persistent_id(self, value: Any) -> int | None:
        """Return the number of a large array, and None for everything else."""
        if type(value) is not np.ndarray or value.nbytes <= LARGE or value.dtype.hasobject:
            return None
        number = self._numbers.setdefault(id(value), len(self.large))
        if number == len(self.large):
            self.large.append(value)
        return number


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, large: tuple[NDArray[Any], ...]) -> None:
        super().__init__(file)
        self._large = large

    def persistent_load(self, number: Any) -> NDArray[Any]:
        array: NDArray[Any] = self._large[number]
        return array


def packed(value: Any) -> tuple[bytes, list[NDArray[Any]]]:
    """Return an object as bytes, and the large arrays that are not among them."""
    file = io.BytesIO()
    pickler = _Pickler(file)
    pickler.dump(value)
    return file.getvalue(), pickler.large


def unpacked(content: bytes, large: tuple[NDArray[Any], ...]) -> Any:
    """Return the object that :func:`packed` was given."""
    return _Unpickler(io.BytesIO(content), large).load()
