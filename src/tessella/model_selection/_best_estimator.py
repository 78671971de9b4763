"""The methods that a search delegates to its best estimator."""

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
    """A check whether a method of the best estimator is available, for ``available_if``."""

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
    """Base class of :class:`KernelPathCV` with the methods of the best estimator."""

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
        """Predict with the best estimator.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        ndarray of shape (n_samples,)
            Predicted labels or values.
        """
        return self._best().predict(X)  # type: ignore[no-any-return]

    @available_if(_delegates("decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> NDArray[Any]:
        """Compute the decision function of the best estimator.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        ndarray
            Scores, in the shape that the best estimator gives them.
        """
        return self._best().decision_function(X)  # type: ignore[no-any-return]

    @available_if(_delegates("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> NDArray[Any]:
        """Compute class probabilities, if the best estimator has them.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probability of each class.
        """
        return self._best().predict_proba(X)  # type: ignore[no-any-return]

    @available_if(_delegates("score"))  # type: ignore[untyped-decorator]
    def score(self, X: Any, y: Any = None, **params: Any) -> float:
        """Score the best estimator with the scorer of the search.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows to predict.
        y : array-like of shape (n_samples,)
            Targets of the rows.
        **params : dict
            Parameters of the scorer. With scikit-learn's metadata routing, those that the scorer
            requests; otherwise `sample_weight`.

        Returns
        -------
        float
            The score; with several scores, the one that `refit` names.
        """
        best = self._best()
        if get_config()["enable_metadata_routing"]:
            params = process_routing(self, "score", **params).scorer.score
        scores = self.scorer_(best, X, y, **params)
        return float(scores[self.refit] if self.multimetric_ else scores)

    @property
    def classes_(self) -> NDArray[Any]:
        """Sorted labels of the best estimator."""
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
            # Without an estimator, the task is not known before the target is.
            tags.estimator_type = inner_tags.estimator_type
            tags.regressor_tags = deepcopy(inner_tags.regressor_tags)
        return tags
