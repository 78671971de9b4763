"""One path: the fits of one fold along C, each started from what is known already."""

from __future__ import annotations

import time
import traceback
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing

from tessella.estimators._base import BaseLearnedKernel
from tessella.kernels import LearnedKernel

Rows = NDArray[np.intp]


@dataclass(frozen=True)
class Candidate:
    """A point of the grid: its place in the list of all of them, and its parameters."""

    index: int
    params: dict[str, Any]


@dataclass(frozen=True)
class Search:
    """What all paths of a search have in common."""

    estimator: Any
    X: Any
    y: Any
    scorer: Any
    fit_params: Mapping[str, Any]
    score_params: Mapping[str, Any]
    error_score: Any
    one_thread: bool  # per fit: the paths have the cores

    def model(self, params: Mapping[str, Any]) -> Any:
        """An estimator with the parameters of a candidate, ready for warm starts."""
        model = clone(self.estimator).set_params(**clone(dict(params), safe=False))
        learner = last_step(model)
        learner.set_params(warm_start=True)
        if self.one_thread and learner.n_jobs is None:
            learner.set_params(n_jobs=1)
        return model

    def part(self, rows: Rows) -> tuple[Any, Any]:
        """X and y of some rows."""
        return _safe_indexing(self.X, rows), _safe_indexing(self.y, rows)

    def params_of(self, given: Mapping[str, Any], rows: Rows) -> dict[str, Any]:
        """Parameters of `fit` or of the scorer; those with a value for each row are cut."""
        size = len(self.y)
        return {
            name: _safe_indexing(value, rows) if _length(value) == size else value
            for name, value in given.items()
        }


@dataclass(frozen=True)
class Path:
    """Candidates that differ in C alone, in ascending order, on one fold.

    `starts` holds kernels learned for some of the candidates on another fold.
    """

    candidates: Sequence[Candidate]
    fold: int
    train: Rows
    test: Rows
    starts: Mapping[int, LearnedKernel] = field(default_factory=dict)


@dataclass(frozen=True)
class Outcome:
    """A candidate on a fold: what it scored, what it cost and how well it is certified."""

    candidate: int
    fold: int
    scores: Any
    fit_time: float
    score_time: float
    gap: float = np.nan
    certified: bool = True
    kernel: LearnedKernel | None = None
    error: str | None = None


@dataclass(frozen=True)
class PathOutcome:
    """The outcomes of a path, not all of them after Ctrl-C."""

    outcomes: list[Outcome]
    interrupted: bool


def last_step(model: Any) -> Any:
    """The estimator itself, or the last step of a pipeline."""
    while isinstance(model, Pipeline):
        model = model.steps[-1][1]
    return model


def last_step_prefix(model: Any) -> str:
    """What stands before the names of the last step's parameters."""
    prefix = ""
    while isinstance(model, Pipeline):
        prefix += f"{model.steps[-1][0]}__"
        model = model.steps[-1][1]
    return prefix


def in_pieces(paths: Sequence[Path], count: int) -> list[Path]:
    """The same work in at least `count` pieces, as far as cutting changes no result.

    That is so where each candidate has a start of its own. A path that goes from one value of C
    to the next stays whole: results must not depend on the number of jobs.
    """
    parts = -(-count // max(1, len(paths)))
    pieces = []
    for path in paths:
        own = all(candidate.index in path.starts for candidate in path.candidates)
        step = max(1, len(path.candidates) // parts) if own else len(path.candidates)
        for first in range(0, len(path.candidates), step):
            candidates = path.candidates[first : first + step]
            starts = {c.index: path.starts[c.index] for c in candidates if c.index in path.starts}
            pieces.append(replace(path, candidates=candidates, starts=starts))
    return pieces


def walk(search: Search, path: Path) -> PathOutcome:
    """Fit and score every candidate of a path.

    The fit of a candidate starts from the kernel that another fold found for it, or else from
    the kernel and the dual vector of the candidate before. Starts save work and change nothing
    else: every fit is certified to the estimator's own tolerance.
    """
    outcomes: list[Outcome] = []
    previous = None
    with warnings.catch_warnings():
        # The search reports on all fits together, in one warning.
        warnings.simplefilter("ignore", ConvergenceWarning)
        try:
            for candidate in path.candidates:
                model = _prepared(search, path, candidate, previous)
                outcomes.append(_evaluated(search, path, candidate, model))
                previous = model if outcomes[-1].error is None else None
        except KeyboardInterrupt:
            return PathOutcome(outcomes, interrupted=True)
    return PathOutcome(outcomes, interrupted=False)


def _prepared(search: Search, path: Path, candidate: Candidate, previous: Any) -> Any:
    start = path.starts.get(candidate.index)
    if start is None and previous is not None:
        return previous.set_params(**clone(candidate.params, safe=False))
    model = search.model(candidate.params)
    if start is not None:
        last_step(model)._start_from(start)
    return model


def _evaluated(search: Search, path: Path, candidate: Candidate, model: Any) -> Outcome:
    begin = time.perf_counter()
    fitted = begin
    try:
        X, y = search.part(path.train)
        model.fit(X, y, **search.params_of(search.fit_params, path.train))
        fitted = time.perf_counter()
        learner = last_step(model)
        if learner.status_ == "interrupted":
            raise KeyboardInterrupt  # the estimator kept its best answer; the search has to stop
        X, y = search.part(path.test)
        scores = search.scorer(model, X, y, **search.params_of(search.score_params, path.test))
    except Exception:
        if isinstance(search.error_score, str):
            raise
        return Outcome(
            candidate.index,
            path.fold,
            search.error_score,
            fitted - begin,
            time.perf_counter() - fitted,
            error=traceback.format_exc(),
        )
    return Outcome(
        candidate.index,
        path.fold,
        scores,
        fitted - begin,
        time.perf_counter() - fitted,
        gap=float(learner.gap_),
        certified=bool(learner.gap_ <= learner.tol),
        kernel=learner.kernel_ if path.fold == 0 else None,  # where the other folds start
    )


def check_learner(estimator: Any) -> None:
    """Raise TypeError for an estimator whose path cannot be followed."""
    if not isinstance(last_step(estimator), BaseLearnedKernel):
        raise TypeError(
            f"estimator={estimator!r} must be a LearnedKernelSVC, a LearnedKernelSVR or a Pipeline "
            "that ends in one. For other estimators use sklearn.model_selection.GridSearchCV."
        )


def _length(value: Any) -> int | None:
    return len(value) if hasattr(value, "__len__") and not isinstance(value, str) else None
