"""Automatic models come back from files, and predict the same bits."""

from __future__ import annotations

import copy
import hashlib
import json
import pickle
import subprocess
import sys
import zipfile
from dataclasses import replace

import joblib
import numpy as np
import pytest
import skops.io
from automatic.conftest import mixed_table
from persistence.common import members_of, same
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import tessella
from tessella import TessellaClassifier, TessellaRegressor
from tessella.persistence import SKOPS_TRUSTED, ModelFileError, read_info

NEW = mixed_table(40, seed=5)[0]


def by_model_file(model, folder):
    model.save(folder / "model.tsl")
    return tessella.load(folder / "model.tsl")


def by_pickle(model, folder):
    return pickle.loads(pickle.dumps(model))


def by_joblib(model, folder):
    joblib.dump(model, folder / "model.joblib")
    return joblib.load(folder / "model.joblib", mmap_mode="r")


def by_skops(model, folder):
    skops.io.dump(model, folder / "model.skops")
    return skops.io.load(folder / "model.skops", trusted=SKOPS_TRUSTED)


def by_copy(model, folder):
    return copy.deepcopy(model)


WAYS = [by_model_file, by_pickle, by_joblib, by_skops, by_copy]


def spaces_of(model):
    return [member.machine.space for member in model.members_]


def predictions(model, rows):
    return model.predict_proba(rows) if hasattr(model, "classes_") else model.predict(rows)


def compare(model, again):
    assert type(again) is type(model)
    assert again.get_params() == model.get_params()
    assert same(predictions(again, NEW), predictions(model, NEW))
    assert same(again.predict(NEW), model.predict(NEW))
    assert again.leaderboard_ == model.leaderboard_
    for name in ("loo_score_", "gap_", "fit_time_", "search_complete_", "n_features_in_"):
        assert same(getattr(again, name), getattr(model, name)), name
    assert same(again.feature_names_in_, model.feature_names_in_)
    assert same(again.feature_relevance_, model.feature_relevance_)
    # Members with a common space have it in common again: new rows are scaled once for all.
    pairs = [(a is b) for a in spaces_of(model) for b in spaces_of(model)]
    assert [(a is b) for a in spaces_of(again) for b in spaces_of(again)] == pairs


@pytest.mark.parametrize("keep", WAYS, ids=lambda f: f.__name__)
def test_regressor(regressor, keep, tmp_path):
    assert len(regressor.members_) > 1
    again = keep(regressor, tmp_path)
    compare(regressor, again)
    assert same(again.predict_interval(NEW, 0.8), regressor.predict_interval(NEW, 0.8))


@pytest.mark.parametrize("keep", WAYS, ids=lambda f: f.__name__)
def test_classifier(classifier, keep, tmp_path):
    again = keep(classifier, tmp_path)
    compare(classifier, again)
    assert same(again.classes_, classifier.classes_)


@pytest.mark.parametrize("keep", [by_model_file, by_skops], ids=lambda f: f.__name__)
def test_support_vector_machines(keep, low_with, tmp_path):
    low_with(svm_strengths=(1.0, 30.0), refined=0, most_svm_classes=2, svm_kurtosis=0.0)
    rng = np.random.default_rng(3)
    X = rng.random((80, 2))
    outliers = np.sin(5.0 * X[:, 0]) + 0.3 * rng.standard_t(1.2, 80)
    margin = X.sum(axis=1) + 0.05 * rng.normal(size=80) > 1.0
    tubes = TessellaRegressor(effort="low").fit(X, outliers)
    hinges = TessellaClassifier(effort="low").fit(X, margin)
    for model, loss in ((tubes, "tube"), (hinges, "hinge")):
        assert loss in {member.machine.loss.name for member in model.members_}
        again = keep(model, tmp_path)
        assert same(predictions(again, X), predictions(model, X))
        losses = [member.machine.loss for member in model.members_]
        assert [member.machine.loss for member in again.members_] == losses
        targets = [member.machine.target for member in model.members_]
        assert [member.machine.target for member in again.members_] == targets


@pytest.mark.parametrize("keep", [by_model_file, by_skops], ids=lambda f: f.__name__)
def test_learned_kernels(keep, low_with, tmp_path):
    low_with(learned_strengths=(10.0,), refined=0, compared=1)
    X = np.random.default_rng(0).random((60, 2))
    options = {"effort": "low", "families": ["gaussian"], "scalings": ["range"]}
    model = TessellaRegressor(**options).fit(X, np.abs(X[:, 0] - 0.4) + X[:, 1])
    assert any(member.machine.kernel.learned for member in model.members_)
    again = keep(model, tmp_path)
    assert same(again.predict(X), model.predict(X))
    kernels = [member.machine.kernel for member in model.members_]
    for kernel, member in zip(kernels, again.members_, strict=True):
        assert member.machine.kernel.learned == kernel.learned
        if kernel.learned:
            assert member.machine.kernel.kernel == kernel.kernel


def test_a_model_with_leaves(low_with, tmp_path):
    low_with(largest_leaf=20)
    model = TessellaRegressor(effort="low").fit(*mixed_table(60))
    assert model.members_[0].partition.n_leaves > 2
    compare(model, by_model_file(model, tmp_path))


@pytest.mark.parametrize(
    "labels", [np.array([3, 7]), np.array([False, True]), np.array(["a", "b"])]
)
def test_labels_and_arrays_without_names(labels, tmp_path):
    X = np.random.default_rng(0).random((40, 2))
    model = TessellaClassifier(effort="low", refine=False).fit(X, labels[(X[:, 0] > 0.5) * 1])
    again = by_model_file(model, tmp_path)
    assert same(again.classes_, model.classes_)
    assert same(again.predict(X), model.predict(X))
    assert read_info(tmp_path / "model.tsl")["feature_names"] is None


def test_arrays_are_stored_once(regressor, tmp_path):
    regressor.save(tmp_path / "model.tsl")
    stored = [name for name in members_of(tmp_path / "model.tsl") if "coordinates" in name]
    assert len(stored) == len({id(space) for space in spaces_of(regressor)})


def test_fresh_process(regressor, tmp_path):
    regressor.save(tmp_path / "model.tsl")
    NEW.to_pickle(tmp_path / "new.pkl")
    program = (
        "import sys, numpy as np, pandas as pd, tessella\n"
        "model = tessella.load(sys.argv[1])\n"
        "np.save(sys.argv[3], model.predict(pd.read_pickle(sys.argv[2])))\n"
    )
    arguments = [tmp_path / name for name in ("model.tsl", "new.pkl", "scores.npy")]
    subprocess.run([sys.executable, "-c", program, *map(str, arguments)], check=True)
    assert same(np.load(tmp_path / "scores.npy"), regressor.predict(NEW))


def test_info(classifier, tmp_path):
    classifier.save(tmp_path / "model.tsl", metadata={"target": "price"})
    info = read_info(tmp_path / "model.tsl")
    assert info["estimator"] == "TessellaClassifier"
    assert info["params"]["effort"] == "low"
    assert info["classes"] == ["cheap", "dear", "fair"]
    assert info["feature_names"] == ["size", "town", "day"]
    assert info["columns"] == ["number", "category", "date"]
    assert info["leaderboard"] == classifier.leaderboard_
    assert info["fitted"]["loo_score_"] == classifier.loo_score_
    assert info["fitted"]["gap_"] == classifier.gap_
    assert info["metadata"] == {"target": "price"}
    json.dumps(info)  # plain data


def test_a_loaded_model_can_be_fitted_again(regressor, tmp_path):
    again = by_model_file(regressor, tmp_path)
    table, y = mixed_table()
    assert same(clone(again).fit(table, y).predict(NEW), regressor.predict(NEW))


def test_skops_asks_for_our_types_only(regressor, classifier):
    for model in (regressor, classifier):
        found = skops.io.get_untrusted_types(data=skops.io.dumps(model))
        assert set(found) <= set(SKOPS_TRUSTED)


# ---- refusals


def test_unfitted(tmp_path):
    for model in (TessellaRegressor(), TessellaClassifier()):
        with pytest.raises(NotFittedError):
            model.save(tmp_path / "model.tsl")
    assert not any(tmp_path.iterdir())


class Heir(TessellaRegressor):
    pass


def test_heirs_and_foreign_parts_are_named(regressor, tmp_path):
    heir = Heir()
    vars(heir).update(vars(regressor))
    with pytest.raises(ModelFileError, match="A Heir cannot be stored"):
        tessella.save(heir, tmp_path / "model.tsl")
    model = copy.copy(regressor)
    first = model.members_[0]
    model.members_ = [replace(first, machine=replace(first.machine, loss=max))]
    with pytest.raises(ModelFileError, match=r"'members_\.0\.machine\.loss' is the function max"):
        tessella.save(model, tmp_path / "model.tsl")
    assert not any(tmp_path.iterdir())


def rewrite(path, change):
    """Change the manifest of a file, and make its digest right."""
    members = members_of(path)
    manifest = json.loads(members["manifest.json"])
    change(manifest)
    text = json.dumps(manifest).encode()
    members["manifest.json"] = text
    members["manifest.sha256"] = hashlib.sha256(text).hexdigest().encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)


@pytest.fixture
def model_file(regressor, tmp_path):
    regressor.save(tmp_path / "model.tsl")
    return tmp_path / "model.tsl"


def test_damaged_files(model_file):
    whole = model_file.read_bytes()
    for length in (0, 3, 100, len(whole) // 2, len(whole) - 1):
        model_file.write_bytes(whole[:length])
        for read in (tessella.load, read_info):
            with pytest.raises(ModelFileError, match=r"truncated|damaged|not a Tessella"):
                read(model_file)


def test_a_flipped_bit_never_changes_a_prediction(regressor, model_file):
    whole, expected = model_file.read_bytes(), regressor.predict(NEW)
    rng = np.random.default_rng(1)
    caught = 0
    for position in rng.choice(len(whole), 60, replace=False):
        changed = bytearray(whole)
        changed[position] ^= 1 << int(rng.integers(8))
        model_file.write_bytes(changed)
        try:
            model = tessella.load(model_file)
        except ModelFileError:
            caught += 1
        else:
            assert same(model.predict(NEW), expected), position
    assert caught > 40


def test_unknown_parts(model_file):
    def change(manifest):
        manifest["shared"][0]["$type"] = "Spice"

    rewrite(model_file, change)
    for read in (tessella.load, read_info):
        with pytest.raises(ModelFileError, match="'Spice' is unknown to this version"):
            read(model_file)


@pytest.mark.parametrize("shared", [[], None, 1, [{}], [{"$type": "shared", "place": 0}]], ids=str)
def test_nonsense_among_shared_parts(shared, model_file):
    rewrite(model_file, lambda manifest: manifest.update(shared=shared))
    with pytest.raises(ModelFileError, match="damaged"):
        tessella.load(model_file)


def wrong_parts(member):
    """Members whose arrays do not fit together."""
    machine, (tree,) = member.machine, member.partition.trees
    base = member.base
    space, kernel = machine.space, machine.kernel

    def other(**parts):
        return replace(member, machine=replace(machine, **parts))

    narrow = replace(space, coordinates=space.coordinates[:, :-1])
    loop = replace(
        tree,
        directions=np.ones((1, len(space.group))),
        thresholds=np.zeros(1),
        sides=np.array([[0, 0]]),
        roots=np.array([0]),
    )
    beyond = np.array([len(space.coordinates)])
    yield "short coefficients", replace(member, coef=member.coef[:, :-1])
    yield "flat coefficients", replace(member, coef=member.coef[0])
    yield "coefficients of two trees", replace(member, coef=np.tile(member.coef, (2, 1, 1)))
    yield "intercepts", replace(member, intercept=np.zeros((2, 1)))
    yield "not finite", replace(member, intercept=np.array([[np.nan]]))
    yield "scales", other(kernel=replace(kernel, scales=kernel.scales[1:]))
    yield "coordinates", other(space=narrow)
    yield "groups", other(space=replace(space, group=space.group[1:]))
    yield "two outputs", replace(member, coef=np.tile(member.coef, 2), intercept=np.zeros((1, 2)))
    yield "endless leaves", replace(member, partition=replace(member.partition, trees=(loop,)))
    yield "no tree", replace(member, partition=replace(member.partition, trees=()))
    yield "groups of leaves", replace(member, partition=replace(member.partition, column=0))
    yield "base rows", replace(member, base=replace(base, rows=beyond, coef=np.zeros((1, 1))))
    yield "base coefficients", replace(member, base=replace(base, coef=np.zeros((1, 1))))
    yield "base intercept", replace(member, base=replace(base, intercept=np.zeros(2)))


@pytest.mark.parametrize("number", range(15))
def test_parts_that_do_not_fit_together(regressor, number, tmp_path):
    name, wrong = list(wrong_parts(regressor.members_[0]))[number]
    model = copy.copy(regressor)
    model.members_ = [wrong]
    model.save(tmp_path / "model.tsl")
    with pytest.raises(ModelFileError, match=r"do not fit together|damaged"):
        tessella.load(tmp_path / "model.tsl")
    assert name


def test_other_attributes_that_do_not_fit(regressor, classifier, tmp_path):
    changes = [
        (regressor, {"n_features_in_": 4}),
        (regressor, {"members_": []}),
        (regressor, {"_rows": np.zeros((3, 2))}),
        (classifier, {"classes_": np.array(["a", "b"])}),
        (classifier, {"_calibration": np.ones(4)}),
    ]
    for whole, change in changes:
        model = copy.copy(whole)
        vars(model).update(change)
        model.save(tmp_path / "model.tsl")
        with pytest.raises(ModelFileError, match="do not fit together"):
            tessella.load(tmp_path / "model.tsl")
