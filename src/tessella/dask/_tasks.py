"""What workers do: pure functions of chunks of rows, of coarse leaves and of leaves.

Workers are as fast as there are tasks for all their threads, so that a task uses one thread.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tessella.backend import limit_blas
from tessella.dask._arguments import unpacked
from tessella.estimators._leaf_rows import batch_digest
from tessella.estimators._leaf_scan import ScanSettings, Seen
from tessella.estimators._leaf_store import LeafSupport, RowsOfLeaf, Spread, cut_block
from tessella.partitions import CutTree, Partition
from tessella.rows import ArraySource, Batch

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
Names = NDArray[np.object_] | None
#: Leaf of each row, and the rows as a block of a store.
Piece = tuple[IntArray, FloatArray]
#: A dual vector, and what else the task of a leaf has returned.
Answer = tuple[FloatArray, Any]


def same(value: Any) -> Any:
    """Return a value that several tasks need."""
    return value


# -------------------------------------------------------------------------------------- chunks


def chunk_length(X: Any, y: Any, weight: Any) -> int:
    """Return the number of rows of a chunk, whose parts must agree in it."""
    sizes = {len(part) for part in (X, y, weight) if part is not None}
    if len(sizes) > 1:
        raise ValueError(
            f"A chunk of X, y and sample_weight has {sorted(sizes)} rows. Their chunks must have "
            "the same rows: repartition them alike."
        )
    return sizes.pop()


def chunk_columns(X: Any, y: Any, weight: Any) -> tuple[Any, Any, Any]:
    """Return a chunk as arrays."""
    return np.asarray(X), np.asarray(y), None if weight is None else np.asarray(weight)


def batches_of(X: Any, y: Any, weight: Any, first: int, names: Names) -> Iterator[Batch]:
    """Yield the rows of a chunk, whose first row has a number in the data."""
    if chunk_length(X, y, weight):
        yield from ArraySource(X, y, weight, names, first).batches()


def scan_chunk(X: Any, y: Any, weight: Any, first: int, names: Names, wanted: ScanSettings) -> Seen:
    """Return what a chunk tells."""
    parts = (Seen.of(batch, wanted) for batch in batches_of(X, y, weight, first, names))
    return _sum_of_seen(parts, wanted)


def join_seen(parts: Sequence[Seen], wanted: ScanSettings) -> Seen:
    """Return what several chunks tell, in their order."""
    return _sum_of_seen(parts, wanted)


def _sum_of_seen(parts: Any, wanted: ScanSettings) -> Seen:
    return reduce(lambda known, part: known.plus(part, wanted), parts, Seen.nothing())


def digest_chunk(X: Any, y: Any, weight: Any, first: int, names: Names) -> tuple[int, int]:
    """Return two numbers that depend on the rows of a chunk, and not on their order."""
    digests = [batch_digest(batch) for batch in batches_of(X, y, weight, first, names)]
    return sum(own for own, _ in digests) % 2**64, sum(own for _, own in digests) % 2**64


def spread_chunk(
    X: Any, y: Any, weight: Any, first: int, names: Names, content: bytes, *large: Any
) -> Piece:
    """Return the rows of positive weight of a chunk, once for each tree, with coarse leaves."""
    spread, partition = unpacked(content, large)
    with limit_blas():
        pieces = [
            _piece(replace(spread, n_jobs=1), partition, batch)
            for batch in batches_of(X, y, weight, first, names)
        ]
    if not pieces:
        return _empty(X.shape[1] + 3 + spread.n_machines)
    return join_pieces(pieces)


def _piece(spread: Spread, partition: Partition, batch: Batch) -> Piece:
    rows = spread.rows_of(batch)
    leaves = partition.leaves_of(spread.box.apply(rows.X), rows.X)
    return leaves.ravel(), np.concatenate([rows.block] * partition.n_trees)


def _empty(width: int) -> Piece:
    return np.empty(0, dtype=np.intp), np.empty((0, width))


# -------------------------------------------------------------------------------- coarse leaves


def join_pieces(pieces: Sequence[Piece]) -> Piece:
    """Return the rows of several pieces, in their order."""
    return np.concatenate([leaf for leaf, _ in pieces]), np.concatenate([b for _, b in pieces])


def split_pieces(pieces: Sequence[Piece], bounds: Sequence[int]) -> list[Piece]:
    """Return the rows of several pieces by ranges of leaves between some bounds."""
    leaf, block = join_pieces(pieces)
    place = np.searchsorted(np.asarray(bounds), leaf, side="right") - 1
    chosen = [np.flatnonzero(place == k) for k in range(len(bounds) - 1)]
    return [(leaf[own], block[own]) for own in chosen]


def item(values: Sequence[Any], k: int) -> Any:
    """Return one of several values."""
    return values[k]


def cut_leaf(pieces: Sequence[Piece], content: bytes, *large: Any) -> tuple[CutTree, list[Any]]:
    """Cut the rows of a coarse leaf, and return its tree and the blocks of its leaves."""
    n_features, rule, box = unpacked(content, large)
    with limit_blas():
        return cut_block(join_pieces(pieces)[1], n_features, rule, box)


def leaf_rows(cut: tuple[CutTree, list[FloatArray]], k: int) -> FloatArray:
    """Return the block of a leaf."""
    return cut[1][k]


# --------------------------------------------------------------------------------------- leaves


def leaf_size(block: FloatArray, content: bytes, *large: Any) -> int:
    """Return the number of samples of the machines of a leaf."""
    n_features, targets = unpacked(content, large)
    return int(targets.sizes(RowsOfLeaf.of_block(block, n_features).y))


def run_leaf(
    block: FloatArray, given: Answer | None, size: int, content: bytes, *large: Any
) -> Answer:
    """Run a task on a leaf; `given` is None for a dual vector of zeros."""
    spec, n_features, task, arguments = unpacked(content, large)
    w = _vector(given, size)
    with limit_blas():
        leaf = spec.problem(RowsOfLeaf.of_block(block, n_features))
        found, result = task(leaf, w, *arguments, n_jobs=1)
    return (w if found is None else found), result


def _vector(given: Answer | None, size: int) -> FloatArray:
    """Return a dual vector that may be written to; what comes from the network may not."""
    return np.zeros(size) if given is None else given[0].copy()


def result_of(answer: Answer) -> Any:
    """Return the small part of an answer."""
    return answer[1]


def vector_of(answer: Answer) -> FloatArray:
    """Return the dual vector of an answer."""
    return answer[0]


def given_vector(values: FloatArray) -> Answer:
    """Return a dual vector as if a task had returned it."""
    return values, None


def mixed_vector(first: Answer | None, second: Answer | None, size: int, share: float) -> Answer:
    """Return a dual vector that is moved by a part of the way to another one."""
    return (1.0 - share) * _vector(first, size) + share * _vector(second, size), None


def leaf_support(
    block: FloatArray, given: Answer | None, size: int | None, content: bytes, *large: Any
) -> LeafSupport:
    """Return what a leaf contributes to the model; without machines, `size` is None."""
    spec, n_features, intercepts = unpacked(content, large)
    w = None if size is None else _vector(given, size)
    support: LeafSupport = spec.support(RowsOfLeaf.of_block(block, n_features), w, intercepts)
    return support
