"""Small tables with text and gaps beside the sets of the other tests."""

import hashlib
import json

import numpy as np
import pandas as pd
import pytest


def mixed_frame(rows=60, seed=3):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "size": rng.random(rows),
            "count": rng.integers(0, 9, rows).astype(float),
            "colour": rng.choice(["red", "green", "blue"], rows).astype(object),
        }
    )
    frame.loc[::7, "count"] = np.nan
    frame.loc[::11, "colour"] = np.nan
    return frame


@pytest.fixture
def frame():
    return mixed_frame()


@pytest.fixture
def suite_home(home):
    """The folder of `home` with a subfolder ``suite``: three classes, and a regression."""
    folder = home / "suite"
    folder.mkdir()
    frame = mixed_frame()
    label = frame["colour"].fillna("none").where(frame["size"] > 0.2, "small")
    frame.assign(label=label).to_csv(folder / "paints.csv.gz", index=False)
    price = 3 * frame["size"] + (frame["colour"] == "red")
    frame.assign(price=price).to_csv(folder / "prices.csv.gz", index=False)
    digest = hashlib.sha256((folder / "paints.csv.gz").read_bytes()).hexdigest()
    manifest = {
        "paints": {"task": "multiclass", "target": "label", "sha256": digest},
        "prices": {"task": "regression"},
    }
    (folder / "MANIFEST.json").write_text(json.dumps(manifest))
    return home
