"""The dual problem of one or several machines, without its kernel matrix."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tessella.backend._lazy import cached_property
from tessella.svm._loss import (
    HingeLoss,
    Loss,
    PiecewiseLinearLoss,
    SquaredLoss,
    TubeLoss,
    best_intercepts_of,
    check_loss,
    joined,
)

FloatArray = NDArray[np.float64]

# A sum of dual variables below this fraction of the sum of their sizes counts as zero: it is
# what adding m numbers in double precision leaves.
_BALANCED = 1e-14


class DualProblem:
    """The dual problem of a kernel machine, without its kernel matrix.

    The problem is to maximise ``kappa(w) - w @ K @ w / 2`` over ``lower <= w <= upper`` and
    ``sum(w) == 0``, where ``kappa(w) = linear @ w - conjugate(w)`` is given by a :class:`Loss`.
    The matching primal problem is to minimise ``w @ K @ w / 2 + value(linear - K @ w - b)`` over
    w and the intercept b, where ``value`` is the loss of the residuals.

    Several machines that share nothing but the kernel are one problem too. Their samples follow
    one another, and every machine has a loss, a zero sum and an intercept of its own.

    Parameters
    ----------
    *losses : Loss
        The loss of each machine, for example :class:`HingeLoss` or :class:`TubeLoss`.

    Attributes
    ----------
    losses : tuple of Loss
        The loss of each machine.
    """

    def __init__(self, *losses: Loss) -> None:
        if not losses:
            raise ValueError("A dual problem needs at least one sample.")
        for loss in losses:
            check_loss(loss)
        self.losses = losses

    @classmethod
    def classification(cls, y: ArrayLike, C: ArrayLike) -> DualProblem:
        """Return the problem of soft-margin classification with the hinge loss.

        Parameters
        ----------
        y : array-like of shape (m,)
            Labels, each -1 or +1.
        C : float or array-like of shape (m,)
            Weight of the loss, one number for all samples or one for each sample.
        """
        return cls(HingeLoss(y, C))

    @classmethod
    def regression(cls, y: ArrayLike, C: ArrayLike, epsilon: float) -> DualProblem:
        """Return the problem of regression with the ε-insensitive loss.

        Parameters
        ----------
        y : array-like of shape (m,)
            Targets.
        C : float or array-like of shape (m,)
            Weight of the loss, one number for all samples or one for each sample.
        epsilon : float
            Largest absolute residual without loss.
        """
        return cls(TubeLoss(y, C, epsilon))

    @classmethod
    def ridge(cls, Y: ArrayLike, C: ArrayLike) -> DualProblem:
        """Return the problem of regression with the squared loss, for one or several outputs.

        Parameters
        ----------
        Y : array-like of shape (m,) or (m, n_outputs)
            Targets. There is a machine for each output.
        C : float or array-like of shape (m,)
            Weight of the loss, one number for all samples or one for each sample.
        """
        targets = np.asarray(Y, dtype=np.float64)
        columns = targets[:, None] if targets.ndim == 1 else targets
        return cls(*(SquaredLoss(column, C) for column in columns.T))  # type: ignore[arg-type]

    @classmethod
    def stacked(cls, machines: Sequence[DualProblem]) -> DualProblem:
        """Return one problem that holds several, each with a kernel matrix of its own."""
        return cls(*(loss for machine in machines for loss in machine.losses))

    @cached_property
    def linear(self) -> FloatArray:
        """Targets of all samples, the linear term of the dual; an array of shape (m,)."""
        return self._gathered("target")

    @cached_property
    def epsilon(self) -> FloatArray:
        """Coefficient of ``|w|`` in the conjugate of the loss; an array of shape (m,)."""
        return self._gathered("epsilon")

    @cached_property
    def lower(self) -> FloatArray:
        """Lower bound of each dual variable, zero or negative; an array of shape (m,)."""
        return self._gathered("lower")

    @cached_property
    def upper(self) -> FloatArray:
        """Upper bound of each dual variable, zero or positive; an array of shape (m,)."""
        return self._gathered("upper")

    @cached_property
    def curvature(self) -> FloatArray:
        """Coefficient of ``w**2 / 2`` in the conjugate of the loss; an array of shape (m,).

        In the dual problem it is added to the diagonal of the kernel matrix. It is zero for the
        hinge loss and for the ε-insensitive loss.
        """
        return self._gathered("curvature")

    def _gathered(self, name: str) -> FloatArray:
        """Return an array of the losses, one machine after the other and read-only."""
        gathered: FloatArray = np.concatenate([getattr(loss, name) for loss in self.losses])
        gathered.flags.writeable = False
        return gathered

    @cached_property
    def _edges(self) -> NDArray[np.intp]:
        sizes = [len(loss.target) for loss in self.losses]
        return np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp)

    @property
    def starts(self) -> NDArray[np.intp]:
        """Position of the first sample of each machine; an array of shape (n_machines,)."""
        return self._edges[:-1]

    @cached_property
    def size(self) -> int:
        """Number of samples m, of all machines together."""
        return int(self._edges[-1])

    @cached_property
    def machines(self) -> tuple[slice, ...]:
        """Positions of the samples of each machine, as one slice per machine."""
        edges = self._edges.tolist()
        return tuple(map(slice, edges[:-1], edges[1:]))

    @cached_property
    def machine_of(self) -> NDArray[np.intp]:
        """Number of the machine that each sample belongs to; an array of shape (m,)."""
        return np.repeat(np.arange(len(self.losses)), np.diff(self._edges))

    def sums(self, values: FloatArray) -> FloatArray:
        """Return the sum of `values` over the samples of each machine."""
        totals: FloatArray = np.add.reduceat(values, self.starts)
        return totals

    @cached_property
    def each(self) -> tuple[DualProblem, ...]:
        """The problem of each machine by itself."""
        if len(self.losses) == 1:
            return (self,)
        return tuple(DualProblem(loss) for loss in self.losses)

    @cached_property
    def _joined(self) -> PiecewiseLinearLoss | None:
        """One loss of all samples of several machines, if it does the same as those of each."""
        return joined(self.losses) if len(self.losses) > 1 else None

    @cached_property
    def is_boxed(self) -> bool:
        """Whether every bound is finite and the loss adds no curvature.

        The compiled pair steps assume both.
        """
        bounds = np.isfinite(self.lower).all() and np.isfinite(self.upper).all()
        return bool(bounds and not self.curvature.any())

    @cached_property
    def is_smooth(self) -> bool:
        """Whether no sample has a bound or a kink, and every sample has a curvature.

        The optimal dual vector for a given kernel matrix is then the solution of one linear
        system, and the optimal value is a smooth function of the kernel matrix.
        """
        unbounded = np.isinf(self.lower).all() and np.isinf(self.upper).all()
        return bool(unbounded and self._smooth_at_zero.all())

    def restrict(self, rows: NDArray[np.intp], factor: float | FloatArray = 1.0) -> DualProblem:
        """Return the problem of the samples `rows`, their losses multiplied by `factor`.

        Parameters
        ----------
        rows : ndarray of int of shape (f,)
            Positions of the samples, in ascending order when there are several machines. A
            machine without any of them is left out.
        factor : float or ndarray of shape (f,)
            Factor of the loss, one number for all of the samples or one for each.
        """
        rows, factors = np.asarray(rows), np.broadcast_to(factor, np.shape(rows))
        if len(self.losses) == 1:
            return DualProblem(self.losses[0].restrict(rows, factors))
        if (np.diff(rows) < 0).any():
            raise ValueError("rows must be in ascending order when there are several machines.")
        cuts = np.searchsorted(rows, self._edges)
        parts = zip(self.losses, self.starts, cuts[:-1], cuts[1:], strict=True)
        return DualProblem(
            *(
                loss.restrict(rows[begin:end] - start, factors[begin:end])
                for loss, start, begin, end in parts
                if begin < end
            )
        )

    def with_linear(self, linear: FloatArray) -> DualProblem:
        """Return the problem with other targets and the same losses."""
        parts = zip(self.losses, self.machines, strict=True)
        return DualProblem(*(loss.with_target(linear[rows]) for loss, rows in parts))

    def kappa(self, w: FloatArray) -> float:
        """Return the part of the dual objective that does not depend on the kernel."""
        if self._joined is not None:
            return float(self.linear @ w) - self._joined.conjugate(w)
        parts = zip(self.losses, self.machines, strict=True)
        return float(self.linear @ w) - sum(loss.conjugate(w[rows]) for loss, rows in parts)

    def primal_loss(self, scores: FloatArray) -> tuple[FloatArray, float]:
        """Return the best intercept of each machine and the loss with these intercepts.

        Parameters
        ----------
        scores : ndarray of shape (m,)
            Predictions of the machines for their samples, without an intercept.

        Returns
        -------
        intercepts : ndarray of shape (n_machines,)
            The numbers that minimise the loss when they are added to the scores.
        loss : float
            The smallest loss, summed over all machines.
        """
        if self._joined is not None:
            intercepts = best_intercepts_of(self._joined, self.linear - scores, self.starts)
        else:
            parts = zip(self.losses, self.machines, strict=True)
            best = [loss.best_intercept(loss.target - scores[rows]) for loss, rows in parts]
            intercepts = np.array(best, dtype=np.float64)
        return intercepts, float(self.sample_losses(self.residuals(scores, intercepts)).sum())

    def residuals(self, scores: FloatArray, intercepts: FloatArray) -> FloatArray:
        """Return the targets less the predictions, scores and the intercepts of their machines."""
        residuals: FloatArray = self.linear - scores - intercepts[self.machine_of]
        return residuals

    def sample_losses(self, residuals: FloatArray) -> FloatArray:
        """Return the loss of each sample at its residual."""
        whole = self.losses[0] if len(self.losses) == 1 else self._joined
        if whole is not None:
            return whole.values(residuals)
        parts = zip(self.losses, self.machines, strict=True)
        return np.concatenate([loss.values(residuals[rows]) for loss, rows in parts])

    def kappa_rises(self) -> bool:
        """Return whether a feasible direction from w = 0 raises the dual objective.

        If there is none, w = 0 is optimal for every kernel matrix.
        """
        up = np.where(self.upper > 0, self.linear - self.epsilon, -np.inf)
        down = np.where(self.lower < 0, self.linear + self.epsilon, np.inf)
        highest = np.maximum.reduceat(up, self.starts)
        lowest = np.minimum.reduceat(down, self.starts)
        return bool((highest > lowest).any())

    def feasible(self, w: ArrayLike) -> FloatArray:
        """Return a feasible point near `w`.

        The entries are clipped to their bounds and then changed until the sum over each machine
        is zero. Where it is possible only free samples change, so that samples at a bound or at
        zero stay there.
        """
        given = np.asarray(w, dtype=np.float64)
        if given.shape != (self.size,):
            raise ValueError(f"w has shape {given.shape}, expected ({self.size},).")
        clipped: FloatArray = np.minimum(np.maximum(given, self.lower), self.upper)
        excess, size = self.sums(clipped), self.sums(np.abs(clipped))
        for k in np.flatnonzero(~(np.abs(excess) <= 0.5 * _BALANCED * size)):
            self.each[k]._balance(clipped[self.machines[k]])
        return clipped

    def _balance(self, w: FloatArray) -> None:
        """Change `w`, which lies within its bounds, in place until its sum is zero."""
        excess = float(w.sum())
        if abs(excess) <= _BALANCED * float(np.abs(w).sum()):
            return
        heavy = w > 0 if excess > 0 else w < 0
        bound = self.lower if excess > 0 else self.upper
        # A sample moves to its bound at most, and to zero where the conjugate has a kink there.
        stops_at_zero = heavy & ~self._smooth_at_zero
        room = np.where(self.free(w), np.where(stops_at_zero, w, w - bound), 0.0)
        unbounded = np.isinf(room)
        if unbounded.any():
            w[unbounded] -= excess / np.count_nonzero(unbounded)
            return
        if abs(float(room.sum())) < abs(excess):
            room = np.where(heavy, w, 0.0)  # reducing the heavier sign always suffices
        w -= room * (excess / float(room.sum()))
        np.clip(w, self.lower, self.upper, out=w)

    def free(self, w: FloatArray) -> NDArray[np.bool_]:
        """Return which samples are strictly between their bounds and not at a kink.

        Without curvature, samples at zero are never free: the optimum has many of them, and they
        are left to the steps that choose samples one by one.
        """
        off_kink = (w != 0.0) | self._smooth_at_zero
        free: NDArray[np.bool_] = off_kink & (w > self.lower) & (w < self.upper)
        return free

    def distance_to_kink(self, residual: FloatArray) -> FloatArray:
        """Return how far the residual of each sample is from the nearest kink of its loss.

        At a kink the dual variable of a sample leaves one of its bounds. A sample that cannot move
        is infinitely far from it.

        Parameters
        ----------
        residual : ndarray of shape (m,)
            Targets minus predictions.
        """
        distance = np.full(self.size, np.inf)
        up, down = self.upper > 0, self.lower < 0
        distance[up] = np.abs(residual - self.epsilon)[up]
        distance[down] = np.minimum(distance, np.abs(residual + self.epsilon))[down]
        return distance

    def movable(self, rows: NDArray[np.intp], w: FloatArray) -> NDArray[np.intp]:
        """Return the samples of `rows` that can move while all other samples are held.

        The sum over each machine stays zero, so that a sample can rise only if another one of the
        same machine falls. A machine of which `rows` has only samples at their upper bounds, or
        only samples at their lower bounds, cannot move at all. A solver that restricts the problem
        to `rows` has to leave the samples of such a machine out, because the interior of its
        restricted feasible set is empty.

        Parameters
        ----------
        rows : ndarray of int of shape (f,)
            Positions of samples.
        w : ndarray of shape (m,)
            Feasible dual vector.

        Returns
        -------
        ndarray of int
            The samples of `rows` whose machines can move, in the order of `rows`.

        Examples
        --------
        >>> import numpy as np
        >>> from tessella.svm import DualProblem
        >>> machine = DualProblem.classification([1, 1, -1, -1], C=1.0)
        >>> both = DualProblem.stacked([machine, machine])
        >>> w = np.array([1.0, 0.0, -1.0, 0.0, 0.0, 0.0, 0.0, 0.0])
        >>> both.movable(np.array([1, 4, 6]), w).tolist()  # sample 1 may only rise
        [4, 6]
        """
        count, machine = len(self.losses), self.machine_of[rows]
        rising = np.bincount(machine, w[rows] < self.upper[rows], count)
        falling = np.bincount(machine, w[rows] > self.lower[rows], count)
        return rows[((rising > 0) & (falling > 0))[machine]]

    @cached_property
    def _smooth_at_zero(self) -> NDArray[np.bool_]:
        smooth: NDArray[np.bool_] = (self.epsilon == 0.0) & (self.curvature > 0.0)
        return smooth


def best_intercepts(dual: DualProblem, scores: FloatArray) -> tuple[FloatArray, float]:
    """Return the intercept of each machine that minimises its loss, and the sum of the losses.

    Parameters
    ----------
    dual : DualProblem
        One or several machines.
    scores : ndarray of shape (m,)
        Predictions of the machines for their samples, without an intercept.
    """
    return dual.primal_loss(scores)


def best_intercept(dual: DualProblem, scores: FloatArray) -> tuple[float, float]:
    """Return the intercept of one machine that minimises its loss, and that loss.

    Parameters
    ----------
    dual : DualProblem
        A single machine.
    scores : ndarray of shape (m,)
        Predictions of the machine for its samples, without an intercept.
    """
    if len(dual.losses) > 1:
        raise ValueError(
            f"The dual problem has {len(dual.losses)} machines; use best_intercepts instead."
        )
    intercepts, loss = dual.primal_loss(scores)
    return float(intercepts[0]), loss
