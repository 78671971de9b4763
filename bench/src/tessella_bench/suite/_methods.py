"""The methods of the suite, in the order of their importance."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tessella_bench._cells import Recipe
from tessella_bench._methods import Method, find_function

OURS = "tessella"
YARDSTICK = "lightgbm-tuned"  # whose seconds the others' are compared with
VARIANT = "/"  # between a method and the name of a variant of it

_MODULE = "tessella_bench.suite"
_ALL = (
    Method(OURS, "Tessella", f"{_MODULE}._ours:tessella_model", needs="tessella:TessellaRegressor"),
    Method("catboost", "CatBoost", f"{_MODULE}._boosted:catboost", needs="catboost"),
    Method(YARDSTICK, "LightGBM tuned", f"{_MODULE}._boosted:lightgbm_tuned", needs="lightgbm"),
    Method("xrfm-tuned", "xRFM tuned", f"{_MODULE}._torch:xrfm_tuned", needs="xrfm"),
    Method("svm-tuned", "SVM (RBF) tuned", f"{_MODULE}._machines:svm"),
    Method("ridge-tuned", "kernel ridge tuned", f"{_MODULE}._machines:kernel_ridge", edition=2),
    Method("realmlp", "RealMLP", f"{_MODULE}._torch:realmlp", needs="pytabkit"),
    Method("xgboost-tuned", "XGBoost tuned", f"{_MODULE}._boosted:xgboost_tuned", needs="xgboost"),
    Method("forest", "random forest", f"{_MODULE}._boosted:random_forest"),
    Method(
        "catboost-tuned", "CatBoost tuned", f"{_MODULE}._boosted:catboost_tuned", needs="catboost"
    ),
    Method("lightgbm", "LightGBM", f"{_MODULE}._boosted:lightgbm", needs="lightgbm"),
    Method("learned-kernel", "LearnedKernelSVC/SVR", f"{_MODULE}._ours:learned_kernel"),
)

SUITE_METHODS = {method.name: method for method in _ALL}


def suite_methods() -> tuple[Method, ...]:
    """All methods of the suite, the most important first.

    Returns
    -------
    tuple of Method
        Whether they can be used is told by :func:`missing`.

    Examples
    --------
    >>> from tessella_bench.suite import suite_methods
    >>> [method.name for method in suite_methods()][:3]
    ['tessella', 'catboost', 'lightgbm-tuned']
    """
    return _ALL


def find_method(name: str) -> Method:
    """A method by name, a variant of one, or one of the user's as ``module:function``.

    Parameters
    ----------
    name : str
        As given on the command line; what follows a slash names a variant.

    Returns
    -------
    Method
        With a function that can be loaded in any process.
    """
    if name in SUITE_METHODS:
        return SUITE_METHODS[name]
    base, slash, variant = name.partition(VARIANT)
    if slash and base in SUITE_METHODS:
        return replace(SUITE_METHODS[base], name=name, title=variant)
    return find_function(name, SUITE_METHODS)


def find_title(name: str) -> str:
    """The heading of a method, also of one whose code is not there."""
    if name in SUITE_METHODS:
        return SUITE_METHODS[name].title
    return name.rpartition(VARIANT)[2].rpartition(":")[2]


def variants(given: Mapping[str, Mapping[str, Any]], of: str = OURS) -> dict[str, Recipe]:
    """Recipes of variants of a method.

    Parameters
    ----------
    given : mapping
        Keywords of the constructor by the name of the variant.
    of : str
        Name of the method.

    Returns
    -------
    dict
        By the names under which their cells are kept.
    """
    edition = SUITE_METHODS[of].edition
    return {f"{of}{VARIANT}{name}": Recipe(edition, options) for name, options in given.items()}


_PROBE = """
import importlib, importlib.util, sys
import tessella_bench
for need in sys.argv[1:]:
    module, _, name = need.partition(":")
    if importlib.util.find_spec(module) is None:
        sys.exit(f"the module {module!r} is not installed")
    if name and not hasattr(importlib.import_module(module), name):
        sys.exit(f"{module} has no {name}")
"""


def missing(method: Method, python: str | None) -> str | None:
    """Why a method cannot be used with an interpreter.

    Parameters
    ----------
    method : Method
        Which one.
    python : str or None
        The interpreter; None is the running one.

    Returns
    -------
    str or None
        None if it can be used.
    """
    if python is None:
        return method.missing()
    needs = [] if method.needs is None else [method.needs]
    try:
        answer = subprocess.run(
            [python, "-c", _PROBE, *needs], capture_output=True, text=True, check=False
        )
    except OSError as error:
        return f"{python} cannot be run ({error})"
    if answer.returncode == 0:
        return None
    lines = answer.stderr.strip().splitlines() or ["no message"]
    return f"{method.title} cannot run with {python}: {lines[-1]}"
