"""Weights by a rule rather than by optimisation, and the SVM that goes with given weights."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import cast

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from tessella.multiple_kernels._bound import BoundDictionary
from tessella.multiple_kernels._dictionary import in_threads, strips
from tessella.multiple_kernels._learned import start_run
from tessella.multiple_kernels._problem import WeightsPoint, WeightsProblem
from tessella.solvers import SolverResult, SolverStatus
from tessella.solvers._run import Callback, Run, run_to_end

FloatArray = NDArray[np.float64]

_PATIENCE = 3
_GROUPS = 8  # of strips of the alignment, each with a sum of its own


def average_weights(kernels: BoundDictionary) -> FloatArray:
    """The same weight for every kernel (AMKL)."""
    return np.full(len(kernels), 1.0 / len(kernels))


# ----------------------------------------------------------------------------------- alignment


class _Remembered:
    """The last few weights of a rule that does not look at C.

    A search over C asks for the same weights at every value of it, and the alignment of a large
    dictionary takes far longer than the SVM that follows.
    """

    _MOST = 16

    def __init__(self) -> None:
        self._weights: OrderedDict[tuple[object, ...], FloatArray] = OrderedDict()
        self._lock = Lock()

    def get(self, key: tuple[object, ...], compute: Callable[[], FloatArray]) -> FloatArray:
        """The weights of a key, computed if they are not there."""
        with self._lock:
            found = self._weights.get(key)
        if found is None:
            found = compute()
            with self._lock:
                self._weights[key] = found
                while len(self._weights) > self._MOST:
                    self._weights.popitem(last=False)
        return found.copy()


_ALIGNMENTS = _Remembered()


def alignment_weights(
    kernels: BoundDictionary, targets: FloatArray, weight: FloatArray
) -> FloatArray:
    """Weights of the largest centred alignment with the target (CKA); remembered for a while.

    Parameters and the result are those of :func:`computed_alignment_weights`.
    """
    key = kernels.key(targets, weight)
    if key is None:  # functions of the user may change their mind
        return computed_alignment_weights(kernels, targets, weight)
    return _ALIGNMENTS.get(key, lambda: computed_alignment_weights(kernels, targets, weight))


def computed_alignment_weights(
    kernels: BoundDictionary, targets: FloatArray, weight: FloatArray
) -> FloatArray:
    """Weights of the largest centred alignment with the target (CKA).

    Maximises ``<K_c(μ), T> / |K_c(μ)|`` with the centred matrices K_c and ``T = targets @
    targets.T`` (Cortes, Mohri, Rostamizadeh, 2012). The closed form M⁻¹a, with ``M_ij = <K_ci,
    K_cj>`` and ``a_i = <K_ci, T>``, is the answer when no entry of it is negative. Otherwise
    K(μ) need not be a kernel, and the least squares problem behind it is solved with μ ≥ 0, as
    the paper has it.

    Parameters
    ----------
    kernels : BoundDictionary
        The kernels.
    targets : ndarray of shape (n_rows, n_columns)
        Labels -1 and 1, centred indicators of several classes, or a regression target.
    weight : ndarray of shape (n_rows,)
        Sample weights; k counts like k copies.

    Returns
    -------
    ndarray of shape (n_kernels,)
        On the simplex.
    """
    M, a = alignment_system(kernels, targets, weight)
    weights = closed_form(M, a)
    if weights.min() < 0:
        weights = _nonnegative(M, a)
    if not weights.sum() > 0:
        return average_weights(kernels)  # nothing is aligned with the target
    on_simplex: FloatArray = weights / weights.sum()
    return on_simplex


def alignment_system(
    kernels: BoundDictionary, targets: FloatArray, weight: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """M and a of :func:`alignment_weights`: O(n_kernels² m²) flops and little memory."""
    n, rows = len(kernels), np.arange(kernels.n_rows)
    share = weight / weight.sum()
    root = np.sqrt(weight)
    which = list(range(n))
    means = kernels.products(which, rows, rows, share)  # weighted mean of each row
    grand = means @ share
    Y = targets * root[:, None]

    def strip(own: slice) -> tuple[FloatArray, FloatArray]:
        left = rows[own]
        flat = np.empty((n, len(left) * len(rows)))
        for number, tile in kernels.blocks(which, left, rows):
            mean = means[number]
            centred = tile - mean[own][:, None] - (mean - grand[number])
            flat[number] = (centred * root[own][:, None] * root).ravel()
        return flat @ flat.T, flat @ (Y[own] @ Y.T).ravel()

    def total(own: list[slice]) -> tuple[FloatArray, FloatArray]:
        M, a = np.zeros((n, n)), np.zeros(n)
        for piece in own:
            part_of_M, part_of_a = strip(piece)
            M += part_of_M
            a += part_of_a
        return M, a

    # Strips thin enough that all kernels together stay within some tens of megabytes. Sums of a
    # fixed number of groups: an M for each strip would be gigabytes where there are many kernels,
    # and one for each thread would let the last digits depend on their number.
    pieces = strips(len(rows), max(1, len(rows) * max(1, n // 32)))
    parts = in_threads(total, [pieces[k::_GROUPS] for k in range(_GROUPS)], kernels.n_jobs)
    return np.sum([M for M, _ in parts], axis=0), np.sum([a for _, a in parts], axis=0)


def closed_form(M: FloatArray, a: FloatArray) -> FloatArray:
    """M⁻¹a, or the shortest solution where kernels are linearly dependent."""
    return np.asarray(np.linalg.lstsq(M, a, rcond=1e-13)[0], dtype=np.float64)


def _nonnegative(M: FloatArray, a: FloatArray) -> FloatArray:
    """Minimiser of ``vᵀMv - 2 vᵀa`` over v ≥ 0."""
    scale = np.sqrt(np.maximum(M.diagonal(), np.finfo(float).tiny))
    values, vectors = np.linalg.eigh(M / np.outer(scale, scale))
    kept = values > 1e-13 * values[-1]
    root = np.sqrt(values[kept])
    basis = vectors[:, kept].T
    solution, _ = nnls(root[:, None] * basis, basis @ (a / scale) / root)
    weights: FloatArray = solution / scale
    return weights


# --------------------------------------------------------------------------------- given weights


def given(
    problem: WeightsProblem,
    *,
    tol: float = 1e-3,
    max_iter: int = 1000,
    time_limit: float | None = None,
    n_jobs: int | None = None,
    callback: Callback | None = None,
) -> SolverResult:
    """The SVM of the weights that `problem` has fixed, certified.

    Parameters and the result are those of :func:`~tessella.multiple_kernels._learned.learned`;
    the gap is that of the SVM.
    """
    assert problem.fixed is not None
    weights = problem.fixed
    run = start_run(
        "svm",
        problem,
        tol=tol,
        max_iter=max_iter,
        time_limit=time_limit,
        n_jobs=n_jobs,
        callback=callback,
    )
    return run_to_end(run, lambda own: _one_svm(own, problem, weights))


def _one_svm(run: Run, problem: WeightsProblem, weights: FloatArray) -> SolverStatus:
    w: FloatArray | None = None
    for attempt in range(_PATIENCE):
        K = problem.kernels.machine_matrices(weights)
        answer = run.svm(K, weights, w, run.tol * 0.5 * 0.1**attempt)
        w = cast(WeightsPoint, run.record(weights, answer.w, 0.0)).w
    return SolverStatus.STALLED


def weights_of_scores(scores: FloatArray, threshold: float = 0.0) -> FloatArray:
    """``(π_i - threshold) / Σ (π_j - threshold)`` for accuracies π (Tanabe et al., 2008)."""
    above = np.maximum(scores - threshold, 0.0)
    if not above.any():
        return np.full(len(scores), 1.0 / len(scores))
    weights: FloatArray = above / above.sum()
    return weights


def weights_of_errors(errors: FloatArray) -> FloatArray:
    """``(Σ M - M_i) / Σ_j (Σ M - M_j)`` for mean squared errors M (Qiu and Lane, 2009)."""
    others = errors.sum() - errors
    if not others.any():
        return np.full(len(errors), 1.0 / len(errors))
    weights: FloatArray = others / others.sum()
    return weights
