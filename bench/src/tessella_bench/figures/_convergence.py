"""Certified gap against iterations and time, for every solver: the paper's Figure 2.

The paper's two sets, Cancer and Pima, with C and delta chosen by five-fold cross-validation. Every
solver but the semidefinite program runs from a cold start to a gap of 1e-6, to 1,000 iterations
(the paper's number) or to a minute, whichever comes first. A gap is that of the best pair so far,
computed in float64 from the answer alone.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tessella.estimators import LearnedKernelSVC, paper_settings
from tessella.kernels import TessellatedKernels
from tessella.problems import SaddlePoint
from tessella.solvers import SOLVERS, IterationRecord, SolverResult, choose_solver
from tessella_bench.figures._convergence_picture import draw as draw
from tessella_bench.figures._data import Table, load_table
from tessella_bench.figures._problem import (
    CLASSIFICATION,
    ITERATIVE,
    numerical_rank,
    saddle_point,
    solve,
)
from tessella_bench.figures._record import Record

NAME = "convergence"
_SETS = ("cancer_wbc", "pima")

_KEPT_RECORDS = 300  # of a long history, in the JSON


def settings(quick: bool) -> dict[str, Any]:
    """What decides the measurements."""
    return {
        "rows": 80 if quick else None,
        "max_iter": 20 if quick else 1000,
        "time_cap": 60.0,
        "tol": 1e-6,
        "degree": 1,
        "folds": 2 if quick else 5,
        "C": [1.0, 10.0] if quick else [0.1, 1.0, 10.0, 100.0],
        "delta": [0.5] if quick else [0.1, 0.5, 2.0],
        "seed": 0,
    }


def measure(
    record: Record, options: dict[str, Any], folder: Path | None, say: Callable[[str], None]
) -> dict[str, Any]:
    """All solvers on both sets."""
    sets = []
    tables = {name: load_table(name, folder) for name in _SETS}
    for name, whole in tables.items():
        data = whole.take(options["rows"] or len(whole.y), options["seed"])
        choice = record.cell(f"{name} tuning", partial(_choose, data, options))
        kernels = TessellatedKernels(degree=options["degree"], delta=choice["delta"])
        problem = saddle_point(data.X, data.y, CLASSIFICATION, kernels, choice["C"])
        runs = {}
        for solver in ITERATIVE:
            runs[solver] = record.cell(f"{name} {solver}", partial(_run, solver, problem, options))
            say(f"{name} {solver}: gap {runs[solver]['gap']:.1e}, {runs[solver]['iterations']}")
        picked = choose_solver("auto", problem)
        sets.append(
            {
                "name": name,
                "rows": len(data.y),
                "n_params": problem.cone.degree,
                "tuning": choice,
                "auto": next(key for key, solver in SOLVERS.items() if solver is picked),
                "solvers": runs,
            }
        )
    return {"sets": sets, "tol": options["tol"]}


def _choose(data: Table, options: dict[str, Any]) -> dict[str, Any]:
    """C and delta with the best accuracy in cross-validation."""
    from sklearn.model_selection import StratifiedKFold

    from tessella.model_selection import KernelPathCV

    search = KernelPathCV(
        LearnedKernelSVC(**{**paper_settings("classification"), "degree": options["degree"]}),
        {key: options[key] for key in ("C", "delta")},
        cv=StratifiedKFold(options["folds"], shuffle=True, random_state=options["seed"]),
    ).fit(data.X, data.y)
    model = search.best_estimator_
    return {**search.best_params_, "score": search.best_score_, "rank": numerical_rank(model.P_)}


def _run(solver: str, problem: SaddlePoint, options: dict[str, Any]) -> dict[str, Any]:
    limits = {"tol": options["tol"], "time_limit": options["time_cap"]}
    return summary(*solve(solver, problem, max_iter=options["max_iter"], **limits))


def summary(result: SolverResult, seconds: float) -> dict[str, Any]:
    """Of a run: how it ended, what it cost, when it reached which gap, and its history."""
    # The joint method calls the SVM once, at its end; its iterations are the Newton steps.
    counts_svm = result.n_svm > 1
    return {
        "solver": result.solver,
        "status": result.status.value,
        "gap": result.gap,
        "value": result.value,
        "bound": result.bound,
        "counts_svm": counts_svm,
        "iterations": result.n_iter,
        "n_svm": result.n_svm,
        "n_newton": max(result.history[-1].n_newton, 0 if counts_svm else result.n_iter),
        "seconds": seconds,
        "seconds_to": {f"{g:g}": _time_to(result, g) for g in (1e-2, 1e-3, 1e-4, 1e-5, 1e-6)},
        "history": {
            "columns": ["iteration", "n_svm", "time", "gap"],
            "records": [[r.iteration, r.n_svm, r.time, r.gap] for r in thinned(result.history)],
        },
    }


def thinned(
    history: tuple[IterationRecord, ...], most: int = _KEPT_RECORDS
) -> list[IterationRecord]:
    """At most `most` records, dense at the start: their positions are evenly spaced in log."""
    if len(history) <= most:
        return list(history)
    positions = np.unique(np.geomspace(1, len(history), most).round().astype(int)) - 1
    return [history[k] for k in positions]


def _time_to(result: SolverResult, gap: float) -> float | None:
    """Seconds until the certified gap was at most `gap`; None if it never was."""
    return next((record.time for record in result.history if record.gap <= gap), None)
