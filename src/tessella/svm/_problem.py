"""The SVM dual as data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class DualProblem:
    """Everything of an SVM dual but its kernel matrix.

    Maximise ``linear @ w - epsilon @ abs(w) - w @ K @ w / 2`` over ``lower <= w <= upper`` and
    ``sum(w) == 0``, where ``lower <= 0 <= upper``. The matching primal is

        ½ wᵀKw + Σ_k upper_k (r_k - epsilon_k)₊ + |lower_k| (-r_k - epsilon_k)₊

    with r = linear - Kw - b, which is the hinge loss for :meth:`classification` and the
    ε-insensitive one for :meth:`regression`.

    Attributes
    ----------
    linear, epsilon, lower, upper : ndarray of shape (m,)
        As above; ``epsilon >= 0``.
    """

    linear: FloatArray
    epsilon: FloatArray
    lower: FloatArray
    upper: FloatArray

    def __post_init__(self) -> None:
        size = len(self.linear)
        for name in ("linear", "epsilon", "lower", "upper"):
            value = np.array(getattr(self, name), dtype=np.float64)
            if value.shape != (size,):
                raise ValueError(f"{name} has shape {value.shape}, expected ({size},).")
            if not np.isfinite(value).all():
                raise ValueError(f"{name} holds a NaN or an infinity.")
            value.flags.writeable = False
            object.__setattr__(self, name, value)
        if size == 0:
            raise ValueError("A dual problem needs at least one sample.")
        if (self.epsilon < 0).any() or (self.lower > 0).any() or (self.upper < 0).any():
            raise ValueError("epsilon and upper must be >= 0 and lower <= 0.")

    @classmethod
    def classification(cls, y: ArrayLike, C: ArrayLike) -> DualProblem:
        """Soft-margin classification of labels `y` in {-1, +1}; `C` a number or one per sample."""
        labels = np.asarray(y, dtype=np.float64)
        if not np.isin(labels, (-1.0, 1.0)).all():
            raise ValueError("labels must be -1 or +1.")
        box = _box_sizes(C, labels.shape)
        zero = np.zeros_like(labels)
        return cls(labels, zero, np.where(labels < 0, -box, zero), np.where(labels > 0, box, zero))

    @classmethod
    def regression(cls, y: ArrayLike, C: ArrayLike, epsilon: float) -> DualProblem:
        """ε-insensitive regression on targets `y`; `C` a number or one per sample."""
        targets = np.asarray(y, dtype=np.float64)
        box = _box_sizes(C, targets.shape)
        return cls(targets, np.full(targets.shape, float(epsilon)), -box, box)

    @property
    def size(self) -> int:
        """Number of samples m."""
        return len(self.linear)

    def restrict(self, rows: NDArray[np.intp], factor: float = 1.0) -> DualProblem:
        """The problem of some of the samples, their box multiplied by `factor`."""
        return DualProblem(
            self.linear[rows],
            self.epsilon[rows],
            factor * self.lower[rows],
            factor * self.upper[rows],
        )

    def kappa(self, w: FloatArray) -> float:
        """The part of the dual objective that does not depend on the kernel."""
        return float(self.linear @ w - self.epsilon @ np.abs(w))

    def kappa_rises(self) -> bool:
        """Whether some feasible direction from w = 0 raises the dual; if not, 0 is optimal."""
        up = np.where(self.upper > 0, self.linear - self.epsilon, -np.inf)
        down = np.where(self.lower < 0, self.linear + self.epsilon, np.inf)
        return bool(up.max() > down.min())

    def feasible(self, w: ArrayLike) -> FloatArray:
        """A feasible point near `w`: clipped to the box, then balanced to a zero sum.

        The free samples pay for the balance where they can, so that those at a bound or at zero
        stay there.
        """
        given = np.asarray(w, dtype=np.float64)
        if given.shape != self.linear.shape:
            raise ValueError(f"w has shape {given.shape}, expected {self.linear.shape}.")
        result: FloatArray = np.clip(given, self.lower, self.upper)
        excess = float(result.sum())
        if abs(excess) <= 1e-14 * float(np.abs(result).sum()):
            return result
        heavy = result > 0 if excess > 0 else result < 0
        bound = self.lower if excess > 0 else self.upper
        # As far as zero or the bound: no one changes sides.
        room = np.where(self.free(result), np.where(heavy, result, result - bound), 0.0)
        if abs(float(room.sum())) < abs(excess):
            room = np.where(heavy, result, 0.0)  # shrinking the heavier sign is always enough
        result -= room * (excess / float(room.sum()))
        return np.clip(result, self.lower, self.upper)

    def free(self, w: FloatArray) -> NDArray[np.bool_]:
        """Which samples are strictly inside their box and off the kink at zero."""
        inside: NDArray[np.bool_] = (w != 0.0) & (w > self.lower) & (w < self.upper)
        return inside


def _box_sizes(C: ArrayLike, shape: tuple[int, ...]) -> FloatArray:
    sizes = np.broadcast_to(np.asarray(C, dtype=np.float64), shape)
    if not (np.isfinite(sizes).all() and (sizes >= 0).all()):
        raise ValueError("C must be finite and not negative.")
    return sizes
