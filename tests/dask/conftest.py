"""Clusters of processes on this machine."""

from __future__ import annotations

import dask
import pytest
from distributed import Client
from reference.clusters import small_cluster


@pytest.fixture(scope="module")
def cluster():
    """Two processes with one thread each."""
    with small_cluster(2) as own:
        yield own


@pytest.fixture(scope="module")
def client(cluster):
    with Client(cluster) as own:
        yield own


@pytest.fixture
def short_timeouts():
    with dask.config.set({"distributed.comm.timeouts.connect": "3s"}):
        yield
