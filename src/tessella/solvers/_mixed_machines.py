"""A first pair for several machines whose rows have about as many features as there are rows.

With that many features D(w) of a machine has nearly one direction, and machines with the largest
kernel are nearly optimal if there is one of them (see ``_majorant``). Let d_k be the direction of
machine k, a linear function of its dual vector. The support function of Σ_k D(w_k) ≈ Σ_k d_k d_kᵀ
is then that of the products between machines,

    support(Σ_k d_k d_kᵀ) = max over S of Σ_kl S_kl <d_k, d_l>,    <d_k, d_l> = w_kᵀ K w_l,

with the largest kernel K and a matrix S ⪰ 0 of trace one whose side is the number of machines. So
the dual problem is nearly that of learning S for machines that are solved together with the kernels
S_kl K, a problem with a small parameter, which the interior point method solves as it stands. Its
dual vector proves a bound. Its functions Σ_l S_kl d_l are those of the best P, whose shares are in
proportion to the roots of the sum of their squares.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tessella.backend import limit_blas
from tessella.cones import PSD, Point
from tessella.kernels._sensitivity import RowwiseSensitivities
from tessella.problems import DualPoint
from tessella.solvers._majorant import ROUGH, largest_machines
from tessella.solvers._run import Run
from tessella.solvers.central_path import inwards, state_near
from tessella.svm import (
    CentralPathProblem,
    CentralPathState,
    DualProblem,
    Halves,
    InteriorPoint,
    Linearisation,
)

FloatArray = NDArray[np.float64]

_ACCURACY = 1e-4  # of S and the dual vectors, as a merit of the interior point method
_MOST_STEPS = 60
_LEAST_SHARE = 1e-4  # of a direction of S, relative to the largest


class MixedMachines(CentralPathProblem):
    """Machines whose functions are mixed by a matrix S, which is learned with them.

    Parameters
    ----------
    dual : DualProblem
        Dual problem of the machines.
    K : ndarray of shape (m, m)
        Kernel matrix of all rows.
    index : ndarray of int of shape (f,)
        Row of each sample, one machine after the other.
    """

    def __init__(self, dual: DualProblem, K: FloatArray, index: NDArray[np.intp]) -> None:
        count = len(dual.starts)
        self.dual, self.halves, self.cone = dual, Halves.of(dual), PSD(count, 1.0)
        self.sum_w = np.zeros(count)
        self._K, self._index = K, index
        self._products: FloatArray = K[np.ix_(index, index)]

    def spread(self, w: FloatArray) -> FloatArray:
        """Return the dual vectors as columns of an array with a line for each row."""
        columns = np.zeros((len(self._K), len(self.dual.starts)))
        columns[self._index, self.dual.machine_of] = w
        return columns

    def linearise(self, w: FloatArray, M: Point, L: Point) -> Linearisation:  # noqa: ARG002
        """See :meth:`CentralPathProblem.linearise`."""
        own, count = self.dual.machine_of, len(self.dual.starts)
        columns = self.spread(w)
        functions = self._K @ columns
        products = columns.T @ functions
        nothing = np.zeros((count, count))
        return Linearisation(
            K=M[np.ix_(own, own)] * self._products,
            sensitivities=RowwiseSensitivities(
                a=np.eye(count)[own],
                g=functions[self._index],
                low=nothing[own],
                h=nothing,
                group=own,
            ),
            scores=(functions @ M)[self._index, own],
            half_gradient=0.25 * (products + products.T),
        )


def mixed_start(run: Run, w0: FloatArray | None) -> tuple[Point, DualPoint]:
    """Return a first parameter, and the dual vector of the mixed machines.

    Parameters
    ----------
    run : Run
        The run, whose lower bound is raised by the dual vector. Its machines see the same rows, and
        its parameter is one matrix.
    w0 : ndarray of shape (m,), optional
        Dual vector to start from.

    Raises
    ------
    StopRun
        If the time of the run is over or the run is interrupted.
    """
    cone, dual, rows = run.problem.cone, run.problem.dual, run.problem.kernels.common_rows()
    assert rows is not None
    run.count_first_kernel()
    w, _ = largest_machines(run, w0, ROUGH)
    K = rows.kernels.gram(cone.degree * cone.centre)
    K -= K.mean(axis=0)  # the dual vectors of each machine have the sum zero
    K -= K.mean(axis=1)[:, None]
    mixed = MixedMachines(dual, K, rows.index)
    with limit_blas(run.n_jobs, dual.size):
        state = _solved(run, mixed, w)
    point = run.problem.at(dual.feasible(mixed.halves.join(state.alpha)))
    run.raise_bound(point)
    values, vectors = np.linalg.eigh(state.M)
    kept = values > _LEAST_SHARE * values[-1]
    functions = mixed.spread(point.w) @ (vectors[:, kept] * values[kept])
    squares = sum(rows.kernels.moments(column).gradient for column in functions.T)
    return cone.balanced_response(cone.spectrum(squares)), point


def _solved(run: Run, mixed: MixedMachines, w: FloatArray) -> CentralPathState:
    """Return the best iterate of the interior point method."""
    start = state_near(mixed, mixed.cone.centre, inwards(mixed.halves, w))
    method = InteriorPoint(mixed, *start)
    best, state = method.merit, method.state
    for _ in range(_MOST_STEPS):
        if best <= _ACCURACY or method.advance() == 0.0:
            break
        run.count_newton()
        run.check_time()
        if method.merit < best:
            best, state = method.merit, method.state
    return state
