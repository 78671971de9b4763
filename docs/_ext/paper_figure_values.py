"""The figures quoted beside the paper's figures, and about its protocol."""

from __future__ import annotations

from statistics import mean
from typing import Any

from figure_rounding import digits, power, span, words

Json = dict[str, Any]
Figures = dict[str, str]

_SHORT = {"frank-wolfe": "Frank-Wolfe", "apd": "APD", "working-set": "default"}
_GRIDS = {"dem_grand_canyon_west": "western Grand Canyon", "dem_jacksboro_fault": "Jacksboro fault"}
_KERNELS = {"tessellated": "tessellated, degree 2", "gaussian": "Gaussian"}


def convergence(content: Json) -> Figures:
    """Figure 2: iterations of a solver on a set."""
    runs = {name.replace(" ", "-"): cell for name, cell in content["cells"].items()}
    return {
        f"paper-steps-{name}": str(cell["iterations"])
        for name, cell in runs.items()
        if name.endswith(("working-set", "frank-wolfe", "apd"))
    }


def scaling(content: Json) -> Figures:
    """Figure 3: exponents, and what the solvers have reached."""
    cells = content["cells"]
    default = [cell for name, cell in cells.items() if " working-set " in name]
    others = [cell for name, cell in cells.items() if " working-set " not in name]
    limit = content["settings"]["max_iter"]
    return {
        "scaling-table": _exponents(content["summary"]["exponents"]),
        "scaling-rows": f"{max(content['settings']['rows']):,}",
        **span("scaling-default", (cell["iterations"] for cell in default), str),
        "scaling-limit": str(limit),
        **span("scaling-gap", (c["gap"] for c in others if c["iterations"] == limit), _gap),
        **span("scaling-early", (c["iterations"] for c in others if c["iterations"] < limit), str),
        "scaling-slower": str(_slower_up_to(cells)),
    }


def _gap(value: float) -> str:
    return power(value) if value < 0.01 else digits(value, 1)


def _exponents(exponents: Json) -> str:
    """A line for each task and solver: all sizes, the last three and the paper's, twice."""
    lines = []
    for task, by in exponents.items():
        for solver, title in _SHORT.items():
            parts = [
                f"{part['exponent']:.2f} | {part['exponent_of_last']:.2f} | {part['paper'] or '–'}"
                for part in (by["rows"][solver], by["n_params"][solver])
            ]
            lines.append(f"| {task} | {title} | {' | '.join(parts)} |")
    return "\n".join(lines)


def _slower_up_to(cells: Json) -> int:
    """The largest n_P up to which an iteration of Frank-Wolfe is slower than one of APD."""
    best = 0
    shapes = {name.replace(" frank-wolfe ", " {} ") for name in cells if " frank-wolfe " in name}
    pairs = [(cells[s.format("frank-wolfe")], cells[s.format("apd")]) for s in shapes]
    for side in sorted({ours["n_params"] for ours, _ in pairs}):
        own = [ours["seconds"] > apd["seconds"] for ours, apd in pairs if ours["n_params"] == side]
        if not all(own):
            break
        best = side
    return best


def terrain(content: Json) -> Figures:
    """Figure 4: errors on the points that were not learned from."""
    lines, closer = [], {}
    for grid, title in _GRIDS.items():
        cell = content["cells"][grid]
        for kernel, name in _KERNELS.items():
            found = cell[kernel]
            errors = f"{found['rmse']:.1f} | {found['untuned_rmse']:.1f} | {found['r2']:.3f}"
            lines.append(f"| {title} | {name} | {errors} |")
        closer[grid] = 1 - cell["gaussian"]["rmse"] / cell["tessellated"]["rmse"]
    return {
        "terrain-table": "\n".join(lines),
        "terrain-canyon-closer": f"{100 * closer['dem_grand_canyon_west']:.0f}",
        "terrain-jacksboro-closer": f"{100 * closer['dem_jacksboro_fault']:.0f}",
        "terrain-points": str(content["settings"]["points"]),
    }


def protocol(content: Json) -> Figures:
    """What two choices cost on Airfoil: part of the error that goes when they are made."""
    errors = {result["variant"]: mean(result["errors"]) for result in content["results"]}
    first = errors["tube of 0.1 deviations, delta 0.1, 1, 4"]
    tube = errors["tube of 0.1 in the target's unit"]
    margin = errors["and delta 0.3: as in the report"]
    return {
        "protocol-tube": f"{100 * (1 - tube / first):.0f}",
        "protocol-margin": f"{100 * (1 - margin / tube):.0f}",
    }


def strength(content: Json) -> Figures:
    """Accuracy of TKL on Hill Valley at the end of the default grid, and far beyond it."""
    (found,) = (r for r in content["results"] if r["method"].startswith("TKL"))
    accuracy = dict(zip(found["strengths"], map(mean, found["accuracy"]), strict=True))
    return {
        "strength-default": f"{accuracy[1e4]:.0f}",
        "strength-far": f"{accuracy[1e8]:.1f}",
    }


def rank(content: Json) -> Figures:
    """Figure 6: LIBSVM's iterations at the optimal P, against random P."""
    found: Figures = {}
    for data in content["summary"]["sets"]:
        lines = {line["P"]: line["libsvm_iterations"] for line in data["lines"]}
        random = mean(v for name, v in lines.items() if name not in ("optimal", "identity"))
        found[f"rank-{data['task']}-ratio"] = digits(lines["optimal"] / random)
    ranks = {line["rank"] for d in content["summary"]["sets"] for line in d["lines"][:1]}
    return found | {"rank-optimal": words(round(max(ranks)))}
