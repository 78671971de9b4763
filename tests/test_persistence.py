"""Model files: everything comes back, and nothing wrong gets in."""

import hashlib
import io
import json
import os
import pickle
import subprocess
import sys
import zipfile

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge

import tessella
from tessella import (
    IntegralKernels,
    LearnedKernelSVC,
    LearnedKernelSVR,
    PolynomialKernels,
    TessellatedKernels,
)
from tessella.persistence import ModelFileError, read_info

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
SIGN = X[:, 0] * X[:, 1] > 0
TARGET = 1000.0 + 50.0 * np.sin(2 * X[:, 0]) + X[:, 1]
NEW = RNG.normal(size=(25, 3))


def same(a, b):
    """Equal to the last bit and of the same type, whatever a fitted attribute may be."""
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and np.array_equal(a, b)
    if isinstance(a, tessella.LearnedKernel):
        return a.kernels == b.kernels and same(a.P, b.P) and same(vars(a.box), vars(b.box))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    return type(a) is type(b) and a == b


def scores(model, rows=NEW):
    return model.decision_function(rows) if hasattr(model, "classes_") else model.predict(rows)


def round_trip(model, folder, rows=NEW):
    tessella.save(model, folder / "model.tsl")
    again = tessella.load(folder / "model.tsl")
    assert type(again) is type(model)
    assert again.get_params() == model.get_params()
    for name in vars(model).keys() - model.get_params(deep=False).keys():
        assert same(getattr(model, name), getattr(again, name)), name
    assert vars(again).keys() == vars(model).keys()
    assert same(scores(model, rows), scores(again, rows))
    assert same(model.predict(rows), again.predict(rows))
    return again


@pytest.fixture(scope="module")
def classifier():
    return LearnedKernelSVC(C=2.0).fit(X, np.where(SIGN, "yes", "no"))


@pytest.fixture
def model_file(classifier, tmp_path):
    path = tmp_path / "model.tsl"
    tessella.save(classifier, path)
    return path


# ---- round trips


@pytest.mark.parametrize(
    "labels",
    [
        np.where(SIGN, "yes", "no"),
        np.where(SIGN, "ünïcode", "no").astype(object),
        SIGN.astype(int) + 3,
        SIGN,
        SIGN.astype(np.int8),
        SIGN.astype(float),
    ],
    ids=["text", "object", "int", "bool", "int8", "float"],
)
def test_labels(labels, tmp_path):
    round_trip(LearnedKernelSVC().fit(X, labels), tmp_path)


@pytest.mark.parametrize(
    "weights", ["balanced", {3: 1.0, 4: 2}, {np.int64(3): np.float64(0.5)}, {}], ids=repr
)
def test_class_weight(weights, tmp_path):
    again = round_trip(LearnedKernelSVC(class_weight=weights).fit(X, SIGN + 3), tmp_path)
    assert again.class_weight == weights
    again.fit(X, SIGN + 3)


def test_class_weight_with_text_keys(tmp_path):
    model = LearnedKernelSVC(class_weight={"yes": 2.0, "no": 1.0})
    round_trip(model.fit(X, np.where(SIGN, "yes", "no")), tmp_path)


@pytest.mark.parametrize(
    "kernels",
    [
        "polynomial",
        TessellatedKernels(degree=0, delta=np.float64(0.25), out_of_box="clip"),
        TessellatedKernels(monomials="xz"),
        PolynomialKernels(degree=3),
    ],
    ids=repr,
)
def test_kernel_sets(kernels, tmp_path):
    again = round_trip(
        LearnedKernelSVC(kernels=kernels, max_iter=5, tol=10.0).fit(X, SIGN), tmp_path
    )
    assert type(again.kernels) is type(kernels)


def test_regression_keeps_its_units_and_warm_start(tmp_path):
    model = LearnedKernelSVR(epsilon=0.05, warm_start=True, n_jobs=1).fit(X, TARGET)
    assert model._target_scale > 10
    again = round_trip(model, tmp_path)
    assert again.P_ is again.kernel_.P
    assert isinstance(again.history_[0], type(model.history_[0]))
    assert same(model.fit(X, TARGET).predict(NEW), again.fit(X, TARGET).predict(NEW))


def test_feature_names(tmp_path):
    names = ["a", "b β", "c"]
    frame, new = pd.DataFrame(X, columns=names), pd.DataFrame(NEW, columns=names)
    again = round_trip(LearnedKernelSVR().fit(frame, TARGET), tmp_path, new)
    assert again.feature_names_in_.tolist() == names
    with pytest.raises(ValueError, match="feature names"):
        again.predict(new.rename(columns={"a": "z"}))


def test_no_support_vectors(tmp_path):
    model = LearnedKernelSVR(epsilon=100.0).fit(X, TARGET)
    assert not len(model.support_)
    round_trip(model, tmp_path)


def test_unusual_fitted_attributes_come_along(tmp_path):
    model = LearnedKernelSVR().fit(X, TARGET)
    model.gap_ = float("inf")
    model.lower_bound_ = -np.inf
    model.extra_ = np.asfortranarray(X[:4])
    model.names_ = ("a", 1, None, [True, 2.5], {"k": np.arange(3)})
    tessella.save(model, tmp_path / "model.tsl")
    again = tessella.load(tmp_path / "model.tsl")
    assert again.gap_ == np.inf
    assert again.lower_bound_ == -np.inf
    assert again.extra_.flags.f_contiguous
    assert same(again.extra_, model.extra_)
    assert again.names_[:4] == model.names_[:4]
    assert same(again.names_[4], model.names_[4])


def test_loaded_arrays_are_ordinary(classifier, tmp_path):
    again = round_trip(classifier, tmp_path)
    for array in (again.P_, again.support_vectors_, again.dual_coef_):
        assert array.flags.writeable
        assert array.flags.aligned


def test_fresh_process_predicts_the_same_bits(classifier, model_file, tmp_path):
    np.save(tmp_path / "new.npy", NEW)
    program = (
        "import sys, numpy as np, tessella\n"
        "model = tessella.load(sys.argv[1])\n"
        "np.save(sys.argv[3], model.decision_function(np.load(sys.argv[2])))\n"
    )
    arguments = [model_file, tmp_path / "new.npy", tmp_path / "scores.npy"]
    subprocess.run([sys.executable, "-c", program, *map(str, arguments)], check=True)
    assert same(np.load(tmp_path / "scores.npy"), classifier.decision_function(NEW))


def test_info(classifier, tmp_path):
    metadata = {"target": "y", "nested": [1, None, {"a": 0.5}]}
    tessella.save(classifier, tmp_path / "model.tsl", metadata=metadata)
    info = read_info(tmp_path / "model.tsl")
    assert info["metadata"] == metadata
    assert info["estimator"] == "LearnedKernelSVC"
    assert info["tessella_version"] == tessella.__version__
    assert info["kernel_set"]["family"] == "tessellated"
    assert info["classes"] == ["no", "yes"]
    assert info["feature_names"] is None
    assert info["params"]["C"] == 2.0
    assert info["fitted"]["gap_"] == classifier.gap_
    assert info["fitted"]["_n_rows"] == 40


def test_same_model_same_bytes(classifier, model_file, tmp_path):
    tessella.save(classifier, tmp_path / "other.tsl")
    assert (tmp_path / "other.tsl").read_bytes() == model_file.read_bytes()


# ---- refused to save


def waves(z, rows):
    return np.cos(z @ rows.T)[:, :, None]


def test_code_is_not_data(tmp_path):
    kernels = IntegralKernels(waves, lower=[-1.0] * 3, upper=[1.0] * 3, nodes=8)
    model = LearnedKernelSVC(kernels=kernels, max_iter=2, tol=10.0).fit(X, SIGN)
    with pytest.raises(ModelFileError, match=r"'kernels' is .*IntegralKernels.*pickle or joblib"):
        tessella.save(model, tmp_path / "model.tsl")
    assert not any(tmp_path.iterdir())


class MyKernels(TessellatedKernels):
    pass


class MyClassifier(LearnedKernelSVC):
    pass


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kernels": MyKernels()}, "'kernels' is .*MyKernels"),
        ({"extra_": object()}, "'extra_' is an object of class object"),
        ({"extra_": np.arange(3, dtype=np.longdouble)}, "'extra_' is an array of dtype"),
        ({"extra_": np.array(["2020-01-01"], "M8[D]")}, r"dtype datetime64\[D\]"),
        ({"extra_": np.ma.masked_array([1.0], [True])}, "MaskedArray"),
        ({"extra_": [1, {"k": {2}}]}, r"'extra_\.1\..*' is an object of class set"),
        ({"classes_": np.array([1, "a"], dtype=object)}, "'classes_' is an object array .* int"),
        ({"classes_": np.array([None, "a"], dtype=object)}, "object array .* NoneType"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_not_data_is_named(change, message, tmp_path):
    model = LearnedKernelSVC(max_iter=1, tol=10.0).fit(X, SIGN)
    vars(model).update(change)
    with pytest.raises(ModelFileError, match=message):
        tessella.save(model, tmp_path / "model.tsl")
    assert not any(tmp_path.iterdir())


def test_other_estimators_are_refused(tmp_path):
    for model in (Ridge().fit(X, TARGET), MyClassifier().fit(X, SIGN), None):
        with pytest.raises(ModelFileError, match="cannot be stored in a model file"):
            tessella.save(model, tmp_path / "model.tsl")


def test_unfitted(tmp_path):
    with pytest.raises(NotFittedError):
        tessella.save(LearnedKernelSVC(), tmp_path / "model.tsl")
    half = LearnedKernelSVC()
    with pytest.raises(ValueError, match="one class"):
        half.fit(X, np.ones(len(X)))
    with pytest.raises(NotFittedError):
        tessella.save(half, tmp_path / "model.tsl")


@pytest.mark.parametrize(
    "metadata", [{1: "a"}, {"a": (1,)}, {"a": np.ones(2)}, {"a": float("nan")}, [1]], ids=repr
)
def test_metadata_must_survive_json(classifier, metadata, tmp_path):
    with pytest.raises(ModelFileError, match="metadata"):
        tessella.save(classifier, tmp_path / "model.tsl", metadata=metadata)


@pytest.mark.parametrize(
    "broken", [(os, "replace"), (os, "fsync"), (np.lib.format, "write_array")], ids=lambda b: b[1]
)
def test_failed_save_keeps_the_old_model(classifier, model_file, monkeypatch, broken):
    before = model_file.read_bytes()

    def fail(*args, **kwargs):
        raise OSError("disk full")

    monkeypatch.setattr(*broken, fail)
    with pytest.raises(OSError, match="disk full"):
        tessella.save(LearnedKernelSVR().fit(X, TARGET), model_file)
    assert model_file.read_bytes() == before
    assert list(model_file.parent.iterdir()) == [model_file]


def test_save_over_a_directory_or_into_a_missing_one(classifier, tmp_path):
    with pytest.raises(ModelFileError, match="not a regular file"):
        tessella.save(classifier, tmp_path)
    with pytest.raises(FileNotFoundError):
        tessella.save(classifier, tmp_path / "missing" / "model.tsl")


def test_save_follows_a_link(classifier, model_file, tmp_path):
    link = tmp_path / "link.tsl"
    link.symlink_to(model_file)
    tessella.save(classifier, link)
    assert link.is_symlink()
    tessella.load(link)


# ---- refused to load


def members_of(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def rewrite(path, members, **changes):
    """Write members again, with the manifest changed and its digest made right."""
    manifest = json.loads(members["manifest.json"])
    manifest.update(changes)
    text = json.dumps(manifest).encode()
    members["manifest.json"] = text
    members["manifest.sha256"] = hashlib.sha256(text).hexdigest().encode()
    write(path, members)


def write(path, members, compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, data in members.items():
            archive.writestr(name, data)


def replace_array(path, name, data, **spec):
    """Put another member in the place of an array, with the checksum that belongs to it."""
    members = members_of(path)
    members[name] = data
    arrays = json.loads(members["manifest.json"])["arrays"]
    arrays[name].update(sha256=hashlib.sha256(data).hexdigest(), **spec)
    rewrite(path, members, arrays=arrays)


def npy(array, **options):
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, array, **options)
    return buffer.getvalue()


def refused(path, message):
    for read in (tessella.load, read_info):
        with pytest.raises(ModelFileError, match=message) as caught:
            read(path)
        text = str(caught.value)
        assert "\n" not in text
        assert path.name in text
        assert text.endswith(".")


def test_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        tessella.load(tmp_path / "missing.tsl")


@pytest.mark.parametrize("content", [b"", b"x", b"a,b\n1,2\n" * 100, pickle.dumps([1])])
def test_foreign_file(content, tmp_path):
    path = tmp_path / "model.tsl"
    path.write_bytes(content)
    refused(path, "not a Tessella model file")


def test_foreign_archive(tmp_path):
    path = tmp_path / "model.tsl"
    with open(path, "wb") as file:
        np.savez_compressed(file, a=np.ones(3))
    refused(path, r"no manifest\.json")
    write(path, {"manifest.json": b'{"format": "something else"}'})
    refused(path, "not a Tessella model file")


def test_truncated(model_file):
    whole = model_file.read_bytes()
    lengths = {4, 5, 100, len(whole) // 2, len(whole) - 23, len(whole) - 1}
    for length in lengths:
        model_file.write_bytes(whole[:length])
        refused(model_file, "truncated|damaged")


def test_a_flipped_bit_never_changes_a_prediction(classifier, model_file):
    whole = model_file.read_bytes()
    expected = classifier.decision_function(NEW)
    rng = np.random.default_rng(1)
    caught = 0
    positions = rng.choice(len(whole), 300, replace=False)
    for position in [*positions, *range(len(whole) - 40, len(whole))]:
        changed = bytearray(whole)
        changed[position] ^= 1 << int(rng.integers(8))
        model_file.write_bytes(changed)
        try:
            model = tessella.load(model_file)
        except ModelFileError:
            caught += 1
        else:
            assert same(model.decision_function(NEW), expected), position
            assert same(model.predict(NEW), classifier.predict(NEW)), position
    assert caught > 200


def test_edited_manifest(model_file):
    members = members_of(model_file)
    members["manifest.json"] = members["manifest.json"].replace(b'"C": 2.0', b'"C": 3.0')
    write(model_file, members)
    refused(model_file, r"checksum of manifest\.json is wrong")


def test_edited_array(model_file):
    members = members_of(model_file)
    name = "arrays/dual_coef_.npy"
    members[name] = members[name][:-8] + np.float64(7.0).tobytes()
    write(model_file, members)
    refused(model_file, r"checksum of arrays/dual_coef_\.npy is wrong")


def test_newer_format(model_file):
    rewrite(model_file, members_of(model_file), format_version=2, tessella_version="9.1")
    refused(model_file, r"written by Tessella 9\.1, format 2; this version reads up to 1: upgrade")


def test_newer_format_without_our_members(model_file):
    manifest = {"format": "tessella-model", "format_version": 7, "tessella_version": "9.1"}
    write(model_file, {"manifest.json": json.dumps(manifest), "blob": b""})
    refused(model_file, "format 7")


@pytest.mark.parametrize("version", [0, -1, True, "1", None, 1.5])
def test_versions_that_do_not_exist(version, model_file):
    rewrite(model_file, members_of(model_file), format_version=version)
    refused(model_file, "does not exist")


def test_unknown_names(model_file):
    members = members_of(model_file)
    manifest = json.loads(members["manifest.json"])
    rewrite(model_file, dict(members), estimator="os.system")
    with pytest.raises(ModelFileError, match=r"estimator 'os\.system' is unknown"):
        tessella.load(model_file)
    manifest["fitted"]["kernel_"]["params"]["kernels"]["$type"] = "gaussian"
    rewrite(model_file, members, fitted=manifest["fitted"])
    refused(model_file, "kernel family or type 'gaussian' is unknown")


@pytest.mark.parametrize("name", ["predict", "C", "__class__", "_scores"])
def test_fitted_attributes_cannot_replace_methods(name, model_file):
    members = members_of(model_file)
    fitted = json.loads(members["manifest.json"])["fitted"]
    rewrite(model_file, members, fitted={**fitted, name: 1})
    with pytest.raises(ModelFileError, match="not a fitted attribute"):
        tessella.load(model_file)


@pytest.mark.parametrize("field", ["params", "fitted", "arrays"])
@pytest.mark.parametrize("value", [None, [], {"a": {}}, {"a": {"$type": "array", "member": "b"}}])
def test_nonsense_in_the_manifest(field, value, model_file):
    rewrite(model_file, members_of(model_file), **{field: value})
    refused(model_file, "damaged|missing|belong")


@pytest.mark.parametrize("name", ["manifest.sha256", "arrays/support_vectors_.npy"])
def test_missing_member(name, model_file):
    members = members_of(model_file)
    del members[name]
    write(model_file, members)
    refused(model_file, f"the member {name} is missing")


def test_members_that_do_not_belong(model_file):
    members = members_of(model_file)
    write(model_file, {**members, "arrays/evil.npy": b"x"})
    refused(model_file, r"arrays/evil\.npy does not belong")
    write(model_file, members)
    with zipfile.ZipFile(model_file, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("manifest.json", members["manifest.json"])
    refused(model_file, "same name")


class Payload:
    def __reduce__(self):
        return (pytest.fail, ("code of a model file was run",))


def test_pickle_is_refused(model_file):
    name = "arrays/intercept_.npy"
    data = npy(np.array([Payload()], dtype=object))
    replace_array(model_file, name, data, dtype="|O", shape=[1])
    refused(model_file, "has dtype object, which model files never hold")
    replace_array(model_file, name, pickle.dumps(Payload()))
    refused(model_file, "damaged")


def test_array_and_manifest_disagree(model_file):
    name = "arrays/intercept_.npy"
    for wrong in (np.zeros(2), np.zeros(1, np.float32), np.zeros(1, ">f8"), np.zeros((1, 1))):
        replace_array(model_file, name, npy(wrong))
        refused(model_file, "not of the dtype and shape")
    replace_array(model_file, name, npy(np.zeros(1), version=(2, 0)))
    refused(model_file, r"version 1\.0")


def test_parts_that_do_not_fit_together(model_file):
    replace_array(model_file, "arrays/intercept_.npy", npy(np.zeros(2)), shape=[2])
    with pytest.raises(ModelFileError, match="fit together"):
        tessella.load(model_file)


@pytest.mark.parametrize(
    ("dtype", "shape"),
    [("<f8", (10**12,)), ("<f8", (-1,)), ("<U0", (10**15,)), ("<f8", (2**62, 8))],
)
def test_absurd_shapes_are_never_allocated(dtype, shape, model_file):
    header = str({"descr": dtype, "fortran_order": False, "shape": shape}).encode()
    data = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header
    replace_array(model_file, "arrays/intercept_.npy", data, dtype=dtype, shape=list(shape))
    refused(model_file, "bytes|dtype|damaged")


def test_compressed_members_are_refused(model_file):
    members = members_of(model_file)
    members["manifest.json"] += b" " * 10**6
    write(model_file, members, zipfile.ZIP_DEFLATED)
    refused(model_file, "is compressed")


def test_sizes_beyond_the_file_are_refused(model_file):
    whole = bytearray(model_file.read_bytes())
    entry = whole.index(b"PK\x01\x02")
    whole[entry + 20 : entry + 28] = (2**31).to_bytes(4, "little") * 2
    model_file.write_bytes(whole)
    refused(model_file, "claim more bytes")
