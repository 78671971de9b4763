"""Dictionaries on training rows: their kernel matrices, quadratic forms and products."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial, reduce
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tessella.backend import check_deadline, in_threads
from tessella.backend._lazy import cached_property
from tessella.cones import Nonnegative, Sensitivities
from tessella.kernels._base import (
    BoundKernelSet,
    FloatArray,
    KernelWorkspace,
    Moments,
    as_dual_vector,
)
from tessella.kernels._dictionary import (
    MOST_STACKED,
    MOST_STACKED_BYTES,
    FittedDictionary,
    mirror,
    strips,
)
from tessella.kernels._expansions import GaussianSeries, PolynomialSeries
from tessella.kernels._functions import FunctionKernel

IntArray = NDArray[np.intp]

_PARTS = 16  # sums of a series that are held at a time


class BoundDictionary(BoundKernelSet):
    """Some kernels of a :class:`FittedDictionary` on training rows.

    On all training rows no kernel matrix is kept. The matrices are computed where they are needed,
    in tiles that stay in the cache, because reading them from memory would take about as long. A
    restriction to a few rows, which a Newton iteration evaluates repeatedly, keeps the matrices of
    its kernels as long as they are small.

    Parameters
    ----------
    kernels : FittedDictionary
        The dictionary.
    rows : ndarray of shape (m, n_features)
        Training rows with scaled features.
    dtype : dtype
        Data type of kernel matrices.
    n_jobs : int or None
        Number of threads. None uses all cores that the process may use.
    which : ndarray of int
        Indices of the kernels that are used.
    stacked : bool
        Whether the matrices of all kernels may be kept.
    sharers : int
        Number of machines that share the memory for such matrices.
    """

    kernels: FittedDictionary

    def __init__(
        self,
        kernels: FittedDictionary,
        rows: FloatArray,
        dtype: np.dtype[Any],
        n_jobs: int | None,
        which: IntArray,
        stacked: bool = False,
        sharers: int = 1,
    ) -> None:
        self.kernels = kernels
        self.dtype = dtype
        self.n_samples = len(rows)
        self.cone = Nonnegative(len(which))
        self._rows, self._n_jobs = rows, n_jobs
        self._which: list[int] = which.tolist()
        self._position = {number: k for k, number in enumerate(self._which)}
        self._sharers = sharers
        small = 8 * sharers * len(which) * len(rows) ** 2 <= MOST_STACKED_BYTES
        self._stacked = stacked and small and len(which) <= MOST_STACKED
        self._workspace: KernelWorkspace | None = None

    def restrict(self, rows: IntArray, face: IntArray | None = None) -> BoundDictionary:
        """See :meth:`BoundKernelSet.restrict`."""
        which = np.array(self._which, dtype=np.intp)
        return BoundDictionary(
            self.kernels,
            np.ascontiguousarray(self._rows[rows]),
            np.dtype(np.float64),
            self._n_jobs,
            which if face is None else which[face],
            stacked=True,
            sharers=self._sharers,
        )

    def subset(self, rows: IntArray) -> BoundDictionary:
        """See :meth:`BoundKernelSet.subset`."""
        own, which = np.ascontiguousarray(self._rows[rows]), np.array(self._which, np.intp)
        return BoundDictionary(
            self.kernels, own, self.dtype, self._n_jobs, which, sharers=self._sharers
        )

    @property
    def plain_parameter(self) -> FloatArray:
        """See :meth:`BoundKernelSet.plain_parameter`; equal weights of the kernels on all features.

        A dictionary with kernels on some of the features only has equal weights of all of them.
        """
        general = [self.kernels.kernels[number].features is None for number in self._which]
        chosen = np.array(general, np.float64) if any(general) else np.ones(len(general))
        weights: FloatArray = chosen / chosen.sum()
        return weights

    @cached_property
    def stack(self) -> FloatArray | None:
        """Matrices of all kernels, of shape (n_kernels, m, m), or None if they are not kept."""
        if not self._stacked:
            return None
        m = self.n_samples
        stack = np.empty((len(self._which), m, m))
        for number, tile in self.kernels.tiles(self._rows, self._rows, self._which):
            own = stack[self._position[number]]
            if isinstance(self.kernels.kernels[number], FunctionKernel):
                np.add(tile, tile.T, out=own)  # a user's function may not be exactly symmetric
                own *= 0.5
            else:
                np.copyto(own, tile)
        return stack

    def _spread(self, weights: FloatArray) -> FloatArray:
        """Return weights of all kernels of the dictionary, zero for those that are not used."""
        everything = np.zeros(len(self.kernels))
        everything[self._which] = weights
        return everything

    # -------------------------------------------------------------------------------- matrices

    def factor_gram(
        self, factors: FloatArray, centred: bool, out: NDArray[Any] | None
    ) -> NDArray[Any]:
        """See :meth:`BoundKernelSet.factor_gram`."""
        K = np.empty((self.n_samples, self.n_samples), self.dtype) if out is None else out
        if self.stack is not None:
            flat = self.stack.reshape(len(factors), -1)
            K[...] = (factors @ flat).reshape(K.shape)
        else:
            self._evaluate(factors, K)
        return centre(K) if centred else K

    def _evaluate(self, weights: FloatArray, out: NDArray[Any]) -> None:
        rows, spread = self._rows, self._spread(weights)

        def strip(own: slice) -> None:
            tile = np.empty((own.stop - own.start, len(rows) - own.start))
            self.kernels.combined(spread, rows[own], rows[own.start :], tile)
            square = tile[:, : len(tile)]
            np.copyto(square, 0.5 * (square + square.T))
            out[own, own.start :] = tile

        in_threads(strip, strips(len(rows), len(rows)), self._n_jobs)
        mirror(out, self._n_jobs)

    def svm_kernel(self, factors: FloatArray, workspace: KernelWorkspace) -> NDArray[Any]:
        """See :meth:`BoundKernelSet.svm_kernel`; the matrix is not centred, for use in scores."""
        K = workspace.matrix(self.n_samples)
        if not self._kept(factors, workspace):
            self.factor_gram(factors, False, K)
            workspace.label(self, factors)
        self._workspace = workspace
        return K

    def _kept(self, weights: FloatArray, workspace: KernelWorkspace | None) -> bool:
        if workspace is None:
            return False
        kept = workspace.labelled(self)
        return kept is not None and np.array_equal(kept, weights)

    def diag(self, P: FloatArray) -> FloatArray:
        """See :meth:`BoundKernelSet.diag`."""
        return self.kernels.scaled_diag(self._spread(self.cone.read(P)), self._rows)

    def cross(self, X_new: FloatArray, P: FloatArray) -> FloatArray:
        """See :meth:`BoundKernelSet.cross`."""
        left, spread = self.kernels.scaled(X_new), self._spread(self.cone.read(P))
        K = np.empty((len(left), self.n_samples))
        for rows in strips(*K.shape):
            self.kernels.combined(spread, left[rows], self._rows, K[rows])
        return K

    # ---------------------------------------------------------------------- kernel by kernel

    def tiles(self, own: slice) -> Iterator[tuple[int, FloatArray]]:
        """Yield the position of each kernel and rows of its matrix, in one buffer."""
        for number, tile in self.kernels.tiles(self._rows[own], self._rows, self._which):
            yield self._position[number], tile

    def strips(self, row_entries: int) -> list[slice]:
        """Return slices of training rows so short that ``row_entries`` per row fit the cache."""
        return strips(self.n_samples, row_entries)

    def in_threads(self, work: Callable[[Any], Any], pieces: list[Any]) -> list[Any]:
        """Return the results of pieces of work in their order, using the threads of the binding."""
        return in_threads(work, pieces, self._n_jobs)

    # ---------------------------------------------------------------------------- dual vectors

    def moments(self, w: ArrayLike) -> DictionaryMoments:
        """See :meth:`BoundKernelSet.moments`."""
        return DictionaryMoments(self, as_dual_vector(w, self.n_samples))

    def forms(self, w: FloatArray, face: IntArray | None = None) -> FloatArray:
        """Return ``wᵀ K_i w`` of every kernel of a face.

        A kernel on one feature costs O(support · terms) where its series is short, and others
        cost O(support²) each.
        """
        support = np.flatnonzero(w)
        which = self._chosen(face)
        rows, own_w = self._rows[support], w[support]
        forms, others = np.zeros(len(self.kernels)), set(which)
        for series in (own.for_rows(len(support)) for own in self._series):
            known = series.positions
            if not len(known) or not len(support):
                continue
            sums = partial(_sums_of_strips, series, rows, own_w)
            every = strips(len(rows), len(known))
            size = -(-len(every) // _PARTS)
            groups = [every[k : k + size] for k in range(0, len(every), size)]
            total = reduce(np.add, in_threads(sums, groups, self._n_jobs))
            forms[known] = self.kernels.factors[known] * series.forms(total)
            others.difference_update(known.tolist())
        direct = sorted(others)
        forms[direct] = self._direct_forms(rows, own_w, direct)
        return forms[which]

    @cached_property
    def _series(self) -> list[GaussianSeries | PolynomialSeries]:
        """Kernels on one feature whose quadratic forms need no pass over pairs of rows."""
        kernels = self.kernels.kernels
        found: list[GaussianSeries | PolynomialSeries] = []
        found.append(GaussianSeries.of(kernels, self._which, self._rows))
        if not self.kernels.cosine:  # which divides polynomials by roots of their diagonals
            found.append(PolynomialSeries.of(kernels, self._which))
        return [series for series in found if len(series.positions)]

    def _direct_forms(self, rows: FloatArray, own_w: FloatArray, which: list[int]) -> FloatArray:
        """Return the quadratic forms of some kernels by their matrices, in O(rows²) each."""
        position = {number: k for k, number in enumerate(which)}

        def strip(own: slice) -> FloatArray:
            # Entries right of the diagonal count twice, because K is symmetric.
            weights = np.outer(own_w[own], 2.0 * own_w[own.start :])
            square = weights[:, : own.stop - own.start]
            square *= np.tri(len(square)).T - 0.5 * np.eye(len(square))
            forms = np.zeros(len(which))
            for number, tile in self.kernels.tiles(rows[own], rows[own.start :], which):
                forms[position[number]] = np.vdot(tile, weights)
            return forms

        parts = in_threads(strip, strips(len(rows), len(rows)), self._n_jobs)
        total = np.sum(parts, axis=0) if parts else np.zeros(len(which))
        # A negative value of a positive semidefinite quadratic form is rounding.
        return np.maximum(total, 0.0)

    def _chosen(self, face: IntArray | None) -> list[int]:
        return self._which if face is None else [self._which[k] for k in face]

    def products(self, w: FloatArray, rows: IntArray, face: IntArray | None = None) -> FloatArray:
        """Return ``K_i[rows] @ w`` of the kernels of a face, of shape (len(rows), n_kernels)."""
        support = np.flatnonzero(w)
        which = self._chosen(face)
        position = {number: k for k, number in enumerate(which)}
        right, own_w = self._rows[support], w[support]

        def strip(own: slice) -> FloatArray:
            out = np.empty((own.stop - own.start, len(which)))
            for number, tile in self.kernels.tiles(self._rows[rows[own]], right, which):
                out[:, position[number]] = tile @ own_w
            return out

        parts = in_threads(strip, strips(len(rows), len(support)), self._n_jobs)
        return np.vstack(parts) if parts else np.zeros((0, len(which)))

    def scores(self, weights: FloatArray, w: FloatArray) -> FloatArray:
        """Return ``K(weights) @ w``, by the whole matrix if that saves more than it costs."""
        support = np.flatnonzero(w)
        K = self._whole_matrix(weights, len(support))
        if K is not None:
            product: FloatArray = K[:, support] @ w[support]
            return product
        right, own_w, spread = self._rows[support], w[support], self._spread(weights)

        def strip(own: slice) -> FloatArray:
            tile = np.empty((own.stop - own.start, len(support)))
            self.kernels.combined(spread, self._rows[own], right, tile)
            product: FloatArray = tile @ own_w
            return product

        return np.concatenate(in_threads(strip, strips(self.n_samples, len(support)), self._n_jobs))

    def _whole_matrix(self, weights: FloatArray, n_support: int) -> NDArray[Any] | None:
        """Return K(weights) in the memory of the SVM if it is there or is worth computing.

        By symmetry the whole matrix costs as much as half of its columns, and the SVM solve that
        usually follows needs it too.
        """
        workspace = self._workspace
        if workspace is None or workspace.dtype != np.float64:
            return None
        if self._kept(weights, workspace) or 2 * n_support > self.n_samples:
            return self.svm_kernel(weights, workspace)
        return None


def _sums_of_strips(
    series: GaussianSeries | PolynomialSeries, rows: FloatArray, w: FloatArray, own: list[slice]
) -> FloatArray:
    total = series.sums(rows[own[0]], w[own[0]])
    for strip in own[1:]:
        check_deadline()
        total += series.sums(rows[strip], w[strip])
    return total


def centre(K: NDArray[Any]) -> NDArray[Any]:
    """Replace K by HKH, which is exactly symmetric if K is, and return it."""
    means = K.mean(axis=0, dtype=np.float64)
    means -= 0.5 * means.mean()
    for rows in strips(*K.shape):
        K[rows] -= means[rows, None] + means
    return K


class DictionaryMoments(Moments):
    """Moments of a dual vector for all kernels of a dictionary."""

    def __init__(self, bound: BoundDictionary, w: FloatArray) -> None:
        self._bound = bound
        self._w = w

    @cached_property
    def _stacked_products(self) -> FloatArray | None:
        """``K_i w`` of every kernel, of shape (n_kernels, m), or None if no matrices are kept."""
        stack = self._bound.stack
        if stack is None:
            return None
        return (stack.reshape(-1, len(self._w)) @ self._w).reshape(len(stack), -1)

    @cached_property
    def gradient(self) -> FloatArray:
        """The quadratic form ``wᵀ K_i w`` of every kernel."""
        return self.face_gradient(None)

    def face_gradient(self, face: IntArray | None) -> FloatArray:
        """See :meth:`Moments.face_gradient`; only the kernels of the face are evaluated."""
        products = self._stacked_products
        if products is None:
            return self._bound.forms(self._w, face)
        own = products if face is None else products[face]
        return np.maximum(own @ self._w, 0.0)

    def scores(self, P: FloatArray) -> FloatArray:
        """See :meth:`Moments.scores`."""
        products = self._stacked_products
        return self._bound.scores(P, self._w) if products is None else P @ products

    def factor_scores(self, factors: FloatArray) -> FloatArray:
        """See :meth:`Moments.factor_scores`."""
        return self.scores(factors)

    def sensitivities(self, face: IntArray | None, rows: IntArray) -> WeightSensitivities:
        """See :meth:`Moments.sensitivities`."""
        products = self._stacked_products
        if products is None:
            return WeightSensitivities(self._bound.products(self._w, rows, face))
        own = products if face is None else products[face]
        return WeightSensitivities(np.ascontiguousarray(own[:, rows].T))


class WeightSensitivities(Sensitivities):
    """Sensitivities of scores to weights: ``K_i w`` of every kernel, one column for each.

    Parameters
    ----------
    products : ndarray of shape (f, n_kernels)
        Scores of each kernel alone.
    """

    def __init__(self, products: FloatArray) -> None:
        self._products = products

    @classmethod
    def stacked(cls, parts: Sequence[WeightSensitivities]) -> WeightSensitivities:
        """Return the sensitivities of several sets of rows, one after the other."""
        return cls(np.vstack([part._products for part in parts]))

    def apply(self, M: FloatArray) -> FloatArray:
        """See :meth:`Sensitivities.apply`."""
        scores: FloatArray = self._products @ M
        return scores

    def adjoint(self, v: FloatArray) -> FloatArray:
        """See :meth:`Sensitivities.adjoint`."""
        total: FloatArray = v @ self._products
        return total

    def gram(self) -> FloatArray:
        """See :meth:`Sensitivities.gram`."""
        products: FloatArray = self._products @ self._products.T
        return products

    def transformed(self, F: FloatArray) -> Self:
        """See :meth:`Sensitivities.transformed`."""
        return type(self)(self._products * F)

    def plus(self, other: Self) -> Self:
        """See :meth:`Sensitivities.plus`."""
        return type(self)(self._products + other._products)

    def matrix(self) -> FloatArray:
        """See :meth:`Sensitivities.matrix`."""
        return self._products

    def columns(self) -> FloatArray:
        """See :meth:`Sensitivities.columns`."""
        return self._products
