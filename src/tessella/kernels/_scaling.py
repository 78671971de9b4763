"""The scaling of raw features to the unit cube: a monotone map for each feature, kept as knots."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tessella.backend._lazy import cached_property
from tessella.kernels._base import FloatArray

#: Names of the scalings that :meth:`UnitBox.fit` knows.
SCALINGS = ("range", "quantile", "robust")

_LEVELS = 100  # equally spaced quantiles, each of which is enclosed by two knots
_DOUBLINGS = 20  # of the distance from the median, up to which the tails are compressed smoothly
_STEPS_PER_DOUBLING = 4  # knots between a distance from the median and twice that distance

_BLOCK_ENTRIES = 1_000_000  # of the columns that are sorted at a time

_Curve = tuple[FloatArray, FloatArray]


@dataclass(frozen=True, eq=False)
class UnitBox:
    """The map of the training data, without its constant columns, to [0, 1]ⁿ.

    Each feature has an increasing, piecewise linear map of its own. The smallest training value is
    mapped to 0 and the largest to 1, whatever the scaling:

    - "range" is the affine map. It goes on beyond the training range.
    - "quantile" maps a value to the weight of all training values below it and half of the weight
      of the values that are equal to it, relative to the weight of all values, and stretches the
      result to [0, 1]. At most 200 knots are kept; a training value is mapped to within 0.011 of
      its quantile. Values outside the training range are moved to its edge.
    - "robust" is affine between the quartiles and compresses the tails. With z the distance from
      the median in units of half the interquartile range, ``u = ½ + z/4`` for ``|z| ≤ 1`` and
      ``u = 1 - 1/(4z)`` for z ≥ 1, mirrored for z ≤ -1, so that twice the distance from the median
      halves the distance to the edge of the cube. The tails are linear between knots, four to
      each doubling. The result is stretched to [0, 1]. Values outside the training range are moved
      to its edge. If the quartiles are equal, the mean distance from the median takes the place of
      half the interquartile range.

    Afterwards a feature can be pulled towards the centre of the cube, x' = ½ + s (x - ½) with s in
    (0, 1], so that the kernel depends less on it.

    Constant columns are dropped, because they carry no information but would shrink the
    tessellated part of the kernel and duplicate a monomial.

    Attributes
    ----------
    n_features_in : int
        Number of columns of the raw data.
    kept : ndarray of int
        Numbers of the columns that are kept, which are those that vary.
    knots : ndarray of shape (n_knots,)
        Raw values of the knots of the first kept column, in increasing order, followed by those of
        the next one and so on.
    heights : ndarray of shape (n_knots,)
        Scaled value at each knot.
    counts : ndarray of int of shape (n_kept,)
        Number of knots of each kept column, at least two.
    clips : bool
        Whether values outside the training range are moved to its edge. Otherwise the map
        continues with the slope of its range.

    Examples
    --------
    >>> import numpy as np
    >>> from tessella.kernels import UnitBox
    >>> X = np.array([[0.0], [0.0], [1.0], [1000.0]])
    >>> UnitBox.fit(X).apply(X).ravel().tolist()
    [0.0, 0.0, 0.001, 1.0]
    >>> UnitBox.fit(X, scaling="quantile").apply(X).ravel().tolist()
    [0.0, 0.0, 0.6, 1.0]
    """

    n_features_in: int
    kept: NDArray[np.intp]
    knots: FloatArray
    heights: FloatArray
    counts: NDArray[np.intp]
    clips: bool = False

    @classmethod
    def identity(cls, n_features: int) -> UnitBox:
        """Return the map that does not change rows."""
        ends = np.zeros(n_features), np.ones(n_features)
        return cls._of_ranges(n_features, np.arange(n_features), *ends)

    @classmethod
    def fit(
        cls,
        X: FloatArray,
        weight: FloatArray | None = None,
        *,
        scaling: str = "range",
        feature_scale: FloatArray | None = None,
        keep_constant: bool = False,
    ) -> UnitBox:
        """Return the map for the rows of X.

        Parameters
        ----------
        X : ndarray of shape (m, n_features)
            Training rows.
        weight : ndarray of shape (m,), optional
            Positive weight of each row. A weight of k is equivalent to k copies of the row.
        scaling : {"range", "quantile", "robust"}, default="range"
            Kind of the map.
        feature_scale : ndarray of shape (n_features,), optional
            Factor s in (0, 1] that pulls each feature towards the centre of the cube.
        keep_constant : bool, default=False
            Whether to keep constant columns, mapped to the lower edge, so that the columns keep
            their numbers.

        Returns
        -------
        UnitBox
            The map.
        """
        low, varying = X.min(axis=0), varying_columns(X)
        kept = np.arange(X.shape[1]) if keep_constant else np.flatnonzero(varying)
        weights = np.ones(len(X)) if weight is None else weight
        fit_curves = _checked_curves(scaling)
        if fit_curves is None:
            box = cls._of_ranges(X.shape[1], kept, low, np.where(varying, X.max(axis=0), np.inf))
        else:
            found = dict(_curves_by_column(fit_curves, X, np.flatnonzero(varying), weights))
            curves = [found[j] if varying[j] else _constant_curve(low[j]) for j in kept.tolist()]
            box = cls._of_curves(X.shape[1], kept, curves, clips=True)
        return box if feature_scale is None else box._pulled(feature_scale[kept])

    @classmethod
    def _of_ranges(
        cls, n_features: int, kept: NDArray[np.intp], low: FloatArray, high: FloatArray
    ) -> UnitBox:
        """Return the map from [low, high] to [0, 1] of each kept column."""
        knots = np.column_stack([low[kept], high[kept]]).ravel()
        heights = np.tile([0.0, 1.0], len(kept))
        return cls(n_features, kept, knots, heights, np.full(len(kept), 2, dtype=np.intp))

    @classmethod
    def _of_curves(
        cls, n_features: int, kept: NDArray[np.intp], curves: list[_Curve], *, clips: bool
    ) -> UnitBox:
        empty = np.zeros(0)
        knots = np.concatenate([empty, *(knots for knots, _ in curves)])
        heights = np.concatenate([empty, *(heights for _, heights in curves)])
        counts = np.array([len(knots) for knots, _ in curves], dtype=np.intp)
        return cls(n_features, kept, knots, heights, counts, clips)

    def _pulled(self, scale: FloatArray) -> UnitBox:
        heights = 0.5 + np.repeat(scale, self.counts) * (self.heights - 0.5)
        return UnitBox(self.n_features_in, self.kept, self.knots, heights, self.counts, self.clips)

    @cached_property
    def _ends(self) -> NDArray[np.intp]:
        """Position of the first knot of each kept column, and the number of all knots."""
        return np.concatenate([[0], np.cumsum(self.counts)]).astype(np.intp)

    @cached_property
    def offset(self) -> FloatArray:
        """Smallest training value of each kept column."""
        return self.knots[self._ends[:-1]]

    @cached_property
    def span(self) -> FloatArray:
        """Range of each kept column, which is infinite for a constant one."""
        return self.knots[self._ends[1:] - 1] - self.offset

    @cached_property
    def floor(self) -> FloatArray:
        """Scaled value of the smallest training value of each kept column."""
        return self.heights[self._ends[:-1]]

    @cached_property
    def feature_scale(self) -> FloatArray:
        """Length of the scaled range of each kept column, which is 1 without a feature scale."""
        return self.heights[self._ends[1:] - 1] - self.floor

    @cached_property
    def _curved(self) -> list[int]:
        """Positions of the kept columns whose map is not affine."""
        return [int(k) for k in np.flatnonzero(self.counts > 2)]

    @cached_property
    def _to_unit_interval(self) -> bool:
        """Whether all maps are affine from the training range to [0, 1], and go on beyond it."""
        pulled = (self.feature_scale != 1.0).any() or (self.floor != 0.0).any()
        return not (self.clips or self._curved or pulled)

    def _curve(self, k: int) -> _Curve:
        own = slice(self._ends[k], self._ends[k + 1])
        return self.knots[own], self.heights[own]

    def apply(self, X: FloatArray) -> FloatArray:
        """Return scaled rows of raw data; training rows are mapped to the unit cube."""
        if X.ndim != 2 or X.shape[1] != self.n_features_in:
            raise ValueError(
                f"Expected rows with {self.n_features_in} features, got shape {X.shape}."
            )
        raw = X[:, self.kept]
        scaled: FloatArray = (raw - self.offset) / self.span
        if self._to_unit_interval:
            return scaled
        scaled = self.floor + self.feature_scale * scaled
        if self.clips:
            np.clip(scaled, self.floor, self.floor + self.feature_scale, out=scaled)
        for k in self._curved:
            scaled[:, k] = np.interp(raw[:, k], *self._curve(k))
        return scaled

    def invert(self, scaled: FloatArray) -> FloatArray:
        """Return raw values of the kept columns of scaled rows, of shape (m, n_kept).

        Scaled values beyond the edges of a map that clips are moved to the edges.
        """
        raw: FloatArray = self.offset + self.span * ((scaled - self.floor) / self.feature_scale)
        if self.clips:
            np.clip(raw, self.offset, self.offset + self.span, out=raw)
        for k in self._curved:
            knots, heights = self._curve(k)
            raw[:, k] = np.interp(scaled[:, k], heights, knots)
        return raw

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, UnitBox):
            return NotImplemented
        return self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple[Any, ...]:
        arrays = (self.kept, self.knots, self.heights, self.counts)
        return (self.n_features_in, self.clips, *(array.tobytes() for array in arrays))


def _rounding(low: Any, high: Any) -> Any:
    """Return the largest difference of two numbers that rounding may have caused."""
    return 4 * np.finfo(float).eps * np.maximum(np.abs(low), np.abs(high))


def varying_columns(X: FloatArray) -> NDArray[np.bool_]:
    """Return which columns of X are not constant; ValueError if the range of one overflows.

    A column whose spread is within the rounding error of its values is constant.
    """
    low, high = X.min(axis=0), X.max(axis=0)
    with np.errstate(over="ignore"):
        span = high - low
    if not np.isfinite(span).all():
        raise ValueError(
            f"The range of feature {int(np.flatnonzero(~np.isfinite(span))[0])} overflows "
            "float64; rescale it."
        )
    varying: NDArray[np.bool_] = span > _rounding(low, high)
    return varying


def check_scaling(scaling: Any) -> None:
    """Raise ValueError for a name that :meth:`UnitBox.fit` does not know."""
    if not (isinstance(scaling, str) and scaling in SCALINGS):
        raise ValueError(f"scaling={scaling!r} is unknown; use one of {SCALINGS}.")


def _checked_curves(scaling: str) -> Callable[[FloatArray, FloatArray], list[_Curve]] | None:
    """Return what fits the curves of columns; None for a line between the ends of each range."""
    check_scaling(scaling)
    return {"range": None, "quantile": _quantile_curves, "robust": _robust_curves}[scaling]


def _curves_by_column(
    fit_curves: Callable[[FloatArray, FloatArray], list[_Curve]],
    X: FloatArray,
    columns: NDArray[np.intp],
    weight: FloatArray,
) -> Iterator[tuple[int, _Curve]]:
    """Yield the number and the curve of some columns, many of them with each call of numpy."""
    step = max(1, _BLOCK_ENTRIES // len(X))
    for begin in range(0, len(columns), step):
        block = columns[begin : begin + step]
        for own, levels, mass in _distinct(X[:, block], weight):
            yield from zip(block[own].tolist(), fit_curves(levels, mass), strict=True)


def _constant_curve(value: float) -> _Curve:
    """Return the map of every value to zero: the whole range is infinitely far away."""
    return np.array([value, np.inf]), np.array([0.0, 1.0])


def _quantile_curves(levels: FloatArray, mass: FloatArray) -> list[_Curve]:
    """Return the curves of columns with as many distinct values, from the rows of two arrays."""
    total = mass.sum(axis=1, keepdims=True)
    quantiles = (np.cumsum(mass, axis=1) - 0.5 * mass) / total
    if levels.shape[1] <= 2 * _LEVELS:
        return list(zip(levels, _stretched(quantiles), strict=True))
    # Of columns without equal values and weights, all quantiles are the same.
    alike = bool((quantiles == quantiles[0]).all())
    knots = [_knots(own) for own in (quantiles[:1] if alike else quantiles)]
    curves = zip(levels, quantiles, knots * len(levels) if alike else knots, strict=True)
    return [(values[own], _stretched(heights[own])) for values, heights, own in curves]


def _knots(quantiles: FloatArray) -> NDArray[np.intp]:
    """Return the positions of the values at some levels of the quantiles."""
    # Both neighbours of each level are knots, so that the jump at a frequent value is kept.
    above = np.searchsorted(quantiles, np.linspace(quantiles[0], quantiles[-1], _LEVELS))
    return np.unique(np.concatenate([above, np.maximum(above - 1, 0)]))


def _robust_curves(levels: FloatArray, mass: FloatArray) -> list[_Curve]:
    """Return the curves of columns with as many distinct values, from the rows of two arrays."""
    return [_robust_curve(*one) for one in zip(levels, mass, strict=True)]


def _robust_curve(levels: FloatArray, mass: FloatArray) -> _Curve:
    low, high = levels[0], levels[-1]
    middle, half = _centre_and_spread(levels, mass)
    tail = 2.0 ** (np.arange(_STEPS_PER_DOUBLING * _DOUBLINGS + 1) / _STEPS_PER_DOUBLING)
    with np.errstate(over="ignore"):
        inner = middle + half * np.concatenate([-tail[::-1], tail])
        knots = np.unique(np.concatenate([[low, high], inner[(inner > low) & (inner < high)]]))
        z = (knots - middle) / half
    squeezed = 1.0 - 0.25 / np.maximum(np.abs(z), 1.0)
    outer = np.where(z > 0, squeezed, 1.0 - squeezed)
    return knots, _stretched(np.where(np.abs(z) <= 1.0, 0.5 + 0.25 * z, outer))


def _centre_and_spread(levels: FloatArray, mass: FloatArray) -> tuple[float, float]:
    """Return the weighted median, and half of the interquartile range or what replaces it."""
    share = np.cumsum(mass) / mass.sum()
    lower, median, upper = levels[np.searchsorted(share, [0.25, 0.5, 0.75])].tolist()
    half = 0.5 * (upper - lower)
    if half > 0:
        return median, half
    span = levels[-1] - levels[0]  # divided by, because a sum of distances could overflow
    return median, float(span * np.average(np.abs(levels - median) / span, weights=mass))


def _distinct(
    X: FloatArray, weight: FloatArray
) -> Iterator[tuple[NDArray[np.intp], FloatArray, FloatArray]]:
    """Yield the distinct values of columns in increasing order, and the total weight of each.

    Values that differ by rounding only count as one value, the smallest of them. Columns with the
    same number of values come together: their numbers, and a row of values and of weights for each.
    """
    ordered, weights = _ordered(X, weight)
    first = np.ones(ordered.shape, dtype=bool)
    first[:, 1:] = np.diff(ordered, axis=1) > _rounding(ordered[:, :-1], ordered[:, 1:])
    counts = first.sum(axis=1)
    for count in np.unique(counts).tolist():
        own = np.flatnonzero(counts == count)
        shape = len(own), count
        place = np.cumsum(first[own]) - 1
        mass = np.bincount(place, weights=weights[own].ravel()).astype(np.float64)
        yield own, ordered[own][first[own]].reshape(shape), mass.reshape(shape)


def _ordered(X: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the values of each column in increasing order as a row, and their weights."""
    columns = np.ascontiguousarray(X.T) + 0.0  # of the zeros, there is only one then
    if (weight == weight[0]).all():  # which value has which weight does not matter
        return np.sort(columns, axis=1), np.broadcast_to(weight, columns.shape)
    order = np.argsort(columns, axis=1, kind="stable")
    return np.take_along_axis(columns, order, axis=1), weight[order]


def _stretched(heights: FloatArray) -> FloatArray:
    """Map the first height of each row to 0 and the last one to 1."""
    low, high = heights[..., :1], heights[..., -1:]
    result: FloatArray = (heights - low) / (high - low)
    return result
