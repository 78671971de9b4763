from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
from reference.weights import rows_of
from sklearn.base import clone
from sklearn.datasets import make_circles
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import tessella
from tessella import KernelDictionary, LearnedKernelSVC, MultipleKernelSVC, MultipleKernelSVR
from tessella.kernels import Gaussian, Polynomial, TessellatedKernels
from tessella.svm import DualProblem, solve_dual

WEIGHTINGS = ("learned", "simple", "average", "alignment", "performance")
FEW = KernelDictionary([Gaussian(0.5), Gaussian(3.0), Polynomial(1), Polynomial(2)])


@parametrize_with_checks([MultipleKernelSVC(), MultipleKernelSVR()])
def test_scikit_learn_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        check(estimator)


def data_of(kind, size=80):
    X, signal = rows_of(size)
    if kind == "regression":
        return MultipleKernelSVR(), X, 50.0 + 7.0 * signal
    edges = [0.0] if kind == "classification" else [-0.6, 0.6]
    names = np.array(["low", "middle", "top"])
    return MultipleKernelSVC(), X, names[np.digitize(signal, edges)]


@pytest.fixture(params=["classification", "regression", "three classes"])
def case(request):
    return data_of(request.param)


def raw_scores(model, X):
    return model.decision_function(X) if hasattr(model, "classes_") else model.predict(X)


@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_every_weighting_fits_every_task(case, weighting):
    model, X, y = case
    model.set_params(kernels=FEW, weighting=weighting, C=10.0).fit(X, y)
    assert model.score(X, y) > 0.85
    assert model.gap_ <= model.tol
    assert model.status_ == "optimal"
    assert model.weights_.min() >= 0
    assert model.weights_.sum() == pytest.approx(1.0)
    K = model.kernel_(X, model.support_vectors_)
    scores = K @ model.dual_coef_.T + model.intercept_
    if scores.shape[1] > 1:
        model.set_params(decision_function_shape="ovo")
    np.testing.assert_allclose(raw_scores(model, X), np.squeeze(scores), rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(X[model.support_], model.support_vectors_)


def test_learned_weights_are_never_worse_than_others(case):
    model, X, y = case
    value = {
        weighting: clone(model).set_params(kernels=FEW, weighting=weighting).fit(X, y).objective_
        for weighting in WEIGHTINGS
    }
    assert value["learned"] <= min(value.values()) * (1 + model.tol)
    assert value["simple"] == pytest.approx(value["learned"], rel=2 * model.tol)
    assert value["average"] > 1.05 * value["learned"]


def test_certificate_of_a_fit_by_its_definition():
    model, X, y = data_of("regression")
    model.set_params(kernels=FEW).fit(X, y)
    target = (y - y.mean()) / y.std()
    dual = DualProblem.regression(target, model.C, model.epsilon_)
    rows = model.kernel_.box.apply(X)  # as the dictionary has seen them
    matrices = [model.dictionary_.matrix(k, rows) for k in range(4)]
    K = sum(m * M for m, M in zip(model.weights_, matrices, strict=True))
    svm = solve_dual(K, dual, tol=1e-9)
    # The SVM of these weights is at most as far from the optimum as the model says.
    assert model.lower_bound_ <= svm.primal <= model.objective_ * (1 + 1e-9)
    forms = [svm.w @ M @ svm.w for M in matrices]
    assert dual.kappa(svm.w) - 0.5 * max(forms) <= model.objective_


def test_one_kernel_is_the_machine_of_scikit_learn():
    _, X, y = data_of("classification")
    model = MultipleKernelSVC(C=3.0, kernels=[Gaussian(2.0)], tol=1e-8).fit(X, y)
    unit = (X - X.mean(axis=0)) / X.std(axis=0)
    machine = SVC(C=3.0, gamma=1 / 8, tol=1e-8).fit(unit, y)
    np.testing.assert_allclose(
        model.decision_function(X), machine.decision_function(unit), atol=1e-5
    )
    np.testing.assert_array_equal(model.weights_, [1.0])


@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_weights_are_copies(case, weighting):
    model, X, y = case
    model.set_params(kernels=FEW, weighting=weighting)
    rng = np.random.default_rng(0)
    weight = rng.integers(0, 3, len(X))
    weighted = clone(model).fit(X, y, sample_weight=weight)
    copies = rng.permutation(np.repeat(np.arange(len(X)), weight))
    copied = clone(model).fit(X[copies], y[copies])
    np.testing.assert_array_equal(weighted.weights_, copied.weights_)
    # Support vectors are in the order of the data as given, and so are the sums over them.
    np.testing.assert_allclose(raw_scores(weighted, X), raw_scores(copied, X), rtol=0, atol=1e-12)


def test_order_and_units_and_threads_change_nothing(case):
    model, X, y = case
    first = clone(model).set_params(n_jobs=1).fit(X, y)
    order = np.random.default_rng(0).permutation(len(X))
    other = clone(model).set_params(n_jobs=2).fit(X[order], y[order])
    np.testing.assert_array_equal(first.weights_, other.weights_)
    np.testing.assert_allclose(raw_scores(first, X), raw_scores(other, X), rtol=0, atol=1e-12)
    scaled = clone(model).set_params(tol=1e-7).fit(X * 1024.0, y)
    exact = clone(model).set_params(tol=1e-7).fit(X, y)
    np.testing.assert_allclose(raw_scores(scaled, X * 1024.0), raw_scores(exact, X), atol=1e-2)


def test_shapes_and_ties_of_several_classes_are_those_of_the_learned_kernel():
    model, X, y = data_of("three classes")
    model.set_params(kernels=FEW).fit(X, y)
    other = LearnedKernelSVC().fit(X, y)
    assert model.decision_function(X).shape == other.decision_function(X).shape == (80, 3)
    assert model.dual_coef_.shape[0] == len(model.intercept_) == 3
    model.set_params(break_ties=True)
    np.testing.assert_array_equal(
        model.predict(X), model.classes_[model.decision_function(X).argmax(axis=1)]
    )
    model.set_params(decision_function_shape="ovo")
    assert model.decision_function(X).shape == (80, 3)
    with pytest.raises(ValueError, match="break_ties=True needs"):
        model.predict(X)


def test_class_weight_acts_like_sample_weight():
    model, X, y = data_of("classification")
    model.set_params(kernels=FEW)
    factors = {"low": 3.0, "middle": 1.0}
    by_class = clone(model).set_params(class_weight=factors).fit(X, y)
    by_sample = clone(model).fit(X, y, sample_weight=[factors[label] for label in y])
    np.testing.assert_array_equal(by_class.weights_, by_sample.weights_)


def test_pipelines_searches_and_pickles():
    model, X, y = data_of("classification")
    pipeline = make_pipeline(StandardScaler(), model.set_params(kernels=FEW))
    grid = {
        "multiplekernelsvc__weighting": ["average", "learned"],
        "multiplekernelsvc__C": [0.1, 10.0],
    }
    search = GridSearchCV(pipeline, grid, cv=3).fit(X, y)
    assert search.best_score_ > 0.7
    copy = pickle.loads(pickle.dumps(search.best_estimator_))
    np.testing.assert_array_equal(copy.predict(X), search.predict(X))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"C": 0.0}, "C=0.0 must be a positive"),
        ({"tol": -1.0}, "tol=-1.0 must be"),
        ({"max_iter": -1}, "max_iter=-1 must be"),
        ({"time_limit": 0}, "time_limit=0 must be"),
        ({"weighting": "easy"}, "weighting='easy' is unknown; use one of"),
        ({"kernels": "rbf"}, "kernels='rbf' is unknown; use 'standard', a list"),
        ({"kernels": []}, "at least one kernel"),
        ({"decision_function_shape": "all"}, "decision_function_shape='all' is unknown"),
        ({"class_weight": {"none": 2.0}}, "class_weight names"),
    ],
)
def test_mistakes_are_named_before_any_work(change, said):
    model, X, y = data_of("classification")
    with pytest.raises(ValueError, match=said):
        model.set_params(**change).fit(X, y)
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_data_without_information_is_refused():
    X, y = np.ones((10, 2)), np.arange(10.0)
    with pytest.raises(ValueError, match="All 2 features are constant"):
        MultipleKernelSVR().fit(X, y)
    with pytest.raises(ValueError, match="epsilon=-1"):
        MultipleKernelSVR(epsilon=-1).fit(X, y)


def test_too_little_memory_is_told_before_any_work(monkeypatch):
    model, X, y = data_of("classification")
    monkeypatch.setattr("tessella.backend._memory.available_memory", lambda: 20_000)
    with pytest.raises(MemoryError, match=r"Learning a kernel on 80 rows.*fewer rows"):
        model.fit(X, y)


def test_a_limit_keeps_the_model_and_warns_with_the_gap():
    model, X, y = data_of("classification")
    with pytest.warns(ConvergenceWarning, match=r"iteration limit.*Raise max_iter"):
        model.set_params(max_iter=0, tol=1e-6).fit(X, y)
    assert model.gap_ > 1e-6
    assert model.lower_bound_ <= model.objective_
    assert model.predict(X).shape == y.shape


def test_a_failed_fit_leaves_the_model_as_it_was(monkeypatch):
    model, X, y = data_of("regression")
    before = model.set_params(kernels=FEW).fit(X, y).predict(X)
    with pytest.raises(ValueError, match="features are constant"):
        model.fit(np.ones((80, 3)), y)
    np.testing.assert_array_equal(model.predict(X), before)


def test_progress_is_printed(capsys):
    model, X, y = data_of("classification")
    model.set_params(kernels=FEW, verbose=1).fit(X, y)
    assert "gap" in capsys.readouterr().out
    assert len(model.history_) == model.n_iter_ + 1


def test_tessella_exports_them_by_name():
    names = {"KernelDictionary", "MultipleKernelSVC", "MultipleKernelSVR"}
    assert names <= set(dir(tessella))
    assert names <= set(tessella.__all__)


def test_kernels_that_are_only_good_together():
    """The best kernel alone is worse than even weights: the others have to come back."""
    X, y = make_circles(150, noise=0.1, factor=0.4, random_state=0)
    kernels = [Gaussian(0.5, features=0), Gaussian(0.5, features=1), Polynomial(2)]
    model = MultipleKernelSVC(kernels=kernels, tol=1e-6).fit(X, y)
    assert model.gap_ <= 1e-6
    simple = MultipleKernelSVC(kernels=kernels, weighting="simple").fit(X, y)
    assert model.objective_ <= simple.objective_
    np.testing.assert_allclose(model.weights_, simple.weights_, atol=0.02)


def test_sums_and_other_sets_are_for_the_general_estimator():
    _, X, y = data_of("classification")
    both = TessellatedKernels() + FEW
    with pytest.raises(ValueError, match="are for LearnedKernelSVC"):
        MultipleKernelSVC(kernels=both).fit(X, y)
    assert LearnedKernelSVC(kernels=both).fit(X, y).gap_ <= 1e-3
