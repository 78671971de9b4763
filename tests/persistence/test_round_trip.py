"""Model files: everything comes back, and a failed save loses nothing."""

import os
import subprocess
import sys
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from persistence.common import FEW, NEW, SIGN, TARGET, X, round_trip, same, sum_of_sets
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge

import tessella
import tessella.persistence as persistence
from tessella import (
    IntegralKernels,
    KernelDictionary,
    LearnedKernelSVC,
    LearnedKernelSVR,
    MultipleKernelSVC,
    PolynomialKernels,
    TessellatedKernels,
)
from tessella.kernels import FunctionKernel, GaussianKernels, KernelSet, LaplaceKernels
from tessella.persistence import ModelFileError, read_info, register_kernel_set

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
        TessellatedKernels(delta=(0.1, 0.5, 2.0)),
        "laplace",
        "matern",
        GaussianKernels(width=0.3) + LaplaceKernels().on_features([1]),
        PolynomialKernels(degree=3),
        TessellatedKernels().on_features([2, 0]),
        KernelDictionary(list(FEW)),
        KernelDictionary.standard((1.0,), (2,), normalisation="cosine"),
        KernelDictionary(FEW, normalisation=None, standardise=False),
        sum_of_sets() + PolynomialKernels(2).on_features([1]),
    ],
    ids=repr,
)
def test_kernel_sets(kernels, tmp_path):
    again = round_trip(
        LearnedKernelSVC(kernels=kernels, max_iter=5, tol=10.0).fit(X, SIGN), tmp_path
    )
    assert type(again.kernels) is type(kernels)
    info = read_info(tmp_path / "model.tsl")
    assert info["kernel_set"]["family"] == again.kernel_.kernels.family
    assert (
        info["kernel_set"]["params"].keys() == again.kernel_.kernels.get_params(deep=False).keys()
    )


@pytest.mark.parametrize("scaling", ["range", "quantile", "robust"])
def test_scaling(scaling, tmp_path):
    skewed = np.exp(3.0 * X)
    model = LearnedKernelSVR(scaling=scaling, feature_scale=[1.0, 0.5, 0.1], epsilon="auto")
    again = round_trip(model.fit(skewed, TARGET), tmp_path)
    assert again.kernel_.box == model.kernel_.box
    assert again.epsilon_ == model.epsilon_
    assert again.kernel_.box.clips is (scaling != "range")


@pytest.mark.parametrize("weighting", ["learned", "simple", "average", "alignment", "performance"])
@pytest.mark.parametrize("kernels", ["standard", list(FEW), KernelDictionary(FEW)], ids=type)
def test_multiple_kernels(weighting, kernels, tmp_path):
    again = round_trip(MultipleKernelSVC(2.0, kernels, weighting=weighting).fit(X, SIGN), tmp_path)
    assert again.weights_ is again.kernel_.parameter
    assert again.weights_ is again.parameter_
    assert read_info(tmp_path / "model.tsl")["estimator"] == "MultipleKernelSVC"


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


def laplacian(a, b):
    return np.exp(-np.abs(a[:, None] - b[None]).sum(axis=2))


class Stationary:
    def __call__(self, a, b):
        return laplacian(a, b)


@pytest.mark.parametrize(
    ("kernel", "what"),
    [
        (laplacian, "the function laplacian"),
        (Stationary(), "an object of class Stationary defined by Python code"),
        (FunctionKernel(laplacian), "an object of class FunctionKernel defined by Python code"),
    ],
    ids=["function", "object", "wrapped"],
)
def test_functions_of_a_dictionary_are_not_data(kernel, what, tmp_path):
    message = rf"'kernels\.3' is {what} and cannot.*use pickle or joblib"
    model = MultipleKernelSVC(kernels=[*FEW, kernel]).fit(X, SIGN)
    with pytest.raises(ModelFileError, match=message):
        tessella.save(model, tmp_path / "model.tsl")
    message = message.replace("kernels", r"kernels\.parts\.1\.kernels", 1)
    kernels = TessellatedKernels() + KernelDictionary([*FEW, kernel])
    with pytest.raises(ModelFileError, match=message):
        tessella.save(LearnedKernelSVC(kernels=kernels).fit(X, SIGN), tmp_path / "model.tsl")
    assert not any(tmp_path.iterdir())


# ---- kernel sets of other authors


@dataclass
class Shifted(PolynomialKernels):
    """A family of somebody else, with an array as one of its settings."""

    weights: np.ndarray = field(default_factory=lambda: np.arange(3.0))
    note: tuple = ("a", 1)
    derived: float = field(init=False, default=0.0)

    family: ClassVar[str | None] = "shifted"


@pytest.fixture
def registered(monkeypatch):
    """The tables as they were, after the test."""
    for name in ("_CLASSES", "_TAGS"):
        monkeypatch.setattr(persistence._types, name, dict(getattr(persistence._types, name)))


@pytest.mark.parametrize("together", [False, True], ids=["alone", "in a sum"])
def test_registered_kernel_sets_are_data(together, registered, tmp_path):
    kernels = Shifted(2) + TessellatedKernels() if together else Shifted(2)
    model = LearnedKernelSVC(kernels=kernels).fit(X, SIGN)
    with pytest.raises(ModelFileError, match=r"Shifted.*not registered by register_kernel_set"):
        tessella.save(model, tmp_path / "model.tsl")
    assert register_kernel_set(Shifted) is Shifted
    tessella.save(model, tmp_path / "model.tsl")
    again = tessella.load(tmp_path / "model.tsl")
    assert same(again.decision_function(NEW), model.decision_function(NEW))
    found = again.kernels.parts[0] if together else again.kernels
    assert type(found) is Shifted
    assert same(found.weights, np.arange(3.0))
    assert found.note == ("a", 1)
    info = read_info(tmp_path / "model.tsl")
    assert info["kernel_set"]["family"] == ("sum" if together else "shifted")
    register_kernel_set(Shifted)  # twice is once


def test_a_kernel_set_that_is_not_registered_is_named(registered, tmp_path):
    tessella.save(
        LearnedKernelSVC(kernels=register_kernel_set(Shifted)(2)).fit(X, SIGN), tmp_path / "m.tsl"
    )
    del persistence._types._CLASSES["shifted"]
    with pytest.raises(ModelFileError, match=r"'shifted' is unknown.*register_kernel_set"):
        tessella.load(tmp_path / "m.tsl")


class NoDataclass(KernelSet):
    family = "no dataclass"


@pytest.mark.parametrize(
    ("cls", "error", "message"),
    [
        (int, TypeError, "subclass of tessella.kernels.KernelSet"),
        (Shifted(), TypeError, "subclass of tessella.kernels.KernelSet"),
        (NoDataclass, TypeError, "NoDataclass must be a dataclass"),
        (IntegralKernels, ValueError, "IntegralKernels must define family"),
        (type("Heir", (Shifted,), {}), ValueError, "Heir must define family"),
        (type("Copy", (Shifted,), {"family": "sum"}), ValueError, "in use by .*KernelSum"),
        (type("Copy", (Shifted,), {"family": "box"}), ValueError, "in use by .*UnitBox"),
        (type("Copy", (Shifted,), {"family": "array"}), ValueError, "in use by the format"),
    ],
    ids=str,
)
def test_what_cannot_be_registered(cls, error, message, registered):
    with pytest.raises(error, match=message):
        register_kernel_set(cls)


# ---- other things that are not data


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
