"""The candidates of a search, and the default estimator and grid."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.model_selection import ParameterGrid
from sklearn.utils.multiclass import type_of_target

from tessella.estimators import LearnedKernelSVC, LearnedKernelSVR
from tessella.kernels import KernelSet
from tessella.model_selection._path import Candidate, last_step, last_step_prefix

# By benchmarks/tuning.py --study, the best point of this grid loses 0.002 of accuracy or R2 on
# average, and at most 0.01, to the best point of a grid that is seven times as large.
DEFAULT_C = (0.1, 1.0, 10.0, 100.0, 1000.0, 10000.0)
DEFAULT_DELTA = (0.1, 1.0, 4.0)

_MOST_CLASSES = 20  # a target with more distinct whole numbers is taken for a quantity


def default_estimator(y: Any) -> LearnedKernelSVC | LearnedKernelSVR:
    """A classifier if the target holds labels, a regressor if it holds quantities."""
    kind = type_of_target(y, input_name="y", raise_unknown=True)
    if kind == "continuous":
        return LearnedKernelSVR()
    if kind == "multiclass":
        values = np.unique(np.asarray(y))
        numbers = np.issubdtype(values.dtype, np.number)
        if numbers and len(values) > _MOST_CLASSES:
            return LearnedKernelSVR()
    if kind in ("binary", "multiclass"):
        return LearnedKernelSVC()
    raise ValueError(
        f"y is of type {kind!r}. Give one column, with labels for classification or numbers for "
        "regression."
    )


def default_grid(estimator: Any) -> dict[str, Sequence[Any]]:
    """The default values of C, and of delta if the kernels of the estimator have it.

    Sums of kernel sets may have a delta for each part, all of which would be too many points.
    """
    learner, prefix = last_step(estimator), last_step_prefix(estimator)
    grid: dict[str, Sequence[Any]] = {f"{prefix}C": DEFAULT_C}
    if learner.kernels == "tessellated":
        grid[f"{prefix}delta"] = DEFAULT_DELTA
    elif isinstance(learner.kernels, KernelSet) and "delta" in learner.kernels.get_params():
        grid[f"{prefix}kernels__delta"] = DEFAULT_DELTA
    return grid


def grid_candidates(
    grid: Mapping[str, Any] | Sequence[Mapping[str, Any]], estimator: Any
) -> list[Candidate]:
    """All candidates of a grid, in the order of scikit-learn's GridSearchCV."""
    candidates = [Candidate(index, params) for index, params in enumerate(ParameterGrid(grid))]
    known = estimator.get_params()
    for candidate in candidates:
        # A name such as step__kernels__delta may only exist for some values of step__kernels.
        unknown = [name for name in candidate.params if name.split("__")[0] not in known]
        if unknown:
            raise ValueError(
                f"param_grid names {unknown[0]!r}, which is not a parameter of "
                f"{type(estimator).__name__}. {_suggestion(unknown[0], known)}"
            )
    return candidates


def _suggestion(name: str, known: Iterable[str]) -> str:
    """Name the parameters of pipeline steps that end in this name, or else all parameters."""
    last = name.split("__")[-1]
    nested = sorted(other for other in known if other.endswith(f"__{last}"))
    if nested:
        return f"Did you mean {' or '.join(map(repr, nested))}?"
    return f"Use some of {sorted(known)}."


def group_into_paths(candidates: Sequence[Candidate], C: str) -> list[list[Candidate]]:
    """Group candidates that differ in the parameter `C` alone, in ascending order of it."""
    paths: dict[tuple[tuple[str, int], ...], list[Candidate]] = {}
    for candidate in candidates:
        # By identity, because values need not be hashable; those of one grid are the same objects.
        key = tuple((name, id(value)) for name, value in candidate.params.items() if name != C)
        paths.setdefault(key, []).append(candidate)
    return [
        sorted(path, key=lambda candidate: candidate.params.get(C, 0)) for path in paths.values()
    ]
