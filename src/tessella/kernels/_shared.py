"""One kernel set on the rows that several machines share, such as the outputs of a regression."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from tessella.cones import Face, Factors, Point
from tessella.kernels._base import BoundKernelSet, FloatArray, KernelSet, as_dual_vector
from tessella.kernels._stacked import StackedMoments


class SharedKernels(BoundKernelSet):
    """Several machines on the same rows, which have the same kernel matrix.

    Dual vectors hold the variables of one machine after the other, as in
    :class:`StackedKernels`, so that ``n_samples`` is the number of machines times the number of
    rows. Kernel matrices do not grow with the number of machines: :meth:`gram` returns the matrix
    of the rows, and :meth:`times` multiplies it with the part of each machine. The adjoint is the
    sum over the machines, D(w) = Σ D(w_j).

    Parameters
    ----------
    part : BoundKernelSet
        The kernel set, bound to the rows.
    count : int
        Number of machines, at least two.
    """

    def __init__(self, part: BoundKernelSet, count: int) -> None:
        self._part, self._count = part, count
        self.kernels, self.dtype, self.cone = part.kernels, part.dtype, part.cone
        self.n_rows = part.n_samples
        self.n_samples = count * part.n_samples

    @property
    def machines(self) -> tuple[BoundKernelSet, ...]:
        """See :meth:`BoundKernelSet.machines`; all of them are the same."""
        return (self._part,) * self._count

    @property
    def plain_parameter(self) -> Point:
        """See :meth:`BoundKernelSet.plain_parameter`."""
        return self._part.plain_parameter

    def kernel_parameter(self, P: Point) -> Point:
        """See :meth:`BoundKernelSet.kernel_parameter`."""
        return self._part.kernel_parameter(P)

    def free_parameter(self, P: Point) -> Point:
        """See :meth:`BoundKernelSet.free_parameter`."""
        return self._part.free_parameter(P)

    def factor_gram(
        self, factors: Factors, centred: bool, out: NDArray[Any] | None
    ) -> NDArray[Any]:
        """See :meth:`BoundKernelSet.factor_gram`; the matrix is the one of the shared rows."""
        return self._part.factor_gram(factors, centred, out)

    def times(self, K: NDArray[Any], w: FloatArray) -> FloatArray:
        """See :meth:`BoundKernelSet.times`; K is multiplied with the part of each machine."""
        columns = w.reshape(self._count, self.n_rows).astype(K.dtype, copy=False)
        product: FloatArray = (columns @ K).astype(np.float64, copy=False).ravel()  # K = Kᵀ
        return product

    def moments(self, w: ArrayLike) -> StackedMoments:
        """See :meth:`BoundKernelSet.moments`."""
        dual = as_dual_vector(w, self.n_samples).reshape(self._count, self.n_rows)
        starts = self.n_rows * np.arange(self._count + 1)
        return StackedMoments([self._part.moments(own) for own in dual], starts, self.cone)

    def restrict(self, rows: NDArray[np.intp], face: Face = None) -> SharedKernels:
        """See :meth:`BoundKernelSet.restrict`; every machine must keep the same rows."""
        return SharedKernels(self._part.restrict(self._own(rows), face), self._count)

    def subset(self, rows: NDArray[np.intp]) -> SharedKernels:
        """See :meth:`BoundKernelSet.subset`; every machine must keep the same rows."""
        return SharedKernels(self._part.subset(self._own(rows)), self._count)

    def spread(self, rows: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return the positions of some of the shared rows in the dual vector of all machines."""
        return np.concatenate([rows + self.n_rows * k for k in range(self._count)])

    def _own(self, rows: NDArray[np.intp]) -> NDArray[np.intp]:
        own = np.asarray(rows)[: len(rows) // self._count]
        if not np.array_equal(self.spread(own), rows):
            raise ValueError("Machines that share their rows must keep the same rows.")
        return own

    def diag(self, P: Point) -> FloatArray:
        """See :meth:`BoundKernelSet.diag`; the entries are repeated for each machine."""
        return np.tile(self._part.diag(P), self._count)

    def cross(self, X_new: FloatArray, P: Point) -> FloatArray:
        """See :meth:`BoundKernelSet.cross`; the columns are repeated for each machine."""
        return np.tile(self._part.cross(X_new, P), (1, self._count))


def bind_to_machines(
    kernels: KernelSet,
    X: FloatArray,
    machine_rows: Sequence[NDArray[np.intp]],
    *,
    dtype: DTypeLike = np.float64,
    n_jobs: int | None = None,
    span: Any = None,
) -> BoundKernelSet:
    """Bind a resolved kernel set to the rows of one or several machines.

    Parameters
    ----------
    kernels : KernelSet
        Resolved kernel set.
    X : ndarray of shape (m, n)
        Scaled rows.
    machine_rows : sequence of ndarray of int
        Positions of the rows that each machine sees. Machines that see all rows share them.
    dtype : float32 or float64
        Data type of kernel matrices.
    n_jobs : int, optional
        Number of threads. None uses all cores that the process may use.
    span : Span, optional
        Span of the rows, in whose coordinates the parameter is.

    Returns
    -------
    BoundKernelSet
        The kernel set on the samples of all machines, one machine after the other. Kernels of
        samples of different machines are zero. One machine with all rows has the usual one.
    """
    several = len(machine_rows) > 1
    shared = all(len(own) == len(X) for own in machine_rows)
    if several and not shared:
        return kernels.bind_machines(X, machine_rows, dtype=dtype, n_jobs=n_jobs, span=span)
    whole = kernels.bind_resolved(X, dtype=dtype, n_jobs=n_jobs)
    whole = whole if span is None else whole.in_span(span)
    return SharedKernels(whole, len(machine_rows)) if several else whole
