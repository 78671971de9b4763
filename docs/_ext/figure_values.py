"""The figures that texts quote, by name, from the committed JSON.

One function for each file. It takes the content and gives its figures as they are written.
`quoted_figures.py` compares the texts with them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median
from typing import Any

import paper_figure_values
from figure_rounding import digits, power, span, words

from tessella_bench._overview import in_ranks, in_seconds, overview
from tessella_bench._statistics import rank

Json = dict[str, Any]
Figures = dict[str, str]


@dataclass(frozen=True)
class Figure:
    """A figure as it is written, and the file it comes from."""

    text: str
    source: str

    @property
    def value(self) -> float:
        """The number, of a figure that is one."""
        return float(self.text.replace(",", ""))


def all_figures(root: Path) -> dict[str, Figure]:
    """Every figure of the repository at `root`, by name."""
    found: dict[str, Figure] = {}
    for source, figures_of in SOURCES.items():
        content = json.loads((root / source).read_text(encoding="utf-8"))
        try:
            figures = figures_of(content)
        except (KeyError, ValueError) as error:
            raise ValueError(f"{source} lacks what is quoted from it: {error!r}.") from error
        for name, text in figures.items():
            assert name not in found, name
            found[name] = Figure(text, source)
    return found


# ------------------------------------------------------------------------------------------- files


def speed(content: Json) -> Figures:
    """The rows of the speed table that are quoted: 3, 6, 8 and 9."""
    cells = {row["row"]: row["cells"] for row in content["rows"]}
    fits, growth, (large,) = cells[3], cells[6], cells[8]
    ratios = [cell["ratio"] for cell in fits]
    return {
        **span("fit-ratio", ratios, digits),
        "fit-ratio-median": digits(median(ratios)),
        "fit-sets": words(len(fits)),
        **span("fit-rows", (cell["rows"] for cell in fits), "{:,}".format),
        "growth-exponent": f"{_slope(growth):.1f}",
        **span("growth-rows", (cell["rows"] for cell in growth), "{:,}".format),
        "large-rows": f"{large['rows']:,}",
        "large-seconds": digits(large["seconds"]),
        "large-gigabytes": digits(large["peak_bytes"] / 1e9),
        **span("predict-ratio", (cell["ratio"] for cell in cells[9]), digits),
    }


def _slope(cells: list[Json]) -> float:
    """Exponent of seconds against rows, by least squares of the logarithms."""
    x = [math.log(cell["rows"]) for cell in cells]
    y = [math.log(cell["seconds"]) for cell in cells]
    across = sum((a - mean(x)) * (b - mean(y)) for a, b in zip(x, y, strict=True))
    return across / sum((a - mean(x)) ** 2 for a in x)


def convergence(content: Json) -> Figures:
    """What the Newton methods need for the tolerance of the run, and its cap."""
    runs = [result["solvers"] for result in content["results"]]
    joint = [run["joint"]["n_newton"] for run in runs if run["joint"]["status"] == "optimal"]
    rounds = [
        run["working-set"]["n_svm"] for run in runs if run["working-set"]["status"] == "optimal"
    ]
    return {
        **span("joint-steps", joint, str),
        **span("working-set-rounds", rounds, words),
        "convergence-cap": f"{content['settings']['time_cap']:g}",
        "convergence-tol": power(content["settings"]["tol"]),
        "convergence-sets": words(len(runs)),
        "convergence-table": "\n".join(_solves(result) for result in content["results"]),
    }


def _solves(result: Json) -> str:
    """A line of the table in the docstring of `tessella.solvers`."""
    counts = []
    for solver in ("working-set", "joint", "frank-wolfe", "apd", "hybrid"):
        run = result["solvers"][solver]
        count = run["n_svm" if run["counts_svm"] else "n_newton"]
        counts.append(str(count) if run["status"] == "optimal" else "-")
    cells = [result["name"], result["rows"], result["n_params"], *counts]
    widths = (14, 5, 4, 11, 5, 11, 5, 6)
    return "  ".join(f"{cell:<{w}}" for cell, w in zip(cells, widths, strict=True)).rstrip()


def tuning(content: Json) -> Figures:
    """How much faster KernelPathCV is than GridSearchCV."""
    plain = {r["name"]: r["ratio"] for r in content["results"] if r["by"] == "KernelPathCV"}
    early = {
        r["name"]: r["ratio"] for r in content["results"] if r["by"] == "KernelPathCV, eliminate"
    }
    return {
        **span("tuning-ratio", plain.values(), digits),
        **span("tuning-early-ratio", early.values(), digits),
        **{f"tuning-ratio-{name}": digits(ratio) for name, ratio in plain.items()},
        **{f"tuning-early-ratio-{name}": digits(ratio) for name, ratio in early.items()},
    }


def tuning_grid(content: Json) -> Figures:
    """What the best point of the default grid loses."""
    (grid,) = (g for g in content["results"][0]["losses"] if g.endswith("the default grid"))
    lost = [result["losses"][grid] for result in content["results"]]
    return {
        "grid-loss-mean": f"{mean(lost):.4f}",
        "grid-loss-most": f"{max(lost):.3f}",
        "grid-sets": words(len(lost)),
        "grid-points": str(len(content["results"][0]["points"])),
    }


def balance(content: Json) -> Figures:
    """Scores of the balances: accuracy, or R² for a regression."""
    scores: dict[str, dict[str, float]] = {}
    for result in content["results"]:
        score = result["accuracy" if result["task"] == "classification" else "r2"]
        scores.setdefault(result["name"], {})[result["balance"]] = score
    lost = {
        name: {kind: max(row.values()) - score for kind, score in row.items()}
        for name, row in scores.items()
    }
    ranks = rank(scores, list(next(iter(scores.values()))), larger_is_better=True)
    assert ranks is not None
    means = dict(zip(ranks.methods, ranks.means, strict=True))
    others = [row["none"] for name, row in lost.items() if name != "hill_valley"]
    return {
        "hill-valley-none": f"{100 * scores['hill_valley']['none']:.0f}",
        "hill-valley-unit": f"{100 * scores['hill_valley']['unit']:.0f}",
        "hill-valley-none-loss": digits(lost["hill_valley"]["none"]),
        "hill-valley-pointwise-loss": digits(lost["hill_valley"]["pointwise"]),
        **{f"balance-rank-{kind}": f"{value:.1f}" for kind, value in means.items()},
        "space-unit-loss": digits(lost["space_ga"]["unit"]),
        "balance-other-loss": digits(max(others), 3),
        "balance-other-sets": words(len(others)),
    }


def several_classes(content: Json) -> Figures:
    """Seconds of a fit to the ten classes of digits."""
    seconds = {
        result["method"]: mean(split["seconds"] for split in result["splits"])
        for result in content["results"]
        if result["name"] == "digits"
    }
    return {
        "digits-shared-seconds": digits(seconds["one kernel for all pairs"]),
        "digits-svc-seconds": digits(seconds["SVC, RBF"]),
    }


def multiple_kernels(content: Json) -> Figures:
    """SVMs on all samples until the gap of the run, and how much faster than SimpleMKL."""
    results = content["results"]
    return {
        "mkl-gap": power(content["settings"]["tol"]),
        **span("mkl-svms", (r["learned_n_svm"] for r in results), words),
        **span("simple-mkl-svms", (r["simple_n_svm"] for r in results), str),
        **span("mkl-ratio", (r["speed_up"] for r in results), digits),
    }


def report(content: Json) -> Figures:
    """The picture of the README, in words. Nothing where there is nothing to compare."""
    data = overview(content)
    if data is None or not data["timed_sets"]:
        return {}
    pairs = list(zip(data["titles"], data["mean_rank"], data["mean_seconds"], strict=True))
    seconds = dict(zip(data["methods"], data["mean_seconds"], strict=True))
    boosted = [seconds[name] for name in ("xgboost", "hist-gb", "lightgbm") if name in seconds]
    return {
        "overview-sets": words(len(data["sets"])),
        "overview-timed-sets": words(len(data["timed_sets"])),
        "overview-methods": words(len(data["methods"])),
        "overview-splits": words(data["splits"]),
        "overview-ranks": ", ".join(f"{title} {in_ranks(value)}" for title, value, _ in pairs),
        "overview-seconds": ", ".join(f"{title} {in_seconds(value)}" for title, _, value in pairs),
        "overview-difference": in_ranks(data["critical_difference"]),
        **({"overview-tkl-to-boosted": digits(seconds["tkl"] / max(boosted))} if boosted else {}),
    }


SOURCES: dict[str, Callable[[Json], Figures]] = {
    "benchmarks/results/speed.json": speed,
    "benchmarks/results/convergence.json": convergence,
    "benchmarks/results/tuning.json": tuning,
    "benchmarks/results/tuning-grid.json": tuning_grid,
    "benchmarks/results/balance.json": balance,
    "benchmarks/results/several-classes.json": several_classes,
    "benchmarks/results/multiple-kernels.json": multiple_kernels,
    "benchmarks/results/protocol.json": paper_figure_values.protocol,
    "benchmarks/results/strength.json": paper_figure_values.strength,
    "benchmarks/reports/report.json": report,
    "benchmarks/reports/figures/convergence.json": paper_figure_values.convergence,
    "benchmarks/reports/figures/scaling.json": paper_figure_values.scaling,
    "benchmarks/reports/figures/terrain.json": paper_figure_values.terrain,
    "benchmarks/reports/figures/rank.json": paper_figure_values.rank,
}
