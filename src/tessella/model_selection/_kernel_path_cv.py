"""The search: a meta-estimator with the interface of scikit-learn's GridSearchCV."""

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
from tessella.estimators._checks import require_threads
from tessella.model_selection._best_estimator import BestEstimator
from tessella.model_selection._grid import (
    default_estimator,
    default_grid,
    grid_candidates,
    group_into_paths,
)
from tessella.model_selection._held_out import check_leaves_one_out, check_scorer
from tessella.model_selection._path import (
    Candidate,
    FoldPath,
    PathResult,
    Rows,
    SearchSettings,
    check_learner,
    evaluate_path,
    last_step,
    last_step_prefix,
    split_paths,
)
from tessella.model_selection._results import SearchResults

Candidates = Sequence[Candidate]
Split = tuple[Rows, Rows]


class KernelPathCV(BestEstimator, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """Cross-validated search over C, delta and any other parameter, along paths of C.

    It does what :class:`sklearn.model_selection.GridSearchCV` does, for the estimators of this
    library and with less work. On the first fold, a fit starts from the kernel and the dual
    coefficients of the previous value of C. On the other folds, it starts from the kernel that the
    first fold has learned for the same parameters. Wherever it starts, every fit is certified to
    the `tol` of the estimator.

    Parameters
    ----------
    estimator : estimator with a learned kernel or Pipeline, default=None
        Estimator to tune: a LearnedKernelSVC, LearnedKernelSVR, LearnedKernelRidge,
        LearnedKernelRidgeClassifier, MultipleKernelSVC or MultipleKernelSVR, or a pipeline that
        ends in one of them. With None, the target decides:
        :class:`~tessella.LearnedKernelSVC` for labels (two values, text, or at most 20 different
        whole numbers) and :class:`~tessella.LearnedKernelSVR` for any other numbers.
    param_grid : dict or list of dict, default=None
        Values to try for each parameter, as for GridSearchCV. By default
        ``C = 0.1, 1, ..., 10000`` and, for tessellated kernels, ``delta = 0.1, 1, 4``. For a
        :class:`KernelDictionary` and for a sum of kernel sets the default is C alone. The
        parameters of a part of a sum have names such as ``kernels__0__delta``, with the number of
        the part.
    cv : int, splitter, iterable or "loo", default=None
        Cross-validation splits, as for GridSearchCV. By default there are five folds, which are
        stratified for a classifier. With "loo" each candidate is fitted once, on all rows, and
        scored by its leave-one-out predictions. See the notes for what these neglect.
    scoring : str, callable, list or dict, default=None
        One or several scorers of scikit-learn. By default the ``score`` method of the estimator
        is used: accuracy, or R².
    refit : bool, str or callable, default=True
        Whether to fit the best estimator on all data. With several scores, the name of the score
        that decides. A function of ``cv_results_`` may return the index of the best candidate.
    eliminate : bool, default=False
        Whether to eliminate candidates with low scores early. After the first fold the better
        half remains. After each further fold those candidates remain whose mean score is at most
        two standard errors of a paired difference below the best one. Eliminated candidates have
        NaN as scores of the folds that were not run, no mean score, and the last rank. The search
        misses the best candidate if that is in the worse half of the first fold.
    error_score : "raise" or number, default=nan
        Score of a candidate whose fit or scoring fails.
    verbose : int, default=0
        Whether to print a line for each path that is finished.
    n_jobs : int, default=None
        Number of paths that joblib evaluates in parallel. None means one, unless in a
        :func:`joblib.parallel_config`, which also chooses the backend ("loky", "threading",
        "dask"). With more than one job each fit uses one thread, unless the estimator's own
        `n_jobs` is set.

    Attributes
    ----------
    cv_results_ : dict
        Results with an entry for each candidate in each column. The columns are those of
        GridSearchCV: ``params``, ``param_*``, ``split*_test_score``, ``mean_test_score``,
        ``std_test_score``, ``rank_test_score``, ``mean_fit_time`` and so on. Further columns are
        ``mean_gap`` and ``worst_gap``, the certified relative gaps of the fits,
        ``n_uncertified``, the number of fits that did not reach `tol`, and ``n_folds``, the
        number of folds that were run.
    best_estimator_ : estimator
        Estimator with the best parameters, fitted on all data.
    best_params_ : dict
        Parameters of the best candidate.
    best_score_ : float
        Mean cross-validated score of the best candidate.
    best_index_ : int
        Index of the best candidate in ``cv_results_``.
    scorer_ : callable
        Scorer that was used.
    n_splits_ : int
        Number of cross-validation folds; 1 with ``cv="loo"``.
    multimetric_ : bool
        Whether there are several scores.
    refit_time_ : float
        Seconds that the fit of the best estimator on all data took.
    classes_ : ndarray of shape (n_classes,)
        Sorted labels of the best estimator, if it is a classifier.
    n_features_in_ : int
        Number of features that the best estimator was fitted with.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features that the best estimator was fitted with, if the data had names.

    See Also
    --------
    LearnedKernelSVC : Classification with a learned kernel.
    LearnedKernelSVR : Regression with a learned kernel.
    MultipleKernelSVC : Classification with a weighted sum of kernels.
    MultipleKernelSVR : Regression with a weighted sum of kernels.

    Notes
    -----
    Candidates that differ in C alone form a path. The paths of the first fold are evaluated first,
    each in ascending order of C. The other folds start from its kernels, which are often so close
    to their own that one SVM and its certificate are enough. A kernel whose parameter has another
    shape is not used as a start, for instance if a feature is constant in one of the folds. Nor is
    the kernel of a fit that has taken a few machines only, which is usual with many features:
    learning it again is quicker than improving it for other rows.

    The search chooses the same candidate as GridSearchCV as far as the tolerance allows. Two fits
    certified to the same `tol` do not have the same score to the last digit, which decides where
    several candidates have nearly the same score. The fit on all data does not use a warm start,
    so the best estimator is the one that its own ``fit`` would give.

    With ``cv="loo"``, a row is predicted by the machine that was solved without it, for the kernel
    that was learned from all rows. This machine is found from the factors of the one with all
    rows (:func:`tessella.leave_one_out.svm_leave_one_out`), which usually takes less time than
    the folds. The score neglects that the learned kernel, the scaling and the earlier steps of a
    pipeline have seen the row. It is therefore somewhat too good, most of all for a large C and
    few rows, and it compares candidates rather than saying how well the best one will do. The
    score has to be one of predictions or of ``decision_function``; `groups` are not available.

    After Ctrl-C the best of the completed candidates is chosen, with a warning. If there is none,
    the interrupt is passed on.

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
        """Evaluate all candidates, choose the best and fit it on all data.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training data.
        y : array-like of shape (n_samples,)
            Labels or target values.
        **params : dict
            Parameters that are passed to `fit` of the estimator, such as `sample_weight`, indexed
            by the rows of each fold. `groups` is passed to the splitter, and `sample_weight` also
            to the scorer if that accepts it. With scikit-learn's metadata routing, parameters go
            where they are requested.

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
        estimator = self._checked_estimator(X, y, params.get("sample_weight"))
        scorer = self._scorer(estimator)
        fit_params, score_params, split_params = self._route_params(params, scorer)
        grid = default_grid(estimator) if self.param_grid is None else self.param_grid
        candidates = grid_candidates(grid, estimator)
        one_thread = effective_n_jobs(self.n_jobs) > 1
        settings = SearchSettings(
            estimator,
            X,
            y,
            scorer,
            fit_params,
            score_params,
            self.error_score,
            one_thread,
            self._leaves_one_out(),
        )
        self._check_candidates(settings, candidates)
        splits = self._splits(settings, split_params)
        results = SearchResults(candidates, len(splits))
        paths = group_into_paths(candidates, f"{last_step_prefix(estimator)}C")
        self._evaluate(settings, paths, splits, results)
        self._set_results(results, scorer, len(splits))
        if self.refit:
            self._refit(estimator, X, y, fit_params)
        return self

    def _set_results(self, results: SearchResults, scorer: Any, n_splits: int) -> None:
        results.report_failures(self.error_score)
        results.report_gaps()
        self.scorer_ = scorer
        self.n_splits_ = n_splits
        self.multimetric_ = results.multimetric
        self.cv_results_ = results.table()
        self._choose_best(results)

    def _checked_estimator(self, X: Any, y: Any, sample_weight: Any) -> Any:
        """The estimator to tune, after all checks that are possible before the first fit."""
        require_threads(self.n_jobs)
        if self.estimator is not None:
            check_learner(self.estimator)
        if not isinstance(self.eliminate, bool | np.bool_):
            raise ValueError(f"eliminate={self.eliminate!r} must be True or False.")
        number = isinstance(self.error_score, Number)
        if not number and self.error_score != "raise":
            raise ValueError(f"error_score={self.error_score!r} must be 'raise' or a number.")
        if self.eliminate and callable(self.refit):
            raise ValueError(
                "eliminate=True needs one score to compare candidates by, and refit is a function. "
                "Use refit=True or the name of a score, or eliminate=False."
            )
        estimator = default_estimator(y) if self.estimator is None else clone(self.estimator)
        if isinstance(estimator, BaseLearnedKernel):  # a pipeline would have to transform X first
            estimator._validated(X, y, sample_weight)
        return clone(estimator)

    def _check_candidates(self, settings: SearchSettings, candidates: Candidates) -> None:
        """Raise ValueError for invalid parameters before the first fit."""
        for candidate in candidates:
            model = settings.model(candidate.params)
            check_learner(model)
            last_step(model)._check_params()
            if settings.leave_one_out:
                check_leaves_one_out(last_step(model))

    def _leaves_one_out(self) -> bool:
        """Whether candidates are scored without folds."""
        if isinstance(self.cv, str) and self.cv != "loo":
            raise ValueError(
                f"cv={self.cv!r} is unknown; use a number of folds, a splitter or 'loo'."
            )
        if isinstance(self.cv, str) and self.eliminate:
            raise ValueError("eliminate=True needs folds; use eliminate=False with cv='loo'.")
        return isinstance(self.cv, str)

    def _splits(self, settings: SearchSettings, split_params: dict[str, Any]) -> list[Split]:
        """The rows to fit and to score; with leave-one-out, all rows are both."""
        X, y = settings.X, settings.y
        if not settings.leave_one_out:
            cv = check_cv(self.cv, y, classifier=is_classifier(settings.estimator))
            return list(cv.split(X, y, **split_params))
        if any(value is not None for value in split_params.values()):
            raise ValueError(
                "groups are not available with cv='loo'; use a splitter such as GroupKFold()."
            )
        check_scorer(settings.scorer, settings.estimator, X, y, settings.score_params)
        everything = np.arange(len(y))
        return [(everything, everything)]

    def _scorer(self, estimator: Any) -> Any:
        scorer = self.scoring if callable(self.scoring) else check_scoring(estimator, self.scoring)
        if isinstance(self.scoring, list | tuple | set | dict):
            self._check_refit(list(self.scoring))
        elif isinstance(self.refit, str) and not callable(self.scoring):
            raise ValueError(
                f"refit={self.refit!r} names a score, but there is only one score. Use refit=True."
            )
        return scorer

    def _check_refit(self, metrics: Sequence[str]) -> None:
        """Raise ValueError if there are several scores and `refit` does not name one of them."""
        if callable(self.refit) or self.refit in metrics:
            return
        if self.refit is not False or self.eliminate:
            raise ValueError(
                f"There are several scores, and refit={self.refit!r} does not name the one that "
                f"decides. Use one of {sorted(metrics)}"
                + ("." if self.eliminate else ", a function, or False.")
            )

    def _route_params(
        self, params: dict[str, Any], scorer: Any
    ) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
        """Split parameters into those of the estimator's fit, of the scorer and of the splitter."""
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
        self,
        settings: SearchSettings,
        paths: Sequence[Candidates],
        splits: Sequence[Split],
        results: SearchResults,
    ) -> None:
        """Evaluate the paths on all folds; after Ctrl-C, keep the candidates that are complete."""
        first = [FoldPath(candidates, 0, *splits[0]) for candidates in paths]
        others = self._evaluate_with_elimination if self.eliminate else self._evaluate_other_folds
        went_on = self._evaluate_paths(settings, first, results)
        if went_on and others(settings, paths, splits, results):
            return
        complete = int(results.complete.sum())
        if not complete:
            raise KeyboardInterrupt
        warnings.warn(
            f"The search was interrupted. The best of the {complete} completed candidates, of "
            f"{sum(map(len, paths))}, is chosen.",
            UserWarning,
            stacklevel=3,
        )

    def _evaluate_other_folds(
        self,
        settings: SearchSettings,
        paths: Sequence[Candidates],
        splits: Sequence[Split],
        results: SearchResults,
    ) -> bool:
        """Evaluate all folds but the first; returns False after Ctrl-C."""
        # Path by path and not fold by fold, so that candidates are complete as early as possible.
        fold_paths = [
            FoldPath(candidates, fold, *splits[fold], results.kernels_of(candidates))
            for candidates in paths
            for fold in range(1, len(splits))
        ]
        return self._evaluate_paths(settings, fold_paths, results)

    def _evaluate_with_elimination(
        self,
        settings: SearchSettings,
        paths: Sequence[Candidates],
        splits: Sequence[Split],
        results: SearchResults,
    ) -> bool:
        """The same fold by fold, each with the candidates that have not been eliminated."""
        if results.multimetric:
            self._check_refit(results.metrics)
        metric = self.refit if results.multimetric else "score"
        remaining = {candidate.index for candidates in paths for candidate in candidates}
        for fold in range(1, len(splits)):
            remaining = results.remaining_candidates(metric, remaining, fold)
            kept = [[c for c in candidates if c.index in remaining] for candidates in paths]
            fold_paths = [
                FoldPath(candidates, fold, *splits[fold], results.kernels_of(candidates))
                for candidates in kept
                if candidates
            ]
            if not self._evaluate_paths(settings, fold_paths, results):
                return False
        return True

    def _evaluate_paths(
        self, settings: SearchSettings, paths: Sequence[FoldPath], results: SearchResults
    ) -> bool:
        """Evaluate paths in parallel and add their results; returns False after Ctrl-C."""
        parallel = Parallel(n_jobs=self.n_jobs, return_as="generator")
        task = delayed(evaluate_path)
        jobs = effective_n_jobs(self.n_jobs)
        paths = split_paths(paths, 4 * jobs) if jobs > 1 else paths
        begin = time.perf_counter()
        try:
            found: Iterable[PathResult] = parallel(task(settings, path) for path in paths)
            for path, of_path in zip(paths, found, strict=False):
                for result in of_path.results:
                    results.add(result)
                if of_path.interrupted:
                    return False
                if self.verbose:
                    _print_progress(path, of_path, time.perf_counter() - begin)
        except KeyboardInterrupt:
            return False
        return True

    def _choose_best(self, results: SearchResults) -> None:
        metric = "score"
        if self.multimetric_:
            self._check_refit(results.metrics)
            if self.refit is False:
                return
            metric = self.refit
        if callable(self.refit):
            best = self.refit(self.cv_results_)
            indices = range(len(self.cv_results_["params"]))
            if not isinstance(best, Integral) or int(best) not in indices:
                raise ValueError(f"refit returned {best!r}, which is not the index of a candidate.")
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
        """Describe how metadata is routed to the estimator, the scorer and the splitter.

        Returns
        -------
        MetadataRouter
            The routing of scikit-learn's metadata API.
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


def _print_progress(path: FoldPath, of_path: PathResult, seconds: float) -> None:
    gaps = [result.gap for result in of_path.results]
    params = ", ".join(f"{k}={v!r}" for k, v in path.candidates[-1].params.items())
    sys.stdout.write(
        f"[{seconds:7.1f} s] fold {path.fold}, {len(gaps)} candidates up to {params}: "
        f"worst gap {np.max(gaps):.1e}\n"
    )
    sys.stdout.flush()
