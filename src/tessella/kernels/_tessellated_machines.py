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
from tessella.backend import BlockDiagonal, KernelOnDemand, MachineForms, ProductForm
from tessella.backend._lazy import cached_property
from tessella.cones import Face, Factors, symmetric_factors
from tessella.cones._psd import diagonal_square
from tessella.kernels._base import (
    BoundKernelSet,
    BoundMatrixSet,
    CommonRows,
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
        self.index: IntArray = np.concatenate(self.rows).astype(np.int64, copy=False)
        self.starts = np.cumsum([0, *(len(own) for own in self.rows)], dtype=np.int64)
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

    @property
    def slices(self) -> list[slice]:
        """Positions of each machine in a dual vector."""
        return list(map(slice, self.starts[:-1].tolist(), self.starts[1:].tolist()))

    def common_rows(self) -> CommonRows:
        """See :meth:`BoundKernelSet.common_rows`."""
        return CommonRows(self._whole, self.index)

    def machine_forms(self, factors: Factors) -> MachineForms:
        """See :meth:`BoundKernelSet.machine_forms`; the means are those over all rows."""
        form = self._form(factors).centred(self._row_mean_moments.factor_scores(factors))
        return MachineForms(form, self.index, self.starts)

    def _form(self, factors: Factors) -> ProductForm:
        """Return the kernel matrix of all rows."""
        return ProductPair((self.side, self.side), *factors).form

    @cached_property
    def _row_mean_moments(self) -> MatrixMoments:
        return self._whole.moments(np.full(len(self.side), 1.0 / len(self.side)))

    @cached_property
    def _mean_moments(self) -> MachinesMoments:
        counts = np.diff(self.starts)
        return self.moments(1.0 / counts[self.machine_of])

    def svm_kernels(
        self, factors: Factors, workspace: KernelWorkspace
    ) -> Iterator[NDArray[Any] | KernelOnDemand]:
        """See :meth:`BoundKernelSet.svm_kernels`."""
        form, means = self._form(factors), self._mean_moments.factor_scores(factors)
        for own, samples in zip(self.rows, self.slices, strict=True):
            centred = form.restrict(own).centred(means[samples])
            yield suitable_form(centred, workspace, self.threads)

    def factor_blocks(self, factors: Factors, centred: bool) -> BlockDiagonal:
        """See :meth:`BoundKernelSet.factor_blocks`."""
        blocks = MachineForms(self._form(factors), self.index, self.starts).blocks(self.threads)
        if centred:
            for block in blocks.blocks:
                block -= block.mean(axis=0)
                block -= block.mean(axis=1)[:, None]
        return blocks

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
        self._used_rows, self._used_starts = rows, ends.astype(np.int64, copy=False)
        # The dual vectors as a sparse matrix with a row for each machine.
        shape = (len(kernels.starts) - 1, len(self._side))
        duals = csr_array((w[self._used], rows, ends), shape=shape)
        self._low_sums: FloatArray = duals @ self._side.zeta_low
        self._moment_sums: FloatArray = duals @ self._side.group_moments(0)

    @cached_property
    def _pushed(self) -> FloatArray:
        """Σ_l w_l Π min(room_k, room_l) high(x_l) for all rows k of all machines."""
        kernels = self._kernels
        weights = np.zeros((kernels.n_samples, self._weighted.shape[1]))
        weights[self._used] = self._weighted
        return self._push(kernels.starts, kernels.index, weights)

    @cached_property
    def _pushed_used(self) -> FloatArray:
        """The same for the support vectors, which are all that the gradient needs."""
        if "_pushed" in self.__dict__:
            return self._pushed[self._used]
        return self._push(self._used_starts, self._used_rows, self._weighted)

    def _push(self, starts: IntArray, rows: IntArray, weights: FloatArray) -> FloatArray:
        pushed = np.empty(weights.shape)
        _core.push_machines(self._side.room, starts, rows, weights, pushed, self._kernels.threads)
        return pushed

    @cached_property
    def gradient(self) -> FloatArray:
        """See :meth:`Moments.gradient`; the result is the sum over the machines."""
        basis = self._side.basis
        high = self._weighted.T @ self._pushed_used
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
            threads=kernels.threads,
        )
