"""Workers that die, come, or run out of memory in the middle of a fit."""

from __future__ import annotations

import os
import signal
import sys

import cloudpickle
import dask
import numpy as np
import pytest
from distributed import Client, LocalCluster
from reference.clusters import SETTINGS, assert_same_model, in_chunks, regression_rows

from tessella import LearnedKernelSVR
from tessella.dask import ClusterError, DaskLearnedKernelSVR
from tessella.dask import _leaves as dask_leaves
from tessella.dask import _rows as dask_rows
from tessella.solvers import Monitor

# Workers cannot import this file.
cloudpickle.register_pickle_by_value(sys.modules[__name__])


class AtLeaf(Monitor):
    """Calls a function when some numbers of leaves of all passes are done."""

    def __init__(self, **actions):
        self.actions = {int(number[1:]): action for number, action in actions.items()}
        self.done = 0

    def leaf(self, done, total, answer):
        self.done += 1
        action = self.actions.pop(self.done, None)
        if action is not None:
            action()


@pytest.fixture(scope="module")
def rows():
    return regression_rows()


@pytest.fixture(scope="module")
def expected(rows):
    return LearnedKernelSVR(**SETTINGS).fit(*rows)


def kill_worker(cluster, place):
    """Kill the process of a worker, whose nanny starts another one."""
    nanny = list(cluster.workers.values())[place % len(cluster.workers)]
    if nanny.pid is not None:
        os.kill(nanny.pid, signal.SIGKILL)


@pytest.mark.parametrize("chunk", [700, 2000])
def test_two_killed_workers(cluster, client, rows, expected, chunk):
    client.wait_for_workers(2)
    monitor = AtLeaf(
        n3=lambda: kill_worker(cluster, 0),
        n15=lambda: kill_worker(cluster, 1),
    )
    found = DaskLearnedKernelSVR(**SETTINGS)._fit(*in_chunks(*rows, rows=chunk), callback=monitor)
    assert monitor.actions == {}
    assert_same_model(found, expected, rows[0])


def test_a_worker_that_comes_later(cluster, client, rows, expected):
    client.wait_for_workers(2)
    monitor = AtLeaf(n3=lambda: cluster.scale(3))
    found = DaskLearnedKernelSVR(**SETTINGS)._fit(*in_chunks(*rows), callback=monitor)
    assert_same_model(found, expected, rows[0])
    client.wait_for_workers(3)
    cluster.scale(2)


def killed(*arguments):
    """A task that the operating system kills for its memory."""
    os.kill(os.getpid(), signal.SIGKILL)


def out_of_memory(*arguments):
    """A task for which there is no memory."""
    raise MemoryError("no room for the task")


@pytest.fixture
def fragile_cluster():
    """A cluster that gives a task up when its first worker has died."""
    with dask.config.set({"distributed.scheduler.allowed-failures": 0}):
        options = {"threads_per_worker": 1, "processes": True, "dashboard_address": None}
        with LocalCluster(n_workers=1, **options) as cluster, Client(cluster) as client:
            yield client


def test_a_task_that_kills_its_workers(fragile_cluster, rows, monkeypatch):
    monkeypatch.setattr(dask_leaves, "run_leaf", killed)
    model = DaskLearnedKernelSVR(**SETTINGS, client=fragile_cluster)
    with pytest.raises(ClusterError, match="smaller max_leaf_rows"):
        model.fit(*in_chunks(*rows))
    assert not hasattr(model, "kernel_")


def test_a_task_without_memory(client, rows, monkeypatch):
    monkeypatch.setattr(dask_rows, "cut_leaf", out_of_memory)
    with pytest.raises(MemoryError, match="no room"):
        DaskLearnedKernelSVR(**SETTINGS).fit(*in_chunks(*rows))


def test_workers_that_are_too_small(client, rows, monkeypatch):
    monkeypatch.setattr(dask_rows.Cluster, "smallest_worker", lambda self: (2_000_000, 4))
    with pytest.raises(MemoryError, match="fewer threads for each worker"):
        DaskLearnedKernelSVR(**SETTINGS).fit(*in_chunks(*rows))


def test_an_error_of_the_data_names_the_row(client, rows):
    X, y = rows
    X = X.copy()
    X[1234, 1] = np.nan
    with pytest.raises(ValueError, match=r"number 1 of X has a missing value in row 1234 "):
        DaskLearnedKernelSVR(**SETTINGS).fit(*in_chunks(X, y))
