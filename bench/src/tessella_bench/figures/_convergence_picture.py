"""Pictures of convergence: certified gap against iterations, solves or seconds."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tessella_bench.figures._style import GREY, canvas, faint_grid, look, save, shown_name

FloatArray = NDArray[np.float64]

_LABELS = {
    "time": "seconds",
    "iterations": "iterations k",
    "steps": "SVM solves (joint: Newton steps)",
}
_TITLES = {
    "iterations": "Certified relative gap against the number of iterations",
    "time": "Certified relative gap against time",
    "steps": "Certified relative gap against the number of SVM solves or Newton steps",
}
_ORDER = ("frank-wolfe", "joint", "working-set", "apd", "hybrid")
_TOP = 30.0  # gaps above this say nothing and squeeze the rest


def draw(results: dict[str, Any], stem: Path) -> list[Path]:
    """A column for each set; the gap against iterations above, against seconds below."""
    records, tol = results["sets"], results["tol"]
    names = _solver_names(records)
    with canvas(9.0, 7.4, axes__titlesize=10, legend__fontsize=9) as figure:
        panels = figure.subplots(2, len(records), sharey=True, squeeze=False)
        for row, axis in zip(panels, ("iterations", "time"), strict=True):
            for panel, record in zip(row, records, strict=True):
                _draw_panel(panel, record, axis, names, tol)
                panel.set_xlabel(_LABELS[axis])
            row[0].set_ylabel("certified relative gap")
        handles = _legend(names, guides=True)
        figure.legend(handles=handles, loc="outside lower center", ncols=4, frameon=False)
        figure.suptitle(_headline(records, tol), fontsize=11)
        return save(figure, stem, dpi=130)


def _headline(records: list[dict[str, Any]], tol: float) -> str:
    """Iterations of the default, of Frank-Wolfe and of the accelerated method on each set."""

    def needed(name: str, record: dict[str, Any]) -> str:
        run = record["solvers"][name]
        return f"{run['iterations']}" if run["gap"] <= tol else f"over {run['iterations']}"

    counts = [
        f"{label} {' and '.join(needed(key or record['auto'], record) for record in records)}"
        for label, key in (("default", None), ("Frank-Wolfe", "frank-wolfe"), ("APD", "apd"))
    ]
    return f"Iterations to a certified relative gap of {tol:g}: {', '.join(counts)}"


def draw_axis(records: list[dict[str, Any]], axis: str, tol: float, path: Path) -> None:
    """One panel per set, the gap against "time", "iterations" or "steps"."""
    columns = min(4, len(records))
    rows = math.ceil(len(records) / columns)
    names = _solver_names(records)
    with canvas(3.1 * columns + 0.4, 2.5 * rows + 0.9) as figure:
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
        handles = _legend(names, guides=axis != "time")
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
    panel: Any, record: dict[str, Any], axis: str, names: list[str], tol: float
) -> None:
    from matplotlib.ticker import LogLocator, NullFormatter

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
    if axis != "time":
        panel.set_xlim(left=0.9)
        _draw_guides(panel)
    panel.xaxis.set_major_locator(LogLocator(numticks=6))
    panel.xaxis.set_minor_formatter(NullFormatter())
    faint_grid(panel)
    panel.set_title(
        f"$\\bf{{{_as_mathtext(shown_name(record['name']))}}}$\n"
        f"m={record['rows']}, $n_P$={record['n_params']}, auto: {record['auto']}"
    )


def _as_mathtext(name: str) -> str:
    return name.replace("_", "\\_").replace(" ", "\\ ")


def _curve(run: dict[str, Any], axis: str) -> tuple[FloatArray, FloatArray]:
    """Abscissae and gaps of a run, without the point before the first step."""
    iteration, n_svm, time, gap = np.array(run["history"]["records"], dtype=float).T
    if axis == "steps":
        x = n_svm if run["counts_svm"] else iteration
    else:
        x = time if axis == "time" else iteration
    positive = x > 0 if (x > 0).any() else np.ones(len(x), bool)
    least = 1e-4 if axis == "time" else 1.0
    return np.maximum(x[positive], least), np.maximum(gap[positive], 1e-16)


def _draw_guides(panel: Any) -> None:
    """1/k and 1/k² from gap 1 at the first step, inside the limits that the curves set."""
    left, right = panel.get_xlim()
    right = max(right, 10.0)
    panel.set_xlim(left, right)
    k = np.array([1.0, right])
    panel.plot(k, 1 / k, color=GREY, linewidth=0.9, linestyle="-", zorder=1)
    panel.plot(k, 1 / k**2, color=GREY, linewidth=0.9, linestyle="--", zorder=1)


def _legend(names: list[str], *, guides: bool) -> list[Any]:
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], label=name, **look(k), linewidth=2) for k, name in enumerate(names)]
    handles.append(Line2D([], [], label="target", color=GREY, linestyle=(0, (1, 2))))
    if guides:
        handles.append(Line2D([], [], label="1/k", color=GREY, linewidth=0.9))
        handles.append(Line2D([], [], label="1/k²", color=GREY, linewidth=0.9, linestyle="--"))
    return handles
