"""Loss functions of the residuals, described by what the dual problem needs of them.

The primal problem of a machine with kernel matrix K is

    minimise over w and b   ½ wᵀKw + Σ_k ℓ_k(r_k),      r = target - Kw - b,

and its dual problem is

    maximise over w   target·w - Σ_k ℓ*_k(w_k) - ½ wᵀKw,      Σ_k w_k = 0,

where ℓ* is the convex conjugate of ℓ. For the losses of this package ℓ* is finite on an interval
and there equal to ``epsilon * |w| + curvature * w**2 / 2``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]

# Slopes of the loss in the intercept are sums of weights. Relative to the sum of all weights,
# anything below this is rounding, and the loss is flat there.
_FLAT_SLOPE = 1e-12


class Loss(Protocol):
    """A convex loss of the residuals of m samples.

    The solvers read the arrays, and the certificates call the methods. Neither of them knows
    which loss it has. A class that provides these members can be passed to
    :class:`DualProblem`; it does not have to derive from this one.

    Attributes
    ----------
    target : ndarray of shape (m,)
        The value that the score of each sample should have. The residual is the target minus
        the score.
    epsilon : ndarray of shape (m,)
        Coefficient of ``|w|`` in the conjugate of the loss, which is half of the width of the
        interval of residuals without loss. Not negative.
    lower : ndarray of shape (m,)
        Smallest slope of the loss, which is the lower bound of each dual variable. Not positive;
        minus infinity for a loss that grows faster than linearly.
    upper : ndarray of shape (m,)
        Largest slope of the loss, which is the upper bound of each dual variable. Not negative;
        infinity for a loss that grows faster than linearly.
    curvature : ndarray of shape (m,)
        Coefficient of ``w**2 / 2`` in the conjugate of the loss, which is added to the diagonal
        of the kernel matrix in the dual problem. Zero for a piecewise linear loss.
    """

    @property
    def target(self) -> FloatArray: ...

    @property
    def epsilon(self) -> FloatArray: ...

    @property
    def lower(self) -> FloatArray: ...

    @property
    def upper(self) -> FloatArray: ...

    @property
    def curvature(self) -> FloatArray: ...

    def values(self, residual: FloatArray) -> FloatArray:
        """Return the loss of each sample at the residuals, an array of shape (m,)."""
        ...

    def conjugate(self, w: FloatArray) -> float:
        """Return the sum of the conjugates at `w`, which lies between the bounds."""
        ...

    def best_intercept(self, residual: FloatArray) -> float:
        """Return the number b that minimises the sum of ``values(residual - b)``."""
        ...

    def restrict(self, rows: NDArray[np.intp], factor: FloatArray) -> Loss:
        """Return the loss of the samples `rows`, each multiplied by its entry of `factor`."""
        ...

    def with_target(self, target: FloatArray) -> Loss:
        """Return the same loss for other targets."""
        ...


@dataclass(frozen=True, eq=False)
class PiecewiseLinearLoss:
    """A loss that is zero within a tube and grows linearly on both sides of it.

    The loss of the residual r of a sample is
    ``upper * max(r - epsilon, 0) - lower * max(-r - epsilon, 0)``. The hinge loss and the
    ε-insensitive loss are of this form.

    Parameters
    ----------
    target : array-like of shape (m,)
        The value that the score of each sample should have.
    epsilon : array-like of shape (m,)
        Half of the width of the tube of each sample; not negative.
    lower : array-like of shape (m,)
        Slope of the loss below the tube; not positive.
    upper : array-like of shape (m,)
        Slope of the loss above the tube; not negative.
    """

    target: FloatArray
    epsilon: FloatArray
    lower: FloatArray
    upper: FloatArray

    def __post_init__(self) -> None:
        for name in ("target", "epsilon", "lower", "upper"):
            value = np.array(getattr(self, name), dtype=np.float64)
            if not np.isfinite(value).all():
                raise ValueError(f"{name} contains a NaN or an infinity.")
            value.flags.writeable = False
            object.__setattr__(self, name, value)

    @property
    def curvature(self) -> FloatArray:
        """Zero for every sample: the loss is piecewise linear."""
        return np.zeros(len(self.target))

    def values(self, residual: FloatArray) -> FloatArray:
        """Return the loss of each sample."""
        above = self.upper * np.maximum(residual - self.epsilon, 0.0)
        below = self.lower * np.maximum(-residual - self.epsilon, 0.0)
        losses: FloatArray = above - below
        return losses

    def conjugate(self, w: FloatArray) -> float:
        """Return ``epsilon @ abs(w)``, the conjugate of the loss between its bounds."""
        return float(self.epsilon @ np.abs(w))

    def best_intercept(self, residual: FloatArray) -> float:
        """Return the number b that minimises the sum of ``values(residual - b)``.

        The loss is convex and piecewise linear in b, so its breakpoints are sorted and the one
        where the slope changes sign is returned. When the loss is smallest on a whole interval,
        its midpoint is returned. Costs O(m log m).
        """
        positions = np.concatenate([residual - self.epsilon, residual + self.epsilon])
        rises = np.concatenate([self.upper, -self.lower])
        active = rises > 0
        positions, rises = positions[active], rises[active]
        if not len(positions):
            return 0.0
        order = np.argsort(positions, kind="stable")
        positions, rises = positions[order], rises[order]
        total = float(self.upper.sum())
        slopes = np.cumsum(rises) - total
        # The last slope is minus the sum of `lower`: apart from rounding it is never negative.
        first = min(int(np.searchsorted(slopes, -_FLAT_SLOPE * total)), len(positions) - 1)
        if slopes[first] <= _FLAT_SLOPE * total and first + 1 < len(positions):
            return 0.5 * float(positions[first] + positions[first + 1])
        return float(positions[first])

    def restrict(self, rows: NDArray[np.intp], factor: FloatArray) -> PiecewiseLinearLoss:
        """Return the loss of the samples `rows`, each multiplied by its entry of `factor`."""
        return PiecewiseLinearLoss(
            self.target[rows],
            self.epsilon[rows],
            factor * self.lower[rows],
            factor * self.upper[rows],
        )

    def with_target(self, target: FloatArray) -> PiecewiseLinearLoss:
        """Return the same loss for other targets."""
        return PiecewiseLinearLoss(target, self.epsilon, self.lower, self.upper)


def joined(losses: Sequence[Loss]) -> PiecewiseLinearLoss | None:
    """Return the loss of the samples of all machines as one loss, if all are piecewise linear.

    The sums over many small machines are then those of whole arrays.
    """
    if not all(type(loss) in (PiecewiseLinearLoss, HingeLoss, TubeLoss) for loss in losses):
        return None
    names = ("target", "epsilon", "lower", "upper")
    arrays = (np.concatenate([getattr(loss, name) for loss in losses]) for name in names)
    return PiecewiseLinearLoss(*arrays)


def best_intercepts_of(
    loss: PiecewiseLinearLoss, residual: FloatArray, starts: NDArray[np.intp]
) -> FloatArray:
    """Return the best intercept of each machine, as ``best_intercept`` of each would.

    Parameters
    ----------
    loss : PiecewiseLinearLoss
        The loss of the samples of all machines, from :func:`joined`.
    residual : ndarray of shape (m,)
        Residuals of all samples.
    starts : ndarray of int of shape (n_machines,)
        Position of the first sample of each machine.
    """
    count = len(starts)
    machine = np.repeat(np.arange(count), np.diff(np.append(starts, len(residual))))
    rises = np.concatenate([loss.upper, -loss.lower])
    active = rises > 0
    positions = np.concatenate([residual - loss.epsilon, residual + loss.epsilon])[active]
    rises, machine = rises[active], np.concatenate([machine, machine])[active]
    order = np.lexsort((positions, machine))
    positions, rises, machine = positions[order], rises[order], machine[order]
    ends = np.searchsorted(machine, np.arange(count + 1))
    totals = np.add.reduceat(loss.upper, starts)
    intercepts = np.zeros(count)
    for k in range(count):
        first, end = int(ends[k]), int(ends[k + 1])
        if first == end:
            continue
        slopes = np.cumsum(rises[first:end])
        slopes -= totals[k]
        flat = _FLAT_SLOPE * totals[k]
        at = first + min(int(slopes.searchsorted(-flat)), end - first - 1)
        between = slopes[at - first] <= flat and at + 1 < end
        intercepts[k] = 0.5 * (positions[at] + positions[at + 1]) if between else positions[at]
    return intercepts


class HingeLoss(PiecewiseLinearLoss):
    """The hinge loss ``C * max(0, 1 - y * score)`` of soft-margin classification.

    As a function of the residual ``r = y - score`` it is ``C * max(r, 0)`` for the label +1 and
    ``C * max(-r, 0)`` for the label -1.

    Parameters
    ----------
    y : array-like of shape (m,)
        Labels, each -1 or +1.
    C : float or array-like of shape (m,)
        Weight of the loss, one number for all samples or one for each sample.
    """

    def __init__(self, y: ArrayLike, C: ArrayLike) -> None:
        labels = np.asarray(y, dtype=np.float64)
        if not np.isin(labels, (-1.0, 1.0)).all():
            raise ValueError("Labels must be -1 or +1.")
        weight, zero = _checked_weight(C, labels.shape), np.zeros_like(labels)
        lower, upper = np.where(labels < 0, -weight, zero), np.where(labels > 0, weight, zero)
        super().__init__(labels, zero, lower, upper)


class TubeLoss(PiecewiseLinearLoss):
    """The ε-insensitive loss ``C * max(0, |y - score| - epsilon)`` of regression.

    Parameters
    ----------
    y : array-like of shape (m,)
        Targets.
    C : float or array-like of shape (m,)
        Weight of the loss, one number for all samples or one for each sample.
    epsilon : float
        Largest absolute residual without loss; not negative.
    """

    def __init__(self, y: ArrayLike, C: ArrayLike, epsilon: float) -> None:
        targets = np.asarray(y, dtype=np.float64)
        weight = _checked_weight(C, targets.shape)
        super().__init__(targets, np.full(targets.shape, float(epsilon)), -weight, weight)


@dataclass(frozen=True, eq=False)
class SquaredLoss:
    """The squared loss ``C * (y - score)**2 / 2`` of kernel ridge regression.

    Its slope has no bounds, so neither has the dual variable of a sample. The conjugate is
    ``w**2 / (2 C)``: in the dual problem 1 / C is added to the diagonal of the kernel matrix, and
    the solution for a given kernel matrix is that of one linear system.

    Parameters
    ----------
    target : array-like of shape (m,)
        The value that the score of each sample should have.
    C : float or array-like of shape (m,)
        Weight of the loss, one positive number for all samples or one for each sample.

    Examples
    --------
    >>> import numpy as np
    >>> from tessella.svm import SquaredLoss
    >>> loss = SquaredLoss([0.0, 1.0, 5.0], C=[1.0, 1.0, 2.0])
    >>> loss.best_intercept(loss.target)
    2.75
    >>> loss.values(np.array([1.0, 0.0, -1.0])).tolist()
    [0.5, 0.0, 1.0]
    """

    target: FloatArray
    C: FloatArray

    def __post_init__(self) -> None:
        target = np.array(self.target, dtype=np.float64)
        weight = np.array(_checked_weight(self.C, target.shape))
        if not np.isfinite(target).all():
            raise ValueError("target contains a NaN or an infinity.")
        if not (weight > 0).all():
            raise ValueError("C must be positive: leave out samples without a weight.")
        for name, value in (("target", target), ("C", weight)):
            value.flags.writeable = False
            object.__setattr__(self, name, value)

    @property
    def epsilon(self) -> FloatArray:
        """Zero for every sample: every residual has a loss."""
        return np.zeros(len(self.target))

    @property
    def lower(self) -> FloatArray:
        """Minus infinity for every sample: the slope of the loss has no bound."""
        return np.full(len(self.target), -np.inf)

    @property
    def upper(self) -> FloatArray:
        """Infinity for every sample: the slope of the loss has no bound."""
        return np.full(len(self.target), np.inf)

    @property
    def curvature(self) -> FloatArray:
        """The numbers ``1 / C``, which the dual problem adds to the diagonal of K."""
        return 1.0 / self.C

    def values(self, residual: FloatArray) -> FloatArray:
        """Return the loss of each sample."""
        losses: FloatArray = 0.5 * self.C * residual**2
        return losses

    def conjugate(self, w: FloatArray) -> float:
        """Return the sum of ``w**2 / (2 C)``."""
        return 0.5 * float(w @ (w / self.C))

    def best_intercept(self, residual: FloatArray) -> float:
        """Return the weighted mean of the residuals, which has the smallest squared loss."""
        return float(self.C @ residual) / float(self.C.sum())

    def restrict(self, rows: NDArray[np.intp], factor: FloatArray) -> SquaredLoss:
        """Return the loss of the samples `rows`, each multiplied by its entry of `factor`."""
        return SquaredLoss(self.target[rows], factor * self.C[rows])

    def with_target(self, target: FloatArray) -> SquaredLoss:
        """Return the same loss for other targets."""
        return SquaredLoss(target, self.C)


def check_loss(loss: Loss) -> None:
    """Raise a ValueError unless the arrays of a loss have one length and the right signs."""
    size = len(loss.target)
    if size == 0:
        raise ValueError("A dual problem needs at least one sample.")
    for name in ("target", "epsilon", "lower", "upper", "curvature"):
        value = getattr(loss, name)
        if value.shape != (size,):
            raise ValueError(f"{name} has shape {value.shape}, expected ({size},).")
        if np.isnan(value).any():
            raise ValueError(f"{name} contains a NaN.")
    for name in ("epsilon", "upper", "curvature"):
        if (getattr(loss, name) < 0).any():
            raise ValueError(f"{name} must not be negative.")
    if (loss.lower > 0).any():
        raise ValueError("lower must not be positive.")


def _checked_weight(C: ArrayLike, shape: tuple[int, ...]) -> FloatArray:
    weight = np.broadcast_to(np.asarray(C, dtype=np.float64), shape)
    if not (np.isfinite(weight).all() and (weight >= 0).all()):
        raise ValueError("C must be finite and not negative.")
    return weight
