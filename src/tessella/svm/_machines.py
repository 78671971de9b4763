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

    Parameters
    ----------
    forms : MachineForms
        Kernel matrices of the machines.
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
        Number of threads.
    """
    deadline = None if time_limit is None else time.monotonic() + time_limit
    w, count = w0.copy(), len(forms.sizes)
    residual, objectives, left = np.zeros(dual.size), np.zeros(count), np.ones(count, dtype=bool)
    n_iter, status = 0, DualStatus.OPTIMAL
    if forms.sizes.min() <= LARGEST:
        own = forms.sizes <= LARGEST
        samples = np.repeat(own, forms.sizes)
        part = forms if own.all() else forms.some(own)
        moved = w if own.all() else w[samples]
        reports = part.solve_duals(
            tuple(a if own.all() else a[samples] for a in _arrays(dual)),
            moved,
            tol=tol,
            steps_per_sample=_STEPS_PER_SAMPLE,
            seconds=time_limit,
            threads=effective_threads(n_jobs),
        )
        w[samples] = moved
        residual[samples] = reports.gradient - np.repeat(reports.intercepts, part.sizes)
        objectives[own] = reports.objectives
        left[own] = reports.finished == 0
        n_iter, status = int(reports.steps.sum()), DualStatus(reports.status)
    for k in np.flatnonzero(left):
        if status in _ENDED:
            break
        rows = dual.machines[k]
        solution = solve_dual(
            kernel_of(int(k)),
            dual.each[k],
            w0=w[rows],
            tol=tol,
            time_limit=None if deadline is None else max(0.0, deadline - time.monotonic()),
            n_jobs=n_jobs,
        )
        w[rows], objectives[k] = solution.w, solution.objective
        residual[rows] = solution.gradient - solution.intercept
        n_iter += solution.n_iter
        status = solution.status
    ended = status if status in _ENDED else DualStatus.OPTIMAL
    return MachinesSolution(w, residual, float(objectives.sum()), n_iter, ended)


def _arrays(dual: DualProblem) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    return dual.linear, dual.epsilon, dual.lower, dual.upper
