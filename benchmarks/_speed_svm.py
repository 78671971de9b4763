"""Rows 1 and 2 of the speed table: the SVM dual from a cold and from a warm start."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from _common import CLASSIFICATION, EPSILON, Dataset, load, saddle_point, say, solve
from _report import text
from _speed import (
    Outcome,
    Session,
    Timed,
    alternate,
    at_most,
    estimator,
    prepare_memory,
    spread,
    standardised,
    timed,
)
from numpy.typing import NDArray
from sklearn.svm import SVC, SVR

from tessella.backend import limit_blas
from tessella.kernels import TessellatedKernels, UnitBox
from tessella.solvers import Run
from tessella.svm import DualProblem, DualSolution, best_intercept, relative_gap, solve_dual

FloatArray = NDArray[np.float64]

SETS = ("abalone", "shill_bidding", "ccpp", "cadata")
COLD_TARGET, WARM_TARGET = 0.4, 0.15
PEER_TOL = 1e-3  # violation of the optimality conditions at which libsvm stops
VALUES_OF_C = (1.0, 100.0)
JUDGED_TOL = 1e-4
WARM_TOLS = (1e-3, JUDGED_TOL, 1e-6)

_LEARNING_ROWS = 2000
_NO_WORSE = 1e-9  # relative slack of "objective no worse": the rounding of a sum
_LEAST_TOL, _MOST_HALVINGS = 1e-9, 25
_MOST_STEPS = 2


# ------------------------------------------------------------------------------------ row 1


@dataclass(frozen=True)
class _Machine:
    """An SVM with its kernel matrix, and how the peer would write it."""

    task: str
    K: FloatArray
    y: FloatArray
    C: float

    @property
    def dual(self) -> DualProblem:
        if self.task == CLASSIFICATION:
            return DualProblem.classification(self.y, self.C)
        return DualProblem.regression(self.y, self.C, EPSILON)

    def peer(self) -> Any:
        """libsvm, with room for the whole matrix in its cache."""
        room = max(2000.0, 5e-6 * self.K.size)
        settings = {"kernel": "precomputed", "C": self.C, "tol": PEER_TOL, "cache_size": room}
        if self.task == CLASSIFICATION:
            return SVC(**settings).fit(self.K, self.y)
        return SVR(epsilon=EPSILON, **settings).fit(self.K, self.y)

    def bounds(self, w: FloatArray) -> dict[str, float]:
        """Dual value and relative gap of a dual vector, in float64."""
        dual, scores = self.dual, self.K @ w
        norm = float(w @ scores)
        value = dual.kappa(w) - 0.5 * norm
        _, loss = best_intercept(dual, scores)
        return {"objective": value, "gap": relative_gap(0.5 * norm + loss, value)}

    def peer_facts(self, model: Any) -> dict[str, Any]:
        w = np.zeros(len(self.y))
        w[model.support_] = model.dual_coef_[0]
        steps = int(np.sum(model.n_iter_))
        return {
            **self.bounds(self.dual.feasible(w)),
            "steps": steps,
            "support": len(model.support_),
        }


def cold_start(session: Session) -> Outcome:
    """Row 1."""
    cells = []
    for name in SETS[::2] if session.quick else SETS:
        for data, asked in _samples(name, session):
            cells += [cell | {"asked": asked} for cell in cold_cells(data, VALUES_OF_C, session)]
    missed = [at_most(cells, "ratio", COLD_TARGET)]
    behind = [cell for cell in cells if not cell["no_worse"]]
    missed.append(f"{len(behind)} objectives worse" if behind else "")
    return Outcome(
        measured=f"{spread(cells, 'ratio')} (float32: {spread(cells, 'ratio_32')})",
        missed=", ".join(part for part in missed if part),
        columns=COLD_COLUMNS,
        cells=cells,
        notes=COLD_NOTES,
    )


def cold_cells(
    data: Dataset, values_of_C: Sequence[float], session: Session
) -> list[dict[str, Any]]:
    """Cold solves of a data set with two kernel matrices, beside libsvm's."""
    cells = []
    for P_name, K, y in _kernel_matrices(data, session):
        for C in values_of_C:
            machine = _Machine(data.task, K, y, C)
            key = f"{data.name} {len(y)} {P_name} C={C:g}"
            about = {"set": data.name, "rows": len(y), "P": P_name, "C": C}
            cells.append(about | _cold_cell(machine, key, session))
            say(f"  {key}: ratio {text(cells[-1]['ratio'])}")
    return cells


def _samples(name: str, session: Session) -> Iterator[tuple[Dataset, str]]:
    """The sizes asked for; the whole set, once, for all that are beyond it."""
    whole = load(name)
    beyond: list[str] = []
    for rows in session.sizes((2000, 6000, 12000), (400,)):
        if rows < len(whole.y):
            yield whole.take(rows, session.seed), f"{rows:,}"
        else:
            beyond.append(f"{rows:,}")
    if beyond:
        yield whole, f"{', '.join(beyond)} (all there are)"


def _kernel_matrices(
    data: Dataset, session: Session
) -> Iterator[tuple[str, FloatArray, FloatArray]]:
    """Centred kernel matrices of the rows, for a learned P and for the identity."""
    few = data.take(_LEARNING_ROWS, session.seed)
    learned = estimator(data.task, n_jobs=session.threads).fit(few.X, few.y)
    X, y = UnitBox.fit(data.X).apply(data.X), standardised(data)
    prepare_memory(40.0 * len(y) ** 2)
    with limit_blas():
        bound = TessellatedKernels().bind(X, n_jobs=session.threads)
        for name, P in (("learned", learned.P_), ("identity", np.eye(bound.n_params))):
            yield name, bound.gram(P, centred=True), y


def _cold_cell(machine: _Machine, key: str, session: Session) -> dict[str, Any]:
    known = session.known(key)
    first: Timed | None = None
    if known is None:
        first = timed(machine.peer)
        theirs = {"seconds": first.best, **machine.peer_facts(first.result)}
    else:
        theirs = known
    ours = _Ours(machine, machine.K, theirs, session.threads)
    single = _Ours(machine, machine.K.astype(np.float32), theirs, session.threads)
    calls = [ours, single]
    if known is None:
        *clocks, again = alternate(*calls, machine.peer)
        assert first is not None
        theirs = session.keep(key, theirs | {"seconds": min(first.best, again.best)})
    else:
        clocks = alternate(*calls)
    return {
        "peer_seconds": theirs["seconds"],
        "peer_cached": known is not None,
        "peer_objective": theirs["objective"],
        "peer_gap": theirs["gap"],
        "peer_steps": theirs["steps"],
        **ours.facts(clocks[0], theirs["seconds"], ""),
        **single.facts(clocks[1], theirs["seconds"], "_32"),
    }


class _Ours:
    """Our solver at the loosest tolerance, halved from the peer's gap, that does no worse."""

    def __init__(
        self, machine: _Machine, K: NDArray[Any], peer: dict[str, Any], threads: int
    ) -> None:
        self._machine, self._K, self._peer, self._threads = machine, K, peer, threads
        self._tol = max(float(peer["gap"]), _LEAST_TOL)
        for _ in range(_MOST_HALVINGS):
            if self._no_worse(self().w):
                break
            self._tol *= 0.5

    def __call__(self) -> DualSolution:
        with limit_blas():
            return solve_dual(self._K, self._machine.dual, tol=self._tol, n_jobs=self._threads)

    def _no_worse(self, w: FloatArray) -> bool:
        value, theirs = self._machine.bounds(w)["objective"], float(self._peer["objective"])
        return value >= theirs - _NO_WORSE * abs(theirs)

    def facts(self, clock: Timed, peer_seconds: float, suffix: str) -> dict[str, Any]:
        """For the table. The peer's seconds are its best, which is known only by now."""
        solution, theirs = clock.result, float(self._peer["objective"])
        reached = self._machine.bounds(solution.w)
        found = {
            "seconds": clock.best,
            "ratio": clock.best / peer_seconds,
            "tol": self._tol,
            "objective": reached["objective"],
            "ahead": (reached["objective"] - theirs) / abs(theirs),
            "gap": reached["gap"],
            "pair_steps": solution.n_iter,
            "newton_steps": solution.n_newton,
            "no_worse": self._no_worse(solution.w),
        }
        return {f"{key}{suffix}": value for key, value in found.items()}


COLD_COLUMNS = {
    "set": "set",
    "rows": "rows",
    "asked": "asked",
    "P": "P",
    "C": "C",
    "libsvm (s)": "peer_seconds",
    "cached": "peer_cached",
    "ours (s)": "seconds",
    "ratio": "ratio",
    "float32 (s)": "seconds_32",
    "ratio, float32": "ratio_32",
    "libsvm objective": "peer_objective",
    "ours ahead by": "ahead",
    "libsvm gap": "peer_gap",
    "our gap": "gap",
    "libsvm steps": "peer_steps",
    "our pair steps": "pair_steps",
    "Newton": "newton_steps",
}
COLD_NOTES = [
    "Both solve the same centred kernel matrix in float64, with the same box; the last columns of "
    "times are ours on the matrix rounded to float32. P learned with the defaults on at most "
    f"{_LEARNING_ROWS:,} of the rows.",
    "libsvm stops at a violation of 1e-3. Its dual value and relative duality gap are computed "
    "from its coefficients in float64; ours runs to that gap, halved until the dual value is no "
    "worse (relative slack 1e-9), and the time is of that run. 'Ahead' is relative to libsvm's "
    "value, and judged in float64 for both storages.",
    "libsvm's time is that of `fit`, its checks of the matrix included; ours that of `solve_dual`.",
]


# ------------------------------------------------------------------------------------ row 2


@dataclass(frozen=True)
class _Call:
    """An SVM solve inside a solver's run."""

    P: FloatArray
    start: FloatArray | None
    answer: FloatArray


@contextmanager
def _recorded_calls(size: int) -> Iterator[list[_Call]]:
    """SVM solves on `size` samples, as they happen."""
    calls: list[_Call] = []
    original = Run.svm

    def recording(self: Any, K: Any, P: FloatArray, w0: FloatArray | None, tol: float) -> Any:
        start = None if w0 is None else w0.copy()
        solution = original(self, K, P, w0, tol)
        if self.problem.dual.size == size:  # not those of a subsample
            calls.append(_Call(P.copy(), start, solution.w.copy()))
        return solution

    Run.svm = recording  # type: ignore[method-assign]
    try:
        yield calls
    finally:
        Run.svm = original  # type: ignore[method-assign]


def warm_start(session: Session) -> Outcome:
    """Row 2."""
    cells: list[dict[str, Any]] = []
    for name in SETS[::2] if session.quick else SETS:
        for rows in session.sizes((2000, 6000), (700,)):
            data = load(name, rows, session.seed)
            cells += _warm_cells(data, session)
            say(f"  {name} {len(data.y)}: ratios {spread(cells, 'ratio')} so far")
    judged = [cell for cell in cells if cell["tol"] == JUDGED_TOL]
    missed = at_most(judged, "ratio", WARM_TARGET) if judged else "no outer step was taken"
    return Outcome(
        measured=f"{spread(judged, 'ratio')} (from the last answer alone: "
        f"{spread(judged, 'ratio_last')})",
        missed=missed,
        columns=WARM_COLUMNS,
        cells=cells,
        notes=WARM_NOTES,
    )


def _warm_cells(data: Dataset, session: Session) -> list[dict[str, Any]]:
    problem = saddle_point(data, TessellatedKernels(), 10.0)
    prepare_memory(24.0 * problem.dual.size**2)
    with _recorded_calls(problem.dual.size) as calls:
        solve("auto", problem, tol=1e-4, time_limit=None)
    cells = []
    pairs = list(pairwise(calls))[:_MOST_STEPS]
    for step, (before, after) in enumerate(pairs, start=1):
        with limit_blas():
            K = problem.kernels.gram(after.P, centred=True)
        change = float(np.linalg.norm(after.P - before.P) / np.linalg.norm(before.P))
        for tol in WARM_TOLS:
            starts = (None, after.start, before.answer)
            calls_of = [_Solve(K, problem.dual, start, tol, session.threads) for start in starts]
            cold, own, last = alternate(*calls_of)
            about = {"set": data.name, "rows": problem.dual.size, "step": step, "change": change}
            cells.append(about | _warm_facts(tol, cold, own, last))
    return cells


@dataclass(frozen=True)
class _Solve:
    K: NDArray[Any]
    dual: DualProblem
    start: FloatArray | None
    tol: float
    threads: int

    def __call__(self) -> DualSolution:
        with limit_blas():
            return solve_dual(self.K, self.dual, w0=self.start, tol=self.tol, n_jobs=self.threads)


def _warm_facts(tol: float, cold: Timed, own: Timed, last: Timed) -> dict[str, Any]:
    return {
        "tol": tol,
        "cold_seconds": cold.best,
        "seconds": own.best,
        "ratio": own.best / cold.best,
        "last_seconds": last.best,
        "ratio_last": last.best / cold.best,
        "objective": own.result.objective,
        "cold_objective": cold.result.objective,
        "gap": own.result.gap,
        "cold_gap": cold.result.gap,
        "cold_steps": cold.result.n_iter,
        "steps": own.result.n_iter,
        "newton": own.result.n_newton,
    }


WARM_COLUMNS = {
    "set": "set",
    "rows": "rows",
    "outer step": "step",
    "change of P": "change",
    "tol": "tol",
    "cold (s)": "cold_seconds",
    "warm (s)": "seconds",
    "ratio": "ratio",
    "from the last answer (s)": "last_seconds",
    "its ratio": "ratio_last",
    "objective": "objective",
    "cold gap": "cold_gap",
    "warm gap": "gap",
    "cold pair steps": "cold_steps",
    "warm pair steps": "steps",
    "warm Newton": "newton",
}
WARM_NOTES = [
    "The default solver runs to a gap of 1e-4 and its SVM calls are recorded. At the P of its "
    f"next call (the first {_MOST_STEPS} outer steps), a cold solve stands against a warm one "
    "from the start that the solver itself used, and from the answer at the P before. Judged at "
    f"a tolerance of {JUDGED_TOL:g}.",
]
