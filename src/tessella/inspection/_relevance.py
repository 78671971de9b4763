"""Relevance of features, and of pairs of features, for a learned function.

Relevance is a share of the variance of the learned function f, defined by its ANOVA decomposition.
A feature j (or a pair) is separated from the other features: it runs over its values in the data,
while the other features keep the values that they have together in a row. The feature and the
other features are then independent by construction. The function f is a unique sum of a constant,
a function of the feature, a function of the other features, and a function of both. These four
functions are uncorrelated, so that their variances add up to the variance of f.

All shares are computed from the values of f on a grid "rows × levels". They are the variance
components of a two-way table, or of a three-way table for pairs. Nothing is random.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted, validate_data

from tessella.inspection._names import model_of, without_names

FloatArray = NDArray[np.float64]

_FEATURE_TABLE = (256, 16)  # largest number of rows, largest number of levels
_PAIR_TABLE = (128, 8)
_PAIRED_FEATURES = 12  # 66 pairs
_BATCH = 65_536  # points in one call of the estimator


def feature_relevance(
    estimator: Any,
    X: Any = None,
    *,
    kind: str = "total",
    max_rows: int = _FEATURE_TABLE[0],
    max_levels: int = _FEATURE_TABLE[1],
) -> FloatArray:
    r"""Compute the share of the variance of the learned function that involves each feature.

    For a feature j with values t and the other features of a row i, :math:`f(t, x_{i,-j})` is a
    table with levels t and rows i. With E for means over the rows or the levels of this table,

    .. math::

        \mathrm{total}_j = \frac{E_i \operatorname{Var}_t f(t, x_{i,-j})}
                                {\operatorname{Var}_{i,t} f(t, x_{i,-j})},
        \qquad
        \mathrm{main}_j = \frac{\operatorname{Var}_t E_i f(t, x_{i,-j})}
                               {\operatorname{Var}_{i,t} f(t, x_{i,-j})}.

    The share `total` is the part of the variance that is lost when f is averaged over the feature.
    It is zero if and only if f does not depend on the feature anywhere on the table, and one if f
    depends on no other feature. The share `main` is the part of the variance that is explained by
    the feature alone, and ``total - main`` is the part that involves other features as well. If
    the features are independent in the data, the two shares are the total and the first-order
    Sobol' indices of f.

    Parameters
    ----------
    estimator : fitted estimator
        Estimator that provides the function f: its ``decision_function`` if it has one, otherwise
        its ``predict``. If there are several outputs, their variances are summed. The outputs of a
        ``LearnedKernelSVC`` with several classes are the scores of all pairs of classes, before
        they are turned into votes.
    X : array-like of shape (n_samples, n_features), optional
        Data on which the relevance is computed, preferably the training data. By default, the
        training rows that the estimator has kept are used (``LearnedKernelSVC`` and
        ``LearnedKernelSVR`` keep at most 256 rows), or its support vectors, which may not be
        representative of the data. For a pipeline, the default is to inspect its last step, and
        therefore the features that the preceding steps compute.
    kind : {"total", "main"}, default="total"
        Share to compute: "total" includes interactions with other features, "main" does not.
    max_rows : int, default=256
        Largest number of rows of the table. If X has more rows, rows are selected that are evenly
        spaced in the order of the values of f.
    max_levels : int, default=16
        Largest number of levels of a feature. If a feature has more distinct values, quantiles of
        these values are used.

    Returns
    -------
    ndarray of shape (n_features,)
        Shares in [0, 1]. All shares are zero if f is constant. If the features are independent,
        the total shares sum to one without interactions and to more than one with interactions.
        The sum can be less than one if correlated features act together, because varying one of
        them alone then changes f very little.

    See Also
    --------
    interaction_relevance : Compute the relevance of pairs of features.
    RelevanceDisplay : Draw the relevance of features.
    sklearn.inspection.permutation_importance : Compute the loss of the score when a feature is
        shuffled, also for new data.

    Notes
    -----
    Relevance describes the learned function and not the data. A feature that the model does not
    use has relevance zero, even if it would be useful. Relevance does not depend on the order of
    the rows, nor on the units of the features and the target. If features depend on each other,
    the table contains combinations of values that do not occur in the data, as in every method
    that varies one feature at a time.

    The kernel alone does not show the relevance of features. The max-product part of a
    tessellated kernel depends on every feature, and only the weights of the support vectors
    determine which features the function uses.

    The cost is that of ``n_features * max_rows * max_levels`` predictions.

    Examples
    --------
    >>> import numpy as np
    >>> from tessella import LearnedKernelSVR
    >>> from tessella.inspection import feature_relevance
    >>> X = np.random.default_rng(0).random((200, 3))
    >>> model = LearnedKernelSVR().fit(X, np.exp(X[:, 0]) + X[:, 1])
    >>> feature_relevance(model, X).round(1)
    array([0.8, 0.2, 0. ])
    """
    if kind not in ("total", "main"):
        raise ValueError(f"kind={kind!r} is unknown; use 'total' or 'main'.")
    function = _Function(model_of(estimator, X))
    rows, columns = function.sample(X, max_rows, max_levels)
    result = np.zeros(rows.shape[1])
    if not len(rows):  # there are no support vectors, so f is constant
        return result
    for feature, levels in enumerate(columns):
        table = function.on_table(rows, (feature,), (levels,))
        total = _variance(table, (0, 1))
        part = (
            _mean(table.var(axis=1))
            if kind == "total"
            else _variance(table.mean(axis=0, keepdims=True), (0, 1))
        )
        result[feature] = _share(part, total)
    return result


def interaction_relevance(
    estimator: Any,
    X: Any = None,
    *,
    features: Sequence[int] | None = None,
    max_rows: int = _PAIR_TABLE[0],
    max_levels: int = _PAIR_TABLE[1],
) -> FloatArray:
    r"""Compute the share of the variance of the learned function that needs both of two features.

    For features j and l with values s and t, and the other features of a row i,
    :math:`f(s, t, x_{i,-jl})` is a three-way table. For each row i, the effects of s alone and of t
    alone are subtracted from the table of s and t:

    .. math::

        \mathrm{interaction}_{jl} = \frac{E_{i,s,t}\, (f - E_s f - E_t f + E_{s,t} f)^2}
                                         {\operatorname{Var}_{i,s,t} f(s, t, x_{i,-jl})}.

    The share is zero if and only if f is, everywhere on the table, the sum of a function that does
    not depend on feature l and a function that does not depend on feature j. Interactions of more
    than two features count for each of their pairs.

    Parameters
    ----------
    estimator : fitted estimator
        Estimator that provides the function f: its ``decision_function`` if it has one, otherwise
        its ``predict``.
    X : array-like of shape (n_samples, n_features), optional
        Data on which the relevance is computed, preferably the training data. By default, the
        training rows that the estimator has kept are used, or its support vectors.
    features : sequence of int, optional
        Numbers of the features whose pairs are computed. By default, all features are used, or the
        12 most relevant ones if there are more. The relevance of a pair of independent features
        is at most the relevance of each of them.
    max_rows : int, default=128
        Largest number of rows of the table. If X has more rows, rows are selected that are evenly
        spaced in the order of the values of f.
    max_levels : int, default=8
        Largest number of levels of each feature of the pair. If a feature has more distinct
        values, quantiles of these values are used.

    Returns
    -------
    ndarray of shape (n_features, n_features)
        Symmetric matrix of shares in [0, 1]. The diagonal is zero, and pairs that were not
        computed are NaN.

    See Also
    --------
    feature_relevance : Compute the relevance of single features, with more details on f and X.

    Notes
    -----
    The cost is that of ``pairs * max_rows * max_levels ** 2`` predictions.

    Examples
    --------
    >>> import numpy as np
    >>> from tessella import LearnedKernelSVR
    >>> from tessella.inspection import interaction_relevance
    >>> X = np.random.default_rng(0).random((300, 3))
    >>> model = LearnedKernelSVR().fit(X, X[:, 0] * X[:, 1] + X[:, 2])
    >>> pairs = interaction_relevance(model, X)
    >>> bool(pairs[0, 1] > 5 * max(pairs[0, 2], pairs[1, 2]))
    True
    """
    function = _Function(model_of(estimator, X))
    rows, columns = function.sample(X, max_rows, max_levels)
    count = rows.shape[1]
    if not len(rows):  # there are no support vectors, so f is constant
        return np.zeros((count, count))
    if features is None:
        features = range(count) if count <= _PAIRED_FEATURES else _most_relevant(estimator, X)
    result = np.full((count, count), np.nan)
    np.fill_diagonal(result, 0.0)
    for j, k in combinations(sorted({int(feature) for feature in features}), 2):
        table = function.on_table(rows, (j, k), (columns[j], columns[k]))
        both = table - table.mean(axis=1, keepdims=True)
        both -= both.mean(axis=2, keepdims=True)
        share = _share(_mean((both**2).mean(axis=(1, 2))), _variance(table, (0, 1, 2)))
        result[j, k] = result[k, j] = share
    return result


def _most_relevant(estimator: Any, X: Any) -> list[int]:
    order = np.argsort(-feature_relevance(estimator, X), kind="stable")
    return [int(feature) for feature in order[:_PAIRED_FEATURES]]


class _Function:
    """The learned function and its values on tables."""

    def __init__(self, estimator: Any) -> None:
        check_is_fitted(estimator)
        self._estimator = estimator

    def __call__(self, X: FloatArray) -> FloatArray:
        """Return values of shape (len(X), outputs)."""
        method = _method(self._estimator)
        with without_names():
            parts = [method(X[k : k + _BATCH]) for k in range(0, len(X), _BATCH)]
        values: FloatArray = np.concatenate(parts).astype(np.float64, copy=False)
        return values.reshape(len(X), -1)

    def sample(self, X: Any, max_rows: int, max_levels: int) -> tuple[FloatArray, list[FloatArray]]:
        """Return the rows of the tables, and the levels of each feature."""
        for name, value in (("max_rows", max_rows), ("max_levels", max_levels)):
            if value < 2:
                raise ValueError(f"{name}={value!r} must be at least 2.")
        rows = self._own_rows() if X is None else self._validated(X)
        return self._spread(rows, max_rows), [quantile_levels(x, max_levels) for x in rows.T]

    def _own_rows(self) -> FloatArray:
        kept = getattr(self._estimator, "_sample_rows", None)
        rows: FloatArray = self._estimator.support_vectors_ if kept is None else kept
        return rows

    def _validated(self, X: Any) -> FloatArray:
        try:
            rows: FloatArray = validate_data(self._estimator, X, dtype=np.float64, reset=False)
        except ValueError as error:
            if "could not convert string" not in str(error):
                raise
            raise ValueError(
                f"{error}. The relevance is computed for numeric features only. For a pipeline "
                "that encodes text, call this function without X to inspect the features of its "
                "last step. For the columns of the table, use "
                "sklearn.inspection.permutation_importance."
            ) from error
        return rows

    def _spread(self, X: FloatArray, count: int) -> FloatArray:
        """Return at most `count` rows, evenly spaced in the order of the values of f."""
        if len(X) <= count:
            return X
        # Rows with equal values of f are sorted by their features.
        order = np.lexsort((*X.T, *self(X).T))
        places = (np.arange(count) + 0.5) * (len(X) / count)
        return X[order[places.astype(np.intp)]]

    def on_table(
        self, rows: FloatArray, features: tuple[int, ...], levels: tuple[FloatArray, ...]
    ) -> FloatArray:
        """Return values of shape (rows, levels of each feature, outputs)."""
        grid = np.stack(np.meshgrid(*levels, indexing="ij"), axis=-1)
        points = np.repeat(rows, grid[..., 0].size, axis=0)
        points[:, list(features)] = np.tile(grid.reshape(-1, len(features)), (len(rows), 1))
        return self(points).reshape(len(rows), *grid.shape[:-1], -1)


def _method(estimator: Any) -> Any:
    for name in ("_scores", "decision_function"):
        if hasattr(estimator, name):
            return getattr(estimator, name)
    return estimator.predict


def quantile_levels(values: FloatArray, count: int) -> FloatArray:
    """Return at most `count` values that represent all values: medians of equal parts.

    The levels are values that occur in the data, so they change with the units of the feature.
    """
    values = np.sort(values)
    if len(values) <= count:
        return values
    places = (np.arange(count) + 0.5) * (len(values) / count)
    levels: FloatArray = values[places.astype(np.intp)]
    return levels


def _variance(table: FloatArray, axes: tuple[int, ...]) -> float:
    """Return the variance over the given axes, summed over outputs."""
    return float(table.var(axis=axes).sum())


def _mean(table: FloatArray) -> float:
    """Return the mean over rows, summed over outputs."""
    return float(table.mean(axis=0).sum())


def _share(part: float, total: float) -> float:
    return min(part / total, 1.0) if total > 0 else 0.0
