"""Leave-one-out of support vector machines, from the factors of the optimum.

Without row i, the other free samples V keep their residuals as long as nobody changes sides. Its
score is then f_i - w_i s_i, where s_i follows from M = [K_VV 1; 1ᵀ 0]:

    s_i = 1 / (M⁻¹)_ii          if the row is free,
    s_i = K_ii - k_iᵀM⁻¹k_i     if the row is at a bound, with k_i = (K_Vi, 1),

and nothing changes if w_i = 0. This is where :class:`tessella.leave_one_out._faces.Faces` starts
from for every row; it then lets samples change sides until all optimality conditions hold.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tessella.leave_one_out._faces import FacePoint, Faces, Sides, scale_of, violations
from tessella.svm import DualProblem, DualSolution, solve_dual

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.intp]

_BLOCK = 256  # points that are verified by one product with the kernel matrix
_POLISHINGS = 3

# The gap is of second order in the violations of the optimality conditions.
_GAP_OF_A_VIOLATION = 1e-2


@dataclass(frozen=True)
class SvmLeaveOneOut:
    """Scores of each row in the machine that has not seen it.

    Attributes
    ----------
    scores : ndarray of shape (m,)
        Score of each row, intercept included, in the machine without this row.
    changed : ndarray of bool of shape (m,)
        Rows without which other samples change sides: a free sample reaches a bound or zero, or
        one that was there becomes free. For all other rows the formula ``f - w * s`` is exact.
    resolved : ndarray of bool of shape (m,)
        Rows without which the problem was solved again, because changing sides did not lead to
        its optimum.
    """

    scores: FloatArray
    changed: BoolArray
    resolved: BoolArray

    @property
    def n_resolved(self) -> int:
        """Number of problems that were solved again."""
        return int(self.resolved.sum())


def svm_leave_one_out(
    K: NDArray[Any],
    dual: DualProblem,
    solution: DualSolution,
    *,
    left_out: ArrayLike = 1.0,
    rows: ArrayLike | None = None,
    tol: float = 1e-6,
    n_jobs: int | None = None,
) -> SvmLeaveOneOut:
    """Compute the score of each row in the support vector machine without that row.

    Nothing has to be computed for a row whose coefficient is zero. For the others, the optimum
    without the row is found from the factors of the optimum with it: by the formula
    ``f - w * s`` as long as no other sample changes sides, and by systems with as many unknowns
    as there are changes otherwise. Every point that is found in this way is verified with the
    kernel matrix. If it violates an optimality condition, or if none was found, the problem
    without the row is solved by :func:`tessella.svm.solve_dual`, started from the optimum.

    Parameters
    ----------
    K : ndarray of shape (m, m)
        Symmetric positive semidefinite kernel matrix.
    dual : DualProblem
        A single machine with a piecewise linear loss: the hinge loss or the ε-insensitive loss.
    solution : DualSolution
        Its solution, from :func:`tessella.svm.solve_dual` with a tolerance of at most 1e-5. It is
        made more accurate first.
    left_out : float or array-like of shape (m,), default=1.0
        Fraction of the loss of each row that is left out with it, above 0 and at most 1. It is
        1 / k for a row that stands for k copies of which one is left out.
    rows : array-like of int, optional
        Rows to leave out, by default all of them. Other rows get their score in the machine of
        all rows, and take no time.
    tol : float, default=1e-6
        Largest violation of the optimality conditions without a row, relative to the range of the
        targets. Problems that are solved again are solved to a relative gap of a hundredth of it.
    n_jobs : int, optional
        Number of threads of :func:`tessella.svm.solve_dual`.

    Returns
    -------
    SvmLeaveOneOut
        The scores, and the rows without which samples change sides or the problem was solved
        again.

    Notes
    -----
    With v free samples, the factors take 2v³ + 2m²v operations and m² numbers. Each row with a
    nonzero coefficient takes a few products with as many rows of an m × m matrix as samples
    change sides, typically a millisecond for a thousand rows, and 2m² operations of one matrix
    product to verify them all. If no sample is free, the optimum has no unique intercept, and
    the problem without each row is solved again. So it is for most rows if the kernel matrix has
    a low rank, as that of a linear kernel, because samples then can only change sides in pairs.

    Examples
    --------
    >>> import numpy as np
    >>> from tessella.leave_one_out import svm_leave_one_out
    >>> from tessella.svm import DualProblem, solve_dual
    >>> x = np.array([-3.0, -2.0, -1.0, 1.0, 2.0, 3.0])
    >>> K, dual = np.outer(x, x), DualProblem.classification(np.sign(x), C=10.0)
    >>> held_out = svm_leave_one_out(K, dual, solve_dual(K, dual))
    >>> held_out.scores.round(4).tolist()
    [-3.0, -2.0, -0.3333, 0.3333, 2.0, 3.0]
    >>> held_out.changed.tolist()
    [False, False, True, True, False, False]
    """
    K = _checked(K, dual, solution)
    kept = _kept(1.0 - _checked_fraction(left_out, dual.size), rows)
    faces = _faces_at_optimum(K, dual, solution)
    if faces is None:
        w, scores = solution.w, dual.linear - solution.gradient + solution.intercept
        changed, resolved = np.tile(kept < 1.0, (2, 1))
    else:
        w = faces.point.w
        scores, changed, resolved = _followed(K, faces, dual, kept, tol * scale_of(dual))
    for i in np.flatnonzero(resolved):
        scores[i] = _solved_without(K, dual, w, int(i), float(kept[i]), tol, n_jobs)
    return SvmLeaveOneOut(scores, changed, resolved)


def _followed(
    K: FloatArray, faces: Faces, dual: DualProblem, kept: FloatArray, limit: float
) -> tuple[FloatArray, BoolArray, BoolArray]:
    """Scores, rows without which others change sides, and rows whose score was not found."""
    point = faces.point
    scores = dual.linear - point.residual
    target = np.clip(point.w, kept * dual.lower, kept * dual.upper)
    unknown = target != point.w
    changed = unknown.copy()
    for rows, points in _without_each(faces, np.flatnonzero(unknown), target):
        found, good = _verified(K, dual, rows, points, limit)
        scores[rows[good]], unknown[rows[good]] = found[good], False
        for i, other in zip(rows, points, strict=True):
            exchanged = other.sides.held != point.sides.held
            exchanged[i] = unknown[i]
            changed[i] = exchanged.any()
    return scores, changed, unknown


def _faces_at_optimum(K: FloatArray, dual: DualProblem, solution: DualSolution) -> Faces | None:
    """Faces at the optimum, which is free of the solver's tolerance; None if it was not found."""
    w = solution.w
    point = FacePoint(Sides.of(dual, w), w, solution.gradient - solution.intercept)
    for _ in range(_POLISHINGS):
        if point.sides.held.all():
            return None
        try:
            faces = Faces(K, dual, point)
        except np.linalg.LinAlgError:
            return None
        settled = faces.settle(point.sides)
        if settled is None:
            return None
        same = (settled.sides.held == point.sides.held).all()
        point = FacePoint(settled.sides, settled.w, _residuals(K, dual, [settled])[0])
        if same:
            return faces.at(point)
    return None


def _without_each(
    faces: Faces, moved: IntArray, target: FloatArray
) -> Iterator[tuple[IntArray, list[FacePoint]]]:
    """Blocks of rows and the optima that were found without each of them."""
    for first in range(0, len(moved), _BLOCK):
        rows = moved[first : first + _BLOCK]
        found = [
            faces.settle(faces.point.sides.with_held(i, target[i]), fixed=i) for i in rows.tolist()
        ]
        known = [k for k, point in enumerate(found) if point is not None]
        if known:
            yield rows[known], [point for point in found if point is not None]


def _residuals(K: FloatArray, dual: DualProblem, points: list[FacePoint]) -> FloatArray:
    """Residuals at several points, computed with the kernel matrix; of shape (n, m)."""
    raw = dual.linear - np.array([point.w for point in points]) @ K
    for own, point in zip(raw, points, strict=True):
        free = ~point.sides.held
        own -= np.mean((own - point.sides.value)[free])
    return raw


def _verified(
    K: FloatArray, dual: DualProblem, rows: IntArray, points: list[FacePoint], limit: float
) -> tuple[FloatArray, BoolArray]:
    """Scores of the rows at the points without them, and whether these points are optimal."""
    residual = _residuals(K, dual, points)
    w = np.array([point.w for point in points])
    breach = violations(dual, w, residual)
    places = np.arange(len(rows))
    breach[places, rows] = 0.0  # the bounds of the row itself have changed
    balanced = np.abs(w.sum(axis=1)) <= 1e-9 * np.abs(w).sum(axis=1)
    # Without a free sample the intercept is not unique, and solve_dual decides on one.
    held = np.array([Sides.of(dual, point.w).held for point in points])
    held[places, rows] = True
    good = (breach.max(axis=1) <= limit) & balanced & ~held.all(axis=1)
    scores: FloatArray = dual.linear[rows] - residual[places, rows]
    return scores, good


def _solved_without(
    K: FloatArray,
    dual: DualProblem,
    w: FloatArray,
    row: int,
    kept: float,
    tol: float,
    n_jobs: int | None,
) -> float:
    """Score of a row in the machine in which its loss is multiplied by `kept`."""
    factor = np.ones(dual.size)
    factor[row] = kept
    rest = dual.restrict(np.arange(dual.size), factor)
    solved = solve_dual(K, rest, w0=w, tol=_GAP_OF_A_VIOLATION * tol, n_jobs=n_jobs)
    solution = solved.unless_interrupted()
    return float(dual.linear[row] - solution.gradient[row] + solution.intercept)


def _checked(K: NDArray[Any], dual: DualProblem, solution: DualSolution) -> FloatArray:
    if len(dual.losses) > 1:
        raise ValueError(
            f"The dual problem has {len(dual.losses)} machines; use each of dual.each by itself."
        )
    if not dual.is_boxed:
        raise ValueError(
            "The loss is not piecewise linear; for the squared loss use RidgePath instead."
        )
    if np.shape(K) != (dual.size, dual.size):
        raise ValueError(f"K has shape {np.shape(K)}, expected ({dual.size}, {dual.size}).")
    if dual.size < 2:
        raise ValueError("Leaving out a row needs at least two rows.")
    if solution.w.shape != (dual.size,):
        raise ValueError(f"solution.w has shape {solution.w.shape}, expected ({dual.size},).")
    return np.asarray(K, dtype=np.float64)


def _kept(kept: FloatArray, rows: ArrayLike | None) -> FloatArray:
    """The fractions that stay of the rows to leave out, and 1 for all others."""
    if rows is None:
        return kept
    whole = np.ones(len(kept))
    chosen = np.asarray(rows, dtype=np.intp)
    whole[chosen] = kept[chosen]
    return whole


def _checked_fraction(left_out: ArrayLike, size: int) -> FloatArray:
    fraction = np.broadcast_to(np.asarray(left_out, dtype=np.float64), (size,))
    if not ((fraction > 0) & (fraction <= 1)).all():
        raise ValueError("left_out must be above 0 and at most 1.")
    return fraction
