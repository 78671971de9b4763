"""Folders with small tables under the names of real data sets."""

import gzip
import hashlib
import json
from dataclasses import replace

import numpy as np
import pytest

from tessella.datasets import _load, _registry


def write_table(path, columns, table):
    lines = [",".join(columns), *(",".join(map(repr, row)) for row in table.tolist())]
    path.write_bytes(gzip.compress("\n".join(lines).encode()))


def checksum(table):
    """What the registry knows a table by: SHA-256 of its rows as sorted float64."""
    rows = np.array(sorted(table.tolist()), dtype="<f8")
    return hashlib.sha256(rows.tobytes()).hexdigest()


@pytest.fixture
def known(monkeypatch):
    """Change what the registry knows of a data set, its checksum above all."""

    def change(name, table=None, **changes):
        if table is not None:
            changes["checksum"] = checksum(table)
        registry = dict(_registry.REGISTRY)
        registry[name] = replace(registry[name], **changes)
        for module in (_registry, _load):
            monkeypatch.setattr(module, "REGISTRY", registry)

    return change


@pytest.fixture
def home(tmp_path, monkeypatch, known):
    """A data folder with a manifest: abalone, gas turbine, and a set of one's own."""
    rng = np.random.default_rng(0)
    folder = tmp_path / "data"
    folder.mkdir()
    rings = np.column_stack([rng.random((30, 2)), rng.integers(1, 20, 30)]).astype(float)
    write_table(folder / "abalone.csv.gz", ["sex", "length", "target"], rings)
    known("abalone", rings)
    turbine = rng.random((10, 5))
    write_table(folder / "turbines.csv.gz", ["AT", "TEY", "CDP", "CO", "NOX"], turbine)
    for name in ("gas_turbine", "gas_turbine_nox"):
        known(name, turbine)
    known("gas_turbine", years=(4, 6))
    own = np.column_stack([rng.random((20, 3)), np.tile([-1.0, 1.0], 10)])
    write_table(folder / "own.csv.gz", ["a", "b", "c", "target"], own)
    sets = [
        {"name": "gas_turbine", "file": "turbines.csv.gz", "task": "regression"},
        {"name": "own", "file": "own.csv.gz", "task": "classification"},
        {"name": "picture", "file": "picture.npz", "task": "regression (picture)"},
        {"name": "gone", "file": "gone.csv.gz", "task": "regression"},
    ]
    (folder / "MANIFEST.json").write_text(json.dumps({"sets": sets}))
    monkeypatch.setenv("TESSELLA_DATA", str(folder))
    return {"folder": folder, "abalone": rings, "gas_turbine": turbine, "own": own}
