"""A first pair from machines whose kernel is at least every kernel of the set.

Every feasible P is at most the centre times the degree of the cone. Hence

    support(D(w)) ≤ <D(w), degree · centre>,

and the machine with the kernel of ``degree · centre`` maximises a lower bound of the dual value.
The bound is attained if D(w) has a single direction, which is nearly so with many features: the
dual vector of this one machine is then nearly optimal, and so is its best response P, for which the
same dual vector is the best one. Otherwise, the first P has a part of the other directions, and the
second one those in which the function of the first needs them. If that is not near enough, the
value is minimised between P and the centre, and the kernel of the next machine is moved towards
that of the new P. It keeps a part of all directions: with the kernel of P alone, directions that P
lacks would cost nothing, and D(w) could be of any size there. Later rounds minimise the value
between P and the best response to that machine.

With few features D(w) has several directions. The machine of the largest kernel only tells them,
and is solved roughly. The first pair is that of its best response, from which the interior point
method gains more than further machines would.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tessella.cones import Cone, Point, inner
from tessella.problems import DualPoint
from tessella.solvers._run import Run

FloatArray = NDArray[np.float64]

_MANY = 48  # side of the parameter from which on the first pair has more than one direction
_ALONE = 1e-3  # part of the gradient beyond its leading direction that is as good as nothing
_REST = 0.3  # part of its parameter that has the shares of the gradient
ROUGH = 0.2  # gap of machines that only tell the directions of the first parameter
_CLOSER = 1e-3  # gap of machines that prove a bound
_CLOSE_ENOUGH = 1e-4  # gap of a machine with a first parameter, which another step will change
BEYOND = 0.03  # part of all directions in the kernel of these machines
_SHRINK = 0.4  # what a round leaves of the directions outside of the parameter
_WORTH = 0.5  # part of the gap that a round may leave for another one to be worth it
_LEAST_PROMISING = 0.3  # gap of the first pair from which on the rounds of machines are too many
_FIRST_STEP = 0.1
_SEARCH_STEPS = 4  # machines of a line search; the value is flat near its minimum
_CLOSE = 1.5  # ratio of the ends of an interval in which no further machine is needed


def majorant_start(run: Run, w0: FloatArray | None, svm_tol: float) -> None:
    """Record certified pairs of a few machines, until these do not gain much any more.

    With few features that is a single pair.

    Parameters
    ----------
    run : Run
        The run that takes the records. Its best pair is where a solver may go on.
    w0 : ndarray of shape (m,), optional
        Dual vector to start from.
    svm_tol : float
        Relative duality gap of the machines.

    Raises
    ------
    StopRun
        If the gap is within the tolerance, a limit is reached or a monitor asks to stop.
    """
    cone, problem = run.problem.cone, run.problem
    run.count_first_kernel()
    if cone.degree < _MANY:
        _pair_of_response(run, w0, svm_tol)
        return
    largest = cone.degree * cone.centre
    _, point = largest_machines(run, w0, svm_tol)
    end, left = cone.centre, 1.0
    _graded_pairs(run, point, w0, svm_tol)
    while (gap := run.gap) < _LEAST_PROMISING:
        _search(run, end, svm_tol)
        if run.gap > _WORTH * gap:
            return
        left *= _SHRINK
        P, w = run.best
        point = problem.at(run.svm_at(P + left * (largest - P), w, svm_tol, P).w)
        run.raise_bound(point)
        end = point.best_response


def _pair_of_response(run: Run, w0: FloatArray | None, svm_tol: float) -> None:
    """Record the pair of the best response to the machine with the largest kernel.

    With few features this machine only tells the directions, and the interior point method gets
    further from its response than more machines would.
    """
    w, point = largest_machines(run, w0, max(svm_tol, ROUGH))
    first = point.best_response
    run.record(first, run.svm_at(first, w, max(svm_tol, _CLOSE_ENOUGH)).w, 1.0)


def _graded_pairs(run: Run, point: DualPoint, w0: FloatArray | None, svm_tol: float) -> None:
    """Record the pair of a first parameter with several directions, and that of a closer one.

    A function that lacks the directions beyond the best response can have a far larger value, and
    takes the dual solver far longer.
    """
    cone, values = run.problem.cone, point.spectrum.values
    P = cone.graded_response(point.spectrum, _REST)
    if values.max() >= (1.0 - _ALONE) * values.sum():
        # With a single direction, the function of the largest kernel is that of the response too.
        run.record_point(P, point, 1.0)
    w = run.svm_at(P, w0, svm_tol).w
    point = run.record(P, w, 1.0)
    if run.gap < _LEAST_PROMISING:
        P = _balanced(cone, P, point)
        run.record(P, run.svm_at(P, w, svm_tol).w, 1.0)


def _balanced(cone: Cone, P: Point, point: DualPoint) -> Point:
    """Return the parameter with which the functions of a parameter have the smallest norms.

    Their products are G = P D P, and the sum of their squared norms with another parameter Q is
    ``trace(Q⁻¹ G)``, which is smallest for Q in proportion to the root of G.
    """
    return balanced_parameter(cone, P, point.gradient)


def balanced_parameter(cone: Cone, P: Point, D: Point) -> Point:
    """Return the parameter of :func:`_balanced` for the point D(w) of the machines of P."""
    functions = P @ D @ P
    return cone.balanced_response(cone.spectrum(0.5 * (functions + functions.T)))


def balanced_start(run: Run, w0: FloatArray | None) -> tuple[Point, FloatArray]:
    """Return a first parameter for several machines, and a dual vector to start from.

    The gradients of the machines have a direction each, and their best response is one of these
    directions, with which the other machines could do nothing. The balanced response has all of
    them. Machines with its kernel and a little of all directions prove a better bound, and give a
    better P: their functions have the products G = R D R for the parameter R of that kernel, and
    the sum of their squared norms is smallest for P in proportion to the root of G.

    Parameters
    ----------
    run : Run
        The run, whose lower bound is raised by the dual vectors. Its parameter is one matrix.
    w0 : ndarray of shape (m,), optional
        Dual vector to start from.

    Raises
    ------
    StopRun
        If the time of the run is over or the run is interrupted.
    """
    cone, problem = run.problem.cone, run.problem
    run.count_first_kernel()
    w, point = largest_machines(run, w0, ROUGH)
    P = cone.balanced_response(point.spectrum)
    kernel = P + BEYOND * cone.degree * cone.centre
    w = run.svm_at(kernel, w, _CLOSER, certified=P).w
    point = problem.at(w)
    run.raise_bound(point)
    return _balanced(cone, kernel, point), w


def largest_machines(
    run: Run, w0: FloatArray | None, svm_tol: float
) -> tuple[FloatArray, DualPoint]:
    """Solve the machines with the largest kernel, which prove a lower bound."""
    cone = run.problem.cone
    w = run.svm_at(cone.degree * cone.centre, w0, svm_tol, certified=cone.centre).w
    point = run.problem.at(w)
    run.raise_bound(point)
    return w, point


def _search(run: Run, end: Point, svm_tol: float) -> None:
    """Record pairs between the best parameter and another one, towards the smallest value.

    The value is a convex function of the parameter, and its slope is known from each machine.
    """
    start, w = run.best

    def falls(gradient: Point) -> bool:
        return inner(gradient, end) > inner(gradient, start)

    low, high, step = 0.0, 1.0, _FIRST_STEP
    if not falls(run.best_point.gradient):
        return
    for _ in range(_SEARCH_STEPS):
        P = start + step * (end - start)
        w = run.svm_at(P, w, svm_tol).w
        if falls(run.record(P, w, step).gradient):
            low = step
        else:
            high = step
        if high < _CLOSE * low:
            return
        step = np.sqrt(low * high) if low else 0.25 * high
