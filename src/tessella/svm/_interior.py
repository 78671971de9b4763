"""An interior point method for the dual on a given kernel matrix: slow, and never stuck.

Where C is large and K has fewer large eigenvalues than there are support vectors, the dual is
nearly a linear program: pair steps creep, and Newton steps on the free samples run into a bound at
once. Some twenty Cholesky factorisations solve it whatever the data. The conditions are

    sign·(Kw + ν) - cost - zl + zu = 0,   Σw = 0,   α zl = μ,   (u - α) zu = μ,   μ → 0

for the nonnegative halves α of w; eliminating all but w leaves (K + T) dw + dν = rhs.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from tessella.svm._halves import Halves
from tessella.svm._problem import DualProblem

FloatArray = NDArray[np.float64]

STEPS = 20  # Cholesky factorisations of a typical run, to know its price
_MAX_STEPS = 80
_STEP = 0.99


def interior_point(
    K: FloatArray,
    dual: DualProblem,
    w: FloatArray,
    tol: float,
    deadline: float | None = None,
) -> tuple[FloatArray | None, int]:
    """A dual vector whose complementarity is about `tol` of the value, or None if rounding forbids.

    Parameters
    ----------
    K : ndarray of shape (m, m)
        Kernel matrix.
    dual : DualProblem
        One machine.
    w : ndarray of shape (m,)
        Where to start; its size tells the scale of the solution.
    tol : float
        Relative to the value.
    deadline : float, optional
        When to stop, by ``time.monotonic``.

    Returns
    -------
    w : ndarray of shape (m,) or None
        With halves on their way to a border put there; not balanced yet.
    n_steps : int
        Newton steps taken, each with a Cholesky factorisation.

    Notes
    -----
    Costs some twenty times m³/3 flops, and holds one more matrix of the size of K.
    """
    method = _Method(K, dual, w)
    best, answer, n_steps = np.inf, None, 0
    while n_steps < _MAX_STEPS and method.advance():
        n_steps += 1
        if method.merit < best:
            best, answer = method.merit, method.settled()
        late = deadline is not None and time.monotonic() >= deadline
        if best <= tol or method.merit > 1e3 * best or late:
            break
    return answer, n_steps


@dataclass
class _Change:
    alpha: FloatArray
    zl: FloatArray
    zu: FloatArray
    nu: float


class _Method:
    def __init__(self, K: FloatArray, dual: DualProblem, w: FloatArray) -> None:
        self._K = K
        self._halves = halves = Halves.of(dual)
        given = np.maximum(halves.sign * w[halves.sample], 0.0)
        # Well inside, measured by what w has come to: products of variables and multipliers that
        # start too small for the residuals cannot grow any more.
        size = float(np.abs(w).max()) or float(halves.upper.max())
        inside = np.minimum(0.2 * size, 0.3 * halves.upper)
        self._alpha = np.clip(given, inside, halves.upper - inside)
        scores = K @ halves.join(self._alpha)
        self._nu = -float(np.median(scores))
        spread = max(float(np.abs(scores + self._nu).max()), float(np.abs(halves.cost).max()))
        self._zl = np.full(len(given), spread)
        self._zu = spread * float(self._alpha.max()) / (halves.upper - self._alpha)
        self._scale = spread
        self._measure()

    def _measure(self) -> None:
        halves = self._halves
        w = halves.join(self._alpha)
        self._above = halves.upper - self._alpha
        scores = self._K @ w
        shifted = (scores + self._nu)[halves.sample]
        self._dual_residual = halves.sign * shifted - halves.cost - self._zl + self._zu
        self._sum = float(w.sum())
        self._gap = float(self._alpha @ self._zl + self._above @ self._zu)
        value = abs(float(halves.cost @ self._alpha) - 0.5 * float(w @ scores))
        self.merit = max(
            self._gap / max(value, 1e-300),
            float(np.abs(self._dual_residual).max()) / self._scale,
            abs(self._sum) / max(float(self._alpha.sum()), 1e-300),
        )

    def settled(self) -> FloatArray:
        """The dual vector of the current iterate."""
        halves = self._halves
        return halves.join(halves.settled(self._alpha, self._zl, self._zu))

    def advance(self) -> bool:
        """One predictor-corrector step; False when rounding forbids one."""
        if not (self._alpha.min() > 0.0 and self._above.min() > 0.0):
            return False
        theta = self._zl / self._alpha + self._zu / self._above
        softness = self._halves.total(1.0 / theta)
        T = 1.0 / np.maximum(softness, 1e-300)
        matrix = self._K.copy()
        matrix.flat[:: len(matrix) + 1] += T
        try:
            factor = cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)
        except np.linalg.LinAlgError:
            return False
        b = cho_solve(factor, np.ones(len(T)), check_finite=False)
        alpha, above = self._alpha, self._above

        def change(rl: FloatArray, ru: FloatArray) -> _Change:
            rho = -self._dual_residual + rl / alpha - ru / above
            rhs = T * self._halves.total(self._halves.sign * rho / theta)
            a = cho_solve(factor, rhs, check_finite=False)
            dnu = (self._sum + float(a.sum())) / float(b.sum())
            dw = a - dnu * b
            dalpha = self._halves.split(dw, self._K @ dw + dnu, rho, theta)
            return _Change(
                alpha=dalpha,
                zl=(rl - self._zl * dalpha) / alpha,
                zu=(ru + self._zu * dalpha) / above,
                nu=dnu,
            )

        affine = change(-alpha * self._zl, -above * self._zu)
        reach = min(1.0, self._room(affine))
        after = float(
            (alpha + reach * affine.alpha) @ (self._zl + reach * affine.zl)
            + (above - reach * affine.alpha) @ (self._zu + reach * affine.zu)
        )
        centring = min(1.0, max(1e-8, (max(after, 0.0) / self._gap) ** 3))
        mu = centring * self._gap / (2 * len(alpha))
        step = change(
            mu - alpha * self._zl - affine.alpha * affine.zl,
            mu - above * self._zu + affine.alpha * affine.zu,
        )
        length = min(1.0, _STEP * self._room(step))
        if not (np.isfinite(length) and length > 1e-8):
            return False
        self._alpha = alpha + length * step.alpha
        self._zl = self._zl + length * step.zl
        self._zu = self._zu + length * step.zu
        self._nu += length * step.nu
        self._measure()
        return True

    def _room(self, step: _Change) -> float:
        """Largest multiple of a step that stays inside."""
        pairs = (
            (self._alpha, step.alpha),
            (self._above, -step.alpha),
            (self._zl, step.zl),
            (self._zu, step.zu),
        )
        fastest = max(float(np.max(-change / value)) for value, change in pairs)
        return 1.0 / fastest if fastest > 0.0 else np.inf
