from __future__ import annotations

import json

import numpy as np
import pytest


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """Small sets with the names and shapes of those that the figures need."""
    home = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    entries = []
    for name, n_features, classify in [
        ("cancer_wbc", 9, True),
        ("pima", 8, True),
        ("cadata", 8, False),
        ("shill_bidding", 9, True),
    ]:
        X = rng.random((170, n_features))
        y = np.sin(5 * X[:, 0]) + X[:, 1] + 0.3 * rng.standard_normal(len(X))
        y = np.where(y > np.median(y), 1.0, -1.0) if classify else 1e5 * y
        header = ",".join([*(f"x{k}" for k in range(n_features)), "target"])
        table = np.column_stack([X, y])
        np.savetxt(home / f"{name}.csv.gz", table, "%.6g", ",", header=header, comments="")
        task = "classification" if classify else "regression"
        entries.append({"name": name, "file": f"{name}.csv.gz", "task": task})
    (home / "MANIFEST.json").write_text(json.dumps({"sets": entries}))
    return home
