"""A fit on a cluster learns what a fit in one process learns."""

from __future__ import annotations

import dask.array as da
import dask.dataframe as dd
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

from tessella import LearnedKernelSVC, LearnedKernelSVR
from tessella.dask import DaskLearnedKernelSVC, DaskLearnedKernelSVR
from tessella.estimators import _leaf_store


@pytest.fixture(scope="module")
def rows():
    return regression_rows()


@pytest.fixture(scope="module")
def expected(rows):
    return LearnedKernelSVR(**SETTINGS).fit(*rows)


@pytest.mark.parametrize(("workers", "chunk"), [(2, 700), (1, 2000), (3, 311)])
def test_any_number_of_workers_and_chunks(cluster, client, rows, expected, workers, chunk):
    cluster.scale(workers)
    client.wait_for_workers(workers)
    while len(client.nthreads()) != workers:  # those to leave have not left yet
        client.run_on_scheduler(lambda: None)
    found = DaskLearnedKernelSVR(**SETTINGS).fit(*in_chunks(*rows, rows=chunk, columns=2))
    assert_same_model(found, expected, rows[0])
    cluster.scale(2)
    client.wait_for_workers(2)


def test_rows_in_memory(client, rows, expected):
    assert_same_model(DaskLearnedKernelSVR(**SETTINGS).fit(*rows), expected, rows[0])


@pytest.mark.parametrize("classes", [2, 3])
def test_classes_with_weights(client, classes):
    X, y = class_rows(classes=classes)
    weight = np.random.default_rng(1).choice([0.0, 0.5, 1.0, 2.0], len(X))
    options = {**SETTINGS, "class_weight": "balanced"}
    expected = LearnedKernelSVC(**options).fit(X, y, weight)
    found = DaskLearnedKernelSVC(**options).fit(*in_chunks(X, y, weight))
    assert_same_model(found, expected, X)
    np.testing.assert_array_equal(found.classes_, expected.classes_)
    np.testing.assert_array_equal(found.predict(X), expected.predict(X))


def test_groups_and_equal_rows(client):
    X, y = regression_rows()
    X[:, 2] = np.arange(len(X)) % 3
    X, y = np.concatenate([X, X[:500]]), np.concatenate([y, y[:500]])
    options = {**SETTINGS, "partition": 2}
    expected = LearnedKernelSVR(**options).fit(X, y)
    assert_same_model(DaskLearnedKernelSVR(**options).fit(*in_chunks(X, y)), expected, X)


def test_data_frames(client):
    X, y = class_rows()
    frame = pd.DataFrame(X, columns=["a", "b", "c"], index=np.arange(len(X)) + 10)
    frame["group"] = np.arange(len(X)) % 2
    frame["label"], frame["weight"] = y, 1.0 + np.arange(len(X)) % 3
    parts = dd.from_pandas(frame, npartitions=4)
    names = ["a", "b", "c", "group"]
    options = {**SETTINGS, "partition": "group"}
    expected = LearnedKernelSVC(**options).fit(frame[names], frame["label"], frame["weight"])
    found = DaskLearnedKernelSVC(**options).fit(parts[names], parts["label"], parts["weight"])
    assert found.feature_names_in_.tolist() == names
    assert_same_model(found, expected, frame[names])
    predicted = found.predict(parts[names])
    assert isinstance(predicted, dd.Series)
    pd.testing.assert_series_equal(
        predicted.compute(),
        pd.Series(expected.predict(frame[names]), index=frame.index),
        check_dtype=False,
    )
    scores = found.decision_function(parts[names])
    np.testing.assert_allclose(scores.compute(), expected.decision_function(frame[names]))
    assert found.score(parts[names], parts["label"]) == pytest.approx(
        expected.score(frame[names], frame["label"])
    )


def test_few_rows_are_fitted_as_a_whole(client):
    X, y = regression_rows(300)
    expected = LearnedKernelSVR(tol=1e-3).fit(X, y)
    found = DaskLearnedKernelSVR(tol=1e-3).fit(*in_chunks(X, y, rows=90))
    assert not hasattr(found, "leaves_")
    np.testing.assert_allclose(found.predict(X), expected.predict(X))


def test_rows_that_are_cut_by_the_sample_first(client, rows, monkeypatch):
    monkeypatch.setattr(_leaf_store, "_COARSE_BYTES", 60_000)
    expected = LearnedKernelSVR(**SETTINGS).fit(*rows)
    found = DaskLearnedKernelSVR(**SETTINGS).fit(*in_chunks(*rows))
    assert found.leaves_.n_leaves > 2 * len(rows[0]) / SETTINGS["max_leaf_rows"]
    assert_same_model(found, expected, rows[0])


def test_a_fit_goes_on_from_its_checkpoint(client, rows, expected, tmp_path):
    options = {**SETTINGS, "checkpoint": tmp_path / "fit.ckpt"}
    data = in_chunks(*rows)
    with pytest.warns(match="iteration limit"):
        DaskLearnedKernelSVR(**options, max_iter=1).fit(*data)
    found = DaskLearnedKernelSVR(**options).fit(*data)
    assert found.gap_ <= SETTINGS["tol"]
    assert found.objective_ == pytest.approx(expected.objective_, rel=SETTINGS["tol"])


def test_a_large_parameter(client):
    """It is found by passes, whose dual vectors are averaged."""
    X, y = regression_rows(1200, 33)
    options = {**SETTINGS, "max_leaf_rows": 300, "tol": 3e-2}
    expected = LearnedKernelSVR(**options).fit(X, y)
    assert sum(own.kind == "solve" for own in expected.rounds_) > 2
    assert_same_model(DaskLearnedKernelSVR(**options).fit(*in_chunks(X, y)), expected, X)


def test_bytes_of_a_round_grow_with_leaves_and_the_parameter(client):
    """Not with the rows of a leaf, nor with the dual vectors."""

    def largest_round(count, leaf):
        X, y = regression_rows(count)
        options = {**SETTINGS, "max_leaf_rows": leaf, "tol": 1e-2}
        model = DaskLearnedKernelSVR(**options).fit(*in_chunks(X, y, rows=1500))
        sent = max(own.n_bytes for own in model.rounds_ if own.kind == "solve")
        return sent, model.leaves_.n_leaves, len(model.P_)

    first, leaves, n_params = largest_round(4000, 500)
    second, more, _ = largest_round(8000, 500)
    same, as_many, _ = largest_round(8000, 1000)
    assert more > leaves == as_many
    assert second - first <= 40 * 8 * (more - leaves) * n_params**2
    assert same == pytest.approx(first, rel=0.1)


def test_rounds_are_printed(client, rows, capsys):
    DaskLearnedKernelSVR(**SETTINGS, verbose=1).fit(*in_chunks(*rows))
    assert "pass (solve)" in capsys.readouterr().out


def test_lazy_predictions(client, rows, expected):
    found = DaskLearnedKernelSVR(**SETTINGS).fit(*in_chunks(*rows))
    X = rows[0]
    lazy = found.predict(da.from_array(X, chunks=(500, 2)))
    assert isinstance(lazy, da.Array)
    assert lazy.chunks == ((500,) * 4,)
    np.testing.assert_allclose(lazy.compute(), expected.predict(X))

    def unread(block):
        raise AssertionError("computed")

    found.predict(da.from_array(X, chunks=500).map_blocks(unread, dtype=float, meta=X[:0]))
    assert isinstance(found.predict(X), np.ndarray)
    weight = np.arange(len(X)) % 4
    parts = in_chunks(*rows, weight)
    assert found.score(*parts) == pytest.approx(expected.score(*rows, weight))
    assert found.score(*parts[:2]) == pytest.approx(expected.score(*rows))
