"""The estimators as scikit-learn and its users see them."""

from __future__ import annotations

import inspect
import pickle
from copy import copy

import dask.array as da
import dask.dataframe as dd
import joblib
import numpy as np
import pandas as pd
import pytest
from reference.clusters import (
    SETTINGS,
    assert_same_model,
    class_rows,
    in_chunks,
    regression_rows,
)
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV

import tessella
from tessella import KernelPathCV, LearnedKernelSVC, LearnedKernelSVR
from tessella.dask import DaskLearnedKernelSVC, DaskLearnedKernelSVR, _estimators
from tessella.persistence import ModelFileError

PAIRS = [(DaskLearnedKernelSVC, LearnedKernelSVC), (DaskLearnedKernelSVR, LearnedKernelSVR)]


@pytest.fixture(scope="module")
def fitted(client):
    X, y = class_rows(2000, 3)
    return DaskLearnedKernelSVC(**SETTINGS, client=client).fit(*in_chunks(X, y)), X


@pytest.mark.parametrize(("cls", "local"), PAIRS)
def test_parameters_are_those_of_the_local_estimator(cls, local):
    own = {n: p.default for n, p in inspect.signature(cls).parameters.items()}
    assert own.pop("client") is None
    assert own.pop("max_leaf_rows") == 5000
    expected = {n: p.default for n, p in inspect.signature(local).parameters.items()}
    del expected["max_leaf_rows"]
    assert own == expected
    changed = {name: object() for name in [*own, "client", "max_leaf_rows"]}
    assert cls(**changed).get_params(deep=False) == changed


def test_a_copy_has_the_client_and_a_pickle_has_not(client):
    model = DaskLearnedKernelSVR(C=3.0, client=client)
    assert clone(model).client is model.client_ is client
    assert clone(model).C == 3.0
    assert copy(model).client is None
    assert pickle.loads(pickle.dumps(model)).client is None


def test_the_current_client(client):
    assert DaskLearnedKernelSVC().client_ is client


def test_a_local_copy_of_the_model(fitted, tmp_path):
    model, X = fitted
    local = model.to_local()
    assert type(local) is LearnedKernelSVC
    assert "client" not in local.get_params()
    for own in (local, pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(own.decision_function(X), model.decision_function(X))
    tessella.save(local, tmp_path / "local.tsl")
    model.save(tmp_path / "model.tsl", metadata={"of": "a cluster"})
    for name in ("local", "model"):
        loaded = tessella.load(tmp_path / f"{name}.tsl")
        assert type(loaded) is LearnedKernelSVC
        assert not hasattr(loaded, "rounds_")
        np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    with pytest.raises(ModelFileError, match="to_local"):
        tessella.save(model, tmp_path / "other.tsl")


def test_a_second_fit_starts_from_the_kernel_of_the_first(client):
    rows = regression_rows(2000)
    models = []
    for cls, data in ((LearnedKernelSVR, rows), (DaskLearnedKernelSVR, in_chunks(*rows))):
        models.append(cls(**SETTINGS, warm_start=True).fit(*data).fit(*data))
    assert_same_model(models[1], models[0], rows[0])
    once = clone(models[1]).fit(*in_chunks(*rows))
    assert once.history_[0].gap > models[1].history_[0].gap


@pytest.mark.parametrize("shape", ["ovr", "ovo"])
@pytest.mark.parametrize("kind", ["array", "frame"])
def test_scores_and_labels_of_collections(fitted, shape, kind):
    model, X = fitted
    model.set_params(decision_function_shape=shape)
    parts = da.from_array(X, chunks=(300, 2))
    if kind == "frame":
        parts = dd.from_pandas(pd.DataFrame(X), npartitions=3)
        parts = parts[parts[0] >= 0.0]  # its partitions may be of any size
    np.testing.assert_allclose(
        model.decision_function(parts).compute(), model.decision_function(X), rtol=1e-7
    )
    np.testing.assert_array_equal(model.predict(parts).compute(), model.predict(X))
    labels = model.predict(X)
    labels[::5] = "other"
    assert model.score(X, labels) == pytest.approx(0.8)
    if kind == "array":
        assert model.score(parts, *in_chunks(labels, rows=170)) == pytest.approx(0.8)


def test_tasks_of_predictions_have_one_thread(fitted, monkeypatch):
    model, X = fitted
    monkeypatch.setattr(_estimators, "lazily", lambda own, *rest, **options: own.n_jobs)
    wide = copy(model).set_params(n_jobs=2)
    parts = da.from_array(X, chunks=(500, -1))
    assert wide.predict(parts) == wide.decision_function(parts) == 1


def test_empty_partitions(fitted):
    model, X = fitted
    X = X[np.argsort(X[:, 0])]
    frame = dd.from_pandas(pd.DataFrame(X), npartitions=3)
    some, rows = frame[frame[0] > 0.8], X[X[:, 0] > 0.8]
    np.testing.assert_array_equal(model.predict(some).compute(), model.predict(rows))
    np.testing.assert_allclose(
        model.decision_function(some).compute(), model.decision_function(rows), rtol=1e-7
    )


def test_what_is_wrong_is_said_before_the_work(client):
    X, y = in_chunks(*regression_rows(600))
    with pytest.raises(ValueError, match="max_leaf_rows=None"):
        DaskLearnedKernelSVR(max_leaf_rows=None).fit(X, y)
    with pytest.raises(ValueError, match="600 rows, but y has 500"):
        DaskLearnedKernelSVR().fit(X, y[:500])
    with pytest.raises(ValueError, match="y must have one dimension"):
        DaskLearnedKernelSVR().fit(X, y[:, None])
    with pytest.raises(ValueError, match="X must have two dimensions"):
        DaskLearnedKernelSVR().fit(y, y)
    with pytest.raises(TypeError, match="partitions of X"):
        DaskLearnedKernelSVR().fit(dd.from_dask_array(X), np.zeros(600))
    with pytest.raises(NotFittedError):
        DaskLearnedKernelSVR().predict(X)
    with pytest.raises(NotFittedError):
        DaskLearnedKernelSVC().decision_function(X)
    with pytest.raises(NotFittedError):
        DaskLearnedKernelSVC().score(X, y)
    with pytest.raises(NotFittedError):
        DaskLearnedKernelSVR().to_local()


def test_searches_with_joblib(client):
    """The plain estimators, whose fits are tasks of the cluster."""
    X, y = regression_rows(240)
    search = GridSearchCV(LearnedKernelSVR(tol=1e-2, n_jobs=1), {"C": [0.1, 10.0]}, cv=3)
    path = KernelPathCV(LearnedKernelSVR(tol=1e-2, n_jobs=1), {"C": [0.1, 10.0]}, cv=3)
    for own in (search, path):
        expected = clone(own).fit(X, y)
        with joblib.parallel_config("dask"):
            found = clone(own).set_params(n_jobs=2).fit(X, y)
        assert found.best_params_ == expected.best_params_
        np.testing.assert_allclose(found.predict(X), expected.predict(X))
