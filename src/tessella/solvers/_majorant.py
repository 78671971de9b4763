"""A first pair from machines whose kernel is at least every kernel of the set.

Every feasible P is at most the centre times the degree of the cone. Hence

    support(D(w)) ≤ <D(w), degree · centre>,

and the machine with the kernel of ``degree · centre`` maximises a lower bound of the dual value.
The bound is attained if D(w) has a single direction, which is nearly so with many features: the
dual vector of this one machine is then nearly optimal, and so is its best response P. Otherwise,
the kernel is moved towards that of P, in steps that leave less and less of the other directions.
They keep the dual vector determined: with the kernel of P alone, directions that P lacks would cost
nothing, and D(w) could be of any size there.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tessella.cones import Point
from tessella.solvers._run import Run

FloatArray = NDArray[np.float64]

_SHRINK = 0.4  # what a step leaves of the directions outside of P
_WORTH = 0.7  # fraction of the gap that a step may leave for another one to be worth it


def majorant_start(run: Run, w0: FloatArray | None, svm_tol: float) -> tuple[Point, FloatArray]:
    """Return the parameter and the dual vector with the best value of a few machines.

    Parameters
    ----------
    run : Run
        The run that takes the records.
    w0 : ndarray of shape (m,), optional
        Dual vector to start from.
    svm_tol : float
        Relative duality gap of the machines.

    Returns
    -------
    P : Point
        Feasible parameter.
    w : ndarray of shape (m,)
        Dual vector of its machine.

    Raises
    ------
    StopRun
        If the gap is within the tolerance, a limit is reached or a monitor asks to stop.
    """
    cone = run.problem.cone
    largest = cone.degree * cone.centre
    majorant, left, w, own = largest, 1.0, w0, w0
    while True:
        before = run.gap
        w = run.svm_at(majorant, w, svm_tol, certified=cone.centre).w
        point = run.problem.at(w)
        run.raise_bound(point)
        P = point.best_response
        own = run.svm_at(P, own, svm_tol).w
        run.record(P, own, left)
        if run.gap > _WORTH * before:
            return run.best
        left *= _SHRINK
        majorant = P + left * (largest - P)
