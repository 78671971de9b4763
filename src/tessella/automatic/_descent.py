"""Descent of a held-out error by the scales of the columns and C of a machine.

Two errors can be descended. The leave-one-out error uses every row for the fit and for the error,
which few rows need. The error of held-out rows costs much less, which many rows allow.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import LbfgsInvHessProduct, minimize

from tessella.automatic._clock import Clock, OutOfTimeError
from tessella.automatic._entries import Machine
from tessella.automatic._families import FAMILIES
from tessella.automatic._kernels import ScaledKernel
from tessella.leave_one_out import (
    HeldOutGradient,
    LeaveOneOutGradient,
    NotPositiveDefiniteError,
    held_out_gradient,
    held_out_predictions,
    leave_one_out_gradient,
)

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

_LARGEST_CHANGE = 6.0  # of the logarithm of a scale
_C_RANGE = (-3.0, 14.0)  # of the logarithm of C
# Pull of the logarithms of the scales towards a common one, relative to the logarithm of the error.
_PULL = 0.03
_SHORTEST = 0.1  # part of a step without progress that is tried next
# Cosine of a step and the change of the gradient below which their curvature is rounding.
_LEAST_CURVATURE = 1e-8


class Start(NamedTuple):
    """Where a descent has ended, and another one may go on.

    Attributes
    ----------
    x : ndarray of shape (n_parameters,)
        Parameters.
    metric : LbfgsInvHessProduct
        Approximate inverse of the Hessian matrix, which is known by its last steps. The matrix
        itself would have the square of thousands of parameters in wide tables.
    """

    x: FloatArray
    metric: LbfgsInvHessProduct


class DescentObjective(ABC):
    """Logarithm of a held-out error by the scales of groups of columns and by C.

    The last parameter is the logarithm of C; the others are added to the logarithms of the scales
    of the columns of each group.

    Parameters
    ----------
    machine : Machine
        Machine at which the descent starts.
    rows : ndarray of int
        Training rows that the error depends on.
    clock : Clock
        Time that is left.
    seconds : float, default=0
        Expected time of an evaluation. An evaluation that would outlast the time is not begun.
    """

    def __init__(
        self, machine: Machine, rows: IntArray, clock: Clock, seconds: float = 0.0
    ) -> None:
        assert isinstance(machine.kernel, ScaledKernel)
        self._machine, self._kernel, self._clock = machine, machine.kernel, clock
        self._A, self._group = machine.space.coordinates[rows], machine.space.group
        self._seconds = seconds
        self._last: FloatArray | None = None  # where it was evaluated last with success
        self._value: tuple[float, FloatArray] = (np.inf, np.empty(0))
        self.n_groups = machine.space.n_groups

    def descend(self, steps: int) -> list[tuple[Machine, FloatArray]]:
        """Return the machine and its held-out scores at the start and after every step.

        When the time is over, the steps so far are returned.
        """
        path: list[tuple[Machine, FloatArray]] = []
        with suppress(OutOfTimeError, NotPositiveDefiniteError):
            path.append(self._machine_and_scores(self.start))
            self.minimised(steps, lambda x: path.append(self._machine_and_scores(x)))
        return path

    @property
    def start(self) -> FloatArray:
        """The parameters of the machine at which the descent starts."""
        # A constant, whose C is below the range, has no slope to descend along; another scale may
        # make more of its kernel.
        return np.append(np.zeros(self.n_groups), np.clip(np.log(self._machine.C), *_C_RANGE))

    @property
    def bounds(self) -> FloatArray:
        """Lower and upper bounds of the parameters, of shape (n_groups + 1, 2)."""
        changes = [(-_LARGEST_CHANGE, _LARGEST_CHANGE)] * self.n_groups
        return np.array([*changes, _C_RANGE])

    def minimised(self, steps: int, callback: Callable[[FloatArray], None] | None = None) -> Start:
        """Minimise the objective by at most some steps, with a call after each of them."""
        found = minimize(
            self,
            self.start,
            jac=True,
            method="L-BFGS-B",
            bounds=self.bounds,
            callback=callback,
            options={"maxiter": steps, "maxfun": 2 * steps},
        )
        return Start(found.x, found.hess_inv)

    def __call__(self, x: FloatArray) -> tuple[float, FloatArray]:
        """Return the objective and its gradient."""
        if self._last is None or not np.array_equal(x, self._last):
            self._clock.check(self._seconds)
            begin = self._clock.elapsed
            self._value = self._evaluated(x)
            self._seconds = max(self._seconds, self._clock.elapsed - begin)
        return self._value

    @abstractmethod
    def _gradient(
        self, K: FloatArray, regularisation: float
    ) -> LeaveOneOutGradient | HeldOutGradient:
        """Return the error with a kernel matrix, and its gradient."""

    @abstractmethod
    def _scores(self, machine: Machine) -> FloatArray:
        """Return the scores of the held-out rows at the parameters of the last evaluation."""

    def _machine_and_scores(self, x: FloatArray) -> tuple[Machine, FloatArray]:
        self(x)
        if self._last is None:
            raise NotPositiveDefiniteError
        machine = self._machine_at(x)
        return machine, self._scores(machine)

    def _machine_at(self, x: FloatArray) -> Machine:
        kernel = replace(self._kernel, scales=self._scales_at(x))
        return replace(self._machine, kernel=kernel, C=float(np.exp(x[-1])))

    def _scales_at(self, x: FloatArray) -> FloatArray:
        """Return the logarithms of the scales of the columns."""
        return self._kernel.scales + x[:-1][self._group]

    def _evaluated(self, x: FloatArray) -> tuple[float, FloatArray]:
        family, scales = FAMILIES[self._kernel.family], self._scales_at(x)
        K = family.gram(self._A, scales)
        self._last = None
        try:
            found = self._gradient(K, float(np.exp(-x[-1])))
        except NotPositiveDefiniteError:
            return np.inf, np.zeros_like(x)
        self._last = x.copy()
        if found.error <= 0.0:
            return -np.inf, np.zeros_like(x)
        K *= found.kernel_gradient
        by_column = family.gradient(K, self._A, scales)
        gradient = np.empty_like(x)
        gradient[:-1] = np.bincount(self._group, by_column, minlength=self.n_groups)
        gradient[-1] = -found.diagonal_gradient
        gradient /= found.error
        spread = x[:-1] - x[:-1].mean()
        gradient[:-1] += 2.0 * _PULL / self.n_groups * spread
        return np.log(found.error) + _PULL * float(np.mean(spread**2)), gradient


class LeaveOneOutObjective(DescentObjective):
    """The leave-one-out error of some rows; other rows have scores of a fit to these.

    Parameters
    ----------
    machine : Machine
        Machine at which the descent starts.
    rows : ndarray of int
        Rows of the fit and of the error.
    others : ndarray of int
        Rows whose scores are returned.
    Y : ndarray of shape (m, k)
        Outputs of all training rows.
    weight : ndarray of shape (m,)
        Weights of all training rows.
    left_out : ndarray of shape (m,)
        Fraction of the weight of each training row that is left out with it.
    clock : Clock
        Time that is left.
    seconds : float, default=0
        Expected time of an evaluation.
    """

    def __init__(
        self,
        machine: Machine,
        rows: IntArray,
        others: IntArray,
        Y: FloatArray,
        weight: FloatArray,
        left_out: FloatArray,
        clock: Clock,
        seconds: float = 0.0,
    ) -> None:
        super().__init__(machine, rows, clock, seconds)
        self._others = machine.space.coordinates[others]
        self._Y, self._weight = machine.target.forward(Y[rows]), weight[rows]
        self._left_out = left_out[rows]
        self._fit: tuple[FloatArray, FloatArray]

    def descend_further(self, start: Start, steps: int) -> list[tuple[Machine, FloatArray]]:
        """Return the machine and its held-out scores at a start and after every step from there.

        Each step is that of Newton with the metric, which follows the change of the gradient. The
        last one is not evaluated; the held-out scores tell whether it is good.
        """
        x, metric = start
        path: list[tuple[Machine, FloatArray]] = []
        low, high = self.bounds.T
        with suppress(OutOfTimeError, NotPositiveDefiniteError):
            value, gradient = self(x)
            path.append(self._machine_and_scores(x))
            target = np.clip(x - metric @ gradient, low, high)
            for _ in range(steps - 1):
                step, (reached, slope) = target - x, self(target)
                if not reached < value:
                    target = x + _shorter(reached - value, float(gradient @ step)) * step
                    continue
                path.append(self._machine_and_scores(target))
                metric = _updated(metric, step, slope - gradient)
                x, value, gradient = target, reached, slope
                target = np.clip(x - metric @ gradient, low, high)
            path.append(self._fitted(target))
        return path

    def _gradient(self, K: FloatArray, regularisation: float) -> LeaveOneOutGradient:
        weight = self._weight
        found = leave_one_out_gradient(K, self._Y, regularisation, weight, weight, self._left_out)
        self._fit = found.coef, found.intercept
        return found

    def _scores(self, machine: Machine) -> FloatArray:
        coef, intercept = self._fit
        return machine.kernel.matrix(self._others, self._A) @ coef + intercept

    def _fitted(self, x: FloatArray) -> tuple[Machine, FloatArray]:
        """Return the machine and its scores at parameters without an evaluation."""
        self._clock.check()
        machine = self._machine_at(x)
        K = machine.kernel.matrix(np.vstack([self._A, self._others]), self._A)
        return machine, held_out_predictions(K, self._Y, 1.0 / machine.C, self._weight)


def _shorter(rise: float, slope: float) -> float:
    """Return the part of a step without progress at which a parabola has its minimum."""
    if slope >= 0.0 or not np.isfinite(rise):
        return _SHORTEST
    return float(np.clip(-0.5 * slope / (rise - slope), _SHORTEST, 0.5))


def _updated(
    metric: LbfgsInvHessProduct, step: FloatArray, change: FloatArray
) -> LbfgsInvHessProduct:
    """Return the BFGS update of an approximate inverse Hessian matrix."""
    product = float(step @ change)
    if product <= _LEAST_CURVATURE * np.linalg.norm(step) * np.linalg.norm(change):
        return metric
    return LbfgsInvHessProduct(np.vstack([metric.sk, step]), np.vstack([metric.yk, change]))


class HeldOutObjective(DescentObjective):
    """The error of held-out rows in the fit to others.

    Parameters
    ----------
    machine : Machine
        Machine at which the descent starts.
    fitted : ndarray of int
        Rows of the fit.
    held_out : ndarray of int
        Rows of the error, whose scores are returned.
    Y : ndarray of shape (m, k)
        Outputs of all training rows.
    weight : ndarray of shape (m,)
        Weights of all training rows.
    clock : Clock
        Time that is left.
    seconds : float
        Expected time of an evaluation.
    """

    def __init__(
        self,
        machine: Machine,
        fitted: IntArray,
        held_out: IntArray,
        Y: FloatArray,
        weight: FloatArray,
        clock: Clock,
        seconds: float,
    ) -> None:
        rows = np.concatenate([fitted, held_out])
        super().__init__(machine, rows, clock, seconds)
        self._Y, self._weight = machine.target.forward(Y[rows]), weight[rows]
        self._n_fitted = len(fitted)
        self._predictions: FloatArray

    def _gradient(self, K: FloatArray, regularisation: float) -> HeldOutGradient:
        found = held_out_gradient(K, self._Y, regularisation, self._weight, self._n_fitted)
        self._predictions = found.predictions
        return found

    def _scores(self, machine: Machine) -> FloatArray:
        del machine
        return self._predictions
