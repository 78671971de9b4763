"""Frank-Wolfe for kernel learning: Algorithm 2 of the paper, with its errors corrected."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tessella.cones import Point
from tessella.problems import DualPoint, SaddlePoint
from tessella.solvers._result import SolverResult, SolverStatus
from tessella.solvers._run import Callback, Run, run_to_end

FloatArray = NDArray[np.float64]

_REBUILD = 25  # iterations after which K is computed again, because its updates add rounding
_SLOPE_TOL = 0.1  # the line search ends where the slope has fallen to this fraction of its start
_MAX_PROBES = 20
_TIGHTEST = 1e-4  # smallest fraction of the usual SVM tolerance that is tried without descent
_SVM_TOL_MAX = 1e-3
_ZIGZAG = 0.1  # after a shorter step towards a vertex, pairwise steps are taken
_STEPS = ("exact", "open-loop", "pairwise")


def frank_wolfe(
    problem: SaddlePoint,
    *,
    tol: float = 1e-3,
    max_iter: int = 1000,
    time_limit: float | None = None,
    parameter0: Point | None = None,
    w0: FloatArray | None = None,
    step: str = "exact",
    n_jobs: int | None = None,
    callback: Callback | None = None,
) -> SolverResult:
    """Minimise over P the optimal value of the SVM with kernel K(P), by Frank-Wolfe.

    Each iteration solves the SVM for the current P, starting from the last dual vector, and moves P
    towards the vertex of the feasible set that is best for the new dual vector. For a matrix, this
    vertex is S = n_P v vᵀ with a top eigenvector v of the gradient D(w); for the weights of a
    dictionary it is the single kernel with the largest wᵀK_i w.

    Primal: ``min_P max_w κ(w) - ½ wᵀK(P)w``. Dual bound: ``κ(w) - ½ support(D(w))``. Stops
    when the certified relative gap between the two, computed by `problem`, is at most `tol`.

    Parameters
    ----------
    problem : SaddlePoint
        Problem to solve: a bound kernel set and the dual problem of its machines.
    tol : float
        Certified relative gap at which to stop.
    max_iter : int
        Largest number of iterations.
    time_limit : float, optional
        Largest number of seconds. When it is reached, the best certified pair is returned.
    parameter0 : Point, optional
        Feasible parameter to start from. The default is the centre of the feasible set. If the
        parameter is one matrix P, a factor U of P = U Uᵀ with fewer columns than rows is accepted.
    w0 : ndarray of shape (m,), optional
        Dual vector to start from.
    step : {"exact", "open-loop", "pairwise"}
        Rule for the step length. "exact" is a line search on the derivative
        ``-½ w_γᵀ (K_S - K) w_γ``, which costs one warm SVM per trial. "open-loop" is the fixed
        rule 2 / (k + 2). "pairwise" starts like "exact"; once steps towards the vertex become
        short, it moves weight from one eigenvector of P to the vertex, by exact line search.
    n_jobs : int, optional
        Number of threads. None uses all cores that the process may use.
    callback : callable or Monitor, optional
        Called with each :class:`IterationRecord`, or a monitor that follows the run.

    Returns
    -------
    SolverResult
        Best certified pair of a parameter and a dual vector.

    Notes
    -----
    An iteration costs one m × m rank-one kernel matrix, one gradient of O(m · support · n_P), one
    eigenproblem of side n_P and the warm SVM solves of the line search. The method holds two m × m
    matrices in addition to those of the kernel set. The gap falls like 1/k, and faster if the
    optimal P has rank one and the top eigenvalue of D is well separated.

    Pairwise steps use the eigendecomposition P = Σ c_i n_P u_i u_iᵀ as the active set, which has
    at most n_P atoms, no two of them parallel, whatever the number of iterations. The weight is
    taken from the atom for which the loss ``c_i (λ_max - u_iᵀDu_i)`` is largest, and an atom
    without weight is removed. Atoms of a spectrahedron do not recur as those of a polytope do, so
    the rate remains sublinear at an optimum of rank two, but an iteration needs fewer SVM solves.

    The stopping rule in the paper has the wrong sign, its oracle takes the wrong end of the
    spectrum, and its value lacks a factor of one half; see the errata in
    ``docs/paper-to-code.md``.
    """
    if step not in _STEPS:
        raise ValueError(f"step={step!r} is unknown; use one of {_STEPS}.")
    P = problem.cone.checked(parameter0)
    run = Run(
        "frank-wolfe",
        problem,
        tol=tol,
        max_iter=max_iter,
        time_limit=time_limit,
        n_jobs=n_jobs,
        callback=callback,
    )
    return run_to_end(run, lambda run: FrankWolfeStage(run, P, w0, step).iterate())


class FrankWolfeStage:
    """State of the iteration: P, its kernel matrix K, and the dual vector w of its SVM.

    Parameters
    ----------
    run : Run
        The run that takes the records. Other stages may have used it before.
    P : Point
        Feasible parameter to start from.
    w0 : ndarray of shape (m,), optional
        Dual vector from which the first SVM starts.
    step : {"exact", "open-loop", "pairwise"}
        Rule for the step length, as described in :func:`frank_wolfe`.
    """

    def __init__(self, run: Run, P: Point, w0: FloatArray | None, step: str = "exact") -> None:
        self._run = run
        self._kernels = run.problem.kernels
        self._P = P
        self._step = step
        self._last_length = 1.0
        self._tighter = 1.0
        self._pairwise = False
        self._K = self._kernels.gram(P, centred=True)
        self._change = np.empty_like(self._K)
        self._w = run.svm(self._K, P, w0, self._svm_tol()).w

    def _svm_tol(self) -> float:
        """Return a tenth of the current gap, so that the SVM does not limit the outer gap."""
        return self._tighter * max(0.2 * self._run.tol, min(_SVM_TOL_MAX, 0.1 * self._run.gap))

    def iterate(self, until: float = 0.0) -> SolverStatus:
        """Iterate until the run is over, or return OPTIMAL once its gap is at most `until`."""
        point = self._run.record(self._P, self._w, step=0.0)
        for iteration in range(1, 2**62):
            if self._run.gap <= until:
                return SolverStatus.OPTIMAL
            length = self._move(point, iteration)
            if length == 0.0:
                # Either P admits no descent, or w is not accurate enough to show it.
                if self._tighter < _TIGHTEST:
                    return SolverStatus.STALLED
                self._tighter *= 0.1
                self._w = self._run.svm(self._K, self._P, self._w, self._svm_tol()).w
            if iteration % _REBUILD == 0:
                self._kernels.gram(self._P, centred=True, out=self._K)
            point = self._run.record(self._P, self._w, length)
        raise AssertionError("unreachable: record() ends the run")

    def _move(self, point: DualPoint, iteration: int) -> float:
        """Move P, K and w by one step and return its length."""
        if self._step == "open-loop":
            direction = self._head_for(point.best_response)
            length = 2.0 / (iteration + 2)
            self._probe(self._P, direction, 0.0, length)
            return length
        if self._pairwise:
            longest, direction = self._exchange(point)
        else:
            longest, direction = 1.0, self._head_for(point.best_response)
        length = longest * self._search(direction, first=self._last_length / longest)
        if self._step == "pairwise" and length < _ZIGZAG:
            self._pairwise = True
        self._last_length = 2.0 * length
        return length

    def _head_for(self, vertex: Point) -> Point:
        """Return the direction from P to a vertex, and prepare the change of K along it."""
        self._kernels.gram(vertex, centred=True, out=self._change)
        self._change -= self._K
        return vertex - self._P

    def _exchange(self, point: DualPoint) -> tuple[float, Point]:
        """Return the share to move from a vertex of P to the best vertex, and the direction."""
        cone = self._run.problem.cone
        share, source = cone.worst_vertex(self._P, point.gradient, point.support)
        direction = share * (point.best_response - source)
        self._kernels.gram(direction, centred=True, out=self._change)
        return share, direction

    def _search(self, direction: Point, first: float) -> float:
        """Search along a direction; return the step in (0, 1], or 0 if there is no descent."""
        start, slope, here = self._P, self._slope(), 0.0
        if slope >= 0.0:
            return 0.0

        def slope_at(length: float) -> float:
            nonlocal here
            self._probe(start, direction, here, length)
            here = length
            return self._slope()

        search_root(slope_at, slope, first=min(1.0, first))
        return here

    def _probe(self, start: Point, direction: Point, here: float, there: float) -> None:
        """Move from the step `here` to the step `there` along a direction."""
        add_scaled(self._K, self._change, there - here)
        self._P = start + there * direction
        self._w = self._run.svm(self._K, self._P, self._w, self._svm_tol()).w

    def _slope(self) -> float:
        """Return the derivative of the value along the change of K at the current w."""
        return -0.5 * float(self._w @ self._kernels.times(self._change, self._w))


def add_scaled(K: NDArray[np.float64], change: NDArray[np.float64], scale: float) -> None:
    """Add ``scale * change`` to K without a third matrix."""
    rows = max(1, 2**21 // len(K))
    for start in range(0, len(K), rows):
        K[start : start + rows] += K.dtype.type(scale) * change[start : start + rows]


def search_root(slope_at: Callable[[float], float], slope_start: float, first: float) -> float:
    """Return a point of (0, 1] where an increasing function is nearly zero.

    The method is regula falsi with the Illinois rule, from the slope `slope_start` < 0 at 0. The
    last call of `slope_at` is at the point that is returned, so that the state of the caller
    belongs to this point.

    Returns
    -------
    float
        Point where |slope| has fallen to a tenth of its start, or 1 if the slope is negative there.
    """
    low, low_slope = 0.0, slope_start
    high, high_slope = None, 0.0
    here = first
    for _ in range(_MAX_PROBES):
        slope = slope_at(here)
        if abs(slope) <= _SLOPE_TOL * abs(slope_start) or (slope < 0 and here >= 1.0):
            break
        if slope < 0:
            if low > 0.0 and high is not None:
                high_slope *= 0.5
            low, low_slope = here, slope
        else:
            if high is not None:
                low_slope *= 0.5
            high, high_slope = here, slope
        if high is None:
            here = min(1.0, 4.0 * here)
        else:
            here = low + (high - low) * low_slope / (low_slope - high_slope)
            here = min(max(here, low + 0.02 * (high - low)), high - 0.02 * (high - low))
    return here
