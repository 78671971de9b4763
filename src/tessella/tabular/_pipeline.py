"""Pipelines of an encoder and a model."""

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
    """Create a pipeline for tables with text, categories, dates and missing values.

    Parameters
    ----------
    estimator : {"classifier", "regressor"} or estimator
        Model that is fitted to the encoded table. The name "classifier" stands for
        :class:`~tessella.LearnedKernelSVC`, and the name "regressor" for
        :class:`~tessella.LearnedKernelSVR`, both with default parameters.
    categorical_features : sequence of str or int, default=None
        Names of columns (numbers of columns, for arrays) to treat as categories, such as numeric
        codes. Text columns are always treated as categories.
    max_categories : int, default=12
        Largest number of columns that one column of categories is encoded as.
    min_frequency : int, default=5
        Smallest number of rows for which a category has a column of its own.

    Returns
    -------
    sklearn.pipeline.Pipeline
        Pipeline with the steps "encoder" and "model". In a search, the parameters of the model
        have names such as ``model__C``.

    See Also
    --------
    TabularEncoder : Encode the columns of a table.

    Notes
    -----
    After ``pipeline.set_output(transform="pandas")`` (or ``"polars"``) the model knows the names of
    its features. Its warnings and the displays of :mod:`tessella.inspection` then use these names.

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
    from sklearn.pipeline import Pipeline  # slow to import

    encoder = TabularEncoder(
        categorical_features=categorical_features,
        max_categories=max_categories,
        min_frequency=min_frequency,
    )
    return Pipeline([("encoder", encoder), ("model", estimator)])
