"""Models of several leaves come back from every kind of file, and nothing wrong gets in."""

from __future__ import annotations

import copy
import io
import json
import pickle

import joblib
import numpy as np
import pytest
import skops.io
from estimators.leaf_cases import CASES, NEW, X, scores
from persistence.common import members_of
from persistence.test_refusals import npy, replace_array, rewrite
from sklearn.base import clone

import tessella
from tessella.persistence import SKOPS_TRUSTED, ModelFileError, read_info

NAMES = ("three classes", "regression", "ridge", "ridge classes", "weights", "single kernel")


@pytest.fixture(scope="module")
def models():
    found = {name: clone(CASES[name][0]).fit(X, CASES[name][1]) for name in NAMES}
    model, y = CASES["ridge"]
    rows = np.column_stack([X[:, :2], np.arange(len(X)) % 3])
    found["groups"] = clone(model).set_params(partition=2, n_partitions=1).fit(rows, y)
    return found


def new_rows(name):
    return np.column_stack([NEW[:, :2], np.arange(len(NEW)) % 3]) if name == "groups" else NEW


def by_skops(model):
    return skops.io.loads(skops.io.dumps(model), trusted=SKOPS_TRUSTED)


def by_joblib(model):
    buffer = io.BytesIO()
    joblib.dump(model, buffer)
    buffer.seek(0)
    return joblib.load(buffer)


WAYS = {
    "pickle": lambda model: pickle.loads(pickle.dumps(model)),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "joblib": by_joblib,
    "skops": by_skops,
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", [*NAMES, "groups"])
def test_other_ways(name, way, models):
    model = models[name]
    again, rows = WAYS[way](model), new_rows(name)
    assert np.array_equal(scores(again, rows), scores(model, rows))
    assert again.leaves_.n_leaves == model.leaves_.n_leaves
    assert "_predictor_cache" not in vars(WAYS[way](again)) or way == "copy"


@pytest.mark.parametrize("name", [*NAMES, "groups"])
def test_model_files(name, models, tmp_path):
    model, rows = models[name], new_rows(name)
    tessella.save(model, tmp_path / "model.tsl")
    again = tessella.load(tmp_path / "model.tsl")
    assert np.array_equal(scores(again, rows), scores(model, rows))
    assert np.array_equal(again.predict(rows), model.predict(rows))
    assert np.array_equal(again.leaves_.ends, model.leaves_.ends)
    assert again.gap_ == model.gap_
    assert read_info(tmp_path / "model.tsl")["estimator"] == type(model).__name__
    tessella.save(again, tmp_path / "again.tsl")
    assert members_of(tmp_path / "again.tsl").keys() == members_of(tmp_path / "model.tsl").keys()


def test_clones_have_no_leaves(models):
    other = clone(models["ridge"])
    assert not hasattr(other, "leaves_")
    assert other.get_params() == models["ridge"].get_params()


# ------------------------------------------------------------------------------ what is refused


@pytest.fixture
def path(models, tmp_path):
    tessella.save(models["ridge"], tmp_path / "model.tsl")
    return tmp_path / "model.tsl"


def array_in(path, name):
    return np.load(io.BytesIO(members_of(path)[name]), allow_pickle=False)


def refused_with(path, name, array, message="fit together"):
    replace_array(path, name, npy(array), shape=list(array.shape), dtype=array.dtype.str)
    with pytest.raises(ModelFileError, match=message):
        tessella.load(path)


ENDS = "arrays/leaves_.ends.npy"
SIDES = "arrays/leaves_.partition.trees.0.sides.npy"
BASE = "arrays/leaves_.base.{}.npy"


def test_the_names_of_the_arrays(path):
    names = members_of(path)
    for name in (ENDS, SIDES, BASE.format("dual_coef"), BASE.format("intercept")):
        assert name in names, sorted(names)


@pytest.mark.parametrize(
    "change",
    {
        "more support": lambda ends: ends + 1,
        "descending": lambda ends: np.concatenate([ends[1::-1], ends[2:]]),
        "negative": lambda ends: np.concatenate([[-1], ends[1:]]),
        "a leaf less": lambda ends: ends[1:],
        "a leaf more": lambda ends: np.append(ends, ends[-1]),
        "fractions": lambda ends: ends + 0.0,
        "none": lambda ends: ends[:0],
    }.items(),
    ids=lambda item: item[0],
)
def test_ends_that_are_wrong(change, path):
    ends = change[1](array_in(path, ENDS))
    refused_with(path, ENDS, ends.astype(float if change[0] == "fractions" else np.int64))


@pytest.mark.parametrize(
    "place",
    [lambda sides: 0, lambda sides: -1 - 10**6, lambda sides: len(sides), lambda sides: -1],
    ids=["itself", "no leaf", "no cut", "a leaf twice"],
)
def test_sides_that_are_no_tree(place, path):
    sides = array_in(path, SIDES)
    sides[0, 0] = sides[0, 1] if place(sides) == -1 else place(sides)
    refused_with(path, SIDES, sides)


def test_a_tree_with_another_number_of_leaves(path):
    """A tree with a cut more than the ends have leaves."""
    fitted = json.loads(members_of(path)["manifest.json"])["fitted"]
    trees = fitted["leaves_"]["params"]["partition"]["params"]["trees"]
    text = json.dumps(trees)
    assert "trees.0" in text
    items = trees["items"] if isinstance(trees, dict) else trees
    items.append(items[0])
    rewrite(path, members_of(path), fitted=fitted)
    with pytest.raises(ModelFileError):
        tessella.load(path)


@pytest.mark.parametrize("column", [7, -2, 0, 0.5, "x", None, True])
def test_a_column_of_groups_that_is_wrong(column, path):
    fitted = json.loads(members_of(path)["manifest.json"])["fitted"]
    fitted["leaves_"]["params"]["partition"]["params"]["column"] = column
    rewrite(path, members_of(path), fitted=fitted)
    with pytest.raises(ModelFileError):
        tessella.load(path)


@pytest.mark.parametrize("column", [7, -2, -1, 1.5, "x", None])
def test_a_column_of_groups_that_is_none(column, models, tmp_path):
    path = tmp_path / "groups.tsl"
    tessella.save(models["groups"], path)
    fitted = json.loads(members_of(path)["manifest.json"])["fitted"]
    fitted["leaves_"]["params"]["partition"]["params"]["column"] = column
    rewrite(path, members_of(path), fitted=fitted)
    with pytest.raises(ModelFileError, match="fit together"):
        tessella.load(path)


@pytest.mark.parametrize("name", ["intercept", "dual_coef", "support_vectors"])
def test_a_base_function_that_is_no_function(name, path):
    wrong = array_in(path, BASE.format(name))
    bad = wrong.copy()
    bad.flat[0] = np.nan
    refused_with(path, BASE.format(name), bad, "not finite")
    refused_with(path, BASE.format(name), np.concatenate([wrong, wrong]))


def test_intercepts_that_are_wrong(path):
    intercept = array_in(path, "arrays/intercept_.npy")
    bad = intercept.copy()
    bad[-1, 0] = np.nan
    refused_with(path, "arrays/intercept_.npy", bad, "not finite")
    refused_with(path, "arrays/intercept_.npy", intercept[1:])
    refused_with(path, "arrays/intercept_.npy", intercept[:, 0])


@pytest.mark.parametrize("name", ["thresholds", "directions"])
def test_cuts_that_are_no_numbers(name, path):
    member = f"arrays/leaves_.partition.trees.0.{name}.npy"
    bad = array_in(path, member)
    bad.flat[-1] = np.inf
    refused_with(path, member, bad)


def test_a_row_twice_in_a_leaf(path):
    support = array_in(path, "arrays/support_.npy")
    support[1] = support[0]
    refused_with(path, "arrays/support_.npy", support, "positions of training rows")


@pytest.mark.parametrize("part", ["partition", "base", "ends"])
@pytest.mark.parametrize("value", [None, 3, "text", {"$type": "tuple", "items": []}])
def test_parts_of_another_kind(part, value, path):
    fitted = json.loads(members_of(path)["manifest.json"])["fitted"]
    members = members_of(path)
    fitted["leaves_"]["params"][part] = value
    rewrite(path, members, fitted=fitted)
    with pytest.raises(ModelFileError):
        tessella.load(path)


def test_round_trip_of_every_attribute(models, tmp_path):
    model = models["groups"]
    leaves = model.leaves_
    tessella.save(model, tmp_path / "model.tsl")
    again = tessella.load(tmp_path / "model.tsl").leaves_
    assert again.partition.column == leaves.partition.column
    for own, its in zip(again.partition.trees, leaves.partition.trees, strict=True):
        for name in ("directions", "thresholds", "sides", "roots", "groups"):
            assert np.array_equal(getattr(own, name), getattr(its, name))
    assert np.array_equal(again.base.dual_coef, leaves.base.dual_coef)
    assert again.base.kernel == leaves.base.kernel
