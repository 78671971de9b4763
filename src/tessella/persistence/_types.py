"""The types that a model file can contain, and the names under which it stores them."""

from __future__ import annotations

from dataclasses import is_dataclass
from importlib import import_module
from typing import Any, TypeVar

from tessella._archive import ArchiveError
from tessella.cones import Blocks
from tessella.estimators import (
    LearnedKernelRidge,
    LearnedKernelRidgeClassifier,
    LearnedKernelSVC,
    LearnedKernelSVR,
)
from tessella.estimators._leaf_model import BaseFunction, FittedLeaves
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
    KernelsWithFloor,
    LaplaceKernels,
    LearnedKernel,
    MaternKernels,
    Polynomial,
    PolynomialKernels,
    TessellatedKernels,
    UnitBox,
)
from tessella.partitions import CutTree, Partition
from tessella.solvers import IterationRecord, Round
from tessella.tabular import TabularEncoder

_T = TypeVar("_T")
_KernelSetClass = TypeVar("_KernelSetClass", bound=type[KernelSet])

# Modules of the estimators by name. Most are imported when they are needed, because that takes
# time.
MODULES = {
    "LearnedKernelRidge": LearnedKernelRidge.__module__,
    "LearnedKernelRidgeClassifier": LearnedKernelRidgeClassifier.__module__,
    "LearnedKernelSVC": LearnedKernelSVC.__module__,
    "LearnedKernelSVR": LearnedKernelSVR.__module__,
    "MultipleKernelSVC": "tessella.multiple_kernels._classifier",
    "MultipleKernelSVR": "tessella.multiple_kernels._regressor",
    "TessellaClassifier": "tessella.automatic._classifier",
    "TessellaRegressor": "tessella.automatic._regressor",
}
AUTOMATIC = ("TessellaClassifier", "TessellaRegressor")
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
    "Machine": "tessella.automatic._entries",
    "BaseMachine": "tessella.automatic._machines",
    "FittedMachine": "tessella.automatic._machines",
}
# Objects that several parts of a model refer to, and that have to be one object again.
SHARED = ("Space",)
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
    KernelsWithFloor,
)
_CLASSES: dict[str, type[Any]] = {
    "kernel": LearnedKernel,
    "box": UnitBox,
    "leaves": FittedLeaves,
    "base": BaseFunction,
    "partition": Partition,
    "cuts": CutTree,
    "Gaussian": Gaussian,
    "Polynomial": Polynomial,
    **{str(cls.family): cls for cls in _FAMILIES},
}
_TAGS = {cls: tag for tag, cls in _CLASSES.items()}
_OTHER_DATA = (Blocks, FunctionKernel, IterationRecord, Round, KernelFeatures, TabularEncoder)

#: Names of the classes of this library that a fitted model contains. Use them to load a model with
#: skops: ``skops.io.load(file, trusted=SKOPS_TRUSTED)``. None of the classes executes code when it
#: is loaded, and skops itself trusts all other classes of a model. The functions in a
#: :class:`~tessella.KernelDictionary` and kernel sets of other authors are not in the list.
SKOPS_TRUSTED: list[str] = [
    *(f"{module}.{name}" for name, module in (*MODULES.items(), *_PARTS.items())),
    *(f"{cls.__module__}.{cls.__qualname__}" for cls in (*_CLASSES.values(), *_OTHER_DATA)),
]
NEEDED = ("kernel_", "support_vectors_", "dual_coef_", "intercept_", "n_features_in_")
NEEDED_AUTOMATIC = ("members_", "n_features_in_")

TAG = "$type"  # marks values that JSON cannot represent directly
# Tags that do not stand for a class of the table above.
_RESERVED = ("array", "blocks", "dict", "float", "history", "shared", "text", "tuple", *_PARTS)
# Rebuilt when needed; for fits alone; not of the model but of its data.
NOT_OF_THE_MODEL = ("_predictor_cache", "_skl_callbacks", "_fit_rows", "rounds_")


class ModelFileError(ArchiveError):
    """A model cannot be written as a model file, or a file cannot be read as one."""


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
    same = holder is not None and full_name(holder) == full_name(cls)  # its module was reloaded
    if family in _RESERVED or not (holder is None or same):
        user = "the format itself" if holder is None else full_name(holder)
        raise ValueError(
            f"family={family!r} of {cls.__name__} is in use by {user}; choose another name."
        )
    _CLASSES[family] = cls
    _TAGS[cls] = family
    return cls


def full_name(cls: type[Any]) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


def estimator_class(name: Any) -> type[Any]:
    """Return the class of an estimator by its name."""
    module = lookup(MODULES, name, "estimator")
    return getattr(import_module(module), name)  # type: ignore[no-any-return]


def tag_of(cls: type[Any]) -> str | None:
    """Return the name under which model files store the objects of a class, if they do."""
    if _PARTS.get(cls.__name__) == cls.__module__:
        return cls.__name__
    return _TAGS.get(cls)


def class_of(tag: Any) -> type[Any]:
    """Return the class that is stored under a name."""
    if tag in _PARTS:
        return getattr(import_module(_PARTS[tag]), tag)  # type: ignore[no-any-return]
    hint = ", or not registered: import the module that calls register_kernel_set for it"
    return lookup(_CLASSES, tag, "kernel family or type", hint)


def lookup(table: dict[str, _T], name: Any, what: str, hint: str = "") -> _T:
    if name not in table:
        raise ModelFileError(f"the {what} {name!r} is unknown to this version{hint}.")
    return table[name]
