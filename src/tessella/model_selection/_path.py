"""Paths of candidates: the fits of one fold along C, each started from what is known already."""

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
from tessella.estimators._warm_start import PreviousFit
from tessella.kernels import LearnedKernel
from tessella.model_selection._held_out import held_out

Rows = NDArray[np.intp]

_FEW_MACHINES = 5  # that take no longer than what a start would save


@dataclass(frozen=True)
class Candidate:
    """A point of the grid.

    Attributes
    ----------
    index : int
        Position of the candidate in the list of all candidates.
    params : dict
        Its parameters.
    """

    index: int
    params: dict[str, Any]


@dataclass(frozen=True)
class SearchSettings:
    """What all fits of a search have in common.

    Attributes
    ----------
    estimator : estimator
        The estimator to tune.
    X, y : array-like
        The data.
    scorer : callable
        The scorer, as from :func:`sklearn.metrics.check_scoring`.
    fit_params, score_params : mapping
        Further parameters of `fit` and of the scorer.
    error_score : "raise" or number
        Score of a candidate whose fit or scoring fails.
    one_thread : bool
        Whether each fit uses a single thread, because the paths share the cores.
    leave_one_out : bool
        Whether a fit is scored by its leave-one-out predictions for the rows that it was fitted
        on.
    """

    estimator: Any
    X: Any
    y: Any
    scorer: Any
    fit_params: Mapping[str, Any]
    score_params: Mapping[str, Any]
    error_score: Any
    one_thread: bool
    leave_one_out: bool = False

    def model(self, params: Mapping[str, Any]) -> Any:
        """An unfitted estimator with the parameters of a candidate, ready for warm starts."""
        model = clone(self.estimator).set_params(**clone(dict(params), safe=False))
        learner = last_step(model)
        learner.set_params(warm_start=True)
        if self.one_thread and learner.n_jobs is None:
            learner.set_params(n_jobs=1)
        return model

    def data_of(self, rows: Rows) -> tuple[Any, Any]:
        """X and y of some rows."""
        return _safe_indexing(self.X, rows), _safe_indexing(self.y, rows)

    def params_of(self, params: Mapping[str, Any], rows: Rows) -> dict[str, Any]:
        """Parameters of `fit` or of the scorer; those with a value for each row are indexed."""
        size = len(self.y)
        return {
            name: _safe_indexing(value, rows) if _length(value) == size else value
            for name, value in params.items()
        }


@dataclass(frozen=True)
class FoldPath:
    """Candidates that differ in C alone, to be fitted on one fold.

    Attributes
    ----------
    candidates : sequence of Candidate
        The candidates, in ascending order of C.
    fold : int
        Number of the fold.
    train, test : ndarray of int
        Rows to fit and rows to score.
    start_kernels : mapping from int to LearnedKernel or None
        Kernels that another fold has learned for some of the candidates, by candidate index. None
        for a candidate that is to start from nothing, because that took a few machines there.
    """

    candidates: Sequence[Candidate]
    fold: int
    train: Rows
    test: Rows
    start_kernels: Mapping[int, LearnedKernel | None] = field(default_factory=dict)


@dataclass(frozen=True)
class CandidateResult:
    """The fit of a candidate on a fold.

    Attributes
    ----------
    candidate, fold : int
        Index of the candidate and number of the fold.
    scores : float or mapping from str to float
        Score, or several scores by name.
    fit_time, score_time : float
        Seconds of fitting and of scoring.
    gap : float
        Certified relative gap of the fit.
    certified : bool
        Whether the gap is within the tolerance of the estimator.
    kernel : LearnedKernel or None
        The learned kernel, if other folds are to start from it.
    quick : bool
        Whether the fit started from nothing and took a few machines only, so that a start would
        save nothing.
    error : str or None
        Traceback of an error.
    """

    candidate: int
    fold: int
    scores: Any
    fit_time: float
    score_time: float
    gap: float = np.nan
    certified: bool = True
    kernel: LearnedKernel | None = None
    quick: bool = False
    error: str | None = None


@dataclass(frozen=True)
class PathResult:
    """The results of the candidates of a path; after Ctrl-C, of those that were finished."""

    results: list[CandidateResult]
    interrupted: bool


def last_step(model: Any) -> Any:
    """The estimator itself, or the last step of a pipeline."""
    while isinstance(model, Pipeline):
        model = model.steps[-1][1]
    return model


def last_step_prefix(model: Any) -> str:
    """Prefix of the parameter names of the last step; empty without a pipeline."""
    prefix = ""
    while isinstance(model, Pipeline):
        prefix += f"{model.steps[-1][0]}__"
        model = model.steps[-1][1]
    return prefix


def split_paths(paths: Sequence[FoldPath], count: int) -> list[FoldPath]:
    """Split paths into at least `count` pieces, as far as that changes no result.

    A path can be split where each candidate has a start of its own. A path whose fits start from
    each other stays whole, because results must not depend on the number of jobs.
    """
    parts = -(-count // max(1, len(paths)))
    pieces = []
    for path in paths:
        known = path.start_kernels
        independent = all(candidate.index in known for candidate in path.candidates)
        step = max(1, len(path.candidates) // parts) if independent else len(path.candidates)
        for first in range(0, len(path.candidates), step):
            candidates = path.candidates[first : first + step]
            kernels = {c.index: known[c.index] for c in candidates if c.index in known}
            pieces.append(replace(path, candidates=candidates, start_kernels=kernels))
    return pieces


def evaluate_path(settings: SearchSettings, path: FoldPath) -> PathResult:
    """Fit and score every candidate of a path.

    The fit of a candidate starts from the kernel that another fold has learned for it, or else
    from the kernel and the dual coefficients of the previous candidate. It starts from nothing if
    the fit of the other fold or of the previous candidate did so and was quick. A kernel whose
    parameter has another shape is ignored. The start saves time and changes nothing else, because
    every fit is certified to the tolerance of the estimator.
    """
    results: list[CandidateResult] = []
    previous = None
    with warnings.catch_warnings():
        # The search raises one warning about all fits together.
        warnings.simplefilter("ignore", ConvergenceWarning)
        try:
            for candidate in path.candidates:
                model = _model_for(settings, path, candidate, previous)
                result = _fit_and_score(settings, path, candidate, model)
                results.append(result)
                previous = model if result.error is None and not result.quick else None
        except KeyboardInterrupt:
            return PathResult(results, interrupted=True)
    return PathResult(results, interrupted=False)


def _model_for(
    settings: SearchSettings, path: FoldPath, candidate: Candidate, previous: Any
) -> Any:
    """The estimator of a candidate, with whatever its fit starts from."""
    known = candidate.index in path.start_kernels
    if not known and previous is not None:
        return previous.set_params(**clone(candidate.params, safe=False))
    model = settings.model(candidate.params)
    kernel = path.start_kernels.get(candidate.index)
    if kernel is not None:
        last_step(model)._start_from(kernel)
    return model


def _fit_and_score(
    settings: SearchSettings, path: FoldPath, candidate: Candidate, model: Any
) -> CandidateResult:
    begin = fitted = time.perf_counter()
    error, scores = None, settings.error_score
    cold = PreviousFit.of(last_step(model)) is None
    try:
        X, y = settings.data_of(path.train)
        model.fit(X, y, **settings.params_of(settings.fit_params, path.train))
        fitted = time.perf_counter()
        if last_step(model).status_ == "interrupted":
            raise KeyboardInterrupt  # the estimator has kept its best model; the search stops
        X, y = settings.data_of(path.test)
        params = settings.params_of(settings.score_params, path.test)
        scored = held_out(last_step(model)) if settings.leave_one_out else model
        scores = settings.scorer(scored, X, y, **params)
    except Exception:
        if isinstance(settings.error_score, str):
            raise
        error = traceback.format_exc()
    times = fitted - begin, time.perf_counter() - fitted
    result = CandidateResult(candidate.index, path.fold, scores, *times, error=error)
    return result if error is not None else _with_certificate(result, last_step(model), cold)


def _with_certificate(result: CandidateResult, learner: Any, cold: bool) -> CandidateResult:
    quick = cold and _took_few_machines(learner)
    return replace(
        result,
        gap=float(learner.gap_),
        certified=bool(learner.gap_ <= learner.tol),
        # The other folds start from it.
        kernel=learner.kernel_ if result.fold == 0 and not quick else None,
        quick=quick,
    )


def _took_few_machines(learner: Any) -> bool:
    """Whether a fit needed neither Newton steps nor many machines."""
    separate = isinstance(learner.history_, list)  # one kernel for each pair of classes
    histories = learner.history_ if separate else [learner.history_]
    return all(
        bool(history) and history[-1].n_newton == 0 and history[-1].n_svm <= _FEW_MACHINES
        for history in histories
    )


def check_learner(estimator: Any) -> None:
    """Raise TypeError for an estimator that the search cannot tune."""
    if not isinstance(last_step(estimator), BaseLearnedKernel):
        raise TypeError(
            f"estimator={estimator!r} must be a LearnedKernelSVC, LearnedKernelSVR, "
            "LearnedKernelRidge, LearnedKernelRidgeClassifier, MultipleKernelSVC or "
            "MultipleKernelSVR, or a Pipeline that ends in one. For other estimators use "
            "sklearn.model_selection.GridSearchCV."
        )


def _length(value: Any) -> int | None:
    return len(value) if hasattr(value, "__len__") and not isinstance(value, str) else None
