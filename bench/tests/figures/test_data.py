"""Grids, tables and records: the right way up, and kept as they are."""

from __future__ import annotations

import json

import numpy as np
import pytest
from matplotlib.cbook import get_sample_data

from tessella_bench.figures import _data, _terrain, _terrain_picture
from tessella_bench.figures._record import Record
from tessella_bench.figures._scaling import power_law


@pytest.mark.parametrize("exponent", [-0.5, 1.0, 2.4])
def test_power_law_is_recovered(exponent):
    x = np.geomspace(10, 3000, 6)
    found, factor = power_law(x, 3e-5 * x**exponent)
    assert found == pytest.approx(exponent, abs=1e-12)
    assert factor == pytest.approx(3e-5)
    noise = np.exp(0.05 * np.array([1, -1, 1, -1, 1, -1]))
    assert power_law(x, 3e-5 * x**exponent * noise)[0] == pytest.approx(exponent, abs=0.03)


def test_a_record_counts_for_its_settings_only(tmp_path):
    path = tmp_path / "figure.json"
    first = Record(path, {"rows": 5})
    assert first.cell("a", lambda: {"x": np.float64(1.5), "y": np.arange(2)}) == {
        "x": 1.5,
        "y": [0, 1],
    }
    assert json.loads(path.read_text())["settings"] == {"rows": 5}
    assert Record(path, {"rows": 5}).cell("a", lambda: {"x": 2})["x"] == 1.5
    first.conclude({"slope": np.float64(0.5)})
    before = path.read_bytes()
    assert json.loads(before)["summary"] == {"slope": 0.5}
    Record(path, {"rows": 5}).conclude({"slope": 0.5})
    assert path.read_bytes() == before
    assert Record(path, {"rows": 6}).cell("a", lambda: {"x": 3})["x"] == 3
    assert json.loads(path.read_text())["summary"] is None
    assert Record(path, {"rows": 6}, fresh=True).cell("a", lambda: {"x": 4})["x"] == 4


def test_table(folder):
    table = _data.load_table("cadata", folder)
    assert table.X.shape == (170, 8)
    few = table.take(20, seed=1)
    np.testing.assert_array_equal(few.X, table.take(20, seed=1).X)
    assert not np.array_equal(few.y, table.take(20, seed=2).y)
    assert table.take(1000, seed=1) is table


def test_jacksboro_has_north_up():
    grid = _data.load_grid(_data.JACKSBORO, None)
    with get_sample_data("jacksboro_fault_dem.npz") as file:
        elevation = file["elevation"]
    assert grid.height.shape == elevation.shape == (len(grid.y), len(grid.x))
    np.testing.assert_array_equal(grid.height[::-1], elevation)  # row 0 of the file is the north
    assert (np.diff(grid.x) > 0).all()
    assert (np.diff(grid.y) > 0).all()
    assert grid.x[0] == grid.y[0] == 0.0
    # 3 arc-seconds of latitude are 92.7 m, of longitude there a fifth less.
    assert np.diff(grid.y)[0] == pytest.approx(0.0927, abs=1e-3)
    assert np.diff(grid.x)[0] == pytest.approx(0.0744, abs=1e-3)


def test_grid_of_a_folder(tmp_path):
    lat, lon = np.array([36.2, 36.1, 36.0]), np.array([-113.0, -112.9])
    height = np.array([[1, 2], [3, 4], [5, 6]], dtype=np.int16)
    np.savez(tmp_path / "grid.npz", lat=lat, lon=lon, elevation=height)
    (tmp_path / "MANIFEST.json").write_text(
        json.dumps({"sets": [{"name": "dem_some", "file": "grid.npz"}]})
    )
    grid = _data.load_grid("dem_some", tmp_path)
    np.testing.assert_array_equal(grid.height, height[::-1])
    np.testing.assert_allclose(grid.y, [0.0, 11.12, 22.24])
    np.testing.assert_allclose(grid.x, [0.0, 11.12 * np.cos(np.deg2rad(36.1))])


def test_window_is_the_middle():
    x, y = np.arange(41.0), np.arange(61.0)
    grid = _data.ElevationGrid("g", x, y, 100 * y[:, None] + x, shrink=0.8)
    degrees = [20.5 / _data.KILOMETRES_PER_DEGREE, 10.5 / 0.8 / _data.KILOMETRES_PER_DEGREE]
    part = _terrain.window(grid, degrees)
    assert part.height.shape == (21, 11)
    assert (part.x[0], part.x[-1], part.y[0], part.y[-1]) == (0.0, 10.0, 0.0, 20.0)
    assert part.height[0, 0] == 100 * 20 + 15  # 20 rows and 15 columns are left out on each side


def test_heights_as_text():
    heights = np.array([[1234.4, -7.6], [0.0, 99.5]])
    lines = _terrain._as_text(heights)
    assert lines == ["1234 -8", "0 100"]
    np.testing.assert_array_equal(_terrain_picture.as_heights(lines), heights.round())


def test_terrain_verdict():
    cell = {
        "tessellated": {"rmse": 100.0, "untuned_rmse": 150.0},
        "gaussian": {"rmse": 80.0, "untuned_rmse": 200.0},
    }
    assert _terrain_picture.verdict(cell) == (
        "tuned, the Gaussian errs 20% less; with defaults, the tessellated kernel errs 25% less"
    )


def test_terrain_scores_are_of_points_not_learned_from():
    y, x = np.mgrid[0:60, 0:50] / 10.0
    grid = _data.ElevationGrid("g", x[0], y[:, 0], 100 * np.sin(x) * y, shrink=0.8)
    options = _terrain.settings(quick=True)
    cell = _terrain._compare(grid, options | {"most_test_points": None})
    assert (cell["train_points"], cell["test_points"]) == (60, 60 * 50 - 60)
    for label in ("tessellated", "gaussian"):
        found = cell[label]
        assert found["mse"] == pytest.approx(found["rmse"] ** 2)
        assert found["r2"] == pytest.approx(1 - found["mse"] / cell["deviation"] ** 2)
        assert found["r2"] > 0.9
        surface = _terrain_picture.as_heights(found["surface"])
        truth = _terrain_picture.as_heights(cell["truth"])
        assert surface.shape == truth.shape == (60, 50)
        # All but 60 of the shown points are test points.
        rmse = np.sqrt(np.mean((surface - truth) ** 2))
        assert rmse == pytest.approx(found["rmse"], rel=0.1)
