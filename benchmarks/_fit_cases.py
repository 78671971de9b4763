"""Tables whose default fits take their time in other places than those of many rows do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from _common import load
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from wide import SETS as WIDE

Table = tuple[NDArray[np.float64], NDArray[Any]]


@dataclass(frozen=True)
class Case:
    """A table and the settings of its fit that are not the defaults.

    Attributes
    ----------
    kind : str
        What it stands for.
    table : callable
        Returns features, and classes or a target of type float64.
    settings : dict
        Parameters of the estimator.
    """

    kind: str
    table: Callable[[], Table]
    settings: dict[str, Any] = field(default_factory=dict)


def _waves(rows: int, columns: int) -> Callable[[], Table]:
    """Normal columns, two of which decide the class."""

    def table() -> Table:
        rng = np.random.default_rng(0)
        X = rng.standard_normal((rows, columns))
        score = np.sin(2.0 * X[:, 0]) * X[:, 1] + 0.3 * rng.standard_normal(rows)
        return X, (score > 0).astype(np.intp)

    return table


def _of_paper(name: str) -> Callable[[], Table]:
    def table() -> Table:
        data = load(name)
        return data.X, data.y.astype(np.intp)

    return table


def _digits() -> Table:
    X, y = load_digits(return_X_y=True)
    return X, y


CASES: dict[str, Case] = {
    "normal 200 x 5": Case("small", _waves(200, 5)),
    "normal 500 x 8": Case("small", _waves(500, 8)),
    "normal 1000 x 10": Case("small", _waves(1000, 10)),
    **{
        name: Case("wide", WIDE[name])
        for name in ("german_numer", "breast cancer", "digits 3 and 8", "normal 280 x 34")
    },
    "shill_bidding": Case("nearly separable", _of_paper("shill_bidding"), {"C": 100.0}),
    "digits": Case("several classes", _digits),
}
