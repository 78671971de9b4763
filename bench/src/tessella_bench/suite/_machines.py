"""Kernel machines of others: a support vector machine and kernel ridge regression, both tuned."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.spatial.distance import cdist
from sklearn.calibration import CalibratedClassifierCV
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC, SVR

from tessella_bench._methods import CLASSIFICATION, Fitted
from tessella_bench._tuning import SCORING, Stopwatch
from tessella_bench.suite._boosted import coded
from tessella_bench.suite._divisions import draw
from tessella_bench.suite._frames import Prepared, as_numbers
from tessella_bench.suite._search import FOLDS, folds

# A grid of five folds on 4,000 rows would not end within the cap; users would do the same.
_MOST_ROWS_TO_TUNE_ON = 2000
_STRENGTHS = (0.1, 1.0, 10.0, 100.0, 1000.0)
# gamma times the number of columns, which are standardised
_WIDTHS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
_TUBES = (0.01, 0.1)  # in deviations of the target
_LIMITS = {"cache_size": 500, "max_iter": 1_000_000}
RIDGES = tuple(10.0**k for k in range(-6, 2))
_DISTANCES = {"rbf": "sqeuclidean", "laplacian": "cityblock"}

Matrix = NDArray[np.float64]


def svm(task: str, X: Any, y: Any, seed: int) -> Fitted:
    """A machine with a Gaussian kernel: C, width and tube from a grid, by five folds."""
    labels, target = coded(task, y)
    prepare = as_numbers(X, scaled=True)
    searching, fitting = Stopwatch(), Stopwatch()
    with searching():
        A = prepare(X)
        unit = _Unit(task, target)
        machine, grid = _machine(task, A.shape[1])
        rows = _rows_to_tune_on(task, target, seed)
        part = unit.scaled[rows]
        parts = folds(task, A[rows], part, seed)
        found = GridSearchCV(machine, grid, cv=parts, scoring=SCORING[task], refit=False)
        best: dict[str, Any] = found.fit(A[rows], part).best_params_
    with fitting():
        machine.set_params(**best).fit(A, unit.scaled)
        model = unit.undone(machine) if labels is None else _with_chances(machine, A, target)
    return Fitted(Prepared(prepare, model, labels), best, searching.seconds, fitting.seconds)


def _machine(task: str, width: int) -> tuple[Any, dict[str, Any]]:
    grid: dict[str, Any] = {"C": _STRENGTHS, "gamma": [value / width for value in _WIDTHS]}
    if task == CLASSIFICATION:
        return SVC(**_LIMITS), grid
    return SVR(**_LIMITS), grid | {"epsilon": _TUBES}


class _ProbableMachine:
    """Classes from a machine, probabilities from a sigmoid on its decision values."""

    def __init__(self, machine: Any, calibrated: Any) -> None:
        self.machine, self.calibrated, self.classes_ = machine, calibrated, machine.classes_

    def predict(self, X: Matrix) -> Any:
        return self.machine.predict(X)

    def predict_proba(self, X: Matrix) -> Any:
        return self.calibrated.predict_proba(X)


def _with_chances(machine: Any, X: Matrix, y: Any) -> Any:
    """The machine with probabilities, if each class has two rows to learn them from."""
    parts = min(FOLDS, int(np.unique(y, return_counts=True)[1].min()))
    if parts < 2:
        return machine
    calibrated = CalibratedClassifierCV(machine, cv=parts, ensemble=False).fit(X, y)
    return _ProbableMachine(machine, calibrated)


# ----------------------------------------------------------------------------------------- ridge


def kernel_ridge(task: str, X: Any, y: Any, seed: int) -> Fitted:
    """Kernel ridge regression: kernel, width and ridge from a grid, by five folds.

    Classes are one-hot targets, and the largest value decides. One eigendecomposition serves all
    ridges of a kernel and a fold.
    """
    labels, target = coded(task, y)
    prepare = as_numbers(X, scaled=True)
    searching, fitting = Stopwatch(), Stopwatch()
    with searching():
        A = prepare(X)
        unit = _Unit(task, target)
        rows = _rows_to_tune_on(task, target, seed)
        best = _best_ridge(task, A[rows], target[rows], seed)
    with fitting():
        model = unit.undone(KernelRidge(**best).fit(A, unit.targets))
    return Fitted(Prepared(prepare, model, labels), best, searching.seconds, fitting.seconds)


def _best_ridge(task: str, A: Matrix, target: Any, seed: int) -> dict[str, Any]:
    losses: dict[tuple[str, float], Matrix] = {}
    Y = np.eye(int(target.max()) + 1)[target] if task == CLASSIFICATION else target[:, None]
    parts = folds(task, A, target, seed)
    for kernel, distance in _DISTANCES.items():
        apart = cdist(A, A, distance)
        for width in _WIDTHS:
            gamma = width / A.shape[1]
            K = np.exp(-gamma * apart)
            found = [list(held_out_losses(task, K, Y, *part)) for part in parts]
            losses[kernel, gamma] = np.mean(found, axis=0)
    kernel, gamma = min(losses, key=lambda point: losses[point].min())
    ridge = RIDGES[int(np.argmin(losses[kernel, gamma]))]
    return {"kernel": kernel, "gamma": gamma, "alpha": ridge}


def held_out_losses(task: str, K: Matrix, Y: Matrix, learn: Any, judge: Any) -> Iterator[float]:
    """Losses on held-out rows, for each ridge in turn.

    The targets are centred on the rows to learn from, as they are in the fit: with a large ridge
    the means decide the class.
    """
    values, U = eigh(K[np.ix_(learn, learn)])
    mean = Y[learn].mean(axis=0)
    UY, L = U.T @ (Y[learn] - mean), K[np.ix_(judge, learn)] @ U
    for ridge in RIDGES:
        F = L @ (UY / (np.maximum(values, 0.0) + ridge)[:, None]) + mean
        if task == CLASSIFICATION:
            yield float(np.mean(F.argmax(axis=1) != Y[judge].argmax(axis=1)))
        else:
            yield float(np.mean((F - Y[judge]) ** 2))


# ---------------------------------------------------------------------------------------- common


class _Unit:
    """The target as a machine wants it: standardised numbers, or centred one-hot classes.

    Attributes
    ----------
    scaled : ndarray of shape (n_rows,)
        Standardised numbers; positions of classes as they are.
    targets : ndarray of shape (n_rows, n_targets)
        The same as columns, with a centred column for each class.
    """

    def __init__(self, task: str, target: Any) -> None:
        self.classify = task == CLASSIFICATION
        if self.classify:
            Y = np.eye(int(target.max()) + 1)[target]
            self.mean, self.deviation = Y.mean(axis=0), 1.0
            self.scaled, self.targets = target, Y - self.mean
        else:
            self.mean, self.deviation = float(np.mean(target)), float(np.std(target)) or 1.0
            self.scaled = (target - self.mean) / self.deviation
            self.targets = self.scaled[:, None]

    def undone(self, model: Any) -> Any:
        """The model with predictions in the unit of the target, or positions of classes."""
        return _Undone(self, model)


class _Undone:
    def __init__(self, unit: _Unit, model: Any) -> None:
        self.unit, self.model = unit, model

    def predict(self, X: Matrix) -> Any:
        found = self.model.predict(X) * self.unit.deviation + self.unit.mean
        return found.argmax(axis=1) if self.unit.classify else found


def _rows_to_tune_on(task: str, target: Any, seed: int) -> Any:
    if len(target) <= _MOST_ROWS_TO_TUNE_ON:
        return np.arange(len(target))
    others = len(target) - _MOST_ROWS_TO_TUNE_ON
    return draw(task, target, _MOST_ROWS_TO_TUNE_ON, others, seed)[0]
