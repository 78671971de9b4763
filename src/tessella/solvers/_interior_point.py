"""Primal-dual interior point method over the dual vector and the kernel's matrix together.

Unknowns are nonnegative halves α of the dual vector (w = Σ sign·α; one half per sample in
classification, two in regression) and M ⪰ 0, side r, trace τ. With multipliers ν, ξ of the two
equations, zl, zu of the bounds 0 ≤ α ≤ u and S of M ⪰ 0, the optimality conditions are

    sign·(scores(w, M) + ν) - cost - zl + zu = 0        Σw = total
    ξ I - ½ D(w) - S = 0                                trace M = τ
    α zl = μ,   (u - α) zu = μ,   M S = μ I             with μ → 0

Newton's method with Nesterov-Todd scaling W (W S W = M) eliminates everything but w:

    (K + J (W ⊗ W) Jᵀ + T) dw = rhs,    T⁻¹ = Σ over the halves of α (u - α) / (...)

where row k of J says how the score of sample k answers to M. One Cholesky factorisation of the
side of w per step, Mehrotra's predictor and corrector, up to two rounds of iterative refinement.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, solve_triangular

from tessella.kernels import Sensitivities

FloatArray = NDArray[np.float64]

_STEP = 0.98
# Rounds of iterative refinement by merit: rounding matters once little else is left.
_REFINEMENTS = ((1e-3, 0), (1e-6, 1), (0.0, 2))


@dataclass(frozen=True)
class Halves:
    """The halves α of a dual vector of f samples.

    Attributes
    ----------
    sample : ndarray of int of shape (N,)
        Sample that each half belongs to.
    sign : ndarray of shape (N,)
        +1 or -1: its part in w.
    cost : ndarray of shape (N,)
        Its coefficient in the dual objective.
    upper : ndarray of shape (N,)
        Its upper bound; the lower one is zero.
    size : int
        Number of samples f.
    """

    sample: NDArray[np.intp]
    sign: FloatArray
    cost: FloatArray
    upper: FloatArray
    size: int

    def total(self, values: FloatArray) -> FloatArray:
        """Sum of the values of each sample's halves."""
        sums = np.bincount(self.sample, weights=values, minlength=self.size)
        return sums.astype(np.float64, copy=False)

    def join(self, alpha: FloatArray) -> FloatArray:
        """The dual vector w."""
        return self.total(self.sign * alpha)


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
    sum_w: float
    trace: float

    @abstractmethod
    def linearise(self, w: FloatArray, M: FloatArray) -> Linearisation:
        """Kernel matrix, sensitivities, scores and ½D(w) at a point."""


@dataclass
class JointState:
    """An iterate: primal variables and all multipliers."""

    alpha: FloatArray
    M: FloatArray
    zl: FloatArray
    zu: FloatArray
    S: FloatArray
    nu: float
    xi: float


@dataclass(frozen=True)
class _Step:
    alpha: FloatArray
    M: FloatArray
    zl: FloatArray
    zu: FloatArray
    S: FloatArray
    nu: float
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
        here = self.problem.linearise(w, state.M)
        self._here = here
        self._ra = (
            halves.sign * (here.scores[halves.sample] + state.nu)
            - halves.cost
            - state.zl
            + state.zu
        )
        self._rsum = float(w.sum()) - self.problem.sum_w
        self._rM = state.xi * self._eye - here.half_gradient - state.S
        self._rtrace = float(np.trace(state.M)) - self.problem.trace
        self.gap = self._complementarity(state)
        value = abs(float(halves.cost @ state.alpha) - 0.5 * float(w @ here.scores))
        tau = self.problem.trace
        self.merit = max(
            self.gap / (1e-12 * self._scale + value),
            float(np.abs(self._rM).max()) * tau / (1e-12 * self._scale + value),
            float(np.abs(self._ra).max()) / self._scale,
            abs(self._rtrace) / tau,
        )

    def _complementarity(
        self, s: JointState | None, step: _Step | None = None, t: float = 0.0
    ) -> float:
        s = self.state if s is None else s
        alpha, zl, zu, M, S = s.alpha, s.zl, s.zu, s.M, s.S
        if step is not None:
            alpha, zl, zu = alpha + t * step.alpha, zl + t * step.zl, zu + t * step.zu
            M, S = M + t * step.M, S + t * step.S
        return float(alpha @ zl + (self.problem.halves.upper - alpha) @ zu + np.sum(M * S))

    def advance(self) -> float:
        """One predictor-corrector step; returns its length, 0 when rounding forbids one."""
        state, halves = self.state, self.problem.halves
        above = halves.upper - state.alpha
        try:
            system = _NewtonSystem(self)
            affine = system.step(-state.alpha * state.zl, -above * state.zu, -state.S)
            reach = min(1.0, self._reach(affine))
            after = max(0.0, self._complementarity(None, affine, reach))
            centring = min(1.0, max(1e-8, (after / self.gap) ** 3)) if reach > 0.1 else 0.5
            mu = centring * self.gap / (2 * len(state.alpha) + len(state.M))
            step = system.step(
                mu - state.alpha * state.zl - affine.alpha * affine.zl,
                mu - above * state.zu + affine.alpha * affine.zu,
                mu * system.inverse_M - state.S,
            )
            length = min(1.0, _STEP * self._reach(step))
        except np.linalg.LinAlgError:
            return 0.0
        if not (np.isfinite(length) and length > 1e-8):
            return 0.0
        self.state = JointState(
            alpha=state.alpha + length * step.alpha,
            M=_symmetrised(state.M + length * step.M),
            zl=state.zl + length * step.zl,
            zu=state.zu + length * step.zu,
            S=_symmetrised(state.S + length * step.S),
            nu=state.nu + length * step.nu,
            xi=state.xi + length * step.xi,
        )
        self._linearise()
        return length

    def _reach(self, step: _Step) -> float:
        """Largest multiple of a step that stays feasible."""
        state, upper = self.state, self.problem.halves.upper
        reach = min(_room(state.M, step.M), _room(state.S, step.S))
        for value, change in (
            (state.alpha, step.alpha),
            (upper - state.alpha, -step.alpha),
            (state.zl, step.zl),
            (state.zu, step.zu),
        ):
            falling = change < 0
            if falling.any():
                reach = min(reach, float(np.min(-value[falling] / change[falling])))
        return reach


class _NewtonSystem:
    """The Newton equations at one iterate, factorised."""

    def __init__(self, method: InteriorPoint) -> None:
        state, self._halves = method.state, method.problem.halves
        self._method = method
        self._refinements = next(n for bound, n in _REFINEMENTS if method.merit >= bound)
        here = method._here
        self._K, self._J = here.K, here.sensitivities
        self._above = self._halves.upper - state.alpha
        self._theta = state.zl / state.alpha + state.zu / self._above
        softness = self._halves.total(1.0 / self._theta)
        # A sample without halves (weight zero) cannot move: an immense T says so.
        fixed = 1e12 * float(np.abs(np.diag(self._K)).max() + 1.0 / softness.max())
        self._T = 1.0 / np.maximum(softness, 1.0 / fixed)
        LS = np.linalg.cholesky(state.S)
        values, Q = np.linalg.eigh(LS.T @ state.M @ LS)
        if values[0] <= 0:
            raise np.linalg.LinAlgError("M is no longer positive definite")
        root = solve_triangular(LS, np.eye(len(LS)), lower=True).T @ Q
        W = (root * np.sqrt(values)) @ root.T
        # W = F Fᵀ with the columns of F scaled one by one: a symmetric root would lose digits.
        eigenvalues, vectors = np.linalg.eigh(_symmetrised(W))
        self._F = vectors * np.sqrt(np.maximum(eigenvalues, 0.0))
        L = np.linalg.cholesky(state.M)
        inverse = solve_triangular(L, np.eye(len(L)), lower=True)
        self.inverse_M = inverse.T @ inverse
        matrix = self._K + self._J.gram(self._F)
        matrix.flat[:: len(matrix) + 1] += self._T
        self._factor = cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)
        self._WW = self._widen(np.eye(len(W)))
        self._jt = self._J.apply(self._WW)
        self._b = self._solve(np.ones(self._halves.size))
        self._e = self._solve(self._jt)
        self._small = np.array(
            [
                [-float(self._b.sum()), float(self._e.sum())],
                [-float(self._jt @ self._b), float(self._jt @ self._e) - np.trace(self._WW)],
            ]
        )

    def _widen(self, A: FloatArray) -> FloatArray:
        """W A W."""
        wide: FloatArray = self._F @ (self._F.T @ A @ self._F) @ self._F.T
        return wide

    def _apply(self, v: FloatArray) -> FloatArray:
        """(K + J (W ⊗ W) Jᵀ) v, without the factorised matrix."""
        product: FloatArray = self._K @ v + self._J.apply(self._widen(self._J.adjoint(v)))
        return product

    def _solve(self, rhs: FloatArray) -> FloatArray:
        solution: FloatArray = cho_solve(self._factor, rhs, check_finite=False)
        for _ in range(self._refinements):
            residual = rhs - self._apply(solution) - self._T * solution
            solution = solution + cho_solve(self._factor, residual, check_finite=False)
        return solution

    def step(self, rl: FloatArray, ru: FloatArray, rS: FloatArray) -> _Step:
        """The step for given right-hand sides of the complementarity equations."""
        method, halves, theta = self._method, self._halves, self._theta
        state = method.state
        rho = -method._ra + rl / state.alpha - ru / self._above
        # dM = W (rS - rM + Jᵀdw - dξ I) W
        pushed = self._widen(rS - method._rM)
        rhs = self._T * halves.total(halves.sign * rho / theta) - self._J.apply(pushed)
        a = self._solve(rhs)
        target = [
            -method._rsum - float(a.sum()),
            -method._rtrace - float(np.trace(pushed)) - float(self._jt @ a),
        ]
        dnu, dxi = np.linalg.solve(self._small, target)
        dw = a - dnu * self._b + dxi * self._e
        pull = self._J.adjoint(dw) - dxi * np.eye(len(pushed))
        dM = pushed + self._widen(pull)
        dalpha = self._split(dw, rho, self._K @ dw + self._J.apply(dM) + dnu)
        return _Step(
            alpha=dalpha,
            M=dM,
            zl=(rl - state.zl * dalpha) / state.alpha,
            zu=(ru + state.zu * dalpha) / self._above,
            S=method._rM - pull,
            nu=float(dnu),
            xi=float(dxi),
        )

    def _split(self, dw: FloatArray, rho: FloatArray, change: FloatArray) -> FloatArray:
        """Changes of the halves from those of w.

        Each half could be had by dividing by its θ; only the larger θ of a pair is a safe
        divisor, the other half follows from dw.
        """
        halves = self._halves
        direct = (rho - halves.sign * change[halves.sample]) / self._theta
        if len(halves.sample) == halves.size:
            return halves.sign * dw[halves.sample]
        first, second = _pairs(halves)
        single = np.setdiff1d(np.arange(len(halves.sample)), np.concatenate([first, second]))
        result = direct.copy()
        result[single] = (halves.sign * dw[halves.sample])[single]
        keep_first = self._theta[first] >= self._theta[second]
        safe = np.where(keep_first, first, second)
        other = np.where(keep_first, second, first)
        rest = dw[halves.sample[safe]] - halves.sign[safe] * direct[safe]
        result[other] = halves.sign[other] * rest
        return result


def _pairs(halves: Halves) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Positions of the two halves of the samples that have two."""
    order = np.argsort(halves.sample, kind="stable")
    same = halves.sample[order][1:] == halves.sample[order][:-1]
    return order[:-1][same], order[1:][same]


def _symmetrised(A: FloatArray) -> FloatArray:
    return 0.5 * (A + A.T)


def _room(A: FloatArray, change: FloatArray) -> float:
    """Largest step along a symmetric `change` that keeps A positive semidefinite."""
    inverse = solve_triangular(np.linalg.cholesky(A), np.eye(len(A)), lower=True)
    lowest = float(np.linalg.eigvalsh(inverse @ change @ inverse.T)[0])
    return np.inf if lowest >= 0 else -1.0 / lowest
