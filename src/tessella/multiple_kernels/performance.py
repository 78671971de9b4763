"""How well every kernel does alone, by cross-validation."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from tessella.estimators._machines import Machines, class_pairs, winners
from tessella.kernels import BoundDictionary
from tessella.svm import DualProblem, DualStatus, best_intercept, solve_dual

__all__ = ["accuracies", "folds", "squared_errors"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

N_FOLDS = 3
_TOL = 1e-3  # of the SVMs: their scores are a heuristic's input
_MOST_BLOCKS = 400  # of a part of a matrix, before copying by entries is as fast


def folds(groups: IntArray) -> IntArray:
    """Number of the fold of each row: those of a group take turns.

    Rows come sorted, by target first, so every fold sees its whole range.
    """
    fold = np.empty(len(groups), dtype=np.intp)
    for group in np.unique(groups):
        own = np.flatnonzero(groups == group)
        fold[own] = np.arange(len(own)) % N_FOLDS
    return fold


def accuracies(
    kernels: BoundDictionary, codes: FloatArray, C: FloatArray, weight: FloatArray
) -> FloatArray:
    """Weighted accuracy of each kernel on the rows that a fold leaves out.

    Parameters
    ----------
    kernels : BoundDictionary
        The kernels on the training rows.
    codes, C, weight : ndarray
        Numbers of the rows' classes, weights of their loss and of their hits.
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
    """An order of the rows, fold after fold, and in that order those to learn from and to test.

    Parts of a matrix in this order are a few blocks: copying them row by row and entry by entry
    would take longer than the SVMs.
    """
    order = np.argsort(fold, kind="stable")
    sorted_fold = fold[order]
    parts = [
        (np.flatnonzero(sorted_fold != k), np.flatnonzero(sorted_fold == k)) for k in range(N_FOLDS)
    ]
    return order, [(train, test) for train, test in parts if len(train) and len(test)]


def _matrices(kernels: BoundDictionary, order: IntArray) -> Iterator[FloatArray]:
    """The matrix of one kernel after the other, in the same memory."""
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
    starts[fold] = w  # the next kernel is often a neighbour of this one
    found: FloatArray = classes[winners(scores, pairs, len(classes))]
    return found


def squared_errors(kernels: BoundDictionary, dual: DualProblem, weight: FloatArray) -> FloatArray:
    """Weighted mean squared error of each kernel on the rows that a fold leaves out."""
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
    """Scores of rows left out, and the dual vector of the others."""
    inner = part(K, train, train)
    answer = solve_dual(inner, dual, w0=w if w.any() else None, tol=_TOL, n_jobs=1)
    if answer.status is DualStatus.INTERRUPTED:
        raise KeyboardInterrupt  # there is nothing to keep yet
    b, _ = best_intercept(dual, inner @ answer.w)
    return product(K, test, train, answer.w) + b, answer.w


def part(K: FloatArray, rows: IntArray, columns: IntArray) -> FloatArray:
    """``K[rows][:, columns]``, copied in blocks where the numbers run on."""
    row_runs, column_runs = _runs(rows), _runs(columns)
    if len(row_runs) * len(column_runs) > _MOST_BLOCKS:
        return K[np.ix_(rows, columns)]
    out = np.empty((len(rows), len(columns)))
    for to_rows, own_rows in row_runs:
        for to_columns, own_columns in column_runs:
            out[to_rows, to_columns] = K[own_rows, own_columns]
    return out


def product(K: FloatArray, rows: IntArray, columns: IntArray, w: FloatArray) -> FloatArray:
    """``K[rows][:, columns] @ w`` without a copy of that part."""
    total = np.zeros(len(rows))
    for to_rows, own_rows in _runs(rows):
        for to_columns, own_columns in _runs(columns):
            total[to_rows] += K[own_rows, own_columns] @ w[to_columns]
    return total


def _runs(numbers: IntArray) -> list[tuple[slice, slice]]:
    """Where numbers go up by one: their places, and the numbers themselves."""
    if not len(numbers):
        return []
    edges = [0, *(np.flatnonzero(np.diff(numbers) != 1) + 1).tolist(), len(numbers)]
    return [
        (slice(a, b), slice(int(numbers[a]), int(numbers[a]) + b - a)) for a, b in pairwise(edges)
    ]
