"""The four layouts of dual coefficients in a fit, and every conversion between them.

========  =============================  =====================================================
layout    shape                          order of the entries
========  =============================  =====================================================
given     (n_machines, n_given)          rows of the data as passed to ``fit``
merged    (n_machines, n_merged)         distinct rows of positive weight, sorted: the rows of a
                                         :class:`~tessella.estimators._training_set.TrainingSet`
stacked   (sum of the machines' sizes,)  rows of the first machine, then those of the second, and
                                         so on: the vector that solvers and checkpoints hold
support   (n_machines, n_support)        rows with a nonzero coefficient in some machine, in the
                                         order of the data as given: ``support_`` says which
========  =============================  =====================================================
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]


def stacked_to_merged(machine_rows: Sequence[IntArray], n_merged: int, w: FloatArray) -> FloatArray:
    """Coefficients of each machine on all merged rows; zero where a machine has no such row."""
    merged = np.zeros((len(machine_rows), n_merged))
    start = 0
    for values, rows in zip(merged, machine_rows, strict=True):
        values[rows] = w[start : start + len(rows)]
        start += len(rows)
    return merged


def merged_to_stacked(machine_rows: Sequence[IntArray], merged: FloatArray) -> FloatArray:
    """The inverse of :func:`stacked_to_merged`."""
    return np.concatenate([values[rows] for values, rows in zip(merged, machine_rows, strict=True)])


def support_to_given(support: IntArray, coefficients: FloatArray, n_given: int) -> FloatArray:
    """Coefficients on all rows of the data; zero outside the support."""
    given = np.zeros((len(coefficients), n_given))
    given[:, support] = coefficients
    return given


def given_to_support(given: FloatArray) -> tuple[IntArray, FloatArray]:
    """The rows with a nonzero coefficient in some machine, and the coefficients of these rows."""
    support = np.flatnonzero(given.any(axis=0))
    return support, given[:, support]


@dataclass(frozen=True)
class DualLayouts:
    """The conversions between the layouts of one training problem.

    Attributes
    ----------
    given_rows : ndarray of shape (n_merged,)
        Position of each merged row in the data as given (of equal rows, the first).
    n_given : int
        Number of rows of the data as given.
    machine_rows : sequence of ndarray of int
        Merged rows that each machine sees.
    """

    given_rows: IntArray
    n_given: int
    machine_rows: Sequence[IntArray]

    def given_to_stacked(self, given: FloatArray) -> FloatArray:
        """From the data as given to a solver's vector; rows that were left out are dropped."""
        return merged_to_stacked(self.machine_rows, given[:, self.given_rows])

    def stacked_to_given(self, w: FloatArray) -> FloatArray:
        """From a solver's vector to the data as given; zero for rows that were left out."""
        given = np.zeros((len(self.machine_rows), self.n_given))
        given[:, self.given_rows] = stacked_to_merged(self.machine_rows, len(self.given_rows), w)
        return given

    def merged_rows(self, given: IntArray) -> IntArray:
        """Merged rows that stand for some rows of the data as given."""
        place = np.empty(self.n_given, dtype=np.intp)
        place[self.given_rows] = np.arange(len(self.given_rows))
        merged: IntArray = place[given]
        return merged
