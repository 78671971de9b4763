"""First certified pairs of a run that may end early: machines whose kernel is not learned.

A run with a time limit first solves machines with one kernel of its family, on samples of growing
size. A dual vector that is zero on all other rows is feasible for the whole problem, so every pair
has a certificate, and the run returns nothing worse than the last of them, however early it ends.
A parameter that is fixed takes the place of this kernel.

The seconds of the samples tell how the time of a machine grows with its rows. A sample that would
take too much of the time that is left is not begun. If not even the whole problem with one kernel
fits into the time, no step of a solver does, and the samples get most of it.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tessella.cones import PSD
from tessella.kernels import KernelWorkspace, SharedKernels
from tessella.solvers._estimate import MachineGrowth
from tessella.solvers._samples import sample_rows

if TYPE_CHECKING:
    from tessella.solvers._run import Run

FloatArray = NDArray[np.float64]

_FIRST_ROWS = 200
_ROWS_PER_MACHINE = 12
_STEP = 3  # rows of a sample, relative to those of the sample before
# Rows of a single machine with a small matrix as parameter. With more, the solver has its first
# pair as soon; with a large matrix or with a dictionary, that takes many times as long.
_MOST_ROWS = 2000
_PLENTY = 0.3  # of the time that is left that a sample of any size may take
_PART = 0.7  # of the time that is left that a sample may take
_LARGER_PART = 0.9  # the same where the next step of the solver would take at least as long
_PILOT = 4  # rows of the problem, relative to those of a sample that only tells the time
_TOL = 1e-3  # gap of the machines


def plain_machines(run: Run, *, with_gradient: bool = False) -> MachineGrowth:
    """Keep the pairs of machines with the plain kernel, on as many rows as there is time for.

    Parameters
    ----------
    run : Run
        The run that keeps the pairs. It may have no time limit; pairs are then not kept, and
        the samples only tell how the time grows.
    with_gradient : bool, default=False
        Whether the seconds include a gradient of the parameter, which every later step needs and
        these pairs do not. That of a dictionary is a pass over all of its kernels.

    Returns
    -------
    MachineGrowth
        Seconds of the samples by their rows.

    Raises
    ------
    StopRun
        If the time of the run is over or the run is interrupted.
    """
    problem = run.problem
    P = problem.kernels.plain_parameter if problem.fixed is None else problem.fixed
    shared = isinstance(problem.kernels, SharedKernels)
    n_machines = len(problem.dual.starts)
    growth = MachineGrowth(several=n_machines > 1)
    sizes = sample_sizes(problem.dual.size, n_machines, shared=shared, whole=_begins_slowly(run))
    while sizes:
        count = _next_size(run, sizes, growth)
        if count is None:
            break
        sizes = [size for size in sizes if size > count]
        begin = time.monotonic()
        w = _solved(run, P, count)
        if with_gradient:
            problem.kernels.gradient(w)
        solved = time.monotonic()
        if run.clock.deadline is not None:
            run.keep_roughly(P, w)
        growth.add(count, solved - begin, time.monotonic() - solved)
        run.clock.certificate_seconds = growth.certificate_seconds(problem.dual.size)
    return growth


def _next_size(run: Run, sizes: list[int], growth: MachineGrowth) -> int | None:
    """Return the size of the next sample, or None if there is no time for another one.

    A size for which there is plenty of time is taken at once. With a fixed parameter, the whole
    problem is what the solver begins with.
    """
    left, first, size = run.seconds_left(), sizes[0], run.problem.dual.size
    if left is None:
        enough = growth.seconds(first) > 0.0 and first > min(_MOST_ROWS, size / _PILOT)
        return None if enough else first
    if left == 0.0 and run.clock.is_large:
        return None  # a constant costs nothing
    if not growth.seconds(first):
        return first
    if run.problem.fixed is not None and (first == size or growth.seconds(size) <= _PART * left):
        return None
    plenty = [size for size in sizes if growth.seconds(size) <= _PLENTY * left]
    if plenty:
        return plenty[-1]
    long_steps = _begins_slowly(run) or run.problem.dual.is_smooth
    alone = long_steps or growth.seconds(size) > left
    part = _LARGER_PART if alone else _PART
    return first if growth.seconds(first) <= part * left else None


def _begins_slowly(run: Run) -> bool:
    """Return whether the first step of a solver takes far longer than a machine.

    It is a decomposition of a large matrix, or a pass over all kernels of a dictionary.
    """
    return run.clock.is_large or not isinstance(run.problem.cone, PSD)


def sample_sizes(
    n_samples: int, n_machines: int, *, shared: bool = False, whole: bool = False
) -> list[int]:
    """Return the sizes of the samples; the last one is the whole problem unless it is large.

    Machines that share their rows have a sample of the same rows, which counts once for each. The
    samples of several machines, and those of one machine if `whole` is true, have no largest size.
    """
    most = n_samples if whole or n_machines > 1 else min(n_samples, _MOST_ROWS)
    least = _FIRST_ROWS * n_machines if shared else _FIRST_ROWS
    size, sizes = max(least, _ROWS_PER_MACHINE * n_machines), []
    while _STEP * size <= 2 * most:
        sizes.append(size)
        size *= _STEP
    return [*sizes, most]


def _solved(run: Run, P: object, count: int) -> FloatArray:
    """Return the dual vector of machines with the kernel of P on some rows, zero on the others."""
    kernels, dual = run.problem.kernels, run.problem.dual
    w = np.zeros(dual.size)
    if count == dual.size:
        rows = np.arange(dual.size)
    else:
        rows = sample_rows(kernels, dual, count)
        kernels, dual = kernels.subset(rows), dual.restrict(rows)
    run.phase(f"machines with a fixed kernel on {len(rows)} rows")
    factors = kernels.cone.positive_factors(P)
    forms = kernels.machine_forms(factors) if dual.is_boxed else None
    if forms is not None:
        w[rows] = run.solved_apart(forms, dual, _TOL)
    else:
        matrices = kernels.svm_kernels(factors, KernelWorkspace(kernels.dtype))
        w[rows] = run.solved_apart(matrices, dual, _TOL)
    return w
