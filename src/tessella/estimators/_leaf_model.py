"""What a model of several leaves consists of, and its predictions."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tessella.backend import limit_blas
from tessella.kernels import LearnedKernel
from tessella.kernels._learned import KernelPredictor
from tessella.partitions import Partition

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

# Support vectors of leaves that are kept ready for predictions.
_MOST_READY = 500_000


@dataclass(frozen=True, eq=False)
class BaseFunction:
    """The function that the machines of the leaves correct.

    Attributes
    ----------
    kernel : LearnedKernel
        Kernel that was learned on a sample of the rows.
    support_vectors : ndarray of shape (n_support, n_features)
        Support vectors.
    dual_coef : ndarray of shape (n_machines, n_support)
        Coefficients of each machine, in units of the target.
    intercept : ndarray of shape (n_machines,)
        Constants, in units of the target.
    """

    kernel: LearnedKernel
    support_vectors: FloatArray
    dual_coef: FloatArray
    intercept: FloatArray

    @classmethod
    def of(cls, model: Any) -> BaseFunction:
        """Return the function of a fitted estimator."""
        return cls(model.kernel_, model.support_vectors_, model.dual_coef_, model.intercept_)

    def predictor(self) -> KernelPredictor:
        """Return the support vectors, ready for predictions."""
        return self.kernel.predictor(self.support_vectors, self.dual_coef.T)

    def scores(self, X: FloatArray, n_jobs: int | None) -> FloatArray:
        """Return the scores of rows, of shape (n_samples, n_machines)."""
        scores: FloatArray = self.predictor().scores(X, n_jobs=n_jobs) + self.intercept
        return scores


@dataclass(frozen=True, eq=False)
class FittedLeaves:
    """The parts of a model of several leaves that a model of one machine does not have.

    Attributes
    ----------
    partition : Partition
        Trees that divide rows into leaves.
    base : BaseFunction
        Function that the machines of the leaves correct.
    ends : ndarray of int of shape (n_leaves,)
        Number of the support vectors of each leaf and of the leaves before it.
    """

    partition: Partition
    base: BaseFunction
    ends: IntArray

    @property
    def n_leaves(self) -> int:
        """Number of leaves of all trees."""
        return self.partition.n_leaves

    def support_of(self, k: int) -> slice:
        """Return the support vectors of a leaf."""
        return slice(int(self.ends[k - 1]) if k else 0, int(self.ends[k]))

    def is_sound(self, n_support: int, n_machines: int, n_features: int, n_scaled: int) -> bool:
        """Return whether the parts fit together."""
        ends, base = self.ends, self.base
        count = len(base.support_vectors)
        return (
            isinstance(self.partition, Partition)
            and self.partition.is_sound(n_scaled, n_features)
            and ends.dtype.kind == "i"
            and ends.shape == (self.partition.n_leaves,)
            and bool((np.diff(ends, prepend=0) >= 0).all())
            and int(ends[-1]) == n_support
            and base.support_vectors.shape == (count, n_features)
            and base.dual_coef.shape == (n_machines, count)
            and base.intercept.shape == (n_machines,)
        )


class LeavesPredictor:
    """Predictions of a model of several leaves: the mean over its trees.

    Parameters
    ----------
    kernel : LearnedKernel
        Kernel of all leaves.
    support_vectors : ndarray of shape (n_support, n_features)
        Support vectors, one leaf after the other.
    dual_coef : ndarray of shape (n_machines, n_support)
        Their coefficients.
    leaves : FittedLeaves
        Partition and base function.
    intercept : ndarray of shape (n_leaves, n_machines)
        Constants of the machines of each leaf.
    """

    def __init__(
        self,
        kernel: LearnedKernel,
        support_vectors: FloatArray,
        dual_coef: FloatArray,
        leaves: FittedLeaves,
        intercept: FloatArray,
    ) -> None:
        self._sources = (kernel, support_vectors, dual_coef, leaves, intercept)
        self._kernel, self._leaves = kernel, leaves
        self._support_vectors, self._dual_coef = support_vectors, dual_coef
        self._intercept = intercept
        self._base = leaves.base.predictor()
        self._ready: OrderedDict[int, KernelPredictor] = OrderedDict()
        self._n_ready = 0
        self._lock = Lock()

    def prepared_from(self, *sources: Any) -> bool:
        """Whether these are the very objects that the predictor was prepared from."""
        return all(a is b for a, b in zip(sources, self._sources, strict=True))

    def scores(self, X: FloatArray, n_jobs: int | None) -> FloatArray:
        """Return the scores of rows with their constants, of shape (n_samples, n_machines)."""
        with limit_blas():
            partition = self._leaves.partition
            scores: FloatArray = self._base.scores(X, n_jobs=n_jobs) + self._leaves.base.intercept
            part = np.zeros_like(scores)
            for leaf in partition.leaves_of(self._kernel.box.apply(X), X):
                order = np.argsort(leaf, kind="stable")
                numbers, starts = np.unique(leaf[order], return_index=True)
                for k, rows in zip(numbers, np.split(order, starts[1:]), strict=True):
                    part[rows] += self._scores_of_leaf(int(k), X[rows], n_jobs)
            return scores + part / partition.n_trees

    def _scores_of_leaf(self, k: int, X: FloatArray, n_jobs: int | None) -> FloatArray:
        constant: FloatArray = self._intercept[k]
        own = self._leaves.support_of(k)
        if own.stop == own.start:
            return np.tile(constant, (len(X), 1))
        scores: FloatArray = self._predictor(k).scores(X, n_jobs=n_jobs) + constant
        return scores

    def _predictor(self, k: int) -> KernelPredictor:
        """Return the support vectors of a leaf, ready for predictions."""
        found = self._ready.get(k)
        if found is None:
            own = self._leaves.support_of(k)
            vectors = np.ascontiguousarray(self._support_vectors[own])
            made = self._kernel.predictor(vectors, self._dual_coef[:, own].T)
            found = self._kept(k, made, own.stop - own.start)
        return found

    def _kept(self, k: int, made: KernelPredictor, size: int) -> KernelPredictor:
        """Keep what was prepared for a leaf, unless another thread was faster."""
        with self._lock:
            found = self._ready.setdefault(k, made)
            if found is made:
                self._n_ready += size
            while self._n_ready > _MOST_READY and len(self._ready) > 1:
                gone = self._leaves.support_of(self._ready.popitem(last=False)[0])
                self._n_ready -= gone.stop - gone.start
        return found
