"""The --small mode of sdp.py: every solver against the SDP on small random problems."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
from _common import CLASSIFICATION, REGRESSION, Dataset, saddle_point, say, solve
from _report import attempt, text, write_report

from tessella.kernels import TessellatedKernels
from tessella.problems import SaddlePoint
from tessella_bench.figures._problem import ITERATIVE

N_PROBLEMS = 20
AGREEMENT = 1e-5
_TOL = 1e-7
_TIME_CAP = 20.0  # seconds of Frank-Wolfe and its like on one problem


def measure_small(arguments: argparse.Namespace, sdp: Callable[..., Any] | None) -> None:
    """Solve the problems by every solver, print the table and write the JSON."""
    records = []
    for number in range(N_PROBLEMS):
        case, problem = random_problem(number, arguments.seed)
        runs = {name: _run(name, problem) for name in ("auto", *ITERATIVE)}
        if sdp is not None:
            runs["sdp"] = _run(sdp, problem, max_rows=problem.dual.size)
        records.append({**case, "solvers": runs, **_judge(runs)})
        say(f"problem {number + 1} of {N_PROBLEMS} {_describe(case)}: {records[-1]['verdict']}")
    headers = ("task", "m", "n", "degree", "monomials", "SDP value", "SDP gap")
    headers += tuple(f"{name}: {what}" for name in ITERATIVE for what in ("difference", "gap"))
    rows = [_row(record) for record in records]
    write_report(arguments, "sdp-small", records, (*headers, "verdict"), rows)


def random_problem(number: int, seed: int) -> tuple[dict[str, Any], SaddlePoint]:
    """One of the small problems: its description and itself."""
    rng = np.random.default_rng([seed, number])
    case: dict[str, Any] = {
        "task": (CLASSIFICATION, REGRESSION)[number % 2],
        "monomials": ("x", "xz")[number // 2 % 2],
        "degree": number // 4 % 3,
        "rows": int(rng.integers(15, 31)),
        "features": int(rng.integers(1, 4)),
        "C": float(10 ** rng.uniform(-0.5, 1.5)),
        "delta": float(rng.choice([0.1, 0.5, 2.0])),
    }
    X = rng.random((case["rows"], case["features"]))
    y = np.sin(5 * X[:, 0]) + 2 * X[:, 0] * X[:, -1] + 0.2 * rng.standard_normal(len(X))
    data = Dataset(f"small {number}", REGRESSION, X, y)
    if case["task"] == CLASSIFICATION:
        data = data.split_at_median()
    kernels = TessellatedKernels(case["degree"], case["delta"], case["monomials"])
    problem = saddle_point(data, kernels, case["C"])
    return case | {"n_params": problem.cone.degree}, problem


def _run(solver: Any, problem: SaddlePoint, **more: Any) -> dict[str, Any]:
    def compute() -> dict[str, Any]:
        result, seconds = solve(solver, problem, tol=_TOL, time_limit=_TIME_CAP, **more)
        return {
            "solver": result.solver,
            "status": result.status.value,
            "value": result.value,
            "bound": result.bound,
            "gap": result.gap,
            "seconds": seconds,
        }

    return attempt(compute)


def _judge(runs: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Relative differences in value from the SDP, and the verdict.

    A value below the SDP's is nearer to the optimum, as long as the certified intervals meet.
    """
    solved = {name: run for name, run in runs.items() if "error" not in run}
    failed = sorted(set(runs) - set(solved))
    # Each interval holds the optimum, so they all meet: the highest bound is below every value.
    size = max(abs(run["value"]) for run in solved.values()) if solved else 1.0
    meet = not solved or max(run["bound"] for run in solved.values()) <= (
        min(run["value"] for run in solved.values()) + 1e-9 * size
    )
    differences = {}
    if "sdp" in solved:
        reference = solved["sdp"]["value"]
        differences = {
            name: (run["value"] - reference) / abs(reference)
            for name, run in solved.items()
            if name != "sdp"
        }
    if failed:
        said = "failed: " + ", ".join(failed)
    elif not meet:
        said = "missed: certified intervals do not meet"
    elif not differences:
        said = "–"
    elif differences["auto"] > AGREEMENT:
        said = f"missed: auto is above by {text(differences['auto'])}"
    else:
        said = "ok"
    return {"differences": differences, "intervals_meet": meet, "verdict": said}


def _describe(case: dict[str, Any]) -> str:
    return (
        f"({case['task']}, m={case['rows']}, n={case['features']}, degree {case['degree']}, "
        f"monomials {case['monomials']})"
    )


def _row(record: dict[str, Any]) -> list[Any]:
    runs = record["solvers"]
    cells = [record["task"], record["rows"], record["features"], record["degree"]]
    cells += [record["monomials"], runs.get("sdp", {}).get("value"), runs.get("sdp", {}).get("gap")]
    for name in ITERATIVE:
        cells += [record["differences"].get(name), runs[name].get("gap")]
    return [*cells, record["verdict"]]
