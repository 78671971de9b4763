"""Relevance of features and pairs as fitted attributes, computed when they are first read."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from tessella.estimators._training_set import TrainingSet
from tessella.inspection._relevance import feature_relevance, interaction_relevance

FloatArray = NDArray[np.float64]

_SAMPLE_SIZE = 256  # the rows of the larger relevance table
_LAZY = ("feature_relevance_", "interaction_relevance_")


class RelevanceMixin:
    """Adds ``feature_relevance_`` and ``interaction_relevance_`` to an estimator.

    They need data to look at, so a fit keeps a few of its rows in ``_sample_rows``, of shape
    (at most 256, n_features): see :func:`representative_rows`. It is part of the model wherever
    that is copied or stored.
    """

    _sample_rows: FloatArray

    @cached_property
    def feature_relevance_(self) -> FloatArray:
        """Share of the variance of the learned function that involves each feature.

        :func:`tessella.inspection.feature_relevance` of this model, on at most 256 of its
        training rows.
        """
        check_is_fitted(self, "_sample_rows")
        return feature_relevance(self)

    @cached_property
    def interaction_relevance_(self) -> FloatArray:
        """Share of the variance of the learned function that needs both features of a pair.

        :func:`tessella.inspection.interaction_relevance` of this model, on at most 256 of its
        training rows; NaN for pairs outside the 12 features of largest relevance.
        """
        check_is_fitted(self, "_sample_rows")
        return interaction_relevance(self)

    def _keep_sample(self, rows: TrainingSet) -> None:
        """Remember what the relevance of a new fit is read from, and forget that of the last."""
        for name in _LAZY:
            vars(self).pop(name, None)
        self._sample_rows = representative_rows(rows, _SAMPLE_SIZE)

    def __dir__(self) -> Iterable[str]:
        # A notebook reads every listed attribute to show an estimator, and scikit-learn tries each
        # one before it lists it; these take their time, so they are listed once they are there.
        names = (name for name in object.__dir__(self) if name not in _LAZY or name in vars(self))
        return [name for name in names if hasattr(self, name)]


def representative_rows(rows: TrainingSet, count: int) -> FloatArray:
    """At most `count` rows, evenly spaced by weight in the order of y, then of the features' sum.

    Nothing is random, and neither the order of the rows nor the units of features and target
    matter. A row of large weight can come more than once, as its copies would.

    Parameters
    ----------
    rows : TrainingSet
        Distinct weighted rows.
    count : int
        How many to take. All rows are taken when there are no more and their weights are equal.

    Returns
    -------
    ndarray of shape (at most `count`, n_features)
    """
    if len(rows.X) <= count and (rows.weight == rows.weight[0]).all():
        return rows.X.copy()
    low, high = rows.X.min(axis=0), rows.X.max(axis=0)
    scaled = (rows.X - low) / np.where(high > low, high - low, 1.0)
    order = np.lexsort((*rows.X.T, scaled.sum(axis=1), rows.y))
    weight = np.cumsum(rows.weight[order])
    places = (np.arange(count) + 0.5) * (weight[-1] / count)
    sample: FloatArray = rows.X[order[np.searchsorted(weight, places)]]
    return sample
