"""Models of this library as methods of the suite: tables as they come, nothing chosen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import tessella
from tessella import make_tabular_pipeline
from tessella_bench._methods import CLASSIFICATION, Fitted
from tessella_bench._tuning import Stopwatch

MEMBER_KEYS = ("family", "scaling", "encoding", "loss", "learned", "weight")


def tessella_model(task: str, X: Any, y: Any, seed: int, **options: Any) -> Fitted:
    """`TessellaClassifier` or `TessellaRegressor`; the options are for its constructor."""
    name = "TessellaClassifier" if task == CLASSIFICATION else "TessellaRegressor"
    model = getattr(tessella, name)(**options)
    fixed = {"n_jobs": 1, "random_state": seed}
    given = {key: value for key, value in fixed.items() if key in model.get_params()}
    model.set_params(**(given | options))
    fitting = Stopwatch()
    with fitting():
        model.fit(X, y)
    found = {"members": members(getattr(model, "leaderboard_", ()))}
    return Fitted(model, found, 0.0, fitting.seconds, gap=_gap(model))


def _gap(model: Any) -> float | None:
    gap = getattr(model, "gap_", None)
    return None if gap is None else float(gap)


def members(leaderboard: Any) -> list[dict[str, Any]]:
    """The models that take part in an average, as far as a leaderboard describes them.

    Parameters
    ----------
    leaderboard : DataFrame or iterable of mapping
        A row for each candidate; "weight" is its part in the average.

    Returns
    -------
    list of dict
        Those with a positive weight, with the entries that the report counts.
    """
    rows: Iterable[Mapping[str, Any]] = leaderboard
    if hasattr(leaderboard, "to_dict"):
        rows = leaderboard.to_dict(orient="records")
    return [
        {key: row[key] for key in MEMBER_KEYS if key in row}
        for row in rows
        if (row.get("weight") or 0.0) > 0.0
    ]


def learned_kernel(task: str, X: Any, y: Any, seed: int) -> Fitted:  # noqa: ARG001
    """`LearnedKernelSVC` or `LearnedKernelSVR` with defaults in `make_tabular_pipeline`."""
    model = make_tabular_pipeline("classifier" if task == CLASSIFICATION else "regressor")
    model.set_params(model__n_jobs=1)
    fitting = Stopwatch()
    with fitting():
        model.fit(X, y)
    return Fitted(model, {}, 0.0, fitting.seconds, gap=_gap(model[-1]))
