"""The kernel that learning returns."""

from __future__ import annotations

from dataclasses import dataclass

from numpy.typing import ArrayLike

from tessella.kernels._base import FloatArray, KernelSet, as_rows
from tessella.kernels._scaling import UnitBox


@dataclass(frozen=True)
class LearnedKernel:
    """A learned kernel on raw features: ``k(X, Y)`` is its matrix.

    Scaling to the unit cube is part of it, so it is applied to data in the units of the training
    data. Picklable whenever its kernel set is.

    Attributes
    ----------
    kernels : KernelSet
        The family it was chosen from.
    P : ndarray of shape (n_params, n_params)
        Its matrix.
    box : UnitBox
        The scaling.
    """

    kernels: KernelSet
    P: FloatArray
    box: UnitBox

    def __call__(self, X: ArrayLike, Y: ArrayLike | None = None) -> FloatArray:
        """Kernel matrix of shape (len(X), len(Y)); Y defaults to X."""
        X = self._scale(X)
        return self.kernels.cross(X, X if Y is None else self._scale(Y), self.P)

    def diag(self, X: ArrayLike) -> FloatArray:
        """``k(x, x)`` for each row of X, without the matrix."""
        return self.kernels.diag(self._scale(X), self.P)

    def scores(
        self, X: ArrayLike, Y: ArrayLike, w: FloatArray, *, n_jobs: int | None = None
    ) -> FloatArray:
        """``self(X, Y) @ w`` in tiles, without the matrix."""
        return self.kernels.scores(self._scale(X), self._scale(Y), self.P, w, n_jobs=n_jobs)

    def _scale(self, X: ArrayLike) -> FloatArray:
        return self.box.apply(as_rows(X))
