"""Data sets and their fixed divisions into training and test rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

CLASSIFICATION, REGRESSION = "classification", "regression"
TASKS = (CLASSIFICATION, REGRESSION)


@dataclass(frozen=True, eq=False)
class Dataset:
    """The rows of a data set.

    Attributes
    ----------
    name : str
        Name by which the data set was loaded.
    task : {"classification", "regression"}
        Task that the target belongs to.
    X : ndarray of shape (n_samples, n_features)
        Features, as float64 and without scaling.
    y : ndarray of shape (n_samples,)
        Target: the classes 0 and 1 as integers, or numbers in the original unit.
    feature_names : tuple of str
        Names of the columns of X.
    """

    name: str
    task: str
    X: NDArray[np.float64]
    y: NDArray[np.float64] | NDArray[np.int64]
    feature_names: tuple[str, ...]

    def split(
        self, seed: int, test_fraction: float = 0.2
    ) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Divide the rows at random into training and test rows.

        The division is always the same for the same seed.

        Parameters
        ----------
        seed : int
            Seed of the division.
        test_fraction : float, default=0.2
            Fraction of the rows that are test rows, between 0 and 1. The number of test rows is
            rounded.

        Returns
        -------
        train : ndarray of int
            Indices of the training rows, in ascending order.
        test : ndarray of int
            Indices of the test rows, in ascending order.

        Examples
        --------
        >>> import numpy as np
        >>> from tessella.datasets import Dataset
        >>> data = Dataset("ten", "regression", np.zeros((10, 1)), np.arange(10.0), ("x",))
        >>> train, test = data.split(seed=0)
        >>> test
        array([2, 8])
        """
        rows = len(self.y)
        held_out = round(test_fraction * rows)
        if not 0 < held_out < rows:
            raise ValueError(
                f"test_fraction={test_fraction!r} gives {rows - held_out} training rows and "
                f"{held_out} test rows of {rows} rows; there must be at least one of each."
            )
        # RandomState guarantees that its stream never changes, so the divisions are fixed.
        order = np.random.RandomState(seed).permutation(rows)
        return np.sort(order[held_out:]), np.sort(order[:held_out])
