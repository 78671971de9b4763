"""Display of the relevance of features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tessella.inspection._matplotlib import BLUE, GREEN, ORANGE, axes_for, tidy
from tessella.inspection._names import names_of_model
from tessella.inspection._relevance import feature_relevance, interaction_relevance

FloatArray = NDArray[np.float64]


class RelevanceDisplay:
    """Display of the relevance of features, and of pairs of features, as bars.

    The bar of a feature is its share of the variance of the learned function. It consists of two
    parts: the effect of the feature on its own, and its effect together with other features.

    Parameters
    ----------
    total : array-like of shape (n_features,)
        Total relevance of each feature, as returned by :func:`feature_relevance`.
    main : array-like of shape (n_features,)
        Relevance of each feature on its own, as returned by :func:`feature_relevance` with
        ``kind="main"``.
    feature_names : sequence of str
        Names of the features.
    pairs : array-like of shape (n_features, n_features), optional
        Relevance of pairs of features, as returned by :func:`interaction_relevance`.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes on which the display was drawn.
    figure_ : matplotlib Figure
        Figure that contains the axes.

    Examples
    --------
    >>> import numpy as np
    >>> from tessella import LearnedKernelSVR
    >>> from tessella.inspection import RelevanceDisplay
    >>> X = np.random.default_rng(0).random((200, 4))
    >>> model = LearnedKernelSVR().fit(X, X[:, 0] * X[:, 1] + X[:, 2])
    >>> display = RelevanceDisplay.from_estimator(model, X, interactions=True)
    >>> display.ax_.get_xlabel()
    'share of the variance of the learned function'
    """

    def __init__(
        self,
        total: ArrayLike,
        main: ArrayLike,
        *,
        feature_names: Sequence[str],
        pairs: ArrayLike | None = None,
    ) -> None:
        self.total: FloatArray = np.asarray(total, dtype=np.float64)
        self.main: FloatArray = np.asarray(main, dtype=np.float64)
        self.feature_names = list(feature_names)
        self.pairs: FloatArray | None = None if pairs is None else np.asarray(pairs)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        *,
        interactions: bool = False,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Compute and draw the relevance of the features of a fitted estimator.

        Parameters
        ----------
        estimator : fitted estimator
            Estimator whose features are inspected; see :func:`feature_relevance`.
        X : array-like of shape (n_samples, n_features), optional
            Data on which the relevance is computed, preferably the training data. By default, the
            training rows that the estimator has kept are used, or its support vectors.
        interactions : bool, default=False
            Whether the relevance of pairs of features is computed and drawn as well.
        ax : matplotlib Axes, optional
            Axes to draw on. By default, a new figure is created.
        **kwargs : dict
            Further arguments of :meth:`plot`.

        Returns
        -------
        RelevanceDisplay
            The display, which has been drawn.
        """
        total = feature_relevance(estimator, X)
        display = cls(
            total,
            feature_relevance(estimator, X, kind="main"),
            feature_names=names_of_model(estimator, X, len(total)),
            pairs=interaction_relevance(estimator, X) if interactions else None,
        )
        return display.plot(ax, **kwargs)

    def plot(
        self, ax: Any = None, *, max_features: int = 20, max_pairs: int = 5, **kwargs: Any
    ) -> Self:
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on. By default, a new figure is created.
        max_features : int, default=20
            Largest number of features to draw. The most relevant features are drawn.
        max_pairs : int, default=5
            Largest number of pairs to draw. The most relevant pairs are drawn.
        **kwargs : dict
            Further arguments for ``Axes.barh``, which draws the bars.

        Returns
        -------
        RelevanceDisplay
            The display itself.
        """
        order = np.argsort(-self.total, kind="stable")[:max_features]
        pairs = self._largest_pairs(max_pairs)
        rows = len(order) + len(pairs) + (1 if pairs else 0)
        ax = axes_for(ax, (6.4, 1.4 + 0.3 * max(rows, 3)))
        places = np.arange(len(order))
        main, rest = self.main[order], np.maximum(self.total - self.main, 0.0)[order]
        ax.barh(places, main, **{"color": BLUE, "label": "on its own"} | kwargs)
        label = "together with others"
        ax.barh(places, rest, left=main, **{"color": ORANGE, "label": label} | kwargs)
        names = [self.feature_names[j] for j in order]
        lengths = self.total[order].tolist()
        if pairs:
            places = np.append(places, len(order) + 1 + np.arange(len(pairs)))
            shares = [share for share, _ in pairs]
            style = {"color": GREEN, "label": "a pair together"} | kwargs
            ax.barh(places[len(order) :], shares, **style)
            names += [name for _, name in pairs]
            lengths += shares
        for place, length in zip(places, lengths, strict=True):
            ax.annotate(
                f"{length:.2f}", (length, place), (4, 0), textcoords="offset points", va="center"
            )
        self._finish(ax, places, names)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _finish(self, ax: Any, places: NDArray[Any], names: list[str]) -> None:
        ax.set_yticks(places, names)
        ax.tick_params(axis="y", length=0)
        ax.set_ylim(max(places, default=0) + 0.7, -0.7)
        ax.set_xlim(0, 1.12 * max(1e-9, ax.get_xlim()[1]))
        ax.set_xlabel("share of the variance of the learned function")
        hidden = len(self.total) - min(len(self.total), len(names))
        if hidden:
            ax.set_title(f"The largest of {len(self.total)} features", fontsize="medium")
        ax.legend(loc="lower right", frameon=False)
        tidy(ax, grid="x")

    def _largest_pairs(self, count: int) -> list[tuple[float, str]]:
        if self.pairs is None:
            return []
        first, second = np.triu_indices(len(self.pairs), 1)
        shares = np.nan_to_num(self.pairs[first, second], nan=-1.0)
        order = np.argsort(-shares, kind="stable")[:count]
        name = self.feature_names
        return [
            (float(shares[k]), f"{name[first[k]]} × {name[second[k]]}")
            for k in order
            if shares[k] >= 0
        ]
