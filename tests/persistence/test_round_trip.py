"""Model files: everything comes back, and a failed save loses nothing."""

import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from persistence.common import NEW, SIGN, TARGET, X, round_trip, same
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
        TessellatedKernels(monomials="xz", balance="pointwise"),
        TessellatedKernels(balance="unit"),
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
    assert TARGET.std() > 10
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
    with pytest.raises(FileNotFoundError, match=r"The folder does not exist: '.*missing'"):
        tessella.save(classifier, tmp_path / "missing" / "model.tsl")


def test_save_follows_a_link(classifier, model_file, tmp_path):
    link = tmp_path / "link.tsl"
    link.symlink_to(model_file)
    tessella.save(classifier, link)
    assert link.is_symlink()
    tessella.load(link)
