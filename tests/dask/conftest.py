"""Clusters of processes on this machine."""

from __future__ import annotations

import dask
import pytest
from distributed import Client, LocalCluster


@pytest.fixture(scope="module")
def cluster():
    """Two processes with one thread each."""
    options = {"threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with LocalCluster(n_workers=2, **options) as own:
        yield own


@pytest.fixture(scope="module")
def client(cluster):
    with Client(cluster) as own:
        yield own


@pytest.fixture
def short_timeouts():
    with dask.config.set({"distributed.comm.timeouts.connect": "3s"}):
        yield
