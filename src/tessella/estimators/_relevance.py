"""Relevance of features and pairs as fitted attributes, computed when they are first read."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from tessella.backend._lazy import cached_property
from tessella.estimators._training_set import TrainingSet
from tessella.inspection._linearity import NEARLY_ALL, linear_share
from tessella.inspection._relevance import feature_relevance, interaction_relevance

FloatArray = NDArray[np.float64]

LAZY_ATTRIBUTES = (
    "feature_relevance_",
    "interaction_relevance_",
    "linear_share_",
    "kernel_is_linear_",
    "loo_predictions_",
    "loo_decision_function_",
    "loo_score_",
    "_loo_scores",
)


class RelevanceMixin:
    """Adds ``feature_relevance_``, ``interaction_relevance_`` and ``linear_share_``.

    Relevance is computed from data, so a fit keeps a few of its rows in ``_sample_rows``, of shape
    (at most 256, n_features): see :func:`representative_rows`. They are part of the model and are
    copied and stored with it.
    """

    _sample_rows: FloatArray

    @cached_property
    def feature_relevance_(self) -> FloatArray:
        """Share of the variance of the learned function that involves each feature.

        It is computed by :func:`tessella.inspection.feature_relevance` on at most 256 training
        rows, when it is first read.
        """
        check_is_fitted(self, "_sample_rows")
        return feature_relevance(self)

    @cached_property
    def interaction_relevance_(self) -> FloatArray:
        """Share of the variance of the learned function that needs both features of a pair.

        It is computed by :func:`tessella.inspection.interaction_relevance` on at most 256
        training rows, when it is first read. It is NaN for pairs outside the 12 features of
        largest relevance.
        """
        check_is_fitted(self, "_sample_rows")
        return interaction_relevance(self)

    @cached_property
    def linear_share_(self) -> float:
        """Share of the learned kernel that linear functions of the features explain.

        It is computed by :func:`tessella.inspection.linear_share` on at most 256 training rows,
        when it is first read.
        """
        check_is_fitted(self, "_sample_rows")
        return linear_share(self)

    @cached_property
    def kernel_is_linear_(self) -> bool:
        """Whether linear functions of the features explain at least 99 % of the learned kernel."""
        return self.linear_share_ >= NEARLY_ALL

    def __dir__(self) -> Iterable[str]:
        # Notebooks read every listed attribute to show an estimator, and these can take long to
        # compute. So they are listed only after they have been computed.
        hidden = {name for name in LAZY_ATTRIBUTES if name not in vars(self)}
        names = (name for name in object.__dir__(self) if name not in hidden)
        return [name for name in names if hasattr(self, name)]


def representative_rows(rows: TrainingSet, count: int) -> FloatArray:
    """Choose rows that are evenly spaced by weight, in the order of y and of the features' sum.

    The choice is deterministic and depends neither on the order of the rows nor on the units of
    features and target. A row of large weight can be chosen more than once, as its copies would.

    Parameters
    ----------
    rows : TrainingSet
        Distinct weighted rows.
    count : int
        Number of rows to choose. If there are no more rows and their weights are equal, all of
        them are chosen.

    Returns
    -------
    ndarray of shape (at most `count`, n_features)
        Features of the chosen rows.
    """
    if len(rows.X) <= count and (rows.weight == rows.weight[0]).all():
        return rows.X.copy()
    low, high = rows.X.min(axis=0), rows.X.max(axis=0)
    scaled = (rows.X - low) / np.where(high > low, high - low, 1.0)
    sums = scaled.sum(axis=1)
    order = np.lexsort((sums, rows.y))
    same = (np.diff(sums[order]) == 0.0) & (np.diff(rows.y[order]) == 0.0)
    if same.any():  # only these rows need all of their features to be told apart
        tied = np.append(same, False) | np.insert(same, 0, False)
        own = order[tied]
        order[tied] = own[np.lexsort((*rows.X[own].T, sums[own], rows.y[own]))]
    weight = np.cumsum(rows.weight[order])
    places = (np.arange(count) + 0.5) * (weight[-1] / count)
    sample: FloatArray = rows.X[order[np.searchsorted(weight, places)]]
    return sample
