"""The RBF machine that default fits are compared with."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

GRID = {"C": (0.1, 1.0, 10.0, 100.0), "gamma": ("scale", 0.003, 0.03)}


class TunedRbf:
    """An RBF machine with C and gamma from three-fold cross-validation.

    Features, and the target of a regression, are standardised.

    Parameters
    ----------
    X : ndarray of shape (m, n)
        Features.
    y : ndarray of shape (m,)
        Classes, or a target of type float64.
    """

    def __init__(self, X: NDArray[np.float64], y: NDArray[Any]) -> None:
        regression = y.dtype == np.float64
        self._X = StandardScaler().fit_transform(X)
        self._y = (y - y.mean()) / y.std() if regression else y
        machine = SVR if regression else SVC
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            search = GridSearchCV(machine(), GRID, cv=3).fit(self._X, self._y)
        self.params = dict(search.best_params_)
        self._machine = machine(**self.params)

    def fit(self) -> None:
        """Fit the machine with the chosen parameters once more."""
        self._machine.fit(self._X, self._y)
