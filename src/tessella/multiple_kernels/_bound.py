"""A dictionary on the training rows of one or several machines."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from copy import copy

import numpy as np
from numpy.typing import NDArray

from tessella.backend import require_memory
from tessella.estimators._machines import Machines
from tessella.multiple_kernels._dictionary import FittedDictionary, in_threads, strips
from tessella.multiple_kernels._kernels import OnFeatures

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]


class BoundDictionary:
    """Matrices and quadratic forms of a dictionary's kernels on training rows.

    No kernel matrix is kept but one, the weighted sum asked for last. The others are computed in
    tiles that stay in the cache, wherever they are needed: reading them back from memory would
    take about as long as computing them.

    Parameters
    ----------
    dictionary : FittedDictionary
        The kernels.
    X : ndarray of shape (n_rows, n_features)
        Raw rows.
    machines : Machines
        Which of the rows each machine sees.
    n_jobs : int or None
        Threads.
    """

    def __init__(
        self, dictionary: FittedDictionary, X: FloatArray, machines: Machines, n_jobs: int | None
    ) -> None:
        self.dictionary = dictionary
        self.machines = machines
        self.n_jobs = n_jobs
        self._rows = dictionary.scaled(X)
        self.forget()

    def restrict(self, rows: IntArray, machines: Machines) -> BoundDictionary:
        """The same kernels on some of the rows, for machines on those."""
        part = copy(self)
        part.machines, part._rows = machines, np.ascontiguousarray(self._rows[rows])
        part.forget()
        return part

    def forget(self) -> None:
        """Drop the matrix that is kept: the next one is evaluated from the kernels."""
        self._weights: FloatArray | None = None
        self._matrix: FloatArray | None = None

    def key(self, *arrays: FloatArray) -> tuple[object, ...] | None:
        """Equal for equal kernels on equal rows, and equal arrays; None if kernels are functions.

        Of the arrays only a digest: who remembers something by the key must not hold the data.
        """
        dictionary = self.dictionary
        if any(isinstance(kernel, OnFeatures) for kernel in dictionary.kernels):
            return None
        digest = hashlib.sha256()
        for array in (self._rows, dictionary.factors, *arrays):
            digest.update(repr(array.shape).encode())
            digest.update(np.ascontiguousarray(array).data)
        return dictionary.kernels, dictionary.cosine, digest.digest()

    def __len__(self) -> int:
        return len(self.dictionary)

    @property
    def n_rows(self) -> int:
        """Number of training rows."""
        return len(self._rows)

    def matrix(self, weights: FloatArray) -> FloatArray:
        """``K(weights)`` on all rows; the memory is used again for the next one."""

        def evaluate(out: FloatArray) -> None:
            out.fill(0.0)
            self.add(weights, out)

        if self._weights is None or not np.array_equal(weights, self._weights):
            self.keep(weights, evaluate)
        assert self._matrix is not None
        return self._matrix

    def keep(self, weights: FloatArray, write: Callable[[FloatArray], None]) -> None:
        """Keep as ``K(weights)`` what `write` makes of the memory for it."""
        if self._matrix is None:
            self._matrix = np.empty((self.n_rows, self.n_rows))
        self._weights = None  # not valid while it is being written
        write(self._matrix)
        self._weights = weights.copy()

    def add(self, weights: FloatArray, out: FloatArray) -> None:
        """Add ``K(weights)`` to a symmetric matrix; weights of any sign."""
        rows = self._rows
        if not weights.any():
            return

        def strip(own: slice) -> None:
            # From the diagonal on; the rest is its mirror image, so K is symmetric to the bit.
            tile = np.empty((own.stop - own.start, len(rows) - own.start))
            self.dictionary.combined(weights, rows[own], rows[own.start :], tile)
            square = tile[:, : len(tile)]
            np.copyto(square, 0.5 * (square + square.T))
            out[own, own.start :] += tile
            out[own.stop :, own] = out[own, own.stop :].T

        in_threads(strip, strips(len(rows), len(rows)), self.n_jobs)

    def machine_matrices(self, weights: FloatArray) -> Iterator[FloatArray]:
        """``K(weights)`` on the rows of one machine after the other."""
        K = self.matrix(weights)
        for own in self.machines.rows:
            yield K if len(own) == len(K) else K[np.ix_(own, own)]

    def scores(self, weights: FloatArray, w: FloatArray) -> FloatArray:
        """``K(weights) w`` of each machine, for the samples of all of them."""
        spread = self.machines.spread(w)
        support = np.flatnonzero(spread.any(axis=0))
        products = self.matrix(weights)[:, support] @ spread[:, support].T
        return self.machines.collect(products.T)

    def forms(self, w: FloatArray) -> FloatArray:
        """``wᵀ K_i w``, summed over the machines, of every kernel: O(n_kernels · support²)."""
        spread = self.machines.spread(w)
        support = np.flatnonzero(spread.any(axis=0))
        rows, spread = self._rows[support], np.ascontiguousarray(spread[:, support])
        everything = range(len(self))

        def strip(own: slice) -> FloatArray:
            # Entries right of the diagonal count twice.
            weights = spread[:, own].T @ spread[:, own.start :]
            square = weights[:, : own.stop - own.start]
            weights *= 2.0
            square *= np.tri(len(square)).T - 0.5 * np.eye(len(square))
            forms = np.zeros(len(self))
            for number, tile in self.dictionary.tiles(rows[own], rows[own.start :], everything):
                forms[number] = np.vdot(tile, weights)
            return forms

        parts = in_threads(strip, strips(len(rows), len(rows)), self.n_jobs)
        total = np.sum(parts, axis=0) if parts else np.zeros(len(self))
        # A quadratic form of a positive semidefinite matrix: below zero it is rounding.
        return np.maximum(total, 0.0)

    def blocks(
        self, which: Sequence[int], left: IntArray, right: IntArray
    ) -> Iterator[tuple[int, FloatArray]]:
        """Matrices of some kernels between some rows, in one buffer."""
        return self.dictionary.tiles(self._rows[left], self._rows[right], which)

    def products(
        self, which: Sequence[int], rows: IntArray, support: IntArray, w: FloatArray
    ) -> FloatArray:
        """``K_i[rows, support] @ w`` of some kernels, of shape (len(which), len(rows))."""
        position = {number: k for k, number in enumerate(which)}
        right = self._rows[support]

        def strip(own: slice) -> FloatArray:
            out = np.empty((len(which), own.stop - own.start))
            for number, tile in self.dictionary.tiles(self._rows[rows[own]], right, which):
                out[position[number]] = tile @ w
            return out

        parts = in_threads(strip, strips(len(rows), len(support)), self.n_jobs)
        return np.hstack(parts) if parts else np.zeros((len(which), 0))

    def sample_products(self, which: Sequence[int], w: FloatArray) -> FloatArray:
        """``K_i w`` of some kernels for the samples of all machines, of shape (len(which), m)."""
        products = np.zeros((len(which), len(w)))
        for own, part in zip(self.machines.rows, self.machines.dual.machines, strict=True):
            support = np.flatnonzero(w[part])
            products[:, part] = self.products(which, own, own[support], w[part][support])
        return products


def require_dictionary_memory(n_rows: int, sizes: list[int], weighting: str) -> None:
    """Raise MemoryError before anything is computed, when the matrices cannot be held."""
    # A line of weights has two matrices of its own; kernels alone have one, with a part of it.
    whole = 3 if weighting in ("simple", "performance") else 1
    own = (3 if weighting == "learned" else 0) + (1 if len(sizes) > 1 else 0)
    require_memory(
        8 * (whole * n_rows**2 + own * max(sizes) ** 2),
        f"A weighted sum of kernels on {n_rows} rows",
        "Use fewer rows.",
    )
