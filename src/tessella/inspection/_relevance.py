"""How much of a learned function each feature, and each pair of features, accounts for.

Both answers are shares of the variance of the learned function f, by its ANOVA decomposition. Take
a feature j (or a pair) apart from the others: let it run over its values in the data, whatever
the others are, while the others keep the values they have together in a row. The feature and the
rest are then independent by construction, and f splits in exactly one way into a constant, a
function of the feature alone, one of the rest alone and one of both together, uncorrelated, so
that their variances add up to that of f.

Everything is read from values of f on a grid "rows × levels": the variance components of a
two-way table, or of a three-way table for pairs. Nothing is random.
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

_FEATURE_TABLE = (256, 16)  # most rows, most levels
_PAIR_TABLE = (128, 8)
_PAIRED_FEATURES = 12  # 66 pairs
_BATCH = 65_536  # points of a call to the estimator


def feature_relevance(
    estimator: Any,
    X: Any = None,
    *,
    kind: str = "total",
    max_rows: int = _FEATURE_TABLE[0],
    max_levels: int = _FEATURE_TABLE[1],
) -> FloatArray:
    r"""Share of the variance of the learned function that involves each feature.

    For a feature j with values t and the other features of a row i, :math:`f(t, x_{i,-j})` is a
    table over levels t and rows i. With means over its rows and columns written as E,

    .. math::

        \mathrm{total}_j = \frac{E_i \operatorname{Var}_t f(t, x_{i,-j})}
                                {\operatorname{Var}_{i,t} f(t, x_{i,-j})},
        \qquad
        \mathrm{main}_j = \frac{\operatorname{Var}_t E_i f(t, x_{i,-j})}
                               {\operatorname{Var}_{i,t} f(t, x_{i,-j})}.

    `total` is what is lost, on average, when the feature is replaced by its mean effect: zero if
    and only if f does not change with it anywhere on the table, one if nothing else matters.
    `main` is the part that the feature accounts for on its own, and ``total - main`` the part that
    it shares with other features. Where features are independent in the data, these are the total
    and the first-order Sobol' indices of f.

    Parameters
    ----------
    estimator : fitted estimator
        f is its ``decision_function`` if it has one, otherwise its ``predict``. With several
        outputs, variances are summed over them. Of a learned-kernel classifier of several classes
        the outputs are the scores of all pairs of classes, which are not cut into votes.
    X : array-like of shape (n_samples, n_features), optional
        The data to look at, best the training data. By default the rows that the estimator kept
        of it (``LearnedKernelSVC`` and ``LearnedKernelSVR`` keep at most 256), or its support
        vectors, which may be an unrepresentative part of the data. Of a pipeline, the default
        looks at its last step, so at the features that the steps before it make.
    kind : {"total", "main"}, default="total"
        Which share.
    max_rows, max_levels : int, default=256 and 16
        Size of the table. With more rows in X, the table takes as many, evenly spaced in the
        order of f; with more distinct values of a feature, as many of its quantiles.

    Returns
    -------
    ndarray of shape (n_features,)
        Numbers in [0, 1], zero for all if f is constant. Totals sum to one for a function without
        interactions of independent features, to more with interactions, and to less where
        features that go together also act together: each alone then changes f by little.

    See Also
    --------
    interaction_relevance : The same for pairs.
    RelevanceDisplay : The picture.
    sklearn.inspection.permutation_importance : What the score loses, on new data as well.

    Notes
    -----
    The numbers describe the learned function, not the data: a feature that the model does not use
    has none, however well it would have served. They do not depend on the order of the rows, nor
    on the units of features and target. Where features depend on each other, the table contains
    combinations that the data does not, as in every method that varies one feature at a time.

    The kernel alone would not do: the max-product part of a tessellated kernel contains every
    feature, so k depends on all of them, and only the weights of the support vectors tell which
    ones the function uses.

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
    if not len(rows):  # no support vectors: f is constant
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
    r"""Share of the variance of the learned function that needs both features of a pair.

    For features j and l with values s and t, and the other features of a row i,
    :math:`f(s, t, x_{i,-jl})` is a table of three ways. In each row i, take away from the s × t
    table what is the same in all its columns or in all its rows:

    .. math::

        \mathrm{interaction}_{jl} = \frac{E_{i,s,t}\, (f - E_s f - E_t f + E_{s,t} f)^2}
                                         {\operatorname{Var}_{i,s,t} f(s, t, x_{i,-jl})}.

    It is zero if and only if f is, everywhere on the table, a function without feature l plus a
    function without feature j. Interactions of higher order count for each of their pairs.

    Parameters
    ----------
    estimator : fitted estimator
        As in :func:`feature_relevance`.
    X : array-like of shape (n_samples, n_features), optional
        As in :func:`feature_relevance`.
    features : sequence of int, optional
        Features whose pairs are computed. By default all, or the 12 of largest relevance when
        there are more: a pair of independent features has no more than either of them.
    max_rows, max_levels : int, default=128 and 8
        As in :func:`feature_relevance`; `max_levels` for each feature of the pair.

    Returns
    -------
    ndarray of shape (n_features, n_features)
        Symmetric, numbers in [0, 1]; zero on the diagonal, NaN for pairs that were not computed.

    See Also
    --------
    feature_relevance : Single features; what is said there of f and of X holds here too.

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
    if not len(rows):  # no support vectors: f is constant
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
    """The learned function, with its values on tables."""

    def __init__(self, estimator: Any) -> None:
        check_is_fitted(estimator)
        self._estimator = estimator

    def __call__(self, X: FloatArray) -> FloatArray:
        """Values of shape (len(X), outputs)."""
        method = _method(self._estimator)
        with without_names():
            parts = [method(X[k : k + _BATCH]) for k in range(0, len(X), _BATCH)]
        values: FloatArray = np.concatenate(parts).astype(np.float64, copy=False)
        return values.reshape(len(X), -1)

    def sample(self, X: Any, max_rows: int, max_levels: int) -> tuple[FloatArray, list[FloatArray]]:
        """The rows of the tables, and the levels of each feature."""
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
                f"{error}. Features are varied as numbers. Of a pipeline that encodes text, leave "
                "X out to see the features that its last step gets; for the columns of the table "
                "use sklearn.inspection.permutation_importance."
            ) from error
        return rows

    def _spread(self, X: FloatArray, count: int) -> FloatArray:
        """At most `count` rows, evenly spaced in the order of f."""
        if len(X) <= count:
            return X
        # Rows with equal values of f are put in order by their features.
        order = np.lexsort((*X.T, *self(X).T))
        places = (np.arange(count) + 0.5) * (len(X) / count)
        return X[order[places.astype(np.intp)]]

    def on_table(
        self, rows: FloatArray, features: tuple[int, ...], levels: tuple[FloatArray, ...]
    ) -> FloatArray:
        """Values of shape (rows, levels of each feature, outputs)."""
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
    """At most `count` values that stand for all: the medians of as many equal parts.

    All of them are values that occur, so they move with the units of the feature.
    """
    values = np.sort(values)
    if len(values) <= count:
        return values
    places = (np.arange(count) + 0.5) * (len(values) / count)
    levels: FloatArray = values[places.astype(np.intp)]
    return levels


def _variance(table: FloatArray, axes: tuple[int, ...]) -> float:
    """Variance over the given axes, summed over outputs."""
    return float(table.var(axis=axes).sum())


def _mean(table: FloatArray) -> float:
    """Mean over rows, summed over outputs."""
    return float(table.mean(axis=0).sum())


def _share(part: float, total: float) -> float:
    return min(part / total, 1.0) if total > 0 else 0.0
