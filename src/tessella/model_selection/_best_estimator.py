"""What a search offers once it has fitted its best estimator."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

from numpy.typing import NDArray
from sklearn import get_config
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import process_routing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from tessella.estimators import LearnedKernelSVC
from tessella.estimators._notebook import NotebookMixin
from tessella.inspection._html import search_html


def _delegates(name: str) -> Callable[[BestEstimator], bool]:
    """Whether a method of the best estimator can be offered."""

    def check(search: BestEstimator) -> bool:
        if not search.refit:
            raise AttributeError(
                f"This KernelPathCV has refit=False, so it has no {name}. Fit an estimator with "
                "best_params_, or set refit=True."
            )
        getattr(getattr(search, "best_estimator_", search._representative()), name)
        return True

    return check


class BestEstimator(NotebookMixin):
    """The methods and attributes of the best estimator; a base of :class:`KernelPathCV`."""

    estimator: Any
    refit: Any
    best_estimator_: Any
    scorer_: Any
    multimetric_: bool

    def _representative(self) -> Any:
        """An estimator with the methods and tags of the one that will be tuned."""
        return LearnedKernelSVC() if self.estimator is None else self.estimator

    @available_if(_delegates("predict"))  # type: ignore[untyped-decorator]
    def predict(self, X: Any) -> NDArray[Any]:
        """Prediction of the best estimator.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self._best().predict(X)  # type: ignore[no-any-return]

    @available_if(_delegates("decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> NDArray[Any]:
        """Scores of the best estimator's classes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray
        """
        return self._best().decision_function(X)  # type: ignore[no-any-return]

    @available_if(_delegates("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> NDArray[Any]:
        """Probabilities, where the best estimator has them.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return self._best().predict_proba(X)  # type: ignore[no-any-return]

    @available_if(_delegates("score"))  # type: ignore[untyped-decorator]
    def score(self, X: Any, y: Any = None, **params: Any) -> float:
        """Score of the best estimator, by the scorer of the search.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Their targets.
        **params : dict
            For the scorer, as requested by metadata routing; `sample_weight` without it.

        Returns
        -------
        float
        """
        best = self._best()
        if get_config()["enable_metadata_routing"]:
            params = process_routing(self, "score", **params).scorer.score
        scores = self.scorer_(best, X, y, **params)
        return float(scores[self.refit] if self.multimetric_ else scores)

    @property
    def classes_(self) -> NDArray[Any]:
        """Labels of the best estimator."""
        _delegates("classes_")(self)
        return self.best_estimator_.classes_  # type: ignore[no-any-return]

    @property
    def n_features_in_(self) -> int:
        """Number of features of the best estimator."""
        _delegates("fit")(self)
        if not hasattr(self, "best_estimator_"):
            raise AttributeError("KernelPathCV has no n_features_in_ before it is fitted.")
        return int(self.best_estimator_.n_features_in_)

    def _summary_html(self) -> str:
        return search_html(self)

    def _best(self) -> Any:
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.target_tags.required = True
        inner_tags = get_tags(getattr(self, "best_estimator_", self._representative()))
        tags.input_tags = deepcopy(inner_tags.input_tags)
        tags.classifier_tags = deepcopy(inner_tags.classifier_tags)
        if self.estimator is not None or hasattr(self, "best_estimator_"):
            # Without an estimator the target has yet to tell which task it is.
            tags.estimator_type = inner_tags.estimator_type
            tags.regressor_tags = deepcopy(inner_tags.regressor_tags)
        return tags
