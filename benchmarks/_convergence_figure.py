"""The pictures of convergence.py: one panel per data set."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from _style import FONTS, GREY, look
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullFormatter

_LABELS = {
    "time": "seconds",
    "steps": "SVM solves (joint: Newton steps)",
}
_TITLES = {
    "time": "Certified relative gap against time",
    "steps": "Certified relative gap against the number of SVM solves or Newton steps",
}
_ORDER = ("frank-wolfe", "joint", "working-set", "apd", "hybrid")
_TOP = 30.0  # gaps above this say nothing and squeeze the rest


def draw(records: list[dict[str, Any]], axis: str, tol: float, path: Path) -> None:
    """One panel per set, the gap against "time" or "steps"."""
    columns = min(4, len(records))
    rows = math.ceil(len(records) / columns)
    names = _solver_names(records)
    with rc_context(FONTS):
        figure = Figure(figsize=(3.1 * columns + 0.4, 2.5 * rows + 0.9), layout="constrained")
        panels = figure.subplots(rows, columns, sharey=True, squeeze=False)
        for panel, record in zip(panels.flat, records, strict=False):
            _draw_panel(panel, record, axis, names, tol)
        for panel in panels.flat[len(records) :]:
            panel.set_visible(False)
        for panel in panels[:, 0]:
            panel.set_ylabel("relative gap")
        for k in range(columns):
            shown = [panels[r, k] for r in range(rows) if r * columns + k < len(records)]
            shown[-1].set_xlabel(_LABELS[axis] if columns > 1 or axis == "time" else "steps")
        handles = _legend(names, guides=axis == "steps")
        if len(records) < panels.size:  # the legend fills what the last row leaves free
            panels.flat[-1].set(visible=True)
            panels.flat[-1].axis("off")
            panels.flat[-1].legend(handles=handles, loc="center", frameon=False)
        else:
            place = {"loc": "outside lower center", "ncols": min(7, len(handles))}
            figure.legend(handles=handles, frameon=False, **place)
        figure.suptitle(_TITLES[axis], fontsize=12 if columns > 2 else 9)
        figure.savefig(path, dpi=130)


def _solver_names(records: list[dict[str, Any]]) -> list[str]:
    """The ones we know first and in order, so that a colour always means the same solver."""
    found = {name for record in records for name in record["solvers"]}
    known = [name for name in _ORDER if name in found]
    return known + sorted(found - set(known))


def _draw_panel(
    panel: Axes, record: dict[str, Any], axis: str, names: list[str], tol: float
) -> None:
    for position, name in enumerate(names):
        run = record["solvers"].get(name)
        if run is not None and "error" not in run:
            x, gap = _curve(run, axis)
            panel.plot(
                *(x, np.minimum(gap, _TOP)),
                **look(position) | {"marker": None},
                linewidth=2.2 if name == record["auto"] else 1.4,
                # A gap holds from the moment it is certified until there is a better one.
                drawstyle="steps-post" if axis == "time" else "default",
            )
            end = look(position)["marker"]
            panel.plot(
                *(x[-1], max(gap[-1], tol / 10)),  # an end below the frame is shown on it
                marker=end,
                color=look(position)["color"],
                markersize=5,
                clip_on=False,
            )
    panel.set(xscale="log", yscale="log", ylim=(tol / 10, 1.3 * _TOP))
    panel.axhline(tol, color=GREY, linewidth=0.8, linestyle=(0, (1, 2)))
    if axis == "steps":
        panel.set_xlim(left=0.9)
        _draw_guides(panel)
    panel.xaxis.set_major_locator(LogLocator(numticks=6))
    panel.xaxis.set_minor_formatter(NullFormatter())
    panel.grid(True, which="major", color="#E4E4E4", linewidth=0.6)
    panel.set_axisbelow(True)
    panel.set_title(
        f"$\\bf{{{record['name'].replace('_', chr(92) + '_')}}}$\n"
        f"m={record['rows']}, $n_P$={record['n_params']}, auto: {record['auto']}"
    )


def _curve(run: dict[str, Any], axis: str) -> tuple[np.ndarray, np.ndarray]:
    """Abscissae and gaps of a run, without the point before the first step."""
    iteration, n_svm, time, gap = np.array(run["history"]["records"], dtype=float).T
    x = time if axis == "time" else (n_svm if run["counts_svm"] else iteration)
    positive = x > 0 if (x > 0).any() else np.ones(len(x), bool)
    least = 1e-4 if axis == "time" else 1.0
    return np.maximum(x[positive], least), np.maximum(gap[positive], 1e-16)


def _draw_guides(panel: Axes) -> None:
    """1/k and 1/k² from gap 1 at the first step, inside the limits that the curves set."""
    left, right = panel.get_xlim()
    right = max(right, 10.0)
    panel.set_xlim(left, right)
    k = np.array([1.0, right])
    panel.plot(k, 1 / k, color=GREY, linewidth=0.9, linestyle="-", zorder=1)
    panel.plot(k, 1 / k**2, color=GREY, linewidth=0.9, linestyle="--", zorder=1)


def _legend(names: list[str], *, guides: bool) -> list[Line2D]:
    handles = [Line2D([], [], label=name, **look(k), linewidth=2) for k, name in enumerate(names)]
    handles.append(Line2D([], [], label="target", color=GREY, linestyle=(0, (1, 2))))
    if guides:
        handles.append(Line2D([], [], label="1/k", color=GREY, linewidth=0.9))
        handles.append(Line2D([], [], label="1/k²", color=GREY, linewidth=0.9, linestyle="--"))
    return handles
