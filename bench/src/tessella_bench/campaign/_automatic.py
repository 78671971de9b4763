"""Automatic models: the certificates of their members, their averages and their scores.

A member is a machine with a given kernel on the distinct rows of the table, in an order that does
not depend on how they were given: by the bytes of target and features. Its kernel is computed here
from the formula of its family in extended precision, the outputs are rebuilt from the data, and
both bounds follow from its published coefficients and intercepts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tessella_bench.campaign._certificates import Machine, Units, rounding_of
from tessella_bench.campaign._definitions import Long, LongArray, family_of, scaled_rows

_SMALLEST_MARGIN = 1e-3  # of a tessellated kernel, from the documentation of the family
_FEASIBLE = 1e-7  # by how much coefficients may miss their bounds
_COORDINATES = 1e-9  # by how much coordinates may miss those of the scaling, relative to one
_AGREE = 1e-7  # by how much predictions may miss the average of the members, in deviations
# A constant is one of the machines that a search compares, up to what its C adds to it.
_CONSTANT = 1e-5


@dataclass(frozen=True)
class _Rows:
    """The distinct rows of a table, with their outputs and weights.

    Attributes
    ----------
    X : ndarray of shape (m, n)
        Features.
    Y : ndarray of shape (m, k)
        Standardised target, or indicators of the classes.
    weight : ndarray of shape (m,)
        Weights, whose mean is one.
    units : Units
        Units of a regression target.
    """

    X: NDArray[np.float64]
    Y: LongArray
    weight: LongArray
    units: Units


def automatic_faults(model: Any, X: Any, y: Any, sample_weight: Any = None) -> list[str]:
    """Return what is wrong with the claims of an automatic model, in one sentence each.

    Parameters
    ----------
    model : TessellaClassifier or TessellaRegressor
        A fitted model.
    X : ndarray of shape (n_samples, n_features)
        Its training rows, which are numbers without gaps.
    y : ndarray of shape (n_samples,)
        Its labels or targets.
    sample_weight : ndarray of shape (n_samples,), optional
        Its sample weights.

    Returns
    -------
    list of str
        Empty if every member is as good as its gap says, the model predicts the average of its
        members and classes of the largest probability, and its own leave-one-out error is not
        worse than that of a constant.
    """
    rows = _rows(model, X, y, sample_weight)
    found = [fault for member in model.members_ for fault in _member_faults(member, rows)]
    shares = [member.share for member in model.members_]
    if not (min(shares) > 0 and abs(sum(shares) - 1) <= 1e-9):
        found.append(f"The weights of the members are {shares}.")
    if model.gap_ != max(member.gap for member in model.members_):
        found.append(f"gap_={model.gap_!r} is not the largest one of the members.")
    return found + _prediction_faults(model, rows) + _score_faults(model, rows)


def _rows(model: Any, X: Any, y: Any, sample_weight: Any) -> _Rows:
    """Return the distinct rows of positive weight in the order of the members."""
    weight = np.ones(len(X)) if sample_weight is None else np.asarray(sample_weight, dtype=float)
    codes = np.asarray(y)
    if hasattr(model, "classes_"):
        codes = np.array([list(model.classes_).index(label) for label in y])
    table = np.column_stack([codes.astype(np.float64), X]) + 0.0
    sums: dict[bytes, Any] = {}
    place: dict[bytes, int] = {}
    for k, row in enumerate(table):
        if weight[k] > 0:
            key = row.tobytes()
            place.setdefault(key, k)
            sums[key] = sums.get(key, Long(0)) + Long(weight[k])
    order = sorted(sums)
    kept = np.array([place[key] for key in order])
    total = np.array([sums[key] for key in order], dtype=Long)
    units = Units.of(model, codes[kept], total)
    if hasattr(model, "classes_"):
        Y = np.eye(len(model.classes_), dtype=Long)[codes[kept].astype(int)]
    else:
        Y = units.standardised(codes[kept])[:, None]
    return _Rows(table[kept, 1:], Y, total / total.mean(), units)


# ------------------------------------------------------------------------------------- members


def _member_faults(member: Any, rows: _Rows) -> list[str]:
    """Return what is wrong with the certificate of a member."""
    machine, A = member.machine, np.asarray(member.machine.space.coordinates, dtype=Long)
    expected = scaled_rows(machine.space.box, rows.X)
    if A.shape != expected.shape or not np.abs(A - expected).max(initial=0) <= _COORDINATES:
        return ["The coordinates of a member are not those of its rows."]
    if len(member.intercept) != 1:
        return ["A few dozen rows were divided into leaves."]
    if _beyond_its_box(machine.kernel, A):
        return []
    K, size = _kernel_and_size(machine.kernel, A)
    outputs, target_size = _forward(machine.target, rows.Y)
    C, epsilon = Long(machine.C) * rows.weight, Long(getattr(machine.loss, "epsilon", 0.0))
    everything = np.arange(len(A))
    bounds = []
    for k, target in enumerate(outputs.T):
        own = Machine(everything, target, C, epsilon, machine.loss.name)
        values = np.asarray(member.coef[0, :, k], Long), Long(member.intercept[0, k])
        bounds.append(_bounds(own, K, size, *values, target_size[:, k]))
    if machine.loss.name == "squared":  # one certificate for all outputs
        *sums, missed = zip(*bounds, strict=True)
        bounds = [(*map(sum, sums), max(missed))]
    return [fault for own in bounds for fault in _gap_faults(member, *own)]


def _bounds(
    machine: Machine,
    K: LongArray,
    size: LongArray,
    w: LongArray,
    intercept: Any,
    target_size: LongArray,
) -> tuple[Any, ...]:
    """Return primal, dual, rounding and infeasibility of one output."""
    scores = K @ w
    primal = w @ scores / 2 + machine.value(scores + intercept)
    nearest = machine.feasible(w)
    dual = machine.kappa(nearest) - nearest @ (K @ nearest) / 2
    largest = np.abs(w).max(initial=0)
    missed = np.abs(nearest - w).max() / largest if largest > 0 else Long(0)
    return primal, dual, rounding_of(machine, size, w, scores + intercept, target_size), missed


def _gap_faults(member: Any, primal: Any, dual: Any, rounding: Any, missed: Any) -> list[str]:
    found = []
    if not (np.isfinite(member.gap) and member.gap >= 0):
        found.append(f"The gap of a member is {member.gap!r}.")
    if missed > _FEASIBLE:
        found.append(f"The coefficients of a member are infeasible by {float(missed):.2e}.")
    if not primal - dual <= member.gap * abs(primal) + 2 * rounding:
        gap = float((primal - dual) / abs(primal)) if primal else np.inf
        found.append(f"The gap of a member is {gap!r}, not {member.gap!r}.")
    return found


def _beyond_its_box(kernel: Any, A: LongArray) -> bool:
    """Return whether some rows are outside the box of a kernel that was learned from others.

    What the kernel is there is a convention about corners, and not a formula that could be checked
    to the last digits.
    """
    if not kernel.learned:
        return False
    own = kernel.kernel.box.apply(A.astype(np.float64))
    delta = np.asarray(kernel.kernel.kernels.delta)
    return bool((own < -delta).any() or (own > 1 + delta).any())


def _kernel_and_size(kernel: Any, A: LongArray) -> tuple[LongArray, LongArray]:
    """Return the kernel matrix of a member, and the sizes of the terms of its entries."""
    if kernel.learned:
        own = kernel.kernel
        family = family_of(own.kernels, own.box.apply(A.astype(np.float64)).astype(Long))
        return family.matrix(own.parameter), family.size(own.parameter)
    scales = np.asarray(kernel.scales, dtype=Long)
    K = _FAMILIES[kernel.family](A, scales)
    # Exponents are sums of these sizes, and their errors are relative errors of the kernel.
    norms = ((1 + np.exp(scales) * np.abs(A)) ** 2).sum(axis=1)
    return K, K * (1 + norms[:, None] + norms[None, :])


def _pairs(A: LongArray) -> LongArray:
    return np.abs(A[:, None, :] - A[None, :, :])


def _laplace(A: LongArray, scales: LongArray) -> LongArray:
    return np.exp(-(np.exp(scales) * _pairs(A)).sum(axis=2))


def _gaussian(A: LongArray, scales: LongArray) -> LongArray:
    return np.exp(-(np.exp(2 * scales) * _pairs(A) ** 2).sum(axis=2) / 2)


def _matern(A: LongArray, scales: LongArray) -> LongArray:
    r = np.sqrt(3 * (np.exp(2 * scales) * _pairs(A) ** 2).sum(axis=2))
    return (1 + r) * np.exp(-r)


def _tessellated(A: LongArray, scales: LongArray) -> LongArray:
    edge = 1 + np.maximum(np.exp(-scales), Long(_SMALLEST_MARGIN))
    left, right = A[:, None, :], A[None, :, :]
    ratios = (edge - np.maximum(left, right)) / (edge - np.minimum(left, right))
    return np.sqrt(np.prod(ratios, axis=2))


_FAMILIES: dict[str, Callable[[LongArray, LongArray], LongArray]] = {
    "laplace": _laplace,
    "gaussian": _gaussian,
    "matern": _matern,
    "tessellated": _tessellated,
}


def _forward(target: Any, Y: LongArray) -> tuple[LongArray, LongArray]:
    """Return what a machine is fitted to, and the sizes of the terms that cancel in it."""
    if target.name == "margin":
        labels = 2 * (Y[:, 1:] if Y.shape[1] == 2 else Y) - 1
        return labels, np.zeros_like(labels)
    if target.name == "logarithm":
        positive = Long(target.sign) * Y + Long(target.shift)
        logs, deviation = np.log(positive), Long(target.deviation)
        lost = (np.abs(Y) + np.abs(Long(target.shift))) / positive + np.abs(logs)
        mean = Long(target.mean)
        return (logs - mean) / deviation, (lost + np.abs(mean)) / deviation
    return Y, np.zeros_like(Y)


# ------------------------------------------------------------------------ predictions and scores


def _prediction_faults(model: Any, rows: _Rows) -> list[str]:
    predicted = model.predict(rows.X)
    if hasattr(model, "classes_"):
        chances = model.predict_proba(rows.X)
        if not (np.isfinite(chances).all() and np.abs(chances.sum(axis=1) - 1).max() <= 1e-9):
            return ["The probabilities of the classes do not sum to one."]
        if not (predicted == model.classes_[np.argmax(chances, axis=1)]).all():
            return ["predict and predict_proba disagree."]
        return []
    if not np.isfinite(predicted).all():
        return ["The predictions are not finite."]
    machines = [member.machine for member in model.members_]
    if any(_beyond_its_box(own.kernel, own.space.coordinates) for own in machines):
        return []
    average = sum(Long(member.share) * _outputs(member) for member in model.members_)
    worst = np.abs(rows.units.standardised(predicted) - average[:, 0]).max()
    size = 1 + np.abs(average).max() + rows.units.resolution / _AGREE
    if not worst <= _AGREE * size:
        return [f"The predictions miss the average of the members by {float(worst):.2e}."]
    return []


def _outputs(member: Any) -> LongArray:
    """Return the predictions of a member of a regression for its training rows."""
    machine = member.machine
    A = np.asarray(machine.space.coordinates, dtype=Long)
    K, _ = _kernel_and_size(machine.kernel, A)
    scores = K @ np.asarray(member.coef[0], Long) + np.asarray(member.intercept[0], Long)
    target = machine.target
    if target.name != "logarithm":
        return scores
    bounded = np.clip(scores, target.low, target.high)
    positive = np.exp(bounded * Long(target.deviation) + Long(target.mean))
    return Long(target.sign) * (Long(machine.factor) * positive - Long(target.shift))


def _score_faults(model: Any, rows: _Rows) -> list[str]:
    """Compare leave-one-out errors with those of the mean of all other rows."""
    best = float(model.leaderboard_[0]["error"])
    constant = float(_error_of_a_constant(rows))
    found = []
    if not best <= constant * (1 + _CONSTANT):
        found.append(f"The best leave-one-out error {best!r} is above {constant!r} of a constant.")
    if not hasattr(model, "classes_") and constant > 0:
        error = (1 - model.loo_score_) * float(_share(rows) @ rows.Y[:, 0] ** 2)
        # The score is that of predictions in units of y, each of which is rounded.
        unit = float(rows.units.resolution)
        if not error <= constant * (1 + _CONSTANT) + 2 * unit * constant**0.5 + unit**2:
            found.append(f"The leave-one-out error {error!r} is above {constant!r} of a constant.")
    return found


def _share(rows: _Rows) -> LongArray:
    return rows.weight / rows.weight.sum()


def _error_of_a_constant(rows: _Rows) -> Any:
    """Return the largest squared error of a constant that leave-one-out can mean.

    A row of weight k may be left out whole. If it is one of k rows instead, the error is smaller.
    """
    share = _share(rows)
    rest = 1 - share
    if (rest <= 0).any():
        return Long(np.inf)
    without = (share @ rows.Y - share[:, None] * rows.Y) / rest[:, None]
    return share @ ((rows.Y - without) ** 2).sum(axis=1)
