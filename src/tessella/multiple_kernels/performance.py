"""Cross-validated scores of each kernel of a dictionary alone."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from tessella.estimators._machines import Machines, class_pairs, winners
from tessella.kernels import BoundDictionary
from tessella.svm import DualProblem, best_intercept, solve_dual

__all__ = ["accuracies", "folds", "squared_errors"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

N_FOLDS = 3
_TOL = 1e-3  # gap of the SVMs, which is enough for the heuristic that uses their scores
_MOST_BLOCKS = 400  # blocks of a part of a matrix beyond which copying by entries is as fast


def folds(groups: IntArray) -> IntArray:
    """Return the number of the fold of each row, assigned in turn within each group.

    The training rows are sorted by their target first, so every fold covers the range of targets.

    Parameters
    ----------
    groups : ndarray of int of shape (n_rows,)
        Group of each row, for example its class.

    Returns
    -------
    ndarray of int of shape (n_rows,)
        Number of the fold of each row.
    """
    fold = np.empty(len(groups), dtype=np.intp)
    for group in np.unique(groups):
        own = np.flatnonzero(groups == group)
        fold[own] = np.arange(len(own)) % N_FOLDS
    return fold


def accuracies(
    kernels: BoundDictionary, codes: FloatArray, C: FloatArray, weight: FloatArray
) -> FloatArray:
    """Return the cross-validated accuracy of each kernel alone.

    Parameters
    ----------
    kernels : BoundDictionary
        The kernels on the training rows.
    codes : ndarray of shape (n_rows,)
        Number of the class of each row.
    C : ndarray of shape (n_rows,)
        Weight of the loss of each row.
    weight : ndarray of shape (n_rows,)
        Weight of each row in the accuracy.

    Returns
    -------
    ndarray of shape (n_kernels,)
        Weighted accuracy of each kernel on the rows that a fold leaves out.
    """
    order, divisions = _by_fold(folds(codes.astype(np.intp)))
    codes, C, weight = codes[order], C[order], weight[order]
    scores = np.empty(kernels.cone.degree)
    starts: dict[int, FloatArray] = {}
    for number, K in enumerate(_matrices(kernels, order)):
        hit = np.zeros(len(order))
        for fold, (train, test) in enumerate(divisions):
            found = _classify(K, codes, C, train, test, starts, fold)
            hit[test] = found == codes[test]
        scores[number] = np.average(hit, weights=weight)
    return scores


def _by_fold(fold: IntArray) -> tuple[IntArray, list[tuple[IntArray, IntArray]]]:
    """Return an order of the rows by fold, and the training and test rows in that order.

    Parts of a matrix in this order consist of a few blocks. Copying them entry by entry would take
    longer than the SVMs.
    """
    order = np.argsort(fold, kind="stable")
    sorted_fold = fold[order]
    parts = [
        (np.flatnonzero(sorted_fold != k), np.flatnonzero(sorted_fold == k)) for k in range(N_FOLDS)
    ]
    return order, [(train, test) for train, test in parts if len(train) and len(test)]


def _matrices(kernels: BoundDictionary, order: IntArray) -> Iterator[FloatArray]:
    """Yield the matrix of each kernel in turn, in the same memory."""
    ordered = kernels.subset(order)
    K = np.empty((len(order), len(order)))
    for alone in np.eye(kernels.cone.degree):
        yield ordered.gram(alone, out=K)


def _classify(
    K: FloatArray,
    codes: FloatArray,
    C: FloatArray,
    train: IntArray,
    test: IntArray,
    starts: dict[int, FloatArray],
    fold: int,
) -> FloatArray:
    classes, local = np.unique(codes[train], return_inverse=True)
    if len(classes) == 1:
        return np.full(len(test), classes[0])
    pairs = class_pairs(len(classes))
    machines = Machines.one_vs_one(local.astype(np.float64), C[train], pairs)
    w = starts.get(fold, np.zeros(machines.dual.size))
    scores = np.empty((len(test), len(pairs)))
    parts = zip(machines.dual.each, machines.dual.machines, machines.rows, strict=True)
    for column, (dual, own, rows) in enumerate(parts):
        scores[:, column], w[own] = _svm_scores(K, dual, train[rows], test, w[own])
    starts[fold] = w  # the next kernel is often similar to this one
    found: FloatArray = classes[winners(scores, pairs, len(classes))]
    return found


def squared_errors(kernels: BoundDictionary, dual: DualProblem, weight: FloatArray) -> FloatArray:
    """Return the cross-validated mean squared error of each kernel alone.

    Parameters
    ----------
    kernels : BoundDictionary
        The kernels on the training rows.
    dual : DualProblem
        The regression problem on the training rows.
    weight : ndarray of shape (n_rows,)
        Weight of each row in the mean squared error.

    Returns
    -------
    ndarray of shape (n_kernels,)
        Weighted mean squared error of each kernel on the rows that a fold leaves out.
    """
    order, divisions = _by_fold(folds(np.zeros(kernels.n_samples, dtype=np.intp)))
    parts = [dual.restrict(order[train]) for train, _ in divisions]
    target, weight = dual.linear[order], weight[order]
    errors = np.empty(kernels.cone.degree)
    starts = [np.zeros(len(train)) for train, _ in divisions]
    for number, K in enumerate(_matrices(kernels, order)):
        missed = np.zeros(len(order))
        for fold, (train, test) in enumerate(divisions):
            scores, starts[fold] = _svm_scores(K, parts[fold], train, test, starts[fold])
            missed[test] = (target[test] - scores) ** 2
        errors[number] = np.average(missed, weights=weight)
    return errors


def _svm_scores(
    K: FloatArray, dual: DualProblem, train: IntArray, test: IntArray, w: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the scores of the test rows and the dual vector of the training rows."""
    inner = part(K, train, train)
    start = w if w.any() else None
    answer = solve_dual(inner, dual, w0=start, tol=_TOL, n_jobs=1).unless_interrupted()
    b, _ = best_intercept(dual, inner @ answer.w)
    return product(K, test, train, answer.w) + b, answer.w


def part(K: FloatArray, rows: IntArray, columns: IntArray) -> FloatArray:
    """Return ``K[rows][:, columns]``, copied in blocks of consecutive numbers."""
    row_runs, column_runs = _runs(rows), _runs(columns)
    if len(row_runs) * len(column_runs) > _MOST_BLOCKS:
        return K[np.ix_(rows, columns)]
    out = np.empty((len(rows), len(columns)))
    for to_rows, own_rows in row_runs:
        for to_columns, own_columns in column_runs:
            out[to_rows, to_columns] = K[own_rows, own_columns]
    return out


def product(K: FloatArray, rows: IntArray, columns: IntArray, w: FloatArray) -> FloatArray:
    """Return ``K[rows][:, columns] @ w`` without copying that part of K."""
    total = np.zeros(len(rows))
    for to_rows, own_rows in _runs(rows):
        for to_columns, own_columns in _runs(columns):
            total[to_rows] += K[own_rows, own_columns] @ w[to_columns]
    return total


def _runs(numbers: IntArray) -> list[tuple[slice, slice]]:
    """Return the runs of consecutive numbers, as slices of positions and of numbers."""
    if not len(numbers):
        return []
    edges = [0, *(np.flatnonzero(np.diff(numbers) != 1) + 1).tolist(), len(numbers)]
    return [
        (slice(a, b), slice(int(numbers[a]), int(numbers[a]) + b - a)) for a, b in pairwise(edges)
    ]
