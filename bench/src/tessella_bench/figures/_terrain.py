"""Elevation regression on real digital elevation models: the paper's Figure 4.

A window as large as the paper's, 0.21° by 0.25°, in the middle of a grid; 750 points of it, drawn
at random, to learn from, and all others to test on. The inputs are the two coordinates.
Tessellated kernels of degree 2 against the Gaussian kernel of an SVR in scikit-learn, each with
the best of its grid by five-fold cross-validation on the 750 points: C, epsilon and delta for the
one, C, epsilon and gamma for the other, over the same C and epsilon. Both see coordinates scaled
to [0, 1] and standardised heights. Beside the tuned machines stand the same with their defaults.

One grid comes with matplotlib, the fault at Jacksboro; the other, of the western Grand Canyon, is
drawn too where the data folder has it.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from tessella.estimators import LearnedKernelSVR, paper_settings
from tessella_bench.figures._data import (
    JACKSBORO,
    KILOMETRES_PER_DEGREE,
    ElevationGrid,
    MissingDataError,
    load_grid,
)
from tessella_bench.figures._record import Record
from tessella_bench.figures._terrain_picture import draw as draw

FloatArray = NDArray[np.float64]

NAME = "terrain"
CANYON = "dem_grand_canyon_west"
_SHOWN = 80  # points of a picture along each side


def settings(quick: bool) -> dict[str, Any]:
    """What decides the measurements."""
    common = {"degree": 2, "seed": 0, "window_degrees": [0.21, 0.25]}
    if quick:
        searched = {"C": [10.0, 100.0], "epsilon": [0.05], "delta": [0.5], "gamma": [10.0, 100.0]}
        return {**common, "points": 60, "folds": 2, "most_test_points": 2000, **searched}
    searched = {
        "C": [0.1, 1.0, 10.0, 100.0],
        "epsilon": [0.02, 0.1],
        "delta": [0.005, 0.02, 0.1, 0.5, 2.0],
        "gamma": [10.0, 30.0, 100.0, 300.0, 1000.0],
    }
    return {**common, "points": 750, "folds": 5, "most_test_points": None, **searched}


def measure(
    record: Record, options: dict[str, Any], folder: Path | None, say: Callable[[str], None]
) -> dict[str, Any]:
    """A cell for each grid that is there."""
    cells = {}
    for name in (CANYON, JACKSBORO):
        try:
            grid = window(load_grid(name, folder), options["window_degrees"])
        except MissingDataError as error:
            say(f"terrain: without {name} ({error})")
            continue
        cells[name] = record.cell(name, partial(_compare, grid, options))
        for label in ("tessellated", "gaussian"):
            found = cells[name][label]
            say(f"{name}, {label}: RMSE {found['rmse']:.1f} m, {found['params']}")
    return cells


def window(grid: ElevationGrid, degrees: list[float]) -> ElevationGrid:
    """The middle of a grid, of that size from south to north and from west to east."""
    height = degrees[0] * KILOMETRES_PER_DEGREE
    width = degrees[1] * KILOMETRES_PER_DEGREE * grid.shrink
    rows, columns = _middle(grid.y, height), _middle(grid.x, width)
    return replace(
        grid,
        x=grid.x[columns] - grid.x[columns][0],
        y=grid.y[rows] - grid.y[rows][0],
        height=grid.height[rows, columns],
    )


def _middle(positions: FloatArray, length: float) -> slice:
    count = min(len(positions), 1 + int(length / (positions[1] - positions[0])))
    first = (len(positions) - count) // 2
    return slice(first, first + count)


# --------------------------------------------------------------------------------- the two machines


def _compare(grid: ElevationGrid, options: dict[str, Any]) -> dict[str, Any]:
    """Both kernels on the same training and test points."""
    places = np.stack(np.meshgrid(grid.x, grid.y), axis=-1).reshape(-1, 2)
    heights = grid.height.ravel()
    order = np.random.default_rng(options["seed"]).permutation(len(heights))
    train = order[: options["points"]]
    most = options["most_test_points"]
    test = order[options["points"] :][:most]
    shown = _shown(grid)
    cell: dict[str, Any] = {
        "name": grid.name,
        "train_points": len(train),
        "test_points": len(test),
        "x": grid.x[shown[1]].round(4),
        "y": grid.y[shown[0]].round(4),
        "truth": _as_text(grid.height[shown]),
        "training": places[train].round(3),
        "deviation": heights[test].std(),
    }
    corner = np.stack(np.meshgrid(cell["x"], cell["y"]), axis=-1).reshape(-1, 2)
    for label, untuned, search in (
        ("tessellated", _learned(options), _tessellated),
        ("gaussian", _scaled_svr(), _gaussian),
    ):
        untuned.fit(places[train], heights[train])
        begin = time.perf_counter()
        model, params, more = search(places[train], heights[train], options)
        seconds = time.perf_counter() - begin
        surface = model.predict(corner).reshape(len(cell["y"]), len(cell["x"]))
        cell[label] = {
            "params": params,
            **_errors(model.predict(places[test]), heights[test]),
            "untuned_rmse": _errors(untuned.predict(places[test]), heights[test])["rmse"],
            "search_seconds": seconds,
            **more,
            "surface": _as_text(surface),
        }
    return cell


def _errors(predicted: FloatArray, heights: FloatArray) -> dict[str, float]:
    error = predicted - heights
    mse = float(np.mean(error**2))
    return {
        "rmse": mse**0.5,
        "mse": mse,
        "mae": float(np.mean(np.abs(error))),
        "r2": 1.0 - mse / float(heights.var()),
        "largest_error": float(np.abs(error).max()),
    }


def _shown(grid: ElevationGrid) -> tuple[Any, ...]:
    """Rows and columns of a picture."""
    steps = [max(1, -(-size // _SHOWN)) for size in grid.height.shape]
    return tuple(slice(None, None, step) for step in steps)


def _as_text(heights: FloatArray) -> list[str]:
    """Whole metres, a line for each row of the grid: short in a file, and still to be read."""
    return [" ".join(str(int(value)) for value in row) for row in heights.round()]


def _learned(options: dict[str, Any]) -> LearnedKernelSVR:
    """The paper's machine, untuned."""
    return LearnedKernelSVR(**{**paper_settings("regression"), "degree": options["degree"]})


def _tessellated(X: FloatArray, y: FloatArray, options: dict[str, Any]) -> tuple[Any, Any, Any]:
    from tessella.model_selection import KernelPathCV

    search = KernelPathCV(
        _learned(options),
        {key: options[key] for key in ("C", "epsilon", "delta")},
        cv=_folds(options),
        scoring="neg_root_mean_squared_error",
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the gap is kept instead
        search.fit(X, y)
    model = search.best_estimator_
    more = {
        "cv_rmse": -search.best_score_,
        "gap": model.gap_,
        "solver": model.solver_,
        "fit_seconds": search.refit_time_,
        "support": len(model.support_),
    }
    return model, search.best_params_, more


def _scaled_svr() -> Any:
    """scikit-learn's SVR on coordinates in [0, 1] and standardised heights."""
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MinMaxScaler, StandardScaler
    from sklearn.svm import SVR

    pipeline = make_pipeline(MinMaxScaler(), SVR(cache_size=1000))
    return TransformedTargetRegressor(pipeline, transformer=StandardScaler())


def _gaussian(X: FloatArray, y: FloatArray, options: dict[str, Any]) -> tuple[Any, Any, Any]:
    from sklearn.model_selection import GridSearchCV

    search = GridSearchCV(
        _scaled_svr(),
        {f"regressor__svr__{key}": options[key] for key in ("C", "epsilon", "gamma")},
        cv=_folds(options),
        scoring="neg_root_mean_squared_error",
    ).fit(X, y)
    params = {key.rsplit("__", 1)[1]: value for key, value in search.best_params_.items()}
    machine = search.best_estimator_.regressor_[-1]
    more = {
        "cv_rmse": -search.best_score_,
        "fit_seconds": search.refit_time_,
        "support": len(machine.support_),
    }
    return search.best_estimator_, params, more


def _folds(options: dict[str, Any]) -> Any:
    from sklearn.model_selection import KFold

    return KFold(options["folds"], shuffle=True, random_state=options["seed"])
