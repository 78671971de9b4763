"""Lookup of features by number or by name, and of the kernel of an estimator."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from sklearn.utils.validation import check_is_fitted

from tessella.kernels import LearnedKernel


def model_of(estimator: Any, X: Any) -> Any:
    """Return the estimator to inspect: without X, the last step of a pipeline, which keeps rows."""
    return estimator[-1] if X is None and hasattr(estimator, "steps") else estimator


def feature_names(estimator: Any, count: int) -> list[str]:
    """Return the names that the estimator was fitted with, or x0, x1 and so on."""
    known = getattr(estimator, "feature_names_in_", None)
    return [f"x{j}" for j in range(count)] if known is None else [str(name) for name in known]


def names_of_model(estimator: Any, X: Any, count: int) -> list[str]:
    """Return the names of the features that the result of :func:`model_of` was fitted on."""
    model = model_of(estimator, X)
    if model is not estimator and not hasattr(model, "feature_names_in_"):
        with suppress(AttributeError, ValueError):  # a step that does not provide names
            return [str(name) for name in estimator[:-1].get_feature_names_out()]
    return feature_names(model, count)


def feature_index(feature: int | str, names: Sequence[str]) -> int:
    """Return the column of a feature that is given by its number or its name."""
    if isinstance(feature, str):
        if feature not in names:
            raise ValueError(f"There is no feature {feature!r}; the features are {list(names)}.")
        return list(names).index(feature)
    index = int(feature)
    if not -len(names) <= index < len(names):
        raise ValueError(f"There is no feature {index}: the model has {len(names)} features.")
    return index % len(names)


def one_kernel(estimator: Any) -> LearnedKernel:
    """Return the kernel of a fitted estimator that has a single kernel."""
    check_is_fitted(estimator, "kernel_")
    kernel = estimator.kernel_
    if isinstance(kernel, list):
        raise ValueError(
            f"The estimator has {len(kernel)} kernels, one for each pair of classes "
            "(multi_class='separate'). Draw one of them: from_kernel(estimator.kernel_[0])."
        )
    found: LearnedKernel = kernel
    return found


@contextmanager
def without_names() -> Iterator[None]:
    """Suppress the warning that a grid has no feature names although the training data had."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        yield
