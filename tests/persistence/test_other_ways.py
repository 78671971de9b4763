"""pickle, joblib, skops and the method: a model comes back and predicts the same bits."""

from __future__ import annotations

import inspect
import io
import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn.metrics.pairwise
import skops.io
from persistence.common import FEW, NEW, SIGN, TARGET, X, same, scores, sum_of_sets

import tessella
from tessella import (
    KernelDictionary,
    KernelFeatures,
    LearnedKernelRidge,
    LearnedKernelRidgeClassifier,
    LearnedKernelSVC,
    LearnedKernelSVR,
    MultipleKernelSVC,
    MultipleKernelSVR,
    PolynomialKernels,
    TessellatedKernels,
)
from tessella.persistence import SKOPS_TRUSTED, read_info

THREE = np.array(["a", "b", "c"])[np.digitize(X[:, 0] + X[:, 1], [-0.5, 0.5])]
MODELS = {
    "classification": lambda: LearnedKernelSVC(class_weight={"a": 2.0, "b": 1.0}).fit(
        X, np.where(SIGN, "a", "b")
    ),
    "regression": lambda: LearnedKernelSVR(tol=np.float64(1e-2)).fit(X, TARGET),
    "balanced": lambda: LearnedKernelSVR(kernels=TessellatedKernels(balance="unit")).fit(X, TARGET),
    "polynomial": lambda: LearnedKernelSVC(kernels="polynomial", degree=2).fit(X, SIGN),
    "named": lambda: LearnedKernelSVR().fit(pd.DataFrame(X, columns=list("abc")), TARGET),
    "weights": lambda: MultipleKernelSVC().fit(X, SIGN),
    "weights by a rule": lambda: MultipleKernelSVR(3.0, FEW, weighting="alignment").fit(X, TARGET),
    "weights of pairs": lambda: MultipleKernelSVC(kernels=FEW, multi_class="separate").fit(
        X, THREE
    ),
    "dictionary": lambda: LearnedKernelSVR(
        kernels=KernelDictionary(FEW, normalisation="cosine", standardise=False)
    ).fit(X, TARGET),
    "sum": lambda: LearnedKernelSVC(
        kernels=sum_of_sets() + PolynomialKernels(1).on_features([2, 0])
    ).fit(X, SIGN),
    "ridge": lambda: LearnedKernelRidge(kernels=TessellatedKernels(floor=0.1)).fit(
        X, TARGET, sample_weight=np.arange(40) % 3
    ),
    "ridge classes": lambda: LearnedKernelRidgeClassifier(class_weight="balanced").fit(X, THREE),
    "ridge on a dictionary with a floor": lambda: LearnedKernelRidgeClassifier(
        kernels=KernelDictionary(FEW).with_floor(0.2)
    ).fit(X, SIGN),
    "sum of pairs": lambda: LearnedKernelSVC(kernels=sum_of_sets(), multi_class="separate").fit(
        X, THREE
    ),
}


@pytest.fixture(params=MODELS, scope="module")
def model(request):
    return MODELS[request.param]()


def by_pickle(model, folder):
    return pickle.loads(pickle.dumps(model))


def by_joblib(model, folder):
    joblib.dump(model, folder / "model.joblib", compress=3)
    return joblib.load(folder / "model.joblib")


def by_memory_map(model, folder):
    """As in the workers of a parallel search: the arrays are read-only."""
    joblib.dump(model, folder / "model.joblib")
    return joblib.load(folder / "model.joblib", mmap_mode="r")


def by_skops(model, folder):
    skops.io.dump(model, folder / "model.skops")
    return skops.io.load(folder / "model.skops", trusted=SKOPS_TRUSTED)


def by_model_file(model, folder):
    model.save(folder / "model.tsl")
    return tessella.load(folder / "model.tsl")


def kernels_of(model):
    return model.kernel_ if isinstance(model.kernel_, list) else [model.kernel_]


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.parametrize(
    "keep", [by_pickle, by_joblib, by_memory_map, by_skops, by_model_file], ids=lambda f: f.__name__
)
def test_same_bits(model, keep, tmp_path):
    again = keep(model, tmp_path)
    assert type(again) is type(model)
    assert again.get_params() == model.get_params()
    assert same(scores(again), scores(model))
    assert same(again.predict(NEW), model.predict(NEW))
    assert same(again.feature_relevance_, model.feature_relevance_)
    assert same(again.count_outside(NEW).per_feature, model.count_outside(NEW).per_feature)
    assert again.history_ == model.history_
    for name in vars(model).keys() & {"feature_names_in_", "classes_"}:
        assert same(getattr(again, name), getattr(model, name))
    assert again.kernel_ == model.kernel_
    pairs = zip(kernels_of(model), kernels_of(again), strict=True)
    for kernel, other in pairs:  # the kernel is usable on its own
        np.testing.assert_array_equal(kernel(NEW, X), other(NEW, X))


# ---- the method


def test_method_is_the_function(tmp_path):
    model = MODELS["classification"]()
    model.save(tmp_path / "method.tsl", metadata={"target": "y"})
    tessella.save(model, tmp_path / "function.tsl", metadata={"target": "y"})
    method, function = ((tmp_path / f"{name}.tsl").read_bytes() for name in ("method", "function"))
    assert method == function
    assert read_info(tmp_path / "method.tsl")["metadata"] == {"target": "y"}


def test_relevance_that_was_computed_is_stored(tmp_path):
    model = MODELS["regression"]()
    pairs = model.interaction_relevance_
    model.save(tmp_path / "model.tsl")
    again = tessella.load(tmp_path / "model.tsl")
    assert same(vars(again)["interaction_relevance_"], pairs)


# ---- skops


def test_skops_finds_no_types_but_ours(model):
    found = skops.io.get_untrusted_types(data=skops.io.dumps(model))
    assert set(found) <= set(SKOPS_TRUSTED)
    with pytest.raises(skops.io.exceptions.UntrustedTypesFoundException):
        skops.io.loads(skops.io.dumps(model))


def test_skops_keeps_kernel_features():
    features = KernelFeatures(MODELS["regression"]().kernel_, n_components=8, random_state=0).fit(X)
    again = skops.io.loads(skops.io.dumps(features), trusted=SKOPS_TRUSTED)
    assert same(again.transform(NEW), features.transform(NEW))


def test_skops_keeps_kernels_made_of_code():
    kernels = [sklearn.metrics.pairwise.laplacian_kernel, *FEW]
    model = MultipleKernelSVC(kernels=kernels).fit(X, SIGN)
    data = skops.io.dumps(model)
    function = "sklearn.metrics.pairwise.laplacian_kernel"
    assert set(skops.io.get_untrusted_types(data=data)) <= {*SKOPS_TRUSTED, function}
    again = skops.io.loads(data, trusted=[*SKOPS_TRUSTED, function])
    assert same(scores(again), scores(model))


def test_types_we_ask_to_trust_are_plain_data():
    for path in SKOPS_TRUSTED:
        module, name = path.rsplit(".", 1)
        cls = getattr(__import__(module, fromlist=[name]), name)
        # Nothing of ours runs when an instance is made from its attributes.
        own = [c for c in cls.__mro__ if c.__module__.startswith("tessella")]
        special = {"__setstate__", "__new__", "__reduce__", "__reduce_ex__", "__setattr__"}
        frozen = {"__setattr__"} if getattr(cls, "__dataclass_params__", None) else set()
        assert not any(vars(c).keys() & (special - frozen) for c in own), path


def test_pickle_needs_no_closure():
    """A model that is pickled by reference to its classes only."""
    seen = []

    class Watching(pickle.Pickler):
        def persistent_id(self, value):
            return seen.append(value) if inspect.isfunction(value) else None

    Watching(io.BytesIO()).dump(MODELS["regression"]())
    assert not seen
