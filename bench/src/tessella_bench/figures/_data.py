"""Where the figures get their data: one place, for tables and for elevation grids."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tessella import datasets

FloatArray = NDArray[np.float64]

VARIABLE = "TESSELLA_DATA"
_NO_FOLDER = (
    f"The data set {{name!r}} is needed: set {VARIABLE} to the folder of the data sets, or name "
    "that folder in the call."
)
JACKSBORO = "dem_jacksboro_fault"
KILOMETRES_PER_DEGREE = 111.2  # of latitude, on the mean sphere


class MissingDataError(LookupError):
    """A data set that is not there."""


@dataclass(frozen=True)
class Table:
    """Rows of numbers with their outputs, as in the source."""

    name: str
    X: FloatArray
    y: FloatArray

    def take(self, rows: int, seed: int) -> Table:
        """At most `rows` rows, drawn at random with a fixed seed, in their order in the file."""
        if rows >= len(self.y):
            return self
        kept = np.sort(np.random.default_rng(seed).permutation(len(self.y))[:rows])
        return Table(self.name, self.X[kept], self.y[kept])


@dataclass(frozen=True)
class ElevationGrid:
    """Heights in metres on a grid; x to the east and y to the north, in kilometres.

    `shrink` is the length of a degree of longitude over that of one of latitude.
    """

    name: str
    x: FloatArray
    y: FloatArray
    height: FloatArray
    shrink: float


def data_folder(data_home: str | os.PathLike[str] | None) -> Path | None:
    """The folder given, or the one the environment names; None without either."""
    named = data_home if data_home is not None else os.environ.get(VARIABLE)
    return Path(named) if named else None


def load_table(name: str, folder: Path | None) -> Table:
    """A data set of :mod:`tessella.datasets` by name; labels are -1 and +1."""
    if folder is None:
        raise MissingDataError(_NO_FOLDER.format(name=name))
    try:
        if name not in datasets.names_in(folder):
            raise MissingDataError(
                f"The data set {name!r} is needed and {folder} has none. "
                f"tessella.datasets.load({name!r}, data_home) fetches it where a copy is known."
            )
        found = datasets.load(name, folder, verify=False)
    except datasets.DataError as error:
        raise MissingDataError(str(error)) from error
    y = np.asarray(found.y, dtype=np.float64)
    return Table(name, found.X, 2.0 * y - 1.0 if found.task == "classification" else y)


def load_grid(name: str, folder: Path | None) -> ElevationGrid:
    """An elevation grid by name; the one of matplotlib needs no folder."""
    if name == JACKSBORO:
        return _jacksboro()
    with np.load(_grid_file(name, folder)) as file:
        return _in_kilometres(name, file["lat"], file["lon"], file["elevation"])


def _grid_file(name: str, folder: Path | None) -> Path:
    """The file that the folder's manifest gives for a grid."""
    if folder is None:
        raise MissingDataError(_NO_FOLDER.format(name=name))
    manifest = folder / "MANIFEST.json"
    if not manifest.is_file():
        raise MissingDataError(f"{folder} has no MANIFEST.json, which would name its grids.")
    files = {entry["name"]: entry["file"] for entry in json.loads(manifest.read_text())["sets"]}
    if name not in files:
        raise MissingDataError(f"The grid {name!r} is needed and {manifest} has none.")
    return folder / str(files[name])


def _jacksboro() -> ElevationGrid:
    """The grid that comes with matplotlib: 3 arc-seconds, row 0 in the north."""
    from matplotlib.cbook import get_sample_data

    sample: Any = get_sample_data("jacksboro_fault_dem.npz")
    with sample as file:
        height = file["elevation"]
        # The file calls its northern edge ymin.
        north = max(float(file["ymin"]), float(file["ymax"]))
        west = float(file["xmin"])
        lat = north - abs(float(file["dy"])) * (np.arange(height.shape[0]) + 0.5)
        lon = west + abs(float(file["dx"])) * (np.arange(height.shape[1]) + 0.5)
    return _in_kilometres(JACKSBORO, lat, lon, height)


def _in_kilometres(
    name: str, lat: FloatArray, lon: FloatArray, height: NDArray[np.generic]
) -> ElevationGrid:
    """Distances from the south-west corner, rows from south to north."""
    order = np.argsort(lat)
    lat = lat[order]
    shrink = float(np.cos(np.deg2rad(lat.mean())))
    x = (lon - lon.min()) * KILOMETRES_PER_DEGREE * shrink
    y = (lat - lat.min()) * KILOMETRES_PER_DEGREE
    return ElevationGrid(name, x, y, np.asarray(height, dtype=np.float64)[order], shrink)
