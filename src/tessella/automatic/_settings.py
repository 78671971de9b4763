"""Numbers that decide how long an automatic search takes, for each effort."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SearchSettings:
    """Sizes of the stages of a search.

    Attributes
    ----------
    screen_rows : int
        Rows on which all families, widths and scalings are compared first. The order of their
        errors on this many rows is nearly that on all rows, at a fraction of the cost.
    search_rows : int
        Rows on which the best of them are compared again and refined. More rows only enter the
        final fits.
    compared : int
        Number of pairs of a space and a family that are evaluated on the search rows.
    refined : int
        Number of those whose scales are then refined by descent.
    folds : int
        Folds that decide when the descent stops. Each has a descent of its own.
    descent_steps : int
        Largest number of steps of a descent. Most of the gain comes from the first few.
    average_steps : int
        Number of steps of the greedy average. The weights are multiples of its inverse.
    """

    screen_rows: int = 400
    search_rows: int = 1200
    compared: int = 6
    refined: int = 4
    folds: int = 3
    descent_steps: int = 10
    average_steps: int = 20


EFFORTS = {
    "low": SearchSettings(300, 700, 3, 1, 2, 8),
    "medium": SearchSettings(),
    "high": SearchSettings(800, 2000, 10, 8, 4, 16),
}
