"""A data folder with tiny sets, and methods that worker processes can import."""

import json
from pathlib import Path

import numpy as np
import pytest

HERE = Path(__file__).parent


@pytest.fixture
def home(tmp_path, monkeypatch):
    rng = np.random.default_rng(1)
    folder = tmp_path / "data"
    folder.mkdir()
    X = rng.random((40, 2))
    label = np.where(X[:, 0] > 0.5, 1.0, -1.0)
    for name, y in (("tiny", label), ("slope", 10 * X[:, 0])):
        table = np.column_stack([X, y])
        np.savetxt(folder / f"{name}.csv", table, "%.17g", ",", header="a,b,target", comments="")
    sets = [
        {"name": "tiny", "file": "tiny.csv", "task": "classification"},
        {"name": "slope", "file": "slope.csv", "task": "regression"},
    ]
    (folder / "MANIFEST.json").write_text(json.dumps({"sets": sets}))
    monkeypatch.setenv("TESSELLA_DATA", str(folder))
    monkeypatch.setenv("PYTHONPATH", str(HERE))
    monkeypatch.syspath_prepend(str(HERE))
    return folder
