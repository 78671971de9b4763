"""The pool of leaves on a cluster beside that of one process, and the order of results."""

from __future__ import annotations

import gc
import sys
import threading

import cloudpickle
import numpy as np
import pytest
from distributed import get_client

from tessella.dask._cluster import Cluster
from tessella.dask._leaves import DaskLeaves
from tessella.dask._tasks import same
from tessella.estimators._leaf_store import LeafSpec, RowsOfLeaf
from tessella.estimators._leaf_targets import TubeTargets
from tessella.kernels import TessellatedKernels, UnitBox
from tessella.solvers import LocalLeaves

# Workers cannot import this file.
cloudpickle.register_pickle_by_value(sys.modules[__name__])

SIZES = [30, 20, 40]


def blocks():
    rng = np.random.default_rng(0)
    for size in SIZES:
        X = rng.random((size, 2))
        yield RowsOfLeaf(X, X[:, 0], np.ones(size), np.arange(size), np.zeros((size, 1)))


@pytest.fixture
def pools(client):
    """The same leaves on the cluster and in this process."""
    rows = list(blocks())
    box = UnitBox.fit(np.concatenate([own.X for own in rows]))
    kernels = TessellatedKernels(1, 0.5).resolve(box.apply(rows[0].X))
    spec = LeafSpec(TubeTargets(1.0, 0.1, 1.0), kernels, box, "float64", None)
    cluster = Cluster(client)
    futures = [cluster.submit(same, own.block) for own in rows]
    local = LocalLeaves.of([spec.problem(own) for own in rows], 1)
    return DaskLeaves(cluster, futures, SIZES, spec, 2), local


def count_and_add(leaf, w, number, matrix, *, n_jobs):
    """A task that keeps a vector and returns a sum, and whose result is in one thread."""
    assert n_jobs == 1
    return w + number, float(len(leaf.rows) + w.sum() + matrix.sum())


def only_read(leaf, w, *, n_jobs):
    return None, float(w.sum())


def test_vectors_are_those_of_the_local_pool(pools):
    matrix = np.random.default_rng(1).random((60, 60))
    for step in (
        lambda own: list(
            own.map(count_and_add, lambda k: (k + 1.0, matrix), read="zero", write="w")
        ),
        lambda own: own.copy("w", "best"),
        lambda own: list(own.map(count_and_add, lambda k: (1.0, matrix), write="w")),
        lambda own: list(own.map(only_read, lambda k: (), leaves=[0, 2])),
        lambda own: list(own.map(count_and_add, lambda k: (5.0, matrix))),
        lambda own: own.mix("best", "w", 0.3),
        lambda own: own.mix("nothing", "also nothing", 0.3),
        lambda own: own.set_vector("w", 1, np.arange(20.0)),
        lambda own: own.set_vector("w", 2, np.zeros(40)),
        lambda own: own.copy("w", "kept"),
        lambda own: own.copy("nothing", "kept"),
        lambda own: own.set_stacked("known", np.arange(90.0)),
    ):
        found, expected = (step(own) for own in pools)
        assert found == pytest.approx(expected)
        for name in ("w", "best", "nothing", "kept", "known"):
            np.testing.assert_allclose(*(own.stacked(name) for own in pools))
    np.testing.assert_allclose(*(own.vector("w", 1) for own in pools))
    assert pools[0].workers == 2


def wait_for(name):
    """A task that ends when an event of the cluster is set."""
    from distributed import Event

    assert Event(name, client=get_client()).wait(60)
    return name


def test_results_keep_the_order_of_their_items(client):
    from distributed import Event

    cluster, first = Cluster(client), Event("first", client=client)
    submitted = []

    def submit(k):
        submitted.append(k)
        return cluster.submit(wait_for, "first") if k == 0 else cluster.submit(same, k)

    results = cluster.ordered(range(100), submit)
    thread = threading.Timer(0.0, first.set)
    thread.start()
    assert next(results) == (0, "first")
    thread.join()
    assert len(submitted) < 100  # not more than the threads need
    assert list(results) == [(k, k) for k in range(1, 100)]


def test_what_nobody_reads_is_cancelled(client):
    from distributed import Event

    cluster, futures = Cluster(client), []

    def submit(k):
        futures.append(cluster.submit(wait_for, "last") if k else cluster.submit(same, k))
        return futures[-1]

    results = cluster.ordered(range(100), submit)
    assert next(results) == (0, 0)
    results.close()
    assert all(own.status == "cancelled" for own in futures[1:])
    Event("last", client=client).set()
    del futures[:]
    gc.collect()


def fail_at_first(name):
    """A task that fails when it runs for the first time."""
    from distributed import Event

    event = Event(name, client=get_client())
    if not event.is_set():
        event.set()
        raise OSError("the disk is busy")
    return name


def test_tasks_that_fail_are_tried_again(client):
    cluster = Cluster(client)
    assert cluster.result(cluster.submit(fail_at_first, "busy")) == "busy"
