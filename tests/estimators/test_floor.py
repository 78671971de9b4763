"""A floor under the parameter of the kernel, in the estimators."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from estimators.conftest import FEW, blocks_of, raw_scores
from sklearn.base import clone
from sklearn.svm import SVC

from tessella import KernelDictionary, LearnedKernelSVC, TessellatedKernels, load
from tessella.kernels import LearnedKernel

KERNELS = {
    "matrix": TessellatedKernels(floor=0.3),
    "weights": KernelDictionary(FEW).with_floor(0.3),
    "sum": TessellatedKernels(floor=0.3) + KernelDictionary(FEW).with_floor(0.3),
    "floor of a sum": (TessellatedKernels() + KernelDictionary(FEW)).with_floor(0.3),
    "on features": TessellatedKernels(floor=0.3).on_features([0, 1]),
}


def lowest_share(block):
    """Smallest eigenvalue or weight of a block, relative to that of the centre of its trace."""
    if block.ndim == 2:
        return np.linalg.eigvalsh(block)[0] / (np.trace(block) / len(block))
    return len(block) * block.min() / block.sum()


@pytest.mark.parametrize("name", KERNELS)
def test_the_learned_kernel_keeps_the_floor(case, name):
    model, X, y = case
    model = clone(model).set_params(kernels=KERNELS[name]).fit(X, y)
    assert model.gap_ <= model.tol
    if name == "floor of a sum":  # one floor for all blocks together
        cone = model.kernel_.kernels.cone(2)
        assert cone.contains((model.parameter_ - 0.3 * cone.centre) / 0.7, rtol=1e-7)
    else:
        assert min(lowest_share(block) for block in blocks_of(model.parameter_)) > 0.299
    # The kernel and the machine belong together, whatever the parameter is called.
    by_hand = model.kernel_(X, model.support_vectors_) @ model.dual_coef_[0] + model.intercept_[0]
    np.testing.assert_allclose(raw_scores(model, X), by_hand, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(model.kernel_(X), model.kernel_(X, X.copy()), atol=1e-9)
    # A floor is a constraint, so the value is larger.
    free = clone(model).set_params(kernels="tessellated").fit(X, y)
    if name == "matrix":
        assert model.objective_ > free.objective_


def test_the_floor_lies_between_the_plain_kernel_and_the_learned_one(circles):
    X, y = circles
    values = [
        LearnedKernelSVC(kernels=TessellatedKernels(floor=floor), tol=1e-5).fit(X, y).objective_
        for floor in (0.0, 0.2, 0.6, 1.0)
    ]
    assert (np.diff(values) > 0).all()
    plain = LearnedKernelSVC(kernels=TessellatedKernels(floor=1.0), tol=1e-6).fit(X, y)
    np.testing.assert_allclose(plain.P_, np.eye(6), atol=1e-12)
    peer = SVC(kernel=LearnedKernel(TessellatedKernels(), np.eye(6), plain.kernel_.box), C=10.0)
    scores = peer.fit(X, y).decision_function(X)
    np.testing.assert_allclose(plain.decision_function(X), scores, atol=1e-2)


@pytest.mark.parametrize("name", ["matrix", "sum"])
def test_warm_starts_and_files_keep_the_model(case, name, tmp_path):
    model, X, y = case
    model = clone(model).set_params(kernels=KERNELS[name], warm_start=True).fit(X, y)
    value, expected = model.objective_, raw_scores(model, X)
    model.save(tmp_path / "model.tsl")
    loaded = load(tmp_path / "model.tsl")
    assert loaded.kernels == model.kernels
    np.testing.assert_array_equal(raw_scores(loaded, X), expected)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.set_params(max_iter=0, tol=1e-12).fit(X, y)
    assert model.objective_ == pytest.approx(value, rel=1e-6)


def test_a_checkpoint_goes_on(circles, tmp_path):
    X, y = circles
    settings = {"kernels": TessellatedKernels(floor=0.3), "checkpoint": tmp_path / "fit"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        first = LearnedKernelSVC(**settings, max_iter=2, tol=1e-8, solver="joint").fit(X, y)
        again = LearnedKernelSVC(**settings, max_iter=0, tol=1e-8, solver="joint").fit(X, y)
    assert again.objective_ == pytest.approx(first.objective_, rel=1e-9)
    np.testing.assert_allclose(again.P_, first.P_, rtol=1e-9, atol=1e-12)
