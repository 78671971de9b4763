"""The paper's figures, drawn again from measurements of this library.

===========  ======================================================================================
convergence  Certified gap against iterations and time (the paper's Figure 2)
scaling      Time of one iteration against rows and n_P, with fitted exponents (Figure 3)
terrain      Elevation regression on real digital elevation models (Figure 4)
rank         Work of one SVM against the rank of P (Figure 6)
===========  ======================================================================================

Each has a module that measures and draws. The numbers are kept as JSON beside the pictures and
reused when the same settings are asked for again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

from tessella_bench.figures._data import MissingDataError, data_folder
from tessella_bench.figures._record import Record

__all__ = ["FIGURES", "MissingDataError", "draw_all"]

FIGURES = ("convergence", "scaling", "terrain", "rank")


def draw_all(
    output: str | os.PathLike[str],
    data_home: str | os.PathLike[str] | None = None,
    names: Iterable[str] | None = None,
    quick: bool = False,
    *,
    fresh: bool = False,
    say: Callable[[str], None] | None = None,
) -> list[Path]:
    """Measure and draw figures: a PNG, an SVG and the JSON of their numbers for each.

    Parameters
    ----------
    output : path-like
        Folder of the files; made if it is not there.
    data_home : path-like, optional
        Folder of the data sets, with a MANIFEST.json; by default the one that the environment
        variable TESSELLA_DATA names.
    names : iterable of str, optional
        Figures to draw, of :data:`FIGURES`; by default all whose data is there. Without a data
        folder that is the terrain that comes with matplotlib.
    quick : bool, default=False
        Tiny sizes that show that everything runs, and nothing else.
    fresh : bool, default=False
        Measure again what an earlier call has left in `output`.
    say : callable, optional
        Called with lines of progress.

    Returns
    -------
    list of Path
        The pictures.

    Raises
    ------
    ValueError
        For a figure that does not exist.
    MissingDataError
        For a figure that was asked for by name and whose data is not there.
    """
    chosen = _chosen(names)
    folder = data_folder(data_home)
    tell = say or (lambda _: None)
    pictures: list[Path] = []
    for name in chosen:
        try:
            pictures += _draw(_module(name), Path(output), folder, quick, fresh, tell)
        except MissingDataError as error:
            if names is not None:
                raise
            tell(f"{name}: left out. {error}")
    return pictures


def _chosen(names: Iterable[str] | None) -> list[str]:
    chosen = list(FIGURES if names is None else names)
    unknown = [name for name in chosen if name not in FIGURES]
    if unknown:
        raise ValueError(f"There is no figure {unknown[0]!r}; use {', '.join(FIGURES)}.")
    return chosen


def _module(name: str) -> Any:
    return import_module(f"tessella_bench.figures._{name}")


def _draw(
    figure: Any,
    output: Path,
    folder: Path | None,
    quick: bool,
    fresh: bool,
    tell: Callable[[str], None],
) -> list[Path]:
    output.mkdir(parents=True, exist_ok=True)
    options = figure.settings(quick)
    record = Record(output / f"{figure.NAME}.json", options, fresh=fresh)
    results = figure.measure(record, options, folder, tell)
    drawn: list[Path] = figure.draw(results, output / figure.NAME)
    tell(f"{figure.NAME}: {', '.join(str(path) for path in drawn)}")
    return drawn
