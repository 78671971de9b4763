"""Certificates of fitted models, computed again from the data by a slow implementation.

The problem of a model is rebuilt from what its documentation says (labels by pairs of classes,
standardised targets, the weights of rows and classes), the kernel matrices come from
:mod:`tessella_bench.campaign._definitions`, and both bounds are computed in extended precision from
the published coefficients, intercepts and parameter. Nothing is imported from the library.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tessella_bench.campaign._definitions import Family, Long, LongArray, family_of, scaled_rows

# Rounding errors in units of double precision: of a kernel value beside those of its sums, and of
# the sum of coefficients, which a solver keeps at zero during some thousand steps.
_UNITS, _DUAL_UNITS = 16, 64
_UNSEEN = 1e-6  # part of the tolerance that the library leaves to the rounding of predictions
_FEASIBLE = 1e-7  # by how much a parameter may miss its feasible set
_FIXED_WEIGHTS = ("average", "alignment", "performance")


@dataclass(frozen=True)
class Recomputed:
    """The certificate of a model, computed again.

    Attributes
    ----------
    primal : float
        Primal value of the published kernel, coefficients and intercepts: an upper bound of the
        optimum.
    attained : float
        Primal value of the predictions that the model makes for its training rows.
    dual : float
        Lower bound of the optimum that the coefficients of the model prove, or those that it keeps
        for this purpose.
    rounding : float
        What rounding in double precision may have changed in a primal value of this problem.
    dual_rounding : float
        What it may have changed in the lower bound.
    publishing : float
        What rounding the intercept to a number in units of y may have changed in `primal`.
    infeasibility : float
        By how much the published parameter and coefficients miss their feasible sets, relative to
        their sizes.
    """

    primal: float
    attained: float
    dual: float
    rounding: float
    dual_rounding: float
    publishing: float
    infeasibility: float

    @property
    def gap(self) -> float:
        """Relative gap of the two bounds; infinite if one of them is not a number."""
        if not (np.isfinite(self.primal) and np.isfinite(self.dual)):
            return np.inf
        if self.primal == self.dual:
            return 0.0
        return (self.primal - self.dual) / abs(self.primal) if self.primal else np.inf


@dataclass(frozen=True)
class Machine:
    """One machine of a model, on the rows that it sees.

    Attributes
    ----------
    rows : ndarray of int
        Positions of its rows among the distinct rows.
    target : ndarray
        Labels -1 and +1, or standardised targets.
    C : ndarray
        Weight of the loss of each row.
    epsilon : longdouble
        Half-width of the tube; zero for other losses.
    loss : {"hinge", "tube", "squared"}
        Kind of the loss.
    """

    rows: NDArray[np.intp]
    target: LongArray
    C: LongArray
    epsilon: Any
    loss: str

    def value(self, scores: LongArray) -> Any:
        """Return the loss of the scores of its rows."""
        if self.loss == "hinge":
            return self.C @ np.maximum(1 - self.target * scores, 0)
        residual = self.target - scores
        if self.loss == "tube":
            return self.C @ np.maximum(np.abs(residual) - self.epsilon, 0)
        return self.C @ residual**2 / 2

    def kappa(self, w: LongArray) -> Any:
        """Return the part of the dual value that does not depend on the kernel."""
        total = self.target @ w
        if self.loss == "tube":
            total -= self.epsilon * np.abs(w).sum()
        if self.loss == "squared":
            total -= (w**2 / self.C).sum() / 2
        return total

    def feasible(self, w: LongArray) -> LongArray:
        """Return the nearest dual vector, nearly, within the bounds and with the sum zero."""
        if self.loss == "squared":
            return w - w.mean()
        if self.loss == "hinge":
            w = self.target * np.clip(self.target * w, 0, self.C)
        else:
            w = np.clip(w, -self.C, self.C)
        above, below = w[w > 0].sum(), -w[w < 0].sum()
        if above > below:
            return np.where(w > 0, w * (below / above), w)
        return np.where(w < 0, w * (above / below), w) if below > 0 else w


def recompute(model: Any, X: Any, y: Any, sample_weight: Any = None) -> Recomputed:
    """Compute the certificate of a fitted model again.

    Parameters
    ----------
    model : estimator
        A fitted LearnedKernelSVC, LearnedKernelSVR, LearnedKernelRidge,
        LearnedKernelRidgeClassifier, MultipleKernelSVC or MultipleKernelSVR, without early
        stopping.
    X : array-like of shape (n_samples, n_features)
        Its training rows.
    y : array-like of shape (n_samples,)
        Its labels or targets.
    sample_weight : array-like of shape (n_samples,), optional
        Its sample weights.

    Returns
    -------
    Recomputed
    """
    if getattr(model, "early_stopping", False):
        raise ValueError("The rows that early stopping held out are not published.")
    X = np.asarray(X, dtype=np.float64)
    weight = np.ones(len(X)) if sample_weight is None else np.asarray(sample_weight, dtype=float)
    distinct, of_given = _distinct_rows(X, np.asarray(y), weight)
    rows, total = _merged(X, np.asarray(y), weight, distinct, of_given)
    units = Units.of(model, rows[1], total)
    machines = _machines(model, rows[1], total, units)
    coefficients = _coefficients(model, of_given, len(distinct)) / units.scale
    witness = _witness(model, distinct, coefficients)
    intercepts = units.standardised(model.intercept_)
    predicted = units.standardised(_predicted(model, rows[0]))
    parts = []
    if isinstance(model.kernel_, list):  # a problem of its own for each pair of classes
        for k, machine in enumerate(machines):
            own = _problem(model, k, rows[0], [machine])
            chosen = (coefficients[[k]], witness[[k]], intercepts[[k]], predicted[:, [k]])
            parts.append(_bounds(*own, *chosen))
    else:
        own = _problem(model, None, rows[0], machines)
        parts.append(_bounds(*own, coefficients, witness, intercepts, predicted))
    bounds = np.array(parts, dtype=Long)
    primal, attained, dual, rounding, in_dual = map(float, bounds[:, :5].sum(axis=0))
    publishing = float(sum(_moved_by(machine, units.resolution) for machine in machines))
    missed = float(bounds[:, 5].max())
    return Recomputed(primal, attained, dual, rounding, in_dual, publishing, missed)


def _moved_by(machine: Machine, shift: Any) -> Any:
    """Return by how much a shift of the intercept may change the loss of a machine."""
    if machine.loss == "squared":
        return machine.C @ ((np.abs(machine.target) + 1) * shift + shift**2 / 2)
    return machine.C.sum() * shift


def faults(model: Any, X: Any, y: Any, sample_weight: Any = None) -> list[str]:
    """Return what is wrong with the published certificate of a model, in one sentence each.

    Parameters
    ----------
    model, X, y, sample_weight
        See :func:`recompute`.

    Returns
    -------
    list of str
        Empty if the published value is attained, the published bound is proved, and `gap_` and
        `status_` follow from the two.
    """
    return faults_by(model, recompute(model, X, y, sample_weight))


def faults_by(model: Any, own: Recomputed) -> list[str]:
    """Return what is wrong with a certificate that was computed again; see :func:`faults`."""
    value, bound, gap = float(model.objective_), float(model.lower_bound_), float(model.gap_)
    found = []
    if not np.isfinite([value, bound]).all():
        if model.status_ == "optimal" or gap <= model.tol:
            found.append(f"objective_={value} and lower_bound_={bound} were called optimal.")
        return found
    # What rounding the predictions to numbers in units of y can change is part of objective_ where
    # the library finds it to be more than a millionth of the tolerance. The intercept is rounded by
    # half a unit of the largest target, and so are the sum and the kernel part before it.
    unseen = min(2 * own.publishing, _UNSEEN * model.tol * abs(value))
    if own.infeasibility > _FEASIBLE:
        found.append(
            f"The parameter or the coefficients are infeasible by {own.infeasibility:.2e}."
        )
    if not own.primal <= value + own.rounding + own.publishing:
        found.append(f"The published model attains {own.primal!r}, not objective_={value!r}.")
    if not own.attained <= value + own.rounding + unseen:
        found.append(f"The predictions attain {own.attained!r}, not objective_={value!r}.")
    if not own.dual >= bound - own.dual_rounding:
        found.append(f"lower_bound_={bound!r} is not proved: the dual value is {own.dual!r}.")
    if not own.dual <= value + own.dual_rounding + own.rounding:
        found.append(f"objective_={value!r} is below the dual value {own.dual!r}.")
    published = (value - bound) / abs(value) if value else float(value != bound)
    # Bounds that rounding has exchanged have no gap, or one of the size of their contradiction.
    possible = (max(0.0, published), abs(published))
    if not any(abs(gap - own) <= 1e-9 * (1.0 + own) for own in possible):
        found.append(f"gap_={gap!r} is not that of the bounds, {published!r}.")
    if model.status_ == "optimal" and not gap <= model.tol:
        found.append(f"gap_={gap!r} above tol={model.tol!r} was called optimal.")
    return found


def missed(model: Any, own: Recomputed) -> float:
    """Return by how much a model misses the larger one of its claims, rounding or not."""
    return max(own.attained - float(model.objective_), float(model.lower_bound_) - own.dual)


def _problem(
    model: Any, k: int | None, X: NDArray[np.float64], machines: Sequence[Machine]
) -> tuple[Family, Any, list[Machine], bool]:
    """Return the family on the rows of a problem, its parameter, machines, and if it is fixed."""
    kernel = model.kernel_ if k is None else model.kernel_[k]
    fixed = getattr(model, "weighting", None) in _FIXED_WEIGHTS
    family = family_of(kernel.kernels, scaled_rows(kernel.box, X), model.kernels)
    return family, kernel.parameter, list(machines), fixed


def _bounds(
    family: Family,
    parameter: Any,
    machines: Sequence[Machine],
    fixed: bool,
    coefficients: LongArray,
    witness: LongArray,
    intercepts: LongArray,
    predicted: LongArray,
) -> tuple[Any, ...]:
    """Return primal, attained and dual value, their rounding and infeasibility of one problem."""
    K, size = family.matrix(parameter), family.size(parameter)
    primal = attained = rounding = Long(0)
    for k, machine in enumerate(machines):
        scores, own = K @ coefficients[k], machine.rows
        norm = coefficients[k] @ scores / 2
        primal += norm + machine.value(scores[own] + intercepts[k])
        attained += norm + machine.value(predicted[own, k])
        rounding += rounding_of(machine, size, coefficients[k], scores[own] + intercepts[k])
    vectors = (coefficients,) if witness is coefficients else (coefficients, witness)
    duals = [_dual(family, K, machines, fixed, W) for W in vectors]
    worst = max(family.infeasibility(parameter), abs(family.trace(parameter) - 1.0), duals[0][2])
    # The vector that may prove most: one with large entries has a value that is mostly rounding.
    dual, in_dual, _ = max(duals, key=lambda own: own[0] + own[1])
    return primal, attained, dual, rounding, in_dual, worst


def _dual(
    family: Family, K: LongArray, machines: Sequence[Machine], fixed: bool, given: LongArray
) -> tuple[Any, Any, float]:
    """Return the lower bound that some coefficients prove, its rounding, and their infeasibility.

    The coefficients are rounded, and so is their sum, which has to be zero: the nearest vector with
    that sum differs by a unit of the last place for each of them. Errors count twice, once for the
    library and once for that.
    """
    W, kappa, size, worst = np.zeros_like(given), Long(0), Long(0), 0.0
    for k, machine in enumerate(machines):
        W[k, machine.rows] = machine.feasible(given[k, machine.rows])
        own = W[k, machine.rows]
        kappa += machine.kappa(own)
        size += np.abs(own) @ (np.abs(machine.target) + machine.epsilon)
        if machine.loss == "squared":
            size += (own**2 / machine.C).sum()
        largest_coefficient = np.abs(given[k]).max(initial=0)
        if largest_coefficient > 0:
            worst = max(worst, float(np.abs(W[k] - given[k]).max() / largest_coefficient))
    largest = sum(w @ (K @ w) for w in W) if fixed else family.support(W)
    units = 2 * (_DUAL_UNITS + W.shape[1]) * Long(np.finfo(np.float64).eps)
    return kappa - largest / 2, units * (size + family.support_size(W)), worst


def rounding_of(
    machine: Machine, size: LongArray, w: LongArray, scores: LongArray, target_size: Any = 0
) -> Any:
    """Return a bound of the rounding errors of double precision in the values of one machine.

    A score is a sum of m products of coefficients and kernel values, which are sums themselves. Its
    error is at most as many units of the last place of the sum of the sizes of all terms as there
    are operations on the way of one term: m for the sum, and some for the kernel value. A value
    changes by that times the slope of the loss, which is at most the weight of the row for the
    hinge and the tube, and zero for rows that stay beyond the hinge or in the tube. The squared
    loss has the weight times the residual as its slope, and changes by half the weight times the
    square of the error on top of that.

    Parameters
    ----------
    machine : Machine
        The machine.
    size : ndarray of shape (m, m)
        Sums of the sizes of the terms of the kernel values, from :meth:`Family.size`.
    w : ndarray of shape (m,)
        Its coefficients.
    scores : ndarray of shape (m,)
        Its scores of its own rows, with the intercept.
    target_size : ndarray of shape (m,) or 0
        Sizes of terms that cancel in the target, beside the target itself.
    """
    spread = size @ np.abs(w)
    units = (_UNITS + len(w)) * Long(np.finfo(np.float64).eps)
    # The intercept is the difference of a score and its kernel part, of which one is not smaller.
    terms = np.abs(machine.target) + target_size + 2 * spread[machine.rows] + np.abs(scores)
    errors = units * terms
    residual = np.abs(machine.target - scores)
    if machine.loss == "squared":
        change = machine.C @ (residual * errors + errors**2 / 2)
    elif machine.loss == "tube":
        change = machine.C @ np.where(residual + errors > machine.epsilon, errors, 0)
    else:
        change = machine.C @ np.where(1 - machine.target * scores + errors > 0, errors, 0)
    return change + units * (np.abs(w) @ spread)


def _distinct_rows(
    X: NDArray[np.float64], y: NDArray[Any], weight: NDArray[np.float64]
) -> tuple[list[int], list[int]]:
    """Return the first of each set of equal rows of positive weight, and the set of each row."""
    seen: dict[tuple[Any, ...], int] = {}
    distinct: list[int] = []
    of_given: list[int] = []
    for k in range(len(X)):
        if not weight[k] > 0:
            of_given.append(-1)
            continue
        key = (y[k], *(float(value) + 0.0 for value in X[k]))
        if key not in seen:
            seen[key] = len(distinct)
            distinct.append(k)
        of_given.append(seen[key])
    return distinct, of_given


def _merged(
    X: NDArray[np.float64],
    y: NDArray[Any],
    weight: NDArray[np.float64],
    distinct: Sequence[int],
    of_given: Sequence[int],
) -> tuple[tuple[NDArray[np.float64], NDArray[Any]], LongArray]:
    total = np.zeros(len(distinct), Long)
    for k, place in enumerate(of_given):
        if place >= 0:
            total[place] += Long(weight[k])
    return (X[distinct], y[distinct]), total


def _coefficients(model: Any, of_given: Sequence[int], size: int) -> LongArray:
    """Return the published coefficients of each machine on the distinct rows."""
    coefficients = np.zeros((len(model.dual_coef_), size), Long)
    for position, row in enumerate(model.support_):
        coefficients[:, of_given[row]] += model.dual_coef_[:, position]
    return coefficients


def _witness(model: Any, distinct: Sequence[int], coefficients: LongArray) -> LongArray:
    """Return the coefficients that the model keeps as the proof of its lower bound."""
    kept = getattr(model, "_w_bound", None)
    return coefficients if kept is None else np.asarray(kept, dtype=Long)[:, list(distinct)]


@dataclass(frozen=True)
class Units:
    """The origin, the mean and the standard deviation that a regression target is measured in.

    The mean is relative to the origin, which is a value of the target near its mean. Differences of
    numbers of double precision are exact in extended precision if the numbers are of one size, even
    if the target has a large offset. An outlier of small weight is not of the size of the others:
    as the origin it would take digits from all of them.
    """

    origin: Any
    mean: Any
    scale: Any
    resolution: Any

    @classmethod
    def of(cls, model: Any, y: NDArray[Any], weight: LongArray) -> Units:
        if hasattr(model, "classes_"):
            return cls(Long(0), Long(0), Long(1), Long(0))
        values = np.asarray(y, dtype=np.float64).astype(Long)
        size, shares = np.abs(values).max(), weight / weight.sum()
        rough = shares @ (values / (size if size > 0 else 1))
        origin = values[np.argmin(np.abs(values / (size if size > 0 else 1) - rough))]
        relative = values - origin
        resolution = Long(np.spacing(np.float64(size)))
        largest = np.abs(relative).max()
        if largest == 0:
            return cls(origin, Long(0), Long(1), resolution)
        parts = relative / largest
        mean = shares @ parts
        scale = largest * np.sqrt(shares @ (parts - mean) ** 2)
        scale = scale if scale > 1e-13 * size else Long(1)
        return cls(origin, largest * mean, scale, resolution / scale)

    def standardised(self, values: Any) -> LongArray:
        """Return values in units of the target as standardised ones."""
        return ((np.asarray(values, dtype=Long) - self.origin) - self.mean) / self.scale


def _machines(
    model: Any,
    y: NDArray[Any],
    weight: LongArray,
    units: Units,
) -> list[Machine]:
    squared = "Ridge" in type(model).__name__
    everything = np.arange(len(y))
    if not hasattr(model, "classes_"):
        target = units.standardised(np.asarray(y, dtype=np.float64))
        epsilon = Long(0) if squared else Long(model.epsilon_)
        loss = "squared" if squared else "tube"
        return [Machine(everything, target, Long(model.C) * weight, epsilon, loss)]
    C = Long(model.C) * weight * _class_factors(model, y, weight)
    labels, machines = list(model.classes_), []
    if squared:
        for label in labels[1:] if len(labels) == 2 else labels:
            target = np.where(y == label, Long(1), Long(-1))
            machines.append(Machine(everything, target, C, Long(0), "squared"))
        return machines
    pairs = [(labels[1], labels[0])] if len(labels) == 2 else list(combinations(labels, 2))
    for first, second in pairs:
        rows = np.flatnonzero((y == first) | (y == second))
        target = np.where(y[rows] == first, Long(1), Long(-1))
        machines.append(Machine(rows, target, C[rows], Long(0), "hinge"))
    return machines


def _class_factors(model: Any, y: NDArray[Any], weight: LongArray) -> LongArray:
    chosen = model.class_weight
    labels = list(model.classes_)
    if chosen is None:
        return np.ones(len(y), Long)
    if chosen == "balanced":
        factors = [weight.sum() / (len(labels) * weight[y == label].sum()) for label in labels]
    else:
        factors = [Long(chosen.get(label, 1.0)) for label in labels]
    place = {label: k for k, label in enumerate(labels)}
    return np.array([factors[place[value]] for value in y], dtype=Long)


def _predicted(model: Any, X: NDArray[np.float64]) -> LongArray:
    """Return what the model predicts for rows: a column of values or scores for each machine."""
    if not hasattr(model, "classes_"):
        return np.asarray(model.predict(X), dtype=Long)[:, None]
    shape = getattr(model, "decision_function_shape", None)
    if shape is not None:
        model.decision_function_shape = "ovo"  # the scores of the pairs, and not of the classes
    try:
        scores = np.asarray(model.decision_function(X), dtype=Long)
    finally:
        if shape is not None:
            model.decision_function_shape = shape
    return scores[:, None] if scores.ndim == 1 else scores
