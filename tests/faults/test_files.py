"""Files with values that no fit gives are refused, and temporary files are removed if nobody
writes them any more."""

import hashlib
import io
import json
import os
import re
import subprocess
import sys
import zipfile

import numpy as np
import pytest

import tessella
from tessella import (
    KernelDictionary,
    LearnedKernelRidge,
    LearnedKernelRidgeClassifier,
    LearnedKernelSVC,
    LearnedKernelSVR,
    MultipleKernelSVC,
    TessellaClassifier,
    TessellaRegressor,
    TessellatedKernels,
)
from tessella.kernels import Gaussian, Polynomial
from tessella.persistence import ModelFileError

RNG = np.random.default_rng(0)
X = RNG.random((30, 2))
SIGN = np.where(X[:, 0] > X[:, 1], "yes", "no")
THREE = np.digitize(X[:, 0], [0.3, 0.7])
TARGET = 5.0 + np.sin(5 * X[:, 0])
FEW = (Gaussian(0.5), Polynomial(2))


def members_of(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write(path, members, manifest):
    """Write members again, with the digest that belongs to the manifest."""
    text = json.dumps(manifest).encode()
    signed = {
        **members,
        "manifest.json": text,
        "manifest.sha256": hashlib.sha256(text).hexdigest().encode(),
    }
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in signed.items():
            archive.writestr(name, data)


def change_array(path, name, change):
    members = members_of(path)
    manifest = json.loads(members["manifest.json"])
    member = f"arrays/{name}.npy"
    changed = np.asarray(change(np.load(io.BytesIO(members[member]))))
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, changed, version=(1, 0))
    members[member] = buffer.getvalue()
    manifest["arrays"][member] = {
        "dtype": changed.dtype.str,
        "shape": list(changed.shape),
        "sha256": hashlib.sha256(members[member]).hexdigest(),
    }
    write(path, members, manifest)


def change_manifest(path, change):
    members = members_of(path)
    manifest = json.loads(members["manifest.json"])
    change(manifest)
    write(path, members, manifest)


def first(value):
    def change(array):
        array = array.copy()
        array.flat[0] = value
        return array

    return change


MODELS = {
    "classifier": lambda: LearnedKernelSVC().fit(X, SIGN),
    "separate": lambda: LearnedKernelSVC(multi_class="separate").fit(X, THREE),
    "regressor": lambda: LearnedKernelSVR(scaling="quantile").fit(X, TARGET),
    "ridge": lambda: LearnedKernelRidgeClassifier().fit(X, THREE),
    "weights": lambda: MultipleKernelSVC(kernels=FEW).fit(X, SIGN),
    "sum": lambda: LearnedKernelSVC(
        kernels=TessellatedKernels(floor=0.1) + KernelDictionary(FEW), max_iter=2
    ).fit(X, SIGN),
    "automatic": lambda: TessellaClassifier(effort="low").fit(X, THREE),
    "automatic regressor": lambda: TessellaRegressor(effort="low").fit(X, TARGET),
}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The file of each kind of model as bytes, which is saved when it is first asked for."""
    folder, known = tmp_path_factory.mktemp("models"), {}

    def data_of(kind):
        if kind not in known:
            tessella.save(MODELS[kind](), folder / "model.tsl")
            known[kind] = (folder / "model.tsl").read_bytes()
        return known[kind]

    return data_of


@pytest.fixture
def file_of(files, tmp_path):
    def copy(kind):
        path = tmp_path / "model.tsl"
        path.write_bytes(files(kind))
        return path

    return copy


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kind", MODELS)
def test_honest_files_are_read(kind, file_of):
    model = tessella.load(file_of(kind))
    assert np.isin(model.predict(X), model.classes_).all() if hasattr(model, "classes_") else True


ARRAYS = [
    ("classifier", "dual_coef_", first(np.nan), "dual_coef_ has values that are not finite"),
    ("classifier", "dual_coef_", lambda a: a.astype(np.float32), "not an array of float64"),
    ("classifier", "dual_coef_", lambda a: a.astype(str), "not an array of float64"),
    ("classifier", "dual_coef_", lambda a: a[:, :-1], "fit together"),
    ("classifier", "intercept_", first(np.inf), "intercept_ has values that are not finite"),
    ("classifier", "support_vectors_", first(np.nan), "support_vectors_ has values"),
    ("classifier", "support_", first(-1), "positions of training rows"),
    ("classifier", "support_", lambda a: a[::-1], "positions of training rows"),
    ("classifier", "support_", lambda a: a.astype(float), "positions of training rows"),
    ("classifier", "kernel_.parameter", lambda a: -a, "not one that its kernel set can have"),
    ("classifier", "kernel_.parameter", lambda a: 2 * a, "not one that its kernel set can have"),
    ("classifier", "kernel_.parameter", first(np.nan), "not one that its kernel set can have"),
    ("classifier", "kernel_.box.knots", first(np.nan), "increasing map"),
    ("classifier", "kernel_.box.knots", lambda a: a[::-1], "increasing map"),
    ("classifier", "kernel_.box.heights", lambda a: 2 * a, "increasing map"),
    ("classifier", "kernel_.box.counts", lambda a: a + 1, "does not fit the model"),
    ("classifier", "kernel_.box.kept", lambda a: a + 1, "does not fit the model"),
    ("classifier", "classes_", lambda a: a[::-1], "not sorted"),
    ("classifier", "_sample_rows", first(np.nan), "_sample_rows has values"),
    ("classifier", "_training_range", lambda a: a[::-1], "ends before it begins"),
    ("classifier", "support_vectors_", first(-1e300), "outside the training range"),
    ("classifier", "_sample_rows", first(2.0), "outside the training range"),
    ("classifier", "_training_range", lambda a: 1.5 * a, "outside the training range"),
    ("regressor", "dual_coef_", lambda a: a * 1e308, "finite number"),
    ("weights", "kernel_.kernels.mean", lambda a: a[:, None], "fit together"),
    ("weights", "kernel_.kernels.scale", lambda a: a[:1], "fit together"),
    ("weights", "kernel_.kernels.factors", lambda a: a[:1], "fit together"),
    ("weights", "kernel_.kernels.scale", first(np.nan), "not finite"),
    ("weights", "kernel_.kernels.factors", lambda a: -a, "fit together"),
    ("weights", "kernel_.parameter", first(-0.5), "not one that its kernel set can have"),
    ("ridge", "dual_coef_", first(-np.inf), "dual_coef_ has values"),
    ("automatic", "members_.0.coef", first(np.nan), "fit together|not finite"),
    ("automatic", "members_.0.machine.space.box.knots", first(np.nan), "increasing map|together"),
    ("automatic", "_calibration", first(np.nan), "_calibration has values"),
    ("automatic regressor", "_residual_weight", lambda a: -a, "fit together"),
    ("automatic regressor", "_residuals", first(np.nan), "_residuals has values"),
]


@pytest.mark.parametrize(("kind", "name", "change", "message"), ARRAYS)
def test_arrays_that_no_fit_gives(kind, name, change, message, file_of):
    path = file_of(kind)
    change_array(path, name, change)
    with pytest.raises(ModelFileError, match=message):
        tessella.load(path)


def nan():
    return {"$type": "float", "text": "nan"}


VALUES = [
    ("gap_", "0.001", "gap_ is '0.001'"),
    ("gap_", nan(), "gap_ is 'nan'"),
    ("gap_", -1e-6, "gap_ is '-1e-06'"),
    ("gap_", 0.0, "the gap of the two bounds is"),
    ("gap_", True, "gap_ is 'True'"),
    ("gap_", None, "gap_ is 'None'"),
    ("objective_", nan(), "objective_ is 'nan'"),
    ("objective_", "12", "objective_ is '12'"),
    ("lower_bound_", 1e9, "the gap of the two bounds is"),
    ("objective_", 0, "the gap of the two bounds is"),
    ("objective_", {"$type": "float", "text": "inf"}, "the gap of the two bounds is"),
    ("lower_bound_", {"$type": "float", "text": "inf"}, "lower_bound_ is 'inf'"),
    ("_target_scale", {"$type": "float", "text": "inf"}, "_target_scale is"),
    ("n_iter_", -1, "n_iter_ is '-1'"),
    ("n_iter_", 1.5, "n_iter_ is '1.5'"),
    ("status_", "splendid", "status_ is 'splendid'"),
    ("solver_", 3, "solver_ is '3'"),
    ("n_features_in_", 3, "fit together"),
    ("n_features_in_", "2", "n_features_in_ is '2'"),
    ("_n_rows", 3, "positions of training rows"),
    ("_target_scale", 0.0, "_target_scale is"),
    ("_target_scale", nan(), "_target_scale is"),
    ("parameter_", [1.0], "parameter_ is not the parameter"),
    ("validation_scores_", "high", "validation_scores_ is 'high'"),
]


@pytest.mark.parametrize(("name", "value", "message"), VALUES)
def test_values_that_no_fit_gives(name, value, message, file_of):
    path = file_of("classifier")
    change_manifest(path, lambda manifest: manifest["fitted"].update({name: value}))
    with pytest.raises(ModelFileError, match=re.escape(message)):
        tessella.load(path)


@pytest.mark.parametrize("value", [-1.0, "0.1", nan()])
def test_a_tube_that_no_fit_gives(value, file_of):
    path = file_of("regressor")
    change_manifest(path, lambda manifest: manifest["fitted"].update(epsilon_=value))
    with pytest.raises(ModelFileError, match="epsilon_ is"):
        tessella.load(path)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("gap", nan()),
        ("gap", -1.0),
        ("n_svm", 1.5),
        ("time", "late"),
        ("time", {"$type": "float", "text": "inf"}),
    ],
)
def test_histories_that_no_fit_gives(column, value, file_of):
    path = file_of("classifier")

    def change(manifest):
        manifest["fitted"]["history_"]["columns"][column][0] = value

    change_manifest(path, change)
    with pytest.raises(ModelFileError, match=r"history_ has records that no fit gives|damaged"):
        tessella.load(path)


@pytest.mark.parametrize("attribute", ["gap_", "fit_time_"])
def test_values_of_automatic_models(attribute, file_of):
    for value in ("text", nan(), -1.0):
        path = file_of("automatic")
        change_manifest(
            path, lambda manifest, value=value: manifest["fitted"].update({attribute: value})
        )
        with pytest.raises(ModelFileError, match=f"{attribute} is"):
            tessella.load(path)


@pytest.mark.parametrize("value", [1e308, {"$type": "float", "text": "inf"}, 0.0, nan()])
def test_a_deviation_that_no_target_has(value, file_of):
    path = file_of("automatic regressor")
    change_manifest(path, lambda manifest: manifest["fitted"].update(_deviation=value))
    with pytest.raises(ModelFileError, match="_deviation is"):
        tessella.load(path)


@pytest.mark.parametrize("share", [1e308, 0.0, 2.0])
def test_weights_of_members_sum_to_one(share, file_of):
    path = file_of("automatic regressor")

    def change(manifest):
        manifest["fitted"]["members_"][0]["params"]["share"] = share

    change_manifest(path, change)
    with pytest.raises(ModelFileError, match=r"sum to|fit together"):
        tessella.load(path)


@pytest.mark.parametrize("words", [1e308, "text", ["a"]])
def test_columns_of_numbers_have_no_categories(words, file_of):
    path = file_of("automatic regressor")

    def change(manifest):
        manifest["fitted"]["_reader"]["params"]["vocabularies"]["items"][1] = words

    change_manifest(path, change)
    with pytest.raises(ModelFileError, match="fit together"):
        tessella.load(path)


# ---- checkpoints


@pytest.fixture
def checkpoint(tmp_path):
    """The checkpoint of a fit that is not finished, and a function that continues the fit."""
    path = tmp_path / "fit.ckpt"
    model = LearnedKernelSVC(tol=1e-7, max_iter=3, checkpoint=path, n_jobs=1)
    with pytest.warns(UserWarning, match="gap"):
        model.fit(X, SIGN)

    def resume():
        return LearnedKernelSVC(tol=1e-7, checkpoint=path, n_jobs=1).fit(X, SIGN)

    return path, resume


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("block.0", lambda a: -a, "its problem cannot have"),
        ("block.0", lambda a: 2 * a, "its problem cannot have"),
        ("block.0", lambda a: a[:2, :2], "its problem cannot have"),
        ("block.0", first(np.nan), "do not fit together"),
        ("w", lambda a: a[:-1], "do not fit together"),
        ("w", lambda a: a[None], "do not fit together"),
        ("w", first(np.inf), "do not fit together"),
        ("history.gap", first(np.nan), "records that no fit gives"),
        ("history.n_svm", lambda a: a + 0.5, "records that no fit gives"),
        ("history.time", lambda a: -1 - a, "records that no fit gives"),
        ("history.time", lambda a: np.where(a == a[-1], np.inf, a), "records that no fit gives"),
    ],
)
def test_arrays_of_checkpoints_that_no_fit_gives(name, change, message, checkpoint):
    path, resume = checkpoint
    change_array(path, name, change)
    with pytest.raises(ValueError, match=message):
        resume()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("gap", "small"),
        ("gap", -1.0),
        ("seconds", "3"),
        ("finished", "no"),
        ("finished", 0),
        ("validation_scores", ["0.5"]),
        ("fingerprint", {"rows": 3}),
    ],
)
def test_values_of_checkpoints_that_no_fit_gives(name, value, checkpoint):
    path, resume = checkpoint
    change_manifest(path, lambda manifest: manifest.update({name: value}))
    with pytest.raises(ValueError, match="values that no fit gives"):
        resume()


def test_both_dual_vectors_too_short(checkpoint):
    path, resume = checkpoint
    for name in ("w", "w_bound"):
        change_array(path, name, lambda a: a[:-1])
    with pytest.raises(ValueError, match="its problem cannot have"):
        resume()


def test_a_dual_vector_whose_value_overflows(tmp_path):
    path = tmp_path / "ridge.ckpt"
    options = {"tol": 1e-7, "checkpoint": path, "n_jobs": 1}
    with pytest.warns(UserWarning, match="gap"):
        LearnedKernelRidge(max_iter=3, **options).fit(X, TARGET)
    change_array(path, "w", first(-1e300))
    with pytest.raises(ValueError, match="its problem cannot have"):
        LearnedKernelRidge(**options).fit(X, TARGET)


def test_an_honest_checkpoint_is_continued(checkpoint):
    _, resume = checkpoint
    model = resume()
    assert model.status_ == "optimal"
    assert len(model.history_) > 4


# ---- temporary files


@pytest.fixture
def orphans(tmp_path):
    """Names of temporary files that a writer would use, by the number of its process."""
    seen = []
    replace = os.replace

    def watched(source, target):
        seen.append(os.path.basename(source))
        replace(source, target)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "replace", watched)
        tessella.save(MODELS["classifier"](), tmp_path / "fit")
    (name,) = seen
    own = str(os.getpid())
    assert f"-{own}-" in name

    def make(target, process):
        path = tmp_path / name.replace(".fit.", f".{target}.").replace(f"-{own}-", f"-{process}-")
        path.write_bytes(b"half a file")
        return path

    return make


def dead_process():
    """Return the number of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_orphans_are_removed_at_the_next_save(orphans, tmp_path):
    dead = dead_process()
    ours = orphans("fit", dead)
    others = [
        orphans("fit.2", dead),  # of another file
        orphans("fit.2.3", dead),
        orphans("it", dead),
        orphans("fit", os.getppid()),  # of a process that runs
        tmp_path / ".fit.notes.tmp",  # of somebody else
        tmp_path / f".fit.{'0' * 32}.tmp",
    ]
    for path in others[-2:]:
        path.write_text("mine")
    tessella.save(MODELS["classifier"](), tmp_path / "fit")
    assert not ours.exists()
    assert all(path.exists() for path in others)


def test_an_earlier_process_of_the_same_number_leaves_orphans_too(orphans, tmp_path):
    left = orphans("fit", os.getpid())
    tessella.save(MODELS["classifier"](), tmp_path / "fit")
    assert not left.exists()


def test_checkpoints_remove_orphans_when_a_fit_begins(orphans, tmp_path):
    left, other = orphans("fit", dead_process()), orphans("fit.2", dead_process())
    (tmp_path / "fit").unlink()
    LearnedKernelSVC(checkpoint=tmp_path / "fit").fit(X, SIGN)
    assert not left.exists()
    assert other.exists()
