"""How well every kernel does alone, by cross-validation."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tessella.estimators._machines import Machines, class_pairs, winners
from tessella.multiple_kernels._dictionary import FittedDictionary
from tessella.svm import DualProblem, DualStatus, best_intercept, solve_dual

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

N_FOLDS = 3
_TOL = 1e-3  # of the SVMs: their scores are a heuristic's input


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
    dictionary: FittedDictionary,
    X: FloatArray,
    codes: FloatArray,
    C: FloatArray,
    weight: FloatArray,
) -> FloatArray:
    """Weighted accuracy of each kernel on the rows that a fold leaves out.

    Parameters
    ----------
    dictionary : FittedDictionary
        The kernels.
    X, codes, C, weight : ndarray
        Raw rows, numbers of their classes, weights of their loss and of their hits.
    """
    fold = folds(codes.astype(np.intp))
    scores = np.empty(len(dictionary))
    starts: dict[int, FloatArray] = {}
    for number in range(len(dictionary)):
        K = dictionary.matrix(number, X)
        hit = np.zeros(len(X))
        for k in range(N_FOLDS):
            train, test = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
            if len(test):
                found = _classify(K, codes, C, train, test, starts, k)
                hit[test] = found == codes[test]
        scores[number] = np.average(hit, weights=weight)
    return scores


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


def squared_errors(
    dictionary: FittedDictionary,
    X: FloatArray,
    dual: DualProblem,
    weight: FloatArray,
) -> FloatArray:
    """Weighted mean squared error of each kernel on the rows that a fold leaves out."""
    fold = folds(np.zeros(len(X), dtype=np.intp))
    errors = np.empty(len(dictionary))
    starts = {k: np.zeros(int((fold != k).sum())) for k in range(N_FOLDS)}
    for number in range(len(dictionary)):
        K = dictionary.matrix(number, X)
        missed = np.zeros(len(X))
        for k in range(N_FOLDS):
            train, test = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
            if len(test) and len(train):
                own = dual.restrict(train)
                scores, starts[k] = _svm_scores(K, own, train, test, starts[k])
                missed[test] = (dual.linear[test] - scores) ** 2
        errors[number] = np.average(missed, weights=weight)
    return errors


def _svm_scores(
    K: FloatArray, dual: DualProblem, train: IntArray, test: IntArray, w: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Scores of rows left out, and the dual vector of the others."""
    inner = np.ascontiguousarray(K[np.ix_(train, train)])
    answer = solve_dual(inner, dual, w0=w if w.any() else None, tol=_TOL, n_jobs=1)
    if answer.status is DualStatus.INTERRUPTED:
        raise KeyboardInterrupt  # there is nothing to keep yet
    b, _ = best_intercept(dual, inner @ answer.w)
    return K[np.ix_(test, train)] @ answer.w + b, answer.w
