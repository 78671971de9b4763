"""The results of all fits of a search, and the table that is made of them."""

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
from tessella.model_selection._path import Candidate, CandidateResult

FloatArray = NDArray[np.float64]

_STANDARD_ERRORS = 2.0  # below the best mean score, at which a candidate is eliminated


class SearchResults:
    """The results of a search so far, by candidate and fold."""

    def __init__(self, candidates: Sequence[Candidate], n_splits: int) -> None:
        self._candidates = candidates
        self._shape = (len(candidates), n_splits)
        self._results: dict[tuple[int, int], CandidateResult] = {}

    def add(self, result: CandidateResult) -> None:
        """Add the result of one fit."""
        self._results[result.candidate, result.fold] = result

    def kernels_of(self, candidates: Sequence[Candidate]) -> dict[int, LearnedKernel | None]:
        """The kernels that the first fold has learned for some candidates, by candidate index.

        None for those whose fit is as quick without a start.
        """
        first = {c.index: self._results.get((c.index, 0)) for c in candidates}
        return {
            i: result.kernel
            for i, result in first.items()
            if result and (result.quick or result.kernel)
        }

    @property
    def complete(self) -> NDArray[np.bool_]:
        """Whether each candidate has been evaluated on all folds."""
        counts = np.bincount([i for i, _ in self._results], minlength=self._shape[0])
        complete: NDArray[np.bool_] = counts == self._shape[1]
        return complete

    @property
    def metrics(self) -> list[str]:
        """Names of the scores; "score" if there is a single one without a name."""
        for result in self._results.values():
            if isinstance(result.scores, Mapping):
                return list(result.scores)
        return ["score"]

    @property
    def multimetric(self) -> bool:
        """Whether the scorer returns several scores."""
        return any(isinstance(result.scores, Mapping) for result in self._results.values())

    def scores(self, metric: str) -> FloatArray:
        """Scores by candidate and fold; NaN for fits that were not run."""
        table = np.full(self._shape, np.nan)
        for place, result in self._results.items():
            score = result.scores
            table[place] = _number(score[metric] if isinstance(score, Mapping) else score)
        return table

    def remaining_candidates(self, metric: str, remaining: set[int], folds: int) -> set[int]:
        """Eliminate candidates by their scores on the first folds.

        After the first fold the better half remains. After each further fold those remain whose
        mean score is at most two standard errors below the best one. The standard error is that
        of the difference between two candidates, estimated from all candidates together.

        Parameters
        ----------
        metric : str
            Name of the score that decides.
        remaining : set of int
            Indices of the candidates that have not been eliminated yet.
        folds : int
            Number of folds that have been run.

        Returns
        -------
        set of int
            Indices of the candidates that remain.
        """
        indices = np.array(sorted(remaining))
        scores = self.scores(metric)[indices, :folds]
        scored = np.isfinite(scores).all(axis=1)
        if not scored.any():
            return remaining
        indices, scores = indices[scored], scores[scored]
        means = scores.mean(axis=1)
        if folds == 1:
            least = float(np.median(means))
        else:
            lag = scores[means.argmax()] - scores
            variance = float(lag.var(axis=1, ddof=1).sum()) / max(1, len(indices) - 1)
            least = float(means.max()) - _STANDARD_ERRORS * np.sqrt(variance / folds)
        return set(indices[means >= least].tolist())

    def table(self) -> dict[str, Any]:
        """Make ``cv_results_``: the columns of GridSearchCV, and columns about the certificates."""
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
        table["n_folds"] = np.bincount([i for i, _ in self._results], minlength=self._shape[0])
        return table

    def _column(self, name: str) -> FloatArray:
        values = np.full(self._shape, np.nan)
        for place, result in self._results.items():
            values[place] = float(getattr(result, name))
        return values

    def report_failures(self, error_score: Any) -> None:
        """Warn about fits that failed; raise ValueError if all of them did."""
        errors = Counter(o.error for o in self._results.values() if o.error is not None)
        failed, total = sum(errors.values()), len(self._results)
        details = "\n".join(f"{count} times:\n{text}" for text, count in errors.items())
        if failed and failed == total:
            raise ValueError(
                f"All the {total} fits failed. Set error_score='raise' to stop at the first "
                f"failure. The errors are:\n{details}"
            )
        if failed:
            warnings.warn(
                f"{failed} of {total} fits failed; their score is set to {error_score}. Set "
                f"error_score='raise' to stop at the first failure. The errors are:\n{details}",
                FitFailedWarning,
                stacklevel=3,
            )

    def report_gaps(self) -> None:
        """Warn about fits that did not reach their tolerance."""
        missed = [o.gap for o in self._results.values() if not o.certified]
        if missed:
            warnings.warn(
                f"{len(missed)} of {len(self._results)} fits stopped above the tol of their "
                f"estimator, the worst with a certified relative gap of {max(missed):.2e}. Their "
                "best models were scored; cv_results_['worst_gap'] shows which candidates these "
                "are. Raise max_iter or time_limit, or accept a larger tol.",
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
    """A statistic of each row, over the folds that were run."""
    known = [row[~np.isnan(row)] for row in values]
    return np.array([float(statistic(row)) if len(row) else np.nan for row in known])


def _ranks(means: FloatArray) -> NDArray[np.int32]:
    """Ranks from 1 for the best mean; candidates without a mean share the last rank."""
    if np.isnan(means).all():
        return np.ones(len(means), dtype=np.int32)
    worst = np.nanmin(means) - 1
    ranks: NDArray[np.int32] = rankdata(-np.nan_to_num(means, nan=worst), method="min").astype(
        np.int32
    )
    return ranks


def _parameter_columns(params: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """A masked array for each parameter, masked for candidates that do not set it."""
    columns = {}
    for name in dict.fromkeys(name for candidate in params for name in candidate):
        known = [candidate[name] for candidate in params if name in candidate]
        plain = all(isinstance(value, Number) and not isinstance(value, bool) for value in known)
        values = np.zeros(len(params), dtype=np.array(known).dtype if plain else object)
        has = np.array([name in candidate for candidate in params])
        for place, candidate in enumerate(params):
            if has[place]:
                values[place] = candidate[name]
        columns[f"param_{name}"] = np.ma.MaskedArray(values, mask=~has)
    return columns
