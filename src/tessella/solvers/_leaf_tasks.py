"""What is done in one leaf: pure functions of its rows, a parameter and a dual vector.

A task gets a :class:`LeafProblem`, the dual vector of the leaf and a few numbers, and returns a
dual vector to keep, or None, and a small result. It has no other effect, so it can run in any
thread or process, and can be run again if its answer is lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tessella.backend import limit_blas
from tessella.cones import Cone, Face, Point
from tessella.kernels import KernelSet, bind_to_machines
from tessella.problems import LeafEvidence, SaddlePoint
from tessella.solvers._curvature import curvature
from tessella.solvers._result import SolverStatus
from tessella.solvers._run import Run, StopRun
from tessella.solvers._samples import sample_strata
from tessella.solvers.central_path import HeldSamples, RestrictedProblem
from tessella.svm import DualProblem

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

_UNLIMITED = 2**62  # number of iterations that is never reached
_MOST_CURVED = 600  # free samples of a machine that its curvature is computed from


@dataclass(frozen=True)
class LeafProblem:
    """The rows of a leaf with their machines; small enough to be sent to another process.

    Attributes
    ----------
    kernels : KernelSet
        Kernel set as it is resolved for all leaves.
    rows : ndarray of shape (m, n)
        Rows of the leaf, scaled as the kernel set wants them.
    machine_rows : tuple of ndarray of int
        Positions of the rows that each machine sees.
    dual : DualProblem
        The machines, one after the other.
    dtype : str
        Data type of kernel matrices.
    fixed : Point or None
        Parameter that is used instead of learning one.
    """

    kernels: KernelSet
    rows: FloatArray
    machine_rows: tuple[IntArray, ...]
    dual: DualProblem
    dtype: str = "float64"
    fixed: Point | None = None

    def bound(self, n_jobs: int | None = 1) -> SaddlePoint:
        """Return the problem of the leaf with the kernel set bound to its rows."""
        kernels = bind_to_machines(
            self.kernels, self.rows, self.machine_rows, dtype=self.dtype, n_jobs=n_jobs
        )
        return SaddlePoint(kernels, self.dual, self.fixed)

    @property
    def index(self) -> IntArray:
        """Row of each sample, one machine after the other."""
        return np.concatenate(self.machine_rows)

    @property
    def shares_rows(self) -> bool:
        """Whether several machines see all rows."""
        return len(self.machine_rows) > 1 and all(
            len(own) == len(self.rows) for own in self.machine_rows
        )

    def subset(self, samples: IntArray, factor: FloatArray) -> LeafProblem:
        """Return the problem of some samples, ascending, with their losses multiplied by factors.

        A machine without any of the samples is left out.
        """
        rows, place = np.unique(self.index[samples], return_inverse=True)
        machine = self.dual.machine_of[samples]
        return replace(
            self,
            rows=self.rows[rows],
            machine_rows=tuple(place[machine == k] for k in np.unique(machine)),
            dual=self.dual.restrict(samples, factor),
        )

    def some_samples(self, count: int, seed: int = 0) -> tuple[IntArray, FloatArray]:
        """Return about `count` random samples of each kind, and how many each represents.

        Machines that share their rows get the same ones.
        """
        rng = np.random.default_rng(seed)
        if not self.shares_rows:
            return sample_strata(self.dual, count, rng)
        several, size = len(self.machine_rows), len(self.rows)
        kept = min(size, max(2, count // several))
        own = np.sort(rng.permutation(size)[:kept])
        samples = np.concatenate([own + k * size for k in range(several)])
        return samples, np.full(len(samples), size / kept)


@dataclass(frozen=True)
class MovingSamples:
    """Samples of a leaf that move in a joint step; all others of the leaf are held.

    Attributes
    ----------
    samples : ndarray of int
        Positions of the samples in the dual vector of the leaf, ascending.
    part : LeafProblem
        The samples by themselves.
    w, residual : ndarray
        Their dual variables, and targets minus predictions.
    held : HeldSamples
        What the samples that are held contribute.
    """

    samples: IntArray
    part: LeafProblem
    w: FloatArray
    residual: FloatArray
    held: HeldSamples


@dataclass(frozen=True)
class LeafAnswer:
    """The answer of the machines of a leaf.

    Attributes
    ----------
    evidence : LeafEvidence
        What the leaf contributes to the bounds.
    objective : float
        Dual value of its machines.
    svm_iter : int
        Number of pair steps.
    stopped : SolverStatus or None
        Why the machines were not solved to the end, if they were not.
    moving : MovingSamples or None
        Samples for the joint step, if there is one.
    curvature : ndarray or None
        Hessian of the value of the leaf, if it was asked for.
    """

    evidence: LeafEvidence
    objective: float
    svm_iter: int
    stopped: SolverStatus | None
    moving: MovingSamples | None
    curvature: FloatArray | None


@dataclass(frozen=True)
class Wanted:
    """What a leaf returns beside its dual vector and its bounds.

    Attributes
    ----------
    moving : int
        Number of samples for a joint step; 0 for none.
    curved : bool
        Whether to return the Hessian of the value.
    face : Face
        Face of the cone in which the parameter moves; None is the whole cone.
    """

    moving: int = 0
    curved: bool = False
    face: Face = None


def solve_leaf(
    leaf: LeafProblem,
    w: FloatArray,
    P: Point,
    tol: float,
    seconds: float | None,
    wanted: Wanted,
    *,
    n_jobs: int | None,
) -> tuple[FloatArray, LeafAnswer]:
    """Solve the machines of a leaf for a parameter, from a dual vector."""
    problem = leaf.bound(n_jobs)
    with limit_blas(n_jobs, problem.dual.size):
        return _solved(problem, leaf, w, P, tol, seconds, wanted, n_jobs)


def _solved(
    problem: SaddlePoint,
    leaf: LeafProblem,
    w: FloatArray,
    P: Point,
    tol: float,
    seconds: float | None,
    wanted: Wanted,
    n_jobs: int | None,
) -> tuple[FloatArray, LeafAnswer]:
    run = Run(
        "leaf",
        problem,
        tol=tol,
        max_iter=_UNLIMITED,
        time_limit=seconds,
        n_jobs=n_jobs,
        callback=None,
        is_part=True,
    )
    stopped = None
    try:
        answer = run.svm_at(P, w, tol)
        found, objective = answer.w, answer.objective
    except StopRun as stop:
        stopped = stop.status
        found = run.best[1] if run.has_answer else w
        objective = -np.inf
    point = problem.at(found)
    moving = None
    if wanted.moving and stopped is None:
        moving = _moving(problem, leaf, point.w, point.residuals(P), wanted)
    return point.w, LeafAnswer(
        evidence=LeafEvidence.of(point, P),
        objective=objective,
        svm_iter=run.svm_iterations,
        stopped=stopped,
        moving=moving,
        curvature=curvature(problem, point, P, wanted.face, _MOST_CURVED)
        if wanted.curved and stopped is None
        else None,
    )


def _moving(
    problem: SaddlePoint, leaf: LeafProblem, w: FloatArray, residual: FloatArray, wanted: Wanted
) -> MovingSamples | None:
    """Return free samples, or if there are few the ones that are nearest to be free."""
    dual = problem.dual
    if leaf.shares_rows:
        samples, _ = leaf.some_samples(wanted.moving)
    else:
        rank = np.random.default_rng(0).random(dual.size)
        order = np.argsort(np.where(dual.free(w), -1.0 - rank, dual.distance_to_kink(residual)))
        samples = dual.movable(np.sort(order[: wanted.moving]), w)
    if not len(samples):
        return None
    return MovingSamples(
        samples=samples,
        part=leaf.subset(samples, np.ones(len(samples))),
        w=w[samples],
        residual=residual[samples],
        held=HeldSamples.of(problem, samples, w, wanted.face),
    )


def certify_leaf(
    leaf: LeafProblem, w: FloatArray, P: Point, *, n_jobs: int | None
) -> tuple[FloatArray, LeafEvidence]:
    """Return what a dual vector contributes to the bounds, after it is made feasible."""
    problem = leaf.bound(n_jobs)
    with limit_blas(n_jobs, problem.dual.size):
        point = problem.at(w)
        return point.w, LeafEvidence.of(point, P)


def move_leaf(
    leaf: LeafProblem,
    w: FloatArray,
    P: Point,
    samples: IntArray,
    values: FloatArray,
    *,
    n_jobs: int | None,
) -> tuple[FloatArray, LeafEvidence]:
    """Return the dual vector with other values of some samples, and what it contributes."""
    moved = w.copy()
    moved[samples] = values
    return certify_leaf(leaf, moved, P, n_jobs=n_jobs)


def sample_leaf(
    leaf: LeafProblem,
    w: FloatArray,  # noqa: ARG001 - every task gets it
    count: int,
    factor: float,
    *,
    n_jobs: int | None,  # noqa: ARG001
) -> tuple[None, LeafProblem | None]:
    """Return some samples of a leaf that stand for all of them, or None if it has too few."""
    samples, represented = leaf.some_samples(count)
    if not len(samples):
        return None, None
    return None, leaf.subset(samples, factor * represented)


def stacked_rows(parts: Sequence[LeafProblem]) -> tuple[FloatArray, list[IntArray]]:
    """Return the rows of several leaves, and those that each of their machines sees."""
    starts = np.cumsum([0, *(len(part.rows) for part in parts)])
    machines = [
        rows + start
        for part, start in zip(parts, starts[:-1], strict=True)
        for rows in part.machine_rows
    ]
    return np.concatenate([part.rows for part in parts]), machines


def stacked_leaves(parts: Sequence[LeafProblem], n_jobs: int | None) -> SaddlePoint:
    """Return several leaves as one problem."""
    rows, machines = stacked_rows(parts)
    kernels = parts[0].kernels.bind_machines(rows, machines, dtype=parts[0].dtype, n_jobs=n_jobs)
    return SaddlePoint(kernels, DualProblem.stacked([part.dual for part in parts]))


def stacked_problem(
    parts: Sequence[MovingSamples], cone: Cone, face: Face, n_jobs: int | None
) -> tuple[RestrictedProblem, FloatArray, FloatArray]:
    """Return the samples of several leaves as one problem, their w and their residuals."""
    rows, machines = stacked_rows([part.part for part in parts])
    kernels = parts[0].part.kernels.bind_machines(rows, machines, n_jobs=n_jobs)
    dual = DualProblem.stacked([part.part.dual for part in parts])
    restricted = RestrictedProblem.of_parts(
        dual,
        kernels.restrict(np.arange(dual.size), face),
        cone.face(face),
        [part.held for part in parts],
    )
    w = np.concatenate([part.w for part in parts])
    return restricted, w, np.concatenate([part.residual for part in parts])
