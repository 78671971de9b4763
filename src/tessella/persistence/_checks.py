"""Checks of what a model file contains, beyond its checksums.

Checksums prove that a file is the one that was written, and not that a fit has given its values: a
program can write others, with checksums to match. A model with such values must not predict, nor
claim a certificate, so values that no fit gives are refused when a file is loaded.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tessella.cones import Blocks
from tessella.estimators import LearnedKernelRidgeClassifier, LearnedKernelSVC
from tessella.estimators._leaf_model import FittedLeaves
from tessella.kernels import LearnedKernel, UnitBox
from tessella.persistence._types import ModelFileError
from tessella.solvers import IterationRecord, SolverStatus
from tessella.svm import relative_gap

_NO_FIT = "the arrays of the model do not fit together."
_SAME_GAP = 1e-9  # relative difference of a gap from that of its bounds, or of weights from one

# Attributes that may be infinite or missing numbers: a row of a table can have gaps, and so can a
# column; a pair of features without an interaction is NaN.
_MAY_HAVE_GAPS = ("medians", "_rows")


def kernel_list(kernel: LearnedKernel | list[LearnedKernel]) -> list[LearnedKernel]:
    """Return the kernels of a model as a list. Most models have a single kernel."""
    return kernel if isinstance(kernel, list) else [kernel]


# ------------------------------------------------------------------------------- single values


def _no_such_value(name: str, value: Any) -> ModelFileError:
    return ModelFileError(f"{name} is {str(value)[:60]!r}, which no fit gives.")


def _require_number(
    name: str, value: Any, least: float = -np.inf, most: float = np.finfo(float).max
) -> None:
    """Raise an error unless a value is a number, not NaN, from the least to the greatest one."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not least <= value <= most:
        raise _no_such_value(name, value)


def _require_deviation(name: str, value: Any) -> None:
    """Raise an error unless a value is the deviation of numbers whose range does not overflow."""
    limits = np.finfo(float)
    _require_number(name, value, least=limits.smallest_subnormal, most=0.5 * limits.max)


def _require_count(name: str, value: Any, least: int = 0) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise _no_such_value(name, value)


def _require_finite(name: str, array: Any) -> None:
    """Raise an error unless a value is an array of finite numbers in float64."""
    if not isinstance(array, np.ndarray) or array.dtype != np.float64:
        raise ModelFileError(f"{name} is not an array of float64.")
    if not np.isfinite(array).all():
        raise ModelFileError(f"{name} has values that are not finite numbers.")


def _require_floats(name: str, value: Any) -> None:
    """Raise an error if a part of a kernel or of a machine has a number that is not finite."""
    for where, part in _floats_within(name, value):
        if not np.isfinite(part).all():
            raise ModelFileError(f"{where} has values that are not finite numbers.")


def _floats_within(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the floats and arrays of floats of nested values, with their names."""
    if isinstance(value, UnitBox):
        return  # the last knot of a constant feature is infinite
    if isinstance(value, float) or (isinstance(value, np.ndarray) and value.dtype.kind == "f"):
        yield name, value
    elif is_dataclass(value):
        for field in fields(value):
            if field.name not in _MAY_HAVE_GAPS:
                yield from _floats_within(f"{name}.{field.name}", getattr(value, field.name))
    elif isinstance(value, list | tuple | Blocks):
        for number, item in enumerate(value):
            yield from _floats_within(f"{name}.{number}", item)


def _require_box(box: Any, n_features: int) -> None:
    """Raise an error unless a scaling is an increasing map of some features to [0, 1]."""
    kept, counts, knots, heights = box.kept, box.counts, box.knots, box.heights
    ends = np.cumsum(counts)
    sound = (
        isinstance(box, UnitBox)
        and box.n_features_in == n_features
        and kept.dtype.kind == counts.dtype.kind == "i"
        and kept.shape == counts.shape
        and bool(((kept >= 0) & (kept < n_features)).all() and (np.diff(kept) > 0).all())
        and bool((counts >= 2).all())
        and knots.dtype == heights.dtype == np.float64
        and knots.shape == heights.shape == (int(counts.sum()),)
    )
    if not sound:
        raise ModelFileError("the scaling of the features does not fit the model.")
    within = np.ones(len(knots), dtype=bool)
    within[ends - 1] = False  # of each feature, the last knot has none behind it
    rising = (knots[:-1] < knots[1:]) & (heights[:-1] <= heights[1:])
    if not rising[within[:-1]].all() or not ((heights >= 0) & (heights <= 1)).all():
        raise ModelFileError("the scaling of the features is not an increasing map to [0, 1].")
    if not np.isfinite(knots[within]).all():
        raise ModelFileError("the scaling of the features has values that are not finite numbers.")


# -------------------------------------------------------------------- estimators with a kernel


def check_model(model: Any) -> None:
    """Raise an error if a model has values that no fit gives, or parts that do not match."""
    _check_shapes(model)
    _check_classes(model)
    for name in ("support_vectors_", "dual_coef_", "intercept_", "_sample_rows", "_training_range"):
        _require_finite(name, getattr(model, name))
    if "leaves_" in vars(model):
        _check_leaves(model)
    _check_support(model)
    for kernel in kernel_list(model.kernel_):
        _check_kernel(kernel, model._sample_rows, model.n_features_in_)
    _check_parameters(model)
    _check_certificate(model)
    _check_history(model)
    _check_range(model)
    _require_deviation("_target_scale", model._target_scale)
    if hasattr(model, "epsilon_"):
        _require_number("epsilon_", model.epsilon_, least=0.0)
    _check_predictions(model)


def _check_shapes(model: Any) -> None:
    """Raise an error if the parts of a model do not match; prediction would fail otherwise."""
    n_features = model.n_features_in_
    _require_count("n_features_in_", n_features, least=1)
    _require_count("_n_rows", model._n_rows, least=1)
    n_machines, count = model.dual_coef_.shape
    if (
        model._sample_rows.shape[1:] != (n_features,)
        or not len(model._sample_rows)
        or len(kernel_list(model.kernel_)) not in (1, n_machines)
        or model.support_vectors_.shape != (count, n_features)
        or model.support_.shape != (count,)
        or model._training_range.shape != (2, n_features)
        or model.intercept_.shape != _shape_of_intercepts(model)
    ):
        raise ModelFileError(_NO_FIT)
    names = getattr(model, "feature_names_in_", None)
    if names is not None and np.shape(names) != (n_features,):
        raise ModelFileError(_NO_FIT)
    proof = model._w_bound
    if proof is not None:
        _require_finite("_w_bound", proof)
        if proof.shape != (n_machines, model._n_rows):
            raise ModelFileError(_NO_FIT)


def _shape_of_intercepts(model: Any) -> tuple[int, ...]:
    """Return the shape of the intercepts: those of each leaf, or of each machine."""
    n_machines = len(model.dual_coef_)
    if "leaves_" not in vars(model):
        return (n_machines,)
    if not isinstance(model.leaves_, FittedLeaves):
        raise ModelFileError(_NO_FIT)
    return (len(model.leaves_.ends), n_machines)


def _check_leaves(model: Any) -> None:
    """Raise an error unless the partition and the base function fit the model."""
    leaves, base = model.leaves_, model.leaves_.base
    n_machines, n_support = model.dual_coef_.shape
    n_scaled = len(model.kernel_.box.kept)
    for name in ("support_vectors", "dual_coef", "intercept"):
        _require_finite(f"leaves_.base.{name}", getattr(base, name))
    if not leaves.is_sound(n_support, n_machines, model.n_features_in_, n_scaled):
        raise ModelFileError(_NO_FIT)
    _check_kernel(base.kernel, model._sample_rows, model.n_features_in_)


def _check_classes(model: Any) -> None:
    """Raise an error if the number of machines is not that of the classes."""
    n_machines = len(model.dual_coef_)
    if isinstance(model, LearnedKernelSVC):
        n_classes = _count_classes(model)
        if n_machines != n_classes * (n_classes - 1) // 2:
            raise ModelFileError(
                f"a classifier of {n_classes} classes cannot have {n_machines} machines."
            )
    elif isinstance(model, LearnedKernelRidgeClassifier):
        n_classes = _count_classes(model)
        if n_machines != (1 if n_classes == 2 else n_classes):
            raise ModelFileError(
                f"a ridge classifier of {n_classes} classes cannot have {n_machines} outputs."
            )
    elif n_machines != 1:
        raise ModelFileError("a regressor must have one machine.")


def _count_classes(model: Any) -> int:
    """Return the number of the classes; raise an error if they are not sorted or not distinct."""
    classes = model.classes_
    if not isinstance(classes, np.ndarray) or classes.ndim != 1 or len(classes) < 2:
        raise _no_such_value("classes_", classes)
    if not np.array_equal(np.unique(classes), classes):
        raise ModelFileError("the classes of the model are not sorted or not distinct.")
    return len(classes)


def _check_support(model: Any) -> None:
    support = model.support_
    if support.dtype.kind != "i" or not (
        ((support >= 0) & (support < model._n_rows)).all() and _ascends(model)
    ):
        raise ModelFileError("support_ does not have the positions of training rows.")


def _ascends(model: Any) -> bool:
    """Return whether the rows of each leaf, or of the model, are given once and in order."""
    steps = np.diff(model.support_)
    if "leaves_" not in vars(model):
        return bool((steps > 0).all())
    # Rows of a leaf are in the order of their values, and the same row is in a leaf of each tree.
    ends = model.leaves_.ends
    parts = np.split(model.support_, ends[:-1])
    return all(len(np.unique(part)) == len(part) for part in parts)


def _check_range(model: Any) -> None:
    """Raise an error unless the rows that a model keeps are within the range of its rows."""
    low, high = model._training_range
    if not (low <= high).all():
        raise ModelFileError("the training range ends before it begins.")
    for name in ("support_vectors_", "_sample_rows"):
        rows = getattr(model, name)
        if not ((rows >= low) & (rows <= high)).all():
            raise ModelFileError(f"{name} has rows that are outside the training range.")


def _check_predictions(model: Any) -> None:
    """Raise an error unless the scores of a training row are finite numbers.

    They are computed by a copy, because a prediction adds what it has prepared to a model.
    """
    try:
        with np.errstate(all="ignore"):
            scores = copy(model)._machine_scores(model._sample_rows[:1], 1) + model._constants
    except (IndexError, TypeError, ValueError) as error:  # parts with other numbers of features
        raise ModelFileError(_NO_FIT) from error
    if not np.isfinite(scores).all():
        raise ModelFileError(f"{_NO_FIT} The score of a training row is not a finite number.")


def _check_kernel(kernel: Any, rows: NDArray[np.float64], n_features: int) -> None:
    """Raise an error unless the parameter is one of the kernel set and the kernel has values."""
    if not isinstance(kernel, LearnedKernel):
        raise ModelFileError(_NO_FIT)
    _require_box(kernel.box, n_features)
    if not kernel.kernels.cone(len(kernel.box.kept)).contains(kernel.parameter):
        raise ModelFileError(
            f"{_NO_FIT} The parameter of the kernel is not one that its kernel set can have, such "
            "as a positive semidefinite matrix of the right trace."
        )
    _require_floats("kernel_", kernel.kernels)
    try:
        values = kernel.diag(rows[:1])
    except (IndexError, ValueError) as error:  # a part has another number of features
        raise ModelFileError(_NO_FIT) from error
    if not (np.isfinite(values) & (values >= 0)).all():
        raise ModelFileError(f"{_NO_FIT} The kernel of a row with itself is {values[0]}.")


def _check_parameters(model: Any) -> None:
    """Raise an error if the published parameter is not that of the kernel."""
    kernels, published = kernel_list(model.kernel_), model.parameter_
    several = published if isinstance(model.kernel_, list) else [published]
    if len(several) != len(kernels) or not all(
        _same(kernel.parameter, own) for kernel, own in zip(kernels, several, strict=True)
    ):
        raise ModelFileError(f"{_NO_FIT} parameter_ is not the parameter of the kernel.")


def _same(left: Any, right: Any) -> bool:
    if isinstance(left, Blocks) and isinstance(right, Blocks):
        pairs = list(zip(left, right, strict=False))
        return len(left) == len(right) and all(_same(a, b) for a, b in pairs)
    return not isinstance(left, Blocks) and np.array_equal(left, right)


def _check_certificate(model: Any) -> None:
    """Raise an error unless the gap is that of the two bounds."""
    value, bound, gap = model.objective_, model.lower_bound_, model.gap_
    _require_number("objective_", value, most=np.inf)
    _require_number("lower_bound_", bound)
    _require_number("gap_", gap, least=0.0, most=np.inf)
    expected = relative_gap(value, bound)
    # An infinite gap is no neighbour of any other: the difference would be within all bounds.
    near = np.isfinite(expected) and abs(gap - expected) <= _SAME_GAP * (1.0 + expected)
    if not (gap == expected or near):
        raise ModelFileError(f"gap_ is {gap!r}, but the gap of the two bounds is {expected!r}.")
    _require_count("n_iter_", model.n_iter_)
    if model.status_ not in [status.value for status in SolverStatus]:
        raise _no_such_value("status_", model.status_)
    if not isinstance(model.solver_, str):
        raise _no_such_value("solver_", model.solver_)


def _check_history(model: Any) -> None:
    """Raise an error unless the history has records of iterations, and scores are numbers."""
    histories = model.history_ if isinstance(model.history_, list) else [model.history_]
    for history in histories:
        if not all(isinstance(own, IterationRecord) and own.is_sound for own in history):
            raise ModelFileError("history_ has records that no fit gives.")
    scores = model.validation_scores_
    for own in scores if isinstance(scores, list) else [scores]:
        if own is not None and not (isinstance(own, np.ndarray) and own.dtype == np.float64):
            raise _no_such_value("validation_scores_", own)


# ---------------------------------------------------------------------------- automatic models


def check_automatic(model: Any) -> None:
    """Raise an error if an automatic model has values that no fit gives, or parts that differ."""
    if not model._is_consistent():
        raise ModelFileError(_NO_FIT)
    for member in model.members_:
        _require_floats("members_", member)
        _require_number("members_.share", member.share, least=0.0)
        _require_number("members_.gap", member.gap, least=0.0, most=np.inf)
        _require_number("members_.machine.C", member.machine.C, least=0.0)
        space = member.machine.space
        _require_box(space.box, space.box.n_features_in)
        own = getattr(member.machine.kernel, "kernel", None)
        if own is not None:
            _check_kernel(own, space.coordinates, space.coordinates.shape[1])
    total = sum(member.share for member in model.members_)
    if not abs(total - 1.0) <= _SAME_GAP:
        raise ModelFileError(f"the weights of the members sum to {total!r}, and not to one.")
    _require_number("gap_", model.gap_, least=0.0, most=np.inf)
    _require_number("fit_time_", model.fit_time_, least=0.0)
    if hasattr(model, "classes_"):
        _count_classes(model)
        _require_finite("_calibration", model._calibration)
        return
    _require_number("_mean", model._mean)
    _require_deviation("_deviation", model._deviation)
    _require_finite("_residuals", model._residuals)
    _require_finite("_residual_weight", model._residual_weight)
    if model._residuals.shape != model._residual_weight.shape or (model._residual_weight < 0).any():
        raise ModelFileError(_NO_FIT)
