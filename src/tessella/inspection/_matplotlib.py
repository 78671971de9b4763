"""The one place that imports matplotlib, and how all pictures look."""

from __future__ import annotations

from typing import Any

# Okabe and Ito's colours, which colour-blind readers tell apart.
BLUE, ORANGE, SKY, GREEN, GREY = "#0072B2", "#D55E00", "#56B4E9", "#009E73", "#6E6E6E"


def load_pyplot() -> Any:
    """``matplotlib.pyplot``, or an error that says how to get it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            "Displays need matplotlib: python -m pip install 'tessella[plot]'."
        ) from error
    return plt


def axes_for(ax: Any, size: tuple[float, float]) -> Any:
    """The axes given, or those of a new figure of that size in inches."""
    plt = load_pyplot()
    return plt.subplots(figsize=size, layout="constrained")[1] if ax is None else ax


def diverging_colors() -> Any:
    """Orange for negative, white for zero, blue for positive."""
    load_pyplot()
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("tessella", [ORANGE, "white", BLUE])


def whole_numbers(axis: Any) -> None:
    """Ticks at whole numbers only."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(integer=True))


def tidy(ax: Any, grid: str = "y") -> None:
    """No frame at the top and on the right, and a faint grid."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis=grid, alpha=0.25)
    ax.set_axisbelow(True)
