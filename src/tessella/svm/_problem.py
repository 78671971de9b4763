"""The SVM dual as data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

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

    Several machines that share nothing but the kernel are one problem too: their samples one
    machine after the other, a zero sum and an intercept for each (:meth:`stacked`).

    Attributes
    ----------
    linear, epsilon, lower, upper : ndarray of shape (m,)
        As above; ``epsilon >= 0``.
    starts : ndarray of int of shape (n_machines,)
        First sample of each machine; one machine by default.
    """

    linear: FloatArray
    epsilon: FloatArray
    lower: FloatArray
    upper: FloatArray
    starts: NDArray[np.intp] = field(default_factory=lambda: np.zeros(1, dtype=np.intp))

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
        edges = np.append(self.starts, size)
        if not len(self.starts) or self.starts[0] != 0 or (np.diff(edges) <= 0).any():
            raise ValueError("starts must rise from 0, and every machine needs a sample.")

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

    @classmethod
    def stacked(cls, machines: Sequence[DualProblem]) -> DualProblem:
        """Several problems, each with a kernel matrix of its own, as one."""
        offsets = np.cumsum([0, *(machine.size for machine in machines)])
        starts = [machine.starts + offsets[k] for k, machine in enumerate(machines)]
        return cls(
            linear=np.concatenate([machine.linear for machine in machines]),
            epsilon=np.concatenate([machine.epsilon for machine in machines]),
            lower=np.concatenate([machine.lower for machine in machines]),
            upper=np.concatenate([machine.upper for machine in machines]),
            starts=np.concatenate(starts),
        )

    @property
    def size(self) -> int:
        """Number of samples m."""
        return len(self.linear)

    @cached_property
    def machines(self) -> tuple[slice, ...]:
        """Samples of each machine."""
        edges = [*self.starts.tolist(), self.size]
        return tuple(map(slice, edges[:-1], edges[1:]))

    @cached_property
    def machine_of(self) -> NDArray[np.intp]:
        """Machine of each sample."""
        return np.repeat(np.arange(len(self.starts)), np.diff(np.append(self.starts, self.size)))

    def sums(self, values: FloatArray) -> FloatArray:
        """Sum of per-sample values over each machine."""
        totals: FloatArray = np.add.reduceat(values, self.starts)
        return totals

    @cached_property
    def each(self) -> tuple[DualProblem, ...]:
        """The problem of each machine by itself."""
        if len(self.starts) == 1:
            return (self,)
        return tuple(
            DualProblem(self.linear[rows], self.epsilon[rows], self.lower[rows], self.upper[rows])
            for rows in self.machines
        )

    def restrict(self, rows: NDArray[np.intp], factor: float | FloatArray = 1.0) -> DualProblem:
        """The problem of some of the samples, their box multiplied by `factor`.

        Of several machines `rows` must ascend; a machine without a sample is left out.
        """
        starts = np.unique(np.searchsorted(rows, self.starts)) if len(self.starts) > 1 else [0]
        return DualProblem(
            self.linear[rows],
            self.epsilon[rows],
            factor * self.lower[rows],
            factor * self.upper[rows],
            np.asarray(starts, dtype=np.intp)[: len(rows)],
        )

    def kappa(self, w: FloatArray) -> float:
        """The part of the dual objective that does not depend on the kernel."""
        return float(self.linear @ w - self.epsilon @ np.abs(w))

    def kappa_rises(self) -> bool:
        """Whether some feasible direction from w = 0 raises the dual; if not, 0 is optimal."""
        up = np.where(self.upper > 0, self.linear - self.epsilon, -np.inf)
        down = np.where(self.lower < 0, self.linear + self.epsilon, np.inf)
        highest, lowest = (
            np.maximum.reduceat(up, self.starts),
            np.minimum.reduceat(down, self.starts),
        )
        return bool((highest > lowest).any())

    def feasible(self, w: ArrayLike) -> FloatArray:
        """A feasible point near `w`: clipped to the box, then balanced to a zero sum.

        The free samples pay for the balance where they can, so that those at a bound or at zero
        stay there.
        """
        given = np.asarray(w, dtype=np.float64)
        if given.shape != self.linear.shape:
            raise ValueError(f"w has shape {given.shape}, expected {self.linear.shape}.")
        if len(self.starts) == 1:
            return self._balanced(given)
        parts = zip(self.each, self.machines, strict=True)
        return np.concatenate([machine._balanced(given[rows]) for machine, rows in parts])

    def _balanced(self, given: FloatArray) -> FloatArray:
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
