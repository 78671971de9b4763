"""Every method of the suite learns from a table with text and gaps."""

import importlib.util

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator

import tessella
from tessella_bench import _methods
from tessella_bench.suite import suite_methods, variants
from tessella_bench.suite._methods import find_method, find_title, missing
from tessella_bench.suite._ours import members

QUICK = ("svm-tuned", "ridge-tuned", "forest", "lightgbm", "learned-kernel")


def table(rows=120):
    rng = np.random.default_rng(5)
    frame = pd.DataFrame({"x": rng.random(rows), "z": rng.random(rows)})
    frame["kind"] = rng.choice(["up", "down"], rows).astype(object)
    signal = np.where(frame["kind"] == "up", frame["x"], 1 - frame["x"]).astype(float)
    frame.loc[::10, "z"] = np.nan
    frame.loc[::15, "kind"] = np.nan
    return frame, signal


@pytest.mark.parametrize("name", QUICK)
def test_methods_learn_numbers_and_classes(name):
    method = find_method(name)
    if method.missing() is not None:
        pytest.skip(method.missing())
    X, signal = table()
    run = method.load()
    A, B = X.iloc[:90].reset_index(drop=True), X.iloc[90:].reset_index(drop=True)
    fitted = run("regression", A, signal[:90], 0)
    predicted = fitted.model.predict(B)
    assert predicted.shape == (30,)
    assert np.mean((predicted - signal[90:]) ** 2) < 0.5 * np.var(signal[90:])
    labels = np.where(signal > 0.65, "high", np.where(signal > 0.35, "middle", "low")).astype(
        object
    )
    fitted = run("classification", A, labels[:90], 0)
    assert np.mean(fitted.model.predict(B) == labels[90:]) > 0.6
    if hasattr(fitted.model, "predict_proba"):
        chances = fitted.model.predict_proba(B)
        assert list(fitted.model.classes_) == ["high", "low", "middle"]
        np.testing.assert_allclose(chances.sum(axis=1), 1.0, atol=1e-6)


def test_all_methods_have_a_function():
    names = [method.name for method in suite_methods()]
    assert names[:4] == ["tessella", "catboost", "lightgbm-tuned", "xrfm-tuned"]
    assert all(callable(method.load()) for method in suite_methods())


def test_variants_and_own_functions(home):
    variant = find_method("tessella/few")
    assert (variant.title, variant.place) == ("few", find_method("tessella").place)
    assert find_method("fake_methods:average").title == "average"
    with pytest.raises(ValueError, match=r"no method 'boosting'; known are tessella, catboost"):
        find_method("boosting")
    recipes = variants({"few": {"rounds": 0}})
    assert recipes["tessella/few"].options == {"rounds": 0}
    assert find_title("tessella/few") == "few"
    assert find_title("gone:away") == "away"
    assert find_title("forest") == "random forest"


def test_what_a_method_needs_is_asked_of_its_interpreter(home):
    import sys

    method = _methods.Method("a", "A", "b:c", needs="no_such_module")
    assert "no_such_module" in missing(method, None)
    assert "'no_such_module' is not installed" in missing(method, sys.executable)
    assert "cannot be run" in missing(method, "/no/such/python")
    name = _methods.Method("a", "A", "b:c", needs="json:no_such_name")
    assert "needs no_such_name" in missing(name, None)
    assert "json has no no_such_name" in missing(name, sys.executable)
    assert missing(_methods.Method("a", "A", "b:c", needs="json:dumps"), sys.executable) is None


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_our_estimator_gets_the_table_its_keywords_and_the_seed(task, monkeypatch):
    class Fake(BaseEstimator):
        def __init__(self, rounds=3, n_jobs=None, random_state=None):
            self.rounds, self.n_jobs, self.random_state = rounds, n_jobs, random_state

        def fit(self, X, y):
            self.seen_, self.leaderboard_ = X, [{"family": "gauss", "weight": 1.0}]
            return self

    name = "TessellaRegressor" if task == "regression" else "TessellaClassifier"
    monkeypatch.setattr(tessella, name, Fake, raising=False)
    X, signal = table()
    fitted = find_method("tessella").load()(task, X, signal, 4, rounds=1)
    assert fitted.model.get_params() == {"rounds": 1, "n_jobs": 1, "random_state": 4}
    assert fitted.model.seen_ is X
    assert fitted.params == {"members": [{"family": "gauss", "weight": 1.0}]}


def test_members_of_a_leaderboard():
    rows = [
        {"family": "gauss", "weight": 0.7, "score": 1.0},
        {"family": "laplace", "weight": 0.0},
        {"family": "tessellated", "loss": "hinge", "weight": 0.3},
    ]
    expected = [
        {"family": "gauss", "weight": 0.7},
        {"family": "tessellated", "loss": "hinge", "weight": 0.3},
    ]
    assert members(rows) == expected
    assert members(pd.DataFrame(rows[:1])) == expected[:1]
    assert members(pd.DataFrame({"family": ["gauss"], "weight": [np.nan]})) == []
    assert members(()) == []


@pytest.mark.skipif(importlib.util.find_spec("xgboost") is None, reason="needs XGBoost")
def test_xgboost_takes_classes_with_a_hole():
    from tessella_bench.suite._boosted import _xgboost

    X = pd.DataFrame({"x": np.arange(20.0)})
    y = np.where(X["x"] < 10, 0, 2)
    model = _xgboost("classification", 0)({"n_estimators": 5}).fit(X, y)
    assert set(model.predict(X)) == {0, 2}
    assert list(model.classes_) == [0, 2]
