"""The methods of the table, under one interface."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

CLASSIFICATION, REGRESSION = "classification", "regression"
BOTH = (CLASSIFICATION, REGRESSION)


class NotApplicableError(Exception):
    """A method that is not meant for so many rows, or for this task."""


@dataclass
class Fitted:
    """What a method made of a training part.

    Attributes
    ----------
    model : object
        Has a method `predict`.
    params : dict
        What tuning has chosen.
    tune_seconds, fit_seconds : float
        Seconds of the search, and of the last fit on all training rows.
    gap : float or None
        Certified relative gap of the last fit, for methods that have one.
    """

    model: Any
    params: dict[str, Any] = field(default_factory=dict)
    tune_seconds: float = 0.0
    fit_seconds: float = 0.0
    gap: float | None = None


def plain(value: Any) -> Any:
    """A parameter as JSON has it.

    Parameters
    ----------
    value : object
        Numbers, texts, and lists and dictionaries of them stay what they are; of a partial
        function the keywords are kept (a kernel and its width), of all else its text.

    Returns
    -------
    object
        What `json.dumps` takes.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, dict):
        return {str(name): plain(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    keywords = getattr(value, "keywords", None)
    return plain(keywords) if keywords else str(value)


# A function of task, X, y and seed; everything random in it, the folds too, comes from the seed.
Run = Callable[[str, NDArray[np.float64], NDArray[Any], int], Fitted]


@dataclass(frozen=True)
class Method:
    """A method of the table.

    Attributes
    ----------
    name : str
        By which it is asked for.
    title : str
        Heading of its column.
    paper : str or None
        Its name in the paper's tables.
    tasks : tuple of str
        What it can do.
    needs : str or None
        A module that has to be installed, or ``module:name`` for one that has to have a name.
    place : str
        ``module:function`` that tunes and fits, with the signature of `Run`.
    edition : int
        Counts the changes of the method's code that can change its results: cells of another
        edition are measured again.
    """

    name: str
    title: str
    place: str
    paper: str | None = None
    tasks: tuple[str, ...] = BOTH
    needs: str | None = None
    edition: int = 1

    def missing(self) -> str | None:
        """Why the method cannot be used here; None if it can."""
        if self.needs is None:
            return None
        module, _, name = self.needs.partition(":")
        if importlib.util.find_spec(module) is None:
            return f"{self.title} needs the module {module!r}, which is not installed"
        if name and not hasattr(importlib.import_module(module), name):
            return f"{self.title} needs {name}, which the module {module!r} does not have"
        return None

    def load(self) -> Run:
        """The function that tunes and fits."""
        module, _, function = self.place.partition(":")
        run: Run = getattr(importlib.import_module(module), function)
        return run


_OURS = "tessella_bench._ours"
_PEERS = "tessella_bench._peers"
_TREES = "tessella_bench._trees"

_ALL = (
    Method("tkl", "TKL", f"{_OURS}:tkl", "TKL"),
    Method("tkl-unit", "TKL (unit)", f"{_OURS}:tkl_unit"),
    Method("smkl", "SMKL", f"{_OURS}:smkl", "SMKL"),
    Method("nn", "NNet", f"{_PEERS}:neural_net", "NNet"),
    Method("rf", "RF", f"{_TREES}:random_forest", "RF"),
    Method("xgboost", "XGBoost", f"{_TREES}:xgboost", "XGBoost", needs="xgboost"),
    Method("amkl", "AMKL", f"{_OURS}:amkl", "AMKL"),
    Method("pwmk", "PWMK", f"{_OURS}:pwmk", "PWMK"),
    Method("cka", "CKA", f"{_OURS}:cka", "CKA"),
    Method("mkl", "MKL (ours)", f"{_OURS}:mkl"),
    Method("svm-rbf", "SVM (RBF)", f"{_PEERS}:svm_rbf"),
    Method("svm-laplacian", "SVM (Laplacian)", f"{_PEERS}:svm_laplacian"),
    Method("hist-gb", "HistGB", f"{_TREES}:hist_boosting"),
    Method("lightgbm", "LightGBM", f"{_TREES}:lightgbm", needs="lightgbm"),
    Method("catboost", "CatBoost", f"{_TREES}:catboost", needs="catboost"),
    Method("gp", "GP", f"{_PEERS}:gaussian_process"),
)

METHODS = {method.name: method for method in _ALL}


def methods() -> tuple[Method, ...]:
    """All methods of the table, those of the paper first.

    Returns
    -------
    tuple of Method
        Whether they can be used here is told by `missing`.

    Examples
    --------
    >>> from tessella_bench import methods
    >>> [method.name for method in methods()][:3]
    ['tkl', 'tkl-unit', 'smkl']
    """
    paper_first = sorted(_ALL, key=lambda method: method.paper is None)
    return tuple(sorted(paper_first, key=lambda method: not method.name.startswith("tkl")))


def find_method(name: str) -> Method:
    """A method by name, or one of the user's as ``module:function``.

    Parameters
    ----------
    name : str
        As given on the command line.

    Returns
    -------
    Method
        With a function that can be loaded in any process.
    """
    if name in METHODS:
        return METHODS[name]
    return find_function(name, METHODS)


def find_function(name: str, known: Iterable[str]) -> Method:
    """A method of the user's.

    Parameters
    ----------
    name : str
        ``module:function``.
    known : iterable of str
        Methods that have names, for the message.

    Returns
    -------
    Method
        With a function that can be loaded in any process.
    """
    module, colon, function = name.partition(":")
    if not colon:
        raise ValueError(
            f"There is no method {name!r}; known are {', '.join(known)}. A function of your own "
            "is named as module:function."
        )
    try:
        getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError) as error:
        raise ValueError(
            f"The method {name!r} cannot be loaded: {error}. Its module has to be importable; "
            "PYTHONPATH can name its folder."
        ) from error
    return Method(name, function, name)
