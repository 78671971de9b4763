"""Weighted sums of kernels along a line of weights, for two matrices instead of all kernels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tessella.multiple_kernels._bound import BoundDictionary
from tessella.multiple_kernels._dictionary import in_threads, strips

FloatArray = NDArray[np.float64]

_NO_WEIGHT = 1e-8  # of the largest


class KernelLine:
    """``K(weights + step · direction)`` for any step.

    A descent on the weights asks for dozens of sums along one direction, and drops kernels from
    it one at a time. The matrices of where it stands and of its direction make each of them one
    pass over memory, and a dropped kernel one or two evaluations, instead of an evaluation of
    every kernel.

    Parameters
    ----------
    kernels : BoundDictionary
        The kernels; its kept matrix becomes that of the step tried last.
    weights : ndarray of shape (n_kernels,)
        Where the line begins.
    direction : ndarray of shape (n_kernels,)
        Its direction, of sum zero.
    """

    def __init__(
        self, kernels: BoundDictionary, weights: FloatArray, direction: FloatArray
    ) -> None:
        self._kernels = kernels
        self.weights = weights
        self.direction = direction
        self._base = kernels.matrix(weights).copy()
        self._change = np.zeros_like(self._base)
        kernels.add(direction, self._change)

    def turn(self, direction: FloatArray) -> None:
        """Another direction; costs the kernels in which it differs."""
        self._kernels.add(direction - self.direction, self._change)
        self.direction = direction

    def stand_at(self, weights: FloatArray) -> None:
        """Begin at the weights of the step tried last."""
        np.copyto(self._base, self._kernels.matrix(weights))
        self.weights = weights

    def weights_at(self, step: float) -> FloatArray:
        """Weights after a step; their sum of kernels is the one kept from now on."""
        along = self.weights + step * self.direction
        positive: FloatArray = np.where(along > _NO_WEIGHT * along.max(), along, 0.0)
        # Free of weights so small that the next step would have to end at them.
        total = float(positive.sum())
        weights: FloatArray = positive / total

        def write(out: FloatArray) -> None:
            self._sum(step, out)
            self._kernels.add(positive - along, out)
            out /= total

        self._kernels.keep(weights, write)
        return weights

    def _sum(self, step: float, out: FloatArray) -> None:
        def strip(own: slice) -> None:
            np.multiply(self._change[own], step, out=out[own])
            out[own] += self._base[own]

        in_threads(strip, strips(*out.shape), self._kernels.n_jobs)

    def slope(self, w: FloatArray) -> float:
        """Derivative along the line of the value of the SVM w solves: ``-½ wᵀK(direction)w``."""
        spread = self._kernels.machines.spread(w)
        support = np.flatnonzero(spread.any(axis=0))
        own = spread[:, support]
        return -0.5 * float(np.vdot(own, own @ self._change[np.ix_(support, support)]))
