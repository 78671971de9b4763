"""Steps of the interior point method until they gain no more."""

from __future__ import annotations

from collections.abc import Callable

from tessella.solvers._compiled_steps import CompiledInteriorPoint
from tessella.svm import CentralPathState, InteriorPoint

_LOST = 1e3  # factor by which the merit has grown when rounding has spoilt an iteration


def best_iterate(
    method: InteriorPoint | CompiledInteriorPoint,
    tol: float,
    max_steps: int,
    is_over: Callable[[], bool],
) -> CentralPathState:
    """Return the best iterate of the interior point method.

    Parameters
    ----------
    method : InteriorPoint or CompiledInteriorPoint
        The method at its starting point.
    tol : float
        Merit at which to stop.
    max_steps : int
        Largest number of steps.
    is_over : callable
        Called after each step; returns whether there is no time for another one.
    """
    best, state = method.merit, method.state
    for _ in range(max_steps):
        if method.advance() == 0.0:
            break
        over = is_over()
        if method.merit < best:
            best, state = method.merit, method.state
        if over or best <= tol or method.merit > _LOST * best:
            break
    return state
