"""Work of one SVM against the rank of P: the paper's Figure 6, from its Appendix C.

Random P of rank r, ``P = (n_P / r) sum of v vᵀ / |v|²`` over r normal vectors v (the paper's
formula, with the square that gives P its trace), the identity, and the optimal P, each for a cold
SVM. Regression on California housing and classification on Shill bidding, as in the paper. Each
repetition draws its own rows and its own P.

Counted are the iterations of LIBSVM, as the paper does, and the pair steps of our own solver, both
to the paper's rule: a violation of the optimality conditions of at most 0.1. Our solver tests only
now and then, so its count is found by bisection over its limit of pair steps, to one in a hundred.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

from tessella.backend import limit_blas
from tessella.kernels import TessellatedKernels
from tessella.problems import SaddlePoint
from tessella.svm import DualProblem, DualSolution, solve_dual
from tessella_bench.figures._data import Table, load_table
from tessella_bench.figures._problem import (
    CLASSIFICATION,
    REGRESSION,
    numerical_rank,
    saddle_point,
    solve,
)
from tessella_bench.figures._record import Record
from tessella_bench.figures._style import (
    BLUE,
    GREY,
    VERMILION,
    canvas,
    faint_grid,
    save,
    shown_name,
)

FloatArray = NDArray[np.float64]

NAME = "rank"
_TASKS = {"cadata": REGRESSION, "shill_bidding": CLASSIFICATION}

OPTIMAL, IDENTITY = "optimal", "identity"
PAPER_TOL = 0.1  # the violation at which the paper's LIBSVM stops
COUNTS = ("pair_steps", "paper_pair_steps", "libsvm_iterations", "newton_steps")
_OPTIMAL_GAP = 1e-4
_EXACT = 1e-6


def settings(quick: bool) -> dict[str, Any]:
    """What decides the measurements."""
    return {
        "rows": 60 if quick else 1000,
        "repetitions": 2 if quick else 20,
        "tol": 1e-3,
        "C": 10.0,
        "delta": 0.5,
        "degree": 1,
    }


def measure(
    record: Record, options: dict[str, Any], folder: Path | None, say: Callable[[str], None]
) -> dict[str, Any]:
    """Lines of means for each set."""
    found = []
    tables = {name: load_table(name, folder) for name in _TASKS}
    for name, whole in tables.items():
        task = _TASKS[name]
        runs: dict[Any, list[dict[str, Any]]] = {}
        side = 0
        for seed in range(options["repetitions"]):
            data = whole.take(options["rows"], seed)
            cell = record.cell(
                f"{name} seed={seed}", partial(_repetition, data, task, seed, options)
            )
            side = cell["n_params"]
            for kind, run in cell["runs"].items():
                runs.setdefault(int(kind) if kind.isdigit() else kind, []).append(run)
            say(f"{name} repetition {seed + 1} of {options['repetitions']}")
        rows = min(options["rows"], len(whole.y))
        about = {"name": name, "task": task, "rows": rows, "n_params": side}
        lines = summarise(runs)
        found.append({**about, "lines": lines, "verdict": verdict(lines)})
    record.conclude({"sets": found})
    return {"sets": found}


# --------------------------------------------------------------------------------------- measuring


def _repetition(data: Table, task: str, seed: int, options: dict[str, Any]) -> dict[str, Any]:
    kernels = TessellatedKernels(degree=options["degree"], delta=options["delta"])
    problem = saddle_point(data.X, data.y, task, kernels, options["C"])
    return {
        "n_params": problem.cone.degree,
        "runs": svm_by_rank(problem, seed, options["tol"]),
    }


def random_parameter(n_params: int, rank: int, rng: np.random.Generator) -> FloatArray:
    """A random positive semidefinite matrix of that rank with trace n_P."""
    V = rng.standard_normal((n_params, rank))
    V /= np.linalg.norm(V, axis=0)
    P: FloatArray = (n_params / rank) * (V @ V.T)
    return P


def ranks_to_try(n_params: int) -> list[int]:
    """About eight from 1 to n_P."""
    return sorted({int(rank) for rank in np.geomspace(1, n_params, 8).round()})


def svm_by_rank(
    problem: SaddlePoint, seed: int, tol: float, ranks: list[int] | None = None
) -> dict[Any, dict[str, Any]]:
    """One cold SVM for the optimal P, for the identity and for random P of several ranks."""
    side = problem.cone.degree
    rng = np.random.default_rng([seed, 1])
    best, _ = solve("auto", problem, tol=_OPTIMAL_GAP, time_limit=None)
    candidates: dict[Any, FloatArray] = {OPTIMAL: best.parameter, IDENTITY: np.eye(side)}
    for rank in ranks or ranks_to_try(side):
        candidates[rank] = random_parameter(side, rank, rng)
    return {kind: _svm(problem, P, tol) for kind, P in candidates.items()}


def _svm(problem: SaddlePoint, P: FloatArray, tol: float) -> dict[str, Any]:
    """One cold SVM to the gap, and the steps to both stopping rules."""
    dual = problem.dual
    with limit_blas():
        K = problem.kernels.gram(P, centred=True)
        begin = time.perf_counter()
        answer = solve_dual(K, dual, tol=tol)
        seconds = time.perf_counter() - begin
        pair_steps = fewest_pair_steps(K, dual, lambda s: s.gap <= tol, answer.n_iter)
        exact = solve_dual(K, dual, tol=_EXACT)
        paper = fewest_pair_steps(K, dual, lambda s: s.violation <= PAPER_TOL, exact.n_iter)
    return {
        "rank": numerical_rank(P),
        "pair_steps": pair_steps,
        "paper_pair_steps": paper,
        "libsvm_iterations": libsvm_iterations(K, dual, PAPER_TOL),
        "newton_steps": answer.n_newton,
        "seconds": seconds,
        "gap": answer.gap,
        "support": int(np.count_nonzero(answer.w)),
        "status": answer.status.name,
    }


def fewest_pair_steps(
    K: FloatArray, dual: DualProblem, reached: Callable[[DualSolution], bool], enough: int
) -> int:
    """The pair steps after which a stopping rule is met, knowing that `enough` are enough."""
    low, high = 0, enough
    while high - low > max(1, high // 100):
        middle = (low + high) // 2
        if reached(solve_dual(K, dual, tol=0.0, max_iter=middle)):
            high = middle
        else:
            low = middle
    return high


def libsvm_iterations(K: FloatArray, dual: DualProblem, tol: float) -> int:
    """Iterations of LIBSVM, as scikit-learn has it, on the same dual problem."""
    from sklearn.svm import SVC, SVR

    C = np.maximum(dual.upper, -dual.lower)
    largest = float(C.max())
    common = {"C": largest, "kernel": "precomputed", "tol": tol, "cache_size": 1000}
    tube = float(dual.epsilon.max())
    machine = SVR(epsilon=tube, **common) if tube > 0 else SVC(**common)
    machine.fit(K, dual.linear, sample_weight=C / largest)
    return int(np.sum(machine.n_iter_))


def summarise(runs: dict[Any, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """A line of means for each kind of P."""
    best = float(np.mean([run["paper_pair_steps"] for run in runs[OPTIMAL]]))
    return [_line(kind, found, best) for kind, found in runs.items()]


def verdict(lines: list[dict[str, Any]], key: str = "libsvm_iterations") -> str:
    """Whether the optimal P takes the fewest steps, which is the paper's claim."""
    counts = {line["P"]: line[key] for line in lines}
    optimal = counts.pop(OPTIMAL)
    random = [count for kind, count in counts.items() if kind != IDENTITY]
    if optimal <= min(random):
        return "the optimal P is the quickest, as in the paper"
    return f"the optimal P takes {optimal / min(random):.1f} times the quickest, against the paper"


def _line(kind: Any, runs: list[dict[str, Any]], optimal: float) -> dict[str, Any]:
    """Means of one kind of P, with the half-width of their 95 % confidence interval."""
    measured = float(np.mean([run["rank"] for run in runs]))
    line: dict[str, Any] = {"P": kind, "rank": measured if isinstance(kind, str) else kind}
    for key in (*COUNTS, "seconds", "support"):
        values = np.array([run[key] for run in runs], dtype=float)
        line[key] = float(values.mean())
        line[f"{key}_ci"] = half_width(values)
    line["times_optimal"] = line["paper_pair_steps"] / optimal
    if kind == OPTIMAL:
        line["verdict"] = "–"
    else:
        line["verdict"] = "claim holds" if line["times_optimal"] >= 1.0 else "claim fails"
    return line


def half_width(values: FloatArray) -> float:
    """Half of the 95 % confidence interval of the mean, by Student's t; 0 for one value."""
    if len(values) < 2:
        return 0.0
    return float(student.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values)))


# ------------------------------------------------------------------------------------- the picture


_PANELS = {
    "libsvm_iterations": "LIBSVM iterations\nto a violation of 0.1",
    "paper_pair_steps": "our pair steps\nto a violation of 0.1",
}


def draw(results: dict[str, Any], stem: Path) -> list[Path]:
    """The paper's counts: a column for each set."""
    title = "Work of one cold SVM for random P of each rank and for the optimal P: mean and 95 % CI"
    with canvas(9.2, 6.0, axes__titlesize=10, legend__fontsize=9) as figure:
        draw_counts(figure, results["sets"], _PANELS, title)
        return save(figure, stem)


def draw_counts(
    figure: Any, measured: list[dict[str, Any]], labels: dict[str, str], title: str
) -> None:
    """A column for each set and task, a row for each count."""
    panels = figure.subplots(len(labels), len(measured), squeeze=False, sharex="col")
    for column, record in enumerate(measured):
        for panel, key in zip(panels[:, column], labels, strict=True):
            _draw_panel(panel, record["lines"], key)
        panels[-1, column].set_xlabel("rank of P")
        panels[0, column].set_title(
            f"{shown_name(record['name'])}, {record['task']}: "
            f"m = {record['rows']:,}, $n_P$ = {record['n_params']}"
            + (f"\n{record['verdict']}" if "verdict" in record else "")
        )
    for panel, label in zip(panels[:, 0], labels.values(), strict=True):
        panel.set_ylabel(label)
    handles, names = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=len(names), frameon=False)
    figure.suptitle(title)


def _draw_panel(panel: Any, lines: list[dict[str, Any]], key: str) -> None:
    chosen = {
        "random P": ([ln for ln in lines if not isinstance(ln["P"], str)], BLUE, "o"),
        "identity": ([ln for ln in lines if ln["P"] == IDENTITY], GREY, "s"),
        "optimal P": ([ln for ln in lines if ln["P"] == OPTIMAL], VERMILION, "*"),
    }
    for label, (found, color, marks) in chosen.items():
        panel.errorbar(
            [line["rank"] for line in found],
            [line[key] for line in found],
            yerr=[line[f"{key}_ci"] for line in found],
            fmt=marks,
            color=color,
            label=label,
            markersize={"*": 13, "s": 9}.get(marks, 5),
            markerfacecolor="none" if marks == "s" else color,
            capsize=3,
            zorder=3 if marks == "*" else 2,
        )
    _draw_linear_fit(panel, chosen["random P"][0], key)
    level = chosen["optimal P"][0][0][key]
    tallest = max(line[key] + line[f"{key}_ci"] for line in lines)
    panel.set_ylim(0, 1.1 * max(tallest, 1.0))
    panel.locator_params(integer=True)
    panel.axhline(level, color=VERMILION, linewidth=0.9, linestyle=":", zorder=1)
    faint_grid(panel)


def _draw_linear_fit(panel: Any, lines: list[dict[str, Any]], key: str) -> None:
    """The straight line through the means, as the paper has it."""
    ranks = np.array([line["rank"] for line in lines], dtype=float)
    if len(ranks) < 2:
        return
    slope, start = np.polyfit(ranks, [line[key] for line in lines], 1)
    label = "linear fit (random P)"
    panel.plot(ranks, start + slope * ranks, color=BLUE, linewidth=0.9, alpha=0.6, label=label)
