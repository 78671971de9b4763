"""The joint method on a working set, an exact SVM on all samples: the default for any size."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tessella.backend import KernelOnDemand, limit_blas
from tessella.kernels import positive_factor
from tessella.problems import SaddlePoint
from tessella.solvers._interior_point import InteriorPoint, JointState
from tessella.solvers._joint_problems import (
    RestrictedProblem,
    WholeProblem,
    inwards,
    neutral_alpha,
    state_near,
)
from tessella.solvers._result import SolverResult, SolverStatus
from tessella.solvers._run import Callback, Run, StopRun, SvmAnswer, run_to_end
from tessella.svm import DualProblem

FloatArray = NDArray[np.float64]
Rows = NDArray[np.intp]

_FIRST_ROWS = 200  # least size of the subsample and of the working set
_ROWS_PER_PARAM = 4  # ... and least number of rows per unit of n_P
_ROWS_PER_MACHINE = 12  # ... and per machine, where there are several
_USUAL_ROWS = 800  # size that decides P well enough at first, however many samples are free
MAX_ROWS = 6000  # most samples that move together: one step then takes about a second
_POOR = 0.2  # part of the gap left after a round that calls for a larger set
_SPARSE = 0.25  # part of the samples up to which all support vectors seen so far move
_MARGIN = 1.2  # working set over free samples
_FIRST_TOL = 0.1  # of the subsample: its sampling error is larger
_MAX_NEWTON = 60
_MOVED = 0.1  # part of its box by which a held sample has to move to be held no more
_GROWTH = 1.05  # of the samples ever seen as support vectors: then the set grows by itself
_DENSE_ROWS = 2000  # up to here the whole kernel matrix costs less than rows one at a time
_WHOLE_SPAN = 64  # largest n_P for which P moves in all directions at once
_SPAN = 32  # directions in which it moves otherwise at first: half from P, half from D(w)
_REMEMBERED = 2  # leading directions of D(w) that later rounds keep
_TRIM = 0.03  # part of the tolerated gap that dropping directions of P may cost
_NEGLIGIBLE = 1e-6  # part of the largest eigenvalue of P below which a direction is not kept
_SHRINK = 0.3  # of the step when the value has risen


def working_set(
    problem: SaddlePoint,
    *,
    tol: float = 1e-3,
    max_iter: int = 100,
    time_limit: float | None = None,
    P0: FloatArray | None = None,
    w0: FloatArray | None = None,
    n_jobs: int | None = None,
    callback: Callback | None = None,
) -> SolverResult:
    """Alternate an exact SVM on all samples with the joint method on those that matter.

    At the optimum most samples sit at a bound of the dual and only say so; P is decided by the
    few that do not. Each round (1) solves the SVM for the current P on all samples, warm, which
    tells who is free; (2) solves the saddle point over P and the free and nearly free samples
    together by the interior point method of :func:`joint`, the others held at their bounds.
    The first P comes from that method on a small sample, stratified by machine and class, whose C
    is raised to keep the weight of the loss. Samples that an SVM has moved although the round
    held them move from then on; so do, as long as they are few, all support vectors seen so far.
    Typically two to four SVM solves to a gap of 1e-6.

    Primal: ``min_P max_w κ(w) - ½ wᵀK(P)w``. Dual bound: ``κ(w) - (n_P/2) λ_max(D(w))``. Stops
    when the certified relative gap between the two, computed by `problem`, is at most `tol`.

    Parameters
    ----------
    problem : SaddlePoint
        Kernel set and SVM.
    tol : float
        Relative gap.
    max_iter : int
        Limit on records of the history: a round writes two, after the SVM and after the joint
        step.
    time_limit : float, optional
        Seconds; the best certified pair is returned when they are over.
    P0, w0 : ndarray, optional
        Where to start instead of the subsample: a feasible P, or a factor U of P = U Uᵀ with
        fewer columns than rows, and a dual vector.
    n_jobs : int, optional
        Threads.
    callback : callable, optional
        Called with each :class:`IterationRecord`.

    Returns
    -------
    SolverResult

    Notes
    -----
    Cost per round: one kernel matrix and one warm SVM on m samples, two certificates of
    O(m · support · n_P), and some fifteen Cholesky factorisations of the side of the working
    set. That is 1.2 times the number of free samples, at least 200 (or 4 n_P) and at first at most
    800: P has few degrees of freedom, and a random part of the free samples decides it well
    enough until the gap is small. Holds the rows of one kernel matrix that the SVM visits, as many
    as memory allows (all of it up to 2,000 rows, and for kernel sets without single rows). When a
    round raises the value, the step is shortened; then, and when a round leaves more than a
    fifth of the gap, the working set is doubled, up to 6,000 samples or all of them, where the
    round is the joint method itself.

    Beyond n_P = 64 a round moves P only within the span of its own leading eigenvectors, those of
    D(w), and the top ones of earlier rounds: 32 directions at first, doubled like the working
    set. The optimal P has rank one or two, and lives in the leading eigenspace of D.
    """
    P0 = None if P0 is None else problem.parameters.checked(P0)
    run = Run(
        "working-set",
        problem,
        tol=tol,
        max_iter=max_iter,
        time_limit=time_limit,
        n_jobs=n_jobs,
        callback=callback,
    )
    return run_to_end(run, lambda run: _WorkingSet(run, P0, w0, n_jobs).solve())


class _WorkingSet:
    """State of one run: P, the dual vector w, and the size of the next working set."""

    def __init__(
        self, run: Run, P0: FloatArray | None, w0: FloatArray | None, n_jobs: int | None
    ) -> None:
        self._run = run
        self._n_jobs = n_jobs
        self._problem = run.problem
        self._dual = run.problem.dual
        self._rng = np.random.default_rng(0)
        self._least_rows = max(
            _FIRST_ROWS,
            _ROWS_PER_PARAM * run.problem.parameters.side,
            _ROWS_PER_MACHINE * len(self._dual.starts),
        )
        # A given P is mostly near the optimum, and few rows tell where to go from there.
        self._most_rows = max(_USUAL_ROWS if P0 is None else 0, self._least_rows)
        self._P = self._guess() if P0 is None else P0
        self._w = w0
        self._K: NDArray[np.floating] | None = None
        self._rows = KernelOnDemand(run.problem.kernels.dtype)
        self._span = _SPAN
        self._seen = np.zeros(self._dual.size, dtype=np.bool_)
        self._n_seen = 0
        self._held, self._is_held = np.zeros(self._dual.size), np.zeros_like(self._seen)
        self._restless = np.zeros_like(self._seen)
        self._earlier: list[FloatArray] = []

    def _guess(self) -> FloatArray:
        """P of a subsample."""
        m, centre = self._dual.size, self._problem.parameters.centre
        count = self._least_rows
        if 2 * count >= m or not self._dual.kappa_rises():
            return centre
        rows, weight = sample_strata(self._dual, count, self._rng)
        self._run.phase(f"first kernel from {len(rows)} rows")
        sample = SaddlePoint(
            self._problem.kernels.restrict(rows), self._dual.restrict(rows, weight)
        )
        if len(centre) <= _WHOLE_SPAN:
            P, w = self._joint_guess(sample)
        else:
            P, w = self._guess_in_rounds(sample)
        point = sample.at(w)
        return trimmed(P, point.gradient, _TRIM * _FIRST_TOL * abs(point.dual_value(P)))

    def _joint_guess(self, sample: SaddlePoint) -> tuple[FloatArray, FloatArray]:
        """P and w of the subsample, uncertified: the whole problem will say what they are worth."""
        whole = WholeProblem(sample)
        centre = sample.parameters.centre
        with limit_blas(self._n_jobs, sample.dual.size):
            start = state_near(whole, centre, neutral_alpha(whole, centre))
            state = self._minimise(InteriorPoint(whole, *start), _FIRST_TOL)
        return state.M * (len(centre) / float(np.trace(state.M))), whole.halves.join(state.alpha)

    def _guess_in_rounds(self, sample: SaddlePoint) -> tuple[FloatArray, FloatArray]:
        """The same for a P too large to move in all directions at once."""
        answer = working_set(sample, tol=_FIRST_TOL, time_limit=self._run.seconds_left())
        if answer.status is SolverStatus.INTERRUPTED:
            raise StopRun(answer.status)  # the sample's answer is none for the whole
        self._run.count_newton(answer.history[-1].n_newton)
        return answer.P, answer.w

    def solve(self) -> SolverStatus:
        """Rounds until the run is over; then a dual vector with exact zeros, as an SVM has."""
        try:
            return self._iterate()
        except StopRun as stop:
            if stop.status in (SolverStatus.OPTIMAL, SolverStatus.VALIDATION):
                with suppress(StopRun):  # out of time for zeros: the pair is optimal without them
                    self._sparsify()
            return stop.status

    def _sparsify(self) -> None:
        """Exchange a best pair that comes from the interior for one with exact zeros."""
        run, (P, w) = self._run, self._run.best
        assert self._w is not None
        if np.array_equal(w, self._w) or run.replace(P, self._w):
            return
        run.replace(P, self._svm(P).w)

    def _iterate(self) -> SolverStatus:
        run = self._run
        svm = self._solve_svm(1.0)
        while True:
            gap, before, start = run.gap, svm.objective, self._P
            target = self._joint_step(svm)
            step, slack = 1.0, self._svm_tol() * abs(before)
            svm = self._solve_svm(step)
            while svm.objective > before + slack and step > 1e-4:
                step *= _SHRINK
                self._P = start + step * (target - start)
                svm = self._solve_svm(step)
            if step < 1.0 or run.gap > _POOR * gap:
                if self._least_rows >= 4 * self._dual.size and self._whole_span:
                    return SolverStatus.STALLED
                self._enlarge()

    def _enlarge(self) -> None:
        """Give the next round more directions, and more rows unless it has more to see anyway."""
        self._span *= 2
        self._most_rows *= 2
        seen, before = int(np.count_nonzero(self._seen | (self._w != 0.0))), self._n_seen
        self._n_seen = seen
        if seen > _SPARSE * self._dual.size or seen < _GROWTH * before:
            self._least_rows *= 2

    def _svm_tol(self) -> float:
        """A small part of the gap we stand at: the SVM must not decide the outer gap."""
        return max(0.1 * self._run.tol, min(1e-3, 0.02 * self._run.gap))

    def _solve_svm(self, step: float) -> SvmAnswer:
        solution = self._svm(self._P)
        self._w = solution.w
        # A far outlier changes sides between two P without ever coming near the margin, and takes
        # the others with it. Who has moved although it was held is not held again.
        box = np.maximum(self._dual.upper, -self._dual.lower)
        self._restless |= self._is_held & (np.abs(solution.w - self._held) > _MOVED * box)
        self._point = self._run.record(self._P, solution.w, step)
        return solution

    def _svm(self, P: FloatArray) -> SvmAnswer:
        """An SVM on all samples, from where w stands; rows of K(P) that it needs not are saved."""
        return self._run.svm(self._kernel_matrices(P), P, self._w, self._svm_tol())

    def _kernel_matrices(self, P: FloatArray) -> Iterator[NDArray[Any] | KernelOnDemand]:
        """K(P) of one machine after the other, in the same place."""
        U = positive_factor(P)
        for kernels in self._problem.kernels.machines:
            large = kernels.n_samples > _DENSE_ROWS
            form = kernels.product_form(U, centred=True) if large else None
            if form is None:
                yield kernels.gram_factor(U, centred=True, out=self._matrix(kernels.n_samples))
            else:
                self._rows.hold(form)
                yield self._rows

    def _matrix(self, side: int) -> NDArray[Any]:
        """Room for a kernel matrix: that of the last one, if it was as large."""
        if self._K is None or len(self._K) < side * side:
            self._K = np.empty(side * side, self._problem.kernels.dtype)
        return self._K[: side * side].reshape(side, side)

    def _joint_step(self, svm: SvmAnswer) -> FloatArray:
        """The saddle point over P and the working set; moves P and w there."""
        rows = self._choose_rows(svm)
        self._held, self._is_held = svm.w.copy(), np.ones(self._dual.size, dtype=np.bool_)
        self._is_held[rows] = False
        self._run.phase(f"joint step on {len(rows)} rows")
        tol = max(0.1 * self._run.tol, min(1e-3, 0.03 * self._run.gap))
        span = self._choose_span()
        restricted = RestrictedProblem(self._problem, rows, svm.w, span)
        alpha = inwards(restricted.halves, svm.w[rows])
        with limit_blas(self._n_jobs, len(rows)):
            start = state_near(restricted, self._interior(span), alpha)
            state = self._minimise(InteriorPoint(restricted, *start), tol)
        halves, M = restricted.halves, state.M
        P = M if span is None else span @ M @ span.T
        self._P = P * (len(P) / float(np.trace(P)))
        # Values on their way to a border are put there for whoever goes on from here. The
        # interior ones prove a little more, so they are what is certified.
        settled = halves.settled(state.alpha, state.zl, state.zu)
        interior = self._problem.at(self._moved(svm.w, rows, halves.join(state.alpha)))
        self._P = trimmed(self._P, interior.gradient, _TRIM * self._run.tol * self._run.value)
        if interior.dual_value(self._P) > self._point.dual_value(self._P):
            self._w = self._moved(svm.w, rows, halves.join(settled))
        self._point = self._run.record_point(self._P, interior, 1.0)
        return self._P

    def _moved(self, w: FloatArray, rows: Rows, values: FloatArray) -> FloatArray:
        moved = w.copy()
        moved[rows] = values
        return self._dual.feasible(moved)

    @property
    def _whole_span(self) -> bool:
        return len(self._P) <= max(_WHOLE_SPAN, 2 * self._span)

    def _choose_span(self) -> FloatArray | None:
        """Directions in which P may move: all (None), or the leading ones.

        The optimal P lives in the leading eigenspace of D at the optimal w. That of the current
        w comes near to it; the range of P and the top directions of earlier rounds make sure
        that no round loses ground.
        """
        if self._whole_span:
            return None
        values, vectors = np.linalg.eigh(self._P)
        held = vectors[:, values > _NEGLIGIBLE * values[-1]][:, -(self._span // 2) :]
        leading = self._point.spectrum[1]
        span: FloatArray = np.linalg.qr(
            np.hstack([held, leading[:, -(self._span // 2) :], *self._earlier])
        )[0]
        self._earlier = [*self._earlier, leading[:, -_REMEMBERED:]][-(_SPAN // _REMEMBERED) :]
        return span

    def _interior(self, span: FloatArray | None) -> FloatArray:
        """The current P within the span, moved into the interior."""
        M = self._P if span is None else span.T @ self._P @ span
        side, r = len(self._P), len(M)
        M = M * (0.9 * side / float(np.trace(M)))
        interior: FloatArray = M + 0.1 * side / r * np.eye(r)
        return interior

    def _minimise(self, method: InteriorPoint, tol: float) -> JointState:
        """The best iterate of the interior point method."""
        best, state = method.merit, method.state
        for _ in range(_MAX_NEWTON):
            if method.advance() == 0.0:
                break
            self._run.count_newton()
            self._run.check_time()
            if method.merit < best:
                best, state = method.merit, method.state
            settled = best <= tol or method.merit > 1e3 * best
            if settled or self._run.seconds_left() == 0.0:
                break
        return state

    def _choose_rows(self, svm: SvmAnswer) -> Rows:
        """Free samples and those nearest to becoming free; a random part of them if too many."""
        dual, w = self._dual, svm.w
        residual = svm.residual
        distance = np.full(dual.size, np.inf)
        up, down = dual.upper > 0, dual.lower < 0
        distance[up] = np.abs(residual - dual.epsilon)[up]
        distance[down] = np.minimum(distance, np.abs(residual + dual.epsilon))[down]
        free = dual.free(w)
        count = max(self._least_rows, int(_MARGIN * free.sum()))
        self._seen |= w != 0.0
        seen, most = np.count_nonzero(self._seen), self._most_rows
        if seen <= _SPARSE * dual.size:
            # Nearly separable: who matters changes with P. Without the support vectors of
            # earlier rounds each round would undo the one before.
            distance = np.where(self._seen, -1.0 / (1.0 + distance), distance)
            count = max(count, int(_MARGIN * seen))
            most = max(most, _USUAL_ROWS)
        restless = int(np.count_nonzero(self._restless & ~free))
        count, most = count + restless, most + restless
        distance = np.where(self._restless, -1.0, distance)
        first = np.where(free, -2.0 - self._rng.random(dual.size), distance)
        order = np.argsort(first, kind="stable")
        return _movable(dual, np.sort(order[: min(count, most, MAX_ROWS)]), w)


def _movable(dual: DualProblem, rows: Rows, w: FloatArray) -> Rows:
    """`rows` without those of machines whose zero sum cannot be kept: no giver, or no taker."""
    if len(dual.starts) == 1:
        return rows
    count, machine = len(dual.starts), dual.machine_of[rows]
    takers = np.bincount(machine, w[rows] < dual.upper[rows], count)
    givers = np.bincount(machine, w[rows] > dual.lower[rows], count)
    return rows[((takers > 0) & (givers > 0))[machine]]


def sample_strata(
    dual: DualProblem, count: int, rng: np.random.Generator
) -> tuple[Rows, FloatArray]:
    """About `count` random samples, ascending, and how many each of them stands for.

    Every machine and every class has its share, and at least two samples: without one of its
    classes a machine could not move at all.
    """
    kind = 4 * dual.machine_of + 2 * (dual.upper > 0) + (dual.lower < 0)
    _, stratum, sizes = np.unique(kind, return_inverse=True, return_counts=True)
    share = np.minimum(np.maximum(2, np.round(count * sizes / dual.size)), sizes).astype(np.intp)
    order = rng.permutation(dual.size)
    order = order[np.argsort(stratum[order], kind="stable")]
    place = np.arange(dual.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    rows = np.sort(order[place < np.repeat(share, sizes)])
    return rows, (sizes / share)[stratum[rows]]


def trimmed(P: FloatArray, D: FloatArray, cost: float) -> FloatArray:
    """P without the directions that contribute next to nothing, and the same trace.

    An interior point leaves P with full rank where the optimum has rank one or two, and the price
    of every kernel value grows with the rank. Directions are dropped as long as what they lend to
    ``wᵀK(P)w / 2``, with D = D(w), and what the others gain by taking over their trace stay below
    `cost` together.
    """
    values, vectors = np.linalg.eigh(P)
    total = float(np.sum(D * P))
    lent = values * np.einsum("ia,ia->a", vectors, D @ vectors)
    taken = values / float(values.sum()) * total
    order = np.argsort(np.maximum(lent, taken))
    harmless = np.cumsum(0.5 * np.maximum(lent, taken)[order]) <= cost
    harmless[-1] = False
    kept = np.sort(order[~harmless])
    U = vectors[:, kept] * np.sqrt(np.maximum(values[kept], 0.0))
    reduced: FloatArray = U @ U.T
    return reduced * (len(P) / float(np.trace(reduced)))
