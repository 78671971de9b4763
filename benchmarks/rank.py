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
from pathlib import Path
from typing import Any

from _common import REGRESSION, Dataset, load, options, saddle_point, say
from _report import text, write_report

from tessella.kernels import TessellatedKernels
from tessella_bench.figures._rank import draw_counts, summarise, svm_by_rank
from tessella_bench.figures._style import canvas


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


def _measure(whole: Dataset, arguments: argparse.Namespace) -> dict[str, Any]:
    """All kinds of P on one set and task."""
    runs: dict[Any, list[dict[str, Any]]] = {}
    side = 0
    for seed in range(arguments.seed, arguments.seed + arguments.seeds):
        data = whole.take(arguments.rows, seed)
        kernels = TessellatedKernels(degree=arguments.degree, delta=arguments.delta)
        problem = saddle_point(data, kernels, arguments.C)
        side = problem.cone.degree
        asked = sorted({rank for rank in arguments.ranks or () if 1 <= rank <= side})
        for kind, run in svm_by_rank(problem, seed, arguments.tol, asked).items():
            runs.setdefault(kind, []).append(run)
        shown = {kind: found[-1]["paper_pair_steps"] for kind, found in runs.items()}
        say(f"{whole.name} {whole.task} seed {seed}: pair steps {shown}")
    return {
        "name": whole.name,
        "task": whole.task,
        "rows": min(arguments.rows or len(whole.y), len(whole.y)),
        "n_params": side,
        "lines": summarise(runs),
        "runs": {str(kind): found for kind, found in runs.items()},
    }


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
    title = "Work of one cold SVM solve; bars are 95 % confidence intervals"
    with canvas(4.6 * len(measured), 7.0, axes__titlesize=10, legend__fontsize=9) as figure:
        draw_counts(figure, measured, _PANELS, title)
        figure.savefig(path, dpi=150)


if __name__ == "__main__":
    main()
