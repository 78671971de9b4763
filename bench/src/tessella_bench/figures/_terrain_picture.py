"""The pictures of the terrain: surfaces above, training points and errors below."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tessella_bench.figures._style import canvas, save

FloatArray = NDArray[np.float64]

_TITLES = {
    "dem_grand_canyon_west": "the western Grand Canyon",
    "dem_jacksboro_fault": "the fault at Jacksboro, Tennessee",
}
_HEIGHTS, _ERRORS = "cividis", "PuOr_r"  # both are told apart by colour-blind readers
_SHARE = 99  # per cent of the errors that the colours tell apart


def draw(cells: dict[str, Any], stem: Path) -> list[Path]:
    """A figure for each grid."""
    pictures: list[Path] = []
    for name, cell in cells.items():
        pictures += _draw_grid(cell, stem.with_name(f"{stem.name}-{_short(name)}"))
    return pictures


def _short(name: str) -> str:
    return name.removeprefix("dem_").replace("_", "-")


def as_heights(lines: list[str]) -> FloatArray:
    """The numbers of a grid that is kept as text."""
    return np.array([line.split() for line in lines], dtype=np.float64)


def _draw_grid(cell: dict[str, Any], stem: Path) -> list[Path]:
    truth = as_heights(cell["truth"])
    ours, theirs = (as_heights(cell[k]["surface"]) for k in ("tessellated", "gaussian"))
    # The colours and the vertical axis are those of the ground; a model may overshoot it.
    limits = float(truth.min()), float(truth.max())
    surfaces = {
        "elevation model": truth,
        f"tessellated kernel, degree 2\n{_scores(cell['tessellated'])}": ours,
        f"best Gaussian kernel\n{_scores(cell['gaussian'])}": theirs,
    }
    with canvas(11.0, 7.3, axes__titlesize=10) as figure:
        figure.set_layout_engine("none")  # which leaves room that surfaces do not need
        for column, (title, heights) in enumerate(surfaces.items()):
            place = (0.327 * column - 0.01, 0.445, 0.325, 0.43)
            panel = figure.add_axes(place, projection="3d")
            _draw_surface(panel, cell, heights, limits)
            panel.set_title(title, y=1.03)
        _draw_training(figure, cell, truth, limits)
        _draw_errors(figure, cell, {"tessellated kernel": ours, "Gaussian kernel": theirs}, truth)
        figure.suptitle(
            f"Elevation of {_TITLES.get(cell['name'], cell['name'])}, learned from "
            f"{cell['train_points']} points and tested on {cell['test_points']:,} others\n"
            f"{verdict(cell)}",
            fontsize=11,
        )
        return save(figure, stem, dpi=100)


def verdict(cell: dict[str, Any]) -> str:
    """Which kernel has the smaller error, tuned and untuned, and by how much."""
    return "; ".join(
        f"{when}, the {_closer(*(cell[kernel][key] for kernel in ('tessellated', 'gaussian')))}"
        for when, key in (("tuned", "rmse"), ("with defaults", "untuned_rmse"))
    )


def _closer(ours: float, theirs: float) -> str:
    name = "tessellated kernel" if ours < theirs else "Gaussian"
    return f"{name} errs {1 - min(ours, theirs) / max(ours, theirs):.0%} less"


def _scores(found: dict[str, Any]) -> str:
    return f"RMSE {found['rmse']:.1f} m (untuned {found['untuned_rmse']:.1f} m)"


def _draw_surface(
    panel: Any, cell: dict[str, Any], heights: FloatArray, limits: tuple[float, float]
) -> None:
    x, y = np.meshgrid(cell["x"], cell["y"])
    panel.plot_surface(
        *(x, y, np.clip(heights, *limits)),
        cmap=_HEIGHTS,
        vmin=limits[0],
        vmax=limits[1],
        rstride=1,
        cstride=1,
        linewidth=0,
        antialiased=False,
        rasterized=True,
    )
    for axis in (panel.xaxis, panel.yaxis, panel.zaxis):
        axis.set_pane_color("white")
    panel.set_zlim(*limits)
    panel.patch.set_visible(False)  # it would cover its neighbour's labels
    panel.set_box_aspect((1, 1, 0.38), zoom=1.04)
    panel.view_init(elev=45, azim=-62)
    panel.set_xlabel("east (km)", labelpad=-3)
    panel.set_ylabel("north (km)", labelpad=-3)
    panel.locator_params(nbins=4)
    panel.zaxis.set_major_formatter("{x:,.0f} m")
    panel.tick_params(labelsize=7, pad=-1)
    panel.tick_params(axis="z", pad=2)


def _draw_training(
    figure: Any, cell: dict[str, Any], truth: FloatArray, limits: tuple[float, float]
) -> None:
    panel = figure.add_axes((0.045, 0.07, 0.245, 0.31))
    image = _draw_map(panel, cell, truth, _HEIGHTS, limits)
    points = np.array(cell["training"]).T
    edges = {"xlim": panel.get_xlim(), "ylim": panel.get_ylim()}
    panel.plot(*points, ".", color="white", markersize=1.6)
    panel.set(**edges)
    panel.set_title(f"elevation and the {cell['train_points']} training points")
    bar = figure.add_axes((0.295, 0.07, 0.012, 0.31))
    figure.colorbar(image, cax=bar, label="elevation (m)")


def _draw_errors(
    figure: Any, cell: dict[str, Any], surfaces: dict[str, FloatArray], truth: FloatArray
) -> None:
    errors = {name: heights - truth for name, heights in surfaces.items()}
    bound = float(np.percentile(np.abs(np.array(list(errors.values()))), _SHARE))
    for column, (name, error) in enumerate(errors.items()):
        panel = figure.add_axes((0.40 + 0.265 * column, 0.07, 0.245, 0.31))
        image = _draw_map(panel, cell, error, _ERRORS, (-bound, bound))
        panel.set_title(f"error of the {name}")
    bar = figure.add_axes((0.918, 0.07, 0.012, 0.31))
    figure.colorbar(image, cax=bar, label="prediction minus elevation (m)", extend="both")


def _draw_map(
    panel: Any,
    cell: dict[str, Any],
    values: FloatArray,
    colours: str,
    limits: tuple[float, float],
) -> Any:
    image = panel.pcolormesh(
        *(cell["x"], cell["y"], values),
        shading="nearest",
        cmap=colours,
        vmin=limits[0],
        vmax=limits[1],
        rasterized=True,
    )
    panel.set(aspect="equal", xlabel="east (km)", ylabel="north (km)")
    return image
