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
            f"Mean rank of the error at {size:,} training rows (number of data sets); shaded: not "
            "told apart from the best (Nemenyi, 5 %)",
            fontsize=9.5,
        )
        panel = below.subplots()
        points = _seconds(panel, part)
        figure.draw_without_rendering()  # names need the places of the points on the page
        _name_points(panel, points, titles)
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
    panel.set_xticks(range(1, len(ranks["methods"]) + 1, 2))
    panel.set_title(f"{group} ({len(ranks['sets'])})", fontsize=9.5)
    panel.tick_params(axis="y", length=0)


def _seconds(panel: Any, part: dict[str, Any]) -> dict[str, tuple[float, float]]:
    """Seconds against mean rank over all sets: good methods are at the lower left."""
    ranks = part["ranks"]["all"]
    faint_grid(panel)
    points = {
        name: (part["seconds"][name]["geometric_mean"], mean)
        for name, mean in zip(ranks["methods"], ranks["mean"], strict=True)
        if part["seconds"][name]["geometric_mean"] is not None
    }
    for name, point in points.items():
        panel.scatter(*point, s=46, color=_colour(name), zorder=3)
    panel.set(
        xscale="log",
        xlabel="processor seconds of tuning and fit, geometric mean, one thread",
        ylabel="mean rank, all sets",
    )
    panel.margins(x=0.18, y=0.15)
    panel.xaxis.set_major_formatter("{x:g}")
    return points


# Places of a name beside its point, in points of print, the best first.
_PLACES = (
    (7, 3, "left"),
    (7, -10, "left"),
    (-7, 3, "right"),
    (-7, -10, "right"),
    (0, 10, "center"),
)
_LETTER, _LINE = 4.6, 10.0  # size of a letter in points


def _name_points(panel: Any, points: dict[str, Any], titles: dict[str, str]) -> None:
    """Write names where they cover neither another name nor a point."""
    scale = 72.0 / panel.figure.dpi
    centres = {name: panel.transData.transform(point) * scale for name, point in points.items()}
    taken = [(x - 4, y - 4, x + 4, y + 4) for x, y in centres.values()]
    for name, (x, y) in centres.items():
        width = _LETTER * len(titles[name])
        boxes = [_box(x + dx, y + dy, width, side) for dx, dy, side in _PLACES]
        free = [k for k, box in enumerate(boxes) if not any(_overlap(box, old) for old in taken)]
        dx, dy, side = _PLACES[free[0] if free else 0]
        taken.append(boxes[free[0] if free else 0])
        panel.annotate(
            titles[name],
            points[name],
            xytext=(dx, dy),
            textcoords="offset points",
            ha=side,
            fontsize=8.5,
            color=_colour(name),
            fontweight="bold" if name == OURS else "normal",
        )


def _box(x: float, y: float, width: float, side: str) -> tuple[float, float, float, float]:
    left = x - {"left": 0.0, "center": 0.5, "right": 1.0}[side] * width
    return left, y - 1.0, left + width, y + _LINE - 1.0


def _overlap(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
