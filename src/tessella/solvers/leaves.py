"""One kernel for the machines of many leaves, learned by tasks on single leaves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tessella.backend import limit_blas
from tessella.cones import PSD, Cone, Face, Point, Spectrum, inner
from tessella.problems import SumOfLeaves
from tessella.solvers._fallback import run_solver
from tessella.solvers._iterate import best_iterate
from tessella.solvers._leaf_descent import parameter_by_passes
from tessella.solvers._leaf_pool import LeafPool, PartOfPool
from tessella.solvers._leaf_run import LeavesResult, LeavesRun
from tessella.solvers._leaf_tasks import (
    LeafAnswer,
    MovingSamples,
    Wanted,
    sample_leaf,
    stacked_leaves,
    stacked_problem,
)
from tessella.solvers._monitor import Callback, Monitor
from tessella.solvers._quadratic_model import QuadraticModel
from tessella.solvers._result import SolverStatus
from tessella.solvers.central_path import state_at
from tessella.svm import InteriorPoint

FloatArray = NDArray[np.float64]

_MANY_ITERATIONS = 1000  # of the solver of the sample


@dataclass(frozen=True)
class LeavesSettings:
    """Sizes and thresholds of :func:`solve_leaves`.

    Attributes
    ----------
    sample_part : float
        Part of the samples on which the first parameter is learned.
    least_sample : int
        Smallest number of these samples.
    sample_of_leaf : int
        Number of samples of a leaf, of which its part in the first parameter needs no more.
    sampled_leaves : int
        Largest number of leaves that samples are taken from.
    whole_leaves, many_leaves : int
        Number of leaves from which the first parameter is learned as a whole, and smallest number
        of leaves for which this is worthwhile.
    sample_time : float
        Largest part of the time limit for the first parameter.
    sample_tol : float
        Relative gap to which the problem of the sample is solved.
    passes : int
        Largest number of passes of the descent that finds a first parameter if it is large.
    averaged : float
        Weight of the last dual vectors in the average of these passes.
    moving, moving_of_leaf : int
        Number of samples of all leaves that move in a joint step, or their number in a leaf if
        that is more. If fewer move, their bounds keep them from proving what P could.
    most_moving, least_moving : int
        Largest number of all of them, and smallest number in a leaf. With so many leaves that both
        are impossible, no samples move: the dual vectors of many leaves prove a good bound by
        themselves when P is near the optimum.
    curved : int
        Number of leaves whose Hessians stand for those of all leaves.
    directions : int
        Number of directions in which a large parameter moves at first.
    whole : int
        Largest degree of a cone in which the parameter moves in all directions.
    accuracy : float
        Accuracy of the minimiser of the quadratic model, relative to the gap.
    max_steps : int
        Largest number of interior point steps of a model or of a joint step.
    joint_accuracy : float
        Accuracy to which a joint step is solved at least.
    inwards : float
        Part of the way to the centre that P is moved before a joint step, relative to the gap.
    closest : float
        Smallest relative gap that a joint step starts from.
    trim : float
        Fraction of the tolerated gap that dropping directions of the parameter may cost.
    patience : int
        Number of rounds of small gain after which the quadratic model is minimised more closely.
        After as many more, the run ends.
    gain : float
        Factor of the gap after a round, above which its gain is small.
    rise : float
        Relative rise of the value, as a multiple of the accuracy of the machines, from which on a
        step is shortened.
    svm_tol : float
        Largest relative gap of the machines.
    reserve : float
        Part of the duration of a pass that has to be left of the time limit to begin another.
    """

    sample_part: float = 0.1
    least_sample: int = 4000
    sample_of_leaf: int = 160
    sampled_leaves: int = 256
    whole_leaves: int = 64
    many_leaves: int = 256
    sample_time: float = 0.25
    sample_tol: float = 1e-2
    passes: int = 8
    averaged: float = 0.4
    moving: int = 4000
    moving_of_leaf: int = 50
    least_moving: int = 8
    most_moving: int = 24_000
    curved: int = 32
    directions: int = 16
    whole: int = 36
    accuracy: float = 1e-2
    max_steps: int = 60
    joint_accuracy: float = 1e-3
    inwards: float = 0.03
    closest: float = 3e-2
    trim: float = 3e-4
    patience: int = 3
    gain: float = 0.9
    rise: float = 1.0
    svm_tol: float = 1e-3
    reserve: float = 0.7


DEFAULT_SETTINGS = LeavesSettings()


def solve_leaves(
    pool: LeafPool,
    cone: Cone,
    parameter0: Point,
    *,
    fixed: bool = False,
    tol: float = 1e-3,
    max_iter: int = 100,
    time_limit: float | None = None,
    n_jobs: int | None = None,
    callback: Callback | None = None,
    learned: bool = False,
    settings: LeavesSettings = DEFAULT_SETTINGS,
) -> LeavesResult:
    """Learn one parameter for the machines of many leaves.

    The kernel of rows of different leaves is zero, so K(P) is block diagonal, D(w) is a sum over
    the leaves, and one certificate holds for all machines. Each round is one pass over the leaves
    and two steps of the coordinator. (1) The machines of every leaf are solved for the current P,
    from the last dual vectors. A leaf returns its bounds, its D(w), some free samples with what the
    other samples contribute to them, and a few leaves return the Hessian of their value. (2) The
    joint method moves P and these samples of all leaves together, as in :func:`working_set`; the
    dual vectors that it finds prove a bound near the optimum. (3) P moves to the minimiser of a
    quadratic model of the value, as in :func:`newton`. The first P comes from the same rounds on a
    sample of all leaves, whose C is raised to keep the weight of the loss.

    Primal: ``min_P Σ_j max_w κ_j(w) - ½ wᵀK_j(P)w``. Dual bound: ``Σ κ_j(w_j) - ½ support(Σ
    D_j(w_j))``. Stops when the certified relative gap, computed by
    :class:`~tessella.problems.SumOfLeaves`, is at most `tol`.

    Parameters
    ----------
    pool : LeafPool
        The leaves.
    cone : Cone
        Cone that contains the parameter.
    parameter0 : Point
        Feasible parameter to start from.
    fixed : bool
        Whether the parameter is fixed. Then one pass is the answer.
    tol : float
        Certified relative gap at which to stop.
    max_iter : int
        Largest number of records.
    time_limit : float, optional
        Largest number of seconds.
    n_jobs : int, optional
        Number of threads of the coordinator.
    callback : callable or Monitor, optional
        Called with each record, or a monitor that follows the run.
    learned : bool
        Whether the parameter to start from is that of an earlier run on these leaves, so that
        none is learned on a sample.
    settings : LeavesSettings
        Sizes and thresholds.

    Returns
    -------
    LeavesResult
        Best certified parameter, and the names of its dual vectors in the pool.

    Notes
    -----
    A pass costs one warm support vector machine in each leaf, and a certificate. A leaf returns
    some multiple of the size of the parameter. The steps of the coordinator do not depend on the
    number of rows.

    See Also
    --------
    LocalLeaves : Leaves whose tasks run in threads.
    tessella.problems.SumOfLeaves : The certificate.

    Examples
    --------
    >>> import numpy as np
    >>> from tessella.kernels import TessellatedKernels
    >>> from tessella.solvers import LeafProblem, LocalLeaves, solve_leaves
    >>> from tessella.svm import DualProblem
    >>> X = np.random.default_rng(0).random((200, 2))
    >>> y = np.sin(8 * X[:, 0]) * X[:, 1]
    >>> kernels = TessellatedKernels().resolve(X)
    >>> leaves = []
    >>> for rows in (np.flatnonzero(X[:, 0] < 0.5), np.flatnonzero(X[:, 0] >= 0.5)):
    ...     dual = DualProblem.regression(y[rows], 10.0, 0.05)
    ...     leaves.append(LeafProblem(kernels, X[rows], (np.arange(len(rows)),), dual))
    >>> pool = LocalLeaves.of(leaves, n_jobs=1)
    >>> cone = leaves[0].bound().cone
    >>> result = solve_leaves(pool, cone, cone.centre)
    >>> result.gap <= 1e-3
    True
    >>> pool.vector(result.best, 1).shape == (leaves[1].dual.size,)
    True
    """
    run = LeavesRun(pool, cone, parameter0, fixed, tol, max_iter, time_limit, n_jobs, callback)
    return run.to_end(lambda P: _Rounds(run, settings).run(P, learned))


class _Phases(Monitor):
    """Tells the phases of a run on some leaves to the run on all of them."""

    def __init__(self, run: LeavesRun) -> None:
        self._run = run

    def phase(self, text: str) -> None:
        """See :meth:`Monitor.phase`."""
        self._run.phase(f"first kernel: {text}")


class _Rounds:
    """The rounds of a run: passes over the leaves, and the steps of the coordinator."""

    def __init__(self, run: LeavesRun, settings: LeavesSettings) -> None:
        self._run, self._settings = run, settings
        self._cone, self._pool = run.cone, run.pool
        self._total = sum(self._pool.sizes)
        self._memory: list[object] = []
        self._directions = settings.directions
        self._face: Face = None
        self._knows_face = self._cone.dimension <= settings.whole * (settings.whole + 1) // 2
        self._moving: dict[int, MovingSamples] = {}
        self._curvature: FloatArray | None = None
        self._averaged, self._joint_pays = False, True
        self._last_gap, self._small_gains = np.inf, 0
        self._curved = set(spread_numbers(self._pool.n_leaves, settings.curved))

    def run(self, P: Point, learned: bool) -> SolverStatus:
        """Iterate until the run is over."""
        run = self._run
        if run.fixed:
            total, _ = run.solved(P, 0.1 * run.tol, lambda _: Wanted(), lambda *_: None)
            run.keep(P, total, "w")
            run.record(1.0)
            return SolverStatus.STALLED
        if not learned:
            P = self._first_parameter(P)
        return self._iterate(P)

    def _first_parameter(self, P: Point) -> Point:
        """Return the parameter of a sample of all leaves, or the given one for few samples."""
        settings, run, sizes = self._settings, self._run, self._pool.sizes
        if not self._knows_face and isinstance(self._cone, PSD):
            return parameter_by_passes(self._solved, self._cone, run.tol, settings.passes)
        leaves = spread_numbers(self._pool.n_leaves, settings.sampled_leaves)
        seen = sum(sizes[k] for k in leaves)
        most = min(settings.sample_part * self._total, settings.sample_of_leaf * len(leaves))
        count = min(int(max(most, settings.least_sample)), seen // 2)
        run.phase(f"first kernel from {count} rows")

        def arguments(k: int) -> tuple[int, float]:
            return max(1, round(count * sizes[k] / seen)), self._total / seen

        found = self._pool.map(sample_leaf, arguments, leaves=leaves)
        parts = [leaf for leaf in found if leaf is not None]
        if not parts:
            return P
        left = run.seconds_left
        result = run_solver(
            "auto",
            stacked_leaves(parts, run.n_jobs),
            tol=settings.sample_tol,
            max_iter=_MANY_ITERATIONS,
            time_limit=None if left is None else settings.sample_time * left,
            n_jobs=run.n_jobs,
        )
        if result.status is SolverStatus.INTERRUPTED:
            raise KeyboardInterrupt
        return self._parameter_of_some(result.parameter)

    def _parameter_of_some(self, P: Point) -> Point:
        """Return the parameter of some whole leaves, if these are a small part of many.

        It is nearer to that of all leaves than the parameter of a sample of rows, whose C is
        raised.
        """
        run, settings = self._run, self._settings
        leaves = spread_numbers(self._pool.n_leaves, settings.whole_leaves)
        if self._pool.n_leaves < settings.many_leaves:
            return P
        left = run.seconds_left
        result = solve_leaves(
            PartOfPool(self._pool, leaves),
            self._cone,
            P,
            tol=settings.sample_tol,
            time_limit=None if left is None else settings.sample_time * left,
            n_jobs=run.n_jobs,
            callback=_Phases(run),
            learned=True,
            settings=settings,
        )
        if result.status is SolverStatus.INTERRUPTED:
            raise KeyboardInterrupt
        return result.parameter

    def _solved(self, P: Point) -> tuple[float, Point]:
        """Solve the machines of all leaves for a kernel, and certify the average of all passes."""
        run = self._run
        accuracy = min(self._settings.svm_tol, 0.5 * max(run.tol, 1e-3))
        total, value = run.solved(P, accuracy, lambda _: Wanted(), lambda *_: None)
        run.keep(P, total, "w")
        if self._averaged:
            self._pool.mix("average", "w", self._settings.averaged)
            run.keep(P, run.certified_vectors(P, "average"), "average")
        else:
            self._pool.copy("w", "average")
        self._averaged = True
        run.record(1.0)
        assert total.gradient is not None
        return value, total.gradient

    def _iterate(self, P: Point) -> SolverStatus:
        """Run rounds from a parameter."""
        run, settings = self._run, self._settings
        before: tuple[Point, Point, float] | None = None  # parameter, D(w) and value
        step = 1.0
        while True:
            run.require_time(settings.reserve * run.last_pass)
            accuracy = min(settings.svm_tol, max(0.1 * run.tol, 0.02 * run.gap))
            total, value = self._pass(P, accuracy)
            run.keep(P, total, "w")
            run.record(step)
            D = total.gradient
            if D is None:
                return SolverStatus.STALLED  # no dual vector but zero is feasible
            if before is not None and value > before[2] + settings.rise * accuracy * abs(value):
                shorter = _shortened(before, P, value)
                if shorter is None:
                    return SolverStatus.STALLED
                step *= shorter
                P = before[0] + shorter * (P - before[0])
                continue
            spectrum = self._cone.spectrum(D)
            if not self._knows_face:
                # What a leaf returns about its samples is in coordinates of the face, so another
                # pass follows, whose machines are solved already.
                self._choose_face(P, D, spectrum)
                continue
            if self._joint_pays:
                gap = run.gap
                self._joint_step(P)
                self._joint_pays = run.gap <= settings.gain * gap
            else:
                self._joint_pays = True  # after another pass
            if self._is_stuck():
                return SolverStatus.STALLED
            before, step = (P, D, value), 1.0
            P = self._newton_step(P, D, spectrum)
            self._choose_face(P, D, spectrum)

    def _is_stuck(self) -> bool:
        """Count rounds of small gain, and return whether there were too many of them."""
        gap, settings = self._run.gap, self._settings
        small = np.isfinite(self._last_gap) and gap > settings.gain * self._last_gap
        self._small_gains = self._small_gains + 1 if small else 0
        self._last_gap = gap
        return self._small_gains >= 2 * settings.patience

    @property
    def _n_moving(self) -> int:
        """Number of samples of all leaves that move in a joint step."""
        settings, n_leaves = self._settings, self._pool.n_leaves
        if settings.least_moving * n_leaves > settings.most_moving:
            return 0
        return min(max(settings.moving, settings.moving_of_leaf * n_leaves), settings.most_moving)

    @property
    def _closeness(self) -> float:
        """Factor of the accuracy of the model, smaller after rounds of small gain."""
        return 1.0 if self._small_gains < self._settings.patience else 0.01

    def _pass(self, P: Point, accuracy: float) -> tuple[SumOfLeaves, float]:
        """Solve the machines of all leaves, and take what the steps of the coordinator need."""
        settings = self._settings
        self._moving = {}
        share = self._n_moving / max(1, self._total)
        curved: list[tuple[int, FloatArray]] = []

        def wanted(k: int) -> Wanted:
            if not self._knows_face:
                return Wanted()
            count = round(share * self._pool.sizes[k])
            least = settings.least_moving if self._n_moving else 0
            return Wanted(max(least, count), k in self._curved, self._face)

        def taken(k: int, answer: LeafAnswer) -> None:
            if answer.moving is not None:
                self._moving[k] = answer.moving
            if answer.curvature is not None:
                curved.append((self._pool.sizes[k], answer.curvature))

        total, value = self._run.solved(P, accuracy, wanted, taken)
        self._curvature = None
        if curved:
            part = sum(size for size, _ in curved) / self._total
            self._curvature = np.sum([own for _, own in curved], axis=0) / part
        return total, value

    def _choose_face(self, P: Point, D: Point, spectrum: Spectrum) -> None:
        """Choose the face in which the parameter moves after the next pass."""
        if self._knows_face and self._face is None:
            return  # the cone is small
        self._knows_face = True
        found = self._cone.leading_face(
            P, D, spectrum, self._directions, self._memory, self._settings.whole
        )
        self._face = found.face

    def _joint_step(self, P: Point) -> None:
        """Move some samples of all leaves together with the parameter, and certify them."""
        run, settings = self._run, self._settings
        if not self._moving:
            return
        numbers = sorted(self._moving)
        parts = [self._moving[k] for k in numbers]
        problem, w, residual = stacked_problem(parts, self._cone, self._face, run.n_jobs)
        run.phase(f"joint step on {len(w)} rows")
        part = max(settings.inwards * min(run.gap, 1.0), 1e-10)
        M = problem.cone.interior(self._cone.restrict(self._face, P), part)
        tol = max(0.1 * run.tol, min(settings.joint_accuracy, 0.03 * run.gap))

        def is_over() -> bool:
            run.count_newton()
            return run.is_late

        with limit_blas(run.n_jobs, len(w)):
            start = state_at(problem, M, w, residual, max(settings.closest, run.gap))
            state = best_iterate(InteriorPoint(problem, *start), tol, settings.max_steps, is_over)
        values = np.split(
            problem.halves.join(state.alpha), np.cumsum([len(p.w) for p in parts])[:-1]
        )
        moves = {
            k: (own.samples, value) for k, own, value in zip(numbers, parts, values, strict=True)
        }
        run.keep(P, run.certified(P, moves), "moved")
        run.record(0.0)

    def _newton_step(self, P: Point, D: Point, spectrum: Spectrum) -> Point:
        """Return the minimiser of the quadratic model of the value."""
        run, settings, cone, face = self._run, self._settings, self._cone, self._face
        if self._curvature is None:
            return cone.interior(cone.vertex(spectrum), 0.5)
        closeness = self._closeness * abs(run.value)
        accuracy = settings.accuracy * max(run.tol, 0.1 * min(run.gap, 1.0)) * closeness
        if face is None:
            model = QuadraticModel(cone, P, D, self._curvature)
        else:
            small = cone.restrict(face, P), cone.compress(face, D)
            model = QuadraticModel(cone.face(face), *small, self._curvature)
        M = model.minimiser(accuracy, settings.max_steps)
        found = cone.normalised(M if face is None else cone.expand(face, M))
        return cone.trimmed(found, D, settings.trim * run.tol * closeness)


def spread_numbers(count: int, most: int) -> list[int]:
    """Return at most so many of the first `count` numbers, evenly spaced."""
    return [int(k) for k in np.linspace(0, count - 1, min(count, most))]


def _shortened(before: tuple[Point, Point, float], P: Point, value: float) -> float | None:
    """Return the factor of a step that has raised the value; None if the step cannot be shorter."""
    start, D, least = before
    direction = P - start
    slope, change = -0.5 * inner(D, direction), value - least
    if not slope < 0.0:
        return None
    # The minimum of the parabola through both values with the slope at the start.
    return float(min(0.5, max(0.1, -0.5 * slope / (change - slope))))
