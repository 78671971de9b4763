"""Model files, which store a fitted estimator as plain data in one file.

A model file is an archive of arrays and JSON (:mod:`tessella._archive`). Its manifest contains the
class, the parameters and the fitted attributes of the estimator, and metadata of the caller.

A model file contains no code, and reading it does not execute any. The classes that it can contain
are listed in the tables below, together with the kernel sets that were registered with
:func:`register_kernel_set`; saving a value of any other type raises an error. JSON stores a float64
with all its digits, so a loaded model makes exactly the same predictions.
"""

from __future__ import annotations

import json
import math
import os
from dataclasses import fields, is_dataclass
from importlib import import_module
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from tessella._archive import ArchiveError, ArchiveFormat, Arrays, ArrayStore, storable
from tessella.cones import Blocks
from tessella.estimators import LearnedKernelSVC, LearnedKernelSVR
from tessella.features import KernelFeatures
from tessella.kernels import (
    FittedDictionary,
    FunctionKernel,
    Gaussian,
    GaussianKernels,
    KernelDictionary,
    KernelSet,
    KernelsOnFeatures,
    KernelSum,
    LaplaceKernels,
    LearnedKernel,
    MaternKernels,
    Polynomial,
    PolynomialKernels,
    TessellatedKernels,
    UnitBox,
)
from tessella.solvers import IterationRecord
from tessella.tabular import TabularEncoder

__all__ = ["SKOPS_TRUSTED", "ModelFileError", "load", "read_info", "register_kernel_set", "save"]

_T = TypeVar("_T")
_KernelSetClass = TypeVar("_KernelSetClass", bound=type[KernelSet])

# Modules of the estimators by name. Most are imported when they are needed, because that takes
# time.
_MODULES = {
    "LearnedKernelSVC": LearnedKernelSVC.__module__,
    "LearnedKernelSVR": LearnedKernelSVR.__module__,
    "MultipleKernelSVC": "tessella.multiple_kernels._classifier",
    "MultipleKernelSVR": "tessella.multiple_kernels._regressor",
    "TessellaClassifier": "tessella.automatic._classifier",
    "TessellaRegressor": "tessella.automatic._regressor",
}
_AUTOMATIC = ("TessellaClassifier", "TessellaRegressor")
# Modules of the parts of automatic models, which are imported when they are needed as well.
_PARTS = {
    "TableReader": "tessella.automatic._table",
    "Encoding": "tessella.automatic._encodings",
    "Space": "tessella.automatic._spaces",
    "ScaledKernel": "tessella.automatic._kernels",
    "CertifiedKernel": "tessella.automatic._kernels",
    "SquaredError": "tessella.automatic._losses",
    "Hinge": "tessella.automatic._losses",
    "Tube": "tessella.automatic._losses",
    "PlainTarget": "tessella.automatic._targets",
    "LogTarget": "tessella.automatic._targets",
    "MarginTarget": "tessella.automatic._targets",
    "Machine": "tessella.automatic._search",
    "Leaves": "tessella.automatic._leaves",
    "FittedMachine": "tessella.automatic._machines",
}
# Objects that several parts of a model refer to, and that have to be one object again.
_SHARED = ("Space",)
_FAMILIES: tuple[type[KernelSet], ...] = (
    TessellatedKernels,
    PolynomialKernels,
    GaussianKernels,
    LaplaceKernels,
    MaternKernels,
    KernelDictionary,
    FittedDictionary,
    KernelSum,
    KernelsOnFeatures,
)
_CLASSES: dict[str, type[Any]] = {
    "kernel": LearnedKernel,
    "box": UnitBox,
    "Gaussian": Gaussian,
    "Polynomial": Polynomial,
    **{str(cls.family): cls for cls in _FAMILIES},
}
_TAGS = {cls: tag for tag, cls in _CLASSES.items()}
_OTHER_DATA = (Blocks, FunctionKernel, IterationRecord, KernelFeatures, TabularEncoder)

#: Names of the classes of this library that a fitted model contains. Use them to load a model with
#: skops: ``skops.io.load(file, trusted=SKOPS_TRUSTED)``. None of the classes executes code when it
#: is loaded, and skops itself trusts all other classes of a model. The functions in a
#: :class:`~tessella.KernelDictionary` and kernel sets of other authors are not in the list.
SKOPS_TRUSTED: list[str] = [
    *(f"{module}.{name}" for name, module in (*_MODULES.items(), *_PARTS.items())),
    *(f"{cls.__module__}.{cls.__qualname__}" for cls in (*_CLASSES.values(), *_OTHER_DATA)),
]
_NEEDED = ("kernel_", "support_vectors_", "dual_coef_", "intercept_", "n_features_in_")
_NEEDED_AUTOMATIC = ("members_", "n_features_in_")

_NO_FIT = "the arrays of the model do not fit together."
_TAG = "$type"  # marks values that JSON cannot represent directly
# Tags that do not stand for a class of the table above.
_RESERVED = ("array", "blocks", "dict", "float", "history", "shared", "text", "tuple", *_PARTS)
# Rebuilt when needed; for fits alone; not of the model but of its data.
_NOT_OF_THE_MODEL = ("_predictor_cache", "_skl_callbacks", "_fit_rows")


class ModelFileError(ArchiveError):
    """A model cannot be written as a model file, or a file cannot be read as one."""


_FORMAT = ArchiveFormat(
    name="tessella-model",
    # 2: the parameter of a kernel may be weights or blocks, not only a matrix
    # 3: the scaling of a feature is a list of knots, not only an offset and a span
    version=3,
    oldest=3,
    noun="model file",
    error=ModelFileError,
    others={
        "tessella-checkpoint": "this is the checkpoint of a fit, not a model. To continue the fit, "
        "fit again with the same data and checkpoint=..., or with max_iter=0 to get the model of "
        "the checkpoint; then save the model."
    },
)


def save(
    model: Any, path: str | os.PathLike[str], *, metadata: dict[str, Any] | None = None
) -> None:
    """Write a fitted estimator to a model file.

    The file is written atomically: an existing file is replaced only once the new file is complete
    and on the disk.

    Parameters
    ----------
    model : estimator
        Fitted estimator to save: one of those of this library that predict.
    path : path-like
        Path of the file. By convention, its suffix is ``.tsl``.
    metadata : dict, optional
        Additional data to store in the file. It can contain anything that JSON can represent, and
        :func:`read_info` returns it.

    Raises
    ------
    ModelFileError
        If the model contains something that is not plain data, such as a function in a
        :class:`~tessella.KernelDictionary` or a kernel set that is not registered. Use pickle or
        joblib for such a model.
    sklearn.exceptions.NotFittedError
        If the model is not fitted.

    See Also
    --------
    register_kernel_set : Make model files store a kernel set of your own.
    """
    _FORMAT.write(path, *_content(model, {} if metadata is None else metadata))


def load(path: str | os.PathLike[str]) -> Any:
    """Load the estimator of a model file.

    Parameters
    ----------
    path : path-like
        Path of a file that was written by :func:`save`.

    Returns
    -------
    estimator
        Fitted estimator. Its predictions are exactly those of the estimator that was saved.

    Raises
    ------
    ModelFileError
        If the file is not a model file, is damaged, was written in a format that this version does
        not read, or contains a kernel set that is not registered.
    """
    with _FORMAT.reading(path) as (manifest, arrays):
        return _build(manifest, arrays)


def read_info(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read the description of a model file, without creating the estimator.

    Parameters
    ----------
    path : path-like
        Path of a file that was written by :func:`save`.

    Returns
    -------
    dict
        Contents of the manifest with plain values. Its keys include ``tessella_version``,
        ``estimator``, ``params``, ``fitted`` (scalar attributes), ``classes`` and
        ``feature_names`` (lists or None) and ``metadata``. There is also ``kernel_set`` (``family``
        and ``params`` of the kernel set on the scale of the training data), or ``leaderboard`` and
        ``columns`` (kinds of the columns of the table) for an automatic model.

    Raises
    ------
    ModelFileError
        If the file is not a model file, is damaged, was written in a format that this version does
        not read, or contains a kernel set that is not registered. The checksums are verified as
        in :func:`load`.
    """
    with _FORMAT.reading(path) as (manifest, arrays):
        decoder = _Decoder(manifest, arrays)
        fitted = decoder.named(manifest["fitted"])
        lists = (fitted.get("classes_"), fitted.get("feature_names_in_"))
        classes, names = (None if values is None else values.tolist() for values in lists)
        described = {key: value for key, value in manifest.items() if key != "shared"}
        return {
            **described,
            "params": decoder.named(manifest["params"]),
            **_summary(manifest["estimator"], fitted),
            "fitted": {k: v for k, v in fitted.items() if isinstance(v, int | float | str)},
            "classes": classes,
            "feature_names": names,
        }


def _summary(estimator: str, fitted: dict[str, Any]) -> dict[str, Any]:
    """Return what the description of a model file says about the kernels of a model."""
    if estimator in _AUTOMATIC:
        columns = list(fitted["_reader"].kinds)
        return {"leaderboard": fitted["leaderboard_"], "columns": columns}
    kernels = kernel_list(fitted["kernel_"])[0].kernels
    params = kernels.get_params(deep=False)
    return {"kernel_set": {"family": kernels.family, "params": params}}


def register_kernel_set(cls: _KernelSetClass) -> _KernelSetClass:
    """Let model files store a kernel set of your own. It can be used as a class decorator.

    A kernel set is stored by its `family` and the values of its fields, which have to be plain
    data: numbers, text, arrays, lists, tuples, dicts or other registered kernel sets. To load the
    model, the class has to be registered again, usually by importing the module that defines it.

    Parameters
    ----------
    cls : type
        A subclass of :class:`~tessella.kernels.KernelSet`. It has to be a dataclass and to define
        `family`, a name that no other kernel set uses. The class that its ``resolve`` returns has
        to be registered as well, if it is another one.

    Returns
    -------
    type
        The class itself.

    Raises
    ------
    TypeError
        If the class is not a dataclass that is derived from ``KernelSet``.
    ValueError
        If the class has no `family` of its own, or one that is in use.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import tessella
    >>> from sklearn.datasets import make_moons
    >>> from tessella.persistence import register_kernel_set
    >>> @register_kernel_set
    ... @dataclass
    ... class Quadratics(tessella.PolynomialKernels):
    ...     degree: int = 2
    ...     family = "quadratics"
    >>> X, y = make_moons(60, noise=0.2, random_state=0)
    >>> model = tessella.LearnedKernelSVC(kernels=Quadratics()).fit(X, y)
    >>> with TemporaryDirectory() as folder:
    ...     tessella.save(model, Path(folder) / "model.tsl")
    ...     tessella.load(Path(folder) / "model.tsl").kernels
    Quadratics(degree=2)
    """
    given: Any = cls
    if not isinstance(given, type) or not issubclass(given, KernelSet):
        raise TypeError(f"{cls!r} must be a subclass of tessella.kernels.KernelSet.")
    has_fields = is_dataclass(cls)
    if not has_fields:
        raise TypeError(
            f"{cls.__name__} must be a dataclass, because model files store the values of its "
            "fields. Put @dataclass below @register_kernel_set."
        )
    family = vars(cls).get("family")
    if not isinstance(family, str) or not family:
        raise ValueError(
            f"{cls.__name__} must define family, the name under which model files store it, as a "
            "class attribute of its own."
        )
    holder = _CLASSES.get(family)
    same = holder is not None and _full_name(holder) == _full_name(cls)  # its module was reloaded
    if family in _RESERVED or not (holder is None or same):
        user = "the format itself" if holder is None else _full_name(holder)
        raise ValueError(
            f"family={family!r} of {cls.__name__} is in use by {user}; choose another name."
        )
    _CLASSES[family] = cls
    _TAGS[cls] = family
    return cls


def _full_name(cls: type[Any]) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


def _estimator_class(name: Any) -> type[Any]:
    """Return the class of an estimator by its name."""
    module = _lookup(_MODULES, name, "estimator")
    return getattr(import_module(module), name)  # type: ignore[no-any-return]


def _content(model: Any, metadata: dict[str, Any]) -> tuple[dict[str, Any], ArrayStore]:
    """Return the manifest and the arrays of a model, before anything is written."""
    name = type(model).__name__
    if _full_name(type(model)) != f"{_MODULES.get(name)}.{name}":
        raise ModelFileError(
            f"A {name} cannot be stored in a model file, only {', '.join(_MODULES)} can; use "
            "pickle or joblib."
        )
    check_is_fitted(model, _NEEDED_AUTOMATIC if name in _AUTOMATIC else _NEEDED)
    params = model.get_params(deep=False)
    left_out = {*params, *_NOT_OF_THE_MODEL}
    fitted = {key: value for key, value in vars(model).items() if key not in left_out}
    encoder = _Encoder()
    content = {
        "estimator": name,
        "params": encoder.named(params),
        "fitted": encoder.named(fitted),
        "metadata": _checked_metadata(metadata),
        "shared": encoder.shared,
    }
    return content, encoder.store


def _checked_metadata(metadata: dict[str, Any]) -> dict[str, Any]:
    try:
        unchanged = json.loads(json.dumps(metadata, allow_nan=False)) == metadata
    except (TypeError, ValueError, RecursionError):
        unchanged = False
    if not unchanged or not isinstance(metadata, dict):
        raise ModelFileError(
            "metadata must be a dict that JSON can represent: its keys must be text and its "
            "numbers finite, and it must contain lists instead of tuples."
        )
    return metadata


class _Encoder:
    """Encoder of values as JSON and of arrays as members of the archive.

    An array that occurs twice is stored once, and it is a single array again after loading. The
    same holds for objects of the classes in ``_SHARED``.

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
            return value if math.isfinite(value) else {_TAG: "float", "text": repr(value)}
        if isinstance(value, np.ndarray) and not isinstance(value, np.ma.MaskedArray):
            return self._array(value, where)
        if isinstance(value, os.PathLike):
            return os.fspath(value)
        return self._container(value, where)

    def _container(self, value: Any, where: str) -> Any:
        tag = _tag_of(type(value))
        if tag in _SHARED:
            return {_TAG: "shared", "place": self._place(value, where)}
        if tag is not None:
            return self._fields(value, where)
        if type(value) is tuple and value and all(type(v) is IterationRecord for v in value):
            columns = {f.name: [getattr(v, f.name) for v in value] for f in fields(value[0])}
            return {_TAG: "history", "columns": self.named(columns, f"{where}.")}
        if type(value) is Blocks:
            return {_TAG: "blocks", "items": self.encode(list(value), where)}
        if type(value) in (list, tuple):
            items = [self.encode(item, f"{where}.{k}") for k, item in enumerate(value)]
            return items if type(value) is list else {_TAG: "tuple", "items": items}
        if type(value) is dict:
            pairs = [[key, item] for key, item in value.items()]
            return {_TAG: "dict", "items": self.encode(pairs, where)}
        raise _not_data(where, _description(value))

    def _fields(self, value: Any, where: str) -> dict[str, Any]:
        parts = {f.name: getattr(value, f.name) for f in fields(value) if f.init}
        return {_TAG: _tag_of(type(value)), "params": self.named(parts, f"{where}.")}

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
        return {_TAG: "array", "member": self.store.add(array, where)}


def _tag_of(cls: type[Any]) -> str | None:
    """Return the name under which model files store the objects of a class, if they do."""
    if _PARTS.get(cls.__name__) == cls.__module__:
        return cls.__name__
    return _TAGS.get(cls)


def _class_of(tag: Any) -> type[Any]:
    """Return the class that is stored under a name."""
    if tag in _PARTS:
        return getattr(import_module(_PARTS[tag]), tag)  # type: ignore[no-any-return]
    hint = ", or not registered: import the module that calls register_kernel_set for it"
    return _lookup(_CLASSES, tag, "kernel family or type", hint)


def _encode_text(array: NDArray[Any], where: str) -> dict[str, Any]:
    """Encode an object array of strings, such as names and labels from pandas."""
    items = array.ravel().tolist()
    others = {type(item).__name__ for item in items if not isinstance(item, str)}
    if others:
        raise _not_data(where, f"an object array that contains {' and '.join(sorted(others))}")
    return {_TAG: "text", "shape": list(array.shape), "items": [str(item) for item in items]}


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


class _Decoder:
    """The inverse of :class:`_Encoder`.

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
        kind = value[_TAG]
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
        return _class_of(kind)(**self.named(value["params"]))


def _lookup(table: dict[str, _T], name: Any, what: str, hint: str = "") -> _T:
    if name not in table:
        raise ModelFileError(f"the {what} {name!r} is unknown to this version{hint}.")
    return table[name]


def _build(manifest: dict[str, Any], arrays: Arrays) -> Any:
    cls = _estimator_class(manifest["estimator"])
    decoder = _Decoder(manifest, arrays)
    params = decoder.named(manifest["params"])
    model = cls(**params)
    for name, value in decoder.named(manifest["fitted"]).items():
        if name in params or name.startswith("__") or callable(getattr(cls, name, None)):
            raise ModelFileError(f"{name!r} is not a fitted attribute of {cls.__name__}.")
        setattr(model, name, value)
    if manifest["estimator"] not in _AUTOMATIC:
        _check_fitted_parts(model)
    elif not model._is_consistent():
        raise ModelFileError(_NO_FIT)
    return model


def kernel_list(kernel: LearnedKernel | list[LearnedKernel]) -> list[LearnedKernel]:
    """Return the kernels of a model as a list. Most models have a single kernel."""
    return kernel if isinstance(kernel, list) else [kernel]


def _check_fitted_parts(model: Any) -> None:
    """Raise an error if the parts of a model do not match; prediction would fail otherwise."""
    found, n_features = kernel_list(model.kernel_), model.n_features_in_
    n_machines, count = model.dual_coef_.shape
    if (
        model._sample_rows.shape[1:] != (n_features,)
        or not all(_fits(kernel, model._sample_rows) for kernel in found)
        or len(found) not in (1, n_machines)
        or model.support_vectors_.shape != (count, n_features)
        or model._training_range.shape != (2, n_features)
        or model.intercept_.shape != (n_machines,)
    ):
        raise ModelFileError(_NO_FIT)
    if isinstance(model, LearnedKernelSVC):
        n_classes = len(model.classes_)
        if n_classes < 2 or n_machines != n_classes * (n_classes - 1) // 2:
            raise ModelFileError(
                f"a classifier of {n_classes} classes cannot have {n_machines} machines."
            )
    elif n_machines != 1:
        raise ModelFileError("a regressor must have one machine.")


def _fits(kernel: LearnedKernel, rows: NDArray[np.float64]) -> bool:
    """Return whether the parameter is one of the kernel set, and the kernel has values."""
    cone = kernel.kernels.cone(len(kernel.box.kept))
    if not cone.contains(kernel.parameter):
        return False
    try:
        return bool(np.isfinite(kernel.diag(rows[:1])).all())
    except (IndexError, ValueError):  # a part of the kernel set has another number of features
        return False
