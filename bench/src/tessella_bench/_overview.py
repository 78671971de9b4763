"""The report in one picture: how good the main methods are, and how long they take."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tessella_bench._report import _comparable, _losses, _settled
from tessella_bench._statistics import rank
from tessella_bench.figures._style import BLUE, canvas

# Ours and what people would use instead; the others are in the tables of the report.
MAIN = ("tkl", "svm-rbf", "nn", "rf", "xgboost", "hist-gb", "lightgbm", "smkl")

MARK = "Data-SHA256"  # key of the picture's metadata
_DIGITS = 6  # beyond them, versions of scipy may differ
_DARK, _PALE, _BAND = "#333333", "#9A9A9A", "#EEF1F4"
_FONTS = {
    "font__size": 10.5,
    "axes__labelsize": 10.5,
    "xtick__labelsize": 9.5,
    "ytick__labelsize": 10.5,
}


def overview(report: dict[str, Any]) -> dict[str, Any] | None:
    """What the picture shows: ranks and seconds of the main methods on both tasks together.

    The sets and methods are the largest part of the table without a hole, so that all methods are
    compared on the same sets. Ranks know no units, which is why the tasks can be joined; N/A is
    the last rank. Means of seconds are geometric, over the sets on which no method is N/A.

    Parameters
    ----------
    report : dict
        As :func:`gather` gives it, or read from ``report.json``.

    Returns
    -------
    dict or None
        Ready for JSON; methods from the best mean rank to the worst. None without two methods
        and two data sets that can be compared.
    """
    cells: dict[str, Any] = {}
    losses: dict[str, Mapping[str, float | None]] = {}
    for task, table in report["tables"].items():
        cells |= {row["name"]: row["cells"] for row in table["rows"]}
        losses |= _losses(task, {row["name"]: _main(_settled(row)) for row in table["rows"]})
    rows = _comparable(losses, [method for method in MAIN if method in report["methods"]])
    ranks = rank(rows, list(next(iter(rows.values()), {})), larger_is_better=False)
    if ranks is None or len(rows) < 2:
        return None
    timed = [name for name in rows if all("mean" in cells[name][m] for m in ranks.methods)]
    seconds = {
        method: [_seconds(cells[name][method]) for name in timed] for method in ranks.methods
    }
    return {
        "splits": report["splits"],
        "sets": list(rows),
        "methods": list(ranks.methods),
        "titles": [_title(report, method) for method in ranks.methods],
        "mean_rank": [_rounded(mean) for mean in ranks.means],
        "ranks": {
            m: column.tolist() for m, column in zip(ranks.methods, ranks.table.T, strict=True)
        },
        "critical_difference": _rounded(ranks.critical_difference),
        "timed_sets": timed,
        "mean_seconds": [_rounded(_geometric_mean(seconds[m])) for m in ranks.methods],
        "seconds": seconds,
    }


def _main(means: dict[str, float | None]) -> dict[str, float | None]:
    return {method: mean for method, mean in means.items() if method in MAIN}


def _title(report: dict[str, Any], method: str) -> str:
    title = str(report["methods"][method]["title"])
    return f"{title} (ours)" if method == "tkl" else title


def _seconds(cell: dict[str, Any]) -> float:
    return float(f"{cell['tune_seconds'] + cell['fit_seconds']:.{_DIGITS}g}")


def _geometric_mean(values: list[float]) -> float | None:
    return float(np.exp(np.mean(np.log(values)))) if values else None


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.{_DIGITS}g}")


def in_ranks(value: float) -> str:
    """A mean rank as it is printed."""
    return f"{value:.1f}"


def in_seconds(value: float) -> str:
    """A mean of seconds as it is printed."""
    return f"{value:.0f}" if value >= 10 else f"{value:.2g}"


def fingerprint(data: dict[str, Any]) -> str:
    """By which a picture knows the data it was drawn from."""
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()


# --------------------------------------------------------------------------------------- drawing


def draw_overview(data: dict[str, Any], path: Path) -> None:
    """Draw the picture, with the fingerprint of its data in the metadata."""
    count = len(data["methods"])
    with canvas(6.4, 1.55 + 0.34 * count, **_FONTS) as figure:
        left, right = figure.subplots(1, 2, sharey=True)
        left.set_ylim(count - 0.4, -0.6)
        left.set_yticks(range(count), data["titles"])
        for place, method in enumerate(data["methods"]):
            if method == "tkl":
                left.get_yticklabels()[place].set(color=BLUE, fontweight="bold")
            _line(left, place, method, data["ranks"][method], data["mean_rank"][place], in_ranks)
            if data["timed_sets"]:
                mean = data["mean_seconds"][place]
                _line(right, place, method, data["seconds"][method], mean, in_seconds)
        _rank_axis(left, data)
        _seconds_axis(right)
        figure.supxlabel(_caption(data), fontsize=9, color=_DARK)
        figure.savefig(path, dpi=200, metadata={"Software": None, MARK: fingerprint(data)})


def _line(
    panel: Any,
    place: int,
    method: str,
    values: list[float],
    mean: float,
    in_figures: Callable[[float], str],
) -> None:
    """The sets of a method as small dots, their mean as a large one and in figures."""
    ours = method == "tkl"
    panel.axhline(place, color="#E4E4E4", linewidth=0.8, zorder=0)
    small = {"s": 15, "color": BLUE if ours else _PALE, "alpha": 0.6, "linewidths": 0}
    panel.scatter(values, place + _stacked(values), **small)
    panel.scatter([mean], [place], s=85, color=BLUE if ours else _DARK, zorder=3)
    panel.annotate(
        in_figures(mean),
        (1.0, place),
        xycoords=("axes fraction", "data"),
        xytext=(6, 0),
        textcoords="offset points",
        va="center",
        color=BLUE if ours else _DARK,
        fontweight="bold" if ours else "normal",
        annotation_clip=False,
    )


def _stacked(values: list[float]) -> np.ndarray:
    """Offsets that put equal values beside each other."""
    offsets = np.zeros(len(values))
    for value in set(values):
        same = np.flatnonzero(np.equal(values, value))
        apart = min(0.15, 0.7 / len(same))
        offsets[same] = apart * (np.arange(len(same)) - 0.5 * (len(same) - 1))
    return offsets


def _rank_axis(panel: Any, data: dict[str, Any]) -> None:
    count, best = len(data["methods"]), data["mean_rank"][0]
    panel.set(xlim=(0.7, count + 0.3), xticks=range(1, count + 1), xlabel="rank of the test score")
    panel.set_title("Mean rank, 1 is best", loc="left", fontweight="bold", fontsize=11)
    panel.tick_params(axis="y", length=0)
    if data["critical_difference"] is not None:
        panel.axvspan(best, best + data["critical_difference"], color=_BAND, zorder=-1, linewidth=0)


def _seconds_axis(panel: Any) -> None:
    panel.set_title("Seconds, tuning and fit", loc="left", fontweight="bold", fontsize=11)
    panel.set(xscale="log", xlabel="one thread, logarithmic")
    panel.tick_params(axis="y", length=0)
    panel.xaxis.set_major_formatter("{x:g}")
    panel.minorticks_off()


def _caption(data: dict[str, Any]) -> str:
    """How to read it, in the picture itself: pictures travel alone."""
    timed, sets = len(data["timed_sets"]), len(data["sets"])
    lines = [
        f"{sets} data sets, {data['splits']} divisions each. Small dots: single sets; large: "
        f"mean{'' if timed == sets else f' (seconds: {timed} sets without N/A)'}."
    ]
    if data["critical_difference"] is not None:
        lines.append("Shaded: not told apart from the best (Nemenyi's test, 5 %).")
    return "\n".join(lines)
