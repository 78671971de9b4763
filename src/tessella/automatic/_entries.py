"""Machines that a search compares, and entries of one or more machines with their errors."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from tessella.automatic._kernels import MachineKernel
from tessella.automatic._losses import MachineLoss, SquaredError
from tessella.automatic._spaces import Space
from tessella.automatic._targets import PlainTarget, Target

FloatArray = NDArray[np.float64]

GRID, DESCENT, LEARNED, GROWN = "grid", "descent", "learned", "grown"


def or_infinite(error: float) -> float:
    """Return an error, infinite if it is not a number, so that it cannot win a comparison."""
    return float(error) if np.isfinite(error) else np.inf


@dataclass(frozen=True, eq=False)
class Machine:
    """A kernel machine that a search has found.

    Attributes
    ----------
    space : Space
        Encoding and scaling of the features.
    kernel : MachineKernel
        Kernel on the coordinates of the space.
    C : float
        Weight of the loss.
    loss : MachineLoss
        Loss that the machine minimises.
    target : Target
        What the machine is fitted to.
    factor : float
        Factor with which scores become predictions.
    """

    space: Space
    kernel: MachineKernel
    C: float
    loss: MachineLoss = field(default_factory=SquaredError)
    target: Target = field(default_factory=PlainTarget)
    factor: float = 1.0


@dataclass(frozen=True, eq=False)
class Entry:
    """One or more machines with one set of held-out predictions.

    Attributes
    ----------
    machines : tuple of Machine
        Machines whose predictions are averaged, one for each fold of a descent.
    held_out : ndarray of shape (m, k)
        Predictions of the outputs of the search rows by machines that have not seen them.
    error : float
        Weighted mean of the squared held-out errors, summed over the outputs.
    stage : str
        Stage of the search that found the machines.
    n_rows : int
        Number of the rows that the machines were fitted to for these predictions.
    """

    machines: tuple[Machine, ...]
    held_out: FloatArray
    error: float
    stage: str
    n_rows: int

    @property
    def space(self) -> Space:
        """The space of the machines."""
        return self.machines[0].space

    @property
    def kernel(self) -> MachineKernel:
        """The kernel of the first machine."""
        return self.machines[0].kernel

    @classmethod
    def of_scores(
        cls,
        machines: tuple[Machine, ...],
        scores: FloatArray,
        Y: FloatArray,
        weight: FloatArray,
        stage: str,
        n_rows: int,
    ) -> Entry:
        """Return an entry from held-out scores of its machines and the outputs of these rows."""
        target = machines[0].target
        factor = target.factor(scores, Y, weight)
        held_out = target.backward(scores, factor)
        error = or_infinite(weight @ ((Y - held_out) ** 2).sum(axis=1) / weight.sum())
        machines = tuple(replace(machine, factor=factor) for machine in machines)
        return cls(machines, held_out, error, stage, n_rows)
