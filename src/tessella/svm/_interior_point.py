"""The interior point iteration for the dual vector and the parameter of the kernel together.

The unknowns are nonnegative halves α of the dual vector (w = Σ sign·α; one half per sample in
classification, two in regression with a tube, and w itself for the squared loss, which has no
bounds) and a parameter M of a cone, whose trace is one. With the multipliers ν, ξ of the two
equations, zl, zu of the bounds 0 ≤ α ≤ u and S of the cone, the optimality conditions are

    sign·(scores(w, M) + ν) - cost + curvature·α - zl + zu = 0        Σw = total
    ξ·unit - ½ D(w) - S = 0                             trace M = 1
    α zl = μ,   (u - α) zu = μ,   M ∘ S = μ e           with μ → 0

with one sum and one ν for each machine if there are several, and without zl, zu and their products
where there are no bounds. The cone may consist of positive semidefinite matrices, of nonnegative
weights, or of products of those. With a given kernel, the compiled steps of
:func:`tessella.svm.interior_point` solve a support vector machine in the same way.

Newton's method is written in the variables of Nesterov and Todd, in which M and S are the same
diagonal Λ at the current iterate (:class:`tessella.cones.Scaling`). There the linearised
complementarity is diagonal, dX + dZ = μ Λ⁻¹ - Λ, so everything but w can be eliminated:

    (K + J Jᵀ + T) dw = rhs,    T⁻¹ = Σ over the halves of 1 / (curvature + zl/α + zu/(u - α))

where row k of J is the derivative of the score of sample k with respect to X. A step consists of
one Cholesky factorisation of the side of w, Mehrotra's predictor and corrector, and up to two
rounds of iterative refinement.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, lapack

from tessella.backend import BlockDiagonal
from tessella.cones import Cone, Point, Sensitivities, inner
from tessella.svm._halves import Halves
from tessella.svm._problem import DualProblem

FloatArray = NDArray[np.float64]

_LEAST_STEP = 1e-8  # a shorter step only changes rounding errors
# Number of refinement rounds by merit, because rounding matters when the residuals are small.
_REFINEMENTS = ((1e-3, 0), (1e-6, 1), (0.0, 2))


@dataclass(frozen=True)
class Linearisation:
    """The linearisation of a problem at (w, M), with f samples that move.

    Attributes
    ----------
    K : ndarray of shape (f, f), or (f / c, f / c), or BlockDiagonal
        Kernel matrix of the samples that move, for the current M. If c machines share one matrix,
        it is that matrix.
    sensitivities : Sensitivities
        Derivatives with respect to M of the scores of the samples that move.
    scores : ndarray of shape (f,)
        Scores of the samples that move.
    half_gradient : Point
        The point ½ D(w), to which all samples contribute.
    """

    K: FloatArray | BlockDiagonal
    sensitivities: Sensitivities
    scores: FloatArray
    half_gradient: Point


class CentralPathProblem(ABC):
    """Base class of the problems that the interior point iteration solves.

    Attributes
    ----------
    halves : Halves
        Nonnegative halves of the dual vector.
    dual : DualProblem
        The dual problem of the samples that move.
    sum_w : ndarray of shape (n_machines,)
        Required sum of the dual vector of each machine.
    cone : Cone
        Cone that contains the parameter.
    """

    halves: Halves
    dual: DualProblem
    sum_w: FloatArray
    cone: Cone

    @abstractmethod
    def linearise(self, w: FloatArray, M: Point, L: Point) -> Linearisation:
        """Return kernel matrix, sensitivities, scores and ½D(w) at a dual vector and M = L Lᵀ."""


@dataclass(frozen=True)
class CentralPathState:
    """An iterate, which consists of the primal variables and all multipliers."""

    alpha: FloatArray
    M: Point
    zl: FloatArray
    zu: FloatArray
    S: Point
    nu: FloatArray
    xi: float


@dataclass(frozen=True)
class _Step:
    """A change of the iterate; X and Z are the changes of M and S in scaled variables."""

    alpha: FloatArray
    w: FloatArray
    X: Point
    Z: Point
    zl: FloatArray
    zu: FloatArray
    nu: FloatArray
    xi: float


class InteriorPoint:
    """The interior point iteration; call :meth:`advance` until :attr:`merit` is small enough.

    Parameters
    ----------
    problem : CentralPathProblem
        Problem to solve.
    state : CentralPathState
        First iterate, strictly inside all bounds and cones.
    scale : float
        Size of the scores, which is the unit of the residuals.
    to_boundary : float
        Largest fraction of the way to the boundary that a step covers.

    Attributes
    ----------
    state : CentralPathState
        Current iterate.
    merit : float
        Largest of the complementarity and the residuals, each relative to its scale.
    """

    def __init__(
        self,
        problem: CentralPathProblem,
        state: CentralPathState,
        scale: float,
        *,
        to_boundary: float = 0.98,
    ) -> None:
        self.problem = problem
        self.state = state
        self._scale = scale
        self._to_boundary = to_boundary
        self.unit = problem.cone.unit
        self._linearise()

    @property
    def w(self) -> FloatArray:
        """Dual vector of the current iterate."""
        return self.problem.halves.join(self.state.alpha)

    def _linearise(self) -> None:
        halves, state, cone = self.problem.halves, self.state, self.problem.cone
        w = self.w
        self.root = cone.factor(state.M)
        self.here = here = self.problem.linearise(w, state.M, self.root)
        dual = self.problem.dual
        shifted = here.scores + state.nu[dual.machine_of]
        bent = halves.curvature * state.alpha
        self.alpha_residual = (
            halves.sign * shifted[halves.sample] - halves.cost + bent - state.zl + state.zu
        )
        self.sum_residual = dual.sums(w) - self.problem.sum_w
        self.cone_residual = state.xi * self.unit - here.half_gradient - state.S
        self.trace_residual = inner(self.unit, state.M) - 1.0 if cone.degree else 0.0
        self.gap = self._complementarity()
        kappa = float(halves.cost @ state.alpha) - 0.5 * float(bent @ state.alpha)
        value = abs(kappa - 0.5 * float(w @ here.scores))
        value += 1e-12 * self._scale
        # Not max, which would pass over a NaN.
        self.merit = float(
            np.max(
                [
                    self.gap / value,
                    cone.magnitude(self.cone_residual) / value,
                    float(np.abs(self.alpha_residual).max()) / self._scale,
                    abs(self.trace_residual),
                ]
            )
        )

    def _complementarity(self) -> float:
        s, halves = self.state, self.problem.halves
        bounds = halves.below(s.alpha) @ s.zl + halves.above(s.alpha) @ s.zu
        return float(bounds) + inner(s.M, s.S)

    def advance(self) -> float:
        """Take a predictor-corrector step; return its length, 0 if rounding prevents a step."""
        state = self.state
        halves = self.problem.halves
        inside = min(halves.below(state.alpha).min(), halves.above(state.alpha).min()) > 0.0
        if not (inside and np.isfinite(self.merit)):
            return 0.0  # rounding has moved a half to its bound
        try:
            system = _NewtonSystem(self)
            affine = system.predictor()
            reach = min(1.0, system.reach(affine))
            after = max(0.0, system.complementarity_after(affine, reach))
            centring = min(1.0, max(1e-8, (after / self.gap) ** 3)) if reach > 0.1 else 0.5
            step = system.corrector(affine, centring * self.gap / system.order)
            length = min(1.0, self._to_boundary * system.reach(step))
            if not (np.isfinite(length) and length > _LEAST_STEP):
                return 0.0
            self.state = self._after(system, step, length)
            self._linearise()
        except np.linalg.LinAlgError:
            self.state = state
            return 0.0
        return length

    def _after(self, system: _NewtonSystem, step: _Step, length: float) -> CentralPathState:
        state = self.state
        # S is computed from its equation, and not from its scaled change, so that the equation
        # holds up to rounding.
        pull = self.here.sensitivities.adjoint(step.w)
        dS = self.cone_residual - pull + step.xi * self.unit
        return CentralPathState(
            alpha=state.alpha + length * step.alpha,
            M=state.M + length * system.scaling.from_scaled(step.X),
            zl=state.zl + length * step.zl,
            zu=state.zu + length * step.zu,
            S=state.S + length * dS,
            nu=state.nu + length * step.nu,
            xi=state.xi + length * step.xi,
        )


class _Factor(ABC):
    """A factorisation of K + J Jᵀ + T."""

    @abstractmethod
    def solve(self, rhs: FloatArray) -> FloatArray:
        """Return the solution for a vector."""

    @abstractmethod
    def sums_of_inverse(self) -> FloatArray:
        """Return the sums of the inverse over the rows and columns of each pair of machines."""


class _WholeFactor(_Factor):
    """One Cholesky factorisation of the whole matrix."""

    def __init__(
        self,
        K: FloatArray | BlockDiagonal,
        T: FloatArray,
        J: Sensitivities,
        dual: DualProblem,
    ) -> None:
        self._dual = dual
        gram = J.gram()
        if isinstance(K, BlockDiagonal):
            matrix = K.whole() if gram is None else K.added_to(gram)
        else:
            matrix = K.copy() if gram is None else np.add(gram, K, out=gram)
        self._factor = _cholesky(matrix, T)

    def solve(self, rhs: FloatArray) -> FloatArray:
        solution: FloatArray = lapack.dpotrs(self._factor, rhs, lower=1)[0]
        return solution

    def sums_of_inverse(self) -> FloatArray:
        """See :meth:`_Factor.sums_of_inverse`."""
        machines = np.equal.outer(self._dual.machine_of, np.arange(len(self._dual.starts)))
        half = lapack.dtrtrs(self._factor, machines.astype(np.float64), lower=1)[0]
        sums: FloatArray = half.T @ half
        return sums


class _MachineFactors(_Factor):
    """A Cholesky factorisation for each machine, and J as a border that couples them.

    K is block diagonal, so if J has few columns this is cheaper than one factorisation of the whole
    matrix by the square of the number of machines. Machines that share K and have the same T share
    a factorisation too.
    """

    def __init__(
        self,
        K: FloatArray | BlockDiagonal,
        T: FloatArray,
        columns: FloatArray,
        dual: DualProblem,
    ) -> None:
        self._dual, self._machines = dual, dual.machines
        self._factors: list[FloatArray] = []
        blocks = K.blocks if isinstance(K, BlockDiagonal) else [K] * len(self._machines)
        for block, rows in zip(blocks, self._machines, strict=True):
            shared = self._factors and block is blocks[0]
            if shared and np.array_equal(T[rows], T[self._machines[0]]):
                self._factors.append(self._factors[0])
            else:
                self._factors.append(_cholesky(block.copy(), T[rows]))
        self._columns = columns
        parts = zip(self._factors, self._machines, strict=True)
        halves = [lapack.dtrtrs(factor, columns[rows], lower=1)[0] for factor, rows in parts]
        border = blas.dsyrk(1.0, np.concatenate(halves), trans=1, lower=1)
        self._border = _cholesky(border.T, np.ones(len(border)))

    def _solve_machines(self, rhs: FloatArray) -> FloatArray:
        parts = zip(self._factors, self._machines, strict=True)
        return np.concatenate(
            [lapack.dpotrs(factor, rhs[rows], lower=1)[0] for factor, rows in parts]
        )

    def solve(self, rhs: FloatArray) -> FloatArray:
        alone = self._solve_machines(rhs)
        coupling = lapack.dpotrs(self._border, self._columns.T @ alone, lower=1)[0]
        solution: FloatArray = alone - self._solve_machines(self._columns @ coupling)
        return solution

    def sums_of_inverse(self) -> FloatArray:
        """See :meth:`_Factor.sums_of_inverse`."""
        ones = self._solve_machines(np.ones(self._dual.size))
        coupled = np.add.reduceat(self._columns * ones[:, None], self._dual.starts, axis=0)
        inner = lapack.dpotrs(self._border, coupled.T, lower=1)[0]
        sums: FloatArray = np.diag(self._dual.sums(ones)) - coupled @ inner
        return sums


def shared_product(K: FloatArray | BlockDiagonal, v: FloatArray) -> FloatArray:
    """Return K times a vector, or times the part of each machine if machines share K."""
    if not isinstance(K, np.ndarray) or len(K) == len(v):
        return K @ v
    return (v.reshape(-1, len(K)) @ K).ravel()  # K is symmetric


def _cholesky(matrix: FloatArray, diagonal: FloatArray) -> FloatArray:
    """Return the Cholesky factor of a symmetric matrix plus a diagonal, in place."""
    matrix.flat[:: len(matrix) + 1] += diagonal
    # The matrix is symmetric, so its transpose is the column-major matrix that LAPACK needs to
    # work in place.
    factor, failed = lapack.dpotrf(matrix.T, lower=1, clean=0, overwrite_a=1)
    if failed:
        raise np.linalg.LinAlgError("the Newton equations are singular")
    found: FloatArray = factor
    return found


class _NewtonSystem:
    """The Newton equations at one iterate, factorised.

    Attributes
    ----------
    order : int
        Number of complementarity products, which is the parameter of the barrier.
    scaling : Scaling
        Nesterov-Todd scaling of the parameter and its slack.
    """

    def __init__(self, method: InteriorPoint) -> None:
        state, self._halves = method.state, method.problem.halves
        self._method, self._dual = method, method.problem.dual
        cone = method.problem.cone
        self._refinements = next(n for bound, n in _REFINEMENTS if method.merit >= bound)
        self.order = self._halves.n_bounds + cone.degree
        self._below = self._halves.below(state.alpha)
        self._above = self._halves.above(state.alpha)
        self._theta = self._halves.curvature + state.zl / self._below + state.zu / self._above
        self.scaling = cone.scaling(method.root, state.S)
        self._unit = self.scaling.to_scaled(method.unit)
        self._cone_residual = self.scaling.to_scaled(method.cone_residual)
        self._J = method.here.sensitivities.transformed(self.scaling.factor)
        self._K = method.here.K
        self._factorise()
        self._border()

    def _factorise(self) -> None:
        softness = self._halves.total(1.0 / self._theta)
        # A sample without halves (weight zero) cannot move, which a very large T ensures.
        fixed = 1e12 * float(np.abs(self._K.diagonal()).max() + 1.0 / softness.max())
        self._T = 1.0 / np.maximum(softness, 1.0 / fixed)
        shared = len(self._K) < len(self._T)
        columns = self._J.columns() if len(self._dual.starts) > 1 else None
        if shared and columns is None:
            columns = self._J.matrix()
        if columns is not None and (shared or columns.shape[1] < len(self._T) // 2):
            self._factor: _Factor = _MachineFactors(self._K, self._T, columns, self._dual)
        else:
            self._factor = _WholeFactor(self._K, self._T, self._J, self._dual)

    def _border(self) -> None:
        """Set up the equations for the changes of ν and ξ after the elimination of w."""
        count = len(self._dual.starts)
        trace = [-self._J.apply(self._unit)] if self._method.problem.cone.degree else []
        self._trace_rows = np.reshape(trace, (len(trace), self._dual.size))
        # The solutions for all machines would be a matrix as wide as there are machines.
        self._small = np.empty((count + len(trace), count + len(trace)))
        self._small[:count, :count] = self._factor.sums_of_inverse()
        for row in self._trace_rows:
            self._small[-1] = self._small[:, -1] = self._equations(self._solve(row))
        if len(trace):
            self._small[-1, -1] -= inner(self._unit, self._unit)

    def _equations(self, v: FloatArray) -> FloatArray:
        """Return the sums of a vector over each machine, and its product with the trace row."""
        return np.concatenate([self._dual.sums(v), self._trace_rows @ v])

    def _solved_for(self, change: FloatArray) -> FloatArray:
        """Return the solution whose right-hand side is a combination of the equations."""
        count = len(self._dual.starts)
        return self._solve(change[self._dual.machine_of] + change[count:] @ self._trace_rows)

    def _solve(self, rhs: FloatArray) -> FloatArray:
        """Solve the eliminated equations for a vector."""
        solution = self._factor.solve(rhs)
        for _ in range(self._refinements):
            solution = solution + self._factor.solve(rhs - self._times(solution))
        return solution

    def _times(self, v: FloatArray) -> FloatArray:
        """Return the matrix of the Newton equations times a vector."""
        pushed = shared_product(self._K, v) + self._T * v
        result: FloatArray = pushed + self._J.apply(self._J.adjoint(v))
        return result

    def predictor(self) -> _Step:
        """Return the step towards complementarity zero."""
        state = self._method.state
        return self._step(
            -self._below * state.zl, -self._above * state.zu, self.scaling.towards(0.0)
        )

    def corrector(self, affine: _Step, mu: float) -> _Step:
        """Return the step towards `mu`, corrected by the second-order error of the predictor."""
        state = self._method.state
        aim = np.where(self._halves.bounded, mu, 0.0)
        return self._step(
            aim - self._below * state.zl - affine.alpha * affine.zl,
            aim - self._above * state.zu + affine.alpha * affine.zu,
            self.scaling.towards(mu, affine.X, affine.Z),
        )

    def _step(self, rl: FloatArray, ru: FloatArray, rX: Point) -> _Step:
        """Return the step for given right-hand sides of the complementarity equations."""
        method, halves, theta = self._method, self._halves, self._theta
        state, count = method.state, len(self._dual.starts)
        rho = -method.alpha_residual + rl / self._below - ru / self._above
        # In scaled variables, dX = rX - residual + Jᵀdw - dξ unit.
        pushed = rX - self._cone_residual
        rhs = self._T * halves.total(halves.sign * rho / theta) - self._J.apply(pushed)
        a = self._solve(rhs)
        target = self._equations(a)
        target[:count] += method.sum_residual
        if len(target) > count:
            target[-1] -= inner(self._unit, pushed) + method.trace_residual
        change: FloatArray = np.linalg.solve(self._small, target).astype(np.float64, copy=False)
        dw = a - self._solved_for(change)
        dnu, dxi = change[:count], float(change[count:].sum())
        pull = self._J.adjoint(dw) - dxi * self._unit
        dX = pushed + pull
        score_change = shared_product(self._K, dw) + dnu[self._dual.machine_of]
        score_change += self._J.apply(dX)
        dalpha = halves.split(dw, score_change, rho, theta)
        return _Step(
            alpha=dalpha,
            w=dw,
            X=dX,
            Z=self._cone_residual - pull,
            zl=(rl - state.zl * dalpha) / self._below,
            zu=(ru + state.zu * dalpha) / self._above,
            nu=dnu,
            xi=dxi,
        )

    def reach(self, step: _Step) -> float:
        """Return the largest multiple of a step that stays feasible."""
        state, bounded = self._method.state, self._halves.bounded
        reach = min(self.scaling.room(step.X), self.scaling.room(step.Z))
        for value, change in (
            (self._below, step.alpha),
            (self._above, -step.alpha),
            (state.zl, step.zl),
            (state.zu, step.zu),
        ):
            fastest = float(np.max(-change[bounded] / value[bounded], initial=0.0))
            if fastest > 0.0:
                reach = min(reach, 1.0 / fastest)
        return reach

    def complementarity_after(self, step: _Step, length: float) -> float:
        """Return the complementarity after a step of the given length."""
        state = self._method.state
        alpha = state.alpha + length * step.alpha
        below, above = self._halves.below(alpha), self._halves.above(alpha)
        vectors = below @ (state.zl + length * step.zl) + above @ (state.zu + length * step.zu)
        return float(vectors) + self.scaling.complementarity(step.X, step.Z, length)
