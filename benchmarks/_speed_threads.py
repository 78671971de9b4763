"""Row 11 of the speed table: a cold SVM with many rows, on one and on several threads."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from _common import CLASSIFICATION, EPSILON, REGRESSION, Dataset, load, say
from _report import text
from _roofs import gemm_rate
from _speed import Outcome, Session, alternate, estimator, spread, standardised, worst
from threadpoolctl import threadpool_limits

from tessella._core import max_product_apply
from tessella.backend import KernelOnDemand, ProductForm, limit_blas
from tessella.kernels import TessellatedKernels, UnitBox
from tessella.svm import DualProblem, DualSolution, solve_dual

LEAST_SPEEDUP = 1.7
MADE_UP_ROWS, MADE_UP_SECONDS = 50_000, 40.0
VALUES_OF_C = (1.0, 10.0)

_LEARNING_ROWS = 2000
_ROOF_ROWS = 8000


def several_threads(session: Session) -> Outcome:
    """Row 11."""
    roofs = _roofs(session)
    cells = []
    for data in _samples(session):
        form, y = _kernel(data, session), standardised(data)
        for C in VALUES_OF_C:
            cells.append(_cell(data, form, _dual(data, y, C), C, session))
            say(f"  {data.name} {len(y)} C={C:g}: {text(cells[-1]['speedup'])} times faster")
    slow = [cell for cell in cells if not cell["speedup"] >= LEAST_SPEEDUP]
    largest = [cell for cell in cells if cell["rows"] == MADE_UP_ROWS]
    seconds = worst(largest, "seconds")
    missed = [
        f"{len(slow)} of {len(cells)} below {LEAST_SPEEDUP:g}" if slow else "",
        f"{text(seconds)} s" if seconds > MADE_UP_SECONDS else "",
    ]
    return Outcome(
        measured=f"{spread(cells, 'speedup')} times faster, where this machine allows "
        f"{_shown(roofs)}; {spread(largest, 'seconds')} s at {MADE_UP_ROWS:,} rows",
        missed=", ".join(part for part in missed if part),
        columns=THREAD_COLUMNS,
        cells=cells,
        notes=[f"Roof of the same run: {_shown(roofs)}.", *THREAD_NOTES],
    )


def _roofs(session: Session) -> dict[str, float]:
    """How many times faster the threads are where all work can be shared."""
    rng = np.random.default_rng(session.seed)
    rows, weights = rng.random((_ROOF_ROWS, 8)), rng.random((2, _ROOF_ROWS))
    out = np.empty((_ROOF_ROWS, 2))

    def loops(threads: int) -> Callable[[], None]:
        return lambda: max_product_apply(rows, rows, weights, out, threads)

    def gemm(threads: int) -> float:
        with threadpool_limits(threads, "blas"):
            return gemm_rate(np.float64)

    one, several = alternate(loops(1), loops(session.threads))
    return {
        "max-product loop": one.best / several.best,
        "GEMM": gemm(session.threads) / gemm(1),
    }


def _shown(roofs: dict[str, float]) -> str:
    return ", ".join(f"{text(ratio)} ({name})" for name, ratio in roofs.items())


def _samples(session: Session) -> list[Dataset]:
    if session.quick:
        return [load("cadata").take(2500, session.seed)]
    return [load("cadata").take(20_000, session.seed), _made_up(MADE_UP_ROWS, session.seed)]


def _made_up(rows: int, seed: int) -> Dataset:
    """Rows of 8 features, of which five matter, and a noisy target."""
    rng = np.random.default_rng(seed)
    X = rng.random((rows, 8))
    waves = np.sin(2.0 * np.pi * X[:, 0] * X[:, 1]) + 2.0 * (X[:, 2] - 0.5) ** 2
    y = waves + X[:, 3] + 0.5 * X[:, 4] + 0.3 * rng.standard_normal(rows)
    return Dataset("made up", REGRESSION, X, y)


def _kernel(data: Dataset, session: Session) -> ProductForm:
    """The kernel matrix of a P that is learned on some of the rows."""
    few = data.take(_LEARNING_ROWS, session.seed)
    learned = estimator(data.task, n_jobs=session.threads).fit(few.X, few.y)
    with limit_blas():
        X = UnitBox.fit(data.X).apply(data.X)
        bound = TessellatedKernels().bind(X, n_jobs=session.threads)
        form = bound.product_form(bound.cone.positive_factors(learned.P_), centred=True)
    assert form is not None
    return form


def _dual(data: Dataset, y: Any, C: float) -> DualProblem:
    if data.task == CLASSIFICATION:
        return DualProblem.classification(y, C)
    return DualProblem.regression(y, C, EPSILON)


class _Solve:
    """A cold solve on some threads, with the processor time of its fastest repetition."""

    def __init__(self, form: ProductForm, dual: DualProblem, threads: int) -> None:
        self._form, self._dual, self._threads = form, dual, threads
        self._rows = KernelOnDemand()
        self.busy = np.inf

    def __call__(self) -> DualSolution:
        self._rows.hold(self._form)  # forgets the rows of the last repetition
        before = time.process_time()
        answer = solve_dual(self._rows, self._dual, n_jobs=self._threads)
        self.busy = min(self.busy, time.process_time() - before)
        return answer


def _cell(
    data: Dataset, form: ProductForm, dual: DualProblem, C: float, session: Session
) -> dict[str, Any]:
    alone, together = _Solve(form, dual, 1), _Solve(form, dual, session.threads)
    one, several = alternate(alone, together)
    answer = several.result
    return {
        "set": data.name,
        "rows": dual.size,
        "features": data.X.shape[1],
        "C": C,
        "one": one.best,
        "one_busy": alone.busy,
        "seconds": several.best,
        "busy": together.busy,
        "speedup": one.best / several.best,
        "objective": answer.objective,
        "gap": answer.gap,
        "same": bool(np.array_equal(answer.w, one.result.w)),
        "support": int(np.count_nonzero(answer.w)),
        "pair_steps": answer.n_iter,
        "newton_steps": answer.n_newton,
    }


THREAD_COLUMNS = {
    "set": "set",
    "rows": "rows",
    "features": "features",
    "C": "C",
    "one thread (s)": "one",
    "of a processor (s)": "one_busy",
    "several (s)": "seconds",
    "of processors (s)": "busy",
    "times faster": "speedup",
    "objective": "objective",
    "gap": "gap",
    "same answer": "same",
    "support": "support",
    "pair steps": "pair_steps",
    "Newton": "newton_steps",
}
THREAD_NOTES = [
    "One cold `solve_dual` with its defaults (gap 1e-6) and rows of a tessellated kernel on "
    f"demand, P learned with the defaults on {_LEARNING_ROWS:,} of the rows. The rows that are "
    "made up have 8 features in [0, 1], of which five matter, and a noisy target.",
    "Times of processors are those of all threads together. Where they are far below the seconds "
    "of one thread, the machine was busy with something else, and its times say little.",
]
