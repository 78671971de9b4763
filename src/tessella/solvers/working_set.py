"""The working-set method: the joint method on some samples and an exact SVM on all of them."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tessella.backend import limit_blas
from tessella.cones import PSD, Cone, Face, LeadingFace, Point
from tessella.problems import DualPoint, SaddlePoint
from tessella.solvers._compiled_steps import CompiledInteriorPoint, interior_point
from tessella.solvers._factor_descent import descend
from tessella.solvers._iterate import best_iterate
from tessella.solvers._majorant import balanced_start, majorant_start
from tessella.solvers._mixed_machines import mixed_start
from tessella.solvers._result import SolverResult, SolverStatus
from tessella.solvers._run import Callback, Run, StopRun, SvmAnswer, require_bounds, run_to_end
from tessella.solvers._samples import sample_strata
from tessella.solvers.central_path import (
    RestrictedProblem,
    WholeProblem,
    neutral_alpha,
    state_at,
    state_near,
)
from tessella.svm import CentralPathState, InteriorPoint

FloatArray = NDArray[np.float64]
Rows = NDArray[np.intp]


@dataclass(frozen=True)
class WorkingSetSettings:
    """Sizes and thresholds of :func:`working_set`.

    Attributes
    ----------
    first_rows : int
        Smallest size of the subsample and of the working set. Fewer rows determine P poorly.
    rows_per_param : int
        Smallest number of rows for each entry of the parameter that the rows have to determine.
    rows_per_machine : int
        Smallest number of rows for each machine if there are several machines.
    usual_rows : int
        Largest size of the first working sets, which determines P well enough at first, however
        many samples are free.
    max_rows : int
        Largest number of samples that move together. A Newton step then takes about a second.
    poor : float
        Fraction of the gap that may be left after a round. If more is left, the working set grows.
    sparse : float
        Largest fraction of the samples that may be support vectors seen so far if all of these
        are to move.
    margin : float
        Size of the working set as a multiple of the number of free samples.
    first_tol : float
        Relative gap to which the problem of the subsample is solved. A smaller gap would be below
        the sampling error.
    joint_accuracy : float
        Accuracy to which a joint step is solved at least. With less accuracy, the exact SVM that
        follows would be wasted.
    face_accuracy : float
        Accuracy to which a joint step is solved at least if the parameter moves within a face.
        Such a round costs a pass over the whole parameter, which is more than a few Newton steps.
    inwards : float
        Part of the way to the centre that P is moved before a joint step, relative to the gap.
    closest : float
        Smallest relative gap that a joint step starts from. An iterate that is nearer to its bounds
        is too far from the central path for steps of full length.
    max_newton : int
        Largest number of Newton steps of one round. More steps indicate rounding.
    moved : float
        Fraction of its box by which an SVM has to move a held sample for it to move from then on.
    growth : float
        Growth factor of the number of support vectors seen so far from which on the smallest size
        of the working set is not doubled, because the set grows with these support vectors.
    directions : int
        Number of directions in which a large parameter moves at first.
    wider : float
        Factor of the number of directions of several machines after a round of small gain.
    part : float
        Value of a direction, relative to the largest one, from which on the parameter of several
        machines moves in it at first.
    fewest : int
        Smallest number of directions in which the parameter of several machines moves.
    fewest_of_many : int
        The same for a large parameter.
    directions_of_factor : int
        Largest number of directions of the first parameter of several machines.
    passes : int
        Largest number of passes over few machines in which this parameter is found.
    machines_per_pass : int
        Number of machines for each further pass. A joint step of many machines costs more passes.
    most_mixed : int
        Largest number of samples of several machines that are solved together at first, if their
        rows have as many features as there are rows.
    trim : float
        Fraction of the tolerated gap that dropping directions of the parameter may cost.
    shrink : float
        Factor by which the step is multiplied if the value has risen.
    many_params : int
        Side of the parameter from which on the first pair comes from a few machines on all rows.
    few_params : int
        Side of the parameter up to which the same is done for at most `few_rows` rows.
    few_rows : int
        See `few_params`.
    near_rows : int
        Smallest size of the working set if the rounds go on from such a pair.
    most_near_rows : int
        Largest size of the first working sets then. The first round mainly moves P, which a part of
        the free samples determines well enough.
    near : float
        Largest gap of the pair of a few machines from which the rounds go on, if P has few entries.
        From a pair that is farther away, the interior point method would take more steps than from
        a subsample.
    near_of_many : float
        The same for a parameter of many features, whose steps cost more, and for the pair of a
        given parameter and several machines.
    """

    first_rows: int = 200
    rows_per_param: int = 4
    rows_per_machine: int = 6
    usual_rows: int = 800
    max_rows: int = 6000
    poor: float = 0.2
    sparse: float = 0.25
    margin: float = 1.2
    first_tol: float = 0.1
    joint_accuracy: float = 1e-3
    face_accuracy: float = 1e-5
    inwards: float = 0.03
    closest: float = 3e-2
    max_newton: int = 60
    moved: float = 0.1
    growth: float = 1.05
    directions: int = 32
    wider: float = 1.3
    part: float = 0.05
    fewest: int = 24
    fewest_of_many: int = 64
    directions_of_factor: int = 48
    passes: int = 8
    machines_per_pass: int = 16
    most_mixed: int = 4000
    trim: float = 0.03
    shrink: float = 0.3
    many_params: int = 48
    few_params: int = 24
    few_rows: int = 1000
    near: float = 0.6
    near_of_many: float = 0.15
    near_rows: int = 100
    most_near_rows: int = 300


DEFAULT_SETTINGS = WorkingSetSettings()
_UNLIMITED = 2**62  # number of iterations that is never reached


def working_set(
    problem: SaddlePoint,
    *,
    tol: float = 1e-3,
    max_iter: int = 100,
    time_limit: float | None = None,
    parameter0: Point | None = None,
    w0: FloatArray | None = None,
    n_jobs: int | None = None,
    callback: Callback | None = None,
    settings: WorkingSetSettings = DEFAULT_SETTINGS,
) -> SolverResult:
    """Alternate an exact SVM on all samples with the joint method on a working set.

    At the optimum most samples are at a bound of the dual, and the few free samples determine P.
    Each round has two steps. (1) The SVM for the current P is solved on all samples, starting from
    the last dual vector. This shows which samples are free. (2) The saddle point over P and the
    free and nearly free samples is solved by the interior point method of :func:`joint`, while the
    other samples are held at their bounds. The first P of a single machine with up to 1,000 rows or
    many features is near the best response to a machine whose kernel is at least every kernel of
    the set, which is optimal itself if there are many features. The first P of several machines has
    the directions of all such machines, and is improved by some passes of a descent on a factor of
    P, whose support vectors belong to the first working set; if their rows have about as many
    features as there are rows, it comes from machines that are solved together with a matrix that
    mixes their functions, and is nearly optimal. Otherwise, it comes from that method
    on a small sample, stratified by machine and class, whose C is raised to keep the weight of the
    loss.
    Samples that an SVM has moved although the round held them belong to all later working sets. So
    do all support vectors seen so far, as long as they are few. The method typically needs two to
    four SVM solves to a gap of 1e-6.

    Primal: ``min_P max_w κ(w) - ½ wᵀK(P)w``. Dual bound: ``κ(w) - ½ support(D(w))``. Stops
    when the certified relative gap between the two, computed by `problem`, is at most `tol`.

    Parameters
    ----------
    problem : SaddlePoint
        Problem to solve: a bound kernel set and the dual problem of its machines.
    tol : float
        Certified relative gap at which to stop.
    max_iter : int
        Largest number of records of the history. A round writes two records, one after the SVM
        and one after the joint step.
    time_limit : float, optional
        Largest number of seconds. When it is reached, the best certified pair is returned.
    parameter0 : Point, optional
        Feasible parameter to start from. The default is to learn one on a subsample. If the
        parameter is one matrix P, a factor U of P = U Uᵀ with fewer columns than rows is accepted.
        One for several machines is replaced if one pass over them leaves a gap above
        ``settings.near_of_many``.
    w0 : ndarray of shape (m,), optional
        Dual vector to start from.
    n_jobs : int, optional
        Number of threads. None uses all cores that the process may use.
    callback : callable or Monitor, optional
        Called with each :class:`IterationRecord`, or a monitor that follows the run.
    settings : WorkingSetSettings
        Sizes and thresholds of the rounds.

    Returns
    -------
    SolverResult
        Best certified pair of a parameter and a dual vector.

    Notes
    -----
    A round costs one kernel matrix and one warm SVM on m samples, two certificates of
    O(m · support · n_P), and about fifteen Cholesky factorisations of the side of the working set.
    The size of the working set is 1.2 times the number of free samples, at least 200 (or 4 n_P)
    and at first at most 800, or 300 if the first P comes from machines on all samples, because P
    has few degrees of freedom and a random part of the free samples determines it well enough until
    the gap is small. The method holds the rows of one
    kernel matrix that the SVM visits, as many as memory allows, or the whole matrix up to 2,000
    rows and for kernel sets without single rows. If a round raises the value, the step is
    shortened. In this case, and if a round leaves more than a fifth of the gap, the working set is
    doubled, up to 6,000 samples or all samples. With all samples, a round is the joint method.

    A large parameter moves only within a face of its cone that is likely to contain the optimum.
    Beyond n_P = 64 a matrix moves within the span of its own leading eigenvectors, those of D(w),
    and the top ones of earlier rounds. The span has 32 directions at first and is doubled like the
    working set. The matrix of several machines moves, whatever its side, in the directions in which
    it or D(w), for the dual vector of the best bound, has more than a twentieth of its largest
    eigenvalue, at least 24, or 40 beyond n_P = 64. Of more than 32 weights, those move that are not
    zero or whose kernels have the largest wᵀK_i w.
    """
    require_bounds("working-set", problem)
    start = None if parameter0 is None else problem.cone.checked(parameter0)
    run = Run(
        "working-set",
        problem,
        tol=tol,
        max_iter=max_iter,
        time_limit=time_limit,
        n_jobs=n_jobs,
        callback=callback,
    )
    return run_to_end(run, _WorkingSet(run, start, w0, settings).solve)


class _WorkingSet:
    """State of one run: the parameter P, the dual vector w, and the size of the next set."""

    def __init__(
        self, run: Run, P0: Point | None, w0: FloatArray | None, settings: WorkingSetSettings
    ) -> None:
        self._run, self._settings = run, settings
        self._problem, self._cone, self._dual = run.problem, run.problem.cone, run.problem.dual
        self._several = len(self._dual.starts) > 1
        self._rng = np.random.default_rng(0)
        self._least_rows = max(
            settings.first_rows,
            settings.rows_per_param * self._cone.effective_degree,
            settings.rows_per_machine * len(self._dual.starts),
        )
        # A given P is usually near the optimum, so that few rows are enough to improve it.
        self._most_rows = max(settings.usual_rows if P0 is None else 0, self._least_rows)
        self._P = P0
        self._w = w0
        self._directions = settings.directions
        self._face_memory: list[object] = []
        self._complete_face = self._cone.moves_whole
        self._seen = np.zeros(self._dual.size, dtype=np.bool_)
        self._n_seen = 0
        self._held, self._is_held = np.zeros(self._dual.size), np.zeros_like(self._seen)
        self._restless = np.zeros_like(self._seen)
        self._is_solved = False
        self._face_point: DualPoint | None = None  # the one of the best bound

    @property
    def parameter(self) -> Point:
        """The current parameter."""
        return self._P

    def _first_parameter(self) -> Point:
        """Return the parameter of a few machines or of a subsample, by the number of rows.

        Several machines determine it together. A large parameter of one machine comes from growing
        subsamples.
        """
        settings = self._settings
        if self._mixing_pays():
            self._run.phase(f"first kernel from {len(self._dual.starts)} machines together")
            first, self._face_point = mixed_start(self._run, self._w)
            self._w = self._face_point.w
            return first
        if self._several and isinstance(self._cone, PSD) and self._dual.kappa_rises():
            self._run.phase(f"first kernel from {len(self._dual.starts)} machines")
            first, w = balanced_start(self._run, self._w)
            columns = settings.directions_of_factor
            passes = settings.passes + len(self._dual.starts) // settings.machines_per_pass
            found = descend(self._run, first, w, columns, passes)
            self._w, self._face_point = found.w, found.average
            self._seen |= found.support
            return found.P
        if self._majorant_pays():
            self._run.phase(f"first kernel from machines on {self._dual.size} rows")
            majorant_start(self._run, self._w, 0.1 * self._run.tol)
            many = machines_come_first(self._cone, settings)
            near = settings.near_of_many if many else settings.near
            if self._run.gap < near or 2 * self._least_rows >= self._dual.size:
                few = settings.rows_per_param * self._cone.effective_degree
                self._least_rows = min(self._least_rows, max(settings.near_rows, few))
                self._most_rows = max(settings.most_near_rows, self._least_rows)
                first, self._w = self._run.best
                self._is_solved = True
                return first
        samples = self._nested_samples()
        if not samples or not self._dual.kappa_rises():
            return self._cone.centre
        if self._cone.moves_whole:
            return self._joint_parameter(samples[0])
        P: Point = None
        for sample in reversed(samples):
            P = self._parameter_in_rounds(sample, P)
        return P

    def _replace_if_poor(self) -> None:
        """Replace a given parameter of several machines if it is one of other data.

        It lacks directions then, in which D(w) is large, so that rounds from it would take longer
        than from a new one.
        """
        self._solve_svm(1.0)
        if self._run.gap > self._settings.near_of_many:
            self._P = self._first_parameter()

    def _mixing_pays(self) -> bool:
        """Return whether D(w) of each of several machines is likely to have one direction.

        Solving them together takes one matrix of the side of all samples.
        """
        rows = self._problem.kernels.common_rows() if self._several else None
        if rows is None or not self._dual.kappa_rises():
            return False
        wide = self._cone.degree >= rows.kernels.n_samples
        return wide and self._dual.size <= self._settings.most_mixed

    def _majorant_pays(self) -> bool:
        """Return whether a few machines on all rows are likely to be nearly optimal.

        With many features D(w) has one direction. With few features and few rows the machines cost
        less than the interior point steps that they save.
        """
        settings, cone = self._settings, self._cone
        if not isinstance(cone, PSD) or self._several:
            return False
        few = cone.degree <= settings.few_params and self._dual.size <= settings.few_rows
        return (few or machines_come_first(cone, settings)) and self._dual.kappa_rises()

    def _nested_samples(self) -> list[SaddlePoint]:
        """Return nested subsamples, each with the weight of the loss of the whole problem."""
        samples: list[SaddlePoint] = []
        kernels, dual = self._problem.kernels, self._dual
        while count := self._cone.subsample_size(dual.size, self._least_rows):
            rows, weight = sample_strata(dual, count, np.random.default_rng(0))
            if 2 * len(rows) > dual.size:
                break  # of many machines, each keeps samples of both classes
            kernels, dual = kernels.subset(rows), dual.restrict(rows, weight)
            samples.append(SaddlePoint(kernels, dual))
        return samples

    def _joint_parameter(self, sample: SaddlePoint) -> Point:
        """Return the parameter of a subsample, which the whole problem certifies later."""
        self._run.phase(f"first kernel from {sample.dual.size} rows")
        settings, cone = self._settings, sample.cone
        whole = WholeProblem(sample)
        with limit_blas(self._run.n_jobs, sample.dual.size):
            start = state_near(whole, cone.centre, neutral_alpha(whole, cone.centre))
            state = self._minimise(InteriorPoint(whole, *start), settings.first_tol)
        P, point = cone.normalised(state.M), sample.at(whole.halves.join(state.alpha))
        cost = settings.trim * settings.first_tol * abs(point.dual_value(P))
        return cone.trimmed(P, point.gradient, cost)

    def _parameter_in_rounds(self, sample: SaddlePoint, P: Point | None) -> Point:
        """Return a parameter that is too large to move in all directions at once.

        Of the parameters found for the sample, the last one is taken and not the best one: two
        parameters may have nearly the same value, and the last one lies in the better face.
        """
        self._run.phase(f"first kernel from {sample.dual.size} rows")
        run = Run(
            "working-set",
            sample,
            tol=self._settings.first_tol,
            max_iter=_UNLIMITED,
            time_limit=self._run.seconds_left(),
            n_jobs=self._run.n_jobs,
            callback=None,
            is_part=True,
        )
        rounds = _WorkingSet(run, sample.cone.centre if P is None else P, None, self._settings)
        answer = run_to_end(run, rounds.iterate)
        if answer.status is SolverStatus.INTERRUPTED:
            raise StopRun(answer.status)  # the sample proves nothing for all rows
        self._run.count_newton(answer.history[-1].n_newton)
        return rounds.parameter

    def solve(self, run: Run) -> SolverStatus:
        """Run rounds until the run is over, then make the zeros of the dual vector exact."""
        if self._P is None:
            self._P = self._first_parameter()
        elif self._several and run.gap > self._settings.near_of_many:
            self._replace_if_poor()
        try:
            return self.iterate(run)
        except StopRun as stop:
            if stop.status in (SolverStatus.OPTIMAL, SolverStatus.VALIDATION):
                with suppress(StopRun):  # without time for this, the pair is still optimal
                    self._sparsify()
            return stop.status

    def _sparsify(self) -> None:
        """Replace a best pair from the interior by a pair with exact zeros.

        The settled vector of the joint step is seldom near enough, and a machine on few rows takes
        no longer than to see whether it is.
        """
        run, (P, w) = self._run, self._run.best
        assert self._w is not None
        if np.array_equal(w, self._w):
            return
        if self._dual.size > self._settings.few_rows and run.replace(P, self._w):
            return
        run.replace(P, run.svm_at(P, self._w, self._svm_tol()).w)

    def iterate(self, run: Run) -> SolverStatus:
        """Run rounds until the run is over."""
        svm = self._answer_of_best() if self._is_solved else self._solve_svm(1.0)
        while True:
            gap, before, start = run.gap, svm.objective, self._P
            target = self._joint_step(svm)
            step, slack = 1.0, self._svm_tol() * abs(before)
            svm = self._solve_svm(step)
            while svm.objective > before + slack and step > 1e-4:
                step *= self._settings.shrink
                self._P = start + step * (target - start)
                svm = self._solve_svm(step)
            if step < 1.0 or run.gap > self._settings.poor * gap:
                if self._least_rows >= 4 * self._dual.size and self._complete_face:
                    return SolverStatus.STALLED
                self._enlarge()

    def _enlarge(self) -> None:
        """Give the next round more directions, and more rows unless its rows grow anyway."""
        self._directions = int(self._directions * (self._settings.wider if self._several else 2.0))
        self._most_rows *= 2
        seen, before = int(np.count_nonzero(self._seen | (self._w != 0.0))), self._n_seen
        self._n_seen = seen
        few_new = seen < self._settings.growth * before
        if few_new or seen > self._settings.sparse * self._dual.size:
            self._least_rows *= 2

    def _svm_tol(self) -> float:
        """Return a small part of the current gap, so that the SVM does not decide the outer gap.

        Where the parameter of one machine moves within faces, a round costs so much more than an
        exact SVM that all of them are solved to the end.
        """
        exact = 0.1 * self._run.tol
        if not (self._cone.moves_whole or self._several):
            return exact
        most = 1e-4 if self._several else 1e-3
        return max(exact, min(most, 0.02 * self._run.gap))

    def _solve_svm(self, step: float) -> SvmAnswer:
        solution = self._run.svm_at(self._P, self._w, self._svm_tol())
        self._w = solution.w
        # A far outlier can change sides between two P without ever coming near the margin, and
        # then moves other samples too. A sample that moved while held is therefore not held again.
        box = np.maximum(self._dual.upper, -self._dual.lower)
        far = np.abs(solution.w - self._held) > self._settings.moved * box
        self._restless |= self._is_held & far
        self._point = self._record(self._run.problem.at(solution.w), step)
        return solution

    def _answer_of_best(self) -> SvmAnswer:
        """Return the machine of the current parameter, whose pair has been recorded."""
        self._point = self._face_point = point = self._run.best_point
        return SvmAnswer(point.w, point.residuals(self._P), point.dual_value(self._P))

    def _record(self, point: DualPoint, step: float) -> DualPoint:
        """Record the current parameter with a dual vector, and keep the one of the best bound."""
        if self._face_point is None or point.lower > self._face_point.lower:
            self._face_point = point
        return self._run.record_point(self._P, point, step)

    def _joint_step(self, svm: SvmAnswer) -> Point:
        """Move P and w to the saddle point over P and the working set."""
        if self._several and self._face_point is not None and self._point is not self._face_point:
            # The average of several dual vectors leaves less of the gap than the last one.
            svm = replace(svm, w=self._face_point.w)
        rows, face = self._choose_rows(svm), self._choose_face()
        self._held, self._is_held = svm.w.copy(), np.ones(self._dual.size, dtype=np.bool_)
        self._is_held[rows] = False
        self._run.begin_newton_steps(len(rows))
        restricted = RestrictedProblem(self._problem, rows, svm.w, face)
        state = self._solve_restricted(restricted, face, svm.w[rows], svm.residual[rows])
        halves, cone = restricted.halves, self._cone
        P = cone.normalised(cone.expand(face, state.M))
        # Later steps start from values that are set to the bounds they tend to. The interior
        # values prove a slightly better bound, so they are the ones that are certified.
        settled = halves.settled(state.alpha, state.zl, state.zu)
        interior = self._problem.at(self._moved(svm.w, rows, halves.join(state.alpha)))
        cost = self._settings.trim * self._run.tol * self._run.value
        self._P = cone.trimmed(P, interior.gradient, cost)
        if interior.dual_value(self._P) > self._point.dual_value(self._P):
            self._w = self._moved(svm.w, rows, halves.join(settled))
        self._point = self._record(interior, 1.0)
        return self._P

    def _solve_restricted(
        self, restricted: RestrictedProblem, face: Face, w: FloatArray, residual: FloatArray
    ) -> CentralPathState:
        """Solve the saddle point on the working set, starting from the current P and w."""
        settings, left = self._settings, self._run.gap
        gap = max(settings.closest, left)
        whole = face is None or self._several
        least = settings.joint_accuracy if whole else settings.face_accuracy
        tol = max(0.1 * self._run.tol, min(least, 0.03 * left))
        part = max(settings.inwards * min(gap, 1.0), 1e-10)
        M = restricted.cone.interior(self._cone.restrict(face, self._P), part)
        with limit_blas(self._run.n_jobs, len(w)):
            start = state_at(restricted, M, w, residual, gap)
            return self._minimise(interior_point(restricted, *start), tol)

    def _moved(self, w: FloatArray, rows: Rows, values: FloatArray) -> FloatArray:
        moved = w.copy()
        moved[rows] = values
        return self._dual.feasible(moved)

    def _choose_face(self) -> Face:
        """Return the face of the cone in which P moves next."""
        point = self._point
        if isinstance(self._cone, PSD) and self._several:
            found = self._narrow_face(self._cone)
        else:
            found = self._cone.leading_face(
                self._P, point.gradient, point.spectrum, self._directions, self._face_memory
            )
        self._complete_face = found.complete
        return found.face

    def _narrow_face(self, cone: PSD) -> LeadingFace:
        """Return the face for several machines, which is wider after each round of small gain."""
        settings, point, P = self._settings, self._face_point, self._P
        assert P is not None
        assert point is not None
        growth = self._directions / settings.directions
        fewest = settings.fewest if cone.moves_whole else settings.fewest_of_many
        return cone.narrow_face(
            *(P, point.gradient, point.spectrum),
            *(settings.part / growth**3, int(growth * fewest), self._face_memory),
        )

    def _minimise(
        self, method: InteriorPoint | CompiledInteriorPoint, tol: float
    ) -> CentralPathState:
        """Return the best iterate of the interior point method."""

        def is_over() -> bool:
            self._run.count_newton()
            self._run.check_time()
            return self._run.seconds_left() == 0.0

        return best_iterate(method, tol, self._settings.max_newton, is_over)

    def _choose_rows(self, svm: SvmAnswer) -> Rows:
        """Return the free and nearly free samples, or a random part of them if there are many."""
        dual, w, settings = self._dual, svm.w, self._settings
        distance = dual.distance_to_kink(svm.residual)
        free = dual.free(w)
        count = max(self._least_rows, int(settings.margin * free.sum()))
        self._seen |= w != 0.0
        seen, most = np.count_nonzero(self._seen), self._most_rows
        if seen <= settings.sparse * dual.size:
            # On nearly separable data the samples that matter change with P. Without the support
            # vectors of earlier rounds, each round would undo the one before.
            distance = np.where(self._seen, -1.0 / (1.0 + distance), distance)
            count = max(count, int(settings.margin * seen))
            most = max(most, settings.usual_rows)
        restless = int(np.count_nonzero(self._restless & ~free))
        count, most = count + restless, most + restless
        distance = np.where(self._restless, -1.0, distance)
        first = np.where(free, -2.0 - self._rng.random(dual.size), distance)
        order = np.argsort(first, kind="stable")
        return dual.movable(np.sort(order[: min(count, most, settings.max_rows)]), w)


def machines_come_first(cone: Cone, settings: WorkingSetSettings = DEFAULT_SETTINGS) -> bool:
    """Return whether P has so many rows that D(w) has nearly one direction.

    A few machines are then nearly optimal.
    """
    return isinstance(cone, PSD) and cone.degree >= settings.many_params
