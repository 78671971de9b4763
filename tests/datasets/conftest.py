"""Folders with small tables under the names of real data sets."""

import gzip
import hashlib
import json
from dataclasses import replace

import numpy as np
import pytest

from tessella.datasets import describe


def write_table(path, columns, table):
    lines = [",".join(columns), *(",".join(map(repr, row)) for row in table.tolist())]
    path.write_bytes(gzip.compress("\n".join(lines).encode()))


def checksum(table):
    """What the registry knows a table by: SHA-256 of its rows as sorted float64."""
    rows = np.array(sorted(table.tolist()), dtype="<f8")
    return hashlib.sha256(rows.tobytes()).hexdigest()


def described(name, table, **changes):
    """What the registry says of a data set, with the checksum of a table of the tests."""
    return replace(describe(name), checksum=checksum(table), **changes)


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A data folder with a manifest: abalone, gas turbine, and a set of one's own."""
    rng = np.random.default_rng(0)
    folder = tmp_path / "data"
    folder.mkdir()
    rings = np.column_stack([rng.random((30, 2)), rng.integers(1, 20, 30)]).astype(float)
    write_table(folder / "abalone.csv.gz", ["sex", "length", "target"], rings)
    turbine = rng.random((10, 5))
    write_table(folder / "turbines.csv.gz", ["AT", "TEY", "CDP", "CO", "NOX"], turbine)
    infos = {
        "abalone": described("abalone", rings),
        "gas_turbine": described("gas_turbine", turbine, years=(4, 6)),
        "gas_turbine_nox": described("gas_turbine_nox", turbine),
    }
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
    tables = {"abalone": rings, "gas_turbine": turbine, "own": own}
    return {"folder": folder, "infos": infos, **tables}
