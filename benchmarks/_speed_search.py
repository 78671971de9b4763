"""Rows 12 and 13 of the speed table: a leave-one-out path, and the search of automatic models."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from _common import CLASSIFICATION, REGRESSION, Dataset, say
from _report import text
from _speed import Outcome, Session, alternate, prepare_memory, spread, worst
from _timers import Probe, Timers
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.spatial.distance import cdist
from threadpoolctl import threadpool_limits

from tessella import TessellaClassifier, TessellaRegressor
from tessella.leave_one_out import RidgePath

FloatArray = NDArray[np.float64]

MOST_OF_EIGH = 1.3
MOST_SECONDS = 5.0
CS = np.geomspace(1e-2, 1e6, 15)
DRIVERS = ("evd", "evr")  # the others of LAPACK take longer

SEARCH_ROWS, SEARCH_COLUMNS = 1200, 10

_SEARCH = "tessella.automatic._search:Search."
_BASE = "tessella.automatic._base:"
# The stages of a fit and the functions that they are made of. Their order is that of a fit.
STAGES = {
    "screen": _SEARCH + "_screen",
    "compare": _SEARCH + "_compare",
    "refine": _SEARCH + "_refine",
    "learned": _SEARCH + "_try_learned_kernels",
    "losses": _SEARCH + "_try_other_losses",
    "average": _BASE + "BaseAutomatic._shares",
    "machines": _BASE + "BaseAutomatic._members",
}
SEARCH_STAGES = ("screen", "compare", "refine", "learned", "losses")


# ------------------------------------------------------------------------- leave-one-out path


def leave_one_out_path(session: Session) -> Outcome:
    """Row 12."""
    cells = []
    for threads in dict.fromkeys((1, session.threads)):
        for rows in session.sizes((2000, 5000), (300,)):
            cells.append(path_cell(rows, threads, session.seed))
            say(f"  {rows} rows, {threads} threads: {text(cells[-1]['ratio'])} times eigh")
    slow = [cell for cell in cells if not cell["ratio"] <= MOST_OF_EIGH]
    return Outcome(
        measured=f"{spread(cells, 'ratio')} times",
        missed=f"{len(slow)} of {len(cells)} above {MOST_OF_EIGH:g}" if slow else "",
        columns=PATH_COLUMNS,
        cells=cells,
        notes=PATH_NOTES,
    )


def path_cell(rows: int, threads: int, seed: int) -> dict[str, Any]:
    """The seconds of a path over 15 values of C, and of eigenvectors by the faster driver."""
    rng = np.random.default_rng(seed)
    X = rng.random((rows, 5))
    y = np.sin(6.0 * X[:, 0]) + 2.0 * X[:, 1] * X[:, 2] + 0.3 * rng.standard_normal(rows)
    K = np.exp(-4.0 * cdist(X, X, "sqeuclidean"))
    prepare_memory(4.0 * K.nbytes)
    with threadpool_limits(threads):
        calls: list[Callable[[], Any]] = [_decomposition(K, driver) for driver in DRIVERS]
        *peers, ours = alternate(*calls, lambda: RidgePath(K).loo_errors(y, CS), most=3)
    seconds = [clock.best for clock in peers]
    fastest = int(np.argmin(seconds))
    return {
        "rows": rows,
        "threads": threads,
        **dict(zip(DRIVERS, seconds, strict=True)),
        "driver": DRIVERS[fastest],
        "ours": ours.best,
        "ratio": ours.best / seconds[fastest],
    }


def _decomposition(K: FloatArray, driver: str) -> Callable[[], Any]:
    return lambda: eigh(K.copy(), driver=driver, overwrite_a=True, check_finite=False)


PATH_COLUMNS = {
    "rows": "rows",
    "threads": "threads",
    "dsyevd (s)": "evd",
    "dsyevr (s)": "evr",
    "RidgePath, 15 errors (s)": "ours",
    "ratio to the faster one": "ratio",
}
PATH_NOTES = [
    "`RidgePath(K).loo_errors(y, Cs)` for 15 values of C from 0.01 to 1e6 against "
    "`scipy.linalg.eigh` of the same kernel matrix, whose drivers are LAPACK's dsyevd and dsyevr; "
    "the faster one counts. Both sides copy the matrix. A Gaussian kernel on 5 made-up columns."
]


# ------------------------------------------------------------------------------------- search


def automatic_search(session: Session) -> Outcome:
    """Row 13."""
    rows = session.sizes((SEARCH_ROWS,), (150,))[0]
    cells = []
    for data in made_up(rows, SEARCH_COLUMNS, session.seed):
        cells.append(search_cell(data))
        say(f"  {data.name}: search {text(cells[-1]['search'])} s")
    seconds = worst(cells, "search")
    return Outcome(
        measured=f"{spread(cells, 'search')} s",
        missed=f"{text(seconds)} s" if seconds > MOST_SECONDS else "",
        columns=SEARCH_COLUMNS_OF_TABLE,
        cells=cells,
        notes=SEARCH_NOTES,
    )


def made_up(rows: int, columns: int, seed: int) -> list[Dataset]:
    """Tables of numbers of which five matter: regressions, and two and four classes."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, columns))
    truth = np.sin(2.0 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.5 * np.abs(X[:, 3]) + 0.3 * X[:, 4]
    y = truth + 0.3 * rng.standard_normal(rows)
    tails = truth + 0.3 * rng.standard_t(2.0, rows)
    return [
        Dataset("regression", REGRESSION, X, y),
        Dataset("noise with tails", REGRESSION, X, tails),
        *(
            Dataset(f"{k} classes", CLASSIFICATION, X, _classes(y, k).astype(np.float64))
            for k in (2, 4)
        ),
    ]


def _classes(y: FloatArray, count: int) -> NDArray[np.intp]:
    return np.digitize(y, np.quantile(y, np.arange(1, count) / count))


def search_cell(data: Dataset) -> dict[str, Any]:
    """The seconds of the stages of a default fit on one thread, the best of two."""
    fits = [_fit(data) for _ in range(2)]
    return min(fits, key=lambda cell: float(cell["search"]))


def _fit(data: Dataset) -> dict[str, Any]:
    timers = Timers()
    probes = [Probe(target, _named(stage)) for stage, target in STAGES.items()]
    model = (TessellaClassifier if data.task == CLASSIFICATION else TessellaRegressor)(n_jobs=1)
    with threadpool_limits(1), timers.installed(probes):
        model.fit(data.X, data.y)
    assert not timers.missing, timers.missing
    seconds = {stage: timers.rows[stage].seconds for stage in STAGES}
    return {
        "set": data.name,
        "rows": len(data.y),
        "columns": data.X.shape[1],
        **seconds,
        "search": sum(seconds[stage] for stage in SEARCH_STAGES),
        "fit": model.fit_time_,
        "score": model.loo_score_,
    }


def _named(stage: str) -> Callable[..., str]:
    return lambda *_: stage


SEARCH_COLUMNS_OF_TABLE = {
    "set": "set",
    "rows": "rows",
    "columns": "columns",
    **{f"{stage} (s)": stage for stage in SEARCH_STAGES},
    "search (s)": "search",
    "average (s)": "average",
    "final fits (s)": "machines",
    "fit (s)": "fit",
    "held-out score": "score",
}
SEARCH_NOTES = [
    "Default `TessellaRegressor` and `TessellaClassifier` with `n_jobs=1` and one thread of BLAS, "
    "the better of two fits. The search is the sum of its stages: screening all kinds of kernels "
    "on few rows, comparing the best on all search rows, refining their scales, learned kernels, "
    "and support vector machines where the residuals have long tails. The sets are made up: ten "
    "normal columns, of which five matter."
]
