"""Import of matplotlib, and the common style of all displays."""

from __future__ import annotations

from typing import Any

# The palette of Okabe and Ito, which colour-blind readers can distinguish.
BLUE, ORANGE, SKY, GREEN, GREY = "#0072B2", "#D55E00", "#56B4E9", "#009E73", "#6E6E6E"


def load_pyplot() -> Any:
    """Return ``matplotlib.pyplot``, or raise an error that says how to install it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            "Displays need matplotlib: python -m pip install 'tessella[plot]'."
        ) from error
    return plt


def axes_for(ax: Any, size: tuple[float, float]) -> Any:
    """Return the given axes, or the axes of a new figure of the given size in inches."""
    plt = load_pyplot()
    return plt.subplots(figsize=size, layout="constrained")[1] if ax is None else ax


def diverging_colors() -> Any:
    """Return a colour map from orange (negative) over white (zero) to blue (positive)."""
    load_pyplot()
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("tessella", [ORANGE, "white", BLUE])


def whole_numbers(axis: Any) -> None:
    """Place ticks at whole numbers only."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(integer=True))


def tidy(ax: Any, grid: str = "y") -> None:
    """Remove the frame at the top and on the right, and draw a faint grid."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis=grid, alpha=0.25)
    ax.set_axisbelow(True)
