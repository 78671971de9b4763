"""From the outcomes of single fits to the table of a search, and to its best point."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from numbers import Number
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.exceptions import ConvergenceWarning, FitFailedWarning

from tessella.kernels import LearnedKernel
from tessella.model_selection._path import Candidate, Outcome

FloatArray = NDArray[np.float64]

_CLEAR = 2.0  # standard errors below the leader at which a point is given up


class Outcomes:
    """What is known so far about candidates and folds."""

    def __init__(self, candidates: Sequence[Candidate], n_splits: int) -> None:
        self._candidates = candidates
        self._shape = (len(candidates), n_splits)
        self._known: dict[tuple[int, int], Outcome] = {}

    def add(self, outcome: Outcome) -> None:
        """Keep one outcome."""
        self._known[outcome.candidate, outcome.fold] = outcome

    def kernels_of(self, points: Sequence[Candidate]) -> dict[int, LearnedKernel]:
        """The kernels that the first fold found for some candidates."""
        known = {point.index: self._known.get((point.index, 0)) for point in points}
        return {i: found.kernel for i, found in known.items() if found and found.kernel}

    @property
    def complete(self) -> NDArray[np.bool_]:
        """Candidates that have been evaluated on all folds."""
        counts = np.bincount([i for i, _ in self._known], minlength=self._shape[0])
        complete: NDArray[np.bool_] = counts == self._shape[1]
        return complete

    @property
    def metrics(self) -> list[str]:
        """Names of the scores; "score" when there is one without a name."""
        for outcome in self._known.values():
            if isinstance(outcome.scores, Mapping):
                return list(outcome.scores)
        return ["score"]

    @property
    def multimetric(self) -> bool:
        """Whether the scorer gives several scores."""
        return any(isinstance(outcome.scores, Mapping) for outcome in self._known.values())

    def scores(self, metric: str) -> FloatArray:
        """Scores by candidate and fold; NaN where there is none."""
        table = np.full(self._shape, np.nan)
        for place, outcome in self._known.items():
            score = outcome.scores
            table[place] = _number(score[metric] if isinstance(score, Mapping) else score)
        return table

    def survivors(self, metric: str, alive: set[int], folds: int) -> set[int]:
        """Those of the candidates `alive` that may still win after some folds.

        After the first fold the better half. From then on those whose mean is not clearly below
        that of the leader: by no more than two standard errors of a difference between two
        points, whose variance is estimated from all of them together.
        """
        points = np.array(sorted(alive))
        scores = self.scores(metric)[points, :folds]
        sound = np.isfinite(scores).all(axis=1)
        if not sound.any():
            return alive
        points, scores = points[sound], scores[sound]
        means = scores.mean(axis=1)
        if folds == 1:
            least = float(np.median(means))
        else:
            lag = scores[means.argmax()] - scores
            variance = float(lag.var(axis=1, ddof=1).sum()) / max(1, len(points) - 1)
            least = float(means.max()) - _CLEAR * np.sqrt(variance / folds)
        return set(points[means >= least].tolist())

    def table(self) -> dict[str, Any]:
        """``cv_results_``: the columns of GridSearchCV, and those about the certificates."""
        table: dict[str, Any] = {}
        for name in ("fit_time", "score_time"):
            values = self._column(name)
            table[f"mean_{name}"] = _over_folds(np.mean, values)
            table[f"std_{name}"] = _over_folds(np.std, values)
        table |= _parameter_columns([candidate.params for candidate in self._candidates])
        table["params"] = [candidate.params for candidate in self._candidates]
        for metric in self.metrics:
            scores = self.scores(metric)
            table |= {f"split{k}_test_{metric}": scores[:, k] for k in range(self._shape[1])}
            table[f"mean_test_{metric}"] = scores.mean(axis=1)
            table[f"std_test_{metric}"] = scores.std(axis=1)
            table[f"rank_test_{metric}"] = _ranks(scores.mean(axis=1))
        gaps = self._column("gap")
        table["mean_gap"] = _over_folds(np.mean, gaps)
        table["worst_gap"] = _over_folds(np.max, gaps)
        table["n_uncertified"] = (self._column("certified") == 0).sum(axis=1)
        table["n_folds"] = np.bincount([i for i, _ in self._known], minlength=self._shape[0])
        return table

    def _column(self, name: str) -> FloatArray:
        values = np.full(self._shape, np.nan)
        for place, outcome in self._known.items():
            values[place] = float(getattr(outcome, name))
        return values

    def report_failures(self, error_score: Any) -> None:
        """One warning about fits that failed, an error when all of them did."""
        errors = Counter(o.error for o in self._known.values() if o.error is not None)
        failed, total = sum(errors.values()), len(self._known)
        details = "\n".join(f"{count} times:\n{text}" for text, count in errors.items())
        if failed and failed == total:
            raise ValueError(
                f"All the {total} fits failed. Set error_score='raise' to stop at the first one. "
                f"What happened:\n{details}"
            )
        if failed:
            warnings.warn(
                f"{failed} of {total} fits failed; their score is set to {error_score}. Set "
                f"error_score='raise' to stop at the first one. What happened:\n{details}",
                FitFailedWarning,
                stacklevel=3,
            )

    def report_gaps(self) -> None:
        """One warning about all fits that missed their tolerance."""
        missed = [o.gap for o in self._known.values() if not o.certified]
        if missed:
            warnings.warn(
                f"{len(missed)} of {len(self._known)} fits stopped above the tol of their "
                f"estimator, the worst with a certified relative gap of {max(missed):.2e}. Their "
                "best models were scored; cv_results_['worst_gap'] tells which points they are. "
                "Raise max_iter or time_limit, or accept a larger tol.",
                ConvergenceWarning,
                stacklevel=3,
            )


def _number(score: Any) -> float:
    if hasattr(score, "item"):
        score = score.item()
    if not isinstance(score, Number):
        raise ValueError(f"scoring must return a number, got {score!r} ({type(score)}) instead.")
    return float(score)  # type: ignore[arg-type]


def _over_folds(statistic: Any, values: FloatArray) -> FloatArray:
    """A statistic of each row, of the folds that were run."""
    known = [row[~np.isnan(row)] for row in values]
    return np.array([float(statistic(row)) if len(row) else np.nan for row in known])


def _ranks(means: FloatArray) -> NDArray[np.int32]:
    """1 for the best; candidates without a mean share the last place."""
    if np.isnan(means).all():
        return np.ones(len(means), dtype=np.int32)
    worst = np.nanmin(means) - 1
    ranks: NDArray[np.int32] = rankdata(-np.nan_to_num(means, nan=worst), method="min").astype(
        np.int32
    )
    return ranks


def _parameter_columns(params: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """A masked array for each parameter: masked where a candidate does not have it."""
    columns = {}
    for name in dict.fromkeys(name for point in params for name in point):
        known = [point[name] for point in params if name in point]
        plain = all(isinstance(value, Number) and not isinstance(value, bool) for value in known)
        values = np.zeros(len(params), dtype=np.array(known).dtype if plain else object)
        has = np.array([name in point for point in params])
        for place, point in enumerate(params):
            if has[place]:
                values[place] = point[name]
        columns[f"param_{name}"] = np.ma.MaskedArray(values, mask=~has)
    return columns
