"""Time of one iteration against rows and n_P, with fitted exponents: the paper's Figure 3.

California housing, classification (split at the median, as in the paper) and regression, for
Frank-Wolfe, the accelerated method (APD) and the default solver of the estimators.

What is measured: processor time of a solver with one thread (so that other work on the machine
does not enter) divided by the number of its iterations, from a cold start to a certified gap of
1e-6 or 20 iterations, whichever comes first; the least of several repetitions. The first kernel
matrix, the first, cold SVM and all certificates are in it; the binding of the kernel set to the
rows, which all solvers need alike, is not. Exponents
are slopes of least squares in logarithms, over all sizes and over the last three: in the rows at
n_P = 18, in n_P at 1,000 rows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tessella.kernels import TessellatedKernels
from tessella.solvers import SolverResult
from tessella_bench.figures._data import Table, load_table
from tessella_bench.figures._problem import (
    CLASSIFICATION,
    REGRESSION,
    saddle_point,
    solve,
    split_at_median,
)
from tessella_bench.figures._record import Record
from tessella_bench.figures._style import canvas, faint_grid, look, save

NAME = "scaling"
_SET = "cadata"

# Exponents of rows and of n_P that the paper finds for one iteration on its machine.
PAPER = {
    (CLASSIFICATION, "frank-wolfe"): (2.6, 1.8),
    (CLASSIFICATION, "apd"): (2.7, 1.6),
    (REGRESSION, "frank-wolfe"): (2.4, 1.9),
    (REGRESSION, "apd"): (2.4, 1.2),
}
_SOLVERS = {"frank-wolfe": "Frank-Wolfe", "apd": "APD", "working-set": "default (working set)"}
_ALL_FEATURES = 8
_TOL = 1e-6
_LAST = 3  # of the sizes, where what does not grow counts least
_LONG = 3.0  # seconds of a cell, after which there are no more repetitions


def settings(quick: bool) -> dict[str, Any]:
    """What decides the measurements."""
    rows = np.geomspace(200, 4000, 7).round().astype(int).tolist()
    # Features and degree, in the order of n_P = 2 C(features + degree, degree).
    shapes = [[8, 1], [4, 2], [6, 2], [8, 2], [6, 3], [8, 3]]
    return {
        "rows": [40, 80, 160] if quick else rows,
        "shapes": [[3, 1], [8, 1], [4, 2]] if quick else shapes,
        "rows_of_shapes": 100 if quick else 1000,
        "repeats": 1 if quick else 7,
        "max_iter": 3 if quick else 20,
        "C": 10.0,
        "delta": 0.5,
        "seed": 0,
    }


def measure(
    record: Record, options: dict[str, Any], folder: Path | None, say: Callable[[str], None]
) -> dict[str, Any]:
    """Curves by task, axis ("rows", "n_params") and solver, and their exponents."""
    whole = load_table(_SET, folder)
    sweeps = {
        "rows": [(rows, _ALL_FEATURES, 1) for rows in options["rows"]],
        "n_params": [(options["rows_of_shapes"], *shape) for shape in options["shapes"]],
    }
    curves: dict[str, Any] = {}
    for task in (CLASSIFICATION, REGRESSION):
        for axis, points in sweeps.items():
            for solver in _SOLVERS:
                cells = []
                for point in points:
                    rows, features, degree = point
                    key = f"{task} {solver} rows={rows} features={features} degree={degree}"
                    cells.append(
                        record.cell(key, partial(_time, whole, task, solver, point, options))
                    )
                    say(f"{key}: {1e3 * cells[-1]['seconds']:.2f} ms an iteration")
                curves.setdefault(task, {}).setdefault(axis, {})[solver] = cells
    exponents = _exponents(curves)
    record.conclude({"exponents": exponents})
    return {"curves": curves, "exponents": exponents}


def _time(
    whole: Table, task: str, solver: str, point: tuple[int, int, int], options: dict[str, Any]
) -> dict[str, Any]:
    """The least seconds of an iteration."""
    rows, features, degree = point
    data = whole.take(rows, options["seed"])
    y = split_at_median(data.y) if task == CLASSIFICATION else data.y
    kernels = TessellatedKernels(degree=degree, delta=options["delta"])
    problem = saddle_point(data.X[:, :features], y, task, kernels, options["C"])
    limits = {"tol": _TOL, "time_limit": None, "max_iter": options["max_iter"]}
    runs: list[tuple[SolverResult, float]] = []
    while len(runs) < options["repeats"] and sum(run[1] for run in runs) < _LONG:
        runs.append(solve(solver, problem, n_jobs=1, clock=time.process_time, **limits))
    best, seconds = min(runs, key=lambda run: run[1])
    return {
        "rows": problem.dual.size,
        "n_params": problem.cone.degree,
        "seconds": seconds / best.n_iter,
        "iterations": best.n_iter,
        "n_svm": best.n_svm,
        "gap": best.gap,
        "all_seconds": [seconds / result.n_iter for result, seconds in runs],
    }


def power_law(x: Sequence[float], y: Sequence[float]) -> tuple[float, float]:
    """Exponent a and factor c of the line c x^a through positive points, least squares in logs."""
    exponent, intercept = np.polyfit(np.log(np.asarray(x)), np.log(np.asarray(y)), 1)
    return float(exponent), float(np.exp(intercept))


def _exponents(curves: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for task, axes in curves.items():
        for position, (axis, solvers) in enumerate(axes.items()):
            for solver, cells in solvers.items():
                x, seconds = ([cell[key] for cell in cells] for key in (axis, "seconds"))
                exponent, factor = power_law(x, seconds)
                paper = PAPER.get((task, solver))
                found.setdefault(task, {}).setdefault(axis, {})[solver] = {
                    "exponent": exponent,
                    "factor": factor,
                    "exponent_of_last": power_law(x[-_LAST:], seconds[-_LAST:])[0],
                    "paper": None if paper is None else paper[position],
                }
    return found


# ------------------------------------------------------------------------------------- the picture


_LABELS = {"rows": "rows m", "n_params": "side of P, $n_P$"}


def draw(results: dict[str, Any], stem: Path) -> list[Path]:
    """A row of panels for each task, a column for each axis."""
    with canvas(9.0, 7.0, legend__fontsize=8) as figure:
        panels = figure.subplots(2, 2, sharey="row")
        for row, (task, axes) in zip(panels, results["curves"].items(), strict=True):
            for panel, (axis, solvers) in zip(row, axes.items(), strict=True):
                _draw_panel(panel, axis, solvers, results["exponents"][task][axis])
                panel.set_title(f"{task}, {_fixed(axis, solvers)}")
            bottom, top = row[0].get_ylim()
            row[0].set_ylim(bottom, top * (top / bottom) ** 0.3)  # room for the legends
            row[0].set_ylabel("processor seconds an iteration")
        figure.suptitle(
            f"Time of one iteration on California housing{_verdict(results)}", fontsize=11
        )
        return save(figure, stem)


def _verdict(results: dict[str, Any]) -> str:
    fits = [
        fit
        for axes in results["exponents"].values()
        for solvers in axes.values()
        for fit in solvers.values()
        if fit["paper"] is not None
    ]
    slower = all(fit["exponent"] < fit["paper"] for fit in fits)
    return " grows more slowly than in the paper" if slower else ", with the paper's exponents"


def _fixed(axis: str, solvers: dict[str, Any]) -> str:
    cell = next(iter(solvers.values()))[0]
    return f"$n_P$ = {cell['n_params']}" if axis == "rows" else f"m = {cell['rows']:,}"


def _draw_panel(panel: Any, axis: str, solvers: dict[str, Any], exponents: dict[str, Any]) -> None:
    from matplotlib.ticker import NullFormatter, ScalarFormatter

    symbol = "m" if axis == "rows" else "n_P"
    for position, (solver, cells) in enumerate(solvers.items()):
        x = np.array([cell[axis] for cell in cells], dtype=float)
        fit = exponents[solver]
        others = [f"last {_LAST}: {fit['exponent_of_last']:.1f}"]
        if fit["paper"] is not None:
            others.append(f"paper: {fit['paper']:g}")
        seconds = [cell["seconds"] for cell in cells]
        panel.plot(
            *(x, seconds),
            **look(position) | {"linestyle": ""},
            markersize=5,
            label=f"{_SOLVERS[solver]}: ${symbol}^{{{fit['exponent']:.2f}}}$ ({', '.join(others)})",
        )
        line = fit["factor"] * x ** fit["exponent"]
        panel.plot(x, line, color=look(position)["color"], linewidth=1.2, alpha=0.7)
    panel.set(xscale="log", yscale="log", xlabel=_LABELS[axis])
    ticks = sorted({cell[axis] for cell in next(iter(solvers.values()))})
    panel.set_xticks(ticks)
    panel.xaxis.set_major_formatter(ScalarFormatter())
    panel.xaxis.set_minor_formatter(NullFormatter())
    faint_grid(panel)
    panel.legend(frameon=False, loc="upper left")
