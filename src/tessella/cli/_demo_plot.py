"""Figure of the demo."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from tessella.cli._demo import Comparison
from tessella.cli._render import as_duration

# The palette of Okabe and Ito, which colour-blind readers can distinguish.
_BLUE, _ORANGE, _SKY, _GREY = "#0072B2", "#D55E00", "#56B4E9", "#9A9A9A"
_FAMILIES = {
    "gaussian": _BLUE,
    "laplace": "#009E73",
    "matern": "#CC79A7",
    "tessellated": _ORANGE,
}
_BARS = (_BLUE, _SKY, _GREY)
_COVERAGE = 0.9
_SIDE = 8  # of the images of digits, in pixels


def draw(comparisons: list[Comparison], picture: Path) -> None:
    """Draw the scores, the search, the relevance of pixels, and predictions with intervals.

    Parameters
    ----------
    comparisons : list of Comparison
        Models of the digits and of the diabetes data.
    picture : Path
        Path of the figure to write.
    """
    digits, diabetes = comparisons
    figure = Figure(figsize=(11, 8.5), layout="constrained")
    axes = figure.subplots(2, 2)
    _draw_scores(axes[0, 0], comparisons)
    _draw_search(axes[0, 1], digits)
    _draw_pixels(figure, axes[1, 0], digits)
    _draw_intervals(axes[1, 1], diabetes)
    figure.suptitle("Tessella chooses its kernels by leave-one-out errors", fontsize=15)
    figure.savefig(picture, dpi=150)


def _draw_scores(axis: Any, comparisons: list[Comparison]) -> None:
    width = 0.26
    for place, comparison in enumerate(comparisons):
        for rank, entry in enumerate(comparison.entries):
            left = place + (rank - 1) * width
            height = max(entry.score, 0.0)
            axis.bar(left, height, width * 0.92, color=_BARS[rank])
            text = f"{entry.score:.3f}\n{as_duration(entry.seconds)}"
            axis.annotate(text, (left, height), (0, 3), textcoords="offset points", ha="center")
    for color, label in zip(_BARS, ("Tessella", "RBF SVM", "linear model"), strict=True):
        axis.bar(0, 0, color=color, label=label)
    axis.set_xticks(
        range(len(comparisons)), [f"{own.name}\n(test {own.score_name})" for own in comparisons]
    )
    axis.set(ylim=(0, 1.4), yticks=np.linspace(0, 1, 6), ylabel="score on test rows")
    axis.set_title("Scores and times, with the tuning")
    axis.legend(loc="upper center", ncols=3, frameon=False)
    _tidy(axis)


def _draw_search(axis: Any, comparison: Comparison) -> None:
    """Draw the held-out errors of all machines that were compared, with those of the average."""
    board = comparison.entries[0].model.leaderboard_
    places = np.arange(len(board))
    errors = np.array([own["error"] for own in board])
    colors = [_FAMILIES.get(own["family"], _GREY) for own in board]
    axis.bar(places, errors, 0.75, color=colors)
    for place, own in zip(places, board, strict=True):
        if own["weight"] > 0:
            text = f"{own['weight']:.0%}"
            axis.annotate(
                text, (place, errors[place]), (0, 3), textcoords="offset points", ha="center"
            )
    for family in dict.fromkeys(own["family"] for own in board):
        axis.bar(0, 0, color=_FAMILIES.get(family, _GREY), label=family)
    axis.set_xticks(places, [_step(own) for own in board], rotation=60, ha="right", fontsize=8)
    axis.set(ylim=(0, 1.25 * errors.max()), ylabel="held-out squared error")
    axis.set_title(f"{comparison.name}: machines compared, weights of the average")
    axis.legend(loc="upper left", frameon=False)
    _tidy(axis)


def _step(own: dict[str, Any]) -> str:
    stage = {"descent": ", refined", "learned": ", learned"}.get(own["stage"], "")
    loss = "" if own["loss"] == "squared" else f", {own['loss']}"
    return f"{own['scaling']}{stage}{loss}"


def _draw_pixels(figure: Any, axis: Any, comparison: Comparison) -> None:
    shares = comparison.entries[0].model.feature_relevance_.reshape(_SIDE, _SIDE)
    image = axis.imshow(shares, cmap="Blues", vmin=0)
    figure.colorbar(image, ax=axis, label="share of the variance of the scores", shrink=0.85)
    axis.set(xlabel="column of pixels", ylabel="row of pixels")
    axis.set_title(f"{comparison.name}: relevance of the pixels")


def _draw_intervals(axis: Any, comparison: Comparison) -> None:
    _, X, _, y = comparison.parts
    model = comparison.entries[0].model
    predicted = model.predict(X)
    lower, upper = model.predict_interval(X, coverage=_COVERAGE).T
    inside = (lower <= y) & (y <= upper)
    order = np.argsort(predicted)
    axis.fill_between(
        predicted[order],
        lower[order],
        upper[order],
        color=_SKY,
        alpha=0.3,
        linewidth=0,
        label=f"{_COVERAGE:.0%} interval",
    )
    axis.plot(predicted[order], predicted[order], color=_BLUE, lw=1.5, label="prediction")
    for where, color, label in ((inside, "k", "inside"), (~inside, _ORANGE, "outside")):
        axis.scatter(
            predicted[where], y[where], s=18, color=color, linewidths=0, alpha=0.75, label=label
        )
    axis.set(xlabel="prediction", ylabel="target of test rows")
    axis.set_title(f"{comparison.name}: {np.mean(inside):.0%} of the test rows are inside")
    axis.legend(loc="upper left", framealpha=0.9, edgecolor="none")
    _tidy(axis)


def _tidy(axis: Any) -> None:
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(axis="y", alpha=0.25)
    axis.set_axisbelow(True)
