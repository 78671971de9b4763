"""An encoder and a model in one pipeline."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

from tessella.estimators import LearnedKernelSVC, LearnedKernelSVR
from tessella.tabular._encoder import TabularEncoder

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline

_MODELS = {"classifier": LearnedKernelSVC, "regressor": LearnedKernelSVR}


def make_tabular_pipeline(
    estimator: Any,
    *,
    categorical_features: Sequence[Hashable] | None = None,
    max_categories: int = 12,
    min_frequency: int = 5,
) -> Pipeline:
    """Make a model of tables with text, categories, dates and missing values.

    Parameters
    ----------
    estimator : {"classifier", "regressor"} or estimator
        The model, or which of :class:`~tessella.LearnedKernelSVC` and
        :class:`~tessella.LearnedKernelSVR` to use, with their defaults.
    categorical_features, max_categories, min_frequency
        See :class:`TabularEncoder`.

    Returns
    -------
    sklearn.pipeline.Pipeline
        The steps are called "encoder" and "model", so a search varies ``model__C``.

    See Also
    --------
    TabularEncoder : What happens to the columns.

    Notes
    -----
    After ``pipeline.set_output(transform="pandas")`` (or ``"polars"``) the model knows its
    features by name, and so do its warnings and the displays of :mod:`tessella.inspection`.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from tessella import make_tabular_pipeline
    >>> rng = np.random.default_rng(0)
    >>> table = pd.DataFrame({"x": rng.random(80), "group": rng.choice(["a", "b"], 80)})
    >>> y = np.where(table["group"] == "a", table["x"], 1 - table["x"])
    >>> table.loc[:4, "group"] = None
    >>> model = make_tabular_pipeline("regressor").fit(table, y)
    >>> model.score(table, y) > 0.9
    True
    """
    if isinstance(estimator, str):
        if estimator not in _MODELS:
            raise ValueError(
                f"estimator={estimator!r} is unknown; use 'classifier', 'regressor' or an "
                "estimator."
            )
        estimator = _MODELS[estimator]()
    if isinstance(estimator, type) or not hasattr(estimator, "fit"):
        raise TypeError(
            f"estimator={estimator!r} must be 'classifier', 'regressor' or an instance of an "
            "estimator."
        )
    from sklearn.pipeline import Pipeline  # loads much more than it is

    encoder = TabularEncoder(
        categorical_features=categorical_features,
        max_categories=max_categories,
        min_frequency=min_frequency,
    )
    return Pipeline([("encoder", encoder), ("model", estimator)])
