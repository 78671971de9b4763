"""Figure of the demo."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from sklearn.datasets import make_moons

from tessella.cli._demo import Comparison
from tessella.cli._errors import collected_warnings
from tessella.estimators import LearnedKernelSVC

# The palette of Okabe and Ito, which colour-blind readers can distinguish.
_BLUE, _ORANGE, _SKY, _GREY = "#0072B2", "#D55E00", "#56B4E9", "#9A9A9A"
_BARS = (_BLUE, _SKY, _GREY)
_FEW = 40  # largest number of iterations that are drawn with markers
_ROOM = 0.35  # part of the final value shown above and below it; early bounds are far away


def draw(comparisons: list[Comparison], picture: Path) -> None:
    """Draw the bounds, the scores and a decision surface.

    Parameters
    ----------
    comparisons : list of Comparison
        Models on two data sets.
    picture : Path
        Path of the figure to write.
    """
    figure = Figure(figsize=(11, 8.5), layout="constrained")
    axes = figure.subplots(2, 2)
    for axis, comparison in zip(axes[0], comparisons, strict=True):
        _draw_bounds(axis, comparison)
    _draw_scores(axes[1, 0], comparisons)
    _draw_surface(axes[1, 1])
    figure.suptitle(
        "Tessella learns a kernel and proves how close it is to the optimum", fontsize=15
    )
    figure.savefig(picture, dpi=150)


def _draw_bounds(axis: Any, comparison: Comparison) -> None:
    model = comparison.entries[0].model
    history = model.history_
    steps = [record.iteration for record in history]
    value = np.array([record.value for record in history])
    bound = np.array([record.bound for record in history])
    axis.fill_between(steps, bound, value, color=_SKY, alpha=0.25, linewidth=0, label="gap")
    style = {"lw": 2, "marker": "o" if len(steps) < _FEW else None, "ms": 4}
    axis.plot(steps, value, color=_ORANGE, label="upper bound (the model found)", **style)
    axis.plot(steps, bound, color=_BLUE, label="lower bound (the proof)", **style)
    room = max(_ROOM * abs(value[-1]), 1.2 * (value[-1] - bound[-1]))
    axis.set_ylim(value[-1] - room, value[-1] + room)
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    axis.set(xlabel="iteration", ylabel="objective")
    axis.set_title(f"{_short(comparison)}: certified gap {model.gap_:.1e}")
    axis.legend(loc="best", framealpha=0.9, edgecolor="none")
    _tidy(axis)


def _draw_scores(axis: Any, comparisons: list[Comparison]) -> None:
    width = 0.26
    for place, comparison in enumerate(comparisons):
        for rank, entry in enumerate(comparison.entries):
            left = place + (rank - 1) * width
            axis.bar(left, max(entry.score, 0.0), width * 0.92, color=_BARS[rank])
            axis.annotate(
                f"{entry.score:.3f}",
                (left, max(entry.score, 0.0)),
                (0, 3),
                textcoords="offset points",
                ha="center",
            )
    for color, label in zip(_BARS, ("Tessella", "RBF SVM", "linear model"), strict=True):
        axis.bar(0, 0, color=color, label=label)
    axis.set_xticks(
        range(len(comparisons)), [f"{_short(c)}\n({c.score_name})" for c in comparisons]
    )
    axis.set(ylim=(0, 1.25), yticks=np.linspace(0, 1, 6), ylabel="score on test rows")
    axis.set_title("Higher is better")
    axis.legend(loc="upper center", ncols=3, frameon=False)
    _tidy(axis)


def _draw_surface(axis: Any) -> None:
    X, y = make_moons(200, noise=0.25, random_state=0)
    with collected_warnings():
        model = LearnedKernelSVC().fit(X, y)
    low, high = X.min(axis=0) - 0.3, X.max(axis=0) + 0.3
    across, up = np.meshgrid(np.linspace(low[0], high[0], 200), np.linspace(low[1], high[1], 200))
    scores = model.decision_function(np.column_stack([across.ravel(), up.ravel()]))
    scores = scores.reshape(across.shape)
    colors = LinearSegmentedColormap.from_list("classes", [_ORANGE, "white", _BLUE])
    axis.imshow(
        scores,
        extent=(low[0], high[0], low[1], high[1]),
        origin="lower",
        aspect="auto",
        interpolation="bilinear",
        cmap=colors,
        norm=Normalize(-2, 2),
        alpha=0.45,
    )
    axis.contour(across, up, scores, [0], colors="k", linewidths=1.6)
    for label, color, marker in ((0, _ORANGE, "o"), (1, _BLUE, "s")):
        style = {"c": color, "marker": marker, "label": f"class {label}"}
        axis.scatter(*X[y == label].T, s=24, edgecolors="w", linewidths=0.6, **style)
    support = {"facecolors": "none", "edgecolors": "k", "linewidths": 0.8}
    axis.scatter(*model.support_vectors_.T, s=70, label="support vectors", **support)
    axis.plot([], [], color="k", lw=1.6, label="decision boundary")
    axis.set(xlabel="first feature", ylabel="second feature")
    axis.set_title(f"Two moons: certified gap {model.gap_:.1e}")
    axis.legend(loc="best", framealpha=0.9, fontsize="small", ncols=2)


def _short(comparison: Comparison) -> str:
    return comparison.title.partition(":")[0]


def _tidy(axis: Any) -> None:
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(axis="y", alpha=0.25)
    axis.set_axisbelow(True)
