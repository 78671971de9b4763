"""Kernel matrices of several machines on parts of the same rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tessella import _core
from tessella.backend._block_diagonal import BlockDiagonal
from tessella.backend._product_form import FloatArray, ProductForm


@dataclass(frozen=True)
class MachineForms:
    """Symmetric matrices of several machines, each of some rows of one product form.

    Attributes
    ----------
    form : ProductForm
        The form of all rows.
    rows : ndarray of int64 of shape (m,)
        Row of each sample, one machine after the other.
    starts : ndarray of int64 of shape (n_machines + 1,)
        Position of the first sample of each machine, and the number of samples.

    Examples
    --------
    >>> import numpy as np
    >>> from tessella.backend import MachineForms, ProductForm
    >>> x, none = np.array([[1.0], [2.0], [3.0]]), np.empty((3, 0))
    >>> forms = MachineForms(
    ...     ProductForm(none, none, 0.5 * x, x),
    ...     rows=np.array([0, 1, 1, 2]),
    ...     starts=np.array([0, 2, 4]),
    ... )
    >>> [block.tolist() for block in forms.blocks(threads=1).blocks]
    [[[1.0, 2.0], [2.0, 4.0]], [[4.0, 6.0], [6.0, 9.0]]]
    """

    form: ProductForm
    rows: NDArray[np.int64]
    starts: NDArray[np.int64]

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Number of samples of each machine."""
        sizes: NDArray[np.int64] = np.diff(self.starts)
        return sizes

    def machine(self, k: int) -> ProductForm:
        """Return the matrix of one machine as a product form of its own."""
        return self.form.restrict(self.rows[self.starts[k] : self.starts[k + 1]])

    def some(self, chosen: NDArray[np.bool_]) -> MachineForms:
        """Return some of the machines."""
        sizes = self.sizes
        starts = np.concatenate([[0], np.cumsum(sizes[chosen])])
        return MachineForms(self.form, self.rows[np.repeat(chosen, sizes)], starts)

    def blocks(self, threads: int) -> BlockDiagonal:
        """Return the matrices as blocks of one block diagonal matrix, in float64."""
        sizes = self.sizes
        values = np.empty(int((sizes * sizes).sum()))
        _core.machine_matrices(*self._factors, self.starts, self.rows, values, threads)
        return BlockDiagonal.of_values(values, sizes)

    @property
    def _factors(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        return self.form.room, self.form.high, self.form.first, self.form.second

    def solve_duals(
        self,
        problem: tuple[FloatArray, FloatArray, FloatArray, FloatArray],
        w: FloatArray,
        *,
        tol: float,
        steps_per_sample: int,
        seconds: float | None,
        threads: int,
    ) -> MachineReports:
        """Solve the dual problems of all machines by pair steps, and change `w` in place.

        Parameters
        ----------
        problem : tuple of ndarray of shape (m,)
            Linear terms, coefficients of the kinks, lower and upper bounds of all samples.
        w : ndarray of shape (m,)
            Feasible dual vectors to start from, which become the answers.
        tol : float
            Relative duality gap of each machine.
        steps_per_sample : int
            Number of pair steps for each sample after which a machine is given up.
        seconds : float or None
            Time after which no further machine is begun.
        threads : int
            Number of threads, each of which takes one machine after the other.

        Returns
        -------
        MachineReports
            What is known of each machine, solved or not.

        Notes
        -----
        Each thread holds the kernel matrix of the machine that it solves, and computes a row of it
        when a pair step first asks for this row. The answers do not depend on the number of
        threads.
        """
        count = len(self.sizes)
        reports = MachineReports(
            gradient=np.zeros(len(w)),
            steps=np.zeros(count, dtype=np.int64),
            intercepts=np.zeros(count),
            objectives=np.zeros(count),
            finished=np.zeros(count, dtype=np.int64),
        )
        _, status = _core.solve_machines(
            *self._factors,
            self.starts,
            self.rows,
            *problem,
            w,
            reports.gradient,
            tol,
            steps_per_sample,
            -1.0 if seconds is None else seconds,
            threads,
            reports.steps,
            reports.intercepts,
            reports.objectives,
            reports.finished,
        )
        reports.status = status
        return reports


@dataclass
class MachineReports:
    """What is known of machines after :meth:`MachineForms.solve_duals`.

    Attributes
    ----------
    gradient : ndarray of shape (m,)
        Linear terms minus scores, of machines that were begun.
    steps : ndarray of int64 of shape (n_machines,)
        Number of pair steps of each machine.
    intercepts : ndarray of shape (n_machines,)
        Best intercept of each machine.
    objectives : ndarray of shape (n_machines,)
        Dual value of each machine.
    finished : ndarray of int64 of shape (n_machines,)
        1 for machines whose gap is within the tolerance, 0 for others.
    status : int
        Value of the :class:`tessella.svm.DualStatus` that tells why machines were not begun; 0 if
        all of them were.
    """

    gradient: FloatArray
    steps: NDArray[np.int64]
    intercepts: FloatArray
    objectives: FloatArray
    finished: NDArray[np.int64]
    status: int = 0
