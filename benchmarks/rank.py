"""Work of one SVM against the rank of P: the paper's Appendix C, Figure 6.

Counts the pair steps and the Newton steps of `solve_dual` from a cold start, for random P of a
given rank, P = (n_P / r) sum of v v' / |v|^2 over r normal vectors v (the paper's formula, with
the square that gives P its trace), for the identity, and for the optimal P. Each seed draws its
own rows and its own P. A regression set also serves as classification, split at the median.
Writes rank.json, rank.md and rank.png.

Pair steps are counted to a relative duality gap, and to the paper's rule, LIBSVM's largest
violation of the optimality conditions of at most 0.1. The solver tests only now and then, so the
counts are found by bisection over its limit of pair steps, to one in a hundred.

Target, the paper's claim: by its rule, the optimal P needs no more pair steps than random P of
any rank.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from _common import (
    REGRESSION,
    Dataset,
    FloatArray,
    load,
    numerical_rank,
    options,
    saddle_point,
    say,
    solve,
)
from _report import text, write_report
from _style import BLUE, FONTS, GREY, VERMILION
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.stats import t as student

from tessella.backend import limit_blas
from tessella.kernels import TessellatedKernels
from tessella.problems import SaddlePoint
from tessella.svm import DualProblem, DualSolution, solve_dual

OPTIMAL, IDENTITY = "optimal", "identity"
PAPER_TOL = 0.1  # the violation at which the paper's LIBSVM stops
_OPTIMAL_GAP = 1e-4
_EXACT = 1e-6


def main() -> None:
    arguments = _parse()
    measured = []
    for name in arguments.datasets:
        whole = load(name)
        tasks = [whole, whole.split_at_median()] if whole.task == REGRESSION else [whole]
        for data in tasks:
            measured.append(_measure(data, arguments))
    arguments.output.mkdir(parents=True, exist_ok=True)
    draw(measured, arguments.output / "rank.png")
    rows = [_row(record, line) for record in measured for line in record["lines"]]
    write_report(arguments, "rank", measured, HEADERS, rows)


def _parse() -> argparse.Namespace:
    parser = options(__doc__, rows=2000, datasets=("cadata",))
    parser.add_argument("--seeds", type=int, default=10, help="repetitions (default: 10)")
    parser.add_argument(
        "--ranks", type=int, nargs="+", help="ranks of P (default: about eight from 1 to n_P)"
    )
    parser.add_argument("--tol", type=float, default=1e-3, help="gap of the SVM (default: 1e-3)")
    parser.add_argument("--C", type=float, default=10.0, help="weight of the loss (default: 10)")
    parser.add_argument("--delta", type=float, default=0.5, help="margin (default: 0.5)")
    parser.add_argument("--degree", type=int, default=1, help="of the monomials (default: 1)")
    return parser.parse_args()


# ----------------------------------------------------------------------------------- measuring


def random_parameter(n_params: int, rank: int, rng: np.random.Generator) -> FloatArray:
    """A random positive semidefinite matrix of that rank with trace n_P."""
    V = rng.standard_normal((n_params, rank))
    V /= np.linalg.norm(V, axis=0)
    P: FloatArray = (n_params / rank) * (V @ V.T)
    return P


def _ranks(n_params: int, asked: list[int] | None) -> list[int]:
    if asked:
        return sorted({rank for rank in asked if 1 <= rank <= n_params})
    return sorted({int(rank) for rank in np.geomspace(1, n_params, 8).round()})


def _measure(whole: Dataset, arguments: argparse.Namespace) -> dict[str, Any]:
    """All kinds of P on one set and task."""
    runs: dict[Any, list[dict[str, Any]]] = {}
    side = 0
    for seed in range(arguments.seed, arguments.seed + arguments.seeds):
        data = whole.take(arguments.rows, seed)
        kernels = TessellatedKernels(degree=arguments.degree, delta=arguments.delta)
        problem = saddle_point(data, kernels, arguments.C)
        side = problem.parameters.side
        rng = np.random.default_rng([seed, 1])
        best, _ = solve("auto", problem, tol=_OPTIMAL_GAP, time_limit=None)
        candidates: dict[Any, FloatArray] = {OPTIMAL: best.P, IDENTITY: np.eye(side)}
        for rank in _ranks(side, arguments.ranks):
            candidates[rank] = random_parameter(side, rank, rng)
        for kind, P in candidates.items():
            runs.setdefault(kind, []).append(_svm(problem, P, arguments.tol))
        shown = {kind: found[-1]["paper_pair_steps"] for kind, found in runs.items()}
        say(f"{whole.name} {whole.task} seed {seed}: pair steps {shown}")
    best_mean = float(np.mean([run["paper_pair_steps"] for run in runs[OPTIMAL]]))
    return {
        "name": whole.name,
        "task": whole.task,
        "rows": min(arguments.rows or len(whole.y), len(whole.y)),
        "n_params": side,
        "lines": [_line(kind, found, best_mean) for kind, found in runs.items()],
        "runs": {str(kind): found for kind, found in runs.items()},
    }


def _svm(problem: SaddlePoint, P: FloatArray, tol: float) -> dict[str, Any]:
    """One cold SVM to the gap, and the pair steps to both stopping rules."""
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


def _line(kind: Any, runs: list[dict[str, Any]], optimal: float) -> dict[str, Any]:
    """Means of one kind of P, with the half-width of their 95 % confidence interval."""
    measured = float(np.mean([run["rank"] for run in runs]))
    line: dict[str, Any] = {"P": kind, "rank": measured if isinstance(kind, str) else kind}
    for key in ("pair_steps", "paper_pair_steps", "newton_steps", "seconds", "support"):
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


HEADERS = (
    *("set", "task", "rows", "P", "rank", "support", "seconds", "Newton steps"),
    *("pair steps to gap", "± 95 %", "to the paper's rule", "± 95 %", "/ optimal", "verdict"),
)


def _row(record: dict[str, Any], line: dict[str, Any]) -> list[Any]:
    kind = line["P"] if isinstance(line["P"], str) else "random"
    return [
        *(record["name"], record["task"], record["rows"], kind, text(line["rank"])),
        *(line["support"], line["seconds"], line["newton_steps"]),
        *(line["pair_steps"], line["pair_steps_ci"]),
        *(line["paper_pair_steps"], line["paper_pair_steps_ci"]),
        *(line["times_optimal"], line["verdict"]),
    ]


# -------------------------------------------------------------------------------------- figure


_PANELS = {
    "pair_steps": "pair steps\nto the relative gap",
    "paper_pair_steps": "pair steps\nto the paper's rule",
    "newton_steps": "Newton steps\nto the gap",
}


def draw(measured: list[dict[str, Any]], path: Path) -> None:
    """A column per set and task, a row per count."""
    with rc_context(FONTS | {"axes.titlesize": 10, "legend.fontsize": 9}):
        figure = Figure(figsize=(4.6 * len(measured), 7.0), layout="constrained")
        panels = figure.subplots(
            *(len(_PANELS), len(measured)), squeeze=False, sharex="col", height_ratios=(2, 2, 1)
        )
        for column, record in enumerate(measured):
            for panel, key in zip(panels[:, column], _PANELS, strict=True):
                _draw_panel(panel, record["lines"], key)
            panels[-1, column].set_xlabel("rank of P")
            panels[0, column].set_title(
                f"{record['name']}, {record['task']}: m={record['rows']}, "
                f"$n_P$={record['n_params']}"
            )
        for panel, label in zip(panels[:, 0], _PANELS.values(), strict=True):
            panel.set_ylabel(label)
        handles, labels = panels[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
        figure.suptitle("Work of one cold SVM solve; bars are 95 % confidence intervals")
        figure.savefig(path, dpi=150)


def _draw_panel(panel: Axes, lines: list[dict[str, Any]], key: str) -> None:
    chosen = {
        "random P": ([ln for ln in lines if not isinstance(ln["P"], str)], BLUE, "o-"),
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
    level = chosen["optimal P"][0][0][key]
    tallest = max(line[key] + line[f"{key}_ci"] for line in lines)
    panel.set_ylim(0, 1.1 * max(tallest, 1.0))
    panel.locator_params(integer=True)
    panel.axhline(level, color=VERMILION, linewidth=0.9, linestyle=":", zorder=1)
    panel.grid(True, which="major", color="#E4E4E4", linewidth=0.6)
    panel.set_axisbelow(True)


if __name__ == "__main__":
    main()
