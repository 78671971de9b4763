"""Regression targets in units of their standard deviation, whatever their own units are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

_ROUNDING = 1e-13  # relative to the largest value, below which the deviation of a target is noise


@dataclass(frozen=True)
class StandardisedTarget:
    """A target with weighted mean zero and weighted standard deviation one.

    Attributes
    ----------
    values : ndarray of shape (m,)
        Standardised target.
    mean : float
        Weighted mean of the target.
    scale : float
        Weighted standard deviation of the target; 1 for a constant target.
    """

    values: FloatArray
    mean: float
    scale: float

    @classmethod
    def of(cls, y: FloatArray, weight: FloatArray) -> StandardisedTarget:
        """Standardise a target.

        Parameters
        ----------
        y : ndarray of shape (m,)
            Finite target.
        weight : ndarray of shape (m,)
            Positive weight of each row.

        Raises
        ------
        ValueError
            If the range or the deviation of the target has no place among the numbers of double
            precision.
        """
        with np.errstate(over="ignore"):
            span = float(y.max()) - float(y.min())
        if not np.isfinite(span):
            raise ValueError(f"The range of the target y overflows float64. {_REMEDY}")
        if span == 0.0:
            return cls(np.zeros(len(y)), float(y[0]), 1.0)
        # In units of a power of two, which is exact, squares neither overflow nor vanish.
        exponent = int(np.frexp(np.abs(y).max())[1])
        units = np.ldexp(y, -exponent)
        # A second mean removes the rounding of the first, which matters if y has a large offset.
        first = float(np.average(units, weights=weight))
        second = float(np.average(units - first, weights=weight))
        centred, mean = (units - first) - second, first + second
        deviation = float(np.sqrt(np.average(centred**2, weights=weight)))
        if deviation <= _ROUNDING * float(np.abs(units).max()):
            # The deviation of a constant target is rounding noise and must not be divided by.
            return cls(np.ldexp(centred, exponent), float(np.ldexp(mean, exponent)), 1.0)
        scale = float(np.ldexp(deviation, exponent))
        if scale < np.finfo(float).tiny:
            raise ValueError(
                f"The standard deviation of the target y is {scale:.3g}, too small for full "
                f"precision in float64. {_REMEDY}"
            )
        return cls(centred / deviation, float(np.ldexp(mean, exponent)), scale)

    def require_room(self, weights: FloatArray) -> None:
        """Raise ValueError if coefficients in units of the target could overflow.

        `weights` holds the weight of the loss of each row, which limits its coefficient.
        """
        largest = 2.0 * float(weights.sum()) * float(np.abs(self.values).max(initial=1.0))
        if not np.isfinite(largest * self.scale):
            raise ValueError(
                f"The target y has a standard deviation of {self.scale:.3g}, and with the given C "
                f"the coefficients of a model could overflow float64. {_REMEDY}"
            )


_REMEDY = "Measure it in other units: multiply y by a constant."
