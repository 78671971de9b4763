"""Figures are measured, kept, reused and drawn; what is missing is told."""

from __future__ import annotations

import json

import pytest

from tessella_bench.figures import FIGURES, MissingDataError, _scaling, draw_all

PNG = b"\x89PNG\r\n"


@pytest.fixture(autouse=True)
def no_environment(monkeypatch):
    monkeypatch.delenv("TESSELLA_DATA", raising=False)


@pytest.mark.parametrize("name", ["convergence", "scaling", "rank"])
def test_quick_figures(name, folder, tmp_path, monkeypatch):
    monkeypatch.setenv("TESSELLA_DATA", str(folder))
    png, svg = draw_all(tmp_path, names=[name], quick=True)
    assert (png, svg) == (tmp_path / f"{name}.png", tmp_path / f"{name}.svg")
    assert png.read_bytes().startswith(PNG)
    assert "<svg" in svg.read_text()
    kept = json.loads((tmp_path / f"{name}.json").read_text())
    assert kept["figure"] == name
    assert kept["machine"]["threads"] >= 1
    assert kept["versions"]["tessella"]
    assert kept["cells"]


def test_measurements_go_on_and_are_not_repeated(folder, tmp_path, monkeypatch):
    drawn, measured = [], []
    fake = {"rows": 100, "n_params": 18, "seconds": 0.5}

    def time_but_stop_at_the_sixth(*arguments):
        if len(measured) == 5:
            raise KeyboardInterrupt
        measured.append(arguments)
        return fake

    monkeypatch.setattr(_scaling, "draw", lambda results, stem: drawn.append(results) or [stem])
    monkeypatch.setattr(_scaling, "_exponents", lambda curves: {})
    monkeypatch.setattr(_scaling, "_time", time_but_stop_at_the_sixth)
    with pytest.raises(KeyboardInterrupt):
        draw_all(tmp_path, folder, ["scaling"], quick=True)
    assert len(json.loads((tmp_path / "scaling.json").read_text())["cells"]) == 5
    assert not drawn

    monkeypatch.setattr(_scaling, "_time", lambda *_: measured.append(_) or fake)
    draw_all(tmp_path, folder, ["scaling"], quick=True)
    kept = (tmp_path / "scaling.json").read_bytes()
    assert len(measured) == len(json.loads(kept)["cells"]) > 5
    draw_all(tmp_path, folder, ["scaling"], quick=True)
    assert (tmp_path / "scaling.json").read_bytes() == kept
    assert len(measured) == len(json.loads(kept)["cells"])
    assert len(drawn) == 2
    draw_all(tmp_path, folder, ["scaling"], quick=True, fresh=True)
    assert len(measured) == 2 * len(json.loads(kept)["cells"])


def test_without_data_only_the_terrain_of_matplotlib_is_drawn(tmp_path):
    lines = []
    pictures = draw_all(tmp_path, quick=True, say=lines.append)
    assert [path.name for path in pictures] == [
        "terrain-jacksboro-fault.png",
        "terrain-jacksboro-fault.svg",
    ]
    for name in set(FIGURES) - {"terrain"}:
        assert any(line.startswith(f"{name}: left out. The data set") for line in lines)


def test_what_is_missing_is_told(folder, tmp_path):
    with pytest.raises(ValueError, match="no figure 'rang'; use convergence, scaling"):
        draw_all(tmp_path, folder, ["rang"])
    with pytest.raises(MissingDataError, match="set TESSELLA_DATA"):
        draw_all(tmp_path, names=["rank"])
    with pytest.raises(MissingDataError, match=r"'cadata' is needed and .* has none"):
        draw_all(tmp_path, tmp_path, ["rank"])
