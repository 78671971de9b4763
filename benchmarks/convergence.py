"""Certified gap against time and steps, for every solver: the paper's Figure 2, on more sets.

C and delta are chosen by cross-validation on a few hundred rows, so that the problems are those
a user would solve. Every solver of such problems except "sdp" then runs to the target gap or to
the time cap. Writes convergence.json, convergence.md, convergence-time.png and
convergence-steps.png.

Targets: "auto" reaches the target gap with at most 12 SVM solves, or with at most 40 Newton steps
where it is the joint method, which needs no SVM; and it reaches a gap of 1e-4 before Frank-Wolfe
reaches 1e-2.
"""

from __future__ import annotations

import argparse
import itertools
import math
from typing import Any

import numpy as np
from _common import (
    FIGURE_2,
    TWELVE,
    Dataset,
    cross_validate,
    load,
    numerical_rank,
    options,
    saddle_point,
    say,
    solve,
)
from _report import Cache, attempt, text, write_report

from tessella.kernels import TessellatedKernels
from tessella.solvers import SOLVERS, SolverResult, choose_solver
from tessella_bench.figures._convergence import summary
from tessella_bench.figures._convergence_picture import draw_axis
from tessella_bench.figures._problem import ITERATIVE

GRID_C = (0.1, 1.0, 10.0, 100.0)
GRID_DELTA = (0.1, 0.5, 2.0)

MAX_SVM, MAX_NEWTON = 12, 40
OUR_GAP, THEIR_GAP = 1e-4, 1e-2  # of auto and of Frank-Wolfe, for the ratio of times


def main() -> None:
    arguments = _parse()
    tuned = Cache(
        arguments,
        "convergence-tuning",
        {key: getattr(arguments, key) for key in ("rows", "tuning_rows", "seed", "degree")},
    )
    _warm_up()
    records = []
    for name in arguments.datasets:
        data = load(name, arguments.rows, arguments.seed)
        choice = _choose(data, tuned, arguments)
        say(f"{name}: C={choice['C']:g} delta={choice['delta']:g} by cross-validation")
        records.append(_measure(data, choice, arguments))
    for axis in ("time", "steps"):
        arguments.output.mkdir(parents=True, exist_ok=True)
        draw_axis(records, axis, arguments.tol, arguments.output / f"convergence-{axis}.png")
    write_report(arguments, "convergence", records, HEADERS, [_row(r) for r in records])


def _parse() -> argparse.Namespace:
    parser = options(__doc__, rows=3000, datasets=(*FIGURE_2, *TWELVE))
    parser.add_argument("--tol", type=float, default=1e-6, help="target gap (default: 1e-6)")
    parser.add_argument(
        "--time-cap", type=float, default=60.0, help="seconds of a solver on a set (default: 60)"
    )
    parser.add_argument("--degree", type=int, default=1, help="of the monomials (default: 1)")
    parser.add_argument(
        "--tuning-rows", type=int, default=600, help="rows of the cross-validation (default: 600)"
    )
    parser.add_argument(
        "--solvers", nargs="+", metavar="NAME", help="solvers to run (default: all but sdp)"
    )
    return parser.parse_args()


def _warm_up() -> None:
    """An untimed problem, so that no solver pays for imports and the first call of BLAS."""
    rng = np.random.default_rng(0)
    tiny = Dataset("tiny", "regression", rng.random((40, 2)), rng.random(40))
    problem = saddle_point(tiny, TessellatedKernels(), 1.0)
    for name in ITERATIVE:
        attempt(lambda name=name: {"run": solve(name, problem, tol=1e-2, time_limit=5.0)})


def _choose(data: Dataset, cache: Cache, arguments: argparse.Namespace) -> dict[str, Any]:
    """The point of the grid with the best cross-validation score; of equals, the smallest C."""
    few = data.take(arguments.tuning_rows, arguments.seed)
    cells = []
    for C, delta in itertools.product(GRID_C, GRID_DELTA):
        kernels = TessellatedKernels(degree=arguments.degree, delta=delta)

        def compute(kernels: TessellatedKernels = kernels, C: float = C) -> dict[str, Any]:
            return cross_validate(few, kernels, C, seed=arguments.seed)

        key = f"{data.name} C={C:g} delta={delta:g}"
        known = key in cache
        cell = cache.cell(key, compute)
        if not known:
            say(f"  tuning {key}: {cell.get('error') or text(cell['score'])}")
        if "error" not in cell:
            cells.append({"C": C, "delta": delta, **cell})
    if not cells:
        raise SystemExit(f"Every fit of the cross-validation on {data.name} failed.")
    return max(cells, key=lambda cell: cell["score"])


# ----------------------------------------------------------------------------------- measuring


def _measure(
    data: Dataset, choice: dict[str, Any], arguments: argparse.Namespace
) -> dict[str, Any]:
    """All solvers on one set."""
    kernels = TessellatedKernels(degree=arguments.degree, delta=choice["delta"])
    problem = saddle_point(data, kernels, choice["C"])
    picked = choose_solver("auto", problem)
    auto = next((name for name, solver in SOLVERS.items() if solver is picked), "auto")
    names = [name for name in arguments.solvers or ITERATIVE if name not in ("sdp", auto)]
    runs: dict[str, dict[str, Any]] = {}
    answers: list[SolverResult] = []
    for name in (auto, *names):
        solver = picked if name == auto else name

        def compute(solver: Any = solver) -> dict[str, Any]:
            result, seconds = solve(
                solver, problem, tol=arguments.tol, time_limit=arguments.time_cap
            )
            answers.append(result)
            return summary(result, seconds)

        runs[name] = attempt(compute)
        say(f"  {name}: {_progress(runs[name])}")
    best = min(answers, key=lambda result: result.gap, default=None)
    return {
        "name": data.name,
        "task": data.task,
        "rows": len(data.y),
        "distinct_rows": problem.dual.size,
        "features": data.X.shape[1],
        "n_params": problem.cone.degree,
        "tuning": choice,
        "auto": auto,
        "best_solver": best.solver if best else None,
        "best_gap": best.gap if best else None,
        "rank": numerical_rank(best.parameter) if best else None,
        "eigenvalues": np.linalg.eigvalsh(best.parameter)[::-1][:8] if best else None,
        "solvers": runs,
        **_judge(auto, runs, arguments.tol),
    }


def _progress(run: dict[str, Any]) -> str:
    if "error" in run:
        return f"failed: {run['error']}"
    return (
        f"gap {run['gap']:.1e} in {run['seconds']:.2f} s, {run['iterations']} iterations, "
        f"{run['n_svm']} SVM solves, {run['n_newton']} Newton steps ({run['status']})"
    )


# ------------------------------------------------------------------------------------- verdict


def _judge(auto: str, runs: dict[str, Any], tol: float) -> dict[str, Any]:
    """The times that are compared, their ratio and the verdict."""
    run, other = runs[auto], runs.get("frank-wolfe", {"error": "not run"})
    ours = run.get("seconds_to", {}).get(f"{OUR_GAP:g}")
    theirs = other.get("seconds_to", {}).get(f"{THEIR_GAP:g}")
    capped = theirs is None and "error" not in other
    ratio = None
    if ours is not None and (theirs is not None or capped):
        ratio = ours / max(other["seconds"] if capped else theirs, 1e-9)
    return {
        "auto_seconds": ours,
        "frank_wolfe_seconds": theirs,
        "ratio": ratio,
        "ratio_is_bound": capped,
        "verdict": verdict(run, ratio, tol),
    }


def verdict(run: dict[str, Any], ratio: float | None, tol: float) -> str:
    """ "ok", or every target that was missed."""
    if "error" in run:
        return "failed"
    missed = []
    if run["gap"] > tol:
        missed.append(f"gap {run['gap']:.0e}")
    if run["counts_svm"] and run["n_svm"] > MAX_SVM:
        missed.append(f"{run['n_svm']} SVM solves")
    if not run["counts_svm"] and run["n_newton"] > MAX_NEWTON:
        missed.append(f"{run['n_newton']} Newton steps")
    if ratio is None:
        missed.append("no ratio")
    elif ratio > 1.0:
        missed.append("slower")
    return "ok" if not missed else "missed: " + ", ".join(missed)


HEADERS = (
    *("set", "rows", "n", "n_P", "C", "delta", "auto", "SVM solves", "Newton steps", "gap"),
    *("rank P", "auto to 1e-4 (s)", "FW to 1e-2 (s)", "ratio", "verdict"),
)


def _row(record: dict[str, Any]) -> list[Any]:
    run = record["solvers"][record["auto"]]
    ratio = record["ratio"]
    below = "<" if record["ratio_is_bound"] else ""
    return [
        record["name"],
        record["rows"],
        record["features"],
        record["n_params"],
        record["tuning"]["C"],
        record["tuning"]["delta"],
        run.get("solver", record["auto"]),
        run.get("n_svm"),
        run.get("n_newton"),
        run.get("gap", math.nan),
        # The rank of an answer far from the optimum is a guess.
        f"{record['rank']}?" if (record["best_gap"] or 0.0) > OUR_GAP else record["rank"],
        record["auto_seconds"],
        record["frank_wolfe_seconds"],
        None if ratio is None else f"{below}{text(ratio)}",
        record["verdict"],
    ]


if __name__ == "__main__":
    main()
