"""The scaling of raw features to the unit cube."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tessella.kernels._base import FloatArray


@dataclass(frozen=True)
class UnitBox:
    """The affine map of the training data, without its constant columns, to [0, 1]ⁿ.

    Constant columns are dropped, because they carry no information but would shrink the
    tessellated part of the kernel and duplicate a monomial.

    Attributes
    ----------
    n_features_in : int
        Number of columns of the raw data.
    kept : ndarray of int
        Numbers of the columns that are kept, which are those that vary.
    offset : ndarray
        Minimum of each kept column.
    span : ndarray
        Range of each kept column.
    """

    n_features_in: int
    kept: NDArray[np.intp]
    offset: FloatArray
    span: FloatArray

    @classmethod
    def identity(cls, n_features: int) -> UnitBox:
        """Return the map that does not change rows."""
        return cls(n_features, np.arange(n_features), np.zeros(n_features), np.ones(n_features))

    @classmethod
    def fit(cls, X: FloatArray, *, keep_constant: bool = False) -> UnitBox:
        """Return the map for the range of the rows of X.

        With `keep_constant`, constant columns are kept and mapped to zero, so that the columns
        keep their numbers.
        """
        low, high = X.min(axis=0), X.max(axis=0)
        with np.errstate(over="ignore"):
            span = high - low
        if not np.isfinite(span).all():
            raise ValueError(
                f"The range of feature {int(np.flatnonzero(~np.isfinite(span))[0])} overflows "
                "float64; rescale it."
            )
        # A column whose spread is within the rounding error of its values is constant.
        noise = 4 * np.finfo(float).eps * np.maximum(np.abs(low), np.abs(high))
        varying = span > noise
        if keep_constant:
            return cls(X.shape[1], np.arange(X.shape[1]), low, np.where(varying, span, np.inf))
        kept = np.flatnonzero(varying)
        return cls(X.shape[1], kept, low[kept], span[kept])

    def apply(self, X: FloatArray) -> FloatArray:
        """Return scaled rows of raw data; training rows are mapped to [0, 1]."""
        if X.ndim != 2 or X.shape[1] != self.n_features_in:
            raise ValueError(
                f"Expected rows with {self.n_features_in} features, got shape {X.shape}."
            )
        scaled: FloatArray = (X[:, self.kept] - self.offset) / self.span
        return scaled
