"""Raw features to the unit cube."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tessella.kernels._base import FloatArray


@dataclass(frozen=True)
class UnitBox:
    """The affine map that sends the training data to [0, 1]ⁿ, less its constant columns.

    A constant column carries no information, yet would shrink the tessellated part of the kernel
    and duplicate a monomial, so it is dropped.

    Attributes
    ----------
    n_features_in : int
        Columns of the raw data.
    kept : ndarray of int
        Columns that vary.
    offset, span : ndarray
        Minimum and range of the kept columns.
    """

    n_features_in: int
    kept: NDArray[np.intp]
    offset: FloatArray
    span: FloatArray

    @classmethod
    def identity(cls, n_features: int) -> UnitBox:
        """The map that leaves rows as they are."""
        return cls(n_features, np.arange(n_features), np.zeros(n_features), np.ones(n_features))

    @classmethod
    def fit(cls, X: FloatArray, *, keep_constant: bool = False) -> UnitBox:
        """The box of the rows of X.

        With `keep_constant`, constant columns are kept and sent to zero, so that the columns keep
        their numbers.
        """
        low, high = X.min(axis=0), X.max(axis=0)
        with np.errstate(over="ignore"):
            span = high - low
        if not np.isfinite(span).all():
            raise ValueError(
                f"The range of feature {int(np.flatnonzero(~np.isfinite(span))[0])} overflows "
                "float64; rescale it."
            )
        # A spread within rounding of the values themselves is noise of a constant column.
        noise = 4 * np.finfo(float).eps * np.maximum(np.abs(low), np.abs(high))
        varying = span > noise
        if keep_constant:
            return cls(X.shape[1], np.arange(X.shape[1]), low, np.where(varying, span, np.inf))
        kept = np.flatnonzero(varying)
        return cls(X.shape[1], kept, low[kept], span[kept])

    def apply(self, X: FloatArray) -> FloatArray:
        """Rows of raw data in box coordinates; training rows land in [0, 1]."""
        if X.ndim != 2 or X.shape[1] != self.n_features_in:
            raise ValueError(
                f"Expected rows with {self.n_features_in} features, got shape {X.shape}."
            )
        scaled: FloatArray = (X[:, self.kept] - self.offset) / self.span
        return scaled
