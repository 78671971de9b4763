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
one Cholesky factorisation of the side of w (or conjugate gradients, if many machines share a
parameter of many directions), Mehrotra's predictor and corrector, and up to two rounds of iterative
refinement.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tessella.backend import BlockDiagonal
from tessella.cones import Cone, Point, Sensitivities, inner
from tessella.svm._halves import Halves
from tessella.svm._newton_factors import (
    CoupledMachines,
    MachineFactors,
    NewtonFactor,
    SlowConvergenceError,
    WholeFactor,
)
from tessella.svm._problem import DualProblem

FloatArray = NDArray[np.float64]

_LEAST_STEP = 1e-8  # a shorter step only changes rounding errors
# Number of refinement rounds by merit, because rounding matters when the residuals are small.
_REFINEMENTS = ((1e-3, 0), (1e-6, 1), (0.0, 2))
_MANY_SAMPLES = 1200  # of several machines, from which on conjugate gradients are faster
_SAMPLES_PER_COLUMN = 4  # of the preconditioner, which has at most
_MOST_COLUMNS = 400
_LEAST_ITERATIVE = 1e-5  # merit below which the equations are too badly conditioned for them


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


def shared_product(K: FloatArray | BlockDiagonal, v: FloatArray) -> FloatArray:
    """Return K times a vector, or times the part of each machine if machines share K."""
    if not isinstance(K, np.ndarray) or len(K) == len(v):
        return K @ v
    return (v.reshape(-1, len(K)) @ K).ravel()  # K is symmetric


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
        size, several = len(self._T), len(self._dual.starts) > 1
        shared = len(self._K) < size
        columns = self._J.columns() if several else None
        if shared and columns is None:
            columns = self._J.matrix()
        split = shared or isinstance(self._K, BlockDiagonal)
        if columns is not None and split and (shared or columns.shape[1] < size // 2):
            self._factor: NewtonFactor = MachineFactors(self._K, self._T, columns, self._dual)
        elif several and size >= _MANY_SAMPLES and self._method.merit >= _LEAST_ITERATIVE:
            self._factorise_coupled()
        else:
            self._factorise_whole()

    def _factorise_coupled(self) -> None:
        """Prepare conjugate gradients if the sensitivities have leading columns."""
        count = min(len(self._T) // _SAMPLES_PER_COLUMN, _MOST_COLUMNS)
        couplings = self._J.couplings(count)
        if couplings is None or not isinstance(self._K, BlockDiagonal):
            self._factorise_whole()
            return
        self._factor = CoupledMachines(self._K, self._T, self._J, couplings, self._dual)
        self._refinements = 0  # it ends by the residual

    def _factorise_whole(self) -> None:
        self._factor = WholeFactor(self._K, self._T, self._J, self._dual)

    def _border(self) -> None:
        """Set up the equation for the change of ξ after the elimination of w and ν."""
        self._has_trace = bool(self._method.problem.cone.degree)
        if self._has_trace:
            self._trace = -self._J.apply(self._unit)
            self._trace_w, self._trace_nu = self._solve(
                self._trace, np.zeros(len(self._dual.starts))
            )
            self._trace_slope = float(self._trace @ self._trace_w) - inner(self._unit, self._unit)

    def _solve(self, rhs: FloatArray, sums: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Solve the eliminated equations for w and ν."""
        try:
            w, nu = self._factor.solve(rhs, sums)
        except SlowConvergenceError:
            self._factorise_whole()
            w, nu = self._factor.solve(rhs, sums)
        own, total = self._dual.machine_of, self._dual.sums
        for _ in range(self._refinements):
            dw, dnu = self._factor.solve(rhs - self._times(w) - nu[own], sums - total(w))
            w, nu = w + dw, nu + dnu
        return w, nu

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
        state = method.state
        rho = -method.alpha_residual + rl / self._below - ru / self._above
        # In scaled variables, dX = rX - residual + Jᵀdw - dξ unit.
        pushed = rX - self._cone_residual
        rhs = self._T * halves.total(halves.sign * rho / theta) - self._J.apply(pushed)
        dw, dnu = self._solve(rhs, -method.sum_residual)
        dxi = 0.0
        if self._has_trace:
            required = inner(self._unit, pushed) + method.trace_residual
            dxi = (float(self._trace @ dw) - required) / self._trace_slope
            dw, dnu = dw - dxi * self._trace_w, dnu - dxi * self._trace_nu
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
