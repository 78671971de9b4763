"""Weights of some kernels and dual variables of some samples, in one interior point iteration.

The other samples are held where they are, the other kernels left out. What remains is

    min over w, t of   t - κ(w)    subject to   q_i(w) = ½ wᵀK_i w ≤ t   for each kernel,

the sums of w that balance the machines, and the box. The multipliers of the inequalities are the
weights μ of the kernels. Halves v ≥ 0 of w (w = w⁺ - w⁻) carry the kink of κ at zero; they are
eliminated, so a Newton step is

    (K(μ) + Φ⁻¹) dw + A dμ + E db = Φ⁻¹ψ,     A_i = K_i w,
    A_iᵀ dw - dt - (s_i / μ_i) dμ_i = ...,    1ᵀdμ = ...,    Eᵀdw = ...

with slacks s and the intercepts b of the machines: a Cholesky factorisation of side f for each
machine with f moving samples, and a system as large as there are kernels and machines.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from tessella.backend import available_memory
from tessella.multiple_kernels._bound import BoundDictionary
from tessella.svm import DualProblem

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

_MAX_STEPS = 60
_RIDGES = (1e-12, 1e-9)  # of the mean diagonal
_MOST_BLOCKS = 1 << 30  # bytes of kernel matrices that are kept rather than computed again
_TO_BOUNDARY = 0.99
_EDGE = 1e-14
_LEAST_TOL = 1e-12  # less is below the rounding of the forms


@dataclass(frozen=True)
class JointAnswer:
    """Answer of :func:`solve_joint`.

    Attributes
    ----------
    weights : ndarray of shape (len(which),)
        Weights of the kernels that took part, on the simplex.
    w : ndarray of shape (m,)
        Dual vector of all samples; a little off its zero sums.
    n_steps : int
        Newton steps.
    """

    weights: FloatArray
    w: FloatArray
    n_steps: int


def solve_joint(
    kernels: BoundDictionary,
    which: Sequence[int],
    moving: IntArray,
    weights: FloatArray,
    w: FloatArray,
    *,
    tol: float,
    check: Callable[[], None],
) -> JointAnswer:
    """Optimise the weights of the kernels `which` together with the samples `moving`.

    Parameters
    ----------
    kernels : BoundDictionary
        All kernels on the rows of all machines.
    which : sequence of int
        Kernels that take part.
    moving : ndarray of int
        Samples that move, ascending.
    weights : ndarray of shape (len(which),)
        Where to start.
    w : ndarray of shape (m,)
        Dual vector to start from; the others are held at it.
    tol : float
        Complementarity at which to stop, relative to the value.
    check : callable
        Called at every step; raises to stop.

    Returns
    -------
    JointAnswer

    Notes
    -----
    A step costs ``f³/3 + O(len(which) f²)`` flops for a machine with f moving samples.
    """
    iteration = _Iteration(_Restricted(kernels, which, moving, w), weights, w[moving])
    n_steps = 0
    while n_steps < _MAX_STEPS:
        check()
        iteration.evaluate()
        if iteration.converged(max(tol, _LEAST_TOL)) or not iteration.step():
            break
        n_steps += 1
    answer = w.copy()
    answer[moving] = iteration.rounded_w()
    return JointAnswer(iteration.rounded_weights(), answer, n_steps)


class _Restricted:
    """The problem on the moving samples: matrices of each machine, and what is held."""

    def __init__(
        self, kernels: BoundDictionary, which: Sequence[int], moving: IntArray, w: FloatArray
    ) -> None:
        machines = kernels.machines
        self.dual: DualProblem = machines.dual.restrict(moving)
        self.n_kernels = len(which)
        held = w.copy()
        held[moving] = 0.0
        row_of = np.concatenate(machines.rows)
        machine_of = machines.dual.machine_of
        of_machine = machine_of[moving]
        bytes_needed = 8 * len(which) * sum(int(n) ** 2 for n in np.bincount(of_machine))
        keep = bytes_needed <= min(_MOST_BLOCKS, (available_memory() or _MOST_BLOCKS) // 4)
        self.parts: list[_Part] = []
        self.held_scores = np.empty((len(which), len(moving)))
        self.held_forms = np.zeros(len(which))
        sums = []
        for machine in range(len(machines)):
            rows = row_of[moving[of_machine == machine]]
            others = np.flatnonzero((machine_of == machine) & (held != 0.0))
            self.held_forms += _forms(kernels, which, row_of[others], held[others])
            if len(rows):
                products = kernels.products(which, rows, row_of[others], held[others])
                self.held_scores[:, of_machine == machine] = products
                self.parts.append(_Part(kernels, which, rows, keep))
                sums.append(-held[others].sum())
        self.sums = np.array(sums)

    def evaluate(self, w: FloatArray, weights: FloatArray) -> tuple[list[FloatArray], FloatArray]:
        """K(weights) of each machine, and ``K_i w`` of every kernel with the held samples' part."""
        matrices, products = [], self.held_scores.copy()
        for part, own in zip(self.parts, self.dual.machines, strict=True):
            K, moved = part.evaluate(w[own], weights)
            matrices.append(K)
            products[:, own] += moved
        return matrices, products

    def forms(self, w: FloatArray, products: FloatArray) -> FloatArray:
        """``½ wᵀK_i w`` of moving and held samples together."""
        forms: FloatArray = 0.5 * ((products + self.held_scores) @ w + self.held_forms)
        return forms


def _forms(
    kernels: BoundDictionary, which: Sequence[int], rows: IntArray, w: FloatArray
) -> FloatArray:
    forms: FloatArray = kernels.products(which, rows, rows, w) @ w
    return forms


class _Part:
    """Kernel matrices on the moving samples of one machine, kept or computed again."""

    def __init__(
        self, kernels: BoundDictionary, which: Sequence[int], rows: IntArray, keep: bool
    ) -> None:
        self._kernels, self._which, self._rows = kernels, list(which), rows
        self._position = {number: k for k, number in enumerate(which)}
        self._stack: FloatArray | None = None
        if keep:
            self._stack = np.empty((len(which), len(rows), len(rows)))
            for number, block in kernels.blocks(self._which, rows, rows):
                self._stack[self._position[number]] = block

    def evaluate(self, w: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """``K(weights)``, and ``K_i w`` of every kernel."""
        f = len(self._rows)
        if self._stack is not None:
            K = (weights @ self._stack.reshape(len(weights), -1)).reshape(f, f)
            return K, (self._stack.reshape(-1, f) @ w).reshape(len(weights), f)
        K, products = np.zeros((f, f)), np.empty((len(weights), f))
        for number, block in self._kernels.blocks(self._which, self._rows, self._rows):
            k = self._position[number]
            products[k] = block @ w
            K += np.multiply(block, weights[k], out=block)
        return K, products


class _Iteration:
    """Mehrotra's predictor and corrector on the restricted problem."""

    def __init__(self, problem: _Restricted, weights: FloatArray, w: FloatArray) -> None:
        self._problem = problem
        dual = problem.dual
        up, down = np.flatnonzero(dual.upper > 0), np.flatnonzero(dual.lower < 0)
        self._sample = np.concatenate([up, down])
        self._sign = np.concatenate([np.ones(len(up)), -np.ones(len(down))])
        self._upper = np.concatenate([dual.upper[up], -dual.lower[down]])
        self._epsilon = dual.epsilon[self._sample]
        even = np.full(problem.n_kernels, 1.0 / problem.n_kernels)
        self._mu = 0.5 * (even + weights / weights.sum())
        size = float(np.mean(np.abs(w))) if w.any() else 1.0
        margin = np.minimum(0.25 * self._upper, 0.1 * size)
        v = np.maximum(self._sign * w[self._sample], 0.0)
        self._v = np.clip(v, margin, self._upper - margin)
        self._b = np.zeros(len(problem.parts))
        self._t = 0.0
        self._s = np.ones(0)  # both set by the first evaluation, which knows the forms
        self._low = self._high = np.ones(0)

    @property
    def _w(self) -> FloatArray:
        return self._joined(self._v)

    def _joined(self, v: FloatArray) -> FloatArray:
        """The dual vector from its halves."""
        size = self._problem.dual.size
        return np.bincount(self._sample, self._sign * v, minlength=size).astype(np.float64)

    # ---- where the iteration is

    def evaluate(self) -> None:
        """Matrices, residuals and forms of the present point."""
        problem, w = self._problem, self._w
        self._matrices, self._A = problem.evaluate(w, self._mu)
        self._q = problem.forms(w, self._A)
        scores = self._mu @ self._A
        before = not len(self._s)
        if before:
            self._b = self._first_intercepts(scores)
        self._r = problem.dual.linear - scores - self._b[problem.dual.machine_of]
        if before:
            self._begin()
        self._sum_error = problem.sums - problem.dual.sums(w)
        self._form_error = self._s + self._q - self._t

    def _first_intercepts(self, scores: FloatArray) -> FloatArray:
        residual = self._problem.dual.linear - scores
        return np.array([np.median(residual[own]) for own in self._problem.dual.machines])

    def _begin(self) -> None:
        """Slacks and multipliers that fit the first point."""
        top = float(self._q.max())
        room = max(0.1 * abs(top), 1e-12)
        self._t = top + room
        self._s = self._t - self._q
        slope = self._sign * self._r[self._sample] - self._epsilon
        least = max(0.1 * float(np.mean(np.abs(slope))), 1e-12)
        self._low = np.maximum(-slope, 0.0) + least
        self._high = np.maximum(slope, 0.0) + least

    @property
    def _complementarity(self) -> float:
        box = self._v @ self._low + (self._upper - self._v) @ self._high
        return float(box + self._mu @ self._s)

    def converged(self, tol: float) -> bool:
        """Whether complementarity and residuals are small against the value."""
        w = self._w
        kappa = self._problem.dual.kappa(w)
        size = max(abs(self._t), abs(kappa), 1e-300)
        slope = self._sign * self._r[self._sample] - self._epsilon
        stationarity = np.abs(slope + self._low - self._high) @ np.minimum(
            self._v + 1e-3 * self._upper, self._upper
        )
        worst = float(np.abs(self._form_error).max())
        sums = float(np.abs(self._sum_error).sum() * (1.0 + np.abs(self._b).max()))
        return max(self._complementarity, float(stationarity), worst, sums) <= tol * size

    # ---- a step

    def step(self) -> bool:
        """Predictor and corrector; False when the factorisation fails or no progress is left."""
        try:
            self._factorise()
            zero = np.zeros_like(self._v)
            plain = self._direction(0.0, zero, zero, np.zeros_like(self._mu))
            length = self._longest(plain)
            count = 2 * len(self._v) + len(self._mu)
            sigma = self._complementarity / count * max(1e-8, (1.0 - length)) ** 3
            chosen = self._direction(
                sigma, plain.v * plain.low, -plain.v * plain.high, plain.mu * plain.s
            )
        except np.linalg.LinAlgError:
            return False
        length = min(1.0, _TO_BOUNDARY * self._longest(chosen))
        if not np.isfinite(length) or length < 1e-10:
            return False
        for name in ("v", "low", "high", "mu", "s", "b", "t"):
            current = getattr(self, f"_{name}")
            setattr(self, f"_{name}", current + length * getattr(chosen, name))
        edge = _EDGE * self._upper  # a box is not left, nor its border reached by rounding
        self._v = np.clip(self._v, edge, self._upper - edge)
        return True

    def _factorise(self) -> None:
        room = self._upper - self._v
        self._theta = self._low / self._v + self._high / room
        size = self._problem.dual.size
        self._phi = np.bincount(self._sample, 1.0 / self._theta, minlength=size)
        dual = self._problem.dual
        E = np.zeros((dual.size, len(self._b)))
        E[np.arange(dual.size), dual.machine_of] = 1.0
        self._border = np.hstack([self._A.T, E])
        self._factors = [
            _cholesky(K, 1.0 / self._phi[own])
            for K, own in zip(self._matrices, dual.machines, strict=True)
        ]
        self._solved = self._solve(self._border)
        n = len(self._mu)
        schur = np.zeros((self._border.shape[1] + 1,) * 2)
        schur[:-1, :-1] = self._border.T @ self._solved
        schur[np.arange(n), np.arange(n)] += self._s / self._mu
        schur[:n, -1] = schur[-1, :n] = 1.0
        self._schur = schur

    def _solve(self, right: FloatArray) -> FloatArray:
        parts = zip(self._factors, self._problem.dual.machines, strict=True)
        return np.concatenate(
            [cho_solve(factor, right[own], check_finite=False) for factor, own in parts]
        )

    def _direction(
        self, sigma: float, bend_low: FloatArray, bend_high: FloatArray, bend_s: FloatArray
    ) -> _Direction:
        """Newton's direction towards complementarity `sigma`, less second-order products."""
        room = self._upper - self._v
        aim_low, aim_high = (sigma - bend_low) / self._v, (sigma - bend_high) / room
        rho = self._sign * self._r[self._sample] - self._epsilon + aim_low - aim_high
        size, n = self._problem.dual.size, len(self._mu)
        psi = np.bincount(self._sample, self._sign * rho / self._theta, minlength=size)
        right = psi / self._phi
        solved = self._solve(right)
        aim_s = (sigma - bend_s) / self._mu
        target = np.concatenate(
            [self._s - aim_s - self._form_error, self._sum_error, [1.0 - self._mu.sum()]]
        )
        below = np.concatenate([self._border.T @ solved - target[:-1], target[-1:]])
        unknown = np.linalg.solve(self._schur, below)
        dw = solved - self._solved @ unknown[:-1]
        dr = (dw - psi) / self._phi
        dv = (self._sign * dr[self._sample] + rho) / self._theta
        dmu = unknown[:n]
        return _Direction(
            v=dv,
            low=aim_low - self._low - self._low / self._v * dv,
            high=aim_high - self._high + self._high / room * dv,
            mu=dmu,
            s=aim_s - self._s - self._s / self._mu * dmu,
            b=unknown[n:-1],
            t=float(unknown[-1]),
        )

    def _longest(self, step: _Direction) -> float:
        """How far a direction goes before something that must be positive is not."""
        now = np.concatenate(
            [self._v, self._upper - self._v, self._low, self._high, self._mu, self._s]
        )
        change = np.concatenate([step.v, -step.v, step.low, step.high, step.mu, step.s])
        falling = change < 0
        if not falling.any():
            return 1.0
        return min(1.0, float(np.min(-now[falling] / change[falling])))

    # ---- the end

    def rounded_weights(self) -> FloatArray:
        """Weights whose slack says that they vanish are made zero."""
        scale = max(abs(self._t), 1e-300)
        kept = np.where(self._mu > self._s / scale, self._mu, 0.0)
        kept = kept if kept.any() else self._mu
        weights: FloatArray = kept / kept.sum()
        return weights

    def rounded_w(self) -> FloatArray:
        """Halves whose multipliers say that they are at a bound are put there."""
        part = self._v / self._upper  # multipliers are in units of the target: of size one
        v = np.where(part < self._low, 0.0, self._v)
        v = np.where(1.0 - part < self._high, self._upper, v)
        return self._joined(v)


@dataclass(frozen=True)
class _Direction:
    v: FloatArray
    low: FloatArray
    high: FloatArray
    mu: FloatArray
    s: FloatArray
    b: FloatArray
    t: float


def _cholesky(K: FloatArray, diagonal: FloatArray) -> Any:
    error: np.linalg.LinAlgError | None = None
    for ridge in _RIDGES:
        shifted = K.copy()
        shifted.flat[:: len(K) + 1] += diagonal + ridge * float(np.mean(K.diagonal()))
        try:
            return cho_factor(shifted, lower=True, overwrite_a=True, check_finite=False)
        except np.linalg.LinAlgError as failed:
            error = failed
    assert error is not None
    raise error
