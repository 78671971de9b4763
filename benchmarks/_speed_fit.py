"""Rows 3, 6, 7 and 8 of the speed table: whole fits, their growth, memory and the largest set."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np
from _common import CLASSIFICATION, Dataset, load, say
from _report import text
from _speed import (
    Outcome,
    Session,
    alternate,
    at_most,
    estimator,
    fit_facts,
    in_process,
    prepare_memory,
    race,
    spread,
    standardised,
    worst,
)
from _speed_figure import draw_growth
from _speed_tuning import OUR_ROWS, RBF_ROWS, choose_ours, choose_rbf, rbf_model
from sklearn.exceptions import ConvergenceWarning

TOL = 1e-3

FIT_SETS = {"abalone": None, "shill_bidding": None, "ccpp": None, "cadata": 8000, "cpusmall": None}
FIT_TARGET = 2.0

GROWTH_SIZES, GROWTH_TARGET = (1000, 2000, 4000, 8000, 16000), 2.1

MEMORY_SIZES = (8000, 16000, 20000)
MEMORY_MATRICES, MEMORY_REST = 2.2, 500e6

LARGE_SET, LARGE_ROWS = "gas_turbine", 29386
LARGE_SECONDS, PAPER_SECONDS = 1200.0, 13580.0


# ------------------------------------------------------------------------------------ row 3


def whole_fit(session: Session) -> Outcome:
    """Row 3."""
    cells = []
    for name, rows in FIT_SETS.items():
        whole = load(name)
        data = whole.take(300 if session.quick else rows, session.seed)
        cells.append(fit_cell(data, whole, choose_ours(data, session), session))
        say(f"  {name} {len(data.y)}: ratio {text(cells[-1]['ratio'])}")
    loose = [cell["set"] for cell in cells if cell["gap"] > TOL]
    missed = [at_most(cells, "ratio", FIT_TARGET), f"gap of {', '.join(loose)}" if loose else ""]
    return Outcome(
        measured=spread(cells, "ratio"),
        missed=", ".join(part for part in missed if part),
        columns=FIT_COLUMNS,
        cells=cells,
        notes=[
            f"C and delta by two-fold cross-validation on {OUR_ROWS} rows, C and gamma of the RBF "
            f"machine on {RBF_ROWS:,}, features standardised, both with the same standardised "
            "targets and tube. One fit of each with those settings, on the same rows.",
            "Test scores (accuracy or R²) on the rows left out, where the set has more than are "
            "fitted.",
        ],
    )


def fit_cell(
    data: Dataset, whole: Dataset, ours: dict[str, float], session: Session
) -> dict[str, Any]:
    """Our fit with given C and delta, beside an RBF machine with cross-validated settings."""
    theirs = choose_rbf(data, session)
    prepare_memory(24.0 * len(data.y) ** 2)
    target = standardised(data)
    model = estimator(data.task, **ours, tol=TOL, n_jobs=session.threads)
    rbf = rbf_model(data.task, theirs)
    unseen = _left_out(data, whole)

    def describe(fitted: Any) -> dict[str, Any]:
        support = len(fitted[-1].support_)
        return {"support": support, "score": _score(fitted, data, unseen, scaled=True)}

    peer, clock = race(
        session,
        f"{data.name} {len(data.y)} RBF C={theirs['C']:g} gamma={theirs['gamma']:g}",
        lambda: rbf.fit(data.X, target),
        lambda: quiet_fit(model, data.X, data.y),
        describe,
    )
    return {
        "set": data.name,
        "rows": len(data.y),
        **ours,
        "peer_C": theirs["C"],
        "peer_gamma": theirs["gamma"],
        "peer_seconds": peer["seconds"],
        "peer_cached": peer["cached"],
        "seconds": clock.best,
        "ratio": clock.best / peer["seconds"],
        **fit_facts(clock.result),
        "score": _score(clock.result, data, unseen, scaled=False),
        "peer_score": peer["score"],
        "peer_support": peer["support"],
    }


def quiet_fit(model: Any, X: Any, y: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the gap is reported instead
        return model.fit(X, y)


def _left_out(data: Dataset, whole: Dataset) -> Dataset | None:
    """The rows of the whole set that are not among `data`."""
    if len(data.y) == len(whole.y):
        return None
    taken = {row.tobytes() for row in np.column_stack([data.X, data.y])}
    rows = np.column_stack([whole.X, whole.y])
    unseen = np.array([row.tobytes() not in taken for row in rows])
    return Dataset(whole.name, whole.task, whole.X[unseen], whole.y[unseen])


def _score(model: Any, data: Dataset, unseen: Dataset | None, *, scaled: bool) -> float | None:
    """Accuracy or R² on unseen rows, of a model of the targets or of the standardised ones."""
    if unseen is None:
        return None
    y = unseen.y
    if scaled and data.task != CLASSIFICATION:
        y = (y - data.y.mean()) / data.y.std()
    return float(model.score(unseen.X, y))


FIT_COLUMNS = {
    "set": "set",
    "rows": "rows",
    "C": "C",
    "delta": "delta",
    "RBF C": "peer_C",
    "RBF gamma": "peer_gamma",
    "RBF (s)": "peer_seconds",
    "cached": "peer_cached",
    "ours (s)": "seconds",
    "ratio": "ratio",
    "gap": "gap",
    "objective": "objective",
    "SVM solves": "n_svm",
    "Newton steps": "n_newton",
    "support": "support",
    "RBF support": "peer_support",
    "score": "score",
    "RBF score": "peer_score",
}


# ------------------------------------------------------------------------------------ row 6


def growth(session: Session) -> Outcome:
    """Row 6."""
    cells = []
    for rows in session.sizes(GROWTH_SIZES, (600, 900, 1300)):
        data = load("cadata", rows, session.seed)
        prepare_memory(24.0 * rows**2)
        model = estimator(data.task, tol=TOL, n_jobs=session.threads)
        clock = alternate(partial(quiet_fit, model, data.X, data.y))[0]
        cells.append({"rows": rows, "seconds": clock.best, **fit_facts(clock.result)})
        say(f"  {rows} rows: {text(clock.best)} s, gap {cells[-1]['gap']:.1e}")
    rows_log, seconds_log = (np.log([cell[key] for cell in cells]) for key in ("rows", "seconds"))
    exponent, constant = np.polyfit(rows_log, seconds_log, 1)
    for cell, step in zip(cells[1:], np.diff(seconds_log) / np.diff(rows_log), strict=True):
        cell["local_exponent"] = float(step)
    picture = session.arguments.output / "growth.png"
    draw_growth(cells, float(exponent), float(constant), picture)
    loose = [cell["rows"] for cell in cells if cell["gap"] > TOL]
    missed = [
        f"{exponent:.2f} above {GROWTH_TARGET}" if exponent > GROWTH_TARGET else "",
        f"gap at {loose} rows" if loose else "",
    ]
    return Outcome(
        measured=f"exponent {exponent:.2f}",
        missed=", ".join(part for part in missed if part),
        columns=GROWTH_COLUMNS,
        cells=cells,
        notes=[
            "California housing, the estimator's defaults, gap 1e-3. Least squares of the "
            "logarithms over all sizes; the last column is the exponent from the size before.",
            f"Picture: `results/{picture.name}`.",
        ],
    )


GROWTH_COLUMNS = {
    "rows": "rows",
    "seconds": "seconds",
    "gap": "gap",
    "objective": "objective",
    "SVM solves": "n_svm",
    "Newton steps": "n_newton",
    "exponent from the size before": "local_exponent",
}


# ------------------------------------------------------------------------------------ row 7


def memory(session: Session) -> Outcome:
    """Row 7."""
    cells = []
    for rows in session.sizes(MEMORY_SIZES, (1000, 2000)):
        settings = {"precision": "float32", "tol": TOL, "n_jobs": session.threads}
        request = {"name": "cadata", "rows": rows, "seed": session.seed, "settings": settings}
        found = in_process("_speed_process.py", request)
        matrix = 4.0 * rows**2
        limit = MEMORY_MATRICES * matrix + MEMORY_REST
        cells.append(
            found
            | {
                "seconds": found["seconds"][0],
                "matrix_mb": 1e-6 * matrix,
                "peak_mb": 1e-6 * found["peak_bytes"],
                "limit_mb": 1e-6 * limit,
                "of_limit": found["peak_bytes"] / limit,
                "matrices": (found["peak_bytes"] - MEMORY_REST) / matrix,
            }
        )
        say(f"  {rows} rows: peak {cells[-1]['peak_mb']:.0f} MB of {cells[-1]['limit_mb']:.0f}")
    largest = cells[-1]
    return Outcome(
        measured=f"{text(largest['matrices'])} matrices plus 500 MB at {largest['rows']} rows; "
        f"{spread(cells, 'of_limit')} of the limit",
        missed=at_most(cells, "of_limit", 1.0),
        columns=MEMORY_COLUMNS,
        cells=cells,
        notes=["California housing, float32, in a process of its own; nothing is subtracted."],
    )


MEMORY_COLUMNS = {
    "rows": "rows",
    "matrix (MB)": "matrix_mb",
    "peak (MB)": "peak_mb",
    "limit (MB)": "limit_mb",
    "of the limit": "of_limit",
    "seconds": "seconds",
    "gap": "gap",
    "objective": "objective",
}


# ------------------------------------------------------------------------------------ row 8


def large_set(session: Session) -> Outcome:
    """Row 8."""
    rows = 1500 if session.quick else LARGE_ROWS
    settings = {"precision": "float32", "tol": TOL, "n_jobs": session.threads}
    request = {"name": LARGE_SET, "rows": rows, "seed": session.seed, "settings": settings}
    found = in_process("_speed_process.py", request | {"score": True})
    cell = found | {
        "seconds": found["seconds"][0],
        "peak_mb": 1e-6 * found["peak_bytes"],
        "paper_seconds": PAPER_SECONDS,
        "ratio": found["seconds"][0] / PAPER_SECONDS,
    }
    missed = [at_most([cell], "seconds", LARGE_SECONDS)]
    missed.append(f"gap {cell['gap']:.1e}" if cell["gap"] > TOL else "")
    return Outcome(
        measured=f"{text(cell['seconds'])} s, gap {cell['gap']:.1e}, peak "
        f"{text(worst([cell], 'peak_mb'))} MB",
        missed=", ".join(part for part in missed if part),
        columns=LARGE_COLUMNS,
        cells=[cell],
        notes=["Defaults, float32, in a process of its own; R² on the rows left out."],
    )


LARGE_COLUMNS = {
    "rows": "rows",
    "seconds": "seconds",
    "paper (s)": "paper_seconds",
    "gap": "gap",
    "objective": "objective",
    "SVM solves": "n_svm",
    "Newton steps": "n_newton",
    "support": "support",
    "peak (MB)": "peak_mb",
    "test rows": "test_rows",
    "R²": "score",
}
