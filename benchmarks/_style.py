"""The look of the figures."""

from __future__ import annotations

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
