"""The first pass over many rows: their number, range and classes, and a sample of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from tessella.rows import Batch, RowSource

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

_MULTIPLIERS = (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
_OF_EACH_CLASS = 50  # rows of each class that the sample has, if there are as many
_MANY = 2  # times the size of the sample that is held at most


@dataclass(frozen=True)
class Scan:
    """What one pass over the rows tells.

    Attributes
    ----------
    n_rows : int
        Number of rows of positive weight.
    total_weight : float
        Sum of the weights.
    low, high : ndarray of shape (n_features,)
        Range of each feature.
    X, y, weight : ndarray
        A sample of the rows.
    classes : ndarray or None
        Sorted labels, if the target is one of classes.
    class_weight : ndarray of shape (n_classes,)
        Sum of the weights of each class.
    groups : ndarray
        Sorted values of the column of groups; empty without one.
    """

    n_rows: int
    total_weight: float
    low: FloatArray
    high: FloatArray
    X: FloatArray
    y: NDArray[Any]
    weight: FloatArray
    classes: NDArray[Any] | None
    class_weight: FloatArray
    groups: FloatArray


def scan(source: RowSource, count: int, *, classify: bool, column: int = -1) -> Scan:
    """Read all rows once.

    The sample has the `count` distinct rows with the smallest hash values, so that it does not
    depend on the order of the rows, the rows with the smallest and the largest value of each
    feature, so that the range of the sample is that of the data, and some rows of each class. Rows
    with equal features and targets are merged, and their weights are added up.

    Parameters
    ----------
    source : RowSource
        The rows.
    count : int
        Number of rows of the sample.
    classify : bool
        Whether the targets are labels.
    column : int
        Column of groups, or -1.
    """
    seen = _Seen(count, classify, column)
    for batch in source.batches():
        seen.add(batch)
    return seen.scan()


@dataclass
class _Held:
    """Rows that may belong to the sample, with their hash values."""

    X: FloatArray
    y: NDArray[Any]
    weight: FloatArray
    rank: NDArray[np.uint64]

    def subset(self, rows: Any) -> _Held:
        return _Held(self.X[rows], self.y[rows], self.weight[rows], self.rank[rows])

    def plus(self, other: _Held) -> _Held:
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return _Held(*(np.concatenate(pair) for pair in pairs)).merged()

    def merged(self) -> _Held:
        """Return distinct rows in the order of their hash values, with their total weights."""
        rank, first, place = np.unique(self.rank, return_index=True, return_inverse=True)
        weight = np.bincount(place, self.weight).astype(np.float64, copy=False)
        return _Held(self.X[first], self.y[first], weight, rank)


@dataclass
class _Seen:
    """What the rows so far have told."""

    count: int
    classify: bool
    column: int
    n_rows: int = 0
    total: float = 0.0
    low: FloatArray | None = None
    high: FloatArray | None = None
    held: _Held | None = None
    extremes: _Held | None = None
    classes: NDArray[Any] | None = None
    of_class: dict[Any, float] = field(default_factory=dict)
    groups: FloatArray = field(default_factory=lambda: np.empty(0))

    def add(self, batch: Batch) -> None:
        """Take the rows of a batch into account."""
        used = np.flatnonzero(batch.weight > 0)
        if not len(used):
            return
        X, y, weight = batch.X[used], batch.y[used], batch.weight[used]
        self.n_rows += len(used)
        self.total += float(weight.sum())
        rows = _Held(X, y, weight, row_hash(np.column_stack([X, target_numbers(y)]))).merged()
        self._extend_range(rows)
        if self.classify:
            self._count_classes(y, weight)
        if self.column >= 0:
            self.groups = np.union1d(self.groups, X[:, self.column])
        chosen = self._candidates(rows)
        self.held = chosen if self.held is None else self.held.plus(chosen)
        if len(self.held.rank) > _MANY * (self.count + _OF_EACH_CLASS * len(self.of_class)):
            self.held = self._candidates(self.held)

    def _extend_range(self, rows: _Held) -> None:
        """Keep the rows with the smallest and the largest value of each feature."""
        low, high = rows.X.min(axis=0), rows.X.max(axis=0)
        self.low = low if self.low is None else np.minimum(self.low, low)
        self.high = high if self.high is None else np.maximum(self.high, high)
        known = rows if self.extremes is None else self.extremes.plus(rows)
        # Rows are in the order of their hash values, so that of equal values the same row is taken.
        ends = np.concatenate([known.X.argmin(axis=0), known.X.argmax(axis=0)])
        self.extremes = known.subset(np.unique(ends))

    def _count_classes(self, y: NDArray[Any], weight: FloatArray) -> None:
        labels, place = np.unique(y, return_inverse=True)
        for label, total in zip(labels.tolist(), np.bincount(place, weight), strict=True):
            self.of_class[label] = self.of_class.get(label, 0.0) + float(total)
        known = labels if self.classes is None else np.concatenate([self.classes, labels])
        self.classes = np.unique(known)

    def _candidates(self, rows: _Held) -> _Held:
        """Return the first ones of rows in the order of their ranks, of all and of each class."""
        kept = np.arange(len(rows.rank)) < self.count
        if self.classify:
            _, code, count = np.unique(rows.y, return_inverse=True, return_counts=True)
            order = np.argsort(code, kind="stable")
            place = np.arange(len(code)) - np.repeat(np.cumsum(count) - count, count)
            kept[order[place < _OF_EACH_CLASS]] = True
        return rows.subset(kept)

    def scan(self) -> Scan:
        """Return what was seen."""
        if self.held is None or self.extremes is None:
            raise ValueError("There are no rows of positive weight to learn from.")
        assert self.low is not None
        assert self.high is not None
        chosen = self._candidates(self.held)
        # A row at an end of the range may be among the others already.
        new = ~np.isin(self.extremes.rank, chosen.rank)
        chosen = chosen.plus(self.extremes.subset(new))
        labels = [] if self.classes is None else self.classes.tolist()
        return Scan(
            n_rows=self.n_rows,
            total_weight=self.total,
            low=self.low,
            high=self.high,
            X=chosen.X,
            y=chosen.y,
            weight=chosen.weight,
            classes=self.classes,
            class_weight=np.array([self.of_class[label] for label in labels]),
            groups=self.groups,
        )


def target_numbers(y: NDArray[Any]) -> FloatArray:
    """Return targets as numbers; those of text are the same in every process."""
    if y.dtype.kind in "biuf":
        return y.astype(np.float64)
    labels, place = np.unique(y, return_inverse=True)
    numbers: FloatArray = np.array([crc32(str(label).encode()) for label in labels], dtype=float)
    return numbers[place]


def row_hash(X: FloatArray) -> NDArray[np.uint64]:
    """Return a number for each row that looks random and depends on its values alone."""
    values = np.ascontiguousarray(X + 0.0)  # turns -0.0 into 0.0
    bits = values.view(np.uint64)
    result = np.full(len(X), _MULTIPLIERS[0], dtype=np.uint64)
    first, second = (np.uint64(own) for own in _MULTIPLIERS[1:])
    with np.errstate(over="ignore"):
        for column in bits.T:
            result ^= column
            result *= first
            result ^= result >> np.uint64(29)
        result *= second
        result ^= result >> np.uint64(32)
    return result
