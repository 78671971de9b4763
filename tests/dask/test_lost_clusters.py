"""Schedulers that cannot be reached, fits that are cancelled, and Ctrl-C."""

from __future__ import annotations

import gc

import pytest
from distributed import Client, Future, LocalCluster
from reference.clusters import SETTINGS, assert_same_model, in_chunks, regression_rows

from tessella import LearnedKernelSVR
from tessella.dask import ClusterError, DaskLearnedKernelSVR
from tessella.solvers import Monitor


class AtThird(Monitor):
    """Calls a function when the third leaf of the first pass is done."""

    def __init__(self, action):
        self.action = action
        self.calls = 0

    def leaf(self, done, total, answer):
        if done == 3 and not self.calls:
            self.calls += 1
            self.action()


def small_cluster(**options):
    return LocalCluster(
        n_workers=1, threads_per_worker=1, processes=True, dashboard_address=None, **options
    )


def test_no_client():
    with pytest.raises(ClusterError, match="There is no Dask client"):
        DaskLearnedKernelSVR().fit(*in_chunks(*regression_rows(600)))
    with pytest.raises(ClusterError, match="There is no Dask client"):
        _ = DaskLearnedKernelSVR().client_


def test_a_scheduler_that_has_gone(short_timeouts):
    with small_cluster() as cluster, Client(cluster) as client:
        cluster.close()
        with pytest.raises(ClusterError, match=r"answered|closed|lost"):
            DaskLearnedKernelSVR(client=client).fit(*in_chunks(*regression_rows(600)))


def test_a_cluster_without_workers(short_timeouts):
    with (
        LocalCluster(n_workers=0, processes=True, dashboard_address=None) as cluster,
        Client(cluster) as client,
        pytest.raises(ClusterError, match="has workers"),
    ):
        DaskLearnedKernelSVR(client=client).fit(*in_chunks(*regression_rows(600)))


@pytest.mark.parametrize("what", ["cluster", "client"])
def test_what_is_closed_in_the_middle(what, short_timeouts):
    with small_cluster() as cluster, Client(cluster) as client:
        monitor = AtThird({"cluster": cluster, "client": client}[what].close)
        model = DaskLearnedKernelSVR(**SETTINGS, client=client)
        with pytest.raises(ClusterError):
            model._fit(*in_chunks(*regression_rows()), callback=monitor)
        assert monitor.calls == 1
        assert not hasattr(model, "kernel_")


def test_a_fit_that_is_cancelled(client):
    def cancel():
        client.cancel([Future(key, client=client) for key in list(client.futures)])

    with pytest.raises(ClusterError, match="cancelled"):
        DaskLearnedKernelSVR(**SETTINGS)._fit(
            *in_chunks(*regression_rows()), callback=AtThird(cancel)
        )


def interrupt():
    raise KeyboardInterrupt


def test_ctrl_c_ends_the_fit_with_the_best_answer(client):
    X, y = regression_rows()
    expected = LearnedKernelSVR(**SETTINGS)
    with pytest.warns(match="interrupted"):
        expected._fit(X, y, callback=AtThird(interrupt))
    found = DaskLearnedKernelSVR(**SETTINGS)
    with pytest.warns(match="interrupted"):
        found._fit(*in_chunks(X, y), callback=AtThird(interrupt))
    assert found.status_ == "interrupted"
    assert_same_model(found, expected, X)


def test_nothing_stays_on_the_cluster(client):
    DaskLearnedKernelSVR(**SETTINGS).fit(*in_chunks(*regression_rows()))
    gc.collect()
    assert not client.futures
