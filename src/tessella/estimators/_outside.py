"""Rows outside the range of the training data, where predictions extrapolate."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tessella.kernels import LearnedKernel, UnitBox

FloatArray = NDArray[np.float64]

_NAMED_FEATURES = 3  # in a message


class ExtrapolationWarning(UserWarning):
    """Warning that some rows to predict lie outside the range of the training data."""


@dataclass(frozen=True)
class OutsideCount:
    """Number of rows that lie outside the training box, the range of each training feature.

    Attributes
    ----------
    n_rows : int
        Number of rows that were checked.
    n_outside : int
        Number of rows with at least one feature below its smallest or above its largest training
        value.
    n_beyond : int
        Number of rows beyond the margin around the training box within which the kernel has the
        same formula as in training. It is zero for kernels without such a margin.
    per_feature : ndarray of shape (n_features,)
        Number of rows outside the training range of each feature. It is zero for features that
        were constant in training, because the kernel does not use them.
    furthest : ndarray of shape (n_features,)
        Largest distance of a row from the training range of each feature, in multiples of the
        length of that range.
    feature_names : tuple of str
        Names of the features; x0, x1 and so on if the training data had no names.
    rule : str
        Sentence that says what the kernel does with rows outside the box.
    """

    n_rows: int
    n_outside: int
    n_beyond: int
    per_feature: NDArray[np.intp]
    furthest: FloatArray
    feature_names: tuple[str, ...]
    rule: str

    def __str__(self) -> str:
        if not self.n_outside:
            return f"All {self.n_rows} rows lie within the range of the training data."
        return (
            f"{self.n_outside} of {self.n_rows} rows lie outside the range of the training data, "
            f"mostly in {self._worst_features()}. {self.rule}"
        )

    def _worst_features(self) -> str:
        order = np.argsort(-self.per_feature, kind="stable")[:_NAMED_FEATURES]
        return ", ".join(
            f"{self.feature_names[j]!r} ({_rows(self.per_feature[j])}, by up to "
            f"{self.furthest[j]:.2g} times its range)"
            for j in order
            if self.per_feature[j]
        )


def count_outside(
    kernel: LearnedKernel, training_range: FloatArray, X: FloatArray, names: list[str]
) -> OutsideCount:
    """Count the rows of X outside the training box of a kernel.

    Parameters
    ----------
    kernel : LearnedKernel
        The kernel.
    training_range : ndarray of shape (2, n_features)
        Smallest and largest training value of each feature.
    X : ndarray of shape (n_samples, n_features)
        Rows in the units of the training data.
    names : list of str
        Names of the features.

    Returns
    -------
    OutsideCount
        The counts, in total and by feature.
    """
    low, high = training_range
    # Not by the scaling of the kernel, because some kernel sets want features in their own units.
    varying = UnitBox.fit(training_range).kept
    span = (high - low)[varying]
    excess = np.zeros(X.shape)
    beyond = np.maximum(low - X, X - high)[:, varying]
    excess[:, varying] = np.maximum(beyond / span, 0.0)
    outside = excess > 0
    margins = _margins(kernel)
    n_beyond = int((excess > margins).any(axis=1).sum())
    return OutsideCount(
        n_rows=len(X),
        n_outside=int(outside.any(axis=1).sum()),
        n_beyond=n_beyond,
        per_feature=outside.sum(axis=0),
        furthest=excess.max(axis=0, initial=0.0),
        feature_names=tuple(names),
        rule=_rule(kernel, margins, n_beyond),
    )


def warn_outside(counted: OutsideCount, *, stacklevel: int) -> None:
    """Warn if there are rows outside the training box."""
    if counted.n_outside:
        warnings.warn(str(counted), ExtrapolationWarning, stacklevel=stacklevel + 1)


def _margins(kernel: LearnedKernel) -> FloatArray:
    """Margin of each feature within which the kernel has one formula, in multiples of its range.

    It is infinite if the scaling moves values outside the range to its edge. A feature that is
    pulled towards the centre of the cube has a larger margin, because the cube around it is empty.
    """
    margins = np.full(kernel.n_features_in, np.inf)
    if not kernel.box.clips:
        scale = kernel.box.feature_scale
        margins[kernel.box.kept] = (kernel.kernels.margin + 0.5 * (1.0 - scale)) / scale
    return margins


def _rule(kernel: LearnedKernel, margins: FloatArray, n_beyond: int) -> str:
    if kernel.box.clips:
        return (
            "There the scaling moves values to the edge of the range, so predictions are those "
            "of the edge."
        )
    if kernel.kernels.margin == np.inf:
        return f"There {kernel.kernels.outside_rule}."
    least, most = margins[kernel.box.kept].min(), margins[kernel.box.kept].max()
    factor = f"{least:g}" if least == most else f"{least:g} to {most:g}"
    where = f"beyond {factor} times that range"
    if not n_beyond:
        return f"None of them is {where}, the margin within which the kernel has the same formula."
    verb = "is" if n_beyond == 1 else "are"
    return f"{_rows(n_beyond)} of them {verb} {where}, where {kernel.kernels.outside_rule}."


def _rows(count: Any) -> str:
    return "1 row" if count == 1 else f"{count} rows"
