"""The search itself: a meta-estimator in the manner of scikit-learn's GridSearchCV."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Iterable, Sequence
from inspect import signature
from numbers import Integral, Number
from typing import Any, Self

import numpy as np
from joblib import effective_n_jobs
from sklearn import get_config
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils import indexable
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.parallel import Parallel, delayed

from tessella.estimators._base import BaseLearnedKernel
from tessella.model_selection._best_estimator import BestEstimator
from tessella.model_selection._grid import (
    candidates_of,
    default_estimator,
    default_grid,
    paths_of,
)
from tessella.model_selection._path import (
    Candidate,
    Path,
    PathOutcome,
    Rows,
    Search,
    check_learner,
    in_pieces,
    last_step,
    last_step_prefix,
    walk,
)
from tessella.model_selection._results import Outcomes

Points = Sequence[Candidate]
Split = tuple[Rows, Rows]


class KernelPathCV(BestEstimator, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """Cross-validated choice of C, delta and any other parameter, along paths of C.

    Does what :class:`sklearn.model_selection.GridSearchCV` does, for the estimators of this
    library, with less work: a fit starts from the kernel that the first fold has learned for the
    same parameters or, on the first fold, from the kernel and dual vector of the last value of C.
    Every fit is still certified to the estimator's own `tol`, wherever it started.

    Parameters
    ----------
    estimator : LearnedKernelSVC, LearnedKernelSVR or Pipeline, default=None
        What to tune; a pipeline has to end in one of the two. None is decided by the target: a
        :class:`~tessella.LearnedKernelSVC` for labels (two values, text, or at most 20 different
        whole numbers) and a :class:`~tessella.LearnedKernelSVR` for any other numbers.
    param_grid : dict or list of dict, default=None
        Values of each parameter to try, as for GridSearchCV. By default
        ``C = 0.1, 1, ..., 10000`` and, for tessellated kernels, ``delta = 0.1, 1, 4``.
    cv : int, splitter or iterable, default=None
        Folds, as for GridSearchCV: five by default, stratified for a classifier.
    scoring : str, callable, list or dict, default=None
        Any scorer of scikit-learn, or several. By default the estimator's own score: accuracy,
        or R².
    refit : bool, str or callable, default=True
        Whether to fit the best estimator on all data. With several scores the name of the one
        that decides. A function of ``cv_results_`` may return the index of the best point.
    eliminate : bool, default=False
        Give up points as soon as they look hopeless. After the first fold the better half goes
        on; after each further fold those whose mean score is not more than two standard errors
        of a paired difference below the best. Given-up points have NaN for the folds not run,
        no mean, and the last rank. That is a bet, seldom lost, that the best point is not among
        the worse half of the first fold.
    error_score : "raise" or number, default=nan
        Score of a point whose fit or scoring fails.
    verbose : int, default=0
        Print a line for each path that is finished.
    n_jobs : int, default=None
        Paths that are walked at the same time, by joblib: None is one unless in a
        :func:`joblib.parallel_config`, which also chooses the backend ("loky", "threading",
        "dask"). With more than one the fits use one thread each, unless the estimator's own
        `n_jobs` says otherwise.

    Attributes
    ----------
    cv_results_ : dict
        A column for each quantity, an entry for each point, named as in GridSearchCV:
        ``params``, ``param_*``, ``split*_test_score``, ``mean_test_score``, ``std_test_score``,
        ``rank_test_score``, ``mean_fit_time`` and so on. Besides, ``mean_gap`` and ``worst_gap``
        of the certificates, ``n_uncertified``, the fits that missed `tol`, and ``n_folds``, the
        folds that were run.
    best_estimator_ : estimator
        Fitted on all data with the best parameters.
    best_params_, best_score_, best_index_
        The best point, its mean score and its place in ``cv_results_``.
    scorer_ : callable
        The scorer.
    n_splits_ : int
        Number of folds.
    multimetric_ : bool
        Whether there are several scores.
    refit_time_ : float
        Seconds of the last fit.
    classes_, n_features_in_, feature_names_in_
        Those of the best estimator.

    See Also
    --------
    LearnedKernelSVC, LearnedKernelSVR

    Notes
    -----
    Points that differ in C alone form a path. The paths of the first fold come first, each in
    ascending order of C; the other folds start from the kernels it found, which are often so near
    that one SVM and its certificate are enough. Choices are those of GridSearchCV as far as the
    tolerance goes: scores of two fits certified to the same `tol` are not equal to the last
    digit, and on a plateau of the score that decides. The last fit, on all data, starts cold: it
    is the one the estimator would make by itself.

    After Ctrl-C the best of the points that are complete is chosen, with a warning; if there is
    none yet the interrupt is passed on.

    Examples
    --------
    >>> from sklearn.datasets import make_circles
    >>> from tessella import KernelPathCV
    >>> X, y = make_circles(100, noise=0.1, factor=0.4, random_state=0)
    >>> search = KernelPathCV(param_grid={"C": [0.1, 1, 10]}, cv=2).fit(X, y)
    >>> search.best_score_ > 0.9
    True
    >>> sorted(search.best_params_)
    ['C']
    """

    def __init__(
        self,
        estimator: Any = None,
        param_grid: Any = None,
        *,
        cv: Any = None,
        scoring: Any = None,
        refit: Any = True,
        eliminate: bool = False,
        error_score: Any = np.nan,
        verbose: int = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.param_grid = param_grid
        self.cv = cv
        self.scoring = scoring
        self.refit = refit
        self.eliminate = eliminate
        self.error_score = error_score
        self.verbose = verbose
        self.n_jobs = n_jobs

    # ------------------------------------------------------------------------------- searching

    def fit(self, X: Any, y: Any = None, **params: Any) -> Self:
        """Evaluate all points, choose the best and fit it on all data.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training data.
        y : array-like of shape (n_samples,)
            Target.
        **params : dict
            Passed on to `fit` of the estimator, such as `sample_weight`, cut to the rows of each
            fold; `groups` goes to the splitter. Weights go to the scorer too where it takes
            them. With scikit-learn's metadata routing all of this is as requested.

        Returns
        -------
        KernelPathCV
            The fitted search.
        """
        if y is None:
            raise ValueError(
                "This KernelPathCV estimator requires y to be passed, but the target y is None."
            )
        X, y = indexable(X, y)
        estimator = self._checked(X, y, params.get("sample_weight"))
        scorer = self._scorer(estimator)
        fit_params, score_params, split_params = self._routed(params, scorer)
        grid = default_grid(estimator) if self.param_grid is None else self.param_grid
        candidates = candidates_of(grid, estimator)
        search = Search(
            estimator=estimator,
            X=X,
            y=y,
            scorer=scorer,
            fit_params=fit_params,
            score_params=score_params,
            error_score=self.error_score,
            one_thread=effective_n_jobs(self.n_jobs) > 1,
        )
        self._check_points(search, candidates)
        cv = check_cv(self.cv, y, classifier=is_classifier(estimator))
        splits = list(cv.split(X, y, **split_params))
        outcomes = Outcomes(candidates, len(splits))
        paths = paths_of(candidates, f"{last_step_prefix(estimator)}C")
        self._evaluate(search, paths, splits, outcomes)
        outcomes.report_failures(self.error_score)
        outcomes.report_gaps()
        self.scorer_ = scorer
        self.n_splits_ = len(splits)
        self.multimetric_ = outcomes.multimetric
        self.cv_results_ = outcomes.table()
        self._choose(outcomes)
        if self.refit:
            self._refit(estimator, X, y, fit_params)
        return self

    def _checked(self, X: Any, y: Any, sample_weight: Any) -> Any:
        """The estimator to tune, after a look at everything that can be wrong before work."""
        if self.estimator is not None:
            check_learner(self.estimator)
        if not isinstance(self.eliminate, bool | np.bool_):
            raise ValueError(f"eliminate={self.eliminate!r} must be True or False.")
        number = isinstance(self.error_score, Number)
        if not number and self.error_score != "raise":
            raise ValueError(f"error_score={self.error_score!r} must be 'raise' or a number.")
        if self.eliminate and callable(self.refit):
            raise ValueError(
                "eliminate=True needs one score to compare points by, and refit is a function. "
                "Use refit=True or the name of a score, or eliminate=False."
            )
        estimator = default_estimator(y) if self.estimator is None else clone(self.estimator)
        if isinstance(estimator, BaseLearnedKernel):  # of a pipeline only the steps know their X
            estimator._validated(X, y, sample_weight)
        return clone(estimator)

    def _check_points(self, search: Search, candidates: Points) -> None:
        """Parameters out of range are found before the first fit, not after an hour."""
        for candidate in candidates:
            model = search.model(candidate.params)
            check_learner(model)
            last_step(model)._check_params()

    def _scorer(self, estimator: Any) -> Any:
        scorer = self.scoring if callable(self.scoring) else check_scoring(estimator, self.scoring)
        if isinstance(self.scoring, list | tuple | set | dict):
            self._check_refit(list(self.scoring))
        elif isinstance(self.refit, str) and not callable(self.scoring):
            raise ValueError(
                f"refit={self.refit!r} names a score, and there is only one. Use refit=True."
            )
        return scorer

    def _check_refit(self, metrics: Sequence[str]) -> None:
        """With several scores `refit` (and `eliminate`) must say which one decides."""
        if callable(self.refit) or self.refit in metrics:
            return
        if self.refit is not False or self.eliminate:
            raise ValueError(
                f"There are several scores, and refit={self.refit!r} does not tell which one "
                f"decides. Use one of {sorted(metrics)}"
                + ("." if self.eliminate else ", a function, or False.")
            )

    def _routed(
        self, params: dict[str, Any], scorer: Any
    ) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
        """Parameters of the estimator's fit, of the scorer and of the splitter."""
        if get_config()["enable_metadata_routing"]:
            routed = process_routing(self, "fit", **params)
            return routed.estimator.fit, routed.scorer.score, routed.splitter.split
        params = {name: value for name, value in params.items() if value is not None}
        groups = params.pop("groups", None)
        score_params = {}
        if "sample_weight" in params and (self.scoring is None or _accepts_weight(scorer)):
            score_params["sample_weight"] = params["sample_weight"]
        return params, score_params, {"groups": groups}

    def _evaluate(
        self, search: Search, paths: Sequence[Points], splits: Sequence[Split], outcomes: Outcomes
    ) -> None:
        """All folds of all paths; less after Ctrl-C, if some points are complete by then."""
        first = [Path(points, 0, *splits[0]) for points in paths]
        later = self._race if self.eliminate else self._walk_the_rest
        if self._walk_all(search, first, outcomes) and later(search, paths, splits, outcomes):
            return
        complete = int(outcomes.complete.sum())
        if not complete:
            raise KeyboardInterrupt
        warnings.warn(
            f"The search was interrupted: the best of the {complete} points that are complete, of "
            f"{sum(map(len, paths))}, is chosen.",
            UserWarning,
            stacklevel=3,
        )

    def _walk_the_rest(
        self, search: Search, paths: Sequence[Points], splits: Sequence[Split], outcomes: Outcomes
    ) -> bool:
        # Path by path and not fold by fold, so that points are complete as early as possible.
        rest = [
            Path(points, fold, *splits[fold], outcomes.kernels_of(points))
            for points in paths
            for fold in range(1, len(splits))
        ]
        return self._walk_all(search, rest, outcomes)

    def _race(
        self, search: Search, paths: Sequence[Points], splits: Sequence[Split], outcomes: Outcomes
    ) -> bool:
        """Fold by fold, each with the points that may still win."""
        if outcomes.multimetric:
            self._check_refit(outcomes.metrics)
        metric = self.refit if outcomes.multimetric else "score"
        alive = {point.index for points in paths for point in points}
        for fold in range(1, len(splits)):
            alive = outcomes.survivors(metric, alive, fold)
            left = [[point for point in points if point.index in alive] for points in paths]
            wave = [
                Path(points, fold, *splits[fold], outcomes.kernels_of(points))
                for points in left
                if points
            ]
            if not self._walk_all(search, wave, outcomes):
                return False
        return True

    def _walk_all(self, search: Search, paths: Sequence[Path], outcomes: Outcomes) -> bool:
        """Walk paths in parallel and keep what they give; False after Ctrl-C."""
        parallel = Parallel(n_jobs=self.n_jobs, return_as="generator")
        task = delayed(walk)
        jobs = effective_n_jobs(self.n_jobs)
        paths = in_pieces(paths, 4 * jobs) if jobs > 1 else paths
        begin = time.perf_counter()
        try:
            results: Iterable[PathOutcome] = parallel(task(search, path) for path in paths)
            for path, result in zip(paths, results, strict=False):
                for outcome in result.outcomes:
                    outcomes.add(outcome)
                if result.interrupted:
                    return False
                if self.verbose:
                    _say(path, result, time.perf_counter() - begin)
        except KeyboardInterrupt:
            return False
        return True

    def _choose(self, outcomes: Outcomes) -> None:
        metric = "score"
        if self.multimetric_:
            self._check_refit(outcomes.metrics)
            if self.refit is False:
                return
            metric = self.refit
        if callable(self.refit):
            best = self.refit(self.cv_results_)
            points = range(len(self.cv_results_["params"]))
            if not isinstance(best, Integral) or int(best) not in points:
                raise ValueError(f"refit returned {best!r}, which is no index of a point.")
            self.best_index_ = int(best)
        else:
            self.best_index_ = int(self.cv_results_[f"rank_test_{metric}"].argmin())
            self.best_score_ = float(self.cv_results_[f"mean_test_{metric}"][self.best_index_])
        self.best_params_ = self.cv_results_["params"][self.best_index_]

    def _refit(self, estimator: Any, X: Any, y: Any, fit_params: dict[str, Any]) -> None:
        begin = time.perf_counter()
        best = clone(estimator).set_params(**clone(self.best_params_, safe=False))
        self.best_estimator_ = best.fit(X, y, **fit_params)
        self.refit_time_ = time.perf_counter() - begin
        if hasattr(best, "feature_names_in_"):
            self.feature_names_in_ = best.feature_names_in_

    # ------------------------------------------------------------------- scikit-learn's protocol

    def get_metadata_routing(self) -> MetadataRouter:
        """Where metadata goes: to the estimator, the scorer and the splitter.

        Returns
        -------
        MetadataRouter
        """
        estimator = self._representative()
        return (
            MetadataRouter(owner=self)
            .add(
                estimator=estimator,
                method_mapping=MethodMapping().add(caller="fit", callee="fit"),
            )
            .add(
                scorer=self._scorer(estimator),
                method_mapping=MethodMapping()
                .add(caller="score", callee="score")
                .add(caller="fit", callee="score"),
            )
            .add(
                splitter=self.cv,
                method_mapping=MethodMapping().add(caller="fit", callee="split"),
            )
        )


def _accepts_weight(scorer: Any) -> bool:
    asked = getattr(scorer, "_accept_sample_weight", None)
    if asked is not None:
        return bool(asked())
    return "sample_weight" in signature(getattr(scorer, "_score_func", scorer)).parameters


def _say(path: Path, result: PathOutcome, seconds: float) -> None:
    gaps = [outcome.gap for outcome in result.outcomes]
    params = ", ".join(f"{k}={v!r}" for k, v in path.candidates[-1].params.items())
    sys.stdout.write(
        f"[{seconds:7.1f} s] fold {path.fold}, {len(gaps)} points up to {params}: "
        f"worst gap {np.max(gaps):.1e}\n"
    )
    sys.stdout.flush()
