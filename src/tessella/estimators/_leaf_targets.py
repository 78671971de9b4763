"""From the targets of the rows of a leaf to the machines of the leaf.

The machines of a leaf learn what a base function leaves: the target of a machine is the target of
the row minus the score of the base function.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tessella.estimators._checks import loss_weights
from tessella.estimators._machines import class_pairs
from tessella.svm import DualProblem

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]


@dataclass(frozen=True)
class LeafMachines:
    """The machines of a leaf that have something to learn.

    Attributes
    ----------
    numbers : tuple of int
        Numbers of these machines among all machines of the model.
    rows : tuple of ndarray of int
        Rows of the leaf that each of them sees.
    dual : DualProblem or None
        Their problem; None if there are none.
    constants : ndarray of shape (n_machines,)
        Offset of each machine of the model that has nothing to learn, 0 for the others.
    """

    numbers: tuple[int, ...]
    rows: tuple[IntArray, ...]
    dual: DualProblem | None
    constants: FloatArray


class LeafTargets(ABC):
    """Builds the machines of a leaf.

    Attributes
    ----------
    n_machines : int
        Number of machines of the model.
    """

    n_machines: int

    @abstractmethod
    def machines(self, y: FloatArray, weight: FloatArray, base: FloatArray) -> LeafMachines:
        """Return the machines of some rows.

        Parameters
        ----------
        y : ndarray of shape (m,)
            Targets, or codes of classes.
        weight : ndarray of shape (m,)
            Positive weights of the rows.
        base : ndarray of shape (m, n_machines)
            Scores of the base function.
        """

    @abstractmethod
    def sizes(self, y: FloatArray) -> int:
        """Return the number of samples of the machines of some rows."""

    def _of_all_rows(self, dual: DualProblem) -> LeafMachines:
        """Return machines that all see all rows."""
        count = self.n_machines
        rows = (np.arange(dual.size // count),) * count
        return LeafMachines(tuple(range(count)), rows, dual, np.zeros(count))


@dataclass(frozen=True)
class TubeTargets(LeafTargets):
    """Regression with the ε-insensitive loss, in units of the deviation of the target.

    Attributes
    ----------
    C : float
        Weight of the loss.
    epsilon : float
        Half-width of the tube, in units of `scale`.
    scale : float
        Deviation of the target.
    """

    C: float
    epsilon: float
    scale: float
    n_machines: int = 1

    def machines(self, y: FloatArray, weight: FloatArray, base: FloatArray) -> LeafMachines:
        """See :meth:`LeafTargets.machines`."""
        target = (y - base[:, 0]) / self.scale
        weights = loss_weights(self.C, weight)
        return self._of_all_rows(DualProblem.regression(target, weights, self.epsilon))

    def sizes(self, y: FloatArray) -> int:
        """See :meth:`LeafTargets.sizes`."""
        return len(y)


@dataclass(frozen=True)
class SquaredTargets(LeafTargets):
    """The squared loss, for a target in units of its deviation or for the codes ±1 of classes.

    Attributes
    ----------
    C : float
        Weight of the loss.
    scale : float
        Deviation of the target; 1 for classes.
    n_machines : int
        Number of outputs.
    n_classes : int
        Number of classes; 0 for regression.
    """

    C: float
    scale: float
    n_machines: int = 1
    n_classes: int = 0

    def machines(self, y: FloatArray, weight: FloatArray, base: FloatArray) -> LeafMachines:
        """See :meth:`LeafTargets.machines`."""
        coded = coded_classes(y, self.n_classes) if self.n_classes else y[:, None]
        targets = (coded - base) / self.scale
        return self._of_all_rows(DualProblem.ridge(targets, loss_weights(self.C, weight)))

    def sizes(self, y: FloatArray) -> int:
        """See :meth:`LeafTargets.sizes`."""
        return len(y) * self.n_machines


@dataclass(frozen=True)
class PairTargets(LeafTargets):
    """A classifier for each pair of classes that a leaf has rows of.

    Attributes
    ----------
    C : float
        Weight of the loss.
    n_classes : int
        Number of classes of the model.
    """

    C: float
    n_classes: int

    @property
    def n_machines(self) -> int:  # type: ignore[override]
        """Number of pairs of classes."""
        return len(class_pairs(self.n_classes))

    def machines(self, y: FloatArray, weight: FloatArray, base: FloatArray) -> LeafMachines:
        """See :meth:`LeafTargets.machines`.

        With rows of one class only, the offset of the pair is the smallest one for which no row
        has a loss. With rows of neither class, it is zero.
        """
        weights = loss_weights(self.C, weight)
        constants = np.zeros(self.n_machines)
        numbers, rows, duals = [], [], []
        for k, (first, second) in enumerate(class_pairs(self.n_classes)):
            own = np.flatnonzero((y == first) | (y == second))
            sign = np.where(y[own] == first, 1.0, -1.0)
            if not len(own):
                continue
            if (sign == sign[0]).all():
                shortfall = float((1.0 - sign * base[own, k]).max())
                constants[k] = sign[0] * max(0.0, shortfall)
                continue
            dual = DualProblem.classification(sign, weights[own])
            numbers.append(k)
            rows.append(own)
            duals.append(dual.with_linear(sign - base[own, k]))
        stacked = DualProblem.stacked(duals) if duals else None
        return LeafMachines(tuple(numbers), tuple(rows), stacked, constants)

    def sizes(self, y: FloatArray) -> int:
        """See :meth:`LeafTargets.sizes`."""
        counts = np.bincount(y.astype(np.intp), minlength=self.n_classes)
        pairs = class_pairs(self.n_classes)
        return int(sum(counts[a] + counts[b] for a, b in pairs if counts[a] and counts[b]))


def coded_classes(codes: FloatArray, n_classes: int) -> FloatArray:
    """Targets ±1 of each output: one output for two classes, or one for each class."""
    outputs = [1] if n_classes == 2 else range(n_classes)
    return np.column_stack([np.where(codes == k, 1.0, -1.0) for k in outputs])
