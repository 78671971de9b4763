"""Values as JSON and arrays, and back."""

from __future__ import annotations

import math
import os
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tessella._archive import Arrays, ArrayStore, storable
from tessella.cones import Blocks
from tessella.kernels import KernelSet
from tessella.persistence._types import SHARED, TAG, ModelFileError, class_of, tag_of
from tessella.solvers import IterationRecord


class Encoder:
    """Encoder of values as JSON and of arrays as members of the archive.

    An array that occurs twice is stored once, and it is a single array again after loading. The
    same holds for objects of the classes in ``SHARED``.

    Attributes
    ----------
    store : ArrayStore
        Arrays that were encoded.
    shared : list
        Encoded objects to which the values refer by their place in this list.
    """

    def __init__(self) -> None:
        self.store = ArrayStore()
        self.shared: list[Any] = []
        self._places: dict[int, tuple[int, Any]] = {}  # with the object, so that no id is reused

    def named(self, values: dict[str, Any], within: str = "") -> dict[str, Any]:
        """Encode values by the names of their attributes."""
        return {name: self.encode(value, within + name) for name, value in values.items()}

    def encode(self, value: Any, where: str) -> Any:
        """Encode a value as JSON; `where` is its name in error messages and in the archive."""
        if isinstance(value, np.generic) and value.dtype.kind in "biufU":
            value = value.item()
        if value is None or isinstance(value, bool | int | str):
            return value
        if isinstance(value, float):
            return value if math.isfinite(value) else {TAG: "float", "text": repr(value)}
        if isinstance(value, np.ndarray) and not isinstance(value, np.ma.MaskedArray):
            return self._array(value, where)
        if isinstance(value, os.PathLike):
            return os.fspath(value)
        return self._container(value, where)

    def _container(self, value: Any, where: str) -> Any:
        tag = tag_of(type(value))
        if tag in SHARED:
            return {TAG: "shared", "place": self._place(value, where)}
        if tag is not None:
            return self._fields(value, where)
        if type(value) is tuple and value and all(type(v) is IterationRecord for v in value):
            columns = {f.name: [getattr(v, f.name) for v in value] for f in fields(value[0])}
            return {TAG: "history", "columns": self.named(columns, f"{where}.")}
        if type(value) is Blocks:
            return {TAG: "blocks", "items": self.encode(list(value), where)}
        if type(value) in (list, tuple):
            items = [self.encode(item, f"{where}.{k}") for k, item in enumerate(value)]
            return items if type(value) is list else {TAG: "tuple", "items": items}
        if type(value) is dict:
            pairs = [[key, item] for key, item in value.items()]
            return {TAG: "dict", "items": self.encode(pairs, where)}
        raise _not_data(where, _description(value))

    def _fields(self, value: Any, where: str) -> dict[str, Any]:
        parts = {f.name: getattr(value, f.name) for f in fields(value) if f.init}
        return {TAG: tag_of(type(value)), "params": self.named(parts, f"{where}.")}

    def _place(self, value: Any, where: str) -> int:
        """Return the place of a shared object, which is encoded when it occurs first."""
        if id(value) not in self._places:
            self.shared.append(self._fields(value, where))
            self._places[id(value)] = len(self.shared) - 1, value
        return self._places[id(value)][0]

    def _array(self, array: NDArray[Any], where: str) -> dict[str, Any]:
        if array.dtype.kind == "O":
            return _encode_text(array, where)
        if not storable(array.dtype):
            raise _not_data(where, f"an array of dtype {array.dtype}")
        return {TAG: "array", "member": self.store.add(array, where)}


def _encode_text(array: NDArray[Any], where: str) -> dict[str, Any]:
    """Encode an object array of strings, such as names and labels from pandas."""
    items = array.ravel().tolist()
    others = {type(item).__name__ for item in items if not isinstance(item, str)}
    if others:
        raise _not_data(where, f"an object array that contains {' and '.join(sorted(others))}")
    return {TAG: "text", "shape": list(array.shape), "items": [str(item) for item in items]}


def _description(value: Any) -> str:
    """Describe a value that is not data."""
    text = f"an object of class {type(value).__name__}"
    if isinstance(value, KernelSet):
        return f"{text} defined by Python code that is not registered by register_kernel_set"
    if not callable(value):
        return text
    name = getattr(value, "__name__", None)
    return f"{text} defined by Python code" if name is None else f"the function {name}"


def _not_data(where: str, what: str) -> ModelFileError:
    return ModelFileError(
        f"'{where}' is {what} and cannot be stored as data in a model file; use pickle or joblib "
        "for this model."
    )


class Decoder:
    """The inverse of :class:`Encoder`.

    Parameters
    ----------
    manifest : dict
        Manifest of the archive.
    arrays : mapping of str to ndarray
        Arrays of the archive.
    """

    def __init__(self, manifest: dict[str, Any], arrays: Arrays) -> None:
        self._arrays = arrays
        self._shared: list[Any] = []
        for value in manifest.get("shared", ()):
            self._shared.append(self.decode(value))

    def named(self, values: dict[str, Any]) -> dict[str, Any]:
        """Decode values by the names of their attributes."""
        return {name: self.decode(value) for name, value in values.items()}

    def decode(self, value: Any) -> Any:
        """Return the value that was encoded as JSON."""
        if isinstance(value, list):
            return [self.decode(item) for item in value]
        if not isinstance(value, dict):
            return value
        kind = value[TAG]
        if kind == "float":
            return float(value["text"])
        if kind == "array":
            return self._arrays[value["member"]]
        if kind == "text":
            return np.array(value["items"], dtype=object).reshape(value["shape"])
        if kind == "tuple":
            return tuple(self.decode(value["items"]))
        if kind == "blocks":
            return Blocks(self.decode(value["items"]))
        if kind == "dict":
            return dict(self.decode(value["items"]))
        if kind == "shared":
            return self._shared[value["place"]]
        if kind == "history":
            columns = self.named(value["columns"])
            rows = zip(*columns.values(), strict=True)
            return tuple(IterationRecord(**dict(zip(columns, row, strict=True))) for row in rows)
        return class_of(kind)(**self.named(value["params"]))
