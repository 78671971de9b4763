"""The picture of the suite: mean ranks by group, and seconds against rank."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tessella_bench.figures._style import BLUE, canvas, faint_grid, save
from tessella_bench.suite._methods import OURS

_DARK, _BAND = "#333333", "#E9EDF2"
_FONTS = {"font__size": 9.5, "axes__labelsize": 9.5, "ytick__labelsize": 9.5}


def draw_suite(report: dict[str, Any], folder: Path) -> dict[str, Path]:
    """Draw what the report allows.

    Parameters
    ----------
    report : dict
        As :func:`gather_suite` gives it.
    folder : Path
        Where ``suite-<size>.png`` and ``suite-<size>.svg`` go.

    Returns
    -------
    dict
        The PNG files by size.
    """
    drawn = {}
    for size, part in report["sizes"].items():
        if part["ranks"]["all"] is not None:
            drawn[size] = _draw(int(size), part, report["methods"], folder / f"suite-{size}")
    return drawn


def _draw(size: int, part: dict[str, Any], titles: dict[str, str], stem: Path) -> Path:
    groups = {group: ranks for group, ranks in part["ranks"].items() if ranks is not None}
    methods = groups["all"]["methods"]
    with canvas(8.6, 3.6 + 0.3 * len(methods), **_FONTS) as figure:
        above, below = figure.subfigures(2, 1, height_ratios=(0.9 + 0.26 * len(methods), 2.6))
        panels = above.subplots(1, len(groups), sharey=True, squeeze=False)[0]
        for panel, (group, ranks) in zip(panels, groups.items(), strict=True):
            _ranks(panel, group, ranks, methods)
        panels[0].set_yticks(range(len(methods)), [titles[name] for name in methods])
        panels[0].set_ylim(len(methods) - 0.4, -0.6)
        for label, name in zip(panels[0].get_yticklabels(), methods, strict=True):
            label.set(color=_colour(name), fontweight="bold" if name == OURS else "normal")
        above.suptitle(
            f"Mean rank of the error at {size:,} training rows; shaded: not told apart from the "
            "best (Nemenyi, 5 %)",
            fontsize=9.5,
        )
        _seconds(below.subplots(), part, titles)
        png, _ = save(figure, stem)
    return png


def _colour(method: str) -> str:
    return BLUE if method == OURS else _DARK


def _ranks(panel: Any, group: str, ranks: dict[str, Any], methods: list[str]) -> None:
    means = dict(zip(ranks["methods"], ranks["mean"], strict=True))
    faint_grid(panel)
    if ranks["critical_difference"] is not None:
        best = min(means.values())
        panel.axvspan(best, best + ranks["critical_difference"], color=_BAND, linewidth=0, zorder=0)
    for place, name in enumerate(methods):
        if name in means:
            panel.scatter([means[name]], [place], s=46, color=_colour(name), zorder=3)
            panel.annotate(
                f"{means[name]:.1f}",
                (means[name], place),
                xytext=(5, 3),
                textcoords="offset points",
                fontsize=7.5,
                color=_colour(name),
            )
    panel.set_xlim(0.7, len(ranks["methods"]) + 0.6)
    panel.set_title(f"{group} ({len(ranks['sets'])} sets)", fontsize=9.5)
    panel.tick_params(axis="y", length=0)


def _seconds(panel: Any, part: dict[str, Any], titles: dict[str, str]) -> None:
    """Seconds against mean rank over all sets: good methods are at the lower left."""
    ranks = part["ranks"]["all"]
    faint_grid(panel)
    for name, mean in zip(ranks["methods"], ranks["mean"], strict=True):
        seconds = part["seconds"][name]["geometric_mean"]
        if seconds is None:
            continue
        panel.scatter([seconds], [mean], s=46, color=_colour(name), zorder=3)
        panel.annotate(
            titles[name],
            (seconds, mean),
            xytext=(6, 4),
            textcoords="offset points",
            fontsize=8.5,
            color=_colour(name),
            fontweight="bold" if name == OURS else "normal",
        )
    panel.set(
        xscale="log",
        xlabel="processor seconds of tuning and fit, geometric mean, one thread",
        ylabel="mean rank, all sets",
    )
    panel.margins(x=0.18, y=0.15)
    panel.xaxis.set_major_formatter("{x:g}")
