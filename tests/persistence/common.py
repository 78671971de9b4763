"""Data and comparisons for the tests of model files."""

import io
import json
import zipfile

import numpy as np

import tessella
from tessella.kernels import Gaussian, Polynomial

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
SIGN = X[:, 0] * X[:, 1] > 0
TARGET = 1000.0 + 50.0 * np.sin(2 * X[:, 0]) + X[:, 1]
NEW = RNG.normal(size=(25, 3))
FEW = (Gaussian(0.5), Gaussian(2.0), Polynomial(2, features=(0, 1)))


def sum_of_sets():
    """Kernels with a matrix and with weights as parameters."""
    return tessella.TessellatedKernels() + tessella.KernelDictionary(FEW)


def same(a, b):
    """Equal to the last bit and of the same type, whatever a fitted attribute may be."""
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and np.array_equal(a, b)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    return type(a) is type(b) and a == b


def members_of(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def manifest_of(path):
    return json.loads(members_of(path)["manifest.json"])


def gaps_in(path):
    """The gaps of the records that a checkpoint holds."""
    member = manifest_of(path)["history"]["gap"]
    return np.load(io.BytesIO(members_of(path)[member]), allow_pickle=False)


def scores(model, rows=NEW):
    return model.decision_function(rows) if hasattr(model, "classes_") else model.predict(rows)


def round_trip(model, folder, rows=NEW):
    tessella.save(model, folder / "model.tsl")
    again = tessella.load(folder / "model.tsl")
    assert type(again) is type(model)
    assert again.get_params() == model.get_params()
    others = {*model.get_params(deep=False), "_predictor_cache", "_fit_rows"}
    fitted = vars(model).keys() - others
    for name in fitted:
        assert same(getattr(model, name), getattr(again, name)), name
    assert vars(again).keys() == {*fitted, *model.get_params(deep=False)}
    assert same(scores(model, rows), scores(again, rows))
    assert same(model.predict(rows), again.predict(rows))
    return again
