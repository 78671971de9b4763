"""The pictures of the report: critical differences, and the scores of all divisions."""

from __future__ import annotations

from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tessella_bench._overview import draw_overview, overview

_BLUE, _GREY, _DARK, _ORANGE = "#0072B2", "#9A9A9A", "#333333", "#D55E00"  # Okabe and Ito's
_DPI = 150
_COLUMNS = 4
# The name of this option changed in matplotlib 3.10.
_ACROSS: dict[str, Any] = (
    {"orientation": "horizontal"}
    if "orientation" in signature(Axes.boxplot).parameters
    else {"vert": False}
)


def draw(report: dict[str, Any], folder: Path) -> dict[str, Path]:
    """Draw what the report allows.

    Parameters
    ----------
    report : dict
        As :func:`gather` gives it.
    folder : Path
        Where the PNG files go.

    Returns
    -------
    dict
        Files by key: ``overview``, ``<task>-ranks`` with three methods or more,
        ``<task>-scores``.
    """
    titles = {name: about["title"] for name, about in report["methods"].items()}
    drawn: dict[str, Path] = {}
    summary = overview(report)
    if summary is not None:
        drawn["overview"] = folder / "overview.png"
        draw_overview(summary, drawn["overview"])
    for task, table in report["tables"].items():
        if table["ranks"] is not None and table["ranks"]["critical_difference"] is not None:
            drawn[f"{task}-ranks"] = folder / f"{task}-ranks.png"
            _save(_critical_difference(table["ranks"], titles), drawn[f"{task}-ranks"])
        rows = [row for row in table["rows"] if _scores_of(row)]
        if rows:
            drawn[f"{task}-scores"] = folder / f"{task}-scores.png"
            _save(_boxes(rows, titles, table["metric"]), drawn[f"{task}-scores"])
    return drawn


def _save(figure: Figure, path: Path) -> None:
    figure.savefig(path, dpi=_DPI, bbox_inches="tight", metadata={"Software": None})


# ----------------------------------------------------------------------------------------- ranks


def _critical_difference(ranks: dict[str, Any], titles: dict[str, str]) -> Figure:
    """Demšar's diagram: methods at their mean ranks, bars over those not told apart."""
    means, cd = np.array(ranks["mean"]), ranks["critical_difference"]
    names = [titles[name] for name in ranks["methods"]]
    groups = not_told_apart(means, cd)
    count, half = len(names), (len(names) + 1) // 2
    levels = 0.35 + 0.16 * len(groups)
    figure = Figure(figsize=(8.0, 1.1 + 0.3 * half + 0.14 * len(groups)))
    axes = figure.add_subplot()
    axes.set(xlim=(1 - 0.05 * count, count + 0.05 * count), ylim=(-levels - 0.3 * half, 0.75))
    axes.axis("off")
    axes.hlines(0, 1, count, color=_DARK, linewidth=1)
    for tick in range(1, count + 1):
        axes.vlines(tick, 0, 0.08, color=_DARK, linewidth=1)
        axes.text(tick, 0.12, str(tick), ha="center", va="bottom", fontsize=9, color=_DARK)
    shown = min(cd, count - 1)
    axes.plot([1, 1 + shown], [0.52, 0.52], color=_ORANGE, linewidth=2, solid_capstyle="butt")
    axes.text(
        *(1 + shown / 2, 0.56),
        f"critical difference {cd:.2f}",
        ha="center",
        va="bottom",
        fontsize=9,
    )
    for place, (mean, name) in enumerate(zip(means, names, strict=True)):
        left = place < half
        y = -levels - 0.3 * (place if left else count - 1 - place)
        end = axes.get_xlim()[0 if left else 1]
        colour = _BLUE if name.startswith("TKL") else _DARK
        axes.plot([mean, mean, end], [0, y, y], color=colour, linewidth=1)
        label = f"{name} {mean:.2f} " if left else f" {mean:.2f} {name}"
        align = "right" if left else "left"
        axes.text(end, y, label, ha=align, va="center", fontsize=10, color=colour)
    for level, (first, last) in enumerate(groups):
        y = -0.2 - 0.16 * level
        ends = [means[first] - 0.04, means[last] + 0.04]
        axes.plot(ends, [y, y], color=_GREY, linewidth=4, solid_capstyle="round")
    return figure


def not_told_apart(means: np.ndarray, difference: float) -> list[tuple[int, int]]:
    """Longest runs of sorted mean ranks that span less than the critical difference."""
    runs: list[tuple[int, int]] = []
    for first in range(len(means)):
        last = int(np.searchsorted(means, means[first] + difference, side="left")) - 1
        if last > first and (not runs or last > runs[-1][1]):
            runs.append((first, last))
    return runs


# ---------------------------------------------------------------------------------------- scores


def _scores_of(row: dict[str, Any]) -> dict[str, list[float]]:
    return {
        name: list(cell["scores"].values()) for name, cell in row["cells"].items() if "mean" in cell
    }


def _boxes(rows: list[dict[str, Any]], titles: dict[str, str], metric: str) -> Figure:
    """A panel for each data set: boxes here, the paper's mean and deviation beside."""
    wide = min(_COLUMNS, len(rows))
    deep = -(-len(rows) // wide)
    most = max(len(_scores_of(row)) for row in rows)
    figure = Figure(figsize=(3.3 * wide, deep * (1.1 + 0.27 * most)), layout="constrained")
    panels = np.atleast_1d(figure.subplots(deep, wide, squeeze=False)).ravel()
    for axes, row in zip(panels, rows, strict=False):
        _panel(axes, row, titles)
    for axes in panels[len(rows) :]:
        axes.axis("off")
    text = f"{metric}; boxes: divisions here, orange: mean ± deviation in the paper"
    figure.supxlabel(text, fontsize=9)
    return figure


def _panel(axes: Any, row: dict[str, Any], titles: dict[str, str]) -> None:
    scores = _scores_of(row)
    places = np.arange(len(scores))[::-1]
    for place, (name, values) in zip(places, scores.items(), strict=True):
        colour = _BLUE if name.startswith("tkl") else _GREY
        axes.boxplot(
            values,
            positions=[place],
            **_ACROSS,
            widths=0.55,
            patch_artist=True,
            manage_ticks=False,
            boxprops={"facecolor": colour, "alpha": 0.45, "edgecolor": colour},
            medianprops={"color": _DARK},
            flierprops={"marker": ".", "markersize": 4},
        )
        printed = (row["cells"][name].get("paper") or {}).get("score")
        if printed:
            mean, deviation = printed
            axes.errorbar(
                *(mean, place - 0.36), xerr=deviation, fmt="o", color=_ORANGE, markersize=3
            )
    axes.set_yticks(places, [titles[name] for name in scores], fontsize=8)
    axes.set_ylim(-0.7, len(scores) - 0.4)
    axes.tick_params(axis="x", labelsize=8)
    axes.set_title(f"{row['title']} ({row['rows']:,} × {row['features']})", fontsize=9)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
