"""Newton's method in the parameter alone, for losses without bounds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tessella.backend import limit_blas
from tessella.cones import Face, Point, inner
from tessella.kernels import SharedKernels
from tessella.problems import DualPoint, SaddlePoint
from tessella.solvers._curvature import smooth_curvature
from tessella.solvers._quadratic_model import QuadraticModel
from tessella.solvers._result import SolverResult, SolverStatus
from tessella.solvers._run import Callback, Run, run_to_end
from tessella.solvers.central_path import WholeProblem, neutral_alpha, solve_smooth, state_near
from tessella.solvers.working_set import machines_come_first
from tessella.svm import DualProblem, InteriorPoint, SmoothDual

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class NewtonSettings:
    """Sizes and thresholds of :func:`newton`.

    Attributes
    ----------
    first_rows : int
        Smallest number of rows from which the first parameter is learned.
    rows_per_param : int
        Smallest number of these rows for each entry of the parameter that they determine.
    first_outputs : int
        Largest number of outputs from which the first parameter is learned.
    first_accuracy : float
        Accuracy to which the first parameter is learned.
    beyond : float
        Part of all directions, beside those of the first parameter, in the machines that prove
        its first bound.
    whole : int
        Largest degree of a cone in which the parameter moves in all directions.
    directions : int
        Number of directions in which a larger parameter moves at first.
    accuracy : float
        Accuracy of the minimiser of the model, as a fraction of the gap. It is tightened where no
        step lowers the value.
    max_steps : int
        Largest number of interior point steps for one model.
    decrease : float
        Fraction of the decrease that the model predicts which a step has to attain.
    poor : float
        Fraction of the gap that may be left after a step. If more is left, the Hessian is computed
        anew for the next step.
    shortest : float
        Length of a step below which the method gives up.
    """

    first_rows: int = 200
    rows_per_param: int = 4
    first_outputs: int = 3
    first_accuracy: float = 0.03
    beyond: float = 0.01
    whole: int = 24
    directions: int = 12
    accuracy: float = 0.03
    max_steps: int = 40
    decrease: float = 0.1
    poor: float = 0.3
    shortest: float = 1e-6


DEFAULT_SETTINGS = NewtonSettings()
_TIGHTEST = 1e-6  # accuracy of the minimiser of a model below which no better one is tried


def newton(
    problem: SaddlePoint,
    *,
    tol: float = 1e-3,
    max_iter: int = 100,
    time_limit: float | None = None,
    parameter0: Point | None = None,
    w0: FloatArray | None = None,
    n_jobs: int | None = None,
    callback: Callback | None = None,
    settings: NewtonSettings = DEFAULT_SETTINGS,
) -> SolverResult:
    """Minimise over P the optimal value of machines with a smooth loss, by Newton's method.

    With a loss without bounds, such as the squared loss, the optimal dual vector for a given P is
    the solution of one linear system, and the optimal value G(P) is a smooth convex function. An
    iteration solves the system by a Cholesky factorisation, which gives the value, the gradient
    ``-D(w)/2`` and, with the derivatives J of the scores with respect to P, the Hessian JᵀHJ. The
    minimiser of this quadratic model over the feasible set comes from the interior point method,
    at a cost that does not depend on the number of rows, and a line search ends the iteration. As
    long as the gap falls fast, later iterations use the same Hessian. The method is meant for
    several machines that share their rows; for a single one :func:`joint` needs fewer steps.

    Primal: ``min_P max_w κ(w) - ½ wᵀK(P)w``. Dual bound: ``κ(w) - ½ support(D(w))``. Stops
    when the certified relative gap between the two, computed by `problem`, is at most `tol`.

    Parameters
    ----------
    problem : SaddlePoint
        Problem to solve: a bound kernel set and the dual problem of its machines, whose loss has
        no bounds.
    tol : float
        Certified relative gap at which to stop.
    max_iter : int
        Largest number of linear systems.
    time_limit : float, optional
        Largest number of seconds. When it is reached, the best certified pair is returned.
    parameter0 : Point, optional
        Feasible parameter to start from. The default is the one that :func:`joint` finds for a few
        of the rows and of the outputs, or the centre of the feasible set for few rows. A matrix of
        48 or more rows has one direction for each output, from machines on all rows. If the
        parameter is one matrix P, a factor U of P = U Uᵀ with fewer columns than rows is accepted.
    w0 : ndarray of shape (m,), optional
        Dual vector of an earlier run, which is certified with `parameter0`. The iteration does not
        need it.
    n_jobs : int, optional
        Number of threads. None uses all cores that the process may use.
    callback : callable or Monitor, optional
        Called with each :class:`IterationRecord`, whose `step` is the length of the step.
    settings : NewtonSettings
        Sizes and thresholds of the iterations.

    Returns
    -------
    SolverResult
        Best certified pair of a parameter and a dual vector.

    Raises
    ------
    ValueError
        If the loss has bounds.

    Notes
    -----
    An iteration costs one kernel matrix, one Cholesky factorisation of m³/3 operations and, for
    each machine, m² operations for each entry of the parameter that moves. Machines that share
    their rows share the matrix and its factorisation. A large parameter moves within a face of
    its cone, which contains its own leading directions and those of D(w). The method holds three
    m × m matrices in float64.
    """
    if not problem.dual.is_smooth:
        names = ", ".join(sorted({type(loss).__name__ for loss in problem.dual.losses}))
        raise ValueError(
            f"The solver 'newton' needs a loss with curvature and without bounds, such as "
            f"SquaredLoss; got {names}. Use the solver 'auto'."
        )
    P = None if parameter0 is None else problem.cone.checked(parameter0)
    run = Run(
        "newton",
        problem,
        tol=tol,
        max_iter=max_iter,
        time_limit=time_limit,
        n_jobs=n_jobs,
        callback=callback,
    )
    with limit_blas(n_jobs, problem.dual.size):
        return run_to_end(run, lambda run: _Newton(run, settings).iterate(P, w0))


@dataclass(frozen=True)
class _Iterate:
    """A parameter with its solved machines and its value."""

    P: Point
    duals: list[SmoothDual]
    point: DualPoint
    value: float


@dataclass(frozen=True)
class _Curve:
    """A face and the Hessian of the value on it, which serve several steps."""

    face: Face
    hessian: FloatArray


class _Newton:
    """State of the iteration: the size of the face, and what the cone remembers of faces."""

    def __init__(self, run: Run, settings: NewtonSettings) -> None:
        self._run, self._settings = run, settings
        self._problem, self._cone = run.problem, run.problem.cone
        self._directions, self._accuracy = settings.directions, settings.accuracy
        self._memory: list[object] = []

    def iterate(self, P: Point | None, w0: FloatArray | None) -> SolverStatus:
        """Iterate until the run is over, or return STALLED where no step lowers the value."""
        if P is None:
            P = self._first_parameter()
        elif w0 is not None:
            self._run.record(P, w0, 0.0)
        here = self._at(P, 0.0)
        curve, fresh = self._curve(here), True
        while True:
            gap = self._run.gap
            there = self._search(here, self._model_minimiser(here, curve))
            if there is None and fresh:
                if curve.face is None and self._accuracy < _TIGHTEST:
                    return SolverStatus.STALLED
                # Either P has to move in other directions, or the model has to be minimised better.
                self._directions *= 2
                self._accuracy *= 0.1
            here = here if there is None else there
            fresh = there is None or self._run.gap > self._settings.poor * gap
            if fresh:
                curve = self._curve(here)

    def _first_parameter(self) -> Point:
        """Return the parameter that the joint method finds for some rows and a few outputs.

        From the centre, Newton's method would only multiply the share of a direction by about 1.5
        in each step, and a good direction has a small share of the centre.
        """
        if not self._problem.dual.kappa_rises():
            return self._cone.centre
        if machines_come_first(self._cone):
            return self._parameter_of_machines()
        sample = small_sample(self._problem, self._settings)
        if sample is None:
            return self._cone.centre
        self._run.phase(f"first kernel from {sample.kernels.machines[0].n_samples} rows")
        whole, centre = WholeProblem(sample), self._cone.centre
        method = InteriorPoint(whole, *state_near(whole, centre, neutral_alpha(whole, centre)))
        for _ in range(self._settings.max_steps):
            if method.merit <= self._settings.first_accuracy or method.advance() == 0.0:
                break
            self._run.count_newton()
        return self._cone.normalised(method.state.M)

    def _parameter_of_machines(self) -> Point:
        """Return the parameter of the machines with a kernel that is at least every other one.

        With many features, D(w) has one large direction for each machine. If the value of a machine
        is a / s for the share s of its direction, as with a small kernel, the best shares are
        proportional to √a, and the eigenvalues of D(w) at equal shares are proportional to a.
        Machines with a kernel that is that of P and a little of all directions prove a bound that
        is nearly attained.
        """
        run, cone, problem = self._run, self._cone, self._problem
        run.phase(f"first kernel from machines on {problem.dual.size} rows")
        largest = cone.degree * cone.centre
        point = problem.at(run.svm_at(largest, None, run.tol, cone.centre).w)
        run.raise_bound(point)
        P = cone.balanced_response(point.spectrum, len(problem.dual.starts))
        beyond = self._settings.beyond
        run.raise_bound(problem.at(run.svm_at(P + beyond * largest, None, run.tol, P).w))
        return P

    def _at(self, P: Point, step: float) -> _Iterate:
        """Solve the machines of a parameter, and record the pair."""
        self._run.check_time()
        self._run.phase(f"linear system on {self._problem.kernels.machines[0].n_samples} rows")
        duals = solve_smooth(self._problem.kernels, self._problem.dual, P)
        self._run.count_svm()
        w = np.concatenate([own.w for own in duals])
        point = self._run.record(P, w, step)
        return _Iterate(P, duals, point, point.dual_value(P))

    def _curve(self, here: _Iterate) -> _Curve:
        """Return the face in which P moves next, and the Hessian of the value on it."""
        point = here.point
        found = self._cone.leading_face(
            here.P,
            point.gradient,
            point.spectrum,
            self._directions,
            self._memory,
            self._settings.whole,
        )
        hessian = smooth_curvature(here.duals, here.point, found.face)
        return _Curve(found.face, hessian)

    def _model_minimiser(self, here: _Iterate, curve: _Curve) -> Point:
        """Return the minimiser of the quadratic model on the face of `curve`."""
        settings, cone, face = self._settings, self._cone, curve.face
        D = here.point.gradient
        accuracy = self._accuracy * max(self._run.tol, 0.1 * self._run.gap) * abs(here.value)
        if face is None:
            model = QuadraticModel(cone, here.P, D, curve.hessian)
        else:
            small = cone.restrict(face, here.P), cone.compress(face, D)
            model = QuadraticModel(cone.face(face), *small, curve.hessian)
        M = model.minimiser(accuracy, settings.max_steps)
        self._run.check_time()
        P = cone.normalised(M if face is None else cone.expand(face, M))
        cost = settings.accuracy * self._run.tol * abs(here.value)
        return cone.trimmed(P, D, cost)

    def _search(self, here: _Iterate, target: Point) -> _Iterate | None:
        """Return a point between here and the target with a lower value; None if there is none."""
        direction = target - here.P
        slope, length = -0.5 * inner(here.point.gradient, direction), 1.0
        while slope < 0.0 and length > self._settings.shortest:
            there = self._at(here.P + length * direction if length < 1.0 else target, length)
            change = there.value - here.value
            if change <= self._settings.decrease * length * slope:
                return there
            # The minimum of the parabola through both values with the slope here.
            length *= min(0.5, max(0.1, -0.5 * slope * length / (change - slope * length)))
        return None


def small_sample(problem: SaddlePoint, settings: NewtonSettings) -> SaddlePoint | None:
    """Return a smaller problem whose optimal parameter is a good start; None for few rows.

    Its rows are a random part of the rows, with the weight of the loss of all of them. Its outputs
    are random combinations of the outputs, whose sum of squares has the right expectation.

    Parameters
    ----------
    problem : SaddlePoint
        Machines that share their rows, or a single machine.
    settings : NewtonSettings
        Numbers of rows and of outputs.
    """
    kernels, losses = problem.kernels, problem.dual.losses
    if len(losses) > 1 and not isinstance(kernels, SharedKernels):
        return None
    part, rng = kernels.machines[0], np.random.default_rng(0)
    count = max(settings.first_rows, settings.rows_per_param * problem.cone.effective_degree)
    if part.n_samples < 2 * count:
        return None
    rows = np.sort(rng.permutation(part.n_samples)[:count])
    targets = np.array([loss.target[rows] for loss in losses])
    if len(targets) > settings.first_outputs:
        signs = rng.choice([-1.0, 1.0], size=(settings.first_outputs, len(targets)))
        targets = signs @ targets / np.sqrt(settings.first_outputs)
    loss = losses[0].restrict(rows, np.full(count, part.n_samples / count))
    few = part.subset(rows)
    kernels = few if len(targets) == 1 else SharedKernels(few, len(targets))
    return SaddlePoint(kernels, DualProblem(*(loss.with_target(own) for own in targets)))
