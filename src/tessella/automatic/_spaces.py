"""Spaces of features: an encoding of the table and a scaling to the unit cube."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tessella.automatic._encodings import Encoding
from tessella.kernels import UnitBox

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Space:
    """An encoding and a scaling, with the coordinates of the training rows.

    Attributes
    ----------
    encoding : Encoding
        Encoding of the table.
    scaling : str
        Name of the scaling.
    box : UnitBox
        Map of the encoded features to the unit cube.
    coordinates : ndarray of shape (m, n_columns)
        Training rows in the unit cube, without constant features.
    group : ndarray of int of shape (n_columns,)
        Group of each column; the columns of a group have one scale.
    """

    encoding: Encoding
    scaling: str
    box: UnitBox
    coordinates: FloatArray
    group: IntArray

    @classmethod
    def build(
        cls, encoding: Encoding, features: FloatArray, weight: FloatArray, scaling: str
    ) -> Space:
        """Scale encoded training rows."""
        box = fitted_box(features, weight, scaling)
        _, group = np.unique(encoding.groups[box.kept], return_inverse=True)
        coordinates = np.ascontiguousarray(box.apply(features))
        return cls(encoding, scaling, box, coordinates, group.astype(np.intp))

    @property
    def name(self) -> str:
        """A few words that describe the space."""
        if not self.encoding.categorical.any():
            return self.scaling
        return f"{self.scaling} and {self.encoding.categories}"

    @property
    def n_groups(self) -> int:
        """Number of groups of columns."""
        return int(self.group.max(initial=-1)) + 1

    def starting_scales(self, family: Any, width: float) -> FloatArray:
        """Return scales that give every group the same share of a width.

        Two different categories differ in two columns, each of which counts half.
        """
        several = np.bincount(self.group)[self.group] > 1
        scale = family.start(width, max(1, self.n_groups))
        halved = several & self._one_hot()
        return np.asarray(scale - np.log(2.0) * halved)

    def _one_hot(self) -> bool:
        return self.encoding.categories == "one-hot"

    def apply(self, codes: FloatArray) -> FloatArray:
        """Return the coordinates of rows of a table."""
        return np.ascontiguousarray(self.box.apply(self.encoding.apply(codes)))


def fitted_box(features: FloatArray, weight: FloatArray, scaling: str) -> UnitBox:
    """Return the map of training rows to the unit cube."""
    return UnitBox.fit(features, weight, scaling=scaling)
