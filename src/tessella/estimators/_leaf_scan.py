"""The first pass over many rows: their number, range and classes, and a sample of them."""

from __future__ import annotations

from dataclasses import dataclass
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
    wanted = ScanSettings(count, classify, column)
    seen = Seen.nothing()
    for batch in source.batches():
        seen = seen.plus(Seen.of(batch, wanted), wanted)
    return seen.scan(wanted)


@dataclass(frozen=True)
class ScanSettings:
    """What a scan looks for; see :func:`scan`."""

    count: int
    classify: bool
    column: int = -1


@dataclass(frozen=True)
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

    def candidates(self, wanted: ScanSettings) -> _Held:
        """Return the first ones of rows in the order of their ranks, of all and of each class."""
        kept = np.arange(len(self.rank)) < wanted.count
        if wanted.classify:
            _, code, count = np.unique(self.y, return_inverse=True, return_counts=True)
            order = np.argsort(code, kind="stable")
            place = np.arange(len(code)) - np.repeat(np.cumsum(count) - count, count)
            kept[order[place < _OF_EACH_CLASS]] = True
        return self.subset(kept)

    def extremes(self) -> _Held:
        """Return the rows with the smallest and the largest value of each feature.

        Rows are in the order of their hash values, so that of equal values the same row is taken.
        """
        ends = np.concatenate([self.X.argmin(axis=0), self.X.argmax(axis=0)])
        return self.subset(np.unique(ends))


@dataclass(frozen=True)
class Seen:
    """What some of the rows tell; parts of the rows add up to all of them.

    Attributes
    ----------
    n_rows : int
        Number of rows of positive weight.
    total : float
        Sum of their weights.
    held : _Held or None
        Rows that may belong to the sample; None without rows.
    extremes : _Held or None
        Rows at the ends of the range of a feature.
    of_class : dict
        Sum of the weights of each label.
    classes : ndarray or None
        Sorted labels.
    groups : ndarray
        Sorted values of the column of groups.
    """

    n_rows: int
    total: float
    held: _Held | None
    extremes: _Held | None
    of_class: dict[Any, float]
    classes: NDArray[Any] | None
    groups: FloatArray

    @classmethod
    def nothing(cls) -> Seen:
        """Return what no rows tell."""
        return cls(0, 0.0, None, None, {}, None, np.empty(0))

    @classmethod
    def of(cls, batch: Batch, wanted: ScanSettings) -> Seen:
        """Return what the rows of a batch tell."""
        used = np.flatnonzero(batch.weight > 0)
        if not len(used):
            return cls.nothing()
        X, y, weight = batch.X[used], batch.y[used], batch.weight[used]
        rows = _Held(X, y, weight, row_hash(np.column_stack([X, target_numbers(y)]))).merged()
        classes, of_class = _weights_of_classes(y, weight) if wanted.classify else (None, {})
        return cls(
            n_rows=len(used),
            total=float(weight.sum()),
            held=rows.candidates(wanted),
            extremes=rows.extremes(),
            of_class=of_class,
            classes=classes,
            groups=np.unique(X[:, wanted.column]) if wanted.column >= 0 else np.empty(0),
        )

    def plus(self, other: Seen, wanted: ScanSettings) -> Seen:
        """Return what these rows and those that follow them tell."""
        if self.held is None or self.extremes is None:
            return other
        if other.held is None or other.extremes is None:
            return self
        of_class = dict(self.of_class)
        for label, total in other.of_class.items():
            of_class[label] = of_class.get(label, 0.0) + total
        held = self.held.plus(other.held)
        if len(held.rank) > _MANY * (wanted.count + _OF_EACH_CLASS * len(of_class)):
            held = held.candidates(wanted)
        return Seen(
            n_rows=self.n_rows + other.n_rows,
            total=self.total + other.total,
            held=held,
            extremes=self.extremes.plus(other.extremes).extremes(),
            of_class=of_class,
            classes=_joined_labels(self.classes, other.classes),
            groups=np.union1d(self.groups, other.groups),
        )

    def scan(self, wanted: ScanSettings) -> Scan:
        """Return what all rows tell.

        Raises
        ------
        ValueError
            If there are no rows of positive weight.
        """
        if self.held is None or self.extremes is None:
            raise ValueError("There are no rows of positive weight to learn from.")
        chosen = self.held.candidates(wanted)
        # A row at an end of the range may be among the others already.
        new = ~np.isin(self.extremes.rank, chosen.rank)
        chosen = chosen.plus(self.extremes.subset(new))
        labels = [] if self.classes is None else self.classes.tolist()
        return Scan(
            n_rows=self.n_rows,
            total_weight=self.total,
            low=self.extremes.X.min(axis=0),
            high=self.extremes.X.max(axis=0),
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


def _weights_of_classes(
    y: NDArray[Any], weight: FloatArray
) -> tuple[NDArray[Any], dict[Any, float]]:
    """Return the sorted labels, and the sum of the weights of each of them."""
    labels, place = np.unique(y, return_inverse=True)
    totals = np.bincount(place, weight).tolist()
    return labels, dict(zip(labels.tolist(), totals, strict=True))


def _joined_labels(first: NDArray[Any] | None, second: NDArray[Any] | None) -> NDArray[Any] | None:
    if first is None or second is None:
        return None
    return np.unique(np.concatenate([first, second]))


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
