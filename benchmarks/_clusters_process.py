"""One fit with leaves, with Dask or without, in a process of its own; see clusters.py."""

from __future__ import annotations

import json
import sys
import time
import warnings
from typing import Any

import numpy as np
from _large_data import REGRESSION, leaves_of, make_rows
from _watched import processor_seconds


def main() -> None:
    """Answer a request, a JSON object in the first argument, on the last line of the output."""
    request = json.loads(sys.argv[1])
    warnings.simplefilter("ignore")
    action = {"fit": fit, "dask": fit_with_dask, "network": network}[request.pop("action")]
    print(json.dumps(action(**request)))


def fit(*, rows: int, seed: int, settings: dict[str, Any], processes: int) -> dict[str, Any]:
    """The fit without Dask, with as many threads as the cluster has processes."""
    from tessella import LearnedKernelSVR

    train = make_rows(rows, REGRESSION, seed)
    LearnedKernelSVR().fit(train.X[:100], train.y[:100])
    model = LearnedKernelSVR(n_jobs=processes, **settings)
    begin, used = time.perf_counter(), processor_seconds()
    model.fit(train.X, train.y)
    seconds, used = time.perf_counter() - begin, processor_seconds() - used
    return {"seconds": seconds, "processor_seconds": used, **_facts(model)}


def fit_with_dask(
    *, rows: int, seed: int, settings: dict[str, Any], processes: int
) -> dict[str, Any]:
    """The fit with Dask, on a cluster of processes with one thread each."""
    import dask.array as da

    train = make_rows(rows, REGRESSION, seed)
    with _cluster(processes) as client:
        _load_everywhere(client)
        X, y = (da.from_array(part, chunks=(rows // processes, *part.shape[1:]))
                for part in (train.X, train.y))  # fmt: skip
        model = _dask_model(settings)
        begin = time.perf_counter()
        model.fit(X, y)
        seconds = time.perf_counter() - begin
        sent = [_number(each) for each in model.rounds_]
        return {"seconds": seconds, "bytes_of_rounds": sent, **_facts(model)}


def _dask_model(settings: dict[str, Any]) -> Any:
    from tessella.dask import DaskLearnedKernelSVR

    return DaskLearnedKernelSVR(**settings)


def _number(sent: Any) -> float:
    """Bytes of a round, given as a number or as a record of it."""
    return float(getattr(sent, "n_bytes", sent))


def network(*, processes: int, tasks: int, megabytes: int) -> dict[str, Any]:
    """Seconds of a task and of a message without content, and bytes per second of the link."""
    with _cluster(processes) as client:
        client.gather(client.map(_nothing, range(tasks), pure=False))
        begin = time.perf_counter()
        client.gather(client.map(_nothing, range(tasks), pure=False))
        per_task = (time.perf_counter() - begin) / tasks
        trips = []
        for k in range(20):
            begin = time.perf_counter()
            client.submit(_nothing, k, pure=False).result()
            trips.append(time.perf_counter() - begin)
        future = client.submit(np.ones, megabytes * 10**6 // 8)
        client.submit(len, future).result()
        begin = time.perf_counter()
        carried = future.result().nbytes
        rate = carried / (time.perf_counter() - begin)
    return {"task_seconds": per_task, "latency": float(np.median(trips)) / 2, "bandwidth": rate}


def _nothing(number: int) -> int:
    return number


def _load_everywhere(client: Any) -> None:
    """Import the library in every process before the clock runs."""

    def load() -> None:
        import tessella

        rows = np.random.default_rng(0).random((100, 2))
        tessella.LearnedKernelSVR(n_jobs=1).fit(rows, rows[:, 0])

    client.run(load)


def _cluster(processes: int) -> Any:
    """A client of local processes, which end with it."""
    from dask.distributed import Client

    return Client(n_workers=processes, threads_per_worker=1, processes=True, dashboard_address=None)


def _facts(model: Any) -> dict[str, Any]:
    return {
        "gap": float(model.gap_),
        "status": str(model.status_),
        "objective": float(model.objective_),
        "rounds": len(model.history_),
        "leaves": leaves_of(model),
    }


if __name__ == "__main__":
    main()
