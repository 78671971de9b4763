"""Features by number or by name, and the kernel of an estimator."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from sklearn.utils.validation import check_is_fitted

from tessella.kernels import LearnedKernel


def model_of(estimator: Any, X: Any) -> Any:
    """The estimator to look at: of a pipeline without data, its last step, which has its own."""
    return estimator[-1] if X is None and hasattr(estimator, "steps") else estimator


def feature_names(estimator: Any, count: int) -> list[str]:
    """Names that the estimator was fitted with, or x0, x1, and so on."""
    known = getattr(estimator, "feature_names_in_", None)
    return [f"x{j}" for j in range(count)] if known is None else [str(name) for name in known]


def names_of_model(estimator: Any, X: Any, count: int) -> list[str]:
    """Names of the features of :func:`model_of`: for the last step of a pipeline, those it sees."""
    model = model_of(estimator, X)
    if model is not estimator and not hasattr(model, "feature_names_in_"):
        with suppress(AttributeError, ValueError):  # of a step that cannot tell
            return [str(name) for name in estimator[:-1].get_feature_names_out()]
    return feature_names(model, count)


def feature_index(feature: int | str, names: Sequence[str]) -> int:
    """Column of a feature given by its number or its name."""
    if isinstance(feature, str):
        if feature not in names:
            raise ValueError(f"There is no feature {feature!r}; there are {list(names)}.")
        return list(names).index(feature)
    index = int(feature)
    if not -len(names) <= index < len(names):
        raise ValueError(f"There is no feature {index}: the model has {len(names)}.")
    return index % len(names)


def one_kernel(estimator: Any) -> LearnedKernel:
    """The kernel of a fitted estimator that has a single one."""
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
    """Let estimators that were fitted with names take rows without: those made on a grid."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        yield
