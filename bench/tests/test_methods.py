"""The methods learn, and choose what a grid search would choose."""

from functools import partial

import numpy as np
import pytest
from sklearn.datasets import make_friedman1, make_moons
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.model_selection import GridSearchCV

from tessella.kernels import TessellatedKernels
from tessella_bench import _ours, _peers, _trees, methods
from tessella_bench._methods import METHODS, NotApplicableError
from tessella_bench._tuning import SCORING, best_parameters, folds
from tessella_bench.figures._problem import EPSILON

SIZES = (3, 6, 9)


class Found:
    """A search over C whose score is a function of it."""

    def __init__(self, score, points, asked):
        asked.append(list(points["model__C"]))
        self.best_score_, C = max((score(C), -C) for C in points["model__C"])
        self.best_params_ = {"model__C": -C, "width": points["width"][0]}


@pytest.mark.parametrize(
    ("best", "asked"),
    [
        (10.0, []),
        (100.0, [[1e3, 1e4]]),
        (1e3, [[1e3, 1e4]]),
        (1e5, [[1e3, 1e4], [1e5, 1e6]]),
        (1e9, [[1e3, 1e4], [1e5, 1e6], [1e7, 1e8]]),
        (0.1, [[0.01, 0.1]]),
        (1e-9, [[0.01, 0.1], [1e-4, 1e-3]]),
    ],
)
def test_strengths_go_on_beyond_an_end_that_is_best(best, asked):
    calls = []
    grid = {"model__C": [1.0, 10.0, 100.0], "width": [7]}

    def search(points):
        return Found(lambda C: -abs(np.log10(C / best)), points, calls)

    found = best_parameters(search, grid)
    np.testing.assert_allclose(found["model__C"], np.clip(best, 1e-4, 1e8))
    assert found["width"] == 7
    assert len(calls) == 1 + len(asked)
    for points, expected in zip(calls[1:], asked, strict=True):
        np.testing.assert_allclose(points, expected)


def test_strengths_do_not_go_on_for_the_same_score():
    calls = []
    search = partial(Found, lambda C: min(C, 100.0), asked=calls)
    found = best_parameters(search, {"model__C": [1.0, 10.0, 100.0], "width": [7]})
    assert found["model__C"] == 100.0
    assert len(calls) == 2


@pytest.fixture
def quick(monkeypatch):
    """Few trees and short grids."""
    monkeypatch.setattr(_trees, "SIZES", SIZES)
    monkeypatch.setattr(_peers, "_STRENGTHS", (1.0, 10.0))
    monkeypatch.setattr(_peers, "_WIDTHS", (0.1, 1.0))
    monkeypatch.setattr(_ours, "_TKL_GRID", {"C": (1.0, 10.0, 100.0), "delta": (0.5,)})


def rows(task):
    if task == "classification":
        return make_moons(120, noise=0.2, random_state=0)
    return make_friedman1(120, random_state=0)


# SimpleMKL needs a thousand iterations on the regression; tests/multiple_kernels has it.
RUNS = [
    (name, task)
    for name, method in METHODS.items()
    for task in ("classification", "regression")
    if method.missing() is None and (name, task) != ("smkl", "regression")
]


@pytest.mark.parametrize(("name", "task"), RUNS)
def test_methods_learn(quick, name, task):
    X, y = rows(task)
    fitted = METHODS[name].load()(task, X, y, 0)
    predicted = np.asarray(fitted.model.predict(X)).ravel()
    if task == "classification":
        assert np.mean(predicted == y) > 0.75
    else:
        assert np.mean((predicted - y) ** 2) < 0.7 * y.var()
    assert fitted.fit_seconds > 0
    assert (fitted.tune_seconds > 0) == (name not in ("nn", "gp"))
    if name.startswith("tkl"):
        assert 0 <= fitted.gap <= 1e-3
        assert set(fitted.params) == {"C", "delta" if name == "tkl" else "kernels__delta"}


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_paper_protocol_does_not_depend_on_defaults(quick, task):
    X, y = rows(task)
    params = METHODS["tkl"].load()(task, X, y, 0).model.get_params()
    expected = {"kernels": "tessellated", "degree": 1, "scaling": "range", "feature_scale": None}
    expected |= {"solver": "auto", "tol": 1e-3, "max_iter": 1000, "time_limit": None}
    if task == "regression":
        expected["epsilon"] = min(0.1, 0.1 / y.std())
    assert {name: params[name] for name in expected} == expected
    params = METHODS["tkl-unit"].load()(task, X, y, 0).model.get_params()
    expected["kernels"] = TessellatedKernels(1, params["kernels__delta"], balance="unit")
    assert {name: params[name] for name in expected} == expected


def test_figures_have_the_tube_of_the_paper():
    assert EPSILON == 0.1


@pytest.mark.parametrize(
    ("task", "kind"),
    [("classification", RandomForestClassifier), ("regression", RandomForestRegressor)],
)
def test_forest_is_chosen_as_by_a_grid_search(quick, task, kind):
    X, y = rows(task)
    search = GridSearchCV(
        kind(random_state=3), {"n_estimators": SIZES}, cv=folds(task, 3), scoring=SCORING[task]
    ).fit(X, y)
    fitted = _trees.random_forest(task, X, y, 3)
    assert fitted.params == search.best_params_
    np.testing.assert_array_equal(fitted.model.predict(X), search.predict(X))


def test_sizes_and_net_are_the_papers():
    assert _trees.SIZES == (50, 100, 150, 200, 250, 300, 350, 400, 450, 500, 550, 600, 650)
    net = _peers.neural_net("regression", *rows("regression"), 0).model.regressor_[-1]
    assert net.hidden_layer_sizes == (50, 50, 50)
    assert net.early_stopping


@pytest.mark.parametrize(("run", "most"), [("gaussian_process", 3000), ("svm_laplacian", 10000)])
def test_some_are_for_small_sets(run, most):
    with pytest.raises(NotApplicableError, match=str(most)):
        getattr(_peers, run)("regression", np.zeros((most + 1, 1)), np.zeros(most + 1), 0)


def test_tuning_sees_the_seed():
    X, y = rows("classification")
    first, second = (next(iter(folds("classification", seed).split(X, y)))[0] for seed in (0, 1))
    assert not np.array_equal(first, second)


def test_paper_methods_come_first():
    papers = [method.paper for method in methods() if method.name != "tkl-unit"]
    assert papers[0] == "TKL"
    assert papers.index(None) == 8
    assert not any(papers[8:])


def test_dictionaries_go_through_the_same_search(monkeypatch):
    seen = []

    class Forest(RandomForestClassifier):
        def __init__(self, C=1.0, weighting=None, tol=None, n_jobs=None):
            super().__init__(3, random_state=0, n_jobs=n_jobs)
            self.C, self.weighting, self.tol = C, weighting, tol

        def fit(self, X, y):
            seen.append((self.weighting, self.C, self.tol))
            self.gap_ = 0.5
            return super().fit(X, y)

    monkeypatch.setattr(_ours, "MultipleKernelSVC", Forest)
    fitted = _ours.cka("classification", *rows("classification"), 0)
    assert {weighting for weighting, _, _ in seen} == {"alignment"}
    # All score the same: the first is best, so smaller ones are tried, and no better.
    tried = sorted({C for _, C, _ in seen})
    np.testing.assert_allclose(tried, [0.001, 0.01, *_ours._MKL_STRENGTHS])
    assert fitted.params == {"C": _ours._MKL_STRENGTHS[0]}
    assert {tol for _, _, tol in seen} == {1e-3}
    assert fitted.gap == 0.5
    seen.clear()
    _ours.smkl("classification", *rows("classification"), 0)
    assert {(weighting, tol) for weighting, _, tol in seen} == {("simple", 1e-2)}


@pytest.mark.parametrize("method", ["amkl", "cka", "mkl", "pwmk", "smkl"])
def test_a_dictionary_too_large_for_the_memory_is_refused_before_its_search(method):
    with pytest.raises(MemoryError, match="weighted sum of kernels on 5000000 rows"):
        getattr(_ours, method)("regression", None, np.arange(5e6), 0)
