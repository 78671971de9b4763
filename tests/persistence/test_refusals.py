"""Model files: nothing wrong gets in."""

import hashlib
import io
import json
import pickle
import zipfile

import numpy as np
import pytest
from persistence.common import FEW, NEW, SIGN, X, members_of, same, sum_of_sets

import tessella
from tessella import LearnedKernelSVC, MultipleKernelSVC
from tessella.persistence import ModelFileError, read_info

# ---- refused to load


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
    rewrite(model_file, members_of(model_file), format_version=5, tessella_version="9.1")
    refused(model_file, r"written by Tessella 9\.1, format 5; this version reads up to 4: upgrade")


def test_older_format(model_file):
    rewrite(model_file, members_of(model_file), format_version=3, tessella_version="0.0")
    refused(model_file, r"written by Tessella 0\.0, format 3; .* formats from 4 on: .*fit again")


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
    manifest["fitted"]["kernel_"]["params"]["kernels"]["$type"] = "cosines"
    rewrite(model_file, members, fitted=manifest["fitted"])
    refused(model_file, "kernel family or type 'cosines' is unknown")


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
    refused(model_file, "has dtype object, which model files never contain")
    replace_array(model_file, name, pickle.dumps(Payload()))
    refused(model_file, "damaged")


def test_array_and_manifest_disagree(model_file):
    name = "arrays/intercept_.npy"
    for wrong in (np.zeros(2), np.zeros(1, np.float32), np.zeros(1, ">f8"), np.zeros((1, 1))):
        replace_array(model_file, name, npy(wrong))
        refused(model_file, "does not have the dtype and shape")
    replace_array(model_file, name, npy(np.zeros(1), version=(2, 0)))
    refused(model_file, r"version 1\.0")


@pytest.mark.parametrize(
    ("name", "wrong"), [("intercept_", np.zeros(2)), ("_sample_rows", np.zeros((40, 2)))]
)
def test_parts_that_do_not_fit_together(model_file, name, wrong):
    replace_array(model_file, f"arrays/{name}.npy", npy(wrong), shape=list(wrong.shape))
    with pytest.raises(ModelFileError, match="fit together"):
        tessella.load(model_file)


def weights_file(folder):
    """A model file with the weights of a dictionary and its scaling of the features."""
    model = MultipleKernelSVC(kernels=FEW).fit(X, SIGN)
    tessella.save(model, folder / "weights.tsl")
    return folder / "weights.tsl", "arrays/kernel_.{}.npy".format


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("parameter", np.full(4, 0.25)),
        ("parameter", np.full(3, 0.5)),
        ("parameter", np.array([1.5, -0.5, 0.0])),
        ("parameter", np.array([np.nan, 0.5, 0.5])),
        ("kernels.mean", np.zeros(2)),
        ("kernels.scale", np.ones(5)),
    ],
    ids=str,
)
def test_weights_that_do_not_fit_their_dictionary(name, wrong, tmp_path):
    path, member = weights_file(tmp_path)
    replace_array(path, member(name), npy(wrong), shape=list(wrong.shape))
    with pytest.raises(ModelFileError, match="fit together"):
        tessella.load(path)


@pytest.mark.parametrize("count", [1, 3])
def test_blocks_that_do_not_fit_their_sum(count, tmp_path):
    path = tmp_path / "sum.tsl"
    tessella.save(LearnedKernelSVC(kernels=sum_of_sets()).fit(X, SIGN), path)
    members = members_of(path)
    fitted = json.loads(members["manifest.json"])["fitted"]
    blocks = fitted["kernel_"]["params"]["parameter"]
    assert blocks["$type"] == "blocks"
    blocks["items"] = (blocks["items"] * 2)[:count]
    rewrite(path, members, fitted=fitted)
    with pytest.raises(ModelFileError, match="fit together"):
        tessella.load(path)


@pytest.mark.parametrize(
    ("dtype", "shape"),
    [("<f8", (10**12,)), ("<f8", (-1,)), ("<U0", (10**15,)), ("<f8", (2**62, 8))],
)
def test_absurd_shapes_are_never_allocated(dtype, shape, model_file):
    header = str({"descr": dtype, "fortran_order": False, "shape": shape}).encode()
    data = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header
    replace_array(model_file, "arrays/intercept_.npy", data, dtype=dtype, shape=list(shape))
    refused(model_file, "size|dtype|damaged")


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
    refused(model_file, "larger than the file")
