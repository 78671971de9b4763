"""Tessellated kernels of several machines that see different parts of the same rows.

The machines of pairs of classes share most of their rows: with k classes, each row belongs to
k - 1 machines. What depends on a row alone (monomials, thin factors of a parameter, diagonals) is
computed once for all machines, and sums over the rows of all machines are single products. Only
the max-product part is evaluated machine by machine, in compiled loops.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from tessella import _core
from tessella.backend import BlockDiagonal, KernelOnDemand, ProductForm
from tessella.backend._lazy import cached_property
from tessella.cones import Face, Factors, symmetric_factors
from tessella.cones._psd import diagonal_square
from tessella.kernels._base import (
    BoundKernelSet,
    BoundMatrixSet,
    FloatArray,
    KernelWorkspace,
    MatrixMoments,
    as_dual_vector,
    suitable_form,
)
from tessella.kernels._sensitivity import RowwiseSensitivities
from tessella.kernels._stacked import split_rows
from tessella.kernels._tessellated import BoundTessellated
from tessella.kernels._tessellated_basis import Side
from tessella.kernels._tessellated_pair import ProductPair

IntArray = NDArray[np.intp]


class TessellatedMachines(BoundMatrixSet):
    """Tessellated kernels on the rows of several machines, one machine after the other.

    It is the :class:`StackedKernels` of the machines, faster if they share rows.

    Parameters
    ----------
    whole : BoundTessellated
        The kernel set on all rows, with one power of z.
    rows : sequence of ndarray of int
        Rows that each machine sees.
    """

    def __init__(self, whole: BoundTessellated, rows: Sequence[IntArray]) -> None:
        self._whole, self.rows = whole, tuple(rows)
        self.kernels, self.dtype, self.cone = whole.kernels, whole.dtype, whole.cone
        self.index: IntArray = np.concatenate(self.rows)
        self.starts = np.cumsum([0, *(len(own) for own in self.rows)])
        self.machine_of = np.repeat(np.arange(len(self.rows)), np.diff(self.starts))
        self.n_samples = len(self.index)

    @cached_property
    def machines(self) -> tuple[BoundKernelSet, ...]:
        """See :meth:`BoundKernelSet.machines`."""
        return tuple(self._whole.subset(own) for own in self.rows)

    @property
    def n_machines(self) -> int:
        """See :meth:`BoundKernelSet.n_machines`."""
        return len(self.rows)

    @property
    def side(self) -> Side:
        """All rows, prepared as an argument of the kernel."""
        return self._whole.side

    @property
    def threads(self) -> int:
        """Number of threads of the compiled loops."""
        return self._whole.threads

    @cached_property
    def room(self) -> FloatArray:
        """Sides of the box above the rows of all machines."""
        return np.ascontiguousarray(self.side.room[self.index])

    @property
    def slices(self) -> list[slice]:
        """Positions of each machine in a dual vector."""
        return list(map(slice, self.starts[:-1].tolist(), self.starts[1:].tolist()))

    def _forms(self, factors: Factors, centred: bool) -> Iterator[ProductForm]:
        """Yield the kernel matrix of each machine as a product form."""
        form = ProductPair((self.side, self.side), *factors).form
        means = self._mean_moments.factor_scores(factors) if centred else None
        for own, rows in zip(self.rows, self.slices, strict=True):
            block = form.restrict(own)
            yield block if means is None else block.centred(means[rows])

    @cached_property
    def _mean_moments(self) -> MachinesMoments:
        counts = np.diff(self.starts)
        return self.moments(1.0 / counts[self.machine_of])

    def svm_kernels(
        self, factors: Factors, workspace: KernelWorkspace
    ) -> Iterator[NDArray[Any] | KernelOnDemand]:
        """See :meth:`BoundKernelSet.svm_kernels`."""
        for form in self._forms(factors, True):
            yield suitable_form(form, workspace, self.threads)

    def factor_blocks(self, factors: Factors, centred: bool) -> BlockDiagonal:
        """See :meth:`BoundKernelSet.factor_blocks`."""
        blocks = []
        for form in self._forms(factors, centred):
            blocks.append(np.empty((len(form), len(form)), self.dtype))
            form.matrix(blocks[-1], self.threads)
        return BlockDiagonal(blocks)

    def factor_gram(
        self, factors: Factors, centred: bool, out: NDArray[Any] | None
    ) -> NDArray[Any]:
        """See :meth:`BoundKernelSet.factor_gram`."""
        return self.factor_blocks(factors, centred).whole(out)

    def moments(self, w: ArrayLike) -> MachinesMoments:
        """See :meth:`BoundKernelSet.moments`."""
        return MachinesMoments(self, as_dual_vector(w, self.n_samples))

    def restrict(self, rows: IntArray, face: Face = None) -> TessellatedMachines:
        """See :meth:`BoundKernelSet.restrict`; `rows` ascend, machines without any are left out."""
        used, position = np.unique(self.index[rows], return_inverse=True)
        chosen = split_rows(np.asarray(rows), self.starts)
        ends = np.cumsum([len(own) for own in chosen])[:-1]
        parts = [own for own in np.split(position, ends) if len(own)]
        return TessellatedMachines(self._whole.restrict(used, face), parts)

    def diag(self, P: FloatArray) -> FloatArray:
        """See :meth:`BoundKernelSet.diag`."""
        return self._whole.diag(P)[self.index]

    def cross(self, X_new: FloatArray, P: FloatArray) -> FloatArray:
        """See :meth:`BoundKernelSet.cross`."""
        return self._whole.cross(X_new, P)[:, self.index]


class MachinesMoments(MatrixMoments):
    """Moments of the dual vectors of all machines.

    Parameters
    ----------
    kernels : TessellatedMachines
        The kernel set on the rows of the machines.
    w : ndarray of shape (m,)
        Dual vectors, one after the other.
    """

    def __init__(self, kernels: TessellatedMachines, w: FloatArray) -> None:
        self._kernels, self._side = kernels, kernels.side
        self._used = np.flatnonzero(w)
        rows = kernels.index[self._used]
        self._weighted: FloatArray = self._side.zeta_high[rows] * w[self._used, None]
        ends = np.searchsorted(self._used, kernels.starts)
        self._pushed = self._push(ends)
        # The dual vectors as a sparse matrix with a row for each machine.
        shape = (len(kernels.starts) - 1, len(self._side))
        duals = csr_array((w[self._used], rows, ends), shape=shape)
        self._low_sums: FloatArray = duals @ self._side.zeta_low
        self._moment_sums: FloatArray = duals @ self._side.group_moments(0)

    def _push(self, ends: IntArray) -> FloatArray:
        """Return Σ_l w_l Π min(room_k, room_l) high(x_l) for all rows k of all machines."""
        kernels = self._kernels
        pushed = np.zeros((kernels.n_samples, self._weighted.shape[1]))
        room = kernels.room[self._used]
        for rows, first, last in zip(kernels.slices, ends[:-1], ends[1:], strict=True):
            if first < last:
                weights = np.ascontiguousarray(self._weighted[first:last].T)
                sides = (kernels.room[rows], room[first:last])
                _core.max_product_apply(*sides, weights, pushed[rows], kernels.threads)
        return pushed

    @cached_property
    def gradient(self) -> FloatArray:
        """See :meth:`Moments.gradient`; the result is the sum over the machines."""
        basis = self._side.basis
        high = self._weighted.T @ self._pushed[self._used]
        cross = self._moment_sums.T @ self._low_sums
        low = basis.box_moments[0, 0] * (self._low_sums.T @ self._low_sums)
        return basis.join(0.5 * (high + high.T), cross, low)

    def scores(self, P: FloatArray) -> FloatArray:
        """See :meth:`Moments.scores`."""
        return self.factor_scores(symmetric_factors(P))

    def factor_scores(self, factors: Factors) -> FloatArray:
        """See :meth:`Moments.factor_scores`."""
        left, right = factors
        kernels = self._kernels
        diagonal = diagonal_square(right) if left is right else None
        if diagonal is not None:
            own = kernels.machine_of
            sums = self._pushed, self._moment_sums[own], self._low_sums[own]
            return self._side.take(kernels.index).weighted_scores(diagonal, *sums)
        ours = self._side.factor(left)
        high, low_sums, mixed = self._totals(right)
        result = np.empty(kernels.n_samples)
        for k, (own, rows) in enumerate(zip(kernels.rows, kernels.slices, strict=True)):
            pushed = self._pushed[rows] @ high
            result[rows] = np.einsum("kr,kr->k", ours.high[0][own], pushed)
            result[rows] += ours.moment[0][own] @ low_sums[k] + ours.low[0][own] @ mixed[k]
        return result

    def _totals(self, right: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return `high` of a factor, and the factors of `moment` and `low` for each machine."""
        high, low = self._side.basis.split(right)
        low_sums = self._low_sums @ low
        mixed = self._moment_sums @ high + self._side.basis.box_moments[0, 0] * low_sums
        return high, low_sums, mixed

    def sensitivities(self, face: Face, rows: IntArray) -> RowwiseSensitivities:
        """See :meth:`Moments.sensitivities`; `rows` ascend, machines without any are left out."""
        side, kernels = self._side, self._kernels
        V = np.eye(side.basis.n_params) if face is None else face
        high, tails, h = self._totals(V)
        machines, group = np.unique(kernels.machine_of[rows], return_inverse=True)
        own, tails = kernels.index[rows], tails[machines]
        g = self._pushed[rows] @ high + side.moment_ratio[own, None] * tails[group]
        return RowwiseSensitivities(
            a=side.zeta_high[own] @ high,
            g=g,
            low=side.zeta_low[own] @ side.basis.split(V)[1],
            h=h[machines],
            group=group,
        )
