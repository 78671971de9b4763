"""The duals of several machines whose kernel matrices are product forms of the same rows.

Machines of pairs of classes are many and small: most of their time would be that of calls from
Python. Here they are solved in one compiled loop, by pair steps and by all threads, and
:func:`solve_dual` goes on with those that need more.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tessella.backend import KernelOnDemand, MachineForms, effective_threads
from tessella.svm._dual import solve_dual
from tessella.svm._problem import DualProblem
from tessella.svm._solution import DualStatus

FloatArray = NDArray[np.float64]

LARGEST = 2000  # samples of a machine whose matrix each thread may hold
_STEPS_PER_SAMPLE = 20  # a machine that takes more needs Newton steps
_ENDED = (DualStatus.TIME_LIMIT, DualStatus.INTERRUPTED)


@dataclass(frozen=True)
class MachinesSolution:
    """Solution of several machines.

    Attributes
    ----------
    w : ndarray of shape (m,)
        Dual vectors of all machines, one after the other.
    residual : ndarray of shape (m,)
        Targets minus predictions, ``linear - K w - b``.
    objective : float
        Sum of the dual values.
    n_iter : int
        Number of pair steps.
    status : DualStatus
        ``TIME_LIMIT`` or ``INTERRUPTED`` if machines were not solved for this reason, and
        ``OPTIMAL`` otherwise.
    """

    w: FloatArray
    residual: FloatArray
    objective: float
    n_iter: int
    status: DualStatus


def solve_machines(
    forms: MachineForms,
    dual: DualProblem,
    kernel_of: Callable[[int], NDArray[Any] | KernelOnDemand],
    w0: FloatArray,
    *,
    tol: float,
    time_limit: float | None,
    n_jobs: int | None,
) -> MachinesSolution:
    """Solve the duals of all machines with piecewise linear losses.

    Machines of up to 2,000 samples are solved by pair steps in one compiled loop, and
    :func:`solve_dual` goes on with those that it gives up, and with larger ones.

    Parameters
    ----------
    forms : MachineForms
        Kernel matrices of the machines, one after the other like the machines of `dual`.
    dual : DualProblem
        Losses of the machines, with finite bounds.
    kernel_of : callable
        Returns the kernel matrix of the machine with a given number, for machines that are large
        or need more than pair steps.
    w0 : ndarray of shape (m,)
        Feasible dual vector to start from.
    tol : float
        Relative duality gap of each machine.
    time_limit : float or None
        Largest number of seconds.
    n_jobs : int or None
        Number of threads. See :func:`tessella.backend.effective_threads`.

    Returns
    -------
    MachinesSolution
        The dual vectors of all machines, also of those that a limit has left unsolved.

    Notes
    -----
    A pair step of a machine with f samples takes about 12f operations. In the compiled loop, each
    thread solves one machine after the other and holds one kernel matrix of side f, of which only
    the rows that pair steps ask for are computed.
    """
    deadline = None if time_limit is None else time.monotonic() + time_limit
    found = _Machines(dual, w0)
    status = found.take_pair_steps(forms, tol, time_limit, effective_threads(n_jobs))
    for k in np.flatnonzero(found.left):
        if status in _ENDED:
            break
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        status = found.finish(int(k), kernel_of(int(k)), tol, left, n_jobs)
    return MachinesSolution(
        found.w,
        found.residual,
        float(found.objectives.sum()),
        found.n_iter,
        status if status in _ENDED else DualStatus.OPTIMAL,
    )


class _Machines:
    """What is known of all machines while they are solved."""

    def __init__(self, dual: DualProblem, w0: FloatArray) -> None:
        count = len(dual.starts)
        self._dual = dual
        self.w, self.residual, self.objectives = w0.copy(), np.zeros(dual.size), np.zeros(count)
        self.left = np.ones(count, dtype=np.bool_)  # machines that are not solved yet
        self.n_iter = 0

    def take_pair_steps(
        self, forms: MachineForms, tol: float, time_limit: float | None, threads: int
    ) -> DualStatus:
        """Solve the machines that are small enough by pair steps, as far as these go."""
        small = forms.sizes <= LARGEST
        if not small.any():
            return DualStatus.OPTIMAL
        part, samples, dual = forms.some(small), np.repeat(small, forms.sizes), self._dual
        w = self.w[samples]
        reports = part.solve_duals(
            (dual.linear[samples], dual.epsilon[samples], dual.lower[samples], dual.upper[samples]),
            w,
            tol=tol,
            steps_per_sample=_STEPS_PER_SAMPLE,
            seconds=time_limit,
            threads=threads,
        )
        self.w[samples] = w
        self.residual[samples] = reports.gradient - np.repeat(reports.intercepts, part.sizes)
        self.objectives[small], self.left[small] = reports.objectives, reports.finished == 0
        self.n_iter += int(reports.steps.sum())
        return DualStatus(reports.status)

    def finish(
        self,
        k: int,
        K: NDArray[Any] | KernelOnDemand,
        tol: float,
        time_limit: float | None,
        n_jobs: int | None,
    ) -> DualStatus:
        """Solve one machine from where it is, by all kinds of steps."""
        rows = self._dual.machines[k]
        solution = solve_dual(
            K, self._dual.each[k], w0=self.w[rows], tol=tol, time_limit=time_limit, n_jobs=n_jobs
        )
        self.w[rows], self.objectives[k] = solution.w, solution.objective
        self.residual[rows] = solution.gradient - solution.intercept
        self.n_iter += solution.n_iter
        return solution.status
