"""A first parameter for the machines of many leaves if it is one large matrix.

Each leaf has directions of its own, which a sample of its rows does not show if there are many
features. So the parameter comes from passes over all rows: from machines with the largest kernel,
with a balanced one, and then by a descent on a factor, as in ``_majorant`` and ``_factor_descent``.
The average of the dual vectors of the passes proves the first bound.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tessella.cones import PSD
from tessella.solvers._factor_descent import (
    FLOOR,
    factor_slope,
    leading_factor,
    next_length,
    quasi_newton_direction,
)
from tessella.solvers._majorant import BEYOND, balanced_parameter

FloatArray = NDArray[np.float64]

#: ``solve(P)`` returns the value and D(w) of the machines of all leaves.
Solve = Callable[[FloatArray], tuple[float, FloatArray]]

_DIRECTIONS = 48  # largest number of columns of the factor
_MEMORY = 10  # pairs of steps and changes of the gradient
_FIRST_STEP = 0.1  # length of the first step relative to the factor
_DECREASE = 1e-4  # part of the predicted decrease that a step has to attain
_SHORTEST = 1e-2
_WORTH = 0.1  # part of the tolerance that the last three steps have to gain together
_IDLE_PASSES = 3


def parameter_by_passes(solve: Solve, cone: PSD, tol: float, passes: int) -> FloatArray:
    """Return a parameter with the directions of all leaves.

    Parameters
    ----------
    solve : callable
        Solves the machines of all leaves for a kernel.
    cone : PSD
        Cone of the parameter.
    tol : float
        Relative gap that is asked for in the end.
    passes : int
        Largest number of passes of the descent.
    """
    largest = cone.degree * cone.centre
    _, D = solve(largest)
    kernel = cone.balanced_response(cone.spectrum(D)) + BEYOND * largest
    _, D = solve(kernel)
    return _Descent(solve, cone, tol, passes).parameter(balanced_parameter(cone, kernel, D))


class _Descent:
    """Quasi-Newton steps of a factor, with one pass for each value."""

    def __init__(self, solve: Solve, cone: PSD, tol: float, passes: int) -> None:
        self._solve, self._cone = solve, cone
        self._tol, self._left = tol, passes

    def parameter(self, P: FloatArray) -> FloatArray:
        """Descend from a feasible P."""
        U = leading_factor(P, _DIRECTIONS)
        value, slope = self._at(U)
        pairs: deque[tuple[FloatArray, FloatArray]] = deque(maxlen=_MEMORY)
        values = [value]
        while self._left > 0:
            step = quasi_newton_direction(slope, pairs)
            if not pairs:
                length = max(float(np.linalg.norm(step)), 1e-300)
                step *= _FIRST_STEP * float(np.linalg.norm(U)) / length
            found = self._search(U, value, slope, step)
            if found is None:
                break
            new, new_value, new_slope = found
            change, bend = new - U, new_slope - slope
            if float(np.sum(change * bend)) > 1e-10 * float(np.sum(bend * bend)):
                pairs.append((change, bend))
            U, value, slope = new, new_value, new_slope
            values.append(value)
            if len(values) > _IDLE_PASSES:
                gain = values[-1 - _IDLE_PASSES] - value
                if gain < _WORTH * self._tol * abs(value):
                    break
        # The floor has served the bound, and costs value.
        result: FloatArray = self._cone.normalised(U @ U.T)
        return result

    def _at(self, U: FloatArray) -> tuple[float, FloatArray]:
        """Return the value at a factor, and its gradient."""
        self._left -= 1
        P = (1.0 - FLOOR) * self._cone.normalised(U @ U.T) + FLOOR * self._cone.centre
        value, D = self._solve(P)
        return value, factor_slope(self._cone, U, D)

    def _search(
        self, U: FloatArray, value: float, slope: FloatArray, step: FloatArray
    ) -> tuple[FloatArray, float, FloatArray] | None:
        """Return the first point along a step whose value is small enough."""
        falls, length = float(np.sum(slope * step)), 1.0
        while self._left > 0 and length > _SHORTEST:
            new = U + length * step
            found, new_slope = self._at(new)
            if found <= value + _DECREASE * length * falls + 0.1 * self._tol * abs(value):
                return new, found, new_slope
            length = next_length(length, found - value, falls)
        return None
