"""Primal-dual interior point method over the dual vector and the kernel's matrix together.

Unknowns are nonnegative halves α of the dual vector (w = Σ sign·α; one half per sample in
classification, two in regression) and M ⪰ 0, side r, trace τ. With multipliers ν, ξ of the two
equations, zl, zu of the bounds 0 ≤ α ≤ u and S of M ⪰ 0, the optimality conditions are

    sign·(scores(w, M) + ν) - cost - zl + zu = 0        Σw = total
    ξ I - ½ D(w) - S = 0                                trace M = τ
    α zl = μ,   (u - α) zu = μ,   M S = μ I             with μ → 0

with one sum and one ν for each machine, where there are several.

Newton's method is written in the variables of Nesterov and Todd, M = R X Rᵀ and S = R⁻ᵀ Z R⁻¹ with
R such that X = Z = Λ, a diagonal matrix, at the current iterate. There M S = μ I is symmetric and
its linearisation diagonal, dX + dZ = μ Λ⁻¹ - Λ, so everything but w can be eliminated:

    (K + J Jᵀ + T) dw = rhs,    T⁻¹ = Σ over the halves of α (u - α) / (...)

where row k of J says how the score of sample k answers to X. One Cholesky factorisation of the
side of w per step, Mehrotra's predictor and corrector, up to two rounds of iterative refinement.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from tessella.kernels import Sensitivities
from tessella.svm import DualProblem, Halves

FloatArray = NDArray[np.float64]

_STEP = 0.98
# Rounds of iterative refinement by merit: rounding matters once little else is left.
_REFINEMENTS = ((1e-3, 0), (1e-6, 1), (0.0, 2))


@dataclass(frozen=True)
class Linearisation:
    """A problem around (w, M)."""

    K: FloatArray
    sensitivities: Sensitivities
    scores: FloatArray
    half_gradient: FloatArray


class JointProblem(ABC):
    """What the method needs to know of the problem it solves."""

    halves: Halves
    dual: DualProblem
    sum_w: FloatArray
    trace: float

    @abstractmethod
    def linearise(self, w: FloatArray, L: FloatArray) -> Linearisation:
        """Kernel matrix, sensitivities, scores and ½D(w) at a dual vector and M = L Lᵀ."""


@dataclass
class JointState:
    """An iterate: primal variables and all multipliers."""

    alpha: FloatArray
    M: FloatArray
    zl: FloatArray
    zu: FloatArray
    S: FloatArray
    nu: FloatArray
    xi: float


@dataclass(frozen=True)
class _Step:
    """A change of the iterate; X and Z are those of M and S in scaled variables."""

    alpha: FloatArray
    w: FloatArray
    X: FloatArray
    Z: FloatArray
    zl: FloatArray
    zu: FloatArray
    nu: FloatArray
    xi: float


class InteriorPoint:
    """The iteration; call :meth:`advance` until :attr:`merit` is small enough.

    Attributes
    ----------
    state : JointState
        Current iterate.
    merit : float
        Largest of the complementarity and the residuals, each relative to its scale.
    """

    def __init__(self, problem: JointProblem, state: JointState, scale: float) -> None:
        self.problem = problem
        self.state = state
        self._scale = scale
        self._eye = np.eye(len(state.M))
        self._linearise()

    @property
    def w(self) -> FloatArray:
        """Dual vector of the current iterate."""
        return self.problem.halves.join(self.state.alpha)

    def _linearise(self) -> None:
        halves, state = self.problem.halves, self.state
        w = self.w
        self._L: FloatArray = np.linalg.cholesky(state.M).astype(np.float64, copy=False)
        here = self.problem.linearise(w, self._L)
        self._here = here
        dual = self.problem.dual
        shifted = here.scores + state.nu[dual.machine_of]
        self._ra = halves.sign * shifted[halves.sample] - halves.cost - state.zl + state.zu
        self._rsum = dual.sums(w) - self.problem.sum_w
        self._rM = state.xi * self._eye - here.half_gradient - state.S
        self._rtrace = float(np.trace(state.M)) - self.problem.trace
        self.gap = self._complementarity()
        value = abs(float(halves.cost @ state.alpha) - 0.5 * float(w @ here.scores))
        tau = self.problem.trace
        self.merit = max(
            self.gap / (1e-12 * self._scale + value),
            float(np.abs(self._rM).max()) * tau / (1e-12 * self._scale + value),
            float(np.abs(self._ra).max()) / self._scale,
            abs(self._rtrace) / tau,
        )

    def _complementarity(self) -> float:
        s = self.state
        above = self.problem.halves.upper - s.alpha
        return float(s.alpha @ s.zl + above @ s.zu + np.sum(s.M * s.S))

    def advance(self) -> float:
        """One predictor-corrector step; returns its length, 0 when rounding forbids one."""
        state = self.state
        try:
            system = _NewtonSystem(self)
            affine = system.predictor()
            reach = min(1.0, system.reach(affine))
            after = max(0.0, system.complementarity_after(affine, reach))
            centring = min(1.0, max(1e-8, (after / self.gap) ** 3)) if reach > 0.1 else 0.5
            step = system.corrector(affine, centring * self.gap / system.order)
            length = min(1.0, _STEP * system.reach(step))
            if not (np.isfinite(length) and length > 1e-8):
                return 0.0
            self.state = self._after(system, step, length)
            self._linearise()
        except np.linalg.LinAlgError:
            self.state = state
            return 0.0
        return length

    def _after(self, system: _NewtonSystem, step: _Step, length: float) -> JointState:
        state = self.state
        # S could be had from its scaled change too; this way its equation holds to rounding.
        dS = self._rM - self._here.sensitivities.adjoint(step.w) + step.xi * self._eye
        return JointState(
            alpha=state.alpha + length * step.alpha,
            M=state.M + length * system.unscaled(step.X),
            zl=state.zl + length * step.zl,
            zu=state.zu + length * step.zu,
            S=state.S + length * dS,
            nu=state.nu + length * step.nu,
            xi=state.xi + length * step.xi,
        )


class _NewtonSystem:
    """The Newton equations at one iterate, factorised.

    Attributes
    ----------
    order : int
        Number of complementarity products, the barrier's parameter.
    """

    def __init__(self, method: InteriorPoint) -> None:
        state, self._halves = method.state, method.problem.halves
        self._method, self._dual = method, method.problem.dual
        self._refinements = next(n for bound, n in _REFINEMENTS if method.merit >= bound)
        self.order = 2 * len(state.alpha) + len(state.M)
        self._above = self._halves.upper - state.alpha
        self._theta = state.zl / state.alpha + state.zu / self._above
        self._scale_variables()
        self._K = method._here.K
        self._factorise()
        self._jt = self._J.apply(self._E)
        self._b = self._solve(self._indicators().T).T
        self._e = self._solve(self._jt)
        self._small = self._border()

    def _indicators(self) -> FloatArray:
        """One row per machine, 1 for its samples."""
        machines = np.arange(len(self._dual.starts))
        rows: FloatArray = np.equal.outer(machines, self._dual.machine_of).astype(np.float64)
        return rows

    def _border(self) -> FloatArray:
        """The equations for the changes of ν and ξ, once those of w are eliminated."""
        count = len(self._b)
        small = np.empty((count + 1, count + 1))
        small[:-1, :-1] = -np.add.reduceat(self._b, self._dual.starts, axis=1).T
        small[:-1, -1] = self._dual.sums(self._e)
        small[-1, :-1] = -(self._b @ self._jt)
        small[-1, -1] = float(self._jt @ self._e) - np.sum(self._E**2)
        return small

    def _scale_variables(self) -> None:
        """R, Λ, and everything of the matrix variables in terms of them."""
        method, L = self._method, self._method._L
        G = np.linalg.cholesky(method.state.S)
        _, self._lambda, Vt = np.linalg.svd(G.T @ L)
        if not self._lambda[-1] > 0:
            raise np.linalg.LinAlgError("M or S is no longer positive definite")
        self._R = (L @ Vt.T) / np.sqrt(self._lambda)
        self._E = self._R.T @ self._R
        self._rM = self._R.T @ method._rM @ self._R
        self._J = method._here.sensitivities.transformed(self._R)

    def _factorise(self) -> None:
        softness = self._halves.total(1.0 / self._theta)
        # A sample without halves (weight zero) cannot move: an immense T says so.
        fixed = 1e12 * float(np.abs(np.diag(self._K)).max() + 1.0 / softness.max())
        self._T = 1.0 / np.maximum(softness, 1.0 / fixed)
        matrix = self._J.gram()
        matrix += self._K
        matrix.flat[:: len(matrix) + 1] += self._T
        # Symmetric, so its transpose is the column-major matrix that LAPACK works on in place.
        self._factor, failed = lapack.dpotrf(matrix.T, lower=1, clean=0, overwrite_a=1)
        if failed:
            raise np.linalg.LinAlgError("the Newton equations are singular")

    def _back_substitute(self, rhs: FloatArray) -> FloatArray:
        solution: FloatArray = lapack.dpotrs(self._factor, rhs, lower=1)[0]
        return solution

    def _solve(self, rhs: FloatArray) -> FloatArray:
        """For a vector, or for the columns of a matrix."""
        solution = self._back_substitute(rhs)
        for _ in range(self._refinements):
            product = np.apply_along_axis(self._times, 0, solution)
            solution = solution + self._back_substitute(rhs - product)
        return solution

    def _times(self, v: FloatArray) -> FloatArray:
        """The matrix of the Newton equations times a vector."""
        result: FloatArray = self._K @ v + self._J.apply(self._J.adjoint(v)) + self._T * v
        return result

    def unscaled(self, X: FloatArray) -> FloatArray:
        """R X Rᵀ, exactly symmetric."""
        return _symmetrised(self._R @ X @ self._R.T)

    def predictor(self) -> _Step:
        """The step towards complementarity zero."""
        state = self._method.state
        return self._step(-state.alpha * state.zl, -self._above * state.zu, -np.diag(self._lambda))

    def corrector(self, affine: _Step, mu: float) -> _Step:
        """The step towards complementarity `mu`, with the predictor's second-order error."""
        state, diagonal = self._method.state, self._lambda
        error = _symmetrised(affine.X @ affine.Z)
        error *= 2.0 / (diagonal[:, None] + diagonal)
        return self._step(
            mu - state.alpha * state.zl - affine.alpha * affine.zl,
            mu - self._above * state.zu + affine.alpha * affine.zu,
            np.diag(mu / diagonal - diagonal) - error,
        )

    def _step(self, rl: FloatArray, ru: FloatArray, rX: FloatArray) -> _Step:
        """The step for given right-hand sides of the complementarity equations."""
        method, halves, theta = self._method, self._halves, self._theta
        state = method.state
        rho = -method._ra + rl / state.alpha - ru / self._above
        # dX = rX - rM + Jᵀdw - dξ E, in scaled variables
        pushed = rX - self._rM
        rhs = self._T * halves.total(halves.sign * rho / theta) - self._J.apply(pushed)
        a = self._solve(rhs)
        traced = -method._rtrace - float(np.sum(self._E * pushed)) - float(self._jt @ a)
        target = np.append(-method._rsum - self._dual.sums(a), traced)
        change = np.linalg.solve(self._small, target)
        dnu, dxi = change[:-1], float(change[-1])
        dw = a - dnu @ self._b + dxi * self._e
        pull = self._J.adjoint(dw) - dxi * self._E
        dX = pushed + pull
        score_change = self._K @ dw + self._J.apply(dX) + dnu[self._dual.machine_of]
        dalpha = halves.split(dw, score_change, rho, theta)
        return _Step(
            alpha=dalpha,
            w=dw,
            X=dX,
            Z=self._rM - pull,
            zl=(rl - state.zl * dalpha) / state.alpha,
            zu=(ru + state.zu * dalpha) / self._above,
            nu=dnu,
            xi=dxi,
        )

    def reach(self, step: _Step) -> float:
        """Largest multiple of a step that stays feasible."""
        state = self._method.state
        reach = min(self._matrix_room(step.X), self._matrix_room(step.Z))
        for value, change in (
            (state.alpha, step.alpha),
            (self._above, -step.alpha),
            (state.zl, step.zl),
            (state.zu, step.zu),
        ):
            fastest = float(np.max(-change / value))
            if fastest > 0.0:
                reach = min(reach, 1.0 / fastest)
        return reach

    def _matrix_room(self, change: FloatArray) -> float:
        """Largest step along `change` that keeps Λ positive semidefinite."""
        root = np.sqrt(self._lambda)
        lowest = float(np.linalg.eigvalsh(change / root / root[:, None])[0])
        return np.inf if lowest >= 0 else -1.0 / lowest

    def complementarity_after(self, step: _Step, length: float) -> float:
        """What the complementarity becomes after a step."""
        state, scaled = self._method.state, np.diag(self._lambda)
        alpha = state.alpha + length * step.alpha
        above = self._halves.upper - alpha
        vectors = alpha @ (state.zl + length * step.zl) + above @ (state.zu + length * step.zu)
        matrices = np.sum((scaled + length * step.X) * (scaled + length * step.Z))
        return float(vectors + matrices)


def _symmetrised(A: FloatArray) -> FloatArray:
    return 0.5 * (A + A.T)
