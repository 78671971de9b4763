"""Python face of the compiled dual solver."""

from __future__ import annotations

import time
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tessella import _core
from tessella.backend import effective_threads

FloatArray = NDArray[np.float64]


class DualStatus(Enum):
    """How a run of :func:`solve_dual` ended."""

    OPTIMAL = 0
    MAX_ITER = 1
    TIME_LIMIT = 2
    INTERRUPTED = 3
    PRECISION = 4


@dataclass(frozen=True)
class DualProblem:
    """Everything of an SVM dual but its kernel matrix.

    Maximise ``linear @ w - epsilon @ abs(w) - w @ K @ w / 2`` over ``lower <= w <= upper`` and
    ``sum(w) == 0``, where ``lower <= 0 <= upper``. The matching primal is

        ½ wᵀKw + Σ_k upper_k (r_k - epsilon_k)₊ + |lower_k| (-r_k - epsilon_k)₊,   r = linear - Kw - b

    which is the hinge loss for :meth:`classification` and the ε-insensitive one for
    :meth:`regression`.

    Attributes
    ----------
    linear, epsilon, lower, upper : ndarray of shape (m,)
        As above; ``epsilon >= 0``.
    """

    linear: FloatArray
    epsilon: FloatArray
    lower: FloatArray
    upper: FloatArray

    def __post_init__(self) -> None:
        size = len(self.linear)
        for name in ("linear", "epsilon", "lower", "upper"):
            value = np.array(getattr(self, name), dtype=np.float64)
            if value.shape != (size,):
                raise ValueError(f"{name} has shape {value.shape}, expected ({size},).")
            if not np.isfinite(value).all():
                raise ValueError(f"{name} holds a NaN or an infinity.")
            value.flags.writeable = False
            object.__setattr__(self, name, value)
        if size == 0:
            raise ValueError("A dual problem needs at least one sample.")
        if (self.epsilon < 0).any() or (self.lower > 0).any() or (self.upper < 0).any():
            raise ValueError("epsilon and upper must be >= 0 and lower <= 0.")

    @classmethod
    def classification(cls, y: ArrayLike, C: ArrayLike) -> DualProblem:
        """Soft-margin classification of labels `y` in {-1, +1}; `C` a number or one per sample."""
        y = np.asarray(y, dtype=np.float64)
        if not np.isin(y, (-1.0, 1.0)).all():
            raise ValueError("labels must be -1 or +1.")
        C = _positive_weights(C, y.shape)
        zero = np.zeros_like(y)
        return cls(y, zero, np.where(y < 0, -C, zero), np.where(y > 0, C, zero))

    @classmethod
    def regression(cls, y: ArrayLike, C: ArrayLike, epsilon: float) -> DualProblem:
        """ε-insensitive regression on targets `y`; `C` a number or one per sample."""
        y = np.asarray(y, dtype=np.float64)
        C = _positive_weights(C, y.shape)
        return cls(y, np.full(y.shape, float(epsilon)), -C, C)

    @property
    def size(self) -> int:
        """Number of samples m."""
        return len(self.linear)

    def kappa(self, w: FloatArray) -> float:
        """The part of the dual objective that does not depend on the kernel."""
        return float(self.linear @ w - self.epsilon @ np.abs(w))

    def feasible(self, w: ArrayLike) -> FloatArray:
        """A feasible point near `w`: clipped to the box, then balanced to a zero sum."""
        w = np.clip(np.asarray(w, dtype=np.float64), self.lower, self.upper)
        if w.shape != self.linear.shape:
            raise ValueError(f"w has shape {w.shape}, expected {self.linear.shape}.")
        excess = float(w.sum())
        if abs(excess) <= 1e-14 * float(np.abs(w).sum()):
            return w
        # Shrinking the heavier sign towards zero never leaves the box.
        heavy = w > 0 if excess > 0 else w < 0
        w[heavy] *= 1.0 - excess / float(w[heavy].sum())
        return w


def _positive_weights(C: ArrayLike, shape: tuple[int, ...]) -> FloatArray:
    C = np.broadcast_to(np.asarray(C, dtype=np.float64), shape)
    if not (np.isfinite(C).all() and (C >= 0).all()):
        raise ValueError("C must be finite and not negative.")
    return C


@dataclass(frozen=True)
class DualSolution:
    """Answer of :func:`solve_dual`.

    Attributes
    ----------
    w : ndarray of shape (m,)
        Feasible dual vector, whatever the status.
    gradient : ndarray of shape (m,)
        ``linear - K @ w``: the residual of each sample before the intercept.
    intercept : float
        Offset b minimising the primal for this w.
    objective, primal : float
        Dual and primal values; the optimum lies between them.
    violation : float
        Largest violation of the optimality conditions (0 at the optimum).
    n_iter : int
        Pair steps taken.
    status : DualStatus
        Why the solver stopped.
    """

    w: FloatArray
    gradient: FloatArray
    intercept: float
    objective: float
    primal: float
    violation: float
    n_iter: int
    status: DualStatus

    @property
    def gap(self) -> float:
        """Primal minus dual value, relative to the primal."""
        return relative_gap(self.primal, self.objective)


def relative_gap(upper: float, lower: float) -> float:
    """``(upper - lower) / |upper|``; 0 when the two agree, whatever their size."""
    difference = max(0.0, upper - lower)
    return difference / max(abs(upper), np.finfo(float).tiny) if difference else 0.0


def solve_dual(
    K: NDArray[Any],
    problem: DualProblem,
    *,
    w0: ArrayLike | None = None,
    tol: float = 1e-6,
    max_iter: int = -1,
    time_limit: float | None = None,
    n_jobs: int | None = None,
) -> DualSolution:
    """Solve the SVM dual for a dense kernel matrix.

    Sequential minimal optimisation with second-order choice of the working pair, compiled and
    free of the GIL. Stops when the primal-dual gap, computed on a gradient free of accumulated
    rounding, is at most `tol` times the primal value; on `max_iter`; on `time_limit`; on Ctrl-C
    (status ``INTERRUPTED``, no exception); or when no step can change w in double precision
    (``PRECISION``).

    Parameters
    ----------
    K : ndarray of shape (m, m), float32 or float64
        Symmetric positive semidefinite, C-contiguous. Accumulation is float64 in both cases.
    problem : DualProblem
        Labels or targets, box and tube.
    w0 : array-like of shape (m,), optional
        Warm start; made feasible first. Zero by default.
    tol : float
        Relative duality gap.
    max_iter : int
        Limit on pair steps; negative for none.
    time_limit : float, optional
        Seconds.
    n_jobs : int, optional
        Threads for the products with K; see :func:`tessella.backend.effective_threads`.

    Returns
    -------
    DualSolution

    Notes
    -----
    A step costs two passes over two rows of K: 4m entries read and about 12m flops. The solver
    holds O(m) beyond K.

    Examples
    --------
    >>> import numpy as np
    >>> from tessella.svm import DualProblem, solve_dual
    >>> x = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    >>> problem = DualProblem.classification([-1, -1, 1, 1], C=10.0)
    >>> answer = solve_dual(x @ x.T, problem)
    >>> answer.w.round(6).tolist()
    [0.0, -0.5, 0.5, 0.0]
    """
    K = _checked_kernel(K, problem.size)
    if not tol >= 0:
        raise ValueError(f"tol={tol!r} must not be negative.")
    w = np.zeros(problem.size) if w0 is None else problem.feasible(w0)
    gradient = np.empty(problem.size)
    code, n_iter, intercept, objective, primal, violation = _core.solve_dual(
        K,
        problem.linear,
        problem.epsilon,
        problem.lower,
        problem.upper,
        w,
        gradient,
        float(tol),
        int(max_iter),
        -1.0 if time_limit is None else max(0.0, float(time_limit)),
        effective_threads(n_jobs),
    )
    return DualSolution(
        w=w,
        gradient=gradient,
        intercept=intercept,
        objective=objective,
        primal=primal,
        violation=violation,
        n_iter=n_iter,
        status=DualStatus(code),
    )


def _checked_kernel(K: NDArray[Any], size: int) -> NDArray[Any]:
    if K.shape != (size, size):
        raise ValueError(f"K has shape {K.shape}, expected ({size}, {size}).")
    if K.dtype not in (np.float32, np.float64):
        raise TypeError(f"K must be float32 or float64, not {K.dtype}.")
    if not K.flags.c_contiguous:
        # K is symmetric, so the transpose of a Fortran-ordered one is the same matrix for free.
        K = K.T if K.flags.f_contiguous else np.ascontiguousarray(K)
    if not np.isfinite(K.diagonal()).all():
        raise ValueError("K holds a NaN or an infinity on its diagonal.")
    return K


def remaining_seconds(deadline: float | None) -> float | None:
    """Seconds until `deadline` on the monotonic clock (never negative), or None."""
    return None if deadline is None else max(0.0, deadline - time.monotonic())
