"""Small tables and models that several tests look at."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from tessella import TessellaClassifier, TessellaRegressor
from tessella.automatic import EFFORTS


@pytest.fixture
def low_with(monkeypatch):
    """Change some sizes of the search with effort="low"."""

    def change(**sizes):
        monkeypatch.setitem(EFFORTS, "low", replace(EFFORTS["low"], **sizes))

    return change


def mixed_table(n_rows=90, seed=0):
    """A table with numbers, text, dates and gaps, and a positive target that depends on all."""
    rng = np.random.default_rng(seed)
    size, town = rng.random(n_rows), rng.choice(["Ulm", "Bern", "Wien"], n_rows)
    day = rng.integers(0, 400, n_rows)
    table = pd.DataFrame(
        {
            "size": np.where(rng.random(n_rows) < 0.1, np.nan, size),
            "town": np.where(rng.random(n_rows) < 0.1, None, town),
            "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(day, unit="D"),
        }
    )
    exponent = 2.0 * np.sin(5.0 * size) + (town == "Ulm") + day / 400.0
    return table, np.exp(exponent + 0.1 * rng.normal(size=n_rows))


@pytest.fixture(scope="session")
def regressor():
    return TessellaRegressor(effort="low", encodings=("one-hot", "target")).fit(*mixed_table())


@pytest.fixture(scope="session")
def classifier():
    table, y = mixed_table()
    names = np.array(["cheap", "fair", "dear"], dtype=object)
    labels = names[np.digitize(y, np.quantile(y, [0.3, 0.7]))]
    return TessellaClassifier(effort="low").fit(table, labels)
