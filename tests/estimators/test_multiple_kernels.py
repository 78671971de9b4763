"""What MultipleKernelSVC and MultipleKernelSVR share with the other estimators, by every rule."""

from __future__ import annotations

import re
import subprocess
import sys
import warnings

import numpy as np
import pytest
from estimators.conftest import FEW, raw_scores, sum_of_sets
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from tessella import (
    KernelDictionary,
    LearnedKernelSVC,
    LearnedKernelSVR,
    MultipleKernelSVC,
    MultipleKernelSVR,
    TessellatedKernels,
)
from tessella.kernels import Gaussian, KernelSum
from tessella.solvers import Monitor, SolverStatus

WEIGHTINGS = ("learned", "simple", "average", "alignment", "performance")
RULES = WEIGHTINGS[2:]
CHECKED = [
    *(MultipleKernelSVC(kernels=FEW, weighting=weighting) for weighting in WEIGHTINGS),
    *(MultipleKernelSVR(kernels=FEW, weighting=weighting) for weighting in WEIGHTINGS),
    MultipleKernelSVC(),
    MultipleKernelSVR(),
    LearnedKernelSVC(kernels=sum_of_sets()),
    LearnedKernelSVR(kernels=KernelDictionary.standard()),
]


@parametrize_with_checks(CHECKED)
def test_scikit_learn_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        check(estimator)


@pytest.fixture(params=["classification", "regression", "three classes"])
def task(request, circles, waves):
    """A model, and data of which some features and some rows are special."""
    if request.param == "classification":
        return MultipleKernelSVC(10.0, FEW), *circles
    if request.param == "regression":
        return MultipleKernelSVR(10.0, FEW), *waves
    return MultipleKernelSVC(10.0, FEW), *(part[::3] for part in load_iris(return_X_y=True))


@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_a_weight_is_a_number_of_copies(task, weighting):
    model, X, y = task
    model = clone(model).set_params(weighting=weighting)
    rng = np.random.default_rng(0)
    weight = rng.integers(0, 3, len(X))
    copies = rng.permutation(np.repeat(np.arange(len(X)), weight))
    weighted = clone(model).fit(X, y, sample_weight=weight)
    copied = clone(model).fit(X[copies], y[copies])
    np.testing.assert_array_equal(weighted.weights_, copied.weights_)
    assert weighted.objective_ == copied.objective_
    np.testing.assert_allclose(raw_scores(weighted, X), raw_scores(copied, X), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_the_same_bits_again(task, weighting):
    model, X, y = task
    model = clone(model).set_params(weighting=weighting)
    first, again = (clone(model).set_params(n_jobs=n).fit(X, y) for n in (None, 1))
    np.testing.assert_array_equal(first.weights_, again.weights_)
    np.testing.assert_array_equal(raw_scores(first, X), raw_scores(again, X))
    assert first.weights_ is first.parameter_
    assert not hasattr(first, "P_")


# ---- warm starts


@pytest.mark.parametrize("weighting", RULES)
def test_a_rule_gives_its_weights_wherever_the_fit_starts(task, weighting):
    """The weights of the fit before are better, and must not be kept."""
    model, X, y = task
    model = clone(model).set_params(warm_start=True).fit(X, y)
    learned = model.objective_
    model.set_params(weighting=weighting).fit(X, y)
    cold = clone(model).set_params(warm_start=False).fit(X, y)
    np.testing.assert_array_equal(model.weights_, cold.weights_)
    assert model.objective_ == pytest.approx(cold.objective_, rel=2 * model.tol)
    assert model.objective_ > learned
    assert model.gap_ <= model.tol
    model.set_params(max_iter=0, tol=1e-14)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
    np.testing.assert_array_equal(model.weights_, cold.weights_)


def test_a_warm_start_from_other_kernels_is_a_cold_one(circles):
    X, y = circles
    for first, second in (
        ({"kernels": FEW}, {"kernels": [Gaussian(1.0)]}),
        ({"kernels": [Gaussian(1.0)]}, {"kernels": "standard"}),
    ):
        model = MultipleKernelSVC(warm_start=True, **first).fit(X, y).set_params(**second)
        cold = clone(model).fit(X, y)
        assert model.fit(X, y).objective_ == cold.objective_
    model = LearnedKernelSVC(kernels=sum_of_sets(), warm_start=True).fit(X, y)
    model.set_params(kernels="tessellated")
    assert model.fit(X, y).objective_ == clone(model).fit(X, y).objective_


# ---- separate weights for pairs of classes


@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_weights_of_each_pair_of_classes(weighting):
    X, y = load_iris(return_X_y=True)
    model = MultipleKernelSVC(10.0, FEW, weighting=weighting, multi_class="separate").fit(X, y)
    assert len(model.weights_) == len(model.dictionary_) == len(model.history_) == 3
    for k, (first, second) in enumerate([(0, 1), (0, 2), (1, 2)]):
        rows = (y == first) | (y == second)
        alone = MultipleKernelSVC(10.0, FEW, weighting=weighting).fit(X[rows], y[rows])
        # Rows take their turns in folds in the order of their class numbers, which differ here.
        apart = 5e-3 if weighting == "performance" else 1e-4
        np.testing.assert_allclose(model.weights_[k], alone.weights_, atol=apart)
        K = alone.kernel_(X[rows])
        np.testing.assert_allclose(model.kernel_[k](X[rows]), K, atol=10 * apart * np.abs(K).max())
    assert model.score(X, y) > 0.95
    assert model.feature_relevance_.shape == (4,)


# ---- relevance


@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_relevance_finds_the_pair_that_acts_together(weighting):
    rng = np.random.default_rng(0)
    X = rng.random((200, 4))
    y = 8 * (X[:, 0] - 0.5) * (X[:, 1] - 0.5) + 1.5 * X[:, 2]
    model = MultipleKernelSVR(100.0, FEW, weighting=weighting).fit(X, y)
    assert model.feature_relevance_[3] < 0.1 * model.feature_relevance_[:3].min()
    pairs = model.interaction_relevance_
    assert pairs[0, 1] > 5 * np.delete(pairs[np.triu_indices(4, 1)], 0).max()


# ---- messages


class End(Monitor):
    """Ends a run at its first record, for a reason of its own."""

    def __init__(self, status):
        self.status = status

    def record(self, record, answer):
        return self.status


def remedy(estimator, status, X, y):
    """The last part of the warning of a fit that ended early."""
    model = clone(estimator).set_params(tol=1e-16)
    with pytest.warns(ConvergenceWarning) as caught:
        model._fit(X, y, callback=End(status))
    assert model.status_ == status.value
    found = str(caught[0].message)
    assert f"({status.value}) after {model.n_iter_} iterations" in found
    assert f"certified relative gap of {model.gap_:.2e}, above tol=1e-16" in found
    # A model that is far from the optimum gets another text before the remedy.
    return re.split(r" is kept\. | worse than a constant\. ", found)[1]


def test_remedies_name_parameters_that_the_estimator_has():
    rng = np.random.default_rng(0)
    X, y = rng.random((60, 2)), rng.integers(0, 2, 60)  # the first pair is far from the optimum
    estimators = [
        LearnedKernelSVC(solver="apd"),
        LearnedKernelSVC(kernels=sum_of_sets(), precision="float32"),
        MultipleKernelSVC(),
        MultipleKernelSVC(weighting="simple"),
        MultipleKernelSVR(weighting="average", precision="float32"),
    ]
    found = {
        (status, number): remedy(estimator, status, X, y)
        for status in SolverStatus
        if status is not SolverStatus.OPTIMAL
        for number, estimator in enumerate(estimators)
    }
    for (_, number), text in found.items():
        params = estimators[number].get_params()
        named = [word.partition("=")[0] for word in text.split() if "=" in word]
        assert set(named) <= set(params), text
    memory = [found[SolverStatus.OUT_OF_MEMORY, k] for k in range(5)]
    assert memory == [
        "Use precision='float32' or solver='working-set' or fewer rows.",
        "Use fewer rows.",
        "Use precision='float32' or fewer rows.",
        "Use precision='float32' or weighting='learned' or fewer rows.",
        "Use fewer rows.",
    ]
    assert found[SolverStatus.STALLED, 2] == "Use a smaller C or a larger tol."
    assert "precision='float64'" in found[SolverStatus.STALLED, 4]


def test_too_little_memory_names_what_can_be_changed(circles, monkeypatch):
    monkeypatch.setattr("tessella.backend._memory.available_memory", lambda: 20_000)
    model = MultipleKernelSVC(weighting="simple")
    with pytest.raises(MemoryError, match=r"Use precision='float32' or weighting='learned' or"):
        model.fit(*circles)


# ---- sums in LearnedKernelSVC


def test_attributes_of_a_sum(circles):
    model = LearnedKernelSVC(kernels=sum_of_sets()).fit(*circles)
    matrix, weights = model.parameter_
    assert isinstance(model.kernel_.kernels, KernelSum)
    assert np.trace(matrix) / len(matrix) + weights.sum() == pytest.approx(1.0)
    with pytest.raises(AttributeError, match="not one matrix P; use its attribute parameter"):
        _ = model.P_
    assert "P_" not in dir(model)
    alone = [
        LearnedKernelSVC(kernels=kernels).fit(*circles)
        for kernels in (TessellatedKernels(), KernelDictionary(FEW))
    ]
    # The best kernel of the sum is at least as good as the best of either part.
    assert model.lower_bound_ <= min(other.objective_ for other in alone)


def test_the_estimators_of_a_dictionary_are_one(circles):
    dictionary = KernelDictionary(FEW)
    one = LearnedKernelSVC(10.0, kernels=dictionary).fit(*circles)
    other = MultipleKernelSVC(10.0, dictionary).fit(*circles)
    np.testing.assert_array_equal(one.parameter_, other.weights_)
    np.testing.assert_array_equal(raw_scores(one, circles[0]), raw_scores(other, circles[0]))
    simple = LearnedKernelSVC(10.0, kernels=dictionary, solver="simple-mkl").fit(*circles)
    assert simple.objective_ == pytest.approx(one.objective_, rel=2 * one.tol)
    with pytest.raises(ValueError, match="learns the weights of a KernelDictionary"):
        LearnedKernelSVC(solver="simple-mkl").fit(*circles)


def test_importing_the_library_does_not_import_them():
    program = (
        "import sys, tessella\n"
        "assert 'tessella.multiple_kernels' not in sys.modules\n"
        "assert any('MultipleKernelSVC' in name for name in tessella.persistence.SKOPS_TRUSTED)\n"
        "tessella.MultipleKernelSVC\n"
        "assert 'tessella.multiple_kernels' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
