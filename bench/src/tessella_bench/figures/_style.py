"""The look of the figures, and the one place that imports matplotlib for them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

# Okabe and Ito's colours, which colour-blind readers tell apart; dashes and markers repeat what
# the colours say, for print.
BLUE, VERMILION, GREEN, SKY = "#0072B2", "#D55E00", "#009E73", "#56B4E9"
ORANGE, PURPLE, GREY = "#E69F00", "#CC79A7", "#8A8A8A"

_LOOKS = (
    {"color": VERMILION, "linestyle": "-", "marker": "s"},
    {"color": BLUE, "linestyle": "-", "marker": "o"},
    {"color": GREEN, "linestyle": "-", "marker": "^"},
    {"color": ORANGE, "linestyle": "--", "marker": "D"},
    {"color": PURPLE, "linestyle": "-.", "marker": "v"},
    {"color": SKY, "linestyle": ":", "marker": "P"},
)

FONTS = {
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.labelsize": 9,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.fontsize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
}


def look(position: int) -> dict[str, Any]:
    """Colour, dashes and marker of the curve at a position of a list."""
    return dict(_LOOKS[position % len(_LOOKS)])


@contextmanager
def canvas(width: float, height: float, **fonts: Any) -> Iterator[Any]:
    """A figure of that size in inches, in our look; no global state of matplotlib is left."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(FONTS | {key.replace("__", "."): value for key, value in fonts.items()}):
        yield Figure(figsize=(width, height), layout="constrained")


def faint_grid(panel: Any) -> None:
    """A grid that stays behind the curves."""
    panel.grid(True, which="major", color="#E4E4E4", linewidth=0.6)
    panel.set_axisbelow(True)


def save(figure: Any, stem: Path, *, dpi: int = 150) -> list[Path]:
    """Write ``stem.png``, with 256 colours, and ``stem.svg``; returns both paths."""
    from PIL import Image

    png, svg = (stem.with_name(f"{stem.name}.{kind}") for kind in ("png", "svg"))
    figure.savefig(svg, dpi=dpi)
    figure.savefig(png, dpi=dpi)
    with Image.open(png) as picture:
        # Rare colours matter, the ends of a scale: no average of a crowd may replace them.
        rule = Image.Quantize.MAXCOVERAGE
        few_colours = picture.convert("RGB").quantize(256, rule, dither=Image.Dither.NONE)
    few_colours.save(png, optimize=True)
    return [png, svg]


_NAMES = {
    "cadata": "California housing",
    "cancer_wbc": "Cancer",
    "pima": "Pima",
    "shill_bidding": "Shill bidding",
}


def shown_name(name: str) -> str:
    """A data set's name for a title."""
    return _NAMES.get(name, name)
