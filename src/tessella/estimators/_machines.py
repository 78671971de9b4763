"""The machines of a fit: one machine, one for each pair of classes, or one for each output."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from tessella.estimators._layouts import stacked_to_merged
from tessella.kernels import BoundKernelSet, KernelSet, bind_to_machines
from tessella.svm import DualProblem

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]


@dataclass(frozen=True)
class Machines:
    """The support vector machines of a fit, which share their kernel.

    Attributes
    ----------
    rows : tuple of ndarray of int
        Rows of the training set that each machine sees.
    dual : DualProblem
        Dual problems of the machines, one after the other.
    n_rows : int
        Number of rows of the training set.
    """

    rows: tuple[IntArray, ...]
    dual: DualProblem
    n_rows: int

    @classmethod
    def single(cls, dual: DualProblem) -> Machines:
        """One machine that sees all rows."""
        return cls((np.arange(dual.size),), dual, dual.size)

    @classmethod
    def one_vs_one(
        cls, codes: FloatArray, C: FloatArray, pairs: Sequence[tuple[int, int]]
    ) -> Machines:
        """A classifier for each pair of classes, positive for the first of the two.

        Parameters
        ----------
        codes : ndarray of shape (m,)
            Position of the class of each row among the sorted classes.
        C : ndarray of shape (m,)
            Weight of the loss of each row.
        pairs : sequence of (int, int)
            The pairs of :func:`class_pairs`.
        """
        rows = [np.flatnonzero((codes == first) | (codes == second)) for first, second in pairs]
        duals = [
            DualProblem.classification(np.where(codes[own] == first, 1.0, -1.0), C[own])
            for own, (first, _) in zip(rows, pairs, strict=True)
        ]
        return cls(tuple(rows), DualProblem.stacked(duals), len(codes))

    @classmethod
    def outputs(cls, Y: FloatArray, C: FloatArray) -> Machines:
        """Kernel ridge regression of one or several outputs, all of which see all rows.

        Parameters
        ----------
        Y : ndarray of shape (m, n_outputs)
            Targets of each output.
        C : ndarray of shape (m,)
            Weight of the loss of each row.
        """
        return cls((np.arange(len(Y)),) * Y.shape[1], DualProblem.ridge(Y, C), len(Y))

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def share_rows(self) -> bool:
        """Whether there are several machines and all of them see all rows."""
        return len(self.rows) > 1 and all(len(own) == self.n_rows for own in self.rows)

    @property
    def sizes(self) -> list[int]:
        """Number of rows of each kernel matrix; machines on the same rows share theirs."""
        return [self.n_rows] if self.share_rows else [len(own) for own in self.rows]

    def bind(
        self,
        kernels: KernelSet,
        X: FloatArray,
        dtype: DTypeLike,
        n_jobs: int | None,
        span: Any = None,
    ) -> BoundKernelSet:
        """Bind a resolved kernel set to the rows of all machines.

        X holds the scaled training rows. If their span is given, the parameter is that of the
        span.
        """
        return bind_to_machines(kernels, X, self.rows, dtype=dtype, n_jobs=n_jobs, span=span)

    def spread(self, w: FloatArray) -> FloatArray:
        """Coefficients of each machine on all merged rows, of shape (n_machines, n_rows)."""
        return stacked_to_merged(self.rows, self.n_rows, w)


def class_pairs(n_classes: int) -> list[tuple[int, int]]:
    """Pairs of classes; the first class of each pair is the one with positive scores.

    The signs are those of scikit-learn's ``SVC``: with two classes, scores are positive for the
    second class; with more, for the first class of a pair.
    """
    return [(1, 0)] if n_classes == 2 else list(combinations(range(n_classes), 2))


def winners(scores: FloatArray, pairs: Sequence[tuple[int, int]], n_classes: int) -> IntArray:
    """The class that wins most of its pairs; if several do, the first of them.

    A score of zero is a vote for the second class of a pair, as in LIBSVM.
    """
    if n_classes == 2:  # the same rule; this is the path of most single-row predictions
        return (scores[:, 0] > 0).astype(np.intp)
    votes = np.zeros((len(scores), n_classes))
    for score, (first, second) in zip(scores.T, pairs, strict=True):
        votes[:, first] += score > 0
        votes[:, second] += score <= 0
    winner: IntArray = votes.argmax(axis=1)
    return winner


def one_vs_rest_scores(
    scores: FloatArray, pairs: Sequence[tuple[int, int]], n_classes: int
) -> FloatArray:
    """A score for each class: the number of pairs it wins, and its scores to break ties.

    The contribution of the scores is less than a third of a vote. A score of zero is a vote for
    the first class of a pair, as in scikit-learn's ``SVC``.
    """
    votes = np.zeros((len(scores), n_classes))
    confidence = np.zeros((len(scores), n_classes))
    for score, (first, second) in zip(scores.T, pairs, strict=True):
        votes[:, first] += score >= 0
        votes[:, second] += score < 0
        confidence[:, first] += score
        confidence[:, second] -= score
    result: FloatArray = votes + confidence / (3.0 * (np.abs(confidence) + 1.0))
    return result
